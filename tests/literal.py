"""Packing done literally: every text that is considered is rendered and counted whole.

The reference for what ``get_context`` must choose, and the baseline of the benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sentinel_memory.context import Context
from sentinel_memory.entry import Entry


def literal_context(
    entries: Sequence[Entry],
    ranking: Sequence[int],
    budget: float,
    *,
    tokenizer: Callable[[str], float],
    format: Callable[[Entry], str],
    separator: str = "\n",
    header: str = "",
) -> Context:
    """Walk the ranking; take an entry if the whole text with it is within the budget."""
    lines = [format(entry) for entry in entries]

    def render(chosen: Sequence[int]) -> str:
        shown = [lines[index] for index in chosen]
        return separator.join([header, *shown] if header and shown else shown)

    taken: list[int] = []
    left_out: list[str] = []
    text, tokens = "", tokenizer("")
    for index in ranking:
        candidate = sorted([*taken, index])
        candidate_text = render(candidate)
        candidate_tokens = tokenizer(candidate_text)
        if candidate_tokens <= budget:
            taken, text, tokens = candidate, candidate_text, candidate_tokens
        else:
            left_out.append(entries[index].key)
    return Context(
        text, tuple(entries[index] for index in taken), tokens, len(left_out), tuple(left_out)
    )
