"""The rows of one memory in the tables of a SQLite file: found, read, checked, written."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..document import State
from ..errors import DamagedStoreError
from . import _database, _rows

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["Memory", "Table"]

_COLUMNS: Final = "SELECT id, name, token, entries, rest, sum FROM memories"


class Memory(NamedTuple):
    """The row of a memory, without its name: ``rest`` is the hash of what is not entries."""

    id: int
    token: str
    entries: int
    rest: bytes


class Table:
    """What the tables have of the memory ``name``; ``path`` is for errors.

    Every call is to be within a transaction, but for ``find``.
    """

    def __init__(self, name: str, path: str) -> None:
        self._name: Final = _rows.key_text(name)
        self._path: Final = path

    def find(self, db: Connection) -> Memory | None:
        """The row of the memory; a ``DamagedStoreError`` if it may be there and is not found."""
        row = db.execute(f"{_COLUMNS} WHERE name = ?", (self._name,)).fetchone()
        if row is None:
            # Unless every name is as it was written, this one may be among them.
            for other in db.execute(f"{_COLUMNS} NOT INDEXED").fetchall():
                if self._checked(other) == self._name:
                    raise self._damaged("the index of its names")
            return None
        self._checked(row)
        id, _, token, entries, rest, _ = row
        return Memory(id, token.decode(), entries, rest)

    def read(self, db: Connection) -> tuple[str | None, State | None]:
        """Token and document, or ``None`` and ``None``."""
        memory = self.find(db)
        if memory is None:
            return None, None
        rests = db.execute("SELECT rest, sum FROM rests WHERE memory = ?", (memory.id,)).fetchall()
        rows = db.execute(
            "SELECT entry, key, sum FROM entries WHERE memory = ? ORDER BY position", (memory.id,)
        ).fetchall()
        if len(rests) != 1 or len(rows) != memory.entries:
            raise self._damaged("the number of its rows")
        for text, key, sum in rows:
            if type(text) is not bytes or _database.checksum(memory.id, key, text) != sum:
                raise self._damaged("a row of an entry")
        text, sum = rests[0]
        if type(text) is not bytes or _database.checksum(memory.id, text) != sum:
            raise self._damaged("the row of what is not entries")
        return memory.token, _rows.joined(text, [row[0] for row in rows], self._path)

    def write(
        self,
        db: Connection,
        memory: Memory | None,
        token: str,
        rest: str,
        rows: list[_rows.Row],
        gone: list[str] | None,
    ) -> bool:
        """Write these rows, in place of all if ``gone`` is ``None``.

        Says whether text went that may have been there before.
        """
        if memory is None:
            db.execute("INSERT INTO memories VALUES (NULL, ?, '', 0, x'', 0)", (self._name,))
            id = db.execute("SELECT last_insert_rowid()").fetchone()[0]
            memory = Memory(id, "", 0, b"")
        hashed = _hash(rest)
        replaced = _write_rest(db, memory, rest) if hashed != memory.rest else False
        removed, left = _remove(db, memory, rows, gone)
        for key, text in rows:
            _write_entry(db, memory, key, text)
        entries = left + len(rows)
        name, new = self._name.encode(), token.encode()
        sum = _database.checksum(memory.id, name, new, entries, hashed)
        db.execute(
            "UPDATE memories SET token = ?, entries = ?, rest = ?, sum = ? WHERE id = ?",
            (token, entries, hashed, sum, memory.id),
        )
        # Also if nothing was found: a save that failed may have left it in the log.
        return bool(replaced or removed or gone)

    def _checked(self, row: tuple[Any, ...]) -> str:
        id, name, token, entries, rest, sum = row
        known = type(name) is type(token) is bytes
        if not known or _database.checksum(id, name, token, entries, rest) != sum:
            raise self._damaged("a row of a memory")
        text: str = name.decode()
        return text

    def _damaged(self, part: str) -> DamagedStoreError:
        return DamagedStoreError(f"{part} is not as it was written", path=self._path)


def _write_rest(db: Connection, memory: Memory, rest: str) -> bool:
    """Whether there was another one."""
    removed = db.execute("DELETE FROM rests WHERE memory = ?", (memory.id,)).rowcount
    text = _database.padded(rest)
    sum = _database.checksum(memory.id, text.encode())
    db.execute("INSERT INTO rests VALUES (?, ?, ?, ?)", (memory.id, sum, _database.ZEROS, text))
    return bool(removed)


def _write_entry(db: Connection, memory: Memory, key: str | None, text: str) -> None:
    entry, hashed = _database.padded(text), None if key is None else _hash(key)
    sum = _database.checksum(memory.id, hashed, entry.encode())
    db.execute(
        "INSERT INTO entries VALUES (NULL, ?, ?, ?, ?, ?)",
        (memory.id, hashed, sum, _database.ZEROS, entry),
    )


def _remove(
    db: Connection, memory: Memory, rows: list[_rows.Row], gone: list[str] | None
) -> tuple[int, int]:
    """How many rows went, and how many are left."""
    if gone is None:
        return db.execute("DELETE FROM entries WHERE memory = ?", (memory.id,)).rowcount, 0
    removed = 0
    for key in {_hash(key) for key in [*gone, *(row.key for row in rows)] if key is not None}:
        removed += db.execute(
            "DELETE FROM entries WHERE memory = ? AND key = ?", (memory.id, key)
        ).rowcount
    return removed, memory.entries - removed


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()
