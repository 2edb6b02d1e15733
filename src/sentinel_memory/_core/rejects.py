"""Rejected items: the parts of loaded documents that are not valid, kept for the next save.

They stay in the document, so that a save does not erase what a person wrote, and they go when their
key is forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

from .._basics.words import strings_in
from ..results import Compaction, LoadResult, Rejected

__all__ = ["SECTION", "Rejects", "storable"]

SECTION: Final = "section "  # how the reason begins for which a section was rejected


class Rejects(NamedTuple):
    """The rejected items as stored, each with its reason, and the result of the latest load."""

    items: tuple[Any, ...] = ()
    last_load: LoadResult | None = None

    def of_load(self, before: Iterable[Any], result: LoadResult) -> Rejects:
        """The items that a document brought and those that its load rejected, equal ones once."""
        by_text: dict[str, Any] = {}
        for item in (*before, *_stored_forms(result.rejected)):
            by_text.setdefault(json.dumps(item, sort_keys=True), item)
        return Rejects(tuple(by_text.values()), result)

    def and_also(self, rejected: Iterable[Rejected]) -> Rejects:
        """These and some more, of a section that was attached after the load."""
        return self._replace(items=(*self.items, *_stored_forms(rejected)))

    def without_key(self, key: str, *, becomes_empty: bool) -> Rejects:
        """The rejects without those that go when ``key`` is forgotten.

        An item whose key can be read goes with its key. One whose key cannot be read goes if any
        string in it is the key, and when the memory becomes empty: then no text of anybody is left.
        """
        items = [item for item in self.items if not _goes(item, key, becomes_empty)]
        result = self.last_load
        if result is not None:
            forms = [{"entry": item.entry, "reason": item.reason} for item in result.rejected]
            kept = zip(result.rejected, forms, strict=True)
            rejected = tuple(item for item, form in kept if not _goes(form, key, False))
            result = result._replace(rejected=rejected)
            if (removed := result.compaction) is not None:
                expired = tuple(entry for entry in removed.expired if entry.key != key)
                evicted = tuple(entry for entry in removed.evicted if entry.key != key)
                result = result._replace(compaction=Compaction(expired, evicted))
        return Rejects(tuple(items), result)

    def without_section(self, name: str) -> Rejects:
        """The rejects without those of a section."""
        return self._replace(items=tuple(item for item in self.items if _section(item) != name))

    def without_expired(self) -> Rejects:
        """The rejects, with no expired entry in the result of the load."""
        result = self.last_load
        if result is None or result.compaction is None:
            return self
        return self._replace(
            last_load=result._replace(compaction=result.compaction._replace(expired=()))
        )

    def without_text(self) -> Rejects:
        """Only the numbers of the result of the load."""
        result = self.last_load
        return Rejects(
            (), None if result is None else result._replace(rejected=(), compaction=None)
        )


def storable(value: Any) -> Any:
    """A copy of ``value`` as JSON data, lone surrogates kept; ``ValueError`` for anything else."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not JSON data: {error}") from None


def _stored_forms(rejected: Iterable[Rejected]) -> Iterator[dict[str, Any]]:
    for raw, reason in rejected:
        # An item of a file is JSON; a program may hand over anything, and that is not kept.
        with suppress(ValueError):
            yield {"entry": storable(raw), "reason": storable(reason)}


def _goes(stored: Any, key: str, becomes_empty: bool) -> bool:
    if _section(stored) is not None:
        return False
    raw = stored.get("entry") if isinstance(stored, dict) else stored
    found = raw.get("key") if isinstance(raw, dict) else None
    if isinstance(found, str):
        return found == key
    return becomes_empty or key in strings_in(raw)


def _section(stored: Any) -> str | None:
    """The name of the section that a rejected item was, ``None`` if it was an entry."""
    reason = stored.get("reason") if isinstance(stored, dict) else None
    if not isinstance(reason, str) or not reason.startswith(SECTION):
        return None
    return reason.removeprefix(SECTION).partition(": ")[0]
