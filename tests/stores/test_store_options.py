"""The optional members of the store of a file, its limits, and paths that name no home."""

from __future__ import annotations

import copy
import errno
import json
import os
import pickle
import pwd
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import (
    DamagedStoreError,
    IgnoredValueWarning,
    JsonFileStore,
    StoreConflictError,
)
from sentinel_memory.stores import _files

EMPTY: dict[str, Any] = {"version": 1, "entries": []}
LEFTOVER = ".m.json.0123456789abcdef.tmp"


def state(*entries: Any) -> dict[str, Any]:
    return {"version": 1, "entries": list(entries)}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other tests may have threads
        return os.fork()


# version and changed


def test_the_version_identifies_the_document_last_loaded_or_saved(tmp_path: Path) -> None:
    one, two = JsonFileStore(tmp_path / "m.json"), JsonFileStore(tmp_path / "m.json")
    assert one.version is None
    one.save(state(1))
    first = one.version
    assert first is not None
    assert hash(first) == hash(first)
    two.load()
    assert two.version == first
    two.save(state(2))
    assert two.version != first == one.version
    one.load()
    assert one.version == two.version
    Path(one.path).unlink()
    one.load()
    assert one.version is None


def test_changed_is_true_if_the_file_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    one, two = JsonFileStore(path), JsonFileStore(path)
    assert not one.changed()
    two.save(state(1))
    assert one.changed()
    assert not two.changed()
    one.load()
    assert not one.changed()
    two.load()
    two.save(state(2))
    assert one.changed()
    assert one.changed()  # looking changes nothing
    with pytest.raises(StoreConflictError):
        one.save(state(3))
    two.save(state(1))
    assert not one.changed()  # the same document again
    path.write_bytes(path.read_bytes()[:-5])
    assert one.changed()
    path.unlink()
    assert one.changed()
    one.load()
    assert not one.changed()


def test_an_edit_of_the_same_size_and_times_is_a_change(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    store.save(state("aaaa"))
    assert not store.changed()
    before = path.stat()
    with path.open("r+b") as file:
        file.write(path.read_bytes().replace(b"aaaa", b"bbbb"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert store.changed()


def test_a_file_with_settled_times_is_not_read_to_detect_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    store.save(EMPTY)
    reads: list[str] = []
    real = _files.read

    def read(path: str, **options: Any) -> Any:
        reads.append(path)
        return real(path, **options)

    monkeypatch.setattr(_files, "read", read)
    for look in range(3):
        assert not store.changed()
        assert len(reads) == look + 1  # it is too young: a second change may fall on one tick
    later = time.time_ns() + 3_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)
    for _ in range(3):
        assert not store.changed()
    assert len(reads) == 4
    JsonFileStore(tmp_path / "n.json").save(state("longer"))
    (tmp_path / "n.json").rename(path)
    assert store.changed()
    path.unlink()
    assert store.changed()


def test_a_save_whose_rename_failed_is_not_a_change_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    store.save(state(1))
    real = os.replace

    def late(source: str, target: str) -> None:
        real(source, target)
        raise OSError(errno.EIO, "injected")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", late)
        with pytest.raises(OSError, match="injected"):
            store.save(state(2))
    assert not store.changed()


# sweep


def die_while_saving(path: Path) -> None:
    """Have a process killed that has written its temp file and not yet renamed it."""
    pid = fork()
    if pid == 0:

        def die(source: str, target: str) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        os.replace = die  # type: ignore[assignment]
        store = JsonFileStore(path)
        store.load()
        store.save(state("secret"))
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("lock_deleted", [False, True])
def test_sweep_removes_temp_files_of_a_killed_writer(tmp_path: Path, lock_deleted: bool) -> None:
    """Also if the mark is gone that the writer had left in the lock file."""
    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)
    for _ in range(2):
        die_while_saving(tmp_path / "m.json")
        assert len(names(tmp_path)) == 3
        if lock_deleted:
            (tmp_path / ".m.json.lock").unlink()
        store.sweep()
        assert names(tmp_path) == [".m.json.lock", "m.json"]
        assert store.load() == EMPTY


def test_sweep_works_before_anything_was_loaded_or_saved(tmp_path: Path) -> None:
    (tmp_path / LEFTOVER).write_text("dead")
    (tmp_path / f"{LEFTOVER}~").write_text("foreign")
    JsonFileStore(tmp_path / "m.json").sweep()
    assert names(tmp_path) == [f"{LEFTOVER}~", ".m.json.lock"]
    JsonFileStore(tmp_path / "missing" / "m.json").sweep()
    assert names(tmp_path) == [f"{LEFTOVER}~", ".m.json.lock"]


def test_sweep_without_temp_files_takes_no_lock_and_makes_no_file(tmp_path: Path) -> None:
    JsonFileStore(tmp_path / "m.json").sweep()
    assert names(tmp_path) == []


def test_sweep_is_part_of_an_exclusive_block(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    with store.exclusive():
        (tmp_path / LEFTOVER).write_text("dead")
        store.sweep()
        assert names(tmp_path) == [".m.json.lock"]


def test_sweep_spares_the_temp_file_of_a_living_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a document and with the lock file deleted, only its own lock protects it."""
    store, other = JsonFileStore(tmp_path / "m.json"), JsonFileStore(tmp_path / "m.json")
    real = os.fsync
    swept: list[int] = []

    def flush(fd: int) -> None:
        real(fd)
        if not swept:
            (tmp_path / ".m.json.lock").unlink()
            pid = fork()
            if pid == 0:
                other.sweep()
                os._exit(0)
            swept.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    monkeypatch.setattr(os, "fsync", flush)
    store.save(state(1))
    assert swept == [0]
    assert other.load() == state(1)


def test_a_writer_that_died_between_the_two_names_of_a_first_document_is_swept(
    tmp_path: Path,
) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    store.save(state(1))
    (tmp_path / LEFTOVER).hardlink_to(store.path)
    store.sweep()
    assert names(tmp_path) == [".m.json.lock", "m.json"]
    assert store.load() == state(1)


# max_bytes


def test_a_document_over_max_bytes_is_neither_read_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.json"
    JsonFileStore(path).save(state("x" * 1000))
    whole = path.read_bytes()
    size = len(whole)
    assert JsonFileStore(path, max_bytes=size).load() == state("x" * 1000)
    store = JsonFileStore(path, max_bytes=size - 1)
    with pytest.raises(DamagedStoreError, match=f"{size} bytes, and max_bytes is {size - 1}"):
        store.load()
    assert store.changed()
    monkeypatch.setattr(os, "read", lambda fd, count: pytest.fail("it was read"))
    with pytest.raises(StoreConflictError):
        store.save(EMPTY)
    monkeypatch.undo()
    path.unlink()
    with pytest.raises(ValueError, match=f"{size} bytes as a file, and max_bytes is {size - 1}"):
        store.save(state("x" * 1000))
    assert not path.exists()
    store.save(state("x" * 999))
    assert store.load() == state("x" * 999)


def test_a_file_that_grows_while_it_is_read_is_not_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.json"
    path.write_text(json.dumps(EMPTY))
    counts: list[int] = []

    def endless(fd: int, count: int) -> bytes:
        counts.append(count)
        return b" " * count

    monkeypatch.setattr(os, "read", endless)
    with pytest.raises(DamagedStoreError, match="max_bytes is 10000"):
        JsonFileStore(path, max_bytes=10_000).load()
    assert sum(counts) < 20_000


@pytest.mark.parametrize("value", [0, -1, 2.5, "100", True, float("inf")])
def test_an_invalid_max_bytes_is_ignored_with_a_warning(tmp_path: Path, value: Any) -> None:
    with pytest.warns(IgnoredValueWarning, match="max_bytes .* no bound is used") as caught:
        store = JsonFileStore(tmp_path / "m.json", max_bytes=value)
    assert caught[0].filename == __file__
    store.save(state("x" * 10_000))
    assert store.load() == state("x" * 10_000)


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda store: pickle.loads(pickle.dumps(store))]
)
def test_a_copy_of_a_store_has_its_options(
    tmp_path: Path, duplicate: Callable[[JsonFileStore], JsonFileStore]
) -> None:
    twin = duplicate(JsonFileStore(tmp_path / "m.json", locks=False, max_bytes=150))
    with pytest.raises(ValueError, match="max_bytes is 150"):
        twin.save(state("x" * 100))
    twin.save(EMPTY)
    assert names(tmp_path) == ["m.json"]


# No home


@pytest.mark.parametrize("path", ["~/m.json", "~", "~/a/m.json"])
@pytest.mark.parametrize("home", [None, "", "relative"])
def test_a_tilde_without_a_home_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, home: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOME")
    if home is not None:
        monkeypatch.setenv("HOME", home)

    def unknown(user: int) -> Any:
        raise KeyError(user)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(ValueError, match="no such home folder"):
        JsonFileStore(path)
    with pytest.raises(ValueError, match="no such home folder"):
        JsonFileStore(Path(path))
    assert names(tmp_path) == []


def test_an_unknown_home_folder_is_an_error_and_a_file_named_with_a_tilde_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="~no-such-user"):
        JsonFileStore("~no-such-user/m.json")
    for path in ("~m.json", "./~/m.json", "a~/m.json"):
        JsonFileStore(path).save(EMPTY)
    assert (tmp_path / "~m.json").exists()
    assert (tmp_path / "~" / "m.json").exists()


def test_the_home_of_a_user_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    user = pwd.getpwall()[0]
    assert JsonFileStore(f"~{user.pw_name}/m.json").path == str(Path(user.pw_dir, "m.json"))
    monkeypatch.setenv("HOME", "/")
    assert JsonFileStore("~/m.json").path == "/m.json"
