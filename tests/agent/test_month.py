"""A month of an agent, made short: its file, its audit and its archive agree with what happened."""

from __future__ import annotations

from pathlib import Path

from support.month import run_month


def test_a_month_of_two_restarted_processes_stays_within_limits_and_loses_no_account(
    tmp_path: Path,
) -> None:
    """``benchmarks/month.py`` lives the whole month of 30,000 decisions."""
    figures, problems = run_month(tmp_path, 340, lifetime=60, archive_bytes=20_000)
    assert problems == []
    assert figures.processes >= 4
    assert set(figures.removed) == {"evicted", "expired", "forgotten", "replaced"}
    assert min(figures.removed.values()) >= 5
    assert min(figures.repeated, figures.archived, figures.dropped) >= 5
