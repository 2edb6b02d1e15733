"""Exceptions and calls that come in at any moment leave a whole memory."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable

import pytest

from sentinel_memory import Entry, Memory, MemoryStore, WordIndex
from sentinel_memory.stores import State
from support import attacks
from support.clocks import FakeClock


@pytest.mark.parametrize("index", attacks.INDEXES)
def test_an_exception_at_any_line_of_a_call_leaves_a_consistent_memory(index: str) -> None:
    """As Ctrl-C or a signal handler raise one: nothing is half there, nothing is there twice."""
    assert attacks.interrupted_lines(400, 1, index) == (400, [])


@pytest.mark.parametrize("index", attacks.INDEXES)
def test_a_signal_whose_handler_raises_leaves_a_consistent_memory(index: str) -> None:
    assert attacks.interrupted_by_signals(200, 1, index) == (200, [])


@pytest.mark.parametrize("index", attacks.INDEXES)
def test_a_call_made_at_any_line_of_another_is_refused_or_complete(index: str) -> None:
    """As a finalizer or a signal handler makes one: refused before anything is touched."""
    assert attacks.reentered_lines(300, 1, index) == (300, [])


def test_an_index_that_calls_its_memory_is_refused(clock: FakeClock) -> None:
    class Curious(WordIndex):
        call: Callable[[], object] | None = None

        def add(self, entry: Entry, /) -> None:
            if self.call is not None:
                self.call()
            super().add(entry)

    index = Curious()
    memory = Memory(index=index, clock=clock)
    memory.remember("a", "first")
    for call in (lambda: memory.get("a"), lambda: memory.remember("b", 1), memory.clear):
        index.call = call
        with pytest.raises(RuntimeError, match="in the middle of one of its own calls"):
            memory.remember("a", "second")
        index.call = None
        assert [entry.data for entry in memory] == ["first"]
        assert [match.data for match in memory.recall("first second")] == ["first"]


def test_a_store_that_changes_the_memory_it_saves_is_refused(clock: FakeClock) -> None:
    """Reading it is fine: nothing is half made while a store saves."""

    seen: list[object] = []

    class Curious(MemoryStore):
        def save(self, state: State, /) -> None:
            seen.append(memory.get("a"))
            with pytest.raises(RuntimeError, match="nothing was done"):
                memory.remember("b", 1)
            super().save(state)

    memory = Memory(store=Curious(), autosave=True, clock=clock)
    memory.remember("a", 1)
    assert seen == [1]
    assert [entry.key for entry in memory] == ["a"]
    memory.remember("c", 1)
    assert len(memory) == 2


def test_finalizers_that_call_forget_do_not_break_the_interrupted_call(clock: FakeClock) -> None:
    """A busy collector runs them inside other calls; then they are refused, and told so."""

    class Session:
        def __init__(self) -> None:
            self.me = self  # only the collector frees it

    memory = Memory(limit=200, clock=clock)
    refused: list[str] = []

    def forget(key: str) -> None:
        try:
            memory.forget(key)
        except RuntimeError as error:
            refused.append(str(error))

    threshold = gc.get_threshold()
    gc.set_threshold(7, 2, 2)
    try:
        for number in range(400):
            session = Session()
            weakref.finalize(session, forget, f"k{number}").atexit = False
            del session
            assert memory.remember(f"k{number}", attacks.word_of(f"k{number}")).kept
    finally:
        gc.set_threshold(*threshold)
    assert all("nothing was done" in message for message in refused)
    assert attacks.problems(memory) == []


def test_a_signal_handler_between_calls_can_use_the_memory(clock: FakeClock) -> None:
    """A lock that this thread does not hold is not mistaken for one that it holds."""
    memory = Memory(clock=clock)
    memory.remember("a", 1)
    inside, go_on = threading.Event(), threading.Event()

    class Slow(MemoryStore):
        def save(self, state: State, /) -> None:
            inside.set()
            assert go_on.wait(30)

    other = Memory(store=Slow(), autosave=True, clock=clock)
    thread = threading.Thread(target=other.remember, args=("k", 1))
    thread.start()
    assert inside.wait(30)
    assert other.get("k") == 1
    go_on.set()
    thread.join(30)
    assert other.remember("l", 1).kept


def test_a_memory_that_nobody_refers_to_is_freed_at_once(clock: FakeClock) -> None:
    """Without the cycle collector; a memory for each request would wait for it."""
    gc.disable()
    try:
        memory = Memory(limit=2, store=MemoryStore(), autosave=True, clock=clock)
        for number in range(5):
            memory.remember(f"k{number}", number, ttl=5)
        memory.recall("k1")
        memory.get_context(100, query="k1", tokenizer=len)
        memory.working.set(step=1)
        memory.cache.put("k", 1)
        with memory.batch():
            memory.forget("k4")
        memory.transact(lambda memory: memory.remember("t", 1))
        memory.load()
        memory.clear()
        seen = weakref.ref(memory)
        contents, saver = weakref.ref(memory._contents), weakref.ref(memory._saver)
        del memory
        assert (seen(), contents(), saver()) == (None, None, None)
    finally:
        gc.enable()
