"""The document of a memory: its version, its named sections, and the check that it is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from ._basics.checks import brief

__all__ = ["RESERVED", "VERSION", "Attachment", "Section", "State", "shape_problem"]

_T = TypeVar("_T")

VERSION: Final = 1
RESERVED: Final = frozenset(
    {"version", "entries", "rejected", "limit", "limits", "numbers", "digest"}
)
"""Names that a section may not have: the other members of a document."""

State: TypeAlias = dict[str, Any]
"""One memory as a JSON document: ``version``, ``entries``, ``working`` and further sections."""


class Section(Protocol):
    """A named part of the document, attached with ``Memory.attach``.

    The memory calls these methods under its lock; they must not call the memory.
    ``now`` is the time of the call in epoch milliseconds. A section that has a further method
    ``observe(events, *, now)`` is told of what a change made of the entries, as ``Events``: what
    left, with its cause, what was repeated, and the compactions. It is called before the change is
    saved, and not for a load or an undo that replaces everything.
    """

    def dump(self, *, now: int) -> Any:
        """The section as JSON data."""

    def restore(self, value: Any, /, *, now: int) -> Sequence[tuple[Any, str]] | None:
        """Take over what ``dump`` returned, or raise ``ValueError`` and change nothing.

        A section may take over a part only: it returns what it did not take, as pairs of a stored
        form and a reason, and the memory keeps those with the entries that are not valid.
        """

    def clear(self) -> None:
        """Keep nothing."""


class Attachment(Protocol):
    """How the public side of a section reaches the memory: what ``Memory.attach`` returns.

    ``read`` and ``change`` call the function that they are given with the time of the call in epoch
    milliseconds, and return its result. A function, and not a block, because a block that an
    exception hits on its way in or out (Ctrl-C, a signal handler) could leave a lock taken.
    """

    def read(self, see: Callable[[int], _T], /) -> _T:
        """Call ``see(now)`` while nobody changes the memory."""

    def change(self, make: Callable[[int], _T], /) -> _T:
        """Call ``make(now)`` while nobody else looks; then save, if the memory saves by itself.

        What ``make`` raises is raised, and counts as no change.
        """

    def clear(self) -> None:
        """Clear the section, and remove its rejected parts; then save as ``change`` does."""


def shape_problem(state: Any) -> str | None:
    """Why ``state``, JSON data, is not a document of this version; ``None`` if it is one."""
    if not isinstance(state, dict):
        return f"it must be an object, not {type(state).__name__}"
    version = state.get("version")
    shown = brief(version) if isinstance(version, int) else f"{version!r:.40}"
    if type(version) is not int or version != VERSION:
        if type(version) is int and version > VERSION:
            newer = f"its version is {shown}, from a newer release"
            return f"{newer}; this one reads version {VERSION} only"
        return f"its version must be the integer {VERSION}, not {shown}"
    if not isinstance(state.get("entries"), list):
        return "its entries are missing or not a list"
    return None
