"""An index by names, which learns from all entries which words are names.

How names are found in one text is in ``_naming.py``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from .._basics.checks import check_callable, check_methods, check_str
from .._basics.numbers import warn_ignored, whole
from .._basics.words import tokens
from ..entry import Entry
from ._naming import Found, find_names, folded_name, names_in
from .protocol import RecallIndex, checked_answer, checked_relevance

__all__ = ["NameCard", "NameCount", "NameIndex", "names_in"]

_LIMIT: Final = 20
_BONUS: Final = 0.1  # relevance that a shared name adds to that of the base
_MOST_BONUS: Final = 0.3
_MOST_LETTERS: Final = 10  # of a name that a question has in a script without spaces
_OFTEN: Final = 2  # entries that begin with a name of several words, before that makes it a name


# Written as calls: in the body of a class a field may not be called like a method of tuples.
_NameCount = NamedTuple("_NameCount", [("name", str), ("count", int)])  # noqa: UP014


class NameCount(_NameCount):
    """A name as it was first written, and how many entries have it."""

    __slots__ = ()


_NameCard = NamedTuple(  # noqa: UP014
    "_NameCard",
    [
        ("name", str),
        ("count", int),
        ("keys", tuple[str, ...]),
        ("together", tuple[NameCount, ...]),
    ],
)


class NameCard(_NameCard):
    """One name: how many entries have it, their ``keys``, newest first, and the names that stand
    with it in them (``together``), those of most shared entries first."""

    __slots__ = ()


class _Item(NamedTuple):
    """The contribution of one entry: its names, its words without a capital, and its age."""

    names: dict[str, Found]
    plain: frozenset[str]
    newness: tuple[int, int]


class NameIndex:
    """An index by names: relevance is the share, by rarity, of the question's names.

    ``extract`` gives the names of a text, ``names_in`` unless another function is given (a model
    behind it, say); an entry whose ``meta`` has a list ``names`` has those instead. With a
    ``base``, another ``RecallIndex``, relevance is that of the base, and 0.1 more for each name
    that question and entry share, at most 0.3 more and at most 1: so a name finds what the base
    does not.

    It learns from the whole memory: a single word that stands uncapitalised in more entries than
    it stands as a name in is not a name, nor is what has its capital only at the start of
    sentences. Questions are not parsed: known names are looked up in them, whatever their case.

    Raises ``TypeError`` for an ``extract`` that cannot be called or a ``base`` that is not an
    index; ``add`` raises it for an ``extract`` that does not return texts.

    >>> from sentinel_memory import Memory
    >>> index = NameIndex()
    >>> memory = Memory(index=index)
    >>> _ = memory.remember("note:1", "The boat of Ondra needs paint.")
    >>> _ = memory.remember("note:2", "Ondra and Petra sail on Tuesday.")
    >>> [match.key for match in memory.recall("what did ondra say?")]
    ['note:2', 'note:1']
    >>> index.names()
    [NameCount(name='Ondra', count=2), NameCount(name='Petra', count=1)]
    """

    def __init__(
        self,
        extract: Callable[[str], Iterable[str]] = names_in,
        base: RecallIndex | None = None,
    ) -> None:
        check_callable("extract", extract)
        check_methods("base", base, ("add", "discard", "search"), optional=True)
        self._extract: Final = extract
        self._base: Final = base
        self._items: dict[str, _Item] = {}
        self._entries: dict[str, dict[str, Found]] = {}  # by folded name, then by key
        # By word, the keys of the entries that have it uncapitalised: as sets, so that an exception
        # in the middle of a change leaves nothing that ``discard`` does not undo.
        self._plain: dict[str, set[str]] = {}
        self._added = 0

    def add(self, entry: Entry, /) -> None:
        """Make ``entry`` findable by its names, and by the base."""
        self.discard(entry.key)
        item = self._read(entry)
        if self._base is not None:
            self._base.add(entry)
        self._added += 1
        self._items[entry.key] = item
        for word in item.plain:
            self._plain.setdefault(word, set()).add(entry.key)
        for name, found in item.names.items():
            self._entries.setdefault(name, {})[entry.key] = found

    def discard(self, key: str, /) -> None:
        """Forget the names of the entry of that key; a name leaves with its last entry."""
        if self._base is not None:
            self._base.discard(key)
        item = self._items.get(key)
        if item is None:
            return
        for name in item.names:
            of_name = self._entries.get(name, {})
            of_name.pop(key, None)
            if not of_name:
                self._entries.pop(name, None)
        for word in item.plain:
            of_word = self._plain.get(word, set())
            of_word.discard(key)
            if not of_word:
                self._plain.pop(word, None)
        del self._items[key]

    def prepare(self, query: str, /) -> None:
        """Call ``prepare`` of the base, if it has one, outside the memory's lock."""
        prepare = getattr(self._base, "prepare", None)
        if prepare is not None:
            prepare(query)

    def search(self, query: str, /) -> Mapping[str, float]:
        """The share, by rarity, of the names of ``query`` in each entry, or the base's answer
        with the bonus for shared names."""
        asked = self._asked(query)
        if self._base is not None:
            return self._with_base(query, asked)
        weights = {name: self._weight(name) for name in asked}
        total = math.fsum(weights.values())
        found: dict[str, float] = {}
        for name, weight in weights.items():
            for key in self._entries[name]:
                found[key] = found.get(key, 0.0) + weight
        return {key: min(1.0, weight / total) for key, weight in found.items() if total > 0}

    def _with_base(self, query: str, asked: list[str]) -> dict[str, float]:
        base = self._base
        answer = {} if base is None else checked_answer(base.search(query), type(base).__name__)
        found = {key: checked_relevance(value, key) for key, value in answer.items()}
        shared: Counter[str] = Counter()
        for name in asked:
            shared.update(self._entries[name].keys())
        for key, count in shared.items():
            bonus = min(_MOST_BONUS, _BONUS * count)
            found[key] = min(1.0, found.get(key, 0.0) + bonus)
        return found

    def shared(self, query: str, key: str) -> list[str]:
        """The names that a question and the entry of that key share, as the entry has them.

        Raises ``TypeError`` for a query or key that is not a ``str``.
        """
        check_str("query", query)
        check_str("key", key)
        return [
            self._entries[name][key].name
            for name in self._asked(query)
            if key in self._entries[name]
        ]

    def names(self, limit: int | float = _LIMIT) -> list[NameCount]:
        """The names of most entries first, those that came first among equals.

        ``limit`` is a whole number of at least 0 (20).
        """
        listed = [self._count(name) for name in self._entries if self._is_name(name)]
        listed.sort(key=lambda counted: -counted.count)
        return listed[: _checked_limit(limit)]

    def name(self, name: str, limit: int | float = _LIMIT) -> NameCard | None:
        """One name, in any case and accents: the entries that have it and the names with it.

        At most ``limit`` keys (20); ``count`` has them all. ``None`` for what is not a name.
        """
        check_str("name", name)
        most = _checked_limit(limit)
        folded = folded_name(name)
        if folded not in self._entries or not self._is_name(folded):
            return None
        keys = sorted(self._entries[folded], key=lambda key: self._items[key].newness, reverse=True)
        beside = Counter(
            other
            for key in self._entries[folded]
            for other in self._items[key].names
            if other != folded and self._is_name(other)
        )
        together = tuple(
            NameCount(self._count(other).name, count) for other, count in beside.most_common()
        )
        return NameCard(self._count(folded).name, len(keys), tuple(keys[:most]), together)

    # Deciding which words are names

    def _read(self, entry: Entry) -> _Item:
        text = "\n".join(_texts_in(entry.data))
        given = entry.meta.get("names")
        if isinstance(given, list) and all(isinstance(name, str) for name in given):
            found = [Found(name, strong=True) for name in given]
        elif self._extract is names_in:
            found = find_names(text)
        else:
            found = [Found(name, strong=True) for name in _checked_names(self._extract(text))]
        names: dict[str, Found] = {}
        for one in found:
            key = folded_name(one.name)
            if key:
                names.setdefault(key, one)
        plain = frozenset(_plain_words(text))
        return _Item(names, plain, (entry.updated_ms, self._added))

    def _is_name(self, name: str) -> bool:
        """Whether the entries together show that it is a name."""
        of_name = self._entries[name].values()
        strong = sum(found.strong for found in of_name)
        if " " in name:
            first = name.partition(" ")[0]
            return strong > 0 or (len(of_name) >= _OFTEN and first not in self._plain)
        return strong > 0 and len(self._plain.get(name, ())) <= strong

    def _count(self, name: str) -> NameCount:
        of_name = self._entries[name]
        return NameCount(next(iter(of_name.values())).name, len(of_name))

    def _weight(self, name: str) -> float:
        return math.log((len(self._items) + 1) / (len(self._entries[name]) + 0.5))

    def _asked(self, query: str) -> list[str]:
        """The known names in a question, each once.

        A part of a longer name that is there, too, is not asked for by itself.
        """
        runs = [run if isinstance(run, str) else "".join(run) for run in tokens(query)]
        strong = {folded_name(one.name) for one in find_names(query) if one.strong}
        found: dict[str, None] = {}
        taken: set[int] = set()
        longest = min(len(runs), 1 + max((n.count(" ") for n in self._entries), default=0))
        for size in range(longest, 0, -1):
            for start in range(len(runs) - size + 1):
                name = " ".join(runs[start : start + size])
                places = set(range(start, start + size))
                known = name in self._entries and not places <= taken
                if known and (self._is_name(name) or name in strong):
                    found[name] = None
                    taken |= places
        for run in tokens(query):
            if not isinstance(run, str):
                found |= dict.fromkeys(self._inside(run))
        return list(found)

    def _inside(self, letters: list[str]) -> list[str]:
        """The known names in a run of letters without spaces."""
        pieces = (
            "".join(letters[start : start + size])
            for size in range(_MOST_LETTERS, 0, -1)
            for start in range(len(letters) - size + 1)
        )
        return [name for name in pieces if name in self._entries and self._is_name(name)]


def _checked_limit(limit: object) -> int:
    number = whole(limit, -1, least=0)
    if number >= 0:
        return number
    if limit is not None:
        warn_ignored("limit", limit, "a whole number of at least 0", f"the default, {_LIMIT},")
    return _LIMIT


def _checked_names(given: object) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"extract must return the names, not {type(given).__name__}")
    names = list(given)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"extract must return names as str, not {type(name).__name__}")
    return names


def _texts_in(data: Any) -> list[str]:
    """Every string value in JSON data; mapping keys are words of the program."""
    if isinstance(data, str):
        return [data]
    if isinstance(data, dict):
        data = list(data.values())
    return [text for value in data for text in _texts_in(value)] if isinstance(data, list) else []


def _plain_words(text: str) -> Iterable[str]:
    """The folded words of a text that stand in it without a capital."""
    for word in set(text.split()):
        bare = word.lstrip("\"'([{\u201c\u2018\u00ab")
        if bare and bare == bare.lower():
            for run in tokens(bare):
                if isinstance(run, str) and not run.isdecimal():
                    yield run
