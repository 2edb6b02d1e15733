"""The two locks of a memory.

Theory of operation
-------------------
A change holds the long lock from its first step until it is saved, so that saves
happen in the order of the changes and a transaction keeps other changes out until its own save.

The short lock is held while the memory is looked at, and by a change while it
changes the contents, so that nobody sees a half-made change. Whoever holds it waits for nothing, no
disk and no callback of the caller, so that readers are never held up for long.

They are always taken in this order. Both are re-entrant locks that are used with ``with`` and
nothing else: then no exception, whenever it comes (Ctrl-C, a signal handler), leaves one locked.
For the same reason the calls of a memory hand a function to the one that holds the locks instead of
being a block of a context manager written in Python, whose own lines an exception can hit.

A thread may call the memory while it is inside another call of it: from a signal handler, from a
finalizer that the garbage collector runs, or from an index that calls its memory. A re-entrant lock
lets it pass, so ``holds_short`` and ``holds_long`` tell whether it has. To ask a lock for its owner
takes a microsecond, so whoever takes a lock notes its thread here, puts back the former note at the
end, and only a thread that finds itself noted asks. A note that an exception has left does no
harm, and between taking a lock and noting it, its holder has not changed anything.
"""

from __future__ import annotations

import threading
from contextlib import suppress

__all__ = ["Locks"]


class Locks:
    """The long and the short lock of a memory, usable again in a forked child."""

    def __init__(self) -> None:
        self.short_thread = self.long_thread = 0  # notes of who holds them
        self.short = threading.RLock()
        self._owner_of_short = threading.Condition(self.short)
        self._renew_long()

    def _renew_long(self) -> None:
        self.long = threading.RLock()
        self._owner_of_long = threading.Condition(self.long)

    def holds_short(self) -> bool:
        """Whether this thread holds the short lock: it is looking at the contents."""
        return _is_owned(self._owner_of_short)

    def holds_long(self) -> bool:
        """Whether this thread holds the long lock: it is changing, loading or saving."""
        return _is_owned(self._owner_of_long)

    def before_fork(self) -> None:
        """Wait until no change is half made, so that the child inherits none."""
        self.short.acquire()

    def after_fork_in_parent(self) -> None:
        """Go on as before the fork."""
        self.short.release()

    def after_fork_in_child(self) -> None:
        """Go on without the other threads, one of which may have held the long lock."""
        if not self.holds_long():
            self._renew_long()
        self.short.release()


def _is_owned(condition: threading.Condition) -> bool:
    # The one documented call that tells whether the calling thread owns a lock.
    with suppress(RuntimeError):
        condition.notify(0)
        return True
    return False
