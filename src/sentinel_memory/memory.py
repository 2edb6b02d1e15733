"""``Memory``, the public face: it checks the arguments of each call and passes it to its parts.

The contents, how they change, and when something is evicted: ``_core/contents.py``. Locks, saving
and transactions: ``_core/saving.py``. The order of matches and of a context: ``ranking.py``.
Filling a token budget: ``context``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from itertools import islice
from os import PathLike
from types import EllipsisType
from typing import Any, Final, Never, NoReturn, Self, TypeAlias, TypeVar, Unpack

from ._basics.checks import check_callable, check_methods, check_str
from ._basics.numbers import optional_count, whole_option
from ._basics.times import Clock, duration_option, system_clock
from ._core.changes import Change
from ._core.contents import Contents
from ._core.options import (
    GivenFields,
    OpenOptions,
    check_kind,
    check_length,
    check_parts,
    half_life_option,
    limits_option,
    plain_entries,
    refuse_positional,
)
from ._core.saving import Saver, SectionDoor
from .cache import Cache
from .context.estimate import estimate_tokens
from .context.pack import Context, Counts, Format, Tokenizer, pack, plain_line
from .document import Attachment, Section
from .entry import MOST_FEEDBACK, Entry, Match, check_key, checked_line, kind_of
from .ranking import Fading, Hit, Ranking, best_matches, hits
from .recall.protocol import RecallIndex
from .recall.several import questions
from .recall.words import WordIndex
from .results import Compaction, LoadResult, Remembered, Stats
from .stores import open_store
from .stores.protocol import Store
from .working import Working

__all__ = ["Memory"]

_T = TypeVar("_T")
_Duration: TypeAlias = float | timedelta | None
_NAME_THE_OPTIONS: Final = (
    "Memory takes its options by name, as in Memory(limit=500); to open a memory in a file, call"
    " Memory.open(path)"
)


class Memory:
    """A bounded memory: keeps what matters, forgets what does not, lets short-lived things expire.

    All options are keywords:

    - ``limit``: stored entries, a whole number of at least 1 (default: that of the loaded document;
      without one, 500 or the number of its entries if that is more)
    - ``limits``: the same for single kinds, a mapping as ``{"chat": 300}`` (default: those of the
      loaded document)
    - ``store``: a ``Store``, for this memory alone; loaded at once unless ``load=False``
    - ``autosave``: save after every change; needs a store
    - ``tokenizer``: ``str`` to number of tokens, for ``get_context`` (``estimate_tokens``)
    - ``recency_window``, ``cache_ttl``, ``working_ttl``: seconds or a ``timedelta``, more than 0
      (24 hours, 5 minutes, 1 hour)
    - ``half_life``: seconds or a ``timedelta`` after which a match has lost a quarter of its score;
      it never loses more than half (default, and ``math.inf``: nothing fades)
    - ``data_chars``: the longest data, in characters as JSON; longer data is refused (no limit)
    - ``on_evict``: a plain function, called with a ``Compaction`` after a call that evicted
      something, or removed what had expired, because of a limit (``remember``, ``add``,
      ``put_back``, ``transact``); what it raises reaches the caller and undoes nothing. If it
      remembers something in a full memory, it is called again, recursively
    - ``index``: a ``RecallIndex``, for this memory alone (``WordIndex()``)
    - ``clock``: gives epoch seconds (``time.time``)

    A number out of its range is ignored, with a warning, and the default is used. A memory is a
    context manager that saves what is unsaved; nothing needs closing. Every call is safe from any
    thread.

    Beside the entries there are ``memory.cache`` (a ``Cache``: any values for minutes, never saved)
    and ``memory.working`` (a ``Working``: the state of a task, saved with the entries).

    >>> memory = Memory(limit=5)
    >>> memory.remember("user:allergy", "peanuts", importance=1.0).kept
    True
    >>> memory.get_context(30, query="Any allergy?").text
    'user:allergy: peanuts'
    """

    def __init__(
        self,
        *wrong: Never,
        limit: int | float | None = None,
        limits: Mapping[str, int] | None = None,
        store: Store | None = None,
        autosave: bool = False,
        load: bool = True,
        tokenizer: Tokenizer | None = None,
        recency_window: _Duration = None,
        half_life: _Duration = None,
        cache_ttl: _Duration = None,
        working_ttl: _Duration = None,
        data_chars: int | float | None = None,
        on_evict: Callable[[Compaction], object] | None = None,
        index: RecallIndex | None = None,
        clock: Callable[[], float] = system_clock,
    ) -> None:
        refuse_positional(wrong, _NAME_THE_OPTIONS)
        check_parts(store, autosave, tokenizer, on_evict, index, clock)
        self._window: Final = duration_option(recency_window, "recency_window")
        self._half_life: Final = half_life_option(half_life)
        self._data_chars: Final = optional_count("data_chars", data_chars, "no limit")
        self._tokenizer: Final = estimate_tokens if tokenizer is None else tokenizer
        self._token_counts: Final = Counts()
        self._contents: Final = Contents(
            limit=optional_count("limit", limit, "that of the document, or 500,"),
            limits=limits_option(limits),
            window=self._window,
            index=WordIndex() if index is None else index,
        )
        self._saver: Final = Saver(
            self._contents, Clock(clock), store=store, autosave=autosave, on_evict=on_evict
        )
        lasts = duration_option(cache_ttl, "cache_ttl")
        self.cache: Final = Cache(lasts, now=self._saver.now, lock=self._saver.short_lock)
        self.working: Final = Working(self.attach, duration_option(working_ttl, "working_ttl"))
        if store is not None and load:
            self.load()

    @classmethod
    def open(cls, path: str | PathLike[str], **options: Unpack[OpenOptions]) -> Self:
        """A memory in the file ``path``, saved after every change: JSON, or SQLite for ``.db``.

        ``options`` are those of ``Memory``. A missing file is an empty memory; a damaged one is a
        ``DamagedStoreError`` and stays as it is.
        """
        options.setdefault("autosave", True)
        return cls(store=open_store(path), **options)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that ``get_context`` uses by default."""
        return self._tokenizer

    # Entries

    def remember(
        self,
        key: str,
        data: Any,
        *wrong: Never,
        importance: float | None = None,
        ttl: _Duration = None,
        pinned: bool | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Remembered:
        """Add an entry, or overwrite the one of its key, and say what happened.

        ``data`` is any JSON value, copied. ``importance`` is in [0, 1]: without one, a live entry
        keeps its importance and a new one gets 0.5. ``ttl`` is in seconds, or a ``timedelta``:
        without one that is more than 0, the entry does not expire. Over a limit, a compaction runs
        at once, and the newcomer itself may be what goes.

        ``pinned`` entries never go, and are first in every context; a key stays pinned until it
        gets ``pinned=False``. ``meta`` is a JSON object, for tags and the like. Equal data under a
        live key is counted (``repeats``) and keeps its ``meta`` and feedback; other data starts
        anew.

        Raises ``TypeError`` or ``ValueError`` for a key, data or meta that cannot be saved, and
        ``ValueError`` for a pin when pins fill the limit; then nothing changes. Exceptions of
        ``on_evict`` and of an automatic save are raised after the change, which stays in memory.

        >>> memory = Memory(limit=1)
        >>> _ = memory.remember("user:name", "Jakub", importance=0.9)
        >>> memory.remember("chat:1", "Nice weather.", importance=0.1).kept
        False
        """
        if wrong:
            raise TypeError(
                "remember takes importance, ttl, pinned and meta by name: importance=0.9"
            )
        key, line, is_json = checked_line(key, data)
        check_length(key, line, is_json, self._data_chars)
        known = GivenFields.checked(importance, ttl, pinned, meta)
        return self._saver.change(lambda change: self._put(change, key, line, is_json, known))

    def add(
        self,
        data: Any,
        *,
        kind: str = "note",
        importance: float | None = None,
        ttl: _Duration = None,
        pinned: bool | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Remembered:
        """Remember data that has no natural key, under ``kind`` and the next number.

        The number is one more than the highest that ``add`` ever gave this kind, or that a stored
        key of this kind has, and ``add`` never gives it again; ``clear`` starts anew.
        The other arguments are those of ``remember``. Raises ``ValueError`` for a kind that is
        empty or has a colon in it.

        >>> memory = Memory()
        >>> memory.add("closes at ten").entry.key, memory.add("no tables left").entry.key
        ('note:1', 'note:2')
        """
        check_kind(kind)
        first, line, is_json = checked_line(f"{kind}:1", data)
        check_length(first, line, is_json, self._data_chars)
        known = GivenFields.checked(importance, ttl, pinned, meta)

        kind = kind_of(first)  # plain, whatever a subclass of str says of itself

        def add(change: Change) -> Remembered:
            numbers = self._contents.numbers
            number = numbers.next(kind, self._contents.entries)
            key = f"{kind}:{number}"
            added = self._put(change, key, key + line.removeprefix(first), is_json, known)
            numbers.note(kind, number)
            return added

        return self._saver.change(add)

    def _put(
        self, change: Change, key: str, line: str, is_json: bool, known: GivenFields
    ) -> Remembered:
        entry = self._contents.put(
            change, lambda former: known.entry(former, key, line, is_json, now=change.now), key
        )
        kept = self._contents.entries.get(key) is entry
        return Remembered(entry, kept, change.compaction)

    def update(
        self,
        key: str,
        *,
        importance: float | None = None,
        ttl: _Duration | EllipsisType = ...,
        pinned: bool | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Entry | None:
        """Change what is known about an entry, with its data, time and order as they are.

        Only what is given changes. ``ttl`` counts from now, and ``ttl=None`` is no expiry;
        ``meta={}`` removes it. Returns the entry, ``None`` if there is no live one. Raises
        ``ValueError`` for a pin when pins fill the limit.

        >>> memory = Memory()
        >>> _ = memory.remember("user:name", "Jakub")
        >>> memory.update("user:name", importance=1.0, pinned=True)
        Entry(key='user:name', importance=1.0, pinned=True)
        """
        given = None if isinstance(ttl, EllipsisType) else ttl
        known = GivenFields.checked(importance, given, pinned, meta)
        return self._amend(key, lambda entry, now: known.updated(entry, ttl is None, now=now))

    def reinforce(self, key: str) -> Entry | None:
        """Note that an entry helped: its feedback grows by one, up to 7, and ``used_at`` is now.

        It changes neither data, importance and expiry nor time and order. Returns the entry,
        ``None`` if there is no live one.
        """
        return self._amend(
            key,
            lambda entry, now: entry.replaced(
                feedback=min(MOST_FEEDBACK, entry.feedback + 1), used_ms=now
            ),
        )

    def demote(self, key: str) -> Entry | None:
        """Note that an entry misled: its feedback falls by one, down to -7.

        Otherwise it works as ``reinforce`` does; ``used_at`` stays.
        """
        return self._amend(
            key,
            lambda entry, _: entry.replaced(feedback=max(-MOST_FEEDBACK, entry.feedback - 1)),
        )

    def _amend(self, key: str, make: Callable[[Entry, int], Entry]) -> Entry | None:
        key = check_key(key)
        return self._saver.change(
            lambda change: self._contents.amend(change, key, lambda entry: make(entry, change.now))
        )

    def put_back(self, entries: Iterable[Entry]) -> tuple[Entry, ...]:
        """Add entries as they are, times and all, where their key is free, in one change.

        For entries that were evicted, say. Expired ones are left out. Returns those that were
        added and, after any compaction, are still there. A pin is never refused. Raises
        ``TypeError`` for an item that is not an ``Entry``, and what the index raises if it refuses
        one; then nothing changes.
        """
        plain = plain_entries(entries)
        return self._saver.change(lambda change: self._contents.put_back(change, plain))

    def prune(self, where: Callable[[Entry], object]) -> tuple[Entry, ...]:
        """Forget every live entry for which ``where(entry)`` is true, in one change.

        ``where`` is called without a lock, oldest first; an entry that was changed meanwhile
        stays. Returns what was forgotten.

        >>> memory = Memory()
        >>> _ = memory.remember("anna:city", "Brno"), memory.remember("jakub:city", "Prague")
        >>> [entry.key for entry in memory.prune(lambda entry: entry.kind == "anna")]
        ['anna:city']
        """
        check_callable("where", where)
        asked = [entry for entry in self._oldest_first() if where(entry)]
        pruned = self._saver.change(lambda change: self._contents.prune(change, asked))
        self._saver.sweep()
        return pruned

    def get(self, key: str, default: Any = None) -> Any:
        """The data of a live entry, as a fresh copy, or ``default``."""
        entry = self.entry(key)
        return default if entry is None else entry.data

    def entry(self, key: str) -> Entry | None:
        """The live entry of that key, or ``None``."""
        key = check_key(key)
        return self._saver.look(lambda now: self._contents.entries.live(key, now=now))

    def has(self, key: str) -> bool:
        """Whether there is a live entry of that key; also ``key in memory``."""
        return self.entry(key) is not None

    def __contains__(self, key: str | Entry) -> bool:
        """``key in memory``, or for an entry whether its key is."""
        return self.has(key.key if isinstance(key, Entry) else key)

    @property
    def size(self) -> int:
        """The number of live entries; also ``len(memory)``."""
        return self._saver.look(lambda now: self._contents.entries.count_live(now=now))

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        """Always true, so that ``memory or Memory()`` does not replace an empty memory."""
        return True

    def __iter__(self) -> Iterator[Entry]:
        """The live entries of this moment, oldest first; the loop may change the memory."""
        return iter(self._oldest_first())

    def get_recent(
        self, n: int | float = 10, *, where: Callable[[Entry], object] | None = None
    ) -> list[Entry]:
        """The ``n`` newest live entries, newest first, of those for which ``where`` is true."""
        check_callable("where", where, optional=True)
        count = whole_option(n, "n", least=0)
        newest_first = self._oldest_first()[::-1]
        if where is None:
            return newest_first[:count]
        return list(islice(filter(where, newest_first), count))

    def _oldest_first(self) -> list[Entry]:
        return self._saver.look(lambda now: self._contents.entries.oldest_first(now=now))

    def forget(self, key: str) -> bool:
        """Remove the entry of that key, whatever its state; ``True`` if it was live.

        What a load rejected under that key goes too. With autosave all is gone from the store when
        this returns; if the save raises, the same call again saves.
        """
        key = check_key(key)
        went = self._saver.change(lambda change: self._contents.forget(change, key))
        self._saver.sweep()
        return went

    def clear(self) -> None:
        """Remove everything: entries, cache, working state and every other section."""

        def clear(change: Change) -> None:
            self._contents.clear(change)
            self.cache.clear()
            self._token_counts.clear()

        self._saver.change(clear)
        self._saver.sweep()

    def compact(self) -> Compaction:
        """Remove what has expired and what is over a limit, and return both.

        ``on_evict`` itself is not called.
        """
        return self._saver.change(self._contents.compact)

    def stats(self) -> Stats:
        """Sizes, and counters since the memory was made."""
        return self._saver.look(
            lambda now: Stats(
                size=self._contents.entries.count_live(now=now),
                stored=len(self._contents.entries),
                limit=self._contents.limit,
                cache=self.cache.count(now),
                compactions=self._contents.counters.compactions,
                expired=self._contents.counters.expired,
                evicted=self._contents.counters.evicted,
                kinds=self._contents.entries.count_kinds(now=now),
            )
        )

    # Asking

    def recall(
        self,
        query: str | Sequence[str],
        *,
        limit: int | float = 5,
        where: Callable[[Match], object] | None = None,
        half_life: _Duration = None,
    ) -> list[Match]:
        """The entries that answer a question in words, best first, at most ``limit``.

        Ordered by ``relevance * (0.5 + worth / 2) + 0.05 * freshness``, ties newer first, where a
        ``half_life`` (that of the memory, or one for this call) makes old matches fade, to half of
        their score at most. ``where`` is asked best first, without a lock, until enough matches
        have passed. A sequence of queries is a question and other words for it, which
        count 0.7. Raises ``TypeError`` for any other query.

        >>> memory = Memory()
        >>> _ = memory.remember("user:name", "Jakub")
        >>> [match.data for match in memory.recall("What is my name?")]
        ['Jakub']
        """
        asked = questions(query)
        check_callable("where", where, optional=True)
        count = whole_option(limit, "recall_limit", least=0, name="limit")
        fading = self._half_life if half_life is None else half_life_option(half_life)
        self._contents.prepare(asked)
        return best_matches(self._saver.look(partial(self._find, asked, fading)), count, where)

    def _find(self, queries: tuple[str, ...], half_life: float | None, now: int) -> list[Hit]:
        answer, entries = self._contents.search(queries), self._contents.entries
        fading = Fading(now, self._window, half_life)
        return hits(answer, entries.serials, entries.by_serial, fading)

    def get_context(
        self,
        token_budget: float,
        *,
        query: str | Sequence[str] | None = None,
        tokenizer: Tokenizer | None = None,
        format: Format | None = None,
        separator: str = "\n",
        header: str = "",
        where: Callable[[Entry], object] | None = None,
        half_life: _Duration = None,
    ) -> Context:
        """A text for a prompt, of at most ``token_budget`` tokens by the tokenizer's count of it.

        Pinned entries come first, then those that match ``query`` by recall score, then the others
        by retention; one that does not fit is skipped, a smaller one after it may fit. The text has
        them oldest first, ``format(entry)`` joined by ``separator``, after a ``header`` if there is
        one and any entry fits. Everything in the text is counted. ``format`` makes a ``str`` of an
        ``Entry`` (default: ``key: data``, with data that is not a string as compact JSON).
        ``tokenizer`` gives the number of tokens of a ``str``, always the same of the same text
        (default: the memory's). Entries for which ``where`` is false count as not there; it is
        called without a lock. ``half_life`` is as in ``recall``.

        Raises ``TypeError`` or ``ValueError`` for a budget that is not a finite number of at
        least 0, and ``TypeError`` for a tokenizer that returns no such number.

        >>> memory = Memory()
        >>> _ = memory.remember("user:name", "Jakub", importance=0.9)
        >>> _ = memory.remember("chat:1", "a long story about the weather", importance=0.1)
        >>> context = memory.get_context(5)
        >>> context.text, context.tokens, context.left_out
        ('user:name: Jakub', 4, ('chat:1',))
        """
        asked = () if query is None else questions(query)
        for name, function in (("tokenizer", tokenizer), ("format", format), ("where", where)):
            check_callable(name, function, optional=True)
        fading = self._half_life if half_life is None else half_life_option(half_life)
        count = self._tokenizer if tokenizer is None else tokenizer
        shown = plain_line if format is None else format

        def rank(now: int) -> Ranking:
            found = self._find(asked, fading, now) if asked else []
            return Ranking(self._contents.entries.oldest_first(now=now), found, now, self._window)

        self._contents.prepare(asked)
        ranking = self._saver.look(rank)
        if where is not None:
            ranking = ranking.where(where)
        context = pack(
            ranking.entries,
            ranking.best_first(),
            token_budget,
            tokenizer=count,
            format=shown,
            separator=separator,
            header=header,
            counts=self._token_counts,
        )
        return context.explained_by(
            lambda: ranking.explanation(context.entries, lambda entry: count(shown(entry)))
        )

    # The store and the document

    @property
    def store(self) -> Store | None:
        """The store given when the memory was made."""
        return self._saver.store

    def save(self) -> None:
        """Write the document to the store; ``RuntimeError`` if there is none.

        What the store raises reaches the caller; the memory is as before, and the next save
        writes it.
        """
        self._need_store("save")
        self._saver.save()

    def load(self) -> LoadResult:
        """Replace entries, working state and every section by those of the store.

        Cache and counters stay. More entries than the limit are compacted: the result says what
        went, ``on_evict`` is not called, and what went is in the store until the next save. Raises
        ``DamagedStoreError`` for a document that cannot be trusted, and what the store raises;
        then nothing changes.
        """
        return self._saver.load(self._need_store("load"))

    def refresh(self) -> bool:
        """Load if the store has changed since this memory last loaded or saved; whether it did.

        A store that cannot tell is loaded each time. Raises what ``load`` raises, and
        ``StoreConflictError``, with nothing changed, if there are unsaved changes that a load would
        drop.
        """
        return self._saver.refresh(self._need_store("refresh"))

    @property
    def last_load(self) -> LoadResult | None:
        """The result of the latest ``load`` or ``restore``, the one in the constructor included.

        ``None`` if there was none.
        """
        return self._saver.look(lambda _: self._contents.rejects.last_load)

    def to_state(self) -> dict[str, Any]:
        """The document as JSON data: live entries oldest first, working state, other sections.

        For programs that do their own input and output.

        >>> from sentinel_memory import Memory
        >>> Memory().to_state()
        {'version': 1, 'entries': [], 'working': {'data': {}, 'updatedAt': None}}
        """
        return self._saver.snapshot().document()

    def restore(self, state: dict[str, Any]) -> LoadResult:
        """Replace entries, working state and sections by ``state``, as ``load`` does; never saves.

        Raises ``TypeError`` if it is not a ``dict`` and ``DamagedStoreError`` if it is not a
        document of this version; then nothing changes.
        """
        if not isinstance(state, dict):
            raise TypeError(f"state must be a dict, not {type(state).__name__}")
        return self._saver.restore(state)

    def batch(self) -> AbstractContextManager[None]:
        """A block that puts off the automatic saves of its changes to its end.

        It saves once, at the end of the outermost block, also when the block raises, if anything
        changed. Without ``autosave`` it does nothing. The block covers the code that runs in it,
        and the tasks and threads that this code starts with its context. What others change
        meanwhile is saved at once, with what the block has changed so far.
        """
        return self._saver.batch()

    def transact(self, change: Callable[[Self], _T], *, attempts: int | float = 100) -> _T:
        """Apply ``change(memory)`` to what the store has now, and save: for several processes.

        Saves what is unsaved first. When another writer was faster, loads and starts again, up to
        ``attempts`` times (a whole number of at least 1), after pauses of up to 50 ms; then
        ``StoreConflictError``. Inside ``change``, a plain function, nothing is saved, and changes
        by other threads wait; threads that read meanwhile see how far it has come. If it raises,
        the memory is as loaded. ``on_evict`` is called after the save, for the attempt that was
        saved. If the save fails otherwise, the change stays in memory and the next save writes it.
        Returns what ``change`` returned; ``RuntimeError`` without a store.
        """
        store = self._need_store("transact")
        check_callable("change", change)
        tries = whole_option(attempts, "attempts", least=1)
        return self._saver.transact(store, lambda: change(self), tries)

    def attach(self, name: str, section: Section) -> Attachment:
        """Keep ``section`` in the document under ``name``, and clear it with the memory.

        A section has the methods ``dump(*, now)``, which returns JSON data, ``restore(value, *,
        now)``, which takes it over or raises ``ValueError``, and ``clear()``; ``now`` is in epoch
        milliseconds. What an earlier load found under that name is restored into it now. Raises
        ``ValueError`` for a name that is taken, or that has a colon and a space in it.
        """
        check_str("name", name)
        if ": " in name:
            raise ValueError("name must not have a colon and a space in it")
        check_methods("section", section, ("dump", "restore", "clear"))
        self._saver.attach(name, section)
        return SectionDoor(name, self._contents, self._saver)

    def _need_store(self, call: str) -> Store:
        if self._saver.store is None:
            raise RuntimeError(
                f"{call} needs a store: Memory(store=JsonFileStore(path)) or Memory.open(path)"
            )
        return self._saver.store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Save what is unsaved, if there is a store."""
        if self._saver.store is not None:
            self._saver.save_unsaved()

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError(
            "a Memory cannot be copied or pickled;"
            " hand over memory.to_state(), and make one of it with Memory().restore(state)"
        )

    def __repr__(self) -> str:
        stats = self.stats()
        return f"<Memory of {stats.size} entries, limit {stats.limit}>"
