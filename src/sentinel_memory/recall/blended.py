"""Several indexes as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from .._basics.checks import brief, check_methods
from .._basics.numbers import finite_real
from ..entry import Entry
from .protocol import RecallIndex, checked_answer, checked_relevance

__all__ = ["BlendedIndex"]

_LARGEST_WEIGHT: Final = 1e300  # so that their sum is finite


class BlendedIndex:
    """Several indexes as one: relevance is the average of theirs, by weight.

    ``parts`` are pairs of a ``RecallIndex`` and a weight from 0 up; only the proportions of the
    weights matter. An index that does not find an entry counts as 0; an index of weight 0 follows
    the entries and is not searched. Exceptions of the indexes reach the caller; if one refuses an
    entry, the others forget it again.

    >>> from sentinel_memory import EmbeddingIndex, Memory, WordIndex
    >>> def embed(texts):  # in place of a model
    ...     return [[t.count("money") + t.count("refund"), 0] for t in texts]
    >>> index = BlendedIndex([(WordIndex(), 3), (EmbeddingIndex(embed, minimum=0.9), 1)])
    >>> memory = Memory(index=index)
    >>> _ = memory.remember("order:42", "refund")
    >>> memory.recall("money")[0].relevance
    0.25

    Raises ``TypeError`` for a part that is not such a pair, ``ValueError`` for a weight that is not
    a finite number from 0 up, and if no part has a weight above 0.
    """

    def __init__(self, parts: Iterable[tuple[RecallIndex, float]]) -> None:
        self._parts: list[tuple[RecallIndex, float]] = []
        if isinstance(parts, str) or not isinstance(parts, Iterable):
            raise TypeError(f"parts must be pairs of an index and a weight, not {brief(parts)}")
        self._total = 0.0  # added in the order of a search, so that all 1 is 1
        for part in parts:
            if not isinstance(part, Sequence) or isinstance(part, str) or len(part) != 2:
                raise TypeError(f"parts must be pairs of an index and a weight, not {brief(part)}")
            index, given = part
            check_methods("index", index, ("add", "discard", "search"))
            weight = finite_real(given)
            if weight is None or not 0 <= weight <= _LARGEST_WEIGHT:
                raise ValueError(f"a weight must be a finite number from 0 up, not {brief(given)}")
            self._parts.append((index, float(weight)))
            self._total += float(weight)
        if not self._total:
            raise ValueError("parts must have at least one index of a weight above 0")
        self._keys: set[str] = set()  # for parts that cannot be cleared at once

    def add(self, entry: Entry, /) -> None:
        """Add ``entry`` to every index, or to none."""
        tried = []
        self._keys.add(entry.key)
        try:
            for index, _ in self._parts:
                tried.append(index)
                index.add(entry)
        except BaseException:
            for index in tried:
                index.discard(entry.key)
            self._keys.discard(entry.key)
            raise

    def discard(self, key: str, /) -> None:
        """Forget the entry of that key in every index."""
        for index, _ in self._parts:
            index.discard(key)
        self._keys.discard(key)

    def clear(self) -> None:
        """Forget every entry in every index."""
        for index, _ in self._parts:
            clear = getattr(index, "clear", None)
            if callable(clear):
                clear()
            else:
                for key in self._keys:
                    index.discard(key)
        self._keys.clear()

    def prepare(self, query: str, /) -> None:
        """Call ``prepare`` of every index that has one and a weight above 0."""
        for index, weight in self._parts:
            prepare = getattr(index, "prepare", None) if weight else None
            if callable(prepare):
                prepare(query)

    def search(self, query: str, /) -> Mapping[str, float]:
        """The average relevance of each entry that any of the indexes finds."""
        sums: dict[str, float] = {}
        for index, weight in self._parts:
            if not weight:
                continue
            answer = checked_answer(index.search(query), type(index).__name__)
            for key, value in answer.items():
                relevance = checked_relevance(value, key)
                sums[key] = sums.get(key, 0.0) + weight * relevance
        return {key: min(1.0, total / self._total) for key, total in sums.items()}
