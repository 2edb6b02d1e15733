"""Arguments of a memory and of its calls, checked: parts, limits, and the fields of an entry."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple, TypeAlias, TypedDict

from .._basics.checks import check_callable, check_methods, check_str
from .._basics.numbers import DEFAULTS, in_unit_interval, optional_count, warn_ignored
from .._basics.plain import dump_json
from .._basics.times import DURATION, expiry, milliseconds
from ..context.pack import Tokenizer
from ..entry import Entry, checked_meta, same_data, without_defaults
from ..recall.protocol import RecallIndex
from ..results import Compaction

__all__ = [
    "GivenFields",
    "OpenOptions",
    "check_kind",
    "check_length",
    "check_parts",
    "half_life_option",
    "limits_option",
    "plain_entries",
    "refuse_positional",
]


_Duration: TypeAlias = float | timedelta | None


class OpenOptions(TypedDict, total=False):
    """The options of ``Memory.open``: those of ``Memory`` but for the store."""

    limit: int | float | None
    limits: Mapping[str, int] | None
    autosave: bool
    load: bool
    tokenizer: Tokenizer | None
    recency_window: _Duration
    half_life: _Duration
    data_chars: int | float | None
    cache_ttl: _Duration
    working_ttl: _Duration
    on_evict: Callable[[Compaction], object] | None
    index: RecallIndex | None
    clock: Callable[[], float]


class GivenFields(NamedTuple):
    """The fields of an entry that a call sets; ``None`` for a field that it does not set."""

    importance: float | None
    ttl_ms: float | None
    pinned: bool | None
    meta_text: str | None  # "" removes it

    @classmethod
    def checked(cls, importance: object, ttl: object, pinned: object, meta: object) -> GivenFields:
        """The checked arguments; ``TypeError`` or ``ValueError`` for a wrong pin or meta."""
        found, ttl_ms = in_unit_interval(importance), milliseconds(ttl)
        if found is None and importance is not None:
            warn_ignored(
                "importance",
                importance,
                "a number from 0 to 1",
                "the value that applies without it",
            )
        if ttl_ms is None and ttl is not None:
            warn_ignored("ttl", ttl, DURATION, "the value that applies without it")
        if pinned is not None and not isinstance(pinned, bool):
            raise TypeError(f"pinned must be a bool, not {type(pinned).__name__}")
        return cls(found, ttl_ms, pinned, None if meta is None else checked_meta(meta) or "")

    def updated(self, entry: Entry, never_expires: bool, *, now: int) -> Entry:
        """The entry with the fields that are set; ``never_expires`` takes its expiry away."""
        fields = self._more()
        if self.importance is not None:
            fields["importance"] = self.importance
        if never_expires or self.ttl_ms is not None:
            fields["expires_ms"] = expiry(now, self.ttl_ms)
        return entry.replaced(**fields)

    def _more(self) -> dict[str, Any]:
        more: dict[str, Any] = {}
        if self.pinned is not None:
            more["pinned"] = self.pinned
        if self.meta_text is not None:
            more["meta_text"] = self.meta_text or None
        return more

    def entry(self, former: Entry | None, key: str, line: str, is_json: bool, *, now: int) -> Entry:
        """The entry to be remembered in place of the live ``former`` one, if there is one.

        With equal data, meta, feedback, ``used_at`` and unknown fields stay and ``repeats`` grows.
        Importance and pin belong to the key, and stay with any data.
        """
        more, unknown, inherited, created = self._more(), None, DEFAULTS["importance"], now
        if former is not None:
            inherited, created = former.importance, former.created_ms
            if same_data(former, line, is_json):
                more = {**(former.more or {}), "repeats": former.repeats + 1, **more}
                unknown = former.unknown
            elif former.pinned:
                more = {"pinned": True, **more}
        return Entry(
            key,
            line,
            is_json,
            importance=inherited if self.importance is None else self.importance,
            created_ms=created,
            updated_ms=now,
            expires_ms=expiry(now, self.ttl_ms),
            more=without_defaults(more) if more else None,
            unknown=unknown,
        )


def half_life_option(value: object) -> float | None:
    """A half-life in milliseconds, ``None`` if nothing fades."""
    if value is None or value == math.inf:
        return None
    found = milliseconds(value)
    if found is None:
        warn_ignored("half_life", value, DURATION, "no fading")
    return None if found is None or math.isinf(found) else found


def limits_option(value: object) -> dict[str, int] | None:
    """The limits of kinds, ``None`` if they are not given.

    A number out of its range is ignored with a warning; a kind that is not a ``str`` is a
    ``TypeError``.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise TypeError(f"limits must be a mapping of kinds, not {type(value).__name__}")
    limits = {}
    for kind, most in value.items():
        if not isinstance(kind, str):
            raise TypeError(f"a kind in limits must be a str, not {type(kind).__name__}")
        found = optional_count(f"limits[{kind!r}]", most, "no limit of this kind")
        if found is not None:
            limits[str.__str__(kind)] = found
    return limits


def check_parts(
    store: object,
    autosave: object,
    tokenizer: object,
    on_evict: object,
    index: object,
    clock: object,
) -> None:
    """Refuse what cannot be a part of a memory, with a ``TypeError`` that names it."""
    check_methods("index", index, ("add", "discard", "search"), optional=True)
    check_callable("tokenizer", tokenizer, optional=True)
    check_methods("store", store, ("load", "save"), optional=True)
    check_callable("clock", clock)
    check_callable("on_evict", on_evict, optional=True)
    if autosave and store is None:
        raise ValueError("autosave needs a store: Memory(store=JsonFileStore(path), ...)")


def check_length(key: str, line: str, is_json: bool, most: int | None) -> None:
    """Refuse data that is longer than ``most`` characters as JSON text."""
    if most is not None:
        text = line[len(key) + 2 :]
        length = len(text if is_json else dump_json(text))
        if length > most:
            raise ValueError(
                f"data of {key!r} has {length} characters as JSON, more than data_chars={most}"
            )


def refuse_positional(wrong: tuple[object, ...], message: str) -> None:
    """Refuse arguments that were given by place and must be given by name."""
    if wrong:
        raise TypeError(message)


def check_kind(kind: object) -> None:
    """Refuse what cannot be the kind of a numbered key."""
    check_str("kind", kind)
    if not kind or ":" in str(kind):
        raise ValueError("kind must not be empty, and must not have a colon in it")


def plain_entries(entries: object) -> list[Entry]:
    """Entries as a list, matches as the entries that they are; ``TypeError`` for anything else."""
    if isinstance(entries, (str, bytes, Mapping)) or not isinstance(entries, Iterable):
        raise TypeError(f"entries must be a list of entries, not {type(entries).__name__}")
    found: list[Entry] = []
    for entry in entries:
        if not isinstance(entry, Entry):
            raise TypeError(f"put_back takes entries, not {type(entry).__name__}")
        found.append(entry if type(entry) is Entry else entry.replaced())
    return found
