"""The file of a memory: looked at without writing anything, and changed in one transaction."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from .._basics.numbers import DEFAULTS, whole
from ..entry import Entry
from ..errors import AlteredStoreWarning, DamagedStoreError
from ..memory import Memory
from ..recall.protocol import RecallIndex
from ..results import LoadResult
from ..stores import look_into, open_store
from ..stores.protocol import Store
from .lines import LONG_AGO, NoIndex
from .showing import Progress, Stop, size_text

__all__ = ["Change", "File", "Looked", "Outcome", "counted"]

_LARGE: Final = 4_000_000
"""Bytes of a file from which on its reading is announced, which cannot be done half-way: raised,
people wait longer in front of nothing; lowered, the line flickers. About 0.1 s a megabyte."""
_NO_LIMIT: Final = 10**12  # for looking at everything that there is


class Looked(NamedTuple):
    """What a look at a file found.

    ``memory`` has everything that is in the file, whatever its limits, and is not to be saved;
    ``entries`` are all of it, oldest first, the expired ones too. ``result`` is what the load said
    of it, ``plain`` what a program gets that opens the file without options, and ``limit`` the
    limit that it gets then. ``is_new`` says that there is no such memory yet.
    """

    state: dict[str, Any]
    digest: str
    memory: Memory
    entries: list[Entry]
    result: LoadResult
    plain: LoadResult
    limit: int
    is_new: bool

    @property
    def evicted(self) -> tuple[Entry, ...]:
        """The entries that are more than the limits, and go at the next load and save."""
        return () if self.plain.compaction is None else self.plain.compaction.evicted

    @property
    def limits(self) -> dict[str, int]:
        """The limits of kinds."""
        found = self.state.get("limits")
        items = found.items() if isinstance(found, dict) else ()
        return {kind: int(most) for kind, most in items if whole(most, 0, least=1)}


class Outcome:
    """What a change did, or would do: filled by the function that makes the change."""

    def __init__(self) -> None:
        self.done: list[str] = []  # keys of entries that were changed, in order
        self.missing: list[str] = []  # keys that were asked for and are not there
        self.replaced: list[str] = []  # keys of entries that were overwritten, also in ``done``
        self.evicted: list[Entry] = []
        self.expired = 0  # entries whose time was over, which a save leaves out
        self.counts: dict[str, int] = {}  # what else the command counts
        self.invalid: list[dict[str, Any]] = []  # lines that are not entries, with a reason
        self.needed = 0  # places that all would have needed
        self.limit = 0  # of the memory afterwards
        self.refused = ""  # why nothing was written
        self.notes: list[str] = []

    @property
    def is_nothing(self) -> bool:
        """Whether there was nothing to do, not even something that is so already."""
        return not (self.done or self.missing or self.notes)


class Change(NamedTuple):
    """A change of a memory: ``make`` makes it and fills the outcome.

    Nothing is saved if that is refused, or if nothing was done. Entries over a limit go only if
    ``evicts``, also those that were over it before. ``limit`` is a new limit of the memory.
    """

    make: Callable[[Memory, Outcome], None]
    evicts: bool
    dry: bool
    limit: int | None = None
    creates: bool = False


class File:
    """The file at ``path``, and in a database the memory called ``name``."""

    def __init__(self, path: str, name: str, *, now: float, progress: Progress) -> None:
        self.path: Final = path
        self.full_path: Final = os.path.join(os.getcwd(), os.path.expanduser(path))
        self._name: Final = name
        self._now: Final = now
        self._progress: Final = progress

    # Looking

    def look(self, *, index: RecallIndex | None = None, creates: bool = False) -> Looked:
        """Everything in the file; a ``Stop`` if there is none, unless the command creates it."""
        self._announce()
        found = look_into(self.path, self._name)
        if found is not None and found.state is None and found.names:
            others = ", ".join(repr(name) for name in found.names[:20])
            if not creates:
                mine = f"called {self._name!r}" if self._name else "without a name"
                raise Stop(f"{self.path} has no memory {mine}; --name takes one of {others}", 2)
        if found is None and not creates:
            raise Stop(f"there is no file {self.path}, and none was made", 2)
        folder = os.path.dirname(self.full_path)
        if found is None and not os.path.isdir(folder):
            raise Stop(f"there is no folder {folder}, and none was made", 2)
        if found is None or found.state is None:
            empty = {"version": 1, "entries": []}
            return self._looked(empty, "none", index)._replace(is_new=True)
        return self._looked(found.state, found.digest, index)

    def _looked(self, state: dict[str, Any], digest: str, index: RecallIndex | None) -> Looked:
        early = True
        memory = Memory(
            limit=_NO_LIMIT,
            limits={},
            index=NoIndex() if index is None else index,
            clock=lambda: LONG_AGO if early else self._now,
        )
        result = self._restored(memory, state)
        entries = list(memory)
        early = False
        plain, limit = result, state.get("limit")
        if "limits" in state or type(limit) is not int or limit < max(1, len(entries)):
            program = Memory(index=NoIndex(), clock=lambda: self._now)
            plain = self._restored(program, state)
            limit = program.stats().limit
        return Looked(state, digest, memory, entries, result, plain, limit, is_new=False)

    def _restored(self, memory: Memory, state: dict[str, Any]) -> LoadResult:
        counted = _Counted(state["entries"], self._progress)
        try:
            return memory.restore({**state, "entries": counted})
        except DamagedStoreError as error:
            raise DamagedStoreError(error.reason, path=self.path) from None

    def _announce(self) -> None:
        try:
            size = os.stat(self.full_path).st_size
        except (OSError, ValueError):
            return
        if size >= _LARGE:
            self._progress.tell(f"reading {size_text(size)}", now=True)

    # Changing

    def change(self, change: Change) -> Outcome:
        """Try the change on a copy; make it, unless that one is refused or does nothing.

        So whatever is refused, touches no file.
        """
        looked = self.look(creates=change.creates)
        trial = Memory(limit=change.limit, index=NoIndex(), clock=lambda: self._now)
        self._restored(trial, looked.state)
        outcome = _made(change, trial)
        if outcome.refused or not outcome.done:
            return outcome
        if not change.dry:
            outcome = self._write(change)
        self._note(outcome, looked)
        return outcome

    def _write(self, change: Change) -> Outcome:
        store = self._store()
        memory = Memory(
            store=store, load=False, limit=change.limit, index=NoIndex(), clock=lambda: self._now
        )
        outcomes: list[Outcome] = []

        def make(memory: Memory) -> None:
            outcomes.append(_made(change, memory))
            if outcomes[-1].refused or not outcomes[-1].done:
                raise _NothingToSave  # somebody was faster, and now it is refused

        self._progress.tell(f"saving {self.path}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlteredStoreWarning)  # it was noted at the look
            try:
                memory.transact(make)
            except _NothingToSave:
                return outcomes[-1]
        if getattr(store, "erasure_pending", False):
            outcomes[-1].notes.append(
                "another program is reading an older state of the database: until it is done, the"
                " removed text is still in the file -wal"
            )
        return outcomes[-1]

    def _store(self) -> Store:
        if not self._name:
            return open_store(self.path)
        from ..stores.sqlite import SQLiteStore

        return SQLiteStore(self.path, self._name)

    def _note(self, outcome: Outcome, before: Looked) -> None:
        """Say what the save changes beside what was asked for."""
        if before.is_new:
            memory = f"the memory {self._name!r} in it" if self._name else "the memory"
            outcome.notes.append(f"{self.path}: {memory} is new")
        if outcome.expired:
            leave = counted(outcome.expired, "expired entry leaves", "expired entries leave")
            outcome.notes.append(f"{leave} the file with this save")
        if before.digest == "differs":
            outcome.notes.append(
                "the file was edited or damaged since it was saved; this save gives it a new digest"
            )
        if before.result.dropped:
            parts = counted(before.result.dropped, "part", "parts")
            outcome.notes.append(
                f"{parts} of the file not valid, and set aside in it with this save; see check"
            )
        was, limit = before.limit, outcome.limit
        if limit != was:
            outcome.notes.append(
                f"the limit of the memory was {was:,}; with this save it is {limit:,}"
            )
        elif "limit" not in before.state and limit != DEFAULTS["limit"]:
            outcome.notes.append(
                f"the file names no limit; this save writes {limit:,}, so that nothing is lost"
            )


class _NothingToSave(Exception):
    """Raised inside a transaction so that it is undone."""


class _Counted(list[Any]):
    """A list that tells how far it was read."""

    def __init__(self, items: list[Any], progress: Progress) -> None:
        super().__init__(items)
        self._progress = progress

    def __iter__(self) -> Iterator[Any]:
        total = f"{len(self):,}"
        for number, item in enumerate(super().__iter__(), 1):
            if not number % 256:
                self._progress.tell(f"checking entry {number:,} of {total}")
            yield item


def _made(change: Change, memory: Memory) -> Outcome:
    """Make the change in a memory that was just loaded; see what it costs."""
    outcome = Outcome()
    loaded = memory.last_load
    if loaded is not None and loaded.compaction is not None:
        outcome.evicted += loaded.compaction.evicted
        outcome.expired += len(loaded.compaction.expired)
    stats = memory.stats()
    outcome.expired += stats.stored - stats.size
    outcome.needed = stats.size + len(outcome.evicted)
    outcome.limit = stats.limit
    change.make(memory, outcome)
    if outcome.evicted and not change.evicts and not outcome.refused:
        number = counted(len(outcome.evicted), "entry", "entries")
        outcome.done, outcome.replaced = [], []
        outcome.refused = (
            f"{number} would be evicted, because the limit is {outcome.limit:,}:"
            f" {', '.join(entry.key for entry in outcome.evicted[:5])}"
            f"{', ...' if len(outcome.evicted) > 5 else ''}; --evict lets them go"
        )
    return outcome


def counted(number: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many}"
