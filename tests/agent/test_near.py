"""Entries that say nearly the same, and what differs."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_memory import IgnoredValueWarning, Memory
from sentinel_memory.agent import near


def of_two(here: Any, there: Any, *, keys: tuple[str, str] = ("a:1", "b:1"), **options: Any) -> Any:
    memory = Memory()
    memory.remember(keys[0], here)
    memory.remember(keys[1], there)
    return [(one.similarity, one.here, one.there) for one in near(memory, keys[0], **options)]


@pytest.mark.parametrize(
    ("here", "there", "similarity", "only_here", "only_there"),
    [
        ("the build needs Java 17", "the build needs Java 21", 0.75, ("17",), ("21",)),
        ("prefers dark mode", "prefers dark mode in every editor", 1, (), ("every", "editor")),
        ("tests fail when the cache is cold", "when the cache is cold, tests fail", 1, (), ()),
        ("we deploy on Fridays", "we do not deploy on Fridays", 1, (), ("not",)),
        ("twelve apples a day", "12 apples a day", 1, (), ()),
        ("the rent is 1,200 euros", "the rent is 1200 euros", 1, (), ()),
        ("Žofie hraje na housle", "zofie HRAJE na housle", 1, (), ()),
        ({"seats": [2, "by the window"]}, {"seats": [2, "by the window"]}, 1, (), ()),
        (
            "東京本社の会議室は三階で予約制",
            "東京本社の会議室は三階で有料",
            0.93,
            ("予約制",),
            ("有料",),
        ),
    ],
)
def test_similarity_is_the_share_of_the_smaller_text_and_the_difference_is_reported(
    here: Any, there: Any, similarity: float, only_here: Any, only_there: Any
) -> None:
    [found] = of_two(here, there)
    assert found == (pytest.approx(similarity, abs=5e-3), only_here, only_there)
    assert (found[0] == 1) == (similarity == 1)


@pytest.mark.parametrize(
    ("here", "there", "similarity", "keys"),
    [
        ("order 42 was refunded", "order 43 was refunded", 0.666667, ("a:1", "b:1")),
        ("lives in Brno", "lives in Plzeň", 0.5, ("user:city", "user:town")),
        ("tea", "tea", 1 / 3, ("user:likes", "order:drink")),
    ],
)
def test_facts_of_the_same_form_are_not_near(
    here: str, there: str, similarity: float, keys: tuple[str, str]
) -> None:
    assert of_two(here, there, keys=keys) == []
    [(found, _, _)] = of_two(here, there, keys=keys, threshold=0)
    assert found == pytest.approx(similarity, abs=1e-6)


def test_the_most_similar_come_first_and_only_live_ones() -> None:
    memory = Memory()
    memory.remember("a:1", "the night train to Split leaves at 21:10")
    assert near(memory, "a:1") == []
    memory.remember("a:2", "the night train to Split leaves at 22:10 now")
    memory.remember("a:3", "the night train to Split leaves at 21:10")
    memory.remember("a:4", "the pool closes early")
    assert [one.entry.key for one in near(memory, "a:1")] == ["a:3", "a:2"]
    assert [one.entry.key for one in near(memory, "a:1", limit=1)] == ["a:3"]
    assert near(memory, "a:1", limit=0) == []
    assert near(memory, "missing") == []
    memory.forget("a:3")
    assert [one.entry for one in near(memory, "a:1")] == [memory.entry("a:2")]


@pytest.mark.parametrize("wrong", [1.5, -0.1, float("nan"), "0.5", True])
def test_options_out_of_range_are_ignored_with_a_warning(wrong: Any) -> None:
    with pytest.warns(IgnoredValueWarning, match="threshold"):
        found = of_two("order 42 was refunded", "order 43 was refunded", threshold=wrong)
    assert found == []
    with pytest.warns(IgnoredValueWarning, match="limit"):
        assert len(of_two("green tea at noon", "green tea at noon", limit=-1)) == 1


def test_with_vectors_similarity_is_the_cosine_of_the_lines() -> None:
    calls: list[list[str]] = []

    def embed(texts: list[str]) -> list[list[float]]:
        calls.append(texts)
        return [[float("boat" in text or "ship" in text), 0.5] for text in texts]

    memory = Memory()
    memory.remember("a:1", "my boat leaks")
    memory.remember("a:2", "the ship takes in water")
    memory.remember("a:3", "likes tea")
    [found] = near(memory, "a:1", embed=embed)
    assert found.entry.key == "a:2"
    assert found.similarity == pytest.approx(1.0)
    assert found.here == ("boat", "leaks")
    assert sorted(map(len, calls)) == [1, 2]
    assert [one.entry.key for one in near(memory, "a:1", embed=embed, threshold=0)] == [
        "a:2",
        "a:3",
    ]
    wrong: Any = "model"
    with pytest.raises(TypeError, match="embed"):
        near(memory, "a:1", embed=wrong)
