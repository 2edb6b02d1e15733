"""The default index: entries that have the words of a question."""

from __future__ import annotations

from collections.abc import Mapping

from .._basics.words import query_words, stored_words, strings_in
from ..entry import Entry

__all__ = ["WordIndex", "entry_text"]


class _Posting:
    """The serial numbers of the entries that have one word, and how many of them are gone."""

    __slots__ = ("gone", "serials", "word")

    def __init__(self, word: str) -> None:
        self.word = word
        self.serials: list[int] = []
        self.gone = 0


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
        self._last_serial = 0
        self._serials: dict[str, int] = {}
        self._entries: dict[int, tuple[str, tuple[_Posting, ...]]] = {}  # key and its words
        self._postings: dict[str, _Posting] = {}

    def add(self, entry: Entry, /) -> None:
        """Make ``entry`` findable by its words."""
        self.discard(entry.key)
        self._last_serial += 1
        serial = self._last_serial
        postings = []
        for word in stored_words(entry_text(entry)):
            posting = self._postings.get(word)
            if posting is None:
                posting = self._postings[word] = _Posting(word)
            posting.serials.append(serial)
            postings.append(posting)
        self._entries[serial] = (entry.key, tuple(postings))
        self._serials[entry.key] = serial

    def discard(self, key: str, /) -> None:
        """Forget the words of the entry of that key."""
        serial = self._serials.pop(key, None)
        if serial is None:
            return
        _, postings = self._entries.pop(serial)
        for posting in postings:
            # A list is the smallest posting. What is gone from it is a number, not a text, and
            # is left until half of it is; the last entry takes the word along.
            posting.gone += 1
            if posting.gone == len(posting.serials):
                del self._postings[posting.word]
            elif posting.gone > len(posting.serials) // 2:
                posting.serials = [one for one in posting.serials if one in self._entries]
                posting.gone = 0

    def search(self, query: str, /) -> Mapping[str, float]:
        """The share of the distinct words of ``query`` in each entry that has one of them."""
        words = query_words(query)
        if not words:
            return {}
        hits: dict[int, int] = {}
        for word in words:
            posting = self._postings.get(word)
            for serial in () if posting is None else posting.serials:
                hits[serial] = hits.get(serial, 0) + 1
        shares = [count / len(words) for count in range(len(words) + 1)]
        entries = self._entries
        return {
            entries[serial][0]: shares[count] for serial, count in hits.items() if serial in entries
        }


def entry_text(entry: Entry) -> str:
    """Everything in an entry that has words: its key, strings, numbers and mapping keys."""
    return "\n".join((entry.key, *strings_in(entry.data)))
