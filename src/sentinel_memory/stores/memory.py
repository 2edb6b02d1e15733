"""A store inside the process: for tests, and for programs that move documents themselves."""

from __future__ import annotations

import json

from ..document import State
from ._codec import to_bytes

__all__ = ["MemoryStore"]


class MemoryStore:
    """Keeps a copy of one document: ``load`` never returns the object that was saved.

    ``state`` is the document to begin with, ``None`` for none. A document that JSON cannot hold
    is a ``TypeError`` or ``ValueError``, and the one that was kept before stays.

    >>> store = MemoryStore()
    >>> store.load() is None
    True
    >>> store.save({"version": 1, "entries": []})
    >>> store.load()
    {'version': 1, 'entries': []}
    """

    def __init__(self, state: State | None = None) -> None:
        self._text: bytes | None = None if state is None else to_bytes(state)

    def load(self) -> State | None:
        """A fresh copy of the document, ``None`` if there is none."""
        text = self._text
        if text is None:
            return None
        state: State = json.loads(text)
        return state

    def save(self, state: State, /) -> None:
        """Keep a copy of ``state`` in place of the former one."""
        self._text = to_bytes(state)
