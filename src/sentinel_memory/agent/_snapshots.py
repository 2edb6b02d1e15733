"""A folder of snapshots: each a compressed document with a checksum beside it, whole or not there.

A snapshot is two files, ``evicted-<UTC time>-<number>.json.gz`` and the same name with ``.sha256``
added, which ``sha256sum -c`` reads. The checksum comes first, both are written beside and renamed:
killed at any moment, there is the whole snapshot, or a lone checksum, which the next writer sweeps.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from typing import Any, Final, NamedTuple

from .._basics.plain import load_json
from .._basics.times import epoch_milliseconds
from ..entry import Entry, entry_from_state
from ..errors import SentinelMemoryError

if sys.platform != "win32":  # there, one process for a folder
    import fcntl

__all__ = ["ArchiveDamagedError", "Folder", "Snapshot"]

_VERSION: Final = 1
_NAME: Final = re.compile(r"evicted-\d{8}T\d{9}Z-\d+\.json\.gz")
_SUM: Final = ".sha256"
_BESIDE: Final = ".part"
_LOCK: Final = ".lock"
_SAFE: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_RECOUNT: Final = 100  # snapshots, after which those of other processes are counted again
_LARGEST: Final = 1 << 30  # bytes of one document when unpacked; a larger one is not a snapshot


class ArchiveDamagedError(SentinelMemoryError, ValueError):
    """A snapshot is damaged: it does not match its checksum, or has none.

    ``file`` is its path; it was left untouched.
    """

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(file, reason)
        self.file = file
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.file} cannot be restored: {self.reason}; it was left untouched"


class Snapshot(NamedTuple):
    """Entries that left together, the cause, and the time in epoch milliseconds."""

    entries: tuple[Entry, ...]
    cause: str
    at_ms: int


class Folder:
    """The snapshots in one folder, of at most ``max_bytes`` together; not safe from threads."""

    def __init__(self, path: str, max_bytes: int) -> None:
        self.path: Final = path
        self._max_bytes: Final = max_bytes
        self._written = 0
        self._known: deque[tuple[str, int]] = deque()  # names and bytes, oldest first
        self._bytes = 0  # of all of them

    def names(self) -> list[str]:
        """The names of the snapshots, oldest first; none if there is no folder."""
        try:
            return sorted(name for name in os.listdir(self.path) if _NAME.fullmatch(name))
        except FileNotFoundError:
            return []

    def write(self, snapshot: Snapshot) -> int:
        """Write a snapshot; return how many old ones were removed for it."""
        packed = _packed(snapshot)
        if len(packed) > self._max_bytes:
            raise ValueError(f"a snapshot of {len(packed)} bytes is over the bound of the archive")
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        with self._locked():
            if self._written % _RECOUNT == 0:
                self._sweep()
            self._write(packed, snapshot.at_ms)
            return self._make_room()

    def read(self, name: str) -> Snapshot:
        """A snapshot that matches its checksum; ``ArchiveDamagedError`` for any other."""
        path = os.path.join(self.path, name)
        with open(path, "rb") as file:
            packed = file.read()
        try:
            with open(path + _SUM, encoding="ascii") as file:
                stored = file.read(200).split()
        except FileNotFoundError:
            raise ArchiveDamagedError(path, "its checksum is missing") from None
        except UnicodeDecodeError:
            stored = []
        if stored != [sha256(packed).hexdigest(), name]:
            raise ArchiveDamagedError(path, "it does not match its checksum")
        return _unpacked(packed, path)

    def readable(self, name: str) -> Snapshot | None:
        """A snapshot, or ``None`` if it is damaged or was just removed."""
        with suppress(ArchiveDamagedError, OSError):
            return self.read(name)
        return None

    def erase(self, key: str) -> tuple[int, list[str]]:
        """Rewrite every snapshot without the entries of a key: how many went, and which snapshots
        cannot be read, so that nobody knows."""
        gone, unknown = 0, []
        if not self.names():
            return 0, []
        with self._locked():
            self._sweep()
            for name in self.names():
                path = os.path.join(self.path, name)
                try:
                    with open(path, "rb") as file:
                        snapshot = _unpacked(file.read(), path)
                except ArchiveDamagedError:
                    unknown.append(path)
                    continue
                kept = tuple(entry for entry in snapshot.entries if entry.key != key)
                if len(kept) == len(snapshot.entries):
                    continue
                if kept:  # under another name first: cut off between, it is there twice
                    self._write(_packed(snapshot._replace(entries=kept)), snapshot.at_ms)
                self._remove(name)
                gone += len(snapshot.entries) - len(kept)
            self._sweep()
        return gone, unknown

    def _write(self, packed: bytes, at_ms: int) -> None:
        moment = datetime.fromtimestamp(at_ms / 1000, UTC)
        stamp = f"{moment:%Y%m%dT%H%M%S}{at_ms % 1000:03d}Z"
        # In the order of writing, and other than what another process writes at the same time.
        number = f"{self._written + 1:06d}{int.from_bytes(os.urandom(3)):08d}"
        name = f"evicted-{stamp}-{number}.json.gz"
        path = os.path.join(self.path, name)
        checksum = f"{sha256(packed).hexdigest()}  {name}\n".encode()
        try:
            _write_beside(path + _SUM, checksum)
            _write_beside(path, packed)
            os.replace(path + _SUM + _BESIDE, path + _SUM)
            os.replace(path + _BESIDE, path)
        except BaseException:
            for left in (path + _SUM + _BESIDE, path + _BESIDE):
                with suppress(OSError):
                    os.unlink(left)
            if not os.path.exists(path):
                with suppress(OSError):
                    os.unlink(path + _SUM)
            raise
        self._written += 1
        self._known.append((name, len(packed) + len(checksum)))
        self._bytes += len(packed) + len(checksum)

    def _make_room(self) -> int:
        """Remove the oldest snapshots until the rest is within the bound; return how many."""
        gone = 0
        while self._bytes > self._max_bytes:
            name, size = self._known.popleft()
            self._bytes -= size
            self._remove(name)
            gone += 1
        return gone

    def _size(self, name: str) -> int:
        size = 0
        for path in (name, name + _SUM):
            with suppress(OSError):
                size += os.stat(os.path.join(self.path, path)).st_size
        return size

    def _remove(self, name: str) -> None:
        """Remove a snapshot: the data first, since a lone checksum is swept."""
        for path in (name, name + _SUM):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.path, path))

    def _sweep(self) -> None:
        """Remove the remains of dead writers: partial files, and checksums without a snapshot."""
        there = set(os.listdir(self.path))
        for name in there:
            whole = name.removesuffix(_BESIDE).removesuffix(_SUM)
            left = name.endswith(_BESIDE) or (name.endswith(_SUM) and whole not in there)
            if left and _NAME.fullmatch(whole):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.path, name))
        # Snapshots that other processes wrote meanwhile count, too.
        self._known = deque((name, self._size(name)) for name in self.names())
        self._bytes = sum(size for _, size in self._known)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """A lock on the folder among processes; the system releases it when a process dies."""
        path = os.path.join(self.path, _LOCK)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _SAFE, 0o600)
        try:
            if sys.platform != "win32":
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            if sys.platform != "win32":  # a child that was forked meanwhile has the file open, too
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _write_beside(path: str, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | _SAFE
    descriptor = os.open(path + _BESIDE, flags, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _packed(snapshot: Snapshot) -> bytes:
    document = {
        "version": _VERSION,
        "cause": snapshot.cause,
        "at": snapshot.at_ms,
        "entries": [entry.to_state() for entry in snapshot.entries],
    }
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def _unpacked(packed: bytes, path: str) -> Snapshot:
    """What a file has, or ``ArchiveDamagedError``."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(packed)) as file:
            text = file.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise ValueError("it is too large when unpacked")
        document: Any = load_json(text)
        if not isinstance(document, dict) or document.get("version") != _VERSION:
            raise ValueError("it is not an archive of this version")
        raw, cause = document.get("entries"), document.get("cause")
        if not isinstance(raw, list) or not isinstance(cause, str):
            raise ValueError("its entries or their cause are missing")
        entries = tuple(map(entry_from_state, raw))
        return Snapshot(entries, cause, epoch_milliseconds(document.get("at"), "at"))
    except (OSError, EOFError, ValueError, TypeError, RecursionError, zlib.error) as error:
        raise ArchiveDamagedError(path, str(error) or type(error).__name__) from error
