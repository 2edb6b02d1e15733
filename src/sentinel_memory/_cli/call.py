"""One call of the command line: its options, its file, its streams, and its exit codes."""

from __future__ import annotations

import argparse
from collections.abc import Sized
from typing import Any, Final, NamedTuple

from ..entry import Entry
from ..recall.protocol import RecallIndex
from .files import File, Looked, counted
from .selecting import Selection
from .showing import Progress, Screen

__all__ = ["CLOSED", "DONE", "INTERRUPTED", "NOTHING", "SOME", "WRONG", "Call", "text_of"]

DONE: Final = 0
NOTHING: Final = 1
WRONG: Final = 2
INTERRUPTED: Final = 130  # as a shell says of a program that Ctrl-C ended
CLOSED: Final = 141  # as a shell says of a program whose reader has gone

SOME: Final = 20
"""Items of a list of things that are missing that a person is shown, and told how many more there
are. Raised, what matters scrolls away; lowered, --json is needed more often."""


class Call(NamedTuple):
    """What a command gets."""

    options: argparse.Namespace
    file: File
    screen: Screen
    notes: Screen
    progress: Progress
    stdin: Any
    now: float

    @property
    def json(self) -> bool:
        """Whether JSON is wanted."""
        return getattr(self.options, "json", False)

    @property
    def selection(self) -> Selection:
        """The entries that the options mean."""
        options = self.options
        return Selection(options.kind, tuple(options.where), options.older, options.newer, self.now)

    def note(self, text: str) -> None:
        """Say something beside the result."""
        self.progress.end()
        self.notes.line(f"note: {text}")

    def look(self, index: RecallIndex | None = None) -> Looked:
        """Everything in the file, with a word about what is odd."""
        looked = self.file.look(index=index)
        self.progress.end()
        if looked.digest == "differs":
            self.note("the file was edited or damaged since it was saved; see check")
        if looked.evicted:
            number = counted(len(looked.evicted), "entry is", "entries are")
            self.note(
                f"{number} over the limits of the memory, and will be evicted when a program opens"
                " and saves it; see check"
            )
        return looked

    def found(self, found: Sized, nothing: str) -> int:
        """The exit code for what was found, and a word if it is nothing."""
        if found:
            return DONE
        self.note(nothing)
        return NOTHING

    def some(self, items: list[str]) -> str:
        """A list for a person, cut if it is long."""
        more = f", and {len(items) - SOME:,} more" if len(items) > SOME else ""
        return ", ".join(items[:SOME]) + more


def text_of(entry: Entry) -> str:
    """The data of an entry as a text: a string itself, other data as JSON."""
    return entry.line[len(entry.key) + 2 :]
