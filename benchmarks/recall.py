"""How long ``recall`` takes, beside a scan that splits every entry into words for every question.

python benchmarks/recall.py
"""

from __future__ import annotations

import random
from functools import partial

from _bench import median_ms, print_table
from _texts import WORDS, Clock, filled
from sentinel_memory import Entry, Memory
from sentinel_memory._basics.words import query_words, stored_words
from sentinel_memory.ranking import score
from sentinel_memory.recall.words import entry_text
from sentinel_memory.retention import freshness

SIZES = [100, 1_000, 10_000, 100_000]
DAY = 86_400_000


def literal(memory: Memory, now: int, query: str, limit: int = 5) -> list[str]:
    """The formula written out: look at everything."""
    asked = query_words(query)
    found: list[tuple[float, int, Entry]] = []
    for place, entry in enumerate(memory):
        share = len(asked & stored_words(entry_text(entry))) / len(asked)
        if share > 0:
            fresh = freshness(entry.updated_ms, now=now, window=DAY)
            found.append((score(share, entry.importance, fresh), place, entry))
    found.sort(key=lambda one: one[:2], reverse=True)
    return [entry.key for _, _, entry in found[:limit]]


def ask_all(memory: Memory, queries: list[str]) -> None:
    """Every question once."""
    for query in queries:
        memory.recall(query)


def main() -> None:
    """Two words, five matches."""
    rows = []
    for size in SIZES:
        clock = Clock()
        memory = filled(size, clock=clock)
        now = int(clock.now * 1000)
        draw = random.Random(2)
        queries = [f"{draw.choice(WORDS)} {draw.choice(WORDS)}" for _ in range(20)]
        for query in queries[: 3 if size > 10_000 else 20]:
            assert [match.key for match in memory.recall(query)] == literal(memory, now, query)
        fast = median_ms(partial(ask_all, memory, queries)) / len(queries)
        slow = median_ms(partial(literal, memory, now, queries[0]), repeats=3)
        rows.append([f"{size:,}", fast, slow, slow / fast])
    print_table("recall of two words", ["entries", "ms", "literal, ms", "ratio"], rows)


if __name__ == "__main__":
    main()
