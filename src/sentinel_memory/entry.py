"""One remembered thing: an immutable value, the table of its fields, and its stored form."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, NamedTuple, NoReturn, Self

from ._basics.checks import plain_str
from ._basics.numbers import in_unit_interval
from ._basics.plain import check_text, dump_json, load_json, plain
from ._basics.times import LAST_EXPIRY, epoch_milliseconds, is_live

__all__ = [
    "MOST_FEEDBACK",
    "Entry",
    "Match",
    "check_key",
    "checked_line",
    "checked_meta",
    "entry_from_state",
    "is_stored_as",
    "kind_of",
    "same_data",
    "without_defaults",
]

MOST_FEEDBACK: Final = 7
"""The largest absolute feedback: calls of ``reinforce`` less calls of ``demote``, or the reverse,
beyond it have no effect."""

_WORTH_STEP: Final = 0.05
"""The worth per doubling of ``1 + abs(feedback)``: 0.05 at a feedback of 1, 0.15 at 7. The range is
0 to 0.3; a larger step lets feedback outweigh importance."""


class Field(NamedTuple):
    """One field of an entry beside key and data: its name, its stored name, and its check.

    ``check`` makes the value of the field from a stored value, or raises ``TypeError`` or
    ``ValueError``. A field with a ``default`` may be absent from a stored entry; a field of
    ``MORE`` is absent if it has that value.
    """

    name: str
    stored: str
    check: Callable[[Any], Any]
    default: Any = ...


def _importance(value: object) -> float:
    importance = in_unit_interval(value)
    if importance is None:
        raise ValueError("importance must be a number in [0, 1]")
    return importance


def _expiry(value: object) -> int | None:
    return None if value is None else epoch_milliseconds(value, "expiresAt")


def _pinned(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("pinned must be true or false")
    return value


def _repeats(value: object) -> int:
    if type(value) is not int or value < 1:
        raise ValueError("repeats must be a whole number of at least 1")
    return value


def _feedback(value: object) -> int:
    if type(value) is not int or abs(value) > MOST_FEEDBACK:
        raise ValueError(
            f"feedback must be a whole number from -{MOST_FEEDBACK} to {MOST_FEEDBACK}"
        )
    return value


def checked_meta(value: object) -> str | None:
    """A JSON object as text, ``None`` for an empty one; else ``TypeError`` or ``ValueError``."""
    if not isinstance(value, dict):
        raise TypeError(f"meta must be a dict, not {type(value).__name__}")
    return dump_json(plain(value, "meta")) if value else None


# The two tables of fields. Fields of ``FIELDS`` are slots. Fields of ``MORE`` are in the slot
# ``more`` if they do not have their default, so that an entry that does not use them takes no
# memory for them.
#
# To add a field to ``MORE``, add it here: loading, saving and ``replaced`` follow the table, and
# overwriting keeps the field with equal data only (``GivenFields.entry``; ``pinned`` is kept).
# To add one to ``FIELDS``, edit ``__slots__``, ``__init__``, ``_fill_...``, ``to_state`` and
# ``GivenFields.entry``, too.
FIELDS: Final = (
    Field("importance", "importance", _importance),
    Field("created_ms", "createdAt", lambda value: epoch_milliseconds(value, "createdAt")),
    Field("updated_ms", "updatedAt", lambda value: epoch_milliseconds(value, "updatedAt")),
    Field("expires_ms", "expiresAt", _expiry, default=None),
)
MORE: Final = (
    Field("pinned", "pinned", _pinned, default=False),
    Field("meta_text", "meta", checked_meta, default=None),
    Field("feedback", "feedback", _feedback, default=0),
    Field("used_ms", "usedAt", lambda value: epoch_milliseconds(value, "usedAt"), default=None),
    Field("repeats", "repeats", _repeats, default=1),
)
_NAMES_OF_MORE: Final = frozenset(field.name for field in MORE)
_STORED: Final = frozenset({"key", "data", *(field.stored for field in (*FIELDS, *MORE))})
_USUAL_MEMBERS: Final = ("key", "data", *(field.stored for field in FIELDS))
_FIELD_VALUES: Final = attrgetter(*(field.name for field in FIELDS))


class Entry:
    """What a memory keeps under one key: immutable, and equal to another one by value.

    Belonging to the key, and kept when the data changes: ``key``, ``kind`` (the part before its
    first colon), ``importance`` in [0, 1], ``pinned``, and ``created_at``.

    Set by every ``remember``: ``updated_at``, and ``expires_at``, which is ``None`` if the entry
    never expires. Times are in epoch seconds with millisecond resolution.

    Belonging to the data, and reset when it changes: ``data``, a fresh copy at every access;
    ``repeats``, how often equal data was remembered; ``feedback`` from -7 to 7, and ``used_at``,
    when it last helped, or ``None``; ``meta``, tags and the like. ``worth`` is the importance
    shifted by the feedback.

    For indexes there is ``line``, the text of the entry in a prompt (``key: data``, with data that
    is not a string as compact JSON), and ``created_ms``, ``updated_ms`` and ``expires_ms`` are the
    times in whole epoch milliseconds. A memory makes entries; a program only reads them.

    >>> from sentinel_memory import Memory
    >>> entry = Memory().remember("user:name", "Jakub", importance=0.9).entry
    >>> entry
    Entry(key='user:name', importance=0.9)
    >>> entry.data, entry.line, entry.kind
    ('Jakub', 'user:name: Jakub', 'user')
    """

    # ``line`` holds the data: it is kept nowhere else, since every context needs the lines of all
    # entries. ``is_json`` says whether it stands there as JSON text. ``more`` has the fields of
    # ``MORE`` that differ from their default, and ``unknown`` the stored fields that this version
    # does not know, each as JSON text; both are None if there are none.
    __slots__ = (
        "created_ms",
        "expires_ms",
        "importance",
        "is_json",
        "key",
        "line",
        "more",
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
    more: dict[str, Any] | None
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
        more: dict[str, Any] | None = None,
        unknown: dict[str, str] | None = None,
    ) -> None:
        _fill_key(self, key)
        _fill_line(self, line)
        _fill_is_json(self, is_json)
        _fill_importance(self, importance)
        _fill_created_ms(self, created_ms)
        _fill_updated_ms(self, updated_ms)
        _fill_expires_ms(self, expires_ms)
        _fill_more(self, more)
        _fill_unknown(self, unknown)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an {type(self).__name__} cannot be changed: use Memory.update")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"an {type(self).__name__} cannot be changed")

    @property
    def data(self) -> Any:
        """The data that was remembered, as JSON data; a fresh copy."""
        text = self.line[len(self.key) + 2 :]
        return load_json(text) if self.is_json else text

    @property
    def kind(self) -> str:
        """The part of the key before its first colon; empty without a colon."""
        return kind_of(self.key)

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

    @property
    def pinned(self) -> bool:
        """Whether the entry is never evicted, and first in every context."""
        return self.more is not None and "pinned" in self.more

    @property
    def meta(self) -> dict[str, Any]:
        """Tags, sources, review state and the like: a fresh copy; empty if there is none."""
        text = None if self.more is None else self.more.get("meta_text")
        found: dict[str, Any] = {} if text is None else load_json(text)
        return found

    @property
    def repeats(self) -> int:
        """How often equal data was remembered in a row, the first time included."""
        return 1 if self.more is None else self.more.get("repeats", 1)

    @property
    def feedback(self) -> int:
        """How often the entry helped less how often it misled, from -7 to 7."""
        return 0 if self.more is None else self.more.get("feedback", 0)

    @property
    def used_ms(self) -> int | None:
        """The time when the entry last helped, in epoch milliseconds; ``None`` if never."""
        return None if self.more is None else self.more.get("used_ms")

    @property
    def used_at(self) -> float | None:
        """The time when the entry last helped, in epoch seconds; ``None`` if never."""
        used = self.used_ms
        return None if used is None else used / 1000

    @property
    def worth(self) -> float:
        """The importance, shifted by the feedback ``f`` by ``sign(f) * 0.05 * log2(1 + abs(f))``.

        Always in [0, 1].

        >>> from sentinel_memory import Memory
        >>> memory = Memory()
        >>> _ = memory.remember("user:name", "Jakub", importance=0.5)
        >>> _ = memory.reinforce("user:name")
        >>> memory.entry("user:name").worth
        0.55
        """
        if self.more is None or "feedback" not in self.more:
            return self.importance
        feedback = self.more["feedback"]
        shift = math.copysign(_WORTH_STEP * math.log2(1 + abs(feedback)), feedback)
        return min(1.0, max(0.0, self.importance + shift))

    def is_live(self, now: int) -> bool:
        """Whether the entry is visible at ``now``, in epoch milliseconds."""
        return is_live(self.expires_ms, now)

    def to_dict(self) -> dict[str, Any]:
        """The entry as a ``dict`` of JSON data, with its times in epoch seconds.

        >>> from sentinel_memory import Memory
        >>> entry = Memory(clock=lambda: 2).remember("user:name", "Jakub", pinned=True).entry
        >>> entry.to_dict()["pinned"], entry.to_dict()["updated_at"]
        (True, 2.0)
        """
        names = (
            "key data kind importance worth pinned meta repeats feedback"
            " created_at updated_at expires_at used_at"
        )
        return {name: getattr(self, name) for name in names.split()}

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
        if self.more:
            for field in MORE:
                if field.name in self.more:
                    state[field.stored] = self.more[field.name]
            if "meta" in state:
                state["meta"] = self.meta
        if self.unknown:
            state.update((name, load_json(text)) for name, text in self.unknown.items())
        return state

    def replaced(self, **fields: Any) -> Entry:
        """A copy with these fields of ``FIELDS`` and ``MORE`` changed.

        Raises ``TypeError`` for any other name.
        """
        values = {field.name: getattr(self, field.name) for field in FIELDS}
        more = dict(self.more or {})
        for name, value in fields.items():
            if name in values:
                values[name] = value
            elif name in _NAMES_OF_MORE:
                more[name] = value
            else:
                raise TypeError(f"an entry has no field {name!r} that can be changed")
        return Entry(
            self.key,
            self.line,
            self.is_json,
            **values,
            more=without_defaults(more),
            unknown=self.unknown,
        )

    def _identity(self) -> tuple[Any, ...]:
        """The values of an entry that are hashed: the key and the fields of ``FIELDS``."""
        return (self.key, *_FIELD_VALUES(self))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        same = self._identity() == other._identity() and self.unknown == other.unknown
        same = same and (self.more or {}) == (other.more or {})
        return same and same_data(self, other.line, other.is_json)

    def __hash__(self) -> int:
        return hash(self._identity())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        for slot, value in state[1].items():  # of a pickle; assignment itself is refused
            object.__setattr__(self, slot, value)

    def _shown(self) -> list[str]:
        """The parts of ``repr``: key, importance, fields other than their default; no data."""
        shown = [f"key={self.key!r}", f"importance={self.importance!r}"]
        more, names = self.more or {}, ("pinned", "repeats", "feedback")
        return shown + [f"{name}={more[name]!r}" for name in names if name in more]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._shown())})"


# Assignment is refused, so a new entry is filled through the descriptors of its slots.
_fill_key = vars(Entry)["key"].__set__
_fill_line = vars(Entry)["line"].__set__
_fill_is_json = vars(Entry)["is_json"].__set__
_fill_importance = vars(Entry)["importance"].__set__
_fill_created_ms = vars(Entry)["created_ms"].__set__
_fill_updated_ms = vars(Entry)["updated_ms"].__set__
_fill_expires_ms = vars(Entry)["expires_ms"].__set__
_fill_more = vars(Entry)["more"].__set__
_fill_unknown = vars(Entry)["unknown"].__set__


def without_defaults(more: dict[str, Any]) -> dict[str, Any] | None:
    """The fields of ``MORE`` that differ from their default; ``None`` if there are none."""
    found = {
        field.name: more[field.name]
        for field in MORE
        if field.name in more and more[field.name] != field.default
    }
    return found or None


class Match(Entry):
    """An ``Entry`` that ``recall`` found.

    ``relevance`` is the share of the question found in it, above 0 and at most 1; ``score`` orders
    the matches: relevance weighed by importance, with a little for freshness.

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

    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity(), self.relevance, self.score)

    def _shown(self) -> list[str]:
        return [*super()._shown(), f"relevance={self.relevance!r}", f"score={self.score!r}"]


def kind_of(key: str) -> str:
    """The part of a key before its first colon; empty without a colon.

    >>> kind_of("chat:17"), kind_of("note")
    ('chat', '')
    """
    kind, colon, _ = key.partition(":")
    return kind if colon else ""


def same_data(entry: Entry, line: str, is_json: bool) -> bool:
    """Whether an entry of the same key has the data of ``line``: equal as JSON with sorted keys."""
    if entry.is_json != is_json:
        return False
    if entry.line == line or not is_json:
        return entry.line == line
    start = len(entry.key) + 2
    both = (json.dumps(load_json(text[start:]), sort_keys=True) for text in (entry.line, line))
    return len(set(both)) == 1


def check_key(key: object) -> str:
    """``key`` as a plain ``str``, or a ``TypeError``."""
    return plain_str("key", key)


def checked_line(key: object, data: object) -> tuple[str, str, bool]:
    """Check and copy a key and data; return ``(key, line, is_json)``.

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
    """Make an entry of its stored form.

    Raises ``TypeError`` or ``ValueError`` that says why the stored form is not valid.
    """
    if not isinstance(raw, dict):
        raise TypeError(f"an entry must be an object, not {type(raw).__name__}")
    if (usual := _usual_entry(raw)) is not None:
        return usual
    for name in ("key", "data", *(field.stored for field in FIELDS if field.default is ...)):
        if name not in raw:
            raise ValueError(f"{name} is missing")
    fields = {field.name: field.check(raw.get(field.stored, field.default)) for field in FIELDS}
    more = {field.name: field.check(raw[field.stored]) for field in MORE if field.stored in raw}
    unknown = None if _STORED.issuperset(raw) else _unknown_fields(raw)
    return Entry(
        *checked_line(raw["key"], raw["data"]),
        **fields,
        more=without_defaults(more) if more else None,
        unknown=unknown,
    )


def _usual_entry(raw: dict[str, Any]) -> Entry | None:
    """The entry of a stored form as ``to_state`` writes it of text that has no more to say.

    ``None`` for any other form, valid or not: the tables decide about those. Most entries are of
    this form, and checking one here takes a third of the time.
    """
    if tuple(raw) != _USUAL_MEMBERS:
        return None
    key, data, importance, created, updated, expires = raw.values()
    if not (
        type(key) is type(data) is str
        and key
        and type(importance) is float
        and 0 <= importance <= 1
        and type(created) is type(updated) is int
        and -LAST_EXPIRY <= created <= LAST_EXPIRY
        and -LAST_EXPIRY <= updated <= LAST_EXPIRY
        and (expires is None or (type(expires) is int and -LAST_EXPIRY <= expires <= LAST_EXPIRY))
    ):
        return None
    line = f"{key}: {data}"
    try:
        check_text(line, key)
    except ValueError:
        return None
    fields: dict[str, Any] = {
        "importance": importance,
        "created_ms": created,
        "updated_ms": updated,
        "expires_ms": expires,
    }
    return Entry(key, line, False, **fields)


def is_stored_as(entry: Entry, raw: dict[str, Any]) -> bool:
    """Whether ``raw`` is the stored form of ``entry``, to the type of each value.

    May be false where the forms differ only in the order of their members.
    """
    if entry.is_json or entry.more or entry.unknown:
        return json.dumps(raw) == json.dumps(entry.to_state())
    data, importance = raw.get("data"), raw.get("importance")
    times = raw.get("createdAt"), raw.get("updatedAt"), raw.get("expiresAt", "absent")
    return (
        len(raw) == len(_USUAL_MEMBERS)
        and type(data) is str
        and type(importance) is float
        and importance == entry.importance
        and bool not in map(type, times)
        and times == (entry.created_ms, entry.updated_ms, entry.expires_ms)
        and raw.get("key") == entry.key
        and entry.line == f"{entry.key}: {data}"
    )


def _unknown_fields(raw: dict[str, Any]) -> dict[str, str]:
    """The stored fields that a later release or another program added, each as JSON text."""
    try:
        return {
            name: json.dumps(value, allow_nan=False)
            for name, value in raw.items()
            if name not in _STORED
        }
    except (TypeError, RecursionError) as error:
        raise ValueError(f"a field is not JSON data: {error}") from None
