"""What it costs to save one more entry in SQLite, beside the floor: an append and a flush.

python benchmarks/changes.py
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from _bench import print_table
from sentinel_memory import SQLiteStore
from sentinel_memory.stores import Changes

SIZES = [500, 5_000, 50_000]
ROUNDS = 200
TEXT = "word " * 50  # 250 bytes


def main() -> None:
    """Medians of many saves, in turns with appends to a file, so that a busy disk is fair."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        floor = os.open(Path(folder, "floor"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        for size in SIZES:
            store = SQLiteStore(Path(folder, f"{size}.db"))
            entries = [{"key": f"old:{number}", "data": TEXT} for number in range(size)]
            store.save({"version": 1, "entries": entries})

            def append() -> None:
                os.write(floor, TEXT.encode())
                os.fsync(floor)

            def add(number: int, store: SQLiteStore = store) -> None:
                new = {"key": f"new:{number}", "data": TEXT}
                store.save_changes(Changes([new], [], {"version": 1}))

            def replace(number: int, store: SQLiteStore = store) -> None:
                new = {"key": f"newer:{number}", "data": TEXT}
                store.save_changes(Changes([new], [f"new:{number}"], {"version": 1}))

            floors, added = [], []
            for number in range(ROUNDS):
                floors.append(milliseconds(append))
                added.append(milliseconds(partial(add, number)))
            replaced = [milliseconds(partial(replace, number)) for number in range(ROUNDS)]
            least = statistics.median(floors)
            more, instead = statistics.median(added), statistics.median(replaced)
            rows.append([f"{size:,}", least, more, more / least, instead, instead / least])
            store.close()
        os.close(floor)
    print_table(
        "one entry saved in SQLite",
        ["entries", "append, ms", "one more, ms", "ratio", "one for another, ms", "ratio"],
        rows,
    )


def milliseconds(call: Callable[[], object]) -> float:
    """How long the call takes."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1_000


if __name__ == "__main__":
    main()
