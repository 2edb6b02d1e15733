"""What the documentation shows is run, and prints what the page says."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import sentinel_memory

README = Path(__file__).parents[2] / "README.md"
# What needs an extra is tested where the extra is installed.
EXTRAS = {"sentinel_memory.mcp": "mcp"}
MODULES = [
    "sentinel_memory",
    *(
        module.name
        for module in pkgutil.walk_packages(sentinel_memory.__path__, "sentinel_memory.")
        if module.name not in EXTRAS
    ),
    *(
        pytest.param(
            name,
            marks=pytest.mark.skipif(find_spec(extra) is None, reason=f"needs the extra {extra}"),
        )
        for name, extra in EXTRAS.items()
    ),
]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_run(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def blocks() -> list[Any]:
    """The Python blocks of the README, each with the output block that follows it, if any."""
    text = README.read_text(encoding="utf-8")
    found = re.finditer(
        r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", text, re.DOTALL | re.MULTILINE
    )
    return [
        pytest.param(block[1], block[2] or "", id=f"line {text.count(chr(10), 0, block.start())}")
        for block in found
    ]


@pytest.mark.parametrize(("code", "expected"), blocks())
def test_a_readme_block_prints_what_the_page_says(
    code: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each block stands alone."""
    module = types.ModuleType("readme_block")
    monkeypatch.setitem(sys.modules, "readme_block", module)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, str(README), "exec"), module.__dict__)
    assert output.getvalue() == expected


def test_the_readme_stays_readable() -> None:
    """Under 350 lines, and it names every public name."""
    text = README.read_text(encoding="utf-8")
    assert text.count("\n") < 350
    assert [name for name in sentinel_memory.__all__ if name not in text] == []
