"""Attacks on SQLite files: writers killed at random moments, and files damaged at random places.

Run ``python benchmarks/attack_sqlite.py [scale]``; it needs ``os.fork``. 1, the default, is 300
kills and 1,000 damaged files; the test suite does a fiftieth. Exits 1 if anything was lost.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from sentinel_memory import DamagedStoreError, SQLiteStore, StoreConflictError
from sentinel_memory.stores import Changes

KILLS = 300
DAMAGES = 1_000
SEED = 14
LONGEST_WAIT = 0.02  # seconds of saving before the kill, at most
KEPT = 20  # entries; older ones are removed


def document(number: int) -> dict[str, Any]:
    """The document after save ``number``: of some sizes, so that a mixture would be noticed."""
    entries = [entry(n) for n in range(max(1, number - KEPT + 1), number + 1)]
    return {"version": 1, "entries": entries, "last": number}


def entry(number: int) -> dict[str, Any]:
    """The entry that save ``number`` adds."""
    return {"key": str(number), "data": f"{number} " * (50 + number % 7 * 400)}


def number_in(store: SQLiteStore) -> int:
    """The number of the stored document; ``ValueError`` if it is not exactly that one."""
    state = store.load()
    if state is None:
        return 0
    number: int = state["last"]
    if state != document(number):
        raise ValueError(f"document {number} is not whole")
    return number


def save_forever(path: str, acknowledgements: int) -> None:
    """Save one document after the other, and report each as soon as the save has returned."""
    store = SQLiteStore(path)
    number = number_in(store)
    while True:
        number += 1
        if number % 10:
            rest = {"version": 1, "last": number}
            store.save_changes(Changes([entry(number)], [str(number - KEPT)], rest))
        else:
            store.save(document(number))
        os.write(acknowledgements, b"%d\n" % number)


def kill_once(path: str, wait: float) -> int:
    """Let a child save for ``wait`` seconds and kill it; the last number that it reported."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            save_forever(path, writer)
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as reports:
        time.sleep(wait)
        os.kill(pid, signal.SIGKILL)
        last = [b"0", *reports][-1]
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != -signal.SIGKILL:
        raise ValueError("a save failed after a kill")
    return int(last)


def kills(scale: float = 1) -> str:
    """Kill writers of one file after another; what happened. ``ValueError`` for a loss."""
    moments = random.Random(SEED)
    number = ahead = 0
    total = max(1, round(KILLS * scale))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memory.db")
        for _ in range(total):
            reported = max(number, kill_once(str(path), moments.uniform(0, LONGEST_WAIT)))
            store = SQLiteStore(path)
            number = number_in(store)
            store.close()
            if number not in (reported, reported + 1):
                raise ValueError(f"{reported} was reported, and {number} is in the file")
            ahead += number - reported
            if moments.random() < 0.1:  # a file that is still to be made, too
                path.unlink(missing_ok=True)
                number = 0
        store = SQLiteStore(path)
        store.sweep()
        number = number_in(store)
        store.save(document(number + 1))
        store.close()
        left = sorted(file.name for file in Path(folder).iterdir())
        if left != ["memory.db"]:
            raise ValueError(f"left behind: {left}")
    return f"{total} kills, none lost; {ahead} came between a commit and its report"


def damage(draw: random.Random, data: bytes) -> bytes:
    """``data`` cut short, with some bytes flipped, or with a part of it overwritten."""
    changed = bytearray(data)
    kind = draw.random()
    if kind < 0.3:
        return data[: draw.choice([0, draw.randrange(len(data)), draw.randrange(100)])]
    if kind < 0.7:
        # The first pages more often: they say where everything is.
        reach = draw.choice([100, 2_048, len(data), len(data)])
        for _ in range(draw.choice([1, 1, 1, 8])):
            changed[draw.randrange(reach)] ^= 1 << draw.randrange(8)
        return bytes(changed)
    start = draw.randrange(len(data))
    length = draw.choice([1, 16, 512, 4_096])
    filler = draw.choice([bytes(length), draw.randbytes(length), b"\xff" * length])
    changed[start : start + length] = filler[: len(data) - start]
    return bytes(changed)


def damages(scale: float = 1) -> str:
    """Damage a file in many ways; what happened. ``ValueError`` if one was taken for another."""
    draw = random.Random(SEED)
    total = max(1, round(DAMAGES * scale))
    refused = harmless = 0
    with tempfile.TemporaryDirectory() as folder:
        first = SQLiteStore(Path(folder, "whole.db"), "user 1")
        first.save(document(40))
        other = SQLiteStore(first.path, "user 2")
        other.save(document(5))
        first.close()
        other.close()
        whole = Path(first.path).read_bytes()
        for number in range(total):
            path = Path(folder, f"{number}.db")
            data = damage(draw, whole)
            path.write_bytes(data)
            store = SQLiteStore(path, "user 1")
            try:
                state = store.load()
            except DamagedStoreError as error:
                refused += 1
                if error.path != str(path):
                    raise ValueError("the error names another path") from error
                for save in (store, SQLiteStore(path, "user 1")):
                    with suppress(DamagedStoreError, StoreConflictError):
                        save.save(document(1))
                        raise ValueError("a damaged file was overwritten") from error
                    save.close()
                if path.read_bytes() != data:
                    raise ValueError("a damaged file was changed") from error
            else:
                harmless += 1
                if state != document(40):
                    raise ValueError(f"damaged file {number} was taken for another document")
            store.close()
            for ending in ("", "-wal", "-shm"):
                Path(f"{path}{ending}").unlink(missing_ok=True)
    return f"{total} damaged files, {refused} refused, {harmless} had all of the document"


def main() -> int:
    """Run both, print a line for each."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1
    for attack in (kills, damages):
        began = time.perf_counter()
        try:
            result = attack(scale)
        except (OSError, ValueError) as error:
            print(f"FAILED: {error}")
            return 1
        print(f"{result}; {time.perf_counter() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
