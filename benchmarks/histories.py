"""Random histories of calls, made to a memory and to the plain model of it: who differs, and where.

    python benchmarks/histories.py
    python benchmarks/histories.py --histories 10000

Each history has from 30 to 60 calls, with arguments drawn by a fixed seed. After each call every
read path, the document, what the store has, the counters and the explanation of a context are
compared with a model in which every rule of the specification is written out. Exits 1 if anything
differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from _bench import print_table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.histories import CALLS, random_history

FEWEST = 300
SHOWN = 20  # differences that are printed in full


def main() -> int:
    """Half a minute; with 10,000 histories about ten minutes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--histories", type=int, default=FEWEST)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first history")
    options = parser.parse_args()
    made: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    differences = []
    began = time.perf_counter()
    for seed in range(options.first, options.first + options.histories):
        outcome = random_history(seed)
        made += outcome.made
        refused += outcome.refused
        if outcome.difference is not None:
            differences.append(outcome.difference)
            differing[outcome.last] += 1
    seconds = time.perf_counter() - began
    rows = [(name, made[name], refused[name], differing[name]) for name in CALLS]
    total = ("all", made.total(), refused.total(), differing.total())
    print_table(
        f"{options.histories:,} random histories against the plain model, {seconds:.0f} s",
        ("call", "made", "refused by both", "histories that differ after it"),
        [*rows, total],
    )
    for difference in differences[:SHOWN]:
        print(difference)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
