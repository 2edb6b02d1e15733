"""What every store does, whatever it keeps the document in."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from sentinel_memory import JsonFileStore, MemoryStore, SQLiteStore, Store, StoreConflictError
from sentinel_memory.stores import Changes

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


def of_kind(kind: Callable[..., Any], folder: Path) -> Any:
    """A store of that kind; those on files share one file with all others of this folder."""
    if kind is MemoryStore:
        return MemoryStore()
    return kind(folder / "memory.file")


@pytest.fixture(params=[JsonFileStore, MemoryStore, SQLiteStore])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    return lambda: of_kind(request.param, tmp_path)


@pytest.fixture(params=[JsonFileStore, SQLiteStore])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """Makes stores on one document."""
    return lambda: of_kind(request.param, tmp_path)


def test_every_store_fits_the_protocol(make: Make) -> None:
    assert isinstance(make(), Store)


def test_load_returns_none_before_the_first_save(make: Make) -> None:
    assert make().load() is None


def test_a_saved_document_is_loaded_with_its_types_and_order(make: Make) -> None:
    store = make()
    store.save(FULL)
    loaded = store.load()
    assert loaded == FULL
    assert repr(loaded) == repr(FULL)


def test_the_last_save_is_loaded(make: Make) -> None:
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
def test_a_state_that_is_not_json_is_refused_and_the_former_document_stays(
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


@pytest.mark.parametrize("old", [JsonFileStore, MemoryStore, SQLiteStore])
@pytest.mark.parametrize("new", [JsonFileStore, MemoryStore, SQLiteStore])
def test_a_document_is_copied_to_another_store_in_one_line(
    old: Callable[..., Any], new: Callable[..., Any], tmp_path: Path
) -> None:
    source, target = of_kind(old, tmp_path / "old"), of_kind(new, tmp_path / "new")
    source.save(FULL)
    target.save(source.load())
    assert repr(target.load()) == repr(FULL)


# The optional members, of the stores that have them

ONE: dict[str, Any] = {"key": "a", "data": 1}
TWO: dict[str, Any] = {"key": "b", "data": 2}
REST: dict[str, Any] = {"version": 1, "later": [{}]}


def test_version_and_changed_show_whether_the_document_is_another_one(
    shared: Callable[[], Any],
) -> None:
    mine, other = shared(), shared()
    assert mine.version is None
    assert not mine.changed()
    mine.save(FULL)
    saved = mine.version
    assert saved is not None
    assert not mine.changed()
    assert other.changed()
    other.load()
    assert not other.changed()
    other.save(EMPTY)
    assert mine.changed()
    assert mine.version == saved
    mine.load()
    assert mine.version not in (None, saved)


def test_a_conflict_leaves_the_version_and_both_documents(shared: Callable[[], Any]) -> None:
    mine, other = shared(), shared()
    mine.save(EMPTY)
    other.load()
    other.save(FULL)
    before = mine.version
    for _ in range(2):
        with pytest.raises(StoreConflictError):
            mine.save(EMPTY)
        assert mine.version == before
        assert mine.changed()
    assert other.load() == FULL
    with pytest.raises(StoreConflictError, match="has not read it"):
        shared().save(EMPTY)


def test_a_load_and_then_a_save_overwrites_on_purpose(shared: Callable[[], Any]) -> None:
    mine, other = shared(), shared()
    mine.save(FULL)
    other.load()
    other.save(EMPTY)
    assert other.load() == EMPTY


def test_an_exclusive_block_loads_and_saves_and_keeps_what_it_saved(
    shared: Callable[[], Any],
) -> None:
    mine = shared()

    def change() -> None:
        with mine.exclusive():
            assert mine.load() is None
            mine.save(FULL)
            assert mine.load() == FULL
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change()
    assert shared().load() == FULL
    with mine.exclusive(), pytest.raises(RuntimeError), mine.exclusive():
        pass
    with mine.exclusive(), pytest.raises(RuntimeError), shared().exclusive():
        pass
    mine.save(EMPTY)
    assert shared().load() == EMPTY


def test_sweep_removes_no_stored_document(shared: Callable[[], Any]) -> None:
    mine = shared()
    mine.sweep()
    mine.save(FULL)
    mine.sweep()
    assert mine.load() == FULL


@pytest.fixture
def growing(tmp_path: Path) -> SQLiteStore:
    """A store that can save what changed."""
    return SQLiteStore(tmp_path / "memory.db")


def test_changes_go_to_the_end_in_their_order(growing: SQLiteStore) -> None:
    growing.save({"version": 1, "entries": [ONE, TWO, {"key": "c", "data": 3}]})
    growing.save_changes(Changes([{"key": "d", "data": 4}, {**ONE, "x": [1]}], ["b", "q"], REST))
    assert growing.load() == {
        **REST,
        "entries": [{"key": "c", "data": 3}, {"key": "d", "data": 4}, {**ONE, "x": [1]}],
    }


def test_changes_without_a_former_document_make_one(growing: SQLiteStore) -> None:
    growing.save_changes(Changes([TWO, ONE], [], REST))
    assert growing.load() == {**REST, "entries": [TWO, ONE]}


def test_every_entry_of_a_removed_key_goes_and_entries_without_a_key_stay(
    growing: SQLiteStore,
) -> None:
    growing.save({"version": 1, "entries": [ONE, "?", {**ONE, "data": 5}, None]})
    growing.save_changes(Changes([TWO], ["a"], REST))
    assert growing.load() == {**REST, "entries": ["?", None, TWO]}


@pytest.mark.parametrize("key", ["\0", "\ud800", '"', "\u2028", "\U0001f600", "\ud83d\ude00", "#1"])
def test_any_key_is_found_again(growing: SQLiteStore, key: str) -> None:
    growing.save({"version": 1, "entries": [{"key": key}, ONE]})
    growing.save_changes(Changes([], [key], REST))
    assert growing.load() == {**REST, "entries": [ONE]}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (([{"data": 1}], [], REST), TypeError),
        (([{"key": 1}], [], REST), TypeError),
        ((["a"], [], REST), TypeError),
        (([{"key": "n", "data": math.nan}], [], REST), ValueError),
        (([], [1], REST), TypeError),
        (([], [], []), TypeError),
        (([], [], {}), ValueError),
        (([], [], {**REST, "entries": []}), ValueError),
        (([], [], {**REST, "later": {1, 2}}), TypeError),
    ],
)
def test_invalid_changes_are_refused_and_the_document_stays(
    growing: SQLiteStore, changes: Any, error: type[Exception]
) -> None:
    growing.save(FULL)
    before = growing.version
    with pytest.raises(error):
        growing.save_changes(Changes(*changes))
    assert growing.load() == FULL
    assert growing.version == before


def test_changes_of_another_document_are_a_conflict(growing: SQLiteStore) -> None:
    other = SQLiteStore(growing.path)
    growing.save(FULL)
    other.load()
    other.save(EMPTY)
    before = growing.version
    with pytest.raises(StoreConflictError):
        growing.save_changes(Changes([ONE], [], REST))
    assert growing.version == before
    assert other.load() == EMPTY
