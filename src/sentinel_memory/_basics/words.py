"""Text to words, of stored texts and of questions.

A word is a run of letters and digits with their combining marks, folded (see ``folding``). Scripts
written without spaces count as overlapping pairs of letters. Stored text has further words: the
single letters of such scripts, and the parts of a camelCase word. A short name with a sign (``c#``)
is a word of its own beside the plain one.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from .folding import CharacterTable, folded, is_dropped

__all__ = ["query_weights", "query_words", "stored_words", "strings_in", "tokens"]

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


class _Kinds(CharacterTable[str, str]):
    """Character to its role in a word."""

    def __missing__(self, char: str) -> str:
        category = unicodedata.category(char)[0]
        if category == "M":
            kind = _MARK
        elif category not in "LN":
            kind = _SEPARATOR
        else:
            kind = _UNSPACED_LETTER if _is_unspaced(ord(char)) else _SPACED
        return self.keep(char, kind)


class _Shapes(CharacterTable[str, str]):
    """Character to a sample of its kind: é to "a", Č to "A", ٤ to "0"; or a mark, or a blank."""

    def __missing__(self, char: str) -> str:
        category = unicodedata.category(char)
        if category[0] == "M" or is_dropped(char):
            shape = _A_MARK
        else:
            shape = {"Ll": "a", "Lu": "A", "Nd": "0"}.get(category, " ")
        return self.keep(char, shape)


_A_MARK: Final = "\u0301"
_KINDS: Final = _Kinds()
_SHAPES: Final = _Shapes()

# Patterns for ASCII text, or for the shapes of any other text: a word, a change of case inside a
# word, and a part of a word.
_CASED_WORD: Final = re.compile("[A-Za-z0-9\u0301]+")
_MAYBE_CAMEL: Final = re.compile(
    "[A-Z](?<=[A-Za-z0-9\u0301][A-Z])"
)  # a cheap filter for the next pattern
_CAMEL: Final = re.compile(
    "[a-z]\u0301*[0-9]*[A-Z]|[A-Z]\u0301*[A-Z]\u0301*[a-z]\u0301*[a-z]",
)
_PART: Final = re.compile(
    "(?:[A-Z]\u0301*)+(?=[A-Z]\u0301*[a-z])|(?:[A-Z]\u0301*)?[a-z][a-z\u0301]*"
    "|(?:[A-Z]\u0301*)+|[0-9]+"
)
# Letters of a word that is looked at for camelCase. Raising it cuts longer codes (base64) into
# parts that say nothing; from 40 up every name that a person wrote is in.
_LONGEST_CAMEL: Final = 64

# Short names with a sign: c# c++ a+ .net, but not a+b, a.net, or the end of a sentence. A name has
# at most 8 letters and digits; raised, longer ones such as .gitignore would count with their sign,
# too. A digit may follow "++" and "#", but not one "+": c++17 yes, a+1 no. For speed,
# ``_DOT_BEFORE`` starts with a rare character, and ``_SIGN_AFTER`` runs only if the text has # or
# +.
_SIGN_AFTER: Final = re.compile(
    r"(?<![0-9a-z#+])([a-z][0-9a-z]{0,7})(?:#|\+\+?)(?![a-z#+])(?!(?<!\+\+)(?<!#)[0-9])"
)
_DOT_BEFORE: Final = re.compile(r"\.(?<![^\s(\[{\"'/,;:|]\.)([a-z][0-9a-z]{1,7})(?![0-9a-z#+])")


def tokens(text: str) -> Iterator[str | list[str]]:
    """The runs of ``text`` in order: a spaced word as a string, an unspaced run as its letters.

    >>> list(tokens("私はPythonで"))
    [['私', 'は'], 'python', ['で']]
    """
    return _runs(folded(text))


def _runs(text: str) -> Iterator[str | list[str]]:
    """The runs of a folded text."""
    if text.isascii():
        yield from _ASCII_WORDS.findall(text)
        return
    word: list[str] = []  # of a spaced script: characters; else: letters with their marks
    running = _SEPARATOR
    for char in text:
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


def _signed(text: str) -> Iterator[tuple[str, str]]:
    """The short names with a sign in a folded text: the plain name, and the form with the sign."""
    if "#" in text or "+" in text:
        for found in _SIGN_AFTER.finditer(text):
            yield found[1], found[0]
    for found in _DOT_BEFORE.finditer(text):
        yield found[1], found[0]


def _camel_parts(text: str) -> Iterator[str]:
    """The parts of the camelCase words of a text that is not folded yet."""
    shapes = text if text.isascii() else "".join(map(_SHAPES.__getitem__, text))
    if _MAYBE_CAMEL.search(shapes) is None:
        return
    for word in _CASED_WORD.finditer(shapes):
        start, end = word.span()
        if end - start <= _LONGEST_CAMEL and _CAMEL.search(shapes, start, end):
            for part in _PART.finditer(shapes, start, end):
                yield text[part.start() : part.end()]


def stored_words(text: str) -> set[str]:
    """The distinct words of a stored text; an unspaced run has its single letters too.

    >>> sorted(stored_words("Žofie, 12"))
    ['12', 'zofie']
    >>> sorted(stored_words("phoneNumber in C#"))
    ['c', 'c#', 'in', 'number', 'phone', 'phonenumber']
    """
    plain = folded(text)
    words: set[str] = set()
    _add_stored(plain, words)
    parts = " ".join(_camel_parts(text))
    if parts:
        _add_stored(folded(parts), words)
    words.update([form for name, form in _signed(plain) if name in words])
    return words


def _add_stored(text: str, words: set[str]) -> None:
    """Add the words of a folded text."""
    if text.isascii():
        words.update(_ASCII_WORDS.findall(text))
        return
    for token in _runs(text):
        if isinstance(token, str):
            words.add(token)
        else:
            words.update(token, _pairs(token))


def query_words(text: str) -> set[str]:
    """The distinct words of a question; an unspaced run is its pairs, or its only letter.

    >>> sorted(query_words("アレルギー"))
    ['アレ', 'ギー', 'ルギ', 'レル']
    """
    return set(query_weights(text))


def query_weights(text: str) -> dict[str, int]:
    """The distinct words of a question, each with an integer weight, in the order of the text.

    All words weigh the same. A short name with a sign is still one word, so its weight is split
    between the form with the sign and the plain name.

    >>> query_weights("Is C# fun?")
    {'is': 2, 'c': 1, 'fun': 2, 'c#': 1}
    """
    plain = folded(text)
    words: dict[str, int] = {}
    for token in _runs(plain):
        if isinstance(token, str):
            words[token] = 1
        else:
            words.update(dict.fromkeys(_pairs(token) or token, 1))
    forms: dict[str, set[str]] = {}
    for name, form in _signed(plain):
        if name in words:
            forms.setdefault(name, {name}).add(form)
    if not forms:
        return words
    whole = math.lcm(*map(len, forms.values()))
    weights = dict.fromkeys(words, whole)
    for spelled in forms.values():
        weights.update(dict.fromkeys(sorted(spelled), whole // len(spelled)))
    return weights


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
