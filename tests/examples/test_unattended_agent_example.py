"""``examples/unattended_agent.py``: decisions, lessons, and an account of what was forgotten."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel_memory import Memory
from sentinel_memory.agent import Archive, Audit
from support.clocks import FakeClock
from support.loading import EXAMPLES, load_example

agent = load_example("unattended_agent")
DAY = 86_400


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "agent.json")


def by_data(path: str) -> dict[str, tuple[float, int]]:
    """Importance and repeats of each decision and lesson, by its text."""
    return {
        " ".join(entry.data.values()): (entry.importance, entry.repeats)
        for entry in Memory.open(path)
    }


def test_equal_decisions_are_one_entry_and_words_add_to_the_weight(
    path: str, clock: FakeClock, capsys: pytest.CaptureFixture[str]
) -> None:
    agent.run(path, ["fix the login", "", "  paint it ", "paint it", "security paint"], clock)
    assert capsys.readouterr().out == (
        "EVOLVE fix the login\nSKIP paint it\nSKIP paint it\nSKIP security paint\n"
        "3 entries, 1 repeated, forgotten: {}\n"
    )
    assert by_data(path) == {
        "EVOLVE fix the login": (0.8, 1),
        "SKIP paint it": (0.2, 2),
        "SKIP security paint": (0.4, 1),
    }


def test_trouble_is_remembered_over_a_restart_and_fades(
    path: str, clock: FakeClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two rollbacks stop every change; 30 days later they count for one."""
    agent.run(path, ["fix a", "rolled back: fix a", "fix a", "fix b", "rolled back: fix b"], clock)
    agent.run(path, ["fix c"], clock)
    clock.tick(30 * DAY)
    agent.run(path, ["fix c", "fix b"], clock)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "entries" not in line] == [
        *("EVOLVE fix a", "REJECT fix a", "EVOLVE fix b"),
        *("REJECT fix c", "EVOLVE fix c", "REJECT fix b"),
    ]
    assert by_data(path)["rolled back: fix a"] == (1.0, 1)


def test_a_model_is_given_the_identity_as_orders_and_memories_as_data(
    path: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, str]] = []

    def decide(*given: str) -> str:
        asked.append((given[0], given[1], given[2]))
        return "SKIP"

    monkeypatch.setattr(agent, "decide", decide)
    agent.run(path, ["rolled back: cache", "warm the cache"], clock)
    [(instructions, known, proposal)] = asked
    assert instructions == (
        "mission: Keep the service healthy.\nnever:\n- Deploy while tests fail.\n"
        "Trouble lately: 1.0"
    )
    assert "rolled back: cache" in known
    assert proposal == "warm the cache"


def test_all_that_was_forgotten_is_counted_and_found_in_the_archive(
    path: str, clock: FakeClock, capsys: pytest.CaptureFixture[str]
) -> None:
    agent.run(path, (f"proposal {number}" for number in range(230)), clock)
    clock.tick(1)
    agent.run(path, ["one more", "rolled back: one more"], clock)
    said = capsys.readouterr().out.splitlines()
    assert said[230] == "200 entries, 0 repeated, forgotten: {('evicted', 'decision'): 30}"
    assert said[-1] == "201 entries, 0 repeated, forgotten: {('evicted', 'decision'): 1}"
    memory = Memory.open(path)
    assert Audit(memory).tally().removed == {("evicted", "decision"): 31}
    archive = Archive(f"{path}.archive")
    kept = {entry.data["on"] for entry in memory if entry.kind == "decision"}
    folder = Path(f"{path}.archive")
    archived = [
        entry.data["on"]
        for file in folder.glob("*.json.gz")
        for entry in archive.restore(file.name)
    ]
    assert len(archived) == 31
    assert kept | set(archived) == {*(f"proposal {number}" for number in range(230)), "one more"}


def test_entries_over_a_limit_that_was_lowered_are_archived_and_counted(
    path: str, clock: FakeClock
) -> None:
    memory = Memory.open(path, limit=1_000, clock=clock)
    with memory.batch():
        for number in range(300):
            memory.remember(f"decision:{number}", {"action": "SKIP", "on": f"old {number}"})
    agent.run(path, ["one"], clock)
    agent.run(path, ["two"], clock)
    archive = Archive(f"{path}.archive")
    files = Path(f"{path}.archive").glob("*.json.gz")
    archived = {entry.key for file in files for entry in archive.restore(file.name)}
    assert Audit(Memory.open(path)).tally().removed == {("evicted", "decision"): 102}
    assert len(archived) == 102


def test_a_change_by_another_agent_is_seen_and_kept(path: str, clock: FakeClock) -> None:
    other = Memory.open(path, clock=clock)

    def lines() -> Iterator[str]:
        yield "fix a"
        other.refresh()
        other.remember("lesson:other", {"lesson": "rolled back: fix a"})
        yield "fix a"

    agent.run(path, lines(), clock)
    assert set(by_data(path)) == {"EVOLVE fix a", "rolled back: fix a", "REJECT fix a"}


def test_the_example_runs_as_a_person_would_run_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "unattended_agent.py"), "agent.json"],
        cwd=tmp_path,
        input="fix the login\nrolled back: fix the login\nfix the login\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "EVOLVE fix the login\nREJECT fix the login\n3 entries, 0 repeated, forgotten: {}\n"
    )
