"""The commands that change a memory: what goes is what was asked for, and is said."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import sentinel_memory
from sentinel_memory import Memory, Transcript
from sentinel_memory._cli.files import Change, File, Outcome
from sentinel_memory._cli.showing import Progress
from support.clocks import FakeClock
from support.commands import command, fill, folder_state


@pytest.fixture(params=["guest.json", "guest.db"])
def path(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Path:
    name: str = request.param
    found = tmp_path / "folder" / name
    fill(found, clock)
    return found


def keys(path: Path, clock: FakeClock) -> list[str]:
    memory = Memory.open(path, autosave=False, clock=clock)
    close = getattr(memory.store, "close", None)
    if close is not None:
        close()
    return [entry.key for entry in memory]


def everything_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def test_what_was_forgotten_is_in_no_file(path: Path, clock: FakeClock) -> None:
    assert b"small talk 1" in everything_in(path.parent)
    done = command(path, "forget", "chat:1", "chat:2", "chat:1", clock=clock)
    assert (done.code, done.out) == (0, "forgot chat:1\nforgot chat:2\n")
    assert keys(path, clock)[2:] == ["chat:3", "chat:4", "chat:5", "note:soon"]
    assert b"small talk 1" not in everything_in(path.parent)


def test_an_expired_entry_is_forgotten_and_others_that_expired_are_told_of(
    path: Path, clock: FakeClock
) -> None:
    done = command(path, "forget", "note:gone", clock=clock)
    assert (done.code, done.out) == (0, "forgot note:gone\n")
    assert "1 expired entry leaves the file" in done.err
    assert b"expired text" not in everything_in(path.parent)


def test_what_a_load_rejected_is_forgotten_by_its_key(tmp_path: Path) -> None:
    path = tmp_path / "guest.json"
    bad = {"key": "user:age", "data": "fifty", "importance": 7}
    good = {"key": "a", "data": 1, "importance": 0.5, "createdAt": 0, "updatedAt": 0}
    path.write_text(json.dumps({"version": 1, "entries": [bad, good]}))
    assert command(path, "forget", "user:height").code == 1
    assert command(path, "forget", "user:age", "--dry-run").out == "would forget user:age\n"
    assert "fifty" in path.read_text()
    done = command(path, "forget", "user:age", "user:age2")
    assert (done.code, done.out) == (1, "forgot user:age\n")
    assert "there is no entry user:age2" in done.err
    assert "fifty" not in path.read_text()
    assert command(path, "check").code == 0


def test_a_key_that_is_missing_is_said_and_the_others_go(path: Path, clock: FakeClock) -> None:
    done = command(path, "forget", "nothing", "chat:1", clock=clock)
    assert (done.code, done.out) == (1, "forgot chat:1\n")
    assert "there is no entry nothing" in done.err


@pytest.mark.parametrize(
    ("argv", "gone"),
    [
        (("--kind", "chat", "--older", "25d"), ["chat:1", "chat:2"]),
        (("--where", "importance<0.2"), [f"chat:{number}" for number in range(1, 6)]),
        (("--older", "1d"), ["user:name", "chat:1", "chat:2", "chat:3", "chat:4"]),
        (("--kind", "user", "--pinned"), ["user:name", "user:allergy"]),
        (("--newer", "2min"), ["note:soon"]),
    ],
)
def test_prune_forgets_what_is_meant_and_tries_it_first(
    path: Path, clock: FakeClock, argv: tuple[str, ...], gone: list[str]
) -> None:
    before = folder_state(path.parent)
    trial = command(path, "prune", *argv, "--dry-run", clock=clock)
    assert trial.out == "".join(f"would forget {key}\n" for key in gone)
    assert folder_state(path.parent) == before
    all_of_them = keys(path, clock)
    done = command(path, "prune", *argv, clock=clock)
    assert (done.code, done.out) == (0, trial.out.replace("would forget", "forgot"))
    assert keys(path, clock) == [key for key in all_of_them if key not in gone]


def test_pinned_entries_stay_unless_they_are_meant(path: Path, clock: FakeClock) -> None:
    done = command(path, "prune", "--kind", "user", clock=clock)
    assert done.out == "forgot user:name\n"
    assert "1 pinned entry stays; --pinned" in done.err
    done = command(path, "prune", "--kind", "user", clock=clock)
    assert (done.code, done.out) == (1, "")
    assert "1 pinned entry stays; --pinned" in done.err


def test_prune_without_a_condition_is_refused(path: Path, clock: FakeClock) -> None:
    for argv in ((), ("--pinned",), ("--evict",)):
        done = command(path, "prune", *argv, clock=clock)
        assert (done.code, done.out) == (2, "")
    assert len(keys(path, clock)) == 8


def test_pins_are_set_and_taken(path: Path, clock: FakeClock) -> None:
    assert command(path, "pin", "user:name", clock=clock).out == "pinned user:name\n"
    again = command(path, "pin", "user:name", "chat:1", clock=clock)
    assert (again.code, again.out) == (0, "pinned chat:1\n")
    assert "user:name is pinned already" in again.err
    assert command(path, "unpin", "user:name", "nothing", clock=clock).code == 1
    pinned = [entry.key for entry in Memory.open(path, autosave=False, clock=clock) if entry.pinned]
    assert pinned == ["user:allergy", "chat:1"]


def test_every_place_of_a_limit_can_be_pinned(tmp_path: Path) -> None:
    path = tmp_path / "guest.json"
    memory = Memory.open(path, limit=2)
    memory.remember("a", 1)
    memory.remember("b", 2, pinned=True)
    assert command(path, "pin", "a").code == 0
    done = command(path, "import", "--evict", stdin='{"key": "c", "data": 3}')
    assert (done.code, done.out) == (1, "")
    assert "1 found no room" in done.err
    assert [entry.key for entry in Memory.open(path)] == ["a", "b"]


def over_limit(path: Path, **more: object) -> None:
    stored = {"importance": 0.5, "createdAt": 0, "updatedAt": 0}
    entries = [{"key": f"e:{number}", "data": f"text {number}", **stored} for number in range(6)]
    path.write_text(json.dumps({"version": 1, "entries": entries, **more}))


@pytest.mark.parametrize("more", [{"limit": 4}, {"limits": {"e": 4}}])
@pytest.mark.parametrize(
    "argv", [("pin", "e:5"), ("forget", "e:5"), ("prune", "--where", "key=e:5"), ("import",)]
)
def test_entries_over_a_limit_go_only_if_that_is_allowed(
    tmp_path: Path, more: dict[str, object], argv: tuple[str, ...]
) -> None:
    """A save would lose them, as that of any program; this one says so first."""
    path = tmp_path / "guest.json"
    over_limit(path, **more)
    before = folder_state(tmp_path)
    line = '{"key": "other", "data": 1}'
    done = command(path, *argv, stdin=line)
    assert done.code == 1
    assert "nothing was written" in done.err
    assert "--evict" in done.err
    assert "e:0, e:1" in done.err
    as_json = command(path, *argv, "--json", stdin=line).json
    assert (as_json["written"], as_json["done"]) == (False, [])
    assert as_json["evicted"][:2] == ["e:0", "e:1"]
    assert folder_state(tmp_path) == before
    done = command(path, *argv, "--evict", stdin=line)
    assert done.code == 0
    assert {"evicted e:0", "evicted e:1"} <= set(done.lines)
    assert "text 0" not in path.read_text()


def test_an_entry_that_is_over_the_limit_can_be_forgotten(tmp_path: Path) -> None:
    """Then nothing is over it any more, and nothing is evicted."""
    path = tmp_path / "guest.json"
    over_limit(path, limit=5)
    done = command(path, "forget", "e:0")
    assert (done.code, done.out) == (0, "forgot e:0\n")
    assert [entry.key for entry in Memory.open(path)] == [f"e:{number}" for number in range(1, 6)]


def test_an_entry_that_is_over_the_limit_is_kept_by_a_new_limit(tmp_path: Path) -> None:
    path = tmp_path / "guest.json"
    over_limit(path, limit=4)
    done = command(path, "pin", "e:0")
    assert (done.code, done.out) == (1, "")
    assert "--limit 6 has room for all" in done.err
    assert "e:0 is one of those" in done.err
    assert "no entry" not in done.err
    assert command(path, "pin", "e:0", "--evict").code == 1
    done = command(path, "pin", "e:0", "--limit", "6")
    assert (done.code, done.out) == (0, "pinned e:0\n")
    assert "the limit of the memory was 4; with this save it is 6" in done.err
    assert len(Memory.open(path)) == 6
    again = command(path, "pin", "e:0", "--limit", "9")
    assert "the limit is as it was" in again.err
    assert json.loads(path.read_text())["limit"] == 6


def test_no_limit_of_the_document_is_changed_and_a_new_one_is_said(tmp_path: Path) -> None:
    path = tmp_path / "guest.json"
    over_limit(path, limit=40, limits={"e": 30})
    done = command(path, "pin", "e:0")
    assert done.err == ""
    stored = json.loads(path.read_text())
    assert (stored["limit"], stored["limits"]) == (40, {"e": 30})
    many = [
        {"key": f"k{number}", "data": 1, "importance": 0.5, "createdAt": 0, "updatedAt": 0}
        for number in range(600)
    ]
    path.write_text(json.dumps({"version": 1, "entries": many}))
    done = command(path, "pin", "k0")
    assert "names no limit; this save writes 600" in done.err
    assert len(Memory.open(path)) == 600


def test_what_the_command_does_not_know_is_kept(tmp_path: Path) -> None:
    """Sections, unknown fields of entries, the working state and a transcript."""
    path = tmp_path / "guest.json"
    over_limit(path, extra={"a": [1]})
    memory = Memory.open(path)
    memory.working.set(step="ordering")
    Transcript(memory).append("hello", "good evening")
    state = json.loads(path.read_text())
    state["entries"][0]["colour"] = "red"
    path.write_text(json.dumps(state))
    done = command(path, "unpin", "e:1")
    assert done.code == 0
    done = command(path, "pin", "e:1")
    after = json.loads(path.read_text())
    assert after["entries"][0]["colour"] == "red"
    for name in ("extra", "working", "transcript"):
        assert after[name] == state[name]


def test_a_file_that_was_edited_is_sealed_and_that_is_said(
    tmp_path: Path, clock: FakeClock
) -> None:
    path = tmp_path / "guest.json"
    fill(path, clock)
    path.write_text(path.read_text().replace("Jakub", "Jakob"))
    done = command(path, "pin", "user:name", clock=clock)
    assert "gives it a new digest" in done.err
    assert command(path, "check", clock=clock).code == 0


def test_a_change_is_one_transaction(path: Path, clock: FakeClock) -> None:
    """Another program that has the memory open finds a conflict, and no lost write."""
    memory = Memory.open(path, clock=clock)
    assert command(path, "forget", "chat:1", clock=clock).code == 0
    with pytest.raises(sentinel_memory.StoreConflictError):
        memory.remember("other", 1)
    memory.load()
    memory.remember("other", 1)
    assert "chat:1" not in memory
    close = getattr(memory.store, "close", None)
    if close is not None:
        close()


@pytest.mark.parametrize("argv", [("forget", "a"), ("pin", "a"), ("prune", "--kind", "a")])
def test_a_change_of_a_file_that_is_not_there_makes_none(
    tmp_path: Path, argv: tuple[str, ...]
) -> None:
    done = command(tmp_path / "guest.json", *argv)
    assert (done.code, "there is no file" in done.err) == (2, True)
    assert not list(tmp_path.iterdir())


def test_json_says_what_was_done(path: Path, clock: FakeClock) -> None:
    done = command(path, "forget", "chat:1", "nothing", "--json", clock=clock)
    assert done.code == 1
    assert (done.json["done"], done.json["missing"]) == (["chat:1"], ["nothing"])
    assert (done.json["written"], done.json["dry_run"], done.json["expired"]) == (True, False, 1)
    trial = command(path, "prune", "--kind", "chat", "--json", "--dry-run", clock=clock)
    assert (trial.json["written"], len(trial.json["done"])) == (False, 4)


def test_what_changes_between_the_trial_and_the_transaction_is_seen(
    path: Path, clock: FakeClock
) -> None:
    """Somebody else was faster; nothing is left to do, and nothing is written."""
    file = File(str(path), "", now=clock.now, progress=Progress(None))
    states: list[bytes] = []

    def make(memory: Memory, outcome: Outcome) -> None:
        (outcome.done if memory.forget("chat:1") else outcome.missing).append("chat:1")
        if not states:
            assert command(path, "forget", "chat:1", clock=clock).code == 0
        states.append(everything_in(path.parent))

    outcome = file.change(Change(make, evicts=False, dry=False))
    assert (outcome.done, outcome.missing, len(states)) == ([], ["chat:1"], 2)
    assert keys(path, clock)[2:4] == ["chat:2", "chat:3"]


def test_text_that_another_program_still_reads_is_told_of(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "guest.db"
    fill(path, clock)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM memories").fetchall()
        done = command(path, "forget", "chat:1", clock=clock)
        assert (done.code, done.out) == (0, "forgot chat:1\n")
        assert "still in the file -wal" in done.err
    assert command(path, "forget", "chat:2", clock=clock).err == ""
    assert b"small talk 1" not in everything_in(tmp_path)
