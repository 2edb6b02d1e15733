"""Remembering, reading and forgetting entries."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from sentinel_memory import Entry, Memory, MemoryStore
from support.clocks import FakeClock


def test_overwriting_a_live_key_keeps_the_fields_not_given(clock: FakeClock) -> None:
    """``created_at`` and importance stay, ``updated_at`` is now, the expiry goes."""
    memory = Memory(clock=clock)
    memory.remember("k", "old", importance=0.8, ttl=60)
    born = clock.now
    clock.tick(30)
    entry = memory.remember("k", "new").entry
    assert (entry.data, entry.importance) == ("new", 0.8)
    assert (entry.created_at, entry.updated_at, entry.expires_at) == (born, clock.now, None)
    assert memory.remember("k", "newer", importance=0).entry.importance == 0


def test_a_key_whose_entry_has_expired_is_a_new_key(clock: FakeClock) -> None:
    """Nothing of the old entry is kept, and it is not counted as expired."""
    memory = Memory(clock=clock)
    memory.remember("k", "old", importance=0.8, ttl=60)
    clock.tick(60)
    entry = memory.remember("k", "new").entry
    assert (entry.importance, entry.created_at) == (0.5, clock.now)
    assert memory.stats().expired == 0
    assert memory.stats().stored == 1


def test_the_result_says_what_happened(clock: FakeClock) -> None:
    """An entry, whether it was kept, and what an automatic compaction removed."""
    memory = Memory(limit=2, clock=clock)
    first = memory.remember("a", 1, importance=0.9)
    assert (first.entry.key, first.kept, first.compaction) == ("a", True, None)
    memory.remember("b", 2, ttl=1)
    clock.tick(1)
    third = memory.remember("c", 3)
    assert third.kept
    assert third.compaction is not None
    assert [entry.key for entry in third.compaction.expired] == ["b"]
    assert third.compaction.evicted == ()
    memory.remember("d", 4)
    refused = memory.remember("e", 5, importance=0)
    assert not refused.kept
    assert refused.compaction is not None
    assert refused.compaction.evicted == (refused.entry,)
    assert "e" not in memory


def test_expired_entries_are_reported_in_the_order_in_which_they_were_remembered(
    clock: FakeClock,
) -> None:
    memory = Memory(clock=clock)
    for key, ttl in [("a", 30), ("b", 10), ("c", 20), ("d", 15)]:
        memory.remember(key, key, ttl=ttl)
    memory.remember("b", "again", ttl=5)
    clock.tick(30)
    done = memory.compact()
    assert [entry.key for entry in done.expired] == ["a", "c", "d", "b"]
    assert done.evicted == ()
    assert memory.stats().compactions == 1
    assert memory.stats().expired == 4


def test_forget_removes_expired_entries_too(clock: FakeClock) -> None:
    """``True`` only if a live entry went."""
    memory = Memory(clock=clock)
    memory.remember("a", 1)
    memory.remember("b", 1, ttl=1)
    clock.tick(1)
    assert memory.forget("a")
    assert not memory.forget("a")
    assert memory.stats().stored == 1
    assert not memory.forget("b")
    assert memory.stats().stored == 0
    assert memory.stats().expired == 0


def test_clear_leaves_nothing_anywhere(clock: FakeClock) -> None:
    """Entries, cache, working state, sections of other versions, rejected entries."""
    memory = Memory(clock=clock)
    memory.restore({"version": 1, "entries": [{"key": ""}], "later": {"secret": 1}})
    memory.remember("a", 1)
    memory.cache.put("a", 1)
    memory.working.set(step=1)
    memory.clear()
    assert memory.to_state() == {
        "version": 1,
        "entries": [],
        "working": {"data": {}, "updatedAt": None},
    }
    assert memory.cache.get("a") is None
    assert memory.recall("a") == []
    assert memory.stats().stored == memory.stats().cache == 0


def test_iteration_is_oldest_first_over_a_snapshot(clock: FakeClock) -> None:
    """Forgetting inside the loop is safe."""
    memory = Memory(clock=clock)
    for key in "abc":
        memory.remember(key, key)
    clock.tick(1)
    memory.remember("a", "again")
    seen = []
    for entry in memory:
        seen.append(entry.key)
        memory.forget(entry.key)
        memory.remember("new", 1)
    assert seen == ["b", "c", "a"]
    assert [entry.key for entry in memory] == ["new"]


def test_an_empty_memory_is_true() -> None:
    """So that ``memory or Memory()`` cannot replace it."""
    memory = Memory()
    assert len(memory) == 0
    assert (memory or Memory()) is memory
    assert memory.cache
    assert (memory.cache or 1) is memory.cache


def test_recent_is_newest_first_and_within_one_millisecond_by_order(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.remember("a", 1)
    memory.remember("b", 1)
    clock.tick(-5)
    memory.remember("c", 1)
    assert [entry.key for entry in memory.get_recent()] == ["b", "a", "c"]
    clock.tick(10)
    memory.remember("d", 1)
    assert [entry.key for entry in memory.get_recent()] == ["d", "b", "a", "c"]


def test_data_is_copied_in_and_out(clock: FakeClock) -> None:
    """What a caller does to its objects does not change the memory."""
    memory = Memory(clock=clock)
    data = {"seats": [1, 2]}
    entry = memory.remember("table", data).entry
    data["seats"].append(3)
    memory.get("table")["seats"].append(4)
    entry.data["seats"].clear()
    assert memory.get("table") == entry.data == {"seats": [1, 2]}


def test_times_are_epoch_seconds_in_whole_milliseconds() -> None:
    """The clock is floored to milliseconds, also before the epoch."""
    memory = Memory(clock=lambda: 1_792_310_400.123_9)
    assert memory.remember("k", 1, ttl=0.5).entry.created_at == 1_792_310_400.123
    assert memory.entry("k").expires_at == 1_792_310_400.623  # type: ignore[union-attr]
    assert Memory(clock=lambda: -0.0001).remember("k", 1).entry.updated_at == -0.001


@pytest.mark.parametrize("key", [None, 5, b"k", ("a",), ["k"]])
def test_a_key_that_is_not_a_str_is_a_type_error_in_every_call(key: Any, clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    for call in (
        lambda: memory.remember(key, 1),
        lambda: memory.get(key),
        lambda: memory.entry(key),
        lambda: memory.has(key),
        lambda: key in memory,
        lambda: memory.forget(key),
        lambda: memory.cache.put(key, 1),
        lambda: memory.cache.get(key),
        lambda: memory.cache.delete(key),
    ):
        with pytest.raises(TypeError, match=f"key must be a str, not {type(key).__name__}"):
            call()
    assert memory.stats().stored == 0


@pytest.mark.parametrize(("key", "message"), [("", "empty"), ("a\ud800", "lone surrogate")])
def test_a_key_that_cannot_be_kept_is_a_value_error_at_remember(
    key: str, message: str, clock: FakeClock
) -> None:
    memory = Memory(clock=clock)
    with pytest.raises(ValueError, match=message):
        memory.remember(key, 1)
    assert memory.get(key) is None
    assert not memory.forget(key)


def test_a_repr_never_tells_data(clock: FakeClock) -> None:
    """Logs are not a place for it."""
    memory = Memory(clock=clock)
    done = memory.remember("user:name", "secret", importance=0.9)
    memory.remember("x", ["secret"])
    memory.cache.put("c", "secret")
    memory.working.set(step="secret")
    assert repr(done.entry) == "Entry(key='user:name', importance=0.9)"
    assert repr(memory) == "<Memory of 2 entries, limit 500>"
    for value in (
        done,
        memory,
        memory.cache,
        memory.working,
        memory.recall("secret"),
        memory.get_context(99),
        memory.compact(),
        memory.stats(),
        memory.restore({"version": 1, "entries": ["secret"]}),
    ):
        assert "secret" not in repr(value)
    with pytest.raises(TypeError) as caught:
        memory.remember("k", {"secret": {"secret"}})
    assert "secret" not in str(caught.value)


def test_an_entry_cannot_be_changed(clock: FakeClock) -> None:
    """It is a value: equal by content, hashable, copied and pickled like one."""
    memory = Memory(clock=clock)
    entry = memory.remember("k", [1], ttl=5).entry
    for name in ("key", "data", "importance", "created_at", "updated_at", "expires_at"):
        with pytest.raises(AttributeError):
            setattr(entry, name, 1)
    twin = memory.entry("k")
    assert entry == twin
    assert hash(entry) == hash(twin)
    assert copy.deepcopy(entry) == pickle.loads(pickle.dumps(entry)) == entry
    assert entry != memory.remember("k", [2], ttl=5).entry
    assert entry != memory.recall("k")[0]
    assert entry != "k"
    assert isinstance(entry, Entry)


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copying_a_memory_is_an_error_that_says_what_to_do(copier: Any) -> None:
    with pytest.raises(TypeError, match="to_state"):
        copier(Memory())


def test_the_clock_is_read_once_per_call(clock: FakeClock) -> None:
    """So that one call has one idea of what is live."""
    memory = Memory(clock=clock, store=MemoryStore(), autosave=True, limit=2)
    calls: list[Any] = [
        lambda: memory.remember("a", 1),
        lambda: memory.remember("b", 1),
        lambda: memory.remember("c", 1),
        lambda: memory.get("a"),
        lambda: memory.entry("a"),
        lambda: memory.has("a"),
        lambda: "a" in memory,
        lambda: len(memory),
        lambda: next(iter(memory)),
        memory.get_recent,
        lambda: memory.recall("a"),
        lambda: memory.get_context(10, query="a"),
        memory.compact,
        memory.stats,
        lambda: memory.cache.put("a", 1),
        lambda: memory.cache.get("a"),
        lambda: memory.cache.delete("a"),
        lambda: len(memory.cache),
        lambda: memory.working.set(a=1),
        lambda: memory.working.get(),
        lambda: memory.working.clear(),
        memory.save,
        memory.load,
        memory.to_state,
        lambda: memory.restore({"version": 1, "entries": []}),
        lambda: memory.forget("a"),
        memory.clear,
    ]
    for number, call in enumerate(calls):
        clock.reads = 0
        call()
        assert (number, clock.reads) == (number, 1)
    clock.reads = 0
    Memory(clock=clock, store=MemoryStore())
    assert clock.reads == 1


def test_on_evict_reports_automatic_compactions_that_removed_something(clock: FakeClock) -> None:
    """It may call the memory again; an explicit ``compact`` does not call it."""
    archive = Memory(clock=clock)
    seen: list[list[str]] = []

    def on_evict(compaction: Any) -> None:
        seen.append([entry.key for entry in compaction.evicted])
        for entry in compaction.evicted:
            archive.remember(entry.key, entry.data)
        assert len(memory) == 2
        if len(seen) == 1:
            memory.remember("from the callback", 1)

    memory = Memory(limit=2, clock=clock, on_evict=on_evict)
    memory.remember("a", 1)
    memory.remember("b", 2)
    assert seen == []
    memory.remember("c", 3)
    assert seen == [["a"], ["b"]]
    assert archive.get("b") == 2
    memory.compact()
    memory.restore({"version": 1, "entries": memory.to_state()["entries"]})
    assert len(seen) == 2


def test_exceptions_of_on_evict_reach_the_caller_and_lose_nothing(clock: FakeClock) -> None:
    def on_evict(_: object) -> None:
        raise KeyError("archive is closed")

    store = MemoryStore()
    memory = Memory(limit=1, clock=clock, on_evict=on_evict, store=store, autosave=True)
    memory.remember("a", 1)
    with pytest.raises(KeyError, match="archive is closed"):
        memory.remember("b", 2)
    assert memory.get("b") == 2
    assert [raw["key"] for raw in store.load()["entries"]] == ["b"]  # type: ignore[index]
