"""File-system operations of ``JsonFileStore``: links, folders, replacing a file.

Owners and rights of files are in ``_rights``, locks are in ``_locks``. The
Windows parts follow its documentation and are best effort: no test runs on Windows.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from ._paths import beside
from ._rights import (
    NOT_SUPPORTED,
    Rights,
    give_rights,
    make_private,
    refuse_foreign,
    rights_of,
)

__all__ = [
    "NO_LINK",
    "NO_WAIT",
    "SAFE",
    "Found",
    "TooLongError",
    "make_folder",
    "new_file",
    "open_file",
    "read",
    "replace",
    "settled",
    "sweep",
    "sync_folder",
    "temp_files",
]

SAFE: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)  # opening a named pipe must not wait for a writer
_O_DIRECTORY: Final = getattr(os, "O_DIRECTORY", 0)
_TOKEN_BYTES: Final = 8  # bytes, two hexadecimal digits each, in the name of a temp file
_NO_FOLDER_SYNC_HERE: Final = NOT_SUPPORTED | {errno.EINVAL}
_NO_HARD_LINKS_HERE: Final = NOT_SUPPORTED | {errno.EPERM, errno.EACCES, errno.EMLINK}
_SHARING_VIOLATIONS: Final = (5, 32)  # ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION of Windows
_PAUSES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)  # seconds, between tries to replace a file
_SETTLED: Final = 2_000_000_000
"""Nanoseconds after which the times of a file tell whether it changed; before, a second change may
fall on the same tick. File systems count in ticks of 2 s (FAT) and less; raised, files are read
anew for longer."""


class TooLongError(Exception):
    """A file has more bytes than may be read; its size is the argument."""


class Found(NamedTuple):
    """The content and status of a file, and its rights if it was read to be replaced."""

    data: bytes
    status: os.stat_result
    rights: Rights | None


def read(path: str, *, to_replace: bool = False, most: int | None = None) -> Found | None:
    """The content of the file at ``path``, which is not a link; ``None`` if there is none.

    ``to_replace`` and errors are as for ``open_file``. ``TooLongError`` for a file of more
    than ``most`` bytes, which is not read.
    """
    fd = open_file(path, to_replace=to_replace)
    if fd is None:
        return None
    try:
        status = os.fstat(fd)
        if most is not None and status.st_size > most:
            raise TooLongError(status.st_size)
        chunks, size = [], 0
        while chunk := os.read(fd, max(status.st_size, 4096)):
            chunks.append(chunk)
            size += len(chunk)
            if most is not None and size > most:  # the file grew meanwhile
                raise TooLongError(size)
        rights = rights_of(fd) if to_replace else None
        return Found(b"".join(chunks), status, rights)
    finally:
        os.close(fd)


def open_file(path: str, *, to_replace: bool = False) -> int | None:
    """The file at ``path``, opened for reading, or ``None`` if there is none.

    ``IsADirectoryError`` for a folder, ``OSError`` for a device, pipe or socket,
    ``PermissionError`` for a file that somebody else may have planted. ``to_replace`` asks for
    the right to write too: who may not change the file must not replace it either.
    """
    flags = (os.O_RDWR if to_replace else os.O_RDONLY) | NO_WAIT | NO_LINK | SAFE
    try:
        fd = os.open(path, flags)
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
        refuse_foreign(status, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def settled(status: os.stat_result) -> tuple[int, ...] | None:
    """The identity of a file: numbers that change with it; ``None`` if it is too young to tell."""
    newest = max(status.st_mtime_ns, status.st_ctime_ns)
    if time.time_ns() - newest < _SETTLED:
        return None
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


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
            _give_owner_all(folder)
        sync_folder(parent)
    else:
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)


def _give_owner_all(folder: str) -> None:
    """Undo an umask that keeps a folder from the very user who makes it."""
    status = os.lstat(folder)
    if stat.S_ISDIR(status.st_mode) and status.st_mode & 0o700 != 0o700:
        os.chmod(folder, 0o700)


def sync_folder(folder: str) -> None:
    """Flush the entries of ``folder`` to disk, where the platform can."""
    if not _O_DIRECTORY:
        return
    try:
        fd = os.open(folder, os.O_RDONLY | _O_DIRECTORY | SAFE)
    except PermissionError:  # a folder one may write in and not list
        return
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC_HERE:
            raise
    finally:
        os.close(fd)


def temp_files(target: str) -> list[str]:
    """The temp files beside ``target``, of living writers and of dead ones.

    ``OSError`` for a folder that may not be listed.
    """
    folder, start = os.path.split(beside(target, ""))
    return [os.path.join(folder, name) for name in os.listdir(folder) if _is_temp(name, start)]


def sweep(paths: list[str]) -> bool:
    """Remove the temp files at ``paths``; whether all are gone."""
    return not [path for path in paths if not _removed(path)]


def _is_temp(name: str, start: str) -> bool:
    token = name.removeprefix(start).removesuffix(".tmp")
    return (
        name == f"{start}{token}.tmp"
        and len(token) == 2 * _TOKEN_BYTES
        and set(token) <= set("0123456789abcdef")
    )


@contextmanager
def new_file(
    target: str,
    data: bytes,
    rights: Rights | None,
    *,
    when_created: Callable[[str], object],
    marker: int | None,
) -> Iterator[str]:
    """A new file beside ``target`` with ``data``, flushed to disk; yields its path.

    ``when_created`` is called with the path while the file is still empty. At the end of the block
    the temp name is removed, even if the file was renamed or linked; until then, there is a byte in
    the open file ``marker``. The file gets ``rights`` as far as possible; with ``None``, only its
    owner can read it.
    """
    temp = beside(target, f"{os.urandom(_TOKEN_BYTES).hex()}.tmp")
    if marker is not None:
        os.ftruncate(marker, 1)
    ours = True
    try:
        try:
            fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | SAFE, 0o600)
        except FileExistsError:
            ours = False
            raise
        try:
            make_private(fd)
            when_created(temp)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            if rights is not None:
                give_rights(fd, rights)
            os.fsync(fd)
        finally:
            os.close(fd)
        yield temp
    finally:
        if ours:
            ours = not _removed(temp)
        if marker is not None and not ours:
            with suppress(OSError):  # then the next save lists the folder, no more
                os.ftruncate(marker, 0)


def _removed(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


def _linked(temp: str, target: str) -> bool:
    """Give the file at ``temp`` a second name ``target``; ``False`` if there are no hard links."""
    try:
        os.link(temp, target)
    except FileExistsError:
        # A network file system may have lost the answer, and find its own link at the second try.
        if not os.path.samestat(os.stat(temp), os.lstat(target)):
            raise
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS_HERE:
            raise
        return False
    return True


def replace(temp: str, target: str, *, new: bool = False) -> None:
    """Give the file ``temp`` the name ``target``, which is the old or the new file at any moment.

    With ``new`` the target must not exist: ``FileExistsError`` if it does, where the file system
    can tell. Then the file keeps the name ``temp``, too.
    """
    if new and hasattr(os, "link") and _linked(temp, target):
        return
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
