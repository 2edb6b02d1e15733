"""JSON lines: an entry on each line, for moving entries from one memory to another."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from ..entry import Entry
from ..errors import DamagedStoreError
from ..memory import Memory

__all__ = ["LONG_AGO", "BadLine", "Lines", "NoIndex", "read_lines"]

_AT_ONCE: Final = 500
"""Lines that are checked together: raised, progress is seldom told; lowered, checking takes longer.
Tried: 50 to 1000, which is the most invalid entries that a document may have."""

LONG_AGO: Final = -8_600_000_000_000.0
"""Epoch seconds at which no entry has expired yet; the earliest that a clock may say is 8.64e12."""

_BEGINNING: Final = 0.5  # the importance of an entry that says none, as remember has it

# The fields of a line as people write it and as --json shows it; times are in epoch seconds.
_TIMES: Final = {
    "created_at": "createdAt",
    "updated_at": "updatedAt",
    "expires_at": "expiresAt",
    "used_at": "usedAt",
}
_PLAIN: Final = ("key", "data", "importance", "pinned", "meta", "repeats", "feedback")
_WORKED_OUT: Final = ("kind", "worth", "relevance", "score")  # shown, and not to be stored


class NoIndex:
    """An index that finds nothing and costs nothing, for what needs no recall."""

    def add(self, entry: Entry) -> None:
        """Nothing."""

    def discard(self, key: str) -> None:
        """Nothing."""

    def search(self, query: str) -> Mapping[str, float]:
        """No match."""
        return {}


class BadLine(NamedTuple):
    """A line that is not an entry: its number, from 1, and why."""

    number: int
    reason: str


class Lines(NamedTuple):
    """The entries of some lines, by key, and what else was found.

    ``again`` counts the lines whose key comes again later, which are the ones that do not count.
    """

    entries: dict[str, Entry]
    bad: list[BadLine]
    again: int


def read_lines(lines: Iterable[str | bytes], *, now: float, tell: Callable[[int], object]) -> Lines:
    """The entries of JSON lines; ``tell`` is called with the number of lines that were read.

    An entry has the stored form, as ``export`` writes it, or that of ``Entry.to_dict()``, where
    only ``key`` and ``data`` are needed; ``now`` is its time if it says none.
    """
    found = Lines({}, [], 0)
    waiting: dict[str, tuple[int, dict[str, Any]]] = {}
    number = again = 0
    for number, line in enumerate(lines, 1):
        try:
            raw = _parsed(line, first=number == 1)
            if raw is None:
                continue
            raw = _stored_form(raw, now)
        except ValueError as error:
            found.bad.append(BadLine(number, str(error)))
            continue
        key = str(raw.get("key"))
        if key in waiting:
            again += _take(waiting, found)
        waiting[key] = number, raw
        if len(waiting) >= _AT_ONCE:
            again += _take(waiting, found)
            tell(number)
    again += _take(waiting, found)
    tell(number)
    found.bad.sort()
    return found._replace(again=again)


def _take(waiting: dict[str, tuple[int, dict[str, Any]]], found: Lines) -> int:
    """Check what is waiting, all at once; how many keys of it were there before."""
    numbers = {id(raw): number for number, raw in waiting.values()}
    raws = [raw for _, raw in waiting.values()]
    again = 0
    try:
        entries, rejected = _checked(raws)
    except DamagedStoreError:  # nested too deeply: one of them, which counts for all
        entries, rejected = [], []
        for raw in raws:
            try:
                one, reasons = _checked([raw])
            except DamagedStoreError as error:
                one, reasons = [], [(raw, error.reason)]
            entries += one
            rejected += reasons
    for entry in entries:
        again += found.entries.pop(entry.key, None) is not None
        found.entries[entry.key] = entry
    found.bad.extend(BadLine(numbers[id(raw)], reason) for raw, reason in rejected)
    waiting.clear()
    return again


def _checked(raws: list[dict[str, Any]]) -> tuple[list[Entry], list[tuple[Any, str]]]:
    """Stored forms as entries, in their order, and those that are not valid, with a reason."""
    memory = Memory(limit=max(1, len(raws)), limits={}, index=NoIndex(), clock=lambda: LONG_AGO)
    result = memory.restore({"version": 1, "entries": raws})
    bad = {id(item.entry): (item.entry, item.reason) for item in result.rejected}
    by_key = {entry.key: entry for entry in memory}
    entries = []
    for raw in raws:
        if id(raw) in bad:
            continue
        if raw["key"] in by_key:
            entries.append(by_key[raw["key"]])
        else:
            bad[id(raw)] = raw, "it expired before any date"
    return entries, list(bad.values())


def _parsed(line: str | bytes, *, first: bool) -> Any:
    if isinstance(line, bytes):
        try:
            line = line.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"it is not UTF-8, at byte {error.start + 1}") from None
    text = (line.removeprefix("\ufeff") if first else line).strip()
    if not text:
        return None
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite
        )
    except json.JSONDecodeError as error:
        if first and text == "[":
            hint = "it begins a list; import reads an entry on each line, as export writes them"
            raise ValueError(hint) from None
        raise ValueError(f"it is not JSON: {error.msg}, at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("an object in it has a name more than once")
    return mapping


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"it has a number that is not finite: {number:.40}")
    return value


def _stored_form(raw: Any, now: float) -> dict[str, Any]:
    """The stored form of what a line says; a ``ValueError`` if a field of it is not known."""
    if not isinstance(raw, dict):
        raise ValueError(f"it is not an object, which an entry is, but a {type(raw).__name__}")
    if "createdAt" in raw or "updatedAt" in raw:
        return raw
    unknown = [
        name
        for name in raw
        if name not in _PLAIN and name not in _TIMES and name not in _WORKED_OUT
    ]
    if unknown:
        raise ValueError(f"{unknown[0]!r:.60} is not a field of an entry")
    state = {"importance": _BEGINNING, "createdAt": now * 1000, "updatedAt": now * 1000}
    state |= {name: raw[name] for name in _PLAIN if name in raw}
    for name, stored in _TIMES.items():
        value = raw.get(name)
        if value is None:
            continue
        if (
            not isinstance(value, (int, float))
            or not abs(value) <= -LONG_AGO
            or isinstance(value, bool)
        ):
            raise ValueError(f"{name} must be a time in epoch seconds")
        state[stored] = round(value * 1000)
    return state
