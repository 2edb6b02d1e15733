"""A load takes what is there already, checks what is new, and indexes it when it is asked for."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_memory import ConversationIndex, Entry, Memory, MemoryStore, WordIndex
from sentinel_memory.entry import entry_from_state
from support.clocks import FakeClock

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, -0.1, 1.5, 10**400, 2**53 + 1, -(10**16), "1", "\ud800", "tea", ""]),
    st.just([1]),
)
USUAL = {
    "key": "k",
    "data": "tea",
    "importance": 0.5,
    "createdAt": 1,
    "updatedAt": 2,
    "expiresAt": None,
}


def outcome(raw: dict[str, Any]) -> Entry | str:
    try:
        return entry_from_state(raw)
    except (TypeError, ValueError) as error:
        return str(error)


@given(st.dictionaries(st.sampled_from(list(USUAL)), VALUES, max_size=3), st.booleans())
def test_the_order_of_members_makes_no_difference(
    changed: dict[str, Any], without_expiry: bool
) -> None:
    """The usual form is read by itself, any other order by the tables."""
    raw = {**USUAL, **changed}
    if without_expiry:
        del raw["expiresAt"]
    reordered = dict(reversed(raw.items()))
    one, other = outcome(raw), outcome(reordered)
    assert one == other
    if isinstance(one, Entry) and isinstance(other, Entry):
        assert json.dumps(one.to_state()) == json.dumps(other.to_state())


def filled(store: MemoryStore, clock: FakeClock) -> Memory:
    memory = Memory(store=store, clock=clock)
    memory.remember("text", "tea")
    memory.remember("number", 1)
    memory.remember("list", [1, {"a": 1.0}])
    memory.remember("more", "nuts", meta={"tags": [1]}, pinned=True)
    memory.reinforce("more")
    memory.save()
    return memory


def test_a_load_keeps_the_entries_that_did_not_change(clock: FakeClock) -> None:
    store = MemoryStore()
    memory = filled(store, clock)
    before = {entry.key: entry for entry in memory}
    other = Memory(store=store, clock=clock)
    other.remember("text", "coffee")
    other.save()
    memory.load()
    after = {entry.key: entry for entry in memory}
    assert {key for key in after if after[key] is not before[key]} == {"text"}
    assert memory.to_state() == other.to_state()


@pytest.mark.parametrize(
    ("key", "member", "value"),
    [
        ("number", "data", True),
        ("number", "data", 1.0),
        ("list", "data", [True, {"a": 1.0}]),
        ("list", "data", [1, {"a": 1}]),
        ("text", "data", "TEA"),
        ("text", "importance", 0.6),
        ("text", "updatedAt", 5),
        ("text", "expiresAt", 10**13),
        ("more", "meta", {"tags": [True]}),
        ("more", "feedback", 2),
        ("text", "later", "a field of a later release"),
    ],
)
def test_a_load_takes_over_the_smallest_difference(
    key: str, member: str, value: Any, clock: FakeClock
) -> None:
    store = MemoryStore()
    memory = filled(store, clock)
    state = store.load()
    assert state is not None
    raw = next(entry for entry in state["entries"] if entry["key"] == key)
    raw[member] = value
    store.save(state)
    memory.load()
    again = Memory(clock=clock)
    again.restore(json.loads(json.dumps(state)))
    assert json.dumps(memory.to_state()) == json.dumps(again.to_state())


@pytest.mark.parametrize("member", ["importance", "createdAt", "updatedAt"])
def test_true_is_no_number_also_where_the_entry_has_one(member: str) -> None:
    store = MemoryStore()
    memory = Memory(store=store, clock=lambda: 0.001)
    memory.remember("k", "tea", importance=1.0)
    memory.save()
    state = store.load()
    assert state is not None
    state["entries"][0][member] = True
    store.save(state)
    assert memory.load().dropped == 1


class Counting(WordIndex):
    """An index that notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.added: list[str] = []

    def add(self, entry: Entry, /) -> None:
        self.added.append(entry.key)
        super().add(entry)


def test_opening_indexes_nothing_before_the_first_question(clock: FakeClock) -> None:
    store = MemoryStore()
    filled(store, clock)
    index = Counting()
    memory = Memory(store=store, index=index, autosave=True, clock=clock)
    memory.remember("new", "tea")
    memory.forget("number")
    memory.remember("text", "green tea")
    assert index.added == ["new", "text"]
    assert sorted(match.key for match in memory.recall("tea")) == ["new", "text"]
    assert sorted(index.added) == ["list", "more", "new", "text"]
    memory.load()
    assert len(memory.recall("nuts")) == 1
    assert len(index.added) == 4


def test_only_an_index_that_refuses_nothing_may_wait() -> None:
    assert WordIndex().refuses_nothing
    assert ConversationIndex().refuses_nothing
    assert not ConversationIndex(embed=lambda texts: [[1.0] for _ in texts]).refuses_nothing


@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from([{}, {"a": 2}, {"a": 1, "b": 3}]))
def test_a_load_leaves_what_one_eviction_after_another_would_leave(
    seed: int, limit: int, limits: dict[str, int]
) -> None:
    draw = random.Random(seed)
    clock = FakeClock(1_000)
    many = Memory(limit=100, clock=clock, recency_window=10)
    for number in range(draw.randrange(12)):
        clock.tick(draw.choice([0, 0, 1, 4, -2]))
        many.remember(
            f"{draw.choice('abc')}:{number}",
            number,
            importance=draw.choice([0.1, 0.5, 0.55]),
            ttl=draw.choice([None, None, 3]),
            pinned=draw.random() < 0.1,
        )
    loaded = Memory(limit=limit, limits=limits, clock=clock, recency_window=10)
    result = loaded.restore(many.to_state())
    plain = Memory(limit=100, clock=clock, recency_window=10)
    plain.restore({**many.to_state(), "limit": 100})
    put = Memory(limit=limit, limits=limits, clock=clock, recency_window=10)
    put.put_back(list(plain))
    assert loaded.to_state()["entries"] == put.to_state()["entries"]
    assert result.loaded == len(plain)


def test_equal_entries_have_data_of_the_same_types() -> None:
    def entry(data: Any) -> Entry:
        return Memory(clock=lambda: 0).remember("k", data).entry

    assert entry({"a": 1, "b": 2}) == entry({"b": 2, "a": 1})
    for one, other in (("5", 5), ([1], [True]), ([1], [1.0]), ("[1]", [1])):
        assert entry(one) != entry(other)


def test_a_field_that_does_not_exist_cannot_be_changed() -> None:
    entry = Memory().remember("k", 1).entry
    for name in ("key", "data", "importnce"):
        with pytest.raises(TypeError, match="no field"):
            entry.replaced(**{name: 1})
