"""The greedy choice of lines for a token budget.

Theory of operation
-------------------
The definition is short, and is ``_choose_literally``: walk the ranking, and take a line if the
count of the whole text with it is within the budget. Done so, the whole text is counted once for
every line that is considered. The same choice comes out of far fewer characters, because nearly all
tokenizers are local: what a line adds to the count depends on the line and on a few dozen
characters on either side of it. So, in ``_Walk``, three things can be known of a line, each dearer
and surer than the one before:

1. Its *cost* alone, between two separators. It is kept from one call to the next. With the sum of
   the costs so far it says of most lines that they surely fit, or that they surely do not.
2. The *change* at its place: the text around the place where it would stand, counted without it and
   with it. For a local tokenizer that is exact, up to the rounding of its counts.
3. The count of the *whole text*: when sums of costs have become unsure, as a check of a few
   predictions near the budget, and once at the end, because a budget that holds only for what was
   predicted is no budget.

If a whole count is not as predicted, the tokenizer is not local. Then all that was chosen is thrown
away, and the literal procedure decides. So the budget holds for any tokenizer whatever, and the
choice is the literal one for every tokenizer that is local or is found out not to be.

If everything fits, nothing has to be chosen, and the ranking is not asked for. Counting everything
would be wasted where it is far over the budget, so it is left out when the known costs alone say so
(``least``; ``test_lines_that_merge_with_what_is_before_them_cost_no_more`` needs it). What rounding
does to differences of counts is measured first (``rounding``), since a tokenizer that rounds would
otherwise never be as predicted (``test_what_is_rounded_or_odd_costs_little_more``).
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from types import MethodType
from typing import Final, NamedTuple, TypeAlias

__all__ = ["Choice", "Counts", "choose", "choose_by_weight", "joined"]

Count: TypeAlias = Callable[[str], float]

_DOUBT: Final = 3
"""Tokens by which the cost of one line may be off, beside a sixth of it, before its place is looked
at. A larger doubt looks at more places; too small a one refuses lines that merge with others."""

_SLACK: Final = 8
"""Tokens by which the sum of several costs may be off, beside an eighth of the last one, before the
text is counted. A larger slack counts earlier."""

_NEAR: Final = 8
"""Tokens from the budget within which a prediction is checked by a whole count."""

_CHECKS: Final = 3
"""How many predictions near the budget are checked: more cost a whole count each, and find out more
tokenizers that are not local."""

_LEAST: Final = 16
"""Characters on either side of a place that are looked at, up to the end of a word. Fewer miss what
merges across a seam."""

_MOST: Final = 64
"""Characters on either side that are looked at at most, where no word ends."""


class Choice(NamedTuple):
    """Indexes of the lines taken, in the order of the text, and of those left out, as ranked."""

    taken: list[int]
    left_out: list[int]
    text: str
    tokens: float


class Counts:
    """Counts of short texts by the last tokenizer, kept between calls: hashes of them, no text.

    Only what the last call asked for is kept. A tokenizer is known by being the same object, or
    the same method of the same object; one that is made anew for each call finds nothing. Two texts
    of one hash would only mislead a prediction: what is returned was counted as a whole.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Keep nothing, the tokenizer neither."""
        self._kept: tuple[object, dict[int, float]] = (None, {})

    def get(self, tokenizer: object) -> dict[int, float]:
        """Counts by hash of text, not to be changed."""
        former, counts = self._kept
        same = former is tokenizer or (type(former) is MethodType and former == tokenizer)
        return counts if same else {}

    def keep(self, tokenizer: object, counts: dict[int, float]) -> None:
        """Keep these and no others."""
        self._kept = (tokenizer, counts)


def joined(lines: Sequence[str], indexes: Sequence[int], *, separator: str, header: str) -> str:
    """The text of these lines; the header stands only above something."""
    shown = [lines[index] for index in indexes]
    return separator.join([header, *shown] if header and shown else shown)


def choose_by_weight(
    weights: Sequence[int], ranking: Iterable[int], room: int, *, between: int
) -> tuple[list[int], list[int]]:
    """The choice for a count that is the length of a text: no text is joined to find it.

    ``weights`` are the lengths of lines, ``between`` is that of a separator. Gives the indexes
    taken, in the order of the text, and those left out, as ranked. ``ranking`` is not asked if all
    lines fit.
    """
    if not weights:
        return [], []
    if sum(weights) + between * (len(weights) - 1) <= room:
        return list(range(len(weights))), []
    least = min(weights)
    taken: list[int] = []
    left_out: list[int] = []
    ranked = iter(ranking)
    for index in ranked:
        weight = weights[index]
        if weight <= room:
            taken.append(index)
            room -= weight + between
        else:
            left_out.append(index)
            if room < least:
                left_out += ranked  # all the rest
    return sorted(taken), left_out


def choose(
    lines: Sequence[str],
    ranking: Iterable[int],
    budget: float,
    count: Count,
    *,
    separator: str,
    header: str,
    known: dict[int, float],
) -> tuple[Choice, dict[int, float]]:
    """Walk the ranking, take each line with which the count of the whole text is in the budget.

    ``ranking`` is not asked if all lines fit. ``known`` has counts of short texts by hash; those
    that are worth keeping come back with the choice.
    """
    text = _Text(lines, count, separator, header, known)
    everything = list(range(len(lines)))
    is_hopeless = text.least() > budget + budget // 8 + _NEAR
    if not is_hopeless and ((whole := text.whole(everything))[1] <= budget or not lines):
        return Choice(everything, [], *whole), text.asked
    ranked = list(ranking)
    choice = _Walk(text, budget, text.rounding()).choose(ranked)
    if choice is None and is_hopeless and (whole := text.whole(everything))[1] <= budget:
        choice = Choice(everything, [], *whole)
    return choice or _choose_literally(text, budget, ranked), text.asked


def _choose_literally(text: _Text, budget: float, ranking: Sequence[int]) -> Choice:
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


class _Text:
    """What the tokenizer says of the lines, alone and together."""

    def __init__(
        self,
        lines: Sequence[str],
        count: Count,
        separator: str,
        header: str,
        known: dict[int, float],
    ) -> None:
        self.lines, self.separator, self.header = lines, separator, header
        self._count, self._known = count, known
        self.asked: dict[int, float] = {}

    def whole(self, indexes: Sequence[int]) -> tuple[str, float]:
        """The text of these lines, and its count."""
        text = joined(self.lines, indexes, separator=self.separator, header=self.header)
        return text, self._count(text)

    def part(self, text: str) -> float:
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
        """Two texts, with the line and without it, whose counts differ by the cost of the line."""
        separator = self.separator
        if separator:
            return separator + line + separator, separator
        return line + line, line  # it touches other lines, so let it touch itself

    def cost(self, line: str) -> float:
        """What a line alone adds, wherever it stands."""
        text, without = self._alone(line)
        return self.part(text) - self.part(without)

    def without_lines(self) -> float:
        """The tokens of a text beyond the costs of its lines: of its header, or of nothing."""
        return self.part(self.header) if self.header else self.part("a.") - self.cost("a.")

    def least(self) -> float:
        """The sum of the costs that are known, without asking for any other."""
        known, total = self._known, 0.0
        if known:
            for line in self.lines:
                text, without = map(hash, self._alone(line))
                if text in known and without in known:
                    self.asked[text], self.asked[without] = known[text], known[without]
                    total += known[text] - known[without]
        return total

    def rounding(self) -> int:
        """The tokens by which a difference of two counts may be off because counts are rounded.

        A text that is repeated should cost the same each time. 0 if it does, in whole numbers;
        otherwise twice the largest deviation from that.
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

    def around(self, taken: Sequence[int], place: int) -> tuple[str, str, float]:
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
    """A walk along the ranking: the lines taken so far, and how well their count is known."""

    def __init__(self, text: _Text, budget: float, rounding: int) -> None:
        self.text, self.budget, self.rounding = text, budget, rounding
        self.checks_left = _CHECKS
        self.taken: list[int] = []
        self.tokens = text.without_lines()  # of the text of what is taken, as predicted
        self.unsure: float = 0  # how far off that may be, since the text was last counted
        self.counted: tuple[str, float] | None = None  # the text of what is taken, if counted
        self.pieces: dict[int, tuple[str, str, float]] = {}  # around a place in what is taken

    def choose(self, ranking: Sequence[int]) -> Choice | None:
        """The choice, or ``None`` if a count was not as predicted."""
        left_out = []
        for index in ranking:
            fits = self.try_line(index)
            if fits is None:
                return None
            if not fits:
                left_out.append(index)
        if not self.settle():
            return None
        return Choice(self.taken, left_out, *(self.counted or self.text.whole([])))

    def try_line(self, index: int) -> bool | None:
        """Take the line if the text with it is in the budget; ``None`` if that was mispredicted."""
        cost = self.text.cost(self.text.lines[index])
        while True:
            unsure = (self.unsure or _SLACK) + cost / 8 + self.rounding
            if self.tokens + cost + unsure <= self.budget:
                self.take(index, self.tokens + cost, unsure)
                return True
            doubt = self.unsure + _DOUBT + cost // 6 + 2 * self.rounding
            if self.tokens + cost - self.budget > doubt:
                return False
            if not self.taken or not self.unsure:
                return self.measure(index)
            if not self.settle():
                return None

    def measure(self, index: int) -> bool | None:
        """Take the line if, by the text around its place, the text with it is in the budget."""
        predicted, doubt = self.tokens, math.inf
        if self.taken or self.text.header:
            predicted, doubt = self.tokens + self.change_at_place(index), float(self.rounding)
        over = predicted - self.budget
        checks = self.checks_left > 0 and abs(over) <= _NEAR
        if not checks and not -doubt < over <= doubt:
            if over <= 0:
                self.take(index, predicted, self.rounding)
            return over <= 0
        self.checks_left -= checks
        whole = self.text.whole(sorted([*self.taken, index]))
        if abs(whole[1] - predicted) > doubt:
            return None
        if whole[1] <= self.budget:
            self.take(index, whole[1], 0, whole)
        return whole[1] <= self.budget

    def change_at_place(self, index: int) -> float:
        """The tokens by which the count of the text grows with the line."""
        place = bisect(self.taken, index)
        pieces = self.pieces.get(place)
        if pieces is None:
            pieces = self.pieces[place] = self.text.around(self.taken, place)
        before, after, tokens = pieces
        return self.text.part(before + self.text.lines[index] + after) - tokens

    def take(
        self, index: int, tokens: float, unsure: float, counted: tuple[str, float] | None = None
    ) -> None:
        """Add a line to those taken, with the count of their text."""
        self.taken.insert(bisect(self.taken, index), index)
        self.tokens, self.unsure, self.counted = tokens, unsure, counted
        self.pieces.clear()

    def settle(self) -> bool:
        """Count what is taken, if it is not counted; whether that was as predicted.

        From there, predictions are sure again.
        """
        if not self.taken or self.counted is not None:
            return True
        predicted, unsure = self.tokens, self.unsure
        self.counted = self.text.whole(self.taken)
        self.tokens, self.unsure = self.counted[1], 0
        return abs(self.tokens - predicted) <= unsure and self.tokens <= self.budget
