"""Identity: mission and rules of a program, from its code and not from the stored document."""

from __future__ import annotations

from typing import Any, Final

from .._basics.numbers import whole
from .._basics.plain import dump_json, load_json, plain
from ..memory import Memory

__all__ = ["Identity"]


class Identity:
    """The mission, the rules, what the program never does: ``data``, any JSON value.

    It stands in the document as the section ``name``, for people who look into it, and always is
    what the code says: no file, no compaction and no ``memory.clear()`` changes it. ``version``, a
    whole number of at least 1, says which identity this is; ``stored_version`` which one the
    document had when it was loaded, until it is next written.

    Raises ``TypeError`` or ``ValueError`` for data that JSON cannot hold, a version that is not
    such a number, or a name that is taken.

    >>> identity = Identity(Memory(), {"mission": "Water the plants.", "never": ["Use bleach."]})
    >>> print(identity.text)
    mission: Water the plants.
    never:
    - Use bleach.
    >>> identity.version, identity.stored_version
    (1, None)
    """

    def __init__(
        self, memory: Memory, data: Any, *, version: int = 1, name: str = "identity"
    ) -> None:
        number = whole(version, 0, least=1)
        if not number:
            raise ValueError(f"version must be a whole number of at least 1, not {version!r:.40}")
        self._section: Final = _Section(dump_json(plain(data, "data")), number)
        self._attached: Final = memory.attach(name, self._section)

    @property
    def data(self) -> Any:
        """The data from the code, as a fresh copy."""
        return load_json(self._section.text)

    @property
    def text(self) -> str:
        """The data as text for the instructions of a model.

        Memories are labelled as data in a prompt; rules belong where the model takes orders from.
        """
        return "\n".join(_lines(self.data))

    @property
    def version(self) -> int:
        """The version from the code."""
        return self._section.version

    @property
    def stored_version(self) -> int | None:
        """The version that the document had, ``None`` if it had no identity.

        A higher one than ``version`` means that newer code wrote the document.
        """
        return self._attached.read(lambda _: self._section.stored_version)

    def __repr__(self) -> str:
        return f"<Identity version {self.version}>"


class _Section:
    """The section ``identity``: always the data of the code."""

    def __init__(self, text: str, version: int) -> None:
        self.text: Final = text
        self.version: Final = version
        self.stored_version: int | None = None

    def clear(self) -> None:
        self.stored_version = None

    def dump(self, *, now: int) -> dict[str, Any]:
        # A dump is about to be stored.
        self.stored_version = self.version
        return {"version": self.version, "data": load_json(self.text)}

    def restore(self, value: Any, /, *, now: int) -> None:
        self.stored_version = None
        version = value.get("version") if isinstance(value, dict) else None
        if type(version) is not int or version < 1:
            raise ValueError("identity must be an object with a whole number version from 1 up")
        self.stored_version = version


def _lines(data: Any) -> list[str]:
    """JSON data as lines: members by name, items by dashes, nested values indented."""
    if isinstance(data, dict):
        return [line for name, value in data.items() for line in _named(f"{name}:", value)]
    if isinstance(data, list):
        return [line for value in data for line in _named("-", value)]
    return [data if isinstance(data, str) else dump_json(data)]


def _named(label: str, value: Any) -> list[str]:
    inner = _lines(value)
    if isinstance(value, dict) or (isinstance(value, list) and value):
        indent = "  " if isinstance(value, dict) or label == "-" else ""
        return [label, *(indent + line for line in inner)]
    first, *rest = "\n".join(inner).split("\n") if inner else [""]
    return [f"{label} {first}".rstrip(), *(f"  {line}" for line in rest)]
