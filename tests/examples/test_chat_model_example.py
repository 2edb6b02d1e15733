"""The chat with a real model, against a server on this machine that fails in every way."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sentinel_memory import Memory
from sentinel_memory.chat.transcript import Transcript
from support.loading import load_example

PROGRAM = Path(__file__).parents[2] / "examples" / "chat_model.py"
KEY = "sk-test-0123456789"

Reply = Callable[["Handler"], None]


chat_model = load_example("chat_model")


# The server


class Server(ThreadingHTTPServer):
    """Gives the replies of ``script``, one for each request, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Reply] = []
        self.asked: list[dict[str, Any]] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests."""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(size))
        self.server.asked.append({"path": self.path, "headers": self.headers, "body": body})
        self.close_connection = True
        self.server.script.pop(0)(self)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        pass

    def head(self, status: int = 200, /, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Connection": "close", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def stream(self, *events: str) -> None:
        self.head(Content_Type="text/event-stream; charset=utf-8")
        for event in events:
            self.wfile.write(f"data: {event}\n\n".encode())
            self.wfile.flush()


def delta(text: str | None, end: str | None = None) -> str:
    part = {} if text is None else {"content": text}
    return json.dumps({"choices": [{"index": 0, "delta": part, "finish_reason": end}]})


def says(*pieces: str) -> Reply:
    """A whole answer, streamed or not as it was asked for."""

    def reply(to: Handler) -> None:
        if to.server.asked[-1]["body"]["stream"]:
            to.stream(*map(delta, pieces), delta(None, "stop"), '{"choices":[]}', "[DONE]")
        else:
            message = {"role": "assistant", "content": "".join(pieces)}
            to.head(Content_Type="application/json")
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            to.wfile.write(json.dumps({"choices": [choice]}).encode())

    return reply


def fails(status: int, body: str = "", **headers: str) -> Reply:
    def reply(to: Handler) -> None:
        headers.setdefault("Retry_After", "0")
        to.head(status, **headers)
        to.wfile.write(body.encode())

    return reply


def sends(body: str, kind: str = "application/json", **headers: str) -> Reply:
    """These bytes, and the end of the connection."""

    def reply(to: Handler) -> None:
        to.head(Content_Type=kind, **headers)
        to.wfile.write(body.encode())

    return reply


def streams(*events: str) -> Reply:
    return lambda to: to.stream(*events)


def chunk_cut_short(to: Handler) -> None:
    to.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
    event = f"data: {delta('It has ')}\n\n".encode()
    to.wfile.write(b"%x\r\n%s\r\n" % (len(event), event) + b"ff\r\ndata: {")


def stalls(after: str | None) -> Reply:
    """Says nothing more for a minute, or until the test is over."""

    def reply(to: Handler) -> None:
        if after is not None:
            to.stream(delta(after))
        to.server.over.wait(60)

    return reply


def hangs_up(to: Handler) -> None:
    to.connection.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join(30)


# The program


class Program:
    """The program in this process, fed by a pipe."""

    def __init__(self, server: Server, folder: Path, patch: pytest.MonkeyPatch, out: Any) -> None:
        self.server, self.patch, self.out = server, patch, out
        self.path = folder / "memory.json"

    def __call__(self, *lines: str, script: tuple[Reply, ...] = (), options: str = "") -> str:
        """What it prints for these lines of input; its status is kept."""
        self.server.script = list(script)
        self.patch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        arguments = ["--base-url", self.server.url, "--model", "m", "--file", str(self.path)]
        self.status = chat_model.main([*arguments, *options.split()])
        printed = self.out.readouterr()
        assert KEY not in printed.out + printed.err
        assert KEY.encode() not in self.bytes()
        assert self.server.script == []
        return str(printed.out + printed.err)

    def bytes(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""

    def turns(self) -> list[tuple[str, str]]:
        return [(t.user, t.assistant) for t in Transcript(Memory.open(self.path)).recent()]

    def entries(self) -> list[Any]:
        return [entry.data for entry in Memory.open(self.path)]


@pytest.fixture
def program(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return Program(server, tmp_path, monkeypatch, capsys)


# An answer


@pytest.mark.parametrize("options", ["", "--no-stream"], ids=["stream", "whole"])
def test_an_answer_is_shown_and_the_turn_kept(program: Program, options: str) -> None:
    """And nothing is made a fact of it."""
    printed = program("Is it safe?", script=(says("It has ", "peanuts."),), options=options)
    assert printed == "It has peanuts.\n"
    assert program.status == 0
    assert program.turns() == [("Is it safe?", "It has peanuts.")]
    assert program.entries() == []


def test_the_request_has_the_form_that_the_api_expects(program: Program) -> None:
    program("/remember allergic to nuts", "Is it safe?", script=(says("No."),))
    (asked,) = program.server.asked
    assert asked["path"] == "/v1/chat/completions"
    assert asked["headers"]["Authorization"] == f"Bearer {KEY}"
    assert asked["headers"]["Content-Type"] == "application/json"
    body = asked["body"]
    assert set(body) == {"model", "messages", "stream"}
    assert (body["model"], body["stream"]) == ("m", True)
    assert [message["role"] for message in body["messages"]] == ["system", "user", "user"]
    assert "\n- note:1: allergic to nuts\n" in body["messages"][1]["content"]
    assert body["messages"][2] == {"role": "user", "content": "Is it safe?"}


def test_without_a_key_no_authorization_is_sent(program: Program) -> None:
    program.patch.delenv("OPENAI_API_KEY")
    program("hi", script=(says("Hello."),))
    assert "Authorization" not in program.server.asked[0]["headers"]


def test_the_talk_goes_on_after_a_restart(program: Program) -> None:
    program("one", script=(says("1"),))
    program("two", script=(says("2"),))
    said = program.server.asked[1]["body"]["messages"]
    assert [message["content"] for message in said[1:]] == ["one", "1", "two"]


def test_a_server_that_does_not_stream_is_understood(program: Program) -> None:
    body = '{"choices":[{"message":{"content":"Hello."},"finish_reason":"stop"}]}'
    assert program("hi", script=(sends(body),)) == "Hello.\n"


@pytest.mark.parametrize(
    "events",
    [
        [delta("Hello."), delta(None, "stop")],  # some end without [DONE]
        [delta("Hello."), "[DONE]"],
        [delta("Hello.", "length"), "[DONE]", "{not read any more"],
        ['{"choices":[]}', delta(""), delta("Hello."), delta(None, "stop"), '{"choices":[]}'],
    ],
)
def test_every_kind_of_end_of_a_stream_is_understood(program: Program, events: list[str]) -> None:
    assert program("hi", script=(streams(*events),)) == "Hello.\n"
    assert program.turns() == [("hi", "Hello.")]


def test_comments_and_other_fields_of_a_stream_are_skipped(program: Program) -> None:
    body = f": wait\r\n\r\nevent: x\r\ndata:{delta('Hello.')}\r\n\r\nid: 1\r\ndata: [DONE]\r\n\r\n"
    assert program("hi", script=(sends(body, "text/event-stream"),)) == "Hello.\n"


def test_a_character_cut_in_two_by_the_stream_is_kept_whole(program: Program) -> None:
    halves = [r'{"choices":[{"delta":{"content":"a\ud83d"}}]}', delta("\ude00\ud800b", "stop")]
    program("hi", script=(streams(*halves),))
    assert program.turns() == [("hi", "a😀\ufffdb")]


def test_an_answer_cannot_move_the_cursor(program: Program) -> None:
    assert program("hi", script=(says("a\x1b[2Jb\x07\tc\x9b\r\nd"),)) == "a[2Jb\tc\nd\n"


# No answer

GOOD = ("before", (says("kept"),))

FAILURES: dict[str, tuple[tuple[Reply, ...], str]] = {
    "401": ((fails(401, '{"error":{"message":"bad key"}}'),), "answered 401: bad key"),
    "401 that repeats the key": (
        (fails(401, json.dumps({"error": {"message": f"Incorrect key: {KEY}."}})),),
        "answered 401: Incorrect key: ***.",
    ),
    "404 in plain words": ((fails(404, "<html>"),), "answered 404: Not Found"),
    "400 of another form": ((fails(400, '{"error":"no such model"}'),), "400: no such model"),
    "error of a strange form": ((fails(400, '{"error":[{"message":1}]}'),), "answered 400"),
    "redirect": ((fails(307, Location="http://127.0.0.1:9/"),), "answered 307"),
    "500 twice": ((fails(500), fails(500, '{"error":{"message":"tired"}}')), "500: tired"),
    "429 twice": ((fails(429), fails(429)), "answered 429: Too Many Requests"),
    "429, then 401": ((fails(429), fails(401)), "answered 401: Unauthorized"),
    "503, then an empty answer": ((fails(503), says("")), "the answer is empty"),
    "cut in mid-stream": ((streams(delta("It has ")),), "the answer was cut off"),
    "cut in mid-event": (
        (sends(f"data: {delta('It has ')}\n\ndata: {{", "text/event-stream"),),
        "not in the form",
    ),
    "cut in mid-chunk": ((chunk_cut_short,), "the connection failed"),
    "nothing but the head": ((streams(),), "the answer was cut off"),
    "hung up": ((hangs_up,), "the connection failed"),
    "an empty answer": ((says(""),), "the answer is empty"),
    "an answer of blanks": ((says(" ", "\n"),), "the answer is empty"),
    "no content": ((streams(delta(None, "stop")),), "the answer is empty"),
    "garbage in the stream": ((streams(delta("It "), "{garbage"),), "not in the form"),
    "another form in the stream": ((streams('{"choices":[{"delta":5}]}'),), "not in the form"),
    "a list in the stream": ((streams("[]"),), "not in the form"),
    "garbage": ((sends("{garbage"),), "not in the form"),
    "a web page": ((sends("<html>", "text/html"),), "not in the form"),
    "nothing": ((sends(""),), "not in the form"),
    "no choices": ((sends('{"choices":[]}'),), "not in the form"),
    "content in blocks": ((sends('{"choices":[{"message":{"content":[1]}}]}'),), "not in the form"),
    "deeply nested": ((sends("[" * 100_000),), "not in the form"),
    "an error in the stream": (
        (streams(delta("It "), json.dumps({"error": {"message": f"overloaded {KEY}"}})),),
        "the model reports: overloaded ***",
    ),
    "an error as an answer": ((sends('{"error":"loading"}'),), "the model reports: loading"),
    "cut short by its length": (
        (sends('{"choices":[{"mess', Content_Length="900"),),
        "not in the form",
    ),
    "too long to keep": ((says("a" * 20_001),), "assistant has 20001 characters"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_leaves_the_file_as_it_was(program: Program, name: str) -> None:
    """The program says why, goes on, and ends with a status that tells."""
    program("/remember allergic to nuts", "before", script=(says("kept"),))
    before = program.bytes()
    replies, message = FAILURES[name]
    printed = program("Is it safe?", script=replies)
    assert message in printed
    assert "nothing was kept)\n" in printed
    assert program.bytes() == before
    assert program.status == 1
    assert program("after", script=(says("and kept"),)) == "and kept\n"
    assert program.turns() == [("before", "kept"), ("after", "and kept")]


@pytest.mark.parametrize(
    ("reply", "options"),
    [(stalls(None), ""), (stalls("It has "), ""), (stalls(None), "--no-stream")],
    ids=["before the head", "in mid-stream", "whole"],
)
def test_a_model_that_falls_silent_is_not_waited_for(
    program: Program, reply: Reply, options: str
) -> None:
    program("before", script=(says("kept"),))
    before = program.bytes()
    started = time.monotonic()
    printed = program("q", script=(reply,), options=f"--timeout 0.2 {options}")
    assert time.monotonic() - started < 20
    assert "(no sign of life for 0.2 seconds; nothing was kept)" in printed
    assert program.bytes() == before
    assert len(program.server.asked) == 2  # it is not asked again


def test_a_server_that_does_not_answer_is_reported(program: Program) -> None:
    program.server.server_close()
    assert "(the connection failed: " in program("q")
    assert program.bytes() == b""
    assert program.status == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
@pytest.mark.parametrize("options", ["", "--no-stream"], ids=["stream", "whole"])
def test_a_busy_server_is_asked_once_more(program: Program, status: int, options: str) -> None:
    printed = program("q", script=(fails(status), says("a")), options=options)
    assert printed == "a\n"
    assert program.turns() == [("q", "a")]
    first, second = program.server.asked
    assert first["body"] == second["body"]


@pytest.mark.parametrize(
    ("asked", "pause"),
    [
        (None, 1.0),
        ("3", 3.0),
        ("0", 0.0),
        ("0.5", 0.5),
        ("3600", 10.0),
        ("inf", 10.0),
        ("-1", 1.0),
        ("nan", 1.0),
        ("soon", 1.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 1.0),
    ],
)
def test_the_pause_that_the_server_asks_for_is_kept_up_to_a_limit(
    server: Server, asked: str | None, pause: float
) -> None:
    pauses: list[float] = []
    headers = {} if asked is None else {"Retry_After": asked}

    def busy(to: Handler) -> None:
        to.head(429, **headers)

    server.script = [busy, says("a")]
    model = chat_model.Model(server.url, "m", sleep=pauses.append)
    assert list(model.ask([{"role": "user", "content": "q"}])) == ["a"]
    assert pauses == [pause]


# The key


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-a\r\nX: y", "sk č", "sk-a b", "sk-\x7f"])
def test_an_invalid_key_is_refused_without_showing_it(program: Program, key: str) -> None:
    program.patch.setenv("OPENAI_API_KEY", key)
    printed = program("hi")
    assert (program.status, program.server.asked) == (2, [])
    assert printed == "OPENAI_API_KEY has characters that no key has\n"


def test_blanks_around_a_key_are_removed(program: Program) -> None:
    program.patch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    program("hi", script=(says("Hello."),))
    assert program.server.asked[0]["headers"]["Authorization"] == f"Bearer {KEY}"


def test_a_key_is_not_sent_unencrypted_to_another_machine() -> None:
    with pytest.raises(chat_model.ModelError, match=r"not sent unencrypted to example\.invalid"):
        chat_model.Model("http://example.invalid/v1", "m", key=KEY)
    chat_model.Model("http://example.invalid/v1", "m")
    chat_model.Model("https://example.invalid/v1", "m", key=KEY)


@pytest.mark.parametrize(
    "url", ["", "localhost:11434/v1", "ftp://localhost", "http://", "http:/v1"]
)
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(chat_model.ModelError, match="--base-url must start with"):
        chat_model.Model(url, "m")


def test_an_invalid_port_is_reported(program: Program) -> None:
    program("hi", options="--base-url http://localhost:x/v1")
    assert program.status == 2


# The commands


def test_remembered_facts_survive_a_restart_and_forgotten_ones_are_gone(program: Program) -> None:
    assert program("/remember allergic to nuts", "/remember likes tea") == "(remembered)\n" * 2
    printed = program("/memories")
    assert printed == (
        "1. note:1: allergic to nuts  [importance 0.9, 0 s old, never expires]\n"
        "2. note:2: likes tea  [importance 0.9, 0 s old, never expires]\n"
    )
    assert program("/forget 1") == "(forgotten)\n"
    assert b"nuts" not in program.bytes()
    assert program.entries() == ["likes tea"]
    assert program("/memories").startswith("1. note:2: likes tea  [")


def test_a_number_refers_to_the_last_list_shown(program: Program) -> None:
    program("/remember a", "/remember b", "/remember c")
    printed = program("/memories", "/forget 1", "/forget 2", "/forget 1")
    assert printed.endswith("(forgotten)\n(forgotten)\n(that is forgotten already)\n")
    assert program.entries() == ["c"]


@pytest.mark.parametrize("number", ["", "0", "3", "-1", "1.5", "one", "9" * 5_000, "²"])
def test_a_number_that_is_not_in_a_list_forgets_nothing(program: Program, number: str) -> None:
    program("/remember a", "/remember b")
    before = program.bytes()
    assert program(f"/forget {number}") == "/forget N, a number of /memories\n"
    assert program.bytes() == before


def test_a_forgotten_number_is_used_again_without_harm(program: Program) -> None:
    program("/remember a", "/remember b", "/forget 1", "/remember c")
    assert sorted(program.entries()) == ["b", "c"]


def test_clear_forgets_the_talk_too(program: Program) -> None:
    program("/remember secret", "secret?", script=(says("secret!"),))
    assert program("/clear", "/memories", "/forget 1") == (
        "(everything is forgotten)\n(nothing is remembered)\n/forget N, a number of /memories\n"
    )
    assert b"secret" not in program.bytes()


def test_context_shows_the_messages_that_would_be_sent(program: Program) -> None:
    program("/remember likes tea", "hi", script=(says("Hello."),))
    lines = program("/context Which tea?").splitlines()
    assert lines[0] == f"system: {chat_model.INSTRUCTIONS}"
    assert "- note:1: likes tea" in lines
    assert lines[-4:-1] == ["user: hi", "assistant: Hello.", "user: Which tea?"]
    assert lines[-1].endswith(" of 4000 tokens, 1 turns, 0 memories left out)")
    assert "user: (your next message)" in program("/context")


def test_other_commands_are_not_sent_to_the_model(program: Program) -> None:
    assert program("/what", "/remember", "", "  ", "/exit", "never read") == (
        f"{chat_model.HELP}\n/remember TEXT\n"
    )
    assert program.server.asked == []


def test_a_list_shows_hostile_text_harmlessly(program: Program) -> None:
    memory = Memory.open(program.path)
    memory.remember("k", "a\n2. forged\x1b[2J")
    memory.remember("soon", "x", ttl=7_200)
    lines = program("/memories").splitlines()
    assert lines[0].startswith("1. k: a\\n2. forged[2J  [importance 0.5, ")
    assert lines[1].endswith((", expires in 2 h]", ", expires in 1 h]"))


def test_a_message_over_the_budget_is_reported_before_the_model_is_called(program: Program) -> None:
    printed = program("word " * 50, options="--token-budget 20")
    assert "more than token_budget=20; nothing was kept)" in printed
    assert "user has 2001 characters" in program("x" * 2_001)
    assert program.server.asked == []


@pytest.mark.parametrize("option", ["--timeout 0", "--timeout nan", "--token-budget -1"])
def test_an_option_that_makes_no_sense_is_refused(program: Program, option: str) -> None:
    with pytest.raises(SystemExit):
        program(options=option)


def test_a_damaged_file_is_reported_and_left_alone(program: Program) -> None:
    program.path.write_text("{", encoding="utf-8")
    assert "cannot be read as a memory" in program("hi")
    assert (program.status, program.bytes()) == (2, b"{")


def test_another_writer_of_the_file_loses_nothing(program: Program) -> None:
    program("/remember a")

    def meanwhile(to: Handler) -> None:
        Memory.open(program.path).remember("other", "b")
        says("Hello.")(to)

    printed = program("hi", script=(meanwhile,))
    assert "(kept, but not saved: " in printed
    assert program.entries() == ["a", "b"]


def test_the_tokenizer_of_the_model_counts_where_it_is_installed(program: Program) -> None:
    names: list[str] = []

    def no_model(name: str) -> None:
        raise KeyError(name)

    def encoding(name: str) -> Any:
        names.append(name)
        return SimpleNamespace(encode_ordinary=str.split)

    fake = SimpleNamespace(encoding_for_model=no_model, get_encoding=encoding)
    program.patch.setitem(sys.modules, "tiktoken", fake)
    printed = program("/context one two three", options="--tokenizer tiktoken")
    instructions = len(chat_model.INSTRUCTIONS.split())
    assert f"({instructions + 3 + 2 * 4} of 4000 tokens" in printed
    assert names == ["o200k_base"]
    program.patch.setitem(sys.modules, "tiktoken", None)
    assert "needs the package tiktoken" in program(options="--tokenizer tiktoken")
    assert program.status == 2


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0 s"), (0, "0 s"), (59, "59 s"), (60, "1 min"), (7_199, "1 h"), (200_000, "2 d")],
)
def test_an_age_is_told_in_one_unit(seconds: float, text: str) -> None:
    assert chat_model.duration(seconds) == text


# As a person uses it


def command(server: Server, path: Path) -> list[str]:
    return [
        *(sys.executable, str(PROGRAM), "--base-url", server.url),
        *("--model", "m", "--file", str(path)),
    ]


def test_the_program_works_from_a_pipe(server: Server, tmp_path: Path) -> None:
    """Also with bytes that are no UTF-8, and for a reader that goes away."""
    path = tmp_path / "m.json"
    server.script = [says("Ahoj.")]
    done = subprocess.run(
        command(server, path),
        input="/remember má rád čaj\nahoj ".encode() + b"\xff\n/exit\n",
        capture_output=True,
        timeout=60,
        env={**os.environ, "OPENAI_API_KEY": KEY},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.replace(b"\r\n", b"\n") == b"(remembered)\nAhoj.\n"
    assert server.asked[0]["body"]["messages"][-1]["content"] == "ahoj \ufffd"
    assert "má rád čaj".encode() in path.read_bytes()


TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
terminal = os.open(sys.argv[1], os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
for number in (0, 1, 2):
    os.dup2(terminal, number)
os.execv(sys.argv[2], sys.argv[2:])
"""


class Terminal:
    """A program at a pseudo-terminal, typed to and read from."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        self.keyboard, terminal = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", TERMINAL, os.ttyname(terminal), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        self.terminal = terminal  # held open, so that what was written is not lost at its end
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self.keyboard, text.encode())

    def wait_for(self, text: str) -> None:
        """Until ``text`` appears after what was waited for before."""
        deadline = time.monotonic() + 60
        while text not in self.shown:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.keyboard], [], [], max(0, left))
            assert ready, f"{text!r} did not appear after {self.shown!r}"
            self.shown += os.read(self.keyboard, 65_536).decode()
        assert KEY not in self.shown
        self.shown = self.shown.partition(text)[2]

    def interrupt_at_the_prompt(self) -> int:
        """Ctrl-C, pressed again if it came when the prompt was shown but nothing read yet."""
        for _ in range(20):
            self.type("\x03")
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(5)
        raise AssertionError("it did not end")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        os.close(self.keyboard)
        os.close(self.terminal)


@pytest.fixture
def terminal(server: Server, tmp_path: Path) -> Iterator[Callable[[], Terminal]]:
    opened: list[Terminal] = []

    def start() -> Terminal:
        environment = {**os.environ, "OPENAI_API_KEY": KEY, "TERM": "dumb"}
        opened.append(Terminal(command(server, tmp_path / "m.json"), environment))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this platform has no pseudo-terminals")
def test_ctrl_c_in_the_middle_of_an_answer_keeps_nothing_of_it(
    server: Server, terminal: Callable[[], Terminal], tmp_path: Path
) -> None:
    """The program goes on, the file has the same bytes; at the prompt, Ctrl-C ends it."""
    path = tmp_path / "m.json"
    server.script = [says("kept"), stalls("It has "), says("It has peanuts.")]
    person = terminal()
    person.wait_for("> ")
    person.type("/remember allergic to nuts\n")
    person.wait_for("(remembered)")
    person.type("before\n")
    person.wait_for("kept")
    person.wait_for("> ")
    before = path.read_bytes()
    person.type("Is it safe?\n")
    person.wait_for("It has ")
    person.type("\x03")
    person.wait_for("(stopped)")
    person.wait_for("> ")
    assert path.read_bytes() == before
    person.type("Is it safe?\n")
    person.wait_for("It has peanuts.")
    person.wait_for("> ")
    said = server.asked[-1]["body"]["messages"]
    assert [message["content"] for message in said[2:]] == ["before", "kept", "Is it safe?"]
    assert person.interrupt_at_the_prompt() == 0
    assert [turn.user for turn in Transcript(Memory.open(path)).recent()] == [
        "before",
        "Is it safe?",
    ]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this platform has no pseudo-terminals")
def test_a_person_remembers_restarts_and_forgets(
    terminal: Callable[[], Terminal], tmp_path: Path
) -> None:
    path = tmp_path / "m.json"
    person = terminal()
    person.wait_for("> ")
    person.type("/remember allergic to nuts\n")
    person.wait_for("(remembered)")
    person.type("/exit\n")
    assert person.process.wait(60) == 0
    assert b"nuts" in path.read_bytes()
    person = terminal()
    person.wait_for("> ")
    person.type("/memories\n")
    person.wait_for("1. note:1: allergic to nuts  [importance 0.9, ")
    person.type("/forget 1\n")
    person.wait_for("(forgotten)")
    assert b"nuts" not in path.read_bytes()
    person.type("\x04")
    assert person.process.wait(60) == 0


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupted_pipe_ends_with_the_file_as_it_was(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    server.script = [says("kept"), stalls("It has ")]
    with subprocess.Popen(
        command(server, path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OPENAI_API_KEY": KEY},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"before\nIs it safe?\nnever asked\n")
        process.stdin.flush()
        assert process.stdout.read(12) == b"kept\nIt has "
        before = path.read_bytes()
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        assert process.wait(60) == 130
    assert path.read_bytes() == before
    assert len(server.asked) == 2
