"""``Memory`` against the plainest possible model, every read path after every step."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sentinel_memory import Compaction, Entry, Memory, MemoryStore
from support.clocks import FakeClock
from support.model import PlainMemory

KEYS = st.sampled_from(["user:name", "chat:1", "chat:2", "chat:3", "order:42", "note_a"])
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text("ab é私\n", max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("k1", max_size=2), inner),
    max_leaves=4,
)
IMPORTANCE = st.none() | st.sampled_from([0.0, 0.1, 0.1 + 2**-54, 0.2, 0.5, 0.55, 0.65, 1.0])
TTL = st.none() | st.sampled_from([0.001, 1, 60, 900])
# A clock may stand still, leave the freshness window, and go back.
STEP = st.sampled_from([0, 0.001, 1, 59, 3_600, 43_200, 86_400, 200_000, -1, -7_200])


def keys(entries: Any) -> list[str]:
    return [entry.key for entry in entries]


def as_item(entry: Entry) -> tuple[Any, ...]:
    expires = None if entry.expires_at is None else round(entry.expires_at * 1000)
    created, updated = round(entry.created_at * 1000), round(entry.updated_at * 1000)
    return (entry.key, entry.data, entry.importance, created, updated, expires)


class MemoryAgainstModel(RuleBasedStateMachine):
    """Whatever is called in whatever order, the answers are those of the model."""

    @initialize(limit=st.integers(1, 5), window=st.sampled_from([None, 0.5, 3_600]))
    def start(self, limit: int, window: float | None) -> None:
        self.clock = FakeClock()
        self.limit, self.window = limit, window
        self.store = MemoryStore()
        self.reported: list[Compaction] = []
        self.model = PlainMemory(limit, 86_400_000 if window is None else window * 1000)
        self.open()

    def open(self) -> None:
        self.memory = Memory(
            limit=self.limit,
            store=self.store,
            recency_window=self.window,
            on_evict=self.reported.append,
            clock=self.clock,
        )
        self.model.compactions = self.model.expired = self.model.evicted = 0

    @property
    def now(self) -> int:
        return math.floor(self.clock.now * 1000)

    @rule(key=KEYS, data=DATA, importance=IMPORTANCE, ttl=TTL)
    def remember(self, key: str, data: Any, importance: float | None, ttl: float | None) -> None:
        self.reported.clear()
        done = self.memory.remember(key, data, importance=importance, ttl=ttl)
        ttl_ms = None if ttl is None else round(ttl * 1000)
        expected = self.model.remember(key, data, importance, ttl_ms, self.now)
        if expected is None:
            assert done.compaction is None
        else:
            assert done.compaction is not None
            assert (keys(done.compaction.expired), keys(done.compaction.evicted)) == expected
        assert self.reported == ([done.compaction] if expected and any(expected) else [])
        assert done.entry.key == key
        assert done.kept == any(item.key == key for item in self.model.items)

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        assert self.memory.forget(key) == self.model.forget(key, self.now)

    @rule()
    def compact(self) -> None:
        done = self.memory.compact()
        assert (keys(done.expired), keys(done.evicted)) == self.model.compact(self.now)

    @rule()
    def clear(self) -> None:
        self.memory.clear()
        self.model.clear()

    @rule()
    def restart(self) -> None:
        self.memory.save()
        self.open()
        self.model.reload(self.now)

    @rule(seconds=STEP)
    def tick(self, seconds: float) -> None:
        self.clock.tick(seconds)

    @invariant()
    def every_read_path_agrees(self) -> None:
        if not hasattr(self, "memory"):
            return
        live = self.model.live(self.now)
        items = [(i.key, i.data, i.importance, i.created, i.updated, i.expires) for i in live]
        assert [as_item(entry) for entry in self.memory] == items
        assert [as_item(entry) for entry in self.memory.get_recent(99)] == items[::-1]
        assert keys(self.memory.get_recent(2)) == [item.key for item in live][::-1][:2]
        assert len(self.memory) == self.memory.size == len(live)
        for key in ["user:name", "chat:1", "chat:2", "chat:3", "order:42", "note_a"]:
            item = self.model.find(key, self.now)
            assert (key in self.memory) == self.memory.has(key) == (item is not None)
            assert self.memory.get(key, "gone") == ("gone" if item is None else item.data)
        chats = {match.key for match in self.memory.recall("chat", limit=99)}
        assert chats == {item.key for item in live if item.key.startswith("chat")}
        stats = self.memory.stats()
        assert (stats.size, stats.stored, stats.limit) == (
            len(live),
            len(self.model.items),
            self.limit,
        )
        assert (stats.compactions, stats.expired, stats.evicted) == (
            self.model.compactions,
            self.model.expired,
            self.model.evicted,
        )
        for budget in (0, 4, 9, 100):
            context = self.memory.get_context(budget)
            assert (
                context.text,
                keys(context.entries),
                context.tokens,
                list(context.left_out),
            ) == self.model.context(budget, self.now)


TestMemoryAgainstModel = MemoryAgainstModel.TestCase
TestMemoryAgainstModel.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
