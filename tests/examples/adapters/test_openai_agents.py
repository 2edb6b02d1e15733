"""The session, with the real Agents SDK and a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, SessionSettings, function_tool, set_tracing_disabled
from agents.memory import Session
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from sentinel_memory import Memory
from support.loading import load_example

MemorySession = load_example("adapters/openai_agents").MemorySession

set_tracing_disabled(True)


def ask(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def say(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content, "id": "m"}


CALL = {"type": "function_call", "call_id": "c1", "name": "stock", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "3"}


def texts(items: list[Any]) -> list[Any]:
    """The texts said, and the types of what is not said."""
    found = []
    for item in items:
        content = item.get("content", item.get("type"))
        found.append(content if isinstance(content, str) else content[0]["text"])
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "guest.json"


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


def test_the_session_fits_the_protocol_of_the_sdk() -> None:
    assert isinstance(MemorySession(Memory(), "guest"), Session)


def test_items_come_back_as_they_went_in(path: Path) -> None:
    """Also after a restart, and as copies."""
    items = [ask("q1"), CALL, RESULT, say("a1"), ask("q2"), say("a2")]

    async def main() -> None:
        session = MemorySession(Memory.open(path), "guest")
        await session.add_items(items)
        (await session.get_items())[0]["content"] = "forged"
        assert await session.get_items() == items
        assert await session.get_items(2) == items[-2:]
        assert await session.get_items(0) == []
        assert await session.get_items(99) == items
        session.session_settings = SessionSettings(limit=1)
        assert await session.get_items() == items[-1:]
        assert await session.get_items(2) == items[-2:]
        again = MemorySession(Memory.open(path), "guest")
        assert await again.get_items() == items

    run(main)


def test_only_completed_turns_are_in_the_file(path: Path) -> None:
    """A question, a call, or a result alone is not."""

    async def main() -> None:
        session = MemorySession(Memory.open(path), "guest")
        await session.add_items([ask("q1"), say("a1")])
        before = path.read_bytes()
        for item in (ask("q2"), CALL, RESULT):
            await session.add_items([item])
            assert path.read_bytes() == before
        await session.add_items([say("a2")])
        again = MemorySession(Memory.open(path), "guest")
        assert texts(await again.get_items()) == [
            "q1",
            "a1",
            "q2",
            "function_call",
            "function_call_output",
            "a2",
        ]

    run(main)


def test_words_beside_a_call_do_not_end_the_turn(path: Path) -> None:
    async def main() -> None:
        session = MemorySession(Memory.open(path), "guest")
        await session.add_items([ask("q"), CALL, say("One moment.")])
        assert await MemorySession(Memory.open(path), "guest").get_items() == []
        await session.add_items([RESULT, say("a")])
        assert len(await MemorySession(Memory.open(path), "guest").get_items()) == 5

    run(main)


def call(kind: str, id: Any = "c1", **more: Any) -> dict[str, Any]:
    return {"type": kind, "call_id": id, **more}


PAIRS = [
    ("function_call", "function_call_output"),
    ("custom_tool_call", "custom_tool_call_output"),
    ("shell_call", "shell_call_output"),
    ("local_shell_call", "local_shell_call_output"),
    ("apply_patch_call", "apply_patch_call_output"),
    ("computer_call", "computer_call_output"),
    ("tool_search_call", "tool_search_output"),
    ("program", "program_output"),
]
HOSTED = ["web_search_call", "file_search_call", "code_interpreter_call", "mcp_call"]


def kept_in(path: Path) -> list[Any]:
    """The items that another program finds in the file."""
    memory = Memory.open(path)
    MemorySession(memory, "guest")
    items: list[Any] = memory.to_state()["agents:guest"]["items"]
    return items


@pytest.mark.parametrize(
    ("kind", "output", "id"),
    [
        *((kind, output, "c1") for kind, output in PAIRS),
        ("tool_search_call", "tool_search_output", None),
    ],
)
def test_a_call_of_each_kind_waits_for_its_output(
    kind: str, output: str, id: str | None, path: Path
) -> None:
    async def main() -> None:
        session = MemorySession(Memory.open(path), "guest")
        items = [ask("q"), say("One moment."), call(kind, id)]
        await session.add_items(items)
        assert kept_in(path) == []
        await session.add_items([call(output, id)])
        assert kept_in(path) == []
        await session.add_items([say("a")])

    run(main)
    assert len(kept_in(path)) == 5


@pytest.mark.parametrize("kind", HOSTED)
def test_a_hosted_tool_call_contains_its_result(kind: str, path: Path) -> None:
    """It waits for nothing, and may be all that the model answers."""
    hosted = {"type": kind, "id": "h1", "status": "completed"}

    async def main() -> None:
        session = MemorySession(Memory.open(path), "guest")
        await session.add_items([ask("q1"), hosted, say("a1")])
        assert len(kept_in(path)) == 3
        await session.add_items([ask("q2"), {"type": "reasoning", "id": "r"}, hosted])

    run(main)
    assert len(kept_in(path)) == 6


def test_a_request_for_approval_waits_for_its_response(path: Path) -> None:
    async def main() -> None:
        session = MemorySession(Memory.open(path), "guest")
        asked = {"type": "mcp_approval_request", "id": "m1", "name": "f", "arguments": "{}"}
        await session.add_items([ask("q"), asked, say("May I?")])
        assert kept_in(path) == []
        approval = {"type": "mcp_approval_response", "approval_request_id": "m1", "approve": True}
        await session.add_items([approval, say("a")])

    run(main)
    assert len(kept_in(path)) == 5


def test_a_call_that_was_given_up_holds_up_no_later_turn(path: Path) -> None:
    """And is not in the file."""

    async def main() -> None:
        session = MemorySession(Memory.open(path), "guest")
        await session.add_items([ask("q1"), say("a1"), ask("q2"), CALL])
        await session.add_items([ask("q3"), say("a3")])

    run(main)
    assert texts(kept_in(path)) == ["q1", "a1", "q3", "a3"]


def test_an_answer_stays_while_a_run_goes_on_after_it(path: Path) -> None:
    """As after an approval: a call without a new question."""

    async def main() -> None:
        session = MemorySession(Memory.open(path), "guest")
        await session.add_items([ask("q1"), say("a1")])
        await session.add_items([CALL])
        assert texts(kept_in(path)) == ["q1", "a1"]
        await session.drop_unanswered()
        assert texts(await session.get_items()) == ["q1", "a1"]

    run(main)


def test_an_item_taken_back_is_gone_with_its_turn(path: Path) -> None:
    async def main() -> None:
        session = MemorySession(Memory.open(path), "guest")
        await session.add_items([ask("q1"), say("a1"), ask("q2"), say("a2")])
        assert await session.pop_item() == say("a2")
        assert texts(await session.get_items()) == ["q1", "a1", "q2"]
        assert b"q2" not in path.read_bytes()
        await session.add_items([say("another a2")])
        assert b"q2" in path.read_bytes()
        for _ in range(4):
            await session.pop_item()
        assert await session.pop_item() is None

    run(main)


def test_the_oldest_turns_go_as_a_whole() -> None:
    async def main() -> None:
        session = MemorySession(Memory(), "guest", turns=2)
        for number in range(4):
            await session.add_items([ask(f"q{number}")])
            await session.add_items([CALL, RESULT])
            await session.add_items([say(f"a{number}")])
        said = texts(await session.get_items())
        assert [text for text in said if text[0] in "qa"] == ["q2", "a2", "q3", "a3"]
        assert said[0] == "q2"
        with pytest.raises(ValueError, match="turns"):
            MemorySession(Memory(), "guest", turns=0)

    run(main)


def test_a_session_has_a_name_of_its_own_that_a_file_can_hold() -> None:
    memory = Memory()
    MemorySession(memory, "guest")
    for session_id in ("guest", "\ud800"):
        with pytest.raises(ValueError, match=r"."):
            MemorySession(memory, session_id)
    assert memory.to_state()["agents:guest"] == {"items": []}


def test_clear_empties_it(path: Path) -> None:
    """That of the session, and that of the memory with everything else."""

    async def main() -> None:
        memory = Memory.open(path)
        one, two = MemorySession(memory, "one"), MemorySession(memory, "two")
        for session in (one, two):
            await session.add_items([ask("secret"), say("a"), ask("open")])
        await one.clear_session()
        assert await one.get_items() == []
        assert len(await two.get_items()) == 3
        memory.clear()
        assert await two.get_items() == []
        assert b"secret" not in path.read_bytes()

    run(main)


@pytest.mark.parametrize("text", ["\ud800", float("nan"), {1}], ids=repr)
def test_items_that_no_file_can_hold_are_refused(text: Any, path: Path) -> None:
    async def main() -> None:
        session = MemorySession(Memory.open(path), "guest")
        with pytest.raises((TypeError, ValueError)):
            await session.add_items([ask(text), say("a")])
        assert await session.get_items() == []

    run(main)


@pytest.mark.parametrize("value", [None, [], {}, {"items": {}}, {"items": ["q"]}])
def test_a_malformed_section_is_counted_and_rejected(value: Any) -> None:
    memory = Memory()
    MemorySession(memory, "guest")
    assert memory.restore({"version": 1, "entries": [], "agents:guest": value}).dropped == 1


# With the runner


@function_tool
def stock(of: str) -> str:
    """How much there is."""
    return f"3 of {of}"


def test_a_run_with_tools_is_kept_and_the_next_one_sees_it(path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(
            [
                [function_call("stock", {"of": "tea"}, call_id="c1")],
                [assistant_message("There are 3.")],
                [assistant_message("You are welcome.")],
            ]
        )
        agent = Agent(name="waiter", model=model, tools=[stock])
        first = MemorySession(Memory.open(path), "guest")
        result = await Runner.run(agent, "How much tea?", session=first)
        assert result.final_output == "There are 3."
        again = MemorySession(Memory.open(path), "guest")
        await Runner.run(agent, "Thank you!", session=again)
        assert texts(model.calls[-1].input) == [
            "How much tea?",
            "function_call",
            "function_call_output",
            "There are 3.",
            "Thank you!",
        ]
        last = MemorySession(Memory.open(path), "guest")
        assert texts(await last.get_items())[-2:] == ["Thank you!", "You are welcome."]

    run(main)


@pytest.mark.parametrize("told", [False, True])
def test_a_run_that_ends_with_a_tool_is_a_completed_turn(told: bool, path: Path) -> None:
    """At once for a session that is told, otherwise with the next question."""

    async def main() -> None:
        steps = [[function_call("stock", {"of": of}, call_id=of)] for of in ("tea", "rum")]
        agent = Agent(
            name="waiter",
            model=ScriptedModel([*steps, [assistant_message("Bye.")]]),
            tools=[stock],
            tool_use_behavior="stop_on_first_tool",
        )
        session = MemorySession(Memory.open(path), "guest", tool_output_ends_turn=told)
        for number, of in enumerate(["tea", "rum"], 1):
            result = await Runner.run(agent, f"How much {of}?", session=session)
            assert result.final_output == f"3 of {of}"
            assert len(kept_in(path)) == 3 * (number if told else number - 1)
        await Runner.run(agent, "Thanks!", session=session)

    run(main)
    assert texts(kept_in(path))[-4:] == [
        "function_call",
        "function_call_output",
        "Thanks!",
        "Bye.",
    ]
    assert len(kept_in(path)) == 8


def test_a_run_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(
            [
                [assistant_message("Hello.")],
                [function_call("stock", {"of": "tea"}, call_id="c1")],
                ModelStep.raise_error(RuntimeError("the model is down")),
                [assistant_message("There are 3.")],
            ]
        )
        agent = Agent(name="waiter", model=model, tools=[stock])
        session = MemorySession(Memory.open(path), "guest")
        await Runner.run(agent, "Hi!", session=session)
        before = path.read_bytes()
        with pytest.raises(RuntimeError, match="the model is down"):
            await Runner.run(agent, "How much tea?", session=session)
        assert path.read_bytes() == before
        await session.drop_unanswered()
        assert texts(await session.get_items()) == ["Hi!", "Hello."]
        await Runner.run(agent, "And now?", session=session)
        assert texts(model.calls[-1].input) == ["Hi!", "Hello.", "And now?"]
        again = MemorySession(Memory.open(path), "guest")
        assert texts(await again.get_items()) == ["Hi!", "Hello.", "And now?", "There are 3."]

    run(main)


def test_a_streamed_run_is_kept(path: Path) -> None:
    async def main() -> None:
        agent = Agent(name="waiter", model=ScriptedModel([[assistant_message("Hello.")]]))
        session = MemorySession(Memory.open(path), "guest")
        result = Runner.run_streamed(agent, "Hi!", session=session)
        async for _ in result.stream_events():
            pass
        again = MemorySession(Memory.open(path), "guest")
        assert texts(await again.get_items()) == ["Hi!", "Hello."]

    run(main)
