"""The words and numbers that a memory and an answer share, and the best passage of the answer."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

from ._tables import BEFORE_PLACES, TASTES
from ._texts import Text, Token, is_to_be_avoided, same_number, says_to_avoid

__all__ = ["Shared"]

_SMALLEST_NAME: Final = 3  # letters
_WINDOW: Final = 16  # tokens of an answer that can be about one memory; or twice the memory
_IDENTIFIES: Final = 4  # digits from which a number is not there by chance
_MOST_NUMBERS: Final = 500  # numbers of a memory that are searched in the answer
_MOST_PLACES: Final = 200  # places of one word or number in the answer that are examined


class Shared:
    """A memory and an answer, with the words and numbers that they share.

    Words of the question (``asked``) do not count, nor do words that other shown memories have, too
    (``common``).
    """

    def __init__(
        self, memory: Text, answer: Text, *, asked: Text, key: Text, common: set[str]
    ) -> None:
        self.memory, self.answer, self.asked, self.key = memory, answer, asked, key
        self.common = common
        self.place_of: dict[int, list[int]] = {}  # place in the memory to places in the answer
        self.worth: dict[int, float] = {}  # place in the memory to points
        self.clash = False  # whether the answer has another number in the place of a number
        self.missing: list[int] = []  # places of numbers that the answer lacks in their place
        self.topic = False  # whether the question names a part of the memory
        self.code = False  # whether the answer has an identifier of the memory
        self.strong = False  # whether the answer has a name or a number of the memory
        self.denied = any(token.negates for token in memory.tokens)
        self.avoids = says_to_avoid(memory) or says_to_avoid(key)
        self.nouns_are_capital = memory.nouns_are_capital or answer.nouns_are_capital
        self._find_numbers()
        self.total = self._find_words()  # points of the memory in all
        self.from_avoiding = self._avoiding()
        self.points, self.first, self.last = self._best_window()  # of the best passage
        self.share = min(1.0, self.points / self.total) if self.total else 0.0

    def _find_numbers(self) -> None:
        asked = {value for place in self.asked.numbers for value in self.asked.tokens[place].values}
        by_value: dict[tuple[str, ...], list[int]] = {}
        for there in self.answer.numbers:
            for value in self.answer.tokens[there].values:
                of_value = by_value.setdefault(value, [])
                if len(of_value) < _MOST_PLACES:
                    of_value.append(there)
        for place in self.memory.numbers[:_MOST_NUMBERS]:
            mine = self.memory.tokens[place]
            if mine.values & asked:
                continue
            beside = self._beside(place)
            if len(self.memory.tokens) == 1 or _identifies(mine) or mine.kind == "w":
                same = {there for value in mine.values for there in by_value.get(value, ())}
                if mine.kind == "w":  # a number word counts wherever the word itself stands
                    same = {t for t in same if t in beside or self.answer.tokens[t].kind == "w"}
            else:
                same = {t for t in beside if same_number(mine, self.answer.tokens[t])}
            letter = _letter_after(self.memory, place)
            others = {t for t in same if _letter_after(self.answer, t) not in ("", letter)}
            if letter and same and same == others:  # room 4C for room 4B
                self.clash, same = True, set()
            if same:
                self.place_of[place] = sorted(same)
                continue
            self.missing.append(place)
            instead = (self.answer.tokens[there] for there in beside)
            self.clash = self.clash or any(
                not same_number(mine, other)
                and (other.kind == "n" or mine.kind == "w" or len(other.shown) > 3)
                for other in instead
            )

    def _beside(self, place: int) -> set[int]:
        """The places of numbers in the answer that may correspond to this number of the memory."""
        near = set()
        for neighbour in _neighbours(self.memory, place):
            if neighbour is not None:
                for at in self.answer.places.get(neighbour.stem, ())[:_MOST_PLACES]:
                    near |= {at - 1, at + 1}
        return {
            there
            for there in near
            if 0 <= there < len(self.answer.tokens)
            and self.answer.tokens[there].values
            and self._is_in_place(place, there)
        }

    def _is_in_place(self, mine: int, theirs: int) -> bool:
        """Whether the number is next to the same token in both texts."""
        before, after = _neighbours(self.memory, mine)
        left, right = _neighbours(self.answer, theirs)
        if (before and left and before.stem == left.stem) or (
            after and right and after.stem == right.stem
        ):
            return True
        return _tells(before, right) or _tells(after, left)

    def _find_words(self) -> float:
        """Note the words that count and their places; return the points of the memory in all."""
        total = 0.0
        seen: set[str] = set()
        asked_values = {v for place in self.asked.numbers for v in self.asked.tokens[place].values}
        for place, token in enumerate(self.memory.tokens):
            number = bool(token.values)
            got = place in self.place_of if number else token.stem in self.answer.places
            points = self._points(place, token, got)
            if not points or (token.stem in seen and token.kind != "n"):
                continue
            seen.add(token.stem)
            known = token.values & asked_values if number else token.stem in self.asked.places
            if known:
                self.topic = self.topic or token.points > 0
                continue
            if token.stem in self.common:
                continue
            total += points
            if got:
                self.worth[place] = points
                if not number:
                    self.place_of[place] = self.answer.places[token.stem]
                self.strong = self.strong or number or points > max(token.points, 1.0)
                self.code = self.code or token.kind == "i" or _identifies(token)
        return total

    def _points(self, place: int, token: Token, got: bool) -> float:
        if self.denied and token.shown in TASTES:
            return 0.0
        if not token.points and self._is_a_small_name(place, token):
            token = token._replace(points=1.0)
        if token.values:
            return 2.0 if got and len(self.memory.tokens) > 1 else 1.0
        if got and token.kind == "w" and token.capital and token.points and not token.group:
            there = self.answer.places.get(token.stem, ())
            if any(self._is_a_name(at) for at in there):
                return max(1.0, token.points) * 2
        return token.points

    def _is_a_small_name(self, place: int, token: Token) -> bool:
        """Whether a function word is a name here, by its capital: "Mia"."""
        return (
            token.capital
            and len(token.shown) >= _SMALLEST_NAME
            and not token.negates
            and token.kind == "w"
            and not self.nouns_are_capital
            and place not in self.memory.sentence_starts
        )

    def _is_a_name(self, at: int) -> bool:
        """Whether the answer has a name at that place, by a capital with no other explanation."""
        if not self.answer.tokens[at].capital or at in self.answer.sentence_starts:
            return False
        before = self.answer.tokens[at - 1]
        return not self.nouns_are_capital or before.shown in BEFORE_PLACES

    def _avoiding(self) -> float:
        """The points for leaving out a thing that, by the memory, is to be avoided.

        The word for avoiding need not be in the answer: "without peanuts" respects an allergy.
        """
        if not self.avoids:
            return 0.0
        clauses = {self.answer.clauses[self.place_of[place][0]] for place in self.worth}
        denied = any(token.negates for clause in clauses for token in self.clause(clause))
        if not denied:
            return 0.0
        for place, token in enumerate(self.memory.tokens):
            if token.points and is_to_be_avoided(token) and place not in self.worth:
                self.worth[place] = token.points
                self.place_of[place] = [min(self.place_of[p][0] for p in self.worth if p != place)]
        return 1.0

    def clause(self, number: int) -> list[Token]:
        """The tokens of one clause of the answer."""
        clauses = self.answer.clauses  # in rising order
        return self.answer.tokens[bisect_left(clauses, number) : bisect_right(clauses, number)]

    def _best_window(self) -> tuple[float, int, int]:
        """The points of the best passage of the answer, and its first and last place."""
        size = max(_WINDOW, 2 * len(self.memory.tokens))
        marks = sorted((at, place) for place in self.worth for at in self.place_of[place])
        counts: dict[int, int] = {}
        best, inside, left, where = 0.0, 0.0, 0, (0, -1)
        for at, place in marks:
            counts[place] = counts.get(place, 0) + 1
            if counts[place] == 1:
                inside += self.worth[place]
            while marks[left][0] <= at - size:
                gone = marks[left][1]
                counts[gone] -= 1
                if not counts[gone]:
                    inside -= self.worth[gone]
                left += 1
            if inside > best + 1e-9:
                best, where = inside, (marks[left][0], at)
        return best, *where


def _neighbours(text: Text, place: int) -> tuple[Token | None, Token | None]:
    tokens = text.tokens
    return (
        tokens[place - 1] if place else None,
        tokens[place + 1] if place + 1 < len(tokens) else None,
    )


def _letter_after(text: Text, place: int) -> str:
    """The single letter after a number, which is a part of it or its unit; empty without one."""
    after = text.tokens[place + 1] if place + 1 < len(text.tokens) else None
    return after.shown if after is not None and after.kind == "w" and len(after.shown) == 1 else ""


def _tells(one: Token | None, other: Token | None) -> bool:
    return (
        one is not None
        and other is not None
        and one.stem == other.stem
        and one.points > 0
        and one.kind != "n"
    )


def _identifies(token: Token) -> bool:
    """Whether a number is so long that it is not in a text by chance; a year is not."""
    if token.kind != "n" or not token.shown.isdecimal() or len(token.shown) < _IDENTIFIES:
        return False
    return len(token.shown) > _IDENTIFIES or not 1900 <= int(token.shown) <= 2100
