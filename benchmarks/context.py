"""``get_context``: time and work against the literal procedure, and whether the result is the same.

    python benchmarks/context.py
    python benchmarks/context.py --equality 10000

The literal procedure counts the whole text once for every entry it considers. With the built-in
estimator it is timed twice: as it is usually written over plain dictionaries, where every text that
is considered is sorted and formatted anew, and with lines formatted once and indexes sorted.
The real tokenizers need ``tiktoken`` and ``bpe-openai``.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from _bench import median_ms, median_ms_after, print_table
from _texts import Clock

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from sentinel_memory import Context, Entry, Memory, estimate_tokens
from sentinel_memory.context import pack, plain_line
from support.literal import budget_of, literal_context, random_case
from support.tokenizers import TOKENIZERS, real

Count: TypeAlias = Callable[[str], float]

SEED = 20_261
DAY = 86_400
WORDS = (
    "talked about the weather in Prague for a while order refund customer waiting warehouse "
    "table window kitchen allergy peanuts invoice meeting tomorrow morning train station"
)


def memory_of(size: int) -> tuple[Memory, Clock]:
    """Entries of some 60 characters and all importances, the older half no longer fresh."""
    chance = random.Random(SEED)
    words = WORDS.split()
    clock = Clock()
    memory = Memory(limit=size, clock=clock)
    for number in range(size):
        clock.now += 2 * DAY / size
        memory.remember(
            f"{chance.choice(('user', 'chat', 'order', 'note'))}:{number}",
            " ".join(chance.choices(words, k=chance.randint(4, 13))) + chance.choice((".", "")),
            importance=chance.randint(0, 10) / 10,
        )
    return memory, clock


def ranked(memory: Memory, clock: Clock) -> tuple[list[Entry], list[int]]:
    """The entries, oldest first, and their indexes, best first."""
    entries = list(memory)

    def worth(index: int) -> tuple[float, int]:
        entry = entries[index]
        age = int(clock.now * 1000) - round(entry.updated_at * 1000)
        return entry.importance + 0.1 * min(1.0, max(0.0, 1 - age / (DAY * 1000))), index

    return entries, sorted(range(len(entries)), key=worth, reverse=True)


def literally(
    memory: Memory, clock: Clock, budget: float, tokenizer: Count = estimate_tokens
) -> Context:
    """What ``memory.get_context(budget, tokenizer=tokenizer)`` gives, done literally."""
    return literal_context(*ranked(memory, clock), budget, tokenizer=tokenizer, format=plain_line)


def line_of(entry: dict[str, Any]) -> str:
    """The default format."""
    data = entry["data"]
    shown = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"{entry['key']}: {shown}"


def as_usually_written(
    stored: list[dict[str, Any]], now: int, budget: float
) -> tuple[str, float, tuple[str, ...]]:
    """Text, tokens and the keys left out, of plain dictionaries: each candidate is made anew."""

    def worth(entry: dict[str, Any]) -> tuple[float, int]:
        freshness = min(1.0, max(0.0, 1 - (now - entry["updatedAt"]) / (DAY * 1000)))
        return entry["importance"] + 0.1 * freshness, entry["updatedAt"]

    taken: list[dict[str, Any]] = []
    left_out: list[str] = []
    text = ""
    for entry in sorted(stored, key=worth, reverse=True):
        candidate = sorted([*taken, entry], key=lambda entry: entry["updatedAt"])
        candidate_text = "\n".join(map(line_of, candidate))
        if math.ceil(len(candidate_text) / 4) <= budget:
            taken, text = candidate, candidate_text
        else:
            left_out.append(entry["key"])
    return text, math.ceil(len(text) / 4), tuple(left_out)


def time_with_the_estimator() -> None:
    """Against the literal procedure, at the sizes of a chat and of an archive."""
    rows = []
    for size, budget in ((100, 500), (1_000, 500), (1_000, 4_000), (1_000, 100_000)):
        memory, clock = memory_of(size)
        stored, now = memory.to_state()["entries"], int(clock.now * 1000)
        context = memory.get_context(budget)
        assert context == literally(memory, clock, budget)
        expected = as_usually_written(stored, now, budget)
        assert (context.text, context.tokens, context.left_out) == expected
        own = median_ms(
            lambda: memory.get_context(budget),  # noqa: B023
            repeats=15,
            calls=2_000 // size,
        )
        best = median_ms(lambda: literally(memory, clock, budget), repeats=5)  # noqa: B023
        usual = median_ms(lambda: as_usually_written(stored, now, budget), repeats=5)  # noqa: B023
        rows.append(
            (f"{size:,}", budget, usual, best, own, f"{usual / own:.0f}x", f"{best / own:.0f}x")
        )
    print_table(
        "get_context with the built-in estimator",
        ("entries", "budget", "literal ms", "lines kept ms", "ms", "literal / ms", "kept / ms"),
        rows,
    )


def growth() -> None:
    """From 100 entries to 100,000."""
    rows = []
    for size in (100, 1_000, 10_000, 100_000):
        memory, _ = memory_of(size)
        took = median_ms(
            lambda: memory.get_context(4_000),  # noqa: B023
            calls=max(1, 2_000 // size),
        )
        rows.append((f"{size:,}", took, took / size * 1_000))
    print_table(
        "get_context(4000) with the built-in estimator, by size",
        ("entries", "ms", "µs per entry"),
        rows,
    )


class Watched:
    """A tokenizer that knows how much it was given."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self.count = count
        self.characters = self.calls = 0

    def __call__(self, text: str) -> int:
        """The count of the text."""
        self.characters += len(text)
        self.calls += 1
        return self.count(text)


def work_with_a_tokenizer() -> None:
    """Characters, which are the same on any machine."""
    rows = []
    memory, _ = memory_of(1_000)
    rendered = sum(len(plain_line(entry)) for entry in memory)
    for budget in (500, 1_000, 2_000, 4_000, 8_000, 12_000, 100_000):
        count = Watched(real("o200k_base"))
        characters = []
        for _turn in range(2):
            count.characters = 0
            text = memory.get_context(budget, tokenizer=count).text
            characters.append(count.characters)
        first, second = characters
        rows.append(
            (
                f"{budget:,}",
                len(text),
                f"{first / len(text):.1f}",
                f"{40 + 6 * rendered / len(text):.0f}",
                f"{second / len(text):.1f}",
            )
        )
    print_table(
        "o200k_base, 1,000 entries: characters given to the tokenizer, by those of the result",
        ("budget", "characters", "first turn", "(at most)", "second turn"),
        rows,
    )


def time_with_a_tokenizer() -> None:
    """First turn: no line is known; second turn: all are."""
    rows = []
    count = real("o200k_base")
    memory, clock = memory_of(1_000)
    for budget in (500, 4_000, 100_000):
        assert memory.get_context(budget, tokenizer=count) == literally(
            memory, clock, budget, count
        )
        literal = median_ms(lambda: literally(memory, clock, budget, count), repeats=3)  # noqa: B023
        first = median_ms_after(
            # Another tokenizer, so that nothing is known of this one.
            lambda: memory.get_context(budget, tokenizer=len),  # noqa: B023
            lambda _: memory.get_context(budget, tokenizer=count),  # noqa: B023
            repeats=11,
        )
        second = median_ms(
            lambda: memory.get_context(budget, tokenizer=count),  # noqa: B023
            repeats=11,
        )
        rows.append(
            (
                f"{budget:,}",
                literal,
                first,
                second,
                f"{literal / first:.0f}x",
                f"{literal / second:.0f}x",
            )
        )
    print_table(
        "get_context with o200k_base, 1,000 entries",
        ("budget", "literal ms", "first turn ms", "second turn ms", "literal / first", "/ second"),
        rows,
    )


def equality(cases: int) -> int:
    """Compare with the literal procedure on random memories; the number of differences."""
    chance = random.Random(SEED)
    tokenizers = {
        **TOKENIZERS,
        "o200k_base": real("o200k_base"),
        "cl100k_base": real("cl100k_base"),
    }
    different = dict.fromkeys(tokenizers, 0)
    taken = left_out = 0
    start = time.perf_counter()
    for _ in range(cases):
        case = random_case(chance)
        for name, tokenizer in tokenizers.items():
            budget = budget_of(case, tokenizer)
            expected = literal_context(
                case.entries, case.ranking, budget, tokenizer=tokenizer, **case.options
            )
            ranking: list[int] = case.ranking
            packed = pack(case.entries, ranking, budget, tokenizer=tokenizer, **case.options)
            different[name] += packed != expected
            taken += len(packed.entries)
            left_out += packed.omitted
    print_table(
        f"Differences from the literal procedure in {cases:,} random memories",
        ("tokenizer", "differences"),
        different.items(),
    )
    print(f"\n{taken:,} entries taken, {left_out:,} left out; {time.perf_counter() - start:.0f} s")
    return sum(different.values())


def main() -> int:
    """Run what is asked for; 1 if there are differences."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--equality", type=int, metavar="MEMORIES", default=0)
    cases = parser.parse_args().equality
    if cases:
        return int(equality(cases) > 0)
    time_with_the_estimator()
    growth()
    work_with_a_tokenizer()
    time_with_a_tokenizer()
    return 0


if __name__ == "__main__":
    sys.exit(main())
