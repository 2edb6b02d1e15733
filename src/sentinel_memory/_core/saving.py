"""How a memory is kept in a store: its document, saving after changes, batches, transactions.

``Memory`` adds what it remembers and how it is asked.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Final, NoReturn, Self, TypeVar

from .._basics.checks import brief, check_callable, check_methods, check_str
from .._basics.numbers import finite_real, whole_option
from .._basics.times import LAST_EXPIRY
from ..document import RESERVED, VERSION, Attachment, Section, State
from ..errors import StoreConflictError
from ..results import Compaction, LoadResult
from ..stores.protocol import Store
from .contents import (
    Counters,
    read_document,
    restore_section,
    section_text,
    storable,
    stored_forms,
)
from .entries import EntrySet
from .locks import Locks

__all__ = ["Kept"]

_T = TypeVar("_T")
_EMPTY: Final[State] = {"version": VERSION, "entries": []}
_NOT_RUN: Final = (CoroutineType, GeneratorType, AsyncGeneratorType)


class Kept:
    """The part of ``Memory`` that knows locks, clock, store and document."""

    def __init__(
        self,
        entries: EntrySet,
        *,
        store: Store | None,
        autosave: bool,
        clock: Callable[[], float],
        on_evict: Callable[[Compaction], object] | None,
    ) -> None:
        check_methods("store", store, ("load", "save"), optional=True)
        check_callable("clock", clock)
        check_callable("on_evict", on_evict, optional=True)
        if autosave and store is None:
            raise ValueError("autosave needs a store: Memory(store=JsonFileStore(path), ...)")
        self._entries = entries
        self._store = store
        self._autosaves = autosave
        self._clock = clock
        self._on_evict = on_evict
        self._locks = Locks()
        self._thread = local()
        self._sections: dict[str, Section] = {}
        self._unknown: dict[str, str] = {}  # sections that nothing is attached to, as JSON text
        self._rejected: list[Any] = []
        self._changes = self._saved_changes = 0
        self._overdue = False  # whether a save failed, and none was done since
        self._refused = False  # whether what is here may be less than what the store was read for
        self._counters = Counters()
        self._transaction: object | None = None  # of the thread that is in one
        self._deferred: list[Compaction] | None = None  # a list while its change runs

    @property
    def store(self) -> Store | None:
        """The store given when the memory was made."""
        return self._store

    def save(self) -> None:
        """Write the document to the store; ``RuntimeError`` if there is none.

        What the store raises reaches the caller; the memory is as before, and the next save
        writes it.
        """
        self._need_store("save")
        now = self._now()
        with self._locks.writing:
            self._not_in_transaction("save")
            self._save(now)

    def load(self) -> LoadResult:
        """Replace entries, working state and every section by what the store has.

        Cache and counters stay. More entries than the limit are compacted: the result says what
        went, ``on_evict`` is not called, and it is in the store until the next save. Raises
        ``DamagedStoreError`` for a document that cannot be trusted, and what the store raises;
        then nothing changes.
        """
        store = self._need_store("load")
        now = self._now()
        with self._locks.writing:
            self._not_in_transaction("load")
            return self._as_loaded(store.load(), now)

    def to_state(self) -> dict[str, Any]:
        """The document as JSON data: live entries oldest first, working state, other sections.

        For programs that do their own input and output.

        >>> from sentinel_memory import Memory
        >>> Memory().to_state()
        {'version': 1, 'entries': [], 'working': {'data': {}, 'updatedAt': None}}
        """
        return self._snapshot(self._now())[0]

    def restore(self, state: dict[str, Any]) -> LoadResult:
        """Replace entries, working state and sections by ``state``, as ``load`` does; never saves.

        Raises ``TypeError`` if it is no ``dict`` and ``DamagedStoreError`` if it is not a
        document of this version; then nothing changes.
        """
        if not isinstance(state, dict):
            raise TypeError(f"state must be a dict, not {type(state).__name__}")
        now = self._now()
        with self._locks.writing:
            return self._restore(state, now)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Put off this thread's automatic saves to the end of the outermost block.

        It saves once, also when the block raises, if anything changed. Without ``autosave`` it
        does nothing.
        """
        self._thread.batches = getattr(self._thread, "batches", 0) + 1
        try:
            yield
        finally:
            self._thread.batches -= 1
            if self._autosaves and not self._thread.batches:
                now = self._now()
                with self._locks.writing:
                    if self._is_unsaved():
                        self._autosave(now)

    def transact(self, change: Callable[[Self], _T], *, attempts: float = 100) -> _T:
        """Apply ``change(memory)`` to what the store has now, and save: for several processes.

        Saves what is unsaved first. When another writer was faster, loads and starts again, up to
        ``attempts`` times (a whole number of at least 1), after pauses of up to 50 ms; then
        ``StoreConflictError``. Inside ``change``, a plain function, nothing is saved, and changes
        by other threads wait; what they read meanwhile is how far it has come. If it raises, the
        memory is as loaded. ``on_evict`` is called after the save, for the attempt that was saved.
        If the save fails otherwise, the change stays in memory and the next save writes it.
        Returns what ``change`` returned; ``RuntimeError`` without a store.
        """
        store = self._need_store("transact")
        check_callable("change", change)
        tries = whole_option(attempts, "attempts", least=1)
        reports: list[Compaction] = []
        try:
            with self._locks.writing:
                self._not_in_transaction("transact")
                if self._is_unsaved():
                    self._save(self._now())
                self._transaction = self._thread.transaction = object()
                try:
                    return self._transact(store, change, tries, reports)
                finally:
                    self._transaction = self._thread.transaction = None
        finally:
            self._report(reports)

    def attach(self, name: str, section: Section) -> Attachment:
        """Keep ``section`` in the document under ``name``, and clear it with the memory.

        A section has the methods ``dump(*, now)``, which returns JSON data, ``restore(value, *,
        now)``, which takes it over or raises ``ValueError``, and ``clear()``; ``now`` is in epoch
        milliseconds. What an earlier load found under that name is restored into it now. Raises
        ``ValueError`` for a name that is taken.
        """
        check_str("name", name)
        check_methods("section", section, ("dump", "restore", "clear"))
        now = self._now() if self._unknown else 0  # there is nothing to restore yet
        with self._locks.writing, self._locks.state:
            if name in self._sections or name in RESERVED:
                raise ValueError(f"the document already has a section {name!r}")
            if name in self._unknown:
                value = json.loads(self._unknown[name])
                self._rejected += stored_forms(restore_section(name, section, value, now))
                del self._unknown[name]
            self._sections[name] = section
        return _Attachment(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Save what is unsaved, if there is a store."""
        if self._store is not None:
            now = self._now()
            with self._locks.writing:
                if self._is_unsaved() and not self._in_transaction():
                    self._save(now)

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError(
            "a Memory cannot be copied or pickled;"
            " hand over memory.to_state(), and make one of it with Memory().restore(state)"
        )

    def _now(self) -> int:
        seconds = self._clock()
        number = finite_real(seconds)
        if number is None:
            raise TypeError(f"clock must return epoch seconds, not {brief(seconds)}")
        if not -LAST_EXPIRY <= number * 1000 <= LAST_EXPIRY:
            raise ValueError(f"clock must return epoch seconds, not {brief(seconds)}")
        now: int = math.floor(number * 1000)
        return now

    def _need_store(self, call: str) -> Store:
        if self._store is None:
            raise RuntimeError(
                f"{call} needs a store: Memory(store=JsonFileStore(path)) or Memory.open(path)"
            )
        return self._store

    def _not_in_transaction(self, call: str) -> None:
        if self._in_transaction():
            raise RuntimeError(f"{call} inside transact, which itself loads before and saves after")

    # With `writing` held

    def _in_transaction(self) -> bool:
        """Whether this is called by the change of a transaction."""
        if self._transaction is not getattr(self._thread, "transaction", None):
            # A fork left its thread behind, and what is here may be half of what it was doing.
            self._transaction = self._deferred = None
            self._refused = True
        return self._deferred is not None

    def _is_unsaved(self) -> bool:
        return self._changes != self._saved_changes

    def _autosave(self, now: int) -> None:
        batched = getattr(self._thread, "batches", 0)
        if self._autosaves and not batched and not self._in_transaction():
            self._save(now)

    def _save(self, now: int) -> None:
        if self._refused:
            raise StoreConflictError(
                "what the store has was read, but this memory did not take it over, or only in"
                " part; saving would overwrite it: load again first"
            )
        self._overdue = True
        state, changes = self._snapshot(now)
        self._store.save(state)  # type: ignore[union-attr]
        self._saved_changes = changes
        self._overdue = False

    def _report_or_defer(self, compaction: Compaction | None) -> list[Compaction]:
        """What ``on_evict`` is to be called with as soon as no lock is held."""
        if compaction is None or self._on_evict is None:
            return []
        if not compaction.expired and not compaction.evicted:
            return []
        if not self._in_transaction():
            return [compaction]
        self._deferred.append(compaction)  # type: ignore[union-attr]
        return []

    def _report(self, reports: list[Compaction]) -> None:
        """Call ``on_evict`` with all of them, whatever it raises; the first of that is raised."""
        errors = []
        for report in reports:
            try:
                self._on_evict(report)  # type: ignore[misc]
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _transact(
        self, store: Store, change: Callable[[Self], _T], tries: int, reports: list[Compaction]
    ) -> _T:
        pause = 0.0005
        while True:
            tries -= 1
            loaded = store.load()
            self._as_loaded(loaded, self._now())
            counters = self._counters
            try:
                result, compactions = self._apply(change)
            except BaseException:
                self._undo(loaded, counters)
                raise
            try:
                self._save(self._now())
            except StoreConflictError:
                self._undo(loaded, counters)
                if not tries:
                    raise
                # A winner is back before the others have woken up; let them in.
                pause = min(2 * pause, 0.05)
                time.sleep(pause * (time.perf_counter_ns() % 997) / 997)
            except BaseException:
                reports += compactions  # what was evicted is out of the memory all the same
                raise
            else:
                reports += compactions
                return result

    def _apply(self, change: Callable[[Self], _T]) -> tuple[_T, list[Compaction]]:
        """What ``change`` returns, and the compactions to report if it is saved."""
        deferred: list[Compaction] = []
        self._deferred = deferred
        try:
            result = change(self)
        finally:
            self._deferred = None
        if isinstance(result, _NOT_RUN):
            raise TypeError("change must be a plain function: an async one has not run yet")
        return result, deferred

    def _undo(self, loaded: State | None, counters: Counters) -> None:
        self._refused = True  # until all is as it was
        self._as_loaded(loaded, self._now(), undoing=True)
        self._counters = counters

    def _as_loaded(self, state: State | None, now: int, *, undoing: bool = False) -> LoadResult:
        self._refused = True
        result = self._restore(state, now, undoing=undoing)
        self._refused = self._overdue = False
        self._saved_changes = self._changes
        return result

    def _compact(self, now: int) -> Compaction:
        compaction = self._entries.compact(now=now)
        self._counters = self._counters.after(compaction)
        return compaction

    def _restore(self, state: State | None, now: int, *, undoing: bool = False) -> LoadResult:
        document = read_document(_EMPTY if state is None else state)
        sections = document.sections
        unknown = {
            name: section_text(name, value)
            for name, value in sections.items()
            if name not in self._sections
        }
        with self._locks.state:
            undo = self._entries.all(), self._dump_sections(now)
            rejected = list(document.rejected)
            try:
                self._entries.replace_all(document.entries, index_later=undoing)
                for name, section in self._sections.items():
                    if name in sections:
                        rejected += restore_section(name, section, sections[name], now)
                    else:
                        section.clear()
            except BaseException:
                self._entries.replace_all(undo[0], index_later=True)
                for name, section in self._sections.items():
                    section.restore(undo[1][name], now=now)
                raise
            self._unknown = unknown
            self._rejected = [*document.rejected_before, *stored_forms(rejected)]
            self._changes += 1
            compaction = self._compact(now) if self._entries.over_limit() else None
        return LoadResult(len(document.entries), len(rejected), tuple(rejected), compaction)

    def _dump_sections(self, now: int) -> dict[str, Any]:
        return {name: section.dump(now=now) for name, section in self._sections.items()}

    def _snapshot(self, now: int) -> tuple[State, int]:
        """The document, and the number of changes that are in it."""
        with self._locks.state:
            entries = self._entries.oldest_first(now=now)
            sections = self._dump_sections(now)
            unknown = dict(self._unknown)
            rejected = list(self._rejected)
            changes = self._changes
        state: State = {"version": VERSION, "entries": [entry._to_state() for entry in entries]}
        state.update(sections)
        state.update((name, json.loads(text)) for name, text in unknown.items())
        if rejected:
            state["rejected"] = storable(rejected)
        return state, changes


class _Attachment:
    """How the public side of a section reaches the memory."""

    def __init__(self, memory: Kept) -> None:
        self._memory = memory

    @contextmanager
    def read(self) -> Iterator[int]:
        now = self._memory._now()
        with self._memory._locks.state:
            yield now

    @contextmanager
    def change(self) -> Iterator[int]:
        memory = self._memory
        now = memory._now()
        with memory._locks.writing:
            with memory._locks.state:
                yield now
                memory._changes += 1
            memory._autosave(now)
