"""``Memory``: holds the entries, reads the clock once a call, asks the other modules, reports.

What entries are worth, how they are found and packed, and how the memory is kept in a store is
decided elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from os import PathLike
from typing import Any, Self, TypeAlias

from ._basics.checks import check_callable, check_methods, check_str
from ._basics.numbers import DEFAULTS, in_unit_interval, whole_option
from ._basics.times import duration_option, expiry, milliseconds
from ._core.entries import EntrySet
from ._core.saving import Kept
from .cache import Cache
from .context.estimate import estimate_tokens
from .context.pack import Context, Counts, Format, Tokenizer, pack, plain_line
from .entry import Entry, Match, check_key, new_entry
from .recall.protocol import RecallIndex
from .recall.words import WordIndex
from .results import Compaction, Remembered, Stats
from .retention import retentions
from .stores.json_file import JsonFileStore
from .stores.protocol import Store
from .working import Working

__all__ = ["Memory"]

_Duration: TypeAlias = float | timedelta | None


class Memory(Kept):
    """A bounded memory: keeps what matters, forgets what does not, lets short-lived things expire.

    All options are keywords:

    - ``limit``: stored entries, a whole number of at least 1 (500)
    - ``store``: a ``Store``, for this memory alone; loaded from now unless ``load=False``
    - ``autosave``: save after every change; needs a store
    - ``tokenizer``: ``str`` to number of tokens, for ``get_context`` (``estimate_tokens``)
    - ``recency_window``, ``cache_ttl``, ``working_ttl``: seconds or a ``timedelta``, more than 0
      (24 hours, 5 minutes, 1 hour)
    - ``on_evict``: a plain function, called with a ``Compaction`` after a ``remember`` or
      ``transact`` that removed something, or only what had expired; what it raises reaches the
      caller and undoes nothing. One that remembers in a full memory calls itself again
    - ``index``: a ``RecallIndex``, for this memory alone (``WordIndex()``)
    - ``clock``: gives epoch seconds (``time.time``)

    A number out of its range is ignored and the default is used. A memory is a context manager
    that saves what is unsaved; nothing needs closing. Every call is safe from any thread.

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
        *,
        limit: float | None = None,
        store: Store | None = None,
        autosave: bool = False,
        load: bool = True,
        tokenizer: Tokenizer | None = None,
        recency_window: _Duration = None,
        cache_ttl: _Duration = None,
        working_ttl: _Duration = None,
        on_evict: Callable[[Compaction], object] | None = None,
        index: RecallIndex | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        check_methods("index", index, ("add", "discard", "search"), optional=True)
        check_callable("tokenizer", tokenizer, optional=True)
        self._limit = whole_option(limit, "limit", least=1)
        self._window = duration_option(recency_window, "recency_window")
        self._tokenizer = estimate_tokens if tokenizer is None else tokenizer
        self._counts = Counts()
        entries = EntrySet(
            limit=self._limit,
            window=self._window,
            index=WordIndex() if index is None else index,
        )
        super().__init__(entries, store=store, autosave=autosave, clock=clock, on_evict=on_evict)
        self.cache = Cache(
            duration_option(cache_ttl, "cache_ttl"), now=self._now, lock=self._locks.state
        )
        self.working = Working(self.attach, duration_option(working_ttl, "working_ttl"))
        if store is not None and load:
            self.load()

    @classmethod
    def open(cls, path: str | PathLike[str], **options: Any) -> Self:
        """A memory in the JSON file ``path``, saved after every change.

        ``options`` are those of ``Memory``. A missing file is an empty memory; a damaged one is a
        ``DamagedStoreError`` and stays as it is.
        """
        return cls(store=JsonFileStore(path), **{"autosave": True, **options})

    @property
    def tokenizer(self) -> Tokenizer:
        """What ``get_context`` counts with if it is given no other."""
        return self._tokenizer

    # Entries

    def remember(
        self, key: str, data: Any, *, importance: float | None = None, ttl: _Duration = None
    ) -> Remembered:
        """Add an entry, or overwrite the one of its key, and say what happened.

        ``data`` is any JSON value, copied. ``importance`` is in [0, 1]: without one, a live key
        keeps its own and a new key gets 0.5. ``ttl`` is in seconds, or a ``timedelta``: without
        one that is more than 0, the entry does not expire. Over the limit, a compaction runs at
        once, and the newcomer itself may be what goes.

        Raises ``TypeError`` or ``ValueError`` for a key or data that cannot be saved, and then
        changes nothing. What ``on_evict`` raises and, with autosave, the save, comes after the
        change, which is then in memory.

        >>> memory = Memory(limit=1)
        >>> _ = memory.remember("user:name", "Jakub", importance=0.9)
        >>> memory.remember("chat:1", "Nice weather.", importance=0.1).kept
        False
        """
        now = self._now()
        given = in_unit_interval(importance)
        entry = new_entry(
            key,
            data,
            DEFAULTS["importance"] if given is None else given,
            created_ms=now,
            updated_ms=now,
            expires_ms=expiry(now, milliseconds(ttl)),
        )
        reports: list[Compaction] = []
        try:
            with self._locks.writing:
                with self._locks.state:
                    former = self._entries.live(entry.key, now=now)
                    if former is not None:
                        entry._continue(former, keep_importance=given is None)
                    self._entries.put(entry)
                    self._changes += 1
                    over = self._entries.over_limit()
                    compaction = self._compact(now) if over else None
                    kept = self._entries.stored(entry.key) is entry
                reports = self._report_or_defer(compaction)
                self._autosave(now)
        finally:
            # Also when the save failed: what was evicted is out of the memory all the same.
            self._report(reports)
        return Remembered(entry, kept, compaction)

    def get(self, key: str, default: Any = None) -> Any:
        """The data of a live entry, as a fresh copy, or ``default``."""
        entry = self.entry(key)
        return default if entry is None else entry.data

    def entry(self, key: str) -> Entry | None:
        """The live entry of that key, or ``None``."""
        key = check_key(key)
        now = self._now()
        with self._locks.state:
            return self._entries.live(key, now=now)

    def has(self, key: str) -> bool:
        """Whether there is a live entry of that key; also ``key in memory``."""
        return self.entry(key) is not None

    __contains__ = has

    @property
    def size(self) -> int:
        """The number of live entries; also ``len(memory)``."""
        now = self._now()
        with self._locks.state:
            return self._entries.count_live(now=now)

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        """Always true, so that ``memory or Memory()`` does not replace an empty memory."""
        return True

    def __iter__(self) -> Iterator[Entry]:
        """The live entries of this moment, oldest first; the loop may change the memory."""
        now = self._now()
        with self._locks.state:
            return iter(self._entries.oldest_first(now=now))

    def get_recent(self, n: float = 10) -> list[Entry]:
        """The ``n`` newest live entries, newest first."""
        count = whole_option(n, "n", least=0)
        now = self._now()
        with self._locks.state:
            live = self._entries.oldest_first(now=now)
        return live[::-1][:count]

    def forget(self, key: str) -> bool:
        """Remove the entry of that key, whatever its state; ``True`` if it was live.

        What a load rejected under that key goes too. With autosave all is gone from the store when
        this returns; if the save raises, the same call again saves.
        """
        key = check_key(key)
        now = self._now()
        with self._locks.writing:
            with self._locks.state:
                entry = self._entries.remove(key)
                rejected = [raw for raw in self._rejected if _rejected_key(raw) != key]
                changed = entry is not None or len(rejected) < len(self._rejected)
                self._rejected = rejected
                self._changes += changed
            if changed or self._overdue:
                self._autosave(now)
        return entry is not None and entry._is_live(now)

    def clear(self) -> None:
        """Remove everything: entries, cache, working state and every other section."""
        now = self._now()
        with self._locks.writing:
            with self._locks.state:
                self._entries.replace_all(())
                self._counts.clear()
                self.cache.clear()
                for section in self._sections.values():
                    section.clear()
                self._unknown = {}
                self._rejected = []
                self._changes += 1
            self._autosave(now)

    def compact(self) -> Compaction:
        """Remove what has expired, and say what it was; ``on_evict`` is not called."""
        now = self._now()
        with self._locks.writing:
            with self._locks.state:
                compaction = self._compact(now)
                changed = bool(compaction.expired)  # over the limit it never is
                self._changes += changed
            if changed or self._overdue:
                self._autosave(now)
        return compaction

    def stats(self) -> Stats:
        """Sizes, and counters since the memory was made."""
        now = self._now()
        with self._locks.state:
            return Stats(
                size=self._entries.count_live(now=now),
                stored=len(self._entries),
                limit=self._limit,
                cache=self.cache._live_count(now),
                **self._counters._asdict(),
            )

    # Asking

    def recall(self, query: str, *, limit: float = 5) -> list[Match]:
        """The entries that answer a question in words, best first, at most ``limit``.

        Ordered by ``relevance * (0.5 + importance / 2) + 0.05 * freshness``, ties newer first.
        Raises ``TypeError`` for a query that is not a ``str``.

        >>> memory = Memory()
        >>> _ = memory.remember("user:name", "Jakub")
        >>> [match.data for match in memory.recall("What is my name?")]
        ['Jakub']
        """
        check_str("query", query)
        count = whole_option(limit, "recall_limit", least=0)
        now = self._now()
        with self._locks.state:
            return self._entries.best(query, count, now=now)

    def get_context(
        self,
        token_budget: float,
        *,
        query: str | None = None,
        tokenizer: Tokenizer | None = None,
        format: Format | None = None,
        separator: str = "\n",
        header: str = "",
    ) -> Context:
        """A text for a prompt, of at most ``token_budget`` tokens by the tokenizer's count of it.

        Entries that match ``query`` come first, by recall score, then the others by retention;
        one that does not fit is skipped, a smaller one after it may fit. The text has them oldest
        first, ``format(entry)`` joined by ``separator``, after a ``header`` if there is one and
        any entry fits. Everything in the text is counted. ``format`` makes a ``str`` of an
        ``Entry`` (default: ``key: data``, with data that is not a string as compact JSON).
        ``tokenizer`` gives the number of tokens of a ``str``, always the same of the same text
        (default: the memory's).

        Raises ``TypeError`` or ``ValueError`` for a budget that is not a finite number of at
        least 0, and ``TypeError`` for a tokenizer that returns no such number.

        >>> memory = Memory()
        >>> _ = memory.remember("user:name", "Jakub", importance=0.9)
        >>> _ = memory.remember("chat:1", "a long story about the weather", importance=0.1)
        >>> context = memory.get_context(5)
        >>> context.text, context.tokens, context.left_out
        ('user:name: Jakub', 4, ('chat:1',))
        """
        if query is not None:
            check_str("query", query)
        check_callable("tokenizer", tokenizer, optional=True)
        check_callable("format", format, optional=True)
        now = self._now()
        with self._locks.state:
            entries = self._entries.oldest_first(now=now)
            matches = [] if query is None else self._entries.best(query, None, now=now)
        return pack(
            entries,
            lambda: self._rank(entries, matches, now),
            token_budget,
            tokenizer=self._tokenizer if tokenizer is None else tokenizer,
            format=plain_line if format is None else format,
            separator=separator,
            header=header,
            counts=self._counts,
        )

    def _rank(self, entries: list[Entry], matches: list[Match], now: int) -> list[int]:
        worth = retentions(entries, now=now, window=self._window)
        newest_first = range(len(entries) - 1, -1, -1)
        ranking = sorted(newest_first, key=worth.__getitem__, reverse=True)
        if not matches:
            return ranking
        wanted = {match.key for match in matches}
        places = {entry.key: place for place, entry in enumerate(entries) if entry.key in wanted}
        first = [places[match.key] for match in matches]
        return first + [place for place in ranking if entries[place].key not in wanted]

    def __repr__(self) -> str:
        stats = self.stats()
        return f"<Memory of {stats.size} entries, limit {stats.limit}>"


def _rejected_key(stored: Any) -> Any:
    raw = stored.get("entry") if isinstance(stored, dict) else None
    return raw.get("key") if isinstance(raw, dict) else None
