"""The chat message history, with the real langchain-core."""

from __future__ import annotations

import asyncio
import textwrap
from pathlib import Path
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

from sentinel_memory import Memory
from sentinel_memory.chat.transcript import Transcript
from support.loading import load_example

TranscriptHistory = load_example("adapters/langchain_history").TranscriptHistory

pytestmark = pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")

TOOL_CALLS: list[Any] = [{"id": "c1", "name": "stock", "args": {"of": "tea"}}]
TOOLS: list[BaseMessage] = [
    AIMessage("", tool_calls=TOOL_CALLS),
    ToolMessage("3", tool_call_id="c1"),
]


def history_at(path: Path, **options: Any) -> Any:
    return TranscriptHistory(Transcript(Memory.open(path), **options))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "guest.json"


def said(history: Any) -> list[tuple[str, Any]]:
    return [(message.type, message.content) for message in history.messages]


def test_the_history_fits_the_protocol_of_langchain() -> None:
    assert isinstance(TranscriptHistory(Transcript(Memory())), BaseChatMessageHistory)


def test_completed_turns_come_back_after_a_restart(path: Path) -> None:
    """With their tool calls and results."""
    turn = [HumanMessage("How much tea?"), *TOOLS, AIMessage("There are 3.")]
    history_at(path).add_messages(turn)
    again = history_at(path).messages
    assert [type(message) for message in again] == [type(message) for message in turn]
    assert said(history_at(path)) == [
        ("human", "How much tea?"),
        ("ai", ""),
        ("tool", "3"),
        ("ai", "There are 3."),
    ]
    assert again[1].tool_calls == [
        {"id": "c1", "name": "stock", "args": {"of": "tea"}, "type": "tool_call"}
    ]
    assert again[2].tool_call_id == "c1"


def test_a_turn_is_in_the_file_only_with_its_answer(path: Path) -> None:
    history = history_at(path)
    history.add_user_message("q1")
    history.add_ai_message("a1")
    before = path.read_bytes()
    history.add_user_message("q2")
    for message in TOOLS:
        history.add_message(message)
    assert [kind for kind, _ in said(history)] == ["human", "ai", "human", "ai", "tool"]
    assert path.read_bytes() == before
    history.add_message(AIMessageChunk(content="a2"))
    assert said(history_at(path))[-1] == ("ai", "a2")


def test_a_question_without_an_answer_is_replaced_by_the_next(path: Path) -> None:
    history = history_at(path)
    history.add_user_message("q1")
    history.add_user_message("q2")
    assert said(history) == [("human", "q2")]
    history.add_ai_message("a2")
    assert said(history_at(path)) == said(history) == [("human", "q2"), ("ai", "a2")]


def test_an_empty_answer_message_keeps_nothing(path: Path) -> None:
    history = history_at(path)
    history.add_messages([HumanMessage("q"), AIMessage(" ")])
    assert history.messages == []
    assert not path.exists()


def test_text_in_blocks_is_kept_as_text() -> None:
    history = TranscriptHistory(Transcript(Memory()))
    blocks: list[str | dict[Any, Any]] = [
        {"type": "text", "text": "Hel"},
        {"type": "text", "text": "lo."},
    ]
    history.add_messages([HumanMessage("q"), AIMessage(blocks)])
    assert said(history)[-1][1].replace("\n", "") == "Hello."


THINKING: dict[str, Any] = {"type": "thinking", "thinking": "Peanuts!", "signature": "s"}


@pytest.mark.parametrize(
    "blocks",
    [
        [THINKING, {"type": "text", "text": "It has peanuts."}],
        [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "It has peanuts."}],
        [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "It has peanuts."}],
        ["It has ", {"type": "text", "text": "peanuts."}],
        [{"type": "text", "text": "It has "}, THINKING, {"type": "text", "text": "peanuts."}],
    ],
)
def test_the_text_of_an_answer_in_blocks_is_kept(blocks: list[Any], path: Path) -> None:
    """Also beside calls, and in results."""
    history_at(path).add_messages(
        [
            HumanMessage([{"type": "text", "text": "Is it safe?"}]),
            AIMessage([THINKING, {"type": "text", "text": "I look."}], tool_calls=TOOL_CALLS),
            ToolMessage([{"type": "text", "text": "3"}], tool_call_id="c1"),
            AIMessage(blocks),
        ]
    )
    assert said(history_at(path)) == [
        ("human", "Is it safe?"),
        ("ai", "I look."),
        ("tool", "3"),
        ("ai", "It has peanuts."),
    ]
    assert b"Peanuts!" not in path.read_bytes()


def test_an_answer_without_text_keeps_nothing(path: Path) -> None:
    history = history_at(path)
    history.add_messages([HumanMessage("q"), AIMessage([THINKING])])
    assert history.messages == []
    assert not path.exists()


@pytest.mark.parametrize(
    "messages",
    [
        [SystemMessage("obey")],
        [HumanMessage("q"), SystemMessage("obey")],
        [AIMessage("a")],
        TOOLS[1:],
        [HumanMessage("q"), TOOLS[0], AIMessage("a")],
        [HumanMessage("q"), TOOLS[1], AIMessage("a")],
        [HumanMessage("q" * 2_001), AIMessage("a")],
        [HumanMessage("q"), AIMessage("\ud800")],
    ],
)
def test_messages_outside_of_a_turn_are_refused_and_change_nothing(
    messages: list[BaseMessage], path: Path
) -> None:
    history = history_at(path)
    history.add_messages([HumanMessage("before"), AIMessage("a")])
    before, bytes_before = said(history), path.read_bytes()
    with pytest.raises(ValueError, match=r"."):
        history.add_messages(messages)
    assert (said(history), path.read_bytes()) == (before, bytes_before)


def test_clear_leaves_nothing(path: Path) -> None:
    history = history_at(path)
    history.add_messages([HumanMessage("secret"), AIMessage("a"), HumanMessage("open")])
    history.clear()
    assert history.messages == []
    assert b"secret" not in path.read_bytes()


def test_the_asynchronous_methods_work_too(path: Path) -> None:
    async def main() -> None:
        history = history_at(path)
        await history.aadd_messages([HumanMessage("q"), AIMessage("a")])
        assert [message.content for message in await history.aget_messages()] == ["q", "a"]
        await history.aclear()
        assert await history.aget_messages() == []

    asyncio.run(main())


def test_a_chain_sees_the_turns_and_adds_its_own(path: Path) -> None:
    template = ChatPromptTemplate.from_messages(
        [("system", "Be a waiter."), MessagesPlaceholder("history"), ("human", "{text}")]
    )
    seen: list[list[Any]] = []

    def note(value: Any) -> Any:
        seen.append([message.content for message in value.to_messages()])
        return value

    def ask(text: str, *answers: str) -> Any:
        chain = template | RunnableLambda(note) | FakeListChatModel(responses=list(answers))
        history = history_at(path)
        runnable = RunnableWithMessageHistory(
            chain, lambda _: history, input_messages_key="text", history_messages_key="history"
        )
        return runnable.invoke({"text": text}, {"configurable": {"session_id": "guest"}})

    assert ask("Hi!", "Hello.").content == "Hello."
    assert ask("Is it safe?", "It has peanuts.").content == "It has peanuts."
    assert seen[1] == ["Be a waiter.", "Hi!", "Hello.", "Is it safe?"]
    assert [text for _, text in said(history_at(path))] == [
        "Hi!",
        "Hello.",
        "Is it safe?",
        "It has peanuts.",
    ]


def test_the_chain_of_the_docstring_keeps_its_turns(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    module = load_example("adapters/langchain_history")
    code = [line for line in (module.__doc__ or "").splitlines() if line.startswith("    ")]
    names = {
        **globals(),
        "Memory": Memory,
        "model": FakeListChatModel(responses=["Hello.", "It has peanuts."]),
    }
    exec(textwrap.dedent("\n".join(code)), names)
    assert names["answer"].content == "Hello."
    assert [text for _, text in said(history_at(path))] == ["Hi!", "Hello."]


def test_a_chain_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    history = history_at(path)
    history.add_messages([HumanMessage("before"), AIMessage("a")])
    before = path.read_bytes()

    def fail(value: Any) -> Any:
        raise RuntimeError("the model is down")

    runnable = RunnableWithMessageHistory(RunnableLambda(fail), lambda _: history)
    with pytest.raises(RuntimeError, match="the model is down"):
        runnable.invoke([HumanMessage("q")], {"configurable": {"session_id": "guest"}})
    assert path.read_bytes() == before
