"""A document as the bytes of a file, and back with care.

What ``to_bytes`` accepts ``from_bytes`` reads, and what ``from_bytes`` reads ``to_bytes`` accepts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final

from ..document import State, shape_problem
from ..errors import DamagedStoreError

__all__ = ["MAX_LEVELS", "from_bytes", "to_bytes"]

MAX_LEVELS: Final = 200
"""The most levels of lists and objects in a document; the document itself is the first."""

REJECTED_LEVELS: Final = 8
"""What the section ``rejected`` may nest beyond that.

What a memory rejects moves there, a few levels down. It must stay writable.
"""

_TOO_DEEP: Final = f"the document nests more than {MAX_LEVELS} levels of lists and objects"
_BOM: Final = b"\xef\xbb\xbf"
_STRINGS: Final = re.compile(rb'"[^"]*"')
_NOT_STRUCTURE: Final = bytes(set(range(256)).difference(b'"[]{}'))
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")


def to_bytes(state: State) -> bytes:
    """``state`` as one line of JSON in UTF-8.

    A ``TypeError`` or ``ValueError`` for what would not come back: not JSON data, ``nan``, too
    many levels. Mapping keys are taken for strings, as the type of a state says.
    """
    if not isinstance(state, dict):
        raise TypeError(f"state must be a dict, not {type(state).__name__}")
    try:
        text = json.dumps(state, ensure_ascii=False, allow_nan=False, check_circular=False)
    except RecursionError:
        raise ValueError(
            "state contains itself or nests too deeply, or the call stack is nearly used up"
        ) from None
    # Only a lone surrogate cannot be encoded, and a backslash escape is its JSON form.
    data = text.encode("utf-8", "backslashreplace") + b"\n"
    _check_levels(_levels_of_text(data), state)
    return data


def from_bytes(data: bytes, path: str) -> State:
    """The document in ``data``; a ``DamagedStoreError`` naming ``path`` if it is none."""
    try:
        state = _parse(data)
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8: byte 0x{data[error.start]:02x} at position {error.start}"
    except json.JSONDecodeError as error:
        reason = _syntax_problem(error)
    except ValueError as error:
        reason = str(error)
    else:
        problem = shape_problem(state)
        if problem is None:
            return state  # type: ignore[no-any-return]
        reason = problem
    # Without its cause: a parser's error carries the whole text, and that is private.
    raise DamagedStoreError(reason, path=path)


def _parse(data: bytes) -> Any:
    if not data.strip():
        raise ValueError("it is empty")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or data[:2].count(0) == 1:
        raise ValueError("it is UTF-16 or UTF-32, not UTF-8")
    text = data.removeprefix(_BOM).decode()
    levels = _levels_of_text(data)
    if levels is not None and levels > MAX_LEVELS + REJECTED_LEVELS:
        raise ValueError(_TOO_DEEP)
    try:
        state = json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except RecursionError:
        if levels is None:  # brackets without an end: no JSON, however deep the parser looks
            raise ValueError(_TOO_DEEP) from None
        raise  # the caller's stack is nearly used up; the file is fine
    _check_levels(levels, state)
    return state


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"an object in it has the name {twice!r:.80} more than once")
    return mapping


def _finite(number: str) -> float:
    value = float(number)
    if value - value != 0:  # infinite or nan; cheaper than a call
        raise ValueError(f"it has a number that is not finite: {number:.40}")
    return value


def _syntax_problem(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"it is cut short: {error.msg}"
    return f"it is not JSON: {error.msg} at line {error.lineno} column {error.colno}"


def _levels_of_text(data: bytes) -> int | None:
    """How many levels JSON text nests, without parsing it; ``None`` if brackets do not pair up.

    Counts no further than needed. Nearly all of it runs at the speed of ``bytes`` methods.
    """
    if b"\\" in data:  # after this, every quote begins or ends a string
        data = data.replace(rb"\\", b"").replace(rb"\"", b"")
    # A pair of quotes can go, whether it is an empty string or the seam of two strings.
    brackets = data.translate(_ONE_KIND, _NOT_STRUCTURE).replace(b'""', b"")
    if b'"' in brackets:
        brackets = _STRINGS.sub(b"", brackets)
    levels = 0
    while brackets and levels <= MAX_LEVELS + REJECTED_LEVELS:
        outer = brackets.replace(b"[]", b"")  # takes away exactly the innermost level
        if len(outer) == len(brackets):
            return None
        brackets = outer
        levels += 1
    return levels


def _check_levels(levels: int | None, state: Any) -> None:
    """Refuse too many levels; ``levels`` are those of the text of ``state``."""
    if levels is None or levels <= MAX_LEVELS:
        return
    if not isinstance(state, dict) or levels > MAX_LEVELS + REJECTED_LEVELS:
        raise ValueError(_TOO_DEEP)
    for name, value in state.items():
        extra = REJECTED_LEVELS if name == "rejected" and isinstance(value, list) else 0
        containers = [value]
        for _ in range(MAX_LEVELS + extra - 1):
            containers = [item for container in containers for item in _containers_in(container)]
        if containers:
            raise ValueError(_TOO_DEEP)


def _containers_in(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [item for item in value if isinstance(item, (dict, list, tuple))]
