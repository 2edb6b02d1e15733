"""Evidence that an answer used a memory, and feedback for what was used.

Text against text, without a model. A wrong credit entrenches an entry and a missed one costs
0.05 of worth, so that what is doubtful is not used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from .._basics.checks import check_str
from ..entry import Entry, same_data
from ..memory import Memory
from ._judgement import Evidence, judged
from ._tables import AVOIDANCE
from ._texts import Text, is_spelt_strangely

__all__ = ["Evidence", "Used", "evidence", "reinforce_used"]

_AVOIDED: Final = frozenset(sign[:3] for sign in AVOIDANCE)


class Used(NamedTuple):
    """The verdict on one memory: its ``key`` and the ``evidence``.

    ``evidence`` is ``None`` if the entry has left or has other data by now than were shown.
    """

    key: str
    evidence: Evidence | None


def evidence(
    text: str, answer: str, *, question: str = "", key: str = "", others: Iterable[str] = ()
) -> Evidence:
    """The evidence that ``answer`` used the memory ``text``.

    Counted is what both have beyond the words of the ``question`` and of the ``others`` that were
    shown beside it; words of the ``key`` help a text that is found whole. Another number in
    a number's place, and a negation that only one of the two has, are vetoes. No verdict says that
    a memory was useless: an answer may use it without words.

    Raises ``TypeError`` for what is not a ``str``.

    >>> evidence("allergic to shellfish", "You are allergic to shellfish, so no paella.").used
    True
    >>> evidence("the build needs Java 17", "The build needs Java 21.").why
    'another number'
    """
    for name, value in (("text", text), ("answer", answer), ("question", question), ("key", key)):
        check_str(name, value)
    if isinstance(others, str):
        raise TypeError("others must be a collection of texts, not one str")
    shown = list(others)
    for other in shown:
        check_str("one of others", other)
    strange = any(map(is_spelt_strangely, (text, answer)))
    memory, named = Text(text, strange=strange), Text(key, strange=strange)
    about = _beginnings(memory, named)
    return judged(
        memory,
        Text(answer, strange=strange, about=about),
        asked=Text(question, strange=strange, about=about),
        key=named,
        common={
            stem for other in shown for stem in Text(other, strange=strange, about=about).places
        },
    )


def _beginnings(*texts: Text) -> frozenset[str]:
    return frozenset(start for text in texts for start in text.beginnings()) | _AVOIDED


def reinforce_used(
    memory: Memory, entries: Iterable[Entry], answer: str, *, question: str = ""
) -> list[Used]:
    """Reinforce each of the ``entries`` that a prompt held and the ``answer`` shows were used.

    ``entries`` are those of a ``Prompt`` or ``Context``, or matches, as they were shown. An entry
    is judged once, and credited only if its data is still the same: the verdicts are returned in
    the order of the entries. Numbers and strings of data count, its mapping keys as words of the
    key. Two entries of equal data are told apart by nothing, so that neither is credited. With
    autosave all is saved once.

    Raises ``TypeError`` for what is not an entry or not a ``str``, before anything changes.

    >>> memory = Memory()
    >>> _ = memory.remember("guest:allergy", "shellfish"), memory.remember("guest:name", "Radka")
    >>> context = memory.get_context(100)
    >>> verdicts = reinforce_used(memory, context.entries, "Good evening, Radka!")
    >>> [used.key for used in verdicts if used.evidence and used.evidence.used]
    ['guest:name']
    >>> memory.entry("guest:name").feedback, memory.entry("guest:allergy").feedback
    (1, 0)
    """
    check_str("answer", answer)
    check_str("question", question)
    shown: dict[str, Entry] = {}
    for entry in entries:
        if not isinstance(entry, Entry):
            raise TypeError(f"entries must be entries of a memory, not {type(entry).__name__}")
        shown.setdefault(entry.key, entry)
    verdicts = _verdicts(list(shown.values()), answer, question)
    found = []
    with memory.batch():
        for entry, verdict in zip(shown.values(), verdicts, strict=True):
            current = memory.entry(entry.key)
            if current is None or not _same_data(current, entry):
                found.append(Used(entry.key, None))
                continue
            if verdict.used:
                credited = memory.reinforce(entry.key)
                if credited is not None and not _same_data(credited, entry):
                    memory.demote(entry.key)  # overwritten since, in another thread
            found.append(Used(entry.key, verdict))
    return found


def _verdicts(entries: list[Entry], answer: str, question: str) -> list[Evidence]:
    """The evidence for each of the entries that were shown together."""
    parts = [_parts(entry) for entry in entries]
    strange = any(map(is_spelt_strangely, (answer, *(text for text, _ in parts))))
    texts = [Text(text, strange=strange) for text, _ in parts]
    counts = Counter(stem for text in texts for stem in text.places)
    said, asked = Text(answer, strange=strange), Text(question, strange=strange)
    return [
        judged(
            text,
            said,
            asked=asked,
            key=Text(key, strange=strange),
            common={stem for stem in text.places if counts[stem] > 1},
        )
        for text, (_, key) in zip(texts, parts, strict=True)
    ]


def _parts(entry: Entry) -> tuple[str, str]:
    """The values of an entry's data as text, and its key with the mapping keys of the data."""
    values: list[str] = []
    names = [entry.key]
    for is_name, text in _strings(entry.data):
        (names if is_name else values).append(text)
    return "\n".join(values), "\n".join(names)


def _strings(data: Any) -> Iterator[tuple[bool, str]]:
    if isinstance(data, str):
        yield False, data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield True, key
            yield from _strings(value)
    elif isinstance(data, list):
        for value in data:
            yield from _strings(value)
    elif data is not None and not isinstance(data, bool):
        yield False, repr(data)


def _same_data(one: Entry, other: Entry) -> bool:
    return same_data(one, other.line, other.is_json)
