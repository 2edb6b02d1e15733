"""Helpers of stores with one row per entry: a document as rows of text, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from .._basics.checks import check_str
from ..document import State, shape_problem
from . import _codec
from .protocol import Changes

__all__ = [
    "Row",
    "checked_name",
    "from_rows",
    "key_of_text",
    "key_text",
    "new_token",
    "split_changes",
    "to_rows",
]

_TOKEN_BYTES: Final = 16  # 128 bits: unguessable, and never drawn twice
_ENTRIES: Final = "entries"
_DIGEST: Final = "digest"  # a name that a JSON file keeps for its own


class Row(NamedTuple):
    """One entry: its key as JSON text, ``None`` if it has none, and all of it as JSON text."""

    key: str | None
    text: str


def to_rows(state: State) -> tuple[str, list[Row]]:
    """The document without its entries as JSON text, and a row for each entry.

    ``TypeError`` or ``ValueError`` for a state that could not be read back.
    """
    _codec.to_file(state)  # only to raise for a state that cannot be read back
    problem = shape_problem(state)
    if problem is not None:
        raise ValueError(f"state is not a document that could be read back: {problem}")
    return _text_of_rest(state), [Row(_key_of(entry), _text(entry)) for entry in state[_ENTRIES]]


def split_changes(changes: Changes) -> tuple[str, list[Row], list[str]]:
    """The rest as ``to_rows`` gives it, a row for each entry, and the keys that are gone as text.

    Costs time in proportion to the changes. ``TypeError`` or ``ValueError`` as for ``to_rows``, and
    for an entry without a key.
    """
    entries, gone, rest = changes
    if not isinstance(rest, dict):
        raise TypeError(f"changes.rest must be a dict, not {type(rest).__name__}")
    if _ENTRIES in rest:
        raise ValueError("changes.rest has a member 'entries'; it is the document without them")
    for entry in entries:
        if _key_of(entry) is None:
            raise TypeError("changes.entries must be dicts with a str under 'key'")
    for key in gone:
        check_str("each of changes.gone", key)
    # In the order in which a memory writes its document.
    version = {"version": rest["version"]} if "version" in rest else {}
    document: State = {**version, _ENTRIES: list(entries), **rest}
    text, rows = to_rows(document)
    return text, rows, [key_text(key) for key in gone]


def from_rows(rest: bytes, rows: Iterable[bytes], path: str) -> State:
    """The document of these texts; a ``DamagedStoreError`` naming ``path`` if they are not one."""
    document = _codec.from_bytes(rest, path)
    entries = _codec.from_bytes(b'{"version":1,"entries":[' + b",".join(rows) + b"]}", path)
    document[_ENTRIES] = entries[_ENTRIES]
    return document


def key_text(key: str) -> str:
    """``key`` as JSON text in ASCII: a key may have characters that a database refuses."""
    return json.dumps(key)


def key_of_text(text: str) -> str:
    """The key of which ``key_text`` made ``text``."""
    key: str = json.loads(text)
    return key


def new_token() -> str:
    """A unique name for one saved document.

    Random and not a number, so that two servers, or a backup and what came after it, never give
    the same one to different documents.
    """
    return os.urandom(_TOKEN_BYTES).hex()


def checked_name(name: object) -> str:
    """The name of a memory among others in one database; a ``TypeError`` if it is not a str."""
    check_str("name", name)
    return str.__str__(name)


def _text_of_rest(state: State) -> str:
    rest = {**state, _ENTRIES: []}
    rest.pop(_DIGEST, None)
    return _text(rest)


def _key_of(entry: Any) -> str | None:
    key = entry.get("key") if isinstance(entry, dict) else None
    return key_text(key) if isinstance(key, str) else None


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, check_circular=False)
    # Only a lone surrogate cannot be encoded, and a backslash escape is its JSON form.
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
