"""The numbers of keys that ``Memory.add`` makes, such as ``note:17``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..entry import Entry
from .entries import EntrySet

__all__ = ["Numbering"]

_MOST_DIGITS: Final = 15  # of a number in a key that ``add`` goes on from; more digits are a name


class Numbering:
    """The highest number of each kind for which ``add`` was called, as a document keeps it."""

    def __init__(self, highest: Mapping[str, int] | None = None) -> None:
        self.highest = dict(highest or {})

    def next(self, kind: str, entries: EntrySet) -> int:
        """The number for the next key of that kind: higher than all it had, and free."""
        if kind in self.highest:
            highest = self.highest[kind]
        else:
            highest = max((_number_of(entry, kind) for entry in entries.stored()), default=0)
        number = highest + 1
        while f"{kind}:{number}" in entries.serials:
            number += 1
        return number

    def note(self, kind: str, number: int) -> None:
        """Note that a key of that kind has this number, so that ``add`` never gives it."""
        self.highest[kind] = max(number, self.highest.get(kind, 0))

    def note_key(self, entry: Entry) -> None:
        """Note the number in the key of an entry, if ``add`` was called for its kind."""
        if self.highest and (kind := entry.kind) in self.highest:
            self.note(kind, _number_of(entry, kind))


def _number_of(entry: Entry, kind: str) -> int:
    """The number in a key ``kind:number``; 0 for any other key, and for more than 15 digits."""
    number = entry.key.removeprefix(f"{kind}:")
    digits = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
    return int(number) if digits and number != entry.key else 0
