"""A LangChain chat message history over a ``Transcript``.

    history = TranscriptHistory(Transcript(Memory.open("guest.json")))
    chain = RunnableWithMessageHistory(prompt | model, lambda _: history)

Completed turns are saved with the memory: their text, tool calls and tool results, not ids and
metadata. A question without an answer yet is in ``messages`` and not in the file; the next
question takes its place. LangChain itself has deprecated this interface since langchain-core
1.6.4, in favour of the checkpoints of LangGraph, and removes it in 2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    convert_to_messages,
    convert_to_openai_messages,
)

from sentinel_memory.chat import Transcript


class TranscriptHistory(BaseChatMessageHistory):
    """The messages of the completed turns, and of the one that has no answer yet."""

    def __init__(self, transcript: Transcript) -> None:
        super().__init__()
        self._transcript = transcript
        self._open: list[BaseMessage] = []
        self._lock = Lock()

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """All of them, oldest first."""
        with self._lock:
            kept = [message for turn in self._transcript.recent() for message in turn.messages]
            return [*convert_to_messages(kept), *self._open]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages; an answer of the model completes the turn.

        Raises ``ValueError`` for a message that belongs to no turn (of the system, or before any
        question), and what ``Transcript.append`` raises; then the open turn is as before.
        """
        with self._lock:
            turn = self._open
            for message in messages:
                if isinstance(message, HumanMessage):
                    turn = [message]
                elif not turn or message.type == "system":
                    raise ValueError(f"a message of type {message.type} belongs to no turn here")
                else:
                    turn = [*turn, message]
                if isinstance(message, AIMessage) and not message.tool_calls:
                    self._complete(turn)
                    turn = []
            self._open = turn

    def _complete(self, turn: list[BaseMessage]) -> None:
        user, *tools, answer = convert_to_openai_messages(turn, text_format="string")
        if answer["content"].strip():
            self._transcript.append(user["content"], answer["content"], tool_messages=tools)

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._open = []
            self._transcript.clear()
