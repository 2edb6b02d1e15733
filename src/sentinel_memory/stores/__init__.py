"""Where a memory is kept between two runs of the program: the protocol, the stores, the choice."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from ..document import State
from . import _paths
from .json_file import JsonFileStore
from .memory import MemoryStore
from .protocol import Changes, Store

if TYPE_CHECKING:
    from .sqlite import SQLiteStore

__all__ = ["Changes", "JsonFileStore", "MemoryStore", "State", "Store", "open_store"]

_SUFFIXES = (".db", ".sqlite", ".sqlite3")


def open_store(path: str | PathLike[str]) -> JsonFileStore | SQLiteStore:
    """The store for the file at ``path``: a ``SQLiteStore`` for a database, else a JSON file.

    An existing file is judged by its first bytes; one that is neither, and one that is still to
    be made, by the suffix: ``.db``, ``.sqlite`` and ``.sqlite3`` are databases.

    >>> open_store("guest.json").path.endswith("guest.json")
    True
    >>> type(open_store("guest.db")).__name__
    'SQLiteStore'
    """
    absolute = _paths.absolute(path)
    named = absolute.lower().endswith(_SUFFIXES)
    from . import _database

    first = _database.first_bytes(_paths.resolve(absolute))
    is_json = first.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    if first.startswith(_database.MAGIC) or (named and not is_json):
        from .sqlite import SQLiteStore

        return SQLiteStore(path)
    return JsonFileStore(path)
