"""Running a command of the command line inside this process, and the state of a folder."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

from sentinel_memory import Memory
from sentinel_memory.cli import main
from support.clocks import FakeClock

DAY = 86_400.0


class Done(NamedTuple):
    """Exit code, output and errors of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def command(path: Path | str, *argv: str, stdin: str = "", clock: FakeClock | None = None) -> Done:
    """What a command does, with all streams as texts."""
    out, err = io.StringIO(), io.StringIO()
    code = main([str(path), *argv], io.StringIO(stdin), out, err, clock=clock or FakeClock())
    return Done(code, out.getvalue(), err.getvalue())


def folder_state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Times and bytes of a folder and of all that is in it."""
    found = {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.iterdir())
        if path.is_file()
    }
    return {".": (folder.stat().st_mtime_ns, b""), **found}


def fill(path: Path, clock: FakeClock) -> None:
    """A memory of a guest: two facts, one of them pinned, small talk, and a note that expired."""
    memory = Memory.open(path, limit=20, limits={"chat": 8}, clock=clock)
    memory.remember("user:name", "Jakub", importance=0.9)
    allergy = {"to": "peanuts", "severe": True}
    memory.remember("user:allergy", allergy, importance=1.0, pinned=True, meta={"source": "web"})
    for number in range(1, 6):
        clock.tick(10 * DAY)
        memory.remember(f"chat:{number}", f"small talk {number}", importance=0.1)
    clock.tick(60)
    memory.remember("note:gone", "expired text", ttl=60)
    memory.remember("note:soon", "closes at ten", ttl=900)
    clock.tick(90)  # the first note has expired, and no save has dropped it
    close = getattr(memory.store, "close", None)
    if close is not None:
        close()
