"""Pools: one hot memory for each key, as its store has it now, from any thread and event loop."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import (
    AsyncPool,
    IgnoredValueWarning,
    Memory,
    MemoryPool,
    MemoryStore,
    StoreConflictError,
)


class Files:
    """Makes memories in the files of a folder, and counts them."""

    def __init__(self, folder: Path, suffix: str = ".json") -> None:
        self.folder, self.suffix = folder, suffix
        self.made: list[str] = []

    def __call__(self, key: str) -> Memory:
        self.made.append(key)
        return Memory.open(self.folder / f"{key}{self.suffix}")


@pytest.fixture(params=[".json", ".db"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return Files(tmp_path, request.param)


def test_a_memory_is_made_once_and_shows_what_others_wrote(files: Files) -> None:
    pool = MemoryPool(files)
    memory = pool.of("anna")
    memory.remember("city", "Brno")
    elsewhere = files("anna")
    elsewhere.remember("food", "nuts")
    assert pool.of("anna") is memory
    assert memory.get("food") == "nuts"
    assert files.made == ["anna", "anna"]
    assert not elsewhere.refresh()
    memory.remember("street", "Dlouhá")
    assert elsewhere.refresh()
    assert elsewhere.get("street") == "Dlouhá"


def test_the_memory_that_was_asked_for_longest_ago_is_dropped(tmp_path: Path) -> None:
    files = Files(tmp_path)
    pool = MemoryPool(files, size=2)
    for key in ("a", "b", "a", "c"):
        pool.of(key)
    assert len(pool) == 2
    gc.collect()
    pool.of("a")
    assert files.made == ["a", "b", "c"]
    pool.of("b")
    assert files.made == ["a", "b", "c", "b"]


def test_a_dropped_memory_that_is_still_in_use_is_not_made_twice(tmp_path: Path) -> None:
    files = Files(tmp_path)
    pool = MemoryPool(files, size=1)
    held = pool.of("a")
    pool.of("b")
    assert pool.of("a") is held
    pool.discard("a")
    assert pool.of("a") is not held
    assert files.made == ["a", "b", "a"]


def test_threads_that_ask_for_one_key_get_one_memory_and_lose_nothing(files: Files) -> None:
    pool = MemoryPool(files, size=3)
    ready = threading.Barrier(8)

    def work(worker: int) -> None:
        ready.wait(30)
        for number in range(10):
            key = f"user{(worker + number) % 4}"
            pool.transact(key, partial(Memory.add, data=f"{worker} {number}"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert sum(len(files(f"user{number}")) for number in range(4)) == 80


def test_one_maker_runs_at_a_time_for_a_key_and_others_do_not_wait_for_it() -> None:
    started, go_on = threading.Event(), threading.Event()
    made: list[str] = []

    def make(key: str) -> Memory:
        made.append(key)
        if key == "slow":
            started.set()
            assert go_on.wait(30)
        return Memory(store=MemoryStore())

    pool = MemoryPool(make)
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(pool.of, "slow") for _ in range(2)]
        assert started.wait(30)
        assert pool.of("quick") is pool.of("quick")
        go_on.set()
        assert both[0].result(30) is both[1].result(30)
    assert sorted(made) == ["quick", "slow"]


def test_a_maker_that_raises_is_asked_again(tmp_path: Path) -> None:
    outcomes: list[Any] = [OSError("no connection"), Memory(), Memory(store=MemoryStore())]

    def make(key: str) -> Memory:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        memory: Memory = outcome
        return memory

    pool = MemoryPool(make)
    with pytest.raises(OSError, match="no connection"):
        pool.of("a")
    with pytest.raises(TypeError, match="a Memory with a store"):
        pool.of("a")
    assert len(pool) == 0
    assert len(pool.of("a")) == 0


def test_unsaved_changes_are_not_dropped_for_what_others_wrote(files: Files) -> None:
    memory = files("a")
    with Memory(store=memory.store) as other:
        other.remember("theirs", 1)
    memory = Memory(store=files("a").store)
    memory.remember("mine", 1)
    files("a").remember("theirs too", 1)
    with pytest.raises(StoreConflictError, match="not saved"):
        memory.refresh()
    assert memory.get("mine") == 1
    memory.load()
    assert not memory.refresh()
    assert sorted(entry.key for entry in memory) == ["theirs", "theirs too"]


def test_a_store_that_cannot_tell_is_loaded_each_time() -> None:
    memory = Memory(store=MemoryStore())
    memory.remember("a", 1)
    memory.save()
    assert memory.refresh()
    with pytest.raises(RuntimeError, match="refresh needs a store"):
        Memory().refresh()


def test_a_memory_that_has_no_document_yet_needs_no_load(files: Files) -> None:
    memory = files("a")
    assert not memory.refresh()
    files("a").remember("k", 1)
    assert memory.refresh()
    assert memory.get("k") == 1


@pytest.mark.parametrize("size", [0, 2.5, "3", True])
def test_a_size_that_is_not_a_count_is_ignored_with_a_warning(size: Any) -> None:
    with pytest.warns(IgnoredValueWarning, match="size"):
        MemoryPool(lambda key: Memory(store=MemoryStore()), size=size)


def test_make_must_be_callable() -> None:
    wrong: Any = "make"
    for kind in (MemoryPool, AsyncPool):
        with pytest.raises(TypeError, match="make must be callable"):
            kind(wrong)


def test_tasks_of_one_key_take_turns_and_lose_nothing(files: Files) -> None:
    pool = AsyncPool(files)
    inside: list[str] = []

    def change(memory: Memory) -> int:
        inside.append("in")
        size = len(memory)
        memory.add("one more")
        inside.append("out")
        return size

    async def main() -> list[int]:
        return await asyncio.gather(*(pool.transact("anna", change) for _ in range(10)))

    assert sorted(asyncio.run(main())) == list(range(10))
    assert inside == ["in", "out"] * 10
    # Another loop, the same pool.
    assert sorted(asyncio.run(main())) == list(range(10, 20))
    assert files.made == ["anna"]
    pool.discard("anna")
    assert asyncio.run(main())[0] == 20
    assert files.made == ["anna", "anna"]


def test_the_loop_goes_on_while_a_change_is_made() -> None:
    pool: AsyncPool[str] = AsyncPool(lambda key: Memory(store=MemoryStore()))
    entered, go_on = threading.Event(), threading.Event()

    def change(memory: Memory) -> None:
        entered.set()
        assert go_on.wait(30)

    async def main() -> None:
        turn = asyncio.create_task(pool.transact("a", change))
        while not entered.is_set():
            await asyncio.sleep(0)
        await pool.transact("b", lambda memory: None)
        assert not turn.done()
        go_on.set()
        await turn

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_a_maker_of_its_parent() -> None:
    started, go_on = threading.Event(), threading.Event()

    def make(key: str) -> Memory:
        if threading.current_thread() is not threading.main_thread():
            started.set()
            assert go_on.wait(30)
        return Memory(store=MemoryStore())

    pool = MemoryPool(make)
    maker = threading.Thread(target=pool.of, args=("a",))
    maker.start()
    assert started.wait(30)
    child = os.fork()
    if child == 0:
        os._exit(0 if len(pool.of("a")) == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    go_on.set()
    maker.join(30)
