"""Names: found in texts, learnt from a whole memory, looked up in questions."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import Any

import pytest

from sentinel_memory import IgnoredValueWarning, Memory, WordIndex
from sentinel_memory.agent import NameIndex, names_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Ondra repaired the boat with Petra Malá", ["Ondra", "Petra Malá"]),
        ("Has Ondra called?", ["Ondra"]),
        ("We picked a blue logo", []),
        ("Any news? Please wait. Today is fine.", []),
        ("Visit New York. Then Boston.", ["New York", "Boston"]),
        ("He flew to Los Angeles", ["Los Angeles"]),
        ("Ondra's car", ["Ondra"]),
        ("Ondra’s car and the dogs' bowl", ["Ondra"]),
        ("met Willem van der Berg and Ludwig van Beethoven",
         ["Willem van der Berg", "Ludwig van Beethoven"]),
        ("iPhone and eBay and macOS", ["iPhone", "eBay", "macOS"]),
        ("THIS IS A WHOLE SENTENCE IN CAPITALS", []),
        ("Every Word Capitalised Here Now", []),
        ("we met Dr. J. R. Smith there", ["Dr J R Smith"]),
        ("Marie e\u0301tait a\u0300 Re\u0301my", ["Marie", "Rémy"]),
        ("Ich habe den Hund von Petra im Garten gesehen und die Katze", ["Petra"]),
        ("Я видел Ольгу в Москве.", ["Ольгу", "Москве"]),
        ("田中さんは犬が好きです", ["田中"]),
        ("マリアはサッカーが好きです", ["マリア"]),
        ("민수 씨는 서울에 살아요", ["민수"]),
        ("《红楼梦》很好看", ["红楼梦"]),
        ("thanks to @ondra and a@b.example", ["ondra"]),
        ("Wow, Thanks! I'm on it. On Monday I met Ondra; ondra met ONDRA", ["Ondra"]),
        ("", []),
    ],
)  # fmt: skip
def test_names_are_capitals_that_nothing_else_explains(text: str, names: list[str]) -> None:
    assert names_in(text) == names


def test_only_text_is_read() -> None:
    wrong: Any = b"Ondra"
    with pytest.raises(TypeError, match="text"):
        names_in(wrong)


def filled(texts: Iterable[str], **options: Any) -> tuple[Memory, NameIndex]:
    index = NameIndex(**options)
    memory = Memory(index=index)
    for number, text in enumerate(texts):
        memory.remember(f"note:{number}", text)
    return memory, index


def test_the_memory_learns_which_words_are_names() -> None:
    _, index = filled(
        [
            "Thanks, said Ondra.",
            "Ondra has a boat.",
            "Wow, the staging is down.",
            "Look, a Staging again.",
            "our staging is slow",
            "Petra Malá wrote. Nice.",
            "Petra Malá and Ondra sail.",
        ]
    )
    assert index.names() == [("Ondra", 3), ("Petra Malá", 2)]
    assert index.names(1) == [("Ondra", 3)]
    assert index.names(0) == []
    with pytest.warns(IgnoredValueWarning, match="limit"):
        assert len(index.names(-1)) == 2


def test_a_name_has_its_entries_newest_first_and_the_names_beside_it() -> None:
    memory, index = filled(
        ["see Ondra and Petra", "tell Ondra", "so Petra met Ondra near the Straße Berg"]
    )
    card = index.name("ONDRA")
    assert card is not None
    assert (card.name, card.count, card.keys) == ("Ondra", 3, ("note:2", "note:1", "note:0"))
    assert card.together[0] == ("Petra", 2)
    shorter = index.name("ondra", limit=1)
    assert shorter is not None
    assert (shorter.count, shorter.keys) == (3, ("note:2",))
    assert index.name("STRASSE BERG") is not None
    assert index.name("") is None
    assert index.name("boat") is None
    memory.forget("note:2")
    assert index.name("Straße Berg") is None


def test_questions_are_looked_up_and_not_parsed() -> None:
    memory, _ = filled(
        ["the boat of Ondra", "tea with Petra", "田中さんは犬が好きです", "He and Ann Lee left"]
    )
    keys = [
        [match.key for match in memory.recall(question)]
        for question in (
            "Has Ondra called?",
            "what does ONDRA play?",
            "田中は?",
            "ann lee?",
            "boat?",
        )
    ]
    assert keys == [["note:0"], ["note:0"], ["note:2"], ["note:3"], []]


def test_what_is_only_weak_is_found_where_the_question_has_it_strong() -> None:
    memory, index = filled(["Staging fails again"])
    assert index.names() == []
    assert memory.recall("what of staging?") == []
    assert [match.key for match in memory.recall("Is it Staging?")] == ["note:0"]


def test_relevance_is_the_share_by_rarity_of_the_names_asked_for() -> None:
    texts = ["with Ada"] + ["with Bob"] * 49 + ["with Ada and Bob"] + ["nobody"] * 49
    _, index = filled(texts)
    found = index.search("did ada and bob meet?")
    ada, bob = (math.log(101 / (count + 0.5)) for count in (2, 50))
    assert found["note:0"] == pytest.approx(ada / (ada + bob))
    assert found["note:1"] == pytest.approx(bob / (ada + bob))
    assert found["note:50"] == 1.0
    assert index.search("is anybody there?") == {}


def test_over_a_base_a_shared_name_adds_a_tenth_at_most_three() -> None:
    names = ["Ada", "Bob", "Cyd", "Dan"]
    index = NameIndex(base=WordIndex())
    memory = Memory(index=index)
    memory.remember("note:1", "so " + " and ".join(names))
    memory.remember("note:2", "the boat of Ada")
    question = "ada bob cyd dan one two three four five six seven eight nine ten eleven twelve"
    assert index.search(question)["note:1"] == pytest.approx(4 / 16 + 0.3)
    assert index.search("ada, the boat")["note:2"] == 1.0
    assert index.search("boat of somebody")["note:2"] == pytest.approx(2 / 3)
    assert index.shared(question, "note:1") == names
    assert index.shared(question, "note:2") == ["Ada"]
    assert index.shared("boat", "note:2") == []
    assert index.shared(question, "missing") == []


def test_a_name_finds_what_the_base_does_not() -> None:
    class Nothing:
        asked: list[str]

        def __init__(self) -> None:
            self.asked = []

        def add(self, entry: Any, /) -> None: ...

        def discard(self, key: str, /) -> None: ...

        def prepare(self, query: str, /) -> None:
            self.asked.append(query)

        def search(self, query: str, /) -> dict[str, float]:
            return {}

    base = Nothing()
    memory, index = filled(["the boat of Ondra"], base=base)
    [match] = memory.recall("ondra?")
    assert match.relevance == pytest.approx(0.1)
    index.prepare("ondra?")
    assert base.asked[-1] == "ondra?"
    NameIndex(base=WordIndex()).prepare("ondra?")


def test_names_in_meta_replace_finding() -> None:
    index = NameIndex()
    memory = Memory(index=index)
    memory.remember("note:1", "the boat of Ondra", meta={"names": ["Ada", "ada", "ADA"]})
    memory.remember("note:2", "the boat of Ondra", meta={"names": []})
    assert index.names() == [("Ada", 1)]
    memory.remember("note:3", "the boat of Petra", meta={"names": "Ada"})
    assert index.names() == [("Ada", 1), ("Petra", 1)]


def test_any_extractor_can_be_given() -> None:
    _, index = filled(["about boats"], extract=lambda text: [text.split()[-1]])
    assert index.name("boats") == ("boats", 1, ("note:0",), ())
    wrong: Any = lambda text: text  # noqa: E731
    memory = Memory(index=NameIndex(wrong))
    with pytest.raises(TypeError, match="extract"):
        memory.remember("note:1", "Ondra")
    assert memory.size == 0
    with pytest.raises(TypeError, match="extract"):
        NameIndex(extract=wrong.__doc__)
    with pytest.raises(TypeError, match="base"):
        NameIndex(base=wrong)


def test_counts_equal_a_recount_at_any_time() -> None:
    """After any changes, the index is as one made of the same entries; text leaves with them."""
    choose = random.Random(5)
    words = ["Ondra", "Petra", "boat", "Boat", "sails", "Ada Lovelace", "and", "so"]
    memory, index = filled([])
    for _ in range(400):
        key = f"note:{choose.randrange(12)}"
        if choose.random() < 0.3:
            memory.forget(key)
        else:
            memory.remember(key, " ".join(choose.choices(words, k=4)))
    fresh = NameIndex()
    for entry in memory:
        fresh.add(entry)
    assert sorted(index.names(100)) == sorted(fresh.names(100))
    for name, _ in index.names():
        mine, other = index.name(name), fresh.name(name)
        assert mine is not None
        assert other is not None
        assert (mine.count, sorted(mine.together)) == (other.count, sorted(other.together))
    for entry in memory:
        memory.forget(entry.key)
    assert index.names() == []


@pytest.mark.parametrize(
    "text",
    ["A" * 100_000, "Aa " * 50_000, "A. " * 50_000, "van " * 50_000 + "X", "X " + "van " * 50_000,
     "「" * 50_000, "ア" * 50_000, "@" * 50_000, "a'" * 50_000, "." * 50_000 + "a", "!\"" * 50_000],
    ids=range(11),
)  # fmt: skip
def test_no_text_takes_quadratic_time(text: str) -> None:
    assert len(names_in(text)) <= 1
