"""The one rule for numbers, and the defaults of a memory in one table.

A numeric option that is not a finite real number in its range is ignored and the documented
default is used; it is never clamped, and never silent: an ``IgnoredValueWarning`` says so at the
caller's line. ``bool`` is not a number. Zero is accepted where the range includes it. ``None``
means: not given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any, Final

from .callers import warn_caller
from .checks import brief

__all__ = [
    "DEFAULTS",
    "IgnoredValueWarning",
    "finite_real",
    "in_unit_interval",
    "optional_count",
    "warn_ignored",
    "whole",
    "whole_option",
]


class IgnoredValueWarning(UserWarning):
    """The value of an option was not in its range, so it was ignored and the default is used."""


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
        "limits": None,
        "half_life": None,
        "data_chars": None,
    }
)
"""The default of each numeric option: durations in seconds, counts as whole numbers.

``recall_limit`` is the ``limit`` of ``recall``. ``None`` means no expiry (``ttl``), no limits of
kinds (``limits``), no fading (``half_life``) and data of any length (``data_chars``).

>>> DEFAULTS["limit"], DEFAULTS["recency_window"]
(500, 86400)
"""


def finite_real(value: object) -> Any:
    """``value`` if it is a finite real number and not a ``bool``, otherwise ``None``.

    The result is of the type of ``value``: ``int``, ``float``, or another ``numbers.Real`` such as
    ``Fraction`` or a NumPy number. An integer too large for a float is finite.
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


def whole_option(value: object, default_name: str, *, least: int, name: str = "") -> int:
    """A count, or with a warning the default under ``default_name`` in ``DEFAULTS``.

    ``name`` is the name of the option in the warning, if it is not ``default_name``.
    """
    number = whole(value, least - 1, least=least)
    if number >= least:
        return number
    used = int(DEFAULTS[default_name])
    if value is not None:
        wanted = f"a whole number of at least {least}"
        warn_ignored(name or default_name, value, wanted, f"the default, {used},")
    return used


def optional_count(name: str, value: object, used_instead: str) -> int | None:
    """A whole number of at least 1; else ``None``, with a warning unless ``value`` is ``None``."""
    found = whole(value, 0, least=1)
    if not found and value is not None:
        warn_ignored(name, value, "a whole number of at least 1", used_instead)
    return found or None


def warn_ignored(name: str, value: object, wanted: str, used_instead: str) -> None:
    """Warn, at the line that called the package, that the value of an option is ignored.

    ``used_instead`` names the value that is used. Call this before any lock is taken and anything
    is changed: a program may make the warning an error."""
    text = f"{name} must be {wanted}, not {brief(value)}; it is ignored, and {used_instead} is used"
    warn_caller(text, IgnoredValueWarning)
