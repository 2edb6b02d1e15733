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
    from ._looking import Look
    from .sqlite import SQLiteStore

__all__ = ["Changes", "JsonFileStore", "MemoryStore", "State", "Store", "look_into", "open_store"]

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


def look_into(path: str | PathLike[str], name: str = "") -> Look | None:
    """The document in the file at ``path``, found without writing anything; ``None`` without one.

    A ``Look(state, names, digest)``: ``state`` is ``None`` if the file is a database that has no
    memory called ``name``; ``names`` are those of the memories in it (of a JSON file only ``""``);
    ``digest`` is ``"fits"``, ``"differs"`` (the file was edited or damaged) or ``"none"``. Neither
    the file nor its folder is touched; of a database that somebody has open, only the file
    ``-shm``, in which SQLite keeps its locks.

    Raises ``ValueError`` for a path that cannot be one of a file, or a name for a JSON file;
    ``DamagedStoreError`` and ``OSError`` as the ``load`` of a store does.

    >>> look_into("no such file.json") is None
    True
    """
    from . import _looking

    store = open_store(path)
    if not isinstance(store, JsonFileStore):
        return _looking.look_into_database(store.path, name)
    if name:
        raise ValueError(f"{store.path} is a JSON file, which has one memory, without a name")
    return _looking.look_into_json(store.path)
