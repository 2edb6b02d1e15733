"""A heap whose items can die before they come to the top, and that does not fill up with the dead.

Items are tuples that end in a serial number. They hold no text, so nothing of a forgotten entry
stays behind in one that is still to be dropped.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container
from typing import Any

__all__ = ["LazyHeap"]


class LazyHeap:
    """A min-heap of the items whose serial number is in ``living``.

    Of those, only the ones count for which ``is_current`` is true, if it is given: an item may be
    out of date while its serial number is living.
    """

    __slots__ = ("_dead", "_is_current", "_items", "_living")

    def __init__(
        self,
        living: Container[int],
        is_current: Callable[[tuple[Any, ...]], bool] | None = None,
    ) -> None:
        self._living = living
        self._is_current = is_current
        self._items: list[tuple[Any, ...]] = []
        self._dead = 0

    def _lives(self, item: tuple[Any, ...]) -> bool:
        return item[-1] in self._living and (self._is_current is None or self._is_current(item))

    def push(self, item: tuple[Any, ...]) -> None:
        """Add an item whose serial number is living, for the first time or again."""
        heapq.heappush(self._items, item)

    def died(self) -> None:
        """Note that one item is dead now, as its serial number has just left ``living``.

        Once more than half of the items are dead, all of them are dropped.
        """
        self._dead += 1
        if self._dead > len(self._items) // 2 + 8:
            # An item that died and was pushed again stands here twice: of equal ones, one stays.
            self._items = list({item for item in self._items if self._lives(item)})
            heapq.heapify(self._items)
            self._dead = 0

    def first(self) -> tuple[Any, ...] | None:
        """The smallest living item, or ``None``; it stays."""
        items, living, is_current = self._items, self._living, self._is_current
        while items:
            item = items[0]
            if item[-1] in living and (is_current is None or is_current(item)):
                return item
            heapq.heappop(items)
            self._dead = max(0, self._dead - 1)
        return None

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
