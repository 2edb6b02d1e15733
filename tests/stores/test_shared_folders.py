"""Folders that others may write in: what is used there, what is refused, and whose rights are kept.

With several users, so only for root; a child process is each of them in turn.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import JsonFileStore
from sentinel_memory.stores import _locks

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be several users"
)

EMPTY: dict[str, Any] = {"version": 1, "entries": []}
ANNE, BOB, STRANGER = 1001, 1002, 1003
TEAM, WHEEL = 2001, 2002
NOBODY = 0xFFFFFFFF
LOCK = ".m.json.lock"


def state(*entries: Any) -> dict[str, Any]:
    return {"version": 1, "entries": list(entries)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that every user can reach."""
    for part in (tmp_path, *tmp_path.parents):
        if part.stat().st_mode & 0o077 == 0:
            part.chmod(part.stat().st_mode | 0o011)
    return tmp_path


def as_user(
    user: int, work: Callable[[], object], *, group: int | None = None, groups: tuple[int, ...] = ()
) -> str:
    """What ``work`` raises in a process of that user, as text, or nothing."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other tests may have threads
        pid = os.fork()
    if pid == 0:
        try:
            os.setgroups(groups)
            os.setgid(user if group is None else group)
            os.setuid(user)
            try:
                work()
            except Exception as error:
                os.write(writer, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        answer = file.read().decode()
    os.waitpid(pid, 0)
    return answer


def saver(path: Path, number: int = 1) -> Callable[[], object]:
    def save() -> None:
        store = JsonFileStore(path, lock_timeout=0.05)
        store.load()
        store.save(state(number))

    return save


def loader(path: Path) -> Callable[[], object]:
    return lambda: JsonFileStore(path).load()


def rights(path: Path) -> tuple[int, int, int]:
    status = path.lstat()
    return status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)


def shared_with_everybody(folder: Path, sticky: bool) -> Path:
    folder.chmod(0o1777 if sticky else 0o777)
    return folder / "m.json"


def shared_with_a_team(folder: Path, mode: int = 0o770) -> Path:
    os.chown(folder, 0, TEAM)
    folder.chmod(mode)
    return folder / "m.json"


# A folder that everybody may write in


@pytest.mark.parametrize("sticky", [True, False])
def test_in_a_folder_for_everybody_files_of_the_caller_are_used(folder: Path, sticky: bool) -> None:
    path = shared_with_everybody(folder, sticky)
    for number in range(2):
        assert as_user(ANNE, saver(path, number)) == ""
    assert rights(path) == (ANNE, ANNE, 0o600)
    assert rights(folder / LOCK) == (ANNE, ANNE, 0o600)


@pytest.mark.parametrize("sticky", [True, False])
@pytest.mark.parametrize("victim", [0, ANNE])
def test_in_a_folder_for_everybody_files_of_others_are_refused(
    folder: Path, sticky: bool, victim: int
) -> None:
    path = shared_with_everybody(folder, sticky)
    path.write_text('{"version": 1, "entries": []}')
    os.chown(path, STRANGER, STRANGER)
    path.chmod(0o6777)
    before = path.read_bytes()
    for work in (loader(path), saver(path), JsonFileStore(path).exclusive().__enter__):
        answer = as_user(victim, work)
        assert answer.startswith("PermissionError")
        assert "belongs to another user" in answer
        assert str(path) in answer
    assert path.read_bytes() == before
    assert rights(path) == (STRANGER, STRANGER, 0o6777)


@pytest.mark.parametrize("sticky", [True, False])
@pytest.mark.parametrize("owner", [STRANGER, ANNE])
def test_in_a_folder_for_everybody_no_link_is_followed_to_a_file(
    folder: Path, sticky: bool, owner: int
) -> None:
    private = folder / "private"
    private.mkdir()
    os.chown(private, ANNE, ANNE)
    shared = folder / "shared"
    shared.mkdir()
    path = shared_with_everybody(shared, sticky)
    path.symlink_to(private / "target.json")
    os.lchown(path, owner, owner)
    for work in (loader(path), saver(path)):
        answer = as_user(ANNE, work)
        assert answer.startswith("PermissionError")
        assert "symbolic link" in answer
        assert str(path) in answer
    assert list(private.iterdir()) == []
    assert path.is_symlink()
    # One that leads there from a folder of one's own is no better.
    (private / "mine").symlink_to(path)
    assert "symbolic link" in as_user(ANNE, saver(private / "mine"))


@pytest.mark.parametrize("sticky", [True, False])
def test_in_a_folder_for_everybody_a_folder_behind_a_link_of_others_is_not_entered(
    folder: Path, sticky: bool
) -> None:
    private = folder / "private"
    private.mkdir()
    os.chown(private, ANNE, ANNE)
    shared = folder / "shared"
    shared.mkdir()
    shared_with_everybody(shared, sticky)
    (shared / "planted").symlink_to(private)
    os.lchown(shared / "planted", STRANGER, STRANGER)
    for path in (shared / "planted" / "m.json", shared / "planted" / "a" / "m.json"):
        assert "symbolic link" in as_user(ANNE, loader(path))
        assert "symbolic link" in as_user(ANNE, saver(path))
    assert list(private.iterdir()) == []
    os.lchown(shared / "planted", ANNE, ANNE)
    assert as_user(ANNE, saver(shared / "planted" / "m.json")) == ""


@pytest.mark.parametrize("sticky", [True, False])
def test_in_a_folder_for_everybody_a_planted_lock_file_is_not_used(
    folder: Path, sticky: bool
) -> None:
    path = shared_with_everybody(folder, sticky)
    lock = folder / LOCK
    for mode in (0o666, 0o600):
        lock.write_bytes(b"precious")
        os.chown(lock, STRANGER, STRANGER)
        lock.chmod(mode)
        for victim in (0, ANNE):
            answer = as_user(victim, saver(path))
            assert answer.startswith("PermissionError")
            assert LOCK in answer
        assert lock.read_bytes() == b"precious"
        assert not path.exists()


@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "pipe", "folder"])
def test_a_lock_file_that_is_a_link_or_not_a_regular_file_is_not_used(
    folder: Path, kind: str
) -> None:
    """Whoever owns it: it would be truncated."""
    path = folder / "m.json"
    lock = folder / LOCK
    precious = folder / "precious"
    precious.write_bytes(b"precious")
    if kind == "link":
        lock.symlink_to(precious)
    elif kind == "dangling link":
        lock.symlink_to(folder / "missing")
    elif kind == "hard link":
        lock.hardlink_to(precious)
    elif kind == "pipe":
        os.mkfifo(lock)
    else:
        lock.mkdir()
    with pytest.raises(OSError, match="lock"):
        JsonFileStore(path).save(EMPTY)
    assert precious.read_bytes() == b"precious"
    assert not path.exists()
    assert not (folder / "missing").exists()
    assert _locks.lock_fds == set()


def test_a_file_of_the_caller_with_the_name_of_the_lock_keeps_its_text(folder: Path) -> None:
    (folder / LOCK).write_text("notes")
    store = JsonFileStore(folder / "m.json")
    for number in range(2):
        store.save(state(number))
    assert (folder / LOCK).read_text() == "notes"


def test_in_a_folder_for_everybody_planted_temp_files_do_no_harm(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shared_with_everybody(folder, sticky=True)
    precious = folder / "precious"
    precious.write_bytes(b"precious")
    planted = folder / f".m.json.{'00' * 8}.tmp"
    planted.symlink_to(precious)
    os.lchown(planted, STRANGER, STRANGER)
    monkeypatch.setattr(os, "urandom", lambda size: bytes(size))  # the stranger guesses right
    assert as_user(ANNE, saver(path)).startswith("FileExistsError")
    assert precious.read_bytes() == b"precious"
    assert planted.is_symlink()


# A folder of a group


def test_in_the_folder_of_a_group_files_and_locks_of_others_are_used(folder: Path) -> None:
    path = shared_with_a_team(folder)
    assert as_user(ANNE, saver(path), groups=(TEAM,)) == ""
    os.chown(path, ANNE, TEAM)
    path.chmod(0o660)
    # The lock file is still for Anne alone, and so not for Bob; the document is for both.
    assert as_user(BOB, saver(path, 2), groups=(TEAM,)) == ""
    assert rights(path) == (BOB, TEAM, 0o660)
    assert as_user(ANNE, saver(path, 3), groups=(TEAM,)) == ""
    assert rights(folder / LOCK) == (ANNE, TEAM, 0o660)
    assert as_user(BOB, saver(path, 4), groups=(TEAM,)) == ""
    assert JsonFileStore(path).load() == state(4)
    assert as_user(STRANGER, loader(path)).startswith("PermissionError")
    with (folder / LOCK).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert as_user(BOB, saver(path, 5), groups=(TEAM,)).startswith("TimeoutError")


def test_a_new_lock_takes_the_group_and_the_mode_of_the_document(folder: Path) -> None:
    path = shared_with_a_team(folder)
    path.write_text('{"version": 1, "entries": []}')
    os.chown(path, ANNE, TEAM)
    path.chmod(0o664)
    assert as_user(BOB, saver(path), groups=(TEAM,)) == ""
    assert rights(folder / LOCK) == (BOB, TEAM, 0o664)


def test_root_gives_the_lock_the_owner_of_the_document(folder: Path) -> None:
    """So that its owner can go on after an administrator repaired something."""
    os.chown(folder, ANNE, ANNE)
    folder.chmod(0o700)
    path = folder / "m.json"
    path.write_text('{"version": 1, "entries": []}')
    os.chown(path, ANNE, ANNE)
    path.chmod(0o600)
    saver(path)()
    assert rights(path) == (ANNE, ANNE, 0o600)
    assert rights(folder / LOCK) == (ANNE, ANNE, 0o600)
    assert as_user(ANNE, saver(path, 2)) == ""


def test_a_link_in_the_folder_of_a_group_is_written_through(folder: Path) -> None:
    path = shared_with_a_team(folder)
    path.symlink_to(folder / "target.json")
    assert as_user(ANNE, saver(path), groups=(TEAM,)) == ""
    assert path.is_symlink()
    assert JsonFileStore(folder / "target.json").load() == state(1)


# Rights


@pytest.mark.parametrize("mode", [0o6777, 0o4755, 0o2664, 0o1644])
def test_set_id_bits_are_never_copied(folder: Path, mode: int) -> None:
    path = shared_with_a_team(folder)
    path.write_text('{"version": 1, "entries": []}')
    os.chown(path, STRANGER, TEAM)
    path.chmod(mode)
    saver(path)()
    assert rights(path) == (STRANGER, TEAM, mode & 0o777)
    assert (folder / LOCK).stat().st_mode & 0o7000 == 0


@pytest.mark.parametrize(("mode", "kept"), [(0o660, 0o600), (0o664, 0o644), (0o640, 0o600)])
def test_a_group_that_replaces_another_gets_at_most_the_rights_of_others(
    folder: Path, mode: int, kept: int
) -> None:
    """Bob may write the document, being a member of no group that owns it."""
    folder.chmod(0o700)
    os.chown(folder, BOB, BOB)
    path = folder / "m.json"
    path.write_text('{"version": 1, "entries": []}')
    os.chown(path, BOB, TEAM)
    path.chmod(mode)
    assert as_user(BOB, saver(path)) == ""
    assert rights(path) == (BOB, BOB, kept)


@pytest.mark.parametrize("user", [0, ANNE])
def test_a_umask_of_777_does_not_lock_the_caller_out(folder: Path, user: int) -> None:
    os.chown(folder, user, user)
    path = folder / "a" / "b" / "m.json"

    def work() -> None:
        os.umask(0o777)
        for number in range(2):
            saver(path, number)()

    assert as_user(user, work) == ""
    assert rights(folder / "a") == rights(folder / "a" / "b") == (user, user, 0o700)
    assert rights(path) == rights(path.parent / LOCK) == (user, user, 0o600)


# Access-control lists

needs_lists = pytest.mark.skipif(sys.platform != "linux", reason="lists of this kind are Linux's")
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def access_control_list(user: int, permissions: int, *, group: int = 0, mask: int = 6) -> bytes:
    """rw for the owner, these permissions for ``user``, those of ``group`` for the group."""
    entries = [
        (0x01, 6, NOBODY),
        (0x02, permissions, user),
        (0x04, group, NOBODY),
        (0x10, mask, NOBODY),
        (0x20, 0, NOBODY),
    ]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@needs_lists
def test_an_access_control_list_is_kept(folder: Path) -> None:
    """``setfacl -m u:1002:rw``: Bob may go on writing, and the group gains nothing."""
    folder.chmod(0o777)  # Bob makes temp files there
    team = folder / "team"
    team.mkdir()
    os.chown(team, 0, TEAM)
    team.chmod(0o770)
    path = team / "m.json"
    assert as_user(ANNE, saver(path), groups=(TEAM,)) == ""
    os.setxattr(path, ACCESS, access_control_list(BOB, 6))
    assert rights(path) == (ANNE, ANNE, 0o660)  # the mask, not the group
    assert as_user(ANNE, saver(path, 2), groups=(TEAM,)) == ""
    for file in (path, team / LOCK):
        assert os.getxattr(file, ACCESS) == access_control_list(BOB, 6)
        assert rights(file) == (ANNE, ANNE, 0o660)
    assert as_user(STRANGER, loader(path), group=ANNE, groups=(TEAM,)).startswith("PermissionError")
    assert as_user(BOB, saver(path, 3), groups=(TEAM,)) == ""
    assert JsonFileStore(path).load() == state(3)


@needs_lists
@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_without_its_access_control_list_a_file_gives_its_group_no_more_rights(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(fd: int, name: str, value: bytes) -> None:
        raise OSError(number, os.strerror(number))

    for group, mask, mode in [(0, 6, 0o600), (4, 6, 0o640), (6, 4, 0o640), (7, 6, 0o660)]:
        path = folder / "m.json"
        path.write_text('{"version": 1, "entries": []}')
        os.setxattr(path, ACCESS, access_control_list(BOB, 6, group=group, mask=mask))
        with monkeypatch.context() as patch:
            patch.setattr(os, "setxattr", refuse)
            saver(path)()
        assert rights(path) == (0, 0, mode)
        path.unlink()


@needs_lists
def test_the_list_entry_of_a_group_that_could_not_be_kept_is_not_given_to_the_new_group(
    folder: Path,
) -> None:
    os.chown(folder, BOB, BOB)
    path = folder / "m.json"
    path.write_text('{"version": 1, "entries": []}')
    os.chown(path, BOB, TEAM)
    os.setxattr(path, ACCESS, access_control_list(ANNE, 6, group=6))
    assert as_user(BOB, saver(path)) == ""
    assert os.getxattr(path, ACCESS) == access_control_list(ANNE, 6, group=0)
    assert rights(path) == (BOB, BOB, 0o660)


@needs_lists
def test_the_default_list_of_a_folder_gives_no_access_to_a_document_without_one(
    folder: Path,
) -> None:
    path = folder / "m.json"
    store = JsonFileStore(path)
    store.save(EMPTY)
    path.chmod(0o640)
    os.setxattr(folder, DEFAULT, access_control_list(STRANGER, 6))
    store.save(state(1))
    assert rights(path) == (0, 0, 0o640)
    assert as_user(STRANGER, loader(path)).startswith("PermissionError")
    new = JsonFileStore(folder / "new.json")
    new.save(state(1))
    assert rights(folder / "new.json") == (0, 0, 0o600)
    assert as_user(STRANGER, loader(folder / "new.json")).startswith("PermissionError")
