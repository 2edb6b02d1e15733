"""Everything that a memory holds, and every way in which it changes: no lock, no clock, no store.

When an eviction is due is decided here (``_compact``); who goes is decided in ``eviction``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from .._basics.numbers import DEFAULTS
from ..document import RESERVED, VERSION, Section, State
from ..entry import Entry
from ..recall.protocol import RecallIndex
from ..results import Cause, Compaction, Events, LoadResult
from ..retention import retention
from .entries import EntrySet, FollowingIndex
from .reading import (
    Document,
    goes_with,
    load_without,
    once,
    rejected_section,
    restored,
    section_text,
    storable,
    stored_forms,
)

__all__ = ["Change", "Contents", "Counters", "Snapshot"]

_T = TypeVar("_T")


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

    __slots__ = ("compaction", "compactions", "now", "removed")

    def __init__(self, now: int) -> None:
        self.now = now
        self.compaction: Compaction | None = None  # the automatic one, if there was one
        self.compactions = 0
        self.removed: list[tuple[Cause, Entry]] = []


class Snapshot(NamedTuple):
    """The contents at one moment, cheap to take: what is saved, and what an undo puts back."""

    changes: int  # how many changes are in it
    limit: int
    entries: list[Entry]
    sections: dict[str, str]  # as JSON text
    unknown: dict[str, str]
    rejected: list[Any]
    counters: Counters

    def document(self) -> State:
        """The snapshot as a document; takes long, and needs no lock."""
        state: State = {"version": VERSION}
        if self.limit != DEFAULTS["limit"]:
            state["limit"] = self.limit
        state["entries"] = [entry.to_state() for entry in self.entries]
        for texts in (self.sections, self.unknown):
            state.update((name, json.loads(text)) for name, text in texts.items())
        if self.rejected:
            state["rejected"] = storable(self.rejected)
        return state


class Contents:
    """The entries, the sections, what loads set aside, the counters, and the number of changes.

    ``half_made`` is true in the middle of a change. If it still is when nobody is changing
    anything, an exception came between two steps (Ctrl-C, a signal handler), and ``repair`` makes
    everything whole again from the entries.
    """

    def __init__(self, *, limit: int | None, window: float, index: RecallIndex) -> None:
        self.limit: int = DEFAULTS["limit"] if limit is None else limit
        self._given_limit = limit  # None: the document may say another one
        self.entries = EntrySet(window)
        self.sections: dict[str, Section] = {}
        self.rejected: list[Any] = []
        self.counters = Counters()
        self.last_load: LoadResult | None = None
        self.changes = 0
        self.half_made = False
        self._window = window
        self._index = FollowingIndex(index)
        self._unknown: dict[str, str] = {}  # sections that nothing is attached to, as JSON text

    # Looking

    def search(self, query: str) -> object:
        """What the index answers to ``query``."""
        return self._index.search(query)

    @property
    def has_unknown_sections(self) -> bool:
        """Whether the document has sections that nothing is attached to."""
        return bool(self._unknown)

    def snapshot(self, *, now: int) -> Snapshot:
        """The contents as they are to be saved: of the entries, the live ones."""
        return self._snapshot(self.entries.oldest_first(now=now), now)

    def everything(self, *, now: int) -> Snapshot:
        """The contents as they are to be put back: of the entries, all."""
        return self._snapshot(self.entries.stored(), now)

    def _snapshot(self, entries: list[Entry], now: int) -> Snapshot:
        # As text: what a section dumps may be a part of itself, and change with it.
        sections = {
            name: json.dumps(section.dump(now=now), allow_nan=False)
            for name, section in self.sections.items()
        }
        rejected = list(self.rejected)
        return Snapshot(
            self.changes,
            self.limit,
            entries,
            sections,
            dict(self._unknown),
            rejected,
            self.counters,
        )

    # Changing

    def repair(self) -> None:
        """Make whole what an exception in the middle of a change has left."""
        self.changes += 1  # the change may have come as far as the entries
        self.entries = EntrySet(self._window, self.entries.stored())
        self._index.repair(self.entries)
        self.half_made = False

    def put(self, change: Change, make: Callable[[Entry | None], Entry], key: str) -> Entry:
        """Add the entry that ``make`` makes of the live former one, and evict what is too much.

        If the index refuses the entry, nothing changes.
        """
        former = self.entries.get(key)
        is_live = former is not None and former.is_live(change.now)
        entry = make(former if is_live else None)
        self.half_made = True
        try:
            self._index.exchange(former, entry)
        except BaseException:
            self.half_made = not self._index.is_whole
            raise
        self.changes += 1
        self.entries.put(entry)
        self._index.done()
        if former is not None:
            change.removed.append(("replaced" if is_live else "expired", former))
        if len(self.entries) > self.limit:
            change.compaction = self._compact(change)
        self._tell(change)
        self.half_made = False
        return entry

    def forget(self, change: Change, key: str) -> bool:
        """Remove the entry of that key and what loads rejected under it; whether it was live."""
        entry = self.entries.get(key)
        is_last = len(self.entries) == (entry is not None)
        rejected = [raw for raw in self.rejected if not goes_with(raw, key, is_last=is_last)]
        self.last_load = load_without(self.last_load, key)
        if entry is None and len(rejected) == len(self.rejected):
            return False
        self.half_made = True
        self.changes += 1
        self.rejected = rejected
        is_live = entry is not None and entry.is_live(change.now)
        if entry is not None:
            self._remove(key)
            change.removed.append(("forgotten" if is_live else "expired", entry))
        self._tell(change)
        self.half_made = False
        return is_live

    def clear(self, change: Change) -> None:
        """Remove everything: entries, sections and what loads set aside."""
        self.half_made = True
        self.changes += 1
        former = self.entries.stored()
        self._index.follow(former, ())
        self.entries = EntrySet(self._window)
        self._index.done()
        self._unknown = {}
        self.rejected = []
        self.last_load = load_without(self.last_load)
        for section in self.sections.values():
            section.clear()
        for entry in former:
            change.removed.append(("forgotten" if entry.is_live(change.now) else "expired", entry))
        self._tell(change)
        self.half_made = False

    def compact(self, change: Change) -> Compaction:
        """Remove what has expired."""
        self.half_made = True
        compaction = self._compact(change)
        if compaction.expired or compaction.evicted:
            self.changes += 1
        self._tell(change)
        self.half_made = False
        return compaction

    def drop_expired(self, change: Change) -> None:
        """Remove what has expired, because a save is about to leave it out of the store."""
        expired = self.entries.expired(now=change.now)
        if self.last_load is not None and self.last_load.compaction is not None:
            left = self.last_load.compaction._replace(expired=())
            self.last_load = self.last_load._replace(compaction=left)
        if expired:
            self.half_made = True
            self.changes += 1
            for entry in expired:
                self._remove(entry.key)
            change.removed += [("expired", entry) for entry in expired]
            self._tell(change)
            self.half_made = False

    def clear_section(self, name: str) -> None:
        """Clear one section, and remove what loads set aside of it."""

        def clear() -> None:
            self.sections[name].clear()
            self.rejected = [raw for raw in self.rejected if rejected_section(raw) != name]

        self.in_section(clear)

    def in_section(self, make: Callable[[], _T]) -> _T:
        """Change a section; if ``make`` raises, the section is as it was, and counts as that."""
        self.half_made = True
        try:
            result = make()
            self.changes += 1
        finally:
            self.half_made = False
        return result

    def attach(self, name: str, section: Section, *, now: int) -> None:
        """Keep a section under that name, restored from what a load found under it."""
        if name in self.sections or name in RESERVED:
            raise ValueError(f"the document already has a section {name!r}")
        if name in self._unknown:
            value = json.loads(self._unknown[name])
            self.rejected += stored_forms(restored(name, section, value, now))
            del self._unknown[name]
        self.sections[name] = section

    def replace(self, document: Document, change: Change, *, altered: bool = False) -> LoadResult:
        """Hold what the document has, and nothing else; if anything raises, nothing changes."""
        unknown = {
            name: section_text(name, value)
            for name, value in document.sections.items()
            if name not in self.sections
        }
        now = change.now
        before = self.everything(now=now)
        self.half_made = True
        try:
            rejected = list(document.rejected)
            self.limit = self._limit_of(document)
            # What there is no room for is taken out before anything is put in order or indexed.
            fitting, removed = self._fitting(document.entries, change)
            self._index.follow(before.entries, fitting)
            self.entries = EntrySet(self._window, fitting)
            for name, section in self.sections.items():
                if name in document.sections:
                    rejected += restored(name, section, document.sections[name], now)
                else:
                    section.clear()
        except BaseException:
            self.put_back(before, now=now)
            raise
        self._index.done()
        self._unknown = unknown
        self.rejected = once([*document.rejected_before, *stored_forms(rejected)])
        self.changes += 1
        self._tell(change)
        self.half_made = False
        counts = len(document.entries), len(rejected)
        self.last_load = LoadResult(*counts, tuple(rejected), removed, altered)
        return self.last_load

    def put_back(self, before: Snapshot, *, now: int) -> None:
        """Be as in the snapshot again: the one way to undo."""
        self.half_made = True
        self._index.follow(self.entries.stored(), before.entries, later=True)
        self.entries = EntrySet(self._window, before.entries)
        self._index.done()
        self.limit = before.limit
        self._unknown = dict(before.unknown)
        self.rejected = list(before.rejected)
        self.counters = before.counters
        self.changes = before.changes
        for name, section in self.sections.items():
            if name in before.sections:
                section.restore(json.loads(before.sections[name]), now=now)
            else:
                section.clear()  # attached since
        self.half_made = False

    def _remove(self, key: str) -> None:
        self._index.discard(key)
        self.entries.remove(key)
        self._index.done()

    def _compact(self, change: Change) -> Compaction:
        """Remove what has expired, and over the limit the entries of lowest retention."""
        expired = self.entries.expired(now=change.now)
        for entry in expired:
            self._remove(entry.key)
        evicted = []
        while len(self.entries) > self.limit:
            entry = self.entries.first_to_go(now=change.now)
            self._remove(entry.key)
            evicted.append(entry)
        return self._compacted(change, expired, evicted)

    def _fitting(
        self, entries: list[Entry], change: Change
    ) -> tuple[list[Entry], Compaction | None]:
        """The entries of a document that there is room for, and what a compaction takes out.

        The same as ``_compact`` would take, found by one sort: of very many, few may fit.
        """
        if len(entries) <= self.limit:
            return entries, None
        expired = [entry for entry in entries if not entry.is_live(change.now)]
        live = [entry for entry in entries if entry.is_live(change.now)]
        kept = {id(entry): self._retention(entry, change.now) for entry in live}
        # Between equals the older one goes; a sort keeps those of one millisecond in their order.
        order = sorted(live, key=lambda entry: (kept[id(entry)], entry.updated_ms))
        evicted = order[: max(0, len(live) - self.limit)]
        gone = set(map(id, evicted))
        fitting = [entry for entry in live if id(entry) not in gone]
        return fitting, self._compacted(change, expired, evicted)

    def _retention(self, entry: Entry, now: int) -> float:
        return retention(entry.importance, entry.updated_ms, now=now, window=self._window)

    def _compacted(self, change: Change, expired: list[Entry], evicted: list[Entry]) -> Compaction:
        compaction = Compaction(tuple(expired), tuple(evicted))
        self.counters = self.counters.after(compaction)
        change.compactions += 1
        change.removed += [("expired", entry) for entry in expired]
        change.removed += [("evicted", entry) for entry in evicted]
        return compaction

    def _limit_of(self, document: Document) -> int:
        """The limit: the given one, else the document's; without one nothing of it may be lost."""
        if self._given_limit is not None:
            return self._given_limit
        if document.limit is not None:
            return document.limit
        fewest: int = DEFAULTS["limit"]
        return max(fewest, len(document.entries))

    def _tell(self, change: Change) -> None:
        """Tell the sections that observe, before the change is saved."""
        observers = [section for section in self.sections.values() if hasattr(section, "observe")]
        if observers and (change.removed or change.compactions):
            events = Events(tuple(change.removed), change.compactions)
            for section in observers:
                section.observe(events, now=change.now)
