"""A store that grows is given only what changed, and has the same document as one that is not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_memory import Memory, StoreConflictError
from sentinel_memory.chat import Transcript
from sentinel_memory.stores.protocol import Changes
from support.clocks import FakeClock


class GrowingStore:
    """A store in memory that applies changes literally, and counts what it was given."""

    def __init__(self) -> None:
        self.document: dict[str, Any] | None = None
        self.number = 0  # of saves, by whomever
        self.version: int | None = None
        self.wholes = 0
        self.given: list[Changes] = []
        self.fails: Exception | None = None

    def load(self) -> dict[str, Any] | None:
        self.version = None if self.document is None else self.number
        return copy.deepcopy(self.document)

    def _written(self) -> None:
        self.number += 1
        self.version = self.number
        if self.fails is not None:
            raise self.fails

    def _check(self) -> None:
        if self.document is not None and self.version != self.number:
            raise StoreConflictError("changed by somebody else")

    def save(self, state: dict[str, Any], /) -> None:
        self._check()
        self.document = copy.deepcopy(state)
        self.wholes += 1
        self._written()

    def save_changes(self, changes: Changes, /) -> None:
        self._check()
        assert self.document is not None
        self.given.append(changes)
        entries = {entry["key"]: entry for entry in self.document["entries"]}
        for key in [*changes.gone, *(entry["key"] for entry in changes.entries)]:
            entries.pop(key, None)
        new = {entry["key"]: entry for entry in copy.deepcopy(changes.entries)}
        self.document = {**copy.deepcopy(changes.rest), "entries": [*({**entries, **new}.values())]}
        self._written()

    def changed(self) -> bool:
        return self.version != (None if self.document is None else self.number)


KEYS = st.sampled_from(["chat:1", "chat:2", "chat:3", "user:a", "user:b", "note"])
NUMBERS = st.sampled_from([0.0, 0.1, 0.5, 0.9])
CALLS = st.one_of(
    st.tuples(st.just("remember"), KEYS, NUMBERS, st.sampled_from([None, 1, 5])),
    st.tuples(st.just("update"), KEYS, NUMBERS),
    st.tuples(st.sampled_from(["reinforce", "demote", "forget"]), KEYS),
    st.tuples(st.sampled_from(["clear", "compact", "add", "prune", "put_back", "undone"])),
    st.tuples(st.just("tick"), st.sampled_from([0.001, 1.0, 6.0, -2.0])),
    st.tuples(st.just("transact"), KEYS),
)


def call(memory: Memory, clock: FakeClock, name: str, *arguments: Any) -> None:
    if name == "remember":
        key, importance, ttl = arguments
        memory.remember(key, f"{importance} {ttl}", importance=importance, ttl=ttl)
    elif name == "update":
        memory.update(arguments[0], importance=arguments[1])
    elif name == "tick":
        clock.tick(arguments[0])
    elif name == "add":
        memory.add("tea")
    elif name == "prune":
        memory.prune(lambda entry: entry.kind == "chat" and entry.importance > 0.4)
    elif name == "put_back":
        memory.put_back([Memory(clock=clock).remember("chat:9", "back").entry])
    elif name == "transact":
        memory.transact(lambda memory: memory.remember(arguments[0], "in a transaction"))
    elif name == "undone":
        with pytest.raises(LookupError):
            memory.transact(change_and_raise)
    else:
        getattr(memory, name)(*arguments)


def change_and_raise(memory: Memory) -> None:
    memory.remember("chat:1", "never")
    memory.forget("user:a")
    raise LookupError


@settings(max_examples=300)
@given(st.lists(CALLS, max_size=25), st.booleans(), st.booleans())
def test_after_every_save_the_store_has_what_the_memory_has(
    calls: list[tuple[Any, ...]], with_limits: bool, with_transcript: bool
) -> None:
    clock = FakeClock()
    store = GrowingStore()
    limits = {"chat": 2} if with_limits else None
    memory = Memory(limit=4, limits=limits, store=store, autosave=True, clock=clock)
    transcript = Transcript(memory)
    memory.save()
    for one in calls:
        call(memory, clock, *one)
        if with_transcript:
            transcript.append("question", "answer")
        if one[0] == "tick":
            continue
        memory.save()
        again = Memory(limit=4, limits=limits, clock=clock)
        Transcript(again)
        assert store.document is not None
        again.restore(store.document)
        assert again.to_state() == memory.to_state()
        assert [entry.key for entry in again] == [entry.key for entry in memory]
        assert again.get_context(20) == memory.get_context(20)


def test_a_save_costs_what_changed_and_not_what_there_is(clock: FakeClock) -> None:
    store = GrowingStore()
    memory = Memory(limit=100, store=store, autosave=True, clock=clock)
    with memory.batch():
        for number in range(100):
            clock.tick(1)
            memory.remember(f"chat:{number}", number, importance=0.5)
    clock.tick(1)
    assert store.wholes == 1
    memory.remember("chat:100", "new")
    memory.reinforce("chat:50")
    memory.forget("chat:60")
    assert store.wholes == 1
    given = [([entry["key"] for entry in one.entries], one.gone) for one in store.given]
    assert given == [(["chat:100"], ["chat:0"]), (["chat:50"], []), ([], ["chat:60"])]
    assert "entries" not in store.given[0].rest


def test_entries_of_one_millisecond_keep_their_order(clock: FakeClock) -> None:
    store = GrowingStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    for key in "abc":
        memory.remember(key, key)
    memory.reinforce("a")
    assert [entry["key"] for entry in store.given[-1].entries] == ["a", "b", "c"]
    again = Memory(store=store, clock=clock)
    assert [entry.key for entry in again] == ["a", "b", "c"]


def test_a_failed_save_is_made_up_for_by_the_next_one(clock: FakeClock) -> None:
    store = GrowingStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    memory.remember("a", 1)
    document = copy.deepcopy(store.document)
    store.fails = OSError("disk full")
    for key in ("b", "c"):
        with pytest.raises(OSError, match="disk full"):
            memory.remember(key, 1)
        # Nothing of it reached the disk.
        store.document, store.number, store.version = copy.deepcopy(document), 1, 1
    store.fails = None
    memory.forget("a")
    assert store.document is not None
    assert [entry["key"] for entry in store.document["entries"]] == ["b", "c"]
    assert store.wholes == 1


def test_a_document_that_was_loaded_past_the_memory_is_overwritten_whole(clock: FakeClock) -> None:
    store = GrowingStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    memory.remember("mine", 1)
    other = GrowingStore()
    other.document, other.number = {"version": 1, "entries": []}, 7
    store.document, store.number = other.document, other.number
    with pytest.raises(StoreConflictError):
        memory.remember("mine too", 1)
    store.load()
    memory.save()
    assert [entry["key"] for entry in store.document["entries"]] == ["mine", "mine too"]


@pytest.mark.parametrize("limit", [1, 10])
def test_what_a_load_left_out_is_not_in_the_document_after_the_next_save(
    limit: int, clock: FakeClock
) -> None:
    """Rejected items, entries whose key comes again, and entries over the limit."""
    store = GrowingStore()
    writer = Memory(store=store, clock=clock)
    writer.remember("a", 1, importance=0.9)
    writer.remember("b", 1, importance=0.1)
    writer.save()
    assert store.document is not None
    if limit == 10:
        store.document["entries"] += [{"key": "bad"}, store.document["entries"][0]]
    memory = Memory(limit=limit, store=store, autosave=True, clock=clock)
    memory.remember("c", 1, importance=1.0)
    again = Memory(limit=limit, store=store, clock=clock)
    assert again.to_state() == memory.to_state()
    keys = [entry["key"] for entry in store.document["entries"]]
    assert sorted(keys) == (["c"] if limit == 1 else ["a", "b", "c"])
    assert len(store.document.get("rejected", [])) == (0 if limit == 1 else 2)


def test_what_expired_is_gone_from_the_store_with_the_next_save(clock: FakeClock) -> None:
    store = GrowingStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    memory.remember("short", 1, ttl=1)
    clock.tick(2)
    memory.remember("new", 1)
    assert store.given[-1].gone == ["short"]


def test_keys_that_were_forgotten_are_nowhere_once_they_are_saved(clock: FakeClock) -> None:
    store = GrowingStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    memory.remember("secret key", 1)
    memory.forget("secret key")
    store.given.clear()
    memory.remember("other", 1)
    assert "secret" not in repr(store.given)
