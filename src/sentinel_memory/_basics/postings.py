"""Posting lists: for each label (a word, a day) the members that have it.

Adding is appending. A removed member only gets an empty key, and stays in its lists until half of
a list is removed, so that removing costs the same in a list of ten and of a million. With the last
member of a list its label is removed: nothing of a forgotten text stays.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, Protocol, TypeVar

__all__ = ["Posting", "Postings"]


class Keyed(Protocol):
    """A member of posting lists. Its key is empty once it is removed."""

    key: str


_Label = TypeVar("_Label", bound=Hashable)
_Member = TypeVar("_Member", bound=Keyed)


class Posting(Generic[_Label, _Member]):
    """The members that share one label, in the order in which they came.

    ``members`` includes removed members; ``len`` does not count them. ``gone`` is their number.
    """

    __slots__ = ("gone", "label", "members")

    def __init__(self, label: _Label) -> None:
        self.label = label
        self.members: list[_Member] = []
        self.gone = 0

    def __len__(self) -> int:
        return len(self.members) - self.gone

    def __bool__(self) -> bool:
        return True  # an empty list, too: ``posting or other`` must not replace it

    def live(self) -> list[_Member]:
        """The members that are not removed."""
        return [member for member in self.members if member.key] if self.gone else self.members


class Postings(dict[_Label, Posting[_Label, _Member]]):
    """Posting lists by label."""

    __slots__ = ()

    def get_or_make(self, labels: Iterable[_Label]) -> tuple[Posting[_Label, _Member], ...]:
        """The lists of these labels, made where there are none."""
        return tuple([self[label] for label in labels])

    def __missing__(self, label: _Label) -> Posting[_Label, _Member]:
        found = self[label] = Posting(label)
        return found

    def note_removed(self, lists: Iterable[Posting[_Label, _Member]]) -> None:
        """Note that a member of these lists was removed: its key has just become empty."""
        for posting in lists:
            posting.gone += 1
            if posting.gone == len(posting.members):
                self.pop(posting.label, None)
            elif posting.gone > len(posting.members) // 2:
                posting.members = posting.live()
                posting.gone = 0
