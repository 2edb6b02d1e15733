"""How long a saved change takes, beside the floor: what any store of one JSON file has to do.

python benchmarks/persist.py
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from pathlib import Path

from _bench import median_ms, print_table
from _texts import Clock, filled, text
from sentinel_memory import JsonFileStore, Memory

SIZES = [100, 1_000, 10_000]


def floor(path: Path, state: object) -> None:
    """Write, flush to disk, rename."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(json.dumps(state, ensure_ascii=False))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def main() -> None:
    """One ``remember`` with autosave, and one load."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = Path(folder, f"{size}.json")
            clock = Clock()
            memory = filled(size, clock=clock, store=JsonFileStore(path), autosave=True)
            draw = random.Random(4)

            def change(
                memory: Memory = memory, clock: Clock = clock, draw: random.Random = draw
            ) -> None:
                clock.now += 1
                memory.remember(f"new:{draw.random()}", text(draw), importance=1)

            def least_possible(
                state: object = memory.to_state(), path: Path = Path(folder, "floor.json")
            ) -> None:
                floor(path, state)

            # In turns, so that a busy disk is as slow for the one as for the other.
            saves, floors = [], []
            for _ in range(5):
                saves.append(median_ms(change))
                floors.append(median_ms(least_possible))
            save, least = sorted(saves)[2], sorted(floors)[2]
            load = median_ms(memory.load, repeats=3)
            rows.append([f"{size:,}", save, least, save / least, load])
    print_table(
        "remember with autosave to a file",
        ["entries", "ms", "floor, ms", "ratio", "load, ms"],
        rows,
    )


if __name__ == "__main__":
    main()
