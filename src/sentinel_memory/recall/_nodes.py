"""Nodes: the entries of an index, each between its neighbours in a stream.

A stream is the turns of one conversation: entries whose keys differ only in a number after the last
colon. Its order is by time, so that a memory read back from its file has the same
neighbours; entries of one millisecond are in the order in which they were added.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import Final, TypeAlias

from .._basics.postings import Posting
from ._dates import Day
from ._speakers import Speaker

__all__ = ["DayList", "Node", "Streams", "WordList", "stream_of"]

# The low bits of a place, which count the entries; the milliseconds are above them.
_COUNT_BITS: Final = 40


class Node:
    """One entry: its place between its neighbours, and the lists that it is in."""

    __slots__ = (
        "after",
        "before",
        "days",
        "key",
        "length_factor",
        "place",
        "speaker",
        "stream",
        "words",
    )

    def __init__(self, key: str, updated_ms: int, count: int) -> None:
        self.key = key  # empty once the entry is removed
        # The time, and then the order of adding, as one number.
        self.place = (updated_ms << _COUNT_BITS) + count
        self.before: Node | None = None
        self.after: Node | None = None
        self.stream: _Stream | None = None
        self.words: tuple[WordList, ...] = ()
        self.days: tuple[DayList, ...] = ()
        self.speaker: Speaker | None = None
        self.length_factor = 1.0  # by which length reduces the score

    @property
    def updated_ms(self) -> int:
        """The time when the entry was last remembered, in epoch milliseconds."""
        return self.place >> _COUNT_BITS


WordList: TypeAlias = Posting[str, Node]
DayList: TypeAlias = Posting[Day, Node]

_PLACE: Final = attrgetter("place")


class _Stream:
    """The nodes of one stream in their order."""

    __slots__ = ("name", "nodes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Node] = []


class Streams:
    """The streams by name; a stream without nodes is removed."""

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}

    def link(self, node: Node, name: str) -> None:
        """Put ``node`` between its neighbours in the stream of that name."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = _Stream(name)
        nodes = stream.nodes
        # A search, not a walk: a clock that runs back must not make this quadratic.
        at = len(nodes)
        if nodes and nodes[-1].place > node.place:
            at = bisect_left(nodes, node.place, key=_PLACE)
        node.stream = stream
        node.before = nodes[at - 1] if at else None
        node.after = nodes[at] if at < len(nodes) else None
        nodes.insert(at, node)
        if node.before is not None:
            node.before.after = node
        if node.after is not None:
            node.after.before = node

    def unlink(self, node: Node) -> None:
        """Take ``node`` out of its stream; the nodes beside it become neighbours."""
        stream = node.stream
        if stream is None:
            return
        if node.before is not None:
            node.before.after = node.after
        if node.after is not None:
            node.after.before = node.before
        del stream.nodes[bisect_left(stream.nodes, node.place, key=_PLACE)]
        if not stream.nodes:
            del self._streams[stream.name]
        node.before = node.after = node.stream = None


def stream_of(key: str) -> str | None:
    """The name of the stream of a key: the part before a last colon and digits, else ``None``.

    >>> stream_of("chat:anna:17")
    'chat:anna'
    """
    name, _, last = key.rpartition(":")
    return name if last.isdecimal() and name else None
