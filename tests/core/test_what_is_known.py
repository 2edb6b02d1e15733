"""What is known about data: pins, feedback, repeats, tags, limits per kind, filters, and why."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_memory import Entry, Memory, MemoryStore, WordIndex
from sentinel_memory.agent import Audit
from support.clocks import FakeClock

DAY = 86_400


def keys(entries: Any) -> list[str]:
    return [entry.key for entry in entries]


@pytest.mark.parametrize(
    ("importance", "feedback", "worth"),
    [
        (0.5, 1, 0.55),
        (0.5, 3, 0.6),
        (0.5, 7, 0.65),
        (0.5, -3, 0.4),
        (0.9, 7, 1.0),
        (0.1, -7, 0.0),
        (0.0, 7, 0.15),
    ],
)
def test_worth_is_the_importance_shifted_by_feedback(
    importance: float, feedback: int, worth: float, clock: FakeClock
) -> None:
    memory = Memory(clock=clock)
    memory.remember("k", "word", importance=importance)
    for _ in range(abs(feedback)):
        (memory.reinforce if feedback > 0 else memory.demote)("k")
    entry = memory.entry("k")
    assert entry is not None
    assert entry.feedback == feedback
    assert entry.worth == pytest.approx(worth, abs=1e-12)
    assert entry.importance == importance


def test_a_day_old_entry_that_helped_twice_beats_a_new_one(clock: FakeClock) -> None:
    memory = Memory(limit=1, clock=clock)
    memory.remember("old", 1, importance=0.55)
    memory.reinforce("old")
    memory.reinforce("old")
    clock.tick(DAY)
    assert not memory.remember("new", 1, importance=0.5).kept
    row = memory.get_context(100).explain()[0]
    assert round(row.retention, 6) == 0.629248


def test_a_match_fades_to_half_of_its_score_and_a_reinforcement_brings_it_back(
    clock: FakeClock,
) -> None:
    memory = Memory(clock=clock)
    memory.remember("k", "tea", importance=0.5)
    clock.tick(90 * DAY)
    assert memory.recall("tea", half_life=90 * DAY)[0].score == pytest.approx(0.5625)
    memory.reinforce("k")
    assert memory.recall("tea", half_life=90 * DAY)[0].score == pytest.approx(0.775)
    old = Memory(half_life=30 * DAY, clock=clock)
    old.remember("k", "tea", importance=1)
    clock.tick(365 * DAY)
    assert round(old.recall("tea")[0].score, 4) == 0.5001


def test_a_demoted_entry_scores_less(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.remember("k", "tea", importance=0.5)
    for _ in range(3):
        memory.demote("k")
    clock.tick(2 * DAY)
    assert memory.recall("tea")[0].score == pytest.approx(0.7)


def test_feedback_saturates_and_an_opposite_call_has_an_effect_at_once(clock: FakeClock) -> None:
    store = MemoryStore()
    memory = Memory(store=store, autosave=True, clock=clock)
    memory.remember("k", 1)
    for _ in range(100):
        memory.demote("k")
    saved = store.load()
    clock.tick(5)
    memory.demote("k")
    assert store.load() == saved
    for _ in range(7):
        memory.reinforce("k")
    entry = memory.entry("k")
    assert entry is not None
    assert (entry.feedback, entry.used_at) == (0, clock.now)
    assert memory.reinforce("nothing") is memory.demote("nothing") is None


def test_a_kind_has_a_limit_of_its_own(clock: FakeClock) -> None:
    memory = Memory(limit=5, limits={"chat": 3}, clock=clock)
    memory.remember("user:name", "Jakub", importance=0.9)
    memory.remember("user:allergy", "peanuts", importance=1.0)
    for number in range(1, 7):
        clock.tick(60)
        memory.remember(f"chat:{number}", number, importance=0.1)
    expected = ["chat:6", "chat:5", "chat:4", "user:allergy", "user:name"]
    assert keys(memory.get_recent()) == expected
    assert memory.stats().compactions == 3
    assert memory.stats().kinds == {"user": 2, "chat": 3}
    assert memory.to_state()["limits"] == {"chat": 3}
    again = Memory(clock=clock)
    again.restore(memory.to_state())
    assert not again.remember("chat:7", 7, importance=0.0).kept


def test_over_the_limit_of_a_kind_expired_entries_go_first(clock: FakeClock) -> None:
    memory = Memory(limits={"chat": 5}, clock=clock)
    for number in range(5):
        memory.remember(f"chat:{number}", number, ttl=5 if number < 2 else None)
    clock.tick(5)
    done = memory.remember("chat:5", 5).compaction
    assert done is not None
    assert (keys(done.expired), keys(done.evicted)) == (["chat:0", "chat:1"], [])


def test_a_pinned_entry_is_never_evicted_and_first_in_every_context(clock: FakeClock) -> None:
    memory = Memory(limit=3, clock=clock)
    memory.remember("user:allergy", "peanuts", importance=0.0, pinned=True)
    for number in range(9):
        clock.tick(DAY)
        memory.remember(f"chat:{number}", "the satay", importance=1.0)
    assert "user:allergy" in memory
    context = memory.get_context(6, query="satay")
    assert keys(context.entries) == ["user:allergy"]
    assert [row.why for row in memory.get_context(100, query="satay").explain()] == [
        "pinned",
        "matches",
        "matches",
    ]
    memory.remember("user:allergy", "nuts")
    entry = memory.entry("user:allergy")
    assert entry is not None
    assert entry.pinned
    memory.remember("soon", 1, pinned=True, ttl=1)
    clock.tick(1)
    assert "soon" not in memory


def test_when_pins_fill_the_limit_a_pin_is_refused_and_other_entries_are_not_kept(
    clock: FakeClock,
) -> None:
    memory = Memory(limit=2, limits={"a": 1}, clock=clock)
    memory.remember("a:1", 1, pinned=True)
    with pytest.raises(ValueError, match="all 1 places of the kind 'a' are pinned"):
        memory.remember("a:2", 1, pinned=True)
    memory.remember("b", 1, pinned=True)
    before = memory.to_state()
    with pytest.raises(ValueError, match="all 2 places of the limit are pinned"):
        memory.remember("c", 1, pinned=True)
    assert memory.to_state() == before
    assert not memory.remember("c", 1, importance=1).kept
    memory.remember("b", 2, pinned=True)
    with pytest.raises(TypeError, match="pinned must be a bool"):
        memory.remember("b", 2, pinned=1)  # type: ignore[arg-type]
    memory.update("b", pinned=False)
    assert memory.remember("c", 1, importance=1).kept


def test_a_pinned_key_is_remembered_again_also_where_pins_are_more_than_the_places(
    clock: FakeClock,
) -> None:
    """As after a load with a smaller limit; it is no further pin."""
    memory = Memory(limit=3, clock=clock)
    for key in ("a", "b", "c"):
        memory.remember(key, 1, pinned=True)
    smaller = Memory(limit=2, limits={"": 1}, clock=clock)
    smaller.restore(memory.to_state())
    assert smaller.remember("a", 2).entry.pinned
    assert smaller.remember("b", 2, pinned=True).kept
    with pytest.raises(ValueError, match="cannot be pinned"):
        smaller.remember("d", 2, pinned=True)
    assert {entry.key: entry.data for entry in smaller} == {"a": 2, "b": 2, "c": 1}


def test_equal_data_counts_repeats_and_keeps_feedback_and_other_data_resets_them(
    clock: FakeClock,
) -> None:
    memory = Memory(clock=clock)
    memory.remember("k", {"a": 1, "b": 2}, importance=0.7, meta={"tags": ["x"]})
    memory.reinforce("k")
    clock.tick(5)
    entry = memory.remember("k", {"b": 2, "a": 1}).entry
    assert (entry.repeats, entry.feedback, entry.meta) == (2, 1, {"tags": ["x"]})
    assert entry.updated_at == clock.now
    for other in ({"a": 1.0, "b": 2}, {"a": True, "b": 2}):
        entry = memory.remember("k", other).entry
        assert (entry.repeats, entry.feedback, entry.meta, entry.used_at) == (1, 0, {}, None)
        assert entry.importance == 0.7
    assert memory.remember("k", 1, meta={"by": "me"}).entry.meta == {"by": "me"}
    updated = memory.update("k", meta={})
    assert updated is not None
    assert updated.meta == {}


def test_update_changes_only_the_given_fields(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.remember("a", 1, importance=0.4, ttl=60)
    memory.remember("b", 1)
    clock.tick(10)
    entry = memory.update("a", importance=0.8)
    assert entry is not None
    assert (entry.importance, entry.expires_at) == (0.8, clock.now + 50)
    assert entry.updated_at == clock.now - 10
    entry = memory.update("a", ttl=5)
    assert entry is not None
    assert entry.expires_at == clock.now + 5
    entry = memory.update("a", ttl=None)
    assert entry is not None
    assert entry.expires_at is None
    assert keys(memory) == ["a", "b"]
    assert memory.update("nothing", importance=1) is None


@pytest.mark.parametrize("given", [["note:999999999999999"], ["note:1000000000000000", "note:9"]])
def test_add_never_overwrites_whatever_numbers_keys_have(
    given: list[str], clock: FakeClock
) -> None:
    memory = Memory(clock=clock)
    for key in given:
        memory.remember(key, "given")
    memory.restore({**memory.to_state(), "numbers": {"note": 999_999_999_999_999}})
    added = [memory.add(data).entry for data in "abc"]
    assert len({entry.key for entry in added} | set(given)) == 3 + len(given)
    assert len(memory) == 3 + len(given)


def test_an_add_that_is_refused_leaves_no_trace(clock: FakeClock) -> None:
    memory = Memory(limit=1, clock=clock)
    memory.remember("a", 1, pinned=True)
    before = memory.to_state()
    with pytest.raises(ValueError, match="cannot be pinned"):
        memory.add("b", pinned=True)
    assert memory.to_state() == before


def test_added_numbers_are_never_used_again(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.remember("note:16", 1)
    assert memory.add("a").entry.key == "note:17"
    memory.forget("note:17")
    memory.remember("note:30", 1)
    memory.forget("note:30")
    assert memory.add("b").entry.key == "note:31"
    again = Memory(clock=clock)
    again.restore(memory.to_state())
    assert again.add("c").entry.key == "note:32"
    assert again.add("d", kind="task").entry.key == "task:1"
    for kind in ("", "a:b"):
        with pytest.raises(ValueError, match="kind must not"):
            memory.add("x", kind=kind)


def test_a_number_that_had_to_go_at_a_load_is_not_used_again(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    for key, importance in (("note:9", 0.0), ("k", 1.0)):
        memory.remember(key, 1, importance=importance)
    smaller = Memory(limit=1, clock=clock)
    smaller.restore({**memory.to_state(), "numbers": {"note": 1}})
    assert keys(smaller) == ["k"]
    assert smaller.add("b").entry.key == "note:10"


def test_where_gets_matches_best_first_until_enough_have_passed(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    for number in range(100):
        clock.tick(1)
        memory.remember(f"k{number}", "tea", importance=number / 100)
    asked: list[str] = []

    def tenth(match: Any) -> bool:
        asked.append(match.key)
        memory.remember("other", 1)  # allowed: no lock is held
        return int(match.key[1:]) % 10 == 0

    assert keys(memory.recall("tea", where=tenth)) == ["k90", "k80", "k70", "k60", "k50"]
    assert asked == [f"k{number}" for number in range(99, 49, -1)]
    context = memory.get_context(10**6, where=lambda entry: entry.key in ("k1", "k2"))
    assert (keys(context.entries), context.omitted) == (["k1", "k2"], 0)
    assert len(context.explain()) == 2
    assert keys(memory.get_recent(2, where=lambda entry: entry.key < "k2")) == ["k19", "k18"]
    with pytest.raises(ZeroDivisionError):
        memory.recall("tea", where=lambda match: 1 / 0)


def test_prune_forgets_the_selected_entries_in_one_save(clock: FakeClock) -> None:
    saves: list[int] = []

    class Counting(MemoryStore):
        def save(self, state: dict[str, Any], /) -> None:
            saves.append(len(state["entries"]))
            super().save(state)

    memory = Memory(store=Counting(), autosave=True, clock=clock)
    with memory.batch():
        for key in ("anna:a", "anna:b", "ben:a"):
            memory.remember(key, 1)
    gone = memory.prune(lambda entry: entry.kind == "anna")
    assert keys(gone) == ["anna:a", "anna:b"]
    assert saves == [3, 1]
    assert memory.put_back(gone) == gone
    assert len(memory) == 3
    memory.remember("anna:a", 2)
    assert memory.put_back(gone) == ()
    with pytest.raises(TypeError, match="put_back takes entries"):
        memory.put_back(["anna:a"])  # type: ignore[list-item]


def test_an_explanation_marks_the_entries_taken(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.remember("a", "peanuts", importance=0.9)
    memory.remember("b", "a long story about the weather", importance=0.1)
    context = memory.get_context(5, query="weather")
    rows = context.explain()
    assert [(row.entry.key, row.taken) for row in rows] == [("b", False), ("a", True)]
    assert [row.entry.key for row in rows if row.taken] == keys(context.entries)
    assert str(rows).splitlines()[0].startswith("taken")


def test_longer_data_than_allowed_is_refused(clock: FakeClock) -> None:
    memory = Memory(data_chars=6, clock=clock)
    assert memory.remember("k", "four").kept
    with pytest.raises(ValueError, match="7 characters as JSON, more than data_chars=6"):
        memory.remember("k", "fives")
    assert memory.get("k") == "four"


def test_default_fields_are_not_stored_and_wrong_ones_reject_the_entry(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    plain = memory.remember("k", 1).entry.to_state()
    assert set(plain) == {"key", "data", "importance", "createdAt", "updatedAt", "expiresAt"}
    known = {"pinned": True, "meta": {"a": 1}, "feedback": -2, "usedAt": 5, "repeats": 3}
    memory.restore({"version": 1, "entries": [{**plain, **known}]})
    assert memory.to_state()["entries"] == [{**plain, **known}]
    wrong: dict[str, list[Any]] = {
        "feedback": [99, 1.5, "1", True],
        "pinned": [1, "yes"],
        "repeats": [0, 1.5],
        "meta": [[], "x"],
        "usedAt": ["now"],
    }
    for name, values in wrong.items():
        for value in values:
            result = memory.restore({"version": 1, "entries": [{**plain, name: value}]})
            assert (result.loaded, result.dropped) == (0, 1), (name, value)


class Refusing(WordIndex):
    """An index that refuses one key."""

    def add(self, entry: Entry, /) -> None:
        if entry.key == "refused":
            raise LookupError(entry.key)
        super().add(entry)


def test_put_back_of_an_entry_that_the_index_refuses_changes_nothing(clock: FakeClock) -> None:
    source = Memory(clock=clock)
    source.remember("short", "tea", ttl=1)
    entries = [source.remember(key, f"{key} tea").entry for key in ("one", "two", "refused")]
    store = MemoryStore()
    memory = Memory(limit=2, index=Refusing(), store=store, autosave=True, clock=clock)
    memory.remember("one", "expired soon", ttl=1)
    memory.remember("own", "tea")
    clock.tick(2)
    before, saved = memory.to_state(), store.load()
    with pytest.raises(LookupError, match="refused"):
        memory.put_back(entries)
    assert memory.to_state() == before
    assert store.load() == saved
    assert keys(memory.recall("tea")) == ["own"]
    assert memory.stats().stored == 2


def test_put_back_over_an_expired_entry_reports_that_it_left(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    audit = Audit(memory)
    evicted = Memory(clock=clock).remember("note:1", "kept elsewhere").entry
    memory.remember("note:1", "short", ttl=1)
    clock.tick(2)
    assert memory.put_back([evicted]) == (evicted,)
    assert audit.tally().removed == {("expired", "note"): 1}
