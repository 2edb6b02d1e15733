"""Tokenizers for tests: two real ones, without the network, and simple ones by name."""

from __future__ import annotations

import functools
import gzip
import hashlib
import importlib.resources
import inspect
import math
import os
import re
import tempfile
from collections.abc import Callable

import tiktoken
import tiktoken_ext.openai_public as official

Count = Callable[[str], int]


@functools.cache
def real(name: str) -> Count:
    """The number of tokens of a text in ``o200k_base`` or ``cl100k_base``.

    The encoding's file comes from the package ``bpe_openai``. It is put where tiktoken looks
    before it downloads; tiktoken checks that it is the official file.
    """
    address = re.search(rf'"([^"]+/{name}\.tiktoken)"', inspect.getsource(official))
    assert address is not None
    data = importlib.resources.files("bpe_openai.data") / f"{name}.tiktoken.gz"
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TIKTOKEN_CACHE_DIR"] = folder
        try:
            cached = os.path.join(folder, hashlib.sha1(address[1].encode()).hexdigest())
            with open(cached, "wb") as file:
                file.write(gzip.decompress(data.read_bytes()))
            encode = tiktoken.get_encoding(name).encode_ordinary
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before
    return lambda text: len(encode(text))
