"""The rules by which an answer shows that a memory was used: points, and what speaks against it.

Texts come read already; ``evidence.py`` has the public calls.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Final, NamedTuple

from ._tables import ADDRESSES, BEFORE_PLACES, GERMAN, UNSPACED_ADDRESSES
from ._texts import (
    Text,
    Token,
    glued,
    is_to_be_avoided,
    same_number,
    says_to_avoid,
    says_where,
)

__all__ = ["Evidence", "judged"]

# Found on the pairs for tuning; none is sharp: each may move by a tenth.
_ENOUGH: Final = 2.0  # points; raising it misses short facts
_SHARE: Final = 0.55  # of what the memory has; lowering it credits facts about the same things
_SHARE_OF_CODES: Final = 0.25  # the same where an identifier came over: nobody guesses those
_LEAST: Final = 0.7  # points of a memory that is found whole and is about the one who asks
_SAYS: Final = 0.35  # points of a token that another one in its place makes another fact
_RUN: Final = 3.0  # points of equal tokens in a row, whatever the share
_WINDOW: Final = 16  # tokens of an answer that can be about one memory; or twice the memory
_AROUND: Final = 3  # tokens on either side of the window in which another number is a veto
_NEAR: Final = 8  # the same for a negation of the memory that the answer may have, too
_IDENTIFIES: Final = 4  # digits from which a number is one that nobody has by chance
_MOST_NUMBERS: Final = 500  # of a memory that are looked for
_MOST_PLACES: Final = 200  # of one word or number in the answer at which one is looked for
_MOST_CELLS: Final = 400_000  # tokens times tokens, beyond which no run is looked for


class Evidence(NamedTuple):
    """A verdict on one memory and one answer.

    ``used``: whether the answer shows that the memory was used. ``share``: how much of what the
    memory tells is in the answer, from 0 to 1. ``points``: how much that is; a content word is
    one. ``why`` it is not used: ``"too little"``, ``"another number"`` (also another month,
    weekday, currency or unit) or ``"negated"``; empty if it is used.
    """

    used: bool
    share: float
    points: float
    why: str


def judged(memory: Text, answer: Text, *, asked: Text, key: Text, common: set[str]) -> Evidence:
    """The verdict on texts that are read already, all with the same endings off."""
    return _Judgement(memory, answer, asked, key, common).verdict()


class _Judgement:
    """One memory against one answer, step by step."""

    def __init__(
        self, memory: Text, answer: Text, asked: Text, key: Text, common: set[str]
    ) -> None:
        self.memory, self.answer, self.asked, self.key = memory, answer, asked, key
        self.common = common
        self.place_of: dict[int, list[int]] = {}  # place in the memory: those in the answer
        self.worth: dict[int, float] = {}  # place in the memory: points
        self.clash = False  # another number in a number's place
        self.missing: list[int] = []  # numbers of the memory that the answer has not in place
        self.topic = False  # whether the question names a part of the memory
        self.code = False  # whether an identifier came over
        self.avoids = says_to_avoid(memory) or says_to_avoid(key)
        self.nouns_are_capital = any(
            token.shown in GERMAN for text in (memory, answer) for token in text.tokens
        )

    def verdict(self) -> Evidence:
        self._find_numbers()
        total = self._find_words()
        from_avoiding = self._avoiding()
        points, first, last = self._best_window()
        share = min(1.0, points / total) if total else 0.0
        from_key = max(self._key_points(), from_avoiding)
        whole = total > 0 and share > 0.999
        enough = (
            (points >= _ENOUGH and share >= (_SHARE_OF_CODES if self.code else _SHARE))
            or (whole and points + from_key >= _ENOUGH)
            or (whole and points >= _LEAST and self._is_unasked())
            or (points > 0 and self._longest_run() >= _RUN)
        )
        why = ""
        if not enough or self._is_about_another_thing():
            why = "too little"
        elif self.clash or self._has_another_member(first, last):
            why = "another number"
        elif self._is_turned_round() or self._has_a_changed_word(first, last):
            why = "too little"
        elif self._is_negated(first, last):
            why = "negated"
        return Evidence(not why, round(share, 3), round(points + from_key, 2), why)

    # What of the memory is in the answer

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
                if mine.kind == "w":  # the word itself is as good as anywhere
                    same = {t for t in same if t in beside or self.answer.tokens[t].kind == "w"}
            else:
                same = {t for t in beside if same_number(mine, self.answer.tokens[t])}
            if same:
                self.place_of[place] = sorted(same)
                continue
            self.missing.append(place)
            others = (self.answer.tokens[there] for there in beside)
            self.clash = self.clash or any(
                not same_number(mine, other)
                and (other.kind == "n" or mine.kind == "w" or len(other.shown) > 3)
                for other in others
            )

    def _beside(self, place: int) -> set[int]:
        """The numbers of the answer that may be in the place of this one of the memory."""
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
        """Note what counts and where it is; the points that the memory has in all."""
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
                self.code = self.code or token.kind == "i" or _identifies(token)
        return total

    def _points(self, place: int, token: Token, got: bool) -> float:
        if token.values:
            return 2.0 if got and len(self.memory.tokens) > 1 else 1.0
        if got and token.kind == "w" and token.capital and token.points and not token.group:
            there = self.answer.places.get(token.stem, ())
            if any(self._is_a_name(at) for at in there):
                return max(1.0, token.points) * 2
        return token.points

    def _is_a_name(self, at: int) -> bool:
        """Whether the answer has a capital there that nothing but a name explains."""
        if not self.answer.tokens[at].capital or at in self.answer.sentence_starts:
            return False
        before = self.answer.tokens[at - 1]
        return not self.nouns_are_capital or before.shown in BEFORE_PLACES

    def _avoiding(self) -> float:
        """Credit for leaving out what the memory says is to be kept away.

        The word that says so need not be in the answer: "without peanuts" says it of an allergy.
        """
        if not self.avoids:
            return 0.0
        clauses = {self.answer.clauses[self.place_of[place][0]] for place in self.worth}
        denied = any(token.negates for clause in clauses for token in self._clause(clause))
        if not denied:
            return 0.0
        for place, token in enumerate(self.memory.tokens):
            if token.points and is_to_be_avoided(token) and place not in self.worth:
                self.worth[place] = token.points
                self.place_of[place] = [min(self.place_of[p][0] for p in self.worth if p != place)]
        return 1.0

    def _clause(self, number: int) -> list[Token]:
        clauses = self.answer.clauses  # in rising order
        return self.answer.tokens[bisect_left(clauses, number) : bisect_right(clauses, number)]

    def _is_unasked(self) -> bool:
        """Whether the answer brings up, without being asked for it, what holds for the asker."""
        return self.topic or self._is_said_of_the_asker() or says_where(self.memory)

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

    def _key_points(self) -> float:
        """The points of words of the key that the answer has and the memory has not."""
        found = 0.0
        seen: set[str] = set()
        for token in self.key.tokens:
            new = token.stem not in seen and token.stem not in self.memory.places
            if new and token.stem in self.answer.places:
                seen.add(token.stem)
                found += token.points
        return found

    def _longest_run(self) -> float:
        """The points of the longest stretch of tokens that both have in the same order."""
        mine, theirs = self.memory.tokens, self.answer.tokens
        if len(mine) * len(theirs) > _MOST_CELLS:
            return 0.0
        best = 0.0
        before: dict[int, float] = {}
        for place, token in enumerate(mine):
            worth = self.worth.get(place, 0.0) and token.points
            now: dict[int, float] = {}
            for at in self.answer.places.get(token.stem, ()):
                now[at] = before.get(at - 1, 0.0) + worth
                best = max(best, now[at])
            before = now
        return best

    def _is_said_of_the_asker(self) -> bool:
        """Whether the clause that has all of it speaks of the person who asks."""
        clauses = {self.answer.clauses[at] for place in self.worth for at in self.place_of[place]}
        for clause in clauses:
            words = self._clause(clause)
            shown = [token.shown for token in words]
            pairs = {f"{one}|{other}" for one, other in pairwise(shown)}
            if not ADDRESSES.isdisjoint(shown) or not ADDRESSES.isdisjoint(pairs):
                return True
            letters = glued(words)
            if any(sign in letters for sign in UNSPACED_ADDRESSES):
                return True
        return False

    # Vetoes

    def _has_another_member(self, first: int, last: int) -> bool:
        """Whether the passage has another number, month, unit or the like than the memory."""
        passage = self.answer.tokens[max(0, first - _AROUND) : last + 1 + _AROUND]
        if last < 0:
            return False
        mine = [token for token in self.memory.tokens if token.values]
        if self.missing:
            for token in passage:
                if token.kind == "n" and not any(same_number(token, one) for one in mine):
                    return True
        codes = {token.stem for token in self.memory.tokens if token.kind == "i"}
        if not codes <= self.answer.places.keys() and any(
            token.kind == "i" and token.stem not in codes for token in passage
        ):
            return True
        groups = {token.group for token in self.memory.tokens if token.group}
        theirs = {token.group for token in passage if token.group}
        lost = {group[0] for group in groups - theirs}
        return any(group[0] in lost for group in theirs - groups)

    def _has_a_changed_word(self, first: int, last: int) -> bool:
        """Whether other words stand between the same two neighbours as some of the memory."""
        mine = self.memory.tokens
        places = self.answer.places
        place = 1
        while place < len(mine):
            if mine[place].stem in places:
                place += 1
                continue
            end = place
            while end < len(mine) and mine[end].stem not in places:
                end += 1
            lost = mine[place:end]
            if (
                mine[place - 1].stem in places
                and any(token.points >= _SAYS for token in lost)
                and not any(token.values or token.group for token in lost)
                and self._is_filled_otherwise(place, end, first, last)
            ):
                return True
            place = end + 1
        return False

    def _is_filled_otherwise(self, start: int, end: int, first: int, last: int) -> bool:
        """Whether the answer has other words where the memory has those from start to end."""
        theirs, clauses = self.answer.tokens, self.answer.clauses
        after = self.memory.tokens[end].stem if end < len(self.memory.tokens) else None
        longest = end - start + (1 if self.memory.tokens[start].kind == "w" else 2)
        places = self.answer.places[self.memory.tokens[start - 1].stem]
        from_here = bisect_left(places, first - _AROUND)
        for at in places[from_here : bisect_right(places, last + _AROUND)]:
            end_of_clause = bisect_right(clauses, clauses[at])
            furthest = min(end_of_clause, at + longest + 2)
            to = at + 1
            while to < furthest and theirs[to].stem != after:
                to += 1
            if (after is not None and to == furthest) or (after is None and to < end_of_clause):
                continue
            others = theirs[at + 1 : to]
            if (
                0 < len(others) <= longest
                and any(token.points >= _SAYS for token in others)
                and all(token.stem not in self.memory.places for token in others)
            ):
                return True
        return False

    def _is_about_another_thing(self) -> bool:
        """Whether nothing but dates and amounts came over from a memory that names a thing."""
        if self.topic or self.code:
            return False
        mine = self.memory.tokens
        things = {
            place
            for place, token in enumerate(mine)
            if token.points >= _SAYS and not token.values and not token.group
        }
        things = {p for p in things if mine[p].stem not in self.common}
        return bool(things) and things.isdisjoint(self.worth)

    def _is_turned_round(self) -> bool:
        """Whether the answer has three words of the memory the other way round."""
        mine, theirs = (
            [token.stem for token in text.tokens if token.kind == "w" and token.points]
            for text in (self.memory, self.answer)
        )
        there = set(zip(theirs, theirs[1:], theirs[2:], strict=False))
        triples = list(zip(mine, mine[1:], mine[2:], strict=False))
        return any(t[::-1] in there and t[0] != t[2] for t in triples) and not any(
            t in there for t in triples
        )

    def _is_negated(self, first: int, last: int) -> bool:
        """Whether only one of the two denies what they share."""
        denied = any(token.negates for token in self.memory.tokens)
        near = self.answer.tokens[max(0, first - _NEAR) : last + 1 + _NEAR]
        if denied:
            return not any(token.negates for token in near) or self._denies_another_word()
        if self.avoids:
            return self._denies_avoiding()
        clauses: dict[int, float] = {}
        for place, worth in self.worth.items():
            for at in self.place_of[place]:
                clause = self.answer.clauses[at]
                clauses[clause] = clauses.get(clause, 0.0) + worth
        top = max(clauses, key=lambda clause: (clauses[clause], -clause), default=-1)
        return any(token.negates for token in self._clause(top))

    def _denies_another_word(self) -> bool:
        """Whether the answer denies what the memory affirms: "not tabs" for "not spaces"."""
        mine = _denied(self.memory)
        theirs = _denied(self.answer) & {token.stem for token in self.memory.tokens if token.points}
        return bool(theirs) and any(s in self.answer.places for s in mine) and not theirs & mine

    def _denies_avoiding(self) -> bool:
        """Whether the answer says that something need not be kept away: "not allergic"."""
        tokens = self.answer.tokens
        for at, token in enumerate(tokens):
            if is_to_be_avoided(token) and any(one.negates for one in tokens[max(0, at - 2) : at]):
                return True
        return False


def _neighbours(text: Text, place: int) -> tuple[Token | None, Token | None]:
    tokens = text.tokens
    return (
        tokens[place - 1] if place else None,
        tokens[place + 1] if place + 1 < len(tokens) else None,
    )


def _denied(text: Text) -> set[str]:
    """The stems of the words that follow a negation next."""
    found = set()
    for place, token in enumerate(text.tokens):
        if token.negates and token.kind == "w":
            following = (t.stem for t in text.tokens[place + 1 : place + 4] if t.points)
            found |= {stem for stem in [next(following, None)] if stem is not None}
    return found


def _tells(one: Token | None, other: Token | None) -> bool:
    return (
        one is not None
        and other is not None
        and one.stem == other.stem
        and one.points > 0
        and one.kind != "n"
    )


def _identifies(token: Token) -> bool:
    """Whether a number is so long that a text has it from somewhere; a year is not."""
    if token.kind != "n" or not token.shown.isdecimal() or len(token.shown) < _IDENTIFIES:
        return False
    return len(token.shown) > _IDENTIFIES or not 1900 <= int(token.shown) <= 2100
