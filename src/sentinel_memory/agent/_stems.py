"""Stems, which the forms of a word share: endings removed by rules of thumb, many languages."""

from __future__ import annotations

from typing import Final

__all__ = ["stem_of"]

_CUT: Final = 6  # letters of a stem; 5 mixes up more words, 7 loses more endings

_ENDINGS: Final = (
    *("ovi", "ami", "emi", "ech", "ach", "ych", "ich", "ego", "emu", "eho", "ou", "em", "um", "im"),
    *("ym", "mi", "ho", "en", "er", "es", "as", "os", "s", "n"),
    *("ами", "ями", "ого", "его", "ому", "ему", "ах", "ях", "ой", "ей", "ом", "ем", "ов", "ев"),
    *("ам", "ям", "ыми", "ими", "ую", "юю", "ая", "яя", "ые", "ие", "ый", "ий", "ых", "их"),
)
_SOUTH_ASIAN_ENDINGS: Final = "ािीुूेैोौंँःयए"
_LAST: Final = "aeiouyаеёиоуыэюяьйαεηιουωςν"


def stem_of(word: str, *, strange: bool) -> str:
    """The stem of a folded word, which its forms share."""
    if not word.isalpha() and word < "\u0900":
        return word
    if word < "\u0250":
        if not strange:
            return _english_stem(word)
        for spelt, plain in (("ae", "a"), ("oe", "o"), ("ue", "u")):
            word = word.replace(spelt, plain)
    elif "\u0590" <= word[0] <= "\u05ff" and len(word) >= 4:
        return word[1:] if word[0] in "הבלומשכ" else word
    elif "\u0600" <= word[0] <= "\u06ff":
        if len(word) >= 5 and word[-1] in "يكه":  # my, your, his
            word = word[:-1]
        for prefix in ("وال", "بال", "فال", "كال", "لل", "ال"):
            if word.startswith(prefix) and len(word) >= len(prefix) + 2:
                return word[len(prefix) :][:_CUT]
        return word[:_CUT]
    elif "\u0900" <= word[0] <= "\u0dff":
        shorter = word.rstrip(_SOUTH_ASIAN_ENDINGS)
        return shorter if len(shorter) >= 2 else word
    elif word >= "\u0530":
        return word
    for ending in _ENDINGS if word.endswith(_ENDINGS) else ():
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    shorter = word.rstrip(_LAST)
    return (shorter if len(shorter) >= 3 else word)[:_CUT]


def _english_stem(word: str) -> str:
    for ending in ("ies", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] in "eyi":
        word = word[:-1]
    return word[:_CUT]
