"""Finding names in a text by their capitals, without a model.

A capital says that a word is a name unless something else explains it: the start of a sentence, a
title, a sentence that shouts, a language that gives one to every noun.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

from .._basics.checks import check_str
from .._basics.words import tokens

__all__ = ["Found", "find_names", "folded_name", "names_in"]


class Found(NamedTuple):
    """A name as it is written; ``strong`` if nothing else explains its capital."""

    name: str
    strong: bool


def _each(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Words that begin sentences, or are written with a capital without being names; folded.
_NO_NAMES: Final = _each(
    "i im ive ill id a an the this that these those there here it its he hes she shes we were weve"
    " well you youre youve they theyre theyve my your his her our their who whose what whats when"
    " where wheres why which how hows has have had is are am was do does did dont doesnt didnt can"
    " could cant will would wont should shall may might must let lets if in on at to from for by"
    " of off out over under up down and or but so as not no yes yeah yep nope ok okay oh ah wow hey"
    " hi hello hallo bye thanks thank please sorry sure right true great good nice cool awesome"
    " amazing lovely absolutely definitely totally exactly congrats congratulations happy glad"
    " today tomorrow yesterday tonight now then later soon still also just even only really very"
    " some any all both each every many much more most one two three first last next new news other"
    " another such same ask call tell meet see visit try take make put get give go come look keep"
    " add use set check remember note never always sometimes maybe perhaps after before since while"
    " because although though once until during with without about against between into through"
    " than too again ever tv lol omg fyi asap pm btw faq diy ps rip mr mrs ms dr prof"
    " monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays"
    " thursdays fridays saturdays sundays january february march april june july august"
    " september october november december christmas easter mom dad mum god"
    " der die das ein eine und ich er sie es wir ihr ist sind hat haben wer wie wo wann warum nicht"
    " mein meine dein deine sein seine unser ja nein danke bitte heute morgen gestern aber auch im"
    " montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar marz mai juni juli"
    " oktober dezember le la les un une des je tu il elle nous vous ils elles mon ma mes ton ta tes"
    " son sa ses est et ou mais oui non merci bonjour salut que qui quand comment avec sans"
    " pour dans sur chez el los las una unos yo ella nosotros ellos mi mis su sus es son y o"
    " pero si"
    " gracias hola cuando donde como porque con sin para por en lo gli io lui lei noi loro il mio"
    " mia ciao grazie perche dove quando come anche di da o os as um uma eu ele ela nos eles meu"
    " minha sim nao obrigado obrigada ola ten ta to ja ty on ona my wy oni muj moje tvuj ano ne"
    " dnes zitra vcera kde kdy proc jak co kdo dik diky dekuji prosim ahoj s v z k u na po do od"
    " pro pri nebo ale protoze kdyz tak tady tam nie tak dzis jutro gdzie kiedy dlaczego dziekuje"
    " я ты он она мы вы они это этот что кто где когда почему как да нет спасибо привет в на с у к"
    " из от по для и но а не если сегодня завтра вчера ο η το οι τα ναι οχι και με σε για ben sen"
    " bu su o biz siz evet hayir merhaba ve ama bugun yarin dun"
)
_GERMAN: Final = _each("der die das und ist nicht ich ein eine mit wir auf fur den dem im zum zur")
_GERMAN_DETERMINERS: Final = _each(
    "der die das den dem des ein eine einen einem einer eines kein keine keinen mein meine meinen"
    " meinem meiner dein deine deinen ihr ihre ihren ihrem ihrer sein seine seinen unser unsere"
    " unseren euer eure im am zum zur beim vom ins ans diese dieser dieses diesen diesem jede jeder"
    " jedes jeden viele viel alle einige zwei drei vier mehr wenig ohne als pro"
)
_PARTICLES: Final = _each("van von der den de del della di da dos das do du la le el al bin ibn of")
_BEGIN_NAMES: Final = _each("new great los las la le el san mont saint der god sur")
_TITLES: Final = _each("dr mr mrs ms prof st jr sr inc ltd co no vs frau herr pani pan")
_LOAN_WORDS: Final = _each(
    "アレルギー コーヒー サッカー テニス ピザ ケーキ テレビ パソコン スマホ メール ホテル"
    " レストラン バス タクシー パン ビール ワイン ジュース サラダ ピーナッツ エビ カニ ネコ"
    " イヌ データ サーバー テスト ビル プロジェクト ミーティング スケジュール アプリ システム"
    " チーム ニュース ゲーム ギター ピアノ スポーツ クラス ドア ペット メニュー サービス"
    " プレゼント パーティー コンサート チケット カメラ"
)
_MOST_PARTS: Final = 6  # words of a name; a longer run is a title or a list
_SHOUTS: Final = 0.7  # share of capitals among the letters of a text that shouts
_SHOUTS_FROM: Final = 12  # letters; fewer may be an abbreviation
_TITLED: Final = 0.8  # share of words with a capital in a title
_TITLED_FROM: Final = 4  # words

_WORD: Final = re.compile(r"[^\W_](?:[\w'\u2019\-]|\.(?=[^\W\d_]))*")
_END: Final = re.compile(
    r"(?<![.!?\u2026])[.!?\u2026]+[\"'\u201d\u2019)\]]*\s+|[\u3002\uff01\uff1f]|\n+|[:;]\s+"
    r"|[\"\u201c\u201d\u00ab\u00bb\u201e]|\s[\u2013\u2014*\u2022-]\s|^[*\u2022-]\s"
)
_UNCASED: Final = (
    re.compile(r"([\u3400-\u9fff々\u30a0-\u30ffー]{1,8})(?:さん|様|さま|君|くん|ちゃん|氏|先生)"),
    re.compile(r"([\uac00-\ud7af]{2,4})\s?(?:씨|님|선생님)"),
    re.compile(r"[「『《]([^」』》。！？]{1,20})[」』》]"),
    re.compile(r"(?<![\w@.])@(\w{2,30})"),
)
_KATAKANA: Final = re.compile(r"[\u30a1-\u30fa・ー]{3,}")
_HIRAGANA_ONLY: Final = re.compile(r"[\u3041-\u309f]+")


def names_in(text: str) -> list[str]:
    """The names in a text, in order, each once: no model, no list of names.

    Read sentence by sentence. A word is a name if its capital is not explained, or, at the start
    of a sentence, if it is not one of the usual first words. Names in scripts without capitals are
    found by the signs around them (さん, 씨, quotes) and by katakana.

    Raises ``TypeError`` for a text that is not a ``str``.

    >>> names_in("Has Ondra called? He sails with Petra van der Berg on Tuesday.")
    ['Ondra', 'Petra van der Berg']
    """
    check_str("text", text)
    found = {folded_name(one.name): one for one in find_names(text)}
    return [
        one.name
        for name, one in found.items()
        if one.strong
        or (
            name.partition(" ")[0] not in _NO_NAMES
            and not any(other.endswith(f" {name}") for other in found)
        )
    ]


def folded_name(name: str) -> str:
    """A name in the spelling in which names are compared: its words, folded.

    >>> folded_name("Straße") == folded_name("STRASSE")
    True
    """
    return " ".join(word if isinstance(word, str) else "".join(word) for word in tokens(name))


def find_names(text: str) -> list[Found]:
    """The names in a text, in order, each once, strong if one occurrence is strong."""
    text = unicodedata.normalize("NFC", str.__str__(text))
    found: dict[str, Found] = {}
    for name, strong in (*_cased_names(text), *_uncased_names(text)):
        key = folded_name(name)
        if not key or (len(name) < 2 and name.isascii()):
            continue
        former = found.get(key)
        if former is None or (strong and not former.strong):
            found[key] = Found(name if former is None else former.name, strong)
    return list(found.values())


def _uncased_names(text: str) -> Iterator[tuple[str, bool]]:
    if text.isascii() and "@" not in text:
        return
    for pattern in _UNCASED:
        for match in pattern.finditer(text):
            if not _HIRAGANA_ONLY.fullmatch(match.group(1)):
                yield match.group(1), True
    for match in _KATAKANA.finditer(text):
        word = match.group().strip("・")
        if len(word) >= 3 and word not in _LOAN_WORDS and not word.startswith("ー"):
            yield word, True


def _cased_names(text: str) -> Iterator[tuple[str, bool]]:
    letters = [char for char in text if char.isalpha() and char.lower() != char.upper()]
    if len(letters) > _SHOUTS_FROM and sum(map(str.isupper, letters)) > _SHOUTS * len(letters):
        return
    german = len(_GERMAN & set(text.lower().split())) >= 2
    for sentence in _sentences(text):
        words = list(_WORD.finditer(sentence))
        capitals = sum(match.group()[0].isupper() for match in words)
        if len(words) >= _TITLED_FROM and capitals > _TITLED * len(words):
            continue
        yield from _names_of(sentence, words, german)


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for match in _END.finditer(text):
        before = text[start : match.start()].rsplit(None, 1)
        last = before[-1] if before else ""
        if match.group()[0] == "." and (
            (len(last) == 1 and last.isupper()) or folded_name(last) in _TITLES
        ):
            continue  # an initial or a title ends no sentence
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]


def _names_of(
    sentence: str, words: list[re.Match[str]], german: bool
) -> Iterator[tuple[str, bool]]:
    """The names of one sentence; the first word's capital is explained by its place."""
    place = 0
    while place < len(words):
        word = words[place].group()
        inner = _has_inner_capital(word)
        if not word[0].isupper():
            if inner:  # as in iPhone
                yield _bare(word), True
            place += 1
            continue
        noun = german and _is_noun(words, place)
        end = place + 1 if noun else _end_of_name(sentence, words, place)
        parts = [_bare(match.group()) for match in words[place:end]]
        first = place == 0
        if place == 0 or all(folded_name(part) in _NO_NAMES for part in parts):
            shorter = _without_first_words(parts)
            first = first and len(shorter) == len(parts)  # the capital of the next is its own
            parts = shorter
        place = end
        if not parts or len(parts) > _MOST_PARTS:
            continue
        if noun:
            continue
        strong = not first or inner or (parts[0].isupper() and len(parts[0]) > 1)
        yield " ".join(parts), strong and not (len(parts) == 1 and len(parts[0]) == 1)
        if first and len(parts) > 1 and not strong:
            rest = parts[1:]
            while rest and rest[0] in _PARTICLES:
                rest = rest[1:]
            yield " ".join(rest), False


def _without_first_words(parts: list[str]) -> list[str]:
    """The parts after words that only begin a sentence: "Ondra" of "Has Ondra"."""
    start = 0
    while start < len(parts):
        word = folded_name(parts[start])
        begins = word in _BEGIN_NAMES and start + 1 < len(parts)
        if word not in _NO_NAMES or word in _TITLES or begins:
            break
        start += 1
        while start < len(parts) and parts[start] in _PARTICLES:
            start += 1
    return parts[start:]


def _end_of_name(sentence: str, words: list[re.Match[str]], start: int) -> int:
    """The place after the last word of the name that begins at ``start``."""
    end = start + 1
    while end < len(words):
        before, word = words[end - 1], words[end].group()
        gap = sentence[before.end() : words[end].start()]
        dotted = gap.startswith(".") and (
            len(before.group()) <= 2 or folded_name(before.group()) in _TITLES
        )
        if gap.strip(" \t\u00a0") not in ("", ".") or (gap.strip() == "." and not dotted):
            break
        if before.group() != _bare(before.group()):  # "Ondra's Car"
            break
        if word[0].isupper():
            end += 1
            continue
        after = end
        while after < len(words) and words[after].group() in _PARTICLES and after < end + 3:
            after += 1
        joined = end < after < len(words) and words[after].group()[0].isupper()
        between = sentence[words[end - 1].end() : words[after].start()] if joined else ","
        if not joined or re.search(r"[^\w\s]", between):
            break
        end = after + 1
    return end


def _bare(word: str) -> str:
    """A word without its possessive."""
    return re.sub(r"['\u2019]s?$", "", word)


def _has_inner_capital(word: str) -> bool:
    return any(map(str.isupper, word[1:])) and any(map(str.islower, word))


def _is_noun(words: list[re.Match[str]], place: int) -> bool:
    """Whether a German word stands after a determiner, maybe with an adjective between."""
    before = [match.group().lower() for match in words[max(0, place - 2) : place]]
    if not before:
        return False
    determiners = {unicodedata.normalize("NFC", word) for word in _GERMAN_DETERMINERS}
    return before[-1] in determiners or (
        len(before) > 1
        and before[0] in determiners
        and before[1].endswith(("e", "en", "er", "es", "em"))
    )
