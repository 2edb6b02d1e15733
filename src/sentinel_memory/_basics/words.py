"""Text to words, the same for what is stored and for what is asked.

Case, width, ligatures and diacritics are folded away. A word is a run of letters and digits with
their combining marks; scripts written without spaces count as overlapping pairs of letters. Of a
pile of more than 30 marks, more than any language has, the rest is dropped: putting them in order
takes quadratic time. (The limit is that of the Stream-Safe Text Format, Unicode Annex 15.)
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

__all__ = ["query_words", "stored_words", "strings_in", "tokens"]

_DROPPED: Final = frozenset(
    (
        0x00AD,  # soft hyphen
        0x200C,  # zero-width non-joiner
        0x200D,  # zero-width joiner
        0x0640,  # Arabic tatweel
        0x0670,  # Arabic superscript alef
        *range(0x0300, 0x0370),  # combining diacritical marks
        *range(0x0610, 0x061B),  # Arabic signs
        *range(0x064B, 0x0660),  # Arabic vowel points
        # Hebrew points; the block's punctuation stays a separator
        *(c for c in range(0x0591, 0x05C8) if unicodedata.category(chr(c))[0] == "M"),
    )
)
_FOLDED: Final = {"ı": "i", "ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe"}
_FOLD: Final[dict[int, str | None]] = {
    **dict.fromkeys(_DROPPED),
    **{ord(letter): plain for letter, plain in _FOLDED.items()},
}

_UNSPACED: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul letters
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # ideographic iteration mark, closing mark and zero
    (0x3040, 0x30FF),  # kana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # ideographs
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF),  # Hangul syllables
    (0xF900, 0xFAFF),  # compatibility ideographs
    (0xFF66, 0xFF9F),  # half-width kana
    (0x20000, 0x3FFFF),  # further ideographs
)

_ASCII_WORDS: Final = re.compile("[0-9a-z]+")

_SEPARATOR: Final = "s"
_SPACED: Final = "w"
_UNSPACED_LETTER: Final = "u"
_MARK: Final = "m"


def _is_unspaced(code: int) -> bool:
    return any(first <= code <= last for first, last in _UNSPACED)


class _Kinds(dict[str, str]):
    """Character to its role in a word, worked out once for each character met."""

    def __missing__(self, char: str) -> str:
        category = unicodedata.category(char)[0]
        if category == "M":
            kind = _MARK
        elif category not in "LN":
            kind = _SEPARATOR
        else:
            kind = _UNSPACED_LETTER if _is_unspaced(ord(char)) else _SPACED
        self[char] = kind
        return kind


_KINDS: Final = _Kinds()


class _IsMark(dict[str, str]):
    """Character to "m", if nothing but a mark is left of it after folding, or to "x"."""

    def __missing__(self, char: str) -> str:
        first = unicodedata.normalize("NFKD", char)[0]
        mark = ord(char) in _DROPPED or unicodedata.category(first)[0] == "M"
        self[char] = "m" if mark else "x"
        return self[char]


_IS_MARK: Final = _IsMark()
_MOST_MARKS: Final = 30
_TOO_MANY_MARKS: Final = re.compile(f"m{{{_MOST_MARKS}}}(m+)")


def _without_piles(text: str) -> str:
    """The text with at most 30 marks in a row."""
    marks = "".join(map(_IS_MARK.__getitem__, text))
    kept = []
    start = 0
    for pile in _TOO_MANY_MARKS.finditer(marks):
        kept.append(text[start : pile.start(1)])
        start = pile.end()
    return "".join([*kept, text[start:]]) if kept else text


def _fold(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", _without_piles(text.casefold()))
    return unicodedata.normalize("NFKC", decomposed.translate(_FOLD))


def tokens(text: str) -> Iterator[str | list[str]]:
    """The runs of ``text`` in order: a spaced word as a string, an unspaced run as its letters.

    >>> list(tokens("私はPythonで"))
    [['私', 'は'], 'python', ['で']]
    """
    if text.isascii():
        yield from _ASCII_WORDS.findall(text.lower())
        return
    word: list[str] = []  # of a spaced script: characters; else: letters with their marks
    running = _SEPARATOR
    for char in _fold(text):
        kind = _KINDS[char]
        if kind is _MARK and word:
            word[-1] += char
            continue
        if kind is not running and word:
            yield "".join(word) if running is _SPACED else word
            word = []
        running = kind
        if kind is _SPACED or kind is _UNSPACED_LETTER:
            word.append(char)
    if word:
        yield "".join(word) if running is _SPACED else word


def _pairs(letters: list[str]) -> list[str]:
    return [first + second for first, second in pairwise(letters)]


def stored_words(text: str) -> set[str]:
    """The distinct words of a stored text; an unspaced run has its single letters too.

    >>> sorted(stored_words("Žofie, 12"))
    ['12', 'zofie']
    """
    words: set[str] = set()
    for token in tokens(text):
        if isinstance(token, str):
            words.add(token)
        else:
            words.update(token, _pairs(token))
    return words


def query_words(text: str) -> set[str]:
    """The distinct words of a question; an unspaced run is its pairs, or its only letter.

    >>> sorted(query_words("アレルギー"))
    ['アレ', 'ギー', 'ルギ', 'レル']
    """
    words: set[str] = set()
    for token in tokens(text):
        if isinstance(token, str):
            words.add(token)
        else:
            words.update(_pairs(token) or token)
    return words


def strings_in(data: Any) -> Iterator[str]:
    """Every string, number (as JSON writes it) and mapping key in JSON data.

    >>> list(strings_in({"seats": [2, True, None, "by the window"]}))
    ['seats', '2', 'by the window']
    """
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield key
            yield from strings_in(value)
    elif isinstance(data, list):
        for value in data:
            yield from strings_in(value)
    elif data is not None and not isinstance(data, bool):
        yield repr(data)
