"""The package ``sentinel_memory.agent``: names on demand, nothing at the import of the whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import sentinel_memory
from sentinel_memory import agent

PACKAGE = Path(sentinel_memory.__file__).parent


def test_every_name_is_there_and_documented() -> None:
    assert sorted(agent.__all__) == sorted(set(agent.__all__))
    for name in agent.__all__:
        value = getattr(agent, name)
        assert not isinstance(value, ModuleType), name
        assert value.__doc__, name
        assert name in dir(agent)
    with pytest.raises(AttributeError, match="nothing"):
        _ = agent.nothing


def test_importing_a_submodule_does_not_hide_the_function_of_its_name() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n"
        "import sentinel_memory\n"
        "assert not [name for name in sys.modules if name.startswith('sentinel_memory.agent')]\n"
        "import sentinel_memory.agent.near, sentinel_memory.agent.evidence\n"
        "from sentinel_memory.agent import near, evidence\n"
        "assert callable(near) and callable(evidence)\n"
        "assert not {'gzip', 'hashlib'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
