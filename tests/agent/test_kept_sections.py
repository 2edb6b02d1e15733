"""Identity, incidents and audit: sections of the document, saved in the change they record."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import IgnoredValueWarning, Memory, MemoryStore, StoreConflictError
from sentinel_memory.agent import Audit, Identity, Incidents
from support.clocks import FakeClock

DAY = 86_400.0
MISSION = {"mission": "Keep the site up.", "never": ["Delete a backup.", "Guess."]}


# Incidents


def test_the_level_of_an_incident_halves_with_each_half_life(clock: FakeClock) -> None:
    incidents = Incidents(Memory(clock=clock), ["down"], half_life=timedelta(days=30))
    assert incidents.snapshot() == {"down": (0, 0.0, None)}
    assert incidents.record("down") == (1, 1.0, clock.now)
    clock.tick(30 * DAY)
    assert incidents.record("down", 2).level == 2.5
    clock.tick(365 * DAY)
    assert incidents.snapshot()["down"].count == 3
    assert incidents.snapshot()["down"].level == pytest.approx(2.5 * 0.5 ** (365 / 30))


def test_levels_of_several_days_add_up(clock: FakeClock) -> None:
    incidents = Incidents(Memory(clock=clock), ["down"], half_life=30 * DAY)
    for days in (0, 10, 30):
        clock.tick(days * DAY)
        incidents.record("down")
    assert round(incidents.snapshot()["down"].level, 4) == 1.8969


def test_an_unknown_category_is_an_error_and_a_stored_one_stays(clock: FakeClock) -> None:
    store = MemoryStore()
    incidents = Incidents(Memory(store=store, autosave=True, clock=clock), ["down", "slow"])
    incidents.record("slow")
    with pytest.raises(ValueError, match=r"securty.*down, slow"):
        incidents.record("securty")
    memory = Memory(store=store, autosave=True, clock=clock)
    renamed = Incidents(memory, ["down"])
    with pytest.raises(ValueError, match="slow"):
        renamed.record("slow")
    renamed.record("down")
    assert {name: one.count for name, one in renamed.snapshot().items()} == {"down": 1, "slow": 1}
    again = Incidents(Memory(store=store, clock=clock), ["slow"])
    assert again.snapshot()["slow"].count == 1
    memory.clear()
    assert renamed.snapshot() == {"down": (0, 0.0, None)}


def test_a_clock_that_goes_back_changes_no_level(clock: FakeClock) -> None:
    incidents = Incidents(Memory(clock=clock), ["down"], half_life=DAY)
    incidents.record("down")
    clock.tick(-10 * DAY)
    assert incidents.record("down") == (2, 2.0, clock.now + 10 * DAY)


@pytest.mark.parametrize("wrong", [0, -1, "90", True, float("nan")])
def test_numbers_out_of_range_are_ignored_with_a_warning(clock: FakeClock, wrong: Any) -> None:
    with pytest.warns(IgnoredValueWarning, match="half_life"):
        incidents = Incidents(Memory(clock=clock), ["down"], half_life=wrong)
    with pytest.warns(IgnoredValueWarning, match="n must"):
        assert incidents.record("down", wrong).count == 1
    clock.tick(90 * DAY)
    assert incidents.snapshot()["down"].level == 0.5


def test_incidents_with_an_infinite_half_life_never_fade(clock: FakeClock) -> None:
    incidents = Incidents(Memory(clock=clock), ["down"], half_life=float("inf"))
    incidents.record("down")
    clock.tick(10_000 * DAY)
    assert incidents.snapshot()["down"].level == 1.0


@pytest.mark.parametrize(
    "stored",
    [
        [],
        {"down": 1},
        {"down": {"count": 0, "level": 0, "at": 0}},
        {"down": {"count": 1, "level": 1.5, "at": 0}},
        {"down": {"count": 1, "level": "1", "at": 0}},
        {"down": {"count": True, "level": 1, "at": 0}},
        {"down": {"count": 1, "level": 1, "at": None}},
    ],
)
def test_an_invalid_stored_section_is_rejected(clock: FakeClock, stored: Any) -> None:
    memory = Memory(clock=clock)
    incidents = Incidents(memory, ["down"])
    state = {**memory.to_state(), "incidents": stored}
    assert memory.restore(state).dropped == 1
    assert incidents.snapshot()["down"].count == 0


# Identity


def test_the_identity_in_the_code_takes_precedence_over_the_stored_one(clock: FakeClock) -> None:
    store = MemoryStore()
    first = Memory(store=store, autosave=True, clock=clock)
    Identity(first, {"mission": "old"}, version=1)
    first.remember("a", 1)
    assert (store.load() or {})["identity"] == {"version": 1, "data": {"mission": "old"}}
    memory = Memory(store=store, clock=clock)
    identity = Identity(memory, MISSION, version=2)
    assert (identity.version, identity.stored_version) == (2, 1)
    assert identity.data == MISSION
    memory.save()
    assert identity.stored_version == 2
    assert (store.load() or {})["identity"] == {"version": 2, "data": MISSION}
    older = Identity(Memory(store=store, clock=clock), {"mission": "old"}, version=1)
    assert (older.version, older.stored_version) == (1, 2)
    assert older.data == {"mission": "old"}


def test_an_identity_outlives_clear_and_loads_in_the_same_change(clock: FakeClock) -> None:
    store = MemoryStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    identity = Identity(memory, MISSION)
    memory.remember("a", 1)
    memory.clear()
    saved = store.load() or {}
    assert saved["identity"]["data"] == MISSION
    assert saved["entries"] == []
    memory.restore({"version": 1, "entries": [], "identity": {"version": 1, "data": "evil"}})
    assert identity.data == MISSION
    assert identity.stored_version == 1
    assert memory.restore({"version": 1, "entries": [], "identity": "evil"}).dropped == 1
    assert identity.data == MISSION
    assert identity.stored_version is None
    identity.data["mission"] = "changed"
    assert identity.data == MISSION


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Be kind.", "Be kind."),
        (MISSION, "mission: Keep the site up.\nnever:\n- Delete a backup.\n- Guess."),
        (["a", ["b", "c"], {"d": 1}], "- a\n-\n  - b\n  - c\n-\n  d: 1"),
        ({"name": "Rock", "limits": {"money": 0, "ok": True}},
         "name: Rock\nlimits:\n  money: 0\n  ok: true"),
        ({"note": "two\nlines", "none": []}, "note: two\n  lines\nnone:"),
    ],
)  # fmt: skip
def test_an_identity_is_readable_text(data: Any, text: str) -> None:
    assert Identity(Memory(), data).text == text


@pytest.mark.parametrize("wrong", [0, -1, "1", True, 1.5, None])
def test_a_version_is_a_whole_number(wrong: Any) -> None:
    with pytest.raises(ValueError, match="version"):
        Identity(Memory(), "x", version=wrong)


def test_an_identity_is_json_and_its_name_is_free() -> None:
    memory = Memory()
    with pytest.raises(TypeError):
        Identity(memory, {1, 2})
    Identity(memory, "x")
    with pytest.raises(ValueError, match="identity"):
        Identity(memory, "x")


# Audit


def test_entries_that_leave_are_counted_by_cause_and_kind(clock: FakeClock) -> None:
    memory = Memory(limit=3, clock=clock)
    audit = Audit(memory)
    memory.remember("chat:1", "a", importance=0.1)
    memory.remember("chat:1", "a")
    memory.remember("chat:1", "b")
    memory.remember("note:1", "a", ttl=60)
    memory.remember("user:1", "a", importance=0.9)
    before = audit.tally()
    assert tuple(before) == (0, {("replaced", "chat"): 1}, 1, None)
    clock.tick(60)
    memory.remember("user:2", "a", importance=0.9)
    memory.remember("user:3", "a", importance=0.9)
    at = clock.now
    clock.tick(5)
    memory.forget("user:1")
    later = audit.tally() - before
    assert later.removed == {
        ("expired", "note"): 1,
        ("evicted", "chat"): 1,
        ("forgotten", "user"): 1,
    }
    assert (later.compactions, later.repeated, later.last_at) == (2, 0, at)


def test_an_audit_goes_on_after_a_restart(clock: FakeClock, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    memory = Memory.open(path, limit=1, clock=clock)
    first = Audit(memory)
    for number in range(3):
        memory.remember(f"chat:{number}", number)
    earlier = first.tally()
    again = Memory.open(path, limit=1, clock=clock)
    audit = Audit(again)
    assert audit.tally() == earlier
    again.remember("chat:9", 1)
    assert (audit.tally() - earlier).removed == {("evicted", "chat"): 1}


def test_a_transaction_that_is_undone_counts_nothing(clock: FakeClock, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    memory, other = (Memory.open(path, clock=clock) for _ in range(2))
    audit = Audit(memory)
    Audit(other)
    for number in range(4):
        memory.remember(f"chat:{number}", number)
    tries = []

    def change(of: Memory) -> None:
        of.forget("chat:0")
        tries.append(1)
        if len(tries) == 1:
            raise KeyError

    with pytest.raises(KeyError):
        memory.transact(change)
    assert audit.tally().removed == {}
    memory.transact(change)
    assert audit.tally().removed == {("forgotten", "chat"): 1}
    other.load()
    other.forget("chat:1")
    with pytest.raises(StoreConflictError):
        memory.forget("chat:2")
    memory.load()
    assert audit.tally().removed == {("forgotten", "chat"): 2}


def test_an_audit_of_a_cleared_memory_starts_with_the_cleared_entries(clock: FakeClock) -> None:
    memory = Memory(limit=2, clock=clock)
    audit = Audit(memory)
    for number in range(5):
        memory.remember(f"chat:{number}", number)
    before = audit.tally()
    memory.clear()
    assert tuple(audit.tally()) == (0, {("forgotten", "chat"): 2}, 0, None)
    assert (audit.tally() - before).removed == {("evicted", "chat"): -3, ("forgotten", "chat"): 2}


def test_entries_over_the_limit_of_a_load_are_counted_once(
    clock: FakeClock, tmp_path: Path
) -> None:
    path = tmp_path / "m.json"
    full = Memory.open(path, clock=clock)
    for number in range(4):
        full.remember(f"chat:{number}", number)
    memory = Memory.open(path, limit=1, clock=clock)
    assert Audit(memory).tally().removed == {("evicted", "chat"): 3}
    again = Memory.open(path, limit=1, clock=clock)
    assert Audit(again).tally().removed == {("evicted", "chat"): 3}


def test_an_audit_of_made_up_kinds_stays_small(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    audit = Audit(memory)
    for number in range(1_100):
        memory.remember(f"k{number}:x", 1)
        memory.forget(f"k{number}:x")
    removed = audit.tally().removed
    assert len(removed) == 1_001
    assert removed["forgotten", "*"] == 100


@pytest.mark.parametrize(
    "stored",
    [
        None,
        {"compactions": 1},
        {"compactions": 1, "removed": {"lost": {}}, "repeated": 0},
        {"compactions": -1, "removed": {}, "repeated": 0},
        {"compactions": 1, "removed": {"evicted": {"chat": 0}}, "repeated": 0},
        {"compactions": 1, "removed": {}, "repeated": True},
        {"compactions": 1, "removed": {}, "repeated": 0, "lastAt": "today"},
    ],
)
def test_an_invalid_stored_audit_is_rejected(clock: FakeClock, stored: Any) -> None:
    memory = Memory(clock=clock)
    audit = Audit(memory)
    assert memory.restore({**memory.to_state(), "audit": stored}).dropped == 1
    assert audit.tally() == (0, {}, 0, None)
