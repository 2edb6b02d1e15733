"""Several questions in one: a question, and other words for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from .._basics.checks import brief
from .protocol import checked_answer, checked_relevance

__all__ = ["best_of", "questions"]

# The factor of a relevance for other questions than the first, from 0 to 1. Raising it lets a guess
# at other words outrank the question itself.
_OTHER_WORDS: Final = 0.7


def questions(query: object) -> tuple[str, ...]:
    """The questions that a caller asks at once: a ``str``, or a sequence of them, as plain strings.

    Raises ``TypeError`` for anything else, and for an empty sequence.

    >>> questions(["Which pets?", "cats dogs"])
    ('Which pets?', 'cats dogs')
    """
    if isinstance(query, str):
        return (str.__str__(query),)
    if isinstance(query, Sequence) and not isinstance(query, bytes | bytearray | memoryview):
        given = tuple(query)
        if given and all(isinstance(text, str) for text in given):
            return tuple(str.__str__(text) for text in given)
    raise TypeError(f"query must be a str, or a sequence of at least one str, not {brief(query)}")


def best_of(answers: Iterable[object]) -> Mapping[str, object]:
    """The answers of an index to several questions as one.

    The relevance of an entry is the best of its relevances: in full for the first question, 0.7 of
    it for the others. A single answer is returned as it is.

    >>> best_of([{"a": 0.5}, {"a": 1.0, "b": 0.5}])
    {'a': 0.7, 'b': 0.35}
    """
    checked = [checked_answer(answer, "index") for answer in answers]
    if len(checked) == 1:
        return checked[0]
    best: dict[str, float] = {}
    for number, answer in enumerate(checked):
        for key, value in answer.items():
            relevance = checked_relevance(value, key) * (_OTHER_WORDS if number else 1.0)
            best[key] = max(best.get(key, 0.0), relevance)
    return best
