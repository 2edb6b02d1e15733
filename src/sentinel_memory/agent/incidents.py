"""Incidents: failures, counted by category, each fading with a half-life."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final, NamedTuple

from .._basics.checks import check_str
from .._basics.numbers import finite_real, warn_ignored, whole
from .._basics.times import epoch_milliseconds, milliseconds
from ..memory import Memory

__all__ = ["Incident", "Incidents"]

_HALF_LIFE: Final = timedelta(days=90)

# Written as a call: in the body of a class a field may not be called like a method of tuples.
_Incident = NamedTuple(  # noqa: UP014
    "_Incident", [("count", int), ("level", float), ("last_at", float | None)]
)


class Incident(_Incident):
    """The incidents of one category: how many there were (``count``), how much of them is left
    after fading (``level``), and the time of the last one in epoch seconds, ``None`` without one.
    """

    __slots__ = ()


class Incidents:
    """What went wrong, by category, saved in the same document as the memory.

    ``categories`` are all that can be recorded. Of the ``level`` of a category, each incident is
    ``0.5 ** (age / half_life)``: a year after the last one next to nothing is left, while
    ``count`` stays until ``memory.clear()``. ``half_life`` is in seconds or a ``timedelta``, more
    than 0 (90 days); ``math.inf`` is no fading. ``name`` is that of the section in the document.

    Raises ``TypeError`` for categories that are not texts, ``ValueError`` for a name that is
    taken.

    >>> memory = Memory()
    >>> incidents = Incidents(memory, ["security", "rollback"])
    >>> incidents.record("security").level
    1.0
    >>> incidents.snapshot()["rollback"].count
    0
    """

    def __init__(
        self,
        memory: Memory,
        categories: Iterable[str],
        *,
        half_life: float | timedelta = _HALF_LIFE,
        name: str = "incidents",
    ) -> None:
        if isinstance(categories, str):
            raise TypeError("categories must be a collection of names, not one str")
        known = list(categories)
        for category in known:
            check_str("a category", category)
        self._categories: Final = tuple(dict.fromkeys(str.__str__(one) for one in known))
        self._section: Final = _Section(_half_life(half_life))
        self._attached: Final = memory.attach(name, self._section)

    def record(self, category: str, n: int | float = 1) -> Incident:
        """Count ``n`` incidents of a category, a whole number of at least 1, and say how it is.

        With autosave they are saved when this returns. Raises ``ValueError`` for a category that
        was not named, ``TypeError`` for what is not a ``str``.
        """
        check_str("category", category)
        category = str.__str__(category)
        if category not in self._categories:
            raise ValueError(f"no category {category!r}; there are {', '.join(self._categories)}")
        number = whole(n, 0, least=1)
        if not number:
            warn_ignored("n", n, "a whole number of at least 1", "the default, 1,")
        return self._attached.change(
            lambda now: self._section.record(category, number or 1, now=now)
        )

    def snapshot(self) -> dict[str, Incident]:
        """Every category as it is now, also those that only the document still has."""
        return self._attached.read(
            lambda now: {
                category: self._section.incident(category, now=now)
                for category in dict.fromkeys((*self._categories, *self._section.stored()))
            }
        )

    def __repr__(self) -> str:
        return f"<Incidents of {len(self._categories)} categories>"


def _half_life(value: object) -> float:
    if value == math.inf:
        return math.inf
    found = milliseconds(value)
    if found is None and value is not None:
        wanted = "more than 0 seconds or a timedelta"
        warn_ignored("half_life", value, wanted, "the default, 90 days,")
    return _HALF_LIFE.total_seconds() * 1000 if found is None else found


class _Kept(NamedTuple):
    number: int
    level: float  # at ``at_ms``
    at_ms: int  # epoch milliseconds of the last incident


class _Section:
    """The section ``incidents``: for each category one level and the time at which it held."""

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        self._kept: dict[str, _Kept] = {}

    def clear(self) -> None:
        self._kept = {}

    def stored(self) -> list[str]:
        return list(self._kept)

    def incident(self, category: str, *, now: int) -> Incident:
        kept = self._kept.get(category)
        if kept is None:
            return Incident(0, 0.0, None)
        return Incident(kept.number, self._faded(kept, now), kept.at_ms / 1000)

    def record(self, category: str, number: int, *, now: int) -> Incident:
        kept = self._kept.get(category, _Kept(0, 0.0, now))
        # A clock that went back moves no incident into the past.
        level = self._faded(kept, now) + number
        self._kept = {
            **self._kept,
            category: _Kept(kept.number + number, level, max(now, kept.at_ms)),
        }
        return self.incident(category, now=now)

    def _faded(self, kept: _Kept, now: int) -> float:
        age = max(0, now - kept.at_ms)
        return float(kept.level * 0.5 ** (age / self._half_life))

    def dump(self, *, now: int) -> dict[str, Any]:
        return {
            category: {"count": kept.number, "level": kept.level, "at": kept.at_ms}
            for category, kept in self._kept.items()
        }

    def restore(self, value: Any, /, *, now: int) -> None:
        if not isinstance(value, dict):
            raise ValueError("incidents must be an object")
        self._kept = {category: _stored(category, raw) for category, raw in value.items()}


def _stored(category: str, raw: Any) -> _Kept:
    if not isinstance(raw, dict):
        raise ValueError(f"incidents of {category!r} must be an object")
    number, level = raw.get("count"), finite_real(raw.get("level"))
    if type(number) is not int or number < 1:
        raise ValueError(f"count of {category!r} must be a whole number of at least 1")
    if level is None or not 0 <= level <= number:
        raise ValueError(f"level of {category!r} must be a number from 0 to its count")
    return _Kept(number, float(level), epoch_milliseconds(raw.get("at"), f"at of {category!r}"))
