"""A batch puts off the saves of the code that runs in it, and of nobody else."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sentinel_memory import Memory, MemoryStore
from sentinel_memory.stores import State
from support.clocks import FakeClock


class CountingStore(MemoryStore):
    saves = 0

    def save(self, state: State, /) -> None:
        self.saves += 1
        super().save(state)

    def keys(self) -> list[str]:
        return [entry["key"] for entry in (self.load() or {"entries": []})["entries"]]


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def memory(store: CountingStore, clock: FakeClock) -> Memory:
    return Memory(store=store, autosave=True, clock=clock)


def test_a_task_that_waits_in_a_batch_holds_back_no_other_task(
    memory: Memory, store: CountingStore
) -> None:
    """What the other one was told is remembered is in the store."""

    async def batched(entered: asyncio.Event, go_on: asyncio.Event) -> None:
        with memory.batch():
            memory.remember("batched", 1)
            entered.set()
            await go_on.wait()
            memory.remember("batched too", 1)

    async def main() -> None:
        entered, go_on = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(batched(entered, go_on))
        await entered.wait()
        assert store.keys() == []
        memory.remember("other", 1)
        assert store.keys() == ["batched", "other"]
        go_on.set()
        await task
        assert store.keys() == ["batched", "other", "batched too"]

    asyncio.run(main())
    assert store.saves == 2


def test_tasks_and_threads_that_a_batch_starts_belong_to_it(
    memory: Memory, store: CountingStore
) -> None:
    async def child(key: str) -> None:
        memory.remember(key, 1)

    async def main() -> None:
        with memory.batch():
            await asyncio.create_task(child("task"))
            await asyncio.to_thread(memory.remember, "thread", 1)
            assert store.saves == 0

    asyncio.run(main())
    assert store.keys() == ["task", "thread"]
    assert store.saves == 1


def test_a_task_that_outlives_the_batch_it_was_started_in_saves_at_once(
    memory: Memory, store: CountingStore
) -> None:
    """It sees that the batch is closed."""

    async def child(go_on: asyncio.Event) -> None:
        await go_on.wait()
        memory.remember("late", 1)
        assert store.keys() == ["late"]
        with memory.batch():
            memory.remember("later", 1)
            assert store.keys() == ["late"]
        assert store.keys() == ["late", "later"]

    async def main() -> None:
        go_on = asyncio.Event()
        with memory.batch():
            task = asyncio.create_task(child(go_on))
            await asyncio.sleep(0)
        go_on.set()
        await task

    asyncio.run(main())


def test_an_inner_batch_that_outlives_the_outer_one_saves_at_its_end(
    memory: Memory, store: CountingStore
) -> None:
    outer, inner = memory.batch(), memory.batch()
    outer.__enter__()
    inner.__enter__()
    memory.remember("a", 1)
    outer.__exit__(None, None, None)
    assert store.keys() == []
    memory.remember("b", 1)
    assert store.keys() == []
    inner.__exit__(None, None, None)
    assert store.keys() == ["a", "b"]
    memory.remember("c", 1)
    assert store.keys() == ["a", "b", "c"]


def test_a_batch_that_is_left_in_another_thread_postpones_nothing_any_more(
    memory: Memory, store: CountingStore
) -> None:
    """As a web framework enters a dependency in one thread of a pool and leaves it in another."""

    def dependency() -> Iterator[Memory]:
        with memory.batch():
            yield memory

    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        for number in range(8):
            opened = dependency()
            first.submit(contextvars.copy_context().run, next, opened).result(30)
            second.submit(memory.remember, f"endpoint {number}", 1).result(30)
            assert store.keys()[-1] == f"endpoint {number}"
            second.submit(list, opened).result(30)
            for pool in (first, second):
                pool.submit(memory.remember, f"after {number}", 1).result(30)
                assert store.keys()[-1] == f"after {number}"
    memory.remember("here", 1)
    assert store.keys()[-1] == "here"


def test_twenty_concurrent_requests_lose_no_acknowledged_change(
    memory: Memory, store: CountingStore
) -> None:
    """Each enters, uses and leaves its batch in whichever thread is free."""

    def dependency() -> Iterator[Memory]:
        with memory.batch():
            yield memory

    def finish(opened: Iterator[Memory]) -> None:
        assert next(opened, None) is None

    with ThreadPoolExecutor(20) as pool:

        def request(number: int) -> None:
            opened = dependency()
            context = contextvars.copy_context()
            pool.submit(context.copy().run, next, opened).result(30)
            pool.submit(context.copy().run, memory.remember, f"k{number}", 1).result(30)
            pool.submit(context.copy().run, finish, opened).result(30)

        for round_ in range(8):
            threads = [
                threading.Thread(target=request, args=(20 * round_ + number,))
                for number in range(20)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
    assert sorted(store.keys()) == sorted(f"k{number}" for number in range(160))
    with ThreadPoolExecutor(20) as pool:
        for number in range(20):
            pool.submit(memory.remember, f"later {number}", 1).result(30)
    assert len(store.keys()) == 180


def test_a_generator_that_is_never_finished_postpones_nothing_for_others(
    memory: Memory, store: CountingStore
) -> None:
    """And once it is freed, nothing for the code that started it."""

    def unfinished() -> Iterator[None]:
        with memory.batch():
            memory.remember("inside", 1)
            yield

    opened = unfinished()
    threading.Thread(target=contextvars.Context().run, args=(next, opened)).run()
    memory.remember("outside", 1)
    assert store.keys() == ["inside", "outside"]

    opened_here = unfinished()
    next(opened_here)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(memory.remember, "other thread", 1).result(30)
    assert store.keys()[-1] == "other thread"
    del opened_here
    gc.collect()
    memory.remember("here", 1)
    assert store.keys()[-1] == "here"


def test_a_batch_of_one_memory_postpones_nothing_of_another(clock: FakeClock) -> None:
    stores = [CountingStore(), CountingStore()]
    first, second = (Memory(store=one, autosave=True, clock=clock) for one in stores)
    with first.batch():
        first.remember("a", 1)
        second.remember("b", 1)
        assert (stores[0].keys(), stores[1].keys()) == ([], ["b"])
    assert stores[0].keys() == ["a"]


def test_a_batch_that_raises_saves_and_a_batch_without_changes_does_not(
    memory: Memory, store: CountingStore
) -> None:
    def failing() -> None:
        with memory.batch():
            memory.remember("a", 1)
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert store.keys() == ["a"]
    with memory.batch():
        memory.get("a")
    assert store.saves == 1
