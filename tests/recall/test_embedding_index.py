"""Finding by meaning with any embedder, and several indexes as one."""

from __future__ import annotations

import math
import operator
import sys
import textwrap
import types
from array import array
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import pytest

import sentinel_memory.recall.embedding as embedding
from sentinel_memory import BlendedIndex, EmbeddingIndex, Entry, Memory, RecallIndex, WordIndex
from sentinel_memory.entry import new_entry
from support.clocks import FakeClock

VECTORS: dict[str, Any] = {
    "a: sea": [3, 4],
    "b: hills": [-4, 3],
    "c: shore": [4, 3],
    "waves": [3, 4],
    "nothing": [0, 0],
}


def entry(key: str, data: Any) -> Entry:
    return new_entry(key, data, 0.5, created_ms=0, updated_ms=0, expires_ms=None)


class Embedder:
    """Looks vectors up, in any container, and keeps what it was asked."""

    def __init__(self, vectors: Mapping[str, Any] = VECTORS, kind: Any = list) -> None:
        self.vectors = dict(vectors)
        self.kind = kind
        self.asked: list[list[str]] = []

    def __call__(self, texts: list[str]) -> Any:
        self.asked.append(list(texts))
        return self.kind([self.vectors[text] for text in texts])


def filled(embed: Callable[[list[str]], Any], **options: Any) -> EmbeddingIndex:
    index = EmbeddingIndex(embed, **options)
    for key, data in (("a", "sea"), ("b", "hills"), ("c", "shore")):
        index.add(entry(key, data))
    return index


# Embeddings


def test_relevance_is_the_cosine_and_less_than_the_minimum_is_not_found() -> None:
    """Of vectors of any length."""
    assert filled(Embedder()).search("waves") == pytest.approx({"a": 1.0, "c": 0.96})
    assert filled(Embedder(), minimum=0.97).search("waves") == {"a": 1.0}
    assert filled(Embedder(), minimum=0).search("waves") == pytest.approx({"a": 1.0, "c": 0.96})
    assert filled(Embedder({**VECTORS, "waves": [0.006, 0.008]})).search("waves")["a"] == 1.0


@pytest.mark.parametrize("minimum", [None, "0.9", True, -1, 1.5, math.nan, math.inf])
def test_a_minimum_that_is_no_number_from_0_to_1_is_ignored(minimum: Any) -> None:
    """As everywhere; the default is 0.2."""
    vectors = {**VECTORS, "b: hills": [0.21, math.sqrt(1 - 0.21**2)], "waves": [1, 0]}
    vectors["c: shore"] = [0.19, math.sqrt(1 - 0.19**2)]
    assert set(filled(Embedder(vectors), minimum=minimum).search("waves")) == {"a", "b"}


def test_new_texts_are_embedded_in_one_batch_at_the_next_search_and_only_once() -> None:
    embed = Embedder()
    index = filled(embed)
    assert embed.asked == []
    index.search("waves")
    assert embed.asked == [["a: sea", "b: hills", "c: shore"], ["waves"]]
    index.search("waves")
    assert embed.asked[2:] == [["waves"]]
    embed.vectors['d: {"x":1}'] = [1, 0]
    index.add(entry("d", {"x": 1}))
    index.discard("d")
    index.add(entry("d", {"x": 1}))
    index.search("waves")
    assert embed.asked[3:] == [['d: {"x":1}'], ["waves"]]


def test_an_index_without_entries_embeds_nothing() -> None:
    embed = Embedder()
    index = EmbeddingIndex(embed)
    assert index.search("waves") == {}
    index.add(entry("a", "sea"))
    index.discard("a")
    index.discard("never")
    assert index.search("waves") == {}
    assert embed.asked == []


@pytest.mark.parametrize("query", ["", " \n"])
def test_an_empty_question_finds_nothing_and_embeds_nothing(query: str) -> None:
    embed = Embedder()
    assert filled(embed).search(query) == {}
    assert embed.asked == []


def test_what_is_overwritten_or_discarded_is_not_found_and_nothing_of_it_stays() -> None:
    index = filled(Embedder())
    index.search("waves")
    index.discard("c")
    index.add(entry("a", "sea"))
    assert set(index.search("waves")) == {"a"}
    index.discard("a")
    index.discard("b")
    assert (index._waiting, index._vectors) == ({}, {})


class Rows:
    """What an array package gives: rows that can be iterated, with numbers of its own."""

    def __init__(self, rows: list[list[float]]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter([array("f", row) for row in self.rows])


@pytest.mark.parametrize(
    "kind",
    [
        tuple,
        iter,
        Rows,
        lambda rows: [tuple(row) for row in rows],
        lambda rows: [array("f", row) for row in rows],
        lambda rows: [iter(row) for row in rows],
        lambda rows: [[Fraction(number) for number in row] for row in rows],
    ],
)
def test_vectors_may_come_in_any_container(kind: Any) -> None:
    assert filled(Embedder(kind=kind)).search("waves") == pytest.approx({"a": 1.0, "c": 0.96})


def test_a_vector_of_zeros_is_like_nothing() -> None:
    index = filled(Embedder({**VECTORS, "a: sea": [0, 0]}), minimum=0)
    assert set(index.search("waves")) == {"c"}
    assert index.search("nothing") == {}


@pytest.mark.parametrize("factor", [1e-310, 1e-200, 1e200, 4e307])
def test_very_long_and_very_short_vectors_have_a_direction(factor: float) -> None:
    vectors = {**VECTORS, "a: sea": [3 * factor, 4 * factor]}
    assert filled(Embedder(vectors)).search("waves")["a"] == pytest.approx(1.0)


@pytest.mark.parametrize("vector", [[1, 1, 1], [1, 1, 2], [1, 4, 4], [1, 5, 7]])
def test_relevance_never_exceeds_1(vector: list[int]) -> None:
    """These are so rounded that the cosine with themselves does."""
    unit = embedding._unit(vector)
    assert embedding._dot(unit, unit) > 1
    index = EmbeddingIndex(lambda texts: [vector for _ in texts])
    index.add(entry("a", "x"))
    assert index.search("y") == {"a": 1.0}


BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda texts: None, TypeError, "a vector for each text, not NoneType"),
    (lambda texts: 5, TypeError, "a vector for each text, not int"),
    (lambda texts: "text", TypeError, "a vector for each text, not str"),
    (lambda texts: {"a": [1, 0]}, TypeError, "a vector for each text, not dict"),
    (lambda texts: [0.1, 0.2, 0.3], TypeError, "vectors of numbers: 'float' object"),
    (lambda texts: ["ab" for _ in texts], TypeError, "vectors of numbers, not of str"),
    (lambda texts: [b"abcdefgh" for _ in texts], TypeError, "vectors of numbers, not of bytes"),
    (lambda texts: [["1", "0"] for _ in texts], TypeError, "vectors of numbers: must be real"),
    (lambda texts: [[1, None] for _ in texts], TypeError, "vectors of numbers: must be real"),
    (lambda texts: [], ValueError, "returned 0 vectors for 3 texts"),
    (lambda texts: [[1, 0]], ValueError, "returned 1 vectors for 3 texts"),
    (lambda texts: [[1, 0]] * 4, ValueError, "returned 4 vectors for 3 texts"),
    (lambda texts: [[1, 0], [1, 0, 0], [1]], ValueError, r"of one size, not of \[1, 2, 3\]"),
    (lambda texts: [[] for _ in texts], ValueError, "a vector without numbers"),
    (lambda texts: [[1, math.nan] for _ in texts], ValueError, "not finite"),
    (lambda texts: [[1, -math.inf] for _ in texts], ValueError, "not finite"),
    (lambda texts: [[1, 10**400] for _ in texts], ValueError, "no float can hold"),
]


@pytest.mark.parametrize(("bad", "error", "message"), BAD)
def test_what_are_no_vectors_is_a_clear_error_and_the_next_search_works(
    bad: Any, error: type[Exception], message: str
) -> None:
    good = Embedder()
    now: list[Any] = [bad]
    index = filled(lambda texts: now[0](texts))
    for _ in range(2):
        with pytest.raises(error, match=message):
            index.search("waves")
    now[0] = good
    assert set(index.search("waves")) == {"a", "c"}
    assert good.asked[0] == ["a: sea", "b: hills", "c: shore"]


def test_the_vector_of_the_question_must_have_the_same_size() -> None:
    """So must those that come later, until the index is empty."""
    embed = Embedder({**VECTORS, "waves": [1, 2, 3], "d: x": [1, 2, 3]})
    index = filled(embed)
    with pytest.raises(ValueError, match=r"of one size, not of \[2, 3\]"):
        index.search("waves")
    for key in "abc":
        index.discard(key)
    index.add(entry("d", "x"))
    assert index.search("waves") == pytest.approx({"d": 1.0})


def test_an_embedder_that_raises_leaves_the_memory_usable(clock: FakeClock) -> None:
    """Its own error is raised; remembering, forgetting and asking without words go on."""

    def offline(texts: list[str]) -> Any:
        raise ConnectionError("offline")

    now: list[Any] = [offline]
    memory = Memory(index=EmbeddingIndex(lambda texts: now[0](texts)), clock=clock)
    memory.remember("a", "sea")
    with pytest.raises(ConnectionError, match="offline"):
        memory.recall("waves")
    with pytest.raises(ConnectionError, match="offline"):
        memory.get_context(50, query="waves")
    memory.remember("b", "hills")
    memory.remember("gone", "x")
    assert memory.forget("gone")
    assert memory.get_context(50).text == "a: sea\nb: hills"
    now[0] = Embedder()
    assert [match.key for match in memory.recall("waves")] == ["a"]


def test_a_memory_that_is_loaded_embeds_what_is_new_in_it(clock: FakeClock) -> None:
    """An entry that is the same as before keeps its vector; one that was forgotten loses it."""
    embed = Embedder({**VECTORS, "b: shore": [-4, 3], "c: hills": [-4, 3]})
    memory = Memory(index=EmbeddingIndex(embed), clock=clock)
    memory.remember("b", "hills")
    former = memory.to_state()
    memory.remember("b", "shore")
    memory.remember("c", "hills")
    state = memory.to_state()
    memory.remember("a", "sea")
    memory.recall("waves")
    memory.restore(state)
    assert memory.recall("waves") == []
    assert embed.asked[-1:] == [["waves"]]
    memory.restore(former)
    assert memory.recall("waves") == []
    assert embed.asked[-2:] == [["b: hills"], ["waves"]]


@pytest.mark.parametrize("embed", [None, "model", 5])
def test_an_embedder_that_cannot_be_called_is_a_type_error(embed: Any) -> None:
    with pytest.raises(TypeError, match="embed must be callable"):
        EmbeddingIndex(embed)


def test_where_there_is_no_sum_of_products_in_c_it_is_the_same_to_15_digits() -> None:
    first, second = [0.1 * n for n in range(99)], array("d", [1 / (n + 1) for n in range(99)])
    expected = math.fsum(map(operator.mul, first, second))
    assert embedding._sum_of_products(first, second) == pytest.approx(expected, rel=1e-15)
    assert embedding._dot(first, second) == pytest.approx(expected, rel=1e-15)


class StandIn:
    """As much of ``usearch.index.Index`` as the example uses, by looking at everything."""

    def __init__(self, *, ndim: int, metric: str) -> None:
        assert metric == "cos"
        self.vectors: dict[int, list[float]] = {}

    def add(self, number: int, vector: list[float]) -> None:
        assert number not in self.vectors
        self.vectors[number] = vector

    def remove(self, number: int) -> None:
        del self.vectors[number]

    def search(self, vector: list[float], count: int) -> list[Any]:
        found = [
            types.SimpleNamespace(
                key=number, distance=1 - sum(map(operator.mul, vector, other)) / 25
            )
            for number, other in self.vectors.items()
        ]
        return sorted(found, key=lambda one: one.distance)[:count]


def test_the_larger_index_in_the_docstring_works(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    package = types.ModuleType("usearch.index")
    package.Index = StandIn  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "usearch", types.ModuleType("usearch"))
    monkeypatch.setitem(sys.modules, "usearch.index", package)
    names: dict[str, Any] = {}
    exec(textwrap.dedent((EmbeddingIndex.__doc__ or "").split("::\n\n")[1]), names)
    memory = Memory(index=names["VectorIndex"](Embedder(), 2), clock=clock)
    for key, data in (("a", "sea"), ("b", "hills"), ("c", "shore"), ("a", "sea")):
        memory.remember(key, data)
    assert [match.key for match in memory.recall("waves")] == ["a", "c"]
    memory.forget("a")
    assert [match.key for match in memory.recall("waves")] == ["c"]
    memory.clear()
    assert memory.recall("waves") == []


# Blends


class Stub:
    """Finds what it is told to, holds what it was given, and may refuse."""

    def __init__(self, answer: Any = None, refuse: bool = False) -> None:
        self.answer = {} if answer is None else answer
        self.held: set[str] = set()
        self.refuse = refuse

    def add(self, entry: Entry, /) -> None:
        self.held.add(entry.key)
        if self.refuse:
            raise OSError("full")

    def discard(self, key: str, /) -> None:
        self.held.discard(key)

    def search(self, query: str, /) -> Mapping[str, float]:
        return self.answer


def test_a_blend_is_the_average_by_weight_and_what_is_not_found_counts_as_0() -> None:
    blend = BlendedIndex([(Stub({"a": 1.0, "b": 0.5}), 3), (Stub({"b": 1, "c": 0.2}), 1)])
    assert blend.search("x") == {"a": 0.75, "b": 0.625, "c": 0.05}


def test_only_the_proportions_of_the_weights_matter() -> None:
    for factor in (1e-300, 0.5, Fraction(1, 3), 1e299):
        blend = BlendedIndex([(Stub({"a": 1.0}), 3 * factor), (Stub({"b": 1.0}), 1 * factor)])
        assert blend.search("x") == pytest.approx({"a": 0.75, "b": 0.25}), factor


def test_a_blend_never_exceeds_1() -> None:
    blend = BlendedIndex([(Stub({"a": 1.0}), 0.1) for _ in range(10)])
    assert blend.search("x") == {"a": 1.0}


def test_a_blend_keeps_all_its_indexes_in_step(clock: FakeClock) -> None:
    first, second = Stub(), Stub()
    memory = Memory(limit=2, index=BlendedIndex([(first, 1), (second, 2)]), clock=clock)
    for key in "abc":
        memory.remember(key, key)
    memory.forget("b")
    assert first.held == second.held == {"c"}
    memory.restore(memory.to_state())
    assert first.held == second.held == {"c"}


@pytest.mark.parametrize("place", [0, 1, 2])
def test_if_one_index_refuses_an_entry_the_others_forget_it(place: int, clock: FakeClock) -> None:
    stubs = [Stub(), Stub(), Stub()]
    blend = BlendedIndex([(stub, 1) for stub in stubs])
    memory = Memory(index=blend, clock=clock)
    memory.remember("a", 1)
    stubs[place].refuse = True
    with pytest.raises(OSError, match="full"):
        blend.add(entry("b", 1))
    assert [stub.held for stub in stubs] == [{"a"}] * 3
    with pytest.raises(OSError, match="full"):
        memory.remember("b", 1)
    assert [stub.held for stub in stubs] == [{"a"}] * 3


def test_words_and_meaning_together(clock: FakeClock) -> None:
    """Either finds what the other does not."""
    index = BlendedIndex([(WordIndex(), 1), (EmbeddingIndex(Embedder()), 1)])
    memory = Memory(index=index, clock=clock)
    memory.remember("a", "sea")
    memory.remember("b", "hills")
    assert [(match.key, match.relevance) for match in memory.recall("waves")] == [("a", 0.5)]


def test_what_one_index_raises_is_raised_and_the_next_search_works() -> None:
    def offline(texts: list[str]) -> Any:
        raise ConnectionError("offline")

    now: list[Any] = [offline]
    blend = BlendedIndex([(WordIndex(), 1), (EmbeddingIndex(lambda texts: now[0](texts)), 1)])
    blend.add(entry("a", "sea"))
    with pytest.raises(ConnectionError, match="offline"):
        blend.search("waves")
    now[0] = Embedder()
    assert blend.search("waves") == {"a": 0.5}


@pytest.mark.parametrize("relevance", [1.5, -0.1, math.nan, "1", None])
def test_a_relevance_outside_0_to_1_in_a_part_is_a_value_error(relevance: Any) -> None:
    with pytest.raises(ValueError, match=r"relevance of 'a' must be a number in \[0, 1\]"):
        BlendedIndex([(Stub({"a": relevance}), 1)]).search("x")


def test_a_part_that_returns_no_mapping_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"Stub\.search must return a mapping"):
        BlendedIndex([(Stub(["a"]), 1)]).search("x")


@pytest.mark.parametrize("weight", [0, -1, math.nan, math.inf, 10**400, "1", None, True])
def test_a_weight_that_is_no_finite_number_above_0_is_a_value_error(weight: Any) -> None:
    with pytest.raises(ValueError, match="a weight must be a finite number above 0"):
        BlendedIndex([(WordIndex(), weight)])


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ([], ValueError, "at least one index"),
        ([WordIndex()], TypeError, "pairs of an index and a weight"),
        ([(WordIndex(),)], TypeError, "pairs of an index and a weight"),
        ([(WordIndex(), 1, 2)], TypeError, "pairs of an index and a weight"),
        (["ab"], TypeError, "pairs of an index and a weight"),
        ([(1, WordIndex())], TypeError, "int has no add"),
        ([(WordIndex, 1)], TypeError, "not the class WordIndex itself"),
        ([(None, 1)], TypeError, "NoneType has no add"),
        (5, TypeError, "pairs of an index and a weight, not 5"),
    ],
)
def test_parts_that_are_no_pairs_of_index_and_weight_are_refused(
    parts: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        BlendedIndex(parts)


def test_they_are_recall_indexes() -> None:
    """For a type checker, too."""
    indexes: list[RecallIndex] = [EmbeddingIndex(Embedder()), BlendedIndex([(WordIndex(), 1)])]
    for index in indexes:
        assert Memory(index=index).recall("x") == []
