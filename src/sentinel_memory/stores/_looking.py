"""A look into the file of a memory, for programs that must not write anything by looking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from ..document import State
from . import _codec, _database, _files, _paths, _rows
from ._tables import Table

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["Digest", "Look", "look_into_database", "look_into_json"]

Digest: TypeAlias = Literal["fits", "differs", "none"]

_TIMEOUT: Final = 30.0  # seconds, for a writer that is in the way


class Look(NamedTuple):
    """What a look found: the document, the names in the file, and what its digest says.

    ``state`` is ``None`` if a database has no memory of the name that was asked for; ``names`` are
    those of all memories in it, and of a JSON file ``("",)``. ``digest`` is of a database always
    ``"fits"``, since its rows have checksums, and one that does not fit is damage.
    """

    state: State | None
    names: tuple[str, ...]
    digest: Digest


def look_into_json(path: str) -> Look | None:
    """The document in a JSON file; ``None`` without a file. Errors are those of its store."""
    found = _files.read(_paths.resolve(path))
    if found is None:
        return None
    state, altered = _codec.from_file(found.data, path)
    digest: Digest = "none"
    if altered or _codec.has_digest(found.data):
        digest = "differs" if altered else "fits"
    return Look(state, ("",), digest)


def look_into_database(path: str, name: str) -> Look | None:
    """A memory in a SQLite file; ``None`` without a file. Errors are those of its store."""
    table = Table(_rows.checked_name(name), path)
    target = _paths.resolve(path)

    def read(db: Connection) -> tuple[State | None, tuple[str, ...]]:
        return table.read(db)[1], table.names(db)

    try:
        found = _database.look(target, path, _TIMEOUT, read)
    except Exception as error:
        translated = _database.translated_error(error, path)
        if translated is None:
            raise
        raise translated from None
    return None if found is None else Look(*found, "fits")
