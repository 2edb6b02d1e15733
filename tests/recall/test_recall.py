"""Recall: words, relevance, score, and other indexes in place of the default one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sentinel_memory import Entry, Match, Memory, MemoryStore, StoreConflictError, WordIndex
from support.clocks import FakeClock

DAY = 86_400


def keys(matches: list[Match]) -> list[str]:
    return [match.key for match in matches]


def test_relevance_is_the_share_of_the_distinct_words_of_the_question(clock: FakeClock) -> None:
    """And the score weighs it by importance, plus a little for freshness."""
    memory = Memory(clock=clock)
    memory.remember("user:city", "Prague, near the river", importance=0.6)
    clock.tick(DAY / 4)
    match = memory.recall("river river PRAGUE? which city")[0]
    assert match.relevance == 3 / 4
    assert match.score == 3 / 4 * (0.5 + 0.6 / 2) + 0.05 * 0.75
    assert (match.key, match.data, match.importance) == (
        "user:city",
        "Prague, near the river",
        0.6,
    )
    assert isinstance(match, Entry)


def test_best_first_and_ties_newer_first(clock: FakeClock) -> None:
    """A tie of score is broken by time, then by order of remembering."""
    memory = Memory(clock=clock)
    memory.remember("a", "tea", importance=0.2)
    memory.remember("b", "tea", importance=0.2)
    memory.remember("c", "tea and milk", importance=0.9)
    assert keys(memory.recall("tea")) == ["c", "b", "a"]
    clock.tick(2 * DAY)
    memory.remember("a", "tea", importance=0.2)
    clock.tick(2 * DAY)
    assert keys(memory.recall("tea")) == ["c", "a", "b"]
    assert keys(memory.recall("tea", limit=2)) == ["c", "a"]


def test_words_are_those_of_key_strings_numbers_and_mapping_keys(clock: FakeClock) -> None:
    """Booleans and null have none; a newline inside a string separates words."""
    memory = Memory(clock=clock)
    memory.remember(
        "order:42",
        {"dish": "satay\nrice", "price": 12.5, "extras": ["chili", {"hot": True}], "table": None},
    )
    for word in ("order", "42", "dish", "satay", "rice", "12", "5", "chili", "hot", "table"):
        assert keys(memory.recall(word)) == ["order:42"], word
    for word in ("true", "null", "none", "nrice", "sata"):
        assert memory.recall(word) == [], word


def test_what_changed_or_went_is_no_longer_found(clock: FakeClock) -> None:
    """Overwritten, forgotten, expired, evicted, cleared."""
    memory = Memory(limit=2, clock=clock)
    memory.remember("a", "apple")
    memory.remember("a", "banana")
    assert memory.recall("apple") == []
    memory.remember("b", "cherry", ttl=1)
    clock.tick(1)
    assert memory.recall("cherry") == []
    memory.remember("c", "damson")
    memory.remember("d", "elderberry", importance=0.9)
    assert memory.recall("banana") == []
    memory.forget("d")
    assert memory.recall("elderberry") == []
    memory.clear()
    assert memory.recall("damson") == []


@pytest.mark.parametrize("query", ["", "   ", "?!", "\n", "🙂", "\ud800"])
def test_a_question_without_words_finds_nothing(query: str, clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.remember("a", "apple 🙂")
    assert memory.recall(query) == []
    assert memory.get_context(99, query=query).text == "a: apple 🙂"


@pytest.mark.parametrize("query", [None, 5, b"tea", ["tea", 5]])
def test_a_question_that_is_not_a_str_is_a_type_error(query: Any) -> None:
    with pytest.raises(TypeError, match="query must be a str"):
        Memory().recall(query)
    if query is not None:
        with pytest.raises(TypeError, match="query must be a str"):
            Memory().get_context(5, query=query)


def test_a_question_looks_only_at_the_entries_that_share_a_word(clock: FakeClock) -> None:
    """Two of 1,000 entries are scored."""
    looked_at: list[str] = []

    class Watching(WordIndex):
        def search(self, query: str, /) -> Mapping[str, float]:
            found = super().search(query)
            looked_at.extend(found)
            return found

    memory = Memory(clock=clock, limit=1_000, index=Watching())
    for number in range(1_000):
        memory.remember(f"chat:{number}", f"message {number} of many")
    memory.recall("17 or 500")
    assert sorted(looked_at) == ["chat:17", "chat:500"]


class StubIndex:
    """Says what it is told to say."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = {} if answer is None else answer
        self.entries: dict[str, Entry] = {}
        self.log: list[str] = []
        self.refuse: str | None = None

    def add(self, entry: Entry, /) -> None:
        assert entry.key not in self.entries, "added again without a discard"
        self.log.append(f"+{entry.key}")
        self.entries[entry.key] = entry
        if entry.data == self.refuse:
            raise OSError("the index is full")

    def discard(self, key: str, /) -> None:
        self.log.append(f"-{key}")
        self.entries.pop(key, None)

    def search(self, query: str, /) -> Mapping[str, float]:
        return self.answer


def test_an_index_is_kept_in_step_with_the_entries(clock: FakeClock) -> None:
    """Discard comes before add; evicted, expired and cleared entries are discarded."""
    index = StubIndex()
    memory = Memory(limit=2, clock=clock, index=index)
    memory.remember("a", 1)
    memory.remember("a", 2)
    memory.remember("b", 1, ttl=1)
    assert index.log == ["+a", "-a", "+a", "+b"]
    clock.tick(1)
    memory.remember("c", 1)
    assert set(index.entries) == {"a", "c"}
    memory.forget("a")
    assert set(index.entries) == {"c"}
    memory.restore({"version": 1, "entries": memory.to_state()["entries"]})
    assert set(index.entries) == {"c"}
    memory.clear()
    assert index.entries == {}


def test_if_an_index_refuses_an_entry_the_memory_is_unchanged(clock: FakeClock) -> None:
    """A new one, one that overwrites, and a load."""
    index = StubIndex()
    index.refuse = "bad"
    memory = Memory(limit=2, clock=clock, index=index)
    memory.remember("a", "good", importance=0.9)
    memory.remember("b", "good", ttl=9)
    before, stats, indexed = memory.to_state(), memory.stats(), dict(index.entries)
    bad = {**before["entries"][0], "key": "c", "data": "bad"}
    for call in (
        lambda: memory.remember("new", "bad"),
        lambda: memory.remember("a", "bad"),
        lambda: memory.restore({"version": 1, "entries": [*before["entries"], bad]}),
    ):
        with pytest.raises(OSError, match="the index is full"):
            call()
        assert memory.to_state() == before
        assert memory.stats() == stats
        assert index.entries == indexed


def test_an_index_that_is_down_for_a_while_loses_no_entry(clock: FakeClock) -> None:
    """It gets back what it let go of as soon as it works again."""
    index = StubIndex({"a": 1.0, "b": 1.0, "c": 1.0})
    memory = Memory(clock=clock, index=index)
    for key in "abc":
        memory.remember(key, "down")
    before = memory.to_state()
    index.refuse = "down"
    state = {"version": 1, "entries": [{**before["entries"][0], "key": "z"}]}
    calls: list[Any] = [lambda: memory.remember("b", "down"), lambda: memory.restore(state)]
    for call in calls:
        with pytest.raises(OSError, match="the index is full"):
            call()
        assert memory.to_state() == before
        with pytest.raises(OSError, match="the index is full"):
            memory.recall("b")
    assert index.entries == {}
    memory.forget("a")
    index.refuse = None
    memory.remember("c", "up")
    assert [match.key for match in memory.recall("b")] == ["c", "b"]
    assert set(index.entries) == {"b", "c"}


def test_after_a_load_that_the_index_refused_nothing_overwrites_the_store(
    clock: FakeClock,
) -> None:
    """What the store has is newer than what the memory kept."""
    index, store = StubIndex(), MemoryStore()
    memory = Memory(clock=clock, index=index, store=store, autosave=True)
    memory.remember("old", 1)
    newer = memory.to_state()
    newer["entries"][0]["data"] = "bad"
    store.save(newer)
    index.refuse = "bad"
    with pytest.raises(OSError, match="the index is full"):
        memory.load()
    with pytest.raises(StoreConflictError, match="load again first"):
        memory.remember("new", 1)
    assert store.load() == newer
    index.refuse = None
    memory.load()
    assert memory.get("old") == "bad"
    assert memory.remember("new", 1).kept


def test_keys_that_are_not_live_are_ignored(clock: FakeClock) -> None:
    index = StubIndex({"a": 1.0, "gone": 1.0, "never": float("nan"), "zero": 0})
    memory = Memory(clock=clock, index=index)
    memory.remember("a", 1)
    memory.remember("gone", 1, ttl=1)
    memory.remember("zero", 1)
    clock.tick(1)
    assert keys(memory.recall("x")) == ["a"]


@pytest.mark.parametrize("relevance", [1.5, -0.1, float("nan"), "1", None, True])
def test_a_relevance_outside_0_to_1_is_a_value_error(relevance: Any, clock: FakeClock) -> None:
    memory = Memory(clock=clock, index=StubIndex({"a": relevance}))
    memory.remember("a", 1)
    with pytest.raises(ValueError, match=r"relevance of 'a' must be a number in \[0, 1\]"):
        memory.recall("x")
    assert memory.get("a") == 1


@pytest.mark.parametrize("answer", [["a"], 5, "a"])
def test_an_answer_that_is_not_a_mapping_is_a_type_error(answer: Any, clock: FakeClock) -> None:
    memory = Memory(clock=clock, index=StubIndex(answer))
    with pytest.raises(TypeError, match="search must return a mapping"):
        memory.recall("x")
