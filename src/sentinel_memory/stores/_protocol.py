"""What a store is, and what a named section of its document is.

A store moves one JSON document, nothing else; growth happens inside the document, in sections.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, runtime_checkable

__all__ = ["Attachment", "Section", "State", "Store"]

State: TypeAlias = dict[str, Any]
"""One memory as a JSON document: ``version``, ``entries``, ``working`` and further sections."""


@runtime_checkable
class Store(Protocol):
    """Where a memory is kept: any object with these two synchronous methods."""

    def load(self) -> State | None:
        """The stored document, or ``None`` if nothing has been stored yet.

        A document that cannot be trusted is a ``DamagedStoreError``, never ``None``.
        """

    def save(self, state: State, /) -> None:
        """Replace the stored document, wholly or not at all.

        A store that several writers share raises ``StoreConflictError`` when the stored
        document is not the one it last loaded or saved.
        """


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
