"""Finding by meaning: an index over any embedder."""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias

from .._basics.checks import check_callable
from .._basics.numbers import in_unit_interval
from ..entry import Entry

__all__ = ["EmbeddingIndex"]

_MINIMUM: Final = 0.2


def _sum_of_products(first: Iterable[float], second: Iterable[float]) -> float:
    return sum(map(operator.mul, first, second), 0.0)


# From Python 3.12 on there is one written in C.
_Dot: TypeAlias = Callable[[Iterable[float], Iterable[float]], float]
_dot: Final[_Dot] = getattr(math, "sumprod", _sum_of_products)


class EmbeddingIndex:
    """An index by meaning: relevance is the cosine of two vectors that ``embed`` makes.

    ``embed`` takes a list of texts and returns one vector for each, all of one size: lists, tuples,
    arrays, the rows of a NumPy array. The text of an entry is ``key: data``, as a prompt has it.
    New entries are embedded in one batch when the next question comes, then the question alone;
    the memory waits meanwhile. A vector is kept while its entry lives, in this process: a program
    that wants them after a restart caches inside ``embed``.

    ``minimum``, from 0 to 1 (0.2; a number out of this range is ignored), is the relevance below
    which nothing is found. It depends on the embedder: 0.2 suits MiniLM, and some models give any
    two texts 0.7.

    A search raises what ``embed`` raises, ``TypeError`` if it returns no vectors, ``ValueError``
    if they are too few, too many, of several sizes or not finite. What was to be embedded then
    waits for the next search, and the rest of the memory works.

    >>> from sentinel_memory import Memory
    >>> def embed(texts):  # how much of sea and of mountains, in place of a model
    ...     return [[t.count("wave") + t.count("surf"), t.count("hik")] for t in texts]
    >>> memory = Memory(index=EmbeddingIndex(embed))
    >>> _ = memory.remember("user:summer", "loves the waves")
    >>> _ = memory.remember("user:autumn", "goes hiking")
    >>> [match.data for match in memory.recall("surfing")]
    ['loves the waves']

    Every question is compared with every entry: at 384 dimensions about 10 ms for 1,000 entries and
    100 ms for 10,000, and 3 KiB each. That serves a few thousand. For more, an index over the
    package ``usearch``, which looks at a few of them::

        from usearch.index import Index

        class VectorIndex:
            def __init__(self, embed, dimensions):
                self.embed, self.vectors = embed, Index(ndim=dimensions, metric="cos")
                self.keys, self.numbers, self.last = {}, {}, 0

            def add(self, entry):
                self.last += 1
                self.vectors.add(self.last, self.embed([f"{entry.key}: {entry.data}"])[0])
                self.keys[self.last], self.numbers[entry.key] = entry.key, self.last

            def discard(self, key):
                if (number := self.numbers.pop(key, None)) is not None:
                    self.vectors.remove(number)
                    del self.keys[number]

            def search(self, query):
                found = self.vectors.search(self.embed([query])[0], 100)
                near = {self.keys[int(one.key)]: 1 - float(one.distance) for one in found}
                return {key: min(1.0, cosine) for key, cosine in near.items() if cosine > 0.2}
    """

    def __init__(
        self, embed: Callable[[list[str]], Iterable[Iterable[float]]], *, minimum: float = _MINIMUM
    ) -> None:
        check_callable("embed", embed)
        given = in_unit_interval(minimum)
        self._embed = embed
        self._minimum = _MINIMUM if given is None else given
        self._waiting: dict[str, str] = {}  # texts by key
        self._vectors: dict[str, array[float]] = {}  # of length 1, or all zero

    def add(self, entry: Entry, /) -> None:
        """Make ``entry`` findable; it is embedded when the next question comes."""
        self.discard(entry.key)
        self._waiting[entry.key] = entry.line

    def discard(self, key: str, /) -> None:
        """Forget the entry of that key, embedded or not."""
        self._waiting.pop(key, None)
        self._vectors.pop(key, None)

    def search(self, query: str, /) -> Mapping[str, float]:
        """The cosine of each entry that is at least ``minimum`` and more than 0."""
        if not query.strip():
            return {}
        if self._waiting:
            # All or nothing: a batch that fails stays to be embedded.
            keys, texts = list(self._waiting), list(self._waiting.values())
            self._vectors.update(zip(keys, self._embedded(texts), strict=True))
            self._waiting.clear()
        if not self._vectors:
            return {}
        asked = list(self._embedded([query])[0])
        found = {}
        for key, vector in self._vectors.items():
            cosine = _dot(asked, vector)
            if cosine >= self._minimum and cosine > 0:
                found[key] = min(1.0, cosine)
        return found

    def _embedded(self, texts: list[str]) -> list[array[float]]:
        given = self._embed(texts)
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise TypeError(f"embed must return a vector for each text, not {type(given).__name__}")
        vectors = [_unit(vector) for vector in given]
        if len(vectors) != len(texts):
            raise ValueError(f"embed returned {len(vectors)} vectors for {len(texts)} texts")
        sizes = sorted({len(vector) for vector in [*vectors, *self._any_vector()]})
        if len(sizes) > 1:
            raise ValueError(f"embed must return vectors of one size, not of {sizes}")
        return vectors

    def _any_vector(self) -> list[array[float]]:
        return list(islice(self._vectors.values(), 1))


def _unit(given: Any) -> array[float]:
    """A vector of length 1 in the direction of ``given``; zeros stay zeros."""
    if isinstance(given, str | bytes | bytearray | Mapping):
        raise TypeError(f"embed must return vectors of numbers, not of {type(given).__name__}")
    try:
        vector = array("d", given)
    except TypeError as error:
        raise TypeError(f"embed must return vectors of numbers: {error}") from error
    except OverflowError as error:
        raise ValueError("embed returned a number that no float can hold") from error
    if not vector:
        raise ValueError("embed returned a vector without numbers")
    if not all(map(math.isfinite, vector)):
        raise ValueError("embed returned a number that is not finite")
    largest = max(map(abs, vector))
    if not largest:
        return vector
    scaled = [number / largest for number in vector]  # so that no square overflows
    length = math.sqrt(_dot(scaled, scaled))
    return array("d", [number / length for number in scaled])
