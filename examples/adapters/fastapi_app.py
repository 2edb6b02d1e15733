"""A chat endpoint with one memory for each authenticated user, in one file each.

    app = create_app(Path("users"), ask_model, user_of_token)

``ask_model`` gets the messages and gives the answer, or raises; ``user_of_token`` is your login:
it gives the id of a user, or ``None``. A memory is opened for each request and changed by
``transact``, so any number of requests, threads and worker processes can serve one user at once,
and none waits for the model while it holds a lock. Nothing is stored unless the model answered.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, Depends, FastAPI, HTTPException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from sentinel_memory import Memory, SentinelMemoryError
from sentinel_memory.chat import Message, Transcript, build_messages

INSTRUCTIONS = "You are a helpful assistant."
Text = Annotated[str, Body(embed=True, min_length=1, max_length=2_000)]


def user_file(folder: Path, user: str) -> Path:
    """Where the memory of ``user`` is: a name made of the hash of the id.

    Whatever an id is made of, the file is in ``folder``, has a name of 69 ASCII characters, and
    is nobody else's, also where file names differ in more than case or form. Ids are compared as
    they are. An empty one is a ``ValueError``.
    """
    if not user:
        raise ValueError("a user has an id")
    return folder / f"{hashlib.sha256(user.encode()).hexdigest()}.json"


def create_app(
    folder: Path,
    ask_model: Callable[[list[Message]], str],
    user_of_token: Callable[[str], str | None],
) -> FastAPI:
    """The application, for a server such as uvicorn."""
    app = FastAPI()

    def memory_of_user(
        login: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())],
    ) -> Memory:
        user = user_of_token(login.credentials)
        if not user:
            raise HTTPException(401, "unknown token")
        return Memory.open(user_file(folder, user))

    Own = Annotated[Memory, Depends(memory_of_user)]

    def chat(memory: Own, text: Text) -> dict[str, Any]:
        transcript = Transcript(memory)
        try:
            prompt = build_messages(
                memory, transcript, text, token_budget=4_000, instructions=INSTRUCTIONS
            )
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        answer = ask_model(prompt.messages)
        if not answer.strip():
            raise HTTPException(502, "the model gave no answer")
        kept = True
        try:
            memory.transact(lambda _: transcript.append(text, answer))
        except (OSError, SentinelMemoryError, ValueError):
            kept = False  # too long, or a full disk: the answer is there, and paid for
        return {"answer": answer, "kept": kept}

    def remember(memory: Own, key: Text, text: Text) -> dict[str, Any]:
        done = memory.transact(lambda memory: memory.remember(key, text, importance=0.9))
        return {"kept": done.kept}

    def memories(memory: Own) -> list[dict[str, Any]]:
        return [
            {"key": entry.key, "data": entry.data, "importance": entry.importance}
            for entry in memory
        ]

    def forget(memory: Own, key: str) -> dict[str, Any]:
        return {"forgotten": memory.transact(lambda memory: memory.forget(key))}

    def clear(memory: Own) -> dict[str, Any]:
        memory.transact(Memory.clear)
        return {"cleared": True}

    app.add_api_route("/chat", chat, methods=["POST"])
    app.add_api_route("/memories", remember, methods=["POST"])
    app.add_api_route("/memories", memories, methods=["GET"])
    app.add_api_route("/memories", forget, methods=["DELETE"])
    app.add_api_route("/everything", clear, methods=["DELETE"])
    return app
