"""What the benchmark scripts share: medians of repeated runs, and one table."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Sequence


def median_ms(
    run: Callable[[], object], *, repeats: int = 7, warm_up: int = 1, calls: int = 1
) -> float:
    """The median time of one call, in milliseconds, after ``warm_up`` runs that do not count.

    Each run is ``calls`` calls: more than one for what takes less than a millisecond.
    """

    def several(_: object) -> None:
        for _call in range(calls):
            run()

    return median_ms_after(lambda: None, several, repeats=repeats, warm_up=warm_up) / calls


def median_ms_after(
    prepare: Callable[[], object],
    run: Callable[[object], object],
    *,
    repeats: int = 7,
    warm_up: int = 1,
) -> float:
    """The same for calls that each need a fresh start: ``prepare`` is not part of the time.

    ``run`` gets what ``prepare`` returned. The garbage collector does not run meanwhile.
    """
    times = []
    for number in range(warm_up + repeats):
        given = prepare()
        gc.collect()
        gc.disable()
        try:
            start = time.perf_counter()
            run(given)
            passed = time.perf_counter() - start
        finally:
            gc.enable()
        if number >= warm_up:
            times.append(passed * 1000)
    return statistics.median(times)


def shown(value: object) -> str:
    """A number as a table shows it: three significant digits, thousands apart."""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table in Markdown, aligned for reading as it is."""
    cells = [list(columns), *([shown(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    print(f"\n## {title}\n")
    for number, row in enumerate(cells):
        aligned = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("| " + " | ".join(aligned) + " |")
        if number == 0:
            rules = [
                "-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)
            ]
            print("| " + " | ".join(rules) + " |")
