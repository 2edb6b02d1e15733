"""The one rule for numbers, and the defaults of a memory in one table.

A numeric option that is not a finite real number in its range is ignored and the documented
default is used; it is never clamped. ``bool`` is not a number. Zero is one where the range has it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any, Final

__all__ = [
    "DEFAULTS",
    "finite_real",
    "in_unit_interval",
    "whole",
    "whole_option",
]

DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "limit": 500,
        "importance": 0.5,
        "ttl": None,
        "recency_window": 86_400,
        "cache_ttl": 300,
        "working_ttl": 3_600,
        "n": 10,
        "recall_limit": 5,
        "attempts": 100,
    }
)
"""What each numeric option is when it is not given: durations in seconds, counts as whole numbers.

``recall_limit`` is the ``limit`` of ``recall``; a ``ttl`` of ``None`` is no expiry.

>>> DEFAULTS["limit"], DEFAULTS["recency_window"]
(500, 86400)
"""


def finite_real(value: object) -> Any:
    """``value`` if it is a finite real number and not a ``bool``, otherwise ``None``.

    An integer too large for a float is finite.
    """
    kind = type(value)
    if kind is int:
        return value
    if kind is not float and (not isinstance(value, Real) or isinstance(value, bool)):
        return None
    try:
        return value if math.isfinite(value) else None  # type: ignore[arg-type]
    except OverflowError:
        return value


def in_unit_interval(value: object) -> float | None:
    """``value`` as a float if it is a number in [0, 1], otherwise ``None``."""
    number = finite_real(value)
    return float(number) if number is not None and 0 <= number <= 1 else None


def whole(value: object, default: int, *, least: int) -> int:
    """A count: a whole number of at least ``least``, or ``default``."""
    number = finite_real(value)
    if number is None or number < least or number != math.floor(number):
        return default
    return int(number)


def whole_option(value: object, default: str, *, least: int) -> int:
    """A count, or the default of that name."""
    return whole(value, int(DEFAULTS[default]), least=least)
