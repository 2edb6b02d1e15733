"""Everything that a memory holds, and every way in which it changes: no lock, no clock, no store.

Eviction. When it is due: ``_compact_if_over`` after a change, ``_fitting`` at a load. Who goes: the
entry of lowest retention, by the formula in ``retention.py``. ``eviction.py`` finds it among those
that are stored, one after another, and ``fitting.py`` finds all of them in a document by one sort.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from .._basics.numbers import DEFAULTS
from ..document import RESERVED, Section
from ..entry import Entry
from ..recall.protocol import RecallIndex
from ..recall.several import best_of
from ..results import Compaction, Events, LoadResult
from .changes import Change, Counters, Snapshot
from .entries import EntrySet
from .fitting import Limits
from .following import FollowingIndex
from .numbering import Numbering
from .reading import (
    Document,
    restore_section,
    section_text,
)
from .rejects import Rejects

__all__ = ["Contents"]

_T = TypeVar("_T")


class Contents:
    """The entries, the sections, what loads set aside, the counters, and the number of changes.

    ``half_made`` is true in the middle of a change. If it still is when nobody is changing
    anything, an exception came between two steps (Ctrl-C, a signal handler), and ``repair`` makes
    everything whole again from the entries.
    """

    def __init__(
        self,
        *,
        limit: int | None,
        limits: Mapping[str, int] | None,
        window: float,
        index: RecallIndex,
    ) -> None:
        # A limit that was not given may come from a document.
        self._given_limit, self._given_limits = limit, limits
        self.limit: int = DEFAULTS["limit"] if limit is None else limit
        self.limits: Mapping[str, int] = {} if limits is None else dict(limits)
        self.numbers = Numbering()
        self.entries = EntrySet(window, self.limits)
        self.sections: dict[str, Section] = {}
        self.rejects = Rejects()
        self.counters = Counters()
        self.changes = 0
        self.half_made = False
        # The keys whose entries may differ from the stored document; ``None``: any may. A dict, for
        # its order. It is noted before the entry changes, and one key too many does no harm.
        self.touched: dict[str, None] | None = None
        self._window = window
        self._index = FollowingIndex(index)
        self._unknown: dict[str, str] = {}  # sections that nothing is attached to, as JSON text

    # Looking

    def prepare(self, queries: Iterable[str]) -> None:
        """Call the ``prepare`` of the index for each question; no lock may be held."""
        self._index.prepare(queries)

    def search(self, queries: Iterable[str]) -> object:
        """The answer of the index to a question that is asked in several forms."""
        return best_of(self._index.search(query) for query in queries)

    @property
    def has_unknown_sections(self) -> bool:
        """Whether the document has sections that nothing is attached to."""
        return bool(self._unknown)

    def snapshot(self, *, now: int) -> Snapshot:
        """The contents as they are to be saved: of the entries, the live ones."""
        return self._snapshot(self.entries.oldest_first(now=now), now)

    def unsaved(self, *, now: int) -> Snapshot | None:
        """A snapshot with the touched entries only; ``None`` if any entry may be touched."""
        if self.touched is None:
            return None
        entries = self.entries.to_append(self.touched)
        gone = [key for key in self.touched if key not in self.entries.serials]
        return self._snapshot(entries, now)._replace(gone=gone)

    def everything(self, *, now: int) -> Snapshot:
        """The contents as ``undo`` puts them back: of the entries, the expired ones too."""
        return self._snapshot(self.entries.stored(), now)

    def _snapshot(self, entries: list[Entry], now: int) -> Snapshot:
        # As text: a section may hand out objects that it goes on changing.
        sections = {
            name: json.dumps(section.dump(now=now), allow_nan=False)
            for name, section in self.sections.items()
        }
        return Snapshot(
            changes=self.changes,
            limit=self.limit,
            limits=self.limits,
            numbers=dict(self.numbers.highest),
            entries=entries,
            sections=sections,
            unknown=dict(self._unknown),
            rejects=self.rejects,
            counters=self.counters,
            touched=None if self.touched is None else list(self.touched),
        )

    # Changing

    def repair(self) -> None:
        """Rebuild everything from the stored entries after a change that was interrupted."""
        self.changes += 1  # some entries may have changed
        self.touched = None
        self.entries = EntrySet(self._window, self.limits, self.entries.stored())
        self._index.repair(self.entries)
        self.half_made = False

    def put(self, change: Change, make: Callable[[Entry | None], Entry], key: str) -> Entry:
        """Store ``make(former)`` under ``key``, then evict if that is over a limit.

        ``former`` is the live entry of the key, or ``None``. If the index refuses the new entry,
        nothing changes.
        """
        former = self.entries.get(key)
        is_live = former is not None and former.is_live(change.now)
        entry = make(former if is_live else None)
        if entry.pinned and not (former is not None and is_live and former.pinned):
            self._need_room_for_pin(entry, change.now)
        self._take_in(former, entry)
        if entry.repeats > 1:
            change.repeated.append(entry)
        elif former is not None:
            change.removed.append(("replaced" if is_live else "expired", former))
        self._compact_if_over(change)
        self._tell(change)
        self.half_made = False
        return entry

    def _take_in(self, former: Entry | None, entry: Entry) -> None:
        """Put ``entry`` in place of ``former``, and leave it to the caller to end the change.

        If the index refuses the entry, nothing changes.
        """
        self.half_made = True
        try:
            self._index.exchange(former, entry)
        except BaseException:
            self.half_made = not self._index.is_whole
            raise
        self.changes += 1
        self._touch(entry.key)
        self.entries.put(entry)
        self._index.done()
        self.numbers.note_key(entry)

    def amend(self, change: Change, key: str, make: Callable[[Entry], Entry]) -> Entry | None:
        """Put ``make(entry)`` in place of the live entry of that key; ``None`` if there is none.

        Data, time and order stay, and so does the index.
        """
        former = self.entries.live(key, now=change.now)
        if former is None:
            return None
        entry = make(former)
        if entry == former:
            return former
        if entry.pinned and not former.pinned:
            self._need_room_for_pin(entry, change.now)
        self.half_made = True
        self.changes += 1
        self._touch(key)
        self.entries.amend(entry)
        self.half_made = False
        return entry

    def put_back(self, change: Change, entries: Iterable[Entry]) -> tuple[Entry, ...]:
        """Add entries as they are where their key is free, then evict if that is over a limit.

        Returns the added entries that are still there. If the index refuses one of them, nothing
        changes.
        """
        before = self.everything(now=change.now)
        added = []
        try:
            for entry in entries:
                former = self.entries.get(entry.key)
                if not entry.is_live(change.now) or (former and former.is_live(change.now)):
                    continue
                self._take_in(former, entry)
                added.append(entry)
                if former is not None:
                    change.removed.append(("expired", former))
        except BaseException:
            self.undo(before, now=change.now)
            raise
        if added:
            self._compact_if_over(change)
            self._tell(change)
            self.half_made = False
        return tuple(entry for entry in added if self.entries.get(entry.key) is entry)

    def prune(self, change: Change, asked: Iterable[Entry]) -> tuple[Entry, ...]:
        """Forget each of ``asked`` that was not replaced or changed since; those that went."""
        pruned = [entry for entry in asked if self.entries.get(entry.key) is entry]
        for entry in pruned:
            self._forget(change, entry.key)
        self._tell(change)
        return tuple(pruned)

    def _need_room_for_pin(self, entry: Entry, now: int) -> None:
        key, kind = entry.key, entry.kind
        of_all = self.limit, None, "the limit"
        of_kind = self.limits.get(kind), kind, f"the kind {kind!r}"
        for most, within, name in (of_all, of_kind):
            if most and self.entries.count_pins(within, without=key, now=now) >= most:
                raise ValueError(
                    f"{key!r} cannot be pinned: all {most} places of {name} are pinned;"
                    " unpin or forget one first"
                )

    def forget(self, change: Change, key: str) -> bool:
        """Remove the entry of that key, and rejected items of that key; whether it was live."""
        went = self._forget(change, key)
        self._tell(change)
        return went

    def _forget(self, change: Change, key: str) -> bool:
        entry = self.entries.get(key)
        becomes_empty = len(self.entries) == (0 if entry is None else 1)
        left = self.rejects.without_key(key, becomes_empty=becomes_empty)
        if entry is None and len(left.items) == len(self.rejects.items):
            self.rejects = left
            return False
        self.half_made = True
        self.changes += 1
        self.rejects = left
        is_live = entry is not None and entry.is_live(change.now)
        if entry is not None:
            self._remove(key)
            change.removed.append(("forgotten" if is_live else "expired", entry))
        self.half_made = False
        return is_live

    def clear(self, change: Change) -> None:
        """Remove everything: entries, sections and what loads set aside."""
        self.half_made = True
        self.changes += 1
        self.touched = None
        former = self.entries.stored()
        self._index.follow(former, ())
        self.entries = EntrySet(self._window, self.limits)
        self.numbers = Numbering()
        self._index.done()
        self._unknown = {}
        self.rejects = self.rejects.without_text()
        for section in self.sections.values():
            section.clear()
        for entry in former:
            change.removed.append(("forgotten" if entry.is_live(change.now) else "expired", entry))
        self._tell(change)
        self.half_made = False

    def compact(self, change: Change) -> Compaction:
        """Remove what has expired."""
        self.half_made = True
        compaction = self._compact(change)
        if compaction.expired or compaction.evicted:
            self.changes += 1
        self._tell(change)
        self.half_made = False
        return compaction

    def drop_expired(self, change: Change) -> None:
        """Remove what has expired, because a save is about to leave it out of the store."""
        expired = self.entries.expired(now=change.now)
        self.rejects = self.rejects.without_expired()
        if expired:
            self.half_made = True
            self.changes += 1
            for entry in expired:
                self._remove(entry.key)
            change.removed += [("expired", entry) for entry in expired]
            self._tell(change)
            self.half_made = False

    def clear_section(self, name: str) -> None:
        """Clear one section, and remove what loads set aside of it."""

        def clear() -> None:
            self.sections[name].clear()
            self.rejects = self.rejects.without_section(name)

        self.in_section(clear)

    def in_section(self, make: Callable[[], _T]) -> _T:
        """Change a section with ``make``. If that raises, the section has to be as it was.

        Then no change is counted.
        """
        self.half_made = True
        try:
            result = make()
            self.changes += 1
        finally:
            self.half_made = False
        return result

    def attach(self, name: str, section: Section, *, now: int) -> None:
        """Keep a section under that name, restored from the document if that had it."""
        if name in self.sections or name in RESERVED:
            raise ValueError(f"the document already has a section {name!r}")
        if name in self._unknown:
            value = json.loads(self._unknown[name])
            self.rejects = self.rejects.and_also(restore_section(name, section, value, now))
            del self._unknown[name]
        self.sections[name] = section

    def replace(self, document: Document, change: Change, *, altered: bool = False) -> LoadResult:
        """Hold what the document has, and nothing else; if anything raises, nothing changes."""
        unknown = {
            name: section_text(name, value)
            for name, value in document.sections.items()
            if name not in self.sections
        }
        now = change.now
        before = self.everything(now=now)
        self.half_made = True
        self.touched = None
        try:
            rejected = list(document.rejected)
            self.limit = self._limit_of(document)
            given = self._given_limits
            self.limits = document.limits if given is None else given
            # Entries over a limit are left out before anything is put in order or indexed.
            fitting, removed = self._fitting(document.entries, change)
            self._index.follow(before.entries, fitting)
            self.entries = EntrySet(self._window, self.limits, fitting)
            self.numbers = Numbering(document.numbers)
            for entry in document.entries if document.numbers else ():
                self.numbers.note_key(entry)
            for name, section in self.sections.items():
                if name in document.sections:
                    rejected += restore_section(name, section, document.sections[name], now)
                else:
                    section.clear()
        except BaseException:
            self.undo(before, now=now)
            raise
        self._index.done()
        self._unknown = unknown
        loaded, dropped = len(document.entries), len(rejected)
        result = LoadResult(loaded, dropped, tuple(rejected), removed, altered)
        self.rejects = self.rejects.of_load(document.rejected_before, result)
        self.changes += 1
        self._tell(change)
        self.half_made = False
        return result

    def undo(self, before: Snapshot, *, now: int) -> None:
        """Be as in the snapshot again: the one way to undo a change, a load or a transaction."""
        self.half_made = True
        self._index.follow(self.entries.stored(), before.entries, postpone=True)
        self.limit, self.limits = before.limit, before.limits
        self.numbers = Numbering(before.numbers)
        self.entries = EntrySet(self._window, self.limits, before.entries)
        self._index.done()
        self._unknown = dict(before.unknown)
        self.rejects = before.rejects
        self.counters = before.counters
        self.touched = None if before.touched is None else dict.fromkeys(before.touched)
        self.changes = before.changes
        for name, section in self.sections.items():
            if name in before.sections:
                section.restore(json.loads(before.sections[name]), now=now)
            else:
                section.clear()  # attached since
        self.half_made = False

    def _touch(self, key: str) -> None:
        if self.touched is not None:
            self.touched[key] = None

    def _remove(self, key: str) -> None:
        self._touch(key)
        self._index.discard(key)
        self.entries.remove(key)
        self._index.done()

    def _compact_if_over(self, change: Change) -> None:
        if self.entries.is_over(self.limit):
            change.compaction = self._compact(change)

    def _compact(self, change: Change) -> Compaction:
        """Remove what has expired, then what is over a limit: the entries of lowest retention."""
        now = change.now
        expired = self.entries.expired(now=now)
        for entry in expired:
            self._remove(entry.key)
        evicted = []
        while (lowest := self.entries.next_over(self.limit, now=now)) is not None:
            self._remove(lowest.key)
            evicted.append(lowest)
        return self._count_compaction(change, expired, evicted)

    def _fitting(
        self, entries: list[Entry], change: Change
    ) -> tuple[list[Entry], Compaction | None]:
        """The entries of a document that fit into the limits, and what had to go.

        The same entries as ``_compact`` would leave, found by one sort.
        """
        limits = Limits(self.limit, self.limits, self._window)
        if limits.are_enough_for(entries):
            return entries, None
        fitting, expired, evicted = limits.fitting(entries, now=change.now)
        return fitting, self._count_compaction(change, expired, evicted)

    def _count_compaction(
        self, change: Change, expired: list[Entry], evicted: list[Entry]
    ) -> Compaction:
        """The compaction that removed these, counted and noted in the change."""
        compaction = Compaction(tuple(expired), tuple(evicted))
        self.counters = self.counters.after(compaction)
        change.compaction_count += 1
        change.removed += [("expired", entry) for entry in expired]
        change.removed += [("evicted", entry) for entry in evicted]
        return compaction

    def _limit_of(self, document: Document) -> int:
        """The given limit, else that of the document, else one that loses nothing of it."""
        if self._given_limit is not None:
            return self._given_limit
        if document.limit is not None:
            return document.limit
        return max(int(DEFAULTS["limit"]), len(document.entries))

    def _tell(self, change: Change) -> None:
        """Call ``observe`` of the sections that have it, before the change is saved.

        If one raises, the change stays in memory, neither saved nor reported.
        """
        if not (change.removed or change.compaction_count or change.repeated):
            return
        observers = [section for section in self.sections.values() if hasattr(section, "observe")]
        if observers:
            events = Events(tuple(change.removed), change.compaction_count, tuple(change.repeated))
            for section in observers:
                section.observe(events, now=change.now)
