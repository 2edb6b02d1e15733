"""A ``Session`` of the OpenAI Agents SDK that is kept in a memory's document.

    session = MemorySession(Memory.open("guest.json"), "guest")
    result = await Runner.run(agent, "Is the satay safe?", session=session)

The items of the last ``turns`` completed turns are saved with the memory, just as the SDK gave
them, and emptied by ``memory.clear()``. Items of a turn that has no answer yet are there for the
SDK, which asks for them, and never in the file: a run that failed leaves no trace there, and
``await session.drop_unanswered()`` removes it from the session too, before the next run.

The SDK saves the output of a tool in the same way whether the model is to answer next or the run
ends with it (``tool_use_behavior="stop_on_first_tool"``). So such a turn is saved with the next
question, or at once by a session that is told: ``MemorySession(..., tool_output_ends_turn=True)``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from agents import SessionSettings, TResponseInputItem
from agents.run_internal.items import drop_orphan_function_calls

from sentinel_memory import Memory

Items = list[TResponseInputItem]


class MemorySession:
    """The items of one conversation; one session for each ``session_id`` of a memory."""

    def __init__(
        self,
        memory: Memory,
        session_id: str,
        *,
        turns: int = 20,
        tool_output_ends_turn: bool = False,
    ) -> None:
        if turns < 1:
            raise ValueError("turns must be at least 1")
        self.session_id = session_id
        self.session_settings: SessionSettings | None = None
        self._section = _Items(turns, tool_output_ends_turn)
        [name] = copied([f"agents:{session_id}"])
        self._memory = memory.attach(name, self._section)

    async def get_items(self, limit: int | None = None) -> Items:
        """The newest ``limit`` items, oldest first."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items: Items = self._memory.read(lambda _: copied(self._section.items))
        return items if limit is None else items[max(0, len(items) - limit) :]

    async def add_items(self, items: Items) -> None:
        """Add items; the turn is saved when they complete it."""
        news = copied(items)
        if news:
            self._memory.change(lambda _: self._section.add(news))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item back; a turn that loses its answer is not kept any more."""
        item: TResponseInputItem | None = self._memory.change(lambda _: self._section.pop())
        return item

    async def clear_session(self) -> None:
        """Keep nothing."""
        self._memory.clear()

    async def drop_unanswered(self) -> None:
        """Take back the items that a failed run has left."""
        self._memory.change(lambda _: self._section.keep(self._section.completed()))


class _Items:
    """The section of the document: ``{"items": [...]}`` of completed turns.

    ``_saved`` counts the items up to the end of the last turn that was complete: an answer stays
    in the file while a run goes on after it without a new question.
    """

    def __init__(self, turns: int, tool_output_ends_turn: bool) -> None:
        self._turns = turns
        self._tool_output_ends_turn = tool_output_ends_turn
        self.clear()

    def clear(self) -> None:
        self.items: list[Any] = []
        self._saved = 0

    def add(self, items: list[Any]) -> None:
        self.keep([*self.items, *items], self._saved)

    def pop(self) -> Any:
        if not self.items:
            return None
        *rest, last = self.items
        self.keep(rest)
        return last

    def keep(self, items: list[Any], saved: int = 0) -> None:
        """Hold the newest turns of the items, of which the first ``saved`` are complete."""
        turns = in_turns(items)
        end = len(items)
        for number, turn in reversed(list(enumerate(turns, 1))):
            if self._is_complete(turn, is_last=number == len(turns)):
                saved = max(saved, end)
                break
            end -= len(turn)
        dropped = sum(map(len, turns[: -self._turns]))
        self.items, self._saved = items[dropped:], max(0, saved - dropped)

    def completed(self) -> list[Any]:
        """The items of the completed turns."""
        turns = in_turns(self.items[: self._saved])
        return [
            item
            for number, turn in enumerate(turns, 1)
            if number == len(turns) or self._is_complete(turn, is_last=False)
            for item in turn
        ]

    def _is_complete(self, turn: list[Any], *, is_last: bool) -> bool:
        if has_open_calls(turn):
            return False
        said = [item for item in turn if item.get("type") != "reasoning"]
        last = said[-1] if said else {}
        kind = str(last.get("type", ""))
        if is_said_by("assistant", last) or kind.endswith("_call"):
            return True  # a call that is not open at the end has its result in itself
        return kind.endswith("_output") and (self._tool_output_ends_turn or not is_last)

    def dump(self, *, now: int) -> dict[str, Any]:
        return {"items": copied(self.completed())}

    def restore(self, value: Any, /, *, now: int) -> None:
        items = value.get("items") if isinstance(value, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ValueError("a session must be an object with a list items of objects")
        self.keep(copied(items), len(items))


def in_turns(items: list[Any]) -> list[list[Any]]:
    """The items by turns; questions in a row belong to one turn."""
    turns: list[list[Any]] = []
    for number, item in enumerate(items):
        is_question = is_said_by("user", item)
        if not turns or (is_question and not is_said_by("user", items[number - 1])):
            turns.append([])
        turns[-1].append(item)
    return turns


def has_open_calls(turn: list[Any]) -> bool:
    """Whether a call waits for its output, by the table of the SDK, or a request for approval."""
    approved = {item.get("approval_request_id") for item in turn}
    asked = {item.get("id") for item in turn if item.get("type") == "mcp_approval_request"}
    return len(drop_orphan_function_calls(turn)) < len(turn) or not asked <= approved


def is_said_by(role: str, item: dict[str, Any]) -> bool:
    """Whether an item is a message of that role."""
    return (item.get("role"), item.get("type", "message")) == (role, "message")


def copied(items: Iterable[Any]) -> Any:
    """The items through JSON; ``TypeError`` or ``ValueError`` for data that no file can hold."""
    text = json.dumps(list(items), ensure_ascii=False, allow_nan=False)
    text.encode()  # a lone surrogate is a ValueError here, not at some later save
    return json.loads(text)
