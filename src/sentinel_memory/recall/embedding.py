"""Finding by meaning: an index over any embedder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from .._basics.checks import check_callable
from .._basics.numbers import in_unit_interval, warn_ignored
from ..entry import Entry
from ._vectors import BATCH, Vectors, batch_size

__all__ = ["EmbeddingIndex"]

# Cosine below which nothing is found, from 0 to 1; raising it finds fewer. The best value depends
# on the model, and 0.2 suits MiniLM.
_MINIMUM: Final = 0.2


class EmbeddingIndex:
    """An index by meaning: relevance is the cosine of two vectors that ``embed`` makes.

    ``embed`` takes a list of texts and returns one vector for each, all of one size: lists, tuples,
    arrays, the rows of a NumPy array. The text of an entry is ``key: data``, as a prompt has it.
    New entries are embedded when the next question comes, at most ``batch`` (512) texts a call,
    then the question alone, by ``embed_query`` if the model wants other texts for questions (a
    prefix, in nomic and e5). The memory does this in ``prepare``, before it takes any lock; other
    threads can use it meanwhile. A vector is kept while its entry lives, in this process: a program
    that wants them after a restart caches inside ``embed``.

    ``minimum``, from 0 to 1 (0.2), is the relevance below which nothing is found. It depends on the
    embedder: 0.2 suits MiniLM, and some models give any two texts 0.7. A ``minimum`` out of its
    range and a ``batch`` below 1 are ignored with a warning.

    A text is skipped if ``embed`` raises for it or returns a vector that is not finite: it is not
    found until it is remembered again, and a ``RuntimeWarning`` names its key. If every text fails,
    the question included, ``prepare`` raises the exception of ``embed``; it raises ``TypeError``
    for results that are not vectors, ``ValueError`` for too few or too many of them or for several
    sizes. Then the texts wait for the next question, and the rest of the memory works.

    A search without ``prepare`` embeds the waiting texts itself. After ``prepare`` it never does:
    an entry that came in between is found by the next question.

    >>> from sentinel_memory import Memory
    >>> def embed(texts):  # how much of sea and of mountains, in place of a model
    ...     return [[t.count("wave") + t.count("surf"), t.count("hik")] for t in texts]
    >>> memory = Memory(index=EmbeddingIndex(embed))
    >>> _ = memory.remember("user:summer", "loves the waves")
    >>> _ = memory.remember("user:autumn", "goes hiking")
    >>> [match.data for match in memory.recall("surfing")]
    ['loves the waves']

    Every question is compared with every entry: at 384 dimensions about 10 ms for 1,000 entries and
    100 ms for 10,000. Each vector takes 3 KiB as 64-bit numbers, or half of it where ``embed``
    returns 32-bit numbers (NumPy, ``array``). That serves a few thousand entries. For more, write
    an index over the package ``usearch``, which compares a few of them::

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
                near = {self.keys[int(hit.key)]: 1 - float(hit.distance) for hit in found}
                return {key: min(1.0, cosine) for key, cosine in near.items() if cosine > 0.2}
    """

    def __init__(
        self,
        embed: Callable[[list[str]], Iterable[Iterable[float]]],
        embed_query: Callable[[list[str]], Iterable[Iterable[float]]] | None = None,
        *,
        minimum: float = _MINIMUM,
        batch: int = BATCH,
    ) -> None:
        check_callable("embed", embed)
        check_callable("embed_query", embed_query, optional=True)
        given = in_unit_interval(minimum)
        if given is None and minimum is not None:
            warn_ignored("minimum", minimum, "a number in [0, 1]", f"the default, {_MINIMUM},")
        self._minimum = _MINIMUM if given is None else given
        self._vectors = Vectors(embed, embed_query, batch_size(batch))

    def add(self, entry: Entry, /) -> None:
        """Make ``entry`` findable; it is embedded when the next question comes."""
        self._vectors.add(entry.key, entry.line)

    def discard(self, key: str, /) -> None:
        """Forget the entry of that key, embedded or not."""
        self._vectors.discard(key)

    def clear(self) -> None:
        """Forget every entry."""
        self._vectors.clear()

    def prepare(self, query: str, /) -> None:
        """Embed new entries and the question, whose vector the next search uses."""
        self._vectors.prepare(query)

    def search(self, query: str, /) -> Mapping[str, float]:
        """The cosine of each entry whose cosine is at least ``minimum`` and above 0."""
        return {
            key: min(1.0, cosine)
            for key, cosine in self._vectors.cosines(query)
            if cosine >= self._minimum and cosine > 0
        }
