"""A month of an agent in simulated time: two processes on one file, restarted again and again.

``run_month`` drives it and compares what the processes saw go with what the memory says of it: the
audit, the archive and the file. Run as a program, this module is one of the processes: it reads
numbers of decisions, one a line, and answers each with a line of JSON.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from sentinel_memory import Memory, Remembered
from sentinel_memory.agent import Archive, Audit, Identity, Incidents, Weights, clip, fingerprint

START: Final = 1_792_310_400.0
MONTH: Final = 30 * 86_400.0
LIMITS: Final = {"decision": 120, "observation": 40, "lesson": 20}
IDENTITY: Final = {"mission": "Keep the service healthy.", "never": ["Deploy while tests fail."]}
CATEGORIES: Final = ("rollback", "timeout")
WEIGH: Final = Weights("action", {"EVOLVE": 0.8, "REJECT": 0.7, "SKIP": 0.2}, words=["rollback"])
ENTRY_BYTES: Final = 450  # of the largest entry, with all that is stored about it
OTHER_BYTES: Final = 4_000  # of sections, limits and digest
SNAPSHOT_BYTES: Final = 450  # of an archived entry and its checksum, at most
RECOUNT: Final = 100  # snapshots, after which an archive counts those of other processes


class Figures(NamedTuple):
    """What happened in a month."""

    decisions: int
    processes: int  # that worked one after the other, two at a time
    removed: dict[str, int]  # by cause
    repeated: int
    archived: int  # entries that can still be restored
    dropped: int  # snapshots that left the archive over its bound
    largest: int  # bytes of the file
    archive_bytes: int
    seconds: float


# One of the processes


def work(folder: Path, archive_bytes: int, span: float) -> None:
    """Make the decisions whose numbers come in, and tell what went for each."""
    now = [START]
    archive = Archive(folder / "archive", max_bytes=archive_bytes, clock=lambda: now[0])
    memory = Memory.open(
        folder / "agent.json",
        limit=sum(LIMITS.values()),
        limits=LIMITS,
        on_evict=archive,
        clock=lambda: now[0],
    )
    Identity(memory, IDENTITY)
    incidents = Incidents(memory, CATEGORIES)
    Audit(memory)
    for line in sys.stdin:
        number = int(line)
        now[0] = START + number * span
        told = memory.transact(partial(decide, number, incidents))
        told["bytes"] = (folder / "agent.json").stat().st_size
        print(json.dumps(told), flush=True)
    whole = archive.flush(60)
    print(json.dumps({"written": archive.written, "errors": archive.errors, "whole": whole}))


def decide(number: int, incidents: Incidents, memory: Memory) -> dict[str, Any]:
    """One decision and what comes with it, drawn by its number."""
    draw = random.Random(number)
    told: dict[str, Any] = {"removed": [], "evicted": [], "new": [], "repeated": 0, "recorded": []}

    def remember(key: str, data: Any, **known: Any) -> None:
        former = memory.entry(key)
        note(told, memory.remember(key, data, **known), former)

    action = draw.choice(("EVOLVE", "REJECT", "SKIP", "SKIP"))
    reason = "after a rollback" if draw.random() < 0.1 else "as the rules say " * draw.randrange(20)
    subject = f"src/module{int(draw.expovariate(0.02))}.py"
    record = clip({"action": action, "subject": subject, "reason": reason})
    remember(f"decision:{fingerprint(action, subject)}", record, importance=WEIGH(record))
    if number % 3 == 0:
        # Of a dense month, only those of the shorter time live to their end.
        ttl = draw.choice((3_600, 6 * 3_600))
        remember(f"observation:{number}", f"latency {draw.randrange(500)} ms", ttl=ttl)
    if number % 10 == 0:
        category = draw.choice(CATEGORIES)
        incidents.record(category)
        told["recorded"].append(category)
        remember(f"lesson:{number}", f"{category} of {subject}", importance=0.9)
    if number % 50 == 49:
        gone = draw.choice([entry for entry in memory if entry.kind == "decision"])
        assert memory.forget(gone.key)
        told["removed"].append(["forgotten", "decision"])
    told["kinds"] = memory.stats().kinds
    return told


def note(told: dict[str, Any], done: Remembered, former: Any) -> None:
    """Note what one call made and removed, by its result alone."""
    kind = done.entry.kind
    if former is None:
        told["new"].append(kind)
    elif former.data == done.entry.data:
        told["repeated"] += 1
    else:
        told["removed"].append(["replaced", kind])
    if done.compaction is not None:
        told["removed"] += [["evicted", entry.kind] for entry in done.compaction.evicted]
        told["evicted"] += [entry.to_state() for entry in done.compaction.evicted]


# The month


class Month:
    """The ledger of a month: what the processes told."""

    def __init__(self, folder: Path, decisions: int, lifetime: int, archive_bytes: int) -> None:
        self.folder, self.decisions, self.lifetime = folder, decisions, lifetime
        self.archive_bytes = archive_bytes
        self.numbers = iter(range(decisions))
        self.lock = threading.Lock()
        self.removed: Counter[tuple[str, str]] = Counter()
        self.new: Counter[str] = Counter()
        self.recorded: Counter[str] = Counter()
        self.evicted: list[tuple[int, str]] = []  # number of the decision, entry as JSON
        self.repeated = self.processes = self.written = self.largest = 0
        self.problems: list[str] = []

    def next_numbers(self) -> Iterator[int]:
        """The numbers of the decisions of one process, each taken when the last one is made."""
        for _ in range(self.lifetime):
            with self.lock:
                number = next(self.numbers, None)
            if number is None:
                return
            yield number

    def live(self) -> None:
        """One process after the other, until the month is over."""
        try:
            while self.live_once():
                pass
        except Exception as error:
            self.problems.append(f"{type(error).__name__}: {error}")

    def live_once(self) -> bool:
        """One process, from its start to its end; whether it had anything to do."""
        span = MONTH / self.decisions
        arguments = [str(self.folder), str(self.archive_bytes), repr(span)]
        made = 0
        with subprocess.Popen(
            [sys.executable, __file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for number in self.next_numbers():
                process.stdin.write(f"{number}\n")
                process.stdin.flush()
                self.note(number, json.loads(process.stdout.readline()))
                made += 1
            process.stdin.close()
            last = json.loads(process.stdout.readline())
        with self.lock:
            self.processes += 1
            self.written += last["written"]
            if last["errors"] or not last["whole"] or process.returncode:
                self.problems.append(f"a process ended with {last}, {process.returncode}")
        return made == self.lifetime

    def note(self, number: int, told: dict[str, Any]) -> None:
        """Add what a process told of one decision."""
        with self.lock:
            self.removed.update(map(tuple, told["removed"]))
            self.new.update(told["new"])
            self.recorded.update(told["recorded"])
            self.repeated += told["repeated"]
            self.evicted += [(number, json.dumps(entry)) for entry in told["evicted"]]
            self.largest = max(self.largest, told["bytes"])
            for kind, size in told["kinds"].items():
                if size > LIMITS[kind]:
                    self.problems.append(f"{size} of {kind} after decision {number}")

    def check_memory(self) -> dict[str, int]:
        """Compare the audit, the incidents and the entries with the ledger; removals by cause."""
        document = json.loads((self.folder / "agent.json").read_text(encoding="utf-8"))
        stored = Counter(entry["key"].partition(":")[0] for entry in document["entries"])
        memory = Memory.open(self.folder / "agent.json", clock=lambda: START + MONTH)
        incidents = Incidents(memory, CATEGORIES)
        tally = Audit(memory).tally()
        told = {what: number for what, number in tally.removed.items() if what[0] != "expired"}
        self.expect("removed", told, dict(self.removed))
        self.expect("repeated", tally.repeated, self.repeated)
        counts = {name: incident.count for name, incident in incidents.snapshot().items()}
        self.expect("incidents", counts, dict(self.recorded))
        self.expect("identity", document["identity"]["data"], IDENTITY)
        # Expired entries leave with any save, so that no call tells of them; but what came in has
        # to be there, or to have left by a cause.
        left: Counter[str] = Counter()
        for (cause, kind), number in tally.removed.items():
            left[kind] += number if cause != "replaced" else 0
        self.expect("entries", dict(stored), {kind: self.new[kind] - left[kind] for kind in LIMITS})
        most = sum(LIMITS.values()) * ENTRY_BYTES + OTHER_BYTES
        if self.largest > most:
            self.problems.append(f"the file had {self.largest} bytes, over {most}")
        causes: Counter[str] = Counter()
        for (cause, _), number in tally.removed.items():
            causes[cause] += number
        return dict(causes)

    def check_archive(self) -> tuple[int, int, int]:
        """Compare the archive with the ledger; entries and bytes in it, and snapshots dropped."""
        folder = self.folder / "archive"
        archive = Archive(folder, max_bytes=self.archive_bytes)
        self.expect("damaged snapshots", archive.verify(), [])
        names = sorted(path.name for path in folder.glob("*.json.gz"))
        kept = {json.dumps(e.to_state()) for name in names for e in archive.restore(name)}
        left_at = {entry: number for number, entry in self.evicted}
        self.expect("archived but never evicted", kept - left_at.keys(), set())
        # The oldest are dropped, and only over the bound.
        lost = max((number for entry, number in left_at.items() if entry not in kept), default=-1)
        self.expect("older than a lost one", [e for e in kept if left_at[e] < lost], [])
        dropped = self.written - len(names)
        self.expect("whether some were lost", lost >= 0, dropped > 0)
        for _, entry in sorted(self.evicted)[-3:]:
            key = json.loads(entry)["key"]
            found = [json.dumps(one.entry.to_state()) for one in archive.find(key)]
            if entry not in found:
                self.problems.append(f"{key} is not found in the archive")
        size = sum(path.stat().st_size for path in folder.iterdir())
        unseen = min(RECOUNT, 2 * self.lifetime) * SNAPSHOT_BYTES
        if size > self.archive_bytes + unseen or (dropped and size < self.archive_bytes - unseen):
            self.problems.append(f"the archive has {size} bytes, not about {self.archive_bytes}")
        return len(kept), size, dropped

    def expect(self, what: str, found: object, wanted: object) -> None:
        """Note a difference."""
        if found != wanted:
            self.problems.append(f"{what}: {str(found)[:300]}, not {str(wanted)[:300]}")


def run_month(
    folder: Path, decisions: int, *, lifetime: int, archive_bytes: int
) -> tuple[Figures, list[str]]:
    """Live a month in which each process makes ``lifetime`` decisions; figures and problems."""
    began = time.perf_counter()
    month = Month(folder, decisions, lifetime, archive_bytes)
    lives = [threading.Thread(target=month.live) for _ in range(2)]
    for life in lives:
        life.start()
    for life in lives:
        life.join()
    seconds = time.perf_counter() - began
    if month.problems:
        return Figures(decisions, month.processes, {}, 0, 0, 0, 0, 0, seconds), month.problems
    removed = month.check_memory()
    archived, size, dropped = month.check_archive()
    figures = Figures(
        decisions=decisions,
        processes=month.processes,
        removed=removed,
        repeated=month.repeated,
        archived=archived,
        dropped=dropped,
        largest=month.largest,
        archive_bytes=size,
        seconds=seconds,
    )
    return figures, month.problems


if __name__ == "__main__":
    work(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
