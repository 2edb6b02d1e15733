"""The commands that look: what they show, and that they leave no trace."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sentinel_memory import Memory, SQLiteStore, Transcript
from sentinel_memory.cli import main
from sentinel_memory.stores import _database, look_into
from support.clocks import FakeClock
from support.commands import DAY, Done, command, fill, folder_state

LOOKS = (
    ("list",),
    ("list", "--json", "--kind", "chat"),
    ("show", "user:allergy"),
    ("show", "nothing"),
    ("recall", "peanuts"),
    ("recall", "small talk", "--index", "conversation"),
    ("context", "peanuts", "--budget", "30"),
    ("stats",),
    ("check",),
    ("check", "--json"),
    ("export",),
)
TRIALS = (
    ("forget", "chat:1", "--dry-run"),
    ("prune", "--kind", "chat", "--dry-run"),
    ("pin", "chat:1", "--dry-run"),
    ("unpin", "user:allergy", "--dry-run"),
    ("import", "--dry-run"),
    # what is refused, or has nothing to do
    ("forget", "nothing"),
    ("prune", "--kind", "nothing"),
    ("prune",),
    ("pin", "user:allergy"),
)
LINE = '{"key": "new", "data": 1}\n'


@pytest.fixture(params=["guest.json", "guest.db"])
def path(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Path:
    name: str = request.param
    found = tmp_path / "folder" / name
    fill(found, clock)
    return found


def keys(done: Done) -> list[str]:
    return [entry["key"] for entry in done.json]


@pytest.mark.parametrize("argv", LOOKS + TRIALS, ids=" ".join)
def test_a_look_changes_no_byte_and_no_time(
    path: Path, clock: FakeClock, argv: tuple[str, ...]
) -> None:
    """Neither of the file nor of its folder, and no file is made there."""
    before = folder_state(path.parent)
    done = command(path, *argv, stdin=LINE, clock=clock)
    assert done.out + done.err
    assert folder_state(path.parent) == before


@pytest.mark.parametrize("argv", LOOKS + TRIALS, ids=" ".join)
def test_a_look_at_a_file_that_is_not_there_makes_none(
    tmp_path: Path, argv: tuple[str, ...]
) -> None:
    if argv == ("import", "--dry-run"):
        return  # see the import of lines
    done = command(tmp_path / "typo" / "guest.json", *argv)
    assert done.code == 2
    assert done.out == ""
    assert "prune needs" in done.err or "there is no file" in done.err
    assert not list(tmp_path.iterdir())


def test_a_look_at_a_database_that_is_in_use_or_was_left_by_a_killed_writer(
    tmp_path: Path,
) -> None:
    """What is in the log is found there and stays there; only SQLite's own ``-shm`` is touched."""
    path = tmp_path / "guest.db"
    code = (
        "import os, sqlite3\n"
        "from sentinel_memory import Memory\n"
        f"memory = Memory.open({str(path)!r})\n"
        "memory.remember('first', 1)\n"
        f"reader = sqlite3.connect({str(path)!r})\n"
        "reader.execute('BEGIN')\n"
        "reader.execute('SELECT * FROM memories').fetchall()\n"  # keeps the log from being emptied
        "memory.remember('second', 2)\n"
        "os._exit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ))
    assert (tmp_path / "guest.db-wal").stat().st_size > 0
    for shm in (True, False):
        if not shm:
            (tmp_path / "guest.db-shm").unlink()
        before = folder_state(tmp_path)
        assert keys(command(path, "list", "--json")) == ["second", "first"]
        after = folder_state(tmp_path)
        changed = {name for name in after if after[name] != before.get(name)}
        assert changed <= {"guest.db-shm"} | (set() if shm else {"."})


def test_a_look_while_a_program_of_this_process_has_the_database_open(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path / "guest.db")
    memory.remember("a", 1)
    other = sqlite3.connect(tmp_path / "guest.db", timeout=0, isolation_level=None)
    assert isinstance(memory.store, SQLiteStore)
    with memory.store.exclusive():
        memory.store.load()
        assert keys(command(tmp_path / "guest.db", "list", "--json")) == ["a"]
        with pytest.raises(sqlite3.OperationalError, match="locked"):  # its lock is still there
            other.execute("BEGIN IMMEDIATE")
    other.close()
    memory.store.close()


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_of_something_else_is_told_and_not_touched(tmp_path: Path, mode: str) -> None:
    """Also one whose last writer was killed: nobody but its owner may roll that back."""
    path = tmp_path / "other.db"
    code = (
        "import os, sqlite3\n"
        f"db = sqlite3.connect({str(path)!r}, isolation_level=None)\n"
        f"db.execute('PRAGMA journal_mode = {mode}')\n"
        "db.execute('PRAGMA cache_size = 1')\n"
        "db.execute('CREATE TABLE t (a)')\n"
        "db.execute('BEGIN')\n"
        "for _ in range(99): db.execute('INSERT INTO t VALUES (zeroblob(5000))')\n"
        "os._exit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    before = folder_state(tmp_path)
    assert len(before) > 2
    for argv in (("check",), ("list",), ("forget", "a")):
        done = command(path, *argv)
        assert done.code in (1, 2)
        assert "Traceback" not in done.err
    after = folder_state(tmp_path)
    assert {n for n in after if after[n] != before.get(n)} <= {"other.db-shm"}


def test_a_look_that_somebody_wrote_in_the_middle_of_begins_again(tmp_path: Path) -> None:
    """Nobody had the database open, so it was read without locks."""
    path = tmp_path / "guest.db"
    memory = Memory.open(path)
    memory.remember("a", 1)
    assert isinstance(memory.store, SQLiteStore)
    memory.store.close()
    counts: list[int] = []

    def read(db: sqlite3.Connection) -> int:
        counts.append(db.execute("SELECT count(*) FROM entries").fetchone()[0])
        if len(counts) == 1:
            memory.remember("b", 2)
            assert isinstance(memory.store, SQLiteStore)
            memory.store.close()
        return counts[-1]

    assert _database.look(str(path), str(path), 1.0, read) == 2
    assert counts == [1, 2]


def test_a_list_is_newest_first_with_age_worth_pins_and_data(path: Path, clock: FakeClock) -> None:
    done = command(path, "list", clock=clock)
    assert done.code == 0
    assert done.lines == [
        "key           worth    age  pin  data",
        "note:soon      0.50  1 min       closes at ten",
        "chat:5         0.10  2 min       small talk 5",
        "chat:4         0.10   10 d       small talk 4",
        "chat:3         0.10   20 d       small talk 3",
        "chat:2         0.10   30 d       small talk 2",
        "chat:1         0.10   40 d       small talk 1",
        'user:allergy   1.00   50 d  yes  {"to":"peanuts","severe":true}',
        "user:name      0.90   50 d       Jakub",
    ]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--kind", "user"], ["user:allergy", "user:name"]),
        (["--kind", "chat", "-n", "2"], ["chat:5", "chat:4"]),
        (["--kind", "chat", "--older", "25d"], ["chat:2", "chat:1"]),
        (["--newer", "1h"], ["note:soon", "chat:5"]),
        (["--kind", "chat", "--older", "0s", "--newer", "12d"], ["chat:5", "chat:4"]),
        (["--where", "importance<0.5"], [f"chat:{number}" for number in (5, 4, 3, 2, 1)]),
        (["--where", "importance >= 0.9"], ["user:allergy", "user:name"]),
        (["--where", "worth=0.9"], ["user:name"]),
        (["--where", "data~PEANUT"], ["user:allergy"]),
        (["--where", "data=Jakub"], ["user:name"]),
        (["--where", 'data="Jakub"'], ["user:name"]),
        (["--where", "data==Jakub"], ["user:name"]),
        (["--where", "data.severe=true"], ["user:allergy"]),
        (["--where", "data.severe=1"], []),
        (["--where", "meta.source=web"], ["user:allergy"]),
        (["--where", "pinned=true", "--where", "key~name"], []),
        (["--where", "pinned=false", "--where", "kind=user"], ["user:name"]),
        (["--where", "meta.source!=web", "--kind", "user"], ["user:name"]),
        (["--where", "meta.source<x"], ["user:allergy"]),
        (["--where", "key>note"], ["note:soon", "user:allergy", "user:name"]),
    ],
)
def test_a_list_of_what_is_meant(
    path: Path, clock: FakeClock, options: list[str], found: list[str]
) -> None:
    done = command(path, "list", "--json", *options, clock=clock)
    assert (keys(done), done.code) == (found, 0 if found else 1)


@pytest.mark.parametrize(
    "options",
    [
        ["--where", "imporance<0.5"],
        ["--where", "importance<low"],
        ["--where", "importance<nan"],
        ["--where", "importance"],
        ["--where", "data===x"],
        ["--where", "key=~x"],
        ["--where", "pinned<true"],
        ["--where", "pinned=1"],
        ["--where", "meta=web"],
        ["--older", "30"],
        ["--older", "30m"],
        ["--older", "-3d"],
        ["--older", "nand"],
        ["-n", "0"],
        ["-n", "2.5"],
        ["--ki", "chat"],
        ["--kind", "chat:"],
    ],
)
def test_an_option_that_might_mean_something_else_is_a_usage_error(
    path: Path, options: list[str]
) -> None:
    done = command(path, "list", *options)
    assert (done.code, done.out) == (2, "")
    assert "usage" in done.err


def test_all_about_an_entry(path: Path, clock: FakeClock) -> None:
    done = command(path, "show", "user:allergy", clock=clock)
    assert done.code == 0
    assert done.lines == [
        "key         user:allergy",
        "importance  1",
        "pinned      yes",
        "updated     2026-10-18 08:00:00 UTC, 50 d ago",
        "created     2026-10-18 08:00:00 UTC, 50 d ago",
        "expires     never",
        "meta",
        "  {",
        '    "source": "web"',
        "  }",
        "data",
        "  {",
        '    "to": "peanuts",',
        '    "severe": true',
        "  }",
    ]
    assert command(path, "show", "user:name", "--json", clock=clock).json["data"] == "Jakub"


def test_a_key_that_is_not_there(path: Path, clock: FakeClock) -> None:
    done = command(path, "show", "NAME", clock=clock)
    assert (done.code, done.out) == (1, "")
    assert done.err == "note: there is no entry NAME; there is user:name\n"
    gone = command(path, "show", "note:gone", clock=clock)
    assert gone.code == 1
    assert command(path, "show", "NAME", "--json", clock=clock).json is None


def test_what_has_expired_and_is_still_in_the_file_is_said(
    tmp_path: Path, clock: FakeClock
) -> None:
    path = tmp_path / "guest.json"
    Memory.open(path, clock=clock).remember("note", "closes at ten", ttl=60)
    clock.tick(3600)
    done = command(path, "show", "note", clock=clock)
    assert (done.code, done.out) == (1, "")
    assert "it expired 59 min ago" in done.err
    assert command(path, "check", "--json", clock=clock).json["expired"] == ["note"]
    assert "1: note" in command(path, "check", clock=clock).out
    assert command(path, "stats", "--json", clock=clock).json["expired"] == 1
    assert command(path, "list", clock=clock).code == 1
    assert command(path, "export", clock=clock).code == 1


def test_recall_shows_score_and_data(path: Path, clock: FakeClock) -> None:
    done = command(path, "recall", "peanuts?", clock=clock)
    assert done.lines == [
        "key           score  relevance  pin  data",
        'user:allergy  1.000       1.00  yes  {"to":"peanuts","severe":true}',
    ]
    assert keys(command(path, "recall", "talk", "-n", "2", "--json", clock=clock)) == [
        "chat:5",
        "chat:4",
    ]
    nothing = command(path, "recall", "refund", clock=clock)
    assert (nothing.code, nothing.out) == (1, "")


@pytest.mark.parametrize("index", ["words", "conversation"])
def test_context_is_that_of_the_library_with_the_reasons(
    path: Path, clock: FakeClock, index: str
) -> None:
    done = command(path, "context", "talk", "--budget", "24", "--index", index, clock=clock)
    assert done.code == 0
    found = command(
        path, "context", "talk", "--budget", "24", "--index", index, "--json", clock=clock
    ).json
    assert found["tokens"] <= found["budget"] == 24
    for line in found["text"].split("\n"):
        assert f"  {line}" in done.lines
    assert found["entries"][0]["key"] == "user:allergy"
    assert found["entries"][0]["why"] == "pinned"
    assert {row["why"] for row in found["entries"]} == {"pinned", "matches", "worth"}
    if index == "words":
        memory = Memory.open(path, autosave=False, clock=clock)
        assert found["text"] == memory.get_context(24, query="talk").text


def test_stats_count_what_there_is(path: Path, clock: FakeClock) -> None:
    found = command(path, "stats", "--json", clock=clock).json
    assert found["kinds"] == {"user": 2, "chat": 5, "note": 1}
    assert (found["live"], found["pinned"], found["limit"]) == (8, 1, 20)
    assert found["limits"] == {"chat": 8}
    assert found["bytes"] == path.stat().st_size
    assert "chat        5      8" in command(path, "stats", clock=clock).out


def test_stats_name_what_else_is_in_the_document(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path / "guest.json")
    Transcript(memory).append("hello", "good evening")
    found = command(tmp_path / "guest.json", "stats", "--json").json
    assert set(found["sections"]) == {"working", "transcript"}


def write(path: Path, **more: object) -> None:
    stored = {"importance": 0.5, "createdAt": 0, "updatedAt": 0}
    document = {
        "version": 1,
        "entries": [{"key": f"e:{number}", "data": number, **stored} for number in range(6)],
        **more,
    }
    path.write_text(json.dumps(document), encoding="utf-8")


def test_entries_over_the_limit_are_all_seen_and_said(tmp_path: Path) -> None:
    """A file that was edited, or whose limit was; looking evicts nothing from what is shown."""
    path = tmp_path / "guest.json"
    write(path, limit=4)
    done = command(path, "list")
    assert len(done.lines) == 7
    assert "2 entries are over the limits" in done.err
    check = command(path, "check", "--json")
    assert check.code == 1
    assert (check.json["over_limit"], check.json["limit"]) == (["e:0", "e:1"], 4)
    write(path, limits={"e": 5})
    assert command(path, "check", "--json").json["over_limit"] == ["e:0"]
    cases: list[tuple[object, object, int, dict[str, int]]] = [
        (4.0, None, 4, {}),
        (True, {"e": True}, 500, {}),
        ("4", {"e": 9.0}, 500, {"e": 9}),
    ]
    for limit, limits, number, of_kinds in cases:
        write(path, limit=limit, limits=limits)
        found = command(path, "stats", "--json").json
        assert (found["limit"], found["limits"]) == (number, of_kinds)


def test_check_shows_what_is_rejected_now_and_what_was_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "guest.json"
    bad = {"key": "user:age", "data": 5, "importance": 7, "createdAt": 0, "updatedAt": 0}
    old = {"entry": {"key": "old\x1b[31m"}, "reason": "data is missing"}
    write(path, rejected=[old])
    state = json.loads(path.read_text())
    state["entries"].append(bad)
    path.write_text(json.dumps(state))
    done = command(path, "check", "--json")
    assert done.code == 1
    assert done.json["rejected"] == [
        {"entry": bad, "reason": "importance must be a number in [0, 1]"},
        old,
    ]
    shown = command(path, "check")
    assert "NOT sound" in shown.lines
    assert "  importance must be a number in [0, 1]" in shown.lines
    assert "\x1b" not in shown.out


def test_check_tells_a_digest_that_fits_from_none_and_from_one_that_does_not(
    tmp_path: Path, clock: FakeClock
) -> None:
    path = tmp_path / "guest.json"
    fill(path, clock)
    assert command(path, "check", "--json", clock=clock).json["digest"] == "fits"
    path.write_text(path.read_text().replace("Jakub", "Jakob"))
    done = command(path, "check", clock=clock)
    assert (done.code, "does NOT fit" in done.out) == (1, True)
    assert "edited or damaged" in command(path, "list", clock=clock).err
    write(path)
    assert command(path, "check", "--json").json["digest"] == "none"
    assert command(path, "check").code == 0


@pytest.mark.parametrize("name", ["guest.json", "guest.db"])
@pytest.mark.parametrize(
    "data", [b"", b'{"version": 1, "ent', b"\xff\xfe", b"SQLite format 3\0 cut"]
)
def test_a_damaged_file_is_a_sentence_and_stays_as_it_is(
    tmp_path: Path, name: str, data: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    before = folder_state(tmp_path)
    for argv in (*LOOKS, ("forget", "a"), ("import",)):
        done = command(path, *argv, stdin=LINE)
        assert done.code == 1
        assert "Traceback" not in done.err
        if argv[0] == "check":
            assert "damage" in done.out
        else:
            assert "cannot be read as a memory" in done.err
    assert command(path, "check", "--json").json["sound"] is False
    assert folder_state(tmp_path) == before


def test_a_memory_among_several_in_a_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "guests.db"
    for name in ("guest 1", "guest 2"):
        store = SQLiteStore(path, name)
        Memory(store=store, autosave=True).remember("name", name)
        store.close()
    done = command(path, "list")
    assert (done.code, done.out) == (2, "")
    assert "'guest 1', 'guest 2'" in done.err
    assert command(path, "--name", "guest 2", "show", "name", "--json").json["data"] == "guest 2"
    assert command(path, "show", "name", "--json", "--name", "guest 1").json["data"] == "guest 1"
    assert command(path, "forget", "name", "--name", "guest 1").code == 0
    assert command(path, "list", "--name", "guest 1").code == 1
    assert command(path, "list", "--name", "guest 2").code == 0
    assert command(path, "--name", "guest 3", "forget", "name").code == 2
    found = look_into(path, "guest 1")
    assert found is not None
    assert found.names == ("guest 1", "guest 2")


def test_a_json_file_has_no_names(tmp_path: Path, clock: FakeClock) -> None:
    fill(tmp_path / "guest.json", clock)
    done = command(tmp_path / "guest.json", "list", "--name", "x")
    assert (done.code, "without a name" in done.err) == (2, True)


@pytest.mark.parametrize("path", ["", ".", "a\0b"])
def test_what_cannot_be_a_file_is_a_sentence(path: str) -> None:
    done = command(path, "list")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("sentinel-memory: ")


def test_ages_count_from_the_time_of_the_call(tmp_path: Path, clock: FakeClock) -> None:
    fill(tmp_path / "guest.json", clock)
    clock.tick(-60 * DAY)  # a clock that went back
    assert "in 60 d" in command(tmp_path / "guest.json", "show", "note:soon", clock=clock).out


def test_keys_and_questions_may_begin_with_a_dash(tmp_path: Path) -> None:
    path = tmp_path / "guest.json"
    Memory.open(path).remember("--json", "a dash")
    assert command(path, "show", "--", "--json").code == 0
    assert command(path, "recall", "--json", "--", "--dash").json[0]["data"] == "a dash"
    assert command(path, "forget", "--", "--json").out == "forgot --json\n"


def test_a_long_explanation_is_cut_at_a_terminal_and_all_of_it_is_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "guest.json"
    write(path)
    memory = Memory.open(path)
    with memory.batch():
        for number in range(60):
            memory.remember(f"more:{number}", "text")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    counts = []
    for options in ([], ["--all"]):
        out, err = Terminal(), io.StringIO()
        assert main([str(path), "context", "text", "--budget", "20", *options], None, out, err) == 0
        counts.append(out.getvalue().count(" no "))
        assert ("are left out; --all" in err.getvalue()) == (not options)
    assert counts[0] == 20
    rows = command(path, "context", "text", "--budget", "20", "--json").json["entries"]
    assert counts[1] == sum(not row["taken"] for row in rows) > 20


def test_times_that_no_calendar_has_are_shown_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "guest.json"
    entries = [
        {"key": f"e:{t}", "data": 1, "importance": 0.5, "createdAt": t, "updatedAt": t}
        for t in (1e300, -1e300, 0, -1, 9e15)
    ]
    path.write_text(json.dumps({"version": 1, "entries": entries}))
    for argv in (
        ["list"],
        ["stats"],
        ["check"],
        ["export"],
        ["show", "e:1e+300"],
        ["show", "e:-1"],
    ):
        done = command(path, *argv)
        assert (done.code, done.err) == (0, "")
        if argv != ["export"]:
            assert max(map(len, done.lines)) < 100
    assert "ages" in command(path, "list").out
