"""Blocks in which nobody else writes, and waiting that ends."""

from __future__ import annotations

import asyncio
import contextvars
import errno
import fcntl
import gc
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import IgnoredValueWarning, JsonFileStore, StoreConflictError
from sentinel_memory.stores import _locks
from support.store_attacks import interrupted_saves, lock_deleted_throughout

EMPTY: dict[str, Any] = {"version": 1, "entries": []}


def state(*entries: Any) -> dict[str, Any]:
    return {"version": 1, "entries": list(entries)}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def locked_by_another(path: Path) -> Iterator[None]:
    """Hold a lock on a file as another process does."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Worker(threading.Thread):
    """A thread that keeps what its work raised, for ``join`` to raise."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__()
        self._work = work
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error

    def finish(self) -> None:
        self.join()
        if self._error is not None:
            raise self._error


def in_child(work: Callable[[], object]) -> int:
    """The exit status of a forked child that does ``work``: 0 if it returns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other tests may have threads
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.alarm(60)
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_block_may_load_and_save_several_times(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "a" / "m.json")
    with store.exclusive():
        assert store.load() is None
        for number in range(3):
            store.save(state(number))
            assert store.load() == state(number)
    assert JsonFileStore(store.path).load() == state(2)
    assert names(tmp_path / "a") == [".m.json.lock", "m.json"]
    assert _locks.lock_fds == set()


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("same_store", [True, False])
@pytest.mark.parametrize("locks", [True, False])
def test_another_thread_waits_until_the_block_is_over(
    tmp_path: Path, first: bool, same_store: bool, locks: bool
) -> None:
    store = JsonFileStore(tmp_path / "m.json", locks=locks)
    if not first:
        store.save(EMPTY)
    other = store if same_store else JsonFileStore(store.path, locks=locks)
    order: list[str] = []
    started = threading.Event()

    def save() -> None:
        started.set()
        with other.exclusive():
            order.append("other")
            assert other.load() == state("block again")
            other.save(state("other"))

    with store.exclusive():
        worker = Worker(save)
        started.wait()
        for text in ("block", "block again"):
            store.load()
            store.save(state(text))
        order.append("block")
    worker.finish()
    assert order == ["block", "other"]
    assert JsonFileStore(store.path).load() == state("other")


@pytest.mark.parametrize("deleted", [False, True])
def test_another_process_waits_until_the_block_is_over(tmp_path: Path, deleted: bool) -> None:
    """Also if somebody deletes the lock file meanwhile, and after a first save in the block."""
    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)

    def too_early() -> None:
        other = JsonFileStore(store.path, lock_timeout=0.05)
        with pytest.raises(TimeoutError, match=r"m\.json"), other.exclusive():
            pass
        other.load()
        with pytest.raises(TimeoutError, match=r"m\.json"):
            other.save(state("other"))

    with store.exclusive():
        for number in range(2):
            if deleted:
                (tmp_path / ".m.json.lock").unlink()
            assert in_child(too_early) == 0
            store.load()
            store.save(state(number))
    assert store.load() == state(1)
    assert in_child(lambda: JsonFileStore(store.path, lock_timeout=0).exclusive().__enter__()) == 0


def test_readers_do_not_wait(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    store.save(state(1))
    with store.exclusive():
        worker = Worker(lambda: JsonFileStore(store.path).load())
        worker.finish()
        worker = Worker(store.load)
        worker.finish()


def test_a_block_that_raises_is_left(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    with pytest.raises(KeyError), store.exclusive():
        raise KeyError
    store.save(state(1))
    with store.exclusive():
        assert store.load() == state(1)


@pytest.mark.parametrize("way", ["same", "other", "link", "dots", "linked folder"])
def test_a_second_block_in_one_thread_is_an_error_at_once(tmp_path: Path, way: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "real" / "link").symlink_to("m.json")
    store = JsonFileStore(tmp_path / "real" / "m.json")
    store.save(EMPTY)
    paths = {
        "other": "real/m.json",
        "link": "real/link",
        "dots": "real/../real/m.json",
        "linked folder": "folder/m.json",
    }
    other = store if way == "same" else JsonFileStore(f"{tmp_path}/{paths[way]}")
    with store.exclusive():
        with pytest.raises(RuntimeError, match=r"exclusive block"), other.exclusive():
            pass
        store.save(state(1))  # the first one is as it was
    with other.exclusive():
        assert other.load() == state(1)


def test_blocks_of_two_files_may_be_nested(tmp_path: Path) -> None:
    one, two = JsonFileStore(tmp_path / "1.json"), JsonFileStore(tmp_path / "2.json")
    with one.exclusive(), two.exclusive():
        one.save(state(1))
        two.save(state(2))
    assert (one.load(), two.load()) == (state(1), state(2))


def test_another_store_on_the_path_may_read_in_the_block_and_not_write(tmp_path: Path) -> None:
    """Else the block would not be alone, and waiting would last for ever."""
    store, other = JsonFileStore(tmp_path / "m.json"), JsonFileStore(tmp_path / "m.json")
    with store.exclusive():
        store.save(state(1))
        assert other.load() == state(1)
        with pytest.raises(RuntimeError, match="exclusive block"):
            other.save(state(2))
        store.save(state(3))
    assert store.load() == state(3)


def test_another_task_of_the_thread_is_refused_and_a_task_started_in_the_block_is_not(
    tmp_path: Path,
) -> None:
    """Waiting would stop the event loop for good, and writing would break the block."""
    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)

    async def main() -> None:
        inside, done = asyncio.Event(), asyncio.Event()

        async def holder() -> None:
            with store.exclusive():
                inside.set()
                await asyncio.create_task(child())
                await asyncio.to_thread(save)
                await done.wait()

        async def child() -> None:
            save()

        def save() -> None:
            store.load()
            store.save(state("child"))

        async def neighbour() -> None:
            await inside.wait()
            with pytest.raises(RuntimeError, match="wait for itself"):
                store.save(state("neighbour"))
            with pytest.raises(RuntimeError, match="wait for itself"), store.exclusive():
                pass
            done.set()

        await asyncio.gather(holder(), neighbour())

    asyncio.run(main())
    assert store.load() == state("child")


def test_a_block_can_end_in_another_thread(tmp_path: Path) -> None:
    """As the block of a generator does that a server runs in a pool of threads."""
    store = JsonFileStore(tmp_path / "m.json")

    def dependency() -> Iterator[None]:
        with store.exclusive():
            yield

    generator = dependency()
    Worker(lambda: next(generator)).finish()
    Worker(lambda: next(generator, None)).finish()
    with store.exclusive():
        store.save(state(1))


def test_a_block_in_an_unfinished_generator_ends_when_the_generator_is_freed(
    tmp_path: Path,
) -> None:
    store = JsonFileStore(tmp_path / "m.json")

    def unfinished() -> Iterator[None]:
        with store.exclusive():
            yield

    generator = unfinished()
    contextvars.copy_context().run(next, generator)
    with pytest.raises(RuntimeError, match="wait for itself"):
        store.save(EMPTY)
    del generator
    gc.collect()
    store.save(EMPTY)


def test_a_child_that_is_forked_in_a_block_is_outside_of_it(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "m.json", lock_timeout=0.05)
    store.save(EMPTY)

    def child() -> None:
        with pytest.raises(TimeoutError):
            store.save(state("child"))

    with store.exclusive():
        assert in_child(child) == 0
        assert in_child(lambda: None) == 0  # nor does its end let others in
        assert in_child(child) == 0
        store.save(state("parent"))
    assert store.load() == state("parent")


# Waiting


def test_waiting_ends_with_an_error_that_names_the_path(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "m.json", lock_timeout=0.02)
    store.save(EMPTY)
    for file in (".m.json.lock", "m.json"):
        with locked_by_another(tmp_path / file):
            with pytest.raises(TimeoutError, match=r"within 0\.02 s") as caught:
                store.save(state(1))
            assert caught.value.filename == store.path
            assert caught.value.errno == errno.ETIMEDOUT
            with pytest.raises(TimeoutError), store.exclusive():
                pass
            assert store.load() == EMPTY
        store.save(EMPTY)
    assert names(tmp_path) == [".m.json.lock", "m.json"]


def test_waiting_for_a_thread_ends_too(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    hasty = JsonFileStore(store.path, lock_timeout=0.02)

    def impatient() -> None:
        with pytest.raises(TimeoutError, match=r"m\.json"):
            hasty.save(EMPTY)

    with store.exclusive():
        Worker(impatient).finish()
    Worker(lambda: hasty.save(EMPTY)).finish()


def test_a_thread_that_waits_beyond_the_timeout_keeps_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = JsonFileStore(tmp_path / "m.json", lock_timeout=0.02)
    store.save(EMPTY)
    ended = threading.Event()
    real = fcntl.flock

    def noticed(fd: int, operation: int) -> None:
        real(fd, operation)
        if operation == fcntl.LOCK_EX:
            ended.set()

    with locked_by_another(tmp_path / ".m.json.lock"):
        monkeypatch.setattr(fcntl, "flock", noticed)
        with pytest.raises(TimeoutError):
            store.save(state(1))
        assert not ended.is_set()
    ended.wait()
    for thread in threading.enumerate():
        if thread.name == "sentinel_memory lock":
            thread.join()
    assert _locks.lock_fds == set()
    store.save(state(2))


@pytest.mark.parametrize("threads", [True, False])
def test_a_waiting_writer_gets_the_lock_when_it_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: bool
) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)
    if not threads:

        def refuse(self: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        worker_start = threading.Thread.start
        monkeypatch.setattr(
            threading.Thread,
            "start",
            lambda self: worker_start(self) if isinstance(self, Worker) else refuse(self),
        )
    with locked_by_another(tmp_path / "m.json"):
        worker = Worker(lambda: store.save(state(1)))
    worker.finish()
    assert store.load() == state(1)


def test_a_file_whose_identity_changes_at_each_stat_ends_in_a_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on file systems that make up the numbers of files."""
    path = tmp_path / "m.json"
    JsonFileStore(path).save(EMPTY)
    real = os.path.samestat
    now = [0.0]
    monkeypatch.setattr(os.path, "samestat", lambda one, other: False)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(time, "sleep", pause)
    with pytest.raises(TimeoutError, match="within 2 s"):
        JsonFileStore(path, lock_timeout=2).save(EMPTY)
    assert 1.9 < sum(pauses) < 2.1
    monkeypatch.setattr(os.path, "samestat", real)
    assert JsonFileStore(path).load() == EMPTY


@pytest.mark.parametrize(
    ("value", "seconds", "warned"),
    [
        (0, 0, False),
        (0.25, 0.25, False),
        (timedelta(minutes=2), 120, False),
        (10**400, None, False),
        (None, 30, False),
        (-1, 30, True),
        (timedelta(-1), 30, True),
        ("5", 30, True),
        (True, 30, True),
        (float("nan"), 30, True),
        (float("inf"), 30, True),
    ],
)
def test_an_invalid_lock_timeout_is_ignored(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    value: Any,
    seconds: float | None,
    warned: bool,
) -> None:
    """The time is up at once here, so that the error can say how long it would have been."""
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        store = JsonFileStore(tmp_path / "m.json", lock_timeout=value)
    assert [(w.category, w.filename) for w in caught_warnings] == (
        [(IgnoredValueWarning, __file__)] if warned else []
    )
    store.save(EMPTY)
    now = iter([0.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now, 1e308 * 10))
    with locked_by_another(tmp_path / ".m.json.lock"), pytest.raises(TimeoutError) as caught:
        store.save(EMPTY)
    if seconds is not None:
        assert f"within {seconds} s" in str(caught.value)


# No locks


def no_locks(fd: int, operation: int) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


@pytest.mark.parametrize("cause", ["file system", "document only", "platform"])
def test_a_block_without_locks_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)
    document = (tmp_path / "m.json").stat().st_ino
    real = fcntl.flock

    def only_the_lock_file(fd: int, operation: int) -> None:
        if os.fstat(fd).st_ino == document:
            no_locks(fd, operation)
        real(fd, operation)

    if cause == "platform":
        monkeypatch.setattr(_locks, "fcntl", None)
    else:
        refuse = no_locks if cause == "file system" else only_the_lock_file
        monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match="no locks") as caught, store.exclusive():
        pass
    assert caught.value.errno == errno.ENOLCK
    assert caught.value.filename == store.path
    store.load()
    store.save(state(1))
    with pytest.raises(StoreConflictError):
        JsonFileStore(store.path).save(EMPTY)
    assert _locks.lock_fds == set()
    promised = JsonFileStore(store.path, locks=False)
    with promised.exclusive():
        assert promised.load() == state(1)
        promised.save(state(2))


def test_without_locks_no_lock_file_is_made_and_dead_writers_are_swept(tmp_path: Path) -> None:
    """All writers are of this process, and those are in line."""
    (tmp_path / ".m.json.0123456789abcdef.tmp").write_text("dead")
    store = JsonFileStore(tmp_path / "m.json", locks=False)
    store.save(state(1))
    assert names(tmp_path) == ["m.json"]


# Attacks


def test_deleting_the_lock_file_all_the_time_loses_nothing(tmp_path: Path) -> None:
    assert lock_deleted_throughout(10, tmp_path) == (40, [])


def test_a_first_document_does_not_overwrite_another_first_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writers who each hold a lock file, because one was deleted, and no document yet."""
    one, two = JsonFileStore(tmp_path / "m.json"), JsonFileStore(tmp_path / "m.json")
    real = os.fsync
    done: list[int] = []

    def flush(fd: int) -> None:
        real(fd)
        if not done:
            done.append(fd)
            (tmp_path / ".m.json.lock").unlink()
            assert in_child(lambda: two.save(state("two"))) == 0

    monkeypatch.setattr(os, "fsync", flush)
    with pytest.raises(StoreConflictError):
        one.save(state("one"))
    assert two.load() == state("two")
    assert names(tmp_path) == [".m.json.lock", "m.json"]


def test_an_exception_at_any_line_of_a_save_keeps_no_lock_and_loses_nothing(
    tmp_path: Path,
) -> None:
    assert interrupted_saves(120, 1, tmp_path) == (120, [])
