"""Finding entries: the protocol of an index, and the default one, by words.

``ConversationIndex``, ``EmbeddingIndex`` and ``BlendedIndex`` have modules of their own here, and
so has ``NameIndex``, which ``sentinel_memory.agent`` exports.
"""

from __future__ import annotations

from .protocol import RecallIndex
from .words import WordIndex

__all__ = ["RecallIndex", "WordIndex"]
