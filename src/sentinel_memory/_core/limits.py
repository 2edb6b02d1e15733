"""The room of a memory: which of many entries fit into its limits; and numbers in keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ..entry import Entry
from ..retention import retention

__all__ = ["Room", "number_of"]

_MOST_DIGITS: Final = 15  # of a number in a key; a longer run of digits is a name


class Room(NamedTuple):
    """The limit of all stored entries, those of single kinds, and the freshness window."""

    limit: int
    limits: Mapping[str, int]
    window: float

    def is_enough_for(self, entries: Sequence[Entry]) -> bool:
        """Whether no limit is exceeded, expired entries counted."""
        return len(entries) <= self.limit and not self._kinds_over(entries)

    def fitting(
        self, entries: Sequence[Entry], *, now: int
    ) -> tuple[list[Entry], list[Entry], list[Entry]]:
        """The entries that fit, those that have expired, and those that are to be evicted.

        The entries are in the order in which they were last remembered. Evicted are first those of
        kinds over their limit, by the names of the kinds, then the others, lowest retention first
        in each. Pinned entries are never among them.
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
            too_many = sum(entry.kind == kind for entry in live) - self.limits[kind]
            evicted += [place for place in places if live[place].kind == kind][:too_many]
        gone = set(evicted)
        left = [place for place in places if place not in gone]
        evicted += left[: max(0, len(live) - len(evicted) - self.limit)]
        gone = set(evicted)
        fitting = [entry for place, entry in enumerate(live) if place not in gone]
        return fitting, expired, [live[place] for place in evicted]

    def _kinds_over(self, entries: Sequence[Entry]) -> list[str]:
        if not self.limits:
            return []
        counts = Counter(entry.kind for entry in entries)
        return [kind for kind, most in self.limits.items() if counts[kind] > most]


def number_of(entry: Entry, kind: str) -> int:
    """The number in a key ``kind:number``, 0 for any other key."""
    number = entry.key.removeprefix(f"{kind}:")
    digits = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
    return int(number) if digits and number != entry.key else 0
