"""What can be remembered is what JSON can hold, and what comes back is the same after a restart."""

from __future__ import annotations

import collections
import enum
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_memory import Memory
from support.clocks import FakeClock

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(), inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=12,
)


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


Point = collections.namedtuple("Point", "x y")


@given(JSON)
def test_get_returns_the_json_round_trip_before_and_after_a_restart(data: Any) -> None:
    memory = Memory(clock=lambda: 0)
    memory.remember("k", data)
    expected = json.loads(json.dumps(data))
    assert memory.get("k") == expected
    assert repr(memory.get("k")) == repr(expected)
    again = Memory(clock=lambda: 0)
    again.restore(json.loads(json.dumps(memory.to_state())))
    assert repr(again.get("k")) == repr(expected)
    assert again.to_state() == memory.to_state()


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        ({1: "a", 2.5: "b", None: "c"}, {"1": "a", "2.5": "b", "null": "c"}),
        ({True: "a", False: "b"}, {"true": "a", "false": "b"}),
        (Colour.RED, "red"),
        ({Colour.RED: Level.HIGH}, {"red": 3}),
        (Point(1, 2), [1, 2]),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (collections.defaultdict(list, a=[1]), {"a": [1]}),
        (-0.0, -0.0),
        (1e16, 1e16),
        (10**300, 10**300),
        ("\x00\u2028\U0001f642", "\x00\u2028\U0001f642"),
        ("", ""),
        ([], []),
        (None, None),
        (False, False),
    ],
    ids=repr,
)
def test_python_values_become_plain_json_values(data: Any, kept: Any) -> None:
    """At once, not after the next restart."""
    memory = Memory(clock=lambda: 0)
    memory.remember("k", data)
    assert repr(memory.get("k")) == repr(kept)


def nested(levels: int) -> Any:
    data: Any = "deep"
    for level in range(levels):
        data = [data] if level % 2 else {"d": data}
    return data


def cycle() -> Any:
    data: list[Any] = [1]
    data.append({"again": data})
    return data


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "a set": ({1}, TypeError, "set has no JSON form"),
    "bytes": (b"x", TypeError, "bytes has no JSON form"),
    "an object": (object(), TypeError, "object has no JSON form"),
    "a set inside": ({"a": [{1}]}, TypeError, "set has no JSON form"),
    "nan": (float("nan"), ValueError, "nan has no JSON form"),
    "inf inside": ([1, float("inf")], ValueError, "inf has no JSON form"),
    "a lone surrogate": ("a\ud800b", ValueError, "lone surrogate at position 1"),
    "surrogates of one character": ("\ud83d\ude00", ValueError, "lone surrogate"),
    "a lone surrogate in a mapping key": ({"\udc00": 1}, ValueError, "lone surrogate"),
    "a cycle": (cycle(), ValueError, "contains itself"),
    "101 levels": (nested(101), ValueError, "nested more than 100 levels"),
    "200,000 levels": (nested(200_000), ValueError, "nested more than 100 levels"),
    "an integer too long to read back": (10**5_000, ValueError, "digits"),
    "such an integer as a mapping key": ({10**5_000: 1}, ValueError, "digits"),
    "colliding keys": ({1: "a", "1": "b"}, ValueError, "same string"),
    "colliding float keys": ({1.5: "a", "1.5": "b"}, ValueError, "same string"),
    "a nan key": ({float("nan"): 1}, ValueError, "nan has no JSON form"),
    "a tuple key": ({(1, 2): 1}, TypeError, "mapping key of type tuple"),
}


@pytest.mark.parametrize(("data", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_data_that_is_not_json_is_refused_with_the_memory_unchanged(
    data: Any, error: type[Exception], message: str, clock: FakeClock
) -> None:
    """At ``remember``, naming the key, not at a later save."""
    memory = Memory(clock=clock)
    memory.remember("user:plan", "old", importance=0.9, ttl=60)
    before = memory.to_state()
    with pytest.raises(error, match=message) as caught:
        memory.remember("user:plan", data)
    assert "user:plan" in str(caught.value)
    with pytest.raises(error, match=message):
        memory.working.set(plan=data)
    assert memory.to_state() == before
    assert memory.recall("old")[0].key == "user:plan"


def test_100_levels_are_kept(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.remember("k", nested(100))
    assert memory.get("k") == nested(100)
    assert memory.recall("deep")[0].key == "k"


def test_the_longest_integer_accepted_is_the_longest_that_reads_back(clock: FakeClock) -> None:
    digits = sys.get_int_max_str_digits()
    memory = Memory(clock=clock)
    memory.remember("k", 10 ** (digits - 1))
    assert memory.get("k") == 10 ** (digits - 1)
    with pytest.raises(ValueError, match="digits"):
        memory.remember("k", 10**digits)
