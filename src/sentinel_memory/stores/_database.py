"""A SQLite file of memories: making it, opening it with care, its layout and its errors.

**Layout.** ``memories`` has a row for each document: its name, its token, how many entries it has
and the hash of the rest; ``rests`` and ``entries`` have the texts. Every row has a checksum, since
SQLite itself does not notice a byte that was flipped in a value.

**Where text is.** When a B-tree is balanced, SQLite moves rows between pages and leaves copies of
them in the unused parts of pages, where ``secure_delete`` does not find them. So no text may be in
a B-tree page. The part of a row that does not fit there is on overflow pages of its own, which are
never moved and are wiped when the row is deleted. By the rule for table leaves of the file format,
a record of P bytes on pages of 512 leaves K = 39 + (P - 39) % 508 bytes in the B-tree if K <= 477,
and else 39. So texts end in spaces until K is well above 477, and before each one stand 39 zeros.
Keys are kept as hashes.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from binascii import crc32
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from ..errors import DamagedStoreError
from . import _files
from ._rights import refuse_foreign

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = [
    "MAGIC",
    "ZEROS",
    "Identity",
    "checksum",
    "close",
    "deadline",
    "first_bytes",
    "identity_of",
    "keep_inherited",
    "log_size",
    "look",
    "make_database",
    "open_database",
    "opening",
    "padded",
    "patiently",
    "pause_until",
    "translated_error",
    "truncate_log",
    "wait_until",
]

Identity: TypeAlias = tuple[int, int]
_T = TypeVar("_T")

MAGIC: Final = b"SQLite format 3\0"
_APPLICATION: Final = 0x536D656D  # "Smem", in the header of the file
_FORMAT: Final = 1
_PAGE: Final = 512
_LEAST_LOCAL: Final = 39
_STEP: Final = _PAGE - 4
_TARGET: Final = 473  # of (P - 39) % 508, so that K is 512 > 477; 439 to 507 all work
_RECORD: Final = 24  # estimated bytes of a record beside its text and zeros; really 5 to 40
ZEROS: Final = bytes(_LEAST_LOCAL)
_TABLES: Final = (
    "CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
    " token TEXT NOT NULL, entries INTEGER NOT NULL, rest BLOB NOT NULL, sum INTEGER NOT NULL)",
    "CREATE TABLE rests (memory INTEGER PRIMARY KEY, sum INTEGER NOT NULL, zeros BLOB NOT NULL,"
    " rest TEXT NOT NULL)",
    "CREATE TABLE entries (position INTEGER PRIMARY KEY, memory INTEGER NOT NULL, key BLOB,"
    " sum INTEGER NOT NULL, zeros BLOB NOT NULL, entry TEXT NOT NULL)",
    "CREATE INDEX entries_by_key ON entries (memory, key)",
    "CREATE TRIGGER whole_memories AFTER DELETE ON memories BEGIN"
    " DELETE FROM rests WHERE memory = old.id; DELETE FROM entries WHERE memory = old.id; END",
)
_SAFE_IN_ADDRESS: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-~"
)
# Result codes of SQLite; ``sqlite3`` has them by name, but is not imported before it is needed.
_SQLITE_ERROR: Final = 1
_SQLITE_BUSY, _SQLITE_LOCKED = 5, 6
_SQLITE_CORRUPT, _SQLITE_NOTADB = 11, 26
_SQLITE_PERM, _SQLITE_READONLY, _SQLITE_IOERR, _SQLITE_FULL, _SQLITE_CANTOPEN = 3, 8, 10, 13, 14
_PRIMARY: Final = 0xFF  # the bits of an extended code that are its primary one
_BUSY: Final = (_SQLITE_BUSY, _SQLITE_LOCKED)
_DAMAGED: Final = (_SQLITE_CORRUPT, _SQLITE_NOTADB)
_SYSTEM_ERRORS: Final = {
    _SQLITE_PERM: errno.EACCES,
    _SQLITE_READONLY: errno.EROFS,
    _SQLITE_IOERR: errno.EIO,
    _SQLITE_FULL: errno.ENOSPC,
    _SQLITE_CANTOPEN: errno.EACCES,
}

opening: Final = threading.RLock()
"""Held while a file is opened, as a database or to read its first bytes.

Closing a file, however opened, gives up all locks of the process on it, also the locks of a
connection. So a file that has a connection is never opened in any other way.
"""

_open: Final[dict[int, Identity]] = {}
"""The file of each open connection, by the ``id`` of the connection."""

_inherited: Final[dict[Identity, Connection]] = {}
"""Connections of a parent that forked while they were in use: never used here, never closed."""


def checksum(*parts: object) -> int:
    """A checksum of the parts of a row, which finds bytes that were flipped."""
    found = 0
    for part in parts:
        # ``repr`` shows the type as well: damage may have turned a value into one of another type.
        found = crc32(part if type(part) is bytes else repr(part).encode(), found)
    return found


def padded(text: str) -> str:
    """JSON text, padded with spaces so that all of it goes to overflow pages."""
    local = _RECORD + len(ZEROS) + len(text.encode()) - _LEAST_LOCAL
    return text + " " * ((_TARGET - local) % _STEP)


def first_bytes(target: str) -> bytes:
    """The first bytes of the file, enough to recognise a database; empty if there is no file."""
    with opening:
        identity = identity_of(target)
        if identity is not None and identity in list(_open.values()):
            return MAGIC
        fd = None if identity is None else _files.open_file(target)
        if fd is None:
            return b""
        try:
            return os.read(fd, 64)
        finally:
            os.close(fd)


def identity_of(target: str) -> Identity | None:
    """Device and number of the file at ``target``, ``None`` if there is none."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def make_database(target: str) -> None:
    """A database without a memory at ``target``, whole or not at all, unless one is there.

    For its owner only, and missing folders too.
    """
    import sqlite3

    folder = os.path.dirname(target)
    _files.make_folder(folder)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute(f"PRAGMA page_size = {_PAGE}")
        for statement in _TABLES:
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        db.execute(f"PRAGMA user_version = {_FORMAT}")
        data = bytearray(db.serialize())
    data[18:20] = b"\2\2"  # a write-ahead log from the beginning
    while True:
        try:
            with _files.new_file(
                target, bytes(data), None, when_created=lambda _: None, marker=None
            ) as temp:
                _files.replace(temp, target, new=True)
        except FileExistsError:  # another writer was faster
            return
        except FileNotFoundError:  # another writer swept the temp file away
            if not os.path.isdir(folder):
                raise
            continue
        _files.sync_folder(folder)
        return


def open_database(target: str, path: str, timeout: float) -> Connection | None:
    """A checked connection to the database at ``target``; ``None`` if there is no file.

    Raises ``DamagedStoreError``, with the file untouched.
    """
    with opening:
        status = _checked_status(target, path)
        if status is None:
            return None
        if log_size(target):
            # A connection for writing would move the log into the file when it is closed, also into
            # a damaged one; this one only reads.
            with closing(_connection(target, "ro")) as db:
                _check(db, path, timeout)
        db = _connection(target, "rw")
        _open[id(db)] = status.st_dev, status.st_ino
        try:
            _check(db, path, timeout)
            for setting in ("synchronous = FULL", "secure_delete = ON", "temp_store = MEMORY"):
                db.execute(f"PRAGMA {setting}")
            mode = patiently(lambda: _value(db, "PRAGMA journal_mode = WAL"), path, timeout)
            if mode != b"wal":
                raise OSError(errno.ENOTSUP, "SQLite keeps no write-ahead log here", path)
        except BaseException:
            close(db)
            raise
        return db


def look(target: str, path: str, timeout: float, read: Callable[[Connection], _T]) -> _T | None:
    """The result of ``read`` with a connection that writes nothing; ``None`` without a file.

    If nobody has the database open, no file is made beside it, not even for a moment; else SQLite
    takes part in the file ``-shm``. The log is never moved into the file. Errors are those of
    ``open_database``.
    """
    with opening:  # nothing else of this process opens the file, whose locks would end with this
        while True:
            status = _checked_status(target, path)
            if status is None:
                return None
            if _is_open(target):
                return _look(target, path, timeout, read, "ro")
            try:
                found = _look(target, path, timeout, read, "ro&immutable=1")
            except Exception:
                if _is_as(target, status):
                    raise
            else:
                if _is_as(target, status):
                    return found


def _is_as(target: str, before: os.stat_result) -> bool:
    """Whether nobody wrote since: what was read without locks counts only then."""
    try:
        now = os.stat(target)
    except FileNotFoundError:
        return False
    same = os.path.samestat(now, before) and now.st_size == before.st_size
    return same and now.st_mtime_ns == before.st_mtime_ns and not _is_open(target)


def _look(
    target: str, path: str, timeout: float, read: Callable[[Connection], _T], mode: str
) -> _T:
    db = _connection(target, mode)
    with closing(db):
        _check(db, path, timeout)
        db.execute("BEGIN")
        return read(db)


def _is_open(target: str) -> bool:
    """Whether somebody has the database open, or was killed while having it open."""
    return log_size(target) > 0 or os.path.exists(f"{target}-shm")


def close(db: Connection) -> None:
    """Close a connection that ``open_database`` gave."""
    with opening:
        with suppress(Exception):
            if db.in_transaction:
                db.execute("ROLLBACK")
        db.close()
        _open.pop(id(db), None)


def keep_inherited(db: Connection) -> None:
    """Keep, in a forked child, a connection of the parent; its file is not opened any more."""
    identity = _open.pop(id(db), None)
    if identity is not None:
        _inherited[identity] = db


def log_size(target: str) -> int:
    """The bytes in the write-ahead log."""
    try:
        return os.stat(f"{target}-wal").st_size
    except FileNotFoundError:
        return 0


def truncate_log(db: Connection, seconds: float) -> bool:
    """Move the log into the file and empty it; false if a reader prevented it for ``seconds``."""
    import sqlite3

    end = time.monotonic() + seconds
    while True:
        try:
            busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.OperationalError:
            busy = 1  # the save is done all the same; the log is truncated later
        if not busy:
            return True
        if time.monotonic() >= end:
            return False
        _pause()


def _pause() -> None:
    """Sleep for 1 to 5 ms at random: shorter pauses cost CPU, longer ones let writers starve."""
    time.sleep(0.001 + time.perf_counter_ns() % 997 / 997 * 0.004)


def patiently(call: Callable[[], _T], path: str, timeout: float) -> _T:
    """The result of ``call``, repeated while another writer keeps the file busy.

    SQLite's own waiting takes ever longer pauses, with which some of many writers starve.
    """
    import sqlite3

    end = deadline(timeout)
    while True:
        try:
            return call()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY not in _BUSY:
                raise
        wait_until(end, path, timeout)


def deadline(timeout: float) -> float:
    """The moment, by the monotonic clock, at which a wait of ``timeout`` seconds ends."""
    return time.monotonic() + timeout


def pause_until(end: float) -> bool:
    """A short pause; ``False``, without a pause, once ``end`` has passed."""
    if time.monotonic() >= end:
        return False
    _pause()
    return True


def wait_until(end: float, path: str, timeout: float) -> None:
    """A short pause, or a ``TimeoutError`` once ``end`` has passed."""
    if not pause_until(end):
        raise TimeoutError(
            errno.ETIMEDOUT, f"another writer was not done with it within {timeout:g} s", path
        )


def translated_error(error: BaseException, path: str) -> Exception | None:
    """An error of SQLite as other stores raise it, naming ``path``; ``None`` for any other."""
    import sqlite3

    if isinstance(error, UnicodeDecodeError):  # raised while SQLite reports a damaged name
        return DamagedStoreError("names in it are damaged", path=path)
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(error, sqlite3.Error) or code is None:
        return None
    code &= _PRIMARY
    if code in _DAMAGED:
        return DamagedStoreError(f"SQLite says: {error}", path=path)
    if code in _BUSY:
        return TimeoutError(errno.ETIMEDOUT, str(error), path)
    if code in _SYSTEM_ERRORS:
        return OSError(_SYSTEM_ERRORS[code], str(error), path)
    return None


def _connection(target: str, mode: str) -> Connection:
    import sqlite3

    name = os.fsencode(target.replace(os.sep, "/"))
    address = "".join(chr(byte) if byte in _SAFE_IN_ADDRESS else f"%{byte:02x}" for byte in name)
    db = sqlite3.connect(
        f"file:{address if address.startswith('/') else '/' + address}?mode={mode}",
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
    )
    db.text_factory = bytes
    return db


def _checked_status(target: str, path: str) -> os.stat_result | None:
    """The status of the file, refused if it cannot be a database; ``None`` without a file."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "a folder, and the path of a file is needed", path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    refuse_foreign(status, target)
    if (status.st_dev, status.st_ino) in _inherited:
        raise RuntimeError(
            f"{path}: this process was forked while its parent was in an exclusive block of"
            " this file, and SQLite would take the locks of the parent for its own; fork"
            " outside of the block"
        )
    if status.st_size < _PAGE:  # SQLite takes some of these for a database without tables
        short = f"cut short: it has {status.st_size} bytes" if status.st_size else "empty"
        raise DamagedStoreError(f"it is {short}", path=path)
    return status


def _value(db: Connection, sql: str) -> Any:
    return db.execute(sql).fetchone()[0]


def _check(db: Connection, path: str, timeout: float) -> None:
    """Raise ``DamagedStoreError`` for a file that is not a whole database of memories."""
    import sqlite3

    def read() -> tuple[Any, Any, list[Any], list[Any]]:
        db.execute("BEGIN")
        try:
            return (
                _value(db, "PRAGMA application_id"),
                _value(db, "PRAGMA user_version"),
                db.execute("SELECT sql FROM sqlite_master").fetchall(),
                db.execute("PRAGMA quick_check(1)").fetchall(),
            )
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")

    try:
        application, version, tables, problems = patiently(read, path, timeout)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & _PRIMARY != _SQLITE_ERROR:
            raise
        raise DamagedStoreError(f"SQLite says: {error}", path=path) from None
    if problems != [(b"ok",)]:
        raise DamagedStoreError("SQLite finds it malformed", path=path)
    if application != _APPLICATION:
        raise DamagedStoreError("it is a database, but not one of memories", path=path)
    if version != _FORMAT:
        raise DamagedStoreError(f"its format is {version}, and must be {_FORMAT}", path=path)
    if not {(statement.encode(),) for statement in _TABLES} <= set(tables):
        raise DamagedStoreError("its tables are not those of memories", path=path)
