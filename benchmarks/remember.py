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


def time_of_one_among_many_kinds(size: int) -> float:
    """Milliseconds of a ``remember`` that evicts, where much is known about the entries.

    Ten kinds have limits of their own, a hundredth of the entries is pinned, a tenth has feedback.
    """
    clock, draw = Clock(), random.Random(4)
    limits = {f"kind{number}": size // 10 for number in range(10)}
    memory = Memory(limit=size, limits=limits, clock=clock)
    with memory.batch():
        for number in range(size):
            clock.now += 1
            key = f"kind{number % 10}:{number}"
            memory.remember(key, text(draw), importance=draw.random(), pinned=number % 100 == 0)
            if number % 10 == 3:
                (memory.reinforce if draw.random() < 0.5 else memory.demote)(key)

    def run() -> None:
        for _ in range(CALLS):
            clock.now += 1
            key = f"kind{draw.randrange(10)}:new{draw.random()}"
            memory.remember(key, text(draw), importance=draw.random())

    return median_ms(run) / CALLS


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
    """Two tables: a new entry of 60 characters pushes one out."""
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
    times = {size: time_of_one_among_many_kinds(size) for size in (1_000, 100_000)}
    print_table(
        "remember on a full memory with limited kinds, pins and feedback",
        ["entries", "ms", "against 1,000"],
        [[f"{size:,}", ms, ms / times[1_000]] for size, ms in times.items()],
    )


if __name__ == "__main__":
    main()
