"""A SQLite file of memories: names, other writers, files that vanish, forks, and what it leaves."""

from __future__ import annotations

import gc
import linecache
import os
import random
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import (
    IgnoredValueWarning,
    JsonFileStore,
    SQLiteStore,
    StoreConflictError,
)
from sentinel_memory.stores import Changes, open_store

REST: dict[str, Any] = {"version": 1}
FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def document(*data: Any) -> dict[str, Any]:
    entries = [{"key": f"k:{number}", "data": value} for number, value in enumerate(data)]
    return {"version": 1, "entries": entries}


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    return SQLiteStore(tmp_path / "memory.db")


def in_child(action: Callable[[], object]) -> None:
    """Run it in a forked child; an ``AssertionError`` unless it ends well."""
    pid = os.fork()
    if not pid:
        try:
            action()
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def other_process(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Another interpreter that runs ``code``; it prints a line when it is ready."""
    prelude = "import sys\nfrom sentinel_memory import SQLiteStore\n"
    return subprocess.Popen(
        [sys.executable, "-c", prelude + code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_reading_calls_make_no_file(store: SQLiteStore) -> None:
    assert store.load() is None
    assert not store.changed()
    store.sweep()
    assert not Path(store.path).exists()


def test_many_memories_are_in_one_file_by_name(store: SQLiteStore) -> None:
    names = ["", "a", "A", "\0", "a\0b", "\ud800", "x" * 5_000, "'\""]
    stores = [SQLiteStore(store.path, name) for name in names]
    for number, one in enumerate(stores):
        assert one.load() is None
        one.save(document(number))
        one.save_changes(Changes([{"key": "new", "data": number}], ["k:0"], REST))
    for number, one in enumerate(stores):
        assert one.load() == {**REST, "entries": [{"key": "new", "data": number}]}
        assert not one.changed()


@pytest.mark.parametrize("name", [None, 1, b"a"])
def test_a_name_is_a_str(tmp_path: Path, name: Any) -> None:
    with pytest.raises(TypeError, match="name must be a str"):
        SQLiteStore(tmp_path / "memory.db", name)


def test_a_database_and_its_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "a" / "b" / "memory.db")
    store.save(document(1))
    modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "a" / "b").iterdir()}
    assert modes == {"memory.db": 0o600, "memory.db-wal": 0o600, "memory.db-shm": 0o600}
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


def test_one_file_is_left_when_nobody_has_it_open(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "memory.db")
    store.save(document(1))
    del store
    gc.collect()
    assert [file.name for file in tmp_path.iterdir()] == ["memory.db"]


def test_a_symbolic_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "memory.db")
    store = SQLiteStore(tmp_path / "link.db")
    store.save(document(1))
    assert (tmp_path / "link.db").is_symlink()
    assert SQLiteStore(tmp_path / "real" / "memory.db").load() == document(1)
    assert store.path == str(tmp_path / "link.db")


@pytest.mark.parametrize("name", ["a b#?%.db", "ž\u2028.db", "%41.db", "file:x.db"])
def test_any_file_name_works(tmp_path: Path, name: str) -> None:
    SQLiteStore(tmp_path / name).save(document(1))
    assert SQLiteStore(tmp_path / name).load() == document(1)
    assert (tmp_path / name).exists()


def vanish(store: SQLiteStore) -> None:
    for ending in ("", "-wal", "-shm"):
        Path(store.path + ending).unlink(missing_ok=True)


def erase(store: SQLiteStore) -> None:
    db = sqlite3.connect(store.path)
    with db:
        db.execute("DELETE FROM memories")
    assert db.execute("SELECT count(*) FROM entries").fetchone() == (0,)
    db.close()


def replace(store: SQLiteStore) -> None:
    vanish(store)
    SQLiteStore(store.path).save(document("theirs"))


@pytest.mark.parametrize("what", [vanish, erase, replace])
def test_a_document_that_vanished_is_a_conflict_and_does_not_come_back(
    store: SQLiteStore, what: Callable[[SQLiteStore], None]
) -> None:
    store.save(document(1))
    what(store)
    there = SQLiteStore(store.path).load()
    assert there == (document("theirs") if what is replace else None)
    assert store.changed()
    for _ in range(2):
        with pytest.raises(StoreConflictError):
            store.save(document(2))
        with pytest.raises(StoreConflictError):
            store.save_changes(Changes([], [], REST))
    assert SQLiteStore(store.path).load() == there
    assert store.load() == there
    store.save(document(3))
    assert SQLiteStore(store.path).load() == document(3)


def test_after_a_load_of_a_vanished_file_a_save_writes_a_new_one(
    store: SQLiteStore,
) -> None:
    store.save(document(1))
    vanish(store)
    assert store.load() is None
    store.save(document(2))
    assert SQLiteStore(store.path).load() == document(2)


def test_a_token_is_never_used_again(store: SQLiteStore) -> None:
    """The document that is deleted and made again, equal in every byte, is another one."""
    store.save(document(1))
    before = store.version
    vanish(store)
    other = SQLiteStore(store.path)
    other.save(document(1))
    assert store.changed()
    assert other.version != before
    with pytest.raises(StoreConflictError):
        store.save(document(2))


def test_a_busy_file_is_waited_for_and_then_named(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "memory.db", timeout=0.05)
    store.save(document(1))
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TimeoutError, match=r"memory\.db"):
        store.save(document(2))
    with pytest.raises(TimeoutError, match=r"memory\.db"), store.exclusive():
        pass
    assert store.load() == document(1)
    other.execute("ROLLBACK")
    store.save(document(2))
    assert store.load() == document(2)
    other.close()


@pytest.mark.parametrize("timeout", [-1, float("nan"), "1", True])
def test_an_invalid_timeout_is_ignored_with_a_warning(tmp_path: Path, timeout: Any) -> None:
    with pytest.warns(IgnoredValueWarning, match="timeout"):
        store = SQLiteStore(tmp_path / "memory.db", timeout=timeout)
    store.save(document(1))


@pytest.mark.parametrize("timeout", [None, 0, 10**400, timedelta(seconds=1)])
def test_every_valid_timeout_is_accepted(tmp_path: Path, timeout: Any) -> None:
    SQLiteStore(tmp_path / "memory.db", timeout=timeout).save(document(1))


def test_threads_of_one_store_wait_for_an_exclusive_block(store: SQLiteStore) -> None:
    store.save(document(0))

    def add() -> None:
        for _ in range(10):
            with store.exclusive():
                state = store.load()
                assert state is not None
                store.save(document(state["entries"][0]["data"] + 1))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.load() == document(40)


def test_processes_take_turns(store: SQLiteStore) -> None:
    store.save(document(0))
    code = """
store = SQLiteStore(sys.argv[1])
for _ in range(25):
    with store.exclusive():
        state = store.load()
        state["entries"][0]["data"] += 1
        store.save(state)
"""
    workers = [other_process(code, store.path) for _ in range(4)]
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0
    assert store.load() == document(100)


def test_a_block_that_ends_in_another_thread_is_over(store: SQLiteStore) -> None:
    block = store.exclusive()
    block.__enter__()
    store.save(document(1))
    thread = threading.Thread(target=block.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    SQLiteStore(store.path, "other", timeout=0).save(document(2))
    with store.exclusive():
        assert store.load() == document(1)


def test_a_block_without_references_is_over(store: SQLiteStore) -> None:
    block = store.exclusive()
    block.__enter__()
    del block
    store.save(document(1))
    SQLiteStore(store.path, "other", timeout=0).save(document(2))


def test_a_block_forbids_this_thread_to_write_the_file_by_another_store(
    store: SQLiteStore,
) -> None:
    other = SQLiteStore(store.path, "other")
    with store.exclusive():
        with pytest.raises(RuntimeError, match="would wait for itself"):
            other.save(document(1))
        assert other.load() is None
    other.save(document(1))


@FORK
def test_a_connection_is_not_carried_over_a_fork(store: SQLiteStore) -> None:
    store.save(document(1))

    def change() -> None:
        assert store.load() == document(1)
        store.save(document(2))

    in_child(change)
    assert store.changed()
    assert store.load() == document(2)
    store.save(document(3))
    in_child(lambda: store.save(document(4)))
    assert store.load() == document(4)


@FORK
def test_a_child_keeps_its_locks_when_the_parent_closes(store: SQLiteStore) -> None:
    """SQLite in a child with a connection of its parent's would think that it holds those."""
    store.save(document(1))
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.read(reader, 1)  # until the parent has closed the file
            store.load()
            store.save(document(2))
        finally:
            os._exit(0)
    store.load()
    store.close()
    os.write(writer, b".")
    assert os.waitpid(pid, 0)[1] == 0
    os.close(reader)
    os.close(writer)
    assert store.load() == document(2)


@FORK
def test_a_fork_in_an_exclusive_block_leaves_the_block_to_the_parent(store: SQLiteStore) -> None:
    with store.exclusive():
        store.save(document(1))

        def refused() -> None:
            for one in (store, SQLiteStore(store.path)):
                with pytest.raises(RuntimeError, match="fork outside of the block"):
                    one.load()

        in_child(refused)
        store.save(document(2))
    assert store.load() == document(2)


@FORK
def test_a_fork_waits_for_the_block_of_another_thread(store: SQLiteStore) -> None:
    entered = threading.Event()

    def change() -> None:
        with store.exclusive():
            entered.set()
            store.save(document(1))
            store.save(document(2))

    thread = threading.Thread(target=change)
    thread.start()
    entered.wait()
    in_child(lambda: store.save({**(store.load() or {}), "later": 1}))
    thread.join()
    assert store.load() == {**document(2), "later": 1}


def texts_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


@pytest.mark.parametrize("padding", [0, 300, 20_000])
def test_removed_text_is_in_no_file(tmp_path: Path, padding: int) -> None:
    store = SQLiteStore(tmp_path / "memory.db")
    fill = "-" * padding
    store.save({**document(f"removed text{fill}", f"former text{fill}"), "later": "old section"})
    changes = Changes([{"key": "k:1", "data": "newer text"}], ["k:0"], {**REST, "later": "new"})
    store.save_changes(changes)
    found = texts_in(tmp_path)
    for text in (b"removed text", b"former text", b"old section", b"k:0"):
        assert text not in found
    assert b"newer text" in found
    store.save(document("all of it"))
    assert b"newer text" not in texts_in(tmp_path)
    assert not store.erasure_pending


def test_removed_text_leaves_no_copy_where_rows_were_moved(tmp_path: Path) -> None:
    """SQLite forgets to wipe what balancing a tree has moved away; so no text may be in one."""
    draw = random.Random(14)
    store = SQLiteStore(tmp_path / "memory.db")
    living: list[str] = []
    for number in range(700):
        gone = draw.sample(living, min(len(living), draw.choice([0, 1, 1, 9])))
        news = [f"key-{number:03}-{i};" for i in range(draw.choice([0, 1, 4, 9]))]
        entries = [{"key": key, "data": key * draw.randint(1, 200)} for key in news]
        store.save_changes(Changes(entries, gone, {**REST, "later": "x" * draw.randint(0, 999)}))
        living = [key for key in living if key not in gone] + news
        if number % 50 == 49:
            found = set(re.findall(rb"key-\d{3}-\d;", texts_in(tmp_path)))
            assert found == {key.encode() for key in living}


def test_a_reader_with_an_old_snapshot_makes_erasure_pending(store: SQLiteStore) -> None:
    folder = Path(store.path).parent
    store.save(document("secret text", "other"))
    code = """
import sqlite3
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN")
db.execute("SELECT count(*) FROM entries").fetchone()
print("ready", flush=True)
sys.stdin.readline()
"""
    reader = other_process(code, store.path)
    assert reader.stdout is not None
    reader.stdout.readline()
    store.save_changes(Changes([], ["k:0"], REST))
    assert store.erasure_pending
    began = time.monotonic()
    store.save_changes(Changes([{"key": "more", "data": 1}], [], REST))
    assert time.monotonic() - began < 0.9  # it did not wait again
    assert store.erasure_pending
    reader.communicate("\n")
    store.save_changes(Changes([{"key": "even more", "data": 1}], [], REST))
    assert not store.erasure_pending
    assert b"secret text" not in texts_in(folder)


def test_after_a_sweep_no_text_of_a_dead_writer_is_left(store: SQLiteStore) -> None:
    """Killed between the commit and the erasure, as it were."""
    folder = Path(store.path).parent
    store.save(document("kept"))
    store.close()
    code = """
import os, sqlite3
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA secure_delete = ON")
with db:
    db.execute("INSERT INTO memories VALUES (NULL, 'dead text', '', 0, x'', 0)")
with db:
    db.execute("DELETE FROM memories WHERE name = 'dead text'")
os._exit(0)
"""
    other_process(code, store.path).communicate()
    assert b"dead text" in texts_in(folder)
    store.sweep()
    assert b"dead text" not in texts_in(folder)
    assert store.load() == document("kept")


def test_a_failed_save_changes_nothing_and_the_next_one_works(store: SQLiteStore) -> None:
    store.save(document(1))
    before = store.version
    blocker = sqlite3.connect(store.path, isolation_level=None)
    blocker.execute(
        "CREATE TRIGGER full BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )
    with pytest.raises(sqlite3.Error, match="disk full"):
        store.save(document(2))
    assert store.load() == document(1)
    assert store.version == before
    blocker.execute("DROP TRIGGER full")
    blocker.close()
    store.save(document(2))
    assert store.load() == document(2)


def test_a_handler_in_the_middle_of_a_call_gets_an_error(store: SQLiteStore) -> None:
    store.save(document(1))

    errors: list[BaseException] = []

    def interrupted(frame: object, event: str, function: Any) -> None:
        if event == "c_call" and function.__name__ == "fetchone" and not errors:
            try:
                store.load()
            except RuntimeError as error:
                errors.append(error)

    sys.setprofile(interrupted)
    try:
        assert store.load() == document(1)
    finally:
        sys.setprofile(None)
    assert "in the middle of a call" in str(errors[0])


@pytest.mark.parametrize("name", ["m.db", "m.sqlite", "m.SQLITE3"])
def test_a_new_file_is_a_database_by_its_suffix(tmp_path: Path, name: str) -> None:
    assert isinstance(open_store(tmp_path / name), SQLiteStore)
    assert isinstance(open_store(tmp_path / f"{name}.json"), JsonFileStore)


def test_an_existing_file_is_judged_by_its_first_bytes(tmp_path: Path) -> None:
    JsonFileStore(tmp_path / "json.db").save(document(1))
    SQLiteStore(tmp_path / "sqlite.json").save(document(2))
    for name, kind, data in (("json.db", JsonFileStore, 1), ("sqlite.json", SQLiteStore, 2)):
        opened = open_store(tmp_path / name)
        assert type(opened) is kind
        assert opened.load() == document(data)
    (tmp_path / "noise.db").write_bytes(b"noise")
    (tmp_path / "noise.json").write_bytes(b"noise")
    assert isinstance(open_store(tmp_path / "noise.db"), SQLiteStore)
    assert isinstance(open_store(tmp_path / "noise.json"), JsonFileStore)


def test_reading_the_first_bytes_of_an_open_file_drops_none_of_its_locks(
    store: SQLiteStore,
) -> None:
    """To close a file gives up all locks that a process has on it."""
    store.save(document(1))
    with store.exclusive():
        assert isinstance(open_store(store.path), SQLiteStore)
        code = "import sqlite3\nsqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN EXCLUSIVE')"
        worker = other_process(code, store.path)
        worker.communicate()
        assert worker.returncode != 0
    assert store.load() == document(1)


def test_a_first_document_is_in_the_file_itself(store: SQLiteStore) -> None:
    """A log that is lost or damaged is ignored by SQLite, and must not look like no memory."""
    store.save(document(1))
    data = Path(store.path).read_bytes()
    copy = Path(store.path).with_name("copy.db")
    copy.write_bytes(data)
    assert SQLiteStore(copy).load() == document(1)


def test_an_interrupt_at_any_line_leaves_no_lock_behind(store: SQLiteStore) -> None:
    """The document is the old or the new one, and neither lock nor claim is left behind."""
    # In a thread of its own: the interpreter does not expect exceptions in the last line of a
    # handler, and takes what was handled there for the context of all later ones in the thread.
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(interrupts_in, store).result() > 100
    assert store.load() is not None  # another thread than the interrupted one finds no lock taken


def interrupts_in(store: SQLiteStore) -> int:
    """Interrupt calls of the store, look at it after each; the number of interrupts."""

    class Interrupt(BaseException):
        """Like Ctrl-C."""

    def exclusive() -> None:
        with store.exclusive():
            store.load()
            store.save({**document(), "n": n + 1})

    draw = random.Random(14)
    actions: list[Callable[[], object]] = [
        store.load,
        exclusive,
        lambda: store.save({**document(), "n": n + 1}),
        lambda: store.save_changes(Changes([{"key": "a"}], ["a"], {**REST, "n": n + 1})),
    ]
    n = interrupts = 0
    store.save({**document(), "n": n})
    other = SQLiteStore(store.path, timeout=0)
    for _ in range(400):
        left = draw.randrange(1, 500)

        def trace(frame: Any, event: str, _: object) -> Any:
            nonlocal left
            caller = frame
            while caller is not None:
                if caller.f_code.co_name == "__del__":
                    return None  # the interpreter would only report it, not raise it
                caller = caller.f_back
            # The end of a block is a line of its own to a tracer only: no signal can come between
            # the last call in the block and the release of its lock.
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            if line.lstrip().startswith("with "):
                return trace
            if "sentinel_memory" in frame.f_code.co_filename:
                left -= 1
                if not left:
                    raise Interrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            draw.choice(actions)()
        except Interrupt:
            interrupts += 1
        finally:
            sys.settrace(before)
        there = other.load()
        assert there is not None
        assert there["n"] in (n, n + 1)
        n += 2
        other.save({**document(), "n": n})
        with pytest.raises(StoreConflictError):
            store.save(document())
        store.load()
    return interrupts
