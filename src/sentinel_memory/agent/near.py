"""Entries that say nearly the same, with the words that only one of the two has.

Nothing is decided here: whether the newer entry corrects the older one, repeats it or contradicts
it is for the caller, who sees the differing words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from .._basics.checks import check_callable
from .._basics.numbers import in_unit_interval, warn_ignored, whole
from .._basics.words import strings_in
from ..entry import Entry
from ..memory import Memory
from ..recall.embedding import EmbeddingIndex
from ._texts import Text, Token, is_predicate, is_spelt_strangely

__all__ = ["Near", "near"]

_THRESHOLD: Final = 0.7  # of the points of the smaller text; 0.6 finds more, half of them wrong
_THRESHOLD_OF_VECTORS: Final = 0.8  # for MiniLM; some models give any two texts 0.7
_LIMIT: Final = 5
_CANDIDATES: Final = 200  # entries that are compared
_ENOUGH: Final = 2.0  # points; with fewer the data alone says too little, so the key counts, too


class Near(NamedTuple):
    """Another entry that says nearly the same.

    ``similarity`` is in [0, 1]; ``here`` are the words that only the entry asked about has,
    ``there`` those that only the other one has, negations included, in the order of the text.
    """

    entry: Entry
    similarity: float
    here: tuple[str, ...]
    there: tuple[str, ...]


def near(
    memory: Memory,
    key: str,
    *,
    threshold: float | None = None,
    limit: int | float = _LIMIT,
    embed: Callable[[list[str]], Iterable[Iterable[float]]] | None = None,
) -> list[Near]:
    """The live entries closest to that of ``key``, most similar first; none if it is missing.

    Similarity is the share of the words of the smaller text that both have; content words and
    numbers count one, function words nothing. Data of few words is compared with its key.
    With ``embed``, which makes vectors of texts as for ``EmbeddingIndex``, it is the cosine of the
    two lines. At least ``threshold`` in [0, 1] (0.7, and 0.8 with ``embed``), at most ``limit``
    entries (5). Compared are the 200 that ``memory.recall`` finds best, with ``embed`` also the
    newest of the others up to that number.

    Raises ``TypeError`` for a key that is not a ``str``, and the exceptions of ``embed``.

    >>> memory = Memory()
    >>> _ = memory.remember("note:1", "the build needs Java 17")
    >>> _ = memory.remember("note:2", "the build needs Java 21")
    >>> [(found.entry.key, found.similarity, found.here, found.there)
    ...     for found in near(memory, "note:1")]
    [('note:2', 0.75, ('17',), ('21',))]
    """
    check_callable("embed", embed, optional=True)
    least = _checked_threshold(threshold, _THRESHOLD if embed is None else _THRESHOLD_OF_VECTORS)
    most = whole(limit, -1, least=0)
    if most < 0:
        most = _LIMIT
        if limit is not None:
            wanted = "a whole number of at least 0"
            warn_ignored("limit", limit, wanted, f"the default, {_LIMIT},")
    entry = memory.entry(key)
    if entry is None or not most:
        return []
    others: dict[str, Entry] = {
        match.key: match for match in memory.recall(entry.line, limit=_CANDIDATES + 1)
    }
    if embed is not None:
        for recent in memory.get_recent(_CANDIDATES + 1):
            if len(others) <= _CANDIDATES:
                others.setdefault(recent.key, recent)
    others.pop(entry.key, None)
    cosines = None if embed is None else _cosines(entry, others.values(), embed)
    found = []
    for other in others.values():
        similarity, here, there = _compared(entry, other)
        if cosines is not None:
            similarity = cosines.get(other.key, 0.0)
        if similarity >= least:
            found.append(Near(memory.entry(other.key) or other, similarity, here, there))
    found.sort(key=lambda hit: -hit.similarity)
    return found[:most]


def _checked_threshold(value: object, default: float) -> float:
    number = in_unit_interval(value)
    if number is None and value is not None:
        warn_ignored("threshold", value, "a number in [0, 1]", f"the default, {default},")
    return default if number is None else number


def _cosines(
    entry: Entry,
    others: Iterable[Entry],
    embed: Callable[[list[str]], Iterable[Iterable[float]]],
) -> dict[str, float]:
    index = EmbeddingIndex(embed, minimum=0)
    for other in others:
        index.add(other)
    return dict(index.search(entry.line))


def _compared(one: Entry, other: Entry) -> tuple[float, tuple[str, ...], tuple[str, ...]]:
    """The similarity of two entries, the words of the first only and of the second only."""
    mine, theirs = ("\n".join(strings_in(entry.data)) for entry in (one, other))
    strange = is_spelt_strangely(mine) or is_spelt_strangely(theirs)
    here, there = _said(mine, strange), _said(theirs, strange)
    shared = _similarity(here, there)
    if min(_sum(here), _sum(there)) < _ENOUGH:
        shared = _similarity(
            _said(f"{one.key}\n{mine}", strange), _said(f"{other.key}\n{theirs}", strange)
        )
    return shared, _only(here, there), _only(there, here)


class _Word(NamedTuple):
    shown: str
    points: float
    negates: bool


def _said(text: str, strange: bool) -> dict[str, _Word]:
    """The words of a text that count, by a form that is equal for equal words."""
    said: dict[str, _Word] = {}
    for token in Text(text, strange=strange).tokens:
        if token.kind != "i" and (token.points or token.negates or is_predicate(token)):
            points = token.points
            if not points and not token.negates:
                points = 0.5 if len(token.shown) <= 3 else 1.0
            said.setdefault(_same(token), _Word(token.shown, points, token.negates))
    return said


def _same(token: Token) -> str:
    """The form that is equal for equal tokens: the stem, or a number in one spelling."""
    if token.values:
        parts = min((len(value), value) for value in token.values)[1]  # without separators
        return "#" + " ".join(parts)
    return token.stem


def _sum(said: dict[str, _Word]) -> float:
    return sum(word.points for word in said.values())


def _similarity(here: dict[str, _Word], there: dict[str, _Word]) -> float:
    smaller = min(_sum(here), _sum(there))
    shared = sum(
        min(word.points, there[same].points) for same, word in here.items() if same in there
    )
    return min(1.0, round(shared / smaller, 6)) if smaller else 0.0


def _only(here: dict[str, _Word], there: dict[str, _Word]) -> tuple[str, ...]:
    """The words of the first that the second lacks; pairs of letters are joined again."""
    found: list[str] = []
    joins = False
    for same, word in here.items():
        if same in there:
            joins = False
            continue
        shown = word.shown
        unspaced = len(shown) >= 2 and shown[0] >= "\u0e00" and not shown.isdecimal()
        if joins and unspaced and found[-1].endswith(shown[0]):
            found[-1] += shown[1:]
        else:
            found.append(shown)
        joins = unspaced
    return tuple(found)
