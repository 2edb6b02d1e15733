"""Who goes first is found without looking at everybody, and is who the formula says."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_memory import Memory, retention
from sentinel_memory._core import eviction
from sentinel_memory._core.entries import EntrySet
from sentinel_memory._core.eviction import EvictionOrder
from support.clocks import FakeClock
from support.entries import new_entry
from support.model import PlainMemory

WINDOW = 1_000.0


def entry(importance: float, updated: int) -> Any:
    return new_entry(
        f"k{updated}", None, importance, created_ms=0, updated_ms=updated, expires_ms=None
    )


def stored(key: str, importance: float, now: int, *, expires: int | None = None) -> Any:
    return new_entry(key, None, importance, created_ms=now, updated_ms=now, expires_ms=expires)


def first_to_go(entries: EntrySet, now: int) -> str:
    first = entries.next_over(0, now=now)
    assert first is not None
    return first.key


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.1, 0.2, 0.1 + 1e-17, 0.15, 0.2 - 2**-54]) | st.floats(0, 1),
            st.integers(0, 3_000) | st.sampled_from([0, 1_000, 2_000]),
        ),
        min_size=1,
        max_size=40,
    ),
    st.lists(st.integers(-500, 800), max_size=40),
    st.randoms(use_true_random=False),
)
def test_the_entry_of_lowest_retention_is_evicted_whatever_the_clock_does(
    drawn: list[tuple[float, int]], steps: list[int], choice: random.Random
) -> None:
    """Compared with a minimum over all, while entries leave and come and time goes both ways."""
    entries: dict[int, Any] = {}
    order = EvictionOrder(entries, WINDOW)
    for serial, (importance, updated) in enumerate(drawn):
        entries[serial] = entry(importance, updated)
        order.add(serial, importance, updated)
    now = 2_000
    serial = len(drawn)
    for step in steps:
        now += step
        if not entries:
            break

        def key(serial: int, now: int = now) -> tuple[float, int, int]:
            one = entries[serial]
            age = now - one.updated_ms
            worth = one.importance + 0.1 * min(1, max(0, 1 - age / WINDOW))
            return (worth, one.updated_ms, serial)

        first = order.first_to_go(now=now)
        assert first == min(entries, key=key)
        what = choice.random()
        if what < 0.6:
            order.discard(first, entries.pop(first).importance)
        elif what < 0.8:
            gone = choice.choice(list(entries))
            order.discard(gone, entries.pop(gone).importance)
        else:
            serial += 1
            one = entries[serial] = entry(choice.choice(drawn)[0], now - choice.randrange(50))
            order.add(serial, one.importance, one.updated_ms)


@pytest.mark.parametrize("importances", [[0.1], [0.1, 0.5, 0.9], None])
def test_evicting_from_a_full_memory_looks_at_few_entries(
    importances: list[float] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most five retentions are computed for one eviction, also where all importances differ."""
    draw = random.Random(7)
    clock = FakeClock()
    memory = Memory(limit=2_000, clock=clock)

    def importance() -> float:
        return draw.random() if importances is None else draw.choice(importances)

    for number in range(2_000):
        clock.tick(0.001)
        memory.remember(f"k{number}", number, importance=importance())
    memory.remember("warm", 0, importance=importance())

    calls = 0
    formula = retention.retention

    def counted(*args: Any, **kwargs: Any) -> float:
        nonlocal calls
        calls += 1
        return formula(*args, **kwargs)

    monkeypatch.setattr(eviction, "retention", counted)
    for number in range(500):
        clock.tick(60)
        memory.remember(f"new{number}", number, importance=importance())
    assert memory.stats().evicted == 501
    assert calls <= 5 * 500


def test_a_full_memory_of_random_importances_evicts_what_the_literal_procedure_evicts() -> None:
    """2,000 remembers over a limit of 50, with days passing."""
    draw = random.Random(11)
    clock = FakeClock()
    memory = Memory(limit=50, clock=clock)
    model = PlainMemory(limit=50)
    for number in range(2_000):
        clock.tick(draw.choice([0, 1, 60, 7_200]))
        key, importance = f"k{draw.randrange(300)}", draw.random()
        done = memory.remember(key, number, importance=importance)
        _, expected = model.remember(int(clock.now * 1000), key, number, importance)
        gone = None if done.compaction is None else [e.key for e in done.compaction.evicted]
        assert gone == (None if expected is None else [item.key for item in expected.evicted])


@given(
    st.lists(st.integers(-3_000, 3_000), max_size=30),
    st.sampled_from([5e-321, 1e-5, 0.3, 1.0, 999.7, 1_000.0, 1e300, math.inf]),
    st.sampled_from([0, 1_792_310_400_000]),
)
def test_retentions_in_bulk_equal_retention_bit_for_bit(
    ages: list[int], window: float, now: int
) -> None:
    """Also for a window shorter than a millisecond, or longer than time."""
    oldest_first = [entry(0.1, now - age) for age in sorted(ages, reverse=True)]
    expected = [0.1 + 0.1 * min(1, max(0, 1 - age / window)) for age in sorted(ages, reverse=True)]
    assert retention.retentions(oldest_first, now=now, window=window) == expected


def test_overwriting_one_key_for_ever_accumulates_nothing() -> None:
    """The heaps behind eviction and expiry stay as small as the memory."""
    entries = EntrySet(WINDOW, {})
    for number in range(5_000):
        entries.put(stored("k", 0.5 + (number % 7) / 100, number, expires=number + 60_000))
        if number % 100 == 0:
            entries.put(stored(f"other{number}", 0.5, number))
        while len(entries) > 3:
            entries.remove(first_to_go(entries, number))
    assert max(entries.sizes().values()) < 60


@pytest.mark.parametrize("limit", [2, 100])
def test_importances_no_longer_used_leave_nothing_behind(limit: int) -> None:
    """Also in a memory that is never full, where nobody asks who goes first."""
    entries = EntrySet(WINDOW, {})
    for number in range(2_000):
        for key, share in (("k", 2_000), (f"k{number}", 2_001)):
            entries.put(stored(key, number / share, number))
            if len(entries) > limit:
                entries.remove(first_to_go(entries, number))
        entries.remove(f"k{number - 1}")
    assert entries.sizes()["groups"] <= 4


def test_with_a_jittering_clock_few_heads_are_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the clocks of several threads do, read before the lock is taken."""
    clock = FakeClock()
    memory = Memory(limit=200, clock=clock)
    moved = []
    real = EvictionOrder._place

    def watched(order: EvictionOrder, updated: int, serial: int, now: int) -> None:
        moved.append(serial)
        real(order, updated, serial, now)

    for number in range(200):
        clock.tick(0.01)
        memory.remember(f"k{number}", 1, importance=number / 200)
    memory.remember("k200", 1, importance=1)
    monkeypatch.setattr(EvictionOrder, "_place", watched)
    for number in range(100):
        clock.tick(0.01 if number % 2 else -0.008)
        memory.remember(f"new{number}", 1, importance=(number + 0.5) / 200)
    assert len(moved) <= 6 * 100


def test_an_entry_from_the_future_does_not_make_every_eviction_a_scan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted in entries whose retention is looked at, among 200 different importances."""
    clock = FakeClock()
    memory = Memory(limit=200, clock=clock)
    clock.tick(3_600)
    memory.remember("from the future", 1, importance=1)
    clock.tick(-3_600)
    for number in range(200):
        memory.remember(f"k{number}", 1, importance=number / 200)
    looked_at = []
    real = retention.retention

    def watched(importance: float, updated: int, **options: Any) -> float:
        looked_at.append(updated)
        return real(importance, updated, **options)

    monkeypatch.setattr(eviction, "retention", watched)
    for number in range(50):
        clock.tick(1)
        memory.remember(f"new{number}", 1, importance=number / 200 + 0.001)
    assert memory.stats().evicted == 51
    assert len(looked_at) <= 3 * 50


def test_of_two_entries_from_the_future_the_less_important_is_evicted() -> None:
    """Both count as just remembered, however far in the future they are."""
    clock = FakeClock()
    memory = Memory(limit=2, recency_window=100, clock=clock)
    clock.tick(50)
    memory.remember("older", 1, importance=0.51)
    clock.tick(50)
    memory.remember("newer", 1, importance=0.5)
    clock.tick(-100)
    done = memory.remember("now", 1, importance=1).compaction
    assert done is not None
    assert [entry.key for entry in done.evicted] == ["newer"]


def test_many_random_histories_agree_with_a_minimum_over_all() -> None:
    """The same comparison as above on 400 fixed histories."""
    draw = random.Random(3)
    importances = [0.0, 0.1, 0.15, 0.2, 0.2 - 2**-54]
    for _ in range(400):
        memory = Memory(limit=4, recency_window=1, clock=(clock := FakeClock()))
        model = PlainMemory(limit=4, recency_window=1)
        for number in range(12):
            clock.tick(draw.choice([-0.7, -0.3, 0, 0.2, 0.4, 1]))
            key, importance = f"k{draw.randrange(9)}", draw.choice(importances)
            done = memory.remember(key, number, importance=importance).compaction
            now = math.floor(clock.now * 1000)
            _, expected = model.remember(now, key, number, importance)
            gone = None if done is None else [entry.key for entry in done.evicted]
            assert gone == (None if expected is None else [item.key for item in expected.evicted])


@given(
    st.sampled_from([1.0, WINDOW, 86_400_000.0]),
    st.lists(st.sampled_from([0, 0, 1, 5, 500, 2_000, -300]), max_size=60),
    st.randoms(use_true_random=False),
)
def test_items_that_change_their_weight_to_and_fro_are_in_their_place(
    window: float, steps: list[int], choice: random.Random
) -> None:
    """Compared with a minimum over all; a weight of ``None`` is a pin, which never goes."""
    weights = [0.1, 0.3, 0.5, 0.7, 0.9, None]
    items: dict[int, tuple[float | None, int]] = {}
    order = EvictionOrder(items, window)
    now = 0
    for serial, step in enumerate(steps):
        now += step
        what = choice.random()
        if what < 0.4 or not items:
            items[serial] = choice.choice(weights), now
        else:
            serial = choice.choice(list(items))
            weight, updated = items[serial]
            if what > 0.9:
                del items[serial]
                order.discard(serial, weight)
            elif weight is not None:
                order.leave(serial, weight)
            if serial in items:
                items[serial] = choice.choice(weights), updated
        if serial in items and (weight := items[serial][0]) is not None:
            order.add(serial, weight, items[serial][1])
        expected = min(
            (
                (retention.retention(weight, updated, now=now, window=window), updated, serial)
                for serial, (weight, updated) in items.items()
                if weight is not None
            ),
            default=(0, 0, None),
        )
        assert order.first_to_go(now=now) == expected[-1]


def test_an_entry_that_gained_importance_is_evicted_by_its_new_importance() -> None:
    clock = FakeClock()
    memory = Memory(limit=2, recency_window=1, clock=clock)
    memory.remember("settled", 1, importance=0.5)
    memory.remember("other", 1, importance=0.7)
    clock.tick(10)
    memory.remember("low", 1, importance=0.1)
    clock.tick(10)
    memory.update("settled", importance=0.9)
    compaction = memory.remember("new", 1, importance=0.95).compaction
    assert compaction is not None
    assert [entry.key for entry in compaction.evicted] == ["other"]


def test_an_entry_whose_weight_changes_to_and_fro_does_not_fill_the_heap() -> None:
    living = dict.fromkeys(range(5))
    order = EvictionOrder(living, WINDOW)
    for serial in living:
        order.add(serial, 0.5, serial)
    for now in range(1_000):
        for former, weight in ((0.5, 0.7), (0.7, 0.5)):
            order.leave(2, former)
            order.add(2, weight, 2)
            assert order.first_to_go(now=now) == 0
    assert order.sizes()["longest heap"] <= 2 * len(living) + 9


def test_a_clock_that_goes_back_and_forth_does_not_pile_up_anything() -> None:
    """Entries of eight worths leave the window of freshness and come back, one by one."""
    entries = EntrySet(WINDOW, {})
    for number in range(8):
        entries.put(stored(f"k{number}", number / 10, number))
    for turn in range(4_000):
        first_to_go(entries, 1_000 + turn % 8)
    assert max(entries.sizes().values()) < 60


def test_feedback_this_way_and_that_does_not_pile_up_anything() -> None:
    """Eight entries take turns in going to another worth and back, behind an older one."""
    entries = EntrySet(WINDOW, {})
    entries.put(stored("old", 0.1, 0))
    for number in range(8):
        entries.put(stored(f"k{number}", 0.1, 1))
    for turn in range(4_000):
        for importance in (0.2, 0.1):
            entries.amend(stored(f"k{turn % 8}", importance, 1))
        assert first_to_go(entries, 2) == "old"
    assert max(entries.sizes().values()) < 60
