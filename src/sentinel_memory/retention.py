"""Freshness and retention, pure functions of a time; the lowest retention is evicted first."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from .entry import Entry

__all__ = ["FRESH_BONUS", "freshness", "retention", "retentions"]

FRESH_BONUS: Final = 0.1
"""Retention added at freshness 1, on the scale of importance; from 0 to 1, and 0 is by worth only.

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
    """The retention of one entry; entries of higher retention are evicted later.

    >>> retention(0.5, 0, now=12_000, window=24_000)
    0.55
    """
    return worth + FRESH_BONUS * freshness(updated_ms, now=now, window=window)


def retentions(entries: Sequence[Entry], *, now: int, window: float) -> list[float]:
    """The retentions of entries, equal bit for bit to ``retention`` of each.

    ``entries`` must be oldest first. So entries of freshness 0 and of freshness 1 stand at the two
    ends, and the freshness is computed only for the entries between.
    """

    def is_fresh(entry: Entry) -> bool:
        return 1.0 - (now - entry.updated_ms) / window > 0

    stale = bisect_left(entries, True, key=is_fresh)
    # The formula is written out here: calling ``retention`` takes more than twice as long. And most
    # entries have no feedback, and their importance is read faster than ``worth``.
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
