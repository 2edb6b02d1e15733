"""The order of entries: pinned ones, then matches by score, then the others by retention.

Here are the score, its fading, and the explanation of the order. ``recall`` returns the best
matches, ``get_context`` offers the entries to the packer in this order, and ``Context.explain()``
shows it.
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
"""The share of a score that is due to importance, from 0 to 1: at 0.5 a match of importance 0
scores half of one of importance 1. At 0 importance has no effect, at 1 a match of importance 0
scores 0 but for its freshness."""

FRESH_POINTS: Final = 0.05
"""The score that is added at freshness 1 (range 0 to 0.1; a larger one ranks newer matches before
more relevant ones). 0.05 equals one word of a question of ten words, which is a relevance of 0.1,
at importance 0, and half a word at importance 1."""

Hit: TypeAlias = tuple[float, int, int, float, Entry]
"""An entry that the index found: its score, its time, its serial number, its relevance, and itself.

A plain tuple, because a question may find every entry; it orders as matches do, ties newer first.
"""


def score(relevance: float, worth: float, fresh: float, fade: float = 1.0) -> float:
    """The score that matches are ordered by, of numbers from 0 to 1.

    ``worth`` is the importance of an entry shifted by feedback, ``fresh`` its freshness.

    >>> score(1.0, worth=0.9, fresh=1.0)
    1.0
    """
    weight = 1 - IMPORTANCE_SHARE + IMPORTANCE_SHARE * worth
    return relevance * weight * fade + FRESH_POINTS * fresh


def faded(entry: Entry, *, now: int, half_life: float) -> float:
    """The factor by which age reduces a score: 1 at age 0, 3/4 after one half-life, towards 1/2.

    The age counts in milliseconds, as ``half_life`` does, from the time when the entry was
    remembered or reinforced, whichever is later.
    """
    used = entry.used_ms
    last = entry.updated_ms if used is None else max(entry.updated_ms, used)
    halved: float = 0.5 ** (max(0, now - last) / half_life)
    return (1 + halved) / 2


class Fading(NamedTuple):
    """The time of a question, the freshness window, and the half-life of matches, if they fade."""

    now: int
    window: float
    half_life: float | None = None


def hits(
    answer: object, serials: Mapping[str, int], entries: Mapping[int, Entry], fading: Fading
) -> list[Hit]:
    """A ``Hit`` for each live entry in the answer of an index, unordered.

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

    ``where`` is called with the matches, best first, until it has accepted ``limit`` of them.
    """
    if where is None:
        # Only the hits that are returned become matches.
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
    """Live entries, oldest first, with the hits of a question among them, at one time."""

    entries: Sequence[Entry]
    found: list[Hit]
    now: int
    window: float

    def where(self, passes: Callable[[Entry], object]) -> Ranking:
        """The ranking of the entries that pass; ``passes`` gets each entry once, best first."""
        passed = [place for place in self.best_first() if passes(self.entries[place])]
        keys = {self.entries[place].key for place in passed}
        return self._replace(
            entries=[self.entries[place] for place in sorted(passed)],
            found=[hit for hit in self.found if hit[-1].key in keys],
        )

    def best_first(self) -> Iterator[int]:
        """The places of the entries in the order in which a context takes them.

        Pinned entries, matches by score, the other entries by retention; ties newer first. Among
        the pinned entries, too, matches come first. Nothing is computed before the first place is
        requested.
        """
        return chain.from_iterable(self._parts())

    def _parts(self) -> Iterator[list[int]]:
        entries, found = self.entries, self.found
        kept = retentions(entries, now=self.now, window=self.window)
        newest_first = range(len(entries) - 1, -1, -1)
        ranking = sorted(newest_first, key=kept.__getitem__, reverse=True)
        if found:
            wanted = {entry.key for *_, entry in found}
            places = {
                entry.key: place for place, entry in enumerate(entries) if entry.key in wanted
            }
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
        """A row for each entry, best first: the reason of its place, and whether it was taken.

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
