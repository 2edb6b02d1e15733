"""The entries of a loaded document that fit into the limits of a memory.

``Contents._compact`` evicts one entry after another; here the same rule is applied to many entries
at once, by one sort. Both must agree, and a test compares them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..entry import Entry
from ..retention import retentions

__all__ = ["Limits"]


class Limits(NamedTuple):
    """The limit of all stored entries, the limits of single kinds, and the freshness window."""

    of_all: int
    of_kinds: Mapping[str, int]
    window: float

    def are_enough_for(self, entries: Sequence[Entry]) -> bool:
        """Whether no limit is exceeded, expired entries counted."""
        return len(entries) <= self.of_all and not self._kinds_over(entries)

    def fitting(
        self, entries: Sequence[Entry], *, now: int
    ) -> tuple[list[Entry], list[Entry], list[Entry]]:
        """The entries that fit, those that have expired, and those that are to be evicted.

        The entries are in the order in which they were last remembered. The list of the evicted
        starts with the entries of kinds over their own limit, kinds in alphabetical order; then
        come the others. Each part is in the order of retention, lowest first. Pinned entries are
        never in it.
        """
        expired = [
            entry for entry in entries if entry.expires_ms is not None and not entry.is_live(now)
        ]
        live = [entry for entry in entries if entry.is_live(now)] if expired else entries
        # Between equals the older one goes: both sorts keep equals in the order they come in.
        by_time = sorted(range(len(live)), key=[entry.updated_ms for entry in live].__getitem__)
        kept = retentions([live[place] for place in by_time], now=now, window=self.window)
        by_retention = sorted(range(len(live)), key=kept.__getitem__)
        places = [by_time[place] for place in by_retention]
        places = [place for place in places if not live[place].pinned]
        evicted: list[int] = []
        for kind in sorted(self._kinds_over(live)):
            too_many = sum(entry.kind == kind for entry in live) - self.of_kinds[kind]
            evicted += [place for place in places if live[place].kind == kind][:too_many]
        gone = set(evicted)
        left = [place for place in places if place not in gone]
        evicted += left[: max(0, len(live) - len(evicted) - self.of_all)]
        gone = set(evicted)
        fitting = [entry for place, entry in enumerate(live) if place not in gone]
        return fitting, expired, [live[place] for place in evicted]

    def _kinds_over(self, entries: Sequence[Entry]) -> list[str]:
        if not self.of_kinds:
            return []
        counts = Counter(entry.kind for entry in entries)
        return [kind for kind, most in self.of_kinds.items() if counts[kind] > most]
