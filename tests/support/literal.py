"""Packing done literally: every text that is considered is rendered and counted whole.

The reference for what ``get_context`` must choose, and the baseline of the benchmarks; with the
random memories on which the two are compared.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sentinel_memory.context import Context, one_line, plain_line
from sentinel_memory.entry import Entry
from support.entries import new_entry


def literal_context(
    entries: Sequence[Entry],
    ranking: Sequence[int],
    budget: float,
    *,
    tokenizer: Callable[[str], float],
    format: Callable[[Entry], str],
    separator: str = "\n",
    header: str = "",
) -> Context:
    """Walk the ranking; take an entry if the whole text with it is within the budget."""
    lines = [format(entry) for entry in entries]

    def render(chosen: Sequence[int]) -> str:
        shown = [lines[index] for index in chosen]
        return separator.join([header, *shown] if header and shown else shown)

    taken: list[int] = []
    left_out: list[str] = []
    text, tokens = "", tokenizer("")
    for index in ranking:
        candidate = sorted([*taken, index])
        candidate_text = render(candidate)
        candidate_tokens = tokenizer(candidate_text)
        if candidate_tokens <= budget:
            taken, text, tokens = candidate, candidate_text, candidate_tokens
        else:
            left_out.append(entries[index].key)
    return Context(
        text, tuple(entries[index] for index in taken), tokens, len(left_out), tuple(left_out)
    )


WORDS = (
    *("the", "order", "of", "table", "nine", "is", "late", "refund", "Jakub", "Žižkov", "naïve"),
    *("wifi_password", "getUserName", "HTTPServer", "don't", "I'm", "it's", "Straße", "привет"),
    *("東京", "ピーナッツ", "アレルギー", "मेज़", "ถั่วลิสง", "можно", "👍", "👩‍👩‍👧", "e\u0301"),
    *("42", "1792310400", "3.14", "https://a.example/x?y=1", "{}", "()", "=>", "==", "--", "..."),
)
EDGES = (
    *(
        "\n",
        "\n\n",
        " ",
        "  ",
        "\t",
        "\r\n",
        " \n ",
        "   \n",
        "\n\n---\n",
        "---",
        "/",
        "//",
        "'",
        "'s",
    ),
    *(
        ".",
        ",",
        "!!",
        "?",
        ":",
        ")",
        "]",
        "(",
        "…",
        "1",
        "22",
        "333",
        "4444",
        "a",
        "S",
        "é",
        "\u0301",
    ),
    *(
        "😀",
        "👩‍👩‍👧",
        "🇨🇿",
        "東",
        "京都",
        "ら",
        "한",
        "ก",
        "न",
        "\u200d",
        "\u00a0",
        "\u2028",
        "_",
        "#",
        "`",
    ),
    *(" " * 30, "\n" * 9, "1" * 25, "-" * 40, "a" * 33, "=" * 16, "ha" * 20, "\t" * 6, "." * 12),
)
SEPARATORS = ("\n", "", " ", "\n\n---\n")
HEADERS = ("", "", "Known facts:", "# Notes\n", "1", " ")


def data_alone(entry: Entry) -> str:
    return str(entry.data)


def bullet(entry: Entry) -> str:
    return f"- {plain_line(entry)}"


FORMATS = (plain_line, plain_line, one_line, data_alone, bullet)


class Case(NamedTuple):
    """What is to be packed, and how."""

    entries: list[Entry]
    ranking: list[int]
    share: float
    options: dict[str, Any]


def random_case(random: random.Random, *, most: int = 60) -> Case:
    """A memory of entries that begin and end in anything, from none to ``most`` of them.

    Odd beginnings and ends are nowhere, rare, common or everywhere; the entries of some memories
    are nearly all of one size. ``share`` is that of the budget in what all entries count.
    """
    odd = random.choice((0.0, 0.02, 0.1, 0.5, 1.0))
    longest = random.choice((1, 4, 12, 30))
    alike = random.random() < 0.2
    entries = []
    for number in range(random.randint(0, most)):
        words = random.choices(WORDS, k=longest if alike else random.randint(0, longest))
        if alike and random.random() < 0.9:
            words = ["the"] * longest
        text = random.choice((" ", " ", "", "\n")).join(words)
        if random.random() < odd:
            text = random.choice(EDGES) + text
        if random.random() < odd:
            text = text + random.choice(EDGES)
        key = f"{random.choice(('user', 'chat', 'order', 'k', '/x', ' y', '9'))}:{number}"
        entries.append(
            new_entry(key, text, 0.5, created_ms=number, updated_ms=number, expires_ms=None)
        )
    ranking = list(range(len(entries)))
    if random.random() < 0.7:
        random.shuffle(ranking)
    else:
        ranking.reverse()
    options = {
        "format": random.choice(FORMATS),
        "separator": random.choice(SEPARATORS),
        "header": random.choice(HEADERS),
    }
    return Case(entries, ranking, random.choice((0.05, 0.3, 1.1)) * random.random(), options)


def budget_of(case: Case, tokenizer: Callable[[str], float]) -> int:
    """The share as a number of tokens of this tokenizer."""
    return int(case.share * sum(tokenizer(plain_line(entry)) + 1 for entry in case.entries))
