r"""An agent that runs unattended: it decides, keeps what matters, and can say what it forgot.

printf 'fix the login\nrolled back: the login\n' | python examples/unattended_agent.py agent.json
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial

from sentinel_memory import Memory
from sentinel_memory.agent import Archive, Audit, Identity, Incidents, Weights, clip, fingerprint

IDENTITY = {"mission": "Keep the service healthy.", "never": ["Deploy while tests fail."]}
LIMITS = {"decision": 200, "lesson": 50}  # neither kind drives out the other
WEIGH = Weights("action", {"EVOLVE": 0.8, "REJECT": 0.7, "SKIP": 0.2}, words=["security"])


def run(path: str, lines: Iterable[str], clock: Callable[[], float] = time.time) -> None:
    """Decide about each line, learn from ``rolled back: ...``, and say what was forgotten."""
    archive = Archive(f"{path}.archive", clock=clock)
    memory = Memory.open(path, limit=250, limits=LIMITS, on_evict=archive, clock=clock)
    identity, audit = Identity(memory, IDENTITY, version=1), Audit(memory)
    incidents = Incidents(memory, ["rollback"], half_life=timedelta(days=30))
    archive(memory.last_load and memory.last_load.compaction)  # over limits that were lowered
    before = audit.tally()

    def keep(key: str, record: dict[str, str], went_wrong: bool, memory: Memory) -> None:
        memory.remember(key, clip(record), importance=1.0 if went_wrong else WEIGH(record))
        if went_wrong:
            incidents.record("rollback")

    for line in filter(None, map(str.strip, lines)):
        if went_wrong := line.startswith("rolled back: "):
            key, record = f"lesson:{fingerprint(line)}", {"lesson": line}
        else:
            memory.refresh()  # another agent may share the file
            trouble = incidents.snapshot()["rollback"].level
            instructions = f"{identity.text}\nTrouble lately: {trouble:.1f}"
            action = decide(instructions, memory.get_context(500, query=line).text, line)
            key, record = f"decision:{fingerprint(action, line)}", {"action": action, "on": line}
            print(f"{action} {line}")
        memory.transact(partial(keep, key, record, went_wrong))  # again the same is a repeat
    since = audit.tally() - before
    print(f"{len(memory)} entries, {since.repeated} repeated, forgotten: {dict(since.removed)}")
    archive.flush()


def decide(instructions: str, known: str, proposal: str) -> str:
    """The place of a model: orders come from the ``instructions``; ``known`` is data."""
    if float(instructions.rpartition(": ")[2]) >= 2 or f"rolled back: {proposal}" in known:
        return "REJECT"
    return "EVOLVE" if "fix" in proposal else "SKIP"


if __name__ == "__main__":
    run(sys.argv[1], sys.stdin)
