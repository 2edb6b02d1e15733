"""Audit: how much was forgotten, by cause and kind, saved with the forgetting itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, get_args

from .._basics.times import epoch_milliseconds
from ..memory import Memory
from ..results import Cause, Compaction, Events

__all__ = ["Audit", "Tally"]

_MOST_KINDS: Final = 1_000
"""Kinds that are counted by themselves under one cause; what programs make up beyond that is
counted under ``*``, so that the document stays small."""
_OTHER: Final = "*"
_CAUSES: Final[tuple[str, ...]] = get_args(Cause)


class Tally(NamedTuple):
    """Counts of one moment.

    ``compactions`` that ran; ``removed`` entries by cause (``expired``, ``evicted``,
    ``forgotten``, ``replaced`` by other data) and kind; ``repeated``: how often equal data was
    remembered again; ``last_at``: the time of the last compaction in epoch seconds, or ``None``.
    ``later - earlier`` is what happened between; after a ``clear`` it may be negative.
    """

    compactions: int
    removed: Mapping[tuple[str, str], int]
    repeated: int
    last_at: float | None

    def __sub__(self, earlier: Tally) -> Tally:
        if not isinstance(earlier, Tally):
            return NotImplemented
        removed = dict(self.removed)
        for what, number in earlier.removed.items():
            removed[what] = removed.get(what, 0) - number
        return Tally(
            self.compactions - earlier.compactions,
            {what: number for what, number in removed.items() if number},
            self.repeated - earlier.repeated,
            self.last_at,
        )


class Audit:
    """What was forgotten, by cause and kind, as a section of the memory's document.

    Counted in the change itself: a transaction that is undone counts nothing, and after a restart
    counting continues. What a load had no room for before the audit was attached is counted when
    it is. After ``memory.clear()`` it starts anew, with what was cleared as forgotten. ``name`` is
    that of the section. Raises ``ValueError`` for a name that is taken.

    >>> memory = Memory(limit=1)
    >>> audit = Audit(memory)
    >>> before = audit.tally()
    >>> for number in range(3):
    ...     _ = memory.remember(f"chat:{number}", number)
    >>> (audit.tally() - before).removed
    {('evicted', 'chat'): 2}
    """

    def __init__(self, memory: Memory, *, name: str = "audit") -> None:
        self._section: Final = _Section()
        self._attached: Final = memory.attach(name, self._section)
        loaded = memory.last_load
        if loaded is not None and loaded.compaction is not None:
            events = _events(loaded.compaction)
            self._attached.change(lambda now: self._section.observe(events, now=now))

    def tally(self) -> Tally:
        """The counts of this moment, as a value of its own."""
        return self._attached.read(lambda _: self._section.tally())

    def __repr__(self) -> str:
        return f"<Audit of {sum(self.tally().removed.values())} removals>"


def _events(compaction: Compaction) -> Events:
    expired = tuple(("expired", entry) for entry in compaction.expired)
    evicted = tuple(("evicted", entry) for entry in compaction.evicted)
    removed: tuple[Any, ...] = (*expired, *evicted)
    return Events(removed, 1, ())


class _Section:
    """The section ``audit``."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._compactions = 0
        self._removed: Counter[tuple[str, str]] = Counter()
        self._repeated = 0
        self._last_ms: int | None = None

    def observe(self, events: Events, *, now: int) -> None:
        removed = self._removed.copy()
        for cause, entry in events.removed:
            what = (cause, entry.kind)
            if what not in removed and sum(one == cause for one, _ in removed) >= _MOST_KINDS:
                what = (cause, _OTHER)
            removed[what] += 1
        self._removed = removed
        self._compactions += events.compactions
        self._repeated += len(events.repeated)
        if events.compactions:
            self._last_ms = now

    def tally(self) -> Tally:
        last = None if self._last_ms is None else self._last_ms / 1000
        return Tally(self._compactions, dict(self._removed), self._repeated, last)

    def dump(self, *, now: int) -> dict[str, Any]:
        removed: dict[str, dict[str, int]] = {}
        for (cause, kind), number in self._removed.items():
            removed.setdefault(cause, {})[kind] = number
        return {
            "compactions": self._compactions,
            "removed": removed,
            "repeated": self._repeated,
            "lastAt": self._last_ms,
        }

    def restore(self, value: Any, /, *, now: int) -> None:
        if not isinstance(value, dict) or not isinstance(value.get("removed"), dict):
            raise ValueError("audit must be an object with an object removed")
        removed: Counter[tuple[str, str]] = Counter()
        for cause, kinds in value["removed"].items():
            if cause not in _CAUSES or not isinstance(kinds, dict):
                raise ValueError(f"removed must have objects by cause ({', '.join(_CAUSES)})")
            for kind, number in kinds.items():
                removed[cause, kind] = _number(number, f"{cause} {kind}", least=1)
        compactions = _number(value.get("compactions"), "compactions")
        repeated = _number(value.get("repeated"), "repeated")
        last = value.get("lastAt")
        last_ms = None if last is None else epoch_milliseconds(last, "lastAt")
        self._compactions, self._removed = compactions, removed
        self._repeated, self._last_ms = repeated, last_ms


def _number(value: object, what: str, *, least: int = 0) -> int:
    if type(value) is not int or value < least:
        raise ValueError(f"{what} must be a whole number of at least {least}")
    return value
