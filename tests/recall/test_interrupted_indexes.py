"""Indexes after an exception at any line of theirs: Ctrl-C, a timeout, no memory left."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sentinel_memory import ConversationIndex, WordIndex
from sentinel_memory.entry import Entry, new_entry

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
