"""Values that the arguments of a history are drawn from, by the names of the arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final


def is_chat(entry: Any) -> bool:
    return bool(entry.kind == "chat")


def is_important(entry: Any) -> bool:
    return bool(entry.importance >= 0.5)


def is_tagged(entry: Any) -> bool:
    return "tags" in entry.meta


def breaks(entry: Any) -> bool:
    """A predicate that raises; its exception reaches the caller."""
    raise LookupError(f"nobody may ask about {entry.key}")


def third(text: str) -> int:
    """A tokenizer that rounds down, so that the sum of the parts is less than the whole."""
    return len(text) // 3


KEYS: Final = (
    *("user:name", "user:allergy", "chat:1", "chat:2", "chat:3", "order:42"),
    *("note:1", "note:2", "note:7", "note_a", "b", ":c", "task:999999999999999"),
)
TEXTS: Final = (
    *("tea", "Jakub", "peanuts and tea", "café au lait", "a green\ntea", "", "私 tea"),
    "a long story about the weather in Prague, and about tea for two on a rainy day",
)
QUERIES: Final = ("tea", "what is my name?", "chat 1", "order 42 tea", "cafe")

# Of each argument the values, the usual ones more often than those that are ignored or refused.
VALUES: Final[Mapping[str, Sequence[Any]]] = {
    "key": KEYS,
    "whose": (*KEYS, *range(8), *range(8)),
    "data": (
        *TEXTS,
        *(1, 1.0, True, None, [], ["tea", 42], {"a": 1, "b": "tea"}, {"b": "tea", "a": 1}),
    ),
    "importance": (
        *(None, None, None, 0.0, 0, 0.1, 0.1 + 2**-54, 0.2, 0.5, 0.55, 0.65, 0.9, 1.0, 1),
        *("0.9", -0.1, 1.5, math.nan, True),
    ),
    "ttl": (
        *(None, None, None, None, None, 0.001, 0.0004, 1, 60, 900, timedelta(minutes=15), 1e300),
        *("15m", 0, -5, math.inf),
    ),
    "new_ttl": (..., ..., ..., None, None, 0.001, 60, 900, "15m", False),
    "pinned": (*[None] * 10, True, True, True, False, "yes"),
    "meta": (*[None] * 6, {}, {"tags": ["x"]}, {"tags": [], "by": "me"}, ["tags"]),
    "kind": (*["note"] * 5, "chat", "chat", "task", "user", "", "a:b"),
    "n": (2, 3, 10, None, 0, 1.0, -1, "2", 2.5),
    "most": (1, 2, 3, 99, None, 0, 5.0, -1, "2", math.nan),
    "query": (*QUERIES, *QUERIES, ("allergy", "peanuts tea"), ["tea"], "", "zzz", 5, []),
    "maybe_query": (None, None, *QUERIES, ("what is it?", "tea", "name"), "", 5),
    "where": (None, None, None, is_chat, is_important, is_tagged, breaks),
    "filter": (is_chat, is_important, is_tagged, breaks, bool),
    "half_life": (None, None, 60, 43_200, timedelta(days=1), math.inf, 0, -1, "90", True, math.nan),
    "budget": (0, 4, 7, 9, 12, 16, 25, 40, 100, 17.5),
    "tokenizer": (None, None, None, len, third),
    "separator": ("\n", "\n", "", "\n\n---\n"),
    "header": ("", "", "Known:"),
    "places": (1, 1, 2, 5),
    "times": (1, 1, 2, 3, 9),
    "seconds": (0, 0, 0.001, 1, 59, 900, 3_600, 43_200, 86_400, 200_000, -1, -7_200),
    "undone": (True, False),
    "seed": range(1_000),
    "later": ({"reviewer": "Eva"}, {"score": [1, 2.5]}, {}),
    "said": (
        {},
        {},
        {"limit": 2},
        {"limits": {"note": 1, "chat": 1}},
        {"numbers": {"note": 1}},
        {},
    ),
    "limit": (1, 2, 3, 4, 5, 6, 8, 12, None, 3.0, 0, "5", True),
    "limits": (
        *(None, None, {}, {"chat": 1, "note": 2}, {"user": 1, "chat": 1, "": 1}),
        *({"order": 1, "note": 1, "chat": 1}, {"note": 1}),
        *({"": 1}, {"chat": 0, "user": 1}, {"order": "2"}),
    ),
    "window": (None, None, 0.5, 3_600, timedelta(days=2), 0, "1"),
    "data_chars": (None, None, None, 20, 0),
    "autosave": (False, True),
}
