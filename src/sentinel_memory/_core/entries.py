"""The entries of one memory: by key, in order of time, of expiry, and of eviction.

No lock, no clock, no store: the caller passes ``now`` and keeps other threads out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from .._basics.heap import LazyHeap
from ..entry import Entry
from .eviction import EvictionOrder

__all__ = ["EntrySet"]


class _Expiries(LazyHeap):
    """The expiries of entries: ``(expiry, serial)``, while the entry has that expiry."""

    __slots__ = ("_entries",)

    checks_items = True

    def __init__(self, entries: Mapping[int, Entry]) -> None:
        super().__init__(entries)
        self._entries = entries

    def is_current(self, item: tuple[Any, ...], /) -> bool:
        return bool(self._entries[item[-1]].expires_ms == item[0])


class _LimitedKind:
    """The entries of a kind with a limit of its own: how many are stored, and who goes first."""

    def __init__(self, limit: int, order: EvictionOrder) -> None:
        self.limit = limit
        self.order = order
        self.count = 0


class EntrySet:
    """Entries by key, each with a serial number that says when it was last remembered.

    ``by_serial`` is the truth, and everything else follows from it: the keys, the order of expiry,
    the orders of eviction. Each change updates the truth first and in single steps, so that after
    an interruption at any line a new set of ``stored()`` is whole.

    Serial numbers and times may disagree, after ``put_back`` or a clock that went back.

    Pinned entries stand in no order of eviction. There is one order of all others, and one more for
    each kind in ``limits``.
    """

    def __init__(
        self, window: float, limits: Mapping[str, int], entries: Iterable[Entry] = ()
    ) -> None:
        self._last_serial = 0
        self.by_serial: dict[int, Entry] = {}
        self.serials: dict[str, int] = {}
        # All of these know by the same dict which serial numbers are living.
        self._expiries = _Expiries(self.by_serial)
        self._order = EvictionOrder(self.by_serial, window)
        self._limited_kinds = {
            kind: _LimitedKind(limit, EvictionOrder(self.by_serial, window))
            for kind, limit in limits.items()
        }
        self._pinned: set[int] = set()  # serial numbers
        self._latest = -math.inf  # the latest time that an entry had, in epoch milliseconds
        self._in_time_order = True  # whether entries came in the order of their times
        for entry in entries:
            self.put(entry)

    def __len__(self) -> int:
        """The number of stored entries, expired ones included."""
        return len(self.by_serial)

    def stored(self) -> list[Entry]:
        """The entries, the expired ones too, in the order in which they were last remembered.

        One for each key: if an interruption left two, the one that was put later.
        """
        by_key: dict[str, Entry] = {}
        for entry in self.by_serial.values():
            by_key.pop(entry.key, None)
            by_key[entry.key] = entry
        return list(by_key.values())

    def get(self, key: str) -> Entry | None:
        """The entry of that key, live or expired."""
        serial = self.serials.get(key)
        return None if serial is None else self.by_serial[serial]

    def live(self, key: str, *, now: int) -> Entry | None:
        """The entry of that key, if it is live."""
        entry = self.get(key)
        return entry if entry is not None and entry.is_live(now) else None

    def count_live(self, *, now: int) -> int:
        """The number of live entries."""
        if self._all_live(now):
            return len(self.by_serial)
        return sum(entry.is_live(now) for entry in self.by_serial.values())

    def count_kinds(self, *, now: int) -> dict[str, int]:
        """The number of live entries of each kind."""
        return dict(Counter(entry.kind for entry in self.by_serial.values() if entry.is_live(now)))

    def count_pins(self, kind: str | None = None, *, without: str, now: int) -> int:
        """The number of live pinned entries, of one kind or of all, ``without`` that key."""
        return sum(
            entry.is_live(now) and entry.key != without
            for entry in map(self.by_serial.__getitem__, self._pinned)
            if kind is None or entry.kind == kind
        )

    def oldest_first(self, *, now: int) -> list[Entry]:
        """The live entries by time; those of one millisecond by serial number."""
        live = list(self.by_serial.values())
        if not self._all_live(now):
            live = [entry for entry in live if entry.is_live(now)]
        if not self._in_time_order:
            live.sort(key=attrgetter("updated_ms"))
        return live

    def expired(self, *, now: int) -> list[Entry]:
        """The expired entries, by serial number."""
        items = []
        while (first := self._expiries.first()) and first[0] <= now:
            items.append(first)
            self._expiries.pop()
        for item in items:
            self._expiries.push(item)
        # An entry whose expiry was changed back stands there twice.
        return [self.by_serial[serial] for serial in sorted({item[-1] for item in items})]

    def to_append(self, keys: Iterable[str]) -> list[Entry]:
        """The entries that a stored document gets at its end when those of these keys changed.

        They are the entries of the keys and, since the order of one millisecond has to stay, the
        later ones of the same millisecond.
        """
        serials = {self.serials[key] for key in keys if key in self.serials}
        earliest: dict[int, int] = {}
        for serial in sorted(serials, reverse=True):
            earliest[self.by_serial[serial].updated_ms] = serial
        first = min(serials, default=self._last_serial + 1)
        found = []
        for serial in reversed(self.by_serial):
            if serial < first:
                break
            entry = self.by_serial[serial]
            if serial in serials or serial > earliest.get(entry.updated_ms, self._last_serial):
                found.append(entry)
        return found[::-1]

    def is_over(self, limit: int) -> bool:
        """Whether more than ``limit`` are stored, or more of a kind than its own limit."""
        return len(self.by_serial) > limit or any(
            kind.count > kind.limit for kind in self._limited_kinds.values()
        )

    def next_over(self, limit: int, *, now: int) -> Entry | None:
        """The entry that has to go next, ``None`` if nothing is over a limit, or only pins are.

        The entry of lowest retention: of the kinds that are over their own limit in alphabetical
        order, then of all.
        """
        for name in sorted(self._limited_kinds):
            kind = self._limited_kinds[name]
            if kind.count > kind.limit:
                serial = kind.order.first_to_go(now=now)
                if serial is not None:
                    return self.by_serial[serial]
        if len(self.by_serial) > limit:
            serial = self._order.first_to_go(now=now)
            return None if serial is None else self.by_serial[serial]
        return None

    def put(self, entry: Entry) -> None:
        """Add an entry as the last remembered one, or replace the one of its key."""
        self._last_serial += 1
        serial = self._last_serial
        self.by_serial[serial] = entry
        if entry.key in self.serials:
            self._let_go(self.serials[entry.key])
        self.serials[entry.key] = serial
        self._in_time_order = self._in_time_order and entry.updated_ms >= self._latest
        self._latest = max(self._latest, entry.updated_ms)
        if self._limited_kinds and (kind := self._limited_kinds.get(entry.kind)) is not None:
            kind.count += 1
        if entry.pinned:
            self._pinned.add(serial)
        else:
            for order in self._orders_of(entry):
                order.add(serial, entry.worth, entry.updated_ms)
        if entry.expires_ms is not None:
            self._expiries.push((entry.expires_ms, serial))

    def amend(self, entry: Entry) -> None:
        """Replace the entry of its key by one of the same time, in its place."""
        serial = self.serials[entry.key]
        former = self.by_serial[serial]
        self.by_serial[serial] = entry
        (self._pinned.add if entry.pinned else self._pinned.discard)(serial)
        for order in self._orders_of(entry):
            if not former.pinned:
                order.leave(serial, former.worth)
            if not entry.pinned:
                order.add(serial, entry.worth, entry.updated_ms)
        if entry.expires_ms != former.expires_ms:
            if former.expires_ms is not None:
                self._expiries.died()
            if entry.expires_ms is not None:
                self._expiries.push((entry.expires_ms, serial))

    def remove(self, key: str) -> None:
        """Take out the entry of that key, live or expired, if there is one."""
        if key in self.serials:
            self._let_go(self.serials[key])
            del self.serials[key]

    def sizes(self) -> dict[str, int]:
        """The numbers of items in the heaps, dead ones included; tests hold them bounded."""
        return {**self._order.sizes(), "expiries": len(self._expiries)}

    def _orders_of(self, entry: Entry) -> list[EvictionOrder]:
        kind = self._limited_kinds.get(entry.kind) if self._limited_kinds else None
        return [self._order] if kind is None else [self._order, kind.order]

    def _let_go(self, serial: int) -> None:
        entry = self.by_serial.pop(serial)
        self._pinned.discard(serial)
        for order in self._orders_of(entry):
            order.discard(serial, None if entry.pinned else entry.worth)
        if self._limited_kinds and (kind := self._limited_kinds.get(entry.kind)) is not None:
            kind.count -= 1
        if entry.expires_ms is not None:
            self._expiries.died()

    def _all_live(self, now: int) -> bool:
        """Whether nothing has expired."""
        first = self._expiries.first()
        return first is None or now < first[0]
