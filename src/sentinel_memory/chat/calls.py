"""Checks that OpenAI, Ollama and Anthropic accept the tool messages of a turn.

A message that such a client refuses would be resent with every question as long as its turn is
kept, so it is refused here, before it is kept. One form may not answer another: a call of OpenAI or
Ollama is answered by a message of role ``tool``, a call of Anthropic by a block ``tool_result``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from .._basics.plain import dump_json, plain

__all__ = ["Message", "checked_tool_messages"]

Message: TypeAlias = dict[str, Any]
"""One message as the clients take it: ``role``, ``content``, and members for tool calls."""

_Form: TypeAlias = str

_OPENAI: Final[_Form] = "openai"  # arguments are JSON text; an id ties the result to the call
_OLLAMA: Final[_Form] = "ollama"  # arguments are an object; without ids, results keep the order
_ANTHROPIC: Final[_Form] = "anthropic"  # calls and results are blocks of the content


class _Reference(NamedTuple):
    """The form and id by which a result refers to its call; Ollama may give no id (``None``)."""

    form: _Form
    id: str | None


def checked_tool_messages(
    messages: Iterable[Mapping[str, Any]], most: int | None = None
) -> list[Message]:
    """A plain copy of the messages, if the client whose form they have takes them.

    ``most`` is the largest number of characters of one message as compact JSON. Raises
    ``TypeError`` or ``ValueError``, naming the message by its place.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise TypeError(f"tool_messages must be a list of messages, not {type(messages).__name__}")
    copies: list[Message] = []
    calls = _Calls()
    for number, message in enumerate(messages):
        name = f"tool_messages[{number}]"
        copies.append(_checked_copy(message, name, most))
        _check_message(copies[-1], calls, name)
    if calls.waiting:
        raise ValueError("the last call in tool_messages has no result")
    return copies


class _Calls:
    """The calls of one turn: the ids used so far, and the calls that wait for their results."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self.waiting: list[_Reference] = []

    def call(self, made: Iterable[_Reference], name: str) -> None:
        """Note calls; every id may be used once in a turn."""
        if self.waiting:
            raise ValueError(f"{name}: the call before it has no result")
        for reference in made:
            if reference.id is not None:
                if reference.id in self._ids:
                    raise ValueError(f"{name}: the same call id comes twice in this turn")
                self._ids.add(reference.id)
            self.waiting.append(reference)

    def answer(self, form: _Form, id: str | None, name: str) -> None:
        """Note the result of the call of that id; Ollama calls without id are answered in order."""
        forms = (_ANTHROPIC,) if form == _ANTHROPIC else (_OPENAI, _OLLAMA)
        for place, call in enumerate(self.waiting):
            if call.form in forms and (call.id == id or (id is None and call.form == _OLLAMA)):
                del self.waiting[place]
                return
        raise ValueError(f"{name} is the result of no call before it")


def _checked_copy(message: object, name: str, most: int | None) -> Message:
    if not isinstance(message, Mapping):
        raise TypeError(
            f"{name} must be a dict, not {type(message).__name__};"
            " of a client's object make one: message.model_dump(exclude_none=True)"
        )
    copy: Message = plain(dict(message), name)
    size = len(dump_json(copy))
    if most is not None and size > most:
        raise ValueError(f"{name} has {size} characters as JSON, more than tool_chars={most}")
    return copy


def _check_message(message: Message, calls: _Calls, name: str) -> None:
    role = message.get("role")
    if role == "assistant":
        _check_assistant(message, calls, name)
    elif role == "tool":
        _check_result(message, calls, name)
    elif role == "user" and any(_blocks(message, "tool_result")):
        _check_result_blocks(message, calls, name)
    else:
        raise ValueError(
            f"{name} must be the assistant's, or have a result: of role tool,"
            " or of role user with blocks of type tool_result"
        )


# The assistant's messages


def _check_assistant(message: Message, calls: _Calls, name: str) -> None:
    content = message.get("content")
    if isinstance(content, list):
        _check_blocks(content, name)
    elif content is not None and not isinstance(content, str):
        raise ValueError(f"{name}: content must be text or a list of blocks")
    made = [*_listed_calls(message, name), *_block_calls(message, name)]
    if len({call.form == _ANTHROPIC for call in made}) > 1:
        raise ValueError(f"{name} has calls both in tool_calls and in its content")
    if not made and (content is None or (isinstance(content, str) and not content.strip())):
        raise ValueError(f"{name} has neither content nor calls")
    calls.call(made, name)


def _listed_calls(message: Message, name: str) -> Iterator[_Reference]:
    """The calls in ``tool_calls``, as OpenAI and Ollama have them."""
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise ValueError(f"{name}: tool_calls must be a list of objects")
    if not calls:
        raise ValueError(f"{name}: tool_calls must not be empty; leave it out")
    for number, call in enumerate(calls):
        yield _listed_call(call, f"{name}: tool_calls[{number}]")


def _listed_call(call: dict[str, Any], name: str) -> _Reference:
    kind = "custom" if call.get("type") == "custom" else "function"
    called = call.get(kind)
    if not isinstance(called, dict):
        raise ValueError(f"{name} must have an object {kind}")
    _check_text_member(called, "name", f"{name}.{kind}")
    given = called.get("input" if kind == "custom" else "arguments")
    if kind == "custom":
        if not isinstance(given, str):
            raise ValueError(f"{name}.custom.input must be a str")
    elif isinstance(given, str):
        _check_json_object(given, f"{name}.function.arguments")
    # Ollama gives an object, or leaves the arguments out; then a call without an id is from it.
    elif isinstance(given, dict) or ("arguments" not in called and "id" not in call):
        if call.get("id") is not None:
            _check_text_member(call, "id", name)
        return _Reference(_OLLAMA, call.get("id"))
    else:
        raise ValueError(f"{name}.function.arguments must be JSON text or an object")
    if call.get("type") != kind:
        raise ValueError(f"{name}.type must be 'function' or 'custom'")
    _check_text_member(call, "id", name)
    return _Reference(_OPENAI, call["id"])


def _block_calls(message: Message, name: str) -> Iterator[_Reference]:
    """The calls that are blocks of the content, as Anthropic has them."""
    for block in _blocks(message, "tool_use"):
        where = f"{name}: a block tool_use"
        _check_text_member(block, "id", where)
        _check_text_member(block, "name", where)
        if not isinstance(block.get("input"), dict):
            raise ValueError(f"{where} must have an object input")
        yield _Reference(_ANTHROPIC, block["id"])


# Results


def _check_result(message: Message, calls: _Calls, name: str) -> None:
    content = message.get("content")
    if isinstance(content, list):
        _check_blocks(content, name)
    elif not isinstance(content, str):  # an empty text is the result of many a tool
        raise ValueError(f"{name} must have content: text, or a list of blocks")
    id = message.get("tool_call_id")
    if id is not None:
        _check_text_member(message, "tool_call_id", name)
    calls.answer(_OPENAI, id, name)


def _check_result_blocks(message: Message, calls: _Calls, name: str) -> None:
    _check_blocks(message["content"], name)
    are_results = [block["type"] == "tool_result" for block in message["content"]]
    if are_results != sorted(are_results, reverse=True):
        raise ValueError(f"{name}: blocks tool_result must stand before all others")
    for block in _blocks(message, "tool_result"):
        content = block.get("content")
        if isinstance(content, list):
            _check_blocks(content, name)
        elif content is not None and not isinstance(content, str):
            raise ValueError(f"{name}: the content of a tool_result must be text or blocks")
        _check_text_member(block, "tool_use_id", f"{name}: a block tool_result")
        calls.answer(_ANTHROPIC, block["tool_use_id"], name)


# Parts of messages


def _blocks(message: Message, kind: str) -> list[dict[str, Any]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == kind]


def _check_blocks(blocks: list[Any], name: str) -> None:
    if not blocks:
        raise ValueError(f"{name}: a list of blocks must not be empty")
    for block in blocks:
        if not isinstance(block, dict):
            raise ValueError(f"{name}: a block must be an object, not {type(block).__name__}")
        _check_text_member(block, "type", f"{name}: a block")
        text = block.get("text")
        if block["type"] == "text" and (not isinstance(text, str) or not text.strip()):
            raise ValueError(f"{name}: a block of type text must not be empty")


def _check_text_member(value: dict[str, Any], member: str, name: str) -> None:
    found = value.get(member)
    if not isinstance(found, str) or not found.strip():
        raise ValueError(f"{name} must have a {member}: a str that is not empty")


def _check_json_object(text: str, name: str) -> None:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ValueError(f"{name} must be valid JSON") from None
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be the JSON text of an object")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
