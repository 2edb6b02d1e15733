"""Memories in a SQLite file: a row for each entry, so that a save costs what it changes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakValueDictionary, finalize, ref

from .._basics.forks import Forks
from .._basics.times import waiting_option
from ..document import State
from ..errors import DamagedStoreError, StoreConflictError
from . import _database, _files, _paths, _rows
from ._tables import Table
from .protocol import Changes

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["SQLiteStore"]

_TIMEOUT: Final = 30.0
_LONGEST_WAIT_FOR_READERS: Final = 1.0  # seconds, once; a reader may hold its snapshot for hours


class _Call:
    """A call under way. Only its ``with`` block holds it, the store does so weakly.

    So the call ends even if its end is interrupted, in whatever thread that happens.
    """

    __slots__ = ("__weakref__", "_store", "_thread")

    def __init__(self, store: SQLiteStore) -> None:
        self._thread = threading.get_ident()
        self._store = store

    def __enter__(self) -> None:
        self._store.begin_call(self)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._store.end_call(self)
        translated = None if error is None else _database.translated_error(error, self._store.path)
        if translated is not None:
            raise translated from (None if isinstance(translated, DamagedStoreError) else error)

    def __del__(self) -> None:
        with suppress(AttributeError):  # interrupted before it had a store
            self._store.end_call(self)

    def is_here(self) -> bool:
        """Whether this thread is in the call."""
        return self._thread == threading.get_ident()


class _Open(NamedTuple):
    """A connection that this process made."""

    db: Connection
    identity: _database.Identity
    finalizer: finalize[..., Any]


def _nothing() -> None:
    """Stand in for a weak reference when there is none."""


class SQLiteStore:
    """Keeps one document in the SQLite file at ``path``, under ``name`` among others there.

    ``path`` is a ``str`` or a path object; ``~`` is the home folder. The constructor touches no
    file. The store can be used from several threads, by several processes, and on after a fork; a
    copy or a pickle of it is a new store, which has not read anything. ``timeout`` is how long a
    call waits for another writer of the file, at least 0 seconds or a ``timedelta``; then there
    is a ``TimeoutError``. A number that is not one of these is ignored,
    with an ``IgnoredValueWarning``.

    One transaction a save, on the disk when it returns, and what it costs depends on what it
    changes. Beside the file there may be two more, ``-wal`` and ``-shm``, which belong to it.
    Text that was removed or replaced is in none of them when the save returns, but for what
    ``erasure_pending`` says. In a file, a memory is erased by deleting its row of the table
    ``memories``. Rows have checksums and are not to be edited by hand. When a file is opened, it
    is read once from end to end, about a millisecond for each megabyte.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SQLiteStore(os.path.join(folder, "guests.db"), "guest 1")
    ...     print(store.load())
    ...     store.save({"version": 1, "entries": []})
    ...     print(store.load())
    ...     store.close()
    None
    {'version': 1, 'entries': []}
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str = "",
        *,
        timeout: float | timedelta = _TIMEOUT,
    ) -> None:
        self._path: Final = _paths.absolute(path)
        self._name: Final = _rows.checked_name(name)
        self._timeout: Final = waiting_option(timeout, "timeout", _TIMEOUT)
        self._table: Final = Table(self._name, self._path)
        self._known: str | None = None  # the token of the document that may be overwritten
        self._coming: str | None = None  # the token of a document that a failed save may have left
        self._pending = False  # whether removed text may still be in the log
        self._inherited = False  # whether the log is to be emptied for another reason
        self._lock = threading.RLock()
        self._call: Callable[[], _Call | None] = _nothing
        self._turn: Callable[[], _Turn | None] = _nothing
        self._opened: _Open | None = None
        _forks.register(self)

    @property
    def path(self) -> str:
        """The absolute path; a later change of the working folder does not change it."""
        return self._path

    @property
    def name(self) -> str:
        """The name of the document among those in the file."""
        return self._name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._path!r}, {self._name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self._path, self._name, self._timeout)

    @property
    def version(self) -> str | None:
        """A token for the document last loaded or saved, ``None`` if there was none."""
        return self._known

    @property
    def erasure_pending(self) -> bool:
        """Whether text that a save removed may still be in the file ``-wal``.

        It may be while another program reads a state from before that save. Erasing it is tried for
        a second, and again at every later save and ``sweep``.
        """
        return self._pending

    def load(self) -> State | None:
        """The stored document, ``None`` if there is none.

        From now on a save may overwrite it, even if no memory loaded it: to overwrite on purpose,
        call ``store.load()`` before the save.

        Raises ``DamagedStoreError``, with the file untouched and still not to be overwritten,
        for a file that is not a whole database of memories, also an empty one; ``TimeoutError``;
        other ``OSError`` as the system raises them.
        """
        with self._alone():
            db = self._connected()
            if db is None:
                self._known = self._coming = None
                return None
            try:
                token, state = self._read(db)
            except DamagedStoreError:
                self._known = self._coming = None
                raise
            self._known, self._coming = token, None
            return state

    def save(self, state: State, /) -> None:
        """Replace the document, wholly or not at all; it is on the disk when this returns.

        Missing folders and a missing file are made, for their owner only. Raises, with the
        document as it was: ``StoreConflictError`` if it is not what this store last read or
        wrote, or if that has vanished; ``TypeError`` or ``ValueError`` for a state that ``load``
        could not give back; ``TimeoutError`` if another writer was not done in time;
        ``DamagedStoreError``, and ``OSError`` if the disk is full, a permission is missing, and
        so on.
        """
        rest, rows = _rows.to_rows(state)
        self._put(rest, rows, None)

    def save_changes(self, changes: Changes, /) -> None:
        """Apply the changes to the document, as ``save`` does, at a cost in proportion to them.

        Applying the same changes twice has the effect of once. With no document, they are changes
        of an empty one.

        >>> import os, tempfile
        >>> from sentinel_memory.stores import Changes
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = SQLiteStore(os.path.join(folder, "guests.db"))
        ...     store.save({"version": 1, "entries": [{"key": "a", "data": 1}]})
        ...     store.save_changes(Changes([{"key": "b", "data": 2}], ["a"], {"version": 1}))
        ...     print(store.load())
        ...     store.close()
        {'version': 1, 'entries': [{'key': 'b', 'data': 2}]}
        """
        self._put(*_rows.split_changes(changes))

    def changed(self) -> bool:
        """Whether the stored document is another one than was last loaded or saved.

        Also if it has vanished; reads one row.
        """
        with self._alone():
            db = self._connected()
            if db is None:
                return self._known is not None
            memory = _database.patiently(lambda: self._table.find(db), self._path, self._timeout)
            return not self._is_ours(None if memory is None else memory.token)

    def exclusive(self) -> AbstractContextManager[object]:
        """A block in which nobody else writes the file: no other thread, no other process.

        ``load``, ``save`` and ``save_changes`` in the block, by this store and this thread, are
        part of it. A save in it is on the disk when it returns, whatever comes after it. Whoever
        else saves waits, up to ``timeout``. A missing file is made.

        Raises ``TimeoutError`` as ``save`` does, ``RuntimeError`` at once if this thread is in
        such a block of the same file already.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = SQLiteStore(os.path.join(folder, "guests.db"))
        ...     with store.exclusive():
        ...         state = store.load() or {"version": 1, "entries": []}
        ...         store.save({**state, "visits": state.get("visits", 0) + 1})
        ...     print(store.load()["visits"])
        ...     store.close()
        1
        """
        return _Turn(self)

    def sweep(self) -> None:
        """Remove the remains of killed writers: text in the log, and temp files."""
        target = _paths.resolve(self._path)
        with self._alone():
            with suppress(OSError):  # no folder, or one that may not be listed
                _files.sweep(_files.temp_files(target))
            db = self._connected()
            if db is not None and not db.in_transaction and _database.log_size(target):
                self._erase(db)

    def close(self) -> None:
        """Give back the connection to the file; the next call opens it again.

        Nothing needs it, but for a file that is to be moved or, on Windows, deleted.
        """
        with self._alone():
            if self._turn() is not None:
                raise RuntimeError("close inside exclusive(), which needs the connection")
            self._disconnect()

    # Inside ``_alone``, where the store is for this thread only

    def _connected(self, *, make: bool = False) -> Connection | None:
        """The connection to the file that is there now, ``None`` without a file."""
        target = _paths.resolve(self._path)
        identity = _database.identity_of(target)
        if self._opened is not None:
            if self._opened.identity == identity:
                return self._opened.db
            self._disconnect()  # the file was deleted or replaced
        if identity is None:
            if not make:
                return None
            _database.make_database(target)
        inherited = _database.log_size(target) > 0
        db = _database.open_database(target, self._path, self._timeout)
        if db is None:
            if make:
                raise self._conflict("was deleted by somebody else just now")
            return None
        # Closed by a finalizer, since a connection that is collected open only warns.
        finalizer = finalize(self, _close_own, db, os.getpid())
        self._opened = _Open(db, _database.identity_of(target) or (0, 0), finalizer)
        self._inherited = inherited
        return db

    def _disconnect(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.finalizer()

    def _begin(self, db: Connection) -> None:
        """Begin a transaction as the only writer, if there is none yet."""
        if db.in_transaction:
            return
        assert self._opened is not None
        other = _turns.get(self._opened.identity)
        if other is not None and other.store is not self and other.is_here():
            raise RuntimeError(
                f"{self._path}: this thread is in an exclusive block of this file, by another"
                " store, and would wait for itself"
            )
        _database.patiently(lambda: db.execute("BEGIN IMMEDIATE"), self._path, self._timeout)

    def _is_ours(self, token: str | None) -> bool:
        """Whether this store has read or written the document of that token, or knows of none."""
        return token == self._known or (token is not None and token == self._coming)

    def _read(self, db: Connection) -> tuple[str | None, State | None]:
        if self._turn() is not None:
            self._begin(db)
            return self._table.read(db)
        _database.patiently(lambda: self._begin_reading(db), self._path, self._timeout)
        try:
            return self._table.read(db)
        finally:
            db.execute("ROLLBACK")

    def _begin_reading(self, db: Connection) -> None:
        db.execute("BEGIN")
        try:
            db.execute("SELECT 1 FROM memories LIMIT 1").fetchone()
        except BaseException:
            db.execute("ROLLBACK")
            raise

    def _put(self, rest: str, rows: list[_rows.Row], gone: list[str] | None) -> None:
        """Write these rows, in place of all if ``gone`` is ``None``."""
        token = _rows.new_token()
        with self._alone():
            if self._known is not None and not _database.identity_of(_paths.resolve(self._path)):
                raise self._conflict()
            db = self._connected(make=True)
            assert db is not None
            assert self._opened is not None
            waited = self._pending
            self._begin(db)
            try:
                removed = self._write(db, token, rest, rows, gone)
                self._pending = self._pending or removed
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            if _database.identity_of(_paths.resolve(self._path)) != self._opened.identity:
                raise self._conflict("was deleted or replaced while it was written")
            self._known, self._coming = token, None
            if self._pending or self._inherited:
                self._erase(db, 0 if waited or not self._pending else _LONGEST_WAIT_FOR_READERS)
            if self._turn() is not None:
                with suppress(TimeoutError):  # then the next call in the block waits
                    self._begin(db)

    def _write(
        self, db: Connection, token: str, rest: str, rows: list[_rows.Row], gone: list[str] | None
    ) -> bool:
        """Write within the transaction; whether old text was deleted."""
        memory = self._table.find(db)
        old = None if memory is None else memory.token
        if not self._is_ours(old):
            raise self._conflict()
        if memory is None:
            # Move it from the log into the file, so that it is found there whatever becomes of the
            # log.
            self._inherited = True
        # The commit may be interrupted, or fail and have taken place: until it is known, both
        # tokens are accepted as our own.
        self._known, self._coming = old, token
        return self._table.write(db, memory, token, rest, rows, gone)

    def _erase(self, db: Connection, seconds: float = 0) -> None:
        if _database.truncate_log(db, seconds):
            self._pending = self._inherited = False

    def _conflict(self, what: str = "") -> StoreConflictError:
        if not what:
            if self._known is not None:
                what = "changed since this store last read or wrote it, or has vanished"
            else:
                what = "exists, and this store has not read it"
        memory = f"{self._path}, memory {self._name!r}," if self._name else self._path
        return StoreConflictError(
            f"{memory} {what}; nothing was written. Load it into the memory to go on from"
            " there, or call load() of the store and save again to overwrite it"
        )

    def _alone(self) -> _Call:
        """A block for one thread at a time; during an exclusive block, only for its thread."""
        return _Call(self)

    def _end_abandoned(self) -> None:
        """Give up a transaction that belongs to no block, so that others can write."""
        opened = self._opened
        # A finalizer that is not alive has closed the connection, at the end of the program.
        if self._turn() is not None or opened is None or not opened.finalizer.alive:
            return
        if opened.db.in_transaction:
            opened.db.execute("ROLLBACK")

    def _is_used_elsewhere(self) -> bool:
        call, turn = self._call(), self._turn()
        return (call is not None and not call.is_here()) or (
            turn is not None and not turn.is_here()
        )

    # Called by the other classes of this module

    def begin_call(self, call: _Call) -> None:
        """Begin a call, after waiting for those of other threads."""
        end = _database.deadline(self._timeout)
        while True:
            with self._lock:  # never held for longer
                if not self._is_used_elsewhere():
                    if self._call() is not None:
                        raise RuntimeError(
                            f"{self!r} is in the middle of a call of this very thread;"
                            " in a signal handler set a flag, and save when the call has returned"
                        )
                    self._call = ref(call)
                    break
            _database.wait_until(end, self._path, self._timeout)
        self._end_abandoned()

    def end_call(self, call: _Call) -> None:
        """End a call, so that other threads may begin theirs, unless it has ended already."""
        if self._call() is call:
            try:
                self._end_abandoned()
            finally:
                self._call = _nothing

    def enter(self, turn: _Turn) -> None:
        """Begin an exclusive block."""
        with self._alone():
            if self._turn() is not None:
                raise RuntimeError(f"{self!r}: this thread is in an exclusive block of it already")
            db = self._connected(make=True)
            assert db is not None
            assert self._opened is not None
            self._begin(db)
            self._turn = ref(turn)
            _turns[self._opened.identity] = turn

    def leave(self, turn: _Turn) -> None:
        """End an exclusive block, in whatever thread that happens, unless it has ended."""
        with self._lock:
            if self._turn() is not turn:
                return
            self._turn = _nothing
            if self._call() is None:  # otherwise the call does it at its end
                self._end_abandoned()
            for identity, other in list(_turns.items()):
                if other is turn:
                    _turns.pop(identity, None)

    def before_fork(self) -> None:
        """Wait for the call or block of another thread, and close the connection.

        A child that inherits it must neither use nor close it, nor open another one: SQLite would
        take the locks of the parent for its own.
        """
        end = _database.deadline(self._timeout)
        self._lock.acquire()
        while self._is_used_elsewhere():
            self._lock.release()
            waited = _database.pause_until(end)
            self._lock.acquire()
            if not waited:
                break
        if self._call() is None and self._turn() is None:
            self._disconnect()

    def in_parent(self) -> None:
        """Go on as before the fork."""
        self._lock.release()

    def in_child(self) -> None:
        """Go on without the threads of the parent, and without their unfinished saves."""
        self._lock = threading.RLock()
        self._call = self._turn = _nothing
        self._coming = None
        if self._opened is not None:
            self._opened.finalizer.detach()
            _database.keep_inherited(self._opened.db)
            self._opened = None


class _Turn:
    """An exclusive block; it also ends when no reference to it is left."""

    def __init__(self, store: SQLiteStore) -> None:
        self.store: Final = store
        self._thread = 0

    def __enter__(self) -> None:
        self._thread = threading.get_ident()
        self.store.enter(self)

    def __exit__(self, *_: object) -> None:
        self.store.leave(self)

    def __del__(self) -> None:
        self.store.leave(self)

    def is_here(self) -> bool:
        """Whether this thread is in the block."""
        return self._thread == threading.get_ident()


_turns: Final[WeakValueDictionary[_database.Identity, _Turn]] = WeakValueDictionary()
"""The exclusive block of each file that this process is in."""


def _close_own(db: Connection, process: int) -> None:
    if os.getpid() == process:
        _database.close(db)
    else:
        _database.keep_inherited(db)


def _unpickled(kind: type[SQLiteStore], path: str, name: str, timeout: float) -> SQLiteStore:
    """A copy of a store, which has read nothing."""
    return kind(path, name, timeout=timeout)


_forks: Final = Forks(
    before=SQLiteStore.before_fork,
    in_parent=SQLiteStore.in_parent,
    in_child=SQLiteStore.in_child,
)
