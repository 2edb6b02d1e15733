"""The two locks of a memory, usable again in a forked child."""

from __future__ import annotations

import threading
from typing import Final

from .._basics.forks import Forks

__all__ = ["Locks"]


class Locks:
    """``writing`` is held by one change and its save, ``state`` while the memory is looked at.

    Always taken in this order. Whoever holds ``state`` waits for nothing, so that readers never
    wait for a disk. A fork takes ``state`` first: the child gets no half-made change, and a new
    ``writing``, because a thread that held the old one does not exist there.
    """

    def __init__(self) -> None:
        self.writing = threading.RLock()
        self.state = threading.RLock()
        _forks.register(self)

    def before_fork(self) -> None:
        """Wait until no change is half made."""
        self.state.acquire()

    def in_parent(self) -> None:
        """Go on as before the fork."""
        self.state.release()

    def in_child(self) -> None:
        """Go on without the threads of the parent."""
        self.writing = threading.RLock()
        self.state.release()


_forks: Final = Forks(before=Locks.before_fork, in_parent=Locks.in_parent, in_child=Locks.in_child)
