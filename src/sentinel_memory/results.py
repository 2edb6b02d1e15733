"""Values that calls return: what was remembered, removed, loaded and counted."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from .entry import Entry

__all__ = ["Cause", "Compaction", "Events", "LoadResult", "Rejected", "Remembered", "Stats"]

Cause: TypeAlias = Literal["expired", "evicted", "forgotten", "replaced"]
"""Why an entry left: its time was over, it was worth least, somebody asked for it, or its key was
remembered with other data."""


class Compaction(NamedTuple):
    """What one compaction removed.

    ``expired``: in the order in which they were last remembered; ``evicted``: lowest retention
    first, which is the order in which they went.
    """

    expired: tuple[Entry, ...] = ()
    evicted: tuple[Entry, ...] = ()


class Events(NamedTuple):
    """The events of one change, told to a section that has a method ``observe(events, *, now)``.

    ``removed`` has each entry that left, with its cause, in the order in which they went;
    ``compactions`` is how many compactions ran.
    """

    removed: tuple[tuple[Cause, Entry], ...]
    compactions: int


class Rejected(NamedTuple):
    """What a load did not take over: the raw stored value, and why."""

    entry: Any
    reason: str


class LoadResult(NamedTuple):
    """What ``load`` or ``restore`` found.

    ``loaded`` counts the valid entries, the expired ones too, before any compaction. ``dropped``
    counts what is not valid; ``rejected`` has it, with a reason each. ``compaction`` is what had
    to go because it was more than the limit, or ``None``; the next save removes it from the store.
    ``altered`` is true if the store can tell that what it has is not what was saved there, because
    somebody edited it or it was damaged.
    """

    loaded: int
    dropped: int
    rejected: tuple[Rejected, ...] = ()
    compaction: Compaction | None = None
    altered: bool = False

    def __repr__(self) -> str:
        return f"LoadResult(loaded={self.loaded}, dropped={self.dropped})"


class Remembered(NamedTuple):
    """What ``remember`` did: the ``entry``, whether it was ``kept``, and the automatic
    ``compaction`` that followed, or ``None``."""

    entry: Entry
    kept: bool
    compaction: Compaction | None


class Stats(NamedTuple):
    """Counts: ``size`` live and ``stored`` entries of at most ``limit``, live ``cache`` values;
    since the memory was made, ``compactions`` and what they removed as ``expired`` or ``evicted``.
    """

    size: int
    stored: int
    limit: int
    cache: int
    compactions: int
    expired: int
    evicted: int
