"""The document of a memory: reading one with care, and what a load found in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

from .entry import Entry, entry_from_state
from .errors import DamagedStoreError
from .retention import Compaction
from .stores._protocol import Section

__all__ = [
    "RESERVED",
    "VERSION",
    "Document",
    "LoadResult",
    "Rejected",
    "read_document",
    "restore_section",
    "section_text",
    "storable",
    "stored_forms",
]

VERSION: Final = 1
RESERVED: Final = frozenset({"version", "entries", "rejected"})  # no names of sections


class Rejected(NamedTuple):
    """What a load did not take over: the raw stored value, and why."""

    entry: Any
    reason: str


class LoadResult(NamedTuple):
    """What ``load`` or ``restore`` found.

    ``loaded`` counts the valid entries, the expired ones too, before any compaction. ``dropped``
    counts what is not valid; ``rejected`` has it, with a reason each. ``compaction`` is what had
    to go because it was more than the limit, or ``None``; the next save removes it from the store.
    """

    loaded: int
    dropped: int
    rejected: tuple[Rejected, ...] = ()
    compaction: Compaction | None = None

    def __repr__(self) -> str:
        return f"LoadResult(loaded={self.loaded}, dropped={self.dropped})"


class Document(NamedTuple):
    """A document taken apart."""

    entries: list[Entry]
    sections: dict[str, Any]
    rejected: list[Rejected]  # in this reading
    rejected_before: list[Any]  # in earlier ones, as stored


def read_document(state: object) -> Document:
    """Take ``state`` apart; a ``DamagedStoreError`` if it is not a document of this version."""
    if not isinstance(state, dict):
        raise DamagedStoreError(f"it must be an object, not {type(state).__name__}")
    version = state.get("version")
    if type(version) is not int or version != VERSION:
        newer = type(version) is int and version > VERSION
        raise DamagedStoreError(
            f"its version is {version!r}, and this release reads version {VERSION} only"
            if newer
            else f"its version must be the integer {VERSION}, not {version!r}"
        )
    raw_entries = state.get("entries")
    if not isinstance(raw_entries, list):
        raise DamagedStoreError("its entries are missing or not a list")
    entries: dict[str, Entry] = {}
    rejected: list[Rejected] = []
    raw_by_key: dict[str, Any] = {}
    for raw in raw_entries:
        try:
            entry = entry_from_state(raw)
        except (TypeError, ValueError) as error:
            rejected.append(Rejected(raw, str(error)))
            continue
        if entries.pop(entry.key, None) is not None:
            rejected.append(Rejected(raw_by_key[entry.key], "its key comes again later"))
        entries[entry.key] = entry
        raw_by_key[entry.key] = raw
    sections = {name: value for name, value in state.items() if name not in RESERVED}
    before = state.get("rejected", [])
    if not isinstance(before, list):
        rejected.append(Rejected(before, "the section rejected must be a list"))
        before = []
    return Document(list(entries.values()), sections, rejected, list(before))


def storable(value: Any) -> Any:
    """A copy of ``value`` as JSON data, lone surrogates and all; ``ValueError`` if it is none."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not JSON data: {error}") from None


def restore_section(name: str, section: Section, value: Any, now: int) -> list[Rejected]:
    """Restore a section; one that is malformed is empty, and what it was is returned."""
    try:
        section.restore(value, now=now)
    except ValueError as error:
        section.clear()
        return [Rejected(value, f"section {name}: {error}")]
    return []


def stored_forms(rejected: Iterable[Rejected]) -> Iterator[dict[str, Any]]:
    """What the section ``rejected`` keeps of them."""
    for raw, reason in rejected:
        # What came from a file is JSON; a program may hand over anything, and that is not kept.
        with suppress(ValueError):
            yield {"entry": storable(raw), "reason": storable(reason)}


def section_text(name: str, value: Any) -> str:
    """A section as JSON text, or a ``DamagedStoreError``."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DamagedStoreError(f"its section {name!r} is not JSON data: {error}") from None
