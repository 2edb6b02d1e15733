"""Words in many languages, also those written without spaces."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_memory import Memory
from sentinel_memory._words import query_words, stored_words


def finds(query: str, text: str) -> bool:
    memory = Memory(clock=lambda: 0)
    memory.remember("k", text)
    return bool(memory.recall(query))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("česky", "CESKY"),
        ("CESKY", "česky"),
        ("アレルギー", "私はピーナッツアレルギーです"),
        ("アレルギー", "ｱﾚﾙｷﾞｰ"),
        ("python", "私はPythonで"),
        ("ถั่วลิสง", "ฉันแพ้ถั่วลิสง"),
        ("땅콩", "땅콩에 알레르기"),
        ("हिंदी", "हिंदी भाषा"),
        ("STRASSE", "Straße"),
        ("istanbul", "İstanbul"),
        ("ISTANBUL", "ıstanbul"),
        ("lodz", "Łódź"),
        ("مراكش", "مَرَّاكُش"),
        ("42", "４２"),
        ("ανθρωπος", "ΆΝΘΡΩΠΟΣ"),
        ("ёлка", "ЕЛКА"),
        ("МОСКВА", "живу в москва"),
        ("pho bo", "Phở bò"),
        ("dung", "Đừng"),
        ("தமிழ்", "நான் தமிழ் பேசுகிறேன்"),
        ("שלום", "שָׁלוֹם"),
        ("aesop", "Æsop"),
        ("oeuvre", "Œuvre"),
        ("smørrebrød", "SMORREBROD"),
        ("naive", "nai\u0308ve"),
        ("fi", "ﬁ"),
        ("soft", "so\u00adft"),
        ("猫", "私は猫が好き"),
        ("花生", "我对花生过敏"),
        ("한", "한국"),
        ("кириллица", "кири\u0301ллица"),
        ("ខ្មែរ", "ភាសាខ្មែរ"),
        ("မြန်မာ", "မြန်မာစာ"),
    ],
)
def test_a_question_finds_the_text(query: str, text: str) -> None:
    """And in whatever normal form either is written."""
    assert finds(query, text)
    for form in ("NFC", "NFD"):
        assert finds(unicodedata.normalize(form, query), text)
        assert finds(query, unicodedata.normalize(form, text))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("हद", "हिंदी भाषा"),
        ("ह", "हिंदी"),
        ("தம", "தமிழ்"),
        ("アメ", "私はピーナッツアレルギーです"),
        ("thon", "私はPythonで"),
        ("sky", "česky"),
        ("ab", "a.b a-b a\u2028b"),
    ],
)
def test_words_are_not_cut(query: str, text: str) -> None:
    """Not at vowel signs, and letters of two words make no third one."""
    assert not finds(query, text)


def test_an_unspaced_run_counts_as_pairs_and_stored_text_has_single_letters_too() -> None:
    assert stored_words("猫が好き") == {"猫", "が", "好", "き", "猫が", "が好", "好き"}
    assert query_words("猫が好き") == {"猫が", "が好", "好き"}
    assert query_words("猫") == {"猫"}


def test_marks_stay_with_their_letter_and_stray_ones_separate() -> None:
    assert stored_words("हिंदी") == {"हिंदी"}
    assert stored_words("\u093fab \u0bcd") == {"ab"}
    assert query_words("ถั่ว") == {"ถั่ว"}


def test_hebrew_points_go_and_hebrew_punctuation_separates() -> None:
    assert stored_words("שָׁלוֹם") == {"שלום"}
    assert stored_words("א־ב") == {"א", "ב"}


@given(st.text())
def test_every_text_has_words_and_finds_itself(text: str) -> None:
    """No text makes an error, and a stored text has all words of the same text asked."""
    assert query_words(text) <= stored_words(text)
    assert "" not in stored_words(text)


@given(st.text("abcXYZ019 _-.,\n\x1c"))
def test_the_short_way_for_ascii_gives_what_the_long_way_gives(text: str) -> None:
    """A character that is no letter but not ASCII forces the long way."""
    assert stored_words(text) == stored_words(text + " \u2028")
