"""Vectors of texts: asking an embedder for them, and keeping them while their entries live.

An embedder takes long, so it is called outside the lock of the memory, while entries come and go.
Therefore each text has a holder of its own. A vector is put into the holder from which its text was
taken, never under a key: if the entry was forgotten or replaced meanwhile, nothing refers to that
holder any more, and the vector is dropped with it. So no lock is needed, and none can be left
behind by a fork.
"""

from __future__ import annotations

import math
import operator
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

from .._basics.numbers import warn_ignored, whole

__all__ = ["BATCH", "Embed", "Vector", "Vectors", "batch_size", "dot", "unit"]

Vector: TypeAlias = "array[float]"
# The result of the embedder for one text: its vector, or the reason why it has none.
_Answer: TypeAlias = "array[float] | ValueError"
Embed: TypeAlias = Callable[[list[str]], Iterable[Iterable[float]]]

# Texts per call. More is faster; providers refuse more than 512 to 2,048.
BATCH: Final = 512
# Questions that were prepared and not searched yet: as many as threads may ask at the same time.
_MOST_PREPARED: Final = 64
# Failures in a row after which the embedder gets the question again, which it had accepted: a
# provider that went away must not be called for each of thousands of texts.
_FAILURES: Final = 16
_MOST_NAMED: Final = 20  # keys in a warning


def _sum_of_products(first: Iterable[float], second: Iterable[float]) -> float:
    return sum(map(operator.mul, first, second), 0.0)


# Python 3.12 and later have a function for it, written in C.
dot: Final[Callable[[Iterable[float], Iterable[float]], float]] = getattr(
    math, "sumprod", _sum_of_products
)


class _Holder:
    """The text of one entry until it is embedded, then its vector; neither if it was refused."""

    __slots__ = ("claimed", "text", "vector")

    def __init__(self, text: str) -> None:
        self.text: str | None = text
        self.vector: Vector | None = None
        self.claimed = False  # by a thread that is embedding it


class _AnswerError(Exception):
    """An embedder that answers, but not with vectors: ``cause`` is raised to the caller."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(cause)
        self.cause = cause


class Vectors:
    """The vectors of the texts of entries, by key.

    ``add``, ``discard``, ``clear`` and ``cosines`` are called under the memory's lock, ``prepare``
    by any thread at any time.
    """

    def __init__(
        self,
        embed: Embed,
        embed_query: Embed | None,
        batch: int,
        shown: Callable[[str], str] = str,
    ) -> None:
        self._embed = embed
        self._embed_query = embed if embed_query is None else embed_query
        self._batch = batch
        self._shown = shown  # makes the text for the embedder of the text of an entry
        self._numbers = count()
        # The vector of each prepared question, or None if there was no entry to compare it with.
        self._prepared: dict[int, tuple[str, Vector | None]] = {}
        self._holders: dict[str, _Holder] = {}

    def add(self, key: str, text: str) -> None:
        """Add a text, to be embedded before the next question."""
        self._holders[key] = _Holder(text)

    def discard(self, key: str) -> None:
        """Forget the text and the vector of that key, also while it is being embedded."""
        self._holders.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._holders = {}
        self._prepared = {}

    def prepare(self, query: str) -> None:
        """Embed the waiting texts and the question, whose vector the next search uses.

        Raises the exception of the embedder for the question, or for everything.
        """
        if not query.strip():
            return
        if not self._holders:
            self._keep(query, None)
            return
        ask = partial(self._asked, query)
        asked = _Preparation(self._embed_texts, ask, self._batch).run(self._holders.copy())
        self._keep(query, asked.vector)
        if asked.refused:
            warnings.warn(_told(asked.refused), RuntimeWarning, stacklevel=3)

    def cosines(self, query: str) -> Iterator[tuple[str, float]]:
        """The cosine of the question and of each text that has a vector.

        If the question was prepared, the embedder is not asked: entries that came since then, or
        that another thread is still embedding, are left out this time.
        """
        if not query.strip():
            return
        found, asked = self._take_prepared(query)
        if not found and self._holders:
            self.prepare(query)
            _, asked = self._take_prepared(query)
        if asked is None:
            return
        numbers = list(asked)
        for key, holder in self._holders.items():
            vector = holder.vector
            if vector is not None:
                if len(vector) != len(asked):
                    raise _wrong_sizes({len(vector), len(asked)})
                yield key, dot(numbers, vector)

    def _keep(self, query: str, vector: Vector | None) -> None:
        self._prepared[next(self._numbers)] = query, vector
        for number in list(self._prepared)[:-_MOST_PREPARED]:
            self._prepared.pop(number, None)

    def _take_prepared(self, query: str) -> tuple[bool, Vector | None]:
        """Whether the question was prepared, and its vector.

        A vector takes precedence over ``None``, which another thread may have left for the same
        question.
        """
        found = False
        for number, (text, vector) in self._prepared.copy().items():
            if text == query:
                self._prepared.pop(number, None)
                found = True
                if vector is not None:
                    return found, vector
        return found, None

    def _embed_texts(self, texts: list[str]) -> list[_Answer]:
        answers = _answered(self._embed, [self._shown(text) for text in texts])
        sizes = {len(answer) for answer in answers if isinstance(answer, array)}
        holders = self._holders.copy().values()
        known = next((holder.vector for holder in holders if holder.vector is not None), None)
        if known is not None:
            sizes.add(len(known))
        if len(sizes) > 1:
            raise _AnswerError(_wrong_sizes(sizes))
        return answers

    def _asked(self, query: str) -> Vector:
        answer = _answered(self._embed_query, [self._shown(query)])[0]
        if not isinstance(answer, array):
            raise _AnswerError(answer)
        return answer


class _Asked(NamedTuple):
    """The vector of a question, and the texts that the embedder refused: their keys, and why."""

    vector: Vector
    refused: dict[str, str]


class _Preparation:
    """The waiting texts, embedded in batches; a batch that fails is halved to find the culprit."""

    def __init__(
        self, embed: Callable[[list[str]], list[_Answer]], ask: Callable[[], Vector], batch: int
    ) -> None:
        self._embed, self._ask, self._batch = embed, ask, batch
        self._vector: Vector | None = None  # of the question, once it was asked
        self._failures = 0  # in a row
        self._refused: dict[str, str] = {}

    def run(self, holders: dict[str, _Holder]) -> _Asked:
        """Embed the waiting texts of ``holders``, and the question."""
        mine: dict[str, _Holder] = {}
        try:
            # Texts that other threads are embedding come last, in case those fail.
            for claimed in (False, True):
                while batch := self._next(holders, mine, claimed):
                    self._take(batch)
            return _Asked(self._question(), self._refused)
        except _AnswerError as error:
            raise error.cause from error.cause.__cause__
        finally:
            for holder in mine.values():
                holder.claimed = False

    def _next(
        self, holders: dict[str, _Holder], mine: dict[str, _Holder], claimed: bool
    ) -> dict[str, _Holder]:
        """The next batch of holders that wait, claimed by nobody else unless ``claimed``."""
        batch: dict[str, _Holder] = {}
        for key, holder in holders.items():
            if len(batch) == self._batch:
                break
            if holder.text is not None and key not in mine and (claimed or not holder.claimed):
                mine[key] = batch[key] = holder
                holder.claimed = True
        return batch

    def _take(self, batch: dict[str, _Holder]) -> None:
        texts = {key: holder.text for key, holder in batch.items()}
        waiting = {key: text for key, text in texts.items() if text is not None}
        if not waiting:
            return  # another thread was faster
        try:
            answers = self._embed(list(waiting.values()))
        except _AnswerError:
            raise
        except Exception as error:
            self._failed(error)
            if len(waiting) == 1:
                self._refuse(batch, type(error).__name__)
            else:
                keys = list(waiting)
                for part in (keys[: len(keys) // 2], keys[len(keys) // 2 :]):
                    self._take({key: batch[key] for key in part})
            return
        self._failures = 0
        for key, answer in zip(waiting, answers, strict=True):
            if isinstance(answer, array):
                batch[key].vector = answer
                batch[key].text = None
            else:
                # If the question gets the same, this raises: the embedder does not work at all.
                self._question()
                self._refuse({key: batch[key]}, str(answer))

    def _question(self) -> Vector:
        if self._vector is None:
            self._vector = self._ask()
        return self._vector

    def _failed(self, error: Exception) -> None:
        """Find out with the question whether the embedder works at all; raise if it does not."""
        self._failures += 1
        if self._failures > _FAILURES:
            self._vector = None
            self._failures = 0
        try:
            self._question()
        except Exception:
            raise error from None

    def _refuse(self, batch: dict[str, _Holder], why: str) -> None:
        for key, holder in batch.items():
            holder.text = None
            self._refused[key] = why


def _told(refused: Mapping[str, str]) -> str:
    """A warning with keys, never with a text."""
    keys = list(refused)
    more = len(keys) - _MOST_NAMED
    named = ", ".join(map(repr, keys[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")
    reasons = ", ".join(sorted(set(refused.values())))
    return (
        f"embed refused {len(keys)} text(s) ({reasons}), so they are not found by meaning until "
        f"they are remembered again: {named}"
    )


def _answered(embed: Embed, texts: list[str]) -> list[_Answer]:
    """A vector of length 1 for each text, or why there is none for it."""
    given = embed(texts)
    try:
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise TypeError(f"embed must return a vector for each text, not {type(given).__name__}")
        answers = [_answer(vector) for vector in given]
        if len(answers) != len(texts):
            raise ValueError(f"embed returned {len(answers)} vectors for {len(texts)} texts")
    except (TypeError, ValueError) as error:
        raise _AnswerError(error) from None
    return answers


def _answer(given: Any) -> _Answer:
    try:
        return unit(given)
    except ValueError as error:
        return error


def unit(given: Any) -> Vector:
    """A vector of length 1 in the direction of ``given``; zeros stay zeros.

    Raises ``TypeError`` for anything else than numbers, ``ValueError`` for none of them, or one
    that is not finite.
    """
    if isinstance(given, str | bytes | bytearray | Mapping):
        raise TypeError(f"embed must return vectors of numbers, not of {type(given).__name__}")
    try:
        vector = array("d", given)
    except TypeError as error:
        raise TypeError(f"embed must return vectors of numbers: {error}") from error
    except OverflowError as error:
        raise ValueError("embed returned a number that no float can hold") from error
    if not vector:
        raise ValueError("embed returned a vector without numbers")
    if not all(map(math.isfinite, vector)):
        raise ValueError("embed returned a number that is not finite")
    largest = max(map(abs, vector))
    if not largest:
        return vector
    scaled = [number / largest for number in vector]  # so that no square overflows
    length = math.sqrt(dot(scaled, scaled))
    return array(_typecode(given), [number / length for number in scaled])


def _typecode(given: Any) -> str:
    """The kind of the numbers that were given: 32 bits stay 32 bits, in half the room."""
    if isinstance(given, array):
        return "f" if given.typecode == "f" else "d"
    kind = getattr(getattr(given, "dtype", None), "name", "")
    return "f" if kind in ("float16", "float32", "bfloat16") else "d"


def _wrong_sizes(sizes: set[int]) -> ValueError:
    return ValueError(f"embed must return vectors of one size, not of {sorted(sizes)}")


def batch_size(given: object) -> int:
    """The most texts a call; the default, with a warning, for what is not a number from 1 up."""
    size = whole(given, 0, least=1)
    if size:
        return size
    warn_ignored("batch", given, "a whole number of at least 1", f"the default, {BATCH},")
    return BATCH
