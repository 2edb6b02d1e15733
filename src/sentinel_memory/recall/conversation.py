"""An index for conversations: by rare words, their stems, neighbours, dates and speakers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from .._basics.checks import check_callable
from .._basics.postings import Postings
from .._basics.words import query_weights, stored_words, strings_in
from ..entry import Entry
from ._dates import Day, dates_in, days_of
from ._nodes import Node, Streams, WordList, stream_of
from ._speakers import Speaker, Speakers, names_of
from ._stems import STOP_STEMS, STOP_WORDS, stem
from ._vectors import BATCH, Vectors, batch_size
from .words import entry_text

__all__ = ["ConversationIndex"]

# Theory of operation.
#
# The answer to a question about a conversation is often not in the turn that has its words, but in
# one beside it ("Any pets?" - "Two cats!"). So a turn gets the weight of each word of the question
# that it has, and a damped weight of those that its neighbours have:
#
# 1. Words. Each stem of the question weighs the more, the fewer entries have it. Stems that more
#    than a tenth of all entries have are common: they give nothing to neighbours.
# 2. Spreading. Each rare stem counts in full where it stands, and less with every step onward or
#    back along the stream, always from the place where it is worth most. Which stems a node has is
#    a bit mask, so that a step along a stream moves all of them at once.
# 3. Support. Common stems, and the days that the question names, are added where they stand.
# 4. Speakers. If the question names some of those who speak, turns of others count less.
# 5. Length. A long turn counts less, since it leaves less room for others in a prompt.
# 6. Expansion. Rare words of the best turns (leaders) are searched for as well, and add a part of
#    the best score: they are words in which the subject is talked of in this conversation. In a
#    small memory, or for a question of one word, the leaders are too uncertain.
#
# The scores are then divided by the weight of the whole question, and entries far under the best
# one are left out. Only the lists of words of the question (or its expansion) are read, never all
# entries; floats are always added in an order that does not depend on hashing.
#
# The nodes in ``_nodes`` decide. Lists, days, streams and speakers follow from them, and are made
# again if an exception (Ctrl-C) left a change of them in the middle.

# Tuned on half of LoCoMo. Within the range given, the share of questions whose whole evidence fits
# in 800 tokens changes by at most 1 %.
#
# Shares of a word's weight, of the best score or relevance, and the like.
_STEP: Final = 0.7  # kept of a word's weight at each step; higher reaches further; 0.6 to 0.8
_COMMON: Final = 0.1  # of all entries: a word of more is common; higher is slower; 0.1 to 0.3
_FLOOR: Final = 0.2  # of the best relevance: less is not found; higher finds fewer; 0.2 to 0.3
_OTHERS: Final = 0.7  # kept of the score if another speaker is named; 1: no effect; 0.6 to 0.8
_LEADERS: Final = 0.7  # of the best score, reached by a leader; higher: fewer leaders; 0.6 to 0.8
_EXPANSION: Final = 0.4  # of the best score, the most that expansion adds; 0.3 to 0.7
_MEANING: Final = 0.4  # of the centred cosine; higher: meaning outweighs words; 0.3 to 0.6
# The exponent of length; higher prefers shorter entries; 0.1 to 0.2.
_LENGTH_POWER: Final = 0.15
# Steps to either side that a word reaches; more is slower; 3 to 6.
_REACH: Final = 4
# The largest number of leaders, and of words taken from them; more is slower; 10 to 40.
_MOST_LEADERS: Final = 20
#
# Not tuned.
# Entries that may have a rare word, however small the memory. Raised, more words count as rare in
# memories of up to ten times as many entries, and expansion begins only above that size.
_COMMON_LEAST: Final = 10
# Letters up to which length does not count. Raised, short entries are preferred less.
_SHORT: Final = 64
# The least span of cosines from the average to the best that has a meaning: above the rounding of
# 32-bit numbers (1e-7). From some hundredths on it would hide differences of meaning.
_LEAST_SPAN: Final = 1e-6
#
# Limits. With them, 1 in 400 of the first ten places differs from an unlimited search among 10,000
# entries, and none among 3,000.
# Words of a question that are searched for, the rarest ones. Raising it costs time in questions
# that are whole documents; a person's question has fewer.
_MOST_WORDS: Final = 32
# Entries from which words spread, those of the rarest words first; words beyond count where they
# stand, as common ones do. Raising it costs time in proportion, from about 3,000 entries on.
_MOST_SPREAD: Final = 2_500
# Entries that are read for expansion; raising it costs time in the same way.
_MOST_EXPANDED: Final = 2_500
# If this many entries already score more than the common words could add, entries that have only
# common words are not read. Raising it costs time among 100,000 entries.
_ENOUGH: Final = 200

# The length factors of usual turns, by letters; one table, so that entries share the floats.
_LENGTH_FACTORS: Final = tuple(
    math.pow(_SHORT / max(_SHORT, letters), _LENGTH_POWER) for letters in range(1024)
)

_A_WORD: Final = re.compile(r"[^\W_]+")

_Weighed: TypeAlias = tuple[float, list[Node]]


class _Question(NamedTuple):
    """A question in terms of the index, each word and day with its weight and its entries."""

    rare: list[_Weighed]
    common: list[_Weighed]
    whole: float  # the weight of all its words and days, found or not
    named: set[Speaker]


class ConversationIndex:
    """An index for what people say to each other, turn by turn; nothing to install or configure.

    Relevance is the share of the question that is found, each word weighed by how few entries
    have it. It is made for English conversations and no worse elsewhere:

    - Words are those of ``WordIndex``. English endings (``-s -ing -ed -ly``) are ignored, and so
    are
      the letters after the sixth of a Latin, Greek or Cyrillic word. About 70 English words that
      questions are made of (what, did, the) count only in a question that has no others. Of a very
      long question, the 32 rarest words that any entry has count.
    - Neighbours: the words of a turn count, damped, for the four turns before and the four after
      it; the answer is often next to the word. Turns are entries of one stream, whose keys
      differ in a number after the last colon (``chat:17``), in the order in which they were last
      remembered. An entry with any other key is on its own.
    - Speakers: turns that begin with a name (``Anna: ...``), or have a field ``speaker``, ``role``,
      ``author``, ``name``, ``from`` or ``sender``, count in full if the question names their
      speaker or nobody, and 0.7 if it names another one.
    - Dates: a question may name the UTC day on which an entry was last remembered, whole or in
      part: ``2023-05-08``, ``8 May 2023``, ``in May``, ``2023``.
    - Among 100 entries and more, words that the best turns share are searched for, too.
    - Longer entries count a little less. An entry with less than a fifth of the best relevance
      is not found.

    In five conversations of the LoCoMo data set (786 questions, 592 turns each), 800 tokens of
    context hold the whole evidence for 76 % of the questions, with ``WordIndex`` for 39 %. Of 200
    questions about facts, and of 40 in Czech, Japanese, Hindi and Thai, none is answered worse than
    with ``WordIndex``.

    ``embed`` (a function from a list of texts to their vectors, as for ``EmbeddingIndex``, which
    documents ``embed_query``, ``batch``, failures and ``prepare``) adds meaning: relevance is
    the share of the question and 0.4 of the cosine, which is 0 for the average entry and 1 for the
    best; of the texts that are embedded, names of speakers are left out.

    A question takes about 0.5 ms among 1,000 turns and 4 ms among 10,000; adding and discarding
    never look at the other entries.

    >>> from sentinel_memory import Memory
    >>> memory = Memory(index=ConversationIndex())
    >>> for number, text in enumerate(["Any pets?", "Two cats!", "Lovely weather.", "Yes."]):
    ...     _ = memory.remember(f"chat:{number}", text)
    >>> [match.data for match in memory.recall("Which pets?", limit=2)]
    ['Any pets?', 'Two cats!']
    """

    def __init__(
        self,
        embed: Callable[[list[str]], Iterable[Iterable[float]]] | None = None,
        embed_query: Callable[[list[str]], Iterable[Iterable[float]]] | None = None,
        *,
        batch: int = BATCH,
    ) -> None:
        check_callable("embed", embed, optional=True)
        check_callable("embed_query", embed_query, optional=True)
        if embed is None and embed_query is not None:
            raise TypeError("embed_query needs embed, for the texts of entries")
        # An embedder has to know the entries before the first search, in ``prepare``.
        self.refuses_nothing = embed is None
        size = batch_size(batch)
        self._vectors = (
            None if embed is None else Vectors(embed, embed_query, size, self._without_names)
        )
        self.clear()

    def clear(self) -> None:
        """Forget every entry."""
        if self._vectors is not None:
            self._vectors.clear()
        self._nodes: dict[str, Node] = {}
        self._count = 0  # the number of entries ever added
        self._rebuild()

    def _rebuild(self) -> None:
        """Make the lists, days, streams and speakers anew from the nodes."""
        self._half_made = True
        words: Postings[str, Node] = Postings()
        days: Postings[Day, Node] = Postings()
        self._words, self._days = words, days
        self._streams, self._speakers = Streams(), Speakers()
        for node in self._nodes.values():
            # Only fields that no change leaves half set are read.
            node.words = words.get_or_make([listed.label for listed in node.words])
            node.days = days.get_or_make([listed.label for listed in node.days])
            speaker = node.speaker
            node.speaker = None if speaker is None else self._speakers.take(speaker.words)
            self._enlist(node)
        self._half_made = False

    def _enlist(self, node: Node) -> None:
        for listed in node.words:
            listed.members.append(node)
        for day in node.days:
            day.members.append(node)
        stream = stream_of(node.key)
        if stream is not None:
            self._streams.link(node, stream)

    def add(self, entry: Entry, /) -> None:
        """Make ``entry`` findable by its words, those of its neighbours, and its day."""
        self.discard(entry.key)
        text = entry_text(entry)
        stems = set(map(stem, stored_words(text)))
        self._count += 1
        node = Node(entry.key, entry.updated_ms, self._count)
        node.length_factor = _length_factor(len(text))
        speaker = names_of(entry.data) if stream_of(entry.key) is not None else frozenset[str]()
        self._half_made = True
        node.words = self._words.get_or_make(stems)
        node.days = self._days.get_or_make(days_of(entry.updated_ms))
        node.speaker = self._speakers.take(speaker)
        self._nodes[entry.key] = node
        self._enlist(node)
        if self._vectors is not None:
            self._vectors.add(entry.key, "\n".join(strings_in(entry.data)))
        self._half_made = False

    def discard(self, key: str, /) -> None:
        """Forget the entry of that key; those before and after it become neighbours."""
        if self._vectors is not None:
            self._vectors.discard(key)
        if self._half_made:
            self._rebuild()
        if key not in self._nodes:
            return
        self._half_made = True
        node = self._nodes.pop(key)
        node.key = ""
        self._words.note_removed(node.words)
        self._days.note_removed(node.days)
        node.words, node.days = (), ()
        if node.speaker is not None:
            self._speakers.leave(node.speaker)
            node.speaker = None
        self._streams.unlink(node)
        self._half_made = False

    def prepare(self, query: str, /) -> None:
        """Embed new entries and the question, if there is an embedder."""
        if self._vectors is not None:
            self._vectors.prepare(query)

    def search(self, query: str, /) -> Mapping[str, float]:
        """The weight of ``query`` in or near each entry, as a share of the whole question."""
        if self._half_made:
            self._rebuild()
        question = self._question(query)
        scores = _spread(question.rare)
        _add_common(scores, question.common)
        if self._vectors is not None:
            return self._blended(dict(self._vectors.cosines(query)), scores, question)
        if not scores:
            return {}
        named = question.named
        if named:
            scores = {node: score * _factor(node, named) for node, score in scores.items()}
        else:
            scores = {node: score * node.length_factor for node, score in scores.items()}
        best = max(scores.values())
        if len(question.rare) > 1 and _COMMON * len(self._nodes) >= _COMMON_LEAST:
            self._expand_query(scores, best, named)
        # Rescaled, so that expansion does not change the best relevance.
        whole = question.whole * max(scores.values()) / best
        least = _FLOOR * best
        return {
            node.key: min(1.0, score / whole) for node, score in scores.items() if score >= least
        }

    def _blended(
        self, cosines: dict[str, float], scores: dict[Node, float], question: _Question
    ) -> Mapping[str, float]:
        """The share of the question and the meaning together."""
        found = {node.key: score / question.whole for node, score in scores.items()}
        if cosines:
            average = math.fsum(cosines.values()) / len(cosines)
            span = max(cosines.values()) - average
            for key, cosine in cosines.items():
                # A smaller span is no difference of meaning, only of rounding.
                if cosine > average and span > _LEAST_SPAN:
                    meant = _MEANING * (cosine - average) / span
                    found[key] = found.get(key, 0.0) + meant
        for key, relevance in found.items():
            factor = _factor(self._nodes[key], question.named)
            found[key] = min(1.0, relevance / (1 + _MEANING)) * factor
        least = _FLOOR * max(found.values(), default=0.0)
        return {key: relevance for key, relevance in found.items() if relevance >= least}

    def _without_names(self, text: str) -> str:
        """The text without the names of those who speak: they would dominate its vector."""
        speakers = self._speakers

        def unnamed(found: re.Match[str]) -> str:
            named = any(map(speakers.is_name, query_weights(found[0])))
            return "" if named else found[0]

        return _A_WORD.sub(unnamed, text).strip(" :") or text

    def _question(self, query: str) -> _Question:
        factors = _stems_of(query)
        dates = self._dated(query)
        of_dates = {stem(word) for word, _ in dates}
        whole = 0.0
        known: list[tuple[int, str, WordList]] = []
        for word in sorted(factors):
            if word in self._words:
                known.append((len(self._words[word]), word, self._words[word]))
            elif word not in of_dates:
                whole += factors[word] * self._weight(0)
        known.sort(key=lambda one: one[:2])
        limit = max(_COMMON_LEAST, _COMMON * len(self._nodes))
        rare: list[_Weighed] = []
        common: list[_Weighed] = []
        spread = 0
        for count, word, listed in known[:_MOST_WORDS]:
            weight = factors[word] * self._weight(count)
            whole += weight
            spread += count
            spreads = count <= limit and (spread <= _MOST_SPREAD or not rare)
            if spreads:
                rare.append((weight, listed.live()))
            else:
                common.append((weight, listed.members))
        for _, nodes in dates:
            weight = self._weight(len(nodes))
            whole += weight
            common.append((weight, nodes))
        return _Question(rare, common, whole, self._speakers.named(set(query_weights(query))))

    def _dated(self, query: str) -> list[tuple[str, list[Node]]]:
        """The entries of each year, month and day of the month that the question names."""
        found = []
        for (part, value), word in dates_in(query).items():
            of_date = [listed.live() for day, listed in self._days.items() if day[part] == value]
            if of_date:
                found.append((word, list(chain.from_iterable(of_date))))
        return found

    def _weight(self, count: int) -> float:
        """The weight of a word that ``count`` entries have: always above 0."""
        return math.log((len(self._nodes) + 1) / (count + 0.5))

    def _expand_query(self, scores: dict[Node, float], best: float, named: set[Speaker]) -> None:
        """Expand the question by rare words of the best turns, and add the scores of that."""
        leaders = [
            node
            for node, score in scores.items()
            if score >= _LEADERS * best and node.stream is not None
        ]
        leaders.sort(key=lambda node: (-scores[node], -node.updated_ms, node.key))
        limit = _COMMON * len(self._nodes)
        gains: dict[WordList, float] = {}
        for node in leaders[:_MOST_LEADERS]:
            gain = (scores[node] / best) ** 2
            for listed in node.words:
                if 2 <= len(listed) <= limit and listed.label not in STOP_STEMS:
                    gains[listed] = gains.get(listed, 0.0) + gain
        words = [
            (gain * self._weight(len(listed)) / math.sqrt(len(listed)), listed.label, listed)
            for listed, gain in gains.items()
        ]
        words.sort(key=lambda one: (-one[0], one[1]))
        added: dict[Node, float] = {}
        looked = 0
        for gain, _, listed in words[:_MOST_LEADERS]:
            looked += len(listed)
            if looked > _MOST_EXPANDED and added:
                break
            for node in listed.live():
                if node.stream is not None:
                    added[node] = added.get(node, 0.0) + gain
        for node in added:
            # Divided by the root of the number of words, not weighed by length: expansion finds
            # many entries, and a long one has some of the words by chance.
            count = len(node.words) + len(node.days)
            added[node] *= _factor(node, named) / node.length_factor / math.sqrt(count)
        most = max(added.values(), default=0.0)
        for node, gain in added.items():
            scores[node] = scores.get(node, 0.0) + _EXPANSION * best * gain / most


class _Sums(dict[int, float]):
    """The sum of the weights of the words whose bits are set, always added in the same order."""

    def __init__(self, weights: list[float]) -> None:
        self._weights = weights

    def __missing__(self, mask: int) -> float:
        total, left = 0.0, mask
        while left:
            lowest = left & -left
            total += self._weights[lowest.bit_length() - 1]
            left ^= lowest
        self[mask] = total
        return total


def _spread(words: list[_Weighed]) -> dict[Node, float]:
    """For each node the weights of its words, and damped the weights of words near it."""
    masks: dict[Node, int] = {}  # the words that a node has, as bits
    for number, (_, nodes) in enumerate(words):
        for node in nodes:
            masks[node] = masks.get(node, 0) | 1 << number
    sums = _Sums([weight for weight, _ in words])
    scores = {node: sums[mask] for node, mask in masks.items()}
    known = masks.copy()

    # The nearest step comes first, so that each word counts from the place where it is worth most.
    # A turn after the word is one step nearer to it than a turn before.
    onward = backward = list(masks.items())
    factor = 1.0
    for _ in range(_REACH):
        factor *= _STEP
        onward = [(node.after, mask) for node, mask in onward if node.after is not None]
        _reach(onward, factor, known, scores, sums)
        backward = [(node.before, mask) for node, mask in backward if node.before is not None]
        _reach(backward, factor * _STEP, known, scores, sums)
    return scores


def _reach(
    places: list[tuple[Node, int]],
    factor: float,
    known: dict[Node, int],
    scores: dict[Node, float],
    sums: _Sums,
) -> None:
    """Add the damped weights of the words that reach ``places`` and are not known there yet."""
    for node, mask in places:
        if node not in known:
            known[node] = mask
            scores[node] = factor * sums[mask]
        elif new := mask & ~known[node]:
            known[node] |= new
            scores[node] += factor * sums[new]


def _add_common(scores: dict[Node, float], words: list[_Weighed]) -> None:
    """Add words that do not spread, heaviest first."""
    words.sort(key=lambda pair: -pair[0])
    best = max(scores.values(), default=0.0)
    left = math.fsum(weight for weight, _ in words)
    for weight, nodes in words:
        # Entries that have only the words left stay under the floor, or far behind.
        enough = len(nodes) > _ENOUGH and _count_from(left, scores) >= _ENOUGH
        if left >= _FLOOR * best and not enough:
            for node in nodes:
                if node.key:
                    scores[node] = scores.get(node, 0.0) + weight
        else:
            for node in nodes:
                if node in scores:
                    scores[node] += weight
        left -= weight


def _count_from(least: float, scores: dict[Node, float]) -> int:
    return sum([score >= least for score in scores.values()])


def _stems_of(query: str) -> dict[str, float]:
    """The stems of a question, each with a factor: 1, but less for ``c#`` and ``c``."""
    weights = query_weights(query)
    words = [word for word in weights if word not in STOP_WORDS] or list(weights)
    whole = max(weights.values(), default=1)
    factors: dict[str, float] = {}
    for word in words:
        own = stem(word)
        factors[own] = max(factors.get(own, 0.0), weights[word] / whole)
    return factors


def _length_factor(letters: int) -> float:
    if letters < len(_LENGTH_FACTORS):
        return _LENGTH_FACTORS[letters]
    return math.pow(_SHORT / letters, _LENGTH_POWER)


def _factor(node: Node, named: set[Speaker]) -> float:
    """The factor by which length and speaker reduce the score of an entry."""
    if named and node.speaker is not None and node.speaker not in named:
        return _OTHERS * node.length_factor
    return node.length_factor
