"""Values that calls return: what was remembered, removed, loaded and counted."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from .entry import Entry

__all__ = [
    "Cause",
    "Compaction",
    "Events",
    "Explained",
    "Explanation",
    "LoadResult",
    "Reason",
    "Rejected",
    "Remembered",
    "Stats",
]

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
    ``compactions`` is how many compactions ran; ``repeated`` has the entries whose equal data was
    remembered again.
    """

    removed: tuple[tuple[Cause, Entry], ...]
    compactions: int
    repeated: tuple[Entry, ...]


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


Reason: TypeAlias = Literal["pinned", "matches", "worth"]
"""Why an entry stands where it does: it is pinned, it matches the question, or by its worth."""


class Explained(NamedTuple):
    """One row of an explanation.

    ``relevance`` and ``score`` are 0 for an entry that does not match; ``tokens`` is what the line
    of the entry costs alone; ``taken`` says whether the entry is in the context.
    """

    entry: Entry
    why: Reason
    relevance: float
    score: float
    retention: float
    tokens: int | float
    taken: bool

    def __repr__(self) -> str:
        return (
            f"Explained(key={self.entry.key!r}, why={self.why!r}, score={self.score!r},"
            f" retention={self.retention!r}, tokens={self.tokens}, taken={self.taken})"
        )


class Explanation(tuple[Explained, ...]):
    """Why each live entry is in a context or not: a row for each, best first.

    Printed, it is a table.
    """

    __slots__ = ()

    def __str__(self) -> str:
        lines = ["taken  why      score  retention  tokens  key"]
        lines += [
            f"{'yes' if row.taken else 'no':5}  {row.why:7}  {row.score:5.3f}  {row.retention:9.3f}"
            f"  {row.tokens:6}  {row.entry.key}"
            for row in self
        ]
        return "\n".join(lines)


class Remembered(NamedTuple):
    """What ``remember`` did: the ``entry``, whether it was ``kept``, and the automatic
    ``compaction`` that followed, or ``None``."""

    entry: Entry
    kept: bool
    compaction: Compaction | None


class Stats(NamedTuple):
    """Counts: ``size`` live and ``stored`` entries of at most ``limit``, live ``cache`` values;
    since the memory was made, ``compactions`` and what they removed as ``expired`` or ``evicted``;
    ``kinds`` has the live entries of each kind.
    """

    size: int
    stored: int
    limit: int
    cache: int
    compactions: int
    expired: int
    evicted: int
    kinds: dict[str, int]
