"""The formula that says which entries stay: freshness and retention, pure functions of a time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from .entry import Entry

__all__ = ["FRESH_BONUS", "freshness", "retention", "retentions"]

FRESH_BONUS: Final = 0.1
"""The retention that an entry gains by being new: a tenth of the whole range of importance.

A larger bonus lets newer entries push out more important ones.
"""


def freshness(updated_ms: int, *, now: int, window: float) -> float:
    """The freshness: from 1 (just remembered) to 0 (``window`` milliseconds ago, or longer).

    >>> freshness(0, now=6_000, window=24_000)
    0.75
    """
    fresh = 1 - (now - updated_ms) / window
    if fresh > 1:
        return 1.0  # a clock that went back
    return fresh if fresh > 0 else 0.0


def retention(worth: float, updated_ms: int, *, now: int, window: float) -> float:
    """The retention of one entry: the higher, the more speaks for keeping it.

    >>> retention(0.5, 0, now=12_000, window=24_000)
    0.55
    """
    return worth + FRESH_BONUS * freshness(updated_ms, now=now, window=window)


def retentions(entries: Sequence[Entry], *, now: int, window: float) -> list[float]:
    """The retention of each of some entries, to the last bit the same as one by one.

    ``entries`` are oldest first, as a context needs them anyway. So those whose freshness is 0 or 1
    stand at the two ends, and the formula is worked out only for those between.
    """

    def is_fresh(entry: Entry) -> bool:
        return 1.0 - (now - entry.updated_ms) / window > 0

    stale = bisect_left(entries, True, key=is_fresh)
    # Most entries have nothing beside their importance; asking that first is faster than ``worth``.
    found = [entry.worth if entry.more else entry.importance for entry in entries[:stale]]
    found += [
        (entry.worth if entry.more else entry.importance)
        + FRESH_BONUS * (1.0 - (now - entry.updated_ms) / window)
        for entry in entries[stale:]
    ]
    if entries and now < entries[-1].updated_ms:  # a clock that went back
        future = bisect_right(entries, now, key=attrgetter("updated_ms"))
        found[future:] = [entry.worth + FRESH_BONUS for entry in entries[future:]]
    return found
