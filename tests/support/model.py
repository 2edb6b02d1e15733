"""The plainest possible memory: one list, every rule of the specification written out.

Nothing is fast. Times are whole epoch milliseconds; every call gets ``now`` first, and its options
as a program gives them. Whatever the specification refuses raises here, too, before anything has
changed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import EllipsisType
from typing import Any, TypeAlias

from support.items import Compacted, Document, Item, json_text, same, sorted_text
from support.options import Options, expiry
from support.plain_ranking import (
    Found,
    Moment,
    Packed,
    best_first,
    estimate,
    first_that_pass,
    matches,
    packed,
)

DAY = 86_400_000
DEFAULT_LIMIT = 500
Where: TypeAlias = Callable[[Any], object] | None


class PlainMemory:
    """Items in the order in which they were last remembered."""

    def __init__(
        self,
        *,
        limit: object = None,
        limits: Mapping[str, object] | None = None,
        recency_window: object = None,
        half_life: object = None,
        data_chars: object = None,
        autosave: bool = False,
    ) -> None:
        self.options = Options()
        self.given_limit = self.options.count("limit", limit, 1, None)
        self.given_limits = self.options.counts("limits", limits)
        window = self.options.milliseconds("recency_window", recency_window)
        self.window: float = DAY if window is None else window
        self.half_life = self.options.half_life(half_life)
        self.data_chars = self.options.count("data_chars", data_chars, 1, None)
        self.autosave = autosave
        self.saved: Document | None = None
        self.items: list[Item] = []
        self.limit: int = self.given_limit or DEFAULT_LIMIT
        self.limits: Mapping[str, int] = self.given_limits or {}
        self.numbers: dict[str, int] = {}  # by kind, from its first ``add`` on
        self.compactions = self.expired = self.evicted = 0
        self.unsaved = False
        self.reports: list[Compacted] = []  # what ``on_evict`` was called with
        self.waiting: list[Compacted] = []  # what it will be called with after a transaction
        self.before: tuple[Any, ...] | None = None  # in a transaction: what an undo puts back
        self.batches = 0  # how many blocks put off the saves

    # Looking

    def live(self, now: int) -> list[Item]:
        """Oldest first: by time, at one millisecond in the order of remembering."""
        items = [item for item in self.items if item.is_live(now)]
        return sorted(items, key=lambda item: item.updated)

    def find(self, key: str, now: int) -> Item | None:
        return next((item for item in self.live(now) if item.key == key), None)

    def kinds(self, now: int) -> dict[str, int]:
        kinds = [item.kind for item in self.live(now)]
        return {kind: kinds.count(kind) for kind in kinds}

    def document(self, now: int) -> Document:
        """Live entries oldest first; ``limit`` and the like when they are not the default."""
        limit = None if self.limit == DEFAULT_LIMIT else self.limit
        return Document(limit, self.limits, dict(self.numbers), tuple(self.live(now)))

    # Asking

    def moment(self, now: int, half_life: object = None) -> Moment:
        fades = self.half_life if half_life is None else self.options.half_life(half_life)
        return Moment(now, self.window, fades)

    def get_recent(self, now: int, n: object = None, where: Where = None) -> list[Item]:
        count = self.options.count("n", n, 0, 10)
        return first_that_pass(self.live(now)[::-1], count, where)

    def recall(
        self,
        now: int,
        query: object,
        limit: object = None,
        where: Where = None,
        half_life: object = None,
    ) -> list[Found]:
        """``where`` is asked best first, until enough have passed."""
        most = self.options.count("limit", limit, 0, 5)
        found = matches(self.live(now), query, self.moment(now, half_life))
        return first_that_pass(found, most, where)

    def get_context(
        self,
        now: int,
        budget: float,
        query: object = None,
        tokenizer: Callable[[str], float] | None = None,
        separator: str = "\n",
        header: str = "",
        where: Where = None,
        half_life: object = None,
    ) -> Packed:
        """Entries that do not pass count as not there; each live one is asked once, best first."""
        live, moment = self.live(now), self.moment(now, half_life)
        found = [] if query is None else matches(live, query, moment)
        rows = best_first(live, found, moment)
        rows = [row for row in rows if where is None or where(row.item)]
        return packed(live, rows, budget, tokenizer or estimate, separator, header)

    # Changing

    @contextmanager
    def changing(self, now: int) -> Iterator[None]:
        """A call that may change something; one that raises has not."""
        before = self.items
        yield
        if [*map(id, before)] != [*map(id, self.items)]:  # items are replaced, never changed
            self.unsaved = True
        self.save_by_itself(now)

    def save_by_itself(self, now: int) -> None:
        """At the end of a call, save what is unsaved; a batch and a transaction put it off."""
        if self.autosave and self.unsaved and not self.batches and self.before is None:
            self.save(now)

    @contextmanager
    def batch(self, now: Callable[[], int]) -> Iterator[None]:
        self.batches += 1
        try:
            yield
        finally:
            self.batches -= 1
            self.save_by_itself(now())

    def remember(
        self,
        now: int,
        key: str,
        data: Any,
        importance: object = None,
        ttl: object = None,
        pinned: object = None,
        meta: object = None,
    ) -> tuple[Item, Compacted | None]:
        """The entry, and what an automatic compaction removed."""
        self.refuse_long(data)
        lasts = self.options.milliseconds("ttl", ttl)
        known = self.known(importance, pinned, meta)
        with self.changing(now):
            return self.put(now, key, data, lasts, known)

    def put(
        self, now: int, key: str, data: Any, lasts: float | None, known: dict[str, Any]
    ) -> tuple[Item, Compacted | None]:
        data = json.loads(json.dumps(data))
        item = Item(key, data, 0.5, now, now, expiry(now, lasts))
        old = self.find(key, now)
        if old is not None:  # what belongs to the key
            item = replace(item, importance=old.importance, created=old.created, pinned=old.pinned)
        if old is not None and sorted_text(old.data) == sorted_text(data):  # and to the data
            item = replace(
                item,
                meta=old.meta,
                feedback=old.feedback,
                used=old.used,
                unknown=old.unknown,
                repeats=old.repeats + 1,
            )
        item = replace(item, **known)
        self.refuse_further_pin(old, item, now)
        self.take_in(item)
        return item, self.compact_if_over(now)

    def add(
        self,
        now: int,
        data: Any,
        kind: str = "note",
        importance: object = None,
        ttl: object = None,
        pinned: object = None,
        meta: object = None,
    ) -> tuple[Item, Compacted | None]:
        """Under one more than the highest number ever given or stored under that kind.

        What was stored is noted from the first ``add`` of a kind on; before, what is stored counts.
        """
        if not kind or ":" in kind:
            raise ValueError("kind must not be empty, and must not have a colon in it")
        self.refuse_long(data)
        lasts = self.options.milliseconds("ttl", ttl)
        known = self.known(importance, pinned, meta)
        stored = [item.number for item in self.items if item.kind == kind]
        number = 1 + max([self.numbers.get(kind, 0), *stored])
        while any(item.key == f"{kind}:{number}" for item in self.items):
            number += 1
        with self.changing(now):
            done = self.put(now, f"{kind}:{number}", data, lasts, known)
            self.numbers[kind] = number
            return done

    def update(
        self,
        now: int,
        key: str,
        importance: object = None,
        ttl: object = ...,
        pinned: object = None,
        meta: object = None,
    ) -> Item | None:
        """Only what is given changes; ``ttl=None`` is no expiry."""
        known = self.known(importance, pinned, meta)
        if ttl is None:
            known["expires"] = None
        elif not isinstance(ttl, EllipsisType):
            lasts = self.options.milliseconds("ttl", ttl)
            if lasts is not None:
                known["expires"] = expiry(now, lasts)
        return self.amend(now, key, known)

    def reinforce(self, now: int, key: str) -> Item | None:
        old = self.find(key, now)
        feedback = 0 if old is None else min(7, old.feedback + 1)
        return self.amend(now, key, {"feedback": feedback, "used": now})

    def demote(self, now: int, key: str) -> Item | None:
        old = self.find(key, now)
        feedback = 0 if old is None else max(-7, old.feedback - 1)
        return self.amend(now, key, {"feedback": feedback})

    def amend(self, now: int, key: str, known: dict[str, Any]) -> Item | None:
        """Change what is known of a live entry, with its data, time and place as they are."""
        old = self.find(key, now)
        with self.changing(now):
            if old is None:
                return None
            item = replace(old, **known)
            self.refuse_further_pin(old, item, now)
            if not same(item, old):
                self.items = [item if other is old else other for other in self.items]
            return item

    def put_back(self, now: int, items: Iterable[Item]) -> list[Item]:
        """Live items as they are, where their key is free; those that are there at the end."""
        added = []
        with self.changing(now):
            for item in items:
                if item.is_live(now) and self.find(item.key, now) is None:
                    self.take_in(item)
                    added.append(item)
            if added:
                self.compact_if_over(now)
        return [item for item in added if item in self.items]

    def prune(self, now: int, where: Callable[[Any], object]) -> list[Item]:
        """Forget those that pass and are still there as they were when they were asked about."""
        asked = [item for item in self.live(now) if where(item)]
        with self.changing(now):
            gone = [item for item in asked if item in self.items]
            self.items = [item for item in self.items if item not in gone]
            return gone

    def forget(self, now: int, key: str) -> bool:
        """Whether a live entry went; an expired one goes, too."""
        was_live = self.find(key, now) is not None
        with self.changing(now):
            self.items = [item for item in self.items if item.key != key]
        return was_live

    def clear(self, now: int) -> None:
        """Nothing is left; it counts as a change, also of an empty memory."""
        with self.changing(now):
            self.items = []
            self.numbers = {}
            self.unsaved = True

    def known(self, importance: object, pinned: object, meta: object) -> dict[str, Any]:
        """What a call says about an entry, by the names of its fields."""
        said: dict[str, Any] = {"importance": self.options.share("importance", importance)}
        if pinned is not None and not isinstance(pinned, bool):
            raise TypeError("pinned must be a bool")
        if meta is not None and not isinstance(meta, dict):
            raise TypeError("meta must be a dict")
        said |= {"pinned": pinned, "meta": meta}
        return {name: value for name, value in said.items() if value is not None}

    def refuse_long(self, data: Any) -> None:
        if self.data_chars is not None and len(json_text(data)) > self.data_chars:
            raise ValueError("data is longer than data_chars")

    def refuse_further_pin(self, old: Item | None, item: Item, now: int) -> None:
        """When live pins alone fill the limit, or that of the kind, a further pin is an error."""
        if not item.pinned or (old is not None and old.pinned):
            return
        pins = [other for other in self.live(now) if other.pinned]
        pins_of_kind = [other for other in pins if other.kind == item.kind]
        if len(pins) >= self.limit or len(pins_of_kind) >= self.limits.get(item.kind, math.inf):
            raise ValueError("all places are pinned")

    def take_in(self, item: Item) -> None:
        self.unsaved = True  # a newcomer that is not kept is a change, too
        self.items = [other for other in self.items if other.key != item.key] + [item]
        if item.kind in self.numbers:
            self.numbers[item.kind] = max(self.numbers[item.kind], item.number)

    # Forgetting

    def compact_if_over(self, now: int) -> Compacted | None:
        """The automatic compaction, reported if it removed something."""
        if not self.is_over():
            return None
        done = self.compacted(now)
        if done.expired or done.evicted:
            (self.reports if self.before is None else self.waiting).append(done)
        return done

    def is_over(self) -> bool:
        kinds = [item.kind for item in self.items]
        over = [kind for kind, most in self.limits.items() if kinds.count(kind) > most]
        return len(self.items) > self.limit or bool(over)

    def compact(self, now: int) -> Compacted:
        """The compaction that a program asks for; nobody is told."""
        with self.changing(now):
            return self.compacted(now)

    def compacted(self, now: int) -> Compacted:
        """First the expired ones, then of each kind over its limit, then of all."""
        expired = [item for item in self.items if not item.is_live(now)]
        self.items = [item for item in self.items if item.is_live(now)]
        evicted = []
        for kind in sorted(self.limits):
            of_kind = [item for item in self.items if item.kind == kind]
            evicted += self.evict(of_kind, self.limits[kind], now)
        evicted += self.evict(self.items, self.limit, now)
        self.compactions += 1
        self.expired += len(expired)
        self.evicted += len(evicted)
        return Compacted(expired, evicted)

    def evict(self, items: list[Item], most: int, now: int) -> list[Item]:
        """Lowest retention first, between equals the older one; pinned ones never."""
        order = sorted(
            (item for item in items if not item.pinned),
            key=lambda item: (self.moment(now).retention(item), item.updated),
        )
        gone = order[: max(0, len(items) - most)]
        self.items = [item for item in self.items if item not in gone]
        return gone

    # Saving and loading

    def save(self, now: int) -> None:
        """Expired entries are not written, and a save drops them."""
        self.items = [item for item in self.items if item.is_live(now)]
        self.saved = self.document(now)
        self.unsaved = False

    def load(self, now: int) -> tuple[int, Compacted | None]:
        """How many there were, and what had to go; a store without a document empties."""
        loaded = self.restore(now, self.saved or Document(None, {}, {}, ()))
        self.unsaved = False
        return loaded

    def restore(self, now: int, document: Document) -> tuple[int, Compacted | None]:
        """Limits that were given win over those of the document. Nobody is told what went."""
        self.take_over(document)
        self.unsaved = True
        return len(document.items), self.compacted(now) if self.is_over() else None

    def take_over(self, document: Document) -> None:
        self.items = []
        self.numbers = dict(document.numbers)
        for item in document.items:
            self.take_in(item)
        most = max(DEFAULT_LIMIT, len(self.items))
        self.limit = self.given_limit or document.limit or most
        self.limits = document.limits if self.given_limits is None else self.given_limits

    def begin(self, now: int) -> None:
        """Save what is unsaved, load, and note what an undo puts back."""
        if self.unsaved:
            self.save(now)
        self.load(now)
        rules = self.limit, self.limits, dict(self.numbers)
        self.before = (self.items, *rules, self.compactions, self.expired, self.evicted)

    def undo(self) -> None:
        """End a transaction that raised: all is as it was loaded, and nobody is told anything."""
        assert self.before is not None
        self.items, self.limit, self.limits, self.numbers = self.before[:4]
        self.compactions, self.expired, self.evicted = self.before[4:]
        self.before, self.waiting, self.unsaved = None, [], False

    def commit(self, now: int) -> None:
        """End a transaction: save, and tell what was evicted."""
        self.save(now)
        self.reports += self.waiting
        self.before, self.waiting = None, []
