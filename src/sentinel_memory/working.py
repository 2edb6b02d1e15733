"""L1: the state of the task at hand, saved with the entries, and empty after an hour of silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, overload

from ._basics.plain import dump_json, load_json, plain
from ._basics.times import epoch_milliseconds, expiry, is_live
from .document import Attachment, Section

__all__ = ["Working"]

_WHAT = "working state"


class Working:
    """``memory.working``: the fields of the task at hand.

    After ``working_ttl`` without a ``set`` it is empty, and the next ``set`` starts anew.

    >>> from sentinel_memory import Memory
    >>> working = Memory().working
    >>> working.set(step="order", guests=2)
    >>> working.set(guests=3)
    >>> working.get()
    {'step': 'order', 'guests': 3}
    """

    def __init__(self, attach: Callable[[str, Section], Attachment], ttl: float) -> None:
        self._section = _WorkingSection(ttl)
        self._memory: Final = attach("working", self._section)

    def set(self, mapping: Mapping[str, Any] | None = None, /, **fields: Any) -> None:
        """Merge fields into the state, replacing those of the same name.

        Raises ``TypeError`` or ``ValueError`` for what JSON cannot hold, and changes nothing.
        """
        if mapping is not None and not isinstance(mapping, Mapping):
            raise TypeError(f"working.set takes a mapping, not {type(mapping).__name__}")
        news = plain({**(mapping or {}), **fields}, _WHAT)
        self._memory.change(lambda now: self._section.merge(news, now=now))

    @overload
    def get(self) -> dict[str, Any]: ...
    @overload
    def get(self, name: str, default: Any = None) -> Any: ...
    def get(self, name: str | None = None, default: Any = None) -> Any:
        """The fields, as a fresh ``dict``, or one of them, or ``default``.

        Empty after ``working_ttl`` without a ``set``.
        """
        fields = self._memory.read(lambda now: self._section.fields(now=now))
        return fields if name is None else fields.get(name, default)

    def clear(self) -> None:
        """Start anew."""
        self._memory.clear()

    def __repr__(self) -> str:
        return f"<Working of {len(self.get())}>"


class _WorkingSection:
    """The section ``working`` of the document."""

    def __init__(self, ttl: float) -> None:
        self._ttl = ttl
        self.clear()

    def clear(self) -> None:
        self._text = "{}"
        self._updated_ms: int | None = None

    def fields(self, *, now: int) -> dict[str, Any]:
        if self._updated_ms is None:
            return {}
        live = is_live(expiry(self._updated_ms, self._ttl), now)
        return load_json(self._text) if live else {}

    def merge(self, news: dict[str, Any], *, now: int) -> None:
        self._text = dump_json({**self.fields(now=now), **news})
        self._updated_ms = now

    def dump(self, *, now: int) -> dict[str, Any]:
        fields = self.fields(now=now)
        return {"data": fields, "updatedAt": self._updated_ms if fields else None}

    def restore(self, value: Any, /, *, now: int) -> None:
        if not isinstance(value, dict) or not isinstance(value.get("data"), dict):
            raise ValueError("working must be an object with an object data")
        try:
            text = dump_json(plain(value["data"], _WHAT))
        except TypeError as error:
            raise ValueError(str(error)) from None
        updated = value.get("updatedAt")
        if updated is not None or text != "{}":
            updated = epoch_milliseconds(updated, "updatedAt of working")
        self._text = text
        self._updated_ms = updated
