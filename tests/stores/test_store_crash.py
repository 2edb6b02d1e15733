"""Saving into a file, interrupted before and after every system call that it makes.

The modules of the store get stand-ins for ``os`` and ``fcntl`` that know every call by name, so
that a new one cannot be forgotten here.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import struct
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import pytest

from sentinel_memory import JsonFileStore
from sentinel_memory.stores import _files, _locks, _paths, _rights, _turns, json_file

SYSTEM_CALLS = {
    "close",
    "fchmod",
    "fchown",
    "flock",
    "fstat",
    "fsync",
    "ftruncate",
    "getxattr",
    "link",
    "listdir",
    "lstat",
    "mkdir",
    "open",
    "read",
    "readlink",
    "removexattr",
    "replace",
    "setxattr",
    "stat",
    "unlink",
    "urandom",
    "write",
}
PURE = {"fsencode", "geteuid", "strerror"}
PURE_OF_PATHS = {"basename", "dirname", "join", "samestat", "split"}

# What may fail without failing the save, by design: the new document is safe without it.
BEST_EFFORT = {
    ("listdir folder", errno.ENOSPC),  # leftovers stay one save longer
    ("listdir folder", errno.EIO),
    ("listdir folder", errno.EACCES),
    ("open leftover", errno.ENOSPC),  # then its writer does not live
    ("open leftover", errno.EIO),
    ("open leftover", errno.EACCES),
    ("unlink leftover", errno.ENOSPC),
    ("unlink leftover", errno.EIO),
    ("unlink leftover", errno.EACCES),
    ("unlink temp", errno.ENOSPC),
    ("unlink temp", errno.EIO),
    ("unlink temp", errno.EACCES),
    ("unmark lock", errno.ENOSPC),  # the next save lists the folder without need
    ("unmark lock", errno.EIO),
    ("unmark lock", errno.EACCES),
    ("fchown temp", errno.ENOSPC),  # the file is that of the writer then
    ("fchown temp", errno.EIO),
    ("fchown temp", errno.EACCES),
    ("fchown lock", errno.ENOSPC),
    ("fchown lock", errno.EIO),
    ("fchown lock", errno.EACCES),
    ("link temp", errno.EACCES),  # as where there are no hard links: it is renamed
    ("open folder", errno.EACCES),  # a folder to write in and not to read cannot be flushed
}

LEFTOVER = ".memory.json.0123456789abcdef.tmp"

Hook: TypeAlias = Callable[[int, str, Callable[[], Any]], Any]


class Paths:
    """``os.path`` with the functions that ask no system."""

    def __getattr__(self, name: str) -> Any:
        assert name in PURE_OF_PATHS, f"os.path.{name} is not known to be without system calls"
        return getattr(os.path, name)


class Watched:
    """``os`` and ``fcntl`` with a hook around every system call, numbered and labelled."""

    def __init__(self, hook: Hook) -> None:
        self.labels: list[str] = []
        self._hook = hook
        self._roles: dict[int, str] = {}

    def module(self, real: ModuleType) -> Any:
        watched = self

        class Module:
            path = Paths()

            def __getattr__(self, name: str) -> Any:
                value = getattr(real, name)
                if not callable(value) or name in PURE:
                    return value
                assert name in SYSTEM_CALLS, f"{name} is not in the matrix"
                return lambda *args, **kwargs: watched._call(name, value, args, kwargs)

        return Module()

    def _call(self, name: str, function: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        role = self._role(name, args)
        if name == "write":  # in small pieces, as a system is free to do
            args = (args[0], args[1][:50])
        elif name == "ftruncate":
            name = "mark" if args[1] else "unmark"
        elif name == "flock":
            name = "lock" if args[1] & fcntl.LOCK_EX else "unlock"
        label = f"{name} {role}"
        self.labels.append(label)
        result = self._hook(len(self.labels) - 1, label, lambda: function(*args, **kwargs))
        if name == "open":
            self._roles[result] = role
        return result

    def _role(self, name: str, args: tuple[Any, ...]) -> str:
        if name == "urandom":
            return "name"
        if isinstance(args[0], int):
            return self._roles[args[0]] if name != "close" else self._roles.pop(args[0])
        if name in ("mkdir", "listdir") or (name == "open" and args[1] & os.O_DIRECTORY):
            return "folder"
        if args[0].endswith(".lock"):
            return "lock"
        if args[0].endswith(LEFTOVER):
            return "leftover"
        if args[0].endswith(".tmp"):
            # The writer opens it once to write and once to lock it.
            return "coming" if name == "open" and not args[1] & os.O_CREAT else "temp"
        return "folder" if name == "stat" else "target"


class Case(NamedTuple):
    """A store about to save ``NEW`` to ``file``, which holds ``old``."""

    store: JsonFileStore
    file: Path
    old: bytes | None
    mode: int


def document(text: str) -> dict[str, Any]:
    return {"version": 1, "entries": [{"key": "k", "data": text * 20}]}


def access_control_list(*entries: tuple[int, int, int]) -> bytes:
    """One of Linux, of entries of tag, permissions and user or group."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NOBODY = 0xFFFFFFFF
LIST = access_control_list(
    (0x01, 6, NOBODY), (0x02, 4, 12345), (0x04, 0, NOBODY), (0x10, 4, NOBODY), (0x20, 0, NOBODY)
)
"""rw for the owner, r for user 12345: the mode of a file that has it is 640."""

OLD, NEW, NEXT = document("old"), document("new č"), document("next")


def first_save(folder: Path) -> Case:
    """Nothing is there, not even the folders."""
    file = folder / "a" / "b" / "memory.json"
    return Case(JsonFileStore(file), file, None, 0o600)


def later_save(folder: Path) -> Case:
    """The store has saved before."""
    file = folder / "memory.json"
    store = JsonFileStore(file)
    store.save(OLD)
    return Case(store, file, file.read_bytes(), 0o600)


def save_after_a_crash(folder: Path) -> Case:
    """Another process was killed in the middle of a save."""
    case = later_save(folder)
    (folder / LEFTOVER).write_text("half a docu")
    (folder / ".memory.json.lock").write_bytes(b"\0")
    case.file.chmod(0o644)
    return case._replace(mode=0o644)


def save_through_links(folder: Path) -> Case:
    """A chain of links, and a file with a mode of its own and, for root, another owner."""
    (folder / "elsewhere").mkdir()
    file = folder / "elsewhere" / "memory.json"
    JsonFileStore(file).save(OLD)
    file.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
    if sys.platform == "linux":
        os.setxattr(file, "system.posix_acl_access", LIST)
    (folder / "link").symlink_to("second link")
    (folder / "second link").symlink_to(file)
    store = JsonFileStore(folder / "link")
    store.load()
    return Case(store, file, file.read_bytes(), 0o640)


def save_in_a_folder_with_a_list(folder: Path) -> Case:
    """New files get an access-control list from their folder, which the document has not."""
    case = later_save(folder)
    if sys.platform == "linux":
        os.setxattr(folder, "system.posix_acl_default", LIST)
    return case


CASES = [
    first_save,
    later_save,
    save_after_a_crash,
    save_through_links,
    save_in_a_folder_with_a_list,
]
Prepare: TypeAlias = Callable[[Path], Case]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def watch(patch: pytest.MonkeyPatch, hook: Hook) -> list[str]:
    watched = Watched(hook)
    for module in (_files, _locks, _paths, _rights, _turns, json_file):
        patch.setattr(module, "os", watched.module(os))
    patch.setattr(_locks, "fcntl", watched.module(fcntl))
    return watched.labels


def naming(labels: list[str]) -> int:
    """Where the new file gets its name."""
    return labels.index("link temp" if "link temp" in labels else "replace temp")


def act(index: int, label: str, call: Callable[[], Any]) -> Any:
    return call()


def calls_of(prepare: Prepare, folder: Path) -> list[str]:
    """The labels of all calls of a save that nothing interrupts."""
    folder.mkdir()
    case = prepare(folder)
    with pytest.MonkeyPatch.context() as patch:
        labels = watch(patch, act)
        case.store.save(NEW)
    assert JsonFileStore(case.file).load() == NEW
    return labels


def check_old_or_new(case: Case) -> None:
    """The file is whole, the old one or the new one, with the mode that it should have."""
    if not case.file.exists():
        assert case.old is None
        return
    if case.file.read_bytes() != case.old:
        assert JsonFileStore(case.file).load() == NEW
    assert case.file.stat().st_mode & 0o7777 == case.mode


def check_next_save(case: Case, store: JsonFileStore) -> None:
    """The next save works, and cleans up."""
    store.save(NEXT)
    assert JsonFileStore(case.file).load() == NEXT
    assert names(case.file.parent) == [".memory.json.lock", "memory.json"]
    assert (case.file.parent / ".memory.json.lock").read_bytes() == b""
    assert case.file.stat().st_mode & 0o7777 == case.mode


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def temp_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.endswith(".tmp")]


@pytest.mark.parametrize("prepare", CASES)
def test_every_save_makes_the_protecting_calls_in_the_right_order(
    tmp_path: Path, prepare: Prepare
) -> None:
    """The calls that make a save safe are there, and in the right order."""
    labels = calls_of(prepare, tmp_path / "case")
    order = [
        "lock lock",
        "mark lock",
        "open temp",
        "write temp",
        "fsync temp",
        "close temp",
        labels[naming(labels)],
        "unmark lock",
        "fsync folder",
        "unlock lock",
    ]
    last = [len(labels) - 1 - labels[::-1].index(label) for label in order]
    assert last == sorted(last)
    assert labels.count("replace temp") + labels.count("link temp") == 1
    assert labels.count("write temp") > 2
    assert labels.count("open target") == 3  # to lock it, and before and after the writing
    assert labels.index("lock coming") < labels.index("write temp")
    if prepare is not first_save:
        assert labels.index("lock target") < labels.index("mark lock")


def test_the_matrix_sees_each_kind_of_call(tmp_path: Path) -> None:
    """Nothing in the list of known calls is stale."""
    labels = {
        label for prepare in CASES for label in calls_of(prepare, tmp_path / prepare.__name__)
    }
    seen = {label.split()[0] for label in labels}
    renamed = {"lock": "flock", "unlock": "flock", "mark": "ftruncate", "unmark": "ftruncate"}
    expected = SYSTEM_CALLS if os.geteuid() == 0 else SYSTEM_CALLS - {"fchown"}
    if sys.platform != "linux":
        expected = expected - {"getxattr", "removexattr", "setxattr"}
    assert {renamed.get(name, name) for name in seen} == expected


def test_a_call_that_the_matrix_does_not_know_is_noticed() -> None:
    with pytest.raises(AssertionError, match="rename is not in the matrix"):
        Watched(act).module(os).rename("a", "b")
    with pytest.raises(AssertionError, match=r"os\.path\.exists"):
        Watched(act).module(os).path.exists("a")


@needs_fork
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("prepare", CASES)
def test_a_process_killed_at_any_call_leaves_the_old_or_the_new_file(
    tmp_path: Path, prepare: Prepare, moment: str
) -> None:
    labels = calls_of(prepare, tmp_path / "whole")
    for fatal in range(len(labels)):

        def kill(index: int, label: str, call: Callable[[], Any], fatal: int = fatal) -> Any:
            if index == fatal and moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return call()
            finally:
                if index == fatal:
                    os.kill(os.getpid(), signal.SIGKILL)

        folder = tmp_path / str(fatal)
        folder.mkdir()
        case = prepare(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other tests may have threads
            pid = os.fork()
        if pid == 0:
            try:
                watch(pytest.MonkeyPatch(), kill)
                case.store.save(NEW)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        check_old_or_new(case)
        renamed = fatal > naming(labels) - (moment == "after")
        content = case.file.read_bytes() if case.file.exists() else None
        assert (content != case.old) == renamed
        # Another process goes on, and so may one that has the store open since before.
        store = JsonFileStore(case.store.path)
        store.load()
        check_next_save(case, store)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("prepare", CASES)
def test_an_error_at_any_call_leaves_the_old_or_the_new_file_and_no_other_file(
    tmp_path: Path, prepare: Prepare, number: int
) -> None:
    """It reaches the caller, and the same store can save once the cause is gone."""
    labels = calls_of(prepare, tmp_path / "whole")
    for failing, label in enumerate(labels):

        def fail(index: int, label: str, call: Callable[[], Any], failing: int = failing) -> Any:
            if index == failing:
                if label.startswith("close"):
                    call()  # a close that reports an error has closed
                raise OSError(number, "injected")
            return call()

        folder = tmp_path / str(failing)
        folder.mkdir()
        case = prepare(folder)
        with pytest.MonkeyPatch.context() as patch:
            watch(patch, fail)
            # A lock file that only its maker can open is not needed where there is a document.
            unneeded = (label, number) == ("open lock", errno.EACCES) and case.old is not None
            if (label, number) in BEST_EFFORT or unneeded:
                case.store.save(NEW)
            else:
                with pytest.raises(OSError, match="injected") as caught:
                    case.store.save(NEW)
                assert caught.value.errno == number, label
        check_old_or_new(case)
        if "unlink" not in label and "listdir" not in label:
            leftover = (
                prepare is save_after_a_crash
                and failing < labels.index("unlink leftover")
                and label != "open leftover"
            )
            assert len(temp_files(folder)) == leftover, label
        assert _locks.lock_fds == set()
        check_next_save(case, case.store)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("prepare", CASES)
def test_a_disk_that_fails_from_some_call_on_leaves_the_old_or_the_new_file(
    tmp_path: Path, prepare: Prepare, number: int
) -> None:
    """Then the temp file cannot be removed either; the next save does it."""
    labels = calls_of(prepare, tmp_path / "whole")
    for first in range(len(labels)):

        def fail(index: int, label: str, call: Callable[[], Any], first: int = first) -> Any:
            if index >= first:
                if label.startswith("close"):
                    call()
                raise OSError(number, "injected")
            return call()

        folder = tmp_path / str(first)
        folder.mkdir()
        case = prepare(folder)
        with pytest.MonkeyPatch.context() as patch:
            watch(patch, fail)
            with pytest.raises(OSError, match="injected"):
                case.store.save(NEW)
        check_old_or_new(case)
        check_next_save(case, case.store)


def test_a_rename_that_took_place_despite_an_error_is_not_a_conflict_later(
    tmp_path: Path,
) -> None:
    """Network file systems do that when an answer is lost."""
    case = later_save(tmp_path)

    def late(index: int, label: str, call: Callable[[], Any]) -> Any:
        result = call()
        if label == "replace temp":
            raise OSError(errno.EIO, "injected")
        return result

    with pytest.MonkeyPatch.context() as patch:
        watch(patch, late)
        with pytest.raises(OSError, match="injected"):
            case.store.save(NEW)
    assert JsonFileStore(case.file).load() == NEW
    check_next_save(case, case.store)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_save_leaves_the_old_or_the_new_file(
    tmp_path: Path, error: type[BaseException]
) -> None:
    """Ctrl-C between any two calls; the next save works, also of the same store."""
    labels = calls_of(later_save, tmp_path / "whole")
    for moment in range(len(labels)):

        def interrupt(index: int, label: str, call: Callable[[], Any], at: int = moment) -> Any:
            if index == at and label.startswith("close"):
                call()
            if index == at:
                raise error
            return call()

        folder = tmp_path / str(moment)
        folder.mkdir()
        case = later_save(folder)
        with pytest.MonkeyPatch.context() as patch:
            watch(patch, interrupt)
            with pytest.raises(error):
                case.store.save(NEW)
        check_old_or_new(case)
        assert temp_files(folder) == []
        check_next_save(case, case.store)
