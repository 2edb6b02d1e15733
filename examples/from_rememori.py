"""A file of rememori (JSON lines), read into a memory with its times, tags and feedback.

python examples/from_rememori.py memories.jsonl memory.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from sentinel_memory import LoadResult, Memory


def read(path: str | Path) -> tuple[Memory, LoadResult]:
    """The records that the log leaves: the last one of each id, unless it was deleted later.

    A line that cannot be read is a ``ValueError``: it may be the deletion of a secret.
    """
    entries: dict[str, dict[str, Any]] = {}
    with Path(path).open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line.decode("utf-8-sig")) if line.strip() else {"op": "none"}
                if record["op"] == "add":
                    entries[f"note:{record['id']}"] = entry(**record)
                elif record["op"] == "del":
                    entries.pop(f"note:{record['id']}", None)
                elif record["op"] != "none":
                    raise ValueError
            except (ValueError, LookupError, TypeError, RecursionError):
                raise ValueError(f"{path}, line {number}: not a line of rememori") from None
    memory = Memory(limit=max(1, len(entries)))
    return memory, memory.restore({"version": 1, "entries": list(entries.values())})


def entry(id: object, text: str, createdAt: float, **more: Any) -> dict[str, Any]:
    """A record as a memory stores it; its vector and the names that were found are left out."""
    used = {"usedAt": more["reinforcedAt"]} if more.get("reinforcedAt") is not None else {}
    tags = {"tags": more["tags"]} if more.get("tags") else {}
    return {
        **{"createdAt": createdAt, "updatedAt": createdAt, **used},
        **{"key": f"note:{id}", "data": text, "meta": {**(more.get("meta") or {}), **tags}},
        "importance": max(0.0, min(1.0, more.get("importance", 1.0))),
        "feedback": int(max(-7, min(7, more.get("reinforcements") or 0))),
    }


def main(source: str, target: str) -> None:
    """Add the records whose keys are free; the limit grows with them, one for notes stays."""
    found, result = read(source)
    memory = Memory.open(target)
    memory = Memory.open(target, limit=max(memory.stats().limit, len(memory) + len(found)))
    added = memory.transact(lambda memory: memory.put_back(found))
    print(f"{len(added)} of {len(found)} memories added, {result.dropped} are not valid")


if __name__ == "__main__":
    main(*sys.argv[1:])
