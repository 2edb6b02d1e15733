"""One entry of the plain model, what is derived from it, and a document of such entries."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# Compact JSON with non-ASCII kept: it tells ``1``, ``1.0`` and ``True`` apart.
json_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def sorted_text(data: Any) -> str:
    """The text by which data are equal: the same of all orders of a mapping."""
    return json.dumps(data, sort_keys=True)


@dataclass(frozen=True, eq=False)
class Item:
    """One entry; a change of it makes another one."""

    key: str
    data: Any
    importance: float
    created: int
    updated: int
    expires: int | None
    pinned: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)
    repeats: int = 1
    feedback: int = 0
    used: int | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict)  # stored fields of a later release

    @property
    def kind(self) -> str:
        """The part of the key before its first colon; empty without one."""
        return self.key.split(":")[0] if ":" in self.key else ""

    @property
    def number(self) -> int:
        """The number in a key ``kind:number``."""
        found = re.fullmatch(r"[^:]*:([0-9]{1,15})", self.key)
        return int(found[1]) if found else 0

    @property
    def worth(self) -> float:
        """The importance, shifted by feedback."""
        if self.feedback == 0:
            return self.importance
        sign = 1 if self.feedback > 0 else -1
        shift = sign * 0.05 * math.log2(1 + abs(self.feedback))
        return min(1.0, max(0.0, self.importance + shift))

    @property
    def line(self) -> str:
        """The default format: strings as they are, other data as compact JSON."""
        return f"{self.key}: {self.data if isinstance(self.data, str) else json_text(self.data)}"

    @property
    def words(self) -> set[str]:
        """The words of the key and of every string, number and mapping key inside the data."""
        return set().union(*map(words_of, [self.key, *texts_in(self.data)]))

    def is_live(self, now: int) -> bool:
        """Whether it is visible: not from the millisecond of its expiry on."""
        return self.expires is None or now < self.expires

    def shown(self) -> dict[str, Any]:
        """``Entry.to_dict()``: times in epoch seconds."""
        return {
            "key": self.key,
            "data": self.data,
            "kind": self.kind,
            "importance": self.importance,
            "worth": self.worth,
            "pinned": self.pinned,
            "meta": self.meta,
            "repeats": self.repeats,
            "feedback": self.feedback,
            "created_at": self.created / 1000,
            "updated_at": self.updated / 1000,
            "expires_at": None if self.expires is None else self.expires / 1000,
            "used_at": None if self.used is None else self.used / 1000,
        }

    def stored(self) -> dict[str, Any]:
        """The entry in a document: what is known about the data only when it says something."""
        known = {
            "pinned": self.pinned,
            "meta": self.meta,
            "feedback": self.feedback,
            "usedAt": self.used,
            "repeats": self.repeats,
        }
        nothing = {"pinned": False, "meta": {}, "feedback": 0, "usedAt": None, "repeats": 1}
        return {
            "key": self.key,
            "data": self.data,
            "importance": self.importance,
            "createdAt": self.created,
            "updatedAt": self.updated,
            "expiresAt": self.expires,
            **{name: value for name, value in known.items() if value != nothing[name]},
            **self.unknown,
        }


def same(one: Item, other: Item) -> bool:
    """Whether two entries have the same fields."""
    return json_text(one.stored()) == json_text(other.stored())


class Compacted(NamedTuple):
    """What one compaction removed."""

    expired: list[Item]
    evicted: list[Item]


class Document(NamedTuple):
    """What is saved. ``limit`` is None, and the others are empty, where it says nothing."""

    limit: int | None
    limits: Mapping[str, int]
    numbers: Mapping[str, int]
    items: tuple[Item, ...]

    def as_state(self) -> dict[str, Any]:
        """The document as JSON data."""
        said = {"limit": self.limit, "limits": self.limits, "numbers": self.numbers}
        return {
            "version": 1,
            **{name: value for name, value in said.items() if value},
            "entries": [item.stored() for item in self.items],
            "working": {"data": {}, "updatedAt": None},
        }


def words_of(text: str) -> set[str]:
    """The words of a text in small ASCII letters and digits; nothing here asks for others."""
    return set(re.findall("[a-z0-9]+", text.casefold().replace("é", "e")))


def texts_in(data: Any) -> Iterator[str]:
    """Every string, number (as JSON writes it) and mapping key; booleans and null have no words."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        yield from data
        for value in data.values():
            yield from texts_in(value)
    elif isinstance(data, list):
        for value in data:
            yield from texts_in(value)
    elif data is not None and not isinstance(data, bool):
        yield json_text(data)


def share_of_words(question: str, item: Item) -> float:
    """The share of the distinct words of the question that are in the item."""
    words = words_of(question)
    return len(words & item.words) / len(words) if words else 0.0
