"""Best first, in one place."""

from __future__ import annotations

__all__ = ["score"]


def score(relevance: float, importance: float, freshness: float) -> float:
    """What matches are ordered by.

    >>> score(1.0, importance=0.9, freshness=1.0)
    1.0
    """
    return relevance * (0.5 + importance / 2) + 0.05 * freshness
