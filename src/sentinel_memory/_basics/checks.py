"""Checks of arguments that are not numbers: a clear ``TypeError`` that names the argument."""

from __future__ import annotations

__all__ = ["brief", "check_callable", "check_methods", "check_str", "plain_str"]


def check_str(name: str, value: object) -> None:
    """Raise ``TypeError`` for a value that is not a ``str``."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")


def plain_str(name: str, value: object) -> str:
    """A ``str`` as a plain one, ignoring overrides of a subclass; otherwise ``TypeError``."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    return str.__str__(value)


def check_callable(name: str, value: object, *, optional: bool = False) -> None:
    """Raise ``TypeError`` for a value that is not callable, nor ``None`` if it is optional."""
    if not callable(value) and not (optional and value is None):
        raise TypeError(f"{name} must be callable, not {type(value).__name__}")


def check_methods(
    name: str, value: object, methods: tuple[str, ...], *, optional: bool = False
) -> None:
    """Raise ``TypeError`` for a value without the methods, unless it is optional and ``None``."""
    if optional and value is None:
        return
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    needed = "method" if len(methods) == 1 else "methods"
    expected = f"{name} must be an object with the {needed} {', '.join(methods)}"
    if isinstance(value, type):
        raise TypeError(f"{expected}, not the class {value.__name__} itself")
    if missing:
        raise TypeError(f"{expected}; {type(value).__name__} has no {missing[0]}")


def brief(value: object) -> str:
    """A wrong value in a message: a number as it is, anything else by its type (and length)."""
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)} items"
    if isinstance(value, int) and value.bit_length() > 1_000:
        return "a number of hundreds of digits"
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, str):
        return f"a str of {len(value)} characters"
    return f"an object of type {type(value).__name__}"
