"""The greedy choice of lines for a token budget.

Theory of operation
-------------------
The definition is short, and is ``_choose_literally``: walk the ranking, and take a line if the
count of the whole text with it is within the budget. Done so, the whole text is counted once for
every line that is considered. The same choice comes out of far fewer characters, because nearly all
tokenizers are local: what a line adds to the count depends on the line and on a few dozen
characters on either side of it. So ``_Walk`` knows a line in three ways; each costs more than the
one before and is more exact:

1. Its *cost* alone, between two separators. It is kept from one call to the next. With the sum of
   the costs so far it says of most lines that they surely fit, or that they surely do not.
2. The *change* at its place: the text around the place where it would stand, counted without it and
   with it. For a local tokenizer that is exact, up to the rounding of its counts.
3. The count of the *whole text*: when sums of costs have become unsure, as a check of a few
   predictions near the budget, and once at the end, since the prediction may be wrong.

If a whole count is not as predicted, or is over the budget where the text was predicted to fit, the
tokenizer is not local. Then all that was chosen is thrown away, and the literal procedure decides.
So the budget holds for every tokenizer (unless the empty text alone is over it), and the choice is
the literal one for every tokenizer that is local or is noticed not to be.

If everything fits, nothing has to be chosen, and the ranking is not asked for. Counting everything
would be wasted where it is far over the budget, so it is left out when the known costs alone say so
(``least``): with a memory that is many times the budget, the text of all lines would be most of the
characters that are counted. What rounding does to differences of counts is measured first
(``rounding``), since otherwise the counts of a tokenizer that rounds would hardly ever be as
predicted, and each call would end in the literal procedure.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from types import MethodType
from typing import Final, NamedTuple, TypeAlias

__all__ = ["Choice", "Counts", "choose", "choose_by_weight", "joined"]

Count: TypeAlias = Callable[[str], float]

# The constants were varied one at a time. Differences are those from the literal choice in 1,000
# random memories for each of 13 tokenizers that are local (two real ones, rounded ones) and 4 that
# are not; with the values below there are 0 and 31. Work is the characters that ``o200k_base``
# counts, in units of the text that results, on the second turn with 1,000 lines: 6.0.

_DOUBT: Final = 3
"""Tokens by which the cost of one line may be off, plus a share of it (``_DOUBT_PART``), before the
line's surroundings are counted. A larger doubt counts more surroundings and more whole texts; a
smaller one refuses lines that merge with others. Tried 0 to 16: 0 makes 43 local differences, 1
none at a work of 5.3, 5 and more a work of 6.6."""

_DOUBT_PART: Final = 6
"""One over this number is the share of a line's cost that is doubted, too. A larger number doubts
less. Tried 3 to 1,000: no local differences, work from 6.6 down to 5.5."""

_SLACK: Final = 8
"""Tokens by which the sum of several costs may be off, plus a share of each line's cost since the
last whole count (``_COST_PART``), before the text is counted; also by which the sum of all costs
may be over the budget before the text of all lines is not even counted. A larger slack counts
earlier. Tried 0 to 32: no local differences, work 6.0 to 6.5."""

_COST_PART: Final = 8
"""One over this number is the share of costs by which their sums may be off. A larger number trusts
sums longer. Tried 2 to 1,000: no local differences; a work of 9.3 at 2, 4.9 at 64, but 169 at
1,000, where sums turn out wrong and the literal procedure decides."""

_NEAR: Final = 8
"""Tokens from the budget within which predictions are checked by whole counts. A larger band makes
more whole counts, up to ``_CHECKS``. Tried 0 to 32: no local differences; 54 others and a work of
4.3 at 0, about 30 and 6.2 from 16 on."""

_CHECKS: Final = 3
"""Whole counts spent on checks in one choice. More cost one whole count each, and notice more
tokenizers that are not local. Tried 0 to 10: no local differences; 54 others and a work of 4.3 at
0, 13 and 8.5 at 10."""

_CONTEXT_MIN: Final = 16
"""Characters counted on either side of a place, up to the next single space. Fewer miss merges
across a seam, more cost as many characters for each line near the budget. Tried 0 to 48: no local
differences, the same work on the second turn, from 12.8 to 13.2 on the first."""

_CONTEXT_MAX: Final = 64
"""The largest number of characters counted on either side, where no single space comes earlier.
Fewer cut inside what merges, more cost time in texts without spaces. Tried 17 to 256: no local
differences, the same work."""

_REPEATS: Final = 64
"""Repeats of a short text by which the tokens of one are known, to 1/63 of the rounding of a count.
More count longer texts, once for each tokenizer. Tried 4 to 128: no local
differences, the same work."""

_PROBES: Final = 32
"""Repeats, from 1 to this number, whose counts show how far rounding reaches. Fewer may miss its
largest error, more cost one short count each. Tried 2 to 64: 2 makes 11 local
differences (of rounded counts), 4 and more none, at the same work."""


class Choice(NamedTuple):
    """Indexes of the lines taken, in the order of the text, and of those left out, as ranked."""

    taken: list[int]
    left_out: list[int]
    text: str
    tokens: float


class Counts:
    """Counts of short texts by the last tokenizer, kept between calls: hash to count, never a text.

    Only the counts that the last call used are kept. A tokenizer is known by being the same object,
    or the same method of the same object; for one that is made anew for each call nothing is kept.
    Two texts of one hash would only mislead a prediction: the text that is returned was counted
    whole."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all counts, and the tokenizer."""
        self._kept: tuple[object, dict[int, float]] = (None, {})

    def get(self, tokenizer: object) -> dict[int, float]:
        """The counts kept for this tokenizer, by hash of text; not to be changed."""
        former, counts = self._kept
        same = former is tokenizer or (type(former) is MethodType and former == tokenizer)
        return counts if same else {}

    def keep(self, tokenizer: object, counts: dict[int, float]) -> None:
        """Replace all kept counts by these."""
        self._kept = (tokenizer, counts)


def joined(lines: Sequence[str], indexes: Sequence[int], *, separator: str, header: str) -> str:
    """The text of these lines, below the header; empty if there is no line."""
    shown = [lines[index] for index in indexes]
    return separator.join([header, *shown] if header and shown else shown)


def choose_by_weight(
    weights: Sequence[int], ranking: Iterable[int], room: int, *, between: int
) -> tuple[list[int], list[int]]:
    """The choice where the count of a text is its length, so that no text has to be joined.

    ``weights`` are the lengths of the lines, ``between`` is the length of the separator. Returns
    the indexes of the lines taken, in the order of the text, and of those left out, as ranked.
    ``ranking`` is not iterated if all lines fit.
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
    """Walk the ranking; take each line with which the count of the whole text is in the budget.

    ``ranking`` is not iterated if all lines fit. ``known`` has counts of short texts by hash;
    the ones that this call used are returned with the choice.
    """
    text = _Text(lines, count, separator, header, known)
    everything = list(range(len(lines)))
    # Needed by test_lines_that_merge_with_the_line_before_cost_no_more.
    is_hopeless = text.least() > budget + budget // _COST_PART + _SLACK
    if not is_hopeless and ((whole := text.whole(everything))[1] <= budget or not lines):
        return Choice(everything, [], *whole), text.asked
    ranked = list(ranking)
    # The rounding is needed by test_rounded_counts_and_odd_lines_cost_little_more.
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
    """The lines with a counting cache: their costs, the counts around them, and whole counts."""

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
        self.asked: dict[int, float] = {}  # the counts of short texts that this call used, by hash

    def whole(self, indexes: Sequence[int]) -> tuple[str, float]:
        """The text of these lines, and its count."""
        text = joined(self.lines, indexes, separator=self.separator, header=self.header)
        return text, self._count(text)

    def part(self, text: str) -> float:
        """The count of a short text, from the last call if it was counted there."""
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
        return line + line, line  # no separator: approximate a neighbour by the line itself

    def cost(self, line: str) -> float:
        """The tokens that a line adds between two separators, whatever its place."""
        text, without = self._alone(line)
        return self.part(text) - self.part(without)

    def without_lines(self) -> float:
        """The tokens of a text beyond the costs of its lines: its header, or a fixed cost."""
        if self.header:
            return self.part(self.header)
        # Any short text: what remains is the fixed cost of a text, for example of a start token.
        return self.part("a.") - self.cost("a.")

    def least(self) -> float:
        """The sum of the costs that are known from the last call; nothing is counted for it."""
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
        otherwise twice the largest deviation from that, and at least 1.
        """
        most = 0.0
        for unit in ("a\n", "a b.\n"):  # 2 and 5 characters, 2 and 3 tokens, 1 and 2 words
            one, two, many = (self.part(unit * times) for times in (1, 2, _REPEATS))
            if type(many) is int and many - one == (_REPEATS - 1) * (two - one):
                continue
            slope = (many - one) / (_REPEATS - 1)  # tokens of one unit, on average
            off = [self.part(unit * times) - slope * times for times in range(1, _PROBES + 1)]
            most = max(most, max(off) - min(off), 0.5)  # 0.5, doubled: at least 1 token
        return math.floor(2 * most + 1e-9)  # the errors of floats must not lower a whole number

    def around(self, taken: Sequence[int], place: int) -> tuple[str, str, float]:
        """The pieces of a text before and after a place in it, and their count together.

        A line at that place would stand between the two pieces, which include their separators.
        """
        separator = self.separator
        # As many lines as characters: they are enough unless most of them are empty.
        before = self._nearest_lines(reversed(taken[max(0, place - _CONTEXT_MAX) : place]))
        if self.header and len(before) == place:
            before.append(self.header)
        after = self._nearest_lines(taken[place : place + _CONTEXT_MAX])
        head = _last_words(separator.join(reversed(before)))
        tail = _first_words(separator.join(after))
        seam = separator if before and after else ""
        return (
            head + separator if before else "",
            separator + tail if after else "",
            self.part(head + seam + tail),
        )

    def _nearest_lines(self, indexes: Iterable[int]) -> list[str]:
        """The nearest lines, at least ``_CONTEXT_MAX`` characters together if there are so many."""
        found: list[str] = []
        size = 0
        for index in indexes:
            if size >= _CONTEXT_MAX:
                break
            found.append(self.lines[index])
            size += len(found[-1])
        return found


# Both cut before a single space, where nearly all tokenizers cut anyway. Failing that, they cut at
# ``_CONTEXT_MAX`` characters, extended to the end of a run of one character: the count of a run is
# not the sum of the counts of its parts.


def _last_words(text: str) -> str:
    """The end of a text, ``_CONTEXT_MIN`` to ``_CONTEXT_MAX`` characters, or a longer run."""
    cut = text.rfind(" ", -_CONTEXT_MAX, -_CONTEXT_MIN)
    if cut < 1 or text[cut - 1] == " ":
        cut = max(0, len(text) - _CONTEXT_MAX)
        cut = len(text[:cut].rstrip(text[cut : cut + 1]))
    return text[cut:]


def _first_words(text: str) -> str:
    """The start of a text, ``_CONTEXT_MIN`` to ``_CONTEXT_MAX`` characters, or a longer run."""
    cut = text.find(" ", _CONTEXT_MIN, _CONTEXT_MAX)
    if cut < 1 or text[cut - 1] == " ":
        rest = text[_CONTEXT_MAX:]
        cut = (
            len(text) - len(rest.lstrip(text[_CONTEXT_MAX - 1 : _CONTEXT_MAX]))
            if rest
            else len(text)
        )
    return text[:cut]


class _Walk:
    """A walk along the ranking: the lines taken so far, and how well their count is known."""

    def __init__(self, text: _Text, budget: float, rounding: int) -> None:
        self.text, self.budget, self.rounding = text, budget, rounding
        self.checks_left = _CHECKS
        self.taken: list[int] = []
        self.tokens = text.without_lines()  # of the text of what is taken, as predicted
        self.unsure: float = 0  # error bound of ``tokens``; 0 = exact
        self.counted: tuple[str, float] | None = None  # the text of what is taken, if counted
        self.pieces: dict[int, tuple[str, str, float]] = {}  # around a place in what is taken

    def choose(self, ranking: Sequence[int]) -> Choice | None:
        """The choice; ``None`` if a count was not as predicted or was over the budget."""
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
        """Take the line if the text with it is in the budget, and return whether it is.

        ``None``: abandon the walk, because a count differed from its prediction or exceeded the
        budget.
        """
        cost = self.text.cost(self.text.lines[index])
        while True:
            unsure = (self.unsure or _SLACK) + cost / _COST_PART + self.rounding
            if self.tokens + cost + unsure <= self.budget:
                self.take(index, self.tokens + cost, unsure)
                return True
            doubt = self.unsure + _DOUBT + cost // _DOUBT_PART + 2 * self.rounding
            if self.tokens + cost - self.budget > doubt:
                return False
            if not self.taken or not self.unsure:
                return self.measure(index)
            if not self.settle():
                return None

    def measure(self, index: int) -> bool | None:
        """Take the line if, by the text around its place, the text with it is in the budget.

        Returns like ``try_line``.
        """
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
        """Count the taken text; whether it is within the error bound and the budget.

        Afterwards ``tokens`` is exact again.
        """
        if not self.taken or self.counted is not None:
            return True
        predicted, unsure = self.tokens, self.unsure
        self.counted = self.text.whole(self.taken)
        self.tokens, self.unsure = self.counted[1], 0
        return abs(self.tokens - predicted) <= unsure and self.tokens <= self.budget
