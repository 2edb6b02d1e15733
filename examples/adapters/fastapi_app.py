"""A chat endpoint with one memory for each authenticated user, in one file each.

    app = create_app(Path("users"), ask_model, user_of_token)

``ask_model`` gets the messages and gives the answer, or raises; it may be ``async``.
``user_of_token`` is your login: it gives the id of a user, or ``None``. A process holds one memory
for each file that it used lately, and every change is a ``transact``, so any number of requests,
threads and worker processes can serve one user at once, and none waits for the model while it holds
a lock. Nothing is stored unless the model answered.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Body, Depends, FastAPI, HTTPException
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from sentinel_memory import Memory, SentinelMemoryError
from sentinel_memory.chat import Message, Transcript, build_messages

INSTRUCTIONS = "You are a helpful assistant."
Text = Annotated[str, Body(embed=True, min_length=1, max_length=2_000)]
AskModel = Callable[[list[Message]], str | Awaitable[str]]


def user_file(folder: Path, user: str) -> Path:
    """The file with the memory of ``user``: its name is made of the hash of the id.

    Whatever an id is made of, the file is in ``folder``, has a name of 69 ASCII characters, and
    is nobody else's, also where file names differ in more than case or form. Ids are compared as
    they are. An empty one is a ``ValueError``.
    """
    if not user:
        raise ValueError("a user has an id")
    return folder / f"{hashlib.sha256(user.encode()).hexdigest()}.json"


class Own(NamedTuple):
    """The memory of one user, and the conversation in it."""

    memory: Memory
    transcript: Transcript


class Memories:
    """The memories of the users, one for each file, the ``most`` that were used last."""

    def __init__(self, folder: Path, most: int = 200) -> None:
        self._folder, self._most = folder, most
        self._lock = Lock()
        self._open: OrderedDict[Path, Own] = OrderedDict()

    def of_user(self, user: str) -> Own:
        """The memory of ``user``, as its file has it now: other processes write to it, too."""
        path = user_file(self._folder, user)
        with self._lock:
            own = self._open.get(path)
            is_new = own is None
            if own is None:
                memory = Memory.open(path)
                own = self._open[path] = Own(memory, Transcript(memory))
            self._open.move_to_end(path)
            while len(self._open) > self._most:
                self._open.popitem(last=False)  # whoever is still using it goes on
        if not is_new:
            own.memory.load()
        return own


def create_app(
    folder: Path, ask_model: AskModel, user_of_token: Callable[[str], str | None]
) -> FastAPI:
    """The application, for a server such as uvicorn."""
    memories = Memories(folder)

    def own_of_login(
        login: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())],
    ) -> Own:
        user = user_of_token(login.credentials)
        if not user:
            raise HTTPException(401, "unknown token")
        return memories.of_user(user)

    Login = Annotated[Own, Depends(own_of_login)]
    app = FastAPI()
    app.include_router(data_routes(Login))

    @app.post("/chat")
    async def chat(own: Login, text: Text) -> dict[str, Any]:
        messages = await run_in_threadpool(messages_for, own, text)
        answer = await run_in_threadpool(ask_model, messages)
        if isawaitable(answer):
            answer = await answer
        if not answer.strip():
            raise HTTPException(502, "the model gave no answer")
        return {"answer": answer, "kept": await run_in_threadpool(keep, own, text, answer)}

    return app


def data_routes(Login: Any) -> APIRouter:
    """The routes by which users see and change what is kept of them."""
    router = APIRouter()

    @router.post("/memories")
    def remember(own: Login, key: Text, text: Text) -> dict[str, Any]:
        done = own.memory.transact(lambda memory: memory.remember(key, text, importance=0.9))
        return {"kept": done.kept}

    @router.get("/memories")
    def memories(own: Login) -> list[dict[str, Any]]:
        return [
            {"key": entry.key, "data": entry.data, "importance": entry.importance}
            for entry in own.memory
        ]

    @router.delete("/memories")
    def forget(own: Login, key: str) -> dict[str, Any]:
        return {"forgotten": own.memory.transact(lambda memory: memory.forget(key))}

    @router.delete("/everything")
    def clear(own: Login) -> dict[str, Any]:
        own.memory.transact(Memory.clear)
        return {"cleared": True}

    return router


def messages_for(own: Own, text: str) -> list[Message]:
    """The messages to send for a question; 422 for one that cannot be asked."""
    try:
        prompt = build_messages(
            own.memory, own.transcript, text, token_budget=4_000, instructions=INSTRUCTIONS
        )
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    return prompt.messages


def keep(own: Own, text: str, answer: str) -> bool:
    """Keep a completed turn; false if it is too long or the disk is full: the answer is given."""
    try:
        own.memory.transact(lambda _: own.transcript.append(text, answer))
    except (OSError, SentinelMemoryError, ValueError):
        return False
    return True
