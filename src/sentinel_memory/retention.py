"""Who stays and who goes: freshness, retention, and the order of eviction."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from ._heap import LazyHeap
from .entry import Entry

__all__ = ["Compaction", "EvictionOrder", "freshness", "retention", "retentions"]


class Compaction(NamedTuple):
    """What one compaction removed.

    ``expired``: in the order in which they were last remembered; ``evicted``: lowest retention
    first, which is the order in which they went.
    """

    expired: tuple[Entry, ...] = ()
    evicted: tuple[Entry, ...] = ()


def freshness(updated_ms: int, *, now: int, window: float) -> float:
    """From 1 (just remembered) to 0 (``window`` milliseconds ago, or longer).

    >>> freshness(0, now=6_000, window=24_000)
    0.75
    """
    fresh = 1 - (now - updated_ms) / window
    if fresh > 1:
        return 1.0  # a clock that went back
    return fresh if fresh > 0 else 0.0


def retention(entry: Entry, *, now: int, window: float) -> float:
    """``importance + 0.1 * freshness``: how much speaks for keeping the entry."""
    return retentions((entry,), now=now, window=window)[0]


def retentions(entries: Sequence[Entry], *, now: int, window: float) -> list[float]:
    """The retention of each of some entries, which are oldest first.

    Freshness is 0 before the window and 1 in the future, so only those between need the formula.
    """

    def is_fresh(entry: Entry) -> bool:
        return 1.0 - (now - entry._updated_ms) / window > 0

    stale = bisect_left(entries, True, key=is_fresh)
    worth = [entry._importance for entry in entries[:stale]]
    worth += [
        entry._importance + 0.1 * (1.0 - (now - entry._updated_ms) / window)
        for entry in entries[stale:]
    ]
    if entries and now < entries[-1]._updated_ms:  # a clock that went back
        future = bisect_right(entries, now, key=attrgetter("_updated_ms"))
        worth[future:] = [entry._importance + 0.1 for entry in entries[future:]]
    return worth


class EvictionOrder:
    """Knows which of ``entries`` (by serial number, which grows) goes first, without a scan.

    Among entries of one importance the oldest goes first, at any time: freshness never falls with
    ``updated_at``. So only the oldest of each importance, its head, competes. A head outside the
    freshness window has its importance as retention; inside the window all retentions fall at the
    same pace, so that ``importance + 0.1 * updated / window`` orders them at any time. Heads
    therefore wait in one heap for each of the two, and move once, when they leave the window.
    """

    def __init__(self, entries: Mapping[int, Entry], window: float) -> None:
        self._entries = entries
        self._window = window
        self._groups: dict[float, LazyHeap] = {}  # by importance: (updated, serial)
        self._changed: set[float] = set()  # importances whose head may be another one now
        self.newest: float = -math.inf  # the latest time that an entry had
        self._forget_heads()

    def _forget_heads(self) -> None:
        self._asked = -math.inf
        self._heads: dict[float, int] = {}  # importance -> serial
        self._fresh: set[int] = set()
        self._stale: set[int] = set()
        self._by_pace = LazyHeap(self._fresh)  # (pace, updated, serial)
        self._by_age = LazyHeap(self._fresh)  # (updated, serial)
        self._by_importance = LazyHeap(self._stale)  # (importance, updated, serial)

    def add(self, serial: int, entry: Entry) -> None:
        """Take in an entry that is in ``entries`` under ``serial``."""
        group = self._groups.get(entry.importance)
        if group is None:
            group = self._groups[entry.importance] = LazyHeap(self._entries)
        group.push((entry._updated_ms, serial))
        self._changed.add(entry.importance)
        self.newest = max(self.newest, entry._updated_ms)

    def discard(self, entry: Entry) -> None:
        """Let go of an entry that has just left ``entries``."""
        self._groups[entry.importance].died()
        self._changed.add(entry.importance)

    def first_to_go(self, *, now: int) -> int:
        """The serial number of the lowest retention; between equals, of the oldest."""
        if now < self._asked or now < self.newest:
            # The clock went back, where pace orders nothing. Look at every head until it is over.
            self._forget_heads()
            self._changed.update(self._groups)
            return min(self._key(serial, now) for serial in self._all_heads())[-1]
        self._asked = now
        self._update_heads(now)
        self._move_stale(now)
        return min(self._key(serial, now) for serial in self._candidates())[-1]

    def _key(self, serial: int, now: int) -> tuple[float, int, int]:
        entry = self._entries[serial]
        return (retention(entry, now=now, window=self._window), entry._updated_ms, serial)

    def _all_heads(self) -> Iterator[int]:
        for importance in list(self._groups):
            head = self._groups[importance].first()
            if head is None:
                del self._groups[importance]
            else:
                yield head[-1]

    def _update_heads(self, now: int) -> None:
        for importance in self._changed:
            head = self._groups[importance].first() if importance in self._groups else None
            serial = None if head is None else head[-1]
            former = self._heads.get(importance)
            if serial == former:
                continue
            if former is not None:
                self._drop_head(former)
            if serial is None:
                self._heads.pop(importance, None)
                self._groups.pop(importance, None)
            else:
                self._heads[importance] = serial
                self._place_head(serial, now)
        self._changed.clear()

    def _drop_head(self, serial: int) -> None:
        if serial in self._fresh:
            self._fresh.remove(serial)
            self._by_pace.died()
            self._by_age.died()
        else:
            self._stale.remove(serial)
            self._by_importance.died()

    def _place_head(self, serial: int, now: int) -> None:
        entry = self._entries[serial]
        updated = entry._updated_ms
        if freshness(updated, now=now, window=self._window) > 0:
            self._fresh.add(serial)
            pace = entry.importance + 0.1 * updated / self._window
            self._by_pace.push((pace, updated, serial))
            self._by_age.push((updated, serial))
        else:
            self._stale.add(serial)
            self._by_importance.push((entry.importance, updated, serial))

    def _move_stale(self, now: int) -> None:
        while head := self._by_age.first():
            updated, serial = head
            if freshness(updated, now=now, window=self._window) > 0:
                return
            self._drop_head(serial)
            self._place_head(serial, now)

    def _candidates(self) -> Iterator[int]:
        stale = self._by_importance.first()
        if stale is not None:
            yield stale[-1]
        # Pace is rounded otherwise than retention: all that may be equal are looked at.
        near: list[tuple[float, int, int]] = []
        while head := self._by_pace.first():
            if near and head[0] > near[0][0] + 8 * math.ulp(max(1.0, abs(near[0][0]))):
                break
            near.append(head)
            self._by_pace.pop()
        for head in near:
            self._by_pace.push(head)
            yield head[-1]
