"""The recall index of one memory, kept in step with its entries."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from operator import attrgetter

from ..entry import Entry
from ..recall.protocol import RecallIndex
from .entries import EntrySet

__all__ = ["FollowingIndex"]


class FollowingIndex:
    """A recall index that follows the entries, also when it refuses one or is interrupted.

    ``_waiting`` has the entries that the index has yet to take; ``_touched`` the keys of a change
    that is under way, whose postings may be half made.
    """

    def __init__(self, index: RecallIndex) -> None:
        self._index = index
        # What no index can refuse need not be indexed before the first question.
        self._can_wait = bool(getattr(index, "refuses_nothing", False))
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
            self._index.discard(entry.key)  # it may have been added in part
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
        """End the change: the entries of the caller agree with the index now."""
        self._touched.clear()

    def follow(
        self, former: Iterable[Entry], entries: Iterable[Entry], *, postpone: bool = False
    ) -> None:
        """Hold ``entries`` instead of ``former``; entries that are in both stay as they are.

        The caller replaces its ``EntrySet`` and calls ``done``. If the index refuses an entry, its
        exception is raised, and the caller goes back by calling this the other way round with
        ``postpone``: then an entry that is refused waits until the index takes it. An index that
        refuses nothing gets all of them with the first question.
        """
        before = {entry.key: entry for entry in former}
        after = {entry.key: entry for entry in entries}
        outdated = [key for key, entry in before.items() if not _is_same(entry, after.get(key))]
        outdated += self._touched
        # All that will be touched is noted before the first of it is.
        self._touched = dict.fromkeys([*outdated, *(key for key in after if key not in before)])
        for key in outdated:
            self._discard(key)
        # Oldest first, the order in which an index meets entries as they are remembered.
        for entry in sorted(after.values(), key=attrgetter("updated_ms")):
            if entry.key in self._touched:
                self._waiting[entry.key] = entry
        if self._can_wait:
            return
        if postpone:
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
        self._waiting.clear()  # a dict gives back its memory only when it is cleared

    def prepare(self, queries: Iterable[str]) -> None:
        """Let an index that has a ``prepare`` do what takes long, before any lock is taken."""
        prepare = getattr(self._index, "prepare", None)
        if prepare is not None:
            for query in queries:
                prepare(query)

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
    # Equal entries may have equal data with its members in another order: the index saw the line.
    return entry is other or (other is not None and entry.line == other.line and entry == other)
