"""JSON lines: what export writes, import reads; and nothing is lost by it silently."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from sentinel_memory import Memory
from sentinel_memory.cli import main
from support.clocks import FakeClock
from support.commands import Done, command, fill, folder_state


def lines_of(*entries: object) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def numbered(count: int, kind: str = "seq") -> str:
    return lines_of(*({"key": f"{kind}:{n}", "data": f"number {n}"} for n in range(1, count + 1)))


def keys(path: Path) -> list[str]:
    return [entry.key for entry in Memory.open(path, autosave=False)]


@pytest.mark.parametrize("source", ["guest.json", "guest.db"])
@pytest.mark.parametrize("target", ["copy.json", "copy.db"])
def test_what_is_exported_is_imported_as_it_was(
    tmp_path: Path, clock: FakeClock, source: str, target: str
) -> None:
    """Times, pins, feedback, repeats, meta, expiry, and fields of later versions."""
    fill(tmp_path / source, clock)
    memory = Memory.open(tmp_path / source, clock=clock)
    memory.reinforce("user:name")
    memory.remember("user:name", "Jakub")
    memory.remember("odd \u2028 key", {"\x9b": ["\u202e", "日本", "\x7f\x00"]})
    getattr(memory.store, "close", lambda: None)()
    exported = command(tmp_path / source, "export", clock=clock).out
    stored = [json.loads(line) for line in exported.splitlines()]
    stored[0]["colour"] = "red"
    done = command(tmp_path / target, "import", stdin=lines_of(*stored), clock=clock)
    assert (done.code, done.out) == (0, "imported 9 entries\n")
    copy = command(tmp_path / target, "export", clock=clock).out
    assert [json.loads(line) for line in copy.splitlines()] == stored


def test_an_export_is_safe_to_look_at(tmp_path: Path) -> None:
    path = tmp_path / "guest.json"
    Memory.open(path).remember("a", "\x1b]0;title\x07 \x9b2J \u202e \u2028 \x7f 日本")
    out = command(path, "export").out
    assert out.count("\n") == 1
    assert out[:-1].isprintable()
    assert "日本" in out


def test_what_json_shows_is_imported_too(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "guest.json"
    fill(path, clock)
    shown = command(
        path, "recall", "small talk note closes", "-n", "99", "--json", clock=clock
    ).json
    assert len(shown) == 6
    shown.append(command(path, "show", "user:allergy", "--json", clock=clock).json)
    copy = tmp_path / "copy.json"
    assert command(copy, "import", stdin=lines_of(*shown), clock=clock).code == 0
    for entry in shown:
        shown_again = command(copy, "show", entry["key"], "--json", clock=clock).json
        assert shown_again == {n: v for n, v in entry.items() if n not in ("relevance", "score")}


def test_a_line_needs_key_and_data_only(tmp_path: Path, clock: FakeClock) -> None:
    done = command(
        tmp_path / "a.json", "import", stdin='\ufeff{"key": "a", "data": [1]}\n\n \n', clock=clock
    )
    assert (done.code, done.out) == (0, "imported 1 entry\n")
    (entry,) = Memory.open(tmp_path / "a.json", clock=clock)
    assert (entry.data, entry.importance, entry.updated_at) == ([1], 0.5, clock.now)


BAD = {
    "nonsense": "it is not JSON: Expecting value, at character 1",
    "[": "it begins a list",
    "[1]": "it is not an object, which an entry is, but a list",
    '{"key": "a"}': "data is missing",
    '{"data": 1}': "key is missing",
    '{"key": "", "data": 1}': "key must not be empty",
    '{"key": ["a"], "data": 1}': "key must be a str",
    '{"key": "a", "data": 1, "importnace": 1}': "'importnace' is not a field",
    '{"key": "a", "data": 1, "importance": 1.5}': "importance must be a number in [0, 1]",
    '{"key": "a", "data": 1, "data": 2}': "a name more than once",
    '{"key": "a", "data": NaN}': "not finite",
    '{"key": "a", "data": 1e999}': "not finite",
    '{"key": "a", "data": "\\ud800"}': "surrogate",
    '{"key": "a", "data": ' + "[" * 150 + "]" * 150 + "}": "nest",
    '{"key": "a", "data": ' + "[" * 100_000 + "]" * 100_000 + "}": "nest",
    '{"key": "a", "data": 1, "updated_at": true}': "updated_at must be a time",
    '{"key": "a", "data": 1, "updated_at": 1e300}': "updated_at must be a time",
    '{"key": "a", "data": 1, "created_at": "now"}': "created_at must be a time",
    '{"key": "a", "data": 1, "createdAt": 5}': "is missing",
    '{"key": "a", "data": 1, "pinned": 1}': "pinned must be true or false",
    '{"version": 1, "entries": []}': "'version' is not a field",
    '{"key": "a", "data": 1, "importance": 1, "createdAt": 1, "updatedAt": 1,'
    ' "expiresAt": -1e300}': "expired before any date",
}


@pytest.mark.parametrize("line", BAD)
def test_a_line_that_is_not_an_entry_stops_all_unless_it_may_be_skipped(
    tmp_path: Path, line: str
) -> None:
    path = tmp_path / "a.json"
    lines = '{"key": "first", "data": 1}\n' * (not line.startswith("[") or line == "[1]") + line
    number = lines.count("\n") + 1
    done = command(path, "import", stdin=f"{lines}\n" + numbered(3))
    assert done.code == 1
    assert f"line {number}: " in done.err
    assert BAD[line] in done.err
    assert "nothing was written: 1 line is not an entry; --skip-invalid" in done.err
    assert not list(tmp_path.iterdir())
    as_json = command(path, "import", "--json", stdin=f"{lines}\n").json
    assert [bad["line"] for bad in as_json["invalid"]] == [number]
    done = command(path, "import", "--skip-invalid", stdin=f"{lines}\n" + numbered(3))
    assert done.code == 0
    assert "seq:3" in keys(path)
    assert "a" not in keys(path)


def test_bytes_that_are_not_utf_8_are_a_line_that_is_not_an_entry(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b'{"key": "a", "data": 1}\n{"key": "b", "data": "\xff"}\n')
    done = command(tmp_path / "a.json", "import", str(tmp_path / "lines"))
    assert (done.code, "line 2: it is not UTF-8" in done.err) == (1, True)


def test_many_bad_lines_are_counted_and_some_are_shown(tmp_path: Path) -> None:
    done = command(tmp_path / "a.json", "import", stdin='{"key": 1, "data": 2}\n' * 1500)
    assert done.code == 1
    assert done.err.count("note: line ") == 20
    assert "1,480 more lines" in done.err


def test_what_is_there_stays_unless_it_may_be_replaced(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "guest.json"
    fill(path, clock)
    lines = lines_of({"key": "user:name", "data": "Zuzana"}, {"key": "new", "data": 1})
    done = command(path, "import", stdin=lines, clock=clock)
    assert (done.code, done.out) == (0, "imported 1 entry\n")
    assert "1 of the lines: already there with something else, and left" in done.err
    assert Memory.open(path, clock=clock).get("user:name") == "Jakub"
    before = folder_state(tmp_path)
    trial = command(path, "import", "--replace", "--dry-run", stdin=lines, clock=clock)
    assert trial.out == "would import 1 entry\nwould overwrite user:name\n"
    assert folder_state(tmp_path) == before
    done = command(path, "import", "--replace", stdin=lines, clock=clock)
    assert done.lines == ["imported 1 entry", "overwrote user:name"]
    assert Memory.open(path, clock=clock).get("user:name") == "Zuzana"


def test_the_same_again_changes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "guest.json"
    fill(path, clock)
    exported = command(path, "export", clock=clock).out
    before = folder_state(tmp_path)
    for options in ([], ["--replace"], ["--limit", "900"]):
        done = command(path, "import", *options, stdin=exported, clock=clock)
        assert (done.code, done.out) == (0, "")
        assert "8 of the lines: already there, and the same" in done.err
        assert folder_state(tmp_path) == before
    assert "the limit is as it was" in done.err


def test_an_import_that_would_evict_is_refused_with_the_counts(tmp_path: Path) -> None:
    path = tmp_path / "guest.json"
    done = command(path, "import", stdin=numbered(510))
    assert (done.code, done.out) == (1, "")
    assert "nothing was written: 10 entries would be evicted, because the limit is 500" in done.err
    assert "--limit 510" in done.err
    assert not list(tmp_path.iterdir())
    done = command(path, "import", "--limit", "510", stdin=numbered(510))
    assert done.out == "imported 510 entries\n"
    assert "the limit of the memory was 500; with this save it is 510" in done.err
    assert len(Memory.open(path)) == 510


def test_what_an_import_evicts_is_named_one_by_one(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "guest.json"
    fill(path, clock)  # chat: at most 8, and 5 are there
    lines = numbered(5, "chat2").replace("chat2:", "chat:9")
    done = command(path, "import", stdin=lines, clock=clock)
    assert (done.code, "2 entries would be evicted" in done.err) == (1, True)
    trial = command(path, "import", "--evict", "--dry-run", stdin=lines, clock=clock)
    assert "would evict chat:1" in trial.lines
    done = command(path, "import", "--evict", stdin=lines, clock=clock)
    assert done.lines == ["imported 5 entries", "evicted chat:1", "evicted chat:2"]
    assert command(path, "list", "--kind", "chat", "--json", clock=clock).out.count('"key"') == 8
    assert json.loads(path.read_text())["limits"] == {"chat": 8}


def test_a_smaller_limit_evicts_only_if_that_is_allowed(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "guest.json"
    fill(path, clock)
    line = '{"key": "new", "data": 1, "pinned": true}'
    before = folder_state(tmp_path)
    done = command(path, "import", "--limit", "3", stdin=line, clock=clock)
    assert (done.code, "would be evicted" in done.err) == (1, True)
    assert folder_state(tmp_path) == before
    done = command(path, "import", "--limit", "3", "--evict", stdin=line, clock=clock)
    assert done.code == 0
    assert sum(said.startswith("evicted ") for said in done.lines) == 6


def test_expired_lines_are_left_out_and_later_ones_win(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "guest.json"
    lines = lines_of(
        {"key": "old", "data": 1, "expires_at": clock.now},
        {"key": "a", "data": 1},
        {"key": "b", "data": 1},
        {"key": "a", "data": 2},
    )
    done = command(path, "import", stdin=lines, clock=clock)
    assert done.out == "imported 2 entries\n"
    assert "1 of the lines: left out, because the time to expire is over" in done.err
    assert "1 of the lines: overruled by a later line" in done.err
    assert Memory.open(path, clock=clock).get("a") == 2


def test_no_folder_is_made_and_no_lines_are_no_import(tmp_path: Path) -> None:
    done = command(tmp_path / "typo" / "guest.json", "import", stdin=numbered(1))
    assert (done.code, "there is no folder" in done.err) == (2, True)
    assert command(tmp_path / "guest.json", "import", stdin="").code == 1
    assert command(tmp_path / "guest.json", "import", str(tmp_path / "lines")).code == 2
    assert command(tmp_path / "guest.json", "import", "--name", "x", stdin=numbered(1)).code == 2
    assert not list(tmp_path.iterdir())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_asked_of_a_person(tmp_path: Path) -> None:
    """An import without lines, at a terminal, does not wait for them."""
    out, err = io.StringIO(), io.StringIO()
    code = main([str(tmp_path / "guest.json"), "import"], Terminal(), out, err)
    assert Done(code, out.getvalue(), "") == Done(2, "", "")
    assert "pipe them in" in err.getvalue()


def test_a_database_gets_another_memory(tmp_path: Path) -> None:
    path = tmp_path / "guests.db"
    assert command(path, "import", "--name", "guest 1", stdin=numbered(2)).code == 0
    assert command(path, "import", "--name", "guest 2", stdin=numbered(3)).code == 0
    assert len(command(path, "list", "--json", "--name", "guest 1").json) == 2
    typo = command(path, "import", "--name", "gest 1", "--dry-run", stdin=numbered(2))
    assert "the memory 'gest 1' in it is new" in typo.err
