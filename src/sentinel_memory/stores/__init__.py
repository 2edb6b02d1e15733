"""Where a memory is kept between two runs of the program: the protocol and two stores."""

from __future__ import annotations

from ..document import State
from .json_file import JsonFileStore
from .memory import MemoryStore
from .protocol import Store

__all__ = ["JsonFileStore", "MemoryStore", "State", "Store"]
