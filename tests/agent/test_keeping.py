"""Records on their way into a memory: clipped, named by what they are about, weighed."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from sentinel_memory import IgnoredValueWarning, Memory
from sentinel_memory.agent import Weights, clip, fingerprint

WEIGH = Weights(
    "action",
    {"EVOLVE": 0.8, "REJECT": 0.7, "SKIP": 0.2},
    words={"security", "rollback", "blocked"},
)


@pytest.mark.parametrize(
    ("record", "importance"),
    [
        ({"action": "evolve", "reason": "security fix"}, 1.0),
        ({"action": "EVOLVE"}, 0.8),
        ({"action": "REJECT", "reason": "it was rolled back"}, 0.7),
        ({"action": "REJECT", "reason": "a rollback"}, 0.9),
        ({"action": "REJECT", "reason": ["a rollback", {"note": "blocked, security"}]}, 0.9),
        ({"action": "SKIP", "reason": "Blocked."}, 0.4),
        ({"action": "SKIP", "blocked": "no"}, 0.2),
        ({"action": "SKIP", "reason": "roadblocked"}, 0.2),
        ({}, 0.3),
        ({"action": "DANCE"}, 0.3),
        ({"action": None, "reason": "security"}, 0.5),
        ({"action": 7}, 0.3),
        ("blocked", 0.5),
        (None, 0.3),
    ],
)
def test_the_weight_of_a_record_comes_from_its_kind_and_words(
    record: Any, importance: float
) -> None:
    assert WEIGH(record) == importance


def test_kinds_and_words_are_compared_without_case_and_accents_in_any_script() -> None:
    weigh = Weights("druh", {"Závažné": 0.9}, words=["přes noc", "障害"], boost=0.05)
    assert weigh({"druh": "ZAVAZNE"}) == 0.9
    assert weigh({"druh": "závažné", "text": "běželo to přes noc"}) == 0.95
    assert weigh({"druh": "závažné", "text": "noc přes den"}) == 0.9
    assert weigh({"druh": "závažné", "text": "昨日の障害です"}) == 0.95


@pytest.mark.parametrize("wrong", [1.5, -0.1, float("nan"), "0.9", True])
def test_weights_out_of_range_are_ignored_with_a_warning(wrong: Any) -> None:
    with pytest.warns(IgnoredValueWarning) as told:
        weigh = Weights("a", {"x": wrong}, default=wrong, boost=wrong, words={"loud"})
    assert len(told) == 3
    assert weigh({"a": "x"}) == 0.3
    assert weigh({"a": "x", "b": "loud"}) == 0.5


def test_wrong_weights_are_type_errors_that_name_the_argument() -> None:
    number: Any = 1
    with pytest.raises(TypeError, match="field"):
        Weights(number, {})
    pairs: Any = [("x", 1.0)]
    with pytest.raises(TypeError, match="weights"):
        Weights("a", pairs)
    with pytest.raises(TypeError, match="words"):
        Weights("a", {}, words="security")


def test_strings_are_clipped_and_other_values_stay() -> None:
    data = {"a long key that stays as it is": ["abcdef", "abcde", 123456, True, None, 1.5]}
    assert clip(data, 5) == {
        "a long key that stays as it is": ["abcd…", "abcde", 123456, True, None, 1.5]
    }
    assert clip("x" * 200) == "x" * 179 + "…"
    assert clip("abc", 1) == "…"


FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
HANGUL = unicodedata.normalize("NFD", "각")


@pytest.mark.parametrize(
    ("text", "length", "clipped"),
    [
        ("ae\u0301bcd", 3, "a…"),
        ("ae\u0301bcd", 4, "ae\u0301…"),
        ("हिन्दी में लिखा", 2, "…"),
        ("a" + FAMILY + "bcd", 4, "a…"),
        ("a" + FAMILY + "bcd", 7, f"a{FAMILY}…"),
        ("a\U0001f44d\U0001f3fdbcd", 3, "a…"),
        ("\U0001f1e8\U0001f1ff\U0001f1eb\U0001f1f7abc", 4, "\U0001f1e8\U0001f1ff…"),
        (
            "\U0001f1e8\U0001f1ff\U0001f1eb\U0001f1f7abc",
            5,
            "\U0001f1e8\U0001f1ff\U0001f1eb\U0001f1f7…",
        ),
        (HANGUL + "abc", 3, "…"),
        ("a\u2764\ufe0fbcd", 3, "a…"),
        ("a\r\nbcd", 3, "a…"),
        ("\u0301" * 9, 4, "…"),
    ],
)
def test_a_cut_never_splits_a_visible_character(text: str, length: int, clipped: str) -> None:
    assert clip(text, length) == clipped


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "9", True, float("nan"), float("inf")])
def test_a_length_that_is_not_a_whole_number_from_1_up_is_ignored_with_a_warning(
    wrong: Any,
) -> None:
    with pytest.warns(IgnoredValueWarning, match="length"):
        assert clip("x" * 200, wrong) == clip("x" * 200)
    with pytest.warns(IgnoredValueWarning, match="length"):
        assert fingerprint("x", length=wrong) == fingerprint("x")


def test_clipping_copies_and_refuses_values_that_are_not_json() -> None:
    data = {"list": ["a"]}
    assert clip(data) == data
    assert clip(data)["list"] is not data["list"]
    with pytest.raises(TypeError):
        clip({1, 2})
    with pytest.raises(ValueError, match="surrogate"):
        clip("\ud800")

    class Liar(str):
        def __len__(self) -> int:
            return 1

    assert clip(Liar("abcdef"), 3) == "ab…"


def test_a_fingerprint_is_stable_and_tells_different_data_apart() -> None:
    assert fingerprint({"b": [1, "é"], "a": None}) == fingerprint({"a": None, "b": (1, "é")})
    # Written down: a key that changes with a release would make everything new.
    assert fingerprint("EVOLVE", "src/app.py") == "351f9c03099c5ef4"
    names = [
        fingerprint(*parts)
        for parts in [(), ("",), ("ab",), ("a", "b"), (["a", "b"],), (1,), (1.0,), (True,), ("1",)]
    ]
    assert len(set(names)) == len(names)
    assert len(fingerprint("x", length=64)) == 64
    with pytest.warns(IgnoredValueWarning, match="from 1 to 64"):
        assert fingerprint("x", length=65) == fingerprint("x")
    with pytest.raises(TypeError):
        fingerprint(object())


def test_the_same_thing_judged_again_is_one_entry() -> None:
    memory = Memory()
    for score in (0.2, 0.4):
        record = {"action": "SKIP", "target": "app.py", "score": score}
        key = f"decision:{fingerprint(record['action'], record['target'])}"
        memory.remember(key, record, importance=WEIGH(record))
    entry = memory.entry(key)
    assert memory.size == 1
    assert entry is not None
    assert entry.data["score"] == 0.4
