"""Batches: blocks of code that put off automatic saves, told apart by context, not by thread."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

__all__ = ["Batch", "is_in_batch", "open_batch"]


class Batch:
    """A batch under way, which puts off the automatic saves of ``owner``; ``None`` once closed."""

    __slots__ = ("owner",)

    def __init__(self, owner: object) -> None:
        self.owner: object | None = owner

    def close(self) -> None:
        """Put off nothing any more, in whatever context the batch was opened."""
        self.owner = None


# The open batches of the running code. Tasks and threads that start with a copy of its context have
# them, too. A batch is closed by its own object: a context that was copied sees that, and a block
# that ends in another context than it began in (a generator's, say) still closes its own batch.
_batches: Final[ContextVar[tuple[Batch, ...]]] = ContextVar("sentinel_memory.batches", default=())


def open_batch(batch: Batch) -> None:
    """Let the running code be in a batch."""
    _batches.set((*(other for other in _batches.get() if other.owner is not None), batch))


def is_in_batch(owner: object) -> bool:
    """Whether the running code is in an open batch of that owner."""
    return any(batch.owner is owner for batch in _batches.get())
