"""Finding by meaning with any embedder, and several indexes as one."""

from __future__ import annotations

import gc
import math
import operator
import sys
import textwrap
import threading
import types
import warnings
from array import array
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import pytest

from sentinel_memory import (
    BlendedIndex,
    ConversationIndex,
    EmbeddingIndex,
    Entry,
    Memory,
    RecallIndex,
    WordIndex,
)
from sentinel_memory._basics.numbers import IgnoredValueWarning
from sentinel_memory.recall import _vectors
from sentinel_memory.recall._vectors import dot, unit
from support.clocks import FakeClock
from support.entries import new_entry

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


def reachable(index: object) -> list[Any]:
    """Texts and vectors that can be reached from an index."""
    seen: set[int] = set()
    found: list[Any] = []
    todo: list[Any] = [*vars(index).values()]  # the dict itself may have none of them
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, type | types.ModuleType | types.FunctionType):
            continue
        seen.add(id(thing))
        if isinstance(thing, str | array):
            found.append(thing)
        if not isinstance(thing, Embedder):
            todo.extend(gc.get_referents(thing))
    return found


# Embeddings


def test_relevance_is_the_cosine_and_less_than_the_minimum_is_not_found() -> None:
    """Of vectors of any length."""
    assert filled(Embedder()).search("waves") == pytest.approx({"a": 1.0, "c": 0.96})
    assert filled(Embedder(), minimum=0.97).search("waves") == {"a": 1.0}
    assert filled(Embedder(), minimum=0).search("waves") == pytest.approx({"a": 1.0, "c": 0.96})
    assert filled(Embedder({**VECTORS, "waves": [0.006, 0.008]})).search("waves")["a"] == 1.0


@pytest.mark.parametrize("minimum", [None, "0.9", True, -1, 1.5, math.nan, math.inf])
def test_a_minimum_that_is_not_a_number_from_0_to_1_is_ignored(minimum: Any) -> None:
    """As everywhere; the default is 0.2."""
    vectors = {**VECTORS, "b: hills": [0.21, math.sqrt(1 - 0.21**2)], "waves": [1, 0]}
    vectors["c: shore"] = [0.19, math.sqrt(1 - 0.19**2)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        index = filled(Embedder(vectors), minimum=minimum)
    assert [one.category for one in told] == [IgnoredValueWarning] * (minimum is not None)
    assert set(index.search("waves")) == {"a", "b"}


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
    index.add(entry("quartz", "stone"))
    index.discard("quartz")
    assert not [one for one in reachable(index) if "quartz" in str(one) or isinstance(one, array)]


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
    assert dot(unit(vector), unit(vector)) > 1
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
def test_what_are_not_vectors_is_a_clear_error_and_the_next_search_works(
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
    assert _vectors._sum_of_products(first, second) == pytest.approx(expected, rel=1e-15)
    assert dot(first, second) == pytest.approx(expected, rel=1e-15)


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


# Outside the lock


def test_a_prepared_search_asks_the_embedder_nothing() -> None:
    """An entry that came in between is left out this time, and found by the next question."""
    embed = Embedder({**VECTORS, "d: surf": [3, 4]})
    index = filled(embed)
    index.prepare("waves")
    index.add(entry("d", "surf"))
    index.discard("c")
    before = len(embed.asked)
    assert set(index.search("waves")) == {"a"}
    assert len(embed.asked) == before
    index.prepare("waves")
    assert set(index.search("waves")) == {"a", "d"}
    assert embed.asked[before:] == [["d: surf"], ["waves"]]


@pytest.mark.parametrize("change", ["discard", "replace", "clear"])
def test_what_changes_while_it_is_embedded_does_not_get_the_old_vector(change: str) -> None:
    def embed(texts: list[str]) -> list[list[int]]:
        if "a: sea" in texts:
            if change == "clear":
                index.clear()
            else:
                index.discard("a")
            if change == "replace":
                index.add(entry("a", "hills"))
        return [[1, 0] if text in ("a: sea", "waves") else [0, 1] for text in texts]

    index = EmbeddingIndex(embed)
    index.add(entry("a", "sea"))
    index.add(entry("b", "hills"))
    index.prepare("waves")
    assert index.search("waves") == {}
    assert index.search("waves") == {}
    assert not any("sea" in str(one) for one in reachable(index))
    if change == "replace":
        index.prepare("hills")
        assert set(index.search("hills")) == {"a", "b"}


def test_the_first_entry_that_comes_between_prepare_and_search_is_not_embedded_there() -> None:
    """The memory holds its lock during a search; the next question finds the entry."""
    embed = Embedder()
    index = EmbeddingIndex(embed)
    index.prepare("waves")
    index.add(entry("a", "sea"))
    assert index.search("waves") == {}
    assert embed.asked == []
    index.prepare("waves")
    assert index.search("waves") == {"a": 1.0}
    assert embed.asked == [["a: sea"], ["waves"]]


def test_a_question_to_an_empty_index_hides_nothing_from_later_ones() -> None:
    """Searched or never searched, with ``prepare`` or without it the next time."""
    embed = Embedder()
    index = EmbeddingIndex(embed)
    index.prepare("waves")
    assert index.search("waves") == {}
    index.add(entry("a", "sea"))
    assert index.search("waves") == {"a": 1.0}
    index.discard("a")
    index.prepare("waves")
    index.add(entry("a", "sea"))
    index.prepare("waves")
    assert index.search("waves") == {"a": 1.0}


def test_two_questions_prepared_at_once_keep_their_own_vectors() -> None:
    index = filled(Embedder({**VECTORS, "peaks": [-4, 3]}))
    index.prepare("waves")
    index.prepare("peaks")
    assert set(index.search("waves")) == {"a", "c"}
    assert set(index.search("peaks")) == {"b"}
    assert not any(one in ("waves", "peaks") for one in reachable(index))


def test_questions_that_are_prepared_and_never_asked_do_not_pile_up() -> None:
    embed = Embedder({**VECTORS, **{f"q{number}": [1, 0] for number in range(500)}})
    index = filled(embed)
    for number in range(500):
        index.prepare(f"q{number}")
    assert sum(str(one).startswith("q") for one in reachable(index)) < 100


def test_threads_that_prepare_at_once_share_the_texts() -> None:
    """A second thread comes in while the first one embeds: each takes batches of its own."""
    asked: list[list[str]] = []
    depth = 0

    def embed(texts: list[str]) -> list[list[int]]:
        nonlocal depth
        asked.append(texts)
        depth += 1
        if depth == 1:
            second = threading.Thread(target=index.prepare, args=("other",))
            second.start()
            second.join()
        return [[1, 0] for _ in texts]

    index = EmbeddingIndex(embed, batch=2)
    for number in range(6):
        index.add(entry(f"k{number}", "x"))
    index.prepare("waves")
    texts = [text for batch in asked for text in batch if text.startswith("k")]
    assert sorted(set(texts)) == [f"k{number}: x" for number in range(6)]
    assert len(texts) <= 8
    assert len(index.search("waves")) == len(index.search("other")) == 6


def test_at_most_a_batch_of_texts_is_embedded_in_one_call() -> None:
    sizes: list[int] = []

    def embed(texts: list[str]) -> list[list[int]]:
        sizes.append(len(texts))
        return [[1, 0] for _ in texts]

    index = EmbeddingIndex(embed)
    for number in range(1_200):
        index.add(entry(f"k{number}", "x"))
    index.prepare("waves")
    assert sizes == [512, 512, 176, 1]


@pytest.mark.parametrize("batch", [0, -1, 1.5, "9", True, math.nan])
def test_a_batch_that_is_not_a_number_from_1_is_ignored_with_a_warning(batch: Any) -> None:
    with pytest.warns(IgnoredValueWarning, match="batch must be a whole number of at least 1"):
        filled(Embedder(), batch=batch)


class Picky:
    """Refuses every batch with a text that has a word in it, as providers do."""

    def __init__(self, refuse: Callable[[str], bool]) -> None:
        self.refuse = refuse
        self.calls = 0

    def __call__(self, texts: list[str]) -> list[list[int]]:
        self.calls += 1
        if any(map(self.refuse, texts)):
            raise ConnectionError("secret text refused")
        return [[1, 0] for _ in texts]


def prepared(index: Any, query: str = "waves") -> list[str]:
    """What is warned of while a question is prepared."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        index.prepare(query)
    return [str(one.message) for one in told]


def test_a_text_that_is_refused_costs_only_itself() -> None:
    """One warning names the keys, never a text; it is tried again when it is remembered again."""
    embed = Picky(lambda text: "bad" in text)
    index = EmbeddingIndex(embed)
    for number in range(300):
        index.add(entry(f"k{number}", "secret bad" if number in (7, 150, 151) else "secret good"))
    (told,) = prepared(index)
    assert "'k7', 'k150', 'k151'" in told
    assert "secret" not in told
    assert "ConnectionError" in told
    assert embed.calls < 70
    assert len(index.search("waves")) == 297
    before = embed.calls
    assert prepared(index) == []
    assert embed.calls == before + 1
    index.search("waves")
    index.discard("k7")
    index.add(entry("k7", "better"))
    assert prepared(index) == []
    assert len(index.search("waves")) == 298


def test_when_all_texts_are_refused_the_question_still_works() -> None:
    index = EmbeddingIndex(Picky(lambda text: text != "waves"))
    for number in range(60):
        index.add(entry(f"k{number}", "x"))
    (told,) = prepared(index)
    assert "60 text(s)" in told
    assert "and 40 more" in told
    assert index.search("waves") == {}


def test_a_vector_that_is_not_finite_costs_only_its_text() -> None:
    index = filled(
        lambda texts: [[math.nan, 1] if text == "b: hills" else [1, 0] for text in texts]
    )
    (told,) = prepared(index)
    assert "'b'" in told
    assert set(index.search("waves")) == {"a", "c"}


def test_an_embedder_that_is_down_is_not_asked_for_every_text() -> None:
    """Its error is raised after a few calls; everything is embedded as soon as it works again."""
    down = [True]
    embed = Picky(lambda text: down[0])
    index = EmbeddingIndex(embed)
    for number in range(2_000):
        index.add(entry(f"k{number}", "x"))
    with pytest.raises(ConnectionError):
        index.prepare("waves")
    assert embed.calls <= 2
    down[0] = False
    assert prepared(index) == []
    assert len(index.search("waves")) == 2_000


def test_an_embedder_that_goes_down_in_the_middle_is_noticed() -> None:
    embed = Picky(lambda text: embed.calls > 3)
    index = EmbeddingIndex(embed, batch=100)
    for number in range(1_000):
        index.add(entry(f"k{number}", "x"))
    with pytest.raises(ConnectionError):
        index.prepare("waves")
    assert embed.calls < 40
    embed.refuse = lambda text: False
    assert prepared(index) == []
    assert len(index.search("waves")) == 1_000


def test_questions_may_have_an_embedder_of_their_own() -> None:
    asked: list[list[str]] = []

    def embed_query(texts: list[str]) -> list[list[int]]:
        asked.append(texts)
        return [[3, 4]]

    index = EmbeddingIndex(embed := Embedder(), embed_query)
    for key, data in (("a", "sea"), ("b", "hills")):
        index.add(entry(key, data))
    assert set(index.search("waves")) == {"a"}
    assert asked == [["waves"]]
    assert embed.asked == [["a: sea", "b: hills"]]


def test_numbers_of_32_bits_are_kept_so() -> None:
    index = filled(Embedder(kind=lambda rows: [array("f", row) for row in rows]))
    assert index.search("waves") == pytest.approx({"a": 1.0, "c": 0.96})
    index.prepare("waves")
    assert {one.typecode for one in reachable(index) if isinstance(one, array)} == {"f"}


def test_a_blend_prepares_and_clears_its_parts() -> None:
    """Those that can; the others are told of every key."""
    embed = Embedder()
    stub, unasked = Stub({"a": 1.0}), EmbeddingIndex(Picky(lambda text: True))
    blend = BlendedIndex([(EmbeddingIndex(embed), 1), (stub, 1), (unasked, 0)])
    blend.add(entry("a", "sea"))
    blend.prepare("waves")
    assert embed.asked == [["a: sea"], ["waves"]]
    assert blend.search("waves") == {"a": 1.0}
    assert len(embed.asked) == 2
    blend.clear()
    assert stub.held == set()
    assert blend.search("waves") == {"a": 0.5}


def test_a_conversation_with_an_embedder_blends_words_and_meaning() -> None:
    """The embedder gets no names of speakers, and is asked in ``prepare``."""
    asked: list[list[str]] = []

    def embed(texts: list[str]) -> list[list[float]]:
        asked.append(texts)
        return [[1.0, 0.1] if "sea" in text or "waves" in text else [0.1, 1.0] for text in texts]

    index = ConversationIndex(embed)
    for number, text in enumerate(["Anna: the sea", "Ben: hills", "Anna: a tent", "Ben: a map"]):
        index.add(entry(f"chat:{number}", text))
    index.prepare("Which waves does Anna like?")
    assert asked == [["the sea", "hills", "a tent", "a map"], ["Which waves does  like?"]]
    found = index.search("Which waves does Anna like?")
    assert len(asked) == 2
    assert max(found, key=found.__getitem__) == "chat:0"
    words = ConversationIndex()
    words.add(entry("chat:0", "Anna: the sea"))
    assert words.search("waves") == {}
    index.discard("chat:0")
    assert "chat:0" not in index.search("Which waves?")
    index.clear()
    assert index.search("waves") == {}


def test_a_conversation_needs_an_embedder_of_texts_for_one_of_questions() -> None:
    wrong: Any = 5
    with pytest.raises(TypeError, match="embed_query needs embed"):
        ConversationIndex(embed_query=Embedder())
    with pytest.raises(TypeError, match="embed must be callable"):
        ConversationIndex(wrong)


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


def test_a_part_whose_answer_is_not_a_mapping_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"Stub\.search must return a mapping"):
        BlendedIndex([(Stub(["a"]), 1)]).search("x")


@pytest.mark.parametrize("weight", [-1, math.nan, math.inf, 10**400, "1", None, True])
def test_a_weight_that_is_not_a_finite_number_from_0_is_a_value_error(weight: Any) -> None:
    with pytest.raises(ValueError, match="a weight must be a finite number from 0 up"):
        BlendedIndex([(WordIndex(), weight)])


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ([], ValueError, "at least one index"),
        ([(WordIndex(), 0)], ValueError, "at least one index of a weight above 0"),
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
def test_parts_that_are_not_pairs_of_index_and_weight_are_refused(
    parts: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        BlendedIndex(parts)


def test_they_are_recall_indexes() -> None:
    """For a type checker, too."""
    indexes: list[RecallIndex] = [EmbeddingIndex(Embedder()), BlendedIndex([(WordIndex(), 1)])]
    for index in indexes:
        assert Memory(index=index).recall("x") == []
