"""A month of an agent: 30,000 decisions by two processes on one file, restarted every 1,000.

    python benchmarks/month.py
    python benchmarks/month.py --decisions 3000 --folder /dev/shm

Every decision is a transaction, flushed to disk, so that the disk decides how long it takes. Time
is simulated. Exits 1 if the file ever was over the sum of its limits, if anything left that is not
in the audit, or if an evicted entry is not in the archive while that is within its bound.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from _bench import print_table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.month import ENTRY_BYTES, LIMITS, OTHER_BYTES, run_month

DECISIONS = 30_000
LIFETIME = 1_000  # decisions of a process
ARCHIVE_BYTES = 3_000_000


def main() -> int:
    """About ten minutes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--decisions", type=int, default=DECISIONS)
    parser.add_argument("--folder", help="where the file is kept meanwhile")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        figures, problems = run_month(
            Path(folder), options.decisions, lifetime=LIFETIME, archive_bytes=ARCHIVE_BYTES
        )
    entries = sum(LIMITS.values())
    rows = [
        ("processes, two at a time", figures.processes),
        *((f"entries {cause}", number) for cause, number in sorted(figures.removed.items())),
        ("equal decisions repeated", figures.repeated),
        ("largest file, bytes", figures.largest),
        ("bytes that the limits allow", entries * ENTRY_BYTES + OTHER_BYTES),
        ("entries in the archive", figures.archived),
        ("bytes of the archive", figures.archive_bytes),
        ("snapshots dropped over its bound", figures.dropped),
        ("ms for a decision", figures.seconds * 1000 / figures.decisions),
        ("problems", len(problems)),
    ]
    title = f"A month of an agent: {figures.decisions:,} decisions, at most {entries} entries"
    print_table(title, ["", "month"], rows)
    for problem in problems:
        print(f"FAILED: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
