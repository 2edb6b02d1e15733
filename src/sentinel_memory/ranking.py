"""Best first, in one place: the score of a match, and the order in which a context takes entries.

``recall`` takes the head of it, the packer walks it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from .entry import Entry, Match
from .recall.protocol import checked_answer, checked_relevance
from .retention import freshness, retentions

__all__ = ["Hit", "best_first", "best_matches", "hits", "score"]

IMPORTANCE_SHARE: Final = 0.5
"""The part of a score that importance decides: an unimportant match is worth half of one that is
most important. At 0 importance has no say, at 1 an entry of importance 0 is never found."""

FRESH_POINTS: Final = 0.05
"""What being new adds to a score: enough to order matches of one relevance, and less than any
difference in relevance of a question of up to ten words."""


Hit: TypeAlias = tuple[float, int, int, float, Entry]
"""An entry that the index found: its score, its time, its serial number, its relevance, and itself.

A plain tuple, because a question may find every entry; it orders as matches do, ties newer first.
"""


def score(relevance: float, importance: float, freshness: float) -> float:
    """The score that matches are ordered by.

    >>> score(1.0, importance=0.9, freshness=1.0)
    1.0
    """
    weight = 1 - IMPORTANCE_SHARE + IMPORTANCE_SHARE * importance
    return relevance * weight + FRESH_POINTS * freshness


def hits(
    answer: object,
    serials: Mapping[str, int],
    entries: Mapping[int, Entry],
    *,
    now: int,
    window: float,
) -> list[Hit]:
    """The live entries that an index answered with, in no order.

    ``serials`` has the serial number of each key, ``entries`` the entry of each serial number.

    Raises ``TypeError`` for an answer that is not a mapping, ``ValueError`` for a relevance that is
    not in [0, 1].
    """
    found = []
    for key, value in checked_answer(answer, "index").items():
        serial = serials.get(key)
        if serial is None or not (entry := entries[serial]).is_live(now):
            continue
        relevance = checked_relevance(value, key)
        if relevance > 0:
            updated = entry.updated_ms
            fresh = freshness(updated, now=now, window=window)
            points = score(relevance, entry.importance, fresh)
            found.append((points, updated, serial, relevance, entry))
    return found


def best_matches(found: list[Hit], limit: int) -> list[Match]:
    """The best ``limit`` matches, best score first, ties newer first."""
    # Only what is asked for becomes a value of its own.
    best = heapq.nlargest(limit, found)
    return [Match(entry, relevance, points) for points, _, _, relevance, entry in best]


def best_first(
    entries: Sequence[Entry], found: list[Hit], *, now: int, window: float
) -> Iterator[int]:
    """The places of ``entries``, which are oldest first: the matches by score, the rest by
    retention, ties newer first. Nothing is worked out before the first one is asked for."""
    kept = retentions(entries, now=now, window=window)
    newest_first = range(len(entries) - 1, -1, -1)
    ranking = sorted(newest_first, key=kept.__getitem__, reverse=True)
    if not found:
        yield from ranking
        return
    wanted = {entry.key for *_, entry in found}
    places = {entry.key: place for place, entry in enumerate(entries) if entry.key in wanted}
    yield from [places[entry.key] for *_, entry in sorted(found, reverse=True)]
    for place in ranking:
        if entries[place].key not in wanted:
            yield place
