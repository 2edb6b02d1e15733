"""A clock for tests."""

from __future__ import annotations


class FakeClock:
    """Epoch seconds that move only by ``tick``; counts how often it was read."""

    def __init__(self, now: float = 1_792_310_400.0) -> None:
        self.now = now
        self.reads = 0

    def __call__(self) -> float:
        self.reads += 1
        return self.now

    def tick(self, seconds: float) -> None:
        self.now += seconds
