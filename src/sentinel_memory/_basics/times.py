"""Durations and times: seconds at the public face, whole epoch milliseconds inside."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from .checks import brief
from .numbers import DEFAULTS, finite_real, warn_ignored

__all__ = [
    "DURATION",
    "LAST_EXPIRY",
    "Clock",
    "duration_option",
    "epoch_milliseconds",
    "expiry",
    "is_live",
    "milliseconds",
    "system_clock",
    "waiting_option",
]

DURATION: Final = "a number of seconds above 0 or a timedelta"
"""The text of a warning: what a duration must be."""

LAST_EXPIRY: Final = 8_640_000_000_000_000
"""The last epoch millisecond at which anything expires (the end of ECMAScript's time range)."""


def system_clock() -> float:
    """The time of the system in epoch seconds."""
    return time.time()  # looked up at each call, so that a patched one has its effect


def milliseconds(value: object) -> float | None:
    """A duration of more than 0, given in seconds or as a ``timedelta``, otherwise ``None``."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    number = finite_real(value)
    if number is None or number <= 0:
        return None
    try:
        return float(number * 1000) or math.ulp(0.0)  # a positive duration must not underflow to 0
    except OverflowError:
        return math.inf


def duration_option(value: object, name: str) -> float:
    """A duration in milliseconds, or with a warning the default under ``name`` in ``DEFAULTS``."""
    found = milliseconds(value)
    if found is None and value is not None:
        warn_ignored(name, value, DURATION, f"the default, {DEFAULTS[name]} s,")
    default: float = DEFAULTS[name] * 1000.0
    return found or default


def expiry(now: int, duration: float | None) -> int | None:
    """The expiry time, ``duration`` milliseconds after ``now``; ``None`` is never.

    The duration is rounded to whole milliseconds, at least one.
    """
    if duration is None or duration > 2 * LAST_EXPIRY:
        return None
    at = now + max(1, round(duration))
    return at if at <= LAST_EXPIRY else None


def is_live(expires: int | None, now: int) -> bool:
    """Whether an item with this expiry is still live at ``now``."""
    return expires is None or now < expires


def epoch_milliseconds(value: object, what: str) -> int:
    """A stored time, floored to whole milliseconds, or a ``ValueError`` that names ``what``."""
    number = finite_real(value)
    try:
        if number is not None and math.isfinite(number):  # an integer may exceed every float
            floored: int = math.floor(number)
            return floored
    except OverflowError:
        pass
    raise ValueError(f"{what} must be a finite number of milliseconds")


def waiting_option(value: object, name: str, default: float) -> float:
    """A time to wait, in seconds of at least 0, or with a warning the default."""
    number = finite_real(value.total_seconds() if isinstance(value, timedelta) else value)
    if number is None or number < 0:
        if value is not None:
            wanted = "0 or more seconds, or a timedelta"
            warn_ignored(name, value, wanted, f"the default, {default:g} s,")
        return default
    try:
        return float(number)
    except OverflowError:
        return sys.float_info.max


class Clock:
    """The time of a memory: whole epoch milliseconds of what its ``clock`` says in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock

    def __call__(self) -> int:
        seconds = self._clock()
        number = finite_real(seconds)
        if number is None:
            raise TypeError(f"clock must return epoch seconds, not {brief(seconds)}")
        if not -LAST_EXPIRY <= number * 1000 <= LAST_EXPIRY:
            raise ValueError(f"clock must return epoch seconds, not {brief(seconds)}")
        now: int = math.floor(number * 1000)
        return now
