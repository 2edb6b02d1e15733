"""A real tokenizer: the same memories and the same budget, counted by an estimate and by tiktoken.

    pip install tiktoken
    python examples/tiktoken_counter.py

tiktoken downloads the file of an encoding once, and keeps it in the folder that the environment
variable TIKTOKEN_CACHE_DIR names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from sentinel_memory import Memory, estimate_tokens

try:
    import tiktoken
except ImportError:
    sys.exit("This example needs tiktoken: pip install tiktoken")


def token_counter(encoding_name: str) -> Callable[[str], int]:
    """What ``get_context`` takes as its tokenizer: the number of tokens of a text.

    ``encode_ordinary`` takes every text for what it says. Plain ``encode`` raises when there is
    something like ``<|endoftext|>`` in it, and users do type that.
    """
    encode = tiktoken.get_encoding(encoding_name).encode_ordinary
    return lambda text: len(encode(text))


def main() -> None:
    """Pack a prompt of at most 30 tokens, counted in two ways."""
    try:
        o200k_base = token_counter("o200k_base")
    except (OSError, ValueError) as error:
        sys.exit(f"tiktoken cannot get the file of o200k_base, is there a network? {error}")

    memory = Memory()
    order = "refund requested for order 42, waiting for the warehouse"
    memory.remember("user:name", "Jakub", importance=0.9)
    memory.remember("user:language", "prefers answers in Czech", importance=0.8)
    memory.remember("chat:7", "talked about the weather in Prague for a while", importance=0.1)
    memory.remember("order:42", order, importance=0.7)

    for name, tokenizer in (("estimate_tokens", estimate_tokens), ("o200k_base", o200k_base)):
        context = memory.get_context(30, query="refund status", tokenizer=tokenizer)
        print(f"{name}: {context.tokens} of 30 tokens, {context.omitted} omitted")
        print(f"{context.text}\n")

    print(f"The order alone: {estimate_tokens(order)} estimated, {o200k_base(order)} in o200k_base")
    print(f"<|endoftext|> as a text: {o200k_base('<|endoftext|>')} in o200k_base")


if __name__ == "__main__":
    main()
