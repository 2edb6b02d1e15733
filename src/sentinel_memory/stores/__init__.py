"""Stores."""
from ._protocol import Attachment, Section, State, Store
from .json_file import JsonFileStore
from .memory import MemoryStore
__all__ = ["Attachment", "JsonFileStore", "MemoryStore", "Section", "State", "Store"]
