"""The two locks of a memory.

Theory of operation
-------------------
``changes`` is the long lock. A change holds it from its first step until it is saved, so that saves
happen in the order of the changes and a transaction keeps other changes out until its own save.

``state`` is the short lock. It is held while the memory is looked at, and by a change while it
changes the contents, so that nobody sees a half-made change. Whoever holds it waits for nothing, no
disk and no callback of the caller, so that readers are never held up for long.

They are always taken in this order. Both are re-entrant locks that are used with ``with`` and
nothing else: then no exception, whenever it comes (Ctrl-C, a signal handler), leaves one locked.
For the same reason the calls of a memory hand a function to the one that holds the locks instead of
being a block of a context manager written in Python, whose own lines an exception can hit.

One thread may come in twice: a signal handler, a finalizer that the garbage collector runs, or an
index that calls its memory. A re-entrant lock lets it pass, so ``is_looking`` and ``is_changing``
tell whether it has. To ask a lock for its owner takes a microsecond, so whoever takes a lock notes
its thread here, and only a thread that finds itself noted asks. A note that is out of date does no
harm, and a lock that was taken and not yet noted guards nothing yet.
"""

from __future__ import annotations

import threading
from contextlib import suppress

__all__ = ["Locks"]


class Locks:
    """The long lock ``changes`` and the short lock ``state``, usable again in a forked child."""

    def __init__(self) -> None:
        self.looking_thread = self.changing_thread = 0
        self.state = threading.RLock()
        self._owner_of_state = threading.Condition(self.state)
        self._renew_changes()

    def _renew_changes(self) -> None:
        self.changes = threading.RLock()
        self._owner_of_changes = threading.Condition(self.changes)

    def is_looking(self) -> bool:
        """Whether this thread holds ``state``: it is in the middle of a call."""
        return _is_owned(self._owner_of_state)

    def is_changing(self) -> bool:
        """Whether this thread holds ``changes``: it is changing, loading or saving."""
        return _is_owned(self._owner_of_changes)

    def before_fork(self) -> None:
        """Wait until no change is half made, so that the child gets none."""
        self.state.acquire()

    def after_fork_in_parent(self) -> None:
        """Go on as before the fork."""
        self.state.release()

    def after_fork_in_child(self) -> None:
        """Go on without the other threads, one of which may have held the long lock."""
        if not self.is_changing():
            self._renew_changes()
        self.state.release()


def _is_owned(condition: threading.Condition) -> bool:
    # The one documented call that tells whether the calling thread owns a lock.
    with suppress(RuntimeError):
        condition.notify(0)
        return True
    return False
