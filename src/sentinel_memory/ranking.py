"""Best first, in one place: pins, matches by score, the rest by retention; fading, and why.

``recall`` takes the head of it, the packer walks it, ``Context.explain()`` shows it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from .entry import Entry, Match
from .recall.protocol import checked_answer, checked_relevance
from .results import Explained, Explanation, Reason
from .retention import freshness, retentions

__all__ = ["Hit", "Ranking", "best_matches", "hits", "score"]

IMPORTANCE_SHARE: Final = 0.5
"""The part of a score that importance decides: an unimportant match is worth half of one that is
most important. At 0 importance has no say, at 1 an entry of importance 0 is never found."""

FRESH_POINTS: Final = 0.05
"""What being new adds to a score: enough to order matches of one relevance, and at most a
difference in relevance of a question of ten words."""

Hit: TypeAlias = tuple[float, int, int, float, Entry]
"""An entry that the index found: its score, its time, its serial number, its relevance, and itself.

A plain tuple, because a question may find every entry; it orders as matches do, ties newer first.
"""


def score(relevance: float, importance: float, freshness: float, fade: float = 1.0) -> float:
    """The score that matches are ordered by; ``importance`` is the worth of an entry.

    >>> score(1.0, importance=0.9, freshness=1.0)
    1.0
    """
    weight = 1 - IMPORTANCE_SHARE + IMPORTANCE_SHARE * importance
    return relevance * weight * fade + FRESH_POINTS * freshness


def faded(entry: Entry, *, now: int, half_life: float) -> float:
    """The part of a match that time leaves, from 1 down to 1/2, so that no match becomes a miss.

    It has fallen half of the way after ``half_life`` milliseconds since the entry was remembered,
    or helped, whichever is later.
    """
    used = entry.used_ms
    last = entry.updated_ms if used is None else max(entry.updated_ms, used)
    left: float = 0.5 ** (max(0, now - last) / half_life)
    return (1 + left) / 2


class Fading(NamedTuple):
    """The time of a question, the freshness window, and the half-life of matches, if they fade."""

    now: int
    window: float
    half_life: float | None = None


def hits(
    answer: object, serials: Mapping[str, int], entries: Mapping[int, Entry], fading: Fading
) -> list[Hit]:
    """The live entries that an index answered with, in no order.

    ``serials`` has the serial number of each key, ``entries`` the entry of each serial number.

    Raises ``TypeError`` for an answer that is not a mapping, ``ValueError`` for a relevance that is
    not in [0, 1].
    """
    now, window, half_life = fading
    found = []
    for key, value in checked_answer(answer, "index").items():
        serial = serials.get(key)
        if serial is None or not (entry := entries[serial]).is_live(now):
            continue
        relevance = checked_relevance(value, key)
        if relevance > 0:
            updated = entry.updated_ms
            fresh = freshness(updated, now=now, window=window)
            fade = 1.0 if half_life is None else faded(entry, now=now, half_life=half_life)
            points = score(relevance, entry.worth, fresh, fade)
            found.append((points, updated, serial, relevance, entry))
    return found


def best_matches(
    found: list[Hit], limit: int, where: Callable[[Match], object] | None = None
) -> list[Match]:
    """The best ``limit`` matches, best score first, ties newer first.

    ``where`` is asked best first, until enough have passed.
    """
    if where is None:
        # Only what is asked for becomes a value of its own.
        best = heapq.nlargest(limit, found)
        return [Match(entry, relevance, points) for points, _, _, relevance, entry in best]
    passed: list[Match] = []
    for points, _, _, relevance, entry in sorted(found, reverse=True):
        if len(passed) == limit:
            break
        match = Match(entry, relevance, points)
        if where(match):
            passed.append(match)
    return passed


class Ranking(NamedTuple):
    """Live entries, oldest first, with what a question found among them at one time."""

    entries: Sequence[Entry]
    found: list[Hit]
    now: int
    window: float

    def where(self, passes: Callable[[Entry], object]) -> Ranking:
        """The ranking of those entries that pass; each is asked once, best first."""
        passed = [place for place in self.best_first() if passes(self.entries[place])]
        keys = {self.entries[place].key for place in passed}
        return self._replace(
            entries=[self.entries[place] for place in sorted(passed)],
            found=[hit for hit in self.found if hit[-1].key in keys],
        )

    def best_first(self) -> Iterator[int]:
        """The places of the entries in the order in which a context takes them.

        The pinned ones, the matches by score, the rest by retention, ties newer first; among the
        pinned ones, too, the matches come first. Nothing is worked out before the first place is
        asked for.
        """
        return chain.from_iterable(self._parts())

    def _parts(self) -> Iterator[list[int]]:
        entries, found = self.entries, self.found
        kept = retentions(entries, now=self.now, window=self.window)
        newest_first = range(len(entries) - 1, -1, -1)
        ranking = sorted(newest_first, key=kept.__getitem__, reverse=True)
        if found:
            wanted = {entry.key for *_, entry in found}
            places = {one.key: place for place, one in enumerate(entries) if one.key in wanted}
            matches = [places[entry.key] for *_, entry in sorted(found, reverse=True)]
            ranking = matches + [place for place in ranking if entries[place].key not in wanted]
        with_more = [entry for entry in entries if entry.more]
        if any(entry.pinned for entry in with_more):
            yield [place for place in ranking if entries[place].pinned]
            ranking = [place for place in ranking if not entries[place].pinned]
        yield ranking

    def explanation(
        self, taken: Iterable[Entry], count: Callable[[Entry], int | float]
    ) -> Explanation:
        """A row for each entry, best first: why it stands there, and whether it was taken.

        ``count`` gives the tokens of an entry alone.
        """
        scored = {entry.key: (relevance, points) for points, _, _, relevance, entry in self.found}
        kept = retentions(self.entries, now=self.now, window=self.window)
        chosen = {entry.key for entry in taken}
        rows = []
        for place in self.best_first():
            entry = self.entries[place]
            relevance, points = scored.get(entry.key, (0.0, 0.0))
            why: Reason = "matches" if entry.key in scored else "worth"
            if entry.pinned:
                why = "pinned"
            row = (entry, why, relevance, points, kept[place], count(entry), entry.key in chosen)
            rows.append(Explained(*row))
        return Explanation(rows)
