"""The exceptions, and the warning, that stored data can cause.

Wrong calls raise builtin exceptions (``TypeError``, ``ValueError``) that name the argument.
The classes here are for what a stored document did: it was damaged, or somebody else changed it.
"""

from __future__ import annotations

__all__ = [
    "AlteredStoreWarning",
    "DamagedStoreError",
    "SentinelMemoryError",
    "StoreConflictError",
]


class SentinelMemoryError(Exception):
    """Base of every exception that this package defines."""


class DamagedStoreError(SentinelMemoryError, ValueError):
    """A stored document is not one that this package can read; it was left untouched.

    ``reason`` says what is wrong with it, ``path`` where it is (``None`` for a document
    that did not come from a file).

    >>> str(DamagedStoreError("it is empty", path="guest.json"))
    'guest.json cannot be read as a memory: it is empty; it was left untouched'
    """

    def __init__(self, reason: str, path: str | None = None) -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        subject = "the state" if self.path is None else self.path
        return f"{subject} cannot be read as a memory: {self.reason}; it was left untouched"


class StoreConflictError(SentinelMemoryError):
    """The stored document changed since this store last read or wrote it; nothing was written.

    Both states are intact: the other one in the store, this one in the memory. The same if the
    store was read, but the memory could not take over what it has: then load again first.
    """


class AlteredStoreWarning(UserWarning):
    """A file was loaded that is not as it was saved: somebody edited it, or a disk damaged it.

    It is a whole document all the same. The next save makes it one as it was saved; until then,
    ``altered`` of the store is true. The message names the path.
    """
