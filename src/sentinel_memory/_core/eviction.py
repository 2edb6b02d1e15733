"""The order of eviction: which entry goes first, without a look at all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from .._basics.heap import LazyHeap
from ..entry import Entry
from ..retention import freshness, retention

__all__ = ["EvictionOrder"]


class EvictionOrder:
    """Knows which of ``entries`` (by serial number, which grows) goes first, without a scan.

    Among entries of one importance the oldest goes first, at any time: freshness never falls with
    ``updated_at``. So only the oldest of each importance, its head, competes. The retention of a
    head that is out of the freshness window, or in the future after a clock went back, does not
    change. Inside the window all retentions fall at the same pace, so that ``importance + 0.1 *
    updated / window`` orders them at any time. Heads therefore wait in one heap for each of the
    three, and move from one to the next as time does, forth and back.
    """

    def __init__(self, entries: Mapping[int, Entry], window: float) -> None:
        self._entries = entries
        self._window = window
        self._groups: dict[float, LazyHeap] = {}  # by importance: (updated, serial)
        self._changed: set[float] = set()  # importances whose head may be another one now
        self._asked = -math.inf
        self._heads: dict[float, int] = {}  # importance -> serial
        self._future = _Heads()  # in the order of retention
        self._fresh = _Heads()  # in the order of pace
        self._stale = _Heads()  # in the order of retention

    def add(self, serial: int, entry: Entry) -> None:
        """Take in an entry that is in ``entries`` under ``serial``."""
        group = self._groups.get(entry._importance)
        if group is None:
            group = self._groups[entry._importance] = LazyHeap(self._entries)
        group.push((entry._updated_ms, serial))
        self._changed.add(entry._importance)

    def discard(self, entry: Entry) -> None:
        """Let go of an entry that has just left ``entries``."""
        importance = entry._importance
        group = self._groups[importance]
        group.died()
        if group.first() is None:
            # Importances may be any number of different ones in the life of a memory.
            del self._groups[importance]
        if importance in self._groups or importance in self._heads:
            self._changed.add(importance)
        else:
            self._changed.discard(importance)

    def first_to_go(self, *, now: int) -> int:
        """The serial number of the lowest retention; between equals, of the oldest."""
        self._update_heads(now)
        if now >= self._asked:
            self._move(self._future, now, back=False)
            self._move(self._fresh, now, back=False)
        else:
            self._move(self._stale, now, back=True)
            self._move(self._fresh, now, back=True)
        self._asked = now
        return min(self._key(serial, now) for serial in self._candidates())[-1]

    def _key(self, serial: int, now: int) -> tuple[float, int, int]:
        entry = self._entries[serial]
        return (retention(entry, now=now, window=self._window), entry._updated_ms, serial)

    def _update_heads(self, now: int) -> None:
        for importance in self._changed:
            head = self._groups[importance].first() if importance in self._groups else None
            serial = None if head is None else head[-1]
            former = self._heads.get(importance)
            if serial == former:
                continue
            if former is not None:
                for heads in (self._future, self._fresh, self._stale):
                    heads.discard(former)
            if serial is None:
                del self._heads[importance]
            else:
                self._heads[importance] = serial
                self._place(serial, now)
        self._changed.clear()

    def _where(self, updated: int, now: int) -> _Heads:
        if updated > now:
            return self._future
        if freshness(updated, now=now, window=self._window) > 0:
            return self._fresh
        return self._stale

    def _place(self, serial: int, now: int) -> None:
        entry = self._entries[serial]
        worth, updated = entry._importance, entry._updated_ms
        heads = self._where(updated, now)
        if heads is self._future:
            worth += 0.1
        elif heads is self._fresh:
            worth += 0.1 * updated / self._window
        heads.add(worth, updated, serial)

    def _move(self, heads: _Heads, now: int, *, back: bool) -> None:
        """Place those anew that do not belong there now: from the oldest on, or the newest."""
        by_age = heads.by_youth if back else heads.by_age
        while first := by_age.first():
            if self._where(-first[0] if back else first[0], now) is heads:
                return
            heads.discard(first[-1])
            self._place(first[-1], now)

    def _candidates(self) -> Iterator[int]:
        for heads in (self._future, self._stale):
            if lowest := heads.by_worth.first():
                yield lowest[-1]
        # Pace is rounded otherwise than retention: all that may be equal are looked at.
        near: list[tuple[float, int, int]] = []
        by_pace = self._fresh.by_worth
        while lowest := by_pace.first():
            if near and lowest[0] > near[0][0] + 8 * math.ulp(max(1.0, abs(near[0][0]))):
                break
            near.append(lowest)
            by_pace.pop()
        for lowest in near:
            by_pace.push(lowest)
            yield lowest[-1]


class _Heads:
    """Some heads, in the order of what they are worth and in that of their age."""

    def __init__(self) -> None:
        self._serials: set[int] = set()
        self.by_worth = LazyHeap(self._serials)  # (worth, updated, serial)
        self.by_age = LazyHeap(self._serials)  # (updated, serial)
        self.by_youth = LazyHeap(self._serials)  # (-updated, serial)

    def add(self, worth: float, updated: int, serial: int) -> None:
        self._serials.add(serial)
        self.by_worth.push((worth, updated, serial))
        self.by_age.push((updated, serial))
        self.by_youth.push((-updated, serial))

    def discard(self, serial: int) -> None:
        if serial in self._serials:
            self._serials.remove(serial)
            for heap in (self.by_worth, self.by_age, self.by_youth):
                heap.died()
