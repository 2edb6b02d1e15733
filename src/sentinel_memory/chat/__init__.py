"""The chat turn: the last completed turns, and the messages of the next one."""

from __future__ import annotations

from .calls import Message
from .messages import (
    MEMORY_FENCE,
    MEMORY_LABEL,
    Prompt,
    build_messages,
    count_messages,
    memory_line,
)
from .transcript import OpenTurn, Transcript, Turn

__all__ = [
    "MEMORY_FENCE",
    "MEMORY_LABEL",
    "Message",
    "OpenTurn",
    "Prompt",
    "Transcript",
    "Turn",
    "build_messages",
    "count_messages",
    "memory_line",
]
