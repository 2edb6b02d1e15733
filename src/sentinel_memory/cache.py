"""L0: scratch values that live for minutes, by reference, and are never saved."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from ._basics.heap import LazyHeap
from ._basics.times import expiry, is_live, milliseconds
from .entry import check_key

__all__ = ["Cache"]


class Cache:
    """``memory.cache``: any Python value by reference, gone at its TTL, never saved.

    >>> from sentinel_memory import Memory
    >>> cache = Memory().cache
    >>> cache.put("weather", {"Prague": 21}, ttl=600)
    >>> cache.get("weather")
    {'Prague': 21}
    """

    def __init__(
        self, ttl: float, *, now: Callable[[], int], lock: AbstractContextManager[Any]
    ) -> None:
        self._ttl = ttl
        self._now = now
        self._lock = lock
        self._reset()

    def _reset(self) -> None:
        self._serial = 0
        self._serials: dict[str, int] = {}
        self._values: dict[int, tuple[str, Any, int | None]] = {}  # key, value, expiry
        self._expiries = LazyHeap(self._values)

    def put(self, key: str, value: Any, *, ttl: float | timedelta | None = None) -> None:
        """Keep ``value`` for ``ttl`` seconds, or a ``timedelta``.

        Without one that is more than 0, for the ``cache_ttl`` of the memory.
        """
        key = check_key(key)
        duration = milliseconds(ttl) or self._ttl
        now = self._now()
        with self._lock:
            self._drop_expired(now)
            self._remove(key)
            self._serial += 1
            expires = expiry(now, duration)
            self._serials[key] = self._serial
            self._values[self._serial] = (key, value, expires)
            if expires is not None:
                self._expiries.push((expires, self._serial))

    def get(self, key: str, default: Any = None) -> Any:
        """The value itself, or ``default`` if there is none or its time is over."""
        key = check_key(key)
        now = self._now()
        with self._lock:
            serial = self._serials.get(key)
            if serial is None or not self._is_live(serial, now):
                return default
            return self._values[serial][1]

    def delete(self, key: str) -> bool:
        """Drop the value; ``True`` if a live one went."""
        key = check_key(key)
        now = self._now()
        with self._lock:
            serial = self._serials.get(key)
            live = serial is not None and self._is_live(serial, now)
            self._remove(key)
        return live

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._reset()

    def __len__(self) -> int:
        now = self._now()
        with self._lock:
            return self._live_count(now)

    def _live_count(self, now: int) -> int:
        return sum(1 for serial in self._values if self._is_live(serial, now))

    def _is_live(self, serial: int, now: int) -> bool:
        return is_live(self._values[serial][2], now)

    def _remove(self, key: str) -> None:
        serial = self._serials.pop(key, None)
        if serial is not None:
            _, _, expires = self._values.pop(serial)
            if expires is not None:
                self._expiries.died()

    def _drop_expired(self, now: int) -> None:
        # At every put, so that what nobody asks for again does not pile up.
        while (first := self._expiries.first()) and first[0] <= now:
            self._expiries.pop()
            key, _, _ = self._values.pop(first[-1])
            del self._serials[key]

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Cache of {len(self)}>"
