"""The memory of an agent that runs unattended for months.

Loaded when a name is asked for, but for the two functions that are called like their modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# Replaced at once: a later import of the module would put the module in the function's place.
from .evidence import Evidence, Used, evidence, reinforce_used
from .near import Near, near

__all__ = [
    "Archive",
    "ArchiveDamagedError",
    "Archived",
    "Audit",
    "Evidence",
    "Identity",
    "Incident",
    "Incidents",
    "NameCard",
    "NameCount",
    "NameIndex",
    "Near",
    "Tally",
    "Used",
    "Weights",
    "clip",
    "evidence",
    "fingerprint",
    "names_in",
    "near",
    "reinforce_used",
]

if TYPE_CHECKING:
    from ..recall.names import NameCard, NameCount, NameIndex, names_in
    from .archive import Archive, Archived, ArchiveDamagedError
    from .audit import Audit, Tally
    from .identity import Identity
    from .incidents import Incident, Incidents
    from .keeping import Weights, clip, fingerprint

_LAZY = {
    "Archive": ".archive",
    "ArchiveDamagedError": ".archive",
    "Archived": ".archive",
    "Audit": ".audit",
    "Identity": ".identity",
    "Incident": ".incidents",
    "Incidents": ".incidents",
    "Tally": ".audit",
    "NameCard": "..recall.names",
    "NameCount": "..recall.names",
    "NameIndex": "..recall.names",
    "names_in": "..recall.names",
    "Weights": ".keeping",
    "clip": ".keeping",
    "fingerprint": ".keeping",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
