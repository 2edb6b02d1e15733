"""Words in many languages, also those written without spaces."""

from __future__ import annotations

import gc
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentinel_memory import Memory
from sentinel_memory._basics.folding import CharacterTable, folded
from sentinel_memory._basics.words import query_weights, query_words, stored_words


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
        ("lego", "LEGO™"),
        ("jeep", "Jeep℠"),
        ("25", "25℃"),
        ("3", "3㎏"),
        ("ink", "ⓇInkⒸ"),
        ("کتاب", "كتاب"),
        ("كتاب", "کتاب"),
        ("ایرانی", "ايراني"),
        ("على", "علی"),
        ("ٱلله", "الله"),
        ("أحمد", "احمد"),
        ("مدرسة", "مدرسه"),
        ("п'ять", "п\u02bcять"),
        ("п\u02bcять", "п’ять"),
        ("Hawai'i", "Hawai\u02bbi"),
        ("qur'an", "Qur\u02beān"),
        ("葛", "葛\U000e0100"),
        ("葛飾", "葛\ufe00飾"),
        ("wordjoiner", "word\u2060joiner"),
        ("start", "\ufeffstart"),
        ("leftright", "left\u200eri\u200fght"),
        ("isolated", "\u2068iso\u202alated\u2069"),
        ("42", "٤٢"),
        ("42", "۴۲"),
        ("४२", "42"),
        ("42", "ราคา๔๒บาท"),
        ("42", "၄၂"),
        ("അവൻ", "അവന്\u200d"),
        ("അവള്\u200d", "അവൾ"),
        ("ज़रूर", "जरूर"),
        ("जरूर", "\u095bरूर"),
        ("फ़ोन", "फो\u093cन"),
        ("น้ำ", "น\u0e4d\u0e49\u0e32"),
        ("น\u0e33\u0e49", "น้ำ"),
        ("ນ້ຳ", "ນ\u0ecd\u0ec9\u0eb2"),
        ("phone number", '{"phoneNumber": 1}'),
        ("phonenumber", "phoneNumber"),
        ("phoneNumber", "phonenumber"),
        ("server", "HTTPServer"),
        ("line", "addressLine2"),
        ("telefonu", "čísloTelefonu"),
        ("číslo", "c\u030ci\u0301sloTelefonu"),
        ("телефона", "номерТелефона"),
        ("C#", "I write c#."),
        ("c", "I write C#."),
        ("C＃", "c#"),
        ("C♯", "c#"),
        ("c++", "C++17, mostly"),
        (".net", "(.NET)"),
        ("net", ".NET"),
        ("notepad++", "Notepad++!"),
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
        ("ab", "a\u02bcb a\u200bb a™b"),
        ("tm", "LEGO™"),
        ("phone", "phonenumber"),
        ("phone", "phoneNumber" + "abcXyz" * 20),
        ("pd", "PDFs"),
        ("number", "phoneNUMBERS"),
    ],
)
def test_words_are_not_cut(query: str, text: str) -> None:
    """Not at vowel signs, and letters of two words make no third one."""
    assert not finds(query, text)


def test_an_unspaced_run_counts_as_pairs_and_stored_text_has_single_letters_too() -> None:
    assert stored_words("猫が好き") == {"猫", "が", "好", "き", "猫が", "が好", "好き"}
    assert query_words("猫が好き") == {"猫が", "が好", "好き"}
    assert query_words("猫") == {"猫"}


def test_a_short_name_with_a_sign_is_a_word_beside_the_plain_one() -> None:
    assert stored_words("C#, (C++) F#.") == {"c", "c#", "c++", "f", "f#"}
    assert stored_words("a+b 1+1 end.net x#y ...and #1 .5") == set("abx15y") | {"end", "net", "and"}
    assert stored_words("мc# éc#") == {"мc", "ec", "ec#"}


def test_a_short_name_with_a_sign_is_still_one_word_of_the_question() -> None:
    """The share of every other word is what it was, and the name alone is worth half of it."""
    for plain, signed in (("I like c", "I like c#"), ("c or net", "c++ or .net")):
        words, weights = query_weights(plain), query_weights(signed)
        whole = sum(weights.values())
        assert dict.fromkeys(words, 1 / 3) == {
            word: sum(weight for form, weight in weights.items() if form.strip(".#+") == word)
            / whole
            for word in words
        }
    memory = Memory(clock=lambda: 0)
    for key, text in (("1", "vitamin C"), ("2", "C# at work"), ("3", "C++ at work")):
        memory.remember(key, text)
    found = {match.key: match.relevance for match in memory.recall("C#")}
    assert found == {"1": 0.5, "2": 1.0, "3": 0.5}
    assert {match.relevance for match in memory.recall("c")} == {1.0}


def test_camel_case_in_keys_and_mapping_keys_has_its_parts() -> None:
    memory = Memory(clock=lambda: 0)
    memory.remember("phoneModel", {"screenSize": 6})
    for query in ("phone", "model", "phonemodel", "screen size"):
        assert memory.recall(query)[0].relevance == 1.0, query


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


@example("\u0e33\u0e33\u0e48")  # a tone after the second of two Thai vowels
@example("\u0e33\u0e48\u0e33")
@given(st.text() | st.text("aAé#+.™٤कन้ำ\u0e4d\u0e49\u093c\u02bc\ufe00ᴭİßÅ"))
def test_a_folded_text_is_folded_for_good(text: str) -> None:
    """Folding again changes nothing, and what is folded has the same words."""
    once = folded(text)
    assert folded(once) == once
    assert query_words(once) == query_words(text)


@given(st.lists(st.text("aZé1猫ก#"), max_size=5))
def test_texts_side_by_side_have_the_words_of_each(texts: list[str]) -> None:
    assert set().union(*map(stored_words, texts)) == stored_words("\n".join(texts))


def test_what_is_known_of_characters_is_bounded() -> None:
    """One text with every character must not stay in the process."""
    every = "".join(map(chr, range(0x20, 0x30000)))
    known = stored_words("naïve ١ naïveText")
    stored_words(every + "aB")
    tables = [one for one in gc.get_objects() if isinstance(one, CharacterTable)]
    assert len(tables) == 5
    assert 0 < max(map(len, tables)) <= 8_192
    assert stored_words("naïve ١ naïveText") == known


@given(st.text("abcXYZ019 _-.,\n\x1c"))
def test_the_short_way_for_ascii_gives_what_the_long_way_gives(text: str) -> None:
    """A character that is no letter but not ASCII forces the long way."""
    assert stored_words(text) == stored_words(text + " \u2028")


@pytest.mark.parametrize(
    "pile",
    [
        "\u0301\u0316",  # of two classes, above and below
        "\u0344\u0316",  # one that falls apart in two
        "\uff9e\u1dc2",  # a half-width letter that becomes a mark
        "\u1dc0\u200d\u1dc2\u00ad",  # with signs between them that are dropped later
        "\u0f73\u0f71",  # of no class, and falls apart in two that have one
        "\u093e",
    ],
)
def test_a_pile_of_marks_never_reaches_what_would_sort_it(
    pile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sorting them in canonical order takes quadratic time, with the whole process waiting."""
    longest = 0

    def watched(form: Any, text: str) -> str:
        nonlocal longest
        run = 0
        for char in real("NFKD", text):
            run = run + 1 if unicodedata.category(char)[0] == "M" else 0
            longest = max(longest, run)
        return real(form, text)

    real = unicodedata.normalize
    monkeypatch.setattr(unicodedata, "normalize", watched)
    words = stored_words("før" + 500 * pile + " क" + 500 * pile + "z")
    assert longest <= 60
    assert any(word.startswith("for") for word in words)
    assert max(map(len, words)) <= 70


def test_thirty_marks_in_a_row_are_kept() -> None:
    assert stored_words("क" + 30 * "\u093e") == {"क" + 30 * "\u093e"}
    assert stored_words("क" + 31 * "\u093e") == {"क" + 30 * "\u093e"}
    assert stored_words("क" + 30 * "\u093e" + "ख" + 30 * "\u093e") == {
        "क" + 30 * "\u093e" + "ख" + 30 * "\u093e"
    }
