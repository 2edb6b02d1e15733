"""Pools: the memories of many users, held in the process while they are in use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import WeakValueDictionary

from ._basics.checks import check_callable
from ._basics.forks import Forks
from ._basics.numbers import optional_count
from .memory import Memory

if TYPE_CHECKING:
    import asyncio

__all__ = ["AsyncPool", "MemoryPool"]

_Key = TypeVar("_Key", bound=Hashable)
_T = TypeVar("_T")

_SIZE: Final = 1000
"""Memories held by default. One of 500 entries takes about 0.7 MB."""


class MemoryPool(Generic[_Key]):
    """The hot memories of many keys (users, say), each made once and refreshed when asked for.

    ``make(key)`` makes a memory with a store, for a key that has none in the pool. The pool holds
    the ``size`` memories that were asked for last; another one that somebody still holds is given
    out again rather than made twice. Any thread may ask, and two that ask for one key get the same
    memory. A ``size`` that is not a whole number of at least 1 is ignored with a warning.

    Change a memory with ``transact``, so that other processes with a pool of their own, and other
    threads, lose nothing.

    >>> from sentinel_memory import Memory, MemoryStore
    >>> pool = MemoryPool(lambda user: Memory(store=MemoryStore()))
    >>> _ = pool.of("anna").transact(lambda memory: memory.remember("city", "Brno"))
    >>> pool.of("anna").get("city"), len(pool)
    ('Brno', 1)
    """

    def __init__(self, make: Callable[[_Key], Memory], *, size: int | float = _SIZE) -> None:
        check_callable("make", make)
        self._make = make
        self._size = optional_count("size", size, f"the default, {_SIZE},") or _SIZE
        self._hot: OrderedDict[_Key, Memory] = OrderedDict()  # the least recently asked for first
        self._in_use: WeakValueDictionary[_Key, Memory] = WeakValueDictionary()
        self.after_fork_in_child()
        _forks.register(self)

    def after_fork_in_child(self) -> None:
        """Go on without the other threads, which may have held a lock."""
        self._lock = threading.RLock()  # held for moments only, never while a memory is made
        # One for each key that somebody is asking for, so that one maker runs for each.
        self._turns: WeakValueDictionary[_Key, threading.Lock] = WeakValueDictionary()

    def of(self, key: _Key) -> Memory:
        """The memory of a key, as its store has it now.

        Raises what ``make`` raises, and what ``Memory.refresh`` raises: a memory with unsaved
        changes whose store was changed by somebody else is a ``StoreConflictError``.
        """
        memory, is_new = self._memory(key)
        if not is_new:
            memory.refresh()
        return memory

    def transact(self, key: _Key, change: Callable[[Memory], _T]) -> _T:
        """``transact`` of the memory of a key, which loads what is new itself."""
        return self._memory(key)[0].transact(change)

    def discard(self, key: _Key) -> None:
        """Hold no memory of a key any more: of a user who was erased, say."""
        with self._lock:
            self._hot.pop(key, None)
            self._in_use.pop(key, None)

    def __len__(self) -> int:
        """The number of memories that are held."""
        return len(self._hot)

    def _memory(self, key: _Key) -> tuple[Memory, bool]:
        """The memory of a key, and whether it was made now."""
        with self._lock:
            turn = self._turns.get(key)
            if turn is None:
                turn = self._turns[key] = threading.Lock()
        with turn:
            memory = self._in_use.get(key)
            is_new = memory is None
            if memory is None:
                memory = self._make(key)
                if not isinstance(memory, Memory) or memory.store is None:
                    raise TypeError("make must return a Memory with a store")
            with self._lock:
                self._in_use[key] = self._hot[key] = memory
                self._hot.move_to_end(key)
                while len(self._hot) > self._size:
                    self._hot.popitem(last=False)
        return memory, is_new


class AsyncPool(Generic[_Key]):
    """A pool for an event loop: each change runs in a thread, one at a time for each key.

    There is no asynchronous store, because most of the work is taking a document apart and indexing
    it, which would hold up the loop. ``make`` and ``size`` are those of ``MemoryPool``.

    >>> import asyncio
    >>> from sentinel_memory import Memory, MemoryStore
    >>> pool = AsyncPool(lambda user: Memory(store=MemoryStore()))
    >>> async def handle(user: str, text: str) -> str:
    ...     def turn(memory: Memory) -> str:
    ...         memory.remember("last", text)
    ...         return memory.get_context(100).text
    ...     return await pool.transact(user, turn)
    >>> asyncio.run(handle("anna", "hello"))
    'last: hello'
    """

    def __init__(self, make: Callable[[_Key], Memory], *, size: int | float = _SIZE) -> None:
        self._pool = MemoryPool(make, size=size)
        # A lock belongs to one loop; it lives while a task waits for it or holds it.
        self._turns: WeakValueDictionary[tuple[Any, _Key], asyncio.Lock] = WeakValueDictionary()

    async def transact(self, key: _Key, change: Callable[[Memory], _T]) -> _T:
        """``transact`` of the memory of a key, in a thread; changes of one key take turns.

        ``change`` is a plain function: ask a model before or after it. If the task is cancelled,
        the thread ends its work, and the change is saved all the same.
        """
        import asyncio  # only where a loop runs: a program without one need not load it

        name = asyncio.get_running_loop(), key
        turn = self._turns.get(name)
        if turn is None:
            turn = self._turns[name] = asyncio.Lock()
        async with turn:
            return await asyncio.to_thread(self._pool.transact, key, change)

    def discard(self, key: _Key) -> None:
        """Hold no memory of a key any more: of a user who was erased, say."""
        self._pool.discard(key)


_forks: Final[Forks[MemoryPool[Any]]] = Forks(in_child=lambda pool: pool.after_fork_in_child())
