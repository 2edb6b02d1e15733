"""Two writers of one file: every save either lands or says that it did not."""

from __future__ import annotations

import copy
import fcntl
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import DamagedStoreError, JsonFileStore, StoreConflictError
from sentinel_memory.stores import _locks


def state(*entries: Any) -> dict[str, Any]:
    return {"version": 1, "entries": list(entries)}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fork() -> int:
    """Fork; a warning about other threads of the test run is no concern here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def in_child(work: Callable[[], None]) -> int:
    """Start ``work`` in a forked child; its exit status is 0 if it returns, 1 if it raises."""
    pid = fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return pid


def exit_status(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def assert_conflict(store: JsonFileStore, path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(StoreConflictError, match=path.name):
        store.save(state("mine"))
    assert path.read_bytes() == before
    assert names(path.parent) in ([f".{path.name}.lock", path.name], [path.name])


def test_a_file_that_was_never_read_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    JsonFileStore(path).save(state("theirs"))
    store = JsonFileStore(path)
    with pytest.raises(StoreConflictError, match="has not read it"):
        store.save(state("mine"))
    assert_conflict(store, path)


def test_a_file_that_appeared_after_the_load_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    assert store.load() is None
    path.write_text("not even a memory")
    assert_conflict(store, path)


def test_a_file_that_another_store_saved_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    one, two = JsonFileStore(path), JsonFileStore(path)
    one.save(state(1))
    assert two.load() == state(1)
    two.save(state(2))
    with pytest.raises(StoreConflictError, match="changed since this store last read or wrote it"):
        one.save(state(3))
    assert_conflict(one, path)
    two.save(state(4))
    assert two.load() == state(4)


def test_an_edit_in_place_of_the_same_size_and_time_is_seen(tmp_path: Path) -> None:
    """Size, inode and times can all be equal; the bytes decide."""
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    store.save(state("aaaa"))
    before = path.stat()
    with path.open("r+b") as file:
        file.write(path.read_bytes().replace(b"aaaa", b"bbbb"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )
    assert_conflict(store, path)


def test_a_file_with_new_times_and_equal_content_is_not_a_conflict(tmp_path: Path) -> None:
    """A backup put back, a new time, a new inode: the same bytes are the same document."""
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    store.save(state(1))
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    os.utime(path, (0, 0))
    store.save(state(2))
    assert store.load() == state(2)


def test_a_store_saves_again_and_again_over_its_own_file(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    for number in range(5):
        store.save(state(number))
    assert store.load() == state(4)


def test_loading_is_the_way_to_overwrite_on_purpose(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    JsonFileStore(path).save(state("theirs"))
    store = JsonFileStore(path)
    assert store.load() == state("theirs")
    store.save(state("mine"))
    assert JsonFileStore(path).load() == state("mine")


def test_a_deleted_file_is_written_anew(tmp_path: Path) -> None:
    """There is nothing left to overwrite."""
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    store.save(state(1))
    path.unlink()
    store.save(state(2))
    assert store.load() == state(2)


def test_after_a_load_that_found_nothing_the_former_document_is_not_known_any_more(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    store.save(state(1))
    data = path.read_bytes()
    path.unlink()
    assert store.load() is None
    path.write_bytes(data)
    assert_conflict(store, path)


def test_after_a_load_that_found_damage_no_save_overwrites_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text('{"version": 1, "entr')
    store = JsonFileStore(path)
    for _ in range(2):
        with pytest.raises(DamagedStoreError):
            store.load()
        assert_conflict(store, path)


def test_a_file_that_was_damaged_later_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    store.save(state(1))
    good = path.read_bytes()
    path.write_bytes(good[:-5])
    assert_conflict(store, path)
    with pytest.raises(DamagedStoreError):
        store.load()
    assert_conflict(store, path)
    path.write_bytes(good)
    store.save(state(2))
    assert store.load() == state(2)


def test_a_change_while_the_new_file_is_flushed_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Editors do not ask for the lock, and flushing to disk can take long."""
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    store.save(state(1))
    flush = os.fsync

    def slow_fsync(fd: int) -> None:
        flush(fd)
        path.write_text("edited")

    monkeypatch.setattr(os, "fsync", slow_fsync)
    with pytest.raises(StoreConflictError):
        store.save(state(2))
    assert path.read_text() == "edited"
    assert names(tmp_path) == [".m.json.lock", "m.json"]


def test_a_file_that_appears_while_the_new_one_is_flushed_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.json"
    monkeypatch.setattr(os, "fsync", lambda fd: path.write_text("edited"))
    with pytest.raises(StoreConflictError):
        JsonFileStore(path).save(state(2))
    assert path.read_text() == "edited"


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copy_of_a_store_has_read_nothing(
    tmp_path: Path, duplicate: Callable[[JsonFileStore], JsonFileStore]
) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    store.save(state(1))
    twin = duplicate(store)
    assert twin.path == store.path
    with pytest.raises(StoreConflictError):
        twin.save(state(2))
    assert twin.load() == state(1)
    twin.save(state(2))
    with pytest.raises(StoreConflictError):
        store.save(state(3))


def test_after_an_interrupted_rename_both_possible_files_may_be_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems report an error for a rename that took place."""
    store = JsonFileStore(tmp_path / "m.json")
    store.save(state(1))
    rename = os.replace

    def renames_and_fails(source: str, target: str) -> None:
        rename(source, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", renames_and_fails)
        with pytest.raises(KeyboardInterrupt):
            store.save(state(2))
    assert JsonFileStore(store.path).load() == state(2)
    store.save(state(3))
    assert store.load() == state(3)


def test_every_concurrent_save_of_four_processes_is_written_or_raises(tmp_path: Path) -> None:
    """Each adds an entry of its own to what it loaded: none that was saved may be missing."""
    path = tmp_path / "m.json"
    JsonFileStore(path).save(state())
    start_reader, start_writer = os.pipe()
    report_reader, report_writer = os.pipe()

    def writer(process: int) -> None:
        store = JsonFileStore(path)
        os.close(start_writer)
        os.read(start_reader, 1)  # returns when the parent closes its end
        for number in range(25):
            document = store.load()
            assert document is not None
            document["entries"].append(f"{process}.{number}")
            try:
                store.save(document)
            except StoreConflictError:
                os.write(report_writer, f"conflict {process}.{number}\n".encode())
            else:
                os.write(report_writer, f"landed {process}.{number}\n".encode())

    children = [in_child(lambda process=process: writer(process)) for process in range(4)]  # type: ignore[misc]
    os.close(report_writer)
    os.close(start_reader)
    os.close(start_writer)
    with os.fdopen(report_reader) as file:
        reports = [line.split() for line in file]
    assert [exit_status(child) for child in children] == [0] * 4
    assert len(reports) == 100
    document = JsonFileStore(path).load()
    assert document is not None
    assert sorted(document["entries"]) == sorted(n for result, n in reports if result == "landed")
    assert names(tmp_path) == [".m.json.lock", "m.json"]


def test_threads_that_share_a_store_never_meet_a_conflict(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    errors: list[BaseException] = []
    start = threading.Barrier(4)

    def work(name: int) -> None:
        try:
            start.wait()
            for number in range(10):
                store.save(state(name, number))
                assert store.load() is not None
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_the_lock_is_not_held_between_calls(tmp_path: Path) -> None:
    """Another process can save while this one has the store open."""
    store = JsonFileStore(tmp_path / "m.json")
    store.save(state(1))
    store.load()
    other = in_child(lambda: _load_and_save(JsonFileStore(store.path), 2))
    assert exit_status(other) == 0
    assert store.load() == state(2)


def _load_and_save(store: JsonFileStore, number: int) -> None:
    store.load()
    store.save(state(number))


def test_a_writer_waits_for_the_lock_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is read or written before the other one is done."""
    path = tmp_path / "m.json"
    order: list[str] = []
    refused = threading.Event()
    real = fcntl.flock

    def noticed(fd: int, operation: int) -> None:
        try:
            real(fd, operation)
        except BlockingIOError:
            refused.set()
            raise
        if operation & fcntl.LOCK_EX:
            order.append("second has the lock")

    def second() -> None:
        with pytest.raises(StoreConflictError):
            JsonFileStore(path).save(state("second"))

    with (tmp_path / ".m.json.lock").open("wb") as lock:  # as another process has it
        real(lock, fcntl.LOCK_EX)
        monkeypatch.setattr(fcntl, "flock", noticed)
        thread = threading.Thread(target=second)
        thread.start()
        refused.wait()
        path.write_text("first")
        order.append("first is done")
    thread.join()
    assert order[:2] == ["first is done", "second has the lock"]
    assert path.read_text() == "first"


def test_a_lock_file_that_was_replaced_while_waiting_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of a deleted file excludes nobody; the one that is there now is taken."""
    path = tmp_path / "m.json"
    real = fcntl.flock
    locked: list[int] = []

    def deleted_meanwhile(fd: int, operation: int) -> None:
        real(fd, operation)
        if operation & fcntl.LOCK_EX:
            locked.append(os.fstat(fd).st_ino)
        if len(locked) == 1 and (tmp_path / ".m.json.lock").exists():
            (tmp_path / "keep inode").hardlink_to(tmp_path / ".m.json.lock")
            (tmp_path / ".m.json.lock").unlink()

    monkeypatch.setattr(fcntl, "flock", deleted_meanwhile)
    JsonFileStore(path).save(state(1))
    assert locked[1] == (tmp_path / ".m.json.lock").stat().st_ino
    assert locked[0] != locked[1]
    assert locked[2:] == [path.stat().st_ino]
    assert _locks.lock_fds == set()


def test_a_call_from_a_signal_handler_in_the_middle_of_a_save_is_an_error_not_a_deadlock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    store.save(state(1))

    def interrupted(source: str, target: str) -> None:
        store.save(state("from the handler"))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(RuntimeError, match="signal handler"):
            store.save(state(2))
    store.save(state(3))
    assert store.load() == state(3)


def test_a_child_forked_while_a_thread_saves_can_use_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    store.save(state(1))
    inside, go_on = threading.Event(), threading.Event()
    rename = os.replace

    def slow_replace(source: str, target: str) -> None:
        if threading.current_thread() is thread:
            inside.set()
            go_on.wait()
        rename(source, target)

    monkeypatch.setattr(os, "replace", slow_replace)
    thread = threading.Thread(target=store.save, args=(state("of the thread"),))
    thread.start()
    inside.wait()

    def child() -> None:
        assert _locks.lock_fds == set()
        with pytest.raises(StoreConflictError):  # waits for the thread, and then comes too late
            store.save(state("too late"))
        assert store.load() == state("of the thread")
        store.save(state("of the child"))

    pid = in_child(child)
    go_on.set()
    thread.join()
    assert exit_status(pid) == 0
    assert JsonFileStore(store.path).load() == state("of the child")
    with pytest.raises(StoreConflictError):
        store.save(state(4))


def test_a_forked_child_does_not_keep_the_lock_of_a_parent_that_was_killed(tmp_path: Path) -> None:
    """The parent dies in the middle of a save, its child lives on."""
    path = tmp_path / "m.json"
    ready_reader, ready_writer = os.pipe()
    end_reader, end_writer = os.pipe()

    def parent() -> None:
        inside = threading.Event()

        def stuck(source: str, target: str) -> None:
            inside.set()
            threading.Event().wait()

        os.link = stuck  # type: ignore[assignment]  # what gives a first document its name
        threading.Thread(target=JsonFileStore(path).save, args=(state("lost"),)).start()
        inside.wait()
        if fork() == 0:
            os.close(end_writer)
            os.write(ready_writer, b"!")
            os.read(end_reader, 1)  # lives until the test is over
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)

    pid = in_child(parent)
    os.read(ready_reader, 1)
    assert exit_status(pid) == -signal.SIGKILL
    assert any(name.endswith(".tmp") for name in names(tmp_path))
    signal.alarm(20)  # should the lock be held after all, fail instead of waiting
    JsonFileStore(path).save(state(1))
    signal.alarm(0)
    for fd in (ready_reader, ready_writer, end_reader, end_writer):
        os.close(fd)
    assert JsonFileStore(path).load() == state(1)
    assert names(tmp_path) == [".m.json.lock", "m.json"]
