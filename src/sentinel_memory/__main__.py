"""The command line of the package: ``python -m sentinel_memory FILE COMMAND``."""

from __future__ import annotations

import sys

from .cli import run

if __name__ == "__main__":
    sys.exit(run())
