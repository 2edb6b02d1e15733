"""The behaviour that was published for the origin of this package, figure by figure."""

from __future__ import annotations

import pytest

from sentinel_memory import Memory, Stats
from support.clocks import FakeClock

MINUTE, DAY = 60, 86_400


def restaurant(clock: FakeClock) -> Memory:
    memory = Memory(limit=5, clock=clock)
    memory.remember("user:name", "Jakub", importance=0.9)
    clock.tick(MINUTE)
    memory.remember("user:allergy", "peanuts", importance=1.0)
    for number in range(1, 7):
        clock.tick(MINUTE)
        memory.remember(f"chat:{number}", f"small talk {number}", importance=0.1)
    return memory


def test_the_restaurant_keeps_what_matters_and_the_latest_small_talk(clock: FakeClock) -> None:
    """Eight things were said, five are kept, and the allergy is among them."""
    memory = restaurant(clock)
    assert [entry.key for entry in memory.get_recent()] == [
        "chat:6",
        "chat:5",
        "chat:4",
        "user:allergy",
        "user:name",
    ]
    assert memory.stats() == Stats(
        size=5,
        stored=5,
        limit=5,
        cache=0,
        compactions=3,
        expired=0,
        evicted=3,
        kinds={"user": 2, "chat": 3},
    )


@pytest.mark.parametrize(("old", "loser"), [(0.55, "old"), (0.65, "new")])
def test_freshness_is_worth_a_tenth(clock: FakeClock, old: float, loser: str) -> None:
    """A new 0.5 beats a day-old 0.55 and loses to a day-old 0.65."""
    memory = Memory(limit=1, clock=clock)
    memory.remember("old", 1, importance=old)
    clock.tick(DAY)
    done = memory.remember("new", 2, importance=0.5)
    assert done.compaction is not None
    assert [entry.key for entry in done.compaction.evicted] == [loser]
    assert done.kept == (loser == "old")


def test_a_note_of_15_minutes_is_invisible_on_every_path_at_minute_15(clock: FakeClock) -> None:
    """It is there at minute 14, and stays stored after it has become invisible."""
    memory = Memory(clock=clock)
    memory.remember("note", "the kitchen closes at ten", ttl=15 * MINUTE)
    clock.tick(14 * MINUTE)
    assert memory.get("note") == "the kitchen closes at ten"
    clock.tick(MINUTE - 0.001)
    assert "note" in memory
    clock.tick(0.001)
    assert memory.get("note") is None
    assert memory.entry("note") is None
    assert not memory.has("note")
    assert "note" not in memory
    assert memory.size == len(memory) == 0
    assert list(memory) == memory.get_recent() == memory.recall("kitchen") == []
    assert memory.get_context(100, query="kitchen").text == ""
    assert memory.to_state()["entries"] == []
    assert memory.stats().size == 0
    assert memory.stats().stored == 1
    assert memory.stats().expired == 0
    assert not memory.forget("note")
    assert memory.stats().stored == 0


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("what is my name?", ["user:name"]),
        ("refund", ["order:42"]),
        ("money back", []),
        ("jak se jmenuju", []),
    ],
)
def test_recall_is_by_words_of_keys_and_data(clock: FakeClock, query: str, keys: list[str]) -> None:
    """A key helps, a synonym does not."""
    memory = Memory(clock=clock)
    memory.remember("user:name", "Jakub", importance=0.9)
    memory.remember("order:42", {"status": "refund requested"}, importance=0.7)
    assert [match.key for match in memory.recall(query)] == keys


def test_diacritics_and_case_do_not_matter(clock: FakeClock) -> None:
    """``česky`` meets ``CESKY``."""
    memory = Memory(clock=clock)
    memory.remember("user:language", "CESKY")
    assert [match.key for match in memory.recall("česky")] == ["user:language"]


def test_the_order_is_in_a_context_of_30_estimated_tokens(clock: FakeClock) -> None:
    """Name and order, 21 tokens, 2 omitted."""
    memory = Memory(clock=clock)
    memory.remember("user:name", "Jakub", importance=0.9)
    memory.remember("user:language", "prefers answers in Czech", importance=0.8)
    memory.remember("chat:7", "talked about the weather in Prague for a while", importance=0.1)
    memory.remember(
        "order:42",
        "refund requested for order 42, waiting for the warehouse",
        importance=0.7,
    )
    context = memory.get_context(30, query="refund status")
    assert [entry.key for entry in context.entries] == ["user:name", "order:42"]
    assert (context.tokens, context.omitted) == (21, 2)
    assert context.left_out == ("user:language", "chat:7")
    assert context.text == (
        "user:name: Jakub\norder:42: refund requested for order 42, waiting for the warehouse"
    )
