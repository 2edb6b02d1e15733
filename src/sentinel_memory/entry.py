"""One remembered thing: an immutable value, the table of its fields, and its stored form."""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, NamedTuple, NoReturn, Self

from ._basics.numbers import in_unit_interval
from ._basics.plain import check_text, dump_json, load_json, plain
from ._basics.times import epoch_milliseconds, is_live

__all__ = ["Entry", "Match", "check_key", "checked_line", "entry_from_state", "new_entry"]


class Field(NamedTuple):
    """One field of an entry beside key and data: its slot, its stored name, and its check.

    ``check`` makes the value of the slot from a stored value, or raises ``ValueError``. A field
    with a ``default`` may be absent from a stored entry.
    """

    slot: str
    stored: str
    check: Callable[[Any], Any]
    default: Any = ...

    @property
    def is_required(self) -> bool:
        """Whether a stored entry without the field is not valid."""
        return self.default is ...


def _importance(value: object) -> float:
    importance = in_unit_interval(value)
    if importance is None:
        raise ValueError("importance must be a number in [0, 1]")
    return importance


# The one list of fields. A field that is added here is kept by overwriting, loading and saving.
FIELDS: Final = (
    Field("importance", "importance", _importance),
    Field("created_ms", "createdAt", lambda value: epoch_milliseconds(value, "createdAt")),
    Field("updated_ms", "updatedAt", lambda value: epoch_milliseconds(value, "updatedAt")),
    Field("expires_ms", "expiresAt", lambda value: _expiry(value), default=None),
)
_STORED: Final = frozenset({"key", "data", *(field.stored for field in FIELDS)})
_FIELD_VALUES: Final = attrgetter(*(field.slot for field in FIELDS))


def _expiry(value: object) -> int | None:
    return None if value is None else epoch_milliseconds(value, "expiresAt")


class Entry:
    """What a memory keeps under one key: immutable, and equal to another one by value.

    ``importance`` is in [0, 1]; ``created_at``, ``updated_at`` and ``expires_at`` are epoch seconds
    with millisecond resolution, the last one ``None`` if the entry never expires; ``data`` is a
    fresh copy at every access. A memory makes entries; a program only reads them.

    For indexes there is ``line``, the text of the entry in a prompt (``key: data``, with data that
    is not a string as compact JSON), and ``created_ms``, ``updated_ms`` and ``expires_ms`` are the
    times in whole epoch milliseconds.

    >>> from sentinel_memory import Memory
    >>> entry = Memory().remember("user:name", "Jakub", importance=0.9).entry
    >>> entry
    Entry(key='user:name', importance=0.9)
    >>> entry.data, entry.line
    ('Jakub', 'user:name: Jakub')
    """

    # The data is kept only in the line, since every context needs the lines of all entries.
    # ``unknown`` has the stored fields that this version does not know, each as JSON text, or None.
    __slots__ = (
        "created_ms",
        "expires_ms",
        "importance",
        "is_json",
        "key",
        "line",
        "unknown",
        "updated_ms",
    )

    key: str
    line: str
    is_json: bool
    importance: float
    created_ms: int
    updated_ms: int
    expires_ms: int | None
    unknown: dict[str, str] | None

    def __init__(
        self,
        key: str,
        line: str,
        is_json: bool,
        *,
        importance: float,
        created_ms: int,
        updated_ms: int,
        expires_ms: int | None,
        unknown: dict[str, str] | None = None,
    ) -> None:
        _fill_key(self, key)
        _fill_line(self, line)
        _fill_is_json(self, is_json)
        _fill_importance(self, importance)
        _fill_created_ms(self, created_ms)
        _fill_updated_ms(self, updated_ms)
        _fill_expires_ms(self, expires_ms)
        _fill_unknown(self, unknown)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an {type(self).__name__} cannot be changed: remember its key anew")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"an {type(self).__name__} cannot be changed")

    @property
    def data(self) -> Any:
        """The data that was remembered, as JSON data; a fresh copy."""
        text = self.line[len(self.key) + 2 :]
        return load_json(text) if self.is_json else text

    @property
    def created_at(self) -> float:
        """The time when the key was first remembered, in epoch seconds."""
        return self.created_ms / 1000

    @property
    def updated_at(self) -> float:
        """The time when the key was last remembered, in epoch seconds."""
        return self.updated_ms / 1000

    @property
    def expires_at(self) -> float | None:
        """The time from which on the entry is invisible, in epoch seconds; ``None`` is never."""
        return None if self.expires_ms is None else self.expires_ms / 1000

    def is_live(self, now: int) -> bool:
        """Whether the entry is visible at ``now``, in epoch milliseconds."""
        return is_live(self.expires_ms, now)

    def to_state(self) -> dict[str, Any]:
        """The stored form of the entry, as JSON data.

        >>> from sentinel_memory import Memory
        >>> Memory(clock=lambda: 2).remember("user:name", "Jakub").entry.to_state()["updatedAt"]
        2000
        """
        # Written out: a save asks every entry, and the table takes three times as long.
        state = {
            "key": self.key,
            "data": self.data,
            "importance": self.importance,
            "createdAt": self.created_ms,
            "updatedAt": self.updated_ms,
            "expiresAt": self.expires_ms,
        }
        if self.unknown:
            state.update((name, load_json(text)) for name, text in self.unknown.items())
        return state

    def _values(self) -> tuple[Any, ...]:
        return (self.key, *_FIELD_VALUES(self))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        same = self._values() == other._values() and self.unknown == other.unknown
        return same and (self.line == other.line or self.data == other.data)

    def __hash__(self) -> int:
        return hash(self._values())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        for slot, value in state[1].items():  # of a pickle; assignment itself is refused
            object.__setattr__(self, slot, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(key={self.key!r}, importance={self.importance!r})"


# Assignment is refused, so a new entry is filled through the descriptors of its slots.
(
    _fill_created_ms,
    _fill_expires_ms,
    _fill_importance,
    _fill_is_json,
    _fill_key,
    _fill_line,
    _fill_unknown,
    _fill_updated_ms,
) = (vars(Entry)[slot].__set__ for slot in Entry.__slots__)


class Match(Entry):
    """An ``Entry`` that ``recall`` found.

    ``relevance`` is the share of the question found in it, above 0 and at most 1; ``score`` is
    what the matches are ordered by: relevance weighed by importance, with a little for freshness.

    >>> from sentinel_memory import Memory
    >>> memory = Memory(clock=lambda: 0)
    >>> _ = memory.remember("user:name", "Jakub", importance=0.9)
    >>> match = memory.recall("name")[0]
    >>> match.relevance, round(match.score, 6)
    (1.0, 1.0)
    """

    __slots__ = ("relevance", "score")

    relevance: float
    score: float

    def __init__(self, entry: Entry, relevance: float, score: float) -> None:
        fill = object.__setattr__
        for slot in Entry.__slots__:
            fill(self, slot, getattr(entry, slot))
        fill(self, "relevance", relevance)
        fill(self, "score", score)

    def _values(self) -> tuple[Any, ...]:
        return (*super()._values(), self.relevance, self.score)


def check_key(key: object) -> str:
    """``key`` as a plain ``str``, or a ``TypeError``."""
    if not isinstance(key, str):
        raise TypeError(f"key must be a str, not {type(key).__name__}")
    return str.__str__(key)


def new_entry(
    key: object,
    data: object,
    importance: float,
    *,
    created_ms: int,
    updated_ms: int,
    expires_ms: int | None,
) -> Entry:
    """An entry of a key and data that are checked and copied here.

    Raises ``TypeError`` or ``ValueError`` for a key or data that could not be saved.
    """
    return Entry(
        *checked_line(key, data),
        importance=importance,
        created_ms=created_ms,
        updated_ms=updated_ms,
        expires_ms=expires_ms,
    )


def checked_line(key: object, data: object) -> tuple[str, str, bool]:
    """The plain key, the line, and whether its data is JSON text, of checked and copied arguments.

    Raises ``TypeError`` or ``ValueError`` for a key or data that could not be saved.
    """
    key = check_key(key)
    if not key:
        raise ValueError("key must not be empty")
    check_text(key, "key")
    value = plain(data, f"data of {key!r}")
    is_json = not isinstance(value, str)
    return key, f"{key}: {dump_json(value) if is_json else value}", is_json


def entry_from_state(raw: object) -> Entry:
    """A stored entry, or a ``TypeError`` or ``ValueError`` that says why it is not valid."""
    if not isinstance(raw, dict):
        raise TypeError(f"an entry must be an object, not {type(raw).__name__}")
    for name in ("key", "data", *(field.stored for field in FIELDS if field.is_required)):
        if name not in raw:
            raise ValueError(f"{name} is missing")
    fields = {field.slot: field.check(raw.get(field.stored, field.default)) for field in FIELDS}
    return Entry(*checked_line(raw["key"], raw["data"]), **fields, unknown=_unknown_fields(raw))


def _unknown_fields(raw: dict[str, Any]) -> dict[str, str] | None:
    """The stored fields that a later release or another program added, each as JSON text."""
    if _STORED.issuperset(raw):
        return None
    try:
        return {
            name: json.dumps(value, allow_nan=False)
            for name, value in raw.items()
            if name not in _STORED
        }
    except (TypeError, RecursionError) as error:
        raise ValueError(f"a field is not JSON data: {error}") from None
