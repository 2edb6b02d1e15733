"""The endpoint, with the real FastAPI."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import unicodedata
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient

from sentinel_memory import Memory
from sentinel_memory.chat.transcript import Message, Transcript
from support.loading import load_example

adapter = load_example("adapters/fastapi_app")

USERS = {"token-a": "anna", "token-b": "ben", "token-none": "", "token-evil": "../../evil"}


def echo(messages: list[Message]) -> str:
    return f"You said: {messages[-1]['content']}"


class Site:
    """The application as users see it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model: Callable[[list[Message]], str | Awaitable[str]] = echo
        app = adapter.create_app(folder, lambda messages: self.model(messages), USERS.get)
        self.client = TestClient(app, raise_server_exceptions=False)

    def __call__(self, method: str, path: str, token: str = "token-a", **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        return self.client.request(method, path, headers=headers, **options)

    def file(self, user: str) -> Path:
        found: Path = adapter.user_file(self.folder, user)
        return found

    def turns(self, user: str) -> list[tuple[str, str]]:
        return [
            (turn.user, turn.assistant)
            for turn in Transcript(Memory.open(self.file(user)), turns=99).recent()
        ]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "users")


def test_a_turn_is_answered_and_kept(site: Site) -> None:
    response = site("POST", "/chat", json={"text": "Hi!"})
    assert (response.status_code, response.json()) == (
        200,
        {"answer": "You said: Hi!", "kept": True},
    )
    assert site.turns("anna") == [("Hi!", "You said: Hi!")]


def test_the_next_turn_sees_the_talk_and_what_is_remembered(site: Site) -> None:
    seen: list[list[Message]] = []

    def model(messages: list[Message]) -> str:
        seen.append(messages)
        return "a"

    site.model = model
    site("POST", "/memories", json={"key": "allergy", "text": "peanuts"})
    site("POST", "/chat", json={"text": "one"})
    site("POST", "/chat", json={"text": "two"})
    assert "\n- allergy: peanuts\n" in seen[1][1]["content"]
    assert [message["content"] for message in seen[1][2:]] == ["one", "a", "two"]


def test_users_can_read_and_delete_their_memories(site: Site) -> None:
    assert site("POST", "/memories", json={"key": "a/b", "text": "secret"}).json() == {"kept": True}
    assert site("GET", "/memories").json() == [{"key": "a/b", "data": "secret", "importance": 0.9}]
    for forgotten in (True, False):
        response = site("DELETE", "/memories", params={"key": "a/b"})
        assert response.json() == {"forgotten": forgotten}
    assert b"secret" not in site.file("anna").read_bytes()
    site("POST", "/chat", json={"text": "another secret"})
    assert site("DELETE", "/everything").json() == {"cleared": True}
    assert b"secret" not in site.file("anna").read_bytes()


def test_users_see_nothing_of_each_other(site: Site) -> None:
    site("POST", "/memories", json={"key": "k", "text": "of anna"})
    site("POST", "/chat", json={"text": "of anna"})
    assert site("GET", "/memories", "token-b").json() == []
    site("DELETE", "/everything", "token-b")
    site("POST", "/chat", "token-b", json={"text": "of ben"})
    assert site.turns("anna") == [("of anna", "You said: of anna")]
    assert site.turns("ben") == [("of ben", "You said: of ben")]


@pytest.mark.parametrize("token", ["", "nobody", "token-none"])
def test_nobody_gets_in_without_a_user(site: Site, token: str) -> None:
    for method, path in [("POST", "/chat"), ("GET", "/memories"), ("DELETE", "/everything")]:
        assert site(method, path, token, json={"text": "x"}).status_code in (401, 403)
    assert site.client.post("/chat", json={"text": "x"}).status_code in (401, 403)
    assert not site.folder.exists()


@pytest.mark.parametrize("failure", ["raises", "empty", "blank"])
def test_nothing_is_stored_unless_the_model_answered(site: Site, failure: str) -> None:
    site("POST", "/chat", json={"text": "before"})
    before = site.file("anna").read_bytes()

    def model(messages: list[Message]) -> str:
        if failure == "raises":
            raise RuntimeError("the model is down")
        return {"empty": "", "blank": " \n"}[failure]

    site.model = model
    assert site("POST", "/chat", json={"text": "q"}).status_code >= 500
    assert site.file("anna").read_bytes() == before


def test_an_answer_that_is_too_long_to_keep_is_given_all_the_same(site: Site) -> None:
    answer = "a" * 20_001
    site("POST", "/chat", json={"text": "before"})
    before = site.file("anna").read_bytes()
    site.model = lambda messages: answer
    response = site("POST", "/chat", json={"text": "q"})
    assert response.json() == {"answer": answer, "kept": False}
    assert site.file("anna").read_bytes() == before


def test_a_full_disk_does_not_take_the_answer_away(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    response = site("POST", "/chat", json={"text": "Hi!"})
    assert response.json() == {"answer": "You said: Hi!", "kept": False}


@pytest.mark.parametrize(
    "text", ["", " ", "q" * 2_001, None, 5], ids=["no", "blank", "long", "null", "5"]
)
def test_an_invalid_message_is_a_client_error(site: Site, text: Any) -> None:
    assert site("POST", "/chat", json={"text": text}).status_code == 422
    assert not site.folder.exists()


def test_a_message_with_a_lone_surrogate_is_a_client_error(site: Site) -> None:
    """JSON can spell a lone surrogate; no file can hold it."""
    for path, body in [
        ("/chat", rb'{"text":"\ud800"}'),
        ("/memories", rb'{"key":"k","text":"\ud800"}'),
    ]:
        response = site("POST", path, content=body)
        assert response.status_code == 422, response.text
    assert not site.folder.exists()


def test_requests_of_one_user_at_once_lose_nothing(site: Site) -> None:
    """Also when they come through several processes, each with its own application."""
    sites = [site, Site(site.folder)]
    together = threading.Barrier(6)

    def talk(number: int) -> int:
        together.wait(30)
        status: int = sites[number % 2]("POST", "/chat", json={"text": f"q{number}"}).status_code
        return status

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(talk, range(6))) == [200] * 6
    assert sorted(user for user, _ in site.turns("anna")) == [f"q{number}" for number in range(6)]


def test_an_asynchronous_model_answers_too(site: Site) -> None:
    """While it is awaited, other requests are served."""
    waiting = threading.Semaphore(0)

    async def model(messages: list[Message]) -> str:
        text = messages[-1]["content"]
        if text == "slow":
            waiting.release()
            await asyncio.wait_for(asyncio.to_thread(answered.wait, 30), 30)
        return f"You said: {text}"

    answered = threading.Event()
    site.model = model
    with site.client, ThreadPoolExecutor(1) as pool:
        slow = pool.submit(site, "POST", "/chat", json={"text": "slow"})
        assert waiting.acquire(timeout=30)
        quick = site("POST", "/chat", json={"text": "quick"})
        answered.set()
        assert quick.json() == {"answer": "You said: quick", "kept": True}
        assert slow.result(30).json() == {"answer": "You said: slow", "kept": True}
    assert site.turns("anna") == [("quick", "You said: quick"), ("slow", "You said: slow")]


def test_an_asynchronous_model_that_fails_stores_nothing(site: Site) -> None:
    async def model(messages: list[Message]) -> str:
        raise RuntimeError("the model is down")

    site.model = model
    assert site("POST", "/chat", json={"text": "q"}).status_code == 500
    assert not site.file("anna").exists()


def test_a_hundred_requests_of_one_user_at_once_do_not_conflict(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process has one memory for each file, so its requests take turns."""
    tries = []
    transact = Memory.transact

    def counted(memory: Memory, change: Callable[[Memory], Any], **options: Any) -> Any:
        def tried(memory: Memory) -> Any:
            tries.append(memory)
            return change(memory)

        return transact(memory, tried, **options)

    monkeypatch.setattr(Memory, "transact", counted)

    def remember(number: int) -> int:
        body = {"key": f"k{number}", "text": "x"}
        status: int = site("POST", "/memories", json=body).status_code
        return status

    with site.client, ThreadPoolExecutor(20) as pool:
        assert list(pool.map(remember, range(100))) == [200] * 100
    assert len(tries) == 100
    assert len({id(memory) for memory in tries}) == 1
    assert len(Memory.open(site.file("anna"))) == 100


def test_entries_written_by_another_process_are_seen(site: Site) -> None:
    site("POST", "/chat", json={"text": "here"})
    other = Site(site.folder)
    other("POST", "/chat", json={"text": "there"})
    other("POST", "/memories", json={"key": "allergy", "text": "peanuts"})
    seen: list[list[Message]] = []

    def model(messages: list[Message]) -> str:
        seen.append(messages)
        return "a"

    site.model = model
    assert [entry["key"] for entry in site("GET", "/memories").json()] == ["allergy"]
    site("POST", "/chat", json={"text": "again"})
    assert "- allergy: peanuts" in seen[0][1]["content"]
    assert [message["content"] for message in seen[0][2::2]] == ["here", "there", "again"]


def test_only_the_memories_used_last_are_held(tmp_path: Path) -> None:
    memories = adapter.Memories(tmp_path, most=2)
    first = memories.of_user("a")
    memories.of_user("b")
    assert memories.of_user("a") is first
    memories.of_user("c")
    assert memories.of_user("a") is first
    memories.of_user("b")
    memories.of_user("c")
    again = memories.of_user("a")
    assert again is not first
    # Whoever still holds the memory that went loses nothing by it.
    first.memory.transact(lambda memory: memory.remember("k", 1))
    again.memory.transact(lambda memory: memory.remember("l", 2))
    assert {entry.key for entry in memories.of_user("a").memory} == {"k", "l"}


def test_a_synchronous_dependency_may_hold_a_batch(tmp_path: Path) -> None:
    """It enters the batch in one thread and leaves it in another; nothing acknowledged is lost."""
    path = tmp_path / "all.json"
    memory = Memory.open(path)
    app = FastAPI()

    def batched() -> Iterator[Memory]:
        with memory.batch():
            yield memory

    in_batch: Any = Depends(batched)

    @app.post("/{key}")
    def remember(key: str, memory: Memory = in_batch) -> str:
        memory.remember(key, "x")
        memory.remember(f"{key}:again", "x")
        return key

    with TestClient(app) as client, ThreadPoolExecutor(20) as pool:
        for number in range(8):
            together = threading.Barrier(20)

            def request(user: int, number: int = number, together: Any = together) -> int:
                together.wait(30)
                return client.post(f"/{number}-{user}").status_code

            assert list(pool.map(request, range(20))) == [200] * 20
            assert len(Memory.open(path)) == 40 * (number + 1)
    for number in range(10):
        memory.remember(f"after {number}", "x")
        assert Memory.open(path).has(f"after {number}")


# Where a memory is

IDS = [
    "anna",
    "Anna",
    "ANNA",
    ".",
    "..",
    "../anna",
    "../../etc/passwd",
    "..\\..\\windows",
    "%2e%2e%2fanna",
    "%2e",
    "/etc/passwd",
    "C:\\anna",
    "C:anna",
    "\\\\server\\share",
    "~",
    "~root",
    "$HOME",
    "a/b",
    "a\\b",
    "a\x00b",
    "a\nb",
    "anna.",
    "anna ",
    " anna",
    ".anna",
    "-rf",
    "*",
    "a:b",
    "CON",
    "nul.json",
    "aux",
    "x" * 100_000,
    "jiří",
    unicodedata.normalize("NFD", "jiří"),
    "straße",
    "STRASSE",
    "ıI",
    "Ii",
    "用户",
    "😀",
    "\u202eanna",
    "anna\u200b",
    "e" * 255 + ".json",
]


@pytest.mark.parametrize("user", IDS, ids=lambda user: ascii(user)[:30])
def test_an_id_cannot_leave_the_folder(user: str, tmp_path: Path) -> None:
    file = adapter.user_file(tmp_path, user)
    assert file.parent == tmp_path
    assert file.resolve().parent == tmp_path.resolve()
    assert re.fullmatch(r"[0-9a-f]{64}\.json", file.name)
    Memory.open(file).remember("k", 1)
    assert all(path.name.strip(".").startswith(file.stem) for path in tmp_path.iterdir())


def test_each_id_has_a_file_of_its_own(tmp_path: Path) -> None:
    """Also on a file system that takes names for the same in spite of case or Unicode form."""
    names = {adapter.user_file(tmp_path, user).name for user in IDS}
    assert len({unicodedata.normalize("NFC", name.casefold()) for name in names}) == len(IDS) == 43


@pytest.mark.parametrize("user", ["", "\ud800"])
def test_an_invalid_id_is_a_value_error(user: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"."):
        adapter.user_file(tmp_path, user)


def test_a_hostile_id_has_a_memory_like_any_other(site: Site) -> None:
    site("POST", "/chat", "token-evil", json={"text": "hi"})
    assert [path.name for path in site.folder.parent.iterdir()] == ["users"]
    assert [path.suffix for path in site.folder.iterdir() if path.suffix == ".json"] == [".json"]
    assert site.turns("../../evil") == [("hi", "You said: hi")]
