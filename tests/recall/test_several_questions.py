"""Several questions in one: a question, and other words for it."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_memory.recall.several import best_of, questions


class Loud(str):
    """A string that says something else than it has."""

    __slots__ = ()

    def __str__(self) -> str:
        return "LOUD"


def test_questions_are_one_string_or_a_sequence_of_them() -> None:
    """As plain strings, whatever a subclass says of itself."""
    assert questions("tea") == ("tea",)
    assert questions(("tea", "milk")) == ("tea", "milk")
    given = questions([Loud("tea"), Loud("milk")])
    assert given == ("tea", "milk")
    assert {type(one) for one in (*given, *questions(Loud("tea")))} == {str}


@pytest.mark.parametrize(
    "query", [None, 5, b"tea", [], (), [None], ["tea", b"x"], {"tea"}, {"tea": 1}, iter(["tea"])]
)
def test_anything_else_is_a_type_error(query: Any) -> None:
    with pytest.raises(TypeError, match="query must be a str, or a sequence of at least one str"):
        questions(query)


def test_relevance_is_the_best_and_other_words_count_less() -> None:
    assert best_of([{"a": 0.5, "b": 0.9}, {"a": 1.0, "c": 0.5}, {"b": 1.0, "c": 1.0}]) == {
        "a": 0.7,
        "b": 0.9,
        "c": 0.7,
    }
    assert best_of([{"a": 2}]) == {"a": 2}  # checked where one answer always was


@pytest.mark.parametrize("wrong", [2, -0.1, "1", None, float("nan")])
def test_each_answer_is_checked(wrong: Any) -> None:
    with pytest.raises(ValueError, match="must be a number in"):
        best_of([{"a": 0.5}, {"a": wrong}])
    with pytest.raises(TypeError, match="must return a mapping"):
        best_of([{"a": 0.5}, ["a"]])
