"""The two locks of a memory, usable again in a forked child."""

from __future__ import annotations

import os
import threading
from typing import Final
from weakref import WeakSet

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
        _register(self)


_every: Final[WeakSet[Locks]] = WeakSet()
_changing_every: Final = threading.RLock()  # held by a fork from before it to after it
_held = threading.local()  # what this thread took before it forked
_handled = False


def _register(locks: Locks) -> None:
    global _handled
    with _changing_every:
        _every.add(locks)
        if not _handled and hasattr(os, "register_at_fork"):
            _handled = True
            os.register_at_fork(
                before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child
            )


def _before_fork() -> None:
    _changing_every.acquire()
    _held.locks = list(_every)
    for locks in _held.locks:
        locks.state.acquire()


def _in_parent() -> None:
    for locks in _held.locks:
        locks.state.release()
    _held.locks = []
    _changing_every.release()


def _in_child() -> None:
    for locks in _held.locks:
        locks.writing = threading.RLock()
    _in_parent()
