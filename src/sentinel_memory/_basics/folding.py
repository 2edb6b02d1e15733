"""Folding: one spelling for several, without case, width, marks and invisible characters.

Folding makes ``Žofie``, ``ŽOFIE`` and ``zofie`` one text. Splitting it into words is in ``words``.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, TypeVar

__all__ = ["CharacterTable", "folded", "is_dropped"]

_Key = TypeVar("_Key", str, int)
_Value = TypeVar("_Value")


class CharacterTable(dict[_Key, _Value]):
    """A cache of one computed value per character.

    A subclass computes the value in ``__missing__`` and keeps it with ``keep``. At most 8,192
    characters are kept (about 1 MiB); raising that helps texts with more different characters than
    any language has, and a table that is full is emptied.
    """

    __slots__ = ()

    _MOST: Final = 8_192

    def keep(self, char: _Key, value: _Value) -> _Value:
        """Remember ``value`` for ``char``, and return it."""
        if len(self) >= self._MOST:
            self.clear()
        self[char] = value
        return value


_DROPPED: Final = frozenset(
    (
        0x00AD,  # soft hyphen
        0x061C,  # Arabic letter mark
        0x0640,  # Arabic tatweel
        0x0670,  # Arabic superscript alef
        *range(0x180B, 0x1810),  # Mongolian variation selectors and vowel separator
        *range(0x200C, 0x2010),  # zero-width joiners, marks of direction
        *range(0x202A, 0x202F),  # embeddings of a direction
        *range(0x2060, 0x2065),  # word joiner, invisible operators
        *range(0x2066, 0x206A),  # isolates of a direction
        *range(0xFE00, 0xFE10),  # variation selectors
        *range(0xE0100, 0xE01F0),
        0xFEFF,  # zero-width no-break space
        *range(0x0300, 0x0370),  # combining diacritical marks
        *range(0x0610, 0x061B),  # Arabic signs
        *range(0x064B, 0x0660),  # Arabic vowel points
        # Hebrew points; the block's punctuation stays a separator
        *(c for c in range(0x0591, 0x05C8) if unicodedata.category(chr(c))[0] == "M"),
        # The nuktas of Devanagari, Bengali, Gurmukhi, Gujarati, Odia and Kannada: often left out
        *(0x093C, 0x09BC, 0x0A3C, 0x0ABC, 0x0B3C, 0x0CBC),
    )
)
_PLAIN: Final = {
    **{"ı": "i", "ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe"},
    **{"Ł": "l", "Ø": "o", "Đ": "d", "Æ": "ae", "Œ": "oe"},  # capitals that appear only after NFKD
    # Letters of Persian, Urdu and Kurdish that other keyboards write as an Arabic one.
    **{"ک": "ك", "ڪ": "ك", "ی": "ي", "ى": "ي", "ۍ": "ي"},
    **{"ٱ": "ا", "ٲ": "ا", "ٳ": "ا", "ة": "ه", "ۃ": "ه", "ہ": "ه", "ە": "ه"},
    # Chillu letters of Malayalam: a consonant without its vowel
    **{"ൺ": "ണ്", "ൻ": "ന്", "ർ": "ര്", "ൽ": "ല്", "ൾ": "ള്", "ൿ": "ക്"},
    **{"\u0d54": "മ്", "\u0d55": "യ്", "\u0d56": "ഴ്"},
    # Letters that are apostrophes, primes and half rings
    **{chr(code): "'" for code in (*range(0x02B9, 0x02C0), 0xA78C)},
    "♯": "#",
}


class _Folds(CharacterTable[int, str | None]):
    """Code to the folded form of a decomposed character; ``None`` if it is dropped."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        if code in _DROPPED:
            return self.keep(code, None)
        digit = unicodedata.decimal(char, None)
        return self.keep(code, _PLAIN.get(char, char) if digit is None else str(digit))


class _Signs(CharacterTable[int, str]):
    """Code to its character, or to a blank if NFKD would turn it from a sign (™) into letters."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if unicodedata.category(char)[0] != "S":
            return self.keep(code, char)
        plain = unicodedata.normalize("NFKD", char)
        return self.keep(code, " " if any(map(str.isalnum, plain)) else char)


class _IsMark(CharacterTable[str, str]):
    """Character to "m" if it is dropped or decomposes to a mark first, otherwise to "x"."""

    def __missing__(self, char: str) -> str:
        first = unicodedata.normalize("NFKD", char)[0]
        mark = ord(char) in _DROPPED or unicodedata.category(first)[0] == "M"
        return self.keep(char, "m" if mark else "x")


_FOLDS: Final = _Folds()
_SIGNS: Final = _Signs()
_IS_MARK: Final = _IsMark()

# Combining marks in a row; more are dropped, since putting them in order takes quadratic time. The
# number is that of the Stream-Safe Text Format (Unicode Annex 15), more than any language needs.
_MOST_MARKS: Final = 30
_TOO_MANY_MARKS: Final = re.compile(f"m{{{_MOST_MARKS}}}(m+)")

# Thai and Lao "am" with its tone, in whatever order they were typed. A tone between two of them
# belongs to the second.
_AM: Final = re.compile(
    "([\u0e48-\u0e4b]*)\u0e4d([\u0e48-\u0e4b]*)\u0e32(?:([\u0e48-\u0e4b]+)(?![\u0e48-\u0e4d]))?"
    "|([\u0ec8-\u0ecb]*)\u0ecd([\u0ec8-\u0ecb]*)\u0eb2(?:([\u0ec8-\u0ecb]+)(?![\u0ec8-\u0ecd]))?"
)


def is_dropped(char: str) -> bool:
    """Whether folding drops a character."""
    return ord(char) in _DROPPED


def folded(text: str) -> str:
    """The folded text; texts that differ only in spelling become equal.

    >>> folded("Žofie’s LEGO™ ４２")
    'zofie’s lego  42'
    """
    if text.isascii():
        return text.lower()
    text = _with_few_marks(text.translate(_SIGNS).casefold())
    text = unicodedata.normalize("NFKD", text).translate(_FOLDS)
    if "\u0e4d" in text or "\u0ecd" in text:
        text = _AM.sub(_am, text)
    # Casefold again: NFKD turns letters such as 𝐀 and ϒ into capitals.
    return unicodedata.normalize("NFKC", text).casefold()


def _with_few_marks(text: str) -> str:
    """The text with at most 30 combining marks in a row."""
    marks = "".join(map(_IS_MARK.__getitem__, text))
    kept = []
    start = 0
    for pile in _TOO_MANY_MARKS.finditer(marks):
        kept.append(text[start : pile.start(1)])
        start = pile.end()
    return "".join([*kept, text[start:]]) if kept else text


def _am(found: re.Match[str]) -> str:
    """The replacement of one "am": its tones first, then its two halves."""
    tones = "".join(group for group in found.groups() if group)
    return tones + ("\u0e4d\u0e32" if "\u0e4d" in found[0] else "\u0ecd\u0eb2")
