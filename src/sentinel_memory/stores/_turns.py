"""Turns at writing a file: one thread of one process has one at a time.

Three things order the writers of a document, and each has a hole that the next one closes.

1. A line in this process, by the folder's identity and the file's name. Threads wait in it first
   come, first served; a thread that would wait for itself gets an error at once. The line knows
   nothing of other processes.
2. The lock file beside the document, for processes. It is there before the document is, and its
   name stays while the document is replaced. But somebody may delete it while it is held, and the
   next writer locks a new one.
3. A lock on the document itself. It may be replaced while one waits, so its identity is checked
   after the lock was taken, and a writer locks the new file before it gets the old one's name:
   whoever has the lock of the file of that name is alone. But there may be no document yet; a
   first one is therefore made without replacing anything.

Files are locked in this order, and no turn holds one file of a kind while it waits for another of
that kind, so there is no deadlock. All waiting ends at one deadline. Where the file system has no
locks, a turn is a place in the line, and says so (``locked``).

An exclusive block belongs to the context that it was entered in (a thread, a task), so that its own
calls pass and those of a neighbour on the same thread do not.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from contextvars import ContextVar
from typing import Final, TypeAlias
from weakref import ref

from . import _files
from ._locks import (
    POLL,
    close_inherited,
    drop,
    drop_all,
    flock_available,
    lock_fds,
    locked_in_time,
    open_noted,
    opening,
    try_lock,
)
from ._paths import beside
from ._rights import (
    NOT_SUPPORTED,
    Rights,
    give_rights,
    make_private,
    may_change,
    refuse_foreign,
    rights_of,
)

__all__ = ["Turn", "give_up_turns"]

_Key: TypeAlias = tuple[int, int, str]

_FLAGS: Final = os.O_RDWR | _files.NO_LINK | _files.NO_WAIT | _files.SAFE
# Tries at a file that is replaced again and again, before pauses of POLL; larger spins longer.
_TRIES_AT_ONCE: Final = 20

_lines: Final[dict[_Key, list[ref[Turn]]]] = {}
"""The turns at each document in this process, guarded by ``opening``; the first one is at work.

They are held weakly: a turn whose end was interrupted ends when no other reference to it is left.
"""

_blocks: Final[ContextVar[tuple[ref[Turn], ...]]] = ContextVar(
    "sentinel_memory_exclusive", default=()
)
"""The exclusive turns that the context is in, held weakly for the same reason."""


class Turn:
    """A turn at writing ``target``, a path without links whose folder exists.

    From the beginning of its ``with`` block to the end, no other turn at ``target`` is at work. The
    block gets this turn, or the exclusive turn of the same ``owner`` that it is inside of. ``path``
    is the name of the document in errors: ``TimeoutError`` after ``timeout`` seconds of waiting,
    ``RuntimeError`` for a thread that would wait for itself, ``OSError`` for an ``exclusive`` turn
    where the file system has no locks; without ``locks``, none are asked for.
    """

    _over = True  # whether the block is over; also true before it is entered
    _ended = True  # whether no lock is held any more; also true before the block

    def __init__(
        self,
        target: str,
        *,
        owner: object,
        path: str,
        timeout: float,
        locks: bool,
        exclusive: bool = False,
    ) -> None:
        self.target: Final = target
        self.locked = False  # whether other processes are kept out, too
        self.marker: int | None = None  # the lock file, if it may be marked as in use
        self._owner, self._path, self._timeout = owner, path, timeout
        self._locks, self._exclusive = locks, exclusive
        self._lock: int | None = None
        self._document: int | None = None
        self._coming: int | None = None  # the new document, before it has its name
        self._looked_at: int | None = None  # a temp file whose writer may live

    def __enter__(self) -> Turn:
        folder = os.stat(os.path.dirname(self.target))
        lock_path = beside(self.target, "lock")
        self._key: _Key = folder.st_dev, folder.st_ino, os.path.basename(lock_path)
        outer = self._outer()
        if outer is not None:
            if self._exclusive or outer._owner is not self._owner:
                raise RuntimeError(
                    f"{self._path}: already inside an exclusive block of this very file, in which"
                    " only the store writes that it is a block of"
                )
            return outer
        self._over = self._ended = False
        self._deadline = time.monotonic() + self._timeout
        try:
            self._queue_up()
            if self._locks:
                self.locked = self._take_files(lock_path)
        except BaseException:
            self._end()
            raise
        if self._exclusive:
            _blocks.set(tuple(map(ref, (*_open_blocks(), self))))
        return self

    def __exit__(self, *_: object) -> None:
        if not self._ended:
            self._end()
        if self._exclusive:
            _blocks.set(tuple(map(ref, _open_blocks())))

    def __del__(self) -> None:
        if not self._ended:
            self._end()

    def in_use(self) -> bool:
        """Whether the marker in the lock file says that a writer is at work, or died at work."""
        return self._lock is not None and os.fstat(self._lock).st_size > 0

    def hold(self, temp: str) -> None:
        """Lock the new document at ``temp``; ``_files.new_file`` calls this while it is empty."""
        if self.locked and flock_available():
            self._coming = open_noted(temp, _FLAGS)
            try_lock(self._coming)  # in vain only while another writer tests whether this one lives

    def adopt(self) -> None:
        """Keep the lock on the new document instead; the store calls this when it has its name."""
        if self._coming is not None:
            if self._document is not None:
                drop(self._document)
            self._document, self._coming = self._coming, None

    def is_alive(self, temp: str) -> bool:
        """Whether the writer of this temp file lives: a living one holds a lock on it."""
        if not self.locked or not flock_available():
            return False
        try:
            self._looked_at = open_noted(temp, _FLAGS)
        except OSError:
            return False
        try:
            # A writer may die when its file has both the name of the document and the temp name.
            if self._document is not None and _same(self._looked_at, self._document):
                return False
            return not try_lock(self._looked_at)
        finally:
            drop(self._looked_at)
            self._looked_at = None

    def _outer(self) -> Turn | None:
        """The exclusive turn at the same document that this context is in."""
        name = os.path.basename(self.target)
        for turn in _open_blocks():
            if turn._key == self._key and os.path.basename(turn.target) == name:
                return turn
        return None

    def _queue_up(self) -> None:
        self._thread = threading.get_ident()
        self._called = threading.Lock()
        self._called.acquire()  # released by the turn before this one
        with opening:
            line = _lines.setdefault(self._key, [])
            line[:] = [ref(turn) for turn in _turns_in(line)]
            if any(turn._thread == self._thread for turn in _turns_in(line)):
                raise RuntimeError(
                    f"{self._path}: this thread is in the middle of writing this very file, and"
                    " would wait for itself; in a signal handler set a flag, and save when the"
                    " call has returned"
                )
            line.append(ref(self))
        if line[0]() is not self:
            self._called.acquire(timeout=self._left())
            if line[0]() is not self:
                raise self._timed_out()

    def _take_files(self, lock_path: str) -> bool:
        """Lock the lock file and the document; ``False`` if there are no locks here."""
        if not (self._take_lock_file(lock_path) and self._take_document()):
            return False
        if self._document is not None:
            self._share_lock_file(self._document)
        elif self._lock_refused is not None:
            raise self._lock_refused
        return True

    def _take_lock_file(self, path: str) -> bool:
        """Lock the file at ``path``; ``False`` if there are no locks here.

        It may return true without a lock: in a group's folder the file may still be for its maker
        only, and a member who cannot open it locks the document alone. Without a document that is
        an error.
        """
        self._lock_refused: OSError | None = None
        if not flock_available() and sys.platform != "win32":
            return self._without_locks()
        tries = 0
        while True:
            self._pause_if_replaced(tries)
            tries += 1
            try:
                self._lock = open_noted(path, _FLAGS)
            except PermissionError as error:
                with suppress(FileNotFoundError):
                    refuse_foreign(os.lstat(path), path)
                if error.errno != errno.EACCES or not flock_available():
                    raise
                self._lock_refused = error
                return True
            except FileNotFoundError:
                with suppress(FileExistsError):
                    self._lock = open_noted(path, _FLAGS | os.O_CREAT | os.O_EXCL)
                    make_private(self._lock)
            if self._lock is None:
                continue
            status = os.fstat(self._lock)
            self._check_lock_file(status, path)
            if not self._wait_for(self._lock):
                return self._without_locks()
            if _is_at(path, self._lock):  # otherwise others lock a new one
                # A longer file has content of somebody else, whatever its name, and is not marked.
                self.marker = self._lock if status.st_size <= 1 else None
                return True
            self._let_go(lock_file=True)

    def _check_lock_file(self, status: os.stat_result, path: str) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file, as a lock file must be", path)
        if status.st_nlink > 1:
            raise PermissionError(
                errno.EPERM, "a lock file with a second name may be anybody's file", path
            )
        refuse_foreign(status, path)

    def _without_locks(self) -> bool:
        self._let_go(lock_file=True)
        if self._exclusive:
            raise OSError(
                errno.ENOLCK,
                "the file system has no locks, so other processes cannot be kept out; if there are"
                " none, make the store with locks=False",
                self._path,
            )
        return False

    def _take_document(self) -> bool:
        """Lock the document, if there is one; ``False`` if there are no locks here."""
        tries = 0
        while flock_available():  # elsewhere, a lock would keep readers out
            self._pause_if_replaced(tries)
            tries += 1
            with opening:
                self._document = _files.open_file(self.target, to_replace=True)
                if self._document is None:
                    return True
                lock_fds.add(self._document)
            if not self._wait_for(self._document):
                return self._without_locks()
            if _is_at(self.target, self._document):
                return True
            self._let_go()
        return True

    def _share_lock_file(self, document: int) -> None:
        """Give the lock file the rights of the document: who may change that may lock it."""
        if self._lock is None or not may_change(os.fstat(self._lock)):
            return
        user, group, mode, acl = rights_of(document)
        rights = Rights(user, group, mode | 0o600, acl)
        if rights_of(self._lock) != rights:
            give_rights(self._lock, rights)

    def _wait_for(self, fd: int) -> bool:
        """Lock the open file; ``False`` if there are no locks here."""
        try:
            if not locked_in_time(fd, self._left):
                raise self._timed_out()
        except OSError as error:
            if error.errno in NOT_SUPPORTED:
                return False
            raise
        return True

    def _pause_if_replaced(self, tries: int) -> None:
        """Pause and stop in time on file systems that report a new inode at each ``stat``."""
        if tries > _TRIES_AT_ONCE:
            time.sleep(POLL)
        if tries and not self._left():
            raise self._timed_out()

    def _left(self) -> float:
        return min(max(0.0, self._deadline - time.monotonic()), threading.TIMEOUT_MAX)

    def _timed_out(self) -> TimeoutError:
        return TimeoutError(
            errno.ETIMEDOUT,
            f"another writer was not done with it within {self._timeout:g} s",
            self._path,
        )

    def _end(self) -> None:
        self._over = True
        self.locked = False
        try:
            self._let_go(lock_file=True)
        finally:
            try:
                self._let_go(lock_file=True)  # what an interrupt left
            finally:
                self._call_next()
        self._ended = True

    def _let_go(self, *, lock_file: bool = False) -> None:
        of_lock = self._lock if lock_file else None
        files = self._looked_at, self._coming, self._document, of_lock
        error = drop_all(fd for fd in files if fd is not None)
        self._looked_at = self._coming = self._document = None
        if lock_file:
            self._lock = self.marker = None
        if error is not None:
            raise error

    def _call_next(self) -> None:
        with opening:
            line = _lines.get(self._key, [])
            left = [turn for turn in _turns_in(line) if turn is not self]
            line[:] = [ref(turn) for turn in left]
            if left:
                with suppress(RuntimeError):  # it has been called already
                    left[0]._called.release()
            elif self._key in _lines:
                del _lines[self._key]


def _turns_in(line: Iterable[ref[Turn]]) -> list[Turn]:
    return [turn for weak in line if (turn := weak()) is not None]


def _open_blocks() -> list[Turn]:
    return [turn for turn in _turns_in(_blocks.get()) if not turn._over]


def give_up_turns() -> None:
    """Give up, in a forked child, every turn that threads of the parent had or waited for."""
    for line in _lines.values():
        for turn in _turns_in(line):
            turn._over = turn._ended = True
    _lines.clear()
    close_inherited()


def _same(one: int, other: int) -> bool:
    return os.path.samestat(os.fstat(one), os.fstat(other))


def _is_at(path: str, fd: int) -> bool:
    """Whether the open file is still the one at ``path``."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False
