"""One remembered thing: an immutable value, its stored form, and what makes one invalid."""

from __future__ import annotations

from typing import Any

from ._basics.numbers import in_unit_interval
from ._basics.plain import check_text, dump_json, load_json, plain
from ._basics.times import epoch_milliseconds, is_live

__all__ = ["Entry", "Match", "check_key", "entry_from_state", "new_entry"]


class Entry:
    """What a memory keeps under one key: immutable, and equal to another one by value.

    ``importance`` is in [0, 1]; ``created_at``, ``updated_at`` and ``expires_at`` are epoch seconds
    with millisecond resolution, the last one ``None`` if the entry never expires; ``data`` is a
    fresh copy at every access. A memory makes entries; a program only reads them.

    >>> from sentinel_memory import Memory
    >>> entry = Memory().remember("user:name", "Jakub", importance=0.9).entry
    >>> entry
    Entry(key='user:name', importance=0.9)
    >>> entry.data
    'Jakub'
    """

    # Inside, time is whole epoch milliseconds, and the data is only in the line for a prompt, since
    # every context needs that of every entry: "key: data". What is no string is there as JSON text.
    __slots__ = (
        "_created_ms",
        "_expires_ms",
        "_importance",
        "_is_json",
        "_key",
        "_line",
        "_updated_ms",
    )

    def __init__(
        self,
        key: str,
        line: str,
        is_json: bool,
        importance: float,
        created_ms: int,
        updated_ms: int,
        expires_ms: int | None,
    ) -> None:
        self._key = key
        self._line = line
        self._is_json = is_json
        self._importance = importance
        self._created_ms = created_ms
        self._updated_ms = updated_ms
        self._expires_ms = expires_ms

    @property
    def key(self) -> str:
        """What it is remembered under."""
        return self._key

    @property
    def data(self) -> Any:
        """What was remembered, as JSON data; a fresh copy."""
        text = self._text()
        return load_json(text) if self._is_json else text

    @property
    def importance(self) -> float:
        """How much it matters, from 0 to 1."""
        return self._importance

    @property
    def created_at(self) -> float:
        """When the key was first remembered, in epoch seconds."""
        return self._created_ms / 1000

    @property
    def updated_at(self) -> float:
        """When the key was last remembered, in epoch seconds."""
        return self._updated_ms / 1000

    @property
    def expires_at(self) -> float | None:
        """From when on it is invisible, in epoch seconds; ``None`` is never."""
        return None if self._expires_ms is None else self._expires_ms / 1000

    def _is_live(self, now: int) -> bool:
        return is_live(self._expires_ms, now)

    def _continue(self, former: Entry, *, keep_importance: bool) -> None:
        """Take over from the entry it replaces; only before anybody else has seen this one."""
        self._created_ms = former._created_ms
        if keep_importance:
            self._importance = former._importance

    def _text(self) -> str:
        """The data in a prompt: a string as it is, anything else as compact JSON."""
        return self._line[len(self._key) + 2 :]

    def _to_state(self) -> dict[str, Any]:
        return {
            "key": self._key,
            "data": self.data,
            "importance": self._importance,
            "createdAt": self._created_ms,
            "updatedAt": self._updated_ms,
            "expiresAt": self._expires_ms,
        }

    def _identity(self) -> tuple[Any, ...]:
        return (
            self._key,
            self._importance,
            self._created_ms,
            self._updated_ms,
            self._expires_ms,
        )

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._identity() == other._identity() and self.data == other.data

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(key={self._key!r}, importance={self._importance!r})"


class Match(Entry):
    """An ``Entry`` that ``recall`` found.

    ``relevance`` is the share of the question found in it, above 0 and at most 1; ``score`` is
    what the matches are ordered by.

    >>> from sentinel_memory import Memory
    >>> memory = Memory(clock=lambda: 0)
    >>> _ = memory.remember("user:name", "Jakub", importance=0.9)
    >>> match = memory.recall("name")[0]
    >>> match.relevance, round(match.score, 6)
    (1.0, 1.0)
    """

    __slots__ = ("_relevance", "_score")

    def __init__(self, entry: Entry, relevance: float, score: float) -> None:
        super().__init__(
            entry._key,
            entry._line,
            entry._is_json,
            entry._importance,
            entry._created_ms,
            entry._updated_ms,
            entry._expires_ms,
        )
        self._relevance = relevance
        self._score = score

    @property
    def relevance(self) -> float:
        """How much of the question it answers, above 0 and at most 1."""
        return self._relevance

    @property
    def score(self) -> float:
        """Relevance weighed by importance, with a little for freshness."""
        return self._score

    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity(), self._relevance, self._score)


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
    """An entry of checked and copied ``key`` and ``data``; ``TypeError`` or ``ValueError``."""
    key = check_key(key)
    if not key:
        raise ValueError("key must not be empty")
    check_text(key, "key")
    value = plain(data, f"data of {key!r}")
    is_json = not isinstance(value, str)
    line = f"{key}: {dump_json(value) if is_json else value}"
    return Entry(key, line, is_json, importance, created_ms, updated_ms, expires_ms)


def entry_from_state(raw: object) -> Entry:
    """A stored entry, or a ``TypeError`` or ``ValueError`` that says why it is not valid."""
    if not isinstance(raw, dict):
        raise TypeError(f"an entry must be an object, not {type(raw).__name__}")
    missing = [name for name in ("key", "data", "importance") if name not in raw]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    importance = in_unit_interval(raw["importance"])
    if importance is None:
        raise ValueError("importance must be a number in [0, 1]")
    expires = raw.get("expiresAt")
    return new_entry(
        raw["key"],
        raw["data"],
        importance,
        created_ms=epoch_milliseconds(raw.get("createdAt"), "createdAt"),
        updated_ms=epoch_milliseconds(raw.get("updatedAt"), "updatedAt"),
        expires_ms=None if expires is None else epoch_milliseconds(expires, "expiresAt"),
    )
