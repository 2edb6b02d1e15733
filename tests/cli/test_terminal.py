"""The command line at a terminal, in a pipe, interrupted; and what data may not do."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sentinel_memory
from sentinel_memory import Memory
from sentinel_memory._cli.showing import Progress, Screen, clipped, columns_of, json_text, shown
from sentinel_memory.cli import main
from support.clocks import FakeClock
from support.commands import command, fill

PACKAGE = Path(sentinel_memory.__file__).parents[1]
README = Path(__file__).parents[2] / "README.md"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONIOENCODING": "utf-8"}
ENVIRONMENT.pop("COLUMNS", None)
PROGRAM = [sys.executable, "-m", "sentinel_memory"]
NASTY = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b2J",
    "a\rb",
    "line\nfeed",
    "\u202eexe.gpj",
    "\u2066isolate",
    "\u2028separator",
    "\x7f",
    "\x00",
    "\U000e0041tag",
    "\ufeff",
)


def process(*argv: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, *map(str, argv)],
        env={**ENVIRONMENT, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


# What data may not do


@pytest.mark.parametrize("text", NASTY)
def test_no_text_of_an_entry_acts_on_a_terminal(tmp_path: Path, text: str) -> None:
    """Neither as key, data, meta, name of a field nor in a message; JSON has it whole."""
    path = tmp_path / "guest.json"
    memory = Memory.open(path)
    memory.remember(f"k:{text}", {"a": text, text: 1}, meta={text: text})
    memory.remember(f"{text}:k", text, pinned=True)
    for argv in (
        ["list"],
        ["show", f"k:{text}"],
        ["show", text],
        ["recall", "k"],
        ["context", "k", "--budget", "1000"],
        ["stats"],
        ["check"],
        ["pin", f"k:{text}"],
        ["forget", text, "--dry-run"],
        ["list", "--where", f"meta.{text}~x"],
        ["list", "--where", text],
        ["list", f"--{text}"],
        ["export"],
        ["list", "--json"],
    ):
        done = command(path, *argv)
        for line in (done.out + done.err).split("\n"):
            assert line.isprintable(), argv
    assert text in [entry["data"] for entry in command(path, "list", "--json").json]


def test_what_a_load_rejected_may_not_either(tmp_path: Path) -> None:
    path = tmp_path / "guest.json"
    bad = {"key": "\x1b[31m", "data": ["\udc80", "\x9b"]}
    path.write_text(json.dumps({"version": 1, "entries": [bad]}))
    for argv in (["check"], ["check", "--json"]):
        done = command(path, *argv)
        assert all(line.isprintable() for line in done.out.split("\n"))
    assert command(path, "check", "--json").json["rejected"][0]["entry"] == bad


@pytest.mark.parametrize(
    "text",
    ["日本語　全角", "مرحبا ١٢٣", "می‌خواهم", "👨‍👩‍👧 ❤️ 🫠", "नमस्ते", "e\u0301", "a\\nb", "\xa0"],
)
def test_letters_of_all_scripts_stay(text: str) -> None:
    assert shown(text) == text
    assert json.loads(json_text({"a": text})) == {"a": text}


def test_widths_are_those_of_a_terminal() -> None:
    assert [columns_of(text) for text in ("abc", "日本", "e\u0301", "한", "👨‍👩‍👧", "❤️", "")] == [
        *(3, 4, 1, 2, 2, 2, 0)
    ]
    for columns in range(1, 12):
        for text in (
            "日本語のテキスト",
            "नमस्ते दुनिया",
            "👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧",
            "plain words",
            "e\u0301" * 9,
        ):
            cut = clipped(text, columns)
            assert columns_of(cut) <= columns
            assert cut == text or cut.endswith("…")
    assert clipped("👨‍👩‍👧👨‍👩‍👧", 3) == "👨‍👩‍👧…"  # a family is not torn apart


# Streams


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 132])
@pytest.mark.parametrize("argv", [["list"], ["recall", "small talk"], ["stats"], ["check"]])
def test_tables_fit_the_terminal(
    tmp_path: Path,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    argv: list[str],
) -> None:
    path = tmp_path / "guest.json"
    fill(path, clock)
    memory = Memory.open(path, clock=clock)
    memory.remember("a:long:key:" * 9, "small talk " + "日本語の長いテキスト" * 9)
    memory.remember("emoji", "small talk 👨‍👩‍👧 ❤️ " + "🫠" * 90)
    memory.remember("arabic", "small talk " + "مرحبا بالعالم " * 20)
    monkeypatch.setenv("COLUMNS", str(columns))
    out = Terminal()
    assert main([str(path), *argv], None, out, None, clock=clock) == 0
    table = out.getvalue().splitlines()
    if columns >= 40 and argv[0] in ("list", "recall"):
        assert max(map(columns_of, table)) <= columns
        assert any("…" in line for line in table)
    starts = {line.find("small") for line in table if line.startswith("chat:")}
    assert len(starts) <= 1  # the columns are aligned


def test_nothing_is_cut_in_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "guest.json"
    Memory.open(path).remember("k" * 200, "word " * 100)
    assert "k" * 200 in command(path, "list").out
    assert "word " * 99 in command(path, "list").out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_an_output_that_has_not_all_letters_gets_escapes(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "guest.json"
    Memory.open(path).remember("日本", "é 日本 \x9b")
    for argv in (["list"], ["list", "--json"], ["context", "日本", "--budget", "99"], ["export"]):
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
        assert main([str(path), *argv], None, out, None) == 0
        text = raw.getvalue().decode(encoding)
        assert "\\u65e5" in text
        if "--json" in argv:
            assert json.loads(text)[0]["data"] == "é 日本 \x9b"


def test_help_names_every_command_and_the_exit_codes() -> None:
    out = io.StringIO()
    assert main(["--help"], None, out, None) == 0
    for word in ("list", "import", "prune", "exit codes:", "141"):
        assert word in out.getvalue()
    assert main([], None, io.StringIO(), io.StringIO()) == 2
    assert main(["guest.json"], None, io.StringIO(), io.StringIO()) == 2
    assert main(["guest.json", "lsit"], None, io.StringIO(), io.StringIO()) == 2


def test_the_program_runs_as_a_module_and_has_a_script(tmp_path: Path, clock: FakeClock) -> None:
    fill(tmp_path / "guest.json", clock)
    done = process(tmp_path / "guest.json", "list", "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)[-1]["key"] == "user:name"
    text = README.with_name("pyproject.toml").read_text(encoding="utf-8")
    assert 'sentinel-memory = "sentinel_memory.cli:run"' in text


def test_importing_the_package_does_not_load_the_command_line() -> None:
    heavy = "n == 'argparse' or n.startswith(('sentinel_memory.cli', 'sentinel_memory._cli'))"
    code = f"import sys, sentinel_memory; print([n for n in sys.modules if {heavy}])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file whose list is longer than what a pipe holds."""
    path = tmp_path / "large.json"
    stored = {"importance": 0.5, "createdAt": 0, "updatedAt": 0}
    entries = [{"key": f"e:{number}", "data": "word " * 20, **stored} for number in range(3000)]
    path.write_text(json.dumps({"version": 1, "entries": entries}))
    return path


@pytest.mark.skipif(os.name == "nt", reason="pipes of Windows end otherwise")
def test_a_reader_that_has_gone_is_no_error(large: Path) -> None:
    for argv in ("list", "export"):
        with subprocess.Popen(
            [*PROGRAM, str(large), argv],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            running.stdout.readline()
            running.stdout.close()
            assert running.stderr.read() == b""
            assert running.wait(60) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to write to")
def test_an_output_that_cannot_be_written_is_an_error(large: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, str(large), "export"],
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"sentinel-memory: the output cannot be written")
    assert b"Traceback" not in done.stderr


class Interrupting:
    """An input at which somebody presses Ctrl-C."""

    def isatty(self) -> bool:
        return False

    def __iter__(self) -> Iterator[str]:
        raise KeyboardInterrupt


def test_an_interrupted_command_says_so_and_leaves_the_file(
    tmp_path: Path, clock: FakeClock
) -> None:
    path = tmp_path / "guest.json"
    fill(path, clock)
    before = path.read_bytes()
    err = io.StringIO()
    assert main([str(path), "import"], Interrupting(), io.StringIO(), err) == 130
    assert err.getvalue() == "sentinel-memory: interrupted\n"
    assert path.read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="signals of Windows are others")
def test_ctrl_c_ends_a_process_with_a_word(tmp_path: Path) -> None:
    """While it waits for lines, so that nothing depends on the speed of the machine."""
    with subprocess.Popen(
        [*PROGRAM, str(tmp_path / "guest.json"), "import"],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        for number in range(5_000):  # more than a pipe holds: once they are gone, it is reading
            running.stdin.write(b'{"key": "k:%d", "data": "some text"}\n' % number)
        running.stdin.flush()
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
        assert running.stderr.read() == b"sentinel-memory: interrupted\n"
    assert not list(tmp_path.iterdir())


# Progress


def test_progress_is_told_at_a_terminal_only_and_taken_away(clock: FakeClock) -> None:
    for stream, told in ((io.StringIO(), False), (Terminal(), True)):
        progress = Progress(stream, clock=clock)
        progress.tell("too early")
        assert stream.getvalue() == ""
        clock.tick(1)
        progress.tell("read 1,000 lines")
        progress.tell("too soon after it")
        clock.tick(1)
        progress.tell("read 2 \x1b lines")
        progress.end()
        text = stream.getvalue()
        assert ("\rread 1,000 lines" in text and "\rread 2 \\x1b lines" in text) == told
        assert "too" not in text
        assert not told or text.endswith("\r" + " " * len("read 2 \\x1b lines") + "\r")


@pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("argv", [["import"], ["check"]])
def test_long_work_shows_its_progress_on_a_real_terminal(tmp_path: Path, argv: list[str]) -> None:
    """On the errors; the output, which is a pipe here, has the result and nothing else."""
    import pty

    path, lines = tmp_path / "guest.json", tmp_path / "lines"
    stored = {"importance": 0.5, "createdAt": 0, "updatedAt": 0}
    entries = [{"key": f"k:{n}", "data": f"{n} " * 40, **stored} for n in range(30_000)]
    if argv == ["check"]:
        path.write_text(json.dumps({"version": 1, "limit": 30_000, "entries": entries}))
    else:
        lines.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        argv = ["import", str(lines), "--limit", "30000"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, str(path), *argv], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=theirs
    ) as running:
        os.close(theirs)
        told = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # Linux says so at the end
                break
            if not part:
                break
            told += part
        os.close(ours)
        assert running.stdout is not None
        out = running.stdout.read()
        assert running.wait(60) == 0
    assert b"\r" not in out
    if argv[0] == "check":
        assert b"\rreading " in told
        assert b"sound" in out
    else:
        assert re.search(rb"\rread [0-9,]+ lines", told)
        assert out == b"imported 30,000 entries\n"
    assert told.rstrip().endswith(b"30,000") or told.endswith(b"\r")  # the line was taken away


# README


def test_the_commands_of_the_readme_run(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ends with 0, in this order, on the file of a guest."""
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "guest.json", clock)
    lines = README.read_text(encoding="utf-8").splitlines()
    blocks = [line for line in lines if line.startswith("sentinel-memory guest.json ")]
    found = [part for line in blocks for part in line.partition(" #")[0].split(" && ")]
    assert len(found) >= 6
    for line in found:
        words = shlex.split(line)[1:]
        words, target = (words[:-2], words[-1]) if words[-2] == ">" else (words, "")
        done = command(words[0], *words[1:], clock=clock)
        assert done.code == 0, (line, done)
        if target:
            (tmp_path / target).write_text(done.out)


def test_a_screen_without_a_stream_is_no_crash() -> None:
    assert main(["nothing.json", "list"], None, None, None) == 2
    Screen(None).flush()
