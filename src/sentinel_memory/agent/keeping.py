"""Preparing a record of an agent for keeping: shorter strings, a key, an importance.

Pure functions of JSON data; nothing here knows a memory.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from .._basics.checks import check_str
from .._basics.numbers import in_unit_interval, warn_ignored, whole
from .._basics.plain import dump_json, plain
from .._basics.words import tokens

__all__ = ["Weights", "clip", "fingerprint"]

_CLIP: Final = 180
"""Characters that a string keeps; raising it keeps more of a record and fills budgets sooner."""

_FINGERPRINT: Final = 16
"""Hexadecimal digits of a fingerprint: 64 bits, so that two of a million records meet once in
37 million times. From 1 to 64, which is all of SHA-256."""

_DEFAULT: Final = 0.3
_BOOST: Final = 0.2

_ELLIPSIS: Final = "\u2026"
_JOINER: Final = "\u200d"


def clip(data: Any, length: int = _CLIP) -> Any:
    """A copy of JSON data in which every string value has at most ``length`` characters.

    The last character of a string that was cut is an ellipsis. A cut never falls between a letter
    and its marks, or inside an emoji that is made of several, so that the string may become
    shorter than ``length``. Mapping keys, numbers and booleans stay. ``length`` is a whole number
    of at least 1; any other value is ignored, with a warning, and 180 is used.

    Raises ``TypeError`` or ``ValueError`` for data that is not JSON.

    >>> clip({"reason": "a very long story", "attempts": 3}, 7)
    {'reason': 'a very…', 'attempts': 3}
    """
    return _clipped(plain(data, "data"), _length(length, _CLIP))


def _length(value: object, default: int, *, most: int | None = None) -> int:
    number = whole(value, 0, least=1)
    if number and (most is None or number <= most):
        return number
    if value is not None:
        limit = "of at least 1" if most is None else f"from 1 to {most}"
        warn_ignored("length", value, f"a whole number {limit}", f"the default, {default},")
    return default


def _clipped(value: Any, length: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= length else value[: _cut(value, length - 1)] + _ELLIPSIS
    if isinstance(value, dict):
        return {key: _clipped(item, length) for key, item in value.items()}
    if isinstance(value, list):
        return [_clipped(item, length) for item in value]
    return value


def _cut(text: str, most: int) -> int:
    """The last place of at most ``most`` characters at which the text may be cut."""
    place = most
    while place > 0 and _belongs_together(text, place):
        place -= 1
    return place


def _belongs_together(text: str, place: int) -> bool:
    """Whether the characters before and after ``place`` are parts of one visible character.

    The cases of Unicode Annex 29 that a reader would notice: marks, joiners and what they join,
    skin tones and tags, flags (pairs of letters), Hangul that is spelt in its letters, and
    a line feed after a carriage return.
    """
    before, after = text[place - 1], text[place]
    code = ord(after)
    if (
        after == _JOINER
        or unicodedata.category(after)[0] == "M"
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
        or after in "\u200c\uff9e\uff9f"
        or (before, after) == ("\r", "\n")
    ):
        return True
    if before == _JOINER:
        # A joiner joins emoji, and letters of scripts that use it; elsewhere it has no effect.
        return unicodedata.category(after)[0] in "SL"
    if _is_flag_letter(before) and _is_flag_letter(after):
        start = place
        while start > 0 and _is_flag_letter(text[start - 1]):
            start -= 1
        return (place - start) % 2 == 1
    return _is_hangul_together(ord(before), code)


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _is_hangul_together(before: int, after: int) -> bool:
    """Whether a vowel or a last consonant continues the syllable before it."""
    first = 0x1100 <= before < 0x1160
    vowel = 0x1160 <= before < 0x11A8
    last = 0x11A8 <= before < 0x1200
    syllable = 0xAC00 <= before <= 0xD7A3
    open_syllable = syllable and (before - 0xAC00) % 28 == 0
    if 0x1100 <= after < 0x1160:
        return first
    if 0x1160 <= after < 0x11A8:
        return first or vowel or open_syllable
    return 0x11A8 <= after < 0x1200 and (vowel or last or syllable)


def fingerprint(*parts: Any, length: int = _FINGERPRINT) -> str:
    """A short stable name for JSON data, for a key: the same parts, the same name.

    The first ``length`` hexadecimal digits of the SHA-256 of the parts as compact JSON with sorted
    keys; ``length`` is a whole number from 1 to 64, any other value is ignored,
    with a warning, and 16 is used. Pass the
    subject of a record and leave out values that vary (a score, a time): then the same thing judged
    the same way is one entry that counts its ``repeats``.

    Raises ``TypeError`` or ``ValueError`` for data that is not JSON.

    >>> fingerprint("EVOLVE", "src/app.py") == fingerprint("EVOLVE", "src/app.py")
    True
    >>> len(fingerprint({"b": 1, "a": 2}, length=8))
    8
    """
    digits = _length(length, _FINGERPRINT, most=64)
    text = json.dumps(
        plain(list(parts), "parts"), ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )
    return sha256(text.encode()).hexdigest()[:digits]


class Weights:
    """The importance of a record: by its kind, and more if it has certain words.

    ``field`` is the member of the record that holds the kind, ``weights`` the importance of each
    kind, in [0, 1]; a kind that is not in it, or whose number is out of that range, has the
    ``default`` (0.3); a number out of range warns. A record in which one of ``words`` stands,
    anywhere in its values, gets ``boost`` (0.2) more, once, however many there are. Kinds and words
    are compared without case and accents; a word of several words is found where they follow each
    other. The result is at most 1 and rounded to six places.

    >>> weigh = Weights("action", {"EVOLVE": 0.8, "SKIP": 0.2}, words={"security"})
    >>> weigh({"action": "evolve", "reason": "security fix"})
    1.0
    >>> weigh({"action": "SKIP"}), weigh({"note": "something else"})
    (0.2, 0.3)
    """

    def __init__(
        self,
        field: str,
        weights: Mapping[str, float],
        *,
        default: float = _DEFAULT,
        words: Iterable[str] = (),
        boost: float = _BOOST,
    ) -> None:
        check_str("field", field)
        if not isinstance(weights, Mapping):
            raise TypeError(f"weights must be a mapping, not {type(weights).__name__}")
        if isinstance(words, str):
            raise TypeError("words must be a collection of words, not one str")
        self._field: Final = str.__str__(field)
        self._default: Final = _weight("default", default, _DEFAULT)
        self._boost: Final = _weight("boost", boost, _BOOST)
        self._weights: Final[dict[str, float]] = {}
        for kind, weight in weights.items():
            check_str("a kind of weights", kind)
            self._weights[_spelt(kind)] = _weight("a weight of weights", weight, self._default)
        self._words: Final[set[str]] = set()
        for word in words:
            check_str("a word of words", word)
            self._words.add(_sought(word))
        self._words.discard("")

    def __call__(self, record: Any) -> float:
        """The importance of a record, JSON data: a number in [0, 1]."""
        kind = record.get(self._field) if isinstance(record, Mapping) else None
        weight = self._default
        if isinstance(kind, str):
            weight = self._weights.get(_spelt(kind), self._default)
        elif kind is not None:
            weight = self._weights.get(_spelt(dump_json(plain(kind, self._field))), self._default)
        text = "\n".join(map(_spelt, _values_in(record))) if self._words else ""
        if any(word in text for word in self._words):
            weight += self._boost
        return round(min(1.0, weight), 6)


def _weight(name: str, value: object, default: float) -> float:
    number = in_unit_interval(value)
    if number is not None:
        return number
    if value is not None:
        warn_ignored(name, value, "a number in [0, 1]", f"{default}")
    return default


def _spelt(text: str) -> str:
    """The words of a text, folded, each between two blanks."""
    return "".join(f" {word if isinstance(word, str) else ''.join(word)} " for word in tokens(text))


def _sought(word: str) -> str:
    """A word as ``_spelt`` writes it; in scripts without spaces also found inside of words."""
    spelt = _spelt(word)
    found = list(tokens(word))
    return spelt.strip() if found and not any(isinstance(one, str) for one in found) else spelt


def _values_in(record: Any) -> Iterator[str]:
    if isinstance(record, str):
        yield record
    elif isinstance(record, Mapping):
        for value in record.values():
            yield from _values_in(value)
    elif isinstance(record, (list, tuple)):
        for value in record:
            yield from _values_in(value)
