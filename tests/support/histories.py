"""Histories of calls, made to a memory and to the plain model of it, which must always agree.

``CALLS`` has every call, ``VALUES`` what its arguments are drawn from. The state machine of the
tests draws from them in its own way, ``random_history`` by a seed.
"""

from __future__ import annotations

import functools
import inspect
import math
import random
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

from sentinel_memory import (
    Compaction,
    Context,
    Entry,
    IgnoredValueWarning,
    LoadResult,
    Memory,
    MemoryStore,
    Remembered,
)
from support.agreement import (
    Asked,
    Disagreement,
    agree,
    agree_on_context,
    agree_on_documents,
    agree_on_entries,
    agree_on_entry,
    agree_on_explanation,
    agree_on_stats,
    compacted,
    keys,
)
from support.clocks import FakeClock
from support.drawn import KEYS, QUERIES, VALUES
from support.items import Compacted, Item
from support.model import PlainMemory
from support.plain_ranking import Packed

_Call = TypeVar("_Call", bound=Callable[..., None])

CALLS: Final[dict[str, Callable[..., None]]] = {}
"""The calls of a history by name, each a method of ``History``."""


def call(method: _Call) -> _Call:
    """Put a method into ``CALLS``."""
    CALLS[method.__name__] = method
    return method


@functools.cache
def arguments_of(method: Callable[..., None]) -> list[str]:
    """The names of the arguments that are to be drawn."""
    return [name for name in inspect.signature(method).parameters if name != "self"]


class History:
    """One memory beside its model: each call is made to both, and must come out the same."""

    memory: Memory
    model: PlainMemory

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore()
        self.options: dict[str, Any] = {}  # of every memory of this history
        self.reports: list[Compaction] = []
        self.gone: list[tuple[Entry, Item]] = []  # what left, and may be put back
        self.packed: tuple[Context, Packed] | None = None  # by an earlier call
        self.made: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.last: tuple[str, Mapping[str, Any]] = ("start", {})  # call and its arguments

    def start(
        self,
        limit: Any,
        limits: Any,
        window: Any,
        half_life: Any,
        data_chars: Any,
        autosave: bool,
    ) -> None:
        """Make the memory and the model; the first call."""
        self.options = {
            "recency_window": window,
            "half_life": half_life,
            "data_chars": data_chars,
            "autosave": autosave,
        }
        self.memory, self.model = self.both(
            lambda: self.new_memory(limit, limits),
            lambda: PlainMemory(limit=limit, limits=limits, **self.options),
        )
        self.check()

    def new_memory(self, limit: Any, limits: Any) -> Memory:
        return Memory(
            limit=limit,
            limits=limits,
            store=self.store,
            on_evict=self.reports.append,
            clock=self.clock,
            **self.options,
        )

    @property
    def now(self) -> int:
        return math.floor(self.clock.now * 1000)

    # How one call is made to both

    def both(self, real: Callable[[], Any], plain: Callable[[], Any]) -> tuple[Any, Any]:
        """What both calls return; ``Refused`` if both raise the same kind of error.

        A number that is ignored is warned of by its name, at the line of the call.
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            got, error = outcome(real)
        expected, expected_error = outcome(plain)
        if type(error) is not type(expected_error):
            raise Disagreement("what is raised", error, expected_error)
        model = expected if isinstance(expected, PlainMemory) else self.model
        ignored, model.options.ignored = sorted(model.options.ignored), []
        if error is not None:
            raise Refused from error
        for warning in caught:
            agree("the warning", warning.category.__name__, IgnoredValueWarning.__name__)
            agree("the file of the warning", warning.filename, __file__)
        names = [str(warning.message).split()[0].split("[")[0] for warning in caught]
        agree("the ignored numbers", sorted(names), ignored)
        return got, expected

    def make(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Make the call of that name, and compare everything that can be looked at."""
        self.made[name] += 1
        self.last = (name, arguments)
        try:
            CALLS[name](self, **arguments)
        except Refused:
            self.refused[name] += 1  # the model refuses before it changes, so all is as it was
        self.check()

    def agree_on_remembered(
        self, done: Remembered, expected: tuple[Item, Compacted | None]
    ) -> None:
        item, removed = expected
        agree_on_entry("the entry", done.entry, item)
        agree("whether it was kept", done.kept, item in self.model.items)
        self.agree_on_gone(done.compaction, removed)

    def agree_on_gone(self, done: Compaction | None, expected: Compacted | None) -> None:
        agree("the compaction", compacted(done), compacted(expected))
        if done is not None and expected is not None:
            self.gone += zip(done.evicted, expected.evicted, strict=True)
            self.gone += zip(done.expired, expected.expired, strict=True)

    # The calls that change something

    @call
    def remember(
        self, key: str, data: Any, importance: Any, ttl: Any, pinned: Any, meta: Any
    ) -> None:
        known = {"importance": importance, "ttl": ttl, "pinned": pinned, "meta": meta}
        done, expected = self.both(
            lambda: self.memory.remember(key, data, **known),
            lambda: self.model.remember(self.now, key, data, **known),
        )
        self.agree_on_remembered(done, expected)

    @call
    def repeat(self, whose: Any) -> None:
        """Equal data again, as far as there is any."""
        key = self.key_of(whose)
        data = self.memory.get(key, "tea")
        done, expected = self.both(
            lambda: self.memory.remember(key, data),
            lambda: self.model.remember(self.now, key, data),
        )
        self.agree_on_remembered(done, expected)

    @call
    def add(self, data: Any, kind: str, importance: Any, ttl: Any, pinned: Any, meta: Any) -> None:
        known = {"importance": importance, "ttl": ttl, "pinned": pinned, "meta": meta}
        done, expected = self.both(
            lambda: self.memory.add(data, kind=kind, **known),
            lambda: self.model.add(self.now, data, kind, **known),
        )
        self.agree_on_remembered(done, expected)

    @call
    def update(self, whose: Any, importance: Any, new_ttl: Any, pinned: Any, meta: Any) -> None:
        key = self.key_of(whose)
        known = {"importance": importance, "ttl": new_ttl, "pinned": pinned, "meta": meta}
        got, expected = self.both(
            lambda: self.memory.update(key, **known),
            lambda: self.model.update(self.now, key, **known),
        )
        agree_on_entry("the updated entry", got, expected)

    @call
    def reinforce(self, whose: Any, times: int) -> None:
        key = self.key_of(whose)
        for _ in range(times):
            got, expected = self.memory.reinforce(key), self.model.reinforce(self.now, key)
            agree_on_entry("the reinforced entry", got, expected)

    @call
    def demote(self, whose: Any, times: int) -> None:
        key = self.key_of(whose)
        for _ in range(times):
            got, expected = self.memory.demote(key), self.model.demote(self.now, key)
            agree_on_entry("the demoted entry", got, expected)

    @call
    def forget(self, whose: Any) -> None:
        key = self.key_of(whose)
        entry, item = self.memory.entry(key), self.model.find(key, self.now)
        if entry is not None and item is not None:
            self.gone.append((entry, item))
        agree("what forget says", self.memory.forget(key), self.model.forget(self.now, key))

    def key_of(self, whose: str | int) -> str:
        """A key, or that of the live entry in some place, if there is any."""
        if isinstance(whose, str):
            return whose
        live = self.model.live(self.now)
        return live[whose % len(live)].key if live else KEYS[whose]

    @call
    def prune(self, filter: Any) -> None:
        got, expected = self.both(
            lambda: self.memory.prune(filter), lambda: self.model.prune(self.now, filter)
        )
        self.agree_on_pruned(got, expected)

    @call
    def prune_while_it_changes(self, key: str, data: Any) -> None:
        """The predicate remembers something; what it changed stays."""

        def where(remember: Callable[[], object]) -> Callable[[Any], bool]:
            asked: list[Any] = []

            def is_no_chat(entry: Any) -> bool:
                if not asked:
                    remember()
                asked.append(entry)
                return bool(entry.kind != "chat")

            return is_no_chat

        got, expected = self.both(
            lambda: self.memory.prune(where(lambda: self.memory.remember(key, data))),
            lambda: self.model.prune(
                self.now, where(lambda: self.model.remember(self.now, key, data))
            ),
        )
        self.agree_on_pruned(got, expected)

    def agree_on_pruned(self, got: Sequence[Entry], expected: Sequence[Item]) -> None:
        agree("what is pruned", keys(got), keys(expected))
        self.gone += zip(got, expected, strict=True)

    @call
    def put_back(self, places: int) -> None:
        """The last ones that left, some of them perhaps twice."""
        given = self.gone[-places:]
        got, expected = self.both(
            lambda: self.memory.put_back([entry for entry, _ in given]),
            lambda: self.model.put_back(self.now, [item for _, item in given]),
        )
        agree("what is put back", keys(got), keys(expected))

    @call
    def compact(self) -> None:
        done, expected = self.memory.compact(), self.model.compact(self.now)
        self.agree_on_gone(done, expected)

    @call
    def clear(self) -> None:
        self.memory.clear()
        self.model.clear(self.now)

    @call
    def tick(self, seconds: float) -> None:
        self.clock.tick(seconds)

    # Saving, loading, transactions

    @call
    def save(self) -> None:
        self.memory.save()
        self.model.save(self.now)

    @call
    def load(self) -> None:
        result, (loaded, removed) = self.memory.load(), self.model.load(self.now)
        self.agree_on_loaded(result, loaded, removed)

    def agree_on_loaded(self, result: LoadResult, loaded: int, removed: Compacted | None) -> None:
        agree("loaded, dropped", [result.loaded, result.dropped], [loaded, 0])
        agree("whether it is last_load", self.memory.last_load == result, True)
        self.agree_on_gone(result.compaction, removed)

    @call
    def reopen(self, limit: Any, limits: Any) -> None:
        """A new memory on the same store, with other limits or those of the document."""

        def plain() -> PlainMemory:
            model = PlainMemory(limit=limit, limits=limits, **self.options)
            model.saved = self.model.saved
            model.load(self.now)
            model.reports = self.model.reports
            return model

        self.memory, self.model = self.both(lambda: self.new_memory(limit, limits), plain)

    @call
    def restore(self, whose: Any, later: Any, said: Any) -> None:
        """The same document with other limits, and an entry with fields that nobody here knows."""
        key, document = self.key_of(whose), self.model.document(self.now)
        items = tuple(
            replace(item, unknown={**item.unknown, **later}) if item.key == key else item
            for item in document.items
        )
        document = document._replace(items=items, **said)
        result = self.memory.restore(document.as_state())
        loaded, removed = self.model.restore(self.now, document)
        self.agree_on_loaded(result, loaded, removed)

    @call
    def transact(self, seed: int, undone: bool) -> None:
        """Some calls in one transaction, which is undone if it raises at its end."""

        def change(_: Memory) -> None:
            self.check()
            self.make_some_calls(seed, undone)

        self.model.begin(self.now)
        try:
            self.memory.transact(change)
        except Undone:
            self.model.undo()
        else:
            self.model.commit(self.now)

    @call
    def batch(self, seed: int, undone: bool) -> None:
        """Some calls in one batch; it undoes nothing, whether it raises or not."""
        with suppress(Undone), self.model.batch(lambda: self.now), self.memory.batch():
            self.make_some_calls(seed, undone)

    def make_some_calls(self, seed: int, undone: bool) -> None:
        chance = random.Random(seed)
        for _ in range(chance.randint(1, 5)):
            make_random_call(self, chance, IN_A_BLOCK)
        if undone:
            raise Undone

    # The calls that look

    @call
    def recall(self, query: Any, most: Any, where: Any, half_life: Any) -> None:
        asked, expected_asked = Asked(where), Asked(where)
        got, expected = self.both(
            lambda: self.memory.recall(query, limit=most, where=asked.where, half_life=half_life),
            lambda: self.model.recall(self.now, query, most, expected_asked.where, half_life),
        )
        matches = [[one.key, one.relevance, one.score] for one in got]
        agree("the matches", matches, [[one.item.key, *one[1:]] for one in expected])
        agree("who is asked by recall", asked.keys, expected_asked.keys)

    @call
    def get_recent(self, n: Any, where: Any) -> None:
        asked, expected_asked = Asked(where), Asked(where)
        got, expected = self.both(
            lambda: self.memory.get_recent(n, where=asked.where),
            lambda: self.model.get_recent(self.now, n, expected_asked.where),
        )
        agree("the newest", keys(got), keys(expected))
        agree("who is asked by get_recent", asked.keys, expected_asked.keys)

    @call
    def get_context(
        self,
        budget: float,
        maybe_query: Any,
        tokenizer: Any,
        separator: str,
        header: str,
        where: Any,
        half_life: Any,
    ) -> None:
        asked, expected_asked = Asked(where), Asked(where)
        options = {
            "query": maybe_query,
            "tokenizer": tokenizer,
            "separator": separator,
            "header": header,
            "half_life": half_life,
        }
        got, expected = self.both(
            lambda: self.memory.get_context(budget, where=asked.where, **options),
            lambda: self.model.get_context(self.now, budget, where=expected_asked.where, **options),
        )
        agree_on_context(got, expected)
        agree("who is asked by get_context", asked.keys, expected_asked.keys)
        self.packed = got, expected

    # After every call

    def check(self) -> None:
        """Every read path agrees; so do a context made before the call, and one made after it."""
        memory, model, now, number = self.memory, self.model, self.now, self.made.total()
        agree_on_entries(memory, model, now, KEYS[number % 3 :: 3])
        agree_on_stats(memory, model, now)
        agree_on_documents(memory, model, now, self.store, self.reports)
        for entry, item in self.gone[-2:]:
            there = model.find(item.key, now) is not None
            agree("whether an entry that left is there", entry in memory, there)
        if self.packed is not None:
            agree_on_explanation(*self.packed)
        budget, query = (9, 40, 100)[number % 3], (None, *QUERIES)[number % 6]
        self.packed = (
            memory.get_context(budget, query=query),
            model.get_context(now, budget, query=query),
        )
        agree_on_context(*self.packed)


class Refused(Exception):
    """Both the memory and the model refused a call, with the same kind of error."""


class Undone(Exception):
    """A transaction is to be undone."""


def outcome(make: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What a call returns, or what it raises."""
    try:
        return make(), None
    except Exception as error:
        return None, error


OFTEN: Final = {"remember": 12, "add": 6, "repeat": 5, "put_back": 5, "tick": 5, "clear": 1}
ANYWHERE: Final = tuple(name for name in CALLS for _ in range(OFTEN.get(name, 2)))
"""Names to draw a call from, the frequent ones several times."""

IN_A_BLOCK: Final = tuple(
    name for name in ANYWHERE if name not in ("save", "load", "reopen", "transact", "batch")
)
"""The same for a call in a transaction or a batch."""


def random_arguments(method: Callable[..., None], chance: random.Random) -> dict[str, Any]:
    return {name: chance.choice(VALUES[name]) for name in arguments_of(method)}


def make_random_call(history: History, chance: random.Random, names: Sequence[str]) -> None:
    name = chance.choice(names)
    history.make(name, random_arguments(CALLS[name], chance))


class Outcome(NamedTuple):
    """One random history: its calls by name, those that both refused, and how it ended.

    ``last`` is the name of the last call, after which there may have been a ``difference``.
    """

    made: Counter[str]
    refused: Counter[str]
    last: str
    difference: str | None


def random_history(seed: int, most: int = 60) -> Outcome:
    """From 30 to 60 calls with arguments that are drawn with this seed, up to a difference.

    Of a history with more than ``most`` calls, so many are made, beside those inside of others.
    """
    chance = random.Random(seed)
    history, difference = History(), None
    try:
        history.start(**random_arguments(History.start, chance))
        for _ in range(min(most, chance.randint(30, 60))):
            make_random_call(history, chance, ANYWHERE)
    except Exception as error:  # a disagreement, or what no call may raise
        name, arguments = history.last
        given = ", ".join(f"{one}={value!r}" for one, value in arguments.items())
        difference = f"history {seed}, call {history.made.total()}, {name}({given}): {error!r}"
    return Outcome(history.made, history.refused, history.last[0], difference)
