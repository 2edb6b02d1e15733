"""What the documentation shows is run, and prints what the page says."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import pkgutil
import re
import sys
import tomllib
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import sentinel_memory

README = Path(__file__).parents[2] / "README.md"
PRINTED = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)
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
    """The Python blocks of the README, each with its output.

    The output is the block that follows, or the comments behind the lines that print.
    """
    text = README.read_text(encoding="utf-8")
    found = re.finditer(
        r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", text, re.DOTALL | re.MULTILINE
    )
    return [
        pytest.param(
            block[1],
            block[2] or "".join(f"{line}\n" for line in PRINTED.findall(block[1])),
            id=f"line {text.count(chr(10), 0, block.start()) + 1}",
        )
        for block in found
    ]


@pytest.fixture
def tokenizers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages that the README uses, which need a network, with what makes the real ones awkward.

    The encoding of tiktoken refuses special tokens in a text, unless it is asked to encode
    ordinarily; that of transformers adds some, unless it is told not to.
    """

    class Encoding:
        def encode(self, text: str) -> list[str]:
            if "<|endoftext|>" in text:
                raise ValueError("a special token")
            return self.encode_ordinary(text)

        def encode_ordinary(self, text: str) -> list[str]:
            return re.findall(r"\w+|\W", text)

    class AutoTokenizer:
        @classmethod
        def from_pretrained(cls, _: str) -> AutoTokenizer:
            return cls()

        def encode(self, text: str, *, add_special_tokens: bool = True) -> list[str]:
            return ["<s>"] * 100 * add_special_tokens + text.split()

    for name, members in (
        ("tiktoken", {"get_encoding": lambda _: Encoding()}),
        ("transformers", {"AutoTokenizer": AutoTokenizer}),
    ):
        module = types.ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.usefixtures("tokenizers")
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


def test_every_block_of_the_readme_is_run_or_checked() -> None:
    """Python runs above; shell lines and requirements have tests of their own, or are refused."""
    text = README.read_text(encoding="utf-8")
    assert len(re.findall("^```python$", text, re.MULTILINE)) == len(blocks()) >= 8
    assert set(re.findall(r"^```(\w+)$", text, re.MULTILINE)) == {"python", "sh", "text"}
    for code, expected in (block.values for block in blocks()):
        assert expected.count("\n") >= code.count("\nprint(") > 0


def shell_lines() -> list[str]:
    found = re.findall(
        r"^```sh\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    return [line for block in found for line in block.splitlines() if not line.startswith("#")]


def test_the_commands_of_the_readme_are_the_tested_ones() -> None:
    """The waiter and the tests; the command line and the memory server have tests of their own."""
    venv = "python3 -m venv .venv && .venv/bin/pip install -q"
    first, second, *others = shell_lines()
    assert first == f"{venv} . && .venv/bin/python examples/chat.py"
    assert second == f"{venv} -e '.[dev]' && .venv/bin/python -m pytest"
    starts = ("sentinel-memory guest.json ", ".venv/bin/pip install -q '.[mcp]' && claude mcp add ")
    assert len(others) >= 2
    assert [line for line in others if not line.startswith(starts)] == []


def test_the_requirements_of_the_readme_name_this_package_and_its_extras() -> None:
    project = tomllib.loads(README.with_name("pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    lines = re.findall(
        r"^sentinel-memory\S* @ .*$", README.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(lines) == 2
    for line in lines:
        requirement = Requirement(line)
        assert requirement.name == project["name"]
        assert requirement.extras <= set(project["optional-dependencies"])
        assert requirement.url is not None
        assert requirement.url.startswith(("file:///", "git+https://"))


def test_what_the_readme_points_to_is_there() -> None:
    """Links, scripts, and the tests of the promises."""
    text = README.read_text(encoding="utf-8")
    root = README.parent
    links = re.findall(r"\]\(([^)]+)\)", text)
    scripts = re.findall(r"(?:examples|benchmarks)/\w+\.py", text)
    assert len(links) >= 4
    assert len(scripts) >= 4
    assert [path for path in links + scripts if not (root / path).exists()] == []
    promises, speed = (text.split(f"## {name}")[1].split("\n## ")[0] for name in ("Prom", "Speed"))
    spans = re.findall("`([^`]+)`", "".join(re.findall(r"\| ([^|]*) \|$", promises, re.MULTILINE)))
    tests = [path for span in spans if "python" not in span for path in span.split()]
    assert len(tests) >= 8
    assert [path for path in tests if not (root / "tests" / path).exists()] == []
    measured = re.findall(r"\| `([^`]+)` \|$", speed, re.MULTILINE)
    assert [name for name in measured if not (root / "benchmarks" / name).exists()] == [
        "python benchmarks/..."  # the head of the table
    ]
    assert len(measured) >= 4


def test_the_readme_stays_readable() -> None:
    """At most 300 lines, and it names every public name and every way in."""
    text = README.read_text(encoding="utf-8")
    assert text.count("\n") <= 300
    words = set(re.findall(r"\w+", text))
    assert [name for name in sentinel_memory.__all__ if name not in words] == []
    public = [name for name in vars(sentinel_memory.Memory) if not name.startswith("_")]
    assert [name for name in public if name not in words] == []
    options = inspect.signature(sentinel_memory.Memory).parameters.keys() - {"wrong"}
    assert [name for name in options if name not in words] == []


def test_the_readme_repeats_the_differences_from_the_node_package() -> None:
    text = " ".join(README.read_text(encoding="utf-8").split("## From the Node")[1].split())
    for words in ("seconds", "code points", "clock goes back", "booleans", "expired", "`working`"):
        assert words in text, words
