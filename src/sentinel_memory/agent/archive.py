"""The archive: evicted entries, compressed and checksummed, written by a thread of its own.

Nothing here may disturb the memory: a call queues and returns, and failed writes are counted. The
files of snapshots are in ``_snapshots.py``.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from .._basics.checks import check_callable, check_str
from .._basics.forks import Forks
from .._basics.numbers import finite_real, warn_ignored, whole
from .._basics.times import system_clock
from ..entry import Entry
from ..results import Compaction
from ._snapshots import ArchiveDamagedError, Folder, Snapshot

__all__ = ["Archive", "ArchiveDamagedError", "Archived"]

_MOST_WAITING: Final = 1_000
"""Snapshots that may wait to be written; more are dropped and counted, so that with a slow disk the
queue does not grow without end."""
_MOST_BYTES: Final = 50_000_000
"""Bytes of all snapshots together; a short entry takes about 400, half of it its checksum."""
_AT_EXIT: Final = 2.0
"""Seconds that the end of the program waits for queued snapshots; raising it keeps more of them on
a slow disk, and ends the program later."""


class Archived(NamedTuple):
    """One archived entry: the ``entry``, the ``cause`` of its leaving, when (``at``, in epoch
    seconds), and the ``file`` it is in."""

    entry: Entry
    cause: str
    at: float
    file: str


class Archive:
    """Evicted entries, kept in files of a folder: ``Memory(on_evict=Archive(folder))``.

    Evicted entries are archived, expired and forgotten ones are not. A call queues them, returns at
    once and never raises; a thread of its own writes. Entries over the limit of a load are handed
    over as ``archive(memory.last_load.compaction)``. Each snapshot is one file, gzip with JSON in
    it, and a SHA-256 beside it; ``cd folder && sha256sum -c *.sha256`` checks them all.

    Fail-open: a snapshot that cannot be written (disk full, folder read-only, too many waiting) is
    lost, counted in ``errors`` and reported to ``on_error``, a function of the exception, which is
    called in the thread that noticed it. Over ``max_bytes`` (50 MB; a whole number of at least 1)
    the oldest snapshots are removed, counted in ``dropped``; ``written`` counts the written ones.
    Several processes may share a folder. A forked child does not inherit the queue. At the end of
    the program up to 2 seconds are spent on writing the queue.

    Raises ``TypeError`` for a folder that is not a path or an ``on_error`` that cannot be called,
    ``ValueError`` for a ``~`` that stands for no home.

    >>> import tempfile
    >>> from sentinel_memory import Memory
    >>> folder = tempfile.TemporaryDirectory()
    >>> archive = Archive(folder.name)
    >>> memory = Memory(limit=1, on_evict=archive)
    >>> _ = memory.remember("chat:1", "Nice weather."), memory.remember("chat:2", "Busy road.")
    >>> archive.flush()
    True
    >>> [found] = archive.find("chat:1")
    >>> found.cause, found.entry.data
    ('evicted', 'Nice weather.')
    >>> _ = memory.forget("chat:2")
    >>> [entry.key for entry in memory.put_back(archive.restore(found.file))]
    ['chat:1']
    >>> folder.cleanup()
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        on_error: Callable[[Exception], object] | None = None,
        max_bytes: int | float | None = None,
        clock: Callable[[], float] = system_clock,
    ) -> None:
        check_callable("on_error", on_error, optional=True)
        check_callable("clock", clock)
        path = os.fspath(folder)
        check_str("folder", path)
        most = whole(max_bytes, 0, least=1)
        if not most and max_bytes is not None:
            wanted = "a whole number of at least 1"
            warn_ignored("max_bytes", max_bytes, wanted, f"the default, {_MOST_BYTES},")
        self._folder: Final = Folder(_absolute(path), most or _MOST_BYTES)
        self._on_error: Final = on_error
        self._clock: Final = clock
        self.errors = 0
        self.dropped = 0
        self.written = 0
        self._waiting: deque[Snapshot] = deque()
        self._begin()
        _FORKS.register(self)
        _EVERY.add(self)

    def _begin(self) -> None:
        """Make new locks, which nobody holds, and no thread."""
        # Reentrant: a finalizer may remember, evict and call in the middle of a call.
        self._changed = threading.Condition(threading.RLock())
        self._writing = threading.RLock()  # held while the folder is changed
        self._thread: threading.Thread | None = None

    def before_fork(self) -> None:
        """Wait, before a fork, until no snapshot is half written, and keep it so."""
        self._writing.acquire()

    def after_fork(self) -> None:
        """Go on writing; called in the parent."""
        self._writing.release()

    def begin_in_child(self) -> None:
        """Leave the queue to the parent; called in a forked child."""
        self._waiting.clear()
        self._begin()

    def __call__(self, compaction: Compaction | None, /) -> None:
        """Queue the entries that a compaction evicted, and return; ``None`` is ignored."""
        try:
            evicted = () if compaction is None else tuple(compaction.evicted)
            if evicted:
                at_ms = int(self._clock() * 1000)
                self._queue(Snapshot(tuple(map(_checked, evicted)), "evicted", at_ms))
        except Exception as error:
            self._failed(error)

    def flush(self, timeout: float | timedelta | None = None) -> bool:
        """Wait until every queued snapshot is written or lost; whether that is so.

        ``timeout`` is in seconds, or a ``timedelta``, and at least 0; without one it may wait as
        long as the disk takes.
        """
        seconds = _seconds(timeout)
        if threading.current_thread() is self._thread:  # from ``on_error``
            return False
        until = None if seconds is None else time.monotonic() + seconds
        with self._changed:
            if self._thread is None and self._waiting:
                self._start()
            while self._thread is None and self._waiting:
                if until is not None and until <= time.monotonic():
                    return False
                self._write_next()
            while self._thread is not None:
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._changed.wait(left)
            return not self._waiting

    def find(self, key: str) -> list[Archived]:
        """The archived entries of a key, newest first; damaged snapshots are skipped.

        What still waits to be written is not there yet; see ``flush``.
        """
        check_str("key", key)
        found = []
        for name in reversed(self._folder.names()):
            snapshot = self._folder.readable(name)
            if snapshot is not None:
                file, at = os.path.join(self._folder.path, name), snapshot.at_ms / 1000
                found += [
                    Archived(entry, snapshot.cause, at, file)
                    for entry in reversed(snapshot.entries)
                    if entry.key == key
                ]
        return found

    def restore(self, file: str | os.PathLike[str]) -> tuple[Entry, ...]:
        """The entries of a snapshot, by its path or its name, for ``memory.put_back``.

        Raises ``ArchiveDamagedError`` for one that does not match its checksum, ``OSError`` for
        one that is not there, and ``ValueError`` for a path in another folder.
        """
        folder, name = os.path.split(os.fspath(file))
        if folder and os.path.abspath(folder) != self._folder.path:
            raise ValueError(f"{file} is not in the folder of this archive, {self._folder.path}")
        return self._folder.read(name).entries

    def erase(self, key: str) -> int:
        """Remove the entries of a key from the queue and from every snapshot; return how many.

        Together with ``memory.forget`` this is deletion. Raises ``ArchiveDamagedError``, when all
        others are rewritten, for a snapshot that cannot be read: it may have the key. Remove that
        file.
        """
        check_str("key", key)
        gone = 0
        with self._writing:
            with self._changed:
                for _ in range(len(self._waiting)):
                    snapshot = self._waiting.popleft()
                    kept = tuple(entry for entry in snapshot.entries if entry.key != key)
                    gone += len(snapshot.entries) - len(kept)
                    if kept:
                        self._waiting.append(snapshot._replace(entries=kept))
            erased, unknown = self._folder.erase(key)
        if unknown:
            raise ArchiveDamagedError(unknown[0], f"it cannot be read, so {key!r} may be in it")
        return gone + erased

    def verify(self) -> list[str]:
        """The paths of the snapshots that do not match their checksum, oldest first."""
        damaged = []
        for name in self._folder.names():
            try:
                self._folder.read(name)
            except FileNotFoundError:
                pass  # has just left
            except (ArchiveDamagedError, OSError):
                damaged.append(os.path.join(self._folder.path, name))
        return damaged

    def __repr__(self) -> str:
        return f"<Archive in {self._folder.path}: {self.written} written, {self.errors} errors>"

    # Writing

    def _queue(self, snapshot: Snapshot) -> None:
        with self._changed:
            full = len(self._waiting) >= _MOST_WAITING
            if not full:
                self._waiting.append(snapshot)
                if self._thread is None:
                    self._start()
        if full:
            raise RuntimeError(f"{_MOST_WAITING} snapshots wait to be written; this one is lost")

    def _start(self) -> None:
        thread = threading.Thread(target=self._write_all, name="sentinel-archive", daemon=True)
        self._thread = thread
        try:
            thread.start()
        except BaseException as error:
            self._thread = None
            if not isinstance(error, RuntimeError):
                raise
            # No thread can be started, as at the end of a program: ``flush`` writes the queue.

    def _write_all(self) -> None:
        """Write the queued snapshots one by one, and end when none is left."""
        try:
            while self._write_next():
                pass
        finally:
            with self._changed:
                if self._thread is threading.current_thread():  # cut short by an exception
                    self._thread = None
                    self._changed.notify_all()

    def _write_next(self) -> bool:
        failure = None
        with self._writing:
            with self._changed:
                if not self._waiting:
                    self._thread = None  # here, so that the next one starts another thread
                    self._changed.notify_all()
                    return False
                snapshot = self._waiting.popleft()
            try:
                self.dropped += self._folder.write(snapshot)
                self.written += 1
            except Exception as error:
                failure = error
        if failure is not None:
            self._failed(failure)
        return True

    def _failed(self, error: Exception) -> None:
        with self._changed:
            self.errors += 1
        if self._on_error is not None:
            with suppress(Exception):
                self._on_error(error)


def _checked(entry: Entry) -> Entry:
    if not isinstance(entry, Entry):
        raise TypeError(f"an archive takes entries, not {type(entry).__name__}")
    return entry


def _absolute(path: str) -> str:
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise ValueError(f"{path}: there is no such home; give the folder by its whole path")
    return os.path.abspath(expanded)


def _seconds(timeout: Any) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, timedelta):
        timeout = timeout.total_seconds()
    number = finite_real(timeout)
    if number is None or number < 0:
        warn_ignored("timeout", timeout, "at least 0 seconds or a timedelta", "no timeout")
        return None
    return float(min(number, threading.TIMEOUT_MAX))


_EVERY: Final[WeakSet[Archive]] = WeakSet()
_FORKS: Final = Forks[Archive](
    before=Archive.before_fork, in_parent=Archive.after_fork, in_child=Archive.begin_in_child
)


def _flush_all() -> None:
    until = time.monotonic() + _AT_EXIT
    for archive in list(_EVERY):
        with suppress(Exception):
            archive.flush(max(0.0, until - time.monotonic()))


atexit.register(_flush_all)
