"""A LangChain chat message history over a ``Transcript``.

    history = TranscriptHistory(Transcript(Memory.open("guest.json")))
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Be a waiter."), MessagesPlaceholder("history"), ("human", "{text}")]
    )
    chain = RunnableWithMessageHistory(
        prompt | model,
        lambda _: history,
        input_messages_key="text",
        history_messages_key="history",
    )
    answer = chain.invoke({"text": "Hi!"}, {"configurable": {"session_id": "guest"}})

Completed turns are saved with the memory: their text, tool calls and tool results, not ids and
metadata, and of content in blocks (thinking, pictures) the text alone. A question without an answer
yet is in ``messages`` and not in the file; the next question takes its place. LangChain itself has
deprecated this interface since langchain-core 1.6.4, in favour of the checkpoints of LangGraph, and
removes it in 2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
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
        """The messages, oldest first."""
        with self._lock:
            kept = [message for turn in self._transcript.recent() for message in turn.messages]
            return [*convert_to_messages(kept), *self._open]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages; an answer of the model completes the turn.

        Raises ``ValueError`` for a message that belongs to no turn (of the system, or before any
        question), and the exceptions of ``Transcript.append``; then the open turn is as before.
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
        question, *tools, answer = map(_with_text_alone, turn)
        if answer.text.strip():
            self._transcript.append(
                question.text, answer.text, tool_messages=convert_to_openai_messages(tools)
            )

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._open = []
            self._transcript.clear()


def _with_text_alone(message: BaseMessage) -> BaseMessage:
    """The message with the text of its blocks, and of all else the calls and results."""
    text = str(message.text)
    if isinstance(message, AIMessage):
        return AIMessage(text, tool_calls=message.tool_calls)
    if isinstance(message, ToolMessage):
        return ToolMessage(text, tool_call_id=message.tool_call_id)
    return message.model_copy(update={"content": text})
