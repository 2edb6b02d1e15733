"""The entries of one memory by key and in order, and the recall index that follows them.

No lock, no clock, no store: the caller passes ``now`` and keeps other threads out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from operator import attrgetter

from .._basics.heap import LazyHeap
from ..entry import Entry
from ..recall.protocol import RecallIndex
from .eviction import EvictionOrder

__all__ = ["EntrySet", "FollowingIndex"]


class EntrySet:
    """Entries by key, each with a serial number that says when it was last remembered.

    ``by_serial`` is the truth, and everything else follows from it: the keys, the order of expiry,
    the order of eviction. Each change touches the truth first and in single steps, so that after an
    interruption at any line a new set of ``stored()`` is whole.
    """

    def __init__(self, window: float, entries: Iterable[Entry] = ()) -> None:
        self._window = window
        self._last_serial = 0
        self.by_serial: dict[int, Entry] = {}
        self.serials: dict[str, int] = {}
        # Both know by the same dict which serial numbers are living.
        self._expiries = LazyHeap(self.by_serial)  # (expiry, serial)
        self._order = EvictionOrder(self.by_serial, window)
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
        if self._all_live(now):
            return []
        return [entry for entry in self.by_serial.values() if not entry.is_live(now)]

    def first_to_go(self, *, now: int) -> Entry:
        """The entry of the lowest retention; ``LookupError`` if there is none."""
        serial = self._order.first_to_go(now=now)
        if serial is None:
            raise LookupError("there is no entry that could go")
        return self.by_serial[serial]

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
        self._order.add(serial, entry.importance, entry.updated_ms)
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

    def _let_go(self, serial: int) -> None:
        entry = self.by_serial.pop(serial)
        self._order.discard(entry.importance)
        if entry.expires_ms is not None:
            self._expiries.died()

    def _all_live(self, now: int) -> bool:
        first = self._expiries.first()
        return first is None or now < first[0]


class FollowingIndex:
    """A recall index that follows the entries, also when it refuses one or is interrupted.

    ``_waiting`` has the entries that the index has yet to take; ``_touched`` the keys of a change
    that is under way, whose postings may be half made.
    """

    def __init__(self, index: RecallIndex) -> None:
        self._index = index
        self._waiting: dict[str, Entry] = {}
        self._touched: dict[str, None] = {}

    @property
    def is_whole(self) -> bool:
        """Whether no change of the index was left in the middle."""
        return not self._touched

    def exchange(self, former: Entry | None, entry: Entry) -> None:
        """Take ``entry`` in place of ``former``. If the index refuses it, nothing changes."""
        self._touched[entry.key] = None
        if former is not None:
            self._discard(former.key)
        try:
            self._index.add(entry)
        except BaseException:
            self._index.discard(entry.key)
            if former is not None:
                self._waiting[former.key] = former
                self._try_waiting()
            self._touched.clear()
            raise
        # Still touched: the caller puts the entry into its set, and calls ``done``.

    def discard(self, key: str) -> None:
        """Forget the entry of that key; the caller removes it from its set, and calls ``done``."""
        self._touched[key] = None
        self._discard(key)

    def done(self) -> None:
        """Note that the set has followed."""
        self._touched.clear()

    def follow(
        self, former: Iterable[Entry], entries: Iterable[Entry], *, later: bool = False
    ) -> None:
        """Hold ``entries`` instead of ``former``; entries that are in both are left as they are.

        The caller exchanges its set, and calls ``done``. What the index raises if it refuses an
        entry is raised, and the caller follows back with ``later``: then an entry that is refused
        is taken as soon as the index takes it.
        """
        before = {entry.key: entry for entry in former}
        after = {entry.key: entry for entry in entries}
        gone = [key for key, entry in before.items() if not _is_same(entry, after.get(key))]
        gone += self._touched
        # All that will be touched is noted before the first of it is.
        self._touched = dict.fromkeys([*gone, *(key for key in after if key not in before)])
        for key in gone:
            self._discard(key)
        # Oldest first, the order in which an index meets entries as they are remembered.
        for entry in sorted(after.values(), key=attrgetter("updated_ms")):
            if entry.key in self._touched:
                self._waiting[entry.key] = entry
        if later:
            self._try_waiting()
        else:
            self.take_waiting()

    def repair(self, entries: EntrySet) -> None:
        """Follow ``entries`` again where a change was left in the middle."""
        for key in list(self._touched):
            self._discard(key)
            entry = entries.get(key)
            if entry is not None:
                self._waiting[key] = entry
        self._touched.clear()
        self._try_waiting()

    def take_waiting(self) -> None:
        """Give the index what it has yet to take; what it raises is raised."""
        for key in list(self._waiting):
            try:
                self._index.add(self._waiting[key])
            except BaseException:
                self._index.discard(key)
                raise
            del self._waiting[key]
        self._waiting.clear()  # also gives back the room that a load took

    def search(self, query: str) -> object:
        """What the index answers, after it has taken what it has yet to take."""
        if self._waiting:
            self.take_waiting()
        return self._index.search(query)

    def _discard(self, key: str) -> None:
        self._waiting.pop(key, None)
        self._index.discard(key)

    def _try_waiting(self) -> None:
        """Take what is waiting, if the index works now; otherwise when it is asked a question."""
        with suppress(Exception):
            self.take_waiting()


def _is_same(entry: Entry, other: Entry | None) -> bool:
    return entry is other or (other is not None and entry.line == other.line and entry == other)
