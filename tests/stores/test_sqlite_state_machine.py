"""Whatever is saved in whatever way, a load gives what a plain list would have."""

from __future__ import annotations

import copy
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sentinel_memory import SQLiteStore, StoreConflictError
from sentinel_memory.stores import Changes

KEYS = st.sampled_from(["a", "b", "c:1", "\0", "ž", "\u2028", '"', ""])
DATA = st.one_of(st.none(), st.text(max_size=6), st.integers(0, 600).map(lambda n: "long " * n))
ENTRIES = st.fixed_dictionaries({"key": KEYS, "data": DATA})
REST = st.fixed_dictionaries(
    {"version": st.just(1)},
    optional={"working": st.text(max_size=4), "later": st.lists(DATA, max_size=2)},
)
ANY = st.one_of(ENTRIES, st.just("?"), st.just({"data": 1}))


def applied(state: dict[str, Any] | None, changes: Changes) -> dict[str, Any]:
    """The document after the changes, the plain way."""
    replaced = {entry["key"]: entry for entry in changes.entries}
    kept = [
        entry
        for entry in (state or {"entries": []})["entries"]
        if not isinstance(entry, dict) or entry.get("key") not in {*replaced, *changes.gone}
    ]
    return {**changes.rest, "entries": [*kept, *changes.entries]}


class Stores(RuleBasedStateMachine):
    """Two stores on one document, and one on another document of the same file."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        path = Path(self.folder, "memory.db")
        self.stores = [SQLiteStore(path), SQLiteStore(path)]
        self.bystander = SQLiteStore(path, "other")
        self.bystander.save({"version": 1, "entries": ["mine"]})
        self.state: dict[str, Any] | None = None
        self.saves = 0  # of the document
        self.seen = [0, 0]  # the save that each store has seen last

    def saved(self, which: int, state: dict[str, Any], save: Any) -> None:
        if self.seen[which] != self.saves:
            before = self.stores[which].version
            with pytest.raises(StoreConflictError):
                save()
            assert self.stores[which].version == before
            return
        save()
        self.state = copy.deepcopy(state)
        self.saves += 1
        self.seen[which] = self.saves

    @rule(which=st.integers(0, 1), rest=REST, entries=st.lists(ANY, max_size=6))
    def save(self, which: int, rest: dict[str, Any], entries: list[Any]) -> None:
        state = {**rest, "entries": entries}
        self.saved(which, state, lambda: self.stores[which].save(state))

    @rule(
        which=st.integers(0, 1),
        rest=REST,
        entries=st.lists(ENTRIES, max_size=4, unique_by=lambda entry: entry["key"]),
        gone=st.lists(KEYS, max_size=3),
        twice=st.booleans(),
    )
    def save_changes(
        self, which: int, rest: dict[str, Any], entries: list[Any], gone: list[str], twice: bool
    ) -> None:
        changes = Changes(entries, gone, rest)
        for _ in range(1 + twice):
            state = applied(self.state, changes)
            self.saved(which, state, lambda: self.stores[which].save_changes(changes))

    @rule(which=st.integers(0, 1))
    def load(self, which: int) -> None:
        assert self.stores[which].load() == self.state
        self.seen[which] = self.saves

    @rule(which=st.integers(0, 1))
    def close(self, which: int) -> None:
        self.stores[which].close()

    @rule(which=st.integers(0, 1))
    def sweep(self, which: int) -> None:
        self.stores[which].sweep()

    @rule(which=st.integers(0, 1), entry=ENTRIES)
    def exclusive(self, which: int, entry: dict[str, Any]) -> None:
        store = self.stores[which]
        with store.exclusive():
            assert store.load() == self.state
            self.seen[which] = self.saves
            changes = Changes([entry], [], {"version": 1})
            state = applied(self.state, changes)
            self.saved(which, state, lambda: store.save_changes(changes))
            assert store.load() == state

    @invariant()
    def each_store_knows_what_it_has_seen(self) -> None:
        for which, store in enumerate(self.stores):
            assert store.changed() == (self.seen[which] != self.saves)
            assert not store.erasure_pending
        assert not self.bystander.changed()

    def teardown(self) -> None:
        assert SQLiteStore(self.stores[0].path).load() == self.state
        assert self.bystander.load() == {"version": 1, "entries": ["mine"]}
        for store in (*self.stores, self.bystander):
            store.close()
        shutil.rmtree(self.folder)


TestStores = Stores.TestCase
TestStores.settings = settings(
    max_examples=40,
    stateful_step_count=20,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
