"""Several processes with one file: nothing is lost without an error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import DamagedStoreError, Memory, StoreConflictError
from support.clocks import FakeClock

COUNT = """
import sys
from sentinel_memory import Memory
memory = Memory.open(sys.argv[1])
for _ in range(100):
    memory.transact(lambda memory: memory.remember("count", memory.get("count", 0) + 1))
"""

REMEMBER = """
import json, sys
from sentinel_memory import Memory, StoreConflictError
memory = Memory.open(sys.argv[1], limit=1000)
landed = []
for number in range(50):
    key = f"{sys.argv[2]}:{number}"
    try:
        memory.remember(key, number)
        landed.append(key)
    except StoreConflictError:
        memory.load()
        try:
            memory.remember(key, number)
            landed.append(key)
        except StoreConflictError:
            memory.load()
print(json.dumps(landed))
"""


def in_processes(code: str, path: Path) -> list[str]:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    printed = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    return printed


def test_four_processes_count_to_400_together(tmp_path: Path) -> None:
    """100 transactions each on one file."""
    path = tmp_path / "count.json"
    in_processes(COUNT, path)
    assert Memory.open(path).get("count") == 400


def test_every_remember_of_four_processes_is_saved_or_raises(tmp_path: Path) -> None:
    """50 with autosave each: what raised nothing is in the file at the end."""
    path = tmp_path / "many.json"
    landed = [key for line in in_processes(REMEMBER, path) for key in json.loads(line)]
    assert len(landed) == len(set(landed)) > 0
    assert {entry.key for entry in Memory.open(path, limit=1000)} == set(landed)


def two(path: Path, clock: FakeClock) -> tuple[Memory, Memory]:
    one = Memory.open(path, clock=clock)
    one.remember("start", 1)
    return one, Memory.open(path, clock=clock)


def test_a_conflict_leaves_both_states_intact(tmp_path: Path, clock: FakeClock) -> None:
    """And loading adopts the other one."""
    path = tmp_path / "m.json"
    one, other = two(path, clock)
    other.remember("other", 1)
    theirs = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StoreConflictError):
            one.remember("one", 1)
        assert path.read_bytes() == theirs
        assert "one" in one
    one.load()
    assert [entry.key for entry in one] == ["start", "other"]
    one.remember("one", 1)
    assert len(Memory.open(path, clock=clock)) == 3


def test_loading_the_store_and_saving_overwrites_on_purpose(
    tmp_path: Path, clock: FakeClock
) -> None:
    path = tmp_path / "m.json"
    one, other = two(path, clock)
    other.remember("other", 1)
    with pytest.raises(StoreConflictError):
        one.remember("one", 1)
    assert one.store is not None
    one.store.load()
    one.save()
    assert [entry.key for entry in Memory.open(path, clock=clock)] == ["start", "one"]


def test_a_memory_does_not_overwrite_a_file_that_it_never_read(
    tmp_path: Path, clock: FakeClock
) -> None:
    path = tmp_path / "m.json"
    two(path, clock)
    before = path.read_bytes()
    blind = Memory.open(path, load=False, clock=clock)
    with pytest.raises(StoreConflictError):
        blind.remember("blind", 1)
    assert path.read_bytes() == before


DAMAGES: dict[str, bytes] = {
    "empty": b"",
    "null": b"null",
    "a list": b"[]",
    "cut short": b'{"version": 1, "entries": [{"key": "a", "da',
    "binary": bytes(range(256)),
    "NaN": b'{"version": 1, "entries": [], "x": NaN}',
    "a later version": b'{"version": 2, "entries": []}',
    "no entries": b'{"version": 1}',
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_later_call_changes_a_damaged_file(
    damage: str, tmp_path: Path, clock: FakeClock
) -> None:
    """A memory that met it keeps what it had, and cannot overwrite it."""
    path = tmp_path / "m.json"
    memory, _ = two(path, clock)
    path.write_bytes(DAMAGES[damage])
    with pytest.raises(DamagedStoreError) as caught:
        Memory.open(path, clock=clock)
    assert caught.value.path == str(path)
    assert caught.value.reason
    assert str(path) in str(caught.value)
    blind = Memory.open(path, load=False, clock=clock)
    steps: list[tuple[Any, type[Exception]]] = [
        (memory.load, DamagedStoreError),
        (memory.save, StoreConflictError),
        (lambda: memory.remember("a", 1), StoreConflictError),
        (memory.clear, StoreConflictError),
        (lambda: memory.transact(lambda _: None), StoreConflictError),
        (lambda: blind.remember("a", 1), StoreConflictError),
        (blind.load, DamagedStoreError),
        (blind.save, StoreConflictError),
        (lambda: blind.store.load(), DamagedStoreError),  # type: ignore[union-attr]
        (lambda: blind.save(), StoreConflictError),
    ]
    for step, error in steps:
        with pytest.raises(error):
            step()
        assert path.read_bytes() == DAMAGES[damage]


def test_a_round_trip_through_a_file_changes_no_byte(tmp_path: Path, clock: FakeClock) -> None:
    """Whatever is in it: every kind of line break, scripts, emoji, numbers."""
    texts = [
        "a\u2028b\u2029c\x85d\r\n\x1c",
        "私は👨‍👩‍👧です",
        "\x00\x1f\ufeff",
        "<|endoftext|>",
        "",
    ]
    memory = Memory.open(tmp_path / "m.json", clock=clock)
    for number, text in enumerate(texts):
        memory.remember(f"{number}:{text}", {"text": text, text: [1.5, -0.0, 10**30]})
    again = Memory.open(tmp_path / "m.json", clock=clock)
    assert list(again) == list(memory)
    before = (tmp_path / "m.json").read_bytes()
    again.save()
    assert (tmp_path / "m.json").read_bytes() == before
