"""Indexes after an exception at any line of theirs: Ctrl-C, a timeout, no memory left."""

from __future__ import annotations

import gc
import random
import sys
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sentinel_memory import ConversationIndex, WordIndex
from sentinel_memory.entry import Entry
from support.entries import new_entry

QUERIES = ("tea", "red tea milk", "Anna tea", "milk in 1970", "sugar", "Ben sugar")


def entry(key: str, data: Any, now: int = 0) -> Entry:
    return new_entry(key, data, 0.5, created_ms=now, updated_ms=now, expires_ms=None)


ENTRIES = [
    entry("chat:1", "Anna: red tea", 1),
    entry("chat:2", "Ben: milk, please", 2),
    entry("user:x", "tea and milk", 3),
    entry("chat:3", "Anna: tea, no sugar", 4),
]


def interrupted_at(count: int, call: Callable[[], object]) -> bool:
    """Whether ``call`` was interrupted at the ``count``-th line of the package that it ran."""
    left = count

    def trace(frame: types.FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if "sentinel_memory" not in frame.f_code.co_filename:
            return None
        if event == "line":
            left -= 1
            if not left:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("kind", [WordIndex, ConversationIndex])
@pytest.mark.parametrize("change", ["add", "replace", "discard"])
def test_whatever_line_a_change_stops_at_the_next_one_makes_the_index_whole(
    kind: type[Any], change: str
) -> None:
    """A key that is discarded and added again is found as in a new index; so are all others."""
    whole = kind()
    for one in ENTRIES:
        whole.add(one)
    expected = [whole.search(query) for query in QUERIES]
    count = 0
    while True:
        count += 1
        index = kind()
        for one in ENTRIES[: 3 if change == "add" else 4]:
            index.add(one)
        last = ENTRIES[3]
        other = entry("chat:3", "Ben: milk and sugar", 9)
        calls: dict[str, Callable[[], object]] = {
            "add": partial(index.add, last),
            "replace": partial(index.add, other),
            "discard": partial(index.discard, "chat:3"),
        }
        stopped = interrupted_at(count, calls[change])
        index.search("tea")
        index.discard("chat:3")
        index.add(last)
        assert [index.search(query) for query in QUERIES] == expected, count
        for one in ENTRIES:
            index.discard(one.key)
        assert all(index.search(query) == {} for query in QUERIES), count
        if not stopped:
            break
    assert count > 20


@pytest.mark.parametrize("kind", [WordIndex, ConversationIndex])
def test_a_repair_may_be_interrupted_too(kind: type[Any]) -> None:
    whole = kind()
    for one in ENTRIES:
        whole.add(one)
    expected = [whole.search(query) for query in QUERIES]
    for first in (4, 9, 14, 19):
        for second in range(1, 60, 3):
            index = kind()
            for one in ENTRIES:
                index.add(one)
            interrupted_at(first, partial(index.discard, "chat:1"))
            interrupted_at(second, partial(index.search, "tea"))
            index.discard("chat:1")
            index.add(ENTRIES[0])
            assert [index.search(query) for query in QUERIES] == expected


# Forgotten text. Each key, speaker and word below contains "quartz"; what stays does not.


def texts_in(thing: object) -> set[str]:
    """Every string that an object refers to, directly or not; code is left out."""
    found: set[str] = set()
    seen: set[int] = set()
    todo: list[Any] = [thing]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | types.ModuleType | types.FunctionType):
            continue
        seen.add(id(one))
        if isinstance(one, str):
            found.add(one)
        todo.extend(gc.get_referents(one))
    return found


def change(index: Any, draw: random.Random, live: dict[str, Entry]) -> None:
    """Add or discard, often interrupted and then made again, as a memory does."""
    key = f"quartz:{draw.randrange(8)}"
    words = " ".join(f"quartz{draw.randrange(6)}" for _ in range(2))
    text = draw.choice(["", f"Quartz{draw.randrange(3)}: "]) + f"common {words}"
    new = entry(key, text, draw.randrange(5))
    adding = draw.random() < 0.7
    call = partial(index.add, new) if adding else partial(index.discard, key)
    if interrupted_at(draw.randrange(1, 120), call):
        if draw.random() < 0.5:
            index.search("quartz1 common")
        call()
    live.pop(key, None)
    if adding:
        live[key] = new


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [WordIndex, ConversationIndex])
def test_an_index_that_was_interrupted_many_times_equals_a_new_one(
    kind: type[Any], seed: int
) -> None:
    """To the last bit, after each of many changes, whatever the clock did."""
    index, draw = kind(), random.Random(seed)
    live: dict[str, Entry] = {}
    for _ in range(150):
        change(index, draw, live)
        fresh = kind()
        for one in live.values():
            fresh.add(one)
        for query in ("quartz1 quartz2", "quartz3 common quartz"):
            assert index.search(query) == fresh.search(query)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [WordIndex, ConversationIndex])
def test_no_word_outlives_its_entry_whatever_was_interrupted(kind: type[Any], seed: int) -> None:
    """Neither in lists that an entry which stays shares, nor when everything is forgotten."""
    index, draw = kind(), random.Random(seed)
    index.add(entry("stays:1", "common"))
    live: dict[str, Entry] = {}
    for _ in range(150):
        change(index, draw, live)
    assert any("quartz" in text for text in texts_in(index))
    for number in range(8):
        discard = partial(index.discard, f"quartz:{number}")
        if interrupted_at(draw.randrange(1, 60), discard):
            discard()
    assert not [text for text in texts_in(index) if "quartz" in text]
    assert index.search("common")
    index.discard("stays:1")
    assert not [text for text in texts_in(index) if "common" in text or "stay" in text]


@pytest.mark.parametrize("others", range(1, 6))
@pytest.mark.parametrize("kind", [WordIndex, ConversationIndex])
def test_no_word_outlives_its_entry_in_lists_that_others_share(
    kind: type[Any], others: int
) -> None:
    """Also without an interruption: a shared list keeps its gone members for a while."""
    index = kind()
    for number in range(others):
        index.add(entry(f"stays:{number}", "common"))
    index.add(entry("quartz:9", "Quartz: quartz common"))
    index.discard("quartz:9")
    assert not [text for text in texts_in(index) if "quartz" in text]
    assert len(index.search("common")) == others
