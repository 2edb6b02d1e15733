"""Messages that clients refuse: never kept, and set aside alone where a file has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_memory import Memory, MemoryStore, Transcript, build_messages

Messages = list[dict[str, Any]]


def openai_call(id: Any = "c1", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}, **more}


def ollama_call(**function: Any) -> dict[str, Any]:
    return {"function": {"name": "f", "arguments": {}, **function}}


def asks(*calls: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def gives(id: Any = "c1", content: Any = "3") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def use(id: Any = "t1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "f", "input": {}, **more}


def outcome(id: Any = "t1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "3", **more}


def says(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def hears(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def text(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value}


def without(message: dict[str, Any], *path: str) -> dict[str, Any]:
    """A copy of a message that lacks one member."""
    copy: dict[str, Any] = json.loads(json.dumps(message))
    inner = copy
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return copy


OLLAMA_RESULT = {"role": "tool", "tool_name": "f", "content": "3"}
CUSTOM = {"id": "c1", "type": "custom", "custom": {"name": "f", "input": "SELECT 1"}}

REFUSED: dict[str, tuple[Messages, str]] = {
    # OpenAI
    "arguments cut short": ([asks(openai_call(arguments='{"a": ')), gives()], "valid JSON"),
    "arguments without text": ([asks(openai_call(arguments="")), gives()], "valid JSON"),
    "arguments as Python": ([asks(openai_call(arguments="{'a': 1}")), gives()], "valid JSON"),
    "arguments with NaN": ([asks(openai_call(arguments='{"a": NaN}')), gives()], "valid JSON"),
    "arguments with infinity": (
        [asks(openai_call(arguments='{"a": -Infinity}')), gives()],
        "valid JSON",
    ),
    "two arguments": ([asks(openai_call(arguments="{} {}")), gives()], "valid JSON"),
    "arguments nested without end": (
        [asks(openai_call(arguments='{"a":' + "[" * 9_000)), gives()],
        "valid JSON",
    ),
    "arguments that are a list": ([asks(openai_call(arguments="[1]")), gives()], "of an object"),
    "arguments that are null": ([asks(openai_call(arguments="null")), gives()], "of an object"),
    "arguments that are text": ([asks(openai_call(arguments='"a"')), gives()], "of an object"),
    "arguments of another type": ([asks(openai_call(arguments=5)), gives()], "text or an object"),
    "arguments as a list": ([asks(openai_call(arguments=[])), gives()], "text or an object"),
    "no arguments": (
        [asks(without(openai_call(), "function", "arguments")), gives()],
        "text or an object",
    ),
    "no function": ([asks(without(openai_call(), "function")), gives()], "an object function"),
    "a function that is text": ([asks({**openai_call(), "function": "f"}), gives()], "an object"),
    "no name": ([asks(without(openai_call(), "function", "name")), gives()], "have a name"),
    "an empty name": (
        [asks(openai_call(function={"name": "", "arguments": "{}"})), gives()],
        "have a name",
    ),
    "no id": ([asks(without(openai_call(), "id")), gives(None)], "have a id"),
    "an empty id": ([asks(openai_call("")), gives("")], "have a id"),
    "an id that is a number": ([asks(openai_call(1)), gives(1)], "have a id"),
    "no type": ([asks(without(openai_call(), "type")), gives()], "must be 'function'"),
    "an unknown type": ([asks({**openai_call(), "type": "x"}), gives()], "must be 'function'"),
    "custom without input": ([asks(without(CUSTOM, "custom", "input")), gives()], "input must be"),
    "custom without an object": ([asks(without(CUSTOM, "custom")), gives()], "an object custom"),
    "the same id twice": (
        [asks(openai_call(), openai_call()), gives(), gives()],
        "same call id comes twice",
    ),
    "the same id again later": (
        [asks(openai_call()), gives(), asks(openai_call()), gives()],
        "same call id comes twice",
    ),
    "an empty list of calls": ([{"role": "assistant", "content": "x", "tool_calls": []}], "empty"),
    "a call that is text": ([asks("c1"), gives()], "a list of objects"),
    "calls that are an object": ([{"role": "assistant", "tool_calls": {}}], "a list of objects"),
    "a call without its result": ([asks(openai_call())], "has no result"),
    "a second result": ([asks(openai_call()), gives(), gives()], "is the result of no call"),
    "a result of another id": ([asks(openai_call()), gives("c2")], "is the result of no call"),
    "a result without an id": (
        [asks(openai_call()), {"role": "tool", "content": "3"}],
        "is the result of no call",
    ),
    "a result with an empty id": ([asks(openai_call()), gives("")], "have a tool_call_id"),
    "a result without content": (
        [asks(openai_call()), {"role": "tool", "tool_call_id": "c1"}],
        "must have content",
    ),
    "a result of null": ([asks(openai_call()), gives(content=None)], "must have content"),
    "a result that is a number": ([asks(openai_call()), gives(content=3)], "must have content"),
    "a result that is an object": ([asks(openai_call()), gives(content={})], "must have content"),
    "a result of no blocks": ([asks(openai_call()), gives(content=[])], "must not be empty"),
    "a result of an empty block": (
        [asks(openai_call()), gives(content=[text("")])],
        "type text must not be empty",
    ),
    "a result in the other form": ([asks(openai_call("t1")), hears(outcome())], "of no call"),
    # The assistant
    "neither content nor calls": ([{"role": "assistant"}], "neither content nor calls"),
    "null and no calls": ([{"role": "assistant", "content": None}], "neither content nor calls"),
    "empty content": ([{"role": "assistant", "content": ""}], "neither content nor calls"),
    "blank content": ([{"role": "assistant", "content": " \n"}], "neither content nor calls"),
    "calls of null": (
        [{"role": "assistant", "content": None, "tool_calls": None}],
        "neither content nor calls",
    ),
    "no blocks": ([says()], "must not be empty"),
    "no blocks beside a call": ([asks(openai_call(), content=[]), gives()], "must not be empty"),
    "content that is a number": ([{"role": "assistant", "content": 5}], "text or a list"),
    "content that is an object": ([{"role": "assistant", "content": {}}], "text or a list"),
    "an empty text block": ([says(text(""))], "type text must not be empty"),
    "a blank text block": ([says(text(" \n"), use()), hears(outcome())], "must not be empty"),
    "a text block without text": ([says({"type": "text"})], "type text must not be empty"),
    "a text block of a number": ([says(text(5))], "type text must not be empty"),
    "a block without a type": ([says({"text": "x"})], "must have a type"),
    "a block that is text": ([says("x")], "a block must be an object"),
    # Anthropic
    "a use without an id": ([says(without(use(), "id")), hears(outcome())], "have a id"),
    "a use without a name": ([says(without(use(), "name")), hears(outcome())], "have a name"),
    "a use without input": ([says(without(use(), "input")), hears(outcome())], "object input"),
    "input as text": ([says(use(input="{}")), hears(outcome())], "object input"),
    "the same use twice": ([says(use(), use()), hears(outcome(), outcome())], "comes twice"),
    "a use without its result": ([says(use())], "has no result"),
    "a result without its use": ([hears(outcome())], "is the result of no call"),
    "two results of one use": ([says(use()), hears(outcome(), outcome())], "of no call"),
    "a result without a reference": (
        [says(use()), hears(without(outcome(), "tool_use_id"))],
        "have a tool_use_id",
    ),
    "text before the results": (
        [says(use()), hears(text("so"), outcome())],
        "must stand before all others",
    ),
    "an empty block after the results": (
        [says(use()), hears(outcome(), text(""))],
        "type text must not be empty",
    ),
    "an empty block in a result": (
        [says(use()), hears(outcome(content=[text("")]))],
        "type text must not be empty",
    ),
    "a result of no blocks in a block": ([says(use()), hears(outcome(content=[]))], "empty"),
    "a number in a result": ([says(use()), hears(outcome(content=5))], "must be text or blocks"),
    "a use answered in the other form": ([says(use("c1")), gives()], "of no call"),
    "calls in both forms": (
        [asks(openai_call(), content=[use()]), gives(), hears(outcome())],
        "both in tool_calls and in its content",
    ),
    # Ollama
    "Ollama: arguments as a list": ([asks(ollama_call(arguments=[])), OLLAMA_RESULT], "an object"),
    "Ollama: arguments of null": ([asks(ollama_call(arguments=None)), OLLAMA_RESULT], "an object"),
    "Ollama: no name": ([asks(ollama_call(name=None)), OLLAMA_RESULT], "have a name"),
    "Ollama: one result too many": (
        [asks(ollama_call()), OLLAMA_RESULT, OLLAMA_RESULT],
        "is the result of no call",
    ),
    "Ollama: one result too few": (
        [asks(ollama_call(), ollama_call()), OLLAMA_RESULT],
        "no result",
    ),
    "Ollama: a result without content": (
        [asks(ollama_call()), without(OLLAMA_RESULT, "content")],
        "must have content",
    ),
}

KEPT: dict[str, Messages] = {
    "parallel calls, results in another order": [
        asks(openai_call("a"), openai_call("b")),
        gives("b"),
        gives("a"),
    ],
    "a tool that says nothing": [asks(openai_call()), gives(content="")],
    "a result in blocks": [asks(openai_call()), gives(content=[text("3")])],
    "arguments with line breaks": [
        asks(openai_call(arguments='\n{"a": [1, "\\u010d"]}\n')),
        gives(),
    ],
    "a custom call": [asks(CUSTOM), gives()],
    "empty content beside a call": [asks(openai_call(), content=""), gives()],
    "no content beside a call": [without(asks(openai_call()), "content"), gives()],
    "text between two rounds": [
        asks(openai_call("a")),
        gives("a"),
        {"role": "assistant", "content": "One moment."},
        asks(openai_call("b")),
        gives("b"),
    ],
    "thinking before a use": [
        says({"type": "thinking", "thinking": "", "signature": "s"}, text("I look."), use()),
        hears(outcome(), text("and quickly")),
    ],
    "two uses and their results": [
        says(use("a"), use("b")),
        hears(outcome("b"), outcome("a", is_error=True)),
    ],
    "a use that gives nothing": [says(use()), hears(without(outcome(), "content"))],
    "a result that is a picture": [
        says(use()),
        hears(outcome(content=[{"type": "image", "source": {"type": "url", "url": "x"}}])),
    ],
    "Ollama: calls without ids": [
        asks(ollama_call(), ollama_call(arguments={"a": [1]}), content=""),
        OLLAMA_RESULT,
        OLLAMA_RESULT,
    ],
    "Ollama: calls with ids": [
        asks({"id": "x", **ollama_call()}),
        {**OLLAMA_RESULT, "tool_call_id": "x"},
    ],
    "Ollama: an id that the result leaves out": [asks({"id": "x", **ollama_call()}), OLLAMA_RESULT],
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_turn_that_a_client_would_refuse_is_refused(name: str) -> None:
    messages, message = REFUSED[name]
    memory = Memory()
    transcript = Transcript(memory)
    transcript.append("q", "a")
    before = memory.to_state()
    with pytest.raises(ValueError, match=message):
        transcript.append("q", "a", tool_messages=messages)
    with pytest.raises(ValueError, match=message), transcript.turn("q") as turn:
        turn.answer("a", tool_messages=messages)
    assert memory.to_state() == before


@pytest.mark.parametrize("name", REFUSED)
def test_such_a_turn_in_a_file_is_set_aside_and_the_others_stay(name: str) -> None:
    """As an earlier release kept it; it is not lost, and not sent."""
    raw = {"at": 0, "user": "q", "assistant": "a", "toolMessages": REFUSED[name][0]}
    good = [{"sequence": number, "at": 0, "user": "q", "assistant": "a"} for number in (1, 3)]
    bad = {"sequence": 2, **raw}
    store = MemoryStore()
    store.save({"version": 1, "entries": [], "transcript": {"turns": [good[0], bad, good[1]]}})
    memory = Memory(store=store, autosave=True)
    transcript = Transcript(memory)
    assert [turn.sequence for turn in transcript.recent()] == [1, 3]
    transcript.append("q", "a")
    [aside] = store.load()["rejected"]  # type: ignore[index]
    assert aside["entry"] == bad
    assert aside["reason"].startswith("section transcript: ")


@pytest.mark.parametrize("name", KEPT)
def test_a_turn_that_clients_take_is_kept_as_it_is(name: str) -> None:
    store = MemoryStore()
    memory = Memory(store=store, autosave=True)
    transcript = Transcript(memory)
    transcript.append("q", "a", tool_messages=KEPT[name])
    assert Transcript(Memory(store=store)).recent()[0].tool_messages == KEPT[name]
    prompt = build_messages(memory, transcript, "next", token_budget=1_000)
    assert prompt.messages[1:-2] == KEPT[name]


# Everything that append accepts

IDS = st.sampled_from(["a", "b", "c", "", None, 1])
TEXTS = st.sampled_from(["x", "", " ", None, "\ud800", 5, [], [text("x")], [text("")]])
JSONS: st.SearchStrategy[Any] = st.sampled_from(
    ["{}", '{"a": 1}', "", "[]", "{", '{"a": NaN}', {}, {"a": []}, None, 3]
)


@st.composite
def any_message(draw: st.DrawFn) -> Any:
    """A message that is nearly right, or right."""
    kind = draw(st.sampled_from(["asks", "gives", "says", "hears", "ollama", "nothing"]))
    if kind == "asks":
        calls = st.builds(openai_call, IDS, JSONS)
        return asks(*draw(st.lists(calls, max_size=2)), content=draw(TEXTS))
    if kind == "gives":
        return gives(draw(IDS), draw(TEXTS))
    if kind == "says":
        blocks = st.one_of(st.builds(use, IDS), st.builds(text, TEXTS))
        return says(*draw(st.lists(blocks, max_size=2)))
    if kind == "hears":
        blocks = st.one_of(st.builds(outcome, IDS), st.builds(text, TEXTS))
        return hears(*draw(st.lists(blocks, max_size=2)))
    if kind == "ollama":
        return draw(st.sampled_from([asks(ollama_call(arguments=draw(JSONS))), OLLAMA_RESULT]))
    return draw(st.sampled_from([{}, {"role": "assistant"}, {"role": "system", "content": "x"}]))


def complaints(messages: Messages) -> Iterator[str]:
    """The complaints of a client, written once more without the code under test."""
    waiting: list[Any] = []
    seen: list[Any] = []
    for message in messages:
        calls = message.get("tool_calls") or []
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        if message.get("tool_calls") == [] or content == []:
            yield "an empty list"
        if any(block["type"] == "text" and not str(block["text"]).strip() for block in blocks):
            yield "an empty text"
        if message["role"] == "assistant":
            ids = [call.get("id") for call in calls]
            ids += [block["id"] for block in blocks if block["type"] == "tool_use"]
            if waiting:
                yield "calls without results"
            if not ids and not (content.strip() if isinstance(content, str) else content):
                yield "nothing said"
            for call in calls:
                given = call["function"]["arguments"]
                if not isinstance(json.loads(given) if isinstance(given, str) else given, dict):
                    yield "arguments that are not an object"
            named = [id for id in ids if id is not None]
            if len({*seen, *named}) < len(seen) + len(named):
                yield "an id that comes twice"
            seen += named
            waiting = ids
        else:
            ids = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            if message["role"] == "tool":
                ids = [message.get("tool_call_id")]
                if content is None:
                    yield "a result without content"
            for id in ids:
                if id in waiting:
                    waiting.remove(id)
                elif id is None and waiting:
                    del waiting[0]
                else:
                    yield "a result without its call"
    if waiting:
        yield "calls without results"


@settings(max_examples=400)
@given(st.lists(any_message(), max_size=4))
def test_an_accepted_turn_can_be_sent_and_comes_back_from_the_store(messages: Messages) -> None:
    store = MemoryStore()
    memory = Memory(store=store, autosave=True)
    transcript = Transcript(memory)
    try:
        turn = transcript.append("q", "a", tool_messages=messages)
    except (TypeError, ValueError):
        assert len(transcript) == 0
        return
    assert list(complaints(turn.tool_messages)) == []
    again = Memory(store=store)
    assert Transcript(again).recent() == [turn]
    assert again.last_load is not None
    assert again.last_load.dropped == 0
    prompt = build_messages(memory, transcript, "next", token_budget=10_000)
    assert prompt.messages[:-1] == turn.messages
    json.dumps(prompt.messages, ensure_ascii=False, allow_nan=False).encode()


# Text that lies about itself


class Liar(str):
    """A text of a class that overrides everything that could be asked of it."""

    __slots__ = ()

    def __len__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __str__(self) -> str:
        return "a lie"

    def __add__(self, other: str) -> str:
        return "a lie"

    def __format__(self, spec: str) -> str:
        return "a lie"

    def strip(self, *_: Any) -> str:
        return "a lie"

    def isascii(self) -> bool:
        return True

    def encode(self, *_: Any) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("value", "message"),
    [("", "must not be empty"), (" ", "must not be empty"), ("\ud800", "a lone surrogate")],
)
def test_a_text_is_judged_by_what_it_is(value: str, message: str) -> None:
    memory = Memory()
    transcript = Transcript(memory)
    with pytest.raises(ValueError, match=f"user.*{message}"):
        transcript.append(Liar(value), "a")
    with pytest.raises(ValueError, match=f"assistant.*{message}"):
        transcript.append("q", Liar(value))
    with pytest.raises(ValueError, match=f"user_text.*{message}"):
        build_messages(memory, transcript, Liar(value), token_budget=100)
    with pytest.raises(ValueError, match="more than user_chars=2000"):
        transcript.append(Liar("q" * 2_001), "a")
    with transcript.turn("q") as turn:
        turn.answer(Liar(" "))
    assert turn.kept is None


def test_a_lying_text_is_sent_and_counted_as_what_it_is() -> None:
    memory = Memory(tokenizer=len)
    memory.remember("k", "v")
    transcript = Transcript(memory)
    messages = [asks(openai_call(Liar("c1"), Liar("{}"))), gives(Liar("c1"), Liar("three"))]
    turn = transcript.append(Liar("question"), Liar("answer"), tool_messages=messages)
    assert json.dumps(turn.messages[2]) == json.dumps(gives(content="three"))
    for alternate in (False, True):
        prompt = build_messages(
            memory,
            transcript,
            Liar("newest"),
            token_budget=1_000,
            instructions=Liar("kind"),
            label=Liar("label"),
            alternate=alternate,
        )
        texts = [message["content"] for message in prompt.messages]
        assert {type(value) for value in texts} <= {str, type(None)}
        assert "a lie" not in json.dumps(texts)
        assert (texts[0], texts[-1]) == ("kind", "newest")
        assert texts[1].startswith("label\n<memories>\n- k: v\n</memories>")
        assert "question" in (texts[1] if alternate else texts[2])
    with pytest.raises(ValueError, match="same call id comes twice"):
        transcript.append("q", "a", tool_messages=[*messages, *messages])
    with pytest.raises(ValueError, match="of no call"):
        transcript.append("q", "a", tool_messages=[messages[0], gives(Liar("c2"))])
