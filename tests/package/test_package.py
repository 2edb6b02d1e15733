"""Promises about the package itself."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import io
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

import sentinel_memory

PACKAGE = Path(sentinel_memory.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# The house, from the ground up: a module imports from rows below its own, or, within a row, from
# modules of its own package. The table names every module, so that a new one is placed on purpose.
LAYERS = [
    {
        "errors",
        "document",
        "_basics",
        "_basics.callers",
        "_basics.checks",
        "_basics.folding",
        "_basics.forks",
        "_basics.heap",
        "_basics.numbers",
        "_basics.plain",
        "_basics.postings",
        "_basics.times",
        "_basics.words",
    },
    {
        "entry",
        "working",
        "stores",
        "stores._codec",
        "stores._database",
        "stores._files",
        "stores._locks",
        "stores._looking",
        "stores._paths",
        "stores._rights",
        "stores._turns",
        "stores._rows",
        "stores._tables",
        "stores.json_file",
        "stores.memory",
        "stores.protocol",
        "stores.sqlite",
    },
    {"results"},
    {
        "cache",
        "retention",
        "recall",
        "recall._dates",
        "recall._nodes",
        "recall._speakers",
        "recall._stems",
        "recall._vectors",
        "recall.blended",
        "recall.conversation",
        "recall._naming",
        "recall.embedding",
        "recall.names",
        "recall.protocol",
        "recall.several",
        "recall.words",
        "context",
        "context._greedy",
        "context.estimate",
        "context.pack",
    },
    {"ranking"},
    {
        "_core",
        "_core.batches",
        "_core.changes",
        "_core.contents",
        "_core.entries",
        "_core.eviction",
        "_core.following",
        "_core.fitting",
        "_core.locks",
        "_core.numbering",
        "_core.options",
        "_core.reading",
        "_core.rejects",
        "_core.saving",
    },
    {"memory"},
    {
        "_cli",
        "_cli.arguments",
        "_cli.call",
        "_cli.changes",
        "_cli.files",
        "_cli.lines",
        "_cli.looks",
        "_cli.selecting",
        "_cli.showing",
    },
    {
        "__main__",
        "agent",
        "agent._classes",
        "agent._judgement",
        "agent._shared",
        "agent._snapshots",
        "agent._stems",
        "agent._tables",
        "agent._texts",
        "agent._vetoes",
        "agent.archive",
        "agent.audit",
        "agent.evidence",
        "agent.identity",
        "agent.incidents",
        "agent.keeping",
        "agent.near",
        "chat",
        "chat.calls",
        "chat.messages",
        "chat.transcript",
        "cli",
        "pool",
        "",
    },
    {"_serving", "_serving.lines", "_serving.sessions"},
    {"mcp"},
]
# Between modules of the bottom row that are in no package.
WITHIN_A_ROW = {
    ("document", "errors"),
    ("document", "_basics.checks"),
    ("__main__", "cli"),
}
# Who needs more than the standard library, and what: exactly these, each named for its extra.
EXTRAS = {"mcp": {"mcp", "pydantic"}}
# Who touches files and threads: exactly these.
TOUCHES = {
    "os": {
        "_cli.files",
        "_cli.looks",
        "cli",
        "_basics.forks",
        "_serving.sessions",  # the type of a path
        "agent._snapshots",
        "agent.archive",
        "stores",  # the type of a path
        "stores._database",
        "stores._files",
        "stores._locks",
        "stores._paths",
        "stores._rights",
        "stores._rows",
        "stores._turns",
        "stores.json_file",
        "stores.sqlite",
        "mcp",  # the type of a path
        "memory",
    },
    "threading": {
        "_basics.forks",
        "_serving.sessions",
        "_core.locks",
        "_core.saving",
        "agent.archive",
        "pool",
        "stores._database",
        "stores._locks",
        "stores._turns",
        "stores.json_file",
        "stores.sqlite",
    },
    "time": {
        "_cli.showing",
        "cli",
        "_basics.times",
        "_core.saving",
        "agent.archive",
        "stores._database",
        "stores._files",
        "stores._locks",
        "stores._turns",
    },
}


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


NAMES = {name_of(module) for module in MODULES}


@functools.cache
def imports_of(path: Path) -> frozenset[str]:
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
                for alias in node.names:
                    inner = f"{target}.{alias.name}".lstrip(".")
                    found.add("sentinel_memory:" + (inner if inner in NAMES else target))
    return frozenset(found)


def test_nothing_is_needed_at_run_time() -> None:
    required = importlib.metadata.requires("sentinel-memory") or []
    assert [line for line in required if "extra ==" not in line] == []


def test_only_the_standard_library_is_imported() -> None:
    """But for the modules that are named for an extra, which the package never imports."""
    needs = {}
    for path in MODULES:
        others = {name for name in imports_of(path) if not name.startswith("sentinel_memory:")}
        tops = {name.split(".")[0] for name in others} - sys.stdlib_module_names
        if tops:
            needs[name_of(path)] = tops
        used = {f"sentinel_memory:{name}" for name in EXTRAS} & imports_of(path)
        assert not used, path
    assert needs == EXTRAS


def test_the_table_of_layers_names_every_module() -> None:
    placed = [name for names in LAYERS for name in names]
    assert sorted(placed) == sorted(map(name_of, MODULES))


def test_imports_go_one_way() -> None:
    row = {name: number for number, names in enumerate(LAYERS) for name in names}
    for path in MODULES:
        name = name_of(path)
        for other in imports_of(path):
            if not other.startswith("sentinel_memory:"):
                continue
            other = other.removeprefix("sentinel_memory:")
            package = name.split(".")[0]
            family = "." in other and other.split(".")[0] == package
            down = row[other] < row[name] or family or (name, other) in WITHIN_A_ROW
            # The tour names lazily what stands beside it on the top row.
            assert down or (name == "" and row[other] == row[""]), f"{name} imports {other}"


def test_inside_a_package_no_two_modules_import_each_other() -> None:
    uses = {
        name_of(path): {
            other.removeprefix("sentinel_memory:")
            for other in imports_of(path)
            if other.startswith("sentinel_memory:")
        }
        for path in MODULES
    }
    reach = {name: set(direct) for name, direct in uses.items()}
    for _ in uses:
        for found in reach.values():
            found |= {far for near in list(found) for far in uses.get(near, ())}
    assert [name for name, found in reach.items() if name in found] == []


def test_only_memory_imports_the_core() -> None:
    users = {
        name_of(path)
        for path in MODULES
        for other in imports_of(path)
        if other.startswith("sentinel_memory:_core.")
    }
    assert {name for name in users if not name.startswith("_core")} == {"memory"}


def test_the_basics_know_nothing_of_memories() -> None:
    for path in MODULES:
        if name_of(path).startswith("_basics."):
            ours = {name for name in imports_of(path) if name.startswith("sentinel_memory:")}
            assert all(name.startswith("sentinel_memory:_basics.") for name in ours), path


@pytest.mark.parametrize("module", TOUCHES)
def test_only_the_named_modules_touch_the_world(module: str) -> None:
    users = {name_of(path) for path in MODULES if module in imports_of(path)}
    assert users == TOUCHES[module]


def test_nothing_talks_to_the_network_or_starts_programs() -> None:
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


def lines_of_code(text: str) -> int:
    """The lines that are neither blank nor part of a comment or a docstring."""
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        constant = node.value if isinstance(node, ast.Expr) else None
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
            prose |= set(range(constant.lineno, (constant.end_lineno or constant.lineno) + 1))
    no_code = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in no_code:
            code |= set(range(token.start[0], token.end[0] + 1))
    return len(code - prose)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_has_a_docstring_and_at_most_350_lines_of_code(path: Path) -> None:
    """It says first what belongs in it, and its code is short; prose may be as long as it helps."""
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), path
    assert lines_of_code(text) <= 350


def private_names_defined_in(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                names.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    names.add(target.id)
                    if target.id == "__slots__":
                        constants = (n for n in ast.walk(node.value) if isinstance(n, ast.Constant))
                        names |= {str(constant.value) for constant in constants}
    return names


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_file_uses_private_names_of_another(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = private_names_defined_in(tree)
    reaches = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and node.attr not in own
        and node.attr != "_replace"  # of a named tuple, which is public in spite of its name
    ]
    assert reaches == []


def test_type_ignores_are_few() -> None:
    ignores = sum(path.read_text(encoding="utf-8").count("type: ignore") for path in MODULES)
    assert ignores <= 5
