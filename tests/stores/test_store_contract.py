"""What every store does, whatever it keeps the document in."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from sentinel_memory import JsonFileStore, MemoryStore, Store

Make: TypeAlias = Callable[[], Store]

EMPTY: dict[str, Any] = {"version": 1, "entries": []}
FULL: dict[str, Any] = {
    "version": 1,
    "entries": [
        {
            "key": "user:name",
            "data": {"text": 'Žofie "私" \n\u2028\U0001f600', "n": [1, -2.5, True, None, 10**30]},
            "importance": 0.1,
            "createdAt": 1_792_310_400_000,
            "updatedAt": 1_792_310_400_001,
            "expiresAt": None,
        }
    ],
    "working": {"data": {}, "updatedAt": None},
    "later": {"z": [[], {}], "a": ""},
}


@pytest.fixture(params=[JsonFileStore, MemoryStore])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def make_store() -> Store:
        if request.param is MemoryStore:
            return MemoryStore()
        return JsonFileStore(tmp_path / "memory.json")

    return make_store


def test_it_is_a_store(make: Make) -> None:
    assert isinstance(make(), Store)


def test_nothing_is_there_before_the_first_save(make: Make) -> None:
    assert make().load() is None


def test_what_was_saved_is_loaded_with_its_types_and_order(make: Make) -> None:
    store = make()
    store.save(FULL)
    loaded = store.load()
    assert loaded == FULL
    assert repr(loaded) == repr(FULL)


def test_the_last_save_wins(make: Make) -> None:
    store = make()
    store.save(FULL)
    store.save(EMPTY)
    assert store.load() == EMPTY
    store.save(FULL)
    assert store.load() == FULL


def test_the_document_is_copied_in_and_out(make: Make) -> None:
    store = make()
    state = copy.deepcopy(FULL)
    store.save(state)
    state["entries"].clear()
    first = store.load()
    assert first == FULL
    first["entries"].clear()
    assert store.load() == FULL


def test_a_lone_surrogate_comes_back_and_other_text_with_it(make: Make) -> None:
    store = make()
    state = {"version": 1, "entries": ["\ud800", "\\\udfff\\", "č\ud83d", {"\udc00": "私"}]}
    store.save(state)
    assert store.load() == state


@pytest.mark.parametrize("levels", [198, 199])
def test_a_document_of_200_levels_comes_back_and_one_more_is_refused(
    make: Make, levels: int
) -> None:
    """The document is level 1 and its list of entries level 2."""
    store = make()
    deep: Any = []
    for _ in range(levels - 1):
        deep = [deep]
    state = {"version": 1, "entries": [deep]}
    if levels == 198:
        store.save(state)
        assert store.load() == state
    else:
        with pytest.raises(ValueError, match="more than 200 levels"):
            store.save(state)
        assert store.load() is None


CIRCLE: dict[str, Any] = {"version": 1, "entries": []}
CIRCLE["entries"].append(CIRCLE)


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ([], TypeError),
        ("{}", TypeError),
        (None, TypeError),
        ({**EMPTY, "extra": {1, 2}}, TypeError),
        ({**EMPTY, "extra": object()}, TypeError),
        ({**EMPTY, "extra": b"bytes"}, TypeError),
        ({**EMPTY, "extra": {("a", "b"): 1}}, TypeError),
        ({**EMPTY, "extra": math.nan}, ValueError),
        ({**EMPTY, "extra": [math.inf]}, ValueError),
        ({**EMPTY, "extra": 10**5000}, ValueError),
        (CIRCLE, ValueError),
    ],
)
def test_what_json_cannot_hold_is_refused_and_the_former_document_stays(
    make: Make, state: Any, error: type[Exception]
) -> None:
    store = make()
    store.save(FULL)
    with pytest.raises(error):
        store.save(state)
    assert store.load() == FULL


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]
)
def test_a_copy_or_pickle_of_a_store_loads_the_same_document(
    make: Make, duplicate: Callable[[Store], Store]
) -> None:
    store = make()
    store.save(FULL)
    assert duplicate(store).load() == FULL


def test_a_memory_store_begins_with_a_copy_of_the_state_it_is_given() -> None:
    state = copy.deepcopy(FULL)
    store = MemoryStore(state)
    state["entries"].clear()
    assert store.load() == FULL
