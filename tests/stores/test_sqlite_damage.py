"""A database that cannot be trusted is never taken for an empty memory, and never touched."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import (
    DamagedStoreError,
    JsonFileStore,
    Memory,
    SentinelMemoryError,
    SQLiteStore,
)

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "entries": [{"key": f"k:{number}", "data": "text " * number} for number in range(40)],
    "working": {"data": {}, "updatedAt": None},
}
ATTACKS = Path(__file__).parents[2] / "benchmarks" / "attack_sqlite.py"


def check_damaged(path: Path, reason: str) -> None:
    """Loading and saving are errors that name the file, and leave it as it is."""
    data = path.read_bytes()
    store = SQLiteStore(path)
    for _ in range(2):
        with pytest.raises(DamagedStoreError) as caught:
            store.load()
        assert reason in caught.value.reason
        assert caught.value.path == str(path)
        with pytest.raises(SentinelMemoryError):
            store.save(DOCUMENT)
    with pytest.raises(SentinelMemoryError):
        SQLiteStore(path).save(DOCUMENT)
    with pytest.raises(DamagedStoreError):
        Memory(store=SQLiteStore(path))
    store.close()
    assert path.read_bytes() == data
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    store = SQLiteStore(tmp_path / "memory.db")
    store.save(DOCUMENT)
    store.close()
    return Path(store.path)


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE notes (text)")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b" ", "it is cut short: it has 1 bytes"),
        (b"SQLite format 3\0", "it is cut short: it has 16 bytes"),
        (b"hello " * 1_000, "file is not a database"),
        (bytes(4_096), "file is not a database"),
    ],
)
def test_a_file_that_is_not_a_database_is_damaged(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "memory.db").write_bytes(data)
    check_damaged(tmp_path / "memory.db", reason)


def test_a_json_file_is_damaged(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "memory.db")
    store.save(DOCUMENT)
    (tmp_path / ".memory.db.lock").unlink()
    check_damaged(tmp_path / "memory.db", "file is not a database")


def test_a_database_of_another_program_is_damaged(tmp_path: Path) -> None:
    foreign(tmp_path / "memory.db")
    check_damaged(tmp_path / "memory.db", "not one of memories")


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE entries SET entry = 'nonsense' WHERE position = 7", "a row of an entry"),
        ("UPDATE entries SET entry = 7 WHERE position = 7", "a row of an entry"),
        ("UPDATE entries SET key = NULL WHERE position = 7", "a row of an entry"),
        ("DELETE FROM entries WHERE position = 7", "the number of its rows"),
        (
            "INSERT INTO entries SELECT 99, memory, key, sum, zeros, entry FROM entries LIMIT 1",
            "num",
        ),
        ("DELETE FROM rests", "the number of its rows"),
        ("UPDATE rests SET rest = '{}'", "the row of what is not entries"),
        ("UPDATE memories SET name = 'x'", "a row of a memory"),
        ("UPDATE memories SET token = 'x'", "a row of a memory"),
        ("UPDATE memories SET entries = 'x'", "a row of a memory"),
        ("UPDATE memories SET id = 7", "a row of a memory"),
        ("DROP TABLE entries", "its tables"),
        ("ALTER TABLE memories RENAME TO others", "its tables"),
        ("PRAGMA user_version = 2", "its format is 2"),
        ("PRAGMA application_id = 2", "not one of memories"),
    ],
)
def test_altered_rows_and_tables_are_damaged(saved: Path, statement: str, reason: str) -> None:
    with closing(sqlite3.connect(saved)) as db, db:
        db.execute(statement)
    check_damaged(saved, reason)


def test_a_file_cut_at_any_page_is_damaged(saved: Path) -> None:
    data = saved.read_bytes()
    for length in range(0, len(data), 512):
        saved.write_bytes(data[:length])
        check_damaged(saved, "")


def test_damage_after_a_load_is_not_overwritten_either(saved: Path) -> None:
    store = SQLiteStore(saved)
    store.load()
    with closing(sqlite3.connect(saved)) as db, db:
        db.execute("UPDATE entries SET entry = '{}' WHERE position = 7")
    with pytest.raises(DamagedStoreError):
        store.load()
    with pytest.raises(SentinelMemoryError):
        store.save(DOCUMENT)


def test_a_folder_in_the_place_of_the_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "memory.db").mkdir()
    with pytest.raises(IsADirectoryError):
        SQLiteStore(tmp_path / "memory.db").load()


@pytest.mark.skipif(not ATTACKS.exists() or not hasattr(os, "fork"), reason="no benchmarks here")
@pytest.mark.parametrize("attack", ["kills", "damages"])
def test_a_fiftieth_of_the_attacks_does_no_harm(attack: str) -> None:
    spec = importlib.util.spec_from_file_location("attack_sqlite", ATTACKS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert getattr(module, attack)(1 / 50).startswith({"kills": "6 ", "damages": "20 "}[attack])
