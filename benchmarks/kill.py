"""Kill a saving process at 200 random moments: what it had saved is always there.

Run ``python benchmarks/kill.py``; it needs ``os.fork`` and takes a few seconds. Exits 1 if a
document was lost or damaged, or if a later save failed or left something behind.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sentinel_memory import JsonFileStore

KILLS = 200
SEED = 4
LONGEST_WAIT = 0.02  # seconds of saving before the kill, at most
TIME_LIMIT = 60  # seconds for all of it


def document(number: int) -> dict[str, Any]:
    """Document ``number``: some sizes, so that a mixture of two would be noticed."""
    text = f"{number} " * (50 + number % 7 * 400)
    return {"version": 1, "entries": [{"key": str(number), "data": text}]}


def save_forever(path: str, acknowledgements: int) -> None:
    """Save one document after the other, and report each as soon as ``save`` has returned."""
    store = JsonFileStore(path)
    number = number_in(store)
    while True:
        number += 1
        store.save(document(number))
        os.write(acknowledgements, b"%d\n" % number)


def number_in(store: JsonFileStore) -> int:
    """The number of the document in the file; ``ValueError`` if it is not exactly that one."""
    state = store.load()
    if state is None:
        return 0
    number = int(state["entries"][0]["key"])
    if state != document(number):
        raise ValueError(f"document {number} is not whole")
    return number


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
        first = reports.readline()  # it is at work
        time.sleep(wait)
        os.kill(pid, signal.SIGKILL)
        last = [first, *reports][-1]
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != -signal.SIGKILL:
        raise ValueError("a save failed after a kill")
    return int(last)


def main() -> int:
    """Run it, print one line."""
    moments = random.Random(SEED)
    began = time.perf_counter()
    kills = landed_unreported = temp_files = number = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memory.json")
        try:
            while kills < KILLS and time.perf_counter() - began < TIME_LIMIT:
                reported = kill_once(str(path), moments.uniform(0, LONGEST_WAIT))
                kills += 1
                temp_files += any(file.suffix == ".tmp" for file in path.parent.iterdir())
                number = number_in(JsonFileStore(path))
                if number not in (reported, reported + 1):
                    raise ValueError(f"{reported} was reported, and {number} is in the file")
                landed_unreported += number - reported
            store = JsonFileStore(path)
            store.load()
            store.save(document(number + 1))
            left = sorted(file.name for file in path.parent.iterdir())
            if left != [".memory.json.lock", "memory.json"]:
                raise ValueError(f"left behind: {left}")
        except (OSError, ValueError) as error:
            print(f"FAILED after {kills} kills: {error}")
            return 1
    seconds = time.perf_counter() - began
    print(
        f"{kills} kills, {number} saves, none lost; {temp_files} kills left a temp file (all"
        f" swept), {landed_unreported} came between the rename and the report; {seconds:.1f} s"
    )
    return 0 if kills == KILLS else 1


if __name__ == "__main__":
    sys.exit(main())
