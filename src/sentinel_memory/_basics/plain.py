"""JSON as the form in which data is kept: checked when stored, copied when stored and when read."""

from __future__ import annotations

import json
import math
from typing import Any, Final

__all__ = ["MAX_DEPTH", "check_text", "dump_json", "load_json", "plain"]

MAX_DEPTH: Final = 100
"""The most levels of lists and mappings that one value may nest."""

load_json = json.loads  # by this name, the counterpart of ``dump_json``


def dump_json(value: Any) -> str:
    """``value``, which ``plain`` returned, as compact JSON text with non-ASCII characters kept."""
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
    )


def check_text(text: str, what: str) -> None:
    """Raise a ``ValueError`` that names ``what`` for text that UTF-8 cannot hold."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{what}: the text has a lone surrogate at position {error.start};"
                " decode it properly, or replace it with"
                " text.encode('utf-8', 'replace').decode()"
            ) from None


def plain(value: Any, what: str, *, depth: int = MAX_DEPTH) -> Any:
    """The result of a JSON round trip of ``value``: a fresh copy of plain builtin types.

    Tuples become lists, mapping keys strings. Raises ``TypeError`` or ``ValueError``, naming
    ``what``, for anything that JSON cannot hold or that nests more than ``depth`` levels.
    """
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        text = str.__str__(value)
        check_text(text, what)
        return text
    if isinstance(value, int):
        return _integer(value, what)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{what}: {value!r} has no JSON form; use None or a string")
        return float.__float__(value)
    if not isinstance(value, (dict, list, tuple)):
        raise TypeError(
            f"{what}: {type(value).__name__} has no JSON form; use str, int, float, bool, None,"
            " list or dict"
        )
    if depth == 0:
        raise ValueError(
            f"{what}: nested more than {MAX_DEPTH} levels, or a list or dict that contains itself"
        )
    if not isinstance(value, dict):
        return [plain(item, what, depth=depth - 1) for item in value]
    copy: dict[str, Any] = {}
    for key, item in value.items():
        name = _mapping_key(key, what)
        if name in copy:
            raise ValueError(f"{what}: two mapping keys become the same string {name!r} in JSON")
        copy[name] = plain(item, what, depth=depth - 1)
    return copy


def _integer(value: int, what: str) -> int:
    number = int.__index__(value)
    try:
        int.__repr__(number)
    except ValueError:
        raise ValueError(
            f"{what}: an integer of more digits than the interpreter reads back"
            " (sys.get_int_max_str_digits()); store it as a string"
        ) from None
    return number


def _mapping_key(key: Any, what: str) -> str:
    if key is None or isinstance(key, (int, float)):
        return dump_json(plain(key, what))
    if not isinstance(key, str):
        raise TypeError(
            f"{what}: a mapping key of type {type(key).__name__} has no JSON form; use a string"
        )
    name = str.__str__(key)
    check_text(name, what)
    return name
