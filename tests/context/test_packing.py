"""How the packer comes to the literal choice: with little work, and with nothing left behind."""

from __future__ import annotations

import gc
import math
import random
import threading
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_memory import Context, Entry
from sentinel_memory.context.pack import Counts, pack, plain_line
from support.entries import new_entry
from support.literal import FORMATS, budget_of, data_alone, literal_context, random_case
from support.tokenizers import real

Count = Callable[[str], Any]
PLAIN: dict[str, Any] = {"format": plain_line, "separator": "\n", "header": ""}


def entries_of(texts: list[str]) -> list[Entry]:
    return [
        new_entry(f"chat:{i:04}", text, 0.5, created_ms=i, updated_ms=i, expires_ms=None)
        for i, text in enumerate(texts)
    ]


def talk(sizes: Callable[[random.Random], int], count: int = 1_000) -> list[str]:
    draw = random.Random(3)
    words = [
        "the",
        "weather",
        "in",
        "Prague",
        "was",
        "fine,",
        "so",
        "we",
        "walked",
        "to",
        "the",
        "river",
        "and",
        "ate",
        "cake",
    ]
    return [" ".join(draw.choices(words, k=sizes(draw))) for _ in range(count)]


class Watched:
    """A tokenizer that remembers what it was given."""

    def __init__(self, count: Count) -> None:
        self.count = count
        self.given: list[str] = []

    def __call__(self, text: str) -> Any:
        self.given.append(text)
        return self.count(text)

    def characters(self) -> int:
        """How many since the last time."""
        total = sum(map(len, self.given))
        self.given.clear()
        return total


SIZES: dict[str, Callable[[random.Random], int]] = {
    "from 4 to 13 words": lambda draw: draw.randint(4, 13),
    "all of one size": lambda draw: 9,
    "from 1 to 40 words": lambda draw: draw.choice((1, 2, 5, 10, 40)),
}


@pytest.mark.parametrize("budget", [500, 1_000, 2_000, 4_000, 8_000, 12_000])
@pytest.mark.parametrize("sizes", SIZES)
def test_a_real_tokenizer_is_given_little(sizes: str, budget: int) -> None:
    """First turn: 40 times the result and 6 times all lines; second turn: 12 times the result."""
    entries = entries_of(talk(SIZES[sizes]))
    ranking = random.Random(budget).sample(range(1_000), 1_000)
    tokenizer, counts = Watched(real("o200k_base")), Counts()
    rendered = sum(len(plain_line(entry)) for entry in entries)

    first = pack(entries, ranking, budget, tokenizer=tokenizer, counts=counts, **PLAIN)
    if first.omitted:
        assert tokenizer.characters() <= 40 * len(first.text) + 6 * rendered
        second = pack(entries, ranking, budget, tokenizer=tokenizer, counts=counts, **PLAIN)
        assert second == first
        assert len(tokenizer.given) <= 20
        assert tokenizer.characters() <= 12 * len(second.text)
    else:
        assert tokenizer.characters() == len(first.text)


ODD_LINES: dict[str, Callable[[str, int], str]] = {
    "all begin with a slash": lambda text, number: f"/notes/{number}: {text}",
    "all begin with a slash and are of one size": lambda text, number: f"/n/{number:03}: the river",
    "some begin with a slash": lambda text, number: "/" * (number % 3 == 0) + text,
    "all are indented": lambda text, number: f"    {text}",
    "some end in line breaks": lambda text, number: text + "\n" * (number % 4),
}


@pytest.mark.parametrize("separator", ["\n", ""])
@pytest.mark.parametrize("budget", [500, 2_000, 4_000])
@pytest.mark.parametrize("kind", ODD_LINES)
def test_lines_that_merge_with_the_line_before_cost_no_more(
    kind: str, budget: int, separator: str
) -> None:
    """The same limits where the cost of a line depends on the line before it."""
    texts = talk(SIZES["from 4 to 13 words"])
    entries = entries_of([ODD_LINES[kind](text, number) for number, text in enumerate(texts)])
    ranking = random.Random(budget).sample(range(1_000), 1_000)
    tokenizer, counts = Watched(real("o200k_base")), Counts()
    options: dict[str, Any] = {"format": data_alone, "separator": separator, "header": ""}
    rendered = sum(len(entry.data) for entry in entries)
    first = pack(entries, ranking, budget, tokenizer=tokenizer, counts=counts, **options)
    assert first.omitted
    assert tokenizer.characters() <= 40 * len(first.text) + 6 * rendered
    assert pack(entries, ranking, budget, tokenizer=tokenizer, counts=counts, **options) == first
    assert tokenizer.characters() <= 12 * len(first.text)


@pytest.mark.parametrize("separator", ["\n", " ", " | ", "\n\n---\n"])
def test_other_separators_cost_no_more(separator: str) -> None:
    entries = entries_of(talk(SIZES["from 4 to 13 words"], 400))
    ranking = random.Random(1).sample(range(400), 400)
    tokenizer, counts = Watched(real("cl100k_base")), Counts()
    options: dict[str, Any] = {**PLAIN, "separator": separator, "header": "Known:"}
    for _ in range(2):
        tokenizer.given.clear()
        context = pack(entries, ranking, 1_500, tokenizer=tokenizer, counts=counts, **options)
    assert tokenizer.characters() <= 12 * len(context.text)


def test_on_the_second_turn_only_the_new_line_is_counted_alone() -> None:
    """Besides a few whole texts, and a few places in them."""
    texts = talk(SIZES["from 4 to 13 words"])
    tokenizer, counts = Watched(real("o200k_base")), Counts()
    for count in (999, 1_000):
        tokenizer.given.clear()
        entries = entries_of(texts[:count])
        ranking = list(reversed(range(count)))
        pack(entries, ranking, 4_000, tokenizer=tokenizer, counts=counts, **PLAIN)
    lines = {f"\n{plain_line(entry)}\n" for entry in entries}
    assert [text for text in tokenizer.given if text in lines] == [f"\nchat:0999: {texts[-1]}\n"]
    assert len([text for text in tokenizer.given if len(text) < 300]) <= 8


@pytest.mark.parametrize("separator", ["", "\n"])
def test_lines_that_merge_with_the_line_before_give_the_literal_choice(separator: str) -> None:
    """Line breaks, spaces and digits at both ends, in a memory of 150 entries."""
    draw = random.Random(8)
    edges = ("\n", "\n\n", "  ", "111", "22", "'s", "/", "a", "!", "", "\t", "😀", "東")
    texts = [
        draw.choice(edges) + " ".join(draw.choices(("one", "two", "3"), k=3)) + draw.choice(edges)
        for _ in range(150)
    ]
    entries = entries_of(texts)
    options: dict[str, Any] = {"format": data_alone, "separator": separator, "header": ""}
    count = real("o200k_base")
    for budget in range(0, 700, 37):
        ranking = draw.sample(range(150), 150)
        expected = literal_context(entries, ranking, budget, tokenizer=count, **options)
        assert pack(entries, ranking, budget, tokenizer=count, **options) == expected


NOT_LOCAL: dict[str, Count] = {
    "compressed length": lambda text: len(zlib.compress(text.encode())),
    "distinct words": lambda text: len(set(text.split())),
    "at most 300": lambda text: min(300, len(text.split())),
    "the square": lambda text: len(text) ** 2,
}


@pytest.mark.parametrize("name", NOT_LOCAL)
def test_a_tokenizer_that_is_not_local_gets_the_literal_procedure(name: str) -> None:
    entries = entries_of(talk(SIZES["from 4 to 13 words"], 80))
    ranking = random.Random(2).sample(range(80), 80)
    count = NOT_LOCAL[name]
    text = "\n".join(map(plain_line, entries))
    for share in (0.2, 0.5, 0.9, 1):
        budget = int(count(text) * share)
        expected = literal_context(entries, ranking, budget, tokenizer=count, format=plain_line)
        assert pack(entries, ranking, budget, tokenizer=count, **PLAIN) == expected


ROUNDED: dict[str, Count] = {
    "one and a tenth": lambda text: -(-11 * real("o200k_base")(text) // 10),
    "half": lambda text: (real("o200k_base")(text) + 1) // 2,
    "words and a third": lambda text: int(len(text.split()) * 4 / 3),
    "a fraction": lambda text: len(text) / 3.7,
    "pairs of bytes, and 40": lambda text: len(text.encode()) // 2 + 40,
    "a quarter, to the nearest": lambda text: round(len(text) / 4),
    "a quarter, at least 1": lambda text: max(1, len(text) // 4),
    "rounded up twice": lambda text: math.ceil(math.ceil(len(text) / 4) * 1.2),
}
COARSE: dict[str, Count] = {
    "multiples of 8": lambda text: -(-real("o200k_base")(text) // 8) * 8,
    "tens of characters, to the nearest": lambda text: round(len(text), -1),
}


@pytest.mark.parametrize("name", [*ROUNDED, *COARSE])
def test_rounded_counts_give_the_literal_choice(name: str) -> None:
    draw = random.Random(name)
    count = {**ROUNDED, **COARSE}[name]
    for _ in range(60):
        case = random_case(draw, most=40)
        budget = budget_of(case, count)
        packed = pack(case.entries, case.ranking, budget, tokenizer=count, **case.options)
        assert packed == literal_context(
            case.entries, case.ranking, budget, tokenizer=count, **case.options
        )


@pytest.mark.parametrize("name", [*ROUNDED, "a few odd lines"])
def test_rounded_counts_and_odd_lines_cost_little_more(name: str) -> None:
    """Errors are allowed for, they do not lead to the literal procedure."""
    count = ROUNDED.get(name, real("o200k_base"))
    texts = talk(SIZES["from 4 to 13 words"], 400)
    if name not in ROUNDED:
        texts[::25] = [f"\n {text}\n\n" for text in texts[::25]]
    entries = entries_of(texts)
    ranking = random.Random(7).sample(range(400), 400)
    options: dict[str, Any] = {**PLAIN, "format": data_alone}
    budget = count("\n".join(texts)) // 4
    tokenizer, counts = Watched(count), Counts()
    for _ in range(2):
        tokenizer.given.clear()
        context = pack(entries, ranking, budget, tokenizer=tokenizer, counts=counts, **options)
    assert context == literal_context(entries, ranking, budget, tokenizer=count, format=data_alone)
    assert tokenizer.characters() <= 16 * len(context.text)


PIECES = st.sampled_from(
    (
        "\n",
        " ",
        "",
        ".",
        "1",
        "12",
        "a",
        "the ",
        "A",
        "'s",
        "/",
        "-",
        "é",
        "\u0301",
        "東",
        "😀",
        "\u200d",
    )
)


@settings(max_examples=150)
@given(
    texts=st.lists(st.lists(PIECES, max_size=6).map("".join), max_size=12),
    separator=st.sampled_from(("\n", "", " ", "\n\n---\n", ", ")),
    header=st.sampled_from(("", "#", "Known:\n")),
    format=st.sampled_from(FORMATS),
    budget=st.integers(0, 60),
    order=st.randoms(use_true_random=False),
)
def test_random_cases_give_the_literal_choice(
    texts: list[str],
    separator: str,
    header: str,
    format: Any,
    budget: int,
    order: random.Random,
) -> None:
    entries = entries_of(texts)
    ranking = list(range(len(entries)))
    order.shuffle(ranking)
    options: dict[str, Any] = {"format": format, "separator": separator, "header": header}
    for count in (real("o200k_base"), len, lambda text: len(text.split())):
        whole = literal_context(entries, ranking, 10**9, tokenizer=count, **options)
        packed = pack(entries, ranking, budget, tokenizer=count, **options)
        if whole.tokens <= budget:  # the one liberty: if everything fits, nothing is tried
            assert packed == whole
        else:
            assert packed == literal_context(entries, ranking, budget, tokenizer=count, **options)


@settings(max_examples=200)
@given(
    texts=st.lists(st.text(max_size=20), max_size=20),
    budget=st.integers(0, 200),
    factors=st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(1, 97)),
    warm=st.booleans(),
)
def test_no_counting_function_brings_a_text_over_the_budget(
    texts: list[str], budget: int, factors: tuple[int, int, int], warm: bool
) -> None:
    """Random in the text, more for longer ones, or a mixture; also with costs kept from before."""
    entries = entries_of(texts)
    ranking = list(reversed(range(len(entries))))
    per_character, noise, modulus = factors

    def count(text: str) -> int:
        return len(text) // per_character + noise * (zlib.crc32(text.encode()) % modulus)

    counts = Counts()
    if warm:
        pack(entries, ranking, budget // 2, tokenizer=count, counts=counts, **PLAIN)
    context = pack(entries, ranking, budget, tokenizer=count, counts=counts, **PLAIN)
    assert context.tokens == count(context.text)
    assert context.tokens <= budget or not context.text
    assert len(context.entries) + len(context.left_out) == len(entries)


def test_a_rounded_count_may_tie_on_both_sides() -> None:
    """Half to even goes up here and down there: off by two, not by one."""
    entries = entries_of(
        ["we refund in so we", "in.", "river Prague weather to walked fine", "der."]
    )
    options: dict[str, Any] = {"format": data_alone, "separator": "\n", "header": ""}
    count = ROUNDED["a quarter, to the nearest"]
    packed = pack(entries, [2, 0, 3, 1], 14, tokenizer=count, **options)
    assert [entry.key for entry in packed.entries] == ["chat:0000", "chat:0001", "chat:0002"]


def test_a_fixed_cost_that_an_empty_text_does_not_have_is_found() -> None:
    """What an empty text counts says nothing of the others."""
    entries = entries_of(["ok", "6 p"])
    options: dict[str, Any] = {"format": data_alone, "separator": "", "header": " "}
    count = real("o200k_base")
    packed = pack(
        entries, [1, 0], 5, tokenizer=lambda text: count(text) + 4 * bool(text), **options
    )
    assert packed.text == " ok"


@pytest.mark.parametrize("budget", [100, 205, 230])
def test_a_header_near_the_budget_is_not_counted_with_every_line(budget: int) -> None:
    entries = entries_of(talk(SIZES["all of one size"], 300))
    count = real("o200k_base")
    header = "what is known of the guest so far: " * 25  # about 200 tokens
    options: dict[str, Any] = {"format": data_alone, "separator": "\n", "header": header}
    tokenizer = Watched(count)
    ranking = list(range(300))
    packed = pack(entries, ranking, budget, tokenizer=tokenizer, **options)
    assert packed == literal_context(entries, ranking, budget, tokenizer=count, **options)
    rendered = len(header) + sum(len(entry.data) for entry in entries)
    assert tokenizer.characters() <= 40 * len(packed.text) + 6 * rendered


def test_a_run_of_one_character_is_not_cut_in_the_middle() -> None:
    """Its count is not the sum of those of its parts."""
    texts = ["000-->", "the weather was fine", "", "." * 66, " \u00a0"]
    options: dict[str, Any] = {"format": data_alone, "separator": "\n", "header": ""}
    entries, ranking = entries_of(texts), [0, 1, 3, 2, 4]
    for name in ("o200k_base", "cl100k_base"):
        for budget in range(15):
            packed = pack(entries, ranking, budget, tokenizer=real(name), **options)
            expected = literal_context(entries, ranking, budget, tokenizer=real(name), **options)
            assert packed.omitted == 0 or packed == expected


def test_no_lock_is_held_while_a_tokenizer_runs() -> None:
    """Another memory, in another thread, is packed meanwhile with another tokenizer."""
    entries = entries_of(talk(SIZES["from 4 to 13 words"], 30))
    waited = 0

    def patient(text: str) -> int:
        nonlocal waited
        thread = threading.Thread(
            target=lambda: pack(entries, range(30), 50, tokenizer=len, **PLAIN), daemon=True
        )
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
        waited += 1
        return len(text)

    pack(entries, range(30), 100, tokenizer=patient, **PLAIN)
    assert waited > 5


def test_with_a_random_tokenizer_the_returned_text_was_counted_within_the_budget() -> None:
    """What is returned was counted as it is, and that count was within the budget."""
    entries = entries_of(talk(SIZES["from 4 to 13 words"], 40))
    for seed in range(200):
        draw = random.Random(seed)
        said: dict[str, set[int]] = {}

        def count(text: str) -> int:
            tokens = draw.randint(0, 400)  # noqa: B023
            said.setdefault(text, set()).add(tokens)  # noqa: B023
            return tokens

        context = pack(entries, range(40), 200, tokenizer=count, **PLAIN)
        assert context.tokens in said[context.text]
        assert context.tokens <= 200 or not context.text


def test_the_choice_does_not_depend_on_earlier_calls() -> None:
    """Budgets, separators, formats and tokenizers in any order, with what they left behind."""
    draw = random.Random(4)
    case = random_case(draw, most=60)
    tokenizers: list[Count] = [real("o200k_base"), len, lambda text: len(text) // 3]
    counts = Counts()
    for _ in range(120):
        options = random_case(draw, most=0).options
        budget, tokenizer = draw.randint(0, 900), draw.choice(tokenizers)
        packed = pack(
            case.entries, case.ranking, budget, tokenizer=tokenizer, counts=counts, **options
        )
        fresh = pack(case.entries, case.ranking, budget, tokenizer=tokenizer, **options)
        assert packed == fresh


# What is kept between calls


def used(counts: Counts, tokenizer: Count, texts: list[str], budget: int = 30) -> Context:
    entries = entries_of(texts)
    return pack(
        entries,
        range(len(entries)),
        budget,
        tokenizer=tokenizer,
        counts=counts,
        **PLAIN,
    )


def test_counts_are_kept_between_calls_and_no_text() -> None:
    """Not even of the entries that are still there."""
    counts = Counts()
    used(counts, len, ["zanzibarquartz and so on", "short"])
    kept = counts.get(len)
    assert kept
    assert {type(thing) for pair in kept.items() for thing in pair} == {int}
    assert not [thing for thing in gc.get_referents(counts.__dict__) if isinstance(thing, str)]


def test_counts_of_lines_no_longer_packed_are_dropped() -> None:
    """However many different lines come by, what is kept is bounded by those of one call."""
    counts = Counts()
    sizes = []
    for number in range(50):
        used(counts, len, [f"note {number} {i}" for i in range(20)])
        sizes.append(len(counts.get(len)))
    assert max(sizes) <= 20 * 3 + 120
    counts.clear()
    assert counts.get(len) == {}


def test_a_tokenizer_is_known_by_itself_and_a_method_by_its_object() -> None:
    class Model:
        def count(self, text: str) -> int:
            return len(text)

        __eq__ = None  # type: ignore[assignment]
        __hash__ = None  # type: ignore[assignment]

    one, other = Model(), Model()
    counts = Counts()
    used(counts, one.count, ["a", "b", "c" * 40])
    assert counts.get(one.count)
    assert counts.get(other.count) == {}
    assert counts.get(len) == {}


def test_a_tokenizer_made_anew_for_each_call_counts_right_and_accumulates_nothing() -> None:
    """It finds nothing of its predecessor, also if it has its address."""
    counts = Counts()
    texts = talk(SIZES["from 4 to 13 words"], 20)
    sizes = set()
    for factor in range(1, 30):
        tokenizer = eval(f"lambda text: {factor} * len(text)")
        context = used(counts, tokenizer, texts, 300 * factor)
        assert context.tokens == factor * len(context.text)
        assert len(context.entries) == len(used(Counts(), len, texts, 300).entries)
        sizes.add(len(counts.get(tokenizer)))
        del tokenizer
        gc.collect()
    assert max(sizes) <= 20 * 3 + 120


def test_a_failed_call_leaves_the_kept_counts() -> None:
    counts = Counts()
    used(counts, len, ["a" * 20, "b" * 20])
    before = counts.get(len)

    def failing(text: str) -> int:
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        used(counts, failing, ["a" * 20, "b" * 20])
    assert counts.get(len) is before
