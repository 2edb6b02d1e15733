"""Locks on open files, and waiting for them with a time limit.

A lock belongs to an open file, which a forked child has open, too; so the files are noted, and
closed in the child. The Windows parts follow its documentation and are best effort.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from ._rights import NOT_SUPPORTED

__all__ = [
    "POLL",
    "close_inherited",
    "drop",
    "drop_all",
    "flock_available",
    "lock_fds",
    "locked_in_time",
    "open_noted",
    "opening",
    "try_lock",
]

try:
    import fcntl
except ImportError:  # Windows, and platforms without locks
    fcntl = None  # type: ignore[assignment]

POLL: Final = 0.005  # seconds between tries; a smaller one wakes sooner and costs CPU

lock_fds: Final[set[int]] = set()
"""Open files with a lock. A forked child must close them: open there too, they stay locked."""

opening: Final = threading.RLock()
"""Held while a file is opened and added to ``lock_fds``, and by a fork, so that none is missed."""


def flock_available() -> bool:
    """Whether the platform has locks that keep writers out and let readers pass."""
    return fcntl is not None


def open_noted(path: str, flags: int) -> int:
    """Open a file for locking, note it in ``lock_fds``; a new file is for its owner only."""
    with opening:
        fd = os.open(path, flags, 0o600)
        lock_fds.add(fd)
    return fd


def drop(fd: int) -> None:
    """Unlock and close a file, unless this is a child that was forked since."""
    if fd not in lock_fds:
        return
    try:
        _unlock(fd)  # not left to close(): a forked child may have the same file open
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
    finally:
        _close(fd)


def drop_all(fds: Iterable[int]) -> OSError | None:
    """Drop several locked files, going on after errors; return the first error."""
    first = None
    for fd in fds:
        try:
            drop(fd)
        except OSError as error:
            first = first or error
    return first


def _close(fd: int) -> None:
    lock_fds.discard(fd)
    os.close(fd)


def close_inherited() -> None:
    """Close, in a forked child, the files that threads of the parent had a lock on."""
    while lock_fds:
        with suppress(OSError):
            os.close(lock_fds.pop())


def locked_in_time(fd: int, left: Callable[[], float]) -> bool:
    """Lock an open file within the seconds ``left``; whether that was done."""
    if try_lock(fd):
        return True
    if left() and fcntl is not None:
        with suppress(RuntimeError):  # no thread can be started: late in an exit, for example
            return _locked_by_thread(fd, left())
    while left():
        time.sleep(POLL)
        if try_lock(fd):
            return True
    return False


def _locked_by_thread(fd: int, seconds: float) -> bool:
    """Lock an open file in a thread, so that the system wakes the writers in their order.

    A call that waits for a lock has no time limit, and a writer that only tries now and then comes
    too late again and again. After the time limit the thread goes on waiting, and closes the file
    when it gets the lock, which is so held for an instant.
    """
    outcome: list[OSError] = []
    done = threading.Lock()
    done.acquire()
    with opening:
        same = os.dup(fd)
        lock_fds.add(same)

    def wait() -> None:
        try:
            fcntl.flock(same, fcntl.LOCK_EX)
        except OSError as error:
            outcome.append(error)
        finally:
            _close(same)
            done.release()

    try:
        threading.Thread(target=wait, name="sentinel_memory lock", daemon=True).start()
    except RuntimeError:
        _close(same)
        raise
    if not done.acquire(timeout=seconds):
        return False
    if outcome:
        raise outcome[0]
    return True


if sys.platform == "win32":
    import msvcrt

    def try_lock(fd: int) -> bool:
        """Lock an open file if nobody else has a lock on it; whether that was done."""
        os.lseek(fd, 0, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EDEADLK):
                raise
            return False
        return True

    def _unlock(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        with suppress(OSError):  # not locked
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:

    def try_lock(fd: int) -> bool:
        """Lock an open file if nobody else has a lock on it; whether that was done."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(fd: int) -> None:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_UN)
