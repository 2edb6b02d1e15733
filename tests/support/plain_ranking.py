"""Best first, and filling a budget, the plain way: formulas and steps as they are specified."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from support.items import Item, share_of_words


class Found(NamedTuple):
    """A match of a question."""

    item: Item
    relevance: float
    score: float


class Row(NamedTuple):
    """An item in the order in which a context takes them, and why it stands there."""

    item: Item
    why: str
    relevance: float
    score: float
    retention: float


class Packed(NamedTuple):
    """A context."""

    text: str
    items: list[Item]
    tokens: float
    left_out: list[str]
    rows: list[tuple[Row, float, bool]]  # with the tokens of the item alone, and whether it is in


class Moment(NamedTuple):
    """The time of a call, the freshness window and the half-life of matches, in milliseconds."""

    now: int
    window: float
    half_life: float | None = None

    def freshness(self, item: Item) -> float:
        return min(1.0, max(0.0, 1 - (self.now - item.updated) / self.window))

    def retention(self, item: Item) -> float:
        return item.worth + 0.1 * self.freshness(item)

    def fade(self, item: Item) -> float:
        if self.half_life is None:
            return 1.0
        last = item.updated if item.used is None else max(item.updated, item.used)
        left: float = 0.5 ** (max(0, self.now - last) / self.half_life)
        return (1 + left) / 2

    def score(self, item: Item, relevance: float) -> float:
        share = 0.5 + item.worth / 2
        return relevance * share * self.fade(item) + 0.05 * self.freshness(item)


def matches(live: Sequence[Item], query: object, moment: Moment) -> list[Found]:
    """Every match of some live items, oldest first: best score first, ties newer first.

    The relevance is the share of the words of the question; of other words for it, seven tenths.
    """
    questions = [query] if isinstance(query, str) else query
    if not isinstance(questions, Sequence) or not questions:
        raise TypeError("query must be a str or a non-empty sequence of them")
    found = []
    for item in reversed(live):
        first, *others = (share_of_words(question, item) for question in questions)
        relevance = max([first, *(0.7 * other for other in others)])
        if relevance > 0:
            found.append(Found(item, relevance, moment.score(item, relevance)))
    return sorted(found, key=lambda match: -match.score)


def best_first(live: Sequence[Item], found: Sequence[Found], moment: Moment) -> list[Row]:
    """Pins, matches by score, the rest by retention, ties newer first.

    Among the pins, too, the matches come first.
    """
    matching = [match.item for match in found]
    rest = [item for item in reversed(live) if item not in matching]
    rest.sort(key=lambda item: -moment.retention(item))
    rows = [Row(one.item, "matches", one.relevance, one.score, 0.0) for one in found]
    rows += [Row(item, "worth", 0.0, 0.0, 0.0) for item in rest]
    rows = [row._replace(retention=moment.retention(row.item)) for row in rows]
    pins = [row._replace(why="pinned") for row in rows if row.item.pinned]
    return pins + [row for row in rows if not row.item.pinned]


def estimate(text: str) -> int:
    """The default tokenizer."""
    return math.ceil(len(text) / 4)


def packed(
    live: Sequence[Item],
    rows: Sequence[Row],
    budget: float,
    tokens_of: Callable[[str], float],
    separator: str,
    header: str,
) -> Packed:
    """The greedy procedure: the whole text is rendered and counted for every row.

    The text has the live items oldest first, whatever their order in ``rows``.
    """

    def render(chosen: Sequence[Item]) -> str:
        lines = [item.line for item in live if item in chosen]
        return separator.join([header, *lines] if header and lines else lines)

    chosen: list[Item] = []
    left_out: list[str] = []
    for row in rows:
        if tokens_of(render([*chosen, row.item])) <= budget:
            chosen.append(row.item)
        else:
            left_out.append(row.item.key)
    text = render(chosen)
    taken = [item for item in live if item in chosen]
    explained = [(row, tokens_of(row.item.line), row.item in chosen) for row in rows]
    return Packed(text, taken, tokens_of(text), left_out, explained)


def first_that_pass(
    candidates: Sequence[Any], count: int, where: Callable[[Any], object] | None
) -> list[Any]:
    """The first ``count`` that pass; ``where`` is asked no longer than it must be."""
    passed: list[Any] = []
    for candidate in candidates:
        if len(passed) == count:
            break
        if where is None or where(candidate):
            passed.append(candidate)
    return passed
