"""What the operating system does for ``JsonFileStore``: links, folders, locks, replacing a file.

Everything that depends on the platform is here. The Windows parts follow its documentation and
are best effort: no test runs on Windows.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

__all__ = [
    "Found",
    "close_inherited_locks",
    "locked",
    "make_folder",
    "new_file",
    "opening",
    "read",
    "replace",
    "resolve",
    "sweep",
    "sync_folder",
]

try:
    import fcntl
except ImportError:  # Windows, and platforms without locks
    fcntl = None  # type: ignore[assignment]

_SAFE: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)  # opening a named pipe must not wait for a writer
_O_DIRECTORY: Final = getattr(os, "O_DIRECTORY", 0)
_MAX_LINKS: Final = 40
_MAX_STEM: Final = 100  # bytes; a name may have 255, on some encrypted file systems 143
_TOKEN_BYTES: Final = 8
_NO_LOCKS_HERE: Final = frozenset(
    getattr(errno, name)
    for name in ("ENOLCK", "ENOSYS", "ENOTSUP", "EOPNOTSUPP")
    if hasattr(errno, name)
)
_NO_FOLDER_SYNC_HERE: Final = _NO_LOCKS_HERE | {errno.EINVAL}
_SHARING_VIOLATIONS: Final = (5, 32)
_PAUSES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)  # seconds, between tries to replace a file

_lock_fds: Final[set[int]] = set()
"""Open lock files. A forked child must close them: open there too, they could stay locked."""

opening: Final = threading.RLock()
"""Held while a lock file is opened and noted, and by a fork, so that the note is complete."""


class Found(NamedTuple):
    """A file as it was found."""

    data: bytes
    status: os.stat_result


def resolve(path: str) -> str:
    """The path that ``path`` stands for once its last part is no symbolic link any more.

    Nothing need exist there. ``OSError`` for links that go in a circle.
    """
    real = path
    for _ in range(_MAX_LINKS):
        try:
            link = os.readlink(real)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):  # no link, or nothing there
                return real
            raise
        real = os.path.join(os.path.dirname(real), link)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def read(path: str, *, to_replace: bool = False) -> Found | None:
    """The file at ``path``, ``None`` if there is none.

    ``IsADirectoryError`` for a folder, ``OSError`` for a device, pipe or socket. ``to_replace``
    asks for the right to write too: who may not change the file must not replace it either.
    """
    try:
        fd = os.open(path, (os.O_RDWR if to_replace else os.O_RDONLY) | _NO_WAIT | _SAFE)
    except FileNotFoundError:
        return None
    except PermissionError:
        if sys.platform == "win32" and os.path.isdir(path):
            raise _is_a_folder(path) from None
        raise
    try:
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            raise _is_a_folder(path)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        chunks = []
        while chunk := os.read(fd, max(status.st_size, 4096)):
            chunks.append(chunk)
        return Found(b"".join(chunks), status)
    finally:
        os.close(fd)


def _is_a_folder(path: str) -> OSError:
    return IsADirectoryError(errno.EISDIR, "a folder, and the path of a file is needed", path)


def make_folder(folder: str) -> None:
    """Make ``folder`` and the missing ones above it, for their owner only."""
    try:
        status = os.stat(folder)
    except FileNotFoundError:
        parent = os.path.dirname(folder)
        if parent == folder:
            raise
        make_folder(parent)
        with suppress(FileExistsError):  # another writer was faster
            os.mkdir(folder, 0o700)
        sync_folder(parent)
    else:
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)


def sync_folder(folder: str) -> None:
    """Flush the entries of ``folder`` to disk, where the platform can."""
    if not _O_DIRECTORY:
        return
    try:
        fd = os.open(folder, os.O_RDONLY | _O_DIRECTORY | _SAFE)
    except PermissionError:  # a folder one may write in and not list
        return
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC_HERE:
            raise
    finally:
        os.close(fd)


def _beside(target: str, ending: str) -> str:
    """A hidden name beside ``target``.

    Long names are cut. Files that share a cut name share a lock, so that is harmless.
    """
    folder, stem = os.path.split(target)
    while len(os.fsencode(stem)) > _MAX_STEM:
        stem = stem[:-1]
    return os.path.join(folder, f".{stem}.{ending}")


@contextmanager
def locked(target: str) -> Iterator[int | None]:
    """Hold the lock of all writers of ``target``; waits for it.

    Yields the open lock file, or ``None`` where there are no locks. The lock file is never
    deleted: another process may be waiting for that very file.
    """
    fd = _take_lock(_beside(target, "lock"))
    try:
        yield fd
    finally:
        if fd in _lock_fds:  # no longer there in a child that was forked meanwhile
            _drop_lock(fd)


def _take_lock(path: str) -> int | None:
    if fcntl is None and sys.platform != "win32":
        return None
    while True:
        with opening:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK | _SAFE, 0o600)
            _lock_fds.add(fd)
        try:
            _lock(fd)
            # Somebody may have deleted the file while we waited: then others lock a new one.
            current = os.path.samestat(os.fstat(fd), os.stat(path))
        except FileNotFoundError:
            current = False
        except BaseException as error:
            _close_lock(fd)
            if isinstance(error, OSError) and error.errno in _NO_LOCKS_HERE:
                return None
            raise
        if current:
            return fd
        _drop_lock(fd)


def _drop_lock(fd: int) -> None:
    try:
        _unlock(fd)  # not left to close(): a forked child may have the same file open
    finally:
        _close_lock(fd)


def _close_lock(fd: int) -> None:
    _lock_fds.discard(fd)
    os.close(fd)


if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        while True:
            os.lseek(fd, 0, os.SEEK_SET)
            try:
                msvcrt.locking(fd, msvcrt.LK_LOCK, 1)
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EDEADLK):  # ten tries in ten seconds
                    raise
            else:
                return

    def _unlock(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


def close_inherited_locks() -> None:
    """Close, in a forked child, the lock files that threads of the parent had open."""
    while _lock_fds:
        with suppress(OSError):
            os.close(_lock_fds.pop())


def sweep(target: str, lock: int, *, thoroughly: bool) -> bool:
    """Remove the temp files of ``target`` that killed writers left behind; whether all are gone.

    To be called under the lock, which every living writer holds while it has one. Listing a
    folder takes long if there are many files in it, so that is done only if the lock file is
    not empty, as it is while a writer is at work and after it died, or ``thoroughly``.
    """
    if not thoroughly and os.fstat(lock).st_size == 0:
        return True
    folder, start = os.path.split(_beside(target, ""))
    try:
        names = os.listdir(folder)
    except OSError:  # a folder that one may not list does not keep one from saving
        return False
    left = [os.path.join(folder, name) for name in names if _is_temp(name, start)]
    return not [path for path in left if not _removed(path)]


def _is_temp(name: str, start: str) -> bool:
    token = name.removeprefix(start).removesuffix(".tmp")
    return (
        name == f"{start}{token}.tmp"
        and len(token) == 2 * _TOKEN_BYTES
        and set(token) <= set("0123456789abcdef")
    )


@contextmanager
def new_file(
    target: str, data: bytes, like: os.stat_result | None, lock: int | None
) -> Iterator[str]:
    """A new file beside ``target`` with ``data``, flushed to disk; yields its path.

    It is gone at the end of the block, unless it has been renamed. Its mode, and as far as
    possible its owner, are those of ``like``; only its owner can read it if there is none.
    """
    temp = _beside(target, f"{os.urandom(_TOKEN_BYTES).hex()}.tmp")
    if lock is not None:
        os.ftruncate(lock, 1)
    ours = True
    try:
        try:
            fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _SAFE, 0o600)
        except FileExistsError:
            ours = False
            raise
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            if like is not None:
                _keep_owner_and_mode(fd, like)
            os.fsync(fd)
        finally:
            os.close(fd)
        yield temp
        ours = False
    finally:
        if ours:
            ours = not _removed(temp)
        if lock is not None and not ours:
            with suppress(OSError):  # then the next save lists the folder, nothing worse
                os.ftruncate(lock, 0)


def _removed(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


def _keep_owner_and_mode(fd: int, like: os.stat_result) -> None:
    own = os.fstat(fd)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid) and hasattr(os, "fchown"):
        for owner in (like.st_uid, -1):  # who may not give a file away may still keep its group
            with suppress(OSError):
                os.fchown(fd, owner, like.st_gid)
                break
    mode = stat.S_IMODE(like.st_mode)
    if mode != stat.S_IMODE(own.st_mode) and hasattr(os, "fchmod"):
        os.fchmod(fd, mode)


def replace(temp: str, target: str) -> None:
    """Rename ``temp`` to ``target``, which is then the old file or the new one, whole."""
    for pause in (*_PAUSES, None):
        try:
            os.replace(temp, target)
        except OSError as error:
            if error.errno in (errno.EXDEV, errno.EBUSY):
                raise OSError(
                    error.errno,
                    f"{os.strerror(error.errno)}: this file cannot be replaced, perhaps because"
                    " it is a mount of its own, like a single file mounted into a container;"
                    " mount the folder that holds it instead",
                    target,
                ) from error
            # Windows refuses while another program, often a virus scanner, has the file open.
            if pause is None or getattr(error, "winerror", None) not in _SHARING_VIOLATIONS:
                raise
            time.sleep(pause)
        else:
            return
