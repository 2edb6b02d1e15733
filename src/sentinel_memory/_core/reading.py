"""Taking a document apart: its valid entries, its sections, and the parts that are rejected."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from .._basics.numbers import whole
from ..document import RESERVED, Section, shape_problem
from ..entry import Entry, entry_from_state, is_stored_as
from ..errors import DamagedStoreError
from ..results import Rejected
from .rejects import SECTION, storable

__all__ = [
    "Document",
    "read_document",
    "restore_section",
    "section_text",
]

_MOST_REJECTED: Final = 1_000
"""Rejected entries that a document may have; with more it is a ``DamagedStoreError``.

Raised, more of what is not a memory at all counts as one with mistakes. Tried: 1,000 only.
"""


class Document(NamedTuple):
    """A document taken apart, before anything of it is taken over."""

    entries: list[Entry]
    limit: int | None  # None: it says nothing
    limits: dict[str, int]
    numbers: dict[str, int]
    sections: dict[str, Any]
    rejected: list[Rejected]  # by this load
    rejected_before: list[Any]  # by earlier loads, as stored


def read_document(state: object, known: Callable[[str], Entry | None] | None = None) -> Document:
    """Take ``state`` apart; a ``DamagedStoreError`` if it is not a document of this version.

    ``known`` gives the entry that is already there under a key: it is taken where the document has
    the very same, which is faster than to make and index a new one.
    """
    problem = shape_problem(state)
    if problem is not None:
        raise DamagedStoreError(problem)
    assert isinstance(state, dict)
    entries: dict[str, Entry] = {}
    rejected: list[Rejected] = []
    places: dict[str, int] = {}
    for place, raw in enumerate(state["entries"]):
        try:
            entry = (_known_entry(raw, known) if known else None) or entry_from_state(raw)
        except (TypeError, ValueError) as error:
            rejected.append(Rejected(raw, str(error)))
            continue
        key = entry.key
        if key in entries:
            del entries[key]
            rejected.append(Rejected(state["entries"][places[key]], "its key comes again later"))
        entries[key] = entry
        places[key] = place
    if len(rejected) > _MOST_REJECTED:
        raise DamagedStoreError(
            f"{len(rejected)} of its entries are not valid (the first: {rejected[0].reason})"
        )
    limit = _count("limit", state.get("limit"), rejected)
    limits = _counts("limits", state.get("limits"), rejected)
    numbers = _counts("numbers", state.get("numbers"), rejected)
    sections = {name: value for name, value in state.items() if name not in RESERVED}
    before = state.get("rejected", [])
    if not isinstance(before, list):
        rejected.append(Rejected(before, "the section rejected must be a list"))
        before = []
    found = list(entries.values())
    return Document(found, limit, limits, numbers, sections, rejected, _stored_before(before))


def _known_entry(raw: object, known: Callable[[str], Entry | None]) -> Entry | None:
    if not isinstance(raw, dict) or not isinstance(raw.get("key"), str):
        return None
    entry = known(raw["key"])
    return entry if entry is not None and is_stored_as(entry, raw) else None


def _count(name: str, value: object, rejected: list[Rejected]) -> int | None:
    """A number of at least 1; anything else is rejected, and counts as absent."""
    found = whole(value, 0, least=1)
    if found == 0 and value is not None:
        rejected.append(Rejected(value, f"{name} must be a whole number of at least 1"))
    return found or None


def _counts(name: str, value: object, rejected: list[Rejected]) -> dict[str, int]:
    """Numbers by kind; what is not one is rejected, and counts as absent."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        rejected.append(Rejected(value, f"{name} must be an object"))
        return {}
    found = {kind: _count(f"{name} of {kind!r}", count, rejected) for kind, count in value.items()}
    return {str(kind): count for kind, count in found.items() if count is not None}


def _stored_before(items: list[Any]) -> list[Any]:
    try:
        return [storable(item) for item in items]
    except ValueError as error:
        raise DamagedStoreError(f"its section rejected is {error}") from None


def restore_section(name: str, section: Section, value: Any, now: int) -> list[Rejected]:
    """Restore a section; returns its rejected parts: the whole value if it is malformed."""
    try:
        aside = section.restore(value, now=now)
    except ValueError as error:
        section.clear()
        aside = [(value, str(error))]
    return [Rejected(raw, f"{SECTION}{name}: {reason}") for raw, reason in aside or ()]


def section_text(name: str, value: Any) -> str:
    """A section as JSON text, or a ``DamagedStoreError``."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DamagedStoreError(f"its section {name!r} is not JSON data: {error}") from None
