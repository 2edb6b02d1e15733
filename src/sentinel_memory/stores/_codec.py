"""A document as bytes, and back with care; in a file it ends with a digest of itself.

What ``to_bytes`` accepts ``from_bytes`` reads, and what ``from_bytes`` reads ``to_bytes`` accepts.

A file is the same bytes with one more member at the end, ``digest``: the SHA-256, in 64 small
hexadecimal digits, of all bytes of the file before the comma that precedes this member. So
``{"version": 1, "entries": []`` is what is hashed of a file of an empty memory, and
``, "digest": "..."}`` and a line end follow. Another program may leave out the two spaces.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Final

from ..document import State, shape_problem
from ..errors import DamagedStoreError

__all__ = [
    "MAX_LEVELS",
    "check_levels",
    "from_bytes",
    "from_file",
    "has_digest",
    "to_bytes",
    "to_file",
]

MAX_LEVELS: Final = 200
"""The most levels of lists and objects in a document; the document itself is the first."""

REJECTED_LEVELS: Final = 8
"""The further levels that the section ``rejected`` may nest.

A rejected item moves there from elsewhere in the document, a few levels down, and must stay
writable.
"""

_TOO_DEEP: Final = f"the document nests more than {MAX_LEVELS} levels of lists and objects"
_BOM: Final = b"\xef\xbb\xbf"
_STRINGS: Final = re.compile(rb'"[^"]*"?')  # the last one may have lost its end
_NOT_STRUCTURE: Final = bytes(set(range(256)).difference(b'"[]{}'))
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
_STEPS: Final = bytes.maketrans(b"[]", b"\x01\xff")  # up and down, read as signed bytes

_PEELED: Final = 4
"""Levels that are counted by taking pairs of brackets away, one pass over all of them for each.

Few documents nest deeper. The other brackets cost some 30 ns each, however deep they are: more
passes make usual documents no cheaper and deep ones dearer. Tried: 0 to 16.
"""

_CONTAINERS: Final = (dict, list, tuple)
_MANY: Final = 1_000
"""Lists and objects on one level above which duplicates (the same object) are dropped; raised, a
small state that contains itself takes longer to refuse."""

_DIGEST: Final = "digest"
_LAST_MEMBER: Final = re.compile(rb', ?"([^"]{0,99})": ?"([0-9a-f]{64})"\}\n?\Z')
_LONGEST_LAST_MEMBER: Final = 200  # bytes, more than the pattern can match
_LONGEST_DIGEST: Final = 80  # characters; a digest has 64, and damage may have added a few
_LEAST_HEX_DIGITS: Final = 48  # of the 64 of a digest, when damage changed the others
_HEX_DIGITS: Final = frozenset("0123456789abcdefABCDEF")


def to_file(state: State) -> bytes:
    """The bytes of a file that holds ``state``: ``to_bytes(state)`` with a digest at the end.

    A digest in ``state`` itself, which a program may have read with ``json.loads``, is left out.
    ``ValueError`` for a member of that name that is not a digest.
    """
    if isinstance(state, dict) and _DIGEST in state:
        if not _may_be_digest(state[_DIGEST]):
            raise ValueError("state has a member 'digest', a name that the file keeps for its own")
        state = {name: value for name, value in state.items() if name != _DIGEST}
    body = memoryview(to_bytes(state))[: -len(b"}\n")]
    return b"".join((body, b', "digest": "', _digest(body), b'"}\n'))


def from_file(data: bytes, path: str) -> tuple[State, bool]:
    """The document in the file ``data``, without its digest, and whether it was altered since.

    A file without a digest, older or written by hand, counts as not altered. A
    ``DamagedStoreError`` naming ``path`` if there is no document in it.
    """
    state = from_bytes(data, path)
    stated = _DIGEST in state
    state.pop(_DIGEST, None)
    last = _LAST_MEMBER.search(data, max(0, len(data) - _LONGEST_LAST_MEMBER))
    fits = last is not None and _digest(memoryview(data)[: last.start()]) == last[2]
    if last is not None and last[1] == _DIGEST.encode():
        return state, not fits
    name = next(reversed(state))
    if not stated and not _may_be_digest(state[name]):
        return state, False
    if fits:  # a digest under a damaged name
        del state[name]
    return state, True


def has_digest(data: bytes) -> bool:
    """Whether the file ends with a digest, whether it fits or not."""
    last = _LAST_MEMBER.search(data, max(0, len(data) - _LONGEST_LAST_MEMBER))
    return last is not None and last[1] == _DIGEST.encode()


def check_levels(state: State) -> None:
    """Refuse a state of more levels than ``to_bytes`` takes, without making any text of it.

    A ``ValueError``, also for a state that contains itself. Takes time in proportion to the
    number of lists and objects in it.
    """
    _check_levels(MAX_LEVELS + 1, state)


def to_bytes(state: State) -> bytes:
    """``state`` as one line of JSON in UTF-8.

    Raises ``TypeError`` or ``ValueError`` for a state that could not be read back: not JSON data,
    ``nan``, too many levels. Mapping keys are assumed to be strings, as the type of a state says.
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
    """The document in ``data``; a ``DamagedStoreError`` naming ``path`` if there is none in it."""
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
    # Checked before parsing: not every interpreter guards its own stack in the parser.
    if levels > MAX_LEVELS + REJECTED_LEVELS:
        raise ValueError(_TOO_DEEP)
    # A RecursionError means that the caller's stack is nearly used up; the file is fine.
    state = json.loads(
        text,
        object_pairs_hook=_object,
        parse_float=_finite,
        parse_constant=_finite,
    )
    _check_levels(levels, state)
    return state


def _digest(data: bytes | memoryview) -> bytes:
    from hashlib import sha256  # some 4 ms to import, so not before the first file

    return sha256(data).hexdigest().encode()


def _may_be_digest(value: Any) -> bool:
    """Whether ``value`` is a digest, or a digest with a few damaged characters."""
    return (
        isinstance(value, str)
        and len(value) <= _LONGEST_DIGEST
        and sum(map(_HEX_DIGITS.__contains__, value)) >= _LEAST_HEX_DIGITS
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"an object in it has the name {twice!r:.80} more than once")
    return mapping


def _finite(number: str) -> float:
    """A number of JSON text; ``ValueError`` for an infinite one, and for ``NaN`` and the like."""
    value = float(number)
    if value - value != 0:  # infinite or nan; cheaper than a call
        raise ValueError(f"it has a number that is not finite: {number:.40}")
    return value


def _syntax_problem(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"it is cut short: {error.msg}"
    return f"it is not JSON: {error.msg} at line {error.lineno} column {error.colno}"


def _levels_of_text(data: bytes) -> int:
    """The number of levels that JSON text nests, found without parsing it.

    At most a few too many for text whose brackets do not pair up. Takes linear time, and nearly
    all of it runs at the speed of ``bytes`` methods.
    """
    if b"\\" in data:  # after this, every quote begins or ends a string
        data = data.replace(rb"\\", b"").replace(rb"\"", b"")
    # A pair of quotes can go, whether it is an empty string or the seam of two strings.
    brackets = data.translate(_ONE_KIND, _NOT_STRUCTURE).replace(b'""', b"")
    if b'"' in brackets:
        brackets = _STRINGS.sub(b"", brackets)
    for levels in range(_PEELED):
        if not brackets:
            return levels
        brackets = brackets.replace(b"[]", b"")  # takes away exactly the innermost level
    steps = memoryview(brackets.translate(_STEPS)).cast("b")
    return _PEELED + max(accumulate(steps), default=0)


def _check_levels(levels: int, state: Any) -> None:
    """Refuse too many levels; ``levels`` are those of the text of ``state``, or more."""
    if levels <= MAX_LEVELS:
        return
    if not isinstance(state, dict) or levels > MAX_LEVELS + REJECTED_LEVELS:
        raise ValueError(_TOO_DEEP)
    for name, value in state.items():
        extra = REJECTED_LEVELS if name == "rejected" and isinstance(value, list) else 0
        if _nests_beyond(value, MAX_LEVELS + extra - 1):
            raise ValueError(_TOO_DEEP)


def _nests_beyond(value: Any, levels: int) -> bool:
    """Whether ``value`` has more levels of lists and objects, itself being the first."""
    containers = [value] if isinstance(value, _CONTAINERS) else []
    many = _MANY
    for _ in range(levels):
        if not containers:
            return False
        containers = [
            item
            for container in containers
            for item in (container if type(container) is list else _items_of(container))
            if isinstance(item, _CONTAINERS)
        ]
        if len(containers) > many:
            # A state made by a program may have one in many places, or in itself.
            containers = list({id(container): container for container in containers}.values())
            many = max(_MANY, 2 * len(containers))
    return bool(containers)


def _items_of(container: Any) -> Iterable[Any]:
    if isinstance(container, dict):
        return dict.values(container)
    return list.__iter__(container) if isinstance(container, list) else tuple.__iter__(container)
