"""The picture in README: what stays and what goes as a conversation grows.

python benchmarks/forgetting.py

writes ``forgetting.svg`` beside this script. One conversation is told to a ``Memory`` and to a list
of the last messages, both of the same size; a bar is drawn for as long as a message is in one. The
picture is the same in every run, and follows the light or dark scheme of the reader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import NamedTuple

from sentinel_memory import Memory

START = 1_792_310_400.0  # epoch seconds
MINUTE = 60
SIZE = 8  # messages that each of the two may hold
PINNED = "allergic to peanuts"
QUESTION = "Is the satay safe?"


class Message(NamedTuple):
    """What is said in one minute, and what the memory is told about it."""

    key: str
    text: str
    importance: float = 0.1
    pinned: bool = False
    minutes: int | None = None  # until it expires


CONVERSATION = [
    Message("user:name", "my name is Jakub", importance=0.9),
    Message("user:allergy", PINNED, importance=1.0, pinned=True),
    Message("chat:1", "nice place"),
    Message("note:kitchen", "closes in 4 minutes", importance=0.5, minutes=4),
    Message("chat:2", "busy road outside"),
    Message("chat:3", "was it always blue?"),
    Message("user:guests", "we are four", importance=0.8),
    *(Message(f"chat:{number}", f"small talk {number}") for number in range(4, 15)),
]

# Each pair is light, dark. Text of both schemes stands on ``ground``.
COLOURS = {
    "ground": ("#ffffff", "#0d1117"),
    "text": ("#1f2328", "#e6edf3"),
    "soft": ("#59636e", "#9198a1"),
    "line": ("#d1d9e0", "#3d444d"),
    "talk": ("#8c959f", "#6e7681"),
    "known": ("#0969da", "#4493f8"),
    "pinned": ("#1a7f37", "#3fb950"),
    "brief": ("#bc4c00", "#db6d28"),
    "lost": ("#cf222e", "#f85149"),
}

STEP = 14  # pixels a minute, across
ROW = 18  # pixels a message, down
LABELS = 168
PANEL = STEP * len(CONVERSATION)
GAP = 44
TOP = 62
BOTTOM = TOP + ROW * len(CONVERSATION)
WIDTH = LABELS + 2 * PANEL + GAP + 24
HEIGHT = BOTTOM + 84


def in_the_memory() -> list[set[str]]:
    """The keys in a ``Memory`` after each message."""
    now = START
    memory = Memory(limit=SIZE, clock=lambda: now)
    held = []
    for said in CONVERSATION:
        memory.remember(
            said.key,
            said.text,
            importance=said.importance,
            pinned=said.pinned,
            ttl=None if said.minutes is None else said.minutes * MINUTE,
        )
        held.append({entry.key for entry in memory})
        now += MINUTE
    return held


def in_the_last_messages() -> list[set[str]]:
    """The keys in a list of the last messages after each message."""
    last: deque[str] = deque(maxlen=SIZE)
    held = []
    for said in CONVERSATION:
        last.append(said.key)
        held.append(set(last))
    return held


def style() -> str:
    """The colours, for both schemes."""

    def rules(scheme: int) -> str:
        return "".join(f".{name}{{fill:{pair[scheme]}}}" for name, pair in COLOURS.items())

    return (
        "<style>text{font:12px system-ui,sans-serif}.head{font-weight:600;font-size:14px}"
        f"{rules(0)}@media(prefers-color-scheme:dark){{{rules(1)}}}</style>"
    )


def text(x: int, y: int, words: str, kind: str = "text", anchor: str = "start") -> str:
    """One line of text."""
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: int, y: int, width: int, height: int, kind: str, corner: int = 0) -> str:
    """One rectangle."""
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{corner}"/>'


def kind_of(said: Message) -> str:
    """The colour of a message."""
    if said.pinned:
        return "pinned"
    if said.minutes is not None:
        return "brief"
    return "known" if said.importance > 0.5 else "talk"


def panel(left: int, title: str, held: list[set[str]]) -> Iterable[str]:
    """The bars of one of the two, and what it still has when the question comes."""
    yield text(left, 26, title, "head text")
    yield text(left, 46, f"at most {SIZE}; each bar is one message", "soft")
    for row, said in enumerate(CONVERSATION):
        minutes = [minute for minute, keys in enumerate(held) if said.key in keys]
        yield box(left, TOP + ROW * row + ROW // 2, PANEL, 1, "line")
        yield box(
            left + STEP * minutes[0],
            TOP + ROW * row + 3,
            STEP * (minutes[-1] - minutes[0] + 1),
            ROW - 6,
            kind_of(said),
            3,
        )
    yield box(left + PANEL, TOP - 6, 2, BOTTOM - TOP + 12, "text")
    yield text(left + PANEL, BOTTOM + 24, f"“{QUESTION}”", "text", "end")
    knows = any(said.pinned and said.key in held[-1] for said in CONVERSATION)
    answer = ("✓ the allergy is known", "pinned") if knows else ("✗ the allergy is lost", "lost")
    yield text(left + PANEL, BOTTOM + 44, answer[0], f"head {answer[1]}", "end")


def legend(kinds: Mapping[str, str]) -> Iterable[str]:
    """The meaning of the colours, below."""
    x = 16
    for kind, meaning in kinds.items():
        yield box(x, HEIGHT - 24, 12, 12, kind, 3)
        yield text(x + 18, HEIGHT - 14, meaning, "soft")
        x += 18 + 7 * len(meaning) + 16


def picture() -> str:
    """The whole picture as SVG."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="title desc">',
        '<title id="title">What stays and what goes as a conversation grows</title>',
        f'<desc id="desc">Of {len(CONVERSATION)} messages, a list of the last {SIZE} has lost the'
        " allergy when it matters; the memory still has it, the name and the number of guests, the"
        " latest small talk, and no longer the note that has expired.</desc>",
        style(),
        box(0, 0, WIDTH, HEIGHT, "ground", 8),
        text(16, 46, "said, one a minute", "soft"),
    ]
    for row, said in enumerate(CONVERSATION):
        lines.append(text(16, TOP + ROW * row + 13, said.text))
    lines += panel(LABELS, f"Keep the last {SIZE} messages", in_the_last_messages())
    lines += panel(LABELS + PANEL + GAP, f"Memory(limit={SIZE})", in_the_memory())
    lines += legend(
        {
            "pinned": "pinned",
            "known": "importance 0.8 or more",
            "brief": "expires after 4 minutes",
            "talk": "small talk, importance 0.1",
        }
    )
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    """Write the picture."""
    Path(__file__).with_suffix(".svg").write_text(picture(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
