"""The endpoint, with the real FastAPI."""

from __future__ import annotations

import os
import re
import threading
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
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
        self.model: Callable[[list[Message]], str] = echo
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


def test_a_user_sees_and_deletes_what_is_kept(site: Site) -> None:
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
def test_a_message_that_cannot_be_asked_is_the_users_fault(site: Site, text: Any) -> None:
    assert site("POST", "/chat", json={"text": text}).status_code == 422
    assert not site.folder.exists()


def test_a_message_with_half_a_character_is_the_users_fault(site: Site) -> None:
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
def test_an_id_that_is_none_is_a_value_error(user: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"."):
        adapter.user_file(tmp_path, user)


def test_a_hostile_id_has_a_memory_like_any_other(site: Site) -> None:
    site("POST", "/chat", "token-evil", json={"text": "hi"})
    assert [path.name for path in site.folder.parent.iterdir()] == ["users"]
    assert [path.suffix for path in site.folder.iterdir() if path.suffix == ".json"] == [".json"]
    assert site.turns("../../evil") == [("hi", "You said: hi")]
