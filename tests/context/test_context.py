"""The budget is exact on the text returned, and the choice is that of the literal procedure."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from sentinel_memory import Context, Memory, estimate_tokens, one_line
from sentinel_memory.context.pack import Counts, pack
from support.clocks import FakeClock
from support.literal import budget_of, literal_context, random_case
from support.tokenizers import TOKENIZERS, real

ODD: dict[str, Any] = {
    "compressed length": lambda text: len(zlib.compress(text.encode())),
    "distinct words": lambda text: len(set(text.split())),
    "anything": lambda text: zlib.crc32(text.encode()) % 97,
    "more for less": lambda text: max(0, 100 - len(text)),
    "always zero": lambda text: 0,
    "a float": lambda text: len(text) / 3,
}


def packed(case: Any, budget: float, tokenizer: Any, counts: Counts | None = None) -> Context:
    return pack(
        case.entries,
        case.ranking,
        budget,
        tokenizer=tokenizer,
        counts=counts,
        **case.options,
    )


@pytest.mark.parametrize("name", [*TOKENIZERS, "estimate_tokens, recognised"])
def test_the_choice_equals_the_literal_choice(name: str) -> None:
    """150 random memories for each local tokenizer, on the first turn and on the second."""
    tokenizer = TOKENIZERS.get(name, estimate_tokens)
    draw = random.Random(f"equality {name}")
    for number in range(150):
        case = random_case(draw, most=30)
        budget = budget_of(case, tokenizer)
        expected = literal_context(
            case.entries, case.ranking, budget, tokenizer=tokenizer, **case.options
        )
        counts = Counts()
        assert packed(case, budget, tokenizer, counts) == expected, number
        assert packed(case, budget, tokenizer, counts) == expected, number


@pytest.mark.parametrize("name", [*TOKENIZERS, *ODD])
def test_the_promises_hold_for_any_tokenizer(name: str) -> None:
    """Counted as returned, within the budget, nothing lost, oldest first."""
    tokenizer = {**TOKENIZERS, **ODD}[name]
    draw = random.Random(f"promises {name}")
    for _ in range(60):
        case = random_case(draw, most=20)
        for budget in (0, 1, 7, budget_of(case, tokenizer)):
            context = packed(case, budget, tokenizer)
            assert context.tokens == tokenizer(context.text)
            assert context.tokens <= budget or context.text == ""
            assert context.omitted == len(context.left_out)
            assert len(context.entries) + context.omitted == len(case.entries)
            ranked = [case.entries[index].key for index in case.ranking]
            shown = {entry.key for entry in context.entries}
            assert list(context.left_out) == [key for key in ranked if key not in shown]
            assert list(context.entries) == [e for e in case.entries if e.key in shown]
            again = packed(case, budget, tokenizer)
            assert again == context


def test_the_published_order_fits_with_the_language_by_a_real_tokenizer(clock: FakeClock) -> None:
    """o200k_base: name, language and order, 30 tokens, 1 omitted."""
    count = real("o200k_base")
    order = "refund requested for order 42, waiting for the warehouse"
    memory = Memory(clock=clock, tokenizer=count)
    memory.remember("user:name", "Jakub", importance=0.9)
    memory.remember("user:language", "prefers answers in Czech", importance=0.8)
    memory.remember("chat:7", "talked about the weather in Prague for a while", importance=0.1)
    memory.remember("order:42", order, importance=0.7)
    context = memory.get_context(30, query="refund status")
    assert [e.key for e in context.entries] == ["user:name", "user:language", "order:42"]
    assert (context.tokens, context.omitted, context.left_out) == (30, 1, ("chat:7",))
    assert (estimate_tokens(order), count(order)) == (14, 11)


def test_special_tokens_in_a_memory_are_text(clock: FakeClock) -> None:
    memory = Memory(clock=clock, tokenizer=real("o200k_base"))
    memory.remember("joke", "to <|endoftext|> jokes")
    assert memory.get_context(50).text == "joke: to <|endoftext|> jokes"


def filled(clock: FakeClock, count: int) -> Memory:
    draw = random.Random(5)
    memory = Memory(clock=clock, limit=count)
    for number in range(count):
        clock.tick(1)
        words = " ".join(draw.choices(["river", "table", "nine", "Prague", "order", "wine"], k=9))
        memory.remember(f"chat:{number}", words, importance=draw.random())
    return memory


@pytest.mark.parametrize("budget", [500, 4_000])
def test_few_characters_are_given_to_the_tokenizer(budget: int, clock: FakeClock) -> None:
    """First turn: 40 times the result and 6 times all lines; second turn: 12 times the result."""
    memory = filled(clock, 1_000)
    given: list[int] = []

    def tokenizer(text: str) -> int:
        given.append(len(text))
        return len(text.split())

    lines = sum(len(f"{entry.key}: {entry.data}") for entry in memory)
    first = memory.get_context(budget, tokenizer=tokenizer)
    assert sum(given) <= 40 * len(first.text) + 6 * lines
    given.clear()
    second = memory.get_context(budget, tokenizer=tokenizer)
    assert second == first
    assert sum(given) <= 12 * len(second.text)


def test_if_everything_fits_the_text_is_counted_once_and_nothing_is_ranked(
    clock: FakeClock,
) -> None:
    memory = filled(clock, 300)
    given: list[str] = []

    def tokenizer(text: str) -> int:
        given.append(text)
        return len(text)

    context = memory.get_context(10**6, tokenizer=tokenizer)
    assert given == [context.text]
    assert context.omitted == 0

    def rank() -> Iterator[int]:
        raise AssertionError("ranked")
        yield 0

    entries = list(memory)
    options: dict[str, Any] = {"format": one_line, "separator": "\n", "header": ""}
    assert pack(entries, rank(), 10**6, tokenizer=len, **options).omitted == 0
    assert pack(entries, rank(), 10**6, tokenizer=estimate_tokens, **options).omitted == 0


def test_a_format_is_called_once_per_entry_and_call(clock: FakeClock) -> None:
    """And never kept: it may depend on the time."""
    memory = filled(clock, 50)
    seen: list[str] = []

    def format(entry: Any) -> str:
        seen.append(entry.key)
        return f"{entry.key} {len(seen)}"

    for _ in range(2):
        seen.clear()
        memory.get_context(20, format=format)
        assert sorted(seen) == sorted(entry.key for entry in memory)


def test_the_header_is_counted_and_left_out_without_lines(clock: FakeClock) -> None:
    memory = Memory(clock=clock, tokenizer=len)
    memory.remember("a", "1")
    assert memory.get_context(6, header="H", separator="\n").text == "H\na: 1"
    assert memory.get_context(5, header="H").text == ""
    assert memory.get_context(4).text == "a: 1"
    assert Memory().get_context(0, header="H").text == ""


@pytest.mark.parametrize(
    "line_break", ["\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
)
def test_one_line_keeps_a_memory_on_one_line(line_break: str, clock: FakeClock) -> None:
    """In key and data, as the escape; a backslash stays a backslash."""
    memory = Memory(clock=clock)
    memory.remember(f"a{line_break}b", f"c{line_break}d\\n")
    memory.remember("nested", {"x": [f"{line_break}"]})
    text = memory.get_context(99, format=one_line).text
    assert len(text.splitlines()) == 2
    assert line_break == "\n" or line_break not in text
    assert "d\\n" in text


@pytest.mark.parametrize("budget", [None, "30", True, [], 3j, b"5"])
def test_a_budget_that_is_not_a_number_is_a_type_error(budget: Any) -> None:
    with pytest.raises(TypeError, match="token_budget must be a number"):
        Memory().get_context(budget)


@pytest.mark.parametrize("budget", [-1, -0.5, float("nan"), float("inf"), float("-inf")])
def test_a_budget_out_of_range_is_a_value_error(budget: Any) -> None:
    with pytest.raises(ValueError, match="token_budget must"):
        Memory().get_context(budget)


@pytest.mark.parametrize("budget", [0, 2.5, 10**400])
def test_any_other_number_is_a_budget(budget: Any, clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.remember("a", "1234567")
    assert memory.get_context(budget).tokens <= budget


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([1, 2, 3], "a list of 3 items"),
        (None, "returned None"),
        (True, "returned True"),
        (float("nan"), "returned nan"),
        (float("inf"), "returned inf"),
        (-1, "returned -1"),
        (10**400, "a number of hundreds of digits"),
        (Decimal(3), "an object of type Decimal"),
        ("5", "a str of 1 characters"),
    ],
)
def test_the_error_for_a_wrong_count_shows_the_value_and_the_fix(
    answer: Any, said: str, clock: FakeClock
) -> None:
    memory = Memory(clock=clock)
    memory.remember("a", 1)
    with pytest.raises(TypeError, match=said) as caught:
        memory.get_context(5, tokenizer=lambda text: answer)
    assert "len(encode(text))" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": lambda entry: None}, "format must return a str, not NoneType"),
        ({"format": "plain"}, "format must be callable"),
        ({"separator": None}, "separator must be a str"),
        ({"header": 5}, "header must be a str"),
        ({"tokenizer": 5}, "tokenizer must be callable"),
    ],
)
def test_a_wrong_option_is_named(options: Any, message: str, clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.remember("a", 1)
    with pytest.raises(TypeError, match=message):
        memory.get_context(5, **options)


@pytest.mark.parametrize("place", ["tokenizer", "format"])
def test_exceptions_of_callbacks_reach_the_caller(place: str, clock: FakeClock) -> None:
    memory = Memory(clock=clock)
    memory.remember("a", 1)
    calls: list[int] = []

    def failing(_: Any) -> Any:
        calls.append(1)
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        memory.get_context(5, **{place: failing})  # type: ignore[arg-type]
    assert memory.get_context(5).text == "a: 1"


class Lying(str):
    """A text that says of itself whatever would bring a context over its budget."""

    def __len__(self) -> int:
        return 0

    def __str__(self) -> str:
        return "s" * 500

    def __add__(self, other: str) -> str:
        return "a" * 500

    def __radd__(self, other: str) -> str:
        return "r" * 500

    def join(self, texts: Any) -> str:
        return "j" * 500

    def isascii(self) -> bool:
        return True


@pytest.mark.parametrize("name", ["the estimate", *ODD])
def test_separator_header_and_lines_become_plain_str_whatever_their_class_overrides(
    name: str, clock: FakeClock
) -> None:
    """The text is that of plain strings, of the plain type, and is itself counted."""
    count = estimate_tokens if name == "the estimate" else ODD[name]
    memory = Memory(clock=clock)
    for number in range(8):
        memory.remember(f"k{number}", "word " * number)
    for budget in (0, 3, 10, 25, 40, 80, 1_000):
        context = memory.get_context(
            budget,
            tokenizer=count,
            separator=Lying("<br>"),
            header=Lying("Known:"),
            format=lambda entry: Lying(entry.line),
        )
        plain = memory.get_context(budget, tokenizer=count, separator="<br>", header="Known:")
        assert type(context.text) is str
        assert context.text == plain.text
        assert context.left_out == plain.left_out
        assert context.tokens == count(context.text)
        assert context.tokens <= budget or not context.text
