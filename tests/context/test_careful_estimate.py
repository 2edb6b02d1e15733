"""``careful_estimate`` against a frozen table of what two real tokenizers say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_memory import Memory
from sentinel_memory.context import careful_estimate, estimate_tokens
from support.tokenizers import real


class Row(NamedTuple):
    """A text, and how many tokens it is."""

    kind: str
    text: str
    o200k_base: int
    cl100k_base: int

    @property
    def most(self) -> int:
        return max(self.o200k_base, self.cl100k_base)


DATA = Path(__file__).parents[1] / "data" / "careful_estimate.json"
TABLE = [Row(**case) for case in json.loads(DATA.read_text("utf-8"))]
ENGLISH = [row for row in TABLE if row.kind in ("English", "English dialogue", "English notes")]
IDS = [f"{number} {row.kind}" for number, row in enumerate(TABLE)]


@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_the_estimate_is_hardly_ever_below_the_larger_count(row: Row) -> None:
    """Never below 95 % of it, for any text of the table."""
    assert careful_estimate(row.text) >= 0.95 * row.most


@pytest.mark.parametrize("row", ENGLISH)
def test_english_prose_is_not_overestimated_much(row: Row) -> None:
    """At most 1.4 times the larger count."""
    assert careful_estimate(row.text) <= 1.4 * row.most


def test_the_table_as_a_whole_is_not_overestimated_much() -> None:
    """All languages, code and mean cases together: less than 1.5 times the larger counts."""
    estimated = sum(careful_estimate(row.text) for row in TABLE)
    assert estimated < 1.5 * sum(row.most for row in TABLE)


def test_the_rough_estimate_is_often_too_low() -> None:
    """It falls below for more than half of the table, in places to a fifth."""
    below = [row for row in TABLE if estimate_tokens(row.text) < 0.95 * row.most]
    assert len(below) > len(TABLE) / 2
    assert min(estimate_tokens(row.text) / row.most for row in below) < 0.2


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_the_table_has_the_counts_of_the_real_tokenizers(name: str) -> None:
    count = real(name)
    assert [count(row.text) for row in TABLE] == [getattr(row, name) for row in TABLE]


@given(st.text())
def test_any_text_has_an_estimate(text: str) -> None:
    """A whole number; 0 only for the empty text; lone surrogates are counted too."""
    estimate = careful_estimate(text)
    assert type(estimate) is int
    assert (estimate == 0) == (text == "")
    assert careful_estimate(text + "\ud800") > estimate


@given(st.text(), st.text())
def test_a_longer_text_never_has_a_lower_estimate(one: str, two: str) -> None:
    """Joined texts are about their sum: what it says is local, as for a real tokenizer."""
    both = careful_estimate(f"{one}\n{two}")
    assert abs(both - careful_estimate(one) - careful_estimate(two)) <= 8


def test_a_context_with_the_careful_estimate_keeps_the_budget() -> None:
    """It is a tokenizer like any other, and the real count is then within the budget too."""
    memory = Memory(tokenizer=careful_estimate)
    for number, row in enumerate(TABLE):
        memory.remember(f"note:{number}", row.text)
    for budget in (50, 300, 1_200):
        context = memory.get_context(budget)
        assert context.tokens == careful_estimate(context.text) <= budget
        for name in ("o200k_base", "cl100k_base"):
            assert real(name)(context.text) <= budget
