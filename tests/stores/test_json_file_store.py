"""Where and how ``JsonFileStore`` writes: paths, links, modes, names, and what it leaves alone."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import sentinel_memory
from sentinel_memory import JsonFileStore, StoreConflictError
from sentinel_memory.stores import _files, _locks, _paths

EMPTY: dict[str, Any] = {"version": 1, "entries": []}


def state(*entries: Any) -> dict[str, Any]:
    return {"version": 1, "entries": list(entries)}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# The path


def test_the_path_is_shown_and_cannot_be_changed(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    assert store.path == str(tmp_path / "m.json")
    assert repr(store) == f"JsonFileStore({store.path!r})"
    with pytest.raises(AttributeError):
        store.path = "other"  # type: ignore[misc]


def test_a_relative_path_stays_where_it_was_when_the_program_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = JsonFileStore("./sub/m.json")
    monkeypatch.chdir("/")
    store.save(EMPTY)
    assert store.path == str(tmp_path / "sub" / "m.json")
    assert (tmp_path / "sub" / "m.json").exists()


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert JsonFileStore("~/m.json").path == str(tmp_path / "m.json")
    assert JsonFileStore(Path("~/m.json")).path == str(tmp_path / "m.json")


def test_two_dots_after_a_link_are_resolved_as_by_the_system(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "inner")
    store = JsonFileStore(f"{tmp_path}/link/../m.json")
    store.save(EMPTY)
    assert (tmp_path / "real" / "m.json").exists()
    assert names(tmp_path) == ["link", "real"]


@pytest.mark.parametrize("path", ["", "a\0b", "folder/", f"folder{os.sep}"])
def test_a_text_that_cannot_be_the_path_of_a_file_is_a_value_error(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        JsonFileStore(path)


@pytest.mark.parametrize("path", [None, 3, b"m.json", ["m.json"], object()])
def test_a_path_of_another_type_is_a_type_error(path: Any) -> None:
    with pytest.raises(TypeError, match=r"path|PathLike"):
        JsonFileStore(path)


def test_making_a_store_touches_nothing(tmp_path: Path) -> None:
    JsonFileStore(tmp_path / "a" / "m.json")
    assert names(tmp_path) == []


def test_loading_writes_nothing(tmp_path: Path) -> None:
    assert JsonFileStore(tmp_path / "a" / "m.json").load() is None
    (tmp_path / "m.json").write_text(json.dumps(EMPTY))
    assert JsonFileStore(tmp_path / "m.json").load() == EMPTY
    assert names(tmp_path) == ["m.json"]


# What is not a file


@pytest.mark.parametrize("path", [None, 5, b"memory.json"])
def test_an_argument_that_is_not_a_path_is_named_in_the_error(path: Any) -> None:
    """An integer, too, which the system would take for an open file."""
    with pytest.raises(TypeError, match="path must be a str or a path object"):
        JsonFileStore(path)


def test_a_folder_is_refused_with_an_error_that_names_it(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path)
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        store.load()
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        store.save(EMPTY)
    assert tmp_path.is_dir()
    assert names(tmp_path) == []


def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    for path in ("file/m.json", "file/deeper/m.json"):
        store = JsonFileStore(tmp_path / path)
        with pytest.raises(NotADirectoryError, match="file"):
            store.load()
        with pytest.raises(NotADirectoryError, match="file"):
            store.save(EMPTY)
    assert (tmp_path / "file").read_text() == "text"


def test_a_pipe_a_socket_and_a_device_are_refused_at_once(tmp_path: Path) -> None:
    """They are neither waited for nor replaced by a file."""
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    (tmp_path / "device").symlink_to("/dev/null")
    for name in ("pipe", "socket", "device"):
        store = JsonFileStore(tmp_path / name)
        with pytest.raises(OSError, match=name):
            store.load()
        with pytest.raises(OSError, match=name if name != "device" else "/dev/null"):
            _files.read(_paths.resolve(store.path), to_replace=True)
    for name in ("pipe", "socket"):
        with pytest.raises(OSError, match=name):
            JsonFileStore(tmp_path / name).save(EMPTY)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_the_error_of_the_system_reaches_the_caller_of_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    store.save(EMPTY)

    def refuse(path: str, flags: int, mode: int = 0) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(PermissionError, match=r"m\.json"):
            store.load()
    store.save(state(1))
    assert store.load() == state(1)


# What is in the file


def test_the_file_is_one_line_of_json_with_other_scripts_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    JsonFileStore(path).save(state("žluťoučký 私 \U0001f600"))
    text = '{"version": 1, "entries": ["žluťoučký 私 \U0001f600"]'
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert path.read_bytes() == f'{text}, "digest": "{digest}"}}\n'.encode()


def test_a_lone_surrogate_is_escaped_and_nothing_else_with_it(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    JsonFileStore(path).save(state("ž\ud800"))
    assert path.read_bytes().startswith('{"version": 1, "entries": ["ž\\ud800"], '.encode())


def test_nothing_of_a_former_document_is_in_the_folder(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    store.save(state("peanuts" * 1000))
    store.save(EMPTY)
    assert names(tmp_path) == [".m.json.lock", "m.json"]
    for path in tmp_path.iterdir():
        assert b"peanuts" not in path.read_bytes()


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"version": 1},
        {"entries": []},
        {"version": 1, "entries": {}},
        {"version": 2, "entries": []},
        {"version": True, "entries": []},
    ],
)
def test_a_state_that_could_not_be_loaded_again_is_refused_before_anything_is_touched(
    tmp_path: Path, bad: dict[str, Any]
) -> None:
    store = JsonFileStore(tmp_path / "a" / "m.json")
    with pytest.raises(ValueError, match="state is not a document"):
        store.save(bad)
    with pytest.raises(TypeError, match="set"):
        store.save(state({1}))
    assert names(tmp_path) == []


# Modes and owners


def test_new_files_and_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        JsonFileStore(tmp_path / "a" / "b" / "m.json").save(EMPTY)
    finally:
        os.umask(old)
    assert mode_of(tmp_path / "a") == 0o700
    assert mode_of(tmp_path / "a" / "b") == 0o700
    assert mode_of(tmp_path / "a" / "b" / "m.json") == 0o600
    assert mode_of(tmp_path / "a" / "b" / ".m.json.lock") == 0o600


def test_the_temp_file_is_for_its_owner_only_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    write = os.write

    def look(fd: int, data: bytes) -> int:
        modes.append(stat.S_IMODE(os.fstat(fd).st_mode))
        return write(fd, data)

    path = tmp_path / "m.json"
    path.write_text(json.dumps(EMPTY))
    path.chmod(0o666)
    store = JsonFileStore(path)
    store.load()
    monkeypatch.setattr(os, "write", look)
    store.save(EMPTY)
    assert modes == [0o600]
    assert mode_of(path) == 0o666


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664, 0o666, 0o400])
def test_an_existing_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    store.save(EMPTY)
    path.chmod(mode)
    if os.access(path, os.W_OK):  # anybody but root may not replace what is read-only
        store.save(state(1))
    else:
        with pytest.raises(PermissionError):
            store.save(state(1))
    assert mode_of(path) == mode


def test_a_file_that_may_not_be_written_is_not_replaced_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renaming over it would only ask for permission to write in the folder."""
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    store.save(EMPTY)
    before = path.read_bytes()
    real = os.open

    def read_only(name: str, flags: int, mode: int = 0o777) -> int:
        if name == str(path) and flags & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return real(name, flags, mode)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(PermissionError, match=r"m\.json"):
        store.save(state(1))
    assert path.read_bytes() == before
    assert names(tmp_path) == [".m.json.lock", "m.json"]


def test_owner_and_group_are_kept_as_far_as_the_system_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    store.save(EMPTY)
    real = os.fstat
    asked: list[tuple[int, int]] = []

    def other_owner(fd: int) -> os.stat_result:
        status = real(fd)
        if status.st_ino != path.stat().st_ino:
            return status
        times = {"st_mtime_ns": status.st_mtime_ns, "st_ctime_ns": status.st_ctime_ns}
        return os.stat_result([*status[:4], 4711, 4712, *status[6:]], times)

    def refuse(fd: int, user: int, group: int) -> None:
        asked.append((user, group))
        raise PermissionError

    monkeypatch.setattr(os, "fstat", other_owner)
    monkeypatch.setattr(os, "fchown", refuse)
    store.save(state(1))
    assert asked == [(4711, 4712), (-1, 4712)] * 2  # for the lock file, then for the new one
    assert store.load() == state(1)


# Links


@pytest.mark.parametrize("relative", [True, False])
def test_a_chain_of_links_is_written_through(tmp_path: Path, relative: bool) -> None:
    (tmp_path / "deep").mkdir()
    target = tmp_path / "deep" / "m.json"
    target.write_text(json.dumps(EMPTY))
    (tmp_path / "two").symlink_to("deep/m.json" if relative else target)
    (tmp_path / "deep" / "one").symlink_to("../two" if relative else tmp_path / "two")
    (tmp_path / "link").symlink_to("deep/one" if relative else tmp_path / "deep" / "one")
    store = JsonFileStore(tmp_path / "link")
    assert store.load() == EMPTY
    store.save(state(1))
    assert JsonFileStore(target).load() == state(1)
    assert names(tmp_path) == ["deep", "link", "two"]
    assert names(tmp_path / "deep") == [".m.json.lock", "m.json", "one"]
    assert all((tmp_path / name).is_symlink() for name in ("link", "two", "deep/one"))


def test_saving_through_a_dangling_link_makes_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("missing/folder/m.json")
    store = JsonFileStore(tmp_path / "link")
    assert store.load() is None
    store.save(state(1))
    assert (tmp_path / "link").is_symlink()
    assert JsonFileStore(tmp_path / "missing" / "folder" / "m.json").load() == state(1)
    assert mode_of(tmp_path / "missing") == 0o700
    assert store.load() == state(1)


def test_a_path_through_a_linked_folder_is_written_there(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    JsonFileStore(tmp_path / "link" / "m.json").save(EMPTY)
    assert names(tmp_path / "real") == [".m.json.lock", "m.json"]


def test_links_in_a_circle_are_an_error_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    store = JsonFileStore(tmp_path / "one")
    for call in (store.load, lambda: store.save(EMPTY)):
        with pytest.raises(OSError, match="one") as caught:
            call()
        assert caught.value.errno == errno.ELOOP
    assert names(tmp_path) == ["one", "two"]


def test_all_names_of_one_file_share_one_lock_and_see_each_other(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("m.json")
    one, two = JsonFileStore(tmp_path / "link"), JsonFileStore(tmp_path / "m.json")
    one.save(state(1))
    with pytest.raises(StoreConflictError):
        two.save(state(2))
    assert names(tmp_path) == [".m.json.lock", "link", "m.json"]


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("text")
    (tmp_path / ".m.json.lock").symlink_to(victim)
    with pytest.raises(OSError, match="lock"):
        JsonFileStore(tmp_path / "m.json").save(EMPTY)
    assert victim.read_text() == "text"


# Temp files


def temp_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    real = os.replace

    def note(source: str, target: str) -> None:
        seen.append(source)
        assert Path(source).parent == Path(target).parent
        real(source, target)

    monkeypatch.setattr(os, "replace", note)
    return seen


def test_every_save_has_a_temp_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)
    seen = temp_names(monkeypatch)
    store.save(EMPTY)
    store.save(EMPTY)
    assert len(set(seen)) == 2
    assert all(Path(name).name.startswith(".m.json.") for name in seen)


def test_a_file_that_has_the_name_of_the_temp_file_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)
    monkeypatch.setattr(os, "urandom", lambda size: bytes(size))
    foreign = tmp_path / f".m.json.{'00' * 8}.tmp"
    foreign.write_text("text")
    with pytest.raises(FileExistsError):
        store.save(state(1))
    assert foreign.read_text() == "text"
    assert store.load() == EMPTY


def test_temp_files_of_killed_writers_are_swept_and_foreign_files_never(tmp_path: Path) -> None:
    ours = ".m.json.0123456789abcdef.tmp"
    foreign = [
        ".m.json.0123456789abcde.tmp",
        ".m.json.0123456789abcdef0.tmp",
        ".m.json.0123456789ABCDEF.tmp",
        ".m.json.0123456789abcdeg.tmp",
        ".m.json.0123456789abcdef.tmp.tmp",
        ".m.json.0123456789abcdef",
        ".m.json..tmp",
        ".m.json.tmp",
        ".n.json.0123456789abcdef.tmp",
        ".am.json.0123456789abcdef.tmp",
        ".m.json.m.json.0123456789abcdef.tmp",
        "m.json.0123456789abcdef.tmp",
        "m.json.tmp",
        "m.json~",
    ]
    for name in (ours, *foreign):
        (tmp_path / name).write_text("text")
    store = JsonFileStore(tmp_path / "m.json")
    store.load()
    assert (tmp_path / ours).exists()
    store.save(EMPTY)
    assert names(tmp_path) == sorted([".m.json.lock", "m.json", *foreign])


def test_a_store_that_has_saved_sweeps_what_another_process_leaves_later(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)
    script = (
        "import os, sys\n"
        "from sentinel_memory import JsonFileStore\n"
        "store = JsonFileStore(sys.argv[1])\n"
        "store.load()\n"
        "os.replace = lambda source, target: os._exit(9)\n"
        "store.save({'version': 1, 'entries': ['lost']})\n"
    )
    source = str(Path(sentinel_memory.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    run = subprocess.run([sys.executable, "-c", script, store.path], env=environment, check=False)
    assert run.returncode == 9
    assert len(names(tmp_path)) == 3
    store.save(state(1))
    assert names(tmp_path) == [".m.json.lock", "m.json"]


def test_a_folder_is_listed_once_and_after_a_crash_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand files beside this one must not slow down every save."""
    listed: list[str] = []
    real = os.listdir

    def note(path: str) -> list[str]:
        listed.append(path)
        return real(path)

    monkeypatch.setattr(os, "listdir", note)
    store = JsonFileStore(tmp_path / "m.json")
    for _ in range(3):
        store.save(EMPTY)
    assert len(listed) == 1
    (tmp_path / ".m.json.lock").write_bytes(b"\0")  # as a killed writer leaves it
    for _ in range(3):
        store.save(EMPTY)
    assert len(listed) == 2


def test_without_locks_nothing_is_swept_and_saving_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then nobody knows whether the writer of a temp file still lives."""
    living = tmp_path / ".m.json.0123456789abcdef.tmp"
    living.write_text("text")
    monkeypatch.setattr(_locks, "fcntl", None)
    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)
    store.save(state(1))
    assert names(tmp_path) == [living.name, "m.json"]
    with pytest.raises(StoreConflictError):
        JsonFileStore(tmp_path / "m.json").save(EMPTY)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_treated_like_a_platform_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    living = tmp_path / ".m.json.0123456789abcdef.tmp"
    living.write_text("text")

    def refuse(fd: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)
    assert store.load() == EMPTY
    assert living.exists()
    assert _locks.lock_fds == set()


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_flush_a_folder_raises_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real = os.fsync

    def no_folders(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(number, os.strerror(number))
        real(fd)

    monkeypatch.setattr(os, "fsync", no_folders)
    store = JsonFileStore(tmp_path / "a" / "m.json")
    store.save(EMPTY)
    assert store.load() == EMPTY


@pytest.mark.parametrize(
    "name",
    ["n" * 255, "n" * 253 + "é", "私" * 85, "n" * 101, "私" * 34, "a" * 99 + "é" * 78],
)
def test_a_name_as_long_as_the_system_allows_can_be_saved(tmp_path: Path, name: str) -> None:
    store = JsonFileStore(tmp_path / name)
    for number in range(3):
        store.save(state(number))
    assert store.load() == state(2)
    assert len(names(tmp_path)) == 2
    assert all(len(os.fsencode(name)) <= 143 for name in names(tmp_path) if name[0] == ".")


def test_long_names_with_one_beginning_do_not_harm_each_other(tmp_path: Path) -> None:
    one, two = (JsonFileStore(tmp_path / ("n" * 200 + end)) for end in "12")
    one.save(state(1))
    two.save(state(2))
    one.save(state(3))
    assert (one.load(), two.load()) == (state(3), state(2))


def test_a_name_that_is_not_text_can_be_saved(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")
    store = JsonFileStore(path)
    store.save(EMPTY)
    assert store.load() == EMPTY


# What the platform does


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EBUSY])
def test_a_file_that_is_a_mount_gives_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path = tmp_path / "m.json"
    store = JsonFileStore(path)
    store.save(EMPTY)

    def refuse(source: str, target: str) -> None:
        raise OSError(number, os.strerror(number), source, None, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="mount the folder that holds it instead") as caught:
        store.save(state(1))
    assert caught.value.errno == number
    assert caught.value.filename == str(path)
    assert store.load() == EMPTY
    assert names(tmp_path) == [".m.json.lock", "m.json"]


class SharingViolation(PermissionError):
    winerror = 32


@pytest.mark.parametrize("refusals", [0, 1, 6, 7])
def test_a_rename_blocked_by_another_program_is_retried_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    """As on Windows, where a file that somebody reads cannot be replaced."""
    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)
    pauses: list[float] = []
    left = [None] * refusals
    real = os.replace

    def busy(source: str, target: str) -> None:
        if left:
            left.pop()
            raise SharingViolation(errno.EACCES, "in use", source)
        real(source, target)

    monkeypatch.setattr(os, "replace", busy)
    monkeypatch.setattr(time, "sleep", pauses.append)
    if refusals < 7:
        store.save(state(1))
        assert store.load() == state(1)
    else:
        with pytest.raises(PermissionError):
            store.save(state(1))
        assert store.load() == EMPTY
        store.save(state(2))
        assert store.load() == state(2)
    assert len(pauses) == min(refusals, 6)
    assert sum(pauses) < 1
    assert names(tmp_path) == [".m.json.lock", "m.json"]


def test_a_refused_rename_is_not_tried_again_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    def refuse(source: str, target: str) -> None:
        tries.append(source)
        raise PermissionError(errno.EACCES, "no", source)

    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        store.save(state(1))
    assert len(tries) == 1
    assert names(tmp_path) == [".m.json.lock", "m.json"]
    assert store.load() == EMPTY


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.EMLINK, errno.EOPNOTSUPP])
def test_where_there_are_no_hard_links_a_first_document_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(number, os.strerror(number), source)

    monkeypatch.setattr(os, "link", refuse)
    store = JsonFileStore(tmp_path / "m.json")
    store.save(state(1))
    assert store.load() == state(1)
    assert names(tmp_path) == [".m.json.lock", "m.json"]


def test_a_first_document_never_replaces_one_that_appeared_at_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.json"
    real = os.link

    def link(source: str, target: str) -> None:
        path.write_text("theirs")
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(StoreConflictError, match="has not read it"):
        JsonFileStore(path).save(state(1))
    assert path.read_text() == "theirs"
    assert names(tmp_path) == [".m.json.lock", "m.json"]


def test_a_link_that_was_made_despite_an_error_is_not_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network file system that lost the answer asks again, and finds its own link."""
    real = os.link

    def link(source: str, target: str) -> None:
        real(source, target)
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    store = JsonFileStore(tmp_path / "m.json")
    store.save(state(1))
    store.save(state(2))
    assert store.load() == state(2)


def test_a_write_that_takes_only_a_part_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
    store = JsonFileStore(tmp_path / "m.json")
    store.save(state("text " * 50))
    assert store.load() == state("text " * 50)


def test_no_file_is_left_open(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "m.json")
    before = os.dup(0)
    os.close(before)
    for _ in range(3):
        store.save(EMPTY)
        store.load()
    with pytest.raises(StoreConflictError):
        JsonFileStore(store.path).save(EMPTY)
    after = os.dup(0)
    os.close(after)
    assert after == before


def test_the_files_of_a_save_are_not_passed_on_to_other_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inherited: list[bool] = []
    real = os.replace

    def look(source: str, target: str) -> None:
        inherited.extend(os.get_inheritable(fd) for fd in _locks.lock_fds)
        real(source, target)

    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)
    monkeypatch.setattr(os, "replace", look)
    store.save(state(1))
    assert inherited == [False] * 3  # the lock file, the old document and the new one


def test_a_store_that_is_no_longer_used_is_freed(tmp_path: Path) -> None:
    import gc
    import weakref

    store = JsonFileStore(tmp_path / "m.json")
    store.save(EMPTY)
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None


def test_importing_the_stores_is_light() -> None:
    """Without the rest of the package, which is not theirs to answer for."""
    heavy = ["asyncio", "dataclasses", "hashlib", "inspect", "logging", "pathlib", "pickle"]
    heavy += ["random", "secrets", "shutil", "subprocess", "tempfile"]
    script = (
        "import sys, types\n"
        "package = sys.modules['sentinel_memory'] = types.ModuleType('sentinel_memory')\n"
        "package.__path__ = [sys.argv[1]]\n"
        "before = set(sys.modules)\n"
        "import sentinel_memory.stores\n"
        f"print(sorted((set(sys.modules) - before) & set({heavy})))\n"
    )
    package = str(Path(sentinel_memory.__file__).parent)
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, package],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "[]\n"
