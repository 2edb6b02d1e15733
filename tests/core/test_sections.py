"""Sections that observe what leaves a memory, and stored fields of later releases."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_memory import JsonFileStore, Memory, MemoryStore
from sentinel_memory.results import Events
from support.clocks import FakeClock


class Observer:
    """A section that keeps the events it is told, as cause and key."""

    def __init__(self) -> None:
        self.told: list[list[str]] = []
        self.compactions = 0

    def observe(self, events: Events, *, now: int) -> None:
        self.told.append([f"{cause} {entry.key}" for cause, entry in events.removed])
        self.compactions += events.compactions

    def dump(self, *, now: int) -> Any:
        return self.told

    def restore(self, value: Any, /, *, now: int) -> None:
        self.told = list(value)

    def clear(self) -> None:
        self.told = []


def test_an_observing_section_is_told_of_every_entry_that_leaves_and_the_cause(
    clock: FakeClock,
) -> None:
    memory = Memory(limit=3, clock=clock)
    observer = Observer()
    memory.attach("observer", observer)
    memory.remember("a", 1, importance=0.9)
    memory.remember("b", 1, importance=0.1)
    memory.remember("c", 1, importance=0.5, ttl=60)
    assert observer.told == []
    memory.remember("a", 2)
    assert observer.told.pop() == ["replaced a"]
    memory.remember("d", 1, importance=0.2)
    assert observer.told.pop() == ["evicted b"]
    clock.tick(60)
    memory.remember("e", 1)
    assert observer.told.pop() == ["expired c"]
    memory.forget("d")
    assert observer.told.pop() == ["forgotten d"]
    memory.forget("d")
    assert observer.told == []
    memory.remember("f", 1, ttl=1)
    clock.tick(1)
    memory.forget("f")
    assert observer.told.pop() == ["expired f"]
    assert observer.compactions == 2
    memory.clear()
    assert observer.told == [["forgotten a", "forgotten e"]]


def test_an_observer_is_told_before_the_save_and_undone_with_its_transaction(
    clock: FakeClock,
) -> None:
    store = MemoryStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    observer = Observer()
    memory.attach("observer", observer)
    memory.remember("a", 1)
    memory.forget("a")
    assert (store.load() or {})["observer"] == [["forgotten a"]]
    memory.remember("b", 1)

    def change(memory: Memory) -> None:
        memory.forget("b")
        raise KeyError

    with pytest.raises(KeyError):
        memory.transact(change)
    assert observer.told == [["forgotten a"]]
    assert memory.get("b") == 1


def test_an_observer_is_told_of_entries_over_the_limit_of_a_load(clock: FakeClock) -> None:
    full = Memory(clock=clock)
    for number in range(4):
        full.remember(f"k{number}", number, importance=number / 4)
    memory = Memory(limit=2, clock=clock)
    observer = Observer()
    memory.attach("observer", observer)
    memory.restore(full.to_state())
    assert observer.told == [["evicted k0", "evicted k1"]]
    assert observer.compactions == 1


def test_stored_fields_that_are_not_known_are_kept_through_a_load_and_a_save(
    clock: FakeClock, tmp_path: Any
) -> None:
    """As a later release writes them: an older process on the same file does not erase them."""
    stored = {
        "key": "k",
        "data": "v",
        "importance": 0.5,
        "createdAt": 0,
        "updatedAt": 0,
        "expiresAt": None,
        "colour": "red",
        "weights": {"a": [1, 2.5, None]},
        "half of a pair": "\ud800",
    }
    store = JsonFileStore(tmp_path / "m.json")
    store.save({"version": 1, "entries": [stored]})
    memory = Memory(store=store, clock=clock)
    memory.remember("other", 1)
    memory.save()
    saved = (JsonFileStore(tmp_path / "m.json").load() or {})["entries"]
    assert saved[0] == stored
    assert set(saved[1]) == {"key", "data", "importance", "createdAt", "updatedAt", "expiresAt"}
    entry = memory.entry("k")
    assert entry is not None
    assert entry.to_state() == stored
    memory.remember("k", "w")
    assert memory.to_state()["entries"][1]["data"] == "w"
    assert "colour" not in memory.to_state()["entries"][1]


def test_an_unknown_field_that_is_not_json_data_is_a_reason_to_reject_the_entry() -> None:
    """Which only a program can hand over, not a file."""
    fields = {"importance": 0.5, "createdAt": 0, "updatedAt": 0}
    odd = {"key": "odd", "data": 1, **fields, "colour": {1, 2}}
    result = Memory().restore({"version": 1, "entries": [odd, {"key": "k", "data": 1, **fields}]})
    assert (result.loaded, result.dropped) == (1, 1)
    assert "a field is not JSON data" in result.rejected[0].reason


def test_an_entry_refuses_assignment_and_deletion() -> None:
    entry = Memory().remember("k", 1).entry
    for name in ("importance", "key", "line", "nothing"):
        with pytest.raises(AttributeError):
            setattr(entry, name, 1)
    with pytest.raises(AttributeError):
        del entry.line
    assert entry.importance == 0.5


def test_a_name_that_a_reason_could_not_hold_is_refused(clock: FakeClock) -> None:
    """The reason of a rejected section begins with its name, a colon and a space."""
    memory = Memory(clock=clock)
    with pytest.raises(ValueError, match="a colon and a space"):
        memory.attach("a: b", Observer())
    memory.attach("session:1", Observer())
    assert "session:1" in memory.to_state()
