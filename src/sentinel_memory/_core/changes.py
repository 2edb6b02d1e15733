"""The effects of a change under way, the counters of compactions, and snapshots of the contents."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from .._basics.numbers import DEFAULTS
from ..document import VERSION, State
from ..entry import Entry
from ..results import Cause, Compaction
from ..stores.protocol import Changes
from .rejects import Rejects, storable

__all__ = ["Change", "Counters", "Snapshot"]


class Counters(NamedTuple):
    """The numbers of compactions, and of entries that they removed, since the memory was made."""

    compactions: int = 0
    expired: int = 0
    evicted: int = 0

    def after(self, compaction: Compaction) -> Counters:
        """The counters after one more compaction."""
        return Counters(
            self.compactions + 1,
            self.expired + len(compaction.expired),
            self.evicted + len(compaction.evicted),
        )


class Change:
    """One change under way: the time of its call, and what it has caused so far."""

    __slots__ = ("compaction", "compaction_count", "now", "removed", "repeated")

    def __init__(self, now: int) -> None:
        self.now = now
        self.compaction: Compaction | None = None  # of ``put`` or ``put_back``, for ``on_evict``
        self.compaction_count = 0
        self.removed: list[tuple[Cause, Entry]] = []
        self.repeated: list[Entry] = []


class Snapshot(NamedTuple):
    """The contents at one moment, cheap to take: what is saved, and what an undo puts back."""

    changes: int  # the value of ``Contents.changes``
    limit: int
    limits: Mapping[str, int]
    numbers: Mapping[str, int]
    entries: list[Entry]
    sections: dict[str, str]  # as JSON text
    unknown: dict[str, str]
    rejects: Rejects
    counters: Counters
    touched: Collection[str] | None  # as ``Contents.touched``
    gone: Sequence[str] | None = None  # of ``Contents.unsaved``: the touched keys without an entry

    def document(self) -> State:
        """The document to save. Takes time in proportion to the entries, and needs no lock."""
        state = self._before_entries()
        state["entries"] = self._stored_entries()
        state.update(self._after_entries())
        return state

    def as_changes(self) -> Changes:
        """The snapshot of ``Contents.unsaved`` in the form that a store takes."""
        rest = {**self._before_entries(), **self._after_entries()}
        return Changes(self._stored_entries(), list(self.gone or ()), rest)

    def _before_entries(self) -> State:
        state: State = {"version": VERSION}
        if self.limit != DEFAULTS["limit"]:
            state["limit"] = self.limit
        if self.limits:
            state["limits"] = dict(self.limits)
        if self.numbers:
            state["numbers"] = dict(self.numbers)
        return state

    def _stored_entries(self) -> list[State]:
        return [entry.to_state() for entry in self.entries]

    def _after_entries(self) -> State:
        state: State = {}
        for texts in (self.sections, self.unknown):
            state.update((name, json.loads(text)) for name, text in texts.items())
        if self.rejects.items:
            state["rejected"] = storable(self.rejects.items)
        return state
