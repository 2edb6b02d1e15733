"""The greedy choice of lines for a token budget, for tokenizers of which nothing is known.

Done literally, the whole text is counted once for every line that is considered. Nearly all
tokenizers are local, though: a line costs about the same wherever it stands. So the cost of each
line is measured alone, between two separators. A whole text is counted only now and then, to see
whether the sum of costs still is what the tokenizer says, and whenever the sum is too close to
the budget to tell on which side the count is. The same choice comes out, and a tokenizer that is
not local is noticed by the difference and gets the literal procedure.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from functools import cached_property
from types import MethodType
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = ["Choice", "Counts", "choose", "choose_by_weight"]

Count: TypeAlias = Callable[[str], Any]

_SEAM: Final = 4  # tokens by which a prediction may be off for a seam that has a loose line
_ROUNDING: Final = 3  # the same for each line, if counts are rounded
_END: Final = 4  # tokens by which lines differ in what they save at an end of the text
_NEAR: Final = 8  # tokens from the budget within which a prediction is worth some care
_CHECKS: Final = 4  # how many predictions that near are checked by a whole count in any case


class Choice(NamedTuple):
    """Indexes of the lines taken, in the order of the text, and of those left out, as ranked."""

    taken: list[int]
    left_out: list[int]
    text: str
    tokens: Any


class Counts:
    """What lines cost by the last tokenizer, kept between calls: hashes of lines, no text.

    Only lines of the last call are kept. A tokenizer is known by being the same object, or the
    same method of the same object; one that is made anew for each call finds nothing.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Keep nothing, the tokenizer neither."""
        self._kept: tuple[Any, str, dict[int, Any]] = (None, "", {})

    def get(self, tokenizer: object, separator: str, lines: Sequence[str]) -> list[Any]:
        """The cost of each line, ``None`` where it is not known."""
        former, joined, costs = self._kept
        same = former is tokenizer or (type(former) is MethodType and former == tokenizer)
        if not same or joined != separator:
            return [None] * len(lines)
        return [costs.get(hash(line)) for line in lines]

    def keep(
        self, tokenizer: object, separator: str, lines: Sequence[str], costs: Sequence[Any]
    ) -> None:
        """Keep the costs that are known, and no others."""
        known = {
            hash(line): cost for line, cost in zip(lines, costs, strict=True) if cost is not None
        }
        self._kept = (tokenizer, separator, known)


def choose_by_weight(
    lines: Sequence[str],
    rank: Callable[[], Sequence[int]],
    limit: int,
    weigh: Callable[[str], int],
    *,
    separator: str,
    header: str,
) -> tuple[list[int], list[int]]:
    """The same choice if a text counts by the sum of what its characters weigh: nothing is joined.

    Takes lines as long as the text weighs at most ``limit``.
    """
    if not lines:
        return [], []
    weights = list(map(weigh, lines))
    between = weigh(separator)
    # What one more line may weigh, its separator apart.
    room = limit - weigh(header) - between if header else limit
    if sum(weights) + between * (len(weights) - 1) <= room:
        return list(range(len(weights))), []
    least = min(weights)
    taken: list[int] = []
    left_out: list[int] = []
    ranking = rank()
    for done, index in enumerate(ranking):
        weight = weights[index]
        if weight > room:
            left_out.append(index)
            if room < least:
                left_out += ranking[done + 1 :]
                break
        else:
            room -= weight + between
            taken.append(index)
    return sorted(taken), left_out


def choose(
    lines: Sequence[str],
    rank: Callable[[], Sequence[int]],
    budget: Any,
    count: Count,
    *,
    separator: str,
    header: str,
    costs: list[Any],
) -> Choice:
    """Walk the ranking, take each line with which the count of the whole text is in the budget.

    If all lines fit, they are all taken and ``rank`` is not called. ``costs`` has what lines are
    known to cost and learns about the others.
    """
    text = _Text(lines, count, separator, header, costs)
    everything = list(range(len(lines)))
    hopeless = sum(cost for cost in costs if cost) > budget + budget // 8 + _NEAR
    if not hopeless and (whole := text.count_whole(everything))[1] <= budget:
        return Choice(everything, [], *whole)
    ranking = rank()
    for rounding in (0, _ROUNDING):
        try:
            if rounding or text.adds_up():
                return _Walk(text, budget, rounding).choose(ranking)
        except _NotAsPredicted:
            pass
    if hopeless and (whole := text.count_whole(everything))[1] <= budget:
        return Choice(everything, [], *whole)
    return _choose_literally(text, budget, ranking)


def _choose_literally(text: _Text, budget: Any, ranking: Sequence[int]) -> Choice:
    taken: list[int] = []
    left_out: list[int] = []
    chosen = text.count_whole(taken)
    for index in ranking:
        candidate = sorted([*taken, index])
        whole = text.count_whole(candidate)
        if whole[1] <= budget:
            taken, chosen = candidate, whole
        else:
            left_out.append(index)
    return Choice(taken, left_out, *chosen)


class _NotAsPredicted(Exception):
    """A count is not what the costs of the lines promised."""


class _Text:
    """What the tokenizer says of the lines, alone and together.

    The cost of a line is ``count(separator + line + separator) - count(separator)``. The count of
    a text is the sum of them if each seam, where two lines meet, adds what belongs to either line
    whatever the other one is. It does, unless the line on the right is *loose*: one that itself
    counts differently after different lines.
    """

    def __init__(
        self, lines: Sequence[str], count: Count, separator: str, header: str, costs: list[Any]
    ) -> None:
        self.lines, self.count, self.separator, self.header = lines, count, separator, header
        self.closing = separator + "a"
        self.costs = costs
        self._savings: dict[tuple[int, bool], Any] = {}
        self._loose: dict[str, bool] = {}

    def count_whole(self, indexes: Sequence[int]) -> tuple[str, Any]:
        """The text of these lines, and its count."""
        shown = [self.lines[index] for index in indexes]
        text = self.separator.join([self.header, *shown] if self.header and shown else shown)
        return text, self.count(text)

    def adds_up(self) -> bool:
        """Whether counts are whole numbers that grow evenly: whether they are not rounded."""
        for unit in ("a\n", "a b.\n"):  # 2 and 5 characters, 2 and 3 tokens, 1 and 2 words
            one, two, many = (self.count(unit * times) for times in (1, 2, 64))
            if type(many) is not int or many - one != 63 * (two - one):
                return False
        return True

    @cached_property
    def closed(self) -> Any:
        return self.count(self.closing)

    @cached_property
    def base(self) -> Any:
        """What a text counts without any cost of a line."""
        return self.count(self.header + self.closing) if self.header else self.closed

    def cost(self, index: int) -> Any:
        cost = self.costs[index]
        if cost is None:
            line = self.lines[index]
            cost = self.count(self.separator + line + self.closing) - self.closed
            self.costs[index] = cost
        return cost

    def saved(self, first: int, last: int) -> Any:
        """What the lines at the ends of a text cost less, with nothing before and after it."""
        return self._saving(last, True) + (0 if self.header else self._saving(first, False))

    def _saving(self, index: int, at_end: bool) -> Any:
        """By how much a line costs less without the separator on one side."""
        saving = self._savings.get((index, at_end))
        if saving is None:
            line = self.lines[index]
            edge = self.count(self.separator + line if at_end else line + self.closing)
            saving = self._savings[index, at_end] = self.cost(index) + self.closed - edge
        return saving

    def is_loose(self, index: int) -> bool:
        """Whether the line may count differently after different lines.

        Not if its head is worth as much more or less than a letter, and than a full stop, after
        every kind of character.
        """
        head = self.lines[index][:1]
        loose = self._loose.get(head)
        if loose is None:
            loose = self._loose[head] = (
                not head
                or head.isspace()
                or any(
                    len({a - b for a, b in zip(self._after(head), self._after(other), strict=True)})
                    > 1
                    for other in "a."
                )
            )
        return loose

    def _after(self, head: str) -> list[Any]:
        return [
            self.count(before + self.separator + head) for before in ("", "a", "1", ".", " ", "\n")
        ]


class _Walk:
    """The lines taken so far, and how well the count of their text is known."""

    def __init__(self, text: _Text, budget: Any, rounding: int) -> None:
        self.text, self.budget, self.rounding = text, budget, rounding
        self.checks = 0 if rounding else _CHECKS
        self.taken: list[int] = []
        self.total = text.base  # and the costs of what is taken
        self.saved: Any = 0  # at the ends of what is taken
        self.drift: Any = 0  # how much more than predicted the last whole count was
        self.unsure = 0  # how far off a prediction may be because of lines taken since then
        self.counted: tuple[str, Any] | None = None  # the text of what is taken, if counted

    def choose(self, ranking: Sequence[int]) -> Choice:
        left_out = [index for index in ranking if not self.takes(index)]
        if not self.taken:
            self.counted = self.text.count_whole([])
        self.settle()
        return Choice(self.taken, left_out, *self.counted)  # type: ignore[misc]

    def takes(self, index: int) -> bool:
        """Take the line if the text with it is in the budget."""
        text, taken = self.text, self.taken
        total = self.total + text.cost(index)
        place = bisect(taken, index)
        doubt = self.rounding
        for near in (index, *taken[max(0, place - 1) : place + 1]):
            doubt += _SEAM if text.is_loose(near) else 0
        saved = self.saved
        if place == len(taken) or (place == 0 and not text.header):
            least = total - self.saved - (_END if taken else 2 * text.closed + _END)
            if least + self.drift - self.budget > self.unsure + doubt:
                return False
            saved = text.saved(min([index, *taken[:1]]), max([index, *taken[-1:]]))
        predicted = total - saved
        if abs(predicted + self.drift - self.budget) <= self.unsure + doubt:
            self.settle()
        over = predicted + self.drift - self.budget
        doubt += self.unsure
        check = self.checks > 0 and abs(over) <= _NEAR
        if check or -doubt < over <= doubt:
            self.checks -= check
            whole = text.count_whole([*taken[:place], index, *taken[place:]])
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
        if self.counted is None and self.taken:
            self.counted = self.text.count_whole(self.taken)
            drift = self.counted[1] - (self.total - self.saved)
            self.drift = self.checked(drift, self.unsure + self.rounding)
            self.unsure = 0
            if self.counted[1] > self.budget:
                raise _NotAsPredicted

    def checked(self, drift: Any, doubt: int) -> Any:
        if abs(drift - self.drift) > doubt:
            raise _NotAsPredicted
        return drift
