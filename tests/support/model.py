"""The plainest possible memory: one list, every rule written out, nothing fast."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

WINDOW = 86_400_000


@dataclass(frozen=True)
class Item:
    key: str
    data: Any
    importance: float
    created: int
    updated: int
    expires: int | None


class PlainMemory:
    """Items in the order in which they were last remembered."""

    def __init__(self, limit: int, window: float = WINDOW) -> None:
        self.limit = limit
        self.window = window
        self.items: list[Item] = []
        self.compactions = self.expired = self.evicted = 0

    def live(self, now: int) -> list[Item]:
        """Oldest first."""
        items = [item for item in self.items if item.expires is None or now < item.expires]
        return sorted(items, key=lambda item: item.updated)

    def find(self, key: str, now: int) -> Item | None:
        return next((item for item in self.live(now) if item.key == key), None)

    def freshness(self, item: Item, now: int) -> float:
        return min(1, max(0, 1 - (now - item.updated) / self.window))

    def retention(self, item: Item, now: int) -> float:
        return item.importance + 0.1 * self.freshness(item, now)

    def remember(
        self, key: str, data: Any, importance: float | None, ttl_ms: int | None, now: int
    ) -> tuple[list[str], list[str]] | None:
        """The keys that a compaction expired and evicted, or None if none ran."""
        old = self.find(key, now)
        if importance is None:
            importance = 0.5 if old is None else old.importance
        created = now if old is None else old.created
        expires = None if ttl_ms is None else now + ttl_ms
        self.items = [item for item in self.items if item.key != key]
        data = json.loads(json.dumps(data))
        self.items.append(Item(key, data, importance, created, now, expires))
        return self.compact(now) if len(self.items) > self.limit else None

    def compact(self, now: int) -> tuple[list[str], list[str]]:
        live = [item for item in self.items if item.expires is None or now < item.expires]
        expired = [item.key for item in self.items if item not in live]
        order = sorted(live, key=lambda item: (self.retention(item, now), item.updated))
        gone = order[: max(0, len(live) - self.limit)]
        self.items = [item for item in live if item not in gone]
        self.compactions += 1
        self.expired += len(expired)
        self.evicted += len(gone)
        return expired, [item.key for item in gone]

    def forget(self, key: str, now: int) -> bool:
        live = self.find(key, now) is not None
        self.items = [item for item in self.items if item.key != key]
        return live

    def clear(self) -> None:
        self.items = []

    def reload(self, now: int) -> None:
        """What a save and a load leave: live entries only, oldest first."""
        self.items = [replace(item) for item in self.live(now)]

    def ranking(self, now: int) -> list[str]:
        """Best first by retention, ties newer first."""
        live = list(enumerate(self.live(now)))
        live.sort(key=lambda pair: (self.retention(pair[1], now), pair[0]), reverse=True)
        return [item.key for _, item in live]

    def context(self, budget: int, now: int) -> tuple[str, list[str], int, list[str]]:
        """The literal greedy procedure by the estimator."""
        lines = {item.key: f"{item.key}: {text(item.data)}" for item in self.live(now)}
        chosen: set[str] = set()
        left_out: list[str] = []
        for key in self.ranking(now):
            trial = "\n".join(line for k, line in lines.items() if k in chosen | {key})
            if math.ceil(len(trial) / 4) <= budget:
                chosen.add(key)
            else:
                left_out.append(key)
        kept = [key for key in lines if key in chosen]
        body = "\n".join(lines[key] for key in kept)
        return body, kept, math.ceil(len(body) / 4), left_out


def text(data: Any) -> str:
    if isinstance(data, str):
        return data
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
