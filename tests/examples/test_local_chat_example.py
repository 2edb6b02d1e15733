"""``examples/local_chat.py`` against a server on this machine that speaks Ollama's protocol."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import ConversationIndex, Memory, Transcript
from support.loading import EXAMPLES, load_example

local = load_example("local_chat")

DOCUMENT, QUESTION = "search_document: ", "search_query: "
MEANINGS = (("vegetarian", "meat", "dinner"), ("java", "build", "compiler"), ("cello", "music"))


class Ollama(ThreadingHTTPServer):
    """``/api/embed`` by three meanings, and ``/api/chat`` with the replies of ``script``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[str] = []
        self.embedded: list[str] = []
        self.asked: list[list[dict[str, str]]] = []
        self.broken = ""  # what is answered to everything

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and answer, in the form of Ollama."""
        model = body["model"]
        if path == "/api/embed" and model == "nomic-embed-text":
            self.embedded += body["input"]
            return 200, {"model": model, "embeddings": [vector(text) for text in body["input"]]}
        if path == "/api/chat" and model == "llama3.2" and body["stream"] is False:
            self.asked.append(body["messages"])
            message = {"role": "assistant", "content": self.script.pop(0)}
            return 200, {"model": model, "message": message, "done": True, "done_reason": "stop"}
        return 404, {"error": f'model "{model}" not found, try pulling it first'}


class Handler(BaseHTTPRequestHandler):
    server: Ollama

    def do_POST(self) -> None:
        assert self.headers["Content-Type"] == "application/json"
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = self.server.answer(self.path, body)
        sent = (self.server.broken or json.dumps(answer)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(sent) + 10 * (self.server.broken == "{")))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None:
        pass


def vector(text: str) -> list[float]:
    """How much of each meaning, and a little of everything."""
    words = text.lower()
    return [0.1, *(float(any(word in words for word in meaning)) for meaning in MEANINGS)]


@pytest.fixture
def ollama() -> Iterator[Ollama]:
    with Ollama() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chat.json"


def said(ollama: Ollama, path: Path, *lines: str) -> list[str]:
    return list(local.chat(str(path), lines, ollama.url))


def test_texts_and_questions_are_embedded_with_the_prefixes_of_the_model(
    ollama: Ollama, path: Path
) -> None:
    ollama.script = ["Try the lentils."]
    said(ollama, path, "/remember I am vegetarian", "What is for dinner?")
    assert DOCUMENT + "I am vegetarian" in ollama.embedded
    assert ollama.embedded[-1] == QUESTION + "What is for dinner?"
    assert all(text.startswith((DOCUMENT, QUESTION)) for text in ollama.embedded)
    assert not any(text.startswith(DOCUMENT) and "What" in text for text in ollama.embedded)


def test_a_memory_is_found_by_its_meaning_alone(ollama: Ollama, path: Path) -> None:
    """The question shares no word with the fact, and there is room for few."""
    lines = [f"/remember fact {number} about cello lessons" for number in range(5)]
    said(ollama, path, *lines, "/remember I am vegetarian")

    def embed(texts: list[str]) -> list[list[float]]:
        return [vector(text) for text in texts]

    memory = Memory.open(path, index=ConversationIndex(embed, embed))
    assert memory.recall("Any ideas for dinner?")[0].data == "I am vegetarian"
    ollama.script = ["Lentils."]
    said(ollama, path, "Any ideas for dinner?")
    assert "- fact:6: I am vegetarian" in ollama.asked[0][0]["content"]


def test_a_new_fact_is_compared_with_those_that_say_nearly_the_same(
    ollama: Ollama, path: Path
) -> None:
    assert said(
        ollama,
        path,
        *("/remember the build needs Java 17", "/remember Ada plays the cello"),
        *("/remember the build needs Java 21", "/forget fact:1", "/forget fact:1"),
    ) == [
        *("fact:1: the build needs Java 17", "fact:2: Ada plays the cello"),
        *("fact:3: the build needs Java 21", "nearly the same: fact:1: the build needs Java 17"),
        *("forgotten", "there is no such memory"),
    ]
    assert [entry.key for entry in Memory.open(path)] == ["fact:2", "fact:3"]
    assert b"Java 17" not in path.read_bytes()


def test_only_what_the_answer_used_is_reinforced(ollama: Ollama, path: Path) -> None:
    said(ollama, path, "/remember Dana plays the cello", "/remember the build needs Java 17")
    ollama.script = ["The build needs Java 17, I think."]
    assert said(ollama, path, "Which compiler?") == ["The build needs Java 17, I think."]
    feedback = {entry.key: entry.feedback for entry in Memory.open(path)}
    assert feedback == {"fact:1": 0, "fact:2": 1}


def test_the_last_turns_are_sent_after_a_restart(ollama: Ollama, path: Path) -> None:
    ollama.script = ["Hello!", "As I said."]
    said(ollama, path, "Hi", "")
    said(ollama, path, "Again?")
    assert [message["content"] for message in ollama.asked[1]] == ["Hi", "Hello!", "Again?"]
    assert [turn.user for turn in Transcript(Memory.open(path)).recent()] == ["Hi", "Again?"]


@pytest.mark.parametrize("broken", ["{", "[]", "{}", '{"embeddings": "x"}', "rubbish"])
def test_a_server_that_sends_rubbish_ends_no_chat(ollama: Ollama, path: Path, broken: str) -> None:
    """What was remembered is kept, nothing half; and the chat goes on when the server is back."""
    said(ollama, path, "/remember I am vegetarian")
    ollama.broken = broken

    def lines() -> Iterator[str]:
        yield "Dinner?"
        ollama.broken = ""
        ollama.script = ["Lentils."]
        yield "Dinner?"

    failed, worked = local.chat(str(path), lines(), ollama.url)
    assert failed.startswith("(no answer: ")
    assert worked == "Lentils."
    assert len(Transcript(Memory.open(path)).recent()) == 1


def test_without_a_server_facts_are_kept_all_the_same(ollama: Ollama, path: Path) -> None:
    ollama.shutdown()
    ollama.server_close()
    answers = said(ollama, path, "/remember I am vegetarian", "Dinner?")
    assert answers[0] == "fact:1: I am vegetarian"
    assert [answer.partition(":")[0] for answer in answers[1:]] == ["(no answer", "(no answer"]
    assert Memory.open(path).get("fact:1") == "I am vegetarian"


def test_an_empty_answer_is_no_turn(ollama: Ollama, path: Path) -> None:
    ollama.script = ["", "Yes."]
    assert said(ollama, path, "Hi", "Still there?") == ["(no answer)", "Yes."]
    assert [turn.user for turn in Transcript(Memory.open(path)).recent()] == ["Still there?"]


def test_what_is_too_long_for_a_turn_is_never_sent(ollama: Ollama, path: Path) -> None:
    assert said(ollama, path, "x" * 3_000)[0].startswith("(no answer: ")
    assert ollama.asked == []


def test_a_missing_model_is_an_error_of_the_server(ollama: Ollama, path: Path) -> None:
    with pytest.raises(OSError, match="404"):
        local.ask(ollama.url, "chat", model="other", messages=[], stream=False)


def test_a_proxy_sees_nothing(ollama: Ollama, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    ollama.script = ["Hello!"]
    assert said(ollama, path, "Hi") == ["Hello!"]


def test_the_example_runs_as_a_person_would_run_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "local_chat.py"), "chat.json"],
        cwd=tmp_path,
        input="/forget fact:1\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "there is no such memory\n", "")
