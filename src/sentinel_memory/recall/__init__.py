"""Finding entries: what an index is, and the default one, by words.

``ConversationIndex``, ``EmbeddingIndex`` and ``BlendedIndex`` have modules of their own here.
"""

from __future__ import annotations

from .protocol import RecallIndex
from .words import WordIndex

__all__ = ["RecallIndex", "WordIndex"]
