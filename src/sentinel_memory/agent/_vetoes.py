"""Vetoes against the use of a memory: another number, another word, a negation."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Final

from ._shared import Shared
from ._tables import WITHOUT
from ._texts import Text, Token, is_to_be_avoided, same_number

__all__ = [
    "has_a_changed_word",
    "has_another_member",
    "is_about_another_thing",
    "is_negated",
    "is_turned_round",
]

_SAYS: Final = 0.35  # points from which another token in the place of one is another fact
_AROUND: Final = 3  # tokens on either side of the window in which another number is a veto
_NEAR: Final = 8  # the same for a negation of the memory that the answer may have, too
_MOST_PLACES: Final = 200  # places of one word or number in the answer that are examined


def has_another_member(shared: Shared) -> bool:
    """Whether the passage has another number, month, unit or the like than the memory."""
    passage = shared.answer.tokens[max(0, shared.first - _AROUND) : shared.last + 1 + _AROUND]
    if shared.last < 0:
        return False
    mine = [token for token in shared.memory.tokens if token.values]
    if shared.missing:
        for token in passage:
            if token.kind == "n" and not any(same_number(token, one) for one in mine):
                return True
    codes = {token.stem for token in shared.memory.tokens if token.kind == "i"}
    if not codes <= shared.answer.places.keys() and any(
        token.kind == "i" and token.stem not in codes for token in passage
    ):
        return True
    groups = {token.group for token in shared.memory.tokens if token.group}
    theirs = {token.group for token in passage if token.group}
    lost = {group[0] for group in groups - theirs}
    return any(group[0] in lost for group in theirs - groups)


def has_a_changed_word(shared: Shared) -> bool:
    """Whether the answer has other words in place of some, between the same neighbours."""
    mine = shared.memory.tokens
    places = shared.answer.places
    place = 1
    while place < len(mine):
        if mine[place].stem in places or place in shared.place_of:
            place += 1
            continue
        end = place
        while end < len(mine) and mine[end].stem not in places and end not in shared.place_of:
            end += 1
        lost = mine[place:end]
        if (
            mine[place - 1].stem in places
            and any(token.points >= _SAYS for token in lost)
            and not any(token.kind == "n" or token.group for token in lost)
            and _is_filled_otherwise(shared, place, end)
        ):
            return True
        place = end + 1
    return False


def _is_filled_otherwise(shared: Shared, start: int, end: int) -> bool:
    """Whether the answer has other words in the place of those from ``start`` to ``end``."""
    theirs, clauses = shared.answer.tokens, shared.answer.clauses
    number = shared.memory.tokens[start].values  # any other word in its place is another fact
    after = shared.memory.tokens[end].stem if end < len(shared.memory.tokens) else None
    longest = end - start + (1 if shared.memory.tokens[start].kind == "w" else 2)
    places = shared.answer.places[shared.memory.tokens[start - 1].stem]
    from_here = bisect_left(places, shared.first - _AROUND)
    for at in places[from_here : bisect_right(places, shared.last + _AROUND)]:
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
            and any(token.points >= _SAYS or (number and not token.values) for token in others)
            and all(token.stem not in shared.memory.places for token in others)
        ):
            return True
    return False


def is_about_another_thing(shared: Shared) -> bool:
    """Whether the memory names a thing, and the answer shares only dates and amounts."""
    if shared.topic or shared.code:
        return False
    mine = shared.memory.tokens
    things = {
        place
        for place, token in enumerate(mine)
        if token.points >= _SAYS and not token.values and not token.group
    }
    things = {p for p in things if mine[p].stem not in shared.common}
    return bool(things) and things.isdisjoint(shared.worth)


def is_turned_round(shared: Shared) -> bool:
    """Whether the answer has three words of the memory in the reverse order."""
    mine, theirs = (
        [token.stem for token in text.tokens if token.kind == "w" and token.points]
        for text in (shared.memory, shared.answer)
    )
    if _are_exchanged(shared):
        return True
    there = set(zip(theirs, theirs[1:], theirs[2:], strict=False))
    triples = list(zip(mine, mine[1:], mine[2:], strict=False))
    return any(t[::-1] in there and t[0] != t[2] for t in triples) and not any(
        t in there for t in triples
    )


def _are_exchanged(shared: Shared) -> bool:
    """Whether two words have changed places behind their prepositions: "from" and "to"."""
    before = _prepositions(shared.memory)
    after = _prepositions(shared.answer)
    both = [stem for stem in before if stem in after]
    return any(
        before[one] == after[two] and before[two] == after[one] and before[one] != before[two]
        for place, one in enumerate(both[:_MOST_PLACES])
        for two in both[place + 1 : _MOST_PLACES]
    )


def is_negated(shared: Shared) -> bool:
    """Whether exactly one of the two texts negates their shared words."""
    near = shared.answer.tokens[max(0, shared.first - _NEAR) : shared.last + 1 + _NEAR]
    if shared.denied:
        return not any(token.negates for token in near) or _denies_another_word(shared)
    if shared.avoids:
        return _denies_avoiding(shared)
    clauses: dict[int, float] = {}
    for place, worth in shared.worth.items():
        for at in shared.place_of[place]:
            clause = shared.answer.clauses[at]
            clauses[clause] = clauses.get(clause, 0.0) + worth
    top = max(clauses, key=lambda clause: (clauses[clause], -clause), default=-1)
    words = shared.clause(top)
    if any(token.negates and token.shown not in WITHOUT for token in words):
        return True
    denied = _denied_in(words)
    return any(stem in shared.memory.places for stem in denied)


def _denies_another_word(shared: Shared) -> bool:
    """Whether the answer denies what the memory affirms: "not tabs" for "not spaces"."""
    mine = _denied(shared.memory)
    theirs = _denied(shared.answer) & {token.stem for token in shared.memory.tokens if token.points}
    return bool(theirs) and any(s in shared.answer.places for s in mine) and not theirs & mine


def _denies_avoiding(shared: Shared) -> bool:
    """Whether the answer denies that something is to be avoided: "not allergic"."""
    tokens = shared.answer.tokens
    for at, token in enumerate(tokens):
        if is_to_be_avoided(token) and any(one.negates for one in tokens[max(0, at - 2) : at]):
            return True
    return False


def _prepositions(text: Text) -> dict[str, str]:
    """The function word before each content word, where there is one."""
    return {
        token.stem: before.stem
        for before, token in pairwise(text.tokens)
        if token.points and before.kind == "w" and not before.points and before.stem
    }


def _denied(text: Text) -> set[str]:
    return _denied_in(text.tokens)


def _denied_in(tokens: list[Token]) -> set[str]:
    """The stems of the words that follow a negation next."""
    found = set()
    for place, token in enumerate(tokens):
        if token.negates and token.kind == "w":
            following = (t.stem for t in tokens[place + 1 : place + 4] if t.points)
            found |= {stem for stem in [next(following, None)] if stem is not None}
    return found
