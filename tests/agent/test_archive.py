"""The archive: whole snapshots or none, and a memory that never notices."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import IgnoredValueWarning, Memory
from sentinel_memory.agent import Archive, ArchiveDamagedError
from sentinel_memory.results import Compaction
from support.clocks import FakeClock


def filled(archive: Archive, clock: FakeClock, count: int = 4) -> Memory:
    memory = Memory(limit=1, on_evict=archive, clock=clock)
    for number in range(count):
        memory.remember(f"chat:{number}", f"text {number}", importance=0.3)
        clock.tick(1)
    assert archive.flush(30)
    return memory


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json.gz"))


def test_evicted_entries_come_back_as_they_were(clock: FakeClock, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "a", clock=clock)
    memory = Memory(limit=2, on_evict=archive, clock=clock)
    memory.remember("chat:1", {"text": "hello"}, importance=0.1, ttl=9_000, meta={"tags": ["x"]})
    memory.reinforce("chat:1")
    went = memory.entry("chat:1")
    clock.tick(1)
    memory.remember("chat:2", "b")
    memory.remember("chat:3", "c")
    assert archive.flush(30)
    [found] = archive.find("chat:1")
    assert (found.entry, found.cause, found.at) == (went, "evicted", clock.now)
    memory.forget("chat:2")
    assert memory.put_back(archive.restore(found.file)) == (went,)
    assert archive.restore(Path(found.file).name) == (went,)
    assert archive.find("chat:2") == []
    assert archive.written == 1
    assert archive.errors == archive.dropped == 0


def test_a_snapshot_is_two_files_that_other_tools_can_read(
    clock: FakeClock, tmp_path: Path
) -> None:
    folder = tmp_path / "deep" / "a"
    filled(Archive(folder, clock=clock), clock, 2)
    [data] = files(folder)
    at = datetime.fromtimestamp(clock.now - 1, UTC)
    assert data.name.startswith(f"evicted-{at:%Y%m%dT%H%M%S}000Z-")
    document = json.loads(gzip.decompress(data.read_bytes()))
    assert (document["version"], document["cause"]) == (1, "evicted")
    assert [entry["key"] for entry in document["entries"]] == ["chat:0"]
    assert data.read_bytes()[4:8] == b"\0\0\0\0"  # no time in the header
    if os.name == "posix":
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    if shutil.which("sha256sum"):
        done = subprocess.run(
            ["sha256sum", "-c", f"{data.name}.sha256"], cwd=folder, capture_output=True, check=True
        )
        assert b"OK" in done.stdout


def test_only_what_was_evicted_is_archived(clock: FakeClock, tmp_path: Path) -> None:
    archive = Archive(tmp_path, clock=clock)
    memory = Memory(limit=2, on_evict=archive, clock=clock)
    memory.remember("a", 1, ttl=1)
    memory.remember("b", 1)
    memory.forget("b")
    clock.tick(1)
    memory.remember("c", 1)
    memory.remember("d", 1)
    archive(None)
    archive(Compaction())
    assert archive.flush(30)
    assert archive.written == 0
    full = Memory(clock=clock)
    for number in range(3):
        full.remember(f"k{number}", number)
    result = memory.restore(full.to_state())
    archive(result.compaction)
    assert archive.flush(30)
    assert len(archive.find("k0")) == 1


def test_the_newest_are_found_first_and_the_oldest_are_dropped_over_the_bound(
    clock: FakeClock, tmp_path: Path
) -> None:
    archive = Archive(tmp_path, clock=clock, max_bytes=2_000)
    memory = Memory(limit=1, on_evict=archive, clock=clock)
    for number in range(40):
        memory.remember(f"chat:{number % 2}", number)
        clock.tick(1)
        assert archive.flush(30)
    found = archive.find("chat:0")
    assert [one.at for one in found] == sorted((one.at for one in found), reverse=True)
    assert found[0].entry.data == 38
    assert archive.dropped > 20
    assert len(files(tmp_path)) == archive.written - archive.dropped
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2_000
    again = Archive(tmp_path, clock=clock, max_bytes=600)
    again(Compaction(evicted=(found[0].entry,)))
    assert again.flush(30)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 600


def test_a_snapshot_over_the_bound_is_an_error_and_drops_nothing(
    clock: FakeClock, tmp_path: Path
) -> None:
    told: list[Exception] = []
    archive = Archive(tmp_path, clock=clock, max_bytes=2_000, on_error=told.append)
    memory = filled(archive, clock, 3)
    noise = "".join(random.Random(1).choices("abcdefghijklmnop", k=9_000))
    memory.remember("big", noise, importance=0.1)
    memory.remember("chat:9", 1, importance=0.9)
    assert archive.flush(30)
    assert archive.errors == len(told) == 1
    assert "bound" in str(told[0])
    assert archive.find("chat:0")


def test_a_flipped_byte_is_noticed_wherever_it_is(clock: FakeClock, tmp_path: Path) -> None:
    """1,000 flips in data and checksums: nothing is restored that does not verify."""
    archive = Archive(tmp_path, clock=clock)
    filled(archive, clock)
    choose = random.Random(7)
    for _ in range(1_000):
        data = choose.choice(files(tmp_path))
        path = choose.choice([data, data.with_name(f"{data.name}.sha256")])
        before = path.read_bytes()
        place = choose.randrange(len(before))
        flipped = bytearray(before)
        flipped[place] ^= 1 << choose.randrange(8)
        path.write_bytes(flipped)
        if path != data and bytes(flipped).split() == before.split():
            # Only the blanks of a checksum may be others.
            assert archive.restore(str(data))
            path.write_bytes(before)
            continue
        with pytest.raises(ArchiveDamagedError, match=re.escape(str(data))) as caught:
            archive.restore(str(data))
        assert caught.value.file == str(data)
        assert archive.verify() == [str(data)]
        assert all(one.file != str(data) for n in range(3) for one in archive.find(f"chat:{n}"))
        assert path.read_bytes() == flipped
        path.write_bytes(before)
    assert archive.verify() == []


def test_a_snapshot_that_is_cut_short_or_incomplete_is_damaged(
    clock: FakeClock, tmp_path: Path
) -> None:
    archive = Archive(tmp_path, clock=clock)
    filled(archive, clock, 3)
    first, second = files(tmp_path)
    first.write_bytes(first.read_bytes()[:20])
    second.with_name(f"{second.name}.sha256").unlink()
    assert archive.verify() == [str(first), str(second)]
    for path in (first, second):
        with pytest.raises(ArchiveDamagedError):
            archive.restore(path)
    with pytest.raises(FileNotFoundError):
        archive.restore("evicted-20260101T000000000Z-1.json.gz")
    with pytest.raises(ValueError, match="not in the folder"):
        archive.restore(tmp_path.parent / first.name)


def test_temp_files_of_dead_writers_are_swept(clock: FakeClock, tmp_path: Path) -> None:
    filled(Archive(tmp_path, clock=clock), clock, 2)
    [data] = files(tmp_path)
    name = "evicted-20200101T000000000Z-5.json.gz"
    left = [tmp_path / f"{name}{end}" for end in (".part", ".sha256.part", ".sha256")]
    for path in left:
        path.write_bytes(b"x")
    other = tmp_path / "notes.sha256"
    other.write_bytes(b"x")
    archive = Archive(tmp_path, clock=clock)
    assert archive.verify() == []
    filled(archive, clock, 2)
    assert not any(path.exists() for path in left)
    assert data.exists()
    assert other.exists()


def test_erasing_leaves_no_trace_of_a_key(clock: FakeClock, tmp_path: Path) -> None:
    archive = Archive(tmp_path, clock=clock)
    memory = Memory(clock=clock)
    entries = [memory.remember(key, f"of {key}").entry for key in ("a", "b", "a2")]
    archive(Compaction(evicted=tuple(entries)))
    archive(Compaction(evicted=tuple(entries[:1])))
    assert archive.flush(30)
    archive(Compaction(evicted=tuple(entries)))
    gone = archive.erase("a")
    assert archive.flush(30)
    assert gone == 3
    assert archive.find("a") == []
    assert len(archive.find("b")) == len(archive.find("a2")) == 2
    assert archive.verify() == []
    assert archive.erase("a") == 0
    assert all(b'of a"' not in gzip.decompress(path.read_bytes()) for path in files(tmp_path))
    assert Archive(tmp_path / "missing").erase("a") == 0


def test_erasing_says_which_snapshot_it_cannot_read(clock: FakeClock, tmp_path: Path) -> None:
    archive = Archive(tmp_path, clock=clock)
    filled(archive, clock, 3)
    first = files(tmp_path)[0]
    first.write_bytes(b"rubbish")
    with pytest.raises(ArchiveDamagedError, match="chat:1") as caught:
        archive.erase("chat:1")
    assert caught.value.file == str(first)
    assert archive.find("chat:1") == []


@pytest.mark.parametrize("trouble", ["is a file", "full", "read-only"])
def test_a_failing_archive_does_not_disturb_the_memory(
    clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    folder = tmp_path / "a"
    if trouble == "is a file":
        folder.write_text("")
    else:
        number = {"full": 28, "read-only": 30}[trouble]

        def refuse(*_: Any) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync" if trouble == "full" else "makedirs", refuse)
    told: list[Exception] = []

    def tell(error: Exception) -> None:
        told.append(error)
        raise KeyError  # not a reason to stop either

    archive = Archive(folder, on_error=tell, clock=clock)
    memory = Memory(limit=1, on_evict=archive, clock=clock)
    memory.remember("chat:1", "a")
    result = memory.remember("chat:2", "b")
    assert result.kept
    assert result.compaction is not None
    assert archive.flush(30)
    assert archive.errors == len(told) == 1
    monkeypatch.undo()
    assert list(folder.glob("evicted*")) == []
    if trouble == "is a file":
        folder.unlink()
    memory.remember("chat:3", "c")
    assert archive.flush(30)
    assert archive.find("chat:2")
    assert archive.errors == 1


def test_entries_beyond_the_waiting_limit_are_dropped_and_counted(
    clock: FakeClock, tmp_path: Path
) -> None:
    told: list[Exception] = []
    archive = Archive(tmp_path, clock=clock, on_error=told.append)
    entry = Memory(clock=clock).remember("a", 1).entry
    go = threading.Event()
    real = os.makedirs

    def slow(*arguments: Any, **options: Any) -> None:
        assert go.wait(30)
        real(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "makedirs", slow)
        for _ in range(1_002):
            archive(Compaction(evicted=(entry,)))
        assert not archive.flush(0)
        lost = archive.errors
        assert 1 <= lost <= 2
        go.set()
        assert archive.flush(60)
    assert archive.written == 1_002 - lost
    assert len(told) == lost


def test_an_archive_can_be_called_again_by_its_own_error(clock: FakeClock, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    entry = Memory(clock=clock).remember("a", 1).entry
    seen: list[bool] = []

    def again(_: Exception) -> None:
        if not seen:
            archive(Compaction(evicted=(entry,)))
            seen.append(archive.flush())
            archive.erase("b")

    archive = Archive(tmp_path / "a", on_error=again, clock=clock)
    archive(Compaction(evicted=(entry,)))
    assert archive.flush(30)
    assert seen == [False]
    assert archive.errors == 2


def test_wrong_calls_name_the_argument(tmp_path: Path) -> None:
    wrong: Any = 5
    with pytest.raises(TypeError):
        Archive(wrong)
    with pytest.raises(TypeError, match="on_error"):
        Archive(tmp_path, on_error=wrong)
    with pytest.warns(IgnoredValueWarning, match="max_bytes"):
        Archive(tmp_path, max_bytes=0)
    with pytest.raises(ValueError, match="home"):
        Archive("~nobody-of-that-name/archive")
    archive = Archive(tmp_path)
    with pytest.warns(IgnoredValueWarning, match="timeout"):
        assert archive.flush(-1)
    archive(wrong)
    archive(Compaction(evicted=(wrong,)))
    assert archive.errors == 2


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_waiting_entries_are_written_at_the_end_of_a_program(tmp_path: Path) -> None:
    code = """
import sys
from sentinel_memory import Memory
from sentinel_memory.agent import Archive
memory = Memory(limit=1, on_evict=Archive(sys.argv[1]))
for number in range(30):
    memory.remember(f"chat:{number}", number)
"""
    done = run(code, str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(files(tmp_path)) == 29
    assert Archive(tmp_path).verify() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_writes_its_own_and_nothing_of_its_parent(tmp_path: Path) -> None:
    code = """
import os, sys
from sentinel_memory import Memory
from sentinel_memory.agent import Archive
archive = Archive(sys.argv[1])
memory = Memory(limit=1, on_evict=archive)
for number in range(20):
    memory.remember(f"parent:{number}", number)
    if number % 5 == 0:
        child = os.fork()
        if child == 0:
            memory.remember(f"child:{number}", number)
            memory.remember(f"child:{number}:2", number)
            os._exit(0 if archive.flush(20) and archive.errors == 0 else 1)
        assert os.waitpid(child, 0)[1] == 0
assert archive.flush(20)
"""
    done = run(code, str(tmp_path))
    assert done.returncode == 0, done.stderr
    archive = Archive(tmp_path)
    counts = [len(archive.find(f"parent:{number}")) for number in range(19)]
    # What the parent still had is evicted in the child, too; nothing else is there twice.
    assert counts == [2 if number % 5 == 0 else 1 for number in range(19)]
    assert all(len(archive.find(f"child:{number}")) == 1 for number in (0, 5, 10, 15))
    assert archive.verify() == []


@pytest.mark.skipif(os.name != "posix", reason="it needs SIGKILL")
def test_killed_at_any_moment_there_are_whole_snapshots_only(tmp_path: Path) -> None:
    """A process is killed at each of its first calls of the system, one after the other."""
    code = """
import os, signal, sys, threading
from sentinel_memory import Memory
from sentinel_memory.agent import Archive
folder, path, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
calls = 0
def counting(real):
    def call(*arguments, **options):
        global calls
        calls += 1
        if calls == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)
    return call
import sentinel_memory.agent._snapshots
for name in ("open", "replace", "fsync", "unlink", "listdir"):
    setattr(os, name, counting(getattr(os, name)))
archive = Archive(folder)
memory = Memory.open(path, limit=1, on_evict=archive)
for number in range(3):
    memory.remember(f"chat:{number}", number)
    archive.flush()
"""
    folder, path = tmp_path / "a", tmp_path / "m.json"
    killed = 0
    for step in range(1, 31):
        done = run(code, str(folder), str(path), str(step))
        killed += done.returncode < 0
        archive = Archive(folder)
        assert archive.verify() == []
        for file in files(folder) if folder.exists() else ():
            assert archive.restore(file)
        assert Memory.open(path).last_load is not None or not path.exists()
    assert killed >= 24
    filled(Archive(folder), FakeClock(), 2)
    assert not list(folder.glob("*.part"))
    assert len(list(folder.glob("*.sha256"))) == len(files(folder))
