"""Everything that a memory holds, and every way in which it changes: no lock, no clock, no store.

When an eviction is due is decided here (``_compact``); who goes is decided in ``eviction``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from ..document import RESERVED, VERSION, Section, State, shape_problem
from ..entry import Entry, entry_from_state
from ..errors import DamagedStoreError
from ..recall.protocol import RecallIndex
from ..results import Cause, Compaction, Events, LoadResult, Rejected
from .entries import EntrySet, FollowingIndex

__all__ = ["Change", "Contents", "Counters", "Document", "Snapshot", "read_document"]

_T = TypeVar("_T")


class Counters(NamedTuple):
    """The numbers of compactions, and of entries that they removed, since the memory was made."""

    compactions: int = 0
    expired: int = 0
    evicted: int = 0

    def after(self, compaction: Compaction) -> Counters:
        """The counters after one more compaction."""
        return Counters(
            self.compactions + 1,
            self.expired + len(compaction.expired),
            self.evicted + len(compaction.evicted),
        )


class Change:
    """One change under way: the time of its call, and what it has caused so far."""

    __slots__ = ("compaction", "compactions", "now", "removed")

    def __init__(self, now: int) -> None:
        self.now = now
        self.compaction: Compaction | None = None  # the automatic one, if there was one
        self.compactions = 0
        self.removed: list[tuple[Cause, Entry]] = []


class Document(NamedTuple):
    """A document taken apart, before anything of it is taken over."""

    entries: list[Entry]
    sections: dict[str, Any]
    rejected: list[Rejected]  # in this reading
    rejected_before: list[Any]  # in earlier ones, as stored


class Snapshot(NamedTuple):
    """The contents at one moment, cheap to take: what is saved, and what an undo puts back."""

    changes: int  # how many changes are in it
    entries: list[Entry]
    sections: dict[str, str]  # as JSON text
    unknown: dict[str, str]
    rejected: list[Any]
    counters: Counters

    def document(self) -> State:
        """The snapshot as a document; takes long, and needs no lock."""
        state: State = {"version": VERSION, "entries": [entry.to_state() for entry in self.entries]}
        for texts in (self.sections, self.unknown):
            state.update((name, json.loads(text)) for name, text in texts.items())
        if self.rejected:
            state["rejected"] = _storable(self.rejected)
        return state


class Contents:
    """The entries, the sections, what loads set aside, the counters, and the number of changes.

    ``half_made`` is true in the middle of a change. If it still is when nobody is changing
    anything, an exception came between two steps (Ctrl-C, a signal handler), and ``repair`` makes
    everything whole again from the entries.
    """

    def __init__(self, *, limit: int, window: float, index: RecallIndex) -> None:
        self.limit = limit
        self.entries = EntrySet(window)
        self.sections: dict[str, Section] = {}
        self.rejected: list[Any] = []
        self.counters = Counters()
        self.changes = 0
        self.half_made = False
        self._window = window
        self._index = FollowingIndex(index)
        self._unknown: dict[str, str] = {}  # sections that nothing is attached to, as JSON text

    # Looking

    def search(self, query: str) -> object:
        """What the index answers to ``query``."""
        return self._index.search(query)

    @property
    def has_unknown_sections(self) -> bool:
        """Whether the document has sections that nothing is attached to."""
        return bool(self._unknown)

    def snapshot(self, *, now: int) -> Snapshot:
        """The contents as they are to be saved: of the entries, the live ones."""
        return self._snapshot(self.entries.oldest_first(now=now), now)

    def everything(self, *, now: int) -> Snapshot:
        """The contents as they are to be put back: of the entries, all."""
        return self._snapshot(self.entries.stored(), now)

    def _snapshot(self, entries: list[Entry], now: int) -> Snapshot:
        # As text: what a section dumps may be a part of itself, and change with it.
        sections = {
            name: json.dumps(section.dump(now=now), allow_nan=False)
            for name, section in self.sections.items()
        }
        rejected = list(self.rejected)
        return Snapshot(
            self.changes, entries, sections, dict(self._unknown), rejected, self.counters
        )

    # Changing

    def repair(self) -> None:
        """Make whole what an exception in the middle of a change has left."""
        self.changes += 1  # the change may have come as far as the entries
        self.entries = EntrySet(self._window, self.entries.stored())
        self._index.repair(self.entries)
        self.half_made = False

    def put(self, change: Change, make: Callable[[Entry | None], Entry], key: str) -> Entry:
        """Add the entry that ``make`` makes of the live former one, and evict what is too much.

        If the index refuses the entry, nothing changes.
        """
        former = self.entries.get(key)
        is_live = former is not None and former.is_live(change.now)
        entry = make(former if is_live else None)
        self.half_made = True
        try:
            self._index.exchange(former, entry)
        except BaseException:
            self.half_made = not self._index.is_whole
            raise
        self.changes += 1
        self.entries.put(entry)
        self._index.done()
        if former is not None:
            change.removed.append(("replaced" if is_live else "expired", former))
        if len(self.entries) > self.limit:
            change.compaction = self._compact(change)
        self._tell(change)
        self.half_made = False
        return entry

    def forget(self, change: Change, key: str) -> bool:
        """Remove the entry of that key and what loads rejected under it; whether it was live."""
        entry = self.entries.get(key)
        rejected = [raw for raw in self.rejected if _rejected_key(raw) != key]
        if entry is None and len(rejected) == len(self.rejected):
            return False
        self.half_made = True
        self.changes += 1
        self.rejected = rejected
        is_live = entry is not None and entry.is_live(change.now)
        if entry is not None:
            self._remove(key)
            change.removed.append(("forgotten" if is_live else "expired", entry))
        self._tell(change)
        self.half_made = False
        return is_live

    def clear(self, change: Change) -> None:
        """Remove everything: entries, sections and what loads set aside."""
        self.half_made = True
        self.changes += 1
        former = self.entries.stored()
        self._index.follow(former, ())
        self.entries = EntrySet(self._window)
        self._index.done()
        self._unknown = {}
        self.rejected = []
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

    def in_section(self, make: Callable[[], _T]) -> _T:
        """Change a section; if ``make`` raises, the section is as it was, and counts as that."""
        self.half_made = True
        try:
            result = make()
            self.changes += 1
        finally:
            self.half_made = False
        return result

    def attach(self, name: str, section: Section, *, now: int) -> None:
        """Keep a section under that name, restored from what a load found under it."""
        if name in self.sections or name in RESERVED:
            raise ValueError(f"the document already has a section {name!r}")
        if name in self._unknown:
            value = json.loads(self._unknown[name])
            self.rejected += _stored_forms(_restored(name, section, value, now))
            del self._unknown[name]
        self.sections[name] = section

    def replace(self, document: Document, change: Change) -> LoadResult:
        """Hold what the document has, and nothing else; if anything raises, nothing changes."""
        unknown = {
            name: _section_text(name, value)
            for name, value in document.sections.items()
            if name not in self.sections
        }
        now = change.now
        before = self.everything(now=now)
        self.half_made = True
        try:
            rejected = list(document.rejected)
            entries = EntrySet(self._window, document.entries)
            over = len(entries) > self.limit
            removed = self._take_out(entries, change, entries.remove) if over else None
            self._index.follow(before.entries, entries.stored())
            self.entries = entries
            for name, section in self.sections.items():
                if name in document.sections:
                    rejected += _restored(name, section, document.sections[name], now)
                else:
                    section.clear()
        except BaseException:
            self.put_back(before, now=now)
            raise
        self._index.done()
        self._unknown = unknown
        self.rejected = [*document.rejected_before, *_stored_forms(rejected)]
        self.changes += 1
        if removed is not None:
            self.counters = self.counters.after(removed)
        self._tell(change)
        self.half_made = False
        return LoadResult(len(document.entries), len(rejected), tuple(rejected), removed)

    def put_back(self, before: Snapshot, *, now: int) -> None:
        """Be as in the snapshot again: the one way to undo."""
        self.half_made = True
        self._index.follow(self.entries.stored(), before.entries, later=True)
        self.entries = EntrySet(self._window, before.entries)
        self._index.done()
        self._unknown = dict(before.unknown)
        self.rejected = list(before.rejected)
        self.counters = before.counters
        self.changes = before.changes
        for name, section in self.sections.items():
            if name in before.sections:
                section.restore(json.loads(before.sections[name]), now=now)
            else:
                section.clear()  # attached since
        self.half_made = False

    def _remove(self, key: str) -> None:
        self._index.discard(key)
        self.entries.remove(key)
        self._index.done()

    def _compact(self, change: Change) -> Compaction:
        compaction = self._take_out(self.entries, change, self._remove)
        self.counters = self.counters.after(compaction)
        return compaction

    def _take_out(
        self, entries: EntrySet, change: Change, remove: Callable[[str], None]
    ) -> Compaction:
        """Take out of ``entries`` the expired, and over the limit those of lowest retention."""
        expired = entries.expired(now=change.now)
        for entry in expired:
            remove(entry.key)
        evicted = []
        while len(entries) > self.limit:
            entry = entries.first_to_go(now=change.now)
            evicted.append(entry)
            remove(entry.key)
        change.compactions += 1
        change.removed += [("expired", entry) for entry in expired]
        change.removed += [("evicted", entry) for entry in evicted]
        return Compaction(tuple(expired), tuple(evicted))

    def _tell(self, change: Change) -> None:
        """Tell the sections that observe, before the change is saved."""
        observers = [section for section in self.sections.values() if hasattr(section, "observe")]
        if observers and (change.removed or change.compactions):
            events = Events(tuple(change.removed), change.compactions)
            for section in observers:
                section.observe(events, now=change.now)


def read_document(state: object) -> Document:
    """Take ``state`` apart; a ``DamagedStoreError`` if it is not a document of this version."""
    problem = shape_problem(state)
    if problem is not None:
        raise DamagedStoreError(problem)
    assert isinstance(state, dict)
    entries: dict[str, Entry] = {}
    rejected: list[Rejected] = []
    raw_by_key: dict[str, Any] = {}
    for raw in state["entries"]:
        try:
            entry = entry_from_state(raw)
        except (TypeError, ValueError) as error:
            rejected.append(Rejected(raw, str(error)))
            continue
        if entries.pop(entry.key, None) is not None:
            rejected.append(Rejected(raw_by_key[entry.key], "its key comes again later"))
        entries[entry.key] = entry
        raw_by_key[entry.key] = raw
    sections = {name: value for name, value in state.items() if name not in RESERVED}
    before = state.get("rejected", [])
    if not isinstance(before, list):
        rejected.append(Rejected(before, "the section rejected must be a list"))
        before = []
    return Document(list(entries.values()), sections, rejected, list(before))


def _restored(name: str, section: Section, value: Any, now: int) -> list[Rejected]:
    """Restore a section; one that is malformed is empty, and what it was is returned."""
    try:
        section.restore(value, now=now)
    except ValueError as error:
        section.clear()
        return [Rejected(value, f"section {name}: {error}")]
    return []


def _storable(value: Any) -> Any:
    """A copy of ``value`` as JSON data, lone surrogates and all; else a ``ValueError``."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not JSON data: {error}") from None


def _stored_forms(rejected: Iterable[Rejected]) -> Iterator[dict[str, Any]]:
    """The items of the section ``rejected`` that keep what a load rejected."""
    for raw, reason in rejected:
        # What came from a file is JSON; a program may hand over anything, and that is not kept.
        with suppress(ValueError):
            yield {"entry": _storable(raw), "reason": _storable(reason)}


def _rejected_key(stored: Any) -> Any:
    raw = stored.get("entry") if isinstance(stored, dict) else None
    return raw.get("key") if isinstance(raw, dict) else None


def _section_text(name: str, value: Any) -> str:
    """A section as JSON text, or a ``DamagedStoreError``."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DamagedStoreError(f"its section {name!r} is not JSON data: {error}") from None
