"""Every attack once: damaged files, deleted locks, interrupts; what is broken afterwards is listed.

Run ``python benchmarks/attack.py`` for all of it, which takes some minutes, or with ``--part 50``
for a fiftieth, and with names for these attacks only. Exits 1 if anything was broken. The attacks
are in ``tests/support``; each takes a size, which is divided by the part, and a fixed seed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import attacks, store_attacks

SEED: Final = 11
Result: TypeAlias = tuple[int, list[str]]


class Attack(NamedTuple):
    """One attack: how many tries are all of it, and what makes so many in an empty folder."""

    size: int
    run: Callable[[int, Path], Result]


def on_a_memory(attack: Callable[[int, int, str], Result], index: str) -> Callable[..., Result]:
    """An attack on a memory that is in no file."""
    return lambda size, folder: attack(size, SEED, index)


ATTACKS: Final[Mapping[str, Attack]] = {
    "damaged files": Attack(
        100_000, lambda size, folder: store_attacks.damaged_files(size, SEED, folder)
    ),
    "lock file deleted throughout, 4 writers": Attack(
        200, lambda size, folder: store_attacks.lock_deleted_throughout(size, folder)
    ),
    "exceptions at any line of a save": Attack(
        10_000, lambda size, folder: store_attacks.interrupted_saves(size, SEED, folder)
    ),
    **{
        f"{what}, {index}": Attack(size, on_a_memory(attack, index))
        for what, size, attack in [
            ("exceptions at any line of a call", 10_000, attacks.interrupted_lines),
            ("signals whose handler raises", 10_000, attacks.interrupted_by_signals),
            ("calls from any line of a call", 3_000, attacks.reentered_lines),
        ]
        for index in attacks.INDEXES
    },
}


def main() -> int:
    """Run them and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="parts of the names of attacks; all without")
    parser.add_argument("--part", type=int, default=1, help="divide every size by this")
    options = parser.parse_args()
    broken = 0
    for name, attack in ATTACKS.items():
        if options.names and not any(part in name for part in options.names):
            continue
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            tries, found = attack.run(max(1, attack.size // options.part), Path(folder))
        broken += len(found)
        print(f"{name}: {tries:,} tries, {len(found)} broken; {time.perf_counter() - began:.1f} s")
        for line in found[:20]:
            print(f"  {line[:300]}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
