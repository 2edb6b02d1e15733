"""How a memory is looked at, changed, saved, loaded and transacted: locks, clock and store.

Theory of operation
-------------------
Every call of a memory goes through one of two doors. ``look`` holds the short lock. ``change`` is
the only way to change anything, in four steps: the change itself, during which sections that
observe are told what has left; the automatic save; the end of the locks; ``on_evict``.

Between a change and its save other threads see the change. The save is put off by a batch to the
end of its block and by a transaction to its own end, while ``on_evict`` waits for the transaction
only; without autosave there is none until the caller asks for it. A save of another thread writes
what a batch has changed so far. Each save first removes what has expired, which is a change of its
own. If the store fails, ``on_evict`` is called all the same, the caller is told, the change stays
in memory, and the next save writes it.

Something is unsaved if ``Contents.changes``, which grows by one with every change, differs from
``_saved``, its value at the last save or load. ``_stale`` is true while a document was read from
the store and not wholly taken over (a load or an undo that was interrupted, a transaction that a
fork cut off). Saving is then refused: a store lets a document be overwritten once it was read, and
would lose what this memory never took over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from threading import get_ident
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Final, TypeVar

from .._basics.forks import Forks
from .._basics.times import Clock
from ..document import VERSION, Section, State
from ..errors import DamagedStoreError, StoreConflictError
from ..results import Compaction, LoadResult
from ..stores._codec import check_levels
from ..stores.protocol import Store
from .batches import Batch, is_in_batch, open_batch
from .changes import Change, Snapshot
from .contents import Contents
from .locks import Locks
from .reading import read_document

__all__ = ["Saver", "SectionDoor"]

_T = TypeVar("_T")
_ASYNC_RESULTS: Final = (CoroutineType, GeneratorType, AsyncGeneratorType)

_FIRST_PAUSE: Final = 0.001
_LONGEST_PAUSE: Final = 0.05
"""Bounds of the pause before a transaction is tried again, in seconds.

The bound starts at the first and doubles with each conflict up to the longest; a pause is random
between 0 and its bound. Raised, there are fewer conflicts and losers wait longer. Tried: these, and
no pause, with which the 100 tries of one of four writers ran out in 4 of 21 runs.
"""


class _Transaction:
    """A transaction under way: its thread, its reports, and whether its change is running now."""

    def __init__(self) -> None:
        self.thread = get_ident()
        self.reports: list[Compaction] = []  # they wait for its save
        self.is_running = False


class Saver:
    """The two doors of a memory, and how its contents get to the store and back."""

    def __init__(
        self,
        contents: Contents,
        clock: Clock,
        *,
        store: Store | None,
        autosave: bool,
        on_evict: Callable[[Compaction], object] | None,
    ) -> None:
        self.store = store
        self.now = clock
        self._contents = contents
        self._autosaves = autosave
        self._on_evict = on_evict
        self._locks = Locks()
        self._saved = contents.changes
        self._version: object = None  # of the store, when it had the same contents
        self._stale = False
        self._transaction: _Transaction | None = None
        _forks.register(self)

    @property
    def short_lock(self) -> AbstractContextManager[object]:
        """The lock that is held while the memory is looked at."""
        return self._locks.short

    # The two doors

    def look(self, see: Callable[[int], _T]) -> _T:
        """Return ``see(now)``, called while nobody changes anything."""
        now = self.now()
        locks = self._locks
        with locks.short:
            if not self._contents.half_made:
                former, locks.short_thread = locks.short_thread, get_ident()
                result = see(now)
                locks.short_thread = former
                return result
        if locks.holds_short():
            raise _reentry()
        return self._with_contents(lambda: see(now))

    def change(self, make: Callable[[Change], _T]) -> _T:
        """Return ``make(change)``, called alone; save after it, and report what was evicted."""
        change = Change(self.now())
        locks, inside = self._locks, self._is_inside_transaction()
        reports: list[Compaction] = []
        try:
            with locks.long:
                former, locks.long_thread = locks.long_thread, get_ident()
                self._end_lost_transaction(inside)
                result = self._with_contents(lambda: make(change))
                if change.compaction is not None:
                    reports = self._reports_of(change.compaction)
                self._autosave_if_unsaved(change.now)
                locks.long_thread = former
        finally:
            # Also if the save failed: the entries have left the memory already.
            if reports:
                self._report(reports)
        return result

    def _is_inside_transaction(self) -> bool:
        """Whether the change of a running transaction makes this call.

        A call that comes in on a thread that is in the middle of another call is refused.
        """
        locks, me = self._locks, get_ident()
        if locks.short_thread == me and locks.holds_short():
            raise _reentry()
        if locks.long_thread != me or not locks.holds_long():
            return False
        if self._transaction is None or not self._transaction.is_running:
            raise _reentry()
        return True

    def _alone(self, work: Callable[[], _T], *, inside: bool = False) -> _T:
        """Return ``work()``, called while no other thread changes, loads or saves."""
        locks = self._locks
        with locks.long:
            former, locks.long_thread = locks.long_thread, get_ident()
            self._end_lost_transaction(inside)
            result = work()
            locks.long_thread = former
            return result

    def _end_lost_transaction(self, inside: bool) -> None:
        """Drop a transaction that is over, and that an interrupt kept from saying so."""
        if not inside:
            self._transaction = None

    def _with_contents(self, make: Callable[[], _T]) -> _T:
        """Return ``make()``, called with the short lock and whole contents."""
        locks = self._locks
        with locks.short:
            former, locks.short_thread = locks.short_thread, get_ident()
            # Nobody is changing anything, so this is what an exception left in the middle.
            if self._contents.half_made:
                self._contents.repair()
            result = make()
            locks.short_thread = former
            return result

    # Saving and loading

    def save(self) -> None:
        """Write the document to the store."""
        now = self.now()
        self._refuse_inside("save")
        self._alone(lambda: self._save(now))

    def save_unsaved(self) -> None:
        """Write the document to the store, if anything in it is not saved."""
        now = self.now()
        if not self._is_inside_transaction():
            self._alone(lambda: self._save(now) if self._is_unsaved() else None)

    def load(self, store: Store) -> LoadResult:
        """Replace the contents by those of the store."""
        now = self.now()
        self._refuse_inside("load")
        return self._alone(lambda: self._take_over(store.load(), now))

    def refresh(self, store: Store) -> bool:
        """Load if the store has another document than this memory; whether it did."""
        now = self.now()
        self._refuse_inside("refresh")
        return self._alone(lambda: self._refresh(store, now))

    def _refresh(self, store: Store, now: int) -> bool:
        if self._is_in_step(store):
            return False
        if self._is_unsaved():
            raise StoreConflictError(
                "the store has changed, and this memory has changes that are not saved; load()"
                " takes over what is stored and drops them"
            )
        self._take_over(store.load(), now)
        return True

    def restore(self, state: State) -> LoadResult:
        """Replace the contents by ``state``; never saves."""
        now = self.now()
        try:
            check_levels(state)  # what no save could write is refused
        except (ValueError, RecursionError) as error:
            raise DamagedStoreError(str(error)) from None
        document = read_document(state)
        replace = partial(self._contents.replace, document, Change(now))
        return self._alone(
            lambda: self._with_contents(replace), inside=self._is_inside_transaction()
        )

    def sweep(self) -> None:
        """Remove what dead writers left beside the store, if it can hold such things."""
        sweep = getattr(self.store, "sweep", None)
        if sweep is not None:
            self._alone(sweep, inside=self._is_inside_transaction())

    def attach(self, name: str, section: Section) -> None:
        """Keep ``section`` in the document under ``name``; does not count as a change."""
        # Without unknown sections there is nothing to restore yet, and the time is not needed.
        now = self.now() if self._contents.has_unknown_sections else 0
        attach = partial(self._contents.attach, name, section, now=now)
        self._alone(lambda: self._with_contents(attach), inside=self._is_inside_transaction())

    def snapshot(self) -> Snapshot:
        """The contents as they are to be saved."""
        return self.look(lambda now: self._contents.snapshot(now=now))

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Put off the automatic saves of the running code to the end of the outermost block."""
        batch = Batch(self)
        try:
            open_batch(batch)
            yield
        finally:
            batch.close()
            if self._autosaves:
                inside = self._is_inside_transaction()
                self._alone(partial(self._autosave_if_unsaved, self.now()), inside=inside)

    def transact(self, store: Store, change: Callable[[], _T], attempts: int) -> _T:
        """Load, apply ``change``, save; again on a conflict, up to ``attempts`` times."""
        self._refuse_inside("transact")
        reports: list[Compaction] = []
        try:
            return self._alone(lambda: self._transact(store, change, attempts, reports))
        finally:
            self._report(reports)

    def _transact(
        self, store: Store, change: Callable[[], _T], tries: int, reports: list[Compaction]
    ) -> _T:
        if self._is_unsaved():
            self._save(self.now())
        # A store that can keeps other writers out from the load to the save: all get their turn.
        exclusive = getattr(store, "exclusive", nullcontext)
        results: list[_T] = []
        pause = _FIRST_PAUSE
        while True:
            tries -= 1
            with exclusive():
                conflict = self._attempt(store, lambda: results.append(_run(change)), reports)
            if conflict is None:
                return results[-1]
            if not tries:
                raise conflict
            # Without a pause the last winner would win again.
            time.sleep(pause * (time.perf_counter_ns() % 997) / 997)  # random, by a prime number
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _attempt(
        self, store: Store, change: Callable[[], None], reports: list[Compaction]
    ) -> StoreConflictError | None:
        """One try: load what is new, change, save; or undo, and return the conflict."""
        # From here to its save, nothing of it may be saved by anybody, a forked child neither.
        self._transaction = mine = _Transaction()
        try:
            if not self._is_in_step(store):
                self._take_over(store.load(), self.now())
            now = self.now()
            before = self._with_contents(lambda: self._contents.everything(now=now))
            try:
                mine.is_running = True
                try:
                    change()
                finally:
                    mine.is_running = False
            except BaseException:
                self._undo(before, now)
                raise
            try:
                self._save(self.now())
            except StoreConflictError as conflict:
                self._undo(before, now)
                return conflict
            except BaseException:
                reports += mine.reports  # the entries have left the memory already
                raise
            reports += mine.reports
            return None
        finally:
            self._transaction = None

    def _refuse_inside(self, call: str) -> None:
        if self._is_inside_transaction():
            raise RuntimeError(f"{call} inside transact, which itself loads before and saves after")

    # With the long lock held

    def _is_unsaved(self) -> bool:
        return self._contents.changes != self._saved

    def _autosave_if_unsaved(self, now: int) -> None:
        if not self._autosaves or not self._is_unsaved():
            return
        if self._transaction is None and not is_in_batch(self):
            self._save(now)

    def _save(self, now: int) -> None:
        if self._stale:
            raise StoreConflictError(
                "what the store has was read, but this memory did not take it over, or only in"
                " part; saving would overwrite it: load again first"
            )
        assert self.store is not None
        # To no other document than the one that this memory loaded or saved last.
        save_changes: Any = getattr(self.store, "save_changes", None)
        version = getattr(self.store, "version", None)
        if version is None or version != self._version:
            save_changes = None
        snapshot = self._with_contents(
            partial(self._drop_expired_and_snapshot, Change(now), save_changes is not None)
        )
        if snapshot.gone is None:
            self.store.save(snapshot.document())
        else:
            save_changes(snapshot.as_changes())
        self._note_stored(snapshot.changes)

    def _drop_expired_and_snapshot(self, change: Change, only_changes: bool) -> Snapshot:
        # What has expired does not outlive a save: neither in the store nor here.
        self._contents.drop_expired(change)
        unsaved = self._contents.unsaved(now=change.now) if only_changes else None
        return self._contents.snapshot(now=change.now) if unsaved is None else unsaved

    def _note_stored(self, changes: int, *, exactly: bool = True) -> None:
        """Note that the store has the contents as they were after so many changes.

        ``exactly``: what it has as entries are the entries of the contents, no more and no less.
        """
        keeps_changes = exactly and hasattr(self.store, "save_changes")
        self._contents.touched = {} if keeps_changes else None
        self._version = getattr(self.store, "version", None)
        self._saved = changes

    def _is_in_step(self, store: Store) -> bool:
        """Whether the store can tell that it still has what this memory loaded or saved last."""
        changed = getattr(store, "changed", None)
        if self._stale or changed is None or getattr(store, "version", None) != self._version:
            return False
        return not changed()

    def _take_over(self, state: State | None, now: int) -> LoadResult:
        self._stale = True
        document = read_document(
            {"version": VERSION, "entries": []} if state is None else state,
            self._contents.entries.get if len(self._contents.entries) else None,
        )
        altered = bool(getattr(self.store, "altered", False))
        replace = partial(self._contents.replace, document, Change(now), altered=altered)
        result = self._with_contents(replace)
        self._stale = False
        exactly = not result.rejected and result.compaction is None
        self._note_stored(self._contents.changes, exactly=exactly)
        return result

    def _undo(self, before: Snapshot, now: int) -> None:
        self._stale = True
        self._with_contents(lambda: self._contents.undo(before, now=now))
        self._stale = False

    # Reports

    def _reports_of(self, compaction: Compaction) -> list[Compaction]:
        """The compactions that ``on_evict`` is to be called with as soon as no lock is held."""
        if self._on_evict is None or not any(compaction):
            return []
        if self._transaction is not None:
            self._transaction.reports.append(compaction)
            return []
        return [compaction]

    def _report(self, reports: list[Compaction]) -> None:
        """Call ``on_evict`` with each of them, then raise the first exception that it raised."""
        errors = []
        for report in reports:
            assert self._on_evict is not None
            try:
                self._on_evict(report)
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    # Forks

    def before_fork(self) -> None:
        """Wait until no change is half made."""
        self._locks.before_fork()

    def after_fork_in_parent(self) -> None:
        """Go on as before the fork."""
        self._locks.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        """Go on without the other threads, and without what one of them was about to save."""
        transaction = self._transaction
        if transaction is not None and transaction.thread != get_ident():
            self._transaction = None
            self._stale = True
        self._locks.after_fork_in_child()


class SectionDoor:
    """The ``Attachment`` of a section, which does not keep the memory alive."""

    def __init__(self, name: str, contents: Contents, saver: Saver) -> None:
        self._name = name
        self._contents = contents
        self._saver = saver

    def read(self, see: Callable[[int], _T], /) -> _T:
        return self._saver.look(see)

    def change(self, make: Callable[[int], _T], /) -> _T:
        return self._saver.change(
            lambda change: self._contents.in_section(lambda: make(change.now))
        )

    def clear(self) -> None:
        self._saver.change(lambda _: self._contents.clear_section(self._name))


def _run(change: Callable[[], _T]) -> _T:
    result = change()
    if isinstance(result, _ASYNC_RESULTS):
        raise TypeError("change must be a plain function: an async one has not run yet")
    return result


def _reentry() -> RuntimeError:
    return RuntimeError(
        "the memory was called in the middle of one of its own calls on this thread (by a signal"
        " handler, a finalizer, an index, a section or a store); nothing was done. Let those set a"
        " flag, and call when the first call has returned"
    )


_forks: Final = Forks(
    before=Saver.before_fork,
    in_parent=Saver.after_fork_in_parent,
    in_child=Saver.after_fork_in_child,
)
