"""Where a memory is kept between two runs of the program: the protocol and two stores."""

from __future__ import annotations

from ._protocol import Attachment, Section, State, Store
from .json_file import JsonFileStore
from .memory import MemoryStore

__all__ = ["Attachment", "JsonFileStore", "MemoryStore", "Section", "State", "Store"]
