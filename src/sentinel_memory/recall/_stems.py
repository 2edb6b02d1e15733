"""Stems, which the forms of one word share, and the English words that questions are made of.

Stems are for an index that wants recall more than precision: they need not be words, only the same
for all forms. English endings are taken off in a fixed order; of the other alphabets only the
length of a word is cut.
"""

from __future__ import annotations

from typing import Final

__all__ = ["STOP_STEMS", "STOP_WORDS", "stem"]

# Words that questions are made of, not words that name their subject.
_STOP_WORDS: Final = (
    "a about an and are as at be been but by can could did do does for from had has have he "
    "her his how i if in into is it its me my of on or our she should so than that the their "
    "them then there these they this to was we were what when where which who whom whose why "
    "will with would you your"
)
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())

# Letters of a word that count. Raising it keeps more forms apart. From 5 to no limit, results on
# LoCoMo differ by less than 1 point.
_CUT: Final = 6
_VOWELS: Final = frozenset("aeiouy")


def stem(word: str) -> str:
    """The stem, which the forms of a word share.

    Numbers, codes, and words beyond Latin, Greek and Cyrillic are their own stems.

    >>> {stem(form) for form in ("reply", "replies", "replied", "replying")}
    {'repli'}
    """
    if not (word.isalpha() and word < "\u0530"):
        return word
    if len(word) > 2 and word.isascii():
        word = _without_endings(word)
    return word[:_CUT]


def _without_endings(word: str) -> str:
    word = _singular(word)
    word = _present(word)
    if word.endswith("ly") and _has_stem(word, 2, least=4):
        word = word[:-2]
    if word.endswith("e") and len(word) > 3:
        return word[:-1]
    if word.endswith("y") and word[-2] not in _VOWELS:
        return word[:-1] + "i"  # as in "replied", which lost its "ed"
    return word


def _singular(word: str) -> str:
    if word.endswith(("ies", "ied")):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us")):
        return word[:-1]
    return word


def _present(word: str) -> str:
    if word.endswith("ing") and _has_stem(word, 3, least=3):
        word = _undoubled(word[:-3])
    if word.endswith("eed"):
        # "agreed" comes of "agree", but "speed" of nothing shorter.
        return word[:-1] if _has_stem(word, 3, least=2) else word
    if word.endswith("ed") and _has_stem(word, 2, least=3):
        return _undoubled(word[:-2])
    return word


def _has_stem(word: str, ending: int, *, least: int) -> bool:
    """Whether ``least`` letters, among them a vowel, stand before so long an ending."""
    start = word[:-ending]
    return len(start) >= least and not _VOWELS.isdisjoint(start)


def _undoubled(word: str) -> str:
    """The word without the letter that "stopped" has and "stop" has not."""
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lszaeiou":
        return word[:-1]
    return word


STOP_STEMS: Final = frozenset(map(stem, STOP_WORDS))
