"""Filling a prompt with entries so that the text that is sent fits the token budget."""

from __future__ import annotations

from .estimate import careful_estimate, estimate_tokens
from .pack import Context, Format, Tokenizer, one_line, pack, plain_line

__all__ = [
    "Context",
    "Format",
    "Tokenizer",
    "careful_estimate",
    "estimate_tokens",
    "one_line",
    "pack",
    "plain_line",
]
