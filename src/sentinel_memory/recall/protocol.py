"""What an index is, and the check of what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from .._basics.checks import brief
from .._basics.numbers import in_unit_interval
from ..entry import Entry

__all__ = ["RecallIndex", "checked_answer", "checked_relevance"]


class RecallIndex(Protocol):
    """What decides which entries answer a question: any object with these three methods.

    A memory calls them under its lock, so they must not call the memory; one index serves one
    memory. A key is discarded before an entry is added under it again.
    """

    def add(self, entry: Entry, /) -> None:
        """Make ``entry`` findable. If this raises, the memory is as if nothing had been asked.

        What was discarded to make room for it is then added again, as soon as that succeeds.
        """

    def discard(self, key: str, /) -> None:
        """Forget the entry of that key, if there is one; this must not raise."""

    def search(self, query: str, /) -> Mapping[str, float]:
        """The relevance of each entry that has any, by key: above 0 and at most 1."""


def checked_answer(answer: object, index: str) -> Mapping[str, object]:
    """What an index, named ``index``, said of a question, or a ``TypeError``."""
    if not isinstance(answer, Mapping):
        raise TypeError(
            f"{index}.search must return a mapping from key to relevance,"
            f" not {type(answer).__name__}"
        )
    return answer


def checked_relevance(value: object, key: str) -> float:
    """What an index said of one entry, or a ``ValueError``."""
    if type(value) is float and 0 <= value <= 1:
        return value
    relevance = in_unit_interval(value)
    if relevance is None:
        raise ValueError(
            f"index.search: the relevance of {key!r} must be a number in [0, 1], not {brief(value)}"
        )
    return relevance
