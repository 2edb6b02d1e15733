"""L0: values by reference that live for minutes and are never saved."""

from __future__ import annotations

import weakref
from datetime import timedelta

from sentinel_memory import Memory, MemoryStore
from support.clocks import FakeClock


class Thing:
    pass


def test_the_cache_keeps_any_value_by_reference(clock: FakeClock) -> None:
    cache = Memory(clock=clock).cache
    thing = Thing()
    cache.put("thing", thing)
    cache.put("none", None)
    assert cache.get("thing") is thing
    assert cache.get("none", "default") is None
    assert cache.get("other", "default") == "default"
    assert len(cache) == 2


def test_a_cached_value_is_gone_at_its_ttl(clock: FakeClock) -> None:
    cache = Memory(clock=clock, cache_ttl=10).cache
    cache.put("default", 1)
    cache.put("short", 1, ttl=2)
    cache.put("long", 1, ttl=timedelta(minutes=1))
    clock.tick(2)
    assert (cache.get("short"), cache.get("default"), len(cache)) == (None, 1, 2)
    clock.tick(8)
    assert (cache.get("default"), cache.get("long"), len(cache)) == (None, 1, 1)
    cache.put("long", 2)
    clock.tick(10)
    assert cache.get("long") is None


def test_delete_returns_true_if_it_removed_a_live_value(clock: FakeClock) -> None:
    cache = Memory(clock=clock).cache
    cache.put("a", 1)
    cache.put("b", 1, ttl=1)
    cache.put("never", 1, ttl=1e300)
    clock.tick(1)
    assert cache.delete("a")
    assert not cache.delete("a")
    assert not cache.delete("b")
    assert cache.delete("never")


def test_expired_values_do_not_accumulate_in_the_cache(clock: FakeClock) -> None:
    """A later ``put`` of any key lets the objects go."""
    cache = Memory(clock=clock).cache
    thing = Thing()
    seen = weakref.ref(thing)
    cache.put("thing", thing)
    del thing
    for number in range(1_000):
        cache.put(f"k{number}", number, ttl=1)
        cache.put("same", number, ttl=400)
    clock.tick(300)
    assert seen() is not None
    cache.put("another", 1)
    assert seen() is None
    assert set(cache._values) == {"same", "another"}
    assert len(cache._expiries) < 50


def test_the_cache_is_never_saved_and_stays_through_a_load(clock: FakeClock) -> None:
    store = MemoryStore()
    memory = Memory(clock=clock, store=store)
    memory.cache.put("secret", "value")
    memory.save()
    assert "secret" not in str(store.load())
    memory.load()
    assert memory.cache.get("secret") == "value"
    assert memory.stats().cache == 1
    memory.cache.clear()
    assert memory.stats().cache == 0
