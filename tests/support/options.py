"""One rule for numbers, as specified: what is not in its range is ignored, with a warning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from numbers import Real
from typing import Any

LAST_EXPIRY = 8_640_000_000_000_000


class Options:
    """Numbers as a program gives them, read by the rule; the names of the ignored are noted."""

    def __init__(self) -> None:
        self.ignored: list[str] = []

    def number(self, name: str, value: Any, is_valid: Callable[[Any], bool]) -> Any:
        """The number, ``None`` if there is none in the range."""
        if value is None:
            return None
        if isinstance(value, Real) and not isinstance(value, bool) and is_valid(value):
            return value
        self.ignored.append(name)
        return None

    def share(self, name: str, value: object) -> float | None:
        """A number in [0, 1]."""
        found = self.number(name, value, lambda number: 0 <= number <= 1)
        return None if found is None else float(found)

    def count(self, name: str, value: object, least: int, default: Any) -> Any:
        """A whole number; ``5.0`` is one."""
        found = self.number(name, value, lambda number: number >= least and number % 1 == 0)
        return default if found is None else int(found)

    def counts(self, name: str, values: Mapping[str, object] | None) -> dict[str, int] | None:
        """Whole numbers of at least 1 by kind, without the kinds that have none."""
        if values is None:
            return None
        found = {kind: self.count(name, value, 1, None) for kind, value in values.items()}
        return {kind: count for kind, count in found.items() if count is not None}

    def milliseconds(self, name: str, value: object) -> float | None:
        """A duration of more than 0."""
        if isinstance(value, timedelta):
            value = value.total_seconds()
        found = self.number(name, value, lambda number: 0 < number < math.inf)
        return None if found is None else found * 1000

    def half_life(self, value: object) -> float | None:
        """A half-life; ``math.inf`` is one, with which nothing fades."""
        return None if value == math.inf else self.milliseconds("half_life", value)


def expiry(now: int, lasts: float | None) -> int | None:
    """When what is remembered now expires: after whole milliseconds, at least one, or never."""
    if lasts is None:
        return None
    at = now + max(1, round(lasts))
    return at if at <= LAST_EXPIRY else None
