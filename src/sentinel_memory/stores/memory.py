"""A store in the process, for tests and for programs that keep documents themselves."""

from __future__ import annotations

import json

from ._protocol import State

__all__ = ["MemoryStore"]


class MemoryStore:
    """Keeps a copy of the document."""

    def __init__(self, state: State | None = None) -> None:
        self._text = None if state is None else json.dumps(state)

    def load(self) -> State | None:
        """A copy of what was saved."""
        return None if self._text is None else json.loads(self._text)

    def save(self, state: State, /) -> None:
        """Keep a copy."""
        self._text = json.dumps(state)
