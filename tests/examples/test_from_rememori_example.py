"""``examples/from_rememori.py``: a log of records and deletions becomes a memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import Memory
from support.loading import EXAMPLES, load_example

reader = load_example("from_rememori")
AT = 1_750_000_000_000


def added(id: str, text: str, **more: Any) -> dict[str, Any]:
    """A line as that package writes it."""
    usual = {"vector": "AACAPw==", "tags": [], "importance": 1, "meta": {}, "createdAt": AT}
    return {"op": "add", "id": id, "text": text, **usual, **more}


def log(folder: Path, *lines: dict[str, Any] | str | bytes) -> Path:
    """A log of these lines, with a line feed after each."""
    path = folder / "memories.jsonl"
    with path.open("wb") as file:
        for line in lines:
            text = json.dumps(line, ensure_ascii=False) if isinstance(line, dict) else line
            file.write((text.encode() if isinstance(text, str) else text) + b"\n")
    return path


def test_text_times_tags_and_feedback_are_taken_over(tmp_path: Path) -> None:
    given = {"tags": ["work"], "importance": 0.4, "meta": {"source": "mail"}, "createdAt": AT}
    used = {"reinforcements": 3, "reinforcedAt": AT + 5_000, "entities": ["Ada"]}
    source = log(tmp_path, added("a", "Ada plays the cello", **given, **used))
    reader.main(str(source), str(tmp_path / "m.json"))
    entry = Memory.open(tmp_path / "m.json").entry("note:a")
    assert entry is not None
    assert (entry.data, entry.importance, entry.feedback) == ("Ada plays the cello", 0.4, 3)
    assert entry.meta == {"source": "mail", "tags": ["work"]}
    assert (entry.created_at, entry.updated_at) == (AT / 1000, AT / 1000)
    assert entry.used_at == AT / 1000 + 5
    assert entry.expires_at is None


def test_the_last_line_of_a_record_counts_and_deleted_ones_stay_away(tmp_path: Path) -> None:
    source = log(
        tmp_path,
        *(added("a", "old"), added("b", "secret"), added("c", "kept"), ""),
        *(added("a", "new", reinforcements=1), {"op": "del", "id": "b"}, {"op": "del", "id": "x"}),
        *({"op": "del", "id": "c"}, added("c", "back")),
    )
    memory, _ = reader.read(source)
    assert {entry.key: entry.data for entry in memory} == {"note:a": "new", "note:c": "back"}


@pytest.mark.parametrize(
    ("field", "value", "name", "expected"),
    [
        ("reinforcements", 99, "feedback", 7),
        ("reinforcements", -99, "feedback", -7),
        ("reinforcements", 0, "feedback", 0),
        ("reinforcements", None, "feedback", 0),
        ("importance", 1.5, "importance", 1.0),
        ("importance", -1, "importance", 0.0),
        ("reinforcedAt", None, "used_at", None),
        ("createdAt", AT + 0.75, "created_at", AT / 1000),
        ("tags", ["ü", "ü"], "meta", {"tags": ["ü", "ü"]}),
        (
            "text",
            "two\u2028lines\r\n\ud83e\udd86".encode("utf-16", "surrogatepass").decode("utf-16"),
            "data",
            None,
        ),
    ],
)
def test_values_become_those_that_a_memory_can_hold(
    tmp_path: Path, field: str, value: Any, name: str, expected: Any
) -> None:
    memory, result = reader.read(log(tmp_path, added("a", "x") | {field: value}))
    assert result.dropped == 0
    assert getattr(memory.entry("note:a"), name) == (value if name == "data" else expected)


def test_records_without_the_newer_fields_are_read(tmp_path: Path) -> None:
    bare = {"op": "add", "id": "a", "text": "x", "createdAt": AT}
    memory, _ = reader.read(log(tmp_path, bare))
    entry = memory.entry("note:a")
    assert (entry.importance, entry.feedback, entry.meta) == (1.0, 0, {})


@pytest.mark.parametrize(
    "line",
    [
        *('{"op":"add","id":"b","te', '{"op":"add"}{"op":"del","id":"a"}', "[]", "5", "null"),
        *('{"op":"touch","id":"a"}', '{"op":"del"}', '{"id":"a"}', b"\xff"),
        *('{"op":"add","id":"b","text":"x"}', "[" * 100_000),
        json.dumps(added("b", "x", importance="high")),
        json.dumps(added("b", "x", reinforcements="3")),
        json.dumps(added("b", "x", meta=[1])),
        json.dumps(added("b", "x") | {"op": None}),
    ],
)
def test_a_line_that_cannot_be_read_may_be_a_deletion_and_stops_everything(
    tmp_path: Path, line: str | bytes
) -> None:
    source = log(tmp_path, added("a", "x"), line, added("c", "y"))
    with pytest.raises(ValueError, match=r"memories\.jsonl, line 2: "):
        reader.main(str(source), str(tmp_path / "m.json"))
    assert not (tmp_path / "m.json").exists()


def test_records_that_no_memory_can_hold_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of a character, and a time that is none."""
    half = json.dumps(added("a", "\ud83e"))
    source = log(tmp_path, half, added("b", "x", createdAt="yesterday"), added("c", "y"))
    reader.main(str(source), str(tmp_path / "m.json"))
    assert capsys.readouterr().out == "1 of 1 memories added, 2 are not valid\n"


def test_a_byte_order_mark_and_no_last_line_feed_do_no_harm(tmp_path: Path) -> None:
    source = log(tmp_path, b"\xef\xbb\xbf" + json.dumps(added("a", "x")).encode())
    source.write_bytes(source.read_bytes().rstrip(b"\n"))
    assert len(reader.read(source)[0]) == 1
    source.write_bytes(b"")
    assert len(reader.read(source)[0]) == 0


def test_what_is_there_stays_and_a_second_run_adds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also over the limit that the memory had."""
    target = tmp_path / "m.json"
    mine = Memory.open(target, limit=3)
    mine.remember("user:name", "Jakub", importance=0.1)
    mine.remember("note:1", "mine", importance=0.1)
    source = log(tmp_path, *(added(str(number), f"theirs {number}") for number in range(500)))
    reader.main(str(source), str(target))
    reader.main(str(source), str(target))
    assert capsys.readouterr().out == (
        "499 of 500 memories added, 0 are not valid\n0 of 500 memories added, 0 are not valid\n"
    )
    memory = Memory.open(target)
    assert len(memory) == 501
    assert (memory.get("user:name"), memory.get("note:1")) == ("Jakub", "mine")


def test_the_example_runs_as_a_person_would_run_it(tmp_path: Path) -> None:
    source = log(tmp_path, added("a", "x"))
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "from_rememori.py"), str(source), "memory.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1 of 1 memories added, 0 are not valid\n"
    assert Memory.open(tmp_path / "memory.json").get("note:a") == "x"
