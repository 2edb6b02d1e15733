"""Checks of arguments that are not numbers: a clear ``TypeError`` that names the argument."""

from __future__ import annotations

__all__ = ["check_callable", "check_methods", "check_str"]


def check_str(name: str, value: object) -> None:
    """Refuse what is not a ``str``."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")


def check_callable(name: str, value: object) -> None:
    """Refuse what cannot be called; ``None`` is no value."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable, not {type(value).__name__}")


def check_methods(name: str, value: object, methods: tuple[str, ...]) -> None:
    """Refuse what lacks one of the methods; ``None`` is no value."""
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    expected = f"{name} must be an object with the methods {', '.join(methods)}"
    if isinstance(value, type):
        raise TypeError(f"{expected}, not the class {value.__name__} itself")
    if value is not None and missing:
        raise TypeError(f"{expected}; {type(value).__name__} has no {missing[0]}")
