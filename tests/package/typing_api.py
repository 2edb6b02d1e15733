"""A typed program that uses the public interface; it is read by mypy only, never run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, assert_type

from sentinel_memory import (
    DEFAULTS,
    Compaction,
    Context,
    Entry,
    JsonFileStore,
    LoadResult,
    Match,
    Memory,
    MemoryStore,
    RecallIndex,
    Remembered,
    Stats,
    Store,
    WordIndex,
    estimate_tokens,
    one_line,
)


class RowStore:
    def load(self) -> dict[str, Any] | None:
        return None

    def save(self, state: dict[str, Any]) -> None: ...


class Nothing:
    def add(self, entry: Entry) -> None: ...
    def discard(self, key: str) -> None: ...
    def search(self, query: str) -> Mapping[str, float]:
        return {}


def archive(compaction: Compaction) -> None:
    for entry in (*compaction.expired, *compaction.evicted):
        assert_type(entry, Entry)


stores: list[Store] = [RowStore(), MemoryStore(), JsonFileStore("m.json"), JsonFileStore(Path("m"))]
indexes: list[RecallIndex] = [Nothing(), WordIndex()]
memory = Memory(
    limit=500,
    store=stores[0],
    autosave=True,
    load=False,
    tokenizer=estimate_tokens,
    recency_window=timedelta(days=1),
    cache_ttl=300,
    working_ttl=3600.0,
    on_evict=archive,
    index=indexes[0],
    clock=lambda: 0.0,
)
path: os.PathLike[str] = Path("m.json")
assert_type(Memory.open(path, limit=5), Memory)
assert_type(memory.remember("k", {"a": [1]}, importance=1, ttl=timedelta(1)), Remembered)
assert_type(memory.remember("k", 1).compaction, Compaction | None)
assert_type(memory.entry("k"), Entry | None)
assert_type("k" in memory, bool)
assert_type([entry.expires_at for entry in memory], list[float | None])
assert_type(memory.get_recent(3), list[Entry])
assert_type(memory.recall("k", limit=2), list[Match])
assert_type(
    memory.get_context(10, query="k", tokenizer=len, format=one_line, separator=" ", header="h"),
    Context,
)
assert_type(memory.get_context(10).left_out, tuple[str, ...])
assert_type(memory.forget("k"), bool)
assert_type(memory.compact(), Compaction)
assert_type(memory.stats(), Stats)
assert_type(memory.load(), LoadResult)
assert_type(memory.restore(memory.to_state()), LoadResult)
assert_type(memory.transact(lambda memory: memory.size), int)
with memory as entered, memory.batch():
    assert_type(entered, Memory)
assert_type(DEFAULTS, Mapping[str, Any])
memory.remember(5, 1)  # type: ignore[arg-type]
memory.remember("k", 1, importance="high")  # type: ignore[arg-type]
memory.get_context("10")  # type: ignore[arg-type]
Memory(store=5)  # type: ignore[arg-type]
