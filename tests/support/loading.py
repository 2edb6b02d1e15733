"""Importing an example by its path."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"


def load_example(name: str) -> Any:
    """The module ``examples/{name}.py``."""
    known_as = f"example_{name.replace('/', '_')}"
    spec = importlib.util.spec_from_file_location(known_as, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[known_as] = module
    spec.loader.exec_module(module)
    return module
