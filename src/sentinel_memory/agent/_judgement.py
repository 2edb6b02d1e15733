"""The rules by which an answer shows that a memory was used: points for it, and vetoes against it.

Texts come read already; ``evidence.py`` has the public calls.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import Final, NamedTuple

from ._shared import Shared
from ._tables import ADDRESSES, TASTES, UNSPACED_ADDRESSES
from ._texts import Text, glued, says_who_or_where
from ._vetoes import (
    has_a_changed_word,
    has_another_member,
    is_about_another_thing,
    is_negated,
    is_turned_round,
)

__all__ = ["Evidence", "judged"]

# Tuned on the pairs for tuning; each may change by a tenth with the same results.
_ENOUGH: Final = 2.0  # points; raising it misses short facts
_SHARE: Final = 0.55  # of the points of the memory; lowering it credits facts about the same things
_SHARE_OF_CODES: Final = 0.25  # the same with an identifier of the memory, which nobody guesses
_MUCH: Final = 3.0  # points from which words in any order are not there by chance, ...
_MOST_OF_IT: Final = 0.8  # ... if they are at least this share of the memory
_LEAST: Final = 0.7  # points of a memory that is found completely and is about the asker
_POLITE: Final = frozenset({"sie", "ihnen", "ihr", "ihre", "ihrem", "ihren"})  # German: you
_RUN: Final = 3.0  # points of equal tokens in a row that suffice with any share
_MOST_CELLS: Final = 400_000  # tokens times tokens, above which runs are not searched


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
    """The verdict on texts that are already read, with the same rules for endings."""
    shared = Shared(memory, answer, asked=asked, key=key, common=common)
    points, share = shared.points, shared.share
    from_key = max(_key_points(shared), shared.from_avoiding)
    whole = share > 0.999
    said = _is_said_of_the_asker(shared)
    told = said or shared.strong or from_key > 0 or (points >= _MUCH and share >= _MOST_OF_IT)
    told = told or _has_a_phrase(shared)
    enough = (
        (points >= _ENOUGH and told and share >= (_SHARE_OF_CODES if shared.code else _SHARE))
        or (whole and told and points + from_key >= _ENOUGH)
        or (whole and points >= _LEAST and (said or _is_unasked(shared, told)))
        or (points > 0 and _longest_run(shared) >= _RUN)
    )
    why = ""
    if not enough or is_about_another_thing(shared):
        why = "too little"
    elif shared.clash or has_another_member(shared):
        why = "another number"
    elif is_turned_round(shared) or has_a_changed_word(shared):
        why = "too little"
    elif is_negated(shared):
        why = "negated"
    return Evidence(not why, round(share, 3), round(points + from_key, 2), why)


def _is_unasked(shared: Shared, told: bool) -> bool:
    """Whether the answer brings up a fact about the asker that the question does not ask for."""
    tastes = shared.denied and any(one.shown in TASTES for one in shared.memory.tokens)
    topic = shared.topic and (told or len(shared.worth) == 1)
    return topic or tastes or says_who_or_where(shared.memory)


def _key_points(shared: Shared) -> float:
    """The points of words that the key and the answer have, and the data of the memory lacks."""
    found = 0.0
    seen: set[str] = set()
    for token in shared.key.tokens:
        new = token.stem not in seen and token.stem not in shared.memory.places
        if new and token.stem in shared.answer.places:
            seen.add(token.stem)
            found += token.points
    return found


def _longest_run(shared: Shared) -> float:
    """The points of the longest stretch of tokens that both have in the same order."""
    mine, theirs = shared.memory.tokens, shared.answer.tokens
    if len(mine) * len(theirs) > _MOST_CELLS:
        return 0.0
    best = 0.0
    before: dict[int, float] = {}
    for place, token in enumerate(mine):
        worth = shared.worth.get(place, 0.0) and token.points
        now: dict[int, float] = {}
        for at in shared.answer.places.get(token.stem, ()):
            now[at] = before.get(at - 1, 0.0) + worth
            best = max(best, now[at])
        before = now
    return best


def _is_said_of_the_asker(shared: Shared) -> bool:
    """Whether a clause of the answer with words of the memory addresses the asker."""
    clauses = {shared.answer.clauses[at] for place in shared.worth for at in shared.place_of[place]}
    for clause in clauses:
        words = shared.clause(clause)
        shown = [token.shown for token in words]
        pairs = {f"{one}|{other}" for one, other in pairwise(shown)}
        if not ADDRESSES.isdisjoint(shown) or not ADDRESSES.isdisjoint(pairs):
            return True
        first = bisect_left(shared.answer.clauses, clause)
        if any(
            word.shown in _POLITE and word.capital and at not in shared.answer.sentence_starts
            for at, word in enumerate(words, first)
        ):
            return True
        letters = glued(words)
        if any(sign in letters for sign in UNSPACED_ADDRESSES):
            return True
    return False


def _has_a_phrase(shared: Shared) -> bool:
    """Whether two words that follow each other in the memory also do in the answer.

    Letters of scripts without spaces are always in order. Without names and numbers, words
    that are only somewhere in a passage are what any text on the subject has.
    """
    mine = [token for token in shared.memory.tokens if token.points]
    if any(token.kind == "u" for token in mine):
        return True
    theirs = [
        token.stem for token in shared.answer.tokens[shared.first : shared.last + 1] if token.points
    ]
    pairs = set(pairwise(theirs))
    return any((one.stem, two.stem) in pairs for one, two in pairwise(mine))
