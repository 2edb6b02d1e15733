"""Saving, loading, and what a stored document must be. Files have tests of their own."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from sentinel_memory import (
    DamagedStoreError,
    LoadResult,
    Memory,
    MemoryStore,
    SentinelMemoryError,
)
from sentinel_memory.stores import State
from support.clocks import FakeClock


class CountingStore(MemoryStore):
    """Counts saves, and fails when told to."""

    def __init__(self, state: State | None = None) -> None:
        super().__init__(state)
        self.saves = 0
        self.fail: BaseException | None = None

    def save(self, state: State, /) -> None:
        if self.fail is not None:
            raise self.fail
        super().save(state)
        self.saves += 1


def document(*entries: Any, **sections: Any) -> dict[str, Any]:
    return {"version": 1, "entries": list(entries), **sections}


def raw(key: Any = "k", **changes: Any) -> dict[str, Any]:
    entry = {
        "key": key,
        "data": "value",
        "importance": 0.5,
        "createdAt": 1_792_310_400_000,
        "updatedAt": 1_792_310_400_000,
        "expiresAt": None,
    }
    return {**entry, **changes}


def test_the_stored_document_has_the_documented_form(clock: FakeClock) -> None:
    """Live entries oldest first, times in epoch milliseconds."""
    memory = Memory(clock=clock)
    memory.remember("gone", 1, ttl=1)
    memory.remember("b", {"x": [1, None]}, importance=1, ttl=60)
    clock.tick(1.5)
    memory.remember("a", "text")
    memory.working.set(step=1)
    assert memory.to_state() == {
        "version": 1,
        "entries": [
            raw("b", data={"x": [1, None]}, importance=1.0, expiresAt=1_792_310_460_000),
            raw("a", data="text", createdAt=1_792_310_401_500, updatedAt=1_792_310_401_500),
        ],
        "working": {"data": {"step": 1}, "updatedAt": 1_792_310_401_500},
    }


def test_a_round_trip_changes_nothing(clock: FakeClock) -> None:
    """Order, ties and expiries are the same after it."""
    memory = Memory(clock=clock)
    for number in range(5):
        memory.remember(f"k{number}", number, importance=0.3, ttl=10 + number)
    again = Memory(clock=clock)
    assert again.restore(memory.to_state()) == LoadResult(loaded=5, dropped=0)
    assert list(again) == list(memory)
    assert again.to_state() == memory.to_state()
    state = memory.to_state()
    again.restore(state)
    state["entries"].clear()
    assert len(again) == 5


def test_making_a_memory_loads_its_store(clock: FakeClock) -> None:
    """Unless ``load=False``."""
    store = MemoryStore(document(raw()))
    assert Memory(store=store, clock=clock).get("k") == "value"
    assert len(Memory(store=store, clock=clock, load=False)) == 0
    assert Memory(store=store, clock=clock).store is store
    assert Memory().store is None


def test_loading_an_empty_store_empties_the_memory(clock: FakeClock) -> None:
    """Cache and counters stay."""
    memory = Memory(limit=1, store=MemoryStore(), clock=clock)
    memory.remember("a", 1)
    memory.remember("b", 1)
    memory.working.set(step=1)
    memory.cache.put("c", 1)
    assert memory.load() == LoadResult(loaded=0, dropped=0)
    assert (len(memory), memory.working.get(), memory.cache.get("c")) == (0, {}, 1)
    assert memory.stats().evicted == 1


def test_autosave_saves_after_every_change_and_only_then(clock: FakeClock) -> None:
    """Not for the cache, not for a read, not for a ``forget`` or ``compact`` of nothing."""
    store = CountingStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    steps: list[tuple[Any, int]] = [
        (lambda: memory.remember("a", 1, ttl=1), 1),
        (lambda: memory.get("a"), 1),
        (lambda: memory.cache.put("a", 1), 1),
        (lambda: memory.working.set(step=1), 2),
        (lambda: memory.working.get(), 2),
        (lambda: memory.forget("nothing"), 2),
        (memory.compact, 2),
        (lambda: clock.tick(1), 2),
        (memory.compact, 3),
        (lambda: memory.remember("b", 1), 4),
        (lambda: memory.forget("b"), 5),
        (memory.working.clear, 6),
        (memory.clear, 7),
        (memory.load, 7),
        (memory.save, 8),
    ]
    for number, (step, saves) in enumerate(steps):
        step()
        assert (number, store.saves) == (number, saves)


def test_without_autosave_leaving_the_block_saves_what_is_unsaved(clock: FakeClock) -> None:
    """Also when it raises; once, and not if nothing changed."""
    store = CountingStore()
    with Memory(store=store, clock=clock) as memory:
        memory.remember("a", 1)
        memory.remember("b", 1)
        assert store.saves == 0
    assert store.saves == 1
    with memory:
        memory.get("a")
    assert store.saves == 1
    with contextlib.suppress(KeyError), memory:
        memory.remember("c", 1)
        raise KeyError
    assert store.saves == 2
    with Memory(clock=clock) as storeless:
        storeless.remember("a", 1)


def test_a_batch_saves_once_at_the_end_of_the_outermost_block(clock: FakeClock) -> None:
    """Also when it raises, and only if anything changed."""
    store = CountingStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    with memory.batch():
        memory.remember("a", 1)
        with memory.batch():
            memory.remember("b", 1)
        assert store.saves == 0
    assert store.saves == 1
    with memory.batch():
        memory.get("a")
    assert store.saves == 1
    with contextlib.suppress(KeyError), memory.batch():
        memory.forget("a")
        raise KeyError
    assert store.saves == 2
    memory.remember("c", 1)
    assert store.saves == 3


def test_without_autosave_a_batch_does_nothing(clock: FakeClock) -> None:
    store = CountingStore()
    memory = Memory(store=store, clock=clock)
    with memory.batch():
        memory.remember("a", 1)
    assert store.saves == 0


@pytest.mark.parametrize("call", ["save", "load"])
def test_save_and_load_without_a_store_are_clear_errors(call: str) -> None:
    with pytest.raises(RuntimeError, match=f"{call} needs a store"):
        getattr(Memory(), call)()


@pytest.mark.parametrize(
    "step",
    [
        lambda memory: memory.remember("b", 2),
        lambda memory: memory.forget("a"),
        lambda memory: memory.clear(),
        lambda memory: memory.working.set(step=2),
        lambda memory: memory.working.clear(),
        lambda memory: memory.compact(),
    ],
)
def test_a_failed_autosave_keeps_the_change_and_the_next_save_writes_it(
    step: Any, clock: FakeClock
) -> None:
    """The error reaches the caller."""
    store = CountingStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    memory.remember("a", 1)
    memory.remember("old", 1, ttl=1)
    memory.working.set(step=1)
    clock.tick(1)
    before = store.load()
    store.fail = OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space left"):
        step(memory)
    assert store.load() == before
    store.fail = None
    with memory:
        pass
    assert store.load() == memory.to_state() != before


def test_repeating_a_deletion_saves_it_after_a_failed_save(
    clock: FakeClock,
) -> None:
    """Though there is nothing left to remove in the memory."""
    store = CountingStore(None)
    memory = Memory(store=store, autosave=True, clock=clock)
    calls: list[Any] = [lambda: memory.forget("a"), memory.compact]
    for call in calls:
        memory.remember("a", 1, ttl=1)
        clock.tick(1)
        store.fail = OSError(28, "No space left on device")
        with pytest.raises(OSError, match="No space left"):
            call()
        store.fail = None
        saves = store.saves
        call()
        assert store.saves == saves + 1
        call()
        assert store.saves == saves + 1


def test_on_evict_is_called_even_if_the_save_failed(clock: FakeClock) -> None:
    """And the save's error is raised afterwards."""
    store = CountingStore()
    seen: list[str] = []
    memory = Memory(
        limit=1,
        store=store,
        autosave=True,
        clock=clock,
        on_evict=lambda compaction: seen.extend(entry.key for entry in compaction.evicted),
    )
    memory.remember("a", 1)
    store.fail = OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space left"):
        memory.remember("b", 1)
    assert seen == ["a"]
    assert "b" in memory


def test_more_than_the_limit_is_compacted_counted_and_not_saved(clock: FakeClock) -> None:
    """``loaded`` counts the valid entries before; ``on_evict`` is not called."""
    store = CountingStore(
        document(*(raw(f"k{n}", importance=n / 10) for n in range(5)), raw("x", expiresAt=0))
    )
    seen: list[Any] = []
    memory = Memory(limit=3, store=store, autosave=True, clock=clock, on_evict=seen.append)
    assert [entry.key for entry in memory] == ["k2", "k3", "k4"]
    stats = memory.stats()
    assert (stats.compactions, stats.expired, stats.evicted) == (1, 1, 2)
    loaded = memory.load()
    assert (loaded.loaded, loaded.dropped, loaded.rejected) == (6, 0, ())
    assert loaded.compaction is not None
    assert [entry.key for entry in loaded.compaction.expired] == ["x"]
    assert [entry.key for entry in loaded.compaction.evicted] == ["k0", "k1"]
    assert seen == []
    assert store.saves == 0


def test_expired_entries_are_valid_stored_and_invisible(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    state = document(raw(expiresAt=1_792_310_400_000), raw("b", expiresAt=1_792_310_400_001))
    assert memory.restore(state) == LoadResult(loaded=2, dropped=0)
    assert [entry.key for entry in memory] == ["b"]
    assert memory.stats().stored == 2


BAD_IMPORTANCE: list[Any] = [None, True, "0.5", -0.1, 1.1, float("nan"), []]
BAD_CREATEDAT: list[Any] = [None, True, "0", float("inf"), 10**400, []]
BAD_UPDATEDAT: list[Any] = [None, True, "0", float("nan")]
BAD_EXPIRESAT: list[Any] = [True, "never", float("inf"), {}]
INVALID: list[Any] = [
    None,
    5,
    "k",
    [],
    {},
    raw(None),
    raw(5),
    raw(""),
    raw("\ud800"),
    {name: value for name, value in raw().items() if name != "data"},
    raw(data="\ud800"),
    raw(data={"a": float("nan")}),
    *(raw(importance=v) for v in BAD_IMPORTANCE),
    *(raw(createdAt=v) for v in BAD_CREATEDAT),
    *(raw(updatedAt=v) for v in BAD_UPDATEDAT),
    *(raw(expiresAt=v) for v in BAD_EXPIRESAT),
]


@pytest.mark.parametrize("junk", INVALID, ids=lambda junk: str(junk)[:60])
def test_an_invalid_entry_is_dropped_counted_and_never_repaired(
    junk: Any, clock: FakeClock
) -> None:
    """The others are loaded."""
    memory = Memory(clock=clock)
    result = memory.restore(document(raw("a"), junk, raw("b")))
    assert (result.loaded, result.dropped) == (2, 1)
    assert len(result.rejected) == 1
    assert result.rejected[0].entry is junk
    assert result.rejected[0].reason
    assert [entry.key for entry in memory] == ["a", "b"]


def test_times_are_floored_and_an_absent_expiry_is_none(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    entry = raw(createdAt=-0.5, updatedAt=1.9)
    del entry["expiresAt"]
    memory.restore(document(entry))
    assert memory.to_state()["entries"] == [raw(createdAt=-1, updatedAt=1)]


def test_of_two_stored_entries_with_one_key_the_later_is_kept(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    result = memory.restore(document(raw(data="first"), raw("b"), raw(data="second")))
    assert (result.loaded, result.dropped) == (2, 1)
    assert result.rejected == ((raw(data="first"), "its key comes again later"),)
    assert [entry.data for entry in memory] == ["value", "second"]
    assert memory.restore(document(raw(data="first"), raw(importance=7))).loaded == 1


def test_rejected_entries_live_on_through_saves_and_are_not_counted_again(
    clock: FakeClock,
) -> None:
    """So that the next save does not erase what a person wrote."""
    typo = raw("user:plan", importance="high")
    surrogate = raw("s", data="\ud800")
    store = MemoryStore(document(raw(), typo, surrogate))
    memory = Memory(store=store, autosave=True, clock=clock)
    for _ in range(3):
        memory.remember("new", 1)
        kept = store.load()["rejected"]  # type: ignore[index]
        assert [item["entry"] for item in kept] == [typo, surrogate]
        assert kept[0]["reason"] == "importance must be a number in [0, 1]"
        assert memory.load().dropped == 0
    assert not memory.forget("user:plan")
    assert [i["entry"] for i in store.load()["rejected"]] == [surrogate]  # type: ignore[index]
    memory.clear()
    assert "rejected" not in store.load()  # type: ignore[operator]


def test_sections_of_other_versions_are_kept(clock: FakeClock) -> None:
    """Through a load and a save, whatever is in them."""
    later = {"transcript": [{"a": ["\ud800", 10**30]}], "": None}
    store = MemoryStore(document(raw(), **later))
    memory = Memory(store=store, autosave=True, clock=clock)
    memory.remember("new", 1)
    state = store.load()
    assert state is not None
    assert {name: state[name] for name in later} == later


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({}, "version must be the integer 1, not None"),
        ({"version": 1}, "entries are missing or not a list"),
        ({"version": 1, "entries": {}}, "entries are missing or not a list"),
        ({"version": True, "entries": []}, "version must be the integer 1, not True"),
        ({"version": 1.0, "entries": []}, "version must be the integer 1, not 1.0"),
        ({"version": "1", "entries": []}, "version must be the integer 1, not '1'"),
        (
            {"version": 2, "entries": []},
            "2, from a newer release; this one reads version 1 only",
        ),
        (document(later={1}), "section 'later' is not JSON data"),
    ],
)
def test_a_document_that_cannot_be_trusted_changes_nothing(
    state: Any, reason: str, clock: FakeClock
) -> None:
    """Neither as a state nor from a store."""
    memory = Memory(clock=clock)
    memory.remember("a", 1)
    memory.working.set(step=1)
    before = memory.to_state()
    with pytest.raises(DamagedStoreError, match=reason) as caught:
        memory.restore(state)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, SentinelMemoryError)
    assert caught.value.path is None
    assert memory.to_state() == before


@pytest.mark.parametrize("state", [None, [], "{}", 5])
def test_a_state_that_is_not_a_dict_is_a_type_error(state: Any, clock: FakeClock) -> None:
    with pytest.raises(TypeError, match="state must be a dict"):
        Memory(clock=clock).restore(state)

    class Odd(MemoryStore):
        def load(self) -> Any:
            return state

    if state is not None:
        with pytest.raises(DamagedStoreError, match="must be an object"):
            Memory(store=Odd(), clock=clock)


class Notes:
    """A section of a program's own."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def dump(self, *, now: int) -> Any:
        return self.notes

    def restore(self, value: Any, /, *, now: int) -> None:
        if not isinstance(value, list):
            raise ValueError("notes must be a list")
        self.notes = list(value)

    def clear(self) -> None:
        self.notes = []


def test_a_section_can_be_attached(clock: FakeClock) -> None:
    """It is saved, restored and cleared with the memory; what was already loaded is handed over."""
    store = CountingStore(document(notes=["first"]))
    memory = Memory(store=store, autosave=True, clock=clock)
    notes = Notes()
    attached = memory.attach("notes", notes)
    assert notes.notes == ["first"]

    def note(now: int) -> int:
        notes.notes.append("second")
        return now

    assert attached.change(note) == 1_792_310_400_000
    assert store.load()["notes"] == ["first", "second"]  # type: ignore[index]
    with pytest.raises(ValueError, match="not in list"):
        attached.change(lambda _: notes.notes.index("no such note"))
    assert store.saves == 1
    assert attached.read(lambda _: len(notes.notes)) == 2
    assert store.saves == 1
    memory.clear()
    assert notes.notes == []
    memory.restore(document(notes=["third"]))
    assert notes.notes == ["third"]
    assert memory.restore(document(notes=5)).dropped == 1
    assert notes.notes == []
    memory.restore(document())
    assert notes.notes == []


def test_a_malformed_section_is_rejected_when_it_is_attached(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    assert memory.restore(document(notes={"typo": 1})).dropped == 0
    memory.attach("notes", Notes())
    assert memory.to_state()["rejected"] == [
        {"entry": {"typo": 1}, "reason": "section notes: notes must be a list"}
    ]
    assert memory.to_state()["notes"] == []


@pytest.mark.parametrize("name", ["version", "entries", "rejected", "working"])
def test_a_name_that_is_taken_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"already has a section '{name}'"):
        Memory().attach(name, Notes())


def test_a_section_without_its_methods_is_refused_when_it_is_attached() -> None:
    """Not when the memory is saved the next time."""
    memory = Memory(store=CountingStore(None), autosave=True)
    with pytest.raises(TypeError, match="section must be an object with the methods dump, restore"):
        memory.attach("notes", object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not the class Notes itself"):
        memory.attach("notes", Notes)  # type: ignore[arg-type]
    memory.remember("a", 1)
    assert "notes" not in memory.to_state()


def test_saves_of_one_memory_are_in_order_and_each_is_the_whole_document(
    clock: FakeClock,
) -> None:
    states: list[str] = []

    class Log(MemoryStore):
        def save(self, state: State, /) -> None:
            states.append(json.dumps(state))

    memory = Memory(store=Log(), autosave=True, clock=clock)
    memory.remember("a", 1)
    memory.remember("b", 1)
    assert [len(json.loads(state)["entries"]) for state in states] == [1, 2]
