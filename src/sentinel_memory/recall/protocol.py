"""The protocol of an index, and the check of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from .._basics.checks import brief
from .._basics.numbers import in_unit_interval
from ..entry import Entry

__all__ = ["RecallIndex", "checked_answer", "checked_relevance"]


class RecallIndex(Protocol):
    """An index decides which entries answer a question: any object with these three methods.

    A memory calls them under its lock, so they must not call the memory; one index serves one
    memory. A key is discarded before an entry is added under it again.

    One more method is optional. ``prepare(query)`` is called before each search, before any lock
    is taken and by several threads at once: slow work belongs here, such as asking an embedder.
    Entries may come and go between it and the search. An exception of it reaches the caller. An
    index whose ``add`` never raises may have a true attribute ``refuses_nothing``: then it is given
    the entries of a loaded document with the first question, and opening a file takes less time.
    """

    def add(self, entry: Entry, /) -> None:
        """Make ``entry`` findable.

        An index that raises refuses the entry: the call of the memory fails, and changes nothing.
        If it was to replace an entry, the memory adds the former entry again, at once and, if
        refused, before each search.
        """

    def discard(self, key: str, /) -> None:
        """Forget the entry of that key, if there is one; this must not raise.

        It must also work after an ``add`` of the key that was refused or interrupted (Ctrl-C).
        """

    def search(self, query: str, /) -> Mapping[str, float]:
        """The relevance of each entry that is found, by key: above 0 and at most 1."""


def checked_answer(answer: object, index: str) -> Mapping[str, object]:
    """The answer of the index of that name to a question, checked.

    Raises ``TypeError`` if it is not a mapping.
    """
    if not isinstance(answer, Mapping):
        raise TypeError(
            f"{index}.search must return a mapping from key to relevance,"
            f" not {type(answer).__name__}"
        )
    return answer


def checked_relevance(value: object, key: str) -> float:
    """The relevance that an index gave the entry of a key, checked.

    Raises ``ValueError`` if it is not a number in [0, 1].
    """
    if type(value) is float and 0 <= value <= 1:
        return value
    relevance = in_unit_interval(value)
    if relevance is None:
        raise ValueError(
            f"index.search: the relevance of {key!r} must be a number in [0, 1], not {brief(value)}"
        )
    return relevance
