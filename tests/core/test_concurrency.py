"""Threads, event loops and forked children."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import Entry, JsonFileStore, Memory, MemoryStore, StoreConflictError
from sentinel_memory.stores import State
from support.clocks import FakeClock

CALLS: list[Callable[[Memory, str, int], object]] = [
    lambda memory, key, step: memory.get(key),
    lambda memory, key, step: [entry.data for entry in memory],
    lambda memory, key, step: memory.forget(key),
    lambda memory, key, step: memory.recall("step k3"),
    lambda memory, key, step: memory.get_context(30, query="step", tokenizer=len),
    lambda memory, key, step: memory.cache.put(key, step, ttl=0.001),
    lambda memory, key, step: memory.working.set(step=step),
    lambda memory, key, step: memory.working.get(),
    lambda memory, key, step: memory.get_recent(3),
    lambda memory, key, step: memory.to_state(),
    lambda memory, key, step: memory.save(),
]


def in_threads(count: int, work: Any) -> None:
    """Run ``work(number)`` in threads; what one raises is raised here."""
    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(work, number) for number in range(count)]:
            done.result(timeout=60)


def test_eight_threads_mixing_every_call_do_no_harm() -> None:
    """No exception, never over the limit, and the counters add up."""
    removed = {"expired": 0, "evicted": 0}
    counting = threading.Lock()

    def on_evict(compaction: Any) -> None:
        assert memory.size <= 20
        with counting:
            removed["expired"] += len(compaction.expired)
            removed["evicted"] += len(compaction.evicted)

    store = MemoryStore()
    clock = FakeClock()  # also the time that passes between the last two calls is known
    memory = Memory(limit=20, store=store, autosave=True, on_evict=on_evict, clock=clock)

    def work(number: int) -> None:
        draw = random.Random(number)
        for step in range(400):
            clock.tick(0.0005)
            key = f"k{draw.randrange(60)}"
            ttl = draw.choice([None, 0.001, 0.002, 10])
            memory.remember(key, {"step": step}, importance=draw.random(), ttl=ttl)
            draw.choice(CALLS)(memory, f"k{draw.randrange(60)}", step)
            stats = memory.stats()
            assert stats.size <= stats.stored <= 20

    in_threads(8, work)
    stats = memory.stats()
    assert (stats.expired, stats.evicted) == (removed["expired"], removed["evicted"])
    memory.save()
    assert store.load() == memory.to_state()


def test_two_threads_never_save_out_of_order() -> None:
    """What is in the store at the end is what is in the memory, and no state is older than one
    that was saved before it."""
    sizes: list[int] = []

    class Log(MemoryStore):
        def save(self, state: State, /) -> None:
            sizes.append(len(state["entries"]))
            super().save(state)

    store = Log()
    memory = Memory(store=store, autosave=True, limit=10_000)
    in_threads(4, lambda n: [memory.remember(f"{n}:{i}", i) for i in range(50)])
    assert sizes == list(range(1, 201))
    assert store.load() == memory.to_state()


def test_a_reader_does_not_wait_for_a_save(clock: FakeClock) -> None:
    """While one thread is inside the store, another reads."""
    saving, go_on = threading.Event(), threading.Event()

    class Slow(MemoryStore):
        def save(self, state: State, /) -> None:
            saving.set()
            assert go_on.wait(30)

    memory = Memory(store=Slow(), autosave=True, clock=clock)
    writer = threading.Thread(target=memory.remember, args=("k", 1))
    writer.start()
    assert saving.wait(30)
    assert memory.get("k") == 1
    assert memory.get_context(9).text == "k: 1"
    assert len(memory) == 1
    go_on.set()
    writer.join(30)
    assert not writer.is_alive()


@pytest.mark.parametrize("place", ["tokenizer", "format", "on_evict", "clock"])
def test_a_callback_runs_without_a_lock(place: str, clock: FakeClock) -> None:
    """Another thread can use the memory in the meantime, for writing too."""
    busy = threading.local()

    def elsewhere() -> None:
        if not getattr(busy, "now", False):
            busy.now = True
            thread = threading.Thread(target=use, daemon=True)
            thread.start()
            thread.join(30)
            assert not thread.is_alive(), f"{place} ran with a lock held"
            busy.now = False

    def use() -> None:
        busy.now = True
        memory.remember("from another thread", 1)
        memory.forget("from another thread")

    def tokenizer(text: str) -> int:
        if place == "tokenizer":
            elsewhere()
        return len(text)

    def format(entry: Entry) -> str:
        if place == "format":
            elsewhere()
        return entry.key

    def on_evict(_: object) -> None:
        if place == "on_evict":
            elsewhere()

    def time() -> float:
        if place == "clock" and started:
            elsewhere()
        return clock()

    started = False
    memory = Memory(
        limit=2, clock=time, tokenizer=tokenizer, on_evict=on_evict, store=MemoryStore()
    )
    started = True
    for key in "abcd":
        memory.remember(key, 1)
    assert memory.get_context(100, format=format, query="a").entries


def test_one_memory_works_in_two_event_loops_and_through_threads(tmp_path: Path) -> None:
    """Nothing in it belongs to a loop."""
    memory = Memory.open(tmp_path / "m.json")

    async def turn(key: str) -> str:
        await asyncio.to_thread(memory.remember, key, "said")
        with memory.batch():
            memory.remember(f"{key}:a", 1)
            memory.remember(f"{key}:b", 1)
        return (await asyncio.to_thread(memory.get_context, 100)).text

    assert asyncio.run(turn("one")).count("\n") == 2
    assert asyncio.run(turn("two")).count("\n") == 5
    assert len(Memory.open(tmp_path / "m.json")) == 6


def test_a_batch_of_one_thread_does_not_hold_back_the_saves_of_another(clock: FakeClock) -> None:
    store = MemoryStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    with memory.batch():
        memory.remember("batched", 1)
        assert store.load() is None
        other = threading.Thread(target=memory.remember, args=("other", 1))
        other.start()
        other.join(30)
        assert len(store.load()["entries"]) == 2  # type: ignore[index]


def test_changes_of_other_threads_wait_for_a_transaction(clock: FakeClock) -> None:
    """So that no load inside it throws them away."""
    store = MemoryStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    writers: list[threading.Thread] = []

    def change(memory: Memory) -> None:
        writers.append(threading.Thread(target=memory.remember, args=("other", 1)))
        writers[0].start()
        memory.remember("mine", 1)
        assert "other" not in memory

    memory.transact(change)
    writers[0].join(30)
    assert [entry.key for entry in memory] == ["mine", "other"]
    assert len(store.load()["entries"]) == 2  # type: ignore[index]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_after_a_fork_in_a_threaded_program_the_child_can_use_the_memory(tmp_path: Path) -> None:
    """Also if another thread was in the middle of a change and a save."""
    memory = Memory.open(tmp_path / "m.json", limit=50)
    stop = threading.Event()

    def write(number: int) -> None:
        step = 0
        while not stop.is_set():
            step += 1
            memory.remember(f"{number}:{step % 40}", step)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(20):
            child = os.fork()
            if child == 0:
                ok = False
                try:
                    own = Memory(store=MemoryStore(), autosave=True)
                    own.remember("a", 1)
                    memory.working.get()
                    with memory.batch():
                        ok = memory.remember("child", number, importance=1).kept
                        ok = ok and memory.size <= 50 and memory.get("child") == number
                        memory.clear()
                        os._exit(0 if ok else 1)  # the file stays the parent's
                finally:
                    os._exit(0 if ok else 1)
            assert wait_for(child) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert "child" not in memory


def wait_for(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def works_in_a_child(use_it: Callable[[], None]) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            use_it()
            code = 0
        finally:
            os._exit(code)
    return wait_for(child) == 0


class Optimistic(JsonFileStore):
    """Lets others write during a transaction, as a store does that cannot keep them out."""

    def exclusive(self) -> AbstractContextManager[object]:
        return nullcontext()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_in_the_middle_of_a_transaction_saves_no_half_of_it(tmp_path: Path) -> None:
    """The child has to load first, and is told so; then it can save."""
    memory = Memory(store=Optimistic(tmp_path / "m.json"), autosave=True)
    memory.remember("a", 1)
    begun, forked = threading.Event(), threading.Event()

    def change(memory: Memory) -> None:
        memory.remember("a", 2)
        begun.set()
        assert forked.wait(30)
        memory.remember("b", 2)

    thread = threading.Thread(target=memory.transact, args=(change,))
    thread.start()
    assert begun.wait(30)

    def use_it() -> None:
        with pytest.raises(StoreConflictError, match="load again first"):
            memory.remember("c", 3)
        with pytest.raises(StoreConflictError, match="load again first"):
            memory.save()
        memory.load()
        assert {entry.key: entry.data for entry in memory} == {"a": 1}
        memory.remember("c", 3)
        assert Memory.open(tmp_path / "m.json").get("c") == 3
        memory.forget("c")

    assert works_in_a_child(use_it)
    forked.set()
    thread.join(30)
    assert {entry.key: entry.data for entry in memory} == {"a": 2, "b": 2}


class Slow(Optimistic):
    """Waits in the middle of a save."""

    saving, forked = threading.Event(), threading.Event()

    def save(self, state: State, /) -> None:
        if threading.current_thread() is not threading.main_thread():
            self.saving.set()
            assert self.forked.wait(30)
        super().save(state)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_a_transaction_is_saved_does_not_apply_it_twice(tmp_path: Path) -> None:
    """The child does not save what the parent is about to."""
    memory = Memory(store=Slow(tmp_path / "m.json"), autosave=True)
    memory.remember("visits", 0)

    def visit(memory: Memory) -> None:
        memory.remember("visits", memory.get("visits") + 1)

    thread = threading.Thread(target=memory.transact, args=(visit,))
    thread.start()
    assert Slow.saving.wait(30)

    def use_it() -> None:
        with pytest.raises(StoreConflictError, match="load again first"):
            memory.remember("c", 3)
        memory.load()
        assert memory.get("visits") == 0
        memory.remember("c", 3)

    assert works_in_a_child(use_it)
    Slow.forked.set()
    thread.join(30)
    assert Memory.open(tmp_path / "m.json").get("visits") == 1
    assert Memory.open(tmp_path / "m.json").get("c") == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_memories_are_made_leaves_none_locked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memories = [Memory() for _ in range(200)]
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    interval = sys.getswitchinterval()
    stop = threading.Event()

    def make() -> None:
        while not stop.is_set():
            Memory().remember("a", 1)

    def read() -> None:
        while not stop.is_set():
            for memory in memories:
                len(memory)

    threads = [threading.Thread(target=work) for work in (make, make, read)]
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for _ in range(30):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                os._exit(0 if all(memory.remember("a", 1).kept for memory in memories) else 1)
            assert wait_for(child) == 0
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        for thread in threads:
            thread.join(30)
    assert unraisable == []
