"""The entries of one memory by key and in order, and the recall index that follows them.

No lock, no clock, no store: the caller passes ``now`` and keeps other threads out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import attrgetter

from .._basics.heap import LazyHeap
from ..entry import Entry
from .eviction import EvictionOrder

__all__ = ["EntrySet"]


def _expiries(entries: Mapping[int, Entry]) -> LazyHeap:
    """A heap for the expiries of entries: ``(expiry, serial)``, while the entry has that expiry."""
    return LazyHeap(entries, lambda item: entries[item[-1]].expires_ms == item[0])


class _Kind:
    """The entries of a kind with a limit of its own: how many are stored, and who goes first."""

    def __init__(self, limit: int, order: EvictionOrder) -> None:
        self.limit = limit
        self.order = order
        self.count = 0


class EntrySet:
    """Entries by key, each with a serial number that says when it was last remembered.

    ``by_serial`` is the truth, and everything else follows from it: the keys, the order of expiry,
    the orders of eviction. Each change touches the truth first and in single steps, so that after
    an interruption at any line a new set of ``stored()`` is whole.

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
        self._expiries = _expiries(self.by_serial)
        self._order = EvictionOrder(self.by_serial, window)
        self._kinds = {
            kind: _Kind(limit, EvictionOrder(self.by_serial, window))
            for kind, limit in limits.items()
        }
        self._newest = -math.inf  # the latest time that an entry had
        self._by_time = True  # whether entries came in the order of their times
        for entry in entries:
            self.put(entry)

    def __len__(self) -> int:
        """How many are stored, the expired ones too."""
        return len(self.by_serial)

    def stored(self) -> list[Entry]:
        """The entries, the expired ones too, in the order in which they were last remembered.

        One for each key, also after an interruption: then of two the one that was put later.
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
        """How many are live."""
        if self._all_live(now):
            return len(self.by_serial)
        return sum(entry.is_live(now) for entry in self.by_serial.values())

    def count_kinds(self, *, now: int) -> dict[str, int]:
        """How many are live of each kind."""
        return dict(Counter(entry.kind for entry in self.by_serial.values() if entry.is_live(now)))

    def count_pins(self, kind: str | None = None, *, without: str, now: int) -> int:
        """How many live entries are pinned, of one kind or of all, that of one key not counted."""
        return sum(
            entry.pinned and entry.is_live(now) and entry.key != without
            for entry in self.by_serial.values()
            if kind is None or entry.kind == kind
        )

    def oldest_first(self, *, now: int) -> list[Entry]:
        """The live entries; those of one millisecond in the order in which they were remembered."""
        live = list(self.by_serial.values())
        if not self._all_live(now):
            live = [entry for entry in live if entry.is_live(now)]
        if not self._by_time:
            live.sort(key=attrgetter("updated_ms"))
        return live

    def expired(self, *, now: int) -> list[Entry]:
        """The expired entries, in the order in which they were last remembered."""
        items = []
        while (first := self._expiries.first()) and first[0] <= now:
            items.append(first)
            self._expiries.pop()
        for item in items:
            self._expiries.push(item)
        # An entry whose expiry was changed back stands there twice.
        return [self.by_serial[serial] for serial in sorted({item[-1] for item in items})]

    def first_to_go(self, *, now: int) -> Entry | None:
        """The entry of the lowest retention; ``None`` if all that there are is pinned."""
        serial = self._order.first_to_go(now=now)
        return None if serial is None else self.by_serial[serial]

    def first_to_go_of(self, kind: str, *, now: int) -> Entry | None:
        """The entry of the lowest retention of a kind with a limit; ``None`` as above."""
        serial = self._kinds[kind].order.first_to_go(now=now)
        return None if serial is None else self.by_serial[serial]

    def kinds_over_limit(self) -> list[str]:
        """The kinds that have more entries than their own limit."""
        return [name for name, kind in self._kinds.items() if kind.count > kind.limit]

    def put(self, entry: Entry) -> None:
        """Add an entry as the last remembered one, or replace the one of its key."""
        self._last_serial += 1
        serial = self._last_serial
        self.by_serial[serial] = entry
        if entry.key in self.serials:
            self._let_go(self.serials[entry.key])
        self.serials[entry.key] = serial
        self._by_time = self._by_time and entry.updated_ms >= self._newest
        self._newest = max(self._newest, entry.updated_ms)
        if self._kinds and (kind := self._kinds.get(entry.kind)) is not None:
            kind.count += 1
        if not entry.pinned:
            for order in self._orders_of(entry):
                order.add(serial, entry.worth, entry.updated_ms)
        if entry.expires_ms is not None:
            self._expiries.push((entry.expires_ms, serial))

    def amend(self, entry: Entry) -> None:
        """Replace the entry of its key by one of the same time, in its place."""
        serial = self.serials[entry.key]
        former = self.by_serial[serial]
        self.by_serial[serial] = entry
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
        """How many items each part holds, the dead ones too: what must not grow without end."""
        return {**self._order.sizes(), "expiries": len(self._expiries)}

    def _orders_of(self, entry: Entry) -> list[EvictionOrder]:
        kind = self._kinds.get(entry.kind) if self._kinds else None
        return [self._order] if kind is None else [self._order, kind.order]

    def _let_go(self, serial: int) -> None:
        entry = self.by_serial.pop(serial)
        for order in self._orders_of(entry):
            order.discard(serial, None if entry.pinned else entry.worth)
        if self._kinds and (kind := self._kinds.get(entry.kind)) is not None:
            kind.count -= 1
        if entry.expires_ms is not None:
            self._expiries.died()

    def _all_live(self, now: int) -> bool:
        """Whether nothing has expired."""
        first = self._expiries.first()
        return first is None or now < first[0]
