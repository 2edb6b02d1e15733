"""The greedy choice of lines for a token budget.

Done literally, the whole text is counted once for every line that is considered. Nearly all
tokenizers are local, though: a line costs about the same wherever it stands. So the cost of each
line is measured alone. A whole text is counted only now and then, to see whether the sum of costs
still is what the tokenizer says, and whenever the sum is too close to the budget to tell on which
side the count is. The same choice comes out, and a tokenizer that is not local is noticed by the
difference and gets the literal procedure.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from functools import cached_property
from types import MethodType
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = ["Choice", "Counts", "choose", "choose_by_weight", "joined"]

Count: TypeAlias = Callable[[str], Any]

# All in tokens, but the last.
_SEAM: Final = 4  # by how much a sum of costs may be off for a loose line, or beside one
_ROUNDING: Final = 1  # the same for each line, if the tokenizer rounds; at an end, three times
_END: Final = 4  # how different the savings of two lines may be, at an end of the text
_NEAR: Final = 8  # how near the budget a prediction is worth a check
_CHECKS: Final = 4  # how many of those are checked


class Choice(NamedTuple):
    """Indexes of the lines taken, in the order of the text, and of those left out, as ranked."""

    taken: list[int]
    left_out: list[int]
    text: str
    tokens: Any


class Counts:
    """What the last tokenizer said of single lines, kept between calls: hashes of them, no text.

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

    If all lines fit, they are all taken and ``rank`` is not called. ``known`` has counts of single
    lines by hash of text; those that are worth keeping come back with the choice.
    """
    text = _Text(lines, count, separator, header, known)
    everything = list(range(len(lines)))
    hopeless = text.least() > budget + budget // 8 + _NEAR
    if not hopeless and ((whole := text.whole(everything))[1] <= budget or not lines):
        return Choice(everything, [], *whole), text.asked
    ranking = rank()
    for rounding in (0, _ROUNDING):
        try:
            if rounding or text.adds_up():
                return _Walk(text, budget, rounding).choose(ranking), text.asked
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
    """A count is not what the costs of the lines promised."""


class _Text:
    """What the tokenizer says of the lines, alone and together.

    The cost of a line is what it adds between a separator and another line that is one letter.
    The count of a text is the sum of costs, if each seam of two lines adds what belongs to either
    of them whatever the other one is. It does, unless the line on the right is *loose*: one that
    counts differently after different lines.
    """

    def __init__(
        self,
        lines: Sequence[str],
        count: Count,
        separator: str,
        header: str,
        known: dict[int, Any],
    ) -> None:
        self.lines, self.separator, self.header = lines, separator, header
        self.closing = f"{separator}a"
        self._count, self._known = count, known
        self.asked: dict[int, Any] = {}
        self._loose: dict[str, bool] = {}

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

    def adds_up(self) -> bool:
        """Whether counts are whole numbers that grow evenly: whether they are not rounded."""
        for unit in ("a\n", "a b.\n"):  # 2 and 5 characters, 2 and 3 tokens, 1 and 2 words
            one, two, many = (self.part(unit * times) for times in (1, 2, 64))
            if type(many) is not int or many - one != 63 * (two - one):
                return False
        return True

    @cached_property
    def closed(self) -> Any:
        return self.part(self.closing)

    @cached_property
    def base(self) -> Any:
        """What a text counts without the cost of any line."""
        return self.part(self.header + self.closing) if self.header else self.closed

    def cost(self, index: int) -> Any:
        return self.part(self.separator + self.lines[index] + self.closing) - self.closed

    def least(self) -> Any:
        """The costs that are known, without asking for any other."""
        keys = [hash(self.separator + line + self.closing) for line in self.lines]
        self.asked = {key: self._known[key] for key in keys if key in self._known}
        return sum(self.asked[key] - self.closed for key in keys if key in self.asked)

    def saved(self, first: int, last: int) -> Any:
        """What the lines at the ends of a text cost less: nothing is before and after it."""
        line = self.lines[last]
        saved = self.part(self.separator + line + self.closing) - self.part(self.separator + line)
        if not self.header:
            line = self.lines[first]
            saved += self.part(self.separator + line + self.closing)
            saved -= self.part(line + self.closing)
        return saved

    @cached_property
    def loose(self) -> set[str]:
        """The first characters of lines that may count differently after different lines.

        Any but those that are worth as much more or less than a letter, and than a full stop,
        after every kind of character.
        """
        heads = dict.fromkeys(line[:1] for line in self.lines)
        return {head for head in heads if head.isspace() or not head or self._depends(head)}

    def _depends(self, head: str) -> bool:
        more: dict[str, set[Any]] = {"a": set(), ".": set()}
        for before in ("", "a", "1", ".", " ", "\n"):
            start = before + self.separator
            for other, differences in more.items():
                differences.add(self.part(start + head) - self.part(start + other))
        return any(len(differences) > 1 for differences in more.values())


class _Walk:
    """The lines taken so far, and how well the count of their text is known."""

    def __init__(self, text: _Text, budget: Any, rounding: int) -> None:
        self.text, self.budget, self.rounding = text, budget, rounding
        self.checks = 0 if rounding else _CHECKS
        self.taken: list[int] = []
        self.total = text.base  # and the costs of what is taken
        self.saved = 2 * text.closed  # at the ends of what is taken; before that, no more than this
        self.drift: Any = 0  # how much more than predicted the last whole count was
        self.unsure = 0  # how far off a prediction may be because of lines taken since then
        self.doubt = 3 * rounding + (3 * _SEAM if text.loose else 0)  # the most because of one line
        self.counted: tuple[str, Any] | None = None  # the text of what is taken, if counted

    def choose(self, ranking: Sequence[int]) -> Choice:
        left_out = [index for index in ranking if not self.takes(index)]
        self.settle()
        text, tokens = self.counted or self.text.whole([])
        return Choice(self.taken, left_out, text, tokens)

    def takes(self, index: int) -> bool:
        """Take the line if the text with it is in the budget."""
        text, taken = self.text, self.taken
        total = self.total + text.cost(index)
        over = total - self.saved + self.drift - self.budget  # if nothing changes at the ends
        if over - _END > self.unsure + self.doubt:
            return False
        place = bisect(taken, index)
        doubt = self.rounding
        if text.loose:
            beside = (index, *taken[max(0, place - 1) : place + 1])
            doubt += _SEAM * sum(text.lines[near][:1] in text.loose for near in beside)
        saved = self.saved
        if place == len(taken) or (place == 0 and not text.header):
            doubt += 2 * self.rounding
            if over - _END > self.unsure + doubt:
                return False
            saved = text.saved(min([index, *taken[:1]]), max([index, *taken[-1:]]))
        predicted = total - saved
        if abs(predicted + self.drift - self.budget) <= self.unsure + doubt:
            self.settle()  # one count that may decide about many lines
        over = predicted + self.drift - self.budget
        doubt += self.unsure
        check = self.checks > 0 and abs(over) <= _NEAR
        if check or -doubt < over <= doubt:
            self.checks -= check
            whole = text.whole([*taken[:place], index, *taken[place:]])
            drift = self.checked(whole[1] - predicted, doubt)
            if whole[1] > self.budget:
                return False
            self.drift, self.unsure, self.counted = drift, 0, whole
        elif over > 0:
            return False
        else:
            self.unsure, self.counted = doubt, None
        self.total, self.saved = total, saved
        taken.insert(place, index)
        if len(taken) & (len(taken) - 1) == 0:
            self.settle()
        return True

    def settle(self) -> None:
        """Count the text of what is taken: from there, predictions are sure again."""
        if self.taken and self.counted is None:
            self.counted = self.text.whole(self.taken)
            drift = self.counted[1] - (self.total - self.saved)
            self.drift = self.checked(drift, self.unsure + self.rounding)
            self.unsure = 0
            if self.counted[1] > self.budget:
                raise _NotAsPredicted

    def checked(self, drift: Any, doubt: int) -> Any:
        if abs(drift - self.drift) > doubt:
            raise _NotAsPredicted
        return drift
