"""Dates: the day of an entry, and the parts of a date that a question names."""

from __future__ import annotations

from datetime import date
from typing import Final, TypeAlias

from .._basics.words import tokens

__all__ = ["Day", "dates_in", "days_of"]

# Year, month, day of the month; below, the places of the three in it.
Day: TypeAlias = tuple[int, int, int]
_YEAR, _MONTH, _DAY = 0, 1, 2

_EPOCH: Final = date(1970, 1, 1).toordinal()
_LAST: Final = date.max.toordinal()
_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_BEFORE_MONTHS: Final = frozenset(
    ("by", "during", "in", "last", "next", "of", "since", "this", "until")
)
# Words that are seldom months, unless a number or a word like "in" is beside them.
_DOUBTFUL_MONTHS: Final = frozenset(("may", "march"))


def days_of(updated_ms: int) -> list[Day]:
    """The UTC day of an epoch time in milliseconds; none where the calendar ends.

    >>> days_of(86_400_000)
    [(1970, 1, 2)]
    """
    ordinal = _EPOCH + updated_ms // 86_400_000
    if not 0 < ordinal <= _LAST:
        return []
    day = date.fromordinal(ordinal)
    return [(day.year, day.month, day.day)]


def dates_in(query: str) -> dict[tuple[int, int], str]:
    """The years, months and days of the month in a text, each with the word that names it.

    Keys are the place in a ``Day`` and the number there. Where a month is named, a number is a day;
    two digits after a year are a month, two more a day. "May" and "march" are months next to a
    number or after a word like "in".

    >>> list(dates_in("On the 8th of May, or 2023-06-09?").values())
    ['may', '2023', '06', '09', '8th']
    >>> list(dates_in("May I march with 8 friends?").values())
    []
    """
    words = [word for word in tokens(query) if isinstance(word, str) and word.isascii()]
    found: dict[tuple[int, int], str] = {}
    numbers: list[tuple[int, str]] = []
    awaited = None  # the part of a date that two digits would be here
    for place, word in enumerate(words):
        number = word.removesuffix("st").removesuffix("nd").removesuffix("rd").removesuffix("th")
        if word in _MONTHS:
            if word not in _DOUBTFUL_MONTHS or _is_month(words, place):
                found[_MONTH, _MONTHS.index(word) + 1] = word
        elif len(word) == 4 and word.isdigit() and "1900" <= word < "2200":
            found[_YEAR, int(word)] = word
            awaited = _MONTH
            continue
        elif awaited is not None and len(word) == 2 and word.isdigit():
            found[awaited, int(word)] = word
            awaited = _DAY if awaited == _MONTH else None
            continue
        elif number.isdigit() and len(number) <= 2:
            numbers.append((int(number), word))
        awaited = None
    if any(part == _MONTH for part, _ in found):
        found.update(((_DAY, number), word) for number, word in numbers)
    return found


def _is_month(words: list[str], place: int) -> bool:
    """Whether a number is beside the word at ``place``, or a word like "in" before it."""
    around = words[max(0, place - 1) : place] + words[place + 1 : place + 2]
    before = words[place - 1] if place else ""
    return any(near[0].isdigit() for near in around) or before in _BEFORE_MONTHS
