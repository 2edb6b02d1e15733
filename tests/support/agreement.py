"""How what a memory gives is compared with what the plain model gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from sentinel_memory import Compaction, Context, Entry, Memory, MemoryStore
from support.items import Compacted, Item
from support.model import PlainMemory
from support.plain_ranking import Packed


class Disagreement(AssertionError):
    """The memory and the model differ in something."""

    def __init__(self, what: str, got: object, expected: object) -> None:
        super().__init__(f"{what}: the memory has {got!r}, the model {expected!r}")


def agree(what: str, got: Any, expected: Any) -> None:
    """Refuse a difference of plain data, also one that ``==`` does not see: ``1`` and ``True``."""
    if repr(got) != repr(expected):
        raise Disagreement(what, got, expected)


def compacted(done: Compaction | Compacted | None) -> Any:
    """The keys that a compaction removed, the same of both sides."""
    return None if done is None else [keys(removed) for removed in done]


class Asked:
    """A predicate that notes whom it was asked about; a match with its score."""

    def __init__(self, where: Callable[[Any], object] | None) -> None:
        self.keys: list[Any] = []
        self.where = None if where is None else self.ask
        self._where = where

    def ask(self, one: Any) -> object:
        item = getattr(one, "item", one)
        self.keys.append([item.key, getattr(one, "score", None)])
        assert self._where is not None
        return self._where(item)


def keys(entries: Iterable[Any]) -> list[str]:
    return [one.key for one in entries]


def by_name(state: Mapping[str, Any] | None) -> list[tuple[str, Any]] | None:
    """A document as a list, whatever the order of its sections; what is in them keeps its order."""
    return None if state is None else sorted(state.items())


def agree_on_entry(what: str, got: Entry | None, expected: Item | None) -> None:
    agree(what, got and got.to_dict(), expected and expected.shown())


def agree_on_entries(memory: Memory, model: PlainMemory, now: int, asked: Sequence[str]) -> None:
    """All entries in their order, how many there are, and what there is under some keys."""
    live = model.live(now)
    shown = [item.shown() for item in live]
    agree("the entries, oldest first", [entry.to_dict() for entry in memory], shown)
    agree("the newest", keys(memory.get_recent(3)), keys(live[::-1][:3]))
    agree("the sizes", [len(memory), memory.size], [len(live), len(live)])
    for key in asked:
        item = model.find(key, now)
        agree_on_entry(f"the entry {key!r}", memory.entry(key), item)
        agree(f"whether there is {key!r}", [key in memory, memory.has(key)], [bool(item)] * 2)
        agree(f"the data of {key!r}", memory.get(key, "none"), item.data if item else "none")


def agree_on_stats(memory: Memory, model: PlainMemory, now: int) -> None:
    stats = memory.stats()
    agree("stats().kinds", by_name(stats.kinds), by_name(model.kinds(now)))
    agree(
        "size, stored, limit, cache",
        [stats.size, stats.stored, stats.limit, stats.cache],
        [len(model.live(now)), len(model.items), model.limit, 0],
    )
    agree(
        "the counters",
        [stats.compactions, stats.expired, stats.evicted],
        [model.compactions, model.expired, model.evicted],
    )


def agree_on_documents(
    memory: Memory,
    model: PlainMemory,
    now: int,
    store: MemoryStore,
    reports: Sequence[Compaction],
) -> None:
    """The document, what the store has, and what ``on_evict`` was told."""
    document, saved = model.document(now), model.saved
    agree("the document", by_name(memory.to_state()), by_name(document.as_state()))
    agree("what is saved", by_name(store.load()), by_name(saved and saved.as_state()))
    told = [compacted(report) for report in reports]
    agree("what on_evict is told", told, [compacted(report) for report in model.reports])


def agree_on_context(context: Context, packed: Packed) -> None:
    agree("the text of a context", context.text, packed.text)
    agree("its entries", keys(context.entries), keys(packed.items))
    agree("its tokens", context.tokens, packed.tokens)
    left = [context.omitted, list(context.left_out)]
    agree("who is left out", left, [len(packed.left_out), packed.left_out])
    agree_on_explanation(context, packed)


def agree_on_explanation(context: Context, packed: Packed) -> None:
    """A row for each, best first, with the right reason; exactly what was taken is named."""
    explanation = context.explain()
    names = ("key", "why", "relevance", "score", "retention", "tokens", "taken")
    rows = [[row.entry.key, *row[1:]] for row in explanation]
    expected = [[row.item.key, *row[1:], tokens, taken] for row, tokens, taken in packed.rows]
    for got, wanted in zip_longest(rows, expected):
        agree(
            "a row of an explanation",
            got and dict(zip(names, got, strict=True)),
            wanted and dict(zip(names, wanted, strict=True)),
        )
    named = keys(row.entry for row in explanation if row.taken)
    agree("what an explanation says was taken", sorted(named), sorted(keys(context.entries)))
