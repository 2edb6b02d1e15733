"""The document of a memory: reading one with care, and what a load found in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from ..document import RESERVED, VERSION, Section
from ..entry import Entry, entry_from_state
from ..errors import DamagedStoreError
from ..results import Compaction, Rejected

__all__ = [
    "Counters",
    "Document",
    "read_document",
    "restore_section",
    "section_text",
    "storable",
    "stored_forms",
]


class Counters(NamedTuple):
    """What compactions did since the memory was made."""

    compactions: int = 0
    expired: int = 0
    evicted: int = 0

    def after(self, compaction: Compaction) -> Counters:
        """With those of one more."""
        return Counters(
            self.compactions + 1,
            self.expired + len(compaction.expired),
            self.evicted + len(compaction.evicted),
        )


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
