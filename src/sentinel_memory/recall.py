"""Finding entries by words: what an index is, the default one, and how matches are scored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ._numbers import in_unit_interval
from ._words import query_words, stored_words, strings_in
from .entry import Entry

__all__ = ["RecallIndex", "WordIndex", "checked_relevance", "entry_text", "score"]


class RecallIndex(Protocol):
    """What decides which entries answer a question: any object with these three methods.

    A memory calls them under its lock; one index serves one memory. A key is discarded before an
    entry is added under it again.
    """

    def add(self, entry: Entry, /) -> None:
        """Make ``entry`` findable. If this raises, the memory is as if nothing had been asked."""

    def discard(self, key: str, /) -> None:
        """Forget the entry of that key, if there is one."""

    def search(self, query: str, /) -> Mapping[str, float]:
        """The relevance of each entry that has any, by key: above 0 and at most 1."""


class _Posting(set[str]):
    """The keys of the entries that have one word."""

    __slots__ = ("word",)
    word: str


class WordIndex:
    """The default index: relevance is the share of the question's distinct words in an entry.

    The words of an entry are those of its key and of every string, number and mapping key in its
    data. They are split once, when the entry is added; a question looks only at the entries that
    share a word with it.

    >>> from sentinel_memory import Memory
    >>> memory = Memory(index=WordIndex())
    >>> _ = memory.remember("user:city", "Prague, near the river")
    >>> memory.recall("Which city? Which RIVER?")[0].relevance == 2 / 3
    True
    """

    def __init__(self) -> None:
        self._postings: dict[str, _Posting] = {}
        self._by_key: dict[str, tuple[_Posting, ...]] = {}

    def add(self, entry: Entry, /) -> None:
        """Make ``entry`` findable by its words."""
        self.discard(entry.key)
        postings = []
        for word in stored_words(entry_text(entry)):
            posting = self._postings.get(word)
            if posting is None:
                posting = self._postings[word] = _Posting()
                posting.word = word
            posting.add(entry.key)
            postings.append(posting)
        self._by_key[entry.key] = tuple(postings)

    def discard(self, key: str, /) -> None:
        """Forget the words of the entry of that key."""
        for posting in self._by_key.pop(key, ()):
            posting.discard(key)
            if not posting:
                del self._postings[posting.word]

    def search(self, query: str, /) -> Mapping[str, float]:
        """The share of the distinct words of ``query`` in each entry that has one of them."""
        words = query_words(query)
        hits: dict[str, int] = {}
        for word in words:
            for key in self._postings.get(word, ()):
                hits[key] = hits.get(key, 0) + 1
        return {key: count / len(words) for key, count in hits.items()}


def entry_text(entry: Entry) -> str:
    """Everything in an entry that has words: its key, strings, numbers and mapping keys."""
    return "\n".join((entry.key, *strings_in(entry.data)))


def checked_relevance(value: object, key: str) -> float:
    """What an index said of one entry, or a ``ValueError``."""
    relevance = in_unit_interval(value)
    if relevance is None:
        raise ValueError(
            f"index.search: the relevance of {key!r} must be a number in [0, 1], not {value!r}"
        )
    return relevance


def score(relevance: float, importance: float, freshness: float) -> float:
    """What matches are ordered by.

    >>> score(1.0, importance=0.9, freshness=1.0)
    1.0
    """
    return relevance * (0.5 + importance / 2) + 0.05 * freshness
