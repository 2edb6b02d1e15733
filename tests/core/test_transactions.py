"""``transact``: load, change, save, and again when another writer was faster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sentinel_memory import (
    Compaction,
    Entry,
    Memory,
    MemoryStore,
    StoreConflictError,
    WordIndex,
)
from sentinel_memory.stores import State
from support.clocks import FakeClock


class SharedStore:
    """One of several stores over one document, which notice each other's saves."""

    def __init__(self, shared: Any = None) -> None:
        self.shared: dict[str, Any] = shared or {"text": None, "revision": 0}
        self.seen = -1
        self.saves = 0
        self.fail: BaseException | None = None

    def beside(self) -> SharedStore:
        return SharedStore(self.shared)

    def load(self) -> State | None:
        self.seen = self.shared["revision"]
        text = self.shared["text"]
        return None if text is None else json.loads(text)

    def save(self, state: State, /) -> None:
        if self.fail is not None:
            raise self.fail
        if self.seen != self.shared["revision"]:
            raise StoreConflictError("somebody else saved")
        self.shared["text"] = json.dumps(state)
        self.shared["revision"] += 1
        self.seen = self.shared["revision"]
        self.saves += 1


def increment(memory: Memory) -> int:
    count: int = memory.get("count", 0) + 1
    memory.remember("count", count)
    return count


def test_a_change_is_applied_to_what_the_store_has_now(clock: FakeClock) -> None:
    """Two memories over one document count to four together."""
    store = SharedStore()
    one = Memory(store=store, clock=clock)
    two = Memory(store=store.beside(), clock=clock)
    assert one.transact(increment) == 1
    assert two.transact(increment) == 2
    assert one.transact(increment) == 3
    assert two.transact(increment) == 4
    assert one.get("count") == 3
    one.load()
    assert one.get("count") == 4


def test_a_transaction_starts_again_when_another_writer_was_faster(clock: FakeClock) -> None:
    """The change is applied once to the result, however often it was tried."""
    store = SharedStore()
    other = Memory(store=store.beside(), clock=clock)
    memory = Memory(store=store, clock=clock, autosave=True)
    tries: list[int] = []

    def change(memory: Memory) -> int:
        tries.append(memory.get("count", 0))
        if len(tries) < 4:
            other.transact(increment)
        return increment(memory)

    assert memory.transact(change) == 4
    assert tries == [0, 1, 2, 3]
    assert store.saves == 1
    other.load()
    assert other.get("count") == 4


def test_when_attempts_run_out_the_conflict_reaches_the_caller(clock: FakeClock) -> None:
    """The memory is as loaded, without the change, and the next transaction is free to work."""
    store = SharedStore()
    other = Memory(store=store.beside(), clock=clock)
    memory = Memory(store=store, clock=clock)

    def overtaken(memory: Memory) -> None:
        other.transact(increment)
        memory.remember("mine", 1)

    with pytest.raises(StoreConflictError):
        memory.transact(overtaken, attempts=3)
    assert other.get("count") == 3
    assert "mine" not in memory
    assert memory.transact(increment) == 4


def test_if_the_change_raises_the_memory_is_as_loaded(clock: FakeClock) -> None:
    """Entries, working state and counters."""
    store = SharedStore()
    memory = Memory(limit=2, store=store, autosave=True, clock=clock)
    memory.remember("a", 1)
    memory.remember("b", 2)
    memory.working.set(step=1)
    saves, before, stats = store.saves, memory.to_state(), memory.stats()

    def change(memory: Memory) -> None:
        memory.remember("c", 3, importance=1)
        memory.working.clear()
        memory.forget("b")
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        memory.transact(change)
    assert memory.to_state() == before
    assert memory.stats() == stats
    assert store.saves == saves


def test_unsaved_changes_are_saved_before_a_transaction_and_their_conflict_is_raised(
    clock: FakeClock,
) -> None:
    """Nothing that the memory holds is thrown away by the load."""
    store = SharedStore()
    memory = Memory(store=store, clock=clock)
    memory.remember("unsaved", 1)
    assert memory.transact(increment) == 1
    assert "unsaved" in memory
    memory.remember("more", 1)
    Memory(store=store.beside(), clock=clock).transact(increment)
    with pytest.raises(StoreConflictError):
        memory.transact(increment)
    assert "more" in memory
    assert memory.get("count") == 1


def test_on_evict_is_called_once_for_the_attempt_that_was_saved(clock: FakeClock) -> None:
    """And after the save, when it may call the memory again."""
    store = SharedStore()
    other = Memory(store=store.beside(), clock=clock)
    seen: list[Any] = []

    def on_evict(compaction: Compaction) -> None:
        seen.append(([entry.key for entry in compaction.evicted], store.saves))
        memory.save()

    memory = Memory(limit=1, store=store, clock=clock, on_evict=on_evict)
    tries = 0

    def change(memory: Memory) -> None:
        nonlocal tries
        tries += 1
        memory.remember("a", 1)
        if tries == 1:
            other.transact(lambda other: other.remember("from other", 1, importance=0.1))
        memory.remember("b", 1)

    memory.transact(change)
    assert seen == [(["from other"], 1), (["a"], 2)]
    assert memory.stats().evicted == 2


def test_a_save_that_fails_otherwise_leaves_the_change_in_memory(clock: FakeClock) -> None:
    """The error reaches the caller, evictions are reported, the next save writes it."""
    store = SharedStore()
    seen: list[Compaction] = []
    memory = Memory(limit=1, store=store, clock=clock, on_evict=seen.append)
    memory.transact(increment)
    store.fail = OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space"):
        memory.transact(lambda memory: memory.remember("b", 1))
    assert "b" in memory
    assert [entry.key for entry in seen[0].evicted] == ["count"]
    store.fail = None
    memory.save()
    assert [raw["key"] for raw in json.loads(store.shared["text"])["entries"]] == ["b"]


@pytest.mark.parametrize("call", ["save", "load", "transact"])
def test_saving_and_loading_inside_a_transaction_is_refused(call: str, clock: FakeClock) -> None:
    """The message says who does it."""
    memory = Memory(store=SharedStore(), clock=clock)
    calls: dict[str, Any] = {
        "save": memory.save,
        "load": memory.load,
        "transact": lambda: memory.transact(increment),
    }
    with pytest.raises(RuntimeError, match=f"{call} inside transact"):
        memory.transact(lambda _: calls[call]())
    memory.save()


def test_a_batch_inside_a_transaction_saves_nothing(clock: FakeClock) -> None:
    """Nor does leaving ``with memory``."""
    store = SharedStore()
    memory = Memory(store=store, autosave=True, clock=clock)

    def change(memory: Memory) -> None:
        with memory, memory.batch():
            memory.remember("a", 1)
        assert store.saves == 0

    memory.transact(change)
    assert store.saves == 1


def test_a_conflict_raised_by_the_change_itself_is_not_retried(clock: FakeClock) -> None:
    """A change that works on another memory too sees its errors raised at once."""
    memory = Memory(store=SharedStore(), clock=clock)
    tries = []

    def change(memory: Memory) -> None:
        tries.append(1)
        raise StoreConflictError("of another memory")

    with pytest.raises(StoreConflictError, match="of another memory"):
        memory.transact(change)
    assert tries == [1]


def test_wrong_calls_say_what_is_missing() -> None:
    with pytest.raises(RuntimeError, match="transact needs a store"):
        Memory().transact(increment)
    with pytest.raises(TypeError, match="change must be callable, not str"):
        Memory(store=MemoryStore()).transact("x")  # type: ignore[arg-type]


def test_repeating_a_deletion_saves_it_after_an_unsaved_transaction(
    clock: FakeClock,
) -> None:
    store = SharedStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    memory.remember("a", "secret")
    store.fail = OSError("disk full")
    with pytest.raises(OSError, match="disk full"):
        memory.transact(lambda memory: memory.forget("a"))
    store.fail = None
    memory.forget("a")
    assert store.load()["entries"] == []  # type: ignore[index]


def test_all_reports_are_delivered_whatever_they_raise(clock: FakeClock) -> None:
    """The first error is raised, after that of the save."""
    seen: list[str] = []

    def report(compaction: Compaction) -> None:
        seen.extend(entry.key for entry in compaction.evicted)
        raise RuntimeError(seen[-1])

    store = SharedStore()
    memory = Memory(store=store, limit=1, clock=clock, on_evict=report)
    with pytest.raises(RuntimeError, match="a"):
        memory.transact(lambda memory: [memory.remember(key, 1) for key in "abc"])
    assert seen == ["a", "b"]
    store.fail = OSError("disk full")
    with pytest.raises(RuntimeError, match="c") as caught:
        memory.transact(lambda memory: memory.remember("d", 1))
    assert str(caught.value.__context__) == "disk full"


def test_an_index_that_is_down_does_not_keep_a_change_from_being_undone(clock: FakeClock) -> None:
    class Index(WordIndex):
        down = False

        def add(self, entry: Entry, /) -> None:
            if self.down:
                raise ConnectionError
            super().add(entry)

    index = Index()
    memory = Memory(store=MemoryStore(), autosave=True, clock=clock, index=index)
    memory.remember("a", "whole")
    memory.remember("b", "whole")

    def change(memory: Memory) -> None:
        memory.remember("a", "half")
        memory.forget("b")
        index.down = True
        raise KeyError("reason")

    with pytest.raises(KeyError, match="reason"):
        memory.transact(change)
    assert {entry.key: entry.data for entry in memory} == {"a": "whole", "b": "whole"}
    index.down = False
    assert {match.key for match in memory.recall("whole")} == {"a", "b"}
    assert memory.remember("c", 1).kept


def test_an_async_change_is_refused_and_not_saved_as_if_it_had_run(clock: FakeClock) -> None:
    async def change(memory: Memory) -> None:
        memory.remember("a", 1)

    store = MemoryStore()
    memory = Memory(store=store, clock=clock)
    running = change(memory)
    with pytest.raises(TypeError, match="change must be a plain function"):
        memory.transact(lambda _: running)  # type: ignore[unused-coroutine]
    running.close()
    with pytest.raises(TypeError, match="change must be a plain function"):
        memory.transact(lambda memory: (memory.remember(key, 1) for key in "ab"))
    assert store.load() is None


def test_a_transaction_that_raises_brings_back_the_result_of_the_load(clock: FakeClock) -> None:
    wrong = {"key": "bad", "data": 1}
    store = MemoryStore()
    store.save({"version": 1, "entries": [wrong]})
    memory = Memory(store=store, clock=clock)
    before = memory.last_load

    def change(memory: Memory) -> None:
        memory.forget("bad")
        raise LookupError

    with pytest.raises(LookupError):
        memory.transact(change)
    assert memory.last_load == before
    assert before is not None
    assert [item.entry for item in before.rejected] == [wrong]
