"""The transcript: completed turns, bounded, saved with the memory."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import IgnoredValueWarning, Memory, MemoryStore
from sentinel_memory.chat.transcript import Transcript
from support.clocks import FakeClock

CALL = {"id": "c1", "type": "function", "function": {"name": "stock", "arguments": '{"of":"tea"}'}}
OPENAI: list[dict[str, Any]] = [
    {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "c2"}]},
    {"role": "tool", "tool_call_id": "c2", "content": "3"},
    {"role": "tool", "tool_call_id": "c1", "content": "0"},
    {"role": "assistant", "content": "One moment.", "tool_calls": [{**CALL, "id": "c3"}]},
    {"role": "tool", "tool_call_id": "c3", "content": "7"},
]
ANTHROPIC: list[dict[str, Any]] = [
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "stock", "input": {"of": "tea"}},
        ],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "3"}],
    },
]
OLLAMA: list[dict[str, Any]] = [
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "stock"}}] * 2},
    {"role": "tool", "tool_name": "stock", "content": "3"},
    {"role": "tool", "tool_name": "stock", "content": "4"},
]


def said(transcript: Transcript) -> list[tuple[str, str]]:
    return [(turn.user, turn.assistant) for turn in transcript.recent()]


def stored(*turns: Any) -> dict[str, Any]:
    return {"version": 1, "entries": [], "transcript": {"turns": list(turns)}}


def one(sequence: Any = 1, user: Any = "q", assistant: Any = "a", **more: Any) -> dict[str, Any]:
    return {"sequence": sequence, "at": 0, "user": user, "assistant": assistant, **more}


# Keeping


def test_the_newest_turns_are_kept_in_the_order_of_the_talk() -> None:
    transcript = Transcript(Memory(), turns=3)
    for number in range(5):
        transcript.append(f"q{number}", f"a{number}")
    assert said(transcript) == [("q2", "a2"), ("q3", "a3"), ("q4", "a4")]
    assert len(transcript) == 3
    assert [turn.user for turn in transcript.recent(2)] == ["q3", "q4"]
    assert transcript.recent(0) == []
    assert len(transcript.recent(99)) == 3


def test_six_turns_are_kept_by_default() -> None:
    transcript = Transcript(Memory())
    for number in range(9):
        transcript.append(f"q{number}", "a")
    assert len(transcript) == 6


@pytest.mark.parametrize("nonsense", [True, "3", 0, -1, 2.5, float("nan"), float("inf")])
def test_an_option_that_is_not_a_count_is_ignored_with_a_warning(nonsense: Any) -> None:
    """The rule for numbers: the default is used, nothing is clamped."""
    with pytest.warns(IgnoredValueWarning) as warnings:
        transcript = Transcript(
            Memory(),
            turns=nonsense,
            user_chars=nonsense,
            assistant_chars=nonsense,
            tool_chars=nonsense,
        )
    assert [str(warning.message).split()[0] for warning in warnings] == [
        "turns",
        "user_chars",
        "assistant_chars",
        "tool_chars",
    ]
    assert {warning.filename for warning in warnings} == {__file__}
    for _ in range(8):
        transcript.append("q" * 2_000, "a" * 20_000)
    assert len(transcript) == 6
    with pytest.raises(ValueError, match="user has 2001 characters"):
        transcript.append("q" * 2_001, "a")


@pytest.mark.parametrize("nonsense", [True, "3", -1, 2.5, float("nan")])
def test_recent_with_an_invalid_count_gives_all_and_warns(nonsense: Any) -> None:
    transcript = Transcript(Memory())
    for number in range(4):
        transcript.append(f"q{number}", "a")
    with pytest.warns(IgnoredValueWarning, match="n must be a whole number of at least 0"):
        assert len(transcript.recent(nonsense)) == 4
    assert len(transcript.recent(None)) == len(transcript.recent()) == 4


def test_a_whole_float_is_a_count() -> None:
    transcript = Transcript(Memory(), turns=2.0)
    for number in range(3):
        transcript.append(f"q{number}", "a")
    assert [turn.user for turn in transcript.recent(1.0)] == ["q2"]
    assert len(transcript) == 2


def test_turns_of_one_millisecond_stay_in_order(clock: FakeClock) -> None:
    """Also when the clock goes back, and through a restart."""
    store = MemoryStore()
    transcript = Transcript(Memory(clock=clock, store=store, autosave=True))
    transcript.append("q1", "a")
    transcript.append("q2", "a")
    clock.tick(-3_600)
    transcript.append("q3", "a")
    again = Transcript(Memory(clock=clock, store=store, autosave=True))
    assert [(turn.sequence, turn.user) for turn in again.recent()] == [
        (1, "q1"),
        (2, "q2"),
        (3, "q3"),
    ]
    assert again.append("q4", "a").sequence == 4
    assert [turn.at for turn in again.recent()] == [1_792_310_400.0] * 2 + [1_792_306_800.0] * 2


def test_a_turn_is_a_value_that_nobody_can_change() -> None:
    messages = json.loads(json.dumps(OPENAI))
    transcript = Transcript(Memory())
    turn = transcript.append("q", "a", tool_messages=messages)
    messages[1]["content"] = "forged"
    turn.tool_messages[1]["content"] = "forged"
    turn.messages[0]["content"] = "forged"
    assert turn == transcript.recent()[0]
    assert turn.messages == [
        {"role": "user", "content": "q"},
        *OPENAI,
        {"role": "assistant", "content": "a"},
    ]
    with pytest.raises(AttributeError):
        turn.user = "forged"  # type: ignore[misc]


@pytest.mark.parametrize("memory", ["guest.json", None, Memory])
def test_a_wrong_memory_is_named(memory: Any) -> None:
    with pytest.raises(TypeError, match="memory must be an object with the method attach"):
        Transcript(memory)


def test_a_repr_tells_numbers_and_no_text() -> None:
    transcript = Transcript(Memory(), turns=4)
    assert repr(transcript.append("secret", "secret")) == "Turn(sequence=1, messages=2)"
    assert repr(transcript) == "<Transcript of 1 turns, at most 4>"


def test_an_empty_transcript_is_true() -> None:
    assert Transcript(Memory())


# What is refused


@pytest.mark.parametrize(
    ("user", "assistant", "error", "message"),
    [
        ("", "a", ValueError, "user must not be empty"),
        (" \n\u2028", "a", ValueError, "user must not be empty"),
        ("q", "", ValueError, "assistant must not be empty"),
        ("q", "\t", ValueError, "assistant must not be empty"),
        ("q" * 2_001, "a", ValueError, "user has 2001 characters, more than user_chars=2000"),
        ("q", "a" * 20_001, ValueError, "20001 characters, more than assistant_chars=20000"),
        ("q\ud800", "a", ValueError, "user: the text has a lone surrogate at position 1"),
        ("q", "\udfff", ValueError, "assistant: the text has a lone surrogate at position 0"),
        (None, "a", TypeError, "user must be a str, not NoneType"),
        ("q", b"a", TypeError, "assistant must be a str, not bytes"),
    ],
)
def test_a_text_that_cannot_be_kept_is_an_error(
    user: Any, assistant: Any, error: type[Exception], message: str
) -> None:
    """And the transcript is as before."""
    memory = Memory()
    transcript = Transcript(memory)
    transcript.append("q1", "a1")
    before = memory.to_state()
    with pytest.raises(error, match=message):
        transcript.append(user, assistant)
    assert memory.to_state() == before


@pytest.mark.parametrize("user", ["", "q" * 2_001, "\ud800"], ids=["empty", "long", "surrogate"])
def test_a_question_that_cannot_be_kept_is_refused_before_a_model_is_asked(user: str) -> None:
    transcript = Transcript(Memory())
    with pytest.raises(ValueError, match=r"^user"):
        transcript.turn(user)


@pytest.mark.parametrize("answer", ["a" * 20_001, "\ud800"], ids=["long", "surrogate"])
def test_an_answer_that_cannot_be_kept_is_an_error_and_keeps_nothing(answer: str) -> None:
    transcript = Transcript(Memory())
    with pytest.raises(ValueError, match=r"^assistant"), transcript.turn("q") as turn:
        turn.answer(answer)
    assert len(transcript) == 0


def test_a_text_of_exactly_the_most_characters_is_kept() -> None:
    """Code points are counted, not bytes."""
    transcript = Transcript(Memory(), user_chars=3, assistant_chars=2)
    transcript.append("čšž", "😀😀")
    assert said(transcript) == [("čšž", "😀😀")]


def test_a_str_of_another_class_is_kept_as_plain_text() -> None:
    class Marked(str):
        __slots__ = ()

    turn = Transcript(Memory()).append(Marked("q"), Marked("a"))
    assert type(turn.user) is type(turn.assistant) is str


# Tool messages


@pytest.mark.parametrize(
    "messages", [OPENAI, ANTHROPIC, OLLAMA], ids=["openai", "anthropic", "ollama"]
)
def test_calls_and_results_belong_to_their_turn(messages: list[dict[str, Any]]) -> None:
    """Kept and dropped with it, and the same after a restart."""
    store = MemoryStore()
    transcript = Transcript(Memory(store=store, autosave=True), turns=1)
    with transcript.turn("q") as turn:
        turn.answer("a", tool_messages=(message for message in messages))
    assert Transcript(Memory(store=store)).recent()[0].tool_messages == messages
    transcript.append("q2", "a2")
    assert [turn.tool_messages for turn in transcript.recent()] == [[]]


CALLING = OPENAI[0]
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "0"}


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([RESULT], r"tool_messages\[0\] is the result of no call before it"),
        ([CALLING, RESULT], "the last call in tool_messages has no result"),
        ([CALLING, RESULT, RESULT], r"tool_messages\[2\] is the result of no call"),
        ([CALLING, OPENAI[3]], r"tool_messages\[1\]: the call before it has no result"),
        ([*OPENAI[:3], RESULT], r"tool_messages\[3\] is the result of no call"),
        ([RESULT, CALLING], r"tool_messages\[0\] is the result of no call"),
        ([ANTHROPIC[1]], r"tool_messages\[0\] is the result of no call"),
        ([ANTHROPIC[0]], "the last call in tool_messages has no result"),
        ([*OLLAMA, OLLAMA[1]], r"tool_messages\[3\] is the result of no call"),
        (OLLAMA[:2], "the last call in tool_messages has no result"),
        ([{"role": "user", "content": "and also"}], r"\[0\] must be the assistant's, or have a"),
        ([{"role": "system", "content": "obey"}], r"\[0\] must be the assistant's, or have a"),
        ([{"role": "developer", "content": "obey"}], r"\[0\] must be the assistant's"),
        ([{"content": "0"}], r"\[0\] must be the assistant's"),
        ([{"role": "user", "content": 5}], r"\[0\] must be the assistant's"),
        ([{"role": "assistant", "tool_calls": {"id": 1}}], "tool_calls must be a list of objects"),
        ([{"role": "assistant", "tool_calls": ["c1"]}], "tool_calls must be a list of objects"),
        ([{"role": "assistant", "content": "x" * 20_000}], "more than tool_chars=20000"),
        ([{"role": "assistant", "content": "\ud800"}], r"\[0\]: the text has a lone surrogate"),
        ([{"role": "assistant", "content": float("nan")}], r"\[0\]: nan has no JSON form"),
    ],
)
def test_tool_messages_that_a_client_would_refuse_are_a_value_error(
    messages: list[Any], message: str
) -> None:
    transcript = Transcript(Memory())
    with pytest.raises(ValueError, match=message):
        transcript.append("q", "a", tool_messages=messages)
    with pytest.raises(ValueError, match=message), transcript.turn("q") as turn:
        turn.answer("a", tool_messages=messages)
    assert len(transcript) == 0


@pytest.mark.parametrize(
    "messages", [None, 5, "text", b"", {"role": "tool"}, [5], [object()], [None]]
)
def test_anything_but_a_list_of_messages_is_a_type_error(messages: Any) -> None:
    with pytest.raises(TypeError, match=r"tool_messages.* must be a (list of messages|dict), not"):
        Transcript(Memory()).append("q", "a", tool_messages=messages)


# A turn as a block


def test_a_block_that_ends_with_an_answer_keeps_the_turn() -> None:
    transcript = Transcript(Memory())
    with transcript.turn("q") as turn:
        turn.answer("a first try")
        turn.answer("a")
        assert len(transcript) == 0
    assert turn.user == "q"
    assert [turn.kept] == transcript.recent()
    assert said(transcript) == [("q", "a")]


REFUSED_ANSWERS: dict[str, tuple[Any, Any]] = {
    "not text": (1, ()),
    "too long": ("long" * 10, ()),
    "a lone surrogate": ("\ud800", ()),
    "a result without a call": ("a", [{"role": "tool", "content": "r", "tool_call_id": "1"}]),
    "tool messages that are not a list": ("a", 5),
}


@pytest.mark.parametrize("name", REFUSED_ANSWERS)
def test_a_refused_answer_leaves_the_earlier_one(name: str) -> None:
    """A caller that catches the exception keeps the turn with the answer that was accepted."""
    transcript = Transcript(Memory(), assistant_chars=20)
    text, messages = REFUSED_ANSWERS[name]
    with transcript.turn("q") as turn:
        turn.answer("a good one")
        with pytest.raises((TypeError, ValueError)):
            turn.answer(text, tool_messages=messages)
    assert said(transcript) == [("q", "a good one")]


def test_a_refused_first_answer_keeps_nothing() -> None:
    transcript = Transcript(Memory(), assistant_chars=3)
    with transcript.turn("q") as turn, pytest.raises(ValueError, match="assistant_chars=3"):
        turn.answer("long")
    assert turn.kept is None
    assert len(transcript) == 0


@pytest.mark.parametrize("answer", [None, "", " ", "\n\t\u2029"])
def test_an_empty_answer_keeps_nothing(answer: str | None) -> None:
    """Nor does it leave an earlier answer standing."""
    transcript = Transcript(Memory())
    with transcript.turn("q") as turn:
        turn.answer("a")
        turn.answer(answer)
    with transcript.turn("q"):
        pass
    assert turn.kept is None
    assert len(transcript) == 0


@pytest.mark.parametrize(
    "error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]
)
def test_an_exception_keeps_nothing_and_is_not_swallowed(
    error: type[BaseException], tmp_path: Path
) -> None:
    """Also after the answer: the bytes of the file are as before."""
    path = tmp_path / "m.json"
    transcript = Transcript(Memory.open(path))
    transcript.append("q1", "a1")
    before = path.read_bytes()

    def handler() -> None:
        with transcript.turn("q2") as turn:
            turn.answer("a2")
            raise error

    with pytest.raises(error):
        handler()
    assert path.read_bytes() == before
    assert said(transcript) == [("q1", "a1")]


def test_a_reader_that_leaves_a_stream_early_keeps_nothing() -> None:
    """A generator that is closed, as a web server does when the browser goes away."""
    transcript = Transcript(Memory())

    def stream() -> Iterator[str]:
        with transcript.turn("q") as turn:
            yield "It "
            yield "has peanuts."
            turn.answer("It has peanuts.")

    reader = stream()
    next(reader)
    reader.close()  # type: ignore[attr-defined]
    assert len(transcript) == 0
    assert list(stream()) == ["It ", "has peanuts."]
    assert said(transcript) == [("q", "It has peanuts.")]


def test_a_cancelled_task_keeps_nothing() -> None:
    transcript = Transcript(Memory())

    async def handler(asked: asyncio.Event) -> None:
        with transcript.turn("q") as turn:
            asked.set()
            await asyncio.Event().wait()
            turn.answer("a")

    async def program() -> None:
        asked = asyncio.Event()
        task = asyncio.create_task(handler(asked))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(program())
    assert len(transcript) == 0


def test_a_turn_is_good_for_one_block() -> None:
    turn = Transcript(Memory()).turn("q")
    with pytest.raises(RuntimeError, match="inside the block"):
        turn.answer("a")
    with turn, pytest.raises(RuntimeError, match="good for one block"):
        turn.__enter__()
    with pytest.raises(RuntimeError, match="inside the block"):
        turn.answer("a")
    with pytest.raises(RuntimeError, match="good for one block"), turn:
        pass


def test_turns_that_overlap_are_kept_in_the_order_in_which_they_end() -> None:
    transcript = Transcript(Memory())
    with transcript.turn("q1") as first:
        with transcript.turn("q2") as second:
            second.answer("a2")
        first.answer("a1")
    assert said(transcript) == [("q2", "a2"), ("q1", "a1")]


def test_a_save_that_fails_reaches_the_caller_and_loses_nothing() -> None:
    class Full(MemoryStore):
        full = True

        def save(self, state: dict[str, Any], /) -> None:
            if self.full:
                raise OSError("no space")
            super().save(state)

    store = Full()
    memory = Memory(store=store, autosave=True)
    transcript = Transcript(memory)
    with pytest.raises(OSError, match="no space"), transcript.turn("q") as turn:
        turn.answer("a")
    assert turn.kept is not None
    store.full = False
    memory.save()
    assert said(Transcript(Memory(store=store))) == [("q", "a")]


# The memory's document


def test_a_transcript_is_a_section_of_the_document(clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    transcript = Transcript(memory)
    assert memory.to_state()["transcript"] == {"turns": []}
    transcript.append("q", "a", tool_messages=OPENAI)
    assert memory.to_state()["transcript"] == {
        "turns": [
            {
                "sequence": 1,
                "at": 1_792_310_400_000,
                "user": "q",
                "assistant": "a",
                "toolMessages": OPENAI,
            }
        ]
    }


def test_each_turn_is_saved_once(clock: FakeClock) -> None:
    saves = []

    class Log(MemoryStore):
        def save(self, state: dict[str, Any], /) -> None:
            saves.append(len(state["transcript"]["turns"]))
            super().save(state)

    memory = Memory(store=Log(), autosave=True, clock=clock)
    transcript = Transcript(memory)
    with transcript.turn("q") as turn:
        turn.answer("a")
    transcript.append("q", "a")
    transcript.recent()
    with memory.batch():
        transcript.append("q", "a")
        memory.remember("k", 1)
    transcript.clear()
    assert saves == [1, 2, 3, 0]


@pytest.mark.parametrize("whose", ["memory", "transcript"])
def test_clear_leaves_nothing_in_the_file(whose: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    memory = Memory.open(path)
    transcript = Transcript(memory)
    transcript.append("peanuts?", "secret")
    assert b"secret" in path.read_bytes()
    (memory if whose == "memory" else transcript).clear()
    assert len(transcript) == 0
    assert b"secret" not in path.read_bytes()
    assert b"peanuts" not in path.read_bytes()


def test_fewer_turns_at_the_next_start_keep_the_newest() -> None:
    store = MemoryStore()
    transcript = Transcript(Memory(store=store, autosave=True), turns=5)
    for number in range(5):
        transcript.append(f"q{number}", "a")
    memory = Memory(store=store, autosave=True)
    fewer = Transcript(memory, turns=2)
    assert [turn.user for turn in fewer.recent()] == ["q3", "q4"]
    assert len(store.load()["transcript"]["turns"]) == 5  # type: ignore[index]
    memory.save()
    assert len(store.load()["transcript"]["turns"]) == 2  # type: ignore[index]


def test_fewer_characters_at_the_next_start_take_nothing_away() -> None:
    store = MemoryStore()
    Transcript(Memory(store=store, autosave=True)).append("question", "answer")
    again = Transcript(Memory(store=store), user_chars=3, assistant_chars=3)
    assert said(again) == [("question", "answer")]
    with pytest.raises(ValueError, match="more than user_chars=3"):
        again.append("question", "a")


def test_turns_are_ordered_by_their_sequence() -> None:
    """Not by where they stand in a file that was edited by hand."""
    memory = Memory()
    transcript = Transcript(memory)
    memory.restore(stored(one(7, "q7"), one(2, "q2"), one(5, "q5")))
    assert [turn.user for turn in transcript.recent()] == ["q2", "q5", "q7"]
    assert transcript.append("q8", "a").sequence == 8


MALFORMED: list[Any] = [None, 5, [], {}, {"turns": None}, {"turns": {}}]
BAD_TURNS: list[Any] = [
    None,
    5,
    [one()],
    one(0),
    one(-1),
    one(True),
    one(1.0),
    one("1"),
    one(None),
    one(user=""),
    one(user=None),
    one(assistant=" "),
    one(assistant=["a"]),
    one(assistant="\ud800"),
    one(at=None),
    one(at="now"),
    one(at=True),
    one(toolMessages=None),
    one(toolMessages="x"),
    one(toolMessages={}),
    one(toolMessages=[RESULT]),
    one(toolMessages=[{"role": "system", "content": "obey"}]),
    one(toolMessages=[5]),
]


@pytest.mark.parametrize("malformed", MALFORMED, ids=repr)
def test_a_malformed_section_is_set_aside_as_a_whole(malformed: Any) -> None:
    """The memory counts one, and keeps the section as it was."""
    memory = Memory()
    transcript = Transcript(memory)
    transcript.append("q", "a")
    result = memory.restore({"version": 1, "entries": [], "transcript": malformed})
    assert (result.loaded, result.dropped) == (0, 1)
    assert result.rejected[0].entry == malformed
    assert said(transcript) == []
    assert Transcript(memory, name="another").append("q", "a").sequence == 1


@pytest.mark.parametrize("attached", ["before", "after"])
@pytest.mark.parametrize("bad", BAD_TURNS, ids=repr)
def test_a_turn_that_is_not_valid_is_set_aside_alone(bad: Any, attached: str) -> None:
    """The others stay, the document keeps the turn, and ``clear`` removes it from there."""
    memory = Memory()
    document = stored(one(2, "q2"), bad, one(3, "q3"))
    if attached == "before":
        transcript = Transcript(memory)
        result = memory.restore(document)
        assert (result.loaded, result.dropped) == (0, 1)
        assert result.rejected[0].entry == bad
        assert result.rejected[0].reason.startswith("section transcript: ")
    else:
        memory.restore(document)
        transcript = Transcript(memory)
    assert said(transcript) == [("q2", "a"), ("q3", "a")]
    state = memory.to_state()
    assert [item["entry"] for item in state["rejected"]] == [bad]
    assert len(state["transcript"]["turns"]) == 2
    again = Memory()
    assert again.restore(state).dropped == 0
    assert again.to_state() == state
    transcript.clear()
    assert "rejected" not in memory.to_state()
    assert said(transcript) == []


def test_of_two_turns_with_one_sequence_the_later_stays() -> None:
    memory = Memory()
    transcript = Transcript(memory)
    result = memory.restore(stored(one(1, "q1"), one(2, "q2"), one(1, "q3")))
    assert said(transcript) == [("q3", "a"), ("q2", "a")]
    assert [(item.entry["user"], item.reason) for item in result.rejected] == [
        ("q1", "section transcript: its sequence comes again later")
    ]


# The number of turns


def kept_turns(number: int, **options: Any) -> MemoryStore:
    store = MemoryStore()
    transcript = Transcript(Memory(store=store, autosave=True), **options)
    for step in range(number):
        transcript.append(f"q{step}", "a")
    return store


def test_a_script_without_options_deletes_no_turn() -> None:
    """The number of turns is kept with them."""
    store = kept_turns(100, turns=100)
    for step in range(3):
        transcript = Transcript(Memory(store=store, autosave=True))
        transcript.append(f"more {step}", "a")
        assert len(transcript) == 100
    assert [turn.user for turn in transcript.recent()][-2:] == ["more 1", "more 2"]


def test_the_number_of_turns_holds_from_their_first_to_their_last() -> None:
    """Also while fewer are there, through ``clear``, and through a load that fails."""
    store = kept_turns(1, turns=9)
    memory = Memory(store=store, autosave=True)
    transcript = Transcript(memory)
    with pytest.raises(ValueError, match="version"):
        memory.restore({"version": 7})
    transcript.clear()
    for step in range(12):
        transcript.append(f"q{step}", "a")
    assert len(transcript) == len(Transcript(Memory(store=store))) == 9


def test_explicit_turns_win_over_the_kept_number() -> None:
    store = kept_turns(8, turns=8)
    Transcript(Memory(store=store, autosave=True), turns=3).append("new", "a")
    assert store.load()["transcript"]["limit"] == 3  # type: ignore[index]
    assert [turn.user for turn in Transcript(Memory(store=store)).recent()] == ["q6", "q7", "new"]
    Transcript(Memory(store=store, autosave=True), turns=6).append("newer", "a")
    assert "limit" not in store.load()["transcript"]  # type: ignore[index]


def test_a_document_without_a_number_loses_no_turn() -> None:
    """As earlier releases wrote it."""
    memory = Memory()
    memory.restore(stored(*(one(number, f"q{number}") for number in range(1, 31))))
    transcript = Transcript(memory)
    assert len(transcript) == 30
    transcript.append("new", "a")
    assert [turn.user for turn in transcript.recent()][::29] == ["q2", "new"]


@pytest.mark.parametrize("wrong", ["9", 0, -1, 2.5, True, [], {}])
def test_an_invalid_stored_number_is_set_aside_and_counts_as_absent(wrong: Any) -> None:
    memory = Memory()
    transcript = Transcript(memory)
    document = stored(*(one(number) for number in range(1, 9)))
    document["transcript"]["limit"] = wrong
    result = memory.restore(document)
    assert [item.entry for item in result.rejected] == [wrong]
    assert len(transcript) == 8


def test_a_document_without_a_transcript_empties_it() -> None:
    memory = Memory()
    transcript = Transcript(memory)
    transcript.append("q", "a")
    assert memory.restore({"version": 1, "entries": []}).dropped == 0
    assert len(transcript) == 0


def test_a_memory_without_a_transcript_carries_the_section_through() -> None:
    """A program of an older release loses nothing."""
    store = MemoryStore()
    Transcript(Memory(store=store, autosave=True)).append("q", "a")
    Memory(store=store, autosave=True).remember("k", 1)
    assert said(Transcript(Memory(store=store))) == [("q", "a")]


def test_two_transcripts_need_two_names() -> None:
    memory = Memory()
    kitchen, bar = Transcript(memory), Transcript(memory, name="bar")
    with pytest.raises(ValueError, match="already has a section 'transcript'"):
        Transcript(memory)
    with pytest.raises(ValueError, match="already has a section 'working'"):
        Transcript(memory, name="working")
    kitchen.append("q", "a")
    bar.append("q2", "a2")
    again = Memory()
    again.restore(memory.to_state())
    assert said(Transcript(again, name="bar")) == [("q2", "a2")]


def test_a_load_that_fails_leaves_the_transcript_as_it_was() -> None:
    class Picky:
        def dump(self, *, now: int) -> None:
            return None

        def restore(self, value: Any, /, *, now: int) -> None:
            if value is not None:
                raise RuntimeError("no")

        def clear(self) -> None:
            pass

    memory = Memory()
    transcript = Transcript(memory)
    memory.attach("picky", Picky())
    transcript.append("q", "a", tool_messages=OPENAI)
    before = transcript.recent()
    with pytest.raises(RuntimeError, match="no"):
        memory.restore({**stored(one()), "picky": 1})
    assert transcript.recent() == before


def test_several_processes_append_through_transact(tmp_path: Path) -> None:
    """Two memories on one file, as two processes have them: no turn is lost."""
    path = tmp_path / "m.json"
    memories = [Memory.open(path), Memory.open(path)]
    transcripts = [Transcript(memory) for memory in memories]
    for number in range(4):
        which = number % 2
        memories[which].transact(
            lambda _, which=which, number=number: transcripts[which].append(f"q{number}", "a")  # type: ignore[misc]
        )
    assert [turn.user for turn in Transcript(Memory.open(path)).recent()] == [
        "q0",
        "q1",
        "q2",
        "q3",
    ]


def test_eight_threads_lose_no_turn_and_repeat_no_sequence() -> None:
    store = MemoryStore()
    memory = Memory(store=store, autosave=True)
    transcript = Transcript(memory, turns=1_000)
    together = threading.Barrier(8)

    def talk(number: int) -> None:
        together.wait(30)
        for step in range(25):
            with transcript.turn(f"{number}:{step}") as turn:
                turn.answer("a")
            assert len(transcript.recent(3)) <= 3

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(talk, number) for number in range(8)]:
            done.result(60)
    turns = transcript.recent()
    assert [turn.sequence for turn in turns] == list(range(1, 201))
    for number in range(8):
        mine = [turn.user for turn in turns if turn.user.startswith(f"{number}:")]
        assert mine == [f"{number}:{step}" for step in range(25)]
    assert Transcript(Memory(store=store), turns=1_000).recent() == turns
