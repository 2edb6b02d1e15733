"""Hooks that objects with locks run before a fork, and after it in the parent and in the child.

A forked child has one thread, so a lock that another thread held stays locked there for ever, and
data that it was changing stays half changed. Objects that could be caught by this register
themselves with a ``Forks``, which holds them weakly and sets the hooks of the interpreter once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

__all__ = ["Forks"]

_T = TypeVar("_T")


def _nothing(_: Any) -> None:
    pass


class Forks(Generic[_T]):
    """The objects of one kind, and the hooks that are run for each of them at a fork.

    The three functions are called for the same objects: those that existed when the fork began.
    """

    def __init__(
        self,
        *,
        in_child: Callable[[_T], object],
        before: Callable[[_T], object] = _nothing,
        in_parent: Callable[[_T], object] = _nothing,
    ) -> None:
        self._before, self._in_parent, self._in_child = before, in_parent, in_child
        self._owners: WeakSet[Any] = WeakSet()
        self._registering = threading.RLock()  # held by a fork from before it to after it
        self._thread = threading.local()  # the objects that this thread prepared before it forked
        self._hooked = False

    def register(self, owner: _T) -> None:
        """Call the functions for this object, too, at every fork while it lives."""
        with self._registering:
            self._owners.add(owner)
            if not self._hooked and hasattr(os, "register_at_fork"):
                self._hooked = True
                os.register_at_fork(
                    before=self._begin,
                    after_in_parent=lambda: self._end(self._in_parent),
                    after_in_child=lambda: self._end(self._in_child),
                )

    def _begin(self) -> None:
        self._registering.acquire()
        self._thread.prepared = list(self._owners)
        for owner in self._thread.prepared:
            self._before(owner)

    def _end(self, after: Callable[[_T], object]) -> None:
        for owner in self._thread.prepared:
            after(owner)
        self._thread.prepared = []
        self._registering.release()
