"""Finding what was said: an index by rare words, their stems, their neighbours and their dates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from itertools import chain
from typing import Final, Generic, TypeAlias, TypeVar

from .._basics.words import query_words, stored_words, tokens
from ..entry import Entry
from .words import entry_text

__all__ = ["ConversationIndex"]


def _each(words: str) -> tuple[str, ...]:
    return tuple(words.split())


# What questions are made of, not what they are about.
_STOP_WORDS: Final = frozenset(
    _each(
        "a about an and are as at be been but by can could did do does for from had has have he "
        "her his how i if in into is it its me my of on or our she should so than that the their "
        "them then there these they this to was we were what when where which who whom whose why "
        "will with would you your"
    )
)
_MONTHS: Final = _each(
    "january february march april may june july august september october november december"
)
_BEFORE_MONTHS: Final = frozenset(_each("by during in last next of since this until"))
_VOWELS: Final = frozenset("aeiouy")

# Each is in the middle of a range that measures within 1 point.
_CUT: Final = 6  # letters of a word that count; from 5 to all of them
_STEP: Final = 0.7  # what a word is worth one entry further on; from 0.6 to 0.8
_REACH: Final = 4  # entries that a word reaches to either side; from 3 to 6
_COMMON: Final = 0.1  # what more of the entries have says nothing of their neighbours; to 0.3
_COMMON_LEAST: Final = 10  # entries: so few are not common in the smallest memory
_FLOOR: Final = 0.2  # of the best relevance: less is noise, and takes time to rank; to 0.3

_YEAR, _MONTH, _DAY = 0, 1, 2
_Day: TypeAlias = tuple[int, int, int]
_EPOCH: Final = date(1970, 1, 1).toordinal()
_LAST: Final = date.max.toordinal()

_Label = TypeVar("_Label")


class _Node:
    """One entry: its place between its neighbours, and where it is listed."""

    __slots__ = ("after", "before", "key", "lists", "stream", "updated_ms")

    def __init__(self, key: str, updated_ms: int, stream: str | None) -> None:
        self.key = key  # empty once the entry is gone
        self.updated_ms = updated_ms
        self.stream = stream
        self.before: _Node | None = None
        self.after: _Node | None = None
        self.lists: tuple[_Listed[str] | _Listed[_Day], ...] = ()


class _Listed(Generic[_Label]):
    """The entries that share a word, or a day; those that are gone leave when they are half."""

    __slots__ = ("gone", "home", "label", "nodes")

    def __init__(self, label: _Label, home: dict[_Label, _Listed[_Label]]) -> None:
        self.label = label
        self.home = home
        self.nodes: list[_Node] = []
        self.gone = 0

    def __len__(self) -> int:
        return len(self.nodes) - self.gone

    def lose_one(self) -> None:
        """One of the nodes has just lost its key."""
        self.gone += 1
        if self.gone == len(self.nodes):
            del self.home[self.label]
        elif self.gone > len(self.nodes) // 2:
            self.nodes = self.live()
            self.gone = 0

    def live(self) -> list[_Node]:
        """The nodes of entries that are not gone."""
        return [node for node in self.nodes if node.key] if self.gone else self.nodes


def _listed(home: dict[_Label, _Listed[_Label]], label: _Label) -> _Listed[_Label]:
    found = home.get(label)
    if found is None:
        found = home[label] = _Listed(label, home)
    return found


class _Worth(dict[int, float]):
    """The sum of the weights of the words whose bits are set, always added in the same order."""

    def __init__(self, weights: list[float]) -> None:
        self._weights = weights

    def __missing__(self, mask: int) -> float:
        total, left = 0.0, mask
        while left:
            lowest = left & -left
            total += self._weights[lowest.bit_length() - 1]
            left ^= lowest
        self[mask] = total
        return total


class ConversationIndex:
    """An index for what people say to each other, turn by turn; nothing to install or configure.

    Relevance is the share of the question that is found, each word weighed by how few entries
    have it. It is made for English conversations and no worse elsewhere:

    - Words are those of ``WordIndex``; of English endings (``-s -ing -ed -ly``) nothing counts, nor
      does what follows the sixth letter of a Latin, Greek or Cyrillic word. About 70 English words
      that questions are made of (what, did, the) count only in a question that has no others.
    - Neighbours: what stands in one turn counts, damped, for the four turns before and the four
      after it; the answer is often next to the word. Turns are entries of one stream, whose keys
      differ in a number after the last colon (``chat:17``), in the order in which they were last
      remembered. An entry with any other key is on its own.
    - Dates: a question may name the UTC day on which an entry was last remembered, whole or in
      part: ``2023-05-08``, ``8 May 2023``, ``in May``, ``2023``.
    - What has less than a fifth of the best relevance is not found.

    In five conversations of the LoCoMo data set (786 questions, 592 turns each), 800 tokens of
    context hold all that answers a question for 74 %, with ``WordIndex`` for 39 %. Where the order
    means nothing, neighbours cost 3 points. Of 200 questions about facts, and of 40 in Czech,
    Japanese, Hindi and Thai, none is answered worse than with ``WordIndex``.

    A question takes about 0.3 ms among 1,000 turns and 3 ms among 10,000; discarding, and
    adding in the order of time, never look at the other entries.

    >>> from sentinel_memory import Memory
    >>> memory = Memory(index=ConversationIndex())
    >>> for number, text in enumerate(["Any pets?", "Two cats!", "Lovely weather.", "Yes."]):
    ...     _ = memory.remember(f"chat:{number}", text)
    >>> [match.data for match in memory.recall("Which pets?", limit=2)]
    ['Any pets?', 'Two cats!']
    """

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._words: dict[str, _Listed[str]] = {}  # by stem
        self._days: dict[_Day, _Listed[_Day]] = {}  # by UTC day
        self._last: dict[str, _Node] = {}  # the newest node of each stream

    def add(self, entry: Entry, /) -> None:
        """Make ``entry`` findable by its words, those of its neighbours, and its day."""
        self.discard(entry.key)
        node = _Node(entry.key, entry.updated_ms, _stream_of(entry.key))
        stems = set(map(_stem, stored_words(entry_text(entry))))
        node.lists = (
            *(_listed(self._words, stem) for stem in stems),
            *(_listed(self._days, day) for day in _day_of(entry.updated_ms)),
        )
        for listed in node.lists:
            listed.nodes.append(node)
        self._nodes[node.key] = node
        self._link(node)

    def discard(self, key: str, /) -> None:
        """Forget the entry of that key; those before and after it become neighbours."""
        node = self._nodes.pop(key, None)
        if node is None:
            return
        node.key = ""
        for listed in node.lists:
            listed.lose_one()
        node.lists = ()
        self._unlink(node)

    def _link(self, node: _Node) -> None:
        if node.stream is None:
            return
        # By time, so that a memory read back from its file has the same neighbours.
        before, after = self._last.get(node.stream), None
        while before is not None and before.updated_ms > node.updated_ms:
            before, after = before.before, before
        node.before, node.after = before, after
        if before is not None:
            before.after = node
        if after is not None:
            after.before = node
        else:
            self._last[node.stream] = node

    def _unlink(self, node: _Node) -> None:
        if node.stream is None:
            return
        before, after = node.before, node.after
        if before is not None:
            before.after = after
        if after is not None:
            after.before = before
        elif before is not None:
            self._last[node.stream] = before
        else:
            del self._last[node.stream]
        node.before = node.after = node.stream = None

    def search(self, query: str, /) -> Mapping[str, float]:
        """What of ``query``, by weight, is in or near each entry; from a fifth of the best up."""
        asked = query_words(query)
        stems = {_stem(word) for word in asked - _STOP_WORDS} or {_stem(word) for word in asked}
        dates = self._dated(query)
        named = {_stem(word) for word, _ in dates}
        total = 0.0
        rare: list[tuple[float, list[_Node]]] = []
        common: list[tuple[float, list[_Node]]] = []
        limit = max(_COMMON_LEAST, _COMMON * len(self._nodes))
        for stem in sorted(stems):
            listed = self._words.get(stem)
            if listed is None:
                if stem not in named:
                    total += self._weight(0)
                continue
            weight = self._weight(len(listed))
            total += weight
            (rare if len(listed) <= limit else common).append((weight, listed.live()))
        for _, nodes in dates:
            weight = self._weight(len(nodes))
            total += weight
            common.append((weight, nodes))
        scores = _spread(rare)
        _support(scores, common)
        if not scores:
            return {}
        least = _FLOOR * max(scores.values())
        return {
            node.key: min(1.0, score / total) for node, score in scores.items() if score >= least
        }

    def _weight(self, count: int) -> float:
        """What a word of ``count`` entries is worth: always above 0."""
        return math.log((len(self._nodes) + 1) / (count + 0.5))

    def _dated(self, query: str) -> list[tuple[str, list[_Node]]]:
        """The entries of each year, month and day of the month that the question names."""
        asked = _dates_in(query)
        if not asked:
            return []
        found = []
        for (part, value), word in asked.items():
            of_date = [listed.live() for day, listed in self._days.items() if day[part] == value]
            if of_date:
                found.append((word, list(chain.from_iterable(of_date))))
        return found


def _spread(words: list[tuple[float, list[_Node]]]) -> dict[_Node, float]:
    """For each node the weights of its words, and damped those that are only near it."""
    masks: dict[_Node, int] = {}  # which of the words a node has, as bits
    for number, (_, nodes) in enumerate(words):
        for node in nodes:
            masks[node] = masks.get(node, 0) | 1 << number
    worth = _Worth([weight for weight, _ in words])
    scores = {node: worth[mask] for node, mask in masks.items()}
    known = masks.copy()

    def reach(places: list[tuple[_Node, int]], factor: float) -> None:
        for node, mask in places:
            had = known.get(node, 0)
            new = mask & ~had
            if new:
                known[node] = had | new
                scores[node] = scores.get(node, 0.0) + factor * worth[new]

    # The nearest comes first, so that each word counts from where it is worth most. What is said
    # after something is one step nearer to it than what was said before.
    onward = backward = list(masks.items())
    factor = 1.0
    for _ in range(_REACH):
        factor *= _STEP
        onward = [(node.after, mask) for node, mask in onward if node.after is not None]
        reach(onward, factor)
        backward = [(node.before, mask) for node, mask in backward if node.before is not None]
        reach(backward, factor * _STEP)
    return scores


def _support(scores: dict[_Node, float], words: list[tuple[float, list[_Node]]]) -> None:
    """Add words that do not spread, heaviest first."""
    words.sort(key=lambda pair: -pair[0])
    best = max(scores.values(), default=0.0)
    left = math.fsum(weight for weight, _ in words)
    for weight, nodes in words:
        if left >= _FLOOR * best:
            for node in nodes:
                scores[node] = scores.get(node, 0.0) + weight
        else:
            # Entries that have only the words left would stay under the floor.
            for node in nodes:
                if node in scores:
                    scores[node] += weight
        left -= weight


def _stream_of(key: str) -> str | None:
    """What the keys of one stream share: everything before a last part that is a number."""
    stream, _, last = key.rpartition(":")
    return stream if last.isdecimal() and stream else None


def _day_of(updated_ms: int) -> list[_Day]:
    """Year, month and day; nothing where the calendar ends."""
    ordinal = _EPOCH + updated_ms // 86_400_000
    if not 0 < ordinal <= _LAST:
        return []
    day = date.fromordinal(ordinal)
    return [(day.year, day.month, day.day)]


def _stem(word: str) -> str:
    """What the forms of one word share."""
    if not (word.isalpha() and word < "\u0530"):
        return word
    if len(word) > 3 and word.isascii():
        word = _without_ending(word)
    return word[:_CUT]


def _without_ending(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us")):
        word = word[:-1]
    for ending in ("ing", "ed", "ly"):
        start = word[: -len(ending)]
        if word.endswith(ending) and len(start) > 2 and not _VOWELS.isdisjoint(start):
            word = start
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if len(word) > 3 and word[-1] in "ey":
        return word[:-1] + "i" * (word[-1] == "y")
    return word


def _dates_in(query: str) -> dict[tuple[int, int], str]:
    """The years, months and days of the month in a text, each with the word that names it.

    Where a month is named, a number is a day; two digits after a year are a month, two more a day.
    "May" and "march" are months next to a number or after a word like "in".

    >>> list(_dates_in("On the 8th of May, or 2023-06-09?").values())
    ['may', '2023', '06', '09', '8th']
    >>> list(_dates_in("May I march with 8 friends?").values())
    []
    """
    words = [word for word in tokens(query) if isinstance(word, str) and word.isascii()]
    found: dict[tuple[int, int], str] = {}
    numbers: list[tuple[int, str]] = []
    awaited = None  # what two digits would be here
    for place, word in enumerate(words):
        number = word.removesuffix("st").removesuffix("nd").removesuffix("rd").removesuffix("th")
        if word in _MONTHS:
            around = words[max(0, place - 1) : place] + words[place + 1 : place + 2]
            if (
                word not in ("may", "march")
                or any(near[0].isdigit() for near in around)
                or (place and words[place - 1] in _BEFORE_MONTHS)
            ):
                found[_MONTH, _MONTHS.index(word) + 1] = word
        elif len(word) == 4 and word.isdigit() and "1900" <= word < "2200":
            found[_YEAR, int(word)] = word
            awaited = _MONTH
            continue
        elif awaited is not None and len(word) == 2 and word.isdigit():
            found[awaited, int(word)] = word
            awaited = _DAY if awaited == _MONTH else None
            continue
        elif number.isdigit() and len(number) <= 2:
            numbers.append((int(number), word))
        awaited = None
    if any(part == _MONTH for part, _ in found):
        found.update(((_DAY, number), word) for number, word in numbers)
    return found
