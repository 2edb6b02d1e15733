"""A document knows its limit, so that a script without options deletes nothing."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import DamagedStoreError, IgnoredValueWarning, Memory, MemoryStore
from support.clocks import FakeClock


def filled(count: int, clock: FakeClock, **options: Any) -> Memory:
    memory = Memory(limit=max(count, 1), clock=clock, **options)
    for number in range(count):
        memory.remember(f"k{number}", number)
    return memory


def test_a_script_without_options_deletes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "m.json"
    with Memory.open(path, limit=5_000, clock=clock) as memory, memory.batch():
        for number in range(5_000):
            memory.remember(f"k{number}", number)
    with Memory.open(path, clock=clock) as memory:
        done = memory.remember("x", 1)
        assert memory.stats().limit == 5_000
        assert done.compaction is not None
        assert [entry.key for entry in done.compaction.evicted] == ["k0"]
    assert len(Memory.open(path, clock=clock)) == 5_000


def test_a_document_without_a_limit_loses_nothing(clock: FakeClock) -> None:
    """As one that another program wrote: room for what it has, and at least 500."""
    state = filled(700, clock).to_state()
    del state["limit"]
    memory = Memory(clock=clock)
    assert memory.restore(state).compaction is None
    assert (len(memory), memory.stats().limit) == (700, 700)
    assert memory.to_state()["limit"] == 700
    memory.restore({**state, "entries": state["entries"][:2]})
    assert memory.stats().limit == 500
    assert "limit" not in memory.to_state()


def test_an_explicit_limit_takes_precedence_over_the_stored_one(clock: FakeClock) -> None:
    state = filled(10, clock).to_state()
    assert state["limit"] == 10
    memory = Memory(limit=3, clock=clock)
    compaction = memory.restore(state).compaction
    assert compaction is not None
    assert len(compaction.evicted) == 7
    assert memory.to_state()["limit"] == 3


@pytest.mark.parametrize("given", [None, "7", 0, -1, 2.5, True, float("nan")])
def test_with_an_invalid_limit_option_the_stored_limit_applies(
    given: Any, clock: FakeClock
) -> None:
    with nullcontext() if given is None else pytest.warns(IgnoredValueWarning):
        memory = Memory(limit=given, clock=clock)
    assert memory.stats().limit == 500
    memory.restore(filled(10, clock).to_state())
    assert memory.stats().limit == 10


@pytest.mark.parametrize("stored", ["7", 0, -1, 2.5, True, [10], {}])
def test_an_invalid_limit_in_a_document_is_rejected(stored: Any, clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    result = memory.restore({**filled(3, clock).to_state(), "limit": stored})
    assert (result.loaded, result.dropped) == (3, 1)
    assert "limit" in result.rejected[0].reason
    assert memory.stats().limit == 500
    assert memory.to_state()["rejected"][0]["entry"] == stored


def test_the_limit_is_undone_with_a_load_that_fails_and_stays_at_a_clear(
    clock: FakeClock,
) -> None:
    store = MemoryStore(filled(10, clock).to_state())
    memory = Memory(store=store, clock=clock)

    class Refusing:
        def dump(self, *, now: int) -> Any:
            return None

        def restore(self, value: Any, /, *, now: int) -> None:
            raise KeyError

        def clear(self) -> None:
            pass

    memory.attach("odd", Refusing())
    state = {**filled(20, clock).to_state(), "odd": 1}
    with pytest.raises(KeyError):
        memory.restore(state)
    assert (memory.stats().limit, len(memory)) == (10, 10)
    memory.clear()
    assert memory.stats().limit == 10


def test_expired_entries_do_not_outlive_a_save(tmp_path: Path, clock: FakeClock) -> None:
    """Neither in the file nor in the process; a read removes nothing."""
    path = tmp_path / "m.json"
    memory = Memory.open(path, clock=clock)
    memory.remember("secret", "zanzibar", ttl=60)
    memory.remember("other", 1)
    clock.tick(60)
    assert "secret" not in memory
    assert memory.stats().stored == 2
    memory.remember("other", 2)
    assert memory.stats().stored == 1
    assert memory.stats().expired == 0
    assert "zanzibar" not in path.read_text()
    assert json.loads(path.read_text())["entries"][0]["key"] == "other"


def test_a_document_of_which_more_than_a_thousand_items_are_invalid_is_damaged(
    clock: FakeClock,
) -> None:
    memory = filled(2, clock)
    document = {"version": 1, "entries": [{"key": f"k{n}"} for n in range(1_000)]}
    assert memory.restore(document).dropped == 1_000
    document["entries"] = [{"key": f"k{n}"} for n in range(1_001)]
    with pytest.raises(DamagedStoreError, match="1001 of its entries are not valid"):
        memory.restore(document)


def test_equal_rejected_items_are_kept_once_however_often_they_come(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.restore({"version": 1, "entries": [5, 5, {"key": "k"}, {"key": "k"}, 5]})
    state = memory.to_state()
    assert [item["entry"] for item in state["rejected"]] == [5, {"key": "k"}]
    memory.restore({**state, "entries": [{"key": "k"}, 5]})
    assert memory.to_state() == state


def test_rejected_items_are_removed_when_their_key_is_forgotten_or_unreadable(
    clock: FakeClock,
) -> None:
    """An item without a readable key goes with a key that is in it, or with the last entry."""
    memory = Memory(clock=clock)
    items: list[Any] = [{"key": "a", "data": "A"}, ["b", "B"], {"name": "Ž:c", "x": 1}, 5]
    memory.restore({"version": 1, "entries": [*items, filled(1, clock).to_state()["entries"][0]]})

    def left() -> list[Any]:
        return [item["entry"] for item in memory.to_state().get("rejected", [])]

    assert left() == items
    memory.forget("a")
    assert left() == items[1:]
    memory.forget("b")
    assert left() == items[2:]
    memory.forget("Ž:c")
    assert left() == [5]
    assert memory.last_load is not None
    assert [item.entry for item in memory.last_load.rejected] == [5]
    memory.forget("k0")
    assert left() == []


def test_forget_and_clear_let_the_store_sweep_files_of_dead_writers(
    clock: FakeClock,
) -> None:
    """Also a ``forget`` that finds nothing."""

    class Sweeping(MemoryStore):
        swept = 0

        def sweep(self) -> None:
            self.swept += 1

    store = Sweeping()
    memory = Memory(store=store, autosave=True, clock=clock)
    memory.forget("nothing")
    assert store.swept == 1
    memory.clear()
    assert store.swept == 2


def test_clearing_a_section_removes_its_rejected_items(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    document = {"version": 1, "entries": [], "working": {"data": ["zanzibar"]}}
    assert memory.restore(document).dropped == 1
    assert "zanzibar" in json.dumps(memory.to_state())
    memory.working.clear()
    assert "zanzibar" not in json.dumps(memory.to_state())


def test_last_load_holds_no_forgotten_text(clock: FakeClock) -> None:
    memory = Memory(limit=1, clock=clock)
    assert memory.last_load is None
    state = filled(3, clock).to_state()
    result = memory.restore({**state, "entries": [*state["entries"], {"key": "odd", "x": "y"}]})
    assert memory.last_load == result
    memory.forget("k0")
    memory.forget("odd")
    assert memory.last_load is not None
    assert memory.last_load.compaction is not None
    assert [entry.key for entry in memory.last_load.compaction.evicted] == ["k1"]
    assert memory.last_load.rejected == ()
    memory.clear()
    assert memory.last_load.compaction is None


@pytest.mark.parametrize(
    "state",
    [
        {"version": 10**5000, "entries": []},
        {"version": 1, "entries": [], "rejected": [{1, 2}]},
        {"version": 1, "entries": [], "rejected": [[object()]]},
    ],
)
def test_a_state_that_cannot_be_a_document_is_damaged_and_changes_nothing(
    state: dict[str, Any], clock: FakeClock
) -> None:
    memory = Memory(clock=clock)
    memory.remember("k", "kept")
    before = memory.to_state()
    with pytest.raises(DamagedStoreError):
        memory.restore(state)
    assert memory.to_state() == before


def test_rejected_items_with_keys_of_several_types_are_kept(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.restore({"version": 1, "entries": [], "rejected": [{1: 1, "a": 2}]})
    assert memory.to_state()["rejected"] == [{"1": 1, "a": 2}]
