"""A heap whose items can die before they come to the top, and that drops dead items in time.

Items are tuples that end in a serial number. They hold no text, so nothing of a forgotten entry
stays behind in one that is still to be dropped.
"""

from __future__ import annotations

import heapq
from collections.abc import Container
from typing import Any

__all__ = ["LazyHeap"]


class LazyHeap:
    """A min-heap of the items whose serial number is in ``living``.

    Where an item may be out of date while its serial number is living, a subclass says so with
    ``checks_items`` and ``is_current``: an item that is not current counts as dead, too.
    """

    __slots__ = ("_dead", "_items", "_living")

    checks_items = False

    def __init__(self, living: Container[int]) -> None:
        self._living = living
        self._items: list[tuple[Any, ...]] = []
        self._dead = 0

    def is_current(self, _: tuple[Any, ...], /) -> bool:
        """Whether an item whose serial number is living is up to date."""
        return True

    def _lives(self, item: tuple[Any, ...]) -> bool:
        return item[-1] in self._living and self.is_current(item)

    def push(self, item: tuple[Any, ...]) -> None:
        """Add an item whose serial number is living, for the first time or again."""
        heapq.heappush(self._items, item)

    def died(self) -> None:
        """Note that one item is dead now, as its serial number has just left ``living``.

        Once more than half of the items, and 8, are dead, the dead ones are dropped.
        """
        self._dead += 1
        # 8: a small heap is not rebuilt at every death.
        if self._dead > len(self._items) // 2 + 8:
            # An item that died and was pushed again is here twice; the set keeps one of the two.
            self._items = list({item for item in self._items if self._lives(item)})
            heapq.heapify(self._items)
            self._dead = 0

    def first(self) -> tuple[Any, ...] | None:
        """The smallest living item, which stays in the heap; ``None`` if there is none."""
        items, living, checks = self._items, self._living, self.checks_items
        while items:
            item = items[0]
            if item[-1] in living and (not checks or self.is_current(item)):
                return item
            heapq.heappop(items)
            self._dead = max(0, self._dead - 1)
        return None

    def __len__(self) -> int:
        """The number of items in the heap, dead ones included."""
        return len(self._items)

    def clear(self) -> None:
        """Remove all items."""
        self._items = []
        self._dead = 0

    def pop(self) -> None:
        """Remove the item that ``first`` returned just before, with no change between the two."""
        heapq.heappop(self._items)
