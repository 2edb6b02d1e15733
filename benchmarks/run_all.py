"""Every benchmark, one table after the other.

python benchmarks/run_all.py
"""

from __future__ import annotations

import platform

import context
import histories
import persist
import recall
import remember


def main() -> None:
    """About five minutes."""
    print(f"Python {platform.python_version()}, {platform.machine()}")
    for script in (context, recall, remember, persist, histories):
        script.main()


if __name__ == "__main__":
    main()
