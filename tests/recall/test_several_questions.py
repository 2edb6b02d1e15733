"""A question and other words for it, and what an index prepares before any lock is taken."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from sentinel_memory import DamagedStoreError, Memory, WordIndex
from support.clocks import FakeClock


def test_other_words_for_a_question_count_seven_tenths(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.remember("a", "refund")
    memory.remember("b", "money back")
    found = memory.recall(["refund", "money back"])
    assert [(match.key, match.relevance) for match in found] == [("a", 1.0), ("b", 0.7)]
    assert memory.get_context(3, query=("refund", "money back")).text == "a: refund"


@pytest.mark.parametrize("query", [[], (), 5, b"refund", {"refund"}, ["refund", 5]])
def test_another_query_is_a_type_error(query: Any, clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    with pytest.raises(TypeError, match="query must be a str"):
        memory.recall(query)
    with pytest.raises(TypeError, match="query must be a str"):
        memory.get_context(10, query=query)


def test_an_index_prepares_without_a_lock(clock: FakeClock) -> None:
    """Another thread reads and writes meanwhile; what preparing raises reaches the caller."""

    class Slow(WordIndex):
        def prepare(self, query: str) -> None:
            if query == "down":
                raise OSError("no embedder")
            thread = threading.Thread(target=memory.remember, args=("other", query), daemon=True)
            thread.start()
            thread.join(30)
            assert not thread.is_alive()

    memory = Memory(index=Slow(), clock=clock)
    assert [match.key for match in memory.recall("tea")] == ["other"]
    assert memory.get_context(100, query="coffee").text == "other: coffee"
    with pytest.raises(OSError, match="no embedder"):
        memory.recall("down")


def test_a_state_that_no_save_could_write_is_refused(clock: FakeClock) -> None:
    """With nothing changed: as a section, and as an entry that would be rejected."""
    memory = Memory(clock=clock)
    memory.remember("k", 1)
    deep: list[Any] = []
    for _ in range(250):
        deep = [deep]
    good = memory.to_state()
    for state in ({**good, "notes": deep}, {**good, "entries": [{"key": "x", "data": deep}]}):
        with pytest.raises(DamagedStoreError, match="levels"):
            memory.restore(state)
        assert memory.to_state() == good
