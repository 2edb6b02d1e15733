"""The last completed turns of a conversation, kept in the memory's document.

A turn is the text of the user, the answer of the assistant, and the tool messages between the two.
Only complete turns are kept, never a question without an answer. The checks of tool messages are in
``calls``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from .._basics.checks import check_methods
from .._basics.numbers import warn_ignored, whole
from .._basics.plain import check_text, dump_json, load_json
from .._basics.times import epoch_milliseconds
from .calls import Message, checked_tool_messages

if TYPE_CHECKING:
    from ..memory import Memory

__all__ = ["OpenTurn", "Transcript", "Turn", "checked_text"]

# Defaults: the newest turns that are kept, and code points of a message. Larger ones cost file
# size, and room in a prompt.
_TURNS: Final = 6
_USER_CHARS: Final = 2_000
_ASSISTANT_CHARS: Final = 20_000
_TOOL_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True, repr=False)
class Turn:
    """One completed turn; immutable, and made by a ``Transcript`` only.

    ``user`` is the text of the user, ``assistant`` the answer. ``sequence`` numbers the turns of a
    transcript from 1 on and orders them; ``at`` is the time at which the turn was completed, in
    epoch seconds with millisecond resolution.
    """

    sequence: int
    user: str
    assistant: str
    _tools: str
    _completed_ms: int

    @property
    def at(self) -> float:
        """The time at which the turn was completed, in epoch seconds."""
        return self._completed_ms / 1000

    @property
    def tool_messages(self) -> list[Message]:
        """The tool calls and their results, in order; a fresh copy."""
        messages: list[Message] = load_json(self._tools)
        return messages

    @property
    def messages(self) -> list[Message]:
        """The complete turn as messages: the user's first, the assistant's answer last."""
        question, answer = self.texts
        return [question, *self.tool_messages, answer]

    @property
    def texts(self) -> list[Message]:
        """Two messages, the user's and the assistant's answer, without the tool messages."""
        return [
            {"role": "user", "content": self.user},
            {"role": "assistant", "content": self.assistant},
        ]

    def __repr__(self) -> str:
        return f"Turn(sequence={self.sequence}, messages={len(self.messages)})"


class Transcript:
    """The last completed turns, saved with ``memory`` and emptied by ``memory.clear()``.

    Options are whole numbers of at least 1; one that is not is ignored with a warning, and the
    default is used:

    - ``turns``: the number of turns that are kept, the newest (default: the stored limit; if the
      document has none, 6, or as many as it has turns if that is more)
    - ``user_chars``, ``assistant_chars``: code points of one message (2,000 and 20,000)
    - ``tool_chars``: code points of one tool message as compact JSON (20,000)

    ``name`` is the name of the document's section in which the turns are kept. Each name has one
    transcript; a second one is a ``ValueError``. A longer message is a ``ValueError`` and is never
    cut. A stored turn that is not valid is rejected like an entry that is not valid, and the
    other turns stay. Every call is safe from any thread.

    Several processes on one store append with ``memory.transact``, when the answer is there:
    ``memory.transact(lambda _: transcript.append(user, answer))``. ``memory.forget`` does not look
    into turns: ``clear`` removes them.

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
        turns: float | None = None,
        user_chars: float = _USER_CHARS,
        assistant_chars: float = _ASSISTANT_CHARS,
        tool_chars: float = _TOOL_CHARS,
        name: str = "transcript",
    ) -> None:
        check_methods("memory", memory, ("attach",))
        kept = "the stored limit"
        given = _option("turns", turns, 0, f"{kept}, else {_TURNS},")
        self._user_chars = _option("user_chars", user_chars, _USER_CHARS)
        self._assistant_chars = _option("assistant_chars", assistant_chars, _ASSISTANT_CHARS)
        self._tool_chars = _option("tool_chars", tool_chars, _TOOL_CHARS)
        self._section = _TranscriptSection(given or None)
        self._memory = memory.attach(name, self._section)

    def append(
        self, user: str, assistant: str, *, tool_messages: Iterable[Mapping[str, Any]] = ()
    ) -> Turn:
        """Keep a completed turn as the newest one; over ``turns``, the oldest goes.

        ``tool_messages`` are the messages between question and answer, in the form of OpenAI,
        Ollama or Anthropic: each call with its result, each result after its call.

        Raises ``TypeError`` or ``ValueError`` for texts that are empty, too long or not text, and
        for tool messages that a client would refuse (arguments that are not a JSON object, a call
        id that comes twice, a call without its result, an empty text block, and so on), and
        changes nothing. With autosave, an exception of the save is raised; then the turn is kept
        and the next save writes it.

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
        For the user's text, the exceptions of ``append`` are raised at once, before any model is
        asked.
        """
        return OpenTurn(self, self._checked_user(user))

    def recent(self, n: float | None = None) -> list[Turn]:
        """The newest ``n`` turns, oldest first.

        All turns without ``n``; an ``n`` that is not a whole number of at least 0 is ignored with a
        warning.
        """
        most = -1 if n is None else _option("n", n, -1, "all turns", least=0)
        turns = self._memory.read(lambda _: self._section.turns)
        return list(turns if most < 0 else turns[max(0, len(turns) - most) :])

    def clear(self) -> None:
        """Remove every turn, and the turns that loads have rejected."""
        self._memory.clear()

    def __len__(self) -> int:
        return self._memory.read(lambda _: len(self._section.turns))

    def __bool__(self) -> bool:
        """Always true, so that ``transcript or other`` does not replace an empty one."""
        return True

    def __repr__(self) -> str:
        return f"<Transcript of {len(self)} turns, at most {self._section.limit}>"

    def _checked_user(self, text: str) -> str:
        return checked_text("user", text, self._user_chars)

    def _checked_answer(
        self, text: str, tool_messages: Iterable[Mapping[str, Any]]
    ) -> tuple[str, str]:
        text = checked_text("assistant", text, self._assistant_chars)
        return text, dump_json(checked_tool_messages(tool_messages, self._tool_chars))


class OpenTurn:
    """A turn that waits for its answer, as ``Transcript.turn`` gives it to one ``with`` block.

    After the block ``kept`` is the ``Turn``, or ``None`` if there was nothing to keep.
    """

    def __init__(self, transcript: Transcript, user: str) -> None:
        self._transcript = transcript
        self._answer: tuple[str, str] | None = None
        self._phase = "new"
        self.user: Final = user
        self.kept: Turn | None = None

    def answer(self, text: str | None, *, tool_messages: Iterable[Mapping[str, Any]] = ()) -> None:
        """Set the answer to keep at the end of the block; a later call replaces an earlier one.

        An empty ``text`` (``None``, as some clients have it, or nothing but blanks) is no answer,
        and takes back an earlier one. Raises the exceptions of ``Transcript.append``, after which
        an earlier answer stays, and ``RuntimeError`` outside the block.
        """
        self._need("open", "answer belongs inside the block: with transcript.turn(user) as turn")
        if text is None or (isinstance(text, str) and not str.__str__(text).strip()):
            self._answer = None
        else:
            self._answer = self._transcript._checked_answer(text, tool_messages)

    def __enter__(self) -> Self:
        self._need("new", "a turn is good for one block; ask the transcript for another one")
        self._phase = "open"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._phase = "over"
        answer, section = self._answer, self._transcript._section
        if kind is None and answer is not None:

            def keep(now: int) -> None:
                self.kept = section.add(self.user, *answer, now=now)

            self._transcript._memory.change(keep)

    def _need(self, phase: str, otherwise: str) -> None:
        if self._phase != phase:
            raise RuntimeError(otherwise)


class _TranscriptSection:
    """The section of the document: ``{"turns": [...], "limit": 8}``, oldest first.

    ``limit`` is the given number of turns, else the stored one; it is stored unless it is 6.
    """

    def __init__(self, given: int | None) -> None:
        self._given = given
        self.limit = _TURNS if given is None else given
        self.clear()

    def clear(self) -> None:
        self.turns: tuple[Turn, ...] = ()

    def add(self, user: str, assistant: str, tools: str, *, now: int) -> Turn:
        sequence = self.turns[-1].sequence + 1 if self.turns else 1
        turn = Turn(sequence, user, assistant, tools, now)
        self.turns = (*self.turns, turn)[-self.limit :]
        return turn

    def dump(self, *, now: int) -> dict[str, Any]:
        turns = [
            {
                "sequence": turn.sequence,
                "at": turn._completed_ms,
                "user": turn.user,
                "assistant": turn.assistant,
                "toolMessages": turn.tool_messages,
            }
            for turn in self.turns
        ]
        return {"turns": turns} if self.limit == _TURNS else {"turns": turns, "limit": self.limit}

    def restore(self, value: Any, /, *, now: int) -> list[tuple[Any, str]]:
        """Take over the valid turns; return the rejected ones, each with a reason."""
        stored = value.get("turns") if isinstance(value, dict) else None
        if not isinstance(stored, list):
            raise ValueError("a transcript must be an object with a list turns")
        turns, rejected = _turns_from_stored(stored)
        limit = whole(value.get("limit"), 0, least=1)
        if not limit and value.get("limit") is not None:
            rejected.append((value["limit"], "its limit must be a whole number of at least 1"))
        # Without a limit, no stored turn may be dropped.
        self.limit = self._given or limit or max(_TURNS, len(turns))
        self.turns = tuple(turns[-self.limit :])
        return rejected


class _Stored(NamedTuple):
    """A stored turn and its form in the document."""

    turn: Turn
    raw: Any


def _turns_from_stored(stored: list[Any]) -> tuple[list[Turn], list[tuple[Any, str]]]:
    """The valid turns, sorted by sequence, and the rejected ones, each with a reason."""
    found: dict[int, _Stored] = {}
    rejected: list[tuple[Any, str]] = []
    for raw in stored:
        try:
            turn = _turn_from_stored(raw)
        except (TypeError, ValueError) as error:
            rejected.append((raw, str(error)))
            continue
        former = found.pop(turn.sequence, None)
        if former is not None:
            rejected.append((former.raw, "its sequence comes again later"))
        found[turn.sequence] = _Stored(turn, raw)
    return [found[sequence].turn for sequence in sorted(found)], rejected


def _turn_from_stored(raw: Any) -> Turn:
    """Make a turn of its stored form; character limits are not applied to stored turns."""
    if not isinstance(raw, dict):
        raise TypeError(f"a turn must be an object, not {type(raw).__name__}")
    sequence = raw.get("sequence")
    if type(sequence) is not int or sequence < 1:
        raise ValueError("the sequence of a turn must be a whole number of at least 1")
    return Turn(
        sequence,
        checked_text("user", raw.get("user")),
        checked_text("assistant", raw.get("assistant")),
        dump_json(checked_tool_messages(raw.get("toolMessages", []))),
        epoch_milliseconds(raw.get("at"), "at"),
    )


def checked_text(name: str, text: object, most: int | None = None, *, empty: bool = False) -> str:
    """A text of at most ``most`` code points as a plain ``str``, ignoring overrides of a subclass.

    Raises ``TypeError`` for anything but a ``str``; ``ValueError`` for a text that is too long or
    has a lone surrogate, and, unless ``empty`` is true, for one with nothing but blanks.
    """
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, not {type(text).__name__}")
    text = str.__str__(text)
    if most is not None and len(text) > most:
        raise ValueError(f"{name} has {len(text)} characters, more than {name}_chars={most}")
    if not empty and not text.strip():
        raise ValueError(f"{name} must not be empty")
    check_text(text, name)
    return text


def _option(name: str, value: object, default: int, instead: str = "", *, least: int = 1) -> int:
    """A whole number of at least ``least``; anything else is ``default``, and but for ``None``
    a warning that ``instead`` is used."""
    number = whole(value, least - 1, least=least)
    if number >= least:
        return number
    if value is not None:
        wanted = f"a whole number of at least {least}"
        warn_ignored(name, value, wanted, instead or f"the default, {default},")
    return default
