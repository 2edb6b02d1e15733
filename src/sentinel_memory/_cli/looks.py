"""The commands that only look."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..context.estimate import careful_estimate, estimate_tokens
from ..document import RESERVED
from ..entry import Entry
from ..errors import DamagedStoreError
from ..recall.protocol import RecallIndex
from ..recall.words import WordIndex
from ..results import Explained
from .call import DONE, NOTHING, SOME, Call, text_of
from .files import Looked, counted
from .showing import Column, ago, clipped, json_text, moment, size_text, span

__all__ = ["check", "context", "export", "list_entries", "recall", "show", "stats"]


def list_entries(call: Call) -> int:
    """The entries, newest first."""
    means = call.selection.means
    found = [entry for entry in call.look().memory if means(entry)][::-1][: call.options.n]
    if call.json:
        call.screen.json([entry.to_dict() for entry in found])
    elif found:
        columns = [
            Column("key"),
            Column("worth", right=True, spare=True),
            Column("age", right=True),
        ]
        rows = [
            [entry.key, f"{entry.worth:.2f}", span(call.now - entry.updated_at)] for entry in found
        ]
        _with_data(call, columns, rows, found)
    return call.found(found, "no entry")


def _with_data(
    call: Call, columns: list[Column], rows: list[list[str]], entries: Sequence[Entry]
) -> None:
    """A table of entries that ends with their data, and with pins if there are any."""
    if any(entry.pinned for entry in entries):
        columns.append(Column("pin"))
        for row, entry in zip(rows, entries, strict=True):
            row.append("yes" if entry.pinned else "")
    for row, entry in zip(rows, entries, strict=True):
        row.append(text_of(entry))
    call.screen.table([*columns, Column("data")], rows)


def show(call: Call) -> int:
    """All about one entry."""
    key, looked = call.options.key, call.look()
    entry = looked.memory.entry(key)
    if call.json:
        call.screen.json(None if entry is None else entry.to_dict())
    elif entry is not None:
        _show(call, entry)
    if entry is not None:
        return DONE
    call.note(f"there is no entry {key}{_instead(looked, key, call.now)}")
    return NOTHING


def _show(call: Call, entry: Entry) -> None:
    def time_of(seconds: float) -> str:
        return f"{moment(seconds)}, {ago(call.now - seconds)}"

    facts = {"key": entry.key, "importance": f"{entry.importance:g}"}
    if entry.feedback:
        facts["feedback"] = f"{entry.feedback:+}, so that its worth is {entry.worth:.3g}"
    if entry.pinned:
        facts["pinned"] = "yes"
    if entry.repeats > 1:
        facts["remembered"] = f"{entry.repeats:,} times in a row with equal data"
    facts["updated"] = time_of(entry.updated_at)
    facts["created"] = time_of(entry.created_at)
    if entry.used_at is not None:
        facts["helped"] = time_of(entry.used_at)
    facts["expires"] = "never" if entry.expires_at is None else time_of(entry.expires_at)
    call.screen.facts(facts)
    if entry.meta:
        call.screen.line("meta")
        call.screen.value(entry.meta)
    call.screen.line("data")
    call.screen.value(entry.data)


def _instead(looked: Looked, key: str, now: float) -> str:
    """A word about a key that is not there: it has expired, or another one is meant."""
    for entry in looked.entries:
        if entry.key == key and entry.expires_at is not None:
            return f": it expired {ago(now - entry.expires_at)}, and goes with the next save"
    alike = [entry.key for entry in looked.memory if key and key.casefold() in entry.key.casefold()]
    return f"; there is {', '.join(alike[:3])}" if alike else ""


def _index(name: str) -> RecallIndex:
    if name == "words":
        return WordIndex()
    from ..recall.conversation import ConversationIndex

    return ConversationIndex()


def recall(call: Call) -> int:
    """The entries that answer a question, best first."""
    memory = call.look(_index(call.options.index)).memory
    found = memory.recall(call.options.question, limit=call.options.n, where=call.selection.means)
    if call.json:
        call.screen.json(
            [
                {**match.to_dict(), "relevance": match.relevance, "score": match.score}
                for match in found
            ]
        )
    elif found:
        columns = [Column("key"), Column("score", right=True)]
        columns.append(Column("relevance", right=True, spare=True))
        rows = [[match.key, f"{match.score:.3f}", f"{match.relevance:.2f}"] for match in found]
        _with_data(call, columns, rows, found)
    return call.found(found, "no entry matches the question")


def context(call: Call) -> int:
    """The text that a prompt would hold for a question, and why."""
    options = call.options
    found = call.look(_index(options.index)).memory.get_context(
        options.budget,
        query=options.question,
        tokenizer=careful_estimate if options.tokens == "careful" else estimate_tokens,
        where=call.selection.means,
    )
    rows = found.explain()
    if call.json:
        counts = {"text": found.text, "tokens": found.tokens, "budget": options.budget}
        call.screen.json({**counts, "entries": [_reasons(row) for row in rows]})
    elif rows:
        taken = counted(len(found.entries), "entry", "entries")
        call.screen.line(
            f"{found.tokens} of {options.budget} tokens: {taken}, {found.omitted:,} left out"
        )
        if found.text:
            call.screen.indented(found.text)
        call.screen.line()
        _explain(call, rows)
    return call.found(rows, "no entry")


def _reasons(row: Explained) -> dict[str, Any]:
    names = ("why", "relevance", "score", "retention", "tokens", "taken")
    return {"key": row.entry.key, **{name: getattr(row, name) for name in names}}


def _explain(call: Call, rows: Sequence[Explained]) -> None:
    """The reasons, best first; of those that are left out only some, on a terminal."""
    left = [number for number, row in enumerate(rows) if not row.taken]
    if call.screen.is_terminal and not call.options.all:
        hidden = frozenset(left[SOME:])
    else:
        hidden = frozenset()
    columns = [Column("key"), Column("in"), Column("why"), Column("score", right=True)]
    columns += [Column("retention", right=True, spare=True), Column("tokens", right=True)]
    call.screen.table(
        columns,
        [
            [
                row.entry.key,
                "yes" if row.taken else "no",
                row.why,
                f"{row.score:.3f}",
                f"{row.retention:.3f}",
                f"{row.tokens}",
            ]
            for number, row in enumerate(rows)
            if number not in hidden
        ],
    )
    if hidden:
        call.note(f"{len(hidden):,} more are left out; --all shows them")


def export(call: Call) -> int:
    """The live entries as JSON lines, oldest first, with everything that is known about them."""
    means = call.selection.means
    found = [entry for entry in call.look().memory if means(entry)]
    for entry in found:
        call.screen.json(entry.to_state(), indent=None)
    return call.found(found, "no entry")


# ---- The file as a whole


def _sections(looked: Looked) -> dict[str, int]:
    """The characters of each section of the document, as JSON."""
    return {
        name: len(json_text(value))
        for name, value in looked.state.items()
        if name not in RESERVED or name == "rejected"
    }


def stats(call: Call) -> int:
    """How much there is of what, and the limits."""
    looked = call.look()
    live = list(looked.memory)
    size = os.path.getsize(call.file.full_path)
    pinned = sum(entry.pinned for entry in live)
    expired = len(looked.entries) - len(live)
    oldest = min((entry.updated_at for entry in live), default=None)
    newest = max((entry.updated_at for entry in live), default=None)
    sections = _sections(looked)
    if call.json:
        call.screen.json(
            {
                "file": call.file.path,
                "bytes": size,
                "live": len(live),
                "expired": expired,
                "pinned": pinned,
                "limit": looked.limit,
                "limits": looked.limits,
                "oldest": oldest,
                "newest": newest,
                "kinds": looked.memory.stats().kinds,
                "sections": sections,
            }
        )
        return DONE
    shown = {
        "file": f"{call.file.path}, {size_text(size)}",
        "entries": f"{len(live):,} of at most {looked.limit:,}",
        "pinned": f"{pinned:,}",
        "expired": f"{expired:,}" + (", which leave with the next save" if expired else ""),
    }
    if oldest is not None and newest is not None:
        shown["oldest"] = f"{moment(oldest)}, {ago(call.now - oldest)}"
        shown["newest"] = f"{moment(newest)}, {ago(call.now - newest)}"
    call.screen.facts(shown)
    _kinds(call, looked, live)
    if sections:
        call.screen.line()
        columns = (Column("section"), Column("characters", right=True))
        call.screen.table(columns, [[n, f"{size:,}"] for n, size in sections.items()])
    return DONE


def _kinds(call: Call, looked: Looked, live: Sequence[Entry]) -> None:
    """A table of the kinds, the largest first, with those that only have a limit."""
    kinds = {**dict.fromkeys(looked.limits, 0), **looked.memory.stats().kinds}
    if not kinds:
        return
    characters = dict.fromkeys(kinds, 0)
    for entry in live:
        characters[entry.kind] += len(entry.line)
    call.screen.line()
    columns = [Column("kind"), Column("entries", right=True)]
    columns += [Column("limit", right=True), Column("characters", right=True)]
    call.screen.table(
        columns,
        [
            [
                kind or "(none)",
                f"{number:,}",
                f"{looked.limits[kind]:,}" if kind in looked.limits else "",
                f"{characters[kind]:,}",
            ]
            for kind, number in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
        ],
    )


def check(call: Call) -> int:
    """Everything that is wrong with the file."""
    try:
        looked = call.file.look()
    except DamagedStoreError as error:
        call.progress.end()
        if call.json:
            call.screen.json({"file": call.file.path, "sound": False, "damage": error.reason})
        else:
            call.screen.facts({"file": call.file.path, "damaged": error.reason})
            call.note("nothing was changed; the file is not one that a memory would overwrite")
        return NOTHING
    call.progress.end()
    rejected = _rejected(looked)
    expired = [entry.key for entry in looked.entries if not entry.is_live(int(call.now * 1000))]
    evicted = [entry.key for entry in looked.evicted]
    sound = looked.digest != "differs" and not rejected and not evicted
    if call.json:
        call.screen.json(
            {
                "file": call.file.path,
                "sound": sound,
                "damage": None,
                "digest": looked.digest,
                "entries": len(looked.entries),
                "expired": expired,
                "rejected": rejected,
                "over_limit": evicted,
                "limit": looked.limit,
            }
        )
        return DONE if sound else NOTHING
    digest = {"fits": "fits", "none": "there is none; the file was written by hand, or is old"}
    call.screen.facts(
        {
            "file": call.file.path,
            "digest": digest.get(looked.digest, "does NOT fit: the file was edited or damaged"),
            "entries": f"{len(looked.entries):,} valid",
            "expired": f"{len(expired):,}" + (f": {call.some(expired)}" if expired else ""),
            "over limit": f"{len(evicted):,} of the limit {looked.limit:,}"
            + (f": {call.some(evicted)}" if evicted else ""),
            "rejected": f"{len(rejected):,}",
        }
    )
    for item in rejected[:SOME]:
        call.screen.line(f"  {item['reason']}")
        call.screen.line(f"    {_brief(call, item['entry'])}")
    if len(rejected) > SOME:
        call.note(f"{len(rejected) - SOME:,} more are rejected; --json has them all")
    call.screen.line("sound" if sound else "NOT sound")
    return DONE if sound else NOTHING


def _brief(call: Call, value: Any) -> str:
    text = json_text(value)
    return text if call.screen.columns is None else clipped(text, call.screen.columns - 4)


def _rejected(looked: Looked) -> list[dict[str, Any]]:
    """What this load rejects, and what earlier ones set aside in the file, once each."""
    items = [{"entry": item.entry, "reason": item.reason} for item in looked.result.rejected]
    before = looked.state.get("rejected")
    for item in before if isinstance(before, list) else ():
        if not (isinstance(item, dict) and isinstance(item.get("reason"), str)):
            item = {"entry": item, "reason": "set aside earlier"}
        item = {"entry": item.get("entry"), "reason": item["reason"]}
        if item not in items:
            items.append(item)
    return items
