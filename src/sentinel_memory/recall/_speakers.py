"""Speakers: who said an entry of a stream, and whom a question names."""

from __future__ import annotations

from typing import Final

from .._basics.words import query_words

__all__ = ["Speaker", "Speakers", "names_of"]

_FIELDS: Final = ("speaker", "role", "author", "name", "from", "sender")
# Letters and words of a name; a longer text before a colon is hardly a name.
_LONGEST_NAME: Final = 40
_MOST_WORDS: Final = 3
_FULL_WIDTH_COLON: Final = "\uff1a"


class Speaker:
    """One speaker: the words of the name, and the number of entries."""

    __slots__ = ("count", "words")

    def __init__(self, words: frozenset[str]) -> None:
        self.words = words
        self.count = 0


class Speakers:
    """The speakers of the entries of an index; a speaker without entries is removed."""

    def __init__(self) -> None:
        self._by_name: dict[frozenset[str], Speaker] = {}
        self._by_word: dict[str, list[Speaker]] = {}  # by the first of the words

    def take(self, words: frozenset[str]) -> Speaker | None:
        """The speaker of that name, who has one entry more from now on; ``None`` without a name."""
        if not words:
            return None
        speaker = self._by_name.get(words)
        if speaker is None:
            speaker = self._by_name[words] = Speaker(words)
            self._by_word.setdefault(min(words), []).append(speaker)
        speaker.count += 1
        return speaker

    def leave(self, speaker: Speaker) -> None:
        """Note that an entry of the speaker was removed."""
        speaker.count -= 1
        if not speaker.count:
            del self._by_name[speaker.words]
            alike = self._by_word[min(speaker.words)]
            alike.remove(speaker)
            if not alike:
                del self._by_word[min(speaker.words)]

    def named(self, words: set[str]) -> set[Speaker]:
        """The speakers all of whose words are among ``words``."""
        return {
            speaker
            for word in words
            for speaker in self._by_word.get(word, ())
            if speaker.words <= words
        }

    def is_name(self, word: str) -> bool:
        """Whether a speaker's name begins with the word, in the order of the alphabet."""
        return word in self._by_word


def names_of(data: object) -> frozenset[str]:
    """The words of the speaker's name in ``Name: text`` or a field ``speaker``; empty without one.

    >>> sorted(names_of("Ann Lee: hello"))
    ['ann', 'lee']
    >>> sorted(names_of({"role": "user", "content": "hello"}))
    ['user']
    """
    name: object = None
    if isinstance(data, dict):
        name = next((data[field] for field in _FIELDS if field in data), None)
    elif isinstance(data, str):
        start = data[: _LONGEST_NAME + 2].replace(_FULL_WIDTH_COLON, ": ", 1)
        before, colon, after = start.partition(":")
        if colon and after[:1].isspace() and "\n" not in before:
            name = before
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        return frozenset()
    words = query_words(name)
    return frozenset(words) if len(words) <= _MOST_WORDS else frozenset()
