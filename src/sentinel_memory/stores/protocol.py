"""The protocol of a store: any object that loads and saves one JSON document."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..document import State

__all__ = ["Changes", "Store"]


@runtime_checkable
class Store(Protocol):
    """The place where a memory is kept: any object with these two synchronous methods."""

    def load(self) -> State | None:
        """The stored document, or ``None`` if nothing has been stored yet.

        A document that cannot be trusted is a ``DamagedStoreError``, never ``None``.
        """

    def save(self, state: State, /) -> None:
        """Replace the stored document, wholly or not at all.

        A store that several writers share raises ``StoreConflictError`` when the stored
        document is not the one it last loaded or saved.
        """


class Changes(NamedTuple):
    """The differences between a document and the one that a store last loaded or saved.

    ``entries``, in their stored form, go to the end of the document, in this order, each replacing
    any other of its key; ``gone`` are keys to remove, some of which may not be there; ``rest`` is
    the whole document without its entries.
    """

    entries: list[dict[str, Any]]
    gone: list[str]
    rest: State
