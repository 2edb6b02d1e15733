"""L0: scratch values that live for minutes, by reference, and are never saved."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Final, NamedTuple

from ._basics.heap import LazyHeap
from ._basics.numbers import warn_ignored
from ._basics.times import DURATION, expiry, is_live, milliseconds
from .entry import check_key

__all__ = ["Cache"]


_NOTHING: Final = object()


class _Value(NamedTuple):
    value: Any
    expires: int | None
    serial: int


class Cache:
    """``memory.cache``: any Python value by reference, gone at its TTL, never saved.

    >>> from sentinel_memory import Memory
    >>> cache = Memory().cache
    >>> cache.put("weather", {"Prague": 21}, ttl=600)
    >>> cache.get("weather")
    {'Prague': 21}
    """

    # ``_values`` is the truth, and every call changes it in one step, so that an exception between
    # two lines leaves no half of a value. The rest only finds what has expired: a serial number
    # there whose value is another one by now says nothing.

    def __init__(
        self, ttl: float, *, now: Callable[[], int], lock: AbstractContextManager[Any]
    ) -> None:
        self._ttl = ttl
        self._now = now
        self._lock = lock
        self._last_serial = 0
        self._values: dict[str, _Value] = {}
        self._keys: dict[int, str] = {}  # of the values that expire, by serial number
        self._expiries = LazyHeap(self._keys)  # (expiry, serial)

    def put(self, key: str, value: Any, *, ttl: float | timedelta | None = None) -> None:
        """Keep ``value`` for ``ttl`` seconds, or a ``timedelta``.

        Without one that is more than 0, for the ``cache_ttl`` of the memory.
        """
        key = check_key(key)
        duration = milliseconds(ttl)
        if duration is None:
            duration = self._ttl
            if ttl is not None:
                warn_ignored("ttl", ttl, DURATION, "the cache_ttl")
        now = self._now()
        with self._lock:
            self._drop_expired(now)
            self._last_serial += 1
            serial, expires = self._last_serial, expiry(now, duration)
            if expires is not None:
                self._keys[serial] = key
                self._expiries.push((expires, serial))
            former = self._values.get(key)
            self._values[key] = _Value(value, expires, serial)
            self._forget_serial(former)

    def get(self, key: str, default: Any = None) -> Any:
        """The value itself, or ``default`` if there is none or its time is over."""
        key = check_key(key)
        now = self._now()
        with self._lock:
            found = self._values.get(key)
            return found.value if found is not None and is_live(found.expires, now) else default

    def get_or_put(
        self, key: str, make: Callable[[], Any], *, ttl: float | timedelta | None = None
    ) -> Any:
        """The live value of that key, or what ``make()`` returns, which is then kept for ``ttl``.

        ``make`` runs without a lock, so that two threads may both make a value; the later one is
        kept. What it raises reaches the caller, and nothing is kept.

        >>> from sentinel_memory import Memory
        >>> Memory().cache.get_or_put("menu", lambda: ["satay", "rice"], ttl=60)
        ['satay', 'rice']
        """
        value = self.get(key, _NOTHING)
        if value is _NOTHING:
            value = make()
            self.put(key, value, ttl=ttl)
        return value

    def __contains__(self, key: str) -> bool:
        return self.get(key, _NOTHING) is not _NOTHING

    def delete(self, key: str) -> bool:
        """Drop the value; ``True`` if a live one went."""
        key = check_key(key)
        now = self._now()
        with self._lock:
            found = self._values.pop(key, None)
            self._forget_serial(found)
        return found is not None and is_live(found.expires, now)

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._values.clear()
            self._keys.clear()
            self._expiries.clear()

    def count(self, now: int) -> int:
        """How many values are live at ``now``, in epoch milliseconds."""
        with self._lock:
            return sum(is_live(value.expires, now) for value in self._values.values())

    def _forget_serial(self, value: _Value | None) -> None:
        if value is not None and self._keys.pop(value.serial, None) is not None:
            self._expiries.died()

    def _drop_expired(self, now: int) -> None:
        # At every put, so that what nobody asks for again does not pile up.
        while (first := self._expiries.first()) and first[0] <= now:
            key = self._keys[first[-1]]
            if key in self._values and self._values[key].serial == first[-1]:
                del self._values[key]
            del self._keys[first[-1]]
            self._expiries.died()

    def __len__(self) -> int:
        return self.count(self._now())

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Cache of {len(self)}>"
