"""The greedy choice of lines for a token budget.

Done literally, the whole text is counted once for every line that is considered. Nearly all
tokenizers are local, though: what a line costs depends on the line and on a few dozen characters
on either side of it. So what a line costs alone says whether it surely fits, or surely does not.
Between the two, the piece of the text around its place is counted without it and with it. A whole
text is counted only now and then, to see whether the sum of all that still is what the tokenizer
says, and at the end. The same choice comes out. A tokenizer that is not local is nearly always
noticed by the difference, and gets the literal procedure; the budget holds in any case.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from types import MethodType
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = ["Choice", "Counts", "choose", "choose_by_weight", "joined"]

Count: TypeAlias = Callable[[str], Any]

# In tokens.
_DOUBT: Final = 3  # by how much the cost of a line alone may be off, and a sixth of it
_SLACK: Final = 8  # by how much the sum of those of several lines may be off, and an eighth of it
_NEAR: Final = 8  # how near the budget a prediction is worth a check
_CHECKS: Final = 3  # how many of those are checked

# In characters.
_LEAST: Final = 16  # how much on either side of a place is looked at, up to the end of a word,
_MOST: Final = 64  # and at most


class Choice(NamedTuple):
    """Indexes of the lines taken, in the order of the text, and of those left out, as ranked."""

    taken: list[int]
    left_out: list[int]
    text: str
    tokens: Any


class Counts:
    """What the last tokenizer said of short texts, kept between calls: hashes of them, no text.

    Only what the last call asked for is kept. A tokenizer is known by being the same object, or
    the same method of the same object; one that is made anew for each call finds nothing.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Keep nothing, the tokenizer neither."""
        self._kept: tuple[Any, dict[int, Any]] = (None, {})

    def get(self, tokenizer: object) -> dict[int, Any]:
        """Counts by hash of text, not to be changed."""
        former, counts = self._kept
        same = former is tokenizer or (type(former) is MethodType and former == tokenizer)
        return counts if same else {}

    def keep(self, tokenizer: object, counts: dict[int, Any]) -> None:
        """Keep these and no others."""
        self._kept = (tokenizer, counts)


def joined(lines: Sequence[str], indexes: Sequence[int], *, separator: str, header: str) -> str:
    """The text of these lines; the header stands only above something."""
    shown = [lines[index] for index in indexes]
    return separator.join([header, *shown] if header and shown else shown)


def choose_by_weight(
    weights: Sequence[int], rank: Callable[[], Sequence[int]], room: int, *, between: int
) -> tuple[list[int], list[int]]:
    """The choice if a text weighs what its lines do and ``between`` for each seam: no joining.

    Gives the indexes taken, in the order of the text, and those left out, as ranked.
    """
    if not weights:
        return [], []
    if sum(weights) + between * (len(weights) - 1) <= room:
        return list(range(len(weights))), []
    least = min(weights)
    taken: list[int] = []
    left_out: list[int] = []
    ranking = iter(rank())
    for index in ranking:
        weight = weights[index]
        if weight <= room:
            taken.append(index)
            room -= weight + between
        else:
            left_out.append(index)
            if room < least:
                left_out += ranking  # all the rest
    return sorted(taken), left_out


def choose(
    lines: Sequence[str],
    rank: Callable[[], Sequence[int]],
    budget: Any,
    count: Count,
    *,
    separator: str,
    header: str,
    known: dict[int, Any],
) -> tuple[Choice, dict[int, Any]]:
    """Walk the ranking, take each line with which the count of the whole text is in the budget.

    If all lines fit, they are all taken and ``rank`` is not called. ``known`` has counts of short
    texts by hash; those that are worth keeping come back with the choice.
    """
    text = _Text(lines, count, separator, header, known)
    everything = list(range(len(lines)))
    hopeless = text.least() > budget + budget // 8 + _NEAR
    if not hopeless and ((whole := text.whole(everything))[1] <= budget or not lines):
        return Choice(everything, [], *whole), text.asked
    ranking = rank()
    rounding = text.rounding()
    for allowed in (rounding,) if rounding else (0, 2):
        try:
            return _Walk(text, budget, allowed).choose(ranking), text.asked
        except _NotAsPredicted:
            pass
    if hopeless and (whole := text.whole(everything))[1] <= budget:
        return Choice(everything, [], *whole), text.asked
    return _choose_literally(text, budget, ranking), text.asked


def _choose_literally(text: _Text, budget: Any, ranking: Sequence[int]) -> Choice:
    taken: list[int] = []
    left_out: list[int] = []
    chosen = text.whole(taken)
    for index in ranking:
        candidate = sorted([*taken, index])
        whole = text.whole(candidate)
        if whole[1] <= budget:
            taken, chosen = candidate, whole
        else:
            left_out.append(index)
    return Choice(taken, left_out, *chosen)


class _NotAsPredicted(Exception):
    """A count is not what those of its parts promised."""


class _Text:
    """What the tokenizer says of the lines, alone and together."""

    def __init__(
        self,
        lines: Sequence[str],
        count: Count,
        separator: str,
        header: str,
        known: dict[int, Any],
    ) -> None:
        self.lines, self.separator, self.header = lines, separator, header
        self._count, self._known = count, known
        self.asked: dict[int, Any] = {}

    def whole(self, indexes: Sequence[int]) -> tuple[str, Any]:
        """The text of these lines, and its count."""
        text = joined(self.lines, indexes, separator=self.separator, header=self.header)
        return text, self._count(text)

    def part(self, text: str) -> Any:
        """The count of a short text, which may be known from the last call."""
        key = hash(text)
        tokens = self.asked.get(key)
        if tokens is None:
            tokens = self._known.get(key)
            if tokens is None:
                tokens = self._count(text)
            self.asked[key] = tokens
        return tokens

    def _alone(self, line: str) -> tuple[str, str]:
        """Two texts, of which the first one counts more by what the line alone adds."""
        separator = self.separator
        if separator:
            return separator + line + separator, separator
        return line + line, line  # it touches other lines, so let it touch itself

    def cost(self, line: str) -> Any:
        """What a line alone adds, wherever it stands."""
        text, without = self._alone(line)
        return self.part(text) - self.part(without)

    def nothing(self) -> Any:
        """What is to be added to the costs of lines for the count of their text."""
        return self.part(self.header) if self.header else self.part("a.") - self.cost("a.")

    def least(self) -> Any:
        """The sum of the costs that are known, without asking for any other."""
        known, total = self._known, 0
        if known:
            for line in self.lines:
                text, without = map(hash, self._alone(line))
                if text in known and without in known:
                    self.asked[text], self.asked[without] = known[text], known[without]
                    total += known[text] - known[without]
        return total

    def rounding(self) -> int:
        """By how much a difference of two counts may be off because they are rounded.

        0 if counts are whole numbers that grow evenly with the text. Otherwise twice what they
        deviate from growing evenly.
        """
        most = 0.0
        for unit in ("a\n", "a b.\n"):  # 2 and 5 characters, 2 and 3 tokens, 1 and 2 words
            one, two, many = (self.part(unit * times) for times in (1, 2, 64))
            if type(many) is int and many - one == 63 * (two - one):
                continue
            slope = (many - one) / 63
            off = [self.part(unit * times) - slope * times for times in range(1, 33)]
            most = max(most, max(off) - min(off), 0.5)
        return math.floor(2 * most + 1e-9)

    def around(self, taken: Sequence[int], place: int) -> tuple[str, str, Any]:
        """The pieces of a text before and after a place in it, and their count together.

        A line at that place would stand between the two pieces, which have their separators.
        """
        separator = self.separator
        before = self._enough(reversed(taken[max(0, place - _MOST) : place]))
        if self.header and len(before) == place:
            before.append(self.header)
        after = self._enough(taken[place : place + _MOST])
        head = _last_words(separator.join(reversed(before)))
        tail = _first_words(separator.join(after))
        seam = separator if before and after else ""
        return (
            head + separator if before else "",
            separator + tail if after else "",
            self.part(head + seam + tail),
        )

    def _enough(self, indexes: Iterable[int]) -> list[str]:
        """The first lines, until there are enough characters to look at."""
        found: list[str] = []
        size = 0
        for index in indexes:
            if size >= _MOST:
                break
            found.append(self.lines[index])
            size += len(found[-1])
        return found


# Cut where nearly all tokenizers cut anyway, before a space that is alone; or else not in a run.


def _last_words(text: str) -> str:
    cut = text.rfind(" ", -_MOST, -_LEAST)
    if cut < 1 or text[cut - 1] == " ":
        cut = max(0, len(text) - _MOST)
        cut = len(text[:cut].rstrip(text[cut : cut + 1]))
    return text[cut:]


def _first_words(text: str) -> str:
    cut = text.find(" ", _LEAST, _MOST)
    if cut < 1 or text[cut - 1] == " ":
        rest = text[_MOST:]
        cut = len(text) - len(rest.lstrip(text[_MOST - 1 : _MOST])) if rest else len(text)
    return text[:cut]


class _Walk:
    """The lines taken so far, and how well the count of their text is known."""

    def __init__(self, text: _Text, budget: Any, rounding: int) -> None:
        self.text, self.budget, self.rounding = text, budget, rounding
        self.checks = _CHECKS
        self.taken: list[int] = []
        self.tokens = text.nothing()  # of their text, as predicted since it was last counted
        self.unsure: Any = 0  # how far off that may be
        self.counted: tuple[str, Any] | None = None  # the text of what is taken, if counted
        self.pieces: dict[int, tuple[str, str, Any]] = {}  # around a place in what is taken

    def choose(self, ranking: Sequence[int]) -> Choice:
        left_out = [index for index in ranking if not self.takes(index)]
        self.settle()
        text, tokens = self.counted or self.text.whole([])
        return Choice(self.taken, left_out, text, tokens)

    def takes(self, index: int) -> bool:
        """Take the line if the text with it is in the budget."""
        cost = self.text.cost(self.text.lines[index])
        unsure = (self.unsure or _SLACK) + cost / 8 + self.rounding
        if self.tokens + cost + unsure <= self.budget:
            self.take(index, self.tokens + cost, unsure)
            return True
        doubt = self.unsure + _DOUBT + cost // 6 + 2 * self.rounding
        if self.tokens + cost - self.budget > doubt:
            return False
        if self.taken and self.unsure:
            self.settle()
            return self.takes(index)
        return self.fits(index)

    def fits(self, index: int) -> bool:
        """Look at the place of the line, and take it if the text with it is in the budget."""
        predicted, doubt = self.tokens, math.inf
        if self.taken or self.text.header:
            predicted, doubt = self.tokens + self.change(index), self.rounding
        over = predicted - self.budget
        check = self.checks > 0 and abs(over) <= _NEAR
        if check or -doubt < over <= doubt:
            self.checks -= check
            whole = self.text.whole(sorted([*self.taken, index]))
            if abs(whole[1] - predicted) > doubt:
                raise _NotAsPredicted
            if whole[1] > self.budget:
                return False
            self.take(index, whole[1], 0, whole)
        elif over > 0:
            return False
        else:
            self.take(index, predicted, self.rounding)
        return True

    def change(self, index: int) -> Any:
        """By how much the count of the text grows with the line."""
        place = bisect(self.taken, index)
        pieces = self.pieces.get(place)
        if pieces is None:
            pieces = self.pieces[place] = self.text.around(self.taken, place)
        before, after, tokens = pieces
        return self.text.part(before + self.text.lines[index] + after) - tokens

    def take(
        self, index: int, tokens: Any, unsure: Any, counted: tuple[str, Any] | None = None
    ) -> None:
        self.taken.insert(bisect(self.taken, index), index)
        self.tokens, self.unsure, self.counted = tokens, unsure, counted
        self.pieces.clear()

    def settle(self) -> None:
        """Count what is taken, if it is not: from there, predictions are sure again."""
        if self.taken and self.counted is None:
            predicted, unsure = self.tokens, self.unsure
            self.counted = self.text.whole(self.taken)
            self.tokens, self.unsure = self.counted[1], 0
            if abs(self.tokens - predicted) > unsure or self.tokens > self.budget:
                raise _NotAsPredicted
