"""A ``Session`` of the OpenAI Agents SDK that is kept in a memory's document.

    session = MemorySession(Memory.open("guest.json"), "guest")
    result = await Runner.run(agent, "Is the satay safe?", session=session)

The items of the last ``turns`` completed turns are saved with the memory, just as the SDK gave
them, and emptied by ``memory.clear()``. Those of a turn that has no answer yet are there for the
SDK, which asks for them, and never in the file: a run that failed leaves no trace there, and
``await session.drop_unanswered()`` removes it from the session too, before the next run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from agents import SessionSettings, TResponseInputItem

from sentinel_memory import Memory

Items = list[TResponseInputItem]


class MemorySession:
    """The items of one conversation; one session for each ``session_id`` of a memory."""

    def __init__(self, memory: Memory, session_id: str, *, turns: int = 20) -> None:
        if turns < 1:
            raise ValueError("turns must be at least 1")
        self.session_id = session_id
        self.session_settings: SessionSettings | None = None
        self._section = _Items(turns)
        [name] = copied([f"agents:{session_id}"])
        self._memory = memory.attach(name, self._section)

    async def get_items(self, limit: int | None = None) -> Items:
        """The newest ``limit`` items, oldest first."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        with self._memory.read():
            items: Items = copied(self._section.items)
        return items if limit is None else items[max(0, len(items) - limit) :]

    async def add_items(self, items: Items) -> None:
        """Add items; the turn is saved when they end it with an answer."""
        news = copied(items)
        if news:
            with self._memory.change():
                self._section.put([*self._section.items, *news])

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item back; a turn that loses its answer is not kept any more."""
        with self._memory.change():
            if not self._section.items:
                return None
            *rest, last = self._section.items
            self._section.put(rest)
        item: TResponseInputItem = last
        return item

    async def clear_session(self) -> None:
        """Keep nothing."""
        with self._memory.change():
            self._section.clear()

    async def drop_unanswered(self) -> None:
        """Take back what a run that failed has left."""
        with self._memory.change():
            self._section.put(self._section.answered())


class _Items:
    """The section of the document: ``{"items": [...]}`` of completed turns."""

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self.clear()

    def clear(self) -> None:
        self.items: list[Any] = []

    def put(self, items: list[Any]) -> None:
        starts = [
            number
            for number, item in enumerate(items)
            if is_said_by("user", item) and not (number and is_said_by("user", items[number - 1]))
        ]
        self.items = items[starts[-self._turns] :] if len(starts) > self._turns else items

    def answered(self) -> list[Any]:
        """Up to the last answer with which no call was waiting for its result."""
        waiting: set[Any] = set()
        end = 0
        for number, item in enumerate(self.items, 1):
            kind = str(item.get("type", ""))
            if kind.endswith("_call") and "call_id" in item:
                waiting.add(item["call_id"])
            elif kind.endswith("_call_output"):
                waiting.discard(item.get("call_id"))
            elif is_said_by("assistant", item) and not waiting:
                end = number
        return self.items[:end]

    def dump(self, *, now: int) -> dict[str, Any]:
        return {"items": copied(self.answered())}

    def restore(self, value: Any, /, *, now: int) -> None:
        items = value.get("items") if isinstance(value, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ValueError("a session must be an object with a list items of objects")
        self.put(copied(items))


def is_said_by(role: str, item: dict[str, Any]) -> bool:
    """Whether an item is a message of that role."""
    return (item.get("role"), item.get("type", "message")) == (role, "message")


def copied(items: Iterable[Any]) -> Any:
    """The items through JSON; ``TypeError`` or ``ValueError`` for what no file can hold."""
    text = json.dumps(list(items), ensure_ascii=False, allow_nan=False)
    text.encode()  # a lone surrogate is a ValueError here, not at some later save
    return json.loads(text)
