"""The rows of one memory in the tables of a SQLite file: found, read, checked, written."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..document import State
from ..errors import DamagedStoreError
from . import _database, _rows

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["MemoryRow", "Table"]

_COLUMNS: Final = "SELECT id, name, token, entries, rest, sum FROM memories"


class MemoryRow(NamedTuple):
    """The row of a memory, without its name; ``rest_hash`` is of the document without entries."""

    number: int
    token: str
    entries: int
    rest_hash: bytes


class Table:
    """The rows of the memory ``name``; ``path`` is for errors.

    ``find`` may be called outside of a transaction, the other methods only within one.
    """

    def __init__(self, name: str, path: str) -> None:
        self._name: Final = _rows.key_text(name)
        self._path: Final = path

    def find(self, db: Connection) -> MemoryRow | None:
        """The row of the memory, or ``None``; ``DamagedStoreError`` if its index is damaged."""
        row = db.execute(f"{_COLUMNS} WHERE name = ?", (self._name,)).fetchone()
        if row is None:
            # With a damaged index the row may be there all the same.
            for other in db.execute(f"{_COLUMNS} NOT INDEXED").fetchall():
                if self._checked(other) == self._name:
                    raise self._damaged("the index of its names")
            return None
        self._checked(row)
        number, _, token, entries, rest, _ = row
        return MemoryRow(number, token.decode(), entries, rest)

    def names(self, db: Connection) -> tuple[str, ...]:
        """The names of all memories in the file, sorted."""
        rows = db.execute(f"{_COLUMNS} NOT INDEXED").fetchall()
        return tuple(sorted(_rows.key_of_text(self._checked(row)) for row in rows))

    def read(self, db: Connection) -> tuple[str | None, State | None]:
        """The token and the document, ``None`` and ``None`` if the memory has no row."""
        memory = self.find(db)
        if memory is None:
            return None, None
        rests = db.execute(
            "SELECT rest, sum FROM rests WHERE memory = ?", (memory.number,)
        ).fetchall()
        rows = db.execute(
            "SELECT entry, key, sum FROM entries WHERE memory = ? ORDER BY position",
            (memory.number,),
        ).fetchall()
        if len(rests) != 1 or len(rows) != memory.entries:
            raise self._damaged("the number of its rows")
        for text, key, check in rows:
            if type(text) is not bytes or _database.checksum(memory.number, key, text) != check:
                raise self._damaged("a row of an entry")
        text, check = rests[0]
        if type(text) is not bytes or _database.checksum(memory.number, text) != check:
            raise self._damaged("the row of what is not entries")
        return memory.token, _rows.from_rows(text, [row[0] for row in rows], self._path)

    def write(
        self,
        db: Connection,
        memory: MemoryRow | None,
        token: str,
        rest: str,
        rows: list[_rows.Row],
        gone: list[str] | None,
    ) -> bool:
        """Write these rows; ``gone`` are keys to remove, ``None`` to replace all rows.

        True if old text was deleted, so that the log must be wiped.
        """
        if memory is None:
            db.execute("INSERT INTO memories VALUES (NULL, ?, '', 0, x'', 0)", (self._name,))
            number = db.execute("SELECT last_insert_rowid()").fetchone()[0]
            memory = MemoryRow(number, "", 0, b"")
        hashed = _hash(rest)
        replaced = _write_rest(db, memory, rest) if hashed != memory.rest_hash else False
        removed, left = _remove(db, memory, rows, gone)
        for key, text in rows:
            _write_entry(db, memory, key, text)
        entries = left + len(rows)
        name, new = self._name.encode(), token.encode()
        check = _database.checksum(memory.number, name, new, entries, hashed)
        db.execute(
            "UPDATE memories SET token = ?, entries = ?, rest = ?, sum = ? WHERE id = ?",
            (token, entries, hashed, check, memory.number),
        )
        # ``gone`` also if no row had these keys: a failed save may have left the text in the log.
        return bool(replaced or removed or gone)

    def _checked(self, row: tuple[Any, ...]) -> str:
        number, name, token, entries, rest, check = row
        known = type(name) is type(token) is bytes
        if not known or _database.checksum(number, name, token, entries, rest) != check:
            raise self._damaged("a row of a memory")
        text: str = name.decode()
        return text

    def _damaged(self, part: str) -> DamagedStoreError:
        return DamagedStoreError(f"{part} is not as it was written", path=self._path)


def _write_rest(db: Connection, memory: MemoryRow, rest: str) -> bool:
    """Replace the row of the document without entries; whether there was one."""
    removed = db.execute("DELETE FROM rests WHERE memory = ?", (memory.number,)).rowcount
    text = _database.padded(rest)
    check = _database.checksum(memory.number, text.encode())
    db.execute(
        "INSERT INTO rests VALUES (?, ?, ?, ?)", (memory.number, check, _database.ZEROS, text)
    )
    return bool(removed)


def _write_entry(db: Connection, memory: MemoryRow, key: str | None, text: str) -> None:
    entry, hashed = _database.padded(text), None if key is None else _hash(key)
    check = _database.checksum(memory.number, hashed, entry.encode())
    db.execute(
        "INSERT INTO entries VALUES (NULL, ?, ?, ?, ?, ?)",
        (memory.number, hashed, check, _database.ZEROS, entry),
    )


def _remove(
    db: Connection, memory: MemoryRow, rows: list[_rows.Row], gone: list[str] | None
) -> tuple[int, int]:
    """Remove rows; return how many were removed, and how many are left."""
    if gone is None:
        return db.execute("DELETE FROM entries WHERE memory = ?", (memory.number,)).rowcount, 0
    removed = 0
    for key in {_hash(key) for key in [*gone, *(row.key for row in rows)] if key is not None}:
        removed += db.execute(
            "DELETE FROM entries WHERE memory = ? AND key = ?", (memory.number, key)
        ).rowcount
    return removed, memory.entries - removed


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()
