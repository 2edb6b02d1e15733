"""The bounded set of entries of one memory, with everything that follows it: order, expiry, index.

No lock, no clock, no store: the caller passes ``now`` and keeps other threads out.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from contextlib import suppress
from operator import attrgetter

from .._basics.heap import LazyHeap
from ..entry import Entry, Match
from ..ranking import score
from ..recall.protocol import RecallIndex, checked_answer, checked_relevance
from ..results import Compaction
from ..retention import freshness
from .eviction import EvictionOrder

__all__ = ["EntrySet"]


class EntrySet:
    """Entries by key, each with a serial number that says when it was last remembered."""

    def __init__(self, *, limit: int, window: float, index: RecallIndex) -> None:
        self._limit = limit
        self._window = window
        self._index = index
        self._to_index: dict[str, Entry] = {}  # what the index has yet to take, or to take back
        self._last_serial = 0
        self._reset()

    def _reset(self) -> None:
        self._serials: dict[str, int] = {}
        self._entries: dict[int, Entry] = {}
        self._expiries = LazyHeap(self._entries)  # (expiry, serial)
        self._newest = -math.inf  # the latest time that an entry had
        self._by_time = True  # whether entries came in the order of their times
        self._order = EvictionOrder(self._entries, self._window)

    def __len__(self) -> int:
        """How many are stored, the expired ones too."""
        return len(self._entries)

    def over_limit(self) -> bool:
        """Whether a compaction is due."""
        return len(self._entries) > self._limit

    def all(self) -> list[Entry]:
        """What is stored, in the order in which it was last remembered."""
        return list(self._entries.values())

    def stored(self, key: str) -> Entry | None:
        """The entry of that key, live or expired."""
        serial = self._serials.get(key)
        return None if serial is None else self._entries[serial]

    def live(self, key: str, *, now: int) -> Entry | None:
        """The entry of that key, if it is live."""
        entry = self.stored(key)
        return entry if entry is not None and entry._is_live(now) else None

    def count_live(self, *, now: int) -> int:
        """How many are live."""
        return len(self._live(now))

    def oldest_first(self, *, now: int) -> list[Entry]:
        """The live entries; those of one millisecond in the order in which they were remembered."""
        live = self._live(now)
        if not self._by_time:
            live.sort(key=attrgetter("_updated_ms"))
        return live

    def _live(self, now: int) -> list[Entry]:
        first = self._expiries.first()
        if first is None or now < first[0]:
            return self.all()  # before the first expiry of all
        return [entry for entry in self._entries.values() if entry._is_live(now)]

    def best(self, query: str, limit: int | None, *, now: int) -> list[Match]:
        """What the index finds relevant, best score first, ties newer first."""
        self._index_all()
        relevances = checked_answer(self._index.search(query), "index")
        found: list[tuple[float, int, int, float]] = []
        for key, value in relevances.items():
            serial = self._serials.get(key)
            if serial is None or not (entry := self._entries[serial])._is_live(now):
                continue
            relevance = checked_relevance(value, key)
            if relevance > 0:
                updated = entry._updated_ms
                fresh = freshness(updated, now=now, window=self._window)
                found.append(
                    (score(relevance, entry._importance, fresh), updated, serial, relevance)
                )
        # Only what is asked for becomes a value of its own.
        first = heapq.nlargest(len(found) if limit is None else limit, found)
        return [
            Match(self._entries[serial], relevance, points)
            for points, _, serial, relevance in first
        ]

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one of its key. If the index refuses it, nothing changes."""
        key = entry.key
        former = self.stored(key)
        if former is not None:
            self._unindex(key)
        try:
            self._index.add(entry)
        except BaseException:
            self._index.discard(key)
            if former is not None:
                self._to_index[key] = former
                self._try_index()
            raise
        if former is not None:
            self._take_out(key)
        self._take_in(entry)

    def remove(self, key: str) -> Entry | None:
        """Take out the entry of that key, live or expired."""
        return self._remove(key) if key in self._serials else None

    def replace_all(self, entries: Iterable[Entry], *, index_later: bool = False) -> None:
        """Hold these entries and no others. If the index refuses one, nothing changes.

        With ``index_later`` what it refuses is put into it as soon as it takes it.
        """
        former = self.all()
        if index_later:
            self._fill(entries)
            self._try_index()
            return
        try:
            self._fill(entries)
            self._index_all()
        except BaseException:
            self._fill(former)
            self._try_index()
            raise

    def compact(self, *, now: int) -> Compaction:
        """Remove what has expired and, over the limit, the lowest retention."""
        expired: list[tuple[int, Entry]] = []
        while (first := self._expiries.first()) and first[0] <= now:
            serial = first[-1]
            expired.append((serial, self._remove(self._entries[serial].key)))
        expired.sort(key=lambda pair: pair[0])
        evicted = []
        while self.over_limit():
            serial = self._order.first_to_go(now=now)
            evicted.append(self._remove(self._entries[serial].key))
        return Compaction(tuple(entry for _, entry in expired), tuple(evicted))

    def _remove(self, key: str) -> Entry:
        self._unindex(key)
        return self._take_out(key)

    def _fill(self, entries: Iterable[Entry]) -> None:
        """Hold these entries, all of which are to be indexed."""
        for key in self._serials:
            self._unindex(key)
        self._reset()
        for entry in entries:
            self._take_in(entry)
        # Oldest first, the order in which an index meets entries as they are remembered.
        for entry in sorted(self.all(), key=attrgetter("_updated_ms")):
            self._to_index[entry.key] = entry

    def _unindex(self, key: str) -> None:
        self._to_index.pop(key, None)
        self._index.discard(key)

    def _try_index(self) -> None:
        """Index what is to be, if the index works now; otherwise when it is asked a question."""
        with suppress(Exception):
            self._index_all()

    def _index_all(self) -> None:
        for key in list(self._to_index):
            try:
                self._index.add(self._to_index[key])
            except BaseException:
                self._index.discard(key)
                raise
            del self._to_index[key]
        self._to_index.clear()  # also gives back the room that a load took

    def _take_in(self, entry: Entry) -> None:
        self._last_serial += 1
        serial = self._last_serial
        self._serials[entry.key] = serial
        self._entries[serial] = entry
        self._by_time = self._by_time and entry._updated_ms >= self._newest
        self._newest = max(self._newest, entry._updated_ms)
        self._order.add(serial, entry)
        if entry._expires_ms is not None:
            self._expiries.push((entry._expires_ms, serial))

    def _take_out(self, key: str) -> Entry:
        entry = self._entries.pop(self._serials.pop(key))
        self._order.discard(entry)
        if entry._expires_ms is not None:
            self._expiries.died()
        return entry
