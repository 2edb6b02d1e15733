"""Entries made without a memory, for tests of parts that only read entries."""

from __future__ import annotations

from sentinel_memory.entry import Entry, checked_line


def new_entry(
    key: object,
    data: object,
    importance: float,
    *,
    created_ms: int,
    updated_ms: int,
    expires_ms: int | None,
) -> Entry:
    """An entry of a key and data that are checked and copied as by ``remember``."""
    return Entry(
        *checked_line(key, data),
        importance=importance,
        created_ms=created_ms,
        updated_ms=updated_ms,
        expires_ms=expires_ms,
    )
