"""The one rule for numbers: what is not a number in its range is ignored, never clamped."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from sentinel_memory import DEFAULTS, IgnoredValueWarning, Memory, MemoryStore
from support.clocks import FakeClock

NO_NUMBERS: list[Any] = [
    None,
    True,
    False,
    "0.9",
    "",
    b"1",
    [],
    [1],
    {},
    object(),
    1j,
    Decimal("0.5"),
    float("nan"),
    float("inf"),
    float("-inf"),
]
NOT_POSITIVE: list[Any] = [0, 0.0, -0.0, -1, -0.5, -(10**400), Fraction(-1, 3), timedelta(0)]


def named(values: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("junk", values, ids=repr_of)


def ignored(value: Any) -> AbstractContextManager[Any]:
    """A block in which the value is ignored: with a warning, unless it is ``None``."""
    return nullcontext() if value is None else pytest.warns(IgnoredValueWarning, match="ignored")


def repr_of(value: Any) -> str:
    return type(value).__name__ if type(value) is object else repr(value)[:20]


@named([*NO_NUMBERS, *NOT_POSITIVE, 2.5, Fraction(5, 2), timedelta(seconds=5)])
def test_a_limit_that_is_not_a_count_is_500(junk: Any) -> None:
    with ignored(junk):
        assert Memory(limit=junk).stats().limit == 500


@pytest.mark.parametrize(
    ("limit", "used"), [(1, 1), (5.0, 5), (Fraction(8, 2), 4), (10**400, 10**400)]
)
def test_a_limit_is_a_whole_number_of_any_type(limit: Any, used: int) -> None:
    assert Memory(limit=limit).stats().limit == used


@named([*NO_NUMBERS, -0.1, 1.5, 1 + 1e-15, -1, 2, 10**400, timedelta(seconds=1)])
def test_an_importance_outside_0_to_1_is_the_default(junk: Any, clock: FakeClock) -> None:
    """0.5 for a new key; a live key keeps its own."""
    memory = Memory(clock=clock)
    memory.remember("live", 1, importance=0.8)
    with ignored(junk):
        assert memory.remember("new", 1, importance=junk).entry.importance == 0.5
    with ignored(junk):
        assert memory.remember("live", 2, importance=junk).entry.importance == 0.8


@pytest.mark.parametrize("importance", [0, 0.0, -0.0, 1, 1.0, Fraction(1, 4), 0.3])
def test_an_importance_of_any_real_type_is_kept_as_a_float(
    importance: Any, clock: FakeClock
) -> None:
    kept = Memory(clock=clock).remember("k", 1, importance=importance).entry.importance
    assert type(kept) is float
    assert kept == importance


@named([*NO_NUMBERS, *NOT_POSITIVE])
def test_a_ttl_that_is_not_positive_is_no_expiry(junk: Any, clock: FakeClock) -> None:
    with ignored(junk):
        assert Memory(clock=clock).remember("k", 1, ttl=junk).entry.expires_at is None


@pytest.mark.parametrize(
    ("ttl", "milliseconds"),
    [
        (1, 1_000),
        (0.25, 250),
        (Fraction(1, 8), 125),
        (timedelta(minutes=15), 900_000),
        (timedelta(microseconds=1), 1),
        (1e-9, 1),
        (5e-324, 1),
        (1.0004, 1_000),
        (1.0006, 1_001),
    ],
)
def test_a_ttl_is_rounded_to_milliseconds_and_at_least_one(ttl: Any, milliseconds: int) -> None:
    memory = Memory(clock=lambda: 0)
    assert memory.remember("k", 1, ttl=ttl).entry.expires_at == milliseconds / 1000


@pytest.mark.parametrize(
    ("ttl", "expires"),
    [
        (8_640_000_000_000, 8_640_000_000_000.0),
        (8_640_000_000_000.001, None),
        (1e300, None),
        (10**400, None),
        (1.7e308, None),
        (timedelta.max, None),
    ],
)
def test_an_expiry_past_the_last_valid_time_is_never(ttl: Any, expires: float | None) -> None:
    memory = Memory(clock=lambda: 0)
    assert memory.remember("k", 1, ttl=ttl).entry.expires_at == expires


@named([*NO_NUMBERS, *NOT_POSITIVE])
def test_an_invalid_duration_is_replaced_by_the_default(junk: Any, clock: FakeClock) -> None:
    """A window of 24 hours, a cache of 5 minutes, a working state of 1 hour."""
    with ignored(junk):
        memory = Memory(limit=1, clock=clock, recency_window=junk, cache_ttl=junk, working_ttl=junk)
    memory.cache.put("k", 1)
    with ignored(junk):
        memory.cache.put("own", 1, ttl=junk)
    memory.working.set(step=1)
    clock.tick(299.999)
    assert memory.cache.get("k") == memory.cache.get("own") == 1
    clock.tick(0.001)
    assert memory.cache.get("k") is memory.cache.get("own") is None
    clock.tick(3_299.999)
    assert memory.working.get() == {"step": 1}
    clock.tick(0.001)
    assert memory.working.get() == {}
    memory.remember("old", 1, importance=0.5)
    clock.tick(43_200)
    memory.remember("new", 1, importance=0.44)
    assert next(iter(memory)).key == "old"


@pytest.mark.parametrize("option", ["recency_window", "cache_ttl", "working_ttl"])
@pytest.mark.parametrize("value", [1e300, 10**400, 5e-324, Fraction(1, 10**400), timedelta.max])
def test_an_extreme_duration_does_no_harm(option: str, value: Any, clock: FakeClock) -> None:
    memory = Memory(limit=1, clock=clock, **{option: value})
    memory.cache.put("k", 1)
    memory.working.set(step=1)
    memory.remember("a", 1)
    clock.tick(1)
    memory.remember("b", 1)
    assert [entry.key for entry in memory] == ["b"]
    assert memory.get_context(10).text == "b: 1"
    memory.recall("b")


@named([*NO_NUMBERS, -1, 2.5, -(10**400)])
def test_an_invalid_count_is_replaced_by_the_default(junk: Any, clock: FakeClock) -> None:
    """10 for ``get_recent``, 5 for ``recall``."""
    memory = Memory(clock=clock)
    for number in range(12):
        memory.remember(f"k:{number}", "word")
    with ignored(junk):
        assert len(memory.get_recent(junk)) == 10
    with ignored(junk):
        assert len(memory.recall("word", limit=junk)) == 5


def test_a_warning_names_the_option_and_what_is_used_at_the_callers_line() -> None:
    """Before anything is changed, so that a program that makes it an error loses nothing."""
    memory = Memory()
    text: Any = "15m"
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: memory.remember("k", 1, ttl=text), "ttl must be a number of seconds above 0 or"),
        (lambda: memory.remember("k", 1, importance=5), "importance must be a number from 0 to 1"),
        (lambda: memory.recall("k", limit=-1), "limit must be a whole number of at least 0, not"),
        (lambda: memory.get_recent(2.5), "n must be a whole number of at least 0, not 2.5"),
        (lambda: memory.cache.put("k", 1, ttl=-5), "ttl must be a number of seconds above 0"),
        (lambda: Memory(limit=0), "limit must be a whole number of at least 1, not 0; it is ign"),
        (lambda: Memory(limits={"chat": 0}), "limits['chat'] must be a whole number of at least 1"),
        (lambda: Memory(half_life=-1), "half_life must be a number of seconds above 0"),
        (lambda: Memory(data_chars=0), "data_chars must be a whole number of at least 1, not 0"),
        (lambda: Memory(cache_ttl=True), "the default, 300 s, is used"),
        (lambda: memory.get_context(9, half_life=text), "not a str of 3 characters"),
        (lambda: memory.update("k", importance=2), "importance must be a number from 0 to 1"),
    ]
    for call, message in calls:
        with pytest.warns(IgnoredValueWarning, match=re.escape(message)) as caught:
            call()
        assert [warning.filename for warning in caught] == [__file__]
    memory.forget("k")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call, _ in calls:
            with pytest.raises(IgnoredValueWarning):
                call()
    assert (len(memory), len(memory.cache)) == (0, 1)


@pytest.mark.parametrize(("count", "found"), [(0, 0), (3.0, 3), (10**30, 12), (Fraction(2), 2)])
def test_zero_is_a_valid_count(count: Any, found: int, clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    for number in range(12):
        memory.remember(f"k:{number}", "word")
    assert len(memory.get_recent(count)) == found
    assert len(memory.recall("word", limit=count)) == found


def test_the_defaults_are_in_one_read_only_table() -> None:
    """The table and the behaviour are the same, which the tests above show."""
    assert dict(DEFAULTS) == {
        "limit": 500,
        "importance": 0.5,
        "ttl": None,
        "recency_window": 86_400,
        "cache_ttl": 300,
        "working_ttl": 3_600,
        "n": 10,
        "recall_limit": 5,
        "attempts": 100,
        "limits": None,
        "half_life": None,
        "data_chars": None,
    }
    with pytest.raises(TypeError):
        DEFAULTS["limit"] = 7  # type: ignore[index]


@pytest.mark.parametrize("call", [
    lambda: Memory(size=5),  # type: ignore[call-arg]
    lambda: Memory.open("guest.json", limt=3),  # type: ignore[call-arg]
    lambda: Memory().remember("k", 1, priority=1),  # type: ignore[call-arg]
    lambda: Memory().get_context(1, budget=2),  # type: ignore[call-arg]
    lambda: Memory().recall("k", n=1),  # type: ignore[call-arg]
    lambda: Memory(5),  # type: ignore[arg-type]
])  # fmt: skip
def test_an_unknown_option_is_a_type_error(call: Any) -> None:
    """Which a type checker sees, too: an ignored error that is none is an error."""
    with pytest.raises(TypeError):
        call()


def test_the_error_for_a_path_given_to_memory_names_memory_open() -> None:
    with pytest.raises(TypeError, match=r"Memory\.open\(path\)"):
        Memory("guest.json")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"store": object()}, "store must be an object with the methods load, save"),
        ({"store": MemoryStore}, "store"),
        ({"index": 5}, "index must be an object with the methods add, discard, search"),
        ({"tokenizer": "gpt"}, "tokenizer must be callable, not str"),
        ({"on_evict": 1}, "on_evict must be callable, not int"),
        ({"clock": 5}, "clock must be callable, not int"),
        ({"clock": None}, "clock must be callable"),
    ],
)
def test_a_wrong_collaborator_is_refused_when_the_memory_is_made(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        Memory(**options)


def test_autosave_without_a_store_says_what_is_missing() -> None:
    with pytest.raises(ValueError, match=r"autosave needs a store"):
        Memory(autosave=True)


@pytest.mark.parametrize("junk", [None, "now", float("nan"), float("inf"), True])
def test_the_error_for_a_clock_that_returns_no_number_names_the_clock(junk: Any) -> None:
    times = [junk, 0.0, 0.0]
    memory = Memory(clock=lambda: times.pop(0))
    with pytest.raises(TypeError, match="clock must return epoch seconds"):
        memory.remember("k", 1)
    assert memory.stats().stored == 0


@pytest.mark.parametrize("seconds", [1e308, -1e13, 10**400, 1_792_310_400_000 * 1_000])
def test_a_clock_that_does_not_return_epoch_seconds_is_refused(seconds: float) -> None:
    """As one of microseconds."""
    with pytest.raises(
        ValueError, match=r"clock must return epoch seconds, not (-?[0-9]|a number)"
    ):
        Memory(clock=lambda: seconds).remember("k", 1)
