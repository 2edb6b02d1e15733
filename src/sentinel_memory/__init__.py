"""A memory for chatbots and agents, inside the process.

It keeps what matters, forgets what does not, lets short-lived things expire, and, given the model's
tokenizer, never overflows its token limit.

>>> from sentinel_memory import Memory
>>> memory = Memory(limit=3)
>>> _ = memory.remember("user:allergy", "peanuts", importance=1.0)
>>> for number, talk in enumerate(["Nice weather.", "Busy road.", "Good music."]):
...     _ = memory.remember(f"chat:{number}", talk, importance=0.1)
>>> [entry.key for entry in memory]
['user:allergy', 'chat:1', 'chat:2']
>>> memory.recall("Does the user have an allergy?")[0].data
'peanuts'
>>> context = memory.get_context(11, query="allergy")
>>> print(context.text)
user:allergy: peanuts
chat:2: Good music.
>>> context.tokens, context.left_out
(11, ('chat:1',))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._basics.numbers import DEFAULTS, IgnoredValueWarning
from .context.estimate import careful_estimate, estimate_tokens
from .context.pack import Context, one_line
from .entry import Entry, Match
from .errors import (
    AlteredStoreWarning,
    DamagedStoreError,
    SentinelMemoryError,
    StoreConflictError,
)
from .memory import Memory
from .recall.protocol import RecallIndex
from .recall.words import WordIndex
from .results import Compaction, Explanation, LoadResult, Rejected, Remembered, Stats
from .stores.json_file import JsonFileStore
from .stores.memory import MemoryStore
from .stores.protocol import Store

__all__ = [
    "AlteredStoreWarning",
    "AsyncPool",
    "BlendedIndex",
    "Compaction",
    "Context",
    "ConversationIndex",
    "DEFAULTS",
    "DamagedStoreError",
    "EmbeddingIndex",
    "Entry",
    "Explanation",
    "IgnoredValueWarning",
    "JsonFileStore",
    "LoadResult",
    "Match",
    "Memory",
    "MemoryPool",
    "MemoryStore",
    "Prompt",
    "RecallIndex",
    "Rejected",
    "Remembered",
    "SQLiteStore",
    "SentinelMemoryError",
    "Stats",
    "Store",
    "StoreConflictError",
    "Transcript",
    "Turn",
    "WordIndex",
    "build_messages",
    "careful_estimate",
    "count_messages",
    "estimate_tokens",
    "one_line",
]


if TYPE_CHECKING:
    from .chat.messages import Prompt, build_messages, count_messages
    from .chat.transcript import Transcript, Turn
    from .pool import AsyncPool, MemoryPool
    from .recall.blended import BlendedIndex
    from .recall.conversation import ConversationIndex
    from .recall.embedding import EmbeddingIndex
    from .stores.sqlite import SQLiteStore

# Loaded when they are asked for: most programs need none of them.
_LAZY = {
    "AsyncPool": "pool",
    "BlendedIndex": "recall.blended",
    "ConversationIndex": "recall.conversation",
    "EmbeddingIndex": "recall.embedding",
    "MemoryPool": "pool",
    "Prompt": "chat.messages",
    "SQLiteStore": "stores.sqlite",
    "Transcript": "chat.transcript",
    "Turn": "chat.transcript",
    "build_messages": "chat.messages",
    "count_messages": "chat.messages",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    if name == "__version__":
        from importlib.metadata import version  # costs more than all the rest of the import

        return version("sentinel-memory")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, "__version__"})
