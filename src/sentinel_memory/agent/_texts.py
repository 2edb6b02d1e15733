"""Texts as tokens: words by stem, numbers, identifiers and pairs of letters, each with points.

Points are a guess at how much it tells that two texts share something: a content word 1, a
function word nothing. ``evidence`` and ``near`` compare texts by them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from .._basics.words import tokens as runs_of
from ._classes import CLASSES, NUMBER_WORDS, UNSPACED_CLASSES
from ._stems import stem_of
from ._tables import (
    ADDRESSES,
    AVOIDANCE,
    BEFORE_PLACES,
    FUNCTION_WORDS,
    GERMAN,
    HANGUL_PARTICLES,
    NAMING,
    NEGATORS,
    PREDICATES,
    RESIDENCE,
    UNSPACED_FUNCTION,
    UNSPACED_LITTLE,
    UNSPACED_NEGATORS,
    UNSPACED_PRONOUNS,
)

__all__ = [
    "Text",
    "Token",
    "glued",
    "is_predicate",
    "is_spelt_strangely",
    "is_to_be_avoided",
    "same_number",
    "says_to_avoid",
    "says_who_or_where",
]

# Points, tuned on the pairs for tuning; each may change by 20 % with the same results.
_IDEOGRAPHS: Final = 0.7  # a pair of them is nearly a word
_HANGUL: Final = 0.7
_KATAKANA: Final = 0.35  # loan words are long
_SYLLABLES: Final = 0.35  # Thai, Lao, Khmer, Myanmar: several pairs a word
_HIRAGANA: Final = 0.35  # of letters that are hardly ever an ending
_SHORT: Final = 0.5  # a word of three letters
_LONE: Final = 1.4  # the points of a pair, divided by this, are the points of a lone letter

_BEGINNING: Final = 3  # letters at the beginning that are never part of an ending


class Token(NamedTuple):
    """One word, number, identifier or pair of letters of a text, in its place.

    ``stem`` is what its forms share, ``shown`` the folded spelling; ``points`` is what it tells;
    ``kind`` is ``w`` for a word, ``n`` for a number, ``i`` for an identifier (an address, a code of
    letters and digits), ``u`` for letters of a script without spaces. ``values`` are the readings
    of a number, or of a number word. ``group`` is the class, and the number in it, of a month,
    a weekday, a currency or the like.
    """

    stem: str
    shown: str
    points: float
    kind: str
    capital: bool = False
    negates: bool = False
    values: frozenset[tuple[str, ...]] = frozenset()
    group: tuple[str, int] | None = None


_SEPARATES: Final = (
    r"\s!-/:-@\[-`{-~\u00a1-\u00a9\u00ab\u00ac\u00ae-\u00b4\u00b6-\u00bf\u060c\u061b\u061f"
    r"\u066a-\u066d\u06d4\u0964\u0965\u2010-\u2027\u2030-\u205e\u20a0-\u20cf\u2100-\u214f"
    r"\u2190-\u2bff\u3000-\u3004\u3008-\u303f"
)
# Lengths are bounded, and patterns start where a run begins, so that a long run is read once.
_ADDRESS: Final = r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"
_CODE: Final = r"(?<![\w-])[A-Za-z0-9_][A-Za-z0-9_-]{4,63}(?![\w-]|[.,:/'\u2019]\d)"
_REST: Final = (
    rf"[^\d{_SEPARATES}]+"  # a word
    r"|(?<![\w])[-+\u2212](?=\d)(?:\d+(?:[.,:/'\u2019-]\d+)*)|\d+(?:[.,:/'\u2019-]\d+)*"
    r"|[.!?\u3002\u0964\u2026\n]+(?=\s|$|[^\w])|[\u3002\uff01\uff1f]"  # the end of a sentence
    r"|[;,:\u3001\uff0c\uff1b\uff1a\u060c\u2014\u2013()]+"
)
_PIECES: Final = re.compile(_REST)
_PIECES_WITH_CODES: Final = re.compile(f"{_ADDRESS}|{_CODE}|{_REST}")
_ENDS: Final = frozenset(".!?\u3002\u0964\u2026\n\uff01\uff1f")
_PAUSES: Final = frozenset(";,:\u3001\uff0c\uff1b\uff1a\u060c\u2014\u2013()")
_CODED: Final = re.compile(r"[\d@]")
_HALF: Final = re.compile(r"(?<=\d)\s?([ap])\.?\s?m\b\.?", re.IGNORECASE)
_NOT: Final = re.compile(r"(?<=n)['\u2019\u02bc](?=t\b)", re.IGNORECASE)
_POSSESSIVE: Final = re.compile(r"(?<=\w)['\u2019\u02bc]s\b")
_SIGNS: Final = {
    "\u20ac": " euro ",
    "$": " dollar ",
    "\u00a3": " pound ",
    "\u00a5": " yen ",
    "%": " percent ",
    "\u20bd": " рубль ",
    "\u20b9": " rupee ",
}
_IDEOGRAPHIC_NUMBER: Final = re.compile(
    "([〇零一二两三四五六七八九十百]{1,8})(?=[点點時时月号號岁歲才匹只隻人块塊度楼樓室枚本台回階円元分個个匹か週周年杯])"
)
_IDEOGRAPHIC_DIGITS: Final = {c: n for n, c in enumerate("〇一二三四五六七八九")} | {
    "零": 0,
    "两": 2,
}


def _without_ideographic_numbers(text: str) -> str:
    def digits(match: re.Match[str]) -> str:
        if match.group() == "一" and text[match.end()] in "个個只隻本枚杯块塊匹":
            return "一"  # an article
        value = digit = 0
        for char in match.group():
            if char in "十百":
                value += (digit or 1) * (10 if char == "十" else 100)
                digit = 0
            else:
                digit = _IDEOGRAPHIC_DIGITS[char]
        return str(value + digit)

    return _IDEOGRAPHIC_NUMBER.sub(digits, text)


def _prepared(text: str) -> str:
    """The text in one spelling of digits, signs and halves of a day."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(
            str(unicodedata.digit(c)) if c > "\u007f" and c.isdecimal() else c for c in text
        )
        text = _without_ideographic_numbers(text)
    for sign, word in _SIGNS.items():
        if sign in text:
            text = text.replace(sign, word)
    if "'" in text or "\u2019" in text or "\u02bc" in text:
        text = _POSSESSIVE.sub("", _NOT.sub("", text))
    return _HALF.sub(lambda m: f" x{m.group(1).lower()}m", text)


def is_spelt_strangely(text: str) -> bool:
    """Whether a text has letters that English lacks: then words have more endings."""
    return not text.isascii() and any(c > "\u00bf" and c.isalpha() for c in text)


def numbers_meant(written: str) -> frozenset[tuple[str, ...]]:
    """The readings of a written number: its parts, and without thousands separators.

    >>> sorted(numbers_meant("1,200"))
    [('1', '200'), ('1200',)]
    """
    sign = ("-",) if written[0] in "-\u2212" else ()
    written = written.lstrip("-+\u2212")
    parts = tuple(part.lstrip("0") or "0" for part in re.split(r"[^\d]+", written))
    found = {(*sign, *parts)}
    if re.fullmatch(r"\d{1,3}([,.'\u2019]\d{3})+", written):
        found.add((*sign, re.sub(r"\D", "", written).lstrip("0") or "0"))
    return frozenset(found)


def _o_clock(values: frozenset[tuple[str, ...]], half: str) -> frozenset[tuple[str, ...]]:
    """The readings of an hour that "a.m." or "p.m." follows: also that of 24 hours."""
    found = set(values)
    for value in values:
        hour, rest = value[0], value[1:]
        if hour.isdecimal() and int(hour) <= 12:
            hour = str(int(hour) % 12 + (12 if half == "xpm" else 0))
            found |= {(hour, *(rest or ("0",))), (hour, *rest)}
    return frozenset(found)


def is_predicate(token: Token) -> bool:
    """Whether a word only says that somebody lives, works or is called."""
    return token.shown in PREDICATES


def same_number(one: Token, other: Token) -> bool:
    """Whether two tokens can mean the same number."""
    return not one.values.isdisjoint(other.values)


class Text:
    """A text as tokens in order, with the places of each stem.

    ``clauses`` has the number of the part of a sentence that each token is in. ``strange`` is
    whether the endings of languages other than English come off, too: it must be the same for two
    texts that are compared. With ``about``, the beginnings of a few words, the other plain words
    of the text are only counted, not read: that is for one comparison, and takes half the time.
    """

    def __init__(self, text: str, *, strange: bool, about: frozenset[str] | None = None) -> None:
        self.written = text.casefold()
        self.tokens: list[Token] = []
        self.clauses: list[int] = []
        self.sentence_starts: set[int] = set()
        self._strange = strange
        self._about = None if strange else about
        self._read(_prepared(text))
        places: dict[str, list[int]] = {}
        numbers = []
        for place, token in enumerate(self.tokens):
            stem = token.stem
            if stem:  # an unread word has none
                if stem in places:
                    places[stem].append(place)
                else:
                    places[stem] = [place]
                if token.values:
                    numbers.append(place)
        # Where every noun has a capital, a capital does not show a name.
        self.nouns_are_capital: Final = not GERMAN.isdisjoint([t.shown for t in self.tokens])
        self.places: Final = places
        self.numbers: Final = numbers

    def _read(self, text: str) -> None:
        clause = 0
        fresh = True
        known: dict[str, tuple[Token, ...]] = {}
        tokens, clauses = self.tokens, self.clauses
        pieces = _PIECES_WITH_CODES if _CODED.search(text) else _PIECES
        for piece in pieces.findall(text):
            made = known.get(piece)
            if made is None:
                made = known[piece] = self._made(piece)
            if not made:
                clause += 1
                fresh = fresh or piece[0] in _ENDS
                continue
            if piece in _HALVES:
                self._set_hour(piece)
            if fresh:
                self.sentence_starts.update(range(len(tokens), len(tokens) + len(made)))
                fresh = False
            tokens += made
            clauses.append(clause)
            if len(made) > 1:
                clauses += [clause] * (len(made) - 1)

    def _set_hour(self, half: str) -> None:
        """Let the number before "a.m." or "p.m." be that hour of 24, too."""
        if self.tokens and self.tokens[-1].kind == "n":
            hour = self.tokens[-1]
            self.tokens[-1] = hour._replace(values=_o_clock(hour.values, half))

    def beginnings(self) -> Iterator[str]:
        """The first letters of the words, as ``about`` takes them."""
        return (token.shown[:_BEGINNING] for token in self.tokens)

    def _made(self, piece: str) -> tuple[Token, ...]:
        """The tokens of a piece of the text; none for the end of a clause."""
        if piece.isascii() and piece.isalpha():
            lower = piece.lower()
            if (
                self._about is not None
                and len(lower) > 1
                and lower[:_BEGINNING] not in self._about
                and lower not in _SPECIAL
            ):
                return _UNREAD[min(len(piece), 4)]
            return (self._word(lower, piece[0].isupper()),)
        if piece[0] in _ENDS or piece[0] in _PAUSES:
            return ()
        if _CODED.search(piece) is None:
            words = _PIECES.findall(piece) if "-" in piece else [piece]
            return tuple(token for word in words for token in self._runs(word))
        if not any(char.isalpha() for char in piece):
            shown = piece.replace("\u2212", "-").lstrip("+")
            return (Token(shown, shown, 1.0, "n", values=numbers_meant(piece)),)
        parts = [token for part in _PIECES.findall(piece) for token in self._made(part)]
        return (_identifier(piece), *parts)

    def _runs(self, word: str) -> Iterator[Token]:
        capital = word[0].isupper()
        for run in runs_of(word):
            if isinstance(run, str):
                yield self._word(run, capital)
            else:
                yield from _letters(run)

    def _word(self, word: str, capital: bool) -> Token:
        stem = stem_of(word, strange=self._strange)
        special = _SPECIAL.get(word)
        if special is not None and not (self._strange and word in _ENGLISH_ONLY):
            return Token(stem, word, special[0], "w", capital, *special[1:])
        length = len(word)
        points = 1.0 if length > 3 else _SHORT if length == 3 else 0.0
        return Token(stem, word, points, "w", capital)


def _identifier(written: str) -> Token:
    stem = written.lower()
    return Token(stem, stem, 2.0, "i")


_Special: TypeAlias = tuple[float, bool, frozenset[tuple[str, ...]], tuple[str, int] | None]


def _special(word: str) -> _Special:
    """The points of a word of the tables, whether it negates, its number and its class."""
    number = NUMBER_WORDS.get(word)
    values = frozenset({(number,)}) if number else frozenset()
    little = word in NEGATORS or word in FUNCTION_WORDS or word in PREDICATES or len(word) <= 2
    points = 0.0 if little else _SHORT if len(word) == 3 else 1.0
    return points, word in NEGATORS, values, CLASSES.get(word)


_SPECIAL: Final = {
    word: _special(word)
    for word in {
        *FUNCTION_WORDS,
        *PREDICATES,
        *NEGATORS,
        *NUMBER_WORDS,
        *CLASSES,
        *GERMAN,
        *BEFORE_PLACES,
        *(word for pair in ADDRESSES for word in pair.split("|")),
    }
}
_UNREAD: Final = tuple((Token("", "", points, "w"),) for points in (0.0, 0.0, 0.0, _SHORT, 1.0))
_ENGLISH_ONLY: Final = frozenset({"ten", "may"})  # other words in other languages
_HALVES: Final = frozenset({"xam", "xpm"})


def _script(letter: str) -> str:
    code = ord(letter[0])
    if 0x3041 <= code <= 0x309F:
        return "hiragana"
    if 0x30A0 <= code <= 0x30FF or 0x31F0 <= code <= 0x31FF or 0xFF66 <= code <= 0xFF9F:
        return "katakana"
    if 0x3005 <= code <= 0x3007 or 0x3400 <= code <= 0x9FFF or code >= 0x20000:
        return "ideographs"
    if 0xAC00 <= code <= 0xD7AF or 0x1100 <= code <= 0x11FF:
        return "hangul"
    return "syllables"


_PAIR: Final = {
    "katakana": _KATAKANA,
    "ideographs": _IDEOGRAPHS,
    "hangul": _HANGUL,
    "syllables": _SYLLABLES,
}


def _letters(letters: list[str]) -> Iterator[Token]:
    """The pairs of letters of a run, script by script; a lone letter stands for itself."""
    whole = "".join(letters)
    negates = any(sign in whole for sign in UNSPACED_NEGATORS)
    groups = {(name, number) for sign, name, number in UNSPACED_CLASSES if sign in whole}
    for name, number in sorted(groups):
        label = f"{name}:{number}"
        yield Token(label, label, 0.0, "u", group=(name, number))
    silent = _silent(letters, whole)
    start = 0
    while start < len(letters):
        script = _script(letters[start])
        end = start
        while end < len(letters) and _script(letters[end]) == script:
            end += 1
        for place in range(start, max(start + 1, end - 1)):
            pair = letters[place : min(place + 2, end)]
            points = _points(pair, script, place + 2 == len(letters))
            if silent and not silent.isdisjoint(range(place, place + len(pair))):
                points = 0.0
            shown = "".join(pair)
            yield Token(shown, shown, points, "u", negates=negates)
            negates = False
        start = end


def _points(pair: list[str], script: str, closes: bool) -> float:
    """The points of a pair of letters, or of a lone one; ``closes``: it ends its word."""
    if script == "hiragana":
        plain = len(pair) == 2 and UNSPACED_LITTLE.isdisjoint(pair)
        return _HIRAGANA if plain else 0.0
    if script == "hangul" and closes and pair[-1] in HANGUL_PARTICLES:
        return 0.0
    little = sum(letter in UNSPACED_FUNCTION for letter in pair)
    if len(pair) == 1:
        return 0.0 if little else _PAIR[script] / _LONE
    return _PAIR[script] * (1.0, 0.5, 0.0)[little]


_PRONOUNS: Final = re.compile("|".join(sorted(UNSPACED_PRONOUNS, key=len, reverse=True)))


def _silent(letters: list[str], whole: str) -> set[int]:
    """The places of letters that are part of a pronoun or the like."""
    spans = [match.span() for match in _PRONOUNS.finditer(whole)]
    if not spans:
        return set()
    places = [place for place, letter in enumerate(letters) for _ in letter]
    return {places[at] for start, end in spans for at in range(start, end)}


def glued(tokens: list[Token]) -> str:
    """The letters of scripts without spaces in these tokens, joined again."""
    text = ""
    for token in tokens:
        if token.kind == "u" and not token.group:
            overlaps = text and len(token.shown) > 1 and text.endswith(token.shown[0])
            text += token.shown[1:] if overlaps else token.shown
    return text


def says_who_or_where(text: Text) -> bool:
    """Whether a text gives a name or a place of living."""
    words = " ".join(token.shown for token in text.tokens)
    return any(
        f" {sign}" in f" {words}" or (sign > "\u0530" and sign in text.written)
        for sign in (*RESIDENCE, *NAMING)
    )


def is_to_be_avoided(token: Token) -> bool:
    """Whether a word says that something is to be avoided."""
    return token.shown.startswith(AVOIDANCE)


def says_to_avoid(text: Text) -> bool:
    """Whether a text says that something is to be avoided."""
    words = " ".join(token.shown for token in text.tokens)
    return any(f" {sign}" in f" {words}" or sign in text.written for sign in AVOIDANCE)
