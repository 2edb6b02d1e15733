"""The default index: it finds entries that have words of the question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from .._basics.postings import Posting, Postings
from .._basics.words import query_weights, stored_words, strings_in
from ..entry import Entry

__all__ = ["WordIndex", "entry_text"]


class _Member:
    """One entry: its key, empty once it is removed, and the posting lists of its words."""

    __slots__ = ("key", "lists")

    def __init__(self, key: str, lists: tuple[_List, ...]) -> None:
        self.key = key
        self.lists = lists


_List: TypeAlias = Posting[str, _Member]


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

    refuses_nothing = True  # so a memory may fill it with the first question

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget every entry."""
        # An exception (Ctrl-C) can leave the lists half made, never the members; then the lists are
        # made again from the members, before they are used.
        self._members: dict[str, _Member] = {}
        self._postings: Postings[str, _Member] = Postings()
        self._half_made = False

    def add(self, entry: Entry, /) -> None:
        """Make ``entry`` findable by its words."""
        self.discard(entry.key)
        words = stored_words(entry_text(entry))
        self._half_made = True
        member = _Member(entry.key, self._postings.get_or_make(words))
        self._members[entry.key] = member
        for posting in member.lists:
            posting.members.append(member)
        self._half_made = False

    def discard(self, key: str, /) -> None:
        """Forget the words of the entry of that key."""
        if self._half_made:
            self._repair()
        if key not in self._members:
            return
        self._half_made = True
        member = self._members.pop(key)
        member.key = ""
        self._postings.note_removed(member.lists)
        # Posting lists may still have the dead member, which must not keep the words alive.
        member.lists = ()
        self._half_made = False

    def search(self, query: str, /) -> Mapping[str, float]:
        """The share of the distinct words of ``query`` in each entry that has one of them."""
        if self._half_made:
            self._repair()
        weights = query_weights(query)
        total = sum(weights.values())
        hits: dict[_Member, int] = {}
        for word, weight in weights.items():
            if word in self._postings:
                for member in self._postings[word].members:
                    hits[member] = hits.get(member, 0) + weight
        return {member.key: weight / total for member, weight in hits.items() if member.key}

    def _repair(self) -> None:
        """Make the lists again from the members."""
        postings: Postings[str, _Member] = Postings()
        for member in self._members.values():
            lists = postings.get_or_make([posting.label for posting in member.lists])
            for posting in lists:
                posting.members.append(member)
            member.lists = lists
        self._postings = postings
        self._half_made = False


def entry_text(entry: Entry) -> str:
    """The text of an entry whose words are found: its key, strings, numbers and mapping keys."""
    return "\n".join((entry.key, *strings_in(entry.data)))
