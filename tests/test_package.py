"""Promises about the package itself."""

from __future__ import annotations

import ast
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

import sentinel_memory

PACKAGE = Path(sentinel_memory.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# Imports go one way: a module may use those of an earlier row.
LAYERS = [
    {"errors", "_numbers", "_words", "_json", "_heap", "_locks", "_checks", "stores._protocol"},
    {"stores._text", "stores._files"},
    {"entry", "stores.memory", "stores.json_file", "stores"},
    {"retention", "recall", "_estimate", "_packing", "cache", "working"},
    {"context", "conversation", "embedding"},
    {"_entries", "_document"},
    {"_keeping"},
    {"memory"},
    {"transcript", "chat"},
    {""},
]
# Within a row only these pairs.
WITHIN_A_ROW = {
    ("stores", "stores.memory"),
    ("stores", "stores.json_file"),
    ("chat", "transcript"),
}
MAY_TOUCH = {
    "os": {"_locks", "stores._files", "stores._text", "stores.json_file", "memory"},
    "threading": {"_locks", "_keeping", "stores._files", "stores._text", "stores.json_file"},
}


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports_of(path: Path) -> set[str]:
    """Absolute names of what a module imports, at the top or inside a function."""
    name = name_of(path)
    package = name.split(".") if path.name == "__init__.py" and name else name.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level == 0 and module.startswith("sentinel_memory."):
                found.add("sentinel_memory:" + module.removeprefix("sentinel_memory."))
            elif node.level == 0:
                found.add(module)
            else:
                base = package[: len(package) - (node.level - 1)]
                target = ".".join([*base, *filter(None, module.split("."))])
                known = {name_of(module) for module in MODULES}
                for alias in node.names:
                    inner = f"{target}.{alias.name}".lstrip(".")
                    found.add("sentinel_memory:" + (inner if inner in known else target))
    return found


def test_nothing_is_needed_at_run_time() -> None:
    required = importlib.metadata.requires("sentinel-memory") or []
    assert [line for line in required if "extra ==" not in line] == []


def test_only_the_standard_library_is_imported() -> None:
    for path in MODULES:
        outside = {name for name in imports_of(path) if not name.startswith("sentinel_memory:")}
        tops = {name.split(".")[0] for name in outside}
        assert tops <= sys.stdlib_module_names, path


def test_imports_go_one_way() -> None:
    row = {name: number for number, names in enumerate(LAYERS) for name in names}
    for path in MODULES:
        name = name_of(path)
        assert name in row, f"{name} has no row"
        for other in imports_of(path):
            if other.startswith("sentinel_memory:"):
                other = other.removeprefix("sentinel_memory:")
                down = row[other] < row[name] or (name, other) in WITHIN_A_ROW
                assert down, f"{name} imports {other}"


@pytest.mark.parametrize("module", MAY_TOUCH)
def test_only_listed_modules_touch_files_and_threads(module: str) -> None:
    users = {name_of(path) for path in MODULES if module in imports_of(path)}
    assert users <= MAY_TOUCH[module]
    for path in MODULES:
        assert not imports_of(path) & {"socket", "http", "urllib", "subprocess", "logging"}, path


def test_all_is_sorted_and_true() -> None:
    names = sentinel_memory.__all__
    assert names == sorted(names)
    for name in names:
        value = getattr(sentinel_memory, name)
        assert value.__doc__ or name == "DEFAULTS", name


def test_the_version_is_that_of_the_distribution() -> None:
    assert sentinel_memory.__version__ == importlib.metadata.version("sentinel-memory")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sentinel_memory.nothing


def test_the_type_marker_is_shipped() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_importing_does_nothing_and_brings_nothing_heavy() -> None:
    """No thread, no file, no handler; none of the modules that cost time."""
    code = (
        "import sys, threading\n"
        f"sys.path.insert(0, {str(PACKAGE.parent)!r})\n"
        "import sentinel_memory\n"
        "assert threading.active_count() == 1\n"
        "heavy = {'pathlib', 'tempfile', 'logging', 'asyncio', 'importlib.metadata',"
        " 'hashlib', 'sqlite3', 'socket', 'random', 'unittest'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_can_be_read_in_one_sitting(path: Path) -> None:
    """And says first what belongs in it."""
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), path
    assert text.count("\n") <= 420
