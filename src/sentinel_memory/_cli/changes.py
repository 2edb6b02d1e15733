"""The commands that change a memory: one transaction each, tried on a copy first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Final

from ..entry import Entry
from ..memory import Memory
from .call import DONE, NOTHING, SOME, Call
from .files import Change, Outcome, counted
from .lines import Lines, read_lines
from .showing import Stop

__all__ = ["forget", "import_lines", "pin", "prune", "unpin"]


def forget(call: Call) -> int:
    """Forget entries by key, also expired ones and what a load rejected under it."""

    def make(memory: Memory, outcome: Outcome) -> None:
        over = {entry.key for entry in outcome.evicted}
        aside = len(_rejected(memory))
        for key in dict.fromkeys(call.options.keys):
            stored = memory.stats().stored
            memory.forget(key)
            there = key in over or memory.stats().stored < stored
            if aside and not there:
                there = len(_rejected(memory)) < aside
            aside = aside and len(_rejected(memory))
            (outcome.done if there else outcome.missing).append(key)
        asked = frozenset(call.options.keys)
        outcome.evicted = [entry for entry in outcome.evicted if entry.key not in asked]

    return _end(call, _changed(call, make), "forget", "forgot")


def _rejected(memory: Memory) -> list[Any]:
    found: list[Any] = memory.to_state().get("rejected", [])
    return found


def prune(call: Call) -> int:
    """Forget all live entries that are meant; pinned ones only if that is said."""
    means = call.selection.means
    if call.selection.is_everything:
        raise Stop("prune needs one of --kind, --where, --older or --newer; nothing was done", 2)
    pins = call.options.pinned

    def make(memory: Memory, outcome: Outcome) -> None:
        kept = [] if pins else [entry for entry in memory if entry.pinned and means(entry)]
        outcome.counts["pinned"] = len(kept)
        gone = memory.prune(lambda entry: means(entry) and (pins or not entry.pinned))
        outcome.done += [entry.key for entry in gone]

    outcome = _changed(call, make)
    if outcome.counts["pinned"]:
        number = counted(outcome.counts["pinned"], "pinned entry stays", "pinned entries stay")
        call.note(f"{number}; --pinned forgets pinned entries too")
    return _end(call, outcome, "forget", "forgot")


def pin(call: Call) -> int:
    """Pin entries."""
    return _end(call, _changed(call, _pinning(call, True)), "pin", "pinned")


def unpin(call: Call) -> int:
    """Unpin entries."""
    return _end(call, _changed(call, _pinning(call, False)), "unpin", "unpinned")


def _pinning(call: Call, pinned: bool) -> Callable[[Memory, Outcome], None]:
    def make(memory: Memory, outcome: Outcome) -> None:
        over = {entry.key for entry in outcome.evicted}
        for key in dict.fromkeys(call.options.keys):
            entry = memory.entry(key)
            if key in over:
                outcome.notes.append(f"{key} is one of those that are over the limit")
            elif entry is None:
                outcome.missing.append(key)
            elif entry.pinned == pinned:
                outcome.notes.append(f"{key} is {'' if pinned else 'not '}pinned already")
            else:
                memory.update(key, pinned=pinned)
                outcome.done.append(key)

    return make


# ---- Lines


def import_lines(call: Call) -> int:
    """Add the entries of JSON lines; all of them, or if something is wrong none."""
    options = call.options
    read = _read(call)
    outcome = Outcome()
    if read.bad and not options.skip_invalid:
        lines = counted(len(read.bad), "line is not an entry", "lines are not entries")
        outcome.refused = f"{lines}; --skip-invalid imports the rest"
    elif read.entries:
        incoming = list(read.entries.values())

        def make(memory: Memory, outcome: Outcome) -> None:
            call.progress.tell(f"adding {len(incoming):,} entries")
            _add(memory, outcome, incoming, replace=options.replace, now=call.now)

        outcome = _changed(call, make, creates=True)
    outcome.counts |= {"invalid": len(read.bad), "again": read.again}
    if not outcome.refused:
        outcome.notes += [
            f"{number:,} of the lines: {text}"
            for name, text in _COUNTS.items()
            if (number := outcome.counts.get(name))
        ]
    call.progress.end()
    for bad in read.bad[:SOME]:
        call.note(f"line {bad.number}: {bad.reason}")
    if len(read.bad) > SOME:
        call.note(f"{len(read.bad) - SOME:,} more lines are not entries")
    outcome.invalid = [{"line": bad.number, "reason": bad.reason} for bad in read.bad]
    return _end(call, outcome, "import", "imported", lists=False)


_COUNTS: Final = {
    "same": "already there, and the same",
    "there": "already there with something else, and left as it is; --replace overwrites",
    "expired": "left out, because the time to expire is over",
    "again": "overruled by a later line with the same key",
    "invalid": "left out, because they are not entries",
}


def _read(call: Call) -> Lines:
    """The lines of a file, or of the input."""

    def read(lines: Iterable[str | bytes]) -> Lines:
        return read_lines(
            lines, now=call.now, tell=lambda count: call.progress.tell(f"read {count:,} lines")
        )

    if call.options.lines != "-":
        with open(call.options.lines, "rb") as lines:
            return read(lines)
    if call.stdin is None or call.stdin.isatty():
        raise Stop("there is nothing to import: give a file of JSON lines, or pipe them in", 2)
    return read(getattr(call.stdin, "buffer", call.stdin))


def _add(
    memory: Memory, outcome: Outcome, incoming: list[Entry], *, replace: bool, now: float
) -> None:
    """Put the entries in, and note which of all went because of it."""
    stored = {entry.key: entry for entry in memory}
    live = [entry for entry in incoming if entry.is_live(math.floor(now * 1000))]
    new = [entry for entry in live if entry.key not in stored]
    clashing = [entry for entry in live if entry.key in stored and stored[entry.key] != entry]
    outcome.counts |= {
        "expired": len(incoming) - len(live),
        "same": len(live) - len(new) - len(clashing),
        "there": 0 if replace else len(clashing),
    }
    outcome.needed += len(new)
    if replace:
        keys = {entry.key: None for entry in clashing}
        memory.prune(lambda entry: entry.key in keys)
        new += clashing
        outcome.replaced += keys
    before = {entry.key: entry for entry in memory}
    memory.put_back(sorted(new, key=lambda entry: entry.updated_ms))
    after = {entry.key for entry in memory}
    outcome.evicted += [entry for entry in (*before.values(), *new) if entry.key not in after]
    outcome.done += [entry.key for entry in new if entry.key in after]


# ---- What all have in common


def _changed(
    call: Call, make: Callable[[Memory, Outcome], None], *, creates: bool = False
) -> Outcome:
    options = call.options
    outcome = call.file.change(Change(make, options.evict, options.dry_run, options.limit, creates))
    call.progress.end()
    if outcome.refused:
        outcome.refused += (
            f", --limit {outcome.needed} has room for all unless a kind has a limit of its own"
        )
    elif outcome.evicted and not outcome.done:
        outcome.notes.append(f"{len(outcome.evicted):,} found no room, and nothing was written")
    elif options.limit is not None and not outcome.done:
        outcome.notes.append("there was nothing to write, and so the limit is as it was")
    return outcome


def _as_json(outcome: Outcome, verb: str, *, dry: bool) -> dict[str, object]:
    """The outcome of a command for programs."""
    return {
        "command": verb,
        "dry_run": dry,
        "written": bool(outcome.done) and not dry and not outcome.refused,
        "refused": outcome.refused or None,
        "done": outcome.done,
        "replaced": outcome.replaced,
        "missing": outcome.missing,
        "evicted": [entry.key for entry in outcome.evicted],
        "expired": outcome.expired,
        "counts": outcome.counts,
        "invalid": outcome.invalid,
        "notes": outcome.notes,
    }


def _end(call: Call, outcome: Outcome, verb: str, past: str, *, lists: bool = True) -> int:
    """Say what was done, or would be; the exit code."""
    dry = call.options.dry_run
    failed = outcome.refused or outcome.missing or outcome.is_nothing
    code = NOTHING if failed or (outcome.evicted and not outcome.done) else DONE
    if call.json:
        call.screen.json(_as_json(outcome, verb, dry=dry))
        return code
    if outcome.refused:
        call.notes.line(f"nothing was written: {outcome.refused}")
    else:
        said = f"would {verb}" if dry else past
        for key in outcome.done if lists else ():
            call.screen.line(f"{said} {key}")
        if outcome.done and not lists:
            call.screen.line(f"{said} {counted(len(outcome.done), 'entry', 'entries')}")
        for key in outcome.replaced:
            call.screen.line(f"{'would overwrite' if dry else 'overwrote'} {key}")
        for entry in outcome.evicted if outcome.done else ():
            call.screen.line(f"{'would evict' if dry else 'evicted'} {entry.key}")
    for key in outcome.missing:
        call.note(f"there is no entry {key}")
    for text in outcome.notes:
        call.note(text)
    if outcome.is_nothing and not outcome.refused:
        call.note("no entry")
    return code
