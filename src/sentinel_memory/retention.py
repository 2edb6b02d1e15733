"""Who stays and who goes: the formula, as pure functions of entries and a time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter

from .entry import Entry

__all__ = ["freshness", "retention", "retentions"]


def freshness(updated_ms: int, *, now: int, window: float) -> float:
    """From 1 (just remembered) to 0 (``window`` milliseconds ago, or longer).

    >>> freshness(0, now=6_000, window=24_000)
    0.75
    """
    fresh = 1 - (now - updated_ms) / window
    if fresh > 1:
        return 1.0  # a clock that went back
    return fresh if fresh > 0 else 0.0


def retention(entry: Entry, *, now: int, window: float) -> float:
    """``importance + 0.1 * freshness``: how much speaks for keeping the entry."""
    return retentions((entry,), now=now, window=window)[0]


def retentions(entries: Sequence[Entry], *, now: int, window: float) -> list[float]:
    """The retention of each of some entries, which are oldest first.

    Freshness is 0 before the window and 1 in the future, so only those between need the formula.
    """

    def is_fresh(entry: Entry) -> bool:
        return 1.0 - (now - entry._updated_ms) / window > 0

    stale = bisect_left(entries, True, key=is_fresh)
    worth = [entry._importance for entry in entries[:stale]]
    worth += [
        entry._importance + 0.1 * (1.0 - (now - entry._updated_ms) / window)
        for entry in entries[stale:]
    ]
    if entries and now < entries[-1]._updated_ms:  # a clock that went back
        future = bisect_right(entries, now, key=attrgetter("_updated_ms"))
        worth[future:] = [entry._importance + 0.1 for entry in entries[future:]]
    return worth
