"""Attacks on a memory, each with a size, so that the suite runs a part and a benchmark all of it.

An attack returns how many tries it made and what was broken afterwards, which should be nothing.
"""

from __future__ import annotations

import linecache
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import sentinel_memory
from sentinel_memory import ConversationIndex, Memory, RecallIndex, WordIndex
from support.clocks import FakeClock

PACKAGE = str(Path(sentinel_memory.__file__).parent)
INDEXES: dict[str, Callable[[], RecallIndex]] = {
    "words": WordIndex,
    "conversation": ConversationIndex,
}


class Interrupt(BaseException):
    """What a signal handler raises."""


def word_of(key: str) -> str:
    """A word that only the entry of that key has."""
    return f"w{sum(ord(c) * 31**i for i, c in enumerate(key)) % 10**9}"


def problems(memory: Memory) -> list[str]:
    """Entries that one read path has and another has not, or that are there twice."""
    found = []
    entries = list(memory)
    keys = [entry.key for entry in entries]
    if len(set(keys)) < len(keys):
        found.append("a key is there twice")
    if not len(keys) == len(memory) == memory.stats().size:
        found.append("counts differ")
    context = memory.get_context(10**6)
    if list(context.entries) != entries:
        found.append("the context has other entries than the iteration")
    if {entry["key"] for entry in memory.to_state()["entries"]} != set(keys):
        found.append("the document has other entries than the iteration")
    for entry in entries:
        if memory.entry(entry.key) != entry:
            found.append(f"{entry.key} cannot be got")
        matches = memory.recall(str(entry.data).split()[0], limit=len(entries))
        if [match.key for match in matches].count(entry.key) != 1:
            found.append(f"{entry.key} cannot be recalled")
    return found


def leftovers(memory: Memory, keys: list[str]) -> list[str]:
    """What is still there after every entry was forgotten by its key."""
    found = [f"{entry.key} cannot be forgotten" for entry in memory if not memory.forget(entry.key)]
    found += [f"{entry.key} is a ghost" for entry in memory]
    if memory.get_context(10**6).text:
        found.append("the context has ghosts")
    found += [f"{key} is recalled" for key in keys if memory.recall(word_of(key))]
    return found


def one_call(memory: Memory, draw: random.Random, clock: FakeClock) -> None:
    """One of the calls that change a memory, most often ``remember``."""
    clock.tick(draw.choice([0, 0.5, 30, 4_000]))
    key = f"chat:{draw.randrange(60)}"
    what = draw.random()
    if what < 0.75:
        data = f"{word_of(key)} said something {draw.randrange(1_000)}"
        ttl = draw.choice([None, None, None, 50])
        memory.remember(key, data, importance=draw.choice([0.1, 0.5, draw.random()]), ttl=ttl)
    elif what < 0.85:
        memory.forget(key)
    elif what < 0.9:
        memory.compact()
    elif what < 0.95:
        memory.restore(memory.to_state())
    elif what < 0.96:
        memory.clear()
    else:
        memory.cache.put(key, key, ttl=10)
        memory.cache.delete(f"chat:{draw.randrange(60)}")
        memory.working.set(step=key)


def leaves_a_with(frame: FrameType) -> bool:
    """Whether the line is a ``with``, which is traced once more when its block is left.

    There the interpreter looks for no signals: a lock that ``with`` has taken is always released.
    """
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return text.lstrip().startswith("with ")


def at_a_line(
    at: int, do: Callable[[], None], call: Callable[..., object], *arguments: object
) -> None:
    """Run ``call(*arguments)``, and ``do()`` at the ``at``-th line that it runs of the package."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line" and not leaves_a_with(frame):
            count += 1
            if count == at:
                sys.settrace(None)
                do()
        return trace

    sys.settrace(trace)
    try:
        call(*arguments)
    finally:
        sys.settrace(None)


def interrupted_lines(tries: int, seed: int, index: str) -> tuple[int, list[str]]:
    """An exception at a random line of the package, in a random call of a full memory."""
    draw, clock = random.Random(seed), FakeClock()
    memory = Memory(limit=40, index=INDEXES[index](), clock=clock)
    found: list[str] = []

    def interrupt() -> None:
        raise Interrupt

    made = 0
    while made < tries:
        step = random.Random(draw.random())
        try:
            at_a_line(draw.randrange(1, 400), interrupt, one_call, memory, step, clock)
        except Interrupt:
            made += 1
            found += problems(memory)
    return made, found + leftovers(memory, [f"chat:{number}" for number in range(60)])


def interrupted_by_signals(tries: int, seed: int, index: str) -> tuple[int, list[str]]:
    """Real signals whose handler raises, at any moment of random calls of a full memory."""
    draw, clock = random.Random(seed), FakeClock()
    memory = Memory(limit=40, index=INDEXES[index](), clock=clock)
    found: list[str] = []
    armed = False

    def handler(_: int, __: object) -> None:
        if armed:
            raise Interrupt

    former = signal.signal(signal.SIGALRM, handler)
    made = 0
    try:
        while made < tries:
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 4e-4))
                for _ in range(100):
                    one_call(memory, draw, clock)
                armed = False
            except Interrupt:
                armed = False
                made += 1
                found += problems(memory)
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    return made, found + leftovers(memory, [f"chat:{number}" for number in range(60)])


def reentered_lines(tries: int, seed: int, index: str) -> tuple[int, list[str]]:
    """Another call at a random line of a call, as a finalizer or a signal handler makes it."""
    draw, clock = random.Random(seed), FakeClock()
    memory = Memory(limit=40, index=INDEXES[index](), clock=clock)
    found: list[str] = []
    refused = 0

    def come_in() -> None:
        nonlocal refused
        before = memory_of_truth(memory)
        try:
            one_call(memory, draw, clock)
        except RuntimeError as error:
            refused += 1
            if "nothing was done" not in str(error):
                found.append(f"a refusal that does not say so: {error}")
            if memory_of_truth(memory) != before:
                found.append("a call that was refused changed something")

    for _ in range(tries):
        step = random.Random(draw.random())
        at_a_line(draw.randrange(1, 400), come_in, one_call, memory, step, clock)
        found += problems(memory)
    if not refused:
        found.append("no call was ever refused")
    return tries, found + leftovers(memory, [f"chat:{number}" for number in range(60)])


def memory_of_truth(memory: Memory) -> list[str]:
    """What is stored, read without any call that could be refused."""
    contents: Any = memory._contents
    return [entry.line for entry in contents.entries.stored()]
