"""L1: the state of the task at hand."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_memory import Memory, MemoryStore
from support.clocks import FakeClock


def test_set_merges_and_get_gives_a_fresh_copy(clock: FakeClock) -> None:
    working = Memory(clock=clock).working
    working.set({"step": "order", "items": [1]}, guests=2)
    working.set(items=(2, 3))
    working.get()["items"].append(4)
    assert working.get() == {"step": "order", "items": [2, 3], "guests": 2}
    working.clear()
    assert working.get() == {}


def test_working_state_is_empty_an_hour_after_the_last_set(clock: FakeClock) -> None:
    """Reading does not prolong it."""
    working = Memory(clock=clock).working
    working.set(step=1)
    clock.tick(3_599.999)
    assert working.get() == {"step": 1}
    working.set(more=2)
    clock.tick(3_599.999)
    assert working.get() == {"step": 1, "more": 2}
    clock.tick(0.001)
    assert working.get() == {}
    working.set(next=3)
    assert working.get() == {"next": 3}


def test_working_state_is_saved_with_the_entries(clock: FakeClock) -> None:
    """And its hour goes on through a restart; what is over is not written."""
    store = MemoryStore()
    memory = Memory(clock=clock, store=store, autosave=True)
    memory.working.set(step=1)
    assert store.load()["working"] == {  # type: ignore[index]
        "data": {"step": 1},
        "updatedAt": 1_792_310_400_000,
    }
    clock.tick(3_000)
    again = Memory(clock=clock, store=store)
    assert again.working.get() == {"step": 1}
    clock.tick(600)
    assert again.working.get() == {}
    assert again.to_state()["working"] == {"data": {}, "updatedAt": None}


@pytest.mark.parametrize("mapping", ["step", 5, [("a", 1)], {1, 2}])
def test_working_state_that_is_not_a_mapping_is_a_type_error(mapping: Any) -> None:
    with pytest.raises(TypeError, match=r"working\.set takes a mapping"):
        Memory().working.set(mapping)


@pytest.mark.parametrize(
    "malformed",
    [
        None,
        5,
        [],
        {"step": 1},
        {"data": [], "updatedAt": 0},
        {"data": {"a": 1}},
        {"data": {"a": 1}, "updatedAt": None},
        {"data": {"a": 1}, "updatedAt": "now"},
        {"data": {"a": 1}, "updatedAt": True},
        {"data": {"a": "\ud800"}, "updatedAt": 0},
        {"data": {"a": {1}}, "updatedAt": 0},
    ],
    ids=repr,
)
def test_a_malformed_working_state_is_empty_and_counts_as_one_dropped(
    malformed: Any, clock: FakeClock
) -> None:
    memory = Memory(clock=clock)
    memory.working.set(step=1)
    result = memory.restore({"version": 1, "entries": [], "working": malformed})
    assert (result.loaded, result.dropped) == (0, 1)
    assert result.rejected[0].entry == malformed
    assert memory.working.get() == {}


def test_a_document_without_working_state_empties_it(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.working.set(step=1)
    assert memory.restore({"version": 1, "entries": []}).dropped == 0
    assert memory.working.get() == {}
