"""The last completed turns of a conversation, kept in the memory's document.

A turn is what the user said, what the assistant answered, and the tool messages between the two.
Only whole ones are kept: a question without an answer never is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from .._basics.checks import check_methods
from .._basics.numbers import whole
from .._basics.plain import check_text, dump_json, load_json, plain
from .._basics.times import epoch_milliseconds

if TYPE_CHECKING:
    from ..memory import Memory

__all__ = ["Message", "OpenTurn", "Transcript", "Turn"]

Message: TypeAlias = dict[str, Any]
"""One message as the clients take it: ``role``, ``content`` and what tool calls add to them."""

_TURNS: Final = 6
_USER_CHARS: Final = 2_000
_ASSISTANT_CHARS: Final = 20_000
_TOOL_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True, repr=False)
class Turn:
    """One completed turn; immutable.

    ``user`` is what the user said, ``assistant`` the answer. ``sequence`` numbers the turns of a
    transcript from 1 on and orders them; ``at`` is when the turn was completed, in epoch seconds
    with millisecond resolution.
    """

    sequence: int
    user: str
    assistant: str
    _tools: str
    _completed_ms: int

    @property
    def at(self) -> float:
        """When it was completed."""
        return self._completed_ms / 1000

    @property
    def tool_messages(self) -> list[Message]:
        """The tool calls and their results, in order; a fresh copy."""
        messages: list[Message] = load_json(self._tools)
        return messages

    @property
    def messages(self) -> list[Message]:
        """The whole turn as messages: the user's first, the assistant's answer last."""
        return [
            {"role": "user", "content": self.user},
            *self.tool_messages,
            {"role": "assistant", "content": self.assistant},
        ]

    def __repr__(self) -> str:
        return f"Turn(sequence={self.sequence}, messages={len(self.messages)})"


class Transcript:
    """The last completed turns, saved with ``memory`` and emptied by ``memory.clear()``.

    Options are whole numbers of at least 1; one that is not is ignored and the default is used:

    - ``turns``: how many turns are kept, the newest (6)
    - ``user_chars``, ``assistant_chars``: code points of one message (2,000 and 20,000)
    - ``tool_chars``: code points of one tool message as compact JSON (20,000)

    ``name`` is the section of the document it is kept in: one transcript for each name, a second
    one is a ``ValueError``. A longer message is a ``ValueError``, never cut. Fewer ``turns`` than
    the store has keep the newest; stored turns of which one is not valid are set aside together,
    like an entry that is not. Every call is safe from any thread.

    Several processes on one store append with ``memory.transact``, when the answer is there:
    ``memory.transact(lambda _: transcript.append(user, answer))``. ``memory.forget`` does not look
    into what was said: ``clear`` does away with it.

    >>> from sentinel_memory import Memory
    >>> transcript = Transcript(Memory(), turns=2)
    >>> with transcript.turn("Is the satay safe?") as turn:
    ...     turn.answer("It has peanuts.")
    >>> with transcript.turn("And the rice?"):
    ...     pass  # no answer, nothing is kept
    >>> [(turn.user, turn.assistant) for turn in transcript.recent()]
    [('Is the satay safe?', 'It has peanuts.')]
    """

    def __init__(
        self,
        memory: Memory,
        *,
        turns: float = _TURNS,
        user_chars: float = _USER_CHARS,
        assistant_chars: float = _ASSISTANT_CHARS,
        tool_chars: float = _TOOL_CHARS,
        name: str = "transcript",
    ) -> None:
        check_methods("memory", memory, ("attach",))
        self._user_chars = whole(user_chars, _USER_CHARS, least=1)
        self._assistant_chars = whole(assistant_chars, _ASSISTANT_CHARS, least=1)
        self._tool_chars = whole(tool_chars, _TOOL_CHARS, least=1)
        self._section = _TranscriptSection(whole(turns, _TURNS, least=1))
        self._memory = memory.attach(name, self._section)

    def append(
        self, user: str, assistant: str, *, tool_messages: Iterable[Mapping[str, Any]] = ()
    ) -> Turn:
        """Keep a completed turn as the newest one; over ``turns``, the oldest goes.

        ``tool_messages`` are what stood between question and answer, in the form of OpenAI,
        Ollama or Anthropic messages: each call with its result, each result after its call.

        Raises ``TypeError`` or ``ValueError`` for texts that are empty, too long or not text, and
        for tool messages that a client would refuse, and changes nothing. With autosave what the
        save raises; then the turn is kept and the next save writes it.

        >>> from sentinel_memory import Memory
        >>> transcript = Transcript(Memory())
        >>> call = {"id": "1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
        >>> turn = transcript.append("What time is it?", "Noon.", tool_messages=[
        ...     {"role": "assistant", "content": None, "tool_calls": [call]},
        ...     {"role": "tool", "tool_call_id": "1", "content": "12:00"},
        ... ])
        >>> [message["role"] for message in turn.messages]
        ['user', 'assistant', 'tool', 'assistant']
        """
        user = self._checked_user(user)
        answer = self._checked_answer(assistant, tool_messages)
        return self._memory.change(lambda now: self._section.add(user, *answer, now=now))

    def turn(self, user: str) -> OpenTurn:
        """A block that keeps the turn if it ends with an answer.

        An exception, a cancelled task, no answer or an empty one leave the transcript as it was.
        Raises at once what ``append`` raises for the user's text, before any model is asked.
        """
        return OpenTurn(self, self._checked_user(user))

    def recent(self, n: float | None = None) -> list[Turn]:
        """The newest ``n`` turns, oldest first.

        All that are kept, if ``n`` is not a whole number of at least 0.
        """
        turns = self._memory.read(lambda _: self._section.turns)
        return list(turns[max(0, len(turns) - whole(n, len(turns), least=0)) :])

    def clear(self) -> None:
        """Keep nothing."""
        self._memory.clear()

    def __len__(self) -> int:
        return self._memory.read(lambda _: len(self._section.turns))

    def __bool__(self) -> bool:
        """Always true, so that ``transcript or other`` does not replace an empty one."""
        return True

    def __repr__(self) -> str:
        return f"<Transcript of {len(self)} turns, at most {self._section.limit}>"

    def _checked_user(self, text: str) -> str:
        return _checked_text("user", text, self._user_chars)

    def _checked_answer(
        self, text: str, tool_messages: Iterable[Mapping[str, Any]]
    ) -> tuple[str, str]:
        text = _checked_text("assistant", text, self._assistant_chars)
        return text, dump_json(_checked_tools(tool_messages, self._tool_chars))


class OpenTurn:
    """A turn that waits for its answer: what ``Transcript.turn`` gives to ``with``, once.

    After the block ``kept`` is the ``Turn``, or ``None`` if there was nothing to keep.
    """

    def __init__(self, transcript: Transcript, user: str) -> None:
        self._transcript = transcript
        self._answer: tuple[str, str] | None = None
        self._state = "new"
        self.user: Final = user
        self.kept: Turn | None = None

    def answer(self, text: str | None, *, tool_messages: Iterable[Mapping[str, Any]] = ()) -> None:
        """What to keep at the end of the block; said again, it replaces what was said before.

        An empty ``text`` (``None``, as some clients have it, or nothing but blanks) is no answer.
        Raises what ``Transcript.append`` raises, and ``RuntimeError`` outside the block.
        """
        self._need("open", "answer belongs inside the block: with transcript.turn(user) as turn")
        self._answer = None
        if text is not None and (not isinstance(text, str) or text.strip()):
            self._answer = self._transcript._checked_answer(text, tool_messages)

    def __enter__(self) -> Self:
        self._need("new", "a turn is good for one block; ask the transcript for another one")
        self._state = "open"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._state = "over"
        answer, section = self._answer, self._transcript._section
        if kind is None and answer is not None:

            def keep(now: int) -> None:
                self.kept = section.add(self.user, *answer, now=now)

            self._transcript._memory.change(keep)

    def _need(self, state: str, otherwise: str) -> None:
        if self._state != state:
            raise RuntimeError(otherwise)


class _TranscriptSection:
    """The section of the document: ``{"turns": [...]}``, oldest first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.clear()

    def clear(self) -> None:
        self.turns: tuple[Turn, ...] = ()

    def add(self, user: str, assistant: str, tools: str, *, now: int) -> Turn:
        sequence = self.turns[-1].sequence + 1 if self.turns else 1
        turn = Turn(sequence, user, assistant, tools, now)
        self.turns = (*self.turns, turn)[-self.limit :]
        return turn

    def dump(self, *, now: int) -> dict[str, Any]:
        return {
            "turns": [
                {
                    "sequence": turn.sequence,
                    "at": turn._completed_ms,
                    "user": turn.user,
                    "assistant": turn.assistant,
                    "toolMessages": turn.tool_messages,
                }
                for turn in self.turns
            ]
        }

    def restore(self, value: Any, /, *, now: int) -> None:
        stored = value.get("turns") if isinstance(value, dict) else None
        if not isinstance(stored, list):
            raise ValueError("a transcript must be an object with a list turns")
        try:
            turns = sorted(map(_turn_from_state, stored), key=lambda turn: turn.sequence)
        except TypeError as error:
            raise ValueError(str(error)) from None
        if len({turn.sequence for turn in turns}) < len(turns):
            raise ValueError("two turns have the same sequence")
        self.turns = tuple(turns[-self.limit :])


def _turn_from_state(raw: Any) -> Turn:
    """A stored turn, of any length: a limit that was lowered since takes nothing away."""
    if not isinstance(raw, dict):
        raise TypeError(f"a turn must be an object, not {type(raw).__name__}")
    sequence = raw.get("sequence")
    if type(sequence) is not int or sequence < 1:
        raise ValueError("the sequence of a turn must be a whole number of at least 1")
    return Turn(
        sequence,
        _checked_text("user", raw.get("user")),
        _checked_text("assistant", raw.get("assistant")),
        dump_json(_checked_tools(raw.get("toolMessages", []))),
        epoch_milliseconds(raw.get("at"), "at"),
    )


def _checked_text(role: str, text: object, most: int | None = None) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{role} must be a str, not {type(text).__name__}")
    if most is not None and len(text) > most:
        raise ValueError(f"{role} has {len(text)} characters, more than {role}_chars={most}")
    if not text.strip():
        raise ValueError(f"{role} must not be empty")
    check_text(text, role)
    return str.__str__(text)


def _checked_tools(messages: Iterable[Mapping[str, Any]], most: int | None = None) -> list[Message]:
    """A plain copy of the tool messages, if each result follows its call and none is missing."""
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise TypeError(f"tool_messages must be a list of messages, not {type(messages).__name__}")
    copies: list[Message] = []
    open_calls: list[Any] = []
    for number, message in enumerate(messages):
        name = f"tool_messages[{number}]"
        if not isinstance(message, Mapping):
            raise TypeError(
                f"{name} must be a dict, not {type(message).__name__};"
                " of a client's object make one: message.model_dump(exclude_none=True)"
            )
        copy: Message = plain(dict(message), name)
        size = len(dump_json(copy))
        if most is not None and size > most:
            raise ValueError(f"{name} has {size} characters as JSON, more than tool_chars={most}")
        copies.append(copy)
        if copy.get("role") == "assistant":
            if open_calls:
                raise ValueError(f"{name}: the call before it has no result")
            open_calls = _calls(copy, name)
            continue
        results = _results(copy)
        if not results:
            raise ValueError(
                f"{name} must be the assistant's, or have a result: of role tool,"
                " or of role user with blocks of type tool_result"
            )
        for result in results:
            if result in open_calls:
                open_calls.remove(result)
            elif result is None and open_calls:
                del open_calls[0]  # results without a reference are in the order of the calls
            else:
                raise ValueError(f"{name} is the result of no call before it")
    if open_calls:
        raise ValueError("the last call in tool_messages has no result")
    return copies


def _calls(message: Message, name: str) -> list[Any]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise ValueError(f"{name}: tool_calls must be a list of objects")
    return [call.get("id") for call in [*calls, *_blocks(message, "tool_use")]]


def _results(message: Message) -> list[Any]:
    if message.get("role") == "tool":
        return [message.get("tool_call_id")]
    if message.get("role") == "user":
        return [block.get("tool_use_id") for block in _blocks(message, "tool_result")]
    return []


def _blocks(message: Message, kind: str) -> list[dict[str, Any]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == kind]
