"""The order of eviction: who goes first, found without a look at everybody.

Theory of operation
-------------------
Retention is ``weight + FRESH_BONUS * freshness``, and freshness falls with age, so retentions
change all the time and no sorted list of them stays sorted. But among items of one weight the order
never changes: the oldest has the lowest retention, at any time. So the items are grouped by weight,
each group is a heap by age, and only the oldest of each group, its head, can be the first to go.

Heads of different weights are compared at three ages, because of what time does to them:

- in the *future* (a clock went back): freshness is 1, the retention is constant;
- *fresh* (inside the window): all retentions fall at the same pace, so that ``weight +
  FRESH_BONUS * updated / window``, the pace, orders them at any time;
- *stale* (out of the window): freshness is 0, the retention is constant again.

So the heads stand in three sets of heaps, each in an order that time does not change, and move from
one to the next when their age does; back, if the clock goes back. The first to go is the lowest of
the three lowest. The pace is rounded in another way than the retention it stands for, so all heads
whose pace is within a few units in the last place of the lowest are compared by the formula itself.

A simpler way is to look at the heads of all groups, lowest weight first, until the weight alone is
above the best found. It takes 28 lines. Measured in microseconds for each eviction:

==========================  ==============  =========================  ===============
stored                      weights         this                       the simpler way
==========================  ==============  =========================  ===============
500 / 5,000 / 100,000       3 different     54-63 / 25-30 / 37-42      18-23 / 9-12 / 21-29
500 / 5,000 / 100,000       101 different   36-45 / 31-35 / 49-50      32 / 43-48 / 41-96
500 / 5,000 / 100,000       all different   35 / 48-64 / 835-1,256     236-294 / 2,200-2,900 /
                                                                       24,000-129,000
==========================  ==============  =========================  ===============

The simpler way is useless where all weights differ, and callers pass weights that a model rated.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from typing import Any, Final

from .._basics.heap import LazyHeap
from ..retention import FRESH_BONUS, freshness, retention

__all__ = ["EvictionOrder"]

_SAME_PACE: Final = 8  # units in the last place; more compares more heads by the formula


class _Group(LazyHeap):
    """The items of one weight by age: ``(updated, serial)``.

    ``moved`` is shared by all groups: the weight of each item that has changed its weight while it
    was here, ``None`` if it has left. Such an item may still stand in the group of a former weight.
    A class and no function in each heap, since there may be a group for each entry.
    """

    __slots__ = ("_moved", "_weight")

    checks_items = True

    def __init__(
        self, living: Container[int], moved: Mapping[int, float | None], weight: float
    ) -> None:
        super().__init__(living)
        self._moved = moved
        self._weight = weight

    def is_current(self, item: tuple[Any, ...], /) -> bool:
        moved = self._moved
        return not moved or moved.get(item[-1], self._weight) == self._weight


class EvictionOrder:
    """Some of the items of a memory, by weight and time, and which of them is the first to go.

    An item is a serial number, which grows, with a weight and the time when it was last remembered
    in epoch milliseconds. ``living`` contains the serial numbers of all items that are stored; it
    is shared with its owner, who removes an item there first and then calls ``discard``.
    """

    def __init__(self, living: Container[int], window: float) -> None:
        self._living = living
        self._window = window
        self._groups: dict[float, LazyHeap] = {}  # by weight
        self._moved: dict[int, float | None] = {}  # current weights of items that changed theirs
        self._heads: dict[float, tuple[int, int]] = {}  # by weight: (updated, serial)
        self._weights: dict[int, float] = {}  # of the heads, by serial
        self._changed: set[float] = set()  # weights whose head may be another one now
        self._asked = -math.inf  # the time of the last question
        self._future = _Heads()  # in the order of retention
        self._fresh = _Heads()  # in the order of pace
        self._stale = _Heads()  # in the order of retention

    def add(self, serial: int, weight: float, updated_ms: int) -> None:
        """Take in an item that is living, for the first time or again."""
        if serial in self._moved:
            self._moved[serial] = weight
        group = self._groups.get(weight)
        if group is None:
            group = self._groups[weight] = _Group(self._living, self._moved, weight)
        group.push((updated_ms, serial))
        self._changed.add(weight)

    def leave(self, serial: int, weight: float) -> None:
        """Let go of an item of that weight which goes on living."""
        self._moved[serial] = None
        self._lost(weight)

    def discard(self, serial: int, weight: float | None) -> None:
        """Let go of an item that is no longer living; its weight is ``None`` if it had left."""
        self._moved.pop(serial, None)
        if weight is not None:
            self._lost(weight)

    def _lost(self, weight: float) -> None:
        group = self._groups[weight]
        group.died()
        if group.first() is None:
            # A memory meets any number of different weights in its life; none leaves a heap behind.
            del self._groups[weight]
        if weight in self._groups or weight in self._heads:
            self._changed.add(weight)
        else:
            self._changed.discard(weight)

    def first_to_go(self, *, now: int) -> int | None:
        """The serial number of the lowest retention; between equals, of the oldest.

        ``None`` if there is no item.
        """
        self._update_heads(now)
        if now >= self._asked:
            self._move(self._future, now, back=False)
            self._move(self._fresh, now, back=False)
        else:
            self._move(self._stale, now, back=True)
            self._move(self._fresh, now, back=True)
        self._asked = now
        best = min((self._rank(*head, now) for head in self._candidates()), default=None)
        return None if best is None else best[-1]

    def sizes(self) -> dict[str, int]:
        """The numbers of items in the parts, dead ones included; tests hold them bounded."""
        heaps = [heap for heads in self._ages() for heap in heads.heaps()]
        longest = max((len(heap) for heap in [*self._groups.values(), *heaps]), default=0)
        groups = max(len(self._groups), len(self._heads), len(self._changed), len(self._moved))
        return {"longest heap": longest, "groups": groups}

    def _ages(self) -> tuple[_Heads, _Heads, _Heads]:
        return self._future, self._fresh, self._stale

    def _rank(self, updated: int, serial: int, now: int) -> tuple[float, int, int]:
        kept = retention(self._weights[serial], updated, now=now, window=self._window)
        return kept, updated, serial

    def _update_heads(self, now: int) -> None:
        news: list[tuple[float, tuple[int, int]]] = []
        for weight in self._changed:
            head = self._groups[weight].first() if weight in self._groups else None
            former = self._heads.get(weight)
            if head == former:
                continue
            if former is not None:
                for heads in self._ages():
                    heads.discard(former[-1])
                del self._heads[weight], self._weights[former[-1]]
            if head is not None:
                news.append((weight, (head[0], head[1])))
        # After all former heads have left: an item may go from the head of one weight to another's.
        for weight, (updated, serial) in news:
            self._heads[weight] = (updated, serial)
            self._weights[serial] = weight
            self._place(updated, serial, now)
        self._changed.clear()

    def _age(self, updated: int, now: int) -> _Heads:
        if updated > now:
            return self._future
        if freshness(updated, now=now, window=self._window) > 0:
            return self._fresh
        return self._stale

    def _place(self, updated: int, serial: int, now: int) -> None:
        order = self._weights[serial]
        heads = self._age(updated, now)
        if heads is self._future:
            order += FRESH_BONUS
        elif heads is self._fresh:
            order += FRESH_BONUS * updated / self._window
        heads.add(order, updated, serial)

    def _move(self, heads: _Heads, now: int, *, back: bool) -> None:
        """Place those anew that do not belong there now: from the oldest on, or the newest."""
        by_time = heads.newest if back else heads.oldest
        while first := by_time.first():
            updated, serial = -first[0] if back else first[0], first[-1]
            if self._age(updated, now) is heads:
                return
            heads.discard(serial)
            self._place(updated, serial, now)

    def _candidates(self) -> Iterator[tuple[int, int]]:
        for heads in (self._future, self._stale):
            if lowest := heads.lowest.first():
                yield lowest[1:]
        near: list[tuple[float, int, int]] = []
        by_pace = self._fresh.lowest
        while lowest := by_pace.first():
            if near:
                pace = near[0][0]
                if lowest[0] > pace + _SAME_PACE * math.ulp(max(1.0, abs(pace))):
                    break
            near.append(lowest)
            by_pace.pop()
        for lowest in near:
            by_pace.push(lowest)
            yield lowest[1:]


class _Lowest(LazyHeap):
    """Heads in their order: ``(order, updated, serial)``."""

    __slots__ = ("_orders",)

    checks_items = True

    def __init__(self, orders: Mapping[int, float]) -> None:
        super().__init__(orders)
        self._orders = orders

    def is_current(self, item: tuple[Any, ...], /) -> bool:
        return bool(self._orders[item[-1]] == item[0])


class _Heads:
    """The heads of one age, in their order and by time both ways.

    The three heaps share the serial numbers of the heads, so that a head leaves all of them at
    once, and each heap drops it when it comes to its top. A head that comes again, with another
    weight, has another order: the items of its former one stay dead.
    """

    def __init__(self) -> None:
        self._orders: dict[int, float] = {}  # of the heads, by serial
        self.lowest = _Lowest(self._orders)
        self.oldest = LazyHeap(self._orders)
        self.newest = LazyHeap(self._orders)

    def heaps(self) -> tuple[LazyHeap, LazyHeap, LazyHeap]:
        return self.lowest, self.oldest, self.newest

    def add(self, order: float, updated: int, serial: int) -> None:
        self._orders[serial] = order
        self.lowest.push((order, updated, serial))
        self.oldest.push((updated, serial))
        self.newest.push((-updated, serial))

    def discard(self, serial: int) -> None:
        if serial in self._orders:
            del self._orders[serial]
            for heap in self.heaps():
                heap.died()
