"""``examples/tiktoken_counter.py``, run as a person would; the encoding comes without a network."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tiktoken_ext.openai_public as official  # type: ignore[import-untyped]

EXAMPLE = Path(__file__).parents[2] / "examples" / "tiktoken_counter.py"


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    """Where tiktoken keeps the file of o200k_base, in a folder of the test's own."""
    address = re.search(r'"([^"]+/o200k_base\.tiktoken)"', inspect.getsource(official))
    assert address is not None
    return tmp_path / hashlib.sha1(address[1].encode()).hexdigest()


def test_the_example_prints_contexts_of_30_tokens_by_the_estimate_and_by_o200k_base(
    cached: Path,
) -> None:
    """The estimate has room for two memories, the real count for three."""
    package = importlib.util.find_spec("bpe_openai")  # for its data: it need not be imported
    assert package is not None
    assert package.origin is not None
    data = Path(package.origin).parent / "data" / "o200k_base.tiktoken.gz"
    cached.write_bytes(gzip.decompress(data.read_bytes()))
    done = run(TIKTOKEN_CACHE_DIR=str(cached.parent))
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout == (
        "estimate_tokens: 21 of 30 tokens, 2 omitted\n"
        "user:name: Jakub\n"
        "order:42: refund requested for order 42, waiting for the warehouse\n"
        "\n"
        "o200k_base: 30 of 30 tokens, 1 omitted\n"
        "user:name: Jakub\n"
        "user:language: prefers answers in Czech\n"
        "order:42: refund requested for order 42, waiting for the warehouse\n"
        "\n"
        "The order alone: 14 estimated, 11 in o200k_base\n"
        "<|endoftext|> as a text: 7 in o200k_base\n"
    )


def test_without_tiktoken_one_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "tiktoken.py").write_text("raise ModuleNotFoundError('tiktoken')\n")
    done = run(PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "This example needs tiktoken: pip install tiktoken\n"


def test_without_the_encoding_one_line_says_so(cached: Path) -> None:
    """A folder where the file should be fails as a missing network does, and needs none."""
    cached.mkdir()
    done = run(TIKTOKEN_CACHE_DIR=str(cached.parent))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tiktoken cannot get the file of o200k_base")
    assert done.stderr.count("\n") == 1
