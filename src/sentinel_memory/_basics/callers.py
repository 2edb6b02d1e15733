"""Warnings at the line of the program that called the package, from any depth inside it."""

from __future__ import annotations

__all__ = ["warn_caller"]


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn at the line that called the package; a program may make the warning an error."""
    import inspect  # heavy, and needed for a warning only
    import warnings

    package = __name__.partition(".")[0]
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
