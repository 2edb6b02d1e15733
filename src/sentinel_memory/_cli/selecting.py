"""Which entries a person means: a kind, an age, a condition on a field."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..entry import Entry

__all__ = ["AGES", "FIELDS", "Condition", "Selection", "age", "condition"]

_UNITS: Final = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
AGES: Final = "a number and s, min, h, d or w: 30d, 12h"
_NUMBERS: Final = ("importance", "worth", "feedback", "repeats")
_NAMES: Final = ("key", "kind", "data", "pinned", *_NUMBERS)
FIELDS: Final = f"{', '.join(_NAMES)}, data.NAME, meta.NAME"
_CONDITION: Final = re.compile(r"\s*([^<>=!~]+?)\s*(<=|>=|!=|==?|<|>|~)\s*(.*?)\s*", re.DOTALL)
_SIGNS: Final = frozenset("=!<>~")
_ABSENT: Final = object()


def age(text: str) -> float:
    """Seconds of a length of time such as ``30d``.

    >>> age("90min"), age("30d")
    (5400.0, 2592000.0)
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(s|min|h|d|w)", text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a length of time: {AGES}")
    return float(found[1]) * _UNITS[found[2]]


class Condition(NamedTuple):
    """A field of an entry, a comparison, and what it is compared with: as text, and as JSON."""

    field: str
    sign: str
    text: str
    value: Any

    def __call__(self, entry: Entry) -> bool:
        found = _value_of(entry, self.field)
        if self.sign == "=":
            return self._is(found)
        if self.sign == "!=":
            return not self._is(found)
        if found is _ABSENT:
            return False
        if self.sign == "~":
            text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
            return self.text.casefold() in text.casefold()
        return self._compares(found)

    def _is(self, found: object) -> bool:
        if isinstance(found, str):
            return found in (self.text, self.value)
        # Without the types, 1 would be true.
        same = isinstance(found, bool) == isinstance(self.value, bool)
        return same and found == self.value

    def _compares(self, found: object) -> bool:
        wanted: Any = self.value
        if isinstance(found, str):
            wanted = self.text
        elif not (_is_number(found) and _is_number(wanted)):
            return False
        value: Any = found
        compare: dict[str, Callable[[], bool]] = {
            "<": lambda: value < wanted,
            "<=": lambda: value <= wanted,
            ">": lambda: value > wanted,
            ">=": lambda: value >= wanted,
        }
        return compare[self.sign]()


def condition(text: str) -> Condition:
    """A condition such as ``importance<0.3``, ``data~peanut`` or ``meta.source=web``.

    >>> condition("importance<0.3")
    Condition(field='importance', sign='<', text='0.3', value=0.3)
    """
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a condition: FIELD, then one of = != < <= > >= ~ (contains), then"
            f" VALUE; the fields are {FIELDS}"
        )
    field, sign, wanted = found.groups()
    if wanted[:1] in _SIGNS and wanted:
        raise argparse.ArgumentTypeError(
            f"{text!r} has two signs; a value that begins with one stands in double quotes"
        )
    first, dot, rest = field.partition(".")
    if field not in _NAMES and not (first in ("data", "meta") and dot and rest):
        raise argparse.ArgumentTypeError(f"{field!r} is not a field; those are {FIELDS}")
    value = _json_or_text(wanted)
    if field in _NUMBERS and sign != "~" and not _is_number(value):
        raise argparse.ArgumentTypeError(f"{field} is a number, and {wanted!r} is not")
    if field == "pinned" and not (sign in ("=", "!=") and isinstance(value, bool)):
        raise argparse.ArgumentTypeError("pinned is compared as pinned=true or pinned=false")
    sign = "=" if sign == "==" else sign
    return Condition(field, sign, value if isinstance(value, str) else wanted, value)


class Selection(NamedTuple):
    """All conditions that an entry must meet; ages are seconds since it was last remembered."""

    kind: str | None
    where: tuple[Condition, ...]
    older: float | None
    newer: float | None
    now: float

    @property
    def is_everything(self) -> bool:
        """Whether nothing was asked for."""
        return self.kind is None and not self.where and self.older is None and self.newer is None

    def means(self, entry: Entry) -> bool:
        """Whether the entry is meant."""
        age = self.now - entry.updated_at
        return (
            (self.kind is None or entry.kind == self.kind)
            and (self.older is None or age > self.older)
            and (self.newer is None or age < self.newer)
            and all(condition(entry) for condition in self.where)
        )


def _value_of(entry: Entry, field: str) -> object:
    first, dot, rest = field.partition(".")
    if not dot:
        return getattr(entry, field)
    value: object = entry.data if first == "data" else entry.meta
    if isinstance(value, dict) and rest in value:
        return value[rest]
    for name in rest.split("."):
        if not isinstance(value, dict) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def _json_or_text(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, float) and not math.isfinite(value) else value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
