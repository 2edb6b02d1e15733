"""The document of a memory: its version, its named sections, and the check that it is one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeAlias

__all__ = ["RESERVED", "VERSION", "Attachment", "Section", "State", "shape_problem"]

VERSION: Final = 1
RESERVED: Final = frozenset({"version", "entries", "rejected"})  # no names of sections

State: TypeAlias = dict[str, Any]
"""One memory as a JSON document: ``version``, ``entries``, ``working`` and further sections."""


class Section(Protocol):
    """A named part of the document, attached with ``Memory.attach``.

    The memory calls these methods under its lock; they must not call the memory.
    ``now`` is the time of the call in epoch milliseconds.
    """

    def dump(self, *, now: int) -> Any:
        """The section as JSON data."""

    def restore(self, value: Any, /, *, now: int) -> None:
        """Take over what ``dump`` returned, or raise ``ValueError`` and change nothing."""

    def clear(self) -> None:
        """Keep nothing."""


class Attachment(Protocol):
    """What ``Memory.attach`` returns: how a section's public side reaches the memory.

    Both yield the time of the call in epoch milliseconds.
    """

    def read(self) -> AbstractContextManager[int]:
        """Hold the memory's lock, so that no change is seen half-made."""

    def change(self) -> AbstractContextManager[int]:
        """Hold the lock for a change; after it, save if the memory saves by itself.

        A change that raises counts as none.
        """


def shape_problem(state: Any) -> str | None:
    """Why ``state``, JSON data, is not a document of this version; ``None`` if it is one."""
    if not isinstance(state, dict):
        return "it is not an object"
    version = state.get("version")
    if type(version) is not int or version != VERSION:
        if type(version) is int and version > VERSION:
            return f"its version is {version!r:.40}, from a newer release"
        return f"its version must be the integer {VERSION}, not {version!r:.40}"
    if not isinstance(state.get("entries"), list):
        return "its entries are missing or not a list"
    return None
