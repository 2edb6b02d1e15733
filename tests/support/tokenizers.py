"""Tokenizers for tests: two real ones, without the network, and simple ones by name."""

from __future__ import annotations

import functools
import gzip
import hashlib
import importlib.util
import inspect
import math
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import tiktoken
import tiktoken_ext.openai_public as official  # type: ignore[import-untyped]

Count = Callable[[str], int]


@functools.cache
def real(name: str) -> Count:
    """The number of tokens of a text in ``o200k_base`` or ``cl100k_base``.

    The encoding's file comes from the package ``bpe_openai``. It is put where tiktoken looks
    before it downloads; tiktoken checks that it is the official file.
    """
    address = re.search(rf'"([^"]+/{name}\.tiktoken)"', inspect.getsource(official))
    assert address is not None
    package = importlib.util.find_spec("bpe_openai")  # found, not imported
    assert package is not None
    assert package.origin is not None
    data = Path(package.origin).parent / "data" / f"{name}.tiktoken.gz"
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TIKTOKEN_CACHE_DIR"] = folder
        try:
            cached = Path(folder, hashlib.sha1(address[1].encode()).hexdigest())
            cached.write_bytes(gzip.decompress(data.read_bytes()))
            encode = tiktoken.get_encoding(name).encode_ordinary
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before
    return lambda text: len(encode(text))


TOKENIZERS: dict[str, Count] = {
    "estimate_tokens, unrecognised": lambda text: math.ceil(len(text) / 4),
    "characters": len,
    "words": lambda text: len(text.split()),
    "bytes": lambda text: len(text.encode()),
    "o200k_base": lambda text: real("o200k_base")(text),
    "cl100k_base": lambda text: real("cl100k_base")(text),
    "o200k_base and 7": lambda text: real("o200k_base")(text) + 7,
    "thirds, rounded down": lambda text: len(text) // 3,
}
"""Local tokenizers of eight kinds, by what they are."""
