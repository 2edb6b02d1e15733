"""Deletion is deletion: what was forgotten is nowhere in the process nor in the folder."""

from __future__ import annotations

import gc
import types
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import Memory
from support.clocks import FakeClock

SECRET = "zanzibarquartz"
CODE = (type, types.FunctionType, types.ModuleType, types.BuiltinFunctionType)


def said_in(root: Any) -> bool:
    """Whether the secret is in any string that can be reached from an object."""
    seen: set[int] = set()
    todo = [root]
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, CODE):
            continue
        seen.add(id(thing))
        if isinstance(thing, str):
            if SECRET in thing.lower():
                return True
        elif isinstance(thing, bytes | bytearray):
            if SECRET.encode() in bytes(thing).lower():
                return True
        elif type(thing).__module__.split(".")[0] in ("sentinel_memory", "builtins"):
            todo.extend(gc.get_referents(thing))
    return False


def in_folder(folder: Path) -> bool:
    return any(SECRET.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def expire(memory: Memory, clock: FakeClock) -> None:
    clock.tick(60)
    memory.compact()


def evict(memory: Memory, clock: FakeClock) -> None:
    for number in range(3):
        memory.remember(f"other{number}", number, importance=1)


WAYS: dict[str, Any] = {
    "forget": lambda memory, clock: memory.forget("k"),
    "clear": lambda memory, clock: memory.clear(),
    "expiry": expire,
    "eviction": evict,
    "overwriting": lambda memory, clock: memory.remember("k", "nothing"),
    "forgetting what has expired": lambda memory, clock: (clock.tick(60), memory.forget("k")),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_deleted_text_is_left_nowhere(way: str, tmp_path: Path, clock: FakeClock) -> None:
    """In no file, temp files included, and in no object that hangs on the memory."""
    folder = tmp_path / "m"
    memory = Memory.open(folder / "memory.json", limit=3, clock=clock)
    memory.remember("other", "tea")
    memory.remember("k", {"note": f"the word is {SECRET}"}, importance=0.2, ttl=60)
    memory.recall(SECRET)
    memory.get_context(100, query=SECRET)
    memory.get_context(12, query=SECRET, tokenizer=lambda text: len(text.split()))
    assert said_in(memory)
    assert in_folder(folder)
    WAYS[way](memory, clock)
    assert not in_folder(folder)
    gc.collect()
    assert not said_in(memory)


def test_a_rejected_entry_can_be_forgotten(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "memory.json"
    path.write_text(
        '{"version": 1, "entries": [{"key": "k", "data": "zanzibarquartz", "importance": 7}]}'
    )
    memory = Memory.open(path, clock=clock)
    memory.remember("other", 1)
    assert in_folder(tmp_path)
    memory.forget("k")
    assert not in_folder(tmp_path)
    assert not said_in(memory)
