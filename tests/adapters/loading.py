"""Importing an example by its path."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent.parent / "examples" / "adapters"


def load(name: str) -> Any:
    """The module ``examples/adapters/{name}.py``."""
    spec = importlib.util.spec_from_file_location(f"adapter_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
