"""Made-up memories for the benchmarks: the same in every run."""

from __future__ import annotations

import itertools
import random

from sentinel_memory import Memory

SYLLABLES = ["ka", "lo", "mi", "nu", "pe", "ra", "so", "ti", "va", "ze", "bo", "du", "fi", "go"]
WORDS = ["".join(pair) for pair in itertools.product(SYLLABLES, SYLLABLES, ["", "n", "s", "lar"])]
START = 1_792_310_400.0


class Clock:
    """Epoch seconds that move only when told."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        """What time it is."""
        return self.now


def text(draw: random.Random, length: int = 60) -> str:
    """About ``length`` characters of words from a fixed vocabulary."""
    words: list[str] = []
    while sum(map(len, words)) + len(words) < length:
        words.append(draw.choice(WORDS))
    return " ".join(words)[:length]


def filled(count: int, *, seed: int = 1, clock: Clock | None = None, **options: object) -> Memory:
    """A memory of ``count`` texts of 60 characters, full."""
    draw = random.Random(seed)
    clock = Clock() if clock is None else clock
    memory = Memory(limit=count, clock=clock, **options)  # type: ignore[arg-type]
    with memory.batch():
        for number in range(count):
            clock.now += 1
            memory.remember(f"chat:{number}", text(draw), importance=draw.random())
    return memory
