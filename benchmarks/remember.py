"""How long ``remember`` takes on a full memory, and what an entry costs in memory.

python benchmarks/remember.py
"""

from __future__ import annotations

import gc
import random
import tracemalloc

from _bench import median_ms, print_table
from _texts import Clock, filled, text
from sentinel_memory import Memory
from sentinel_memory.retention import retention

SIZES = [100, 1_000, 10_000, 100_000]
CALLS = 200
DAY = 86_400_000.0


def evict_literally(memory: Memory, now: int) -> object:
    """What an eviction without an order of its own has to do: look at everything."""
    return min(
        memory,
        key=lambda one: retention(one.importance, one.updated_ms, now=now, window=DAY),
    )


def time_of_one(size: int) -> tuple[float, float]:
    """Milliseconds of a ``remember`` that evicts, and of the search for whom to evict."""
    clock = Clock()
    memory = filled(size, clock=clock)
    draw = random.Random(3)

    def run() -> None:
        for _ in range(CALLS):
            clock.now += 1
            memory.remember(f"new:{draw.random()}", text(draw), importance=draw.random())

    own = median_ms(run) / CALLS
    return own, median_ms(lambda: evict_literally(memory, int(clock.now * 1000)), repeats=3)


def bytes_of_one(size: int) -> float:
    """Everything included, the text too."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    memory = filled(size)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / len(memory)


def main() -> None:
    """A new entry of 60 characters pushes one out."""
    rows = []
    first = None
    for size in SIZES:
        own, literal = time_of_one(size)
        first = first or own
        rows.append([f"{size:,}", own, own / first, literal, bytes_of_one(size) / 1024])
    print_table(
        "remember on a full memory",
        ["entries", "ms", "against 100", "literal search for whom to evict, ms", "KiB per entry"],
        rows,
    )


if __name__ == "__main__":
    main()
