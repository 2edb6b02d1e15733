"""A heap whose items can die before they come to the top, and that does not fill up with the dead.

Items are tuples that end in a serial number. They hold no text, so nothing of a forgotten entry
stays behind in one that is still to be dropped.
"""

from __future__ import annotations

import heapq
from collections.abc import Container
from typing import Any

__all__ = ["LazyHeap"]


class LazyHeap:
    """A min-heap of the items whose serial number is in ``living``."""

    __slots__ = ("_dead", "_items", "_living")

    def __init__(self, living: Container[int]) -> None:
        self._living = living
        self._items: list[tuple[Any, ...]] = []
        self._dead = 0

    def lives(self, item: tuple[Any, ...]) -> bool:
        """Whether an item is living."""
        return item[-1] in self._living

    def push(self, item: tuple[Any, ...]) -> None:
        """Add an item, whose serial number is living."""
        heapq.heappush(self._items, item)

    def died(self) -> None:
        """Note that one item is dead now, as its serial number has just left ``living``.

        Once more than half of the items are dead, all of them are dropped.
        """
        self._dead += 1
        if self._dead > len(self._items) // 2 + 8:
            self._items = [item for item in self._items if self.lives(item)]
            heapq.heapify(self._items)
            self._dead = 0

    def first(self) -> tuple[Any, ...] | None:
        """The smallest living item, or ``None``; it stays."""
        while self._items and not self.lives(self._items[0]):
            heapq.heappop(self._items)
            self._dead = max(0, self._dead - 1)
        return self._items[0] if self._items else None

    def __len__(self) -> int:
        """How many items are held, the dead ones too."""
        return len(self._items)

    def clear(self) -> None:
        """Hold nothing."""
        self._items = []
        self._dead = 0

    def pop(self) -> None:
        """Take out the item that ``first`` just returned."""
        heapq.heappop(self._items)
