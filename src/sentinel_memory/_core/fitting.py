"""The entries of a loaded document that fit into the limits of a memory.

``Contents._compact`` evicts one entry after another; here the same rule is applied to many entries
at once, by one sort. Both must agree, and a test compares them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..entry import Entry
from ..retention import retention

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
        expired = [entry for entry in entries if not entry.is_live(now)]
        live = [entry for entry in entries if entry.is_live(now)]
        # Between equals the older one goes; a sort keeps those of one millisecond in their order.
        order = sorted(
            (
                retention(entry.worth, entry.updated_ms, now=now, window=self.window),
                entry.updated_ms,
                place,
            )
            for place, entry in enumerate(live)
            if not entry.pinned
        )
        places = [place for _, _, place in order]
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
