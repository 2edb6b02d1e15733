"""Text on a terminal: made harmless, measured, cut, put into columns; and how far work has come.

Nothing here knows of memories. Whatever is shown goes through ``Screen``, and so through ``shown``:
data that others wrote must not move the cursor, change the title or reverse a line.
"""

from __future__ import annotations

import json
import shutil
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

__all__ = [
    "Column",
    "Output",
    "Progress",
    "Screen",
    "Stop",
    "ago",
    "clipped",
    "columns_of",
    "json_text",
    "moment",
    "shown",
    "size_text",
    "span",
]

_ZWJ: Final = "\u200d"
_EMOJI_SIGN: Final = "\ufe0f"  # asks for the picture, two columns wide, of the sign before it
# Format characters that a script or an emoji needs, or that are visible; all others are escaped.
_NEEDED: Final = frozenset(
    "\u200c\u200d\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2"
)
_NEWER_EMOJI: Final = range(0x1F000, 0x1FC00)  # some are unknown to an older interpreter
_MEDIAL_AND_FINAL_JAMO: Final = range(0x1160, 0x1200)  # join the letter before them
_WIDEST_GAP: Final = 2

_AGES: Final = 1e14  # seconds: three million years, which only a damaged clock counts

FIRST_WORD: Final = 0.3
"""Seconds of work before its progress is shown: raised, people wonder; at 0, quick work flickers.
Tried: 0 to 1."""
BETWEEN: Final = 0.1
"""Seconds between two lines of progress: raised, the count jumps; lowered, printing costs time.
Tried: 0.02 to 1."""


class Stop(Exception):
    """The end of a command: a sentence for the person, and the exit code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class Output(Protocol):
    """A text stream, as far as it is needed."""

    def write(self, text: str, /) -> object:
        """Write some text."""

    def flush(self) -> object:
        """Send what was written."""

    def isatty(self) -> bool:
        """Whether a person is looking."""


def shown(text: str) -> str:
    r"""The text on one line, with everything that could act on a terminal escaped.

    Control and format characters, line separators, lone surrogates and private characters become
    their Python escapes; what Persian, Arabic and emoji need to look right stays. A backslash
    stays a backslash.

    >>> print(shown("red \x1b[31m, and two\nlines"))
    red \x1b[31m, and two\nlines
    """
    if text.isprintable():
        return text
    return "".join(char if _is_harmless(char) else ascii(char)[1:-1] for char in text)


def _is_harmless(char: str) -> bool:
    if char.isprintable() or char in _NEEDED or unicodedata.category(char) == "Zs":
        return True
    return unicodedata.category(char) == "Cn" and ord(char) in _NEWER_EMOJI


def json_text(value: Any, *, ascii_only: bool = False, indent: int | None = None) -> str:
    """The value as JSON; what could act on a terminal is written as JSON escapes."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent, allow_nan=False)
    if text.isprintable():
        return text
    return "".join(
        char if char == "\n" or _is_harmless(char) else _json_escape(char) for char in text
    )


def _json_escape(char: str) -> str:
    return "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]


def _cells(text: str) -> list[tuple[str, int]]:
    """The text in parts that must not be cut, each with its width in columns."""
    cells: list[tuple[str, int]] = []
    for char in text:
        if cells and (cells[-1][0].endswith(_ZWJ) or _is_joined(char)):
            former, width = cells.pop()
            cells.append((former + char, 2 if char == _EMOJI_SIGN else width))
        else:
            wide = unicodedata.east_asian_width(char) in ("W", "F")
            cells.append((char, 2 if wide else int(not _is_joined(char))))
    return cells


def _is_joined(char: str) -> bool:
    """Whether the character takes no column of its own."""
    if char < "\u0300":
        return False
    return (
        unicodedata.category(char) in ("Mn", "Me")
        or char in ("\u200c", _ZWJ)
        or ord(char) in _MEDIAL_AND_FINAL_JAMO
    )


def columns_of(text: str) -> int:
    """The width of the text on a terminal, in columns.

    >>> columns_of("abc"), columns_of("日本"), columns_of("e\u0301")
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(width for _, width in _cells(text))


def clipped(text: str, columns: int, *, ending: str = "…") -> str:
    """The text, cut where it is wider than so many columns, and never within a letter.

    >>> clipped("日本語の話", 7)
    '日本語…'
    """
    if columns_of(text) <= columns:
        return text
    room = columns - len(ending)
    kept: list[str] = []
    for part, width in _cells(text):
        room -= width
        if room < 0:
            break
        kept.append(part)
    return ("".join(kept) + ending) if columns >= len(ending) else ""


class Column(NamedTuple):
    """A column of a table; one that is ``spare`` is left out where there is little room."""

    title: str
    right: bool = False
    spare: bool = False


class Screen:
    """The output of a command. On a terminal tables fit its width, elsewhere nothing is cut."""

    def __init__(self, stream: Output | None) -> None:
        self._stream = stream
        self.is_terminal: Final = stream is not None and stream.isatty()
        self.columns: Final = _terminal_columns() if self.is_terminal else None
        encoding = getattr(stream, "encoding", None) or "utf-8"
        self._encoding: Final = encoding
        self.is_unicode: Final = encoding.lower().replace("_", "-").startswith(("utf", "cp65001"))

    def line(self, text: str = "") -> None:
        """One line, escaped."""
        self._write(f"{shown(text)}\n")

    def json(self, value: Any, *, indent: int | None = 2) -> None:
        """A value as JSON."""
        self._write(json_text(value, ascii_only=not self.is_unicode, indent=indent) + "\n")

    def indented(self, text: str) -> None:
        """A text of several lines, each escaped and two columns to the right."""
        for part in text.split("\n"):
            self.line(f"  {part}")

    def value(self, value: Any) -> None:
        """JSON data, indented: a string as the text that it is."""
        self.indented(value if isinstance(value, str) else json_text(value, indent=2))

    def facts(self, facts: Mapping[str, str]) -> None:
        """Names and what they stand for, one on each line."""
        width = max(map(len, facts))
        for name, text in facts.items():
            self.line(f"{name:{width}}  {text}")

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
        """Rows under titles. The last column gets what the others leave, the first is cut too."""
        cells = [[shown(cell) for cell in row] for row in rows]
        chosen = list(range(len(columns)))
        if self.columns is not None and self.columns < _NARROW:
            chosen = [number for number in chosen if not columns[number].spare]
        titles = [columns[number].title for number in chosen]
        lines = [titles, *([row[number] for number in chosen] for row in cells)]
        widths = self._fitting(
            [max(map(columns_of, column)) for column in zip(*lines, strict=True)]
        )
        for line in lines:
            parts = [
                self._padded(cell, width, columns[number].right)
                for cell, width, number in zip(line, widths, chosen, strict=True)
            ]
            self.line("  ".join(parts).rstrip())

    def _fitting(self, widths: list[int]) -> list[int]:
        """Narrower columns, if they are wider than the terminal: the first and the last."""
        if self.columns is None or len(widths) < 2:
            return widths
        first, last = widths[0], widths[-1]
        room = self.columns - sum(widths[1:-1]) - _WIDEST_GAP * (len(widths) - 1)
        if first + last > room:
            # The last one has the text; the first, a key, is told from others by two fifths.
            first = min(first, max(room * 2 // 5, room - last, _LEAST))
            last = min(last, max(room - first, _LEAST))
        return [first, *widths[1:-1], last]

    def _padded(self, cell: str, width: int, right: bool) -> str:
        if self.columns is not None:
            cell = clipped(cell, width, ending="…" if self.is_unicode else "~")
        space = " " * (width - columns_of(cell))
        return space + cell if right else cell + space

    def flush(self) -> None:
        """Send everything; a ``Stop`` if it cannot be sent."""
        self._write("")

    def _write(self, text: str) -> None:
        if self._stream is None:
            if text:
                raise Stop("there is no standard output to write to", 2)
            return
        if not self.is_unicode:
            text = text.encode(self._encoding, "backslashreplace").decode(self._encoding)
        try:
            self._stream.write(text) if text else self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Stop(f"the output cannot be written: {error.strerror}", 2) from error


_NARROW: Final = 60
"""Columns of a terminal under which spare columns are left out: raised, more is missing on an
ordinary terminal of 80; lowered, text has less than half of the line. Tried: 50 to 70."""
_LEAST: Final = 8
"""Columns that a key and a text get in any case; raised, lines break on a narrow terminal."""


def _terminal_columns() -> int:
    return max(20, shutil.get_terminal_size().columns)


class Progress:
    """A line on a terminal that says how far long work has come; silent anywhere else."""

    def __init__(
        self, stream: Output | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream if stream is not None and stream.isatty() else None
        self._clock = clock
        self._next = clock() + FIRST_WORD
        self._width = 0

    def tell(self, text: str, *, now: bool = False) -> None:
        """Show the text in place of the former one, unless that is new; ``now``: in any case."""
        if self._stream is None or not (now or self._clock() >= self._next):
            return
        self._next = self._clock() + BETWEEN
        self._show(clipped(shown(text), _terminal_columns() - 1))

    def end(self) -> None:
        """Take the line away."""
        if self._width:
            self._show("")
            self._show("")

    def _show(self, text: str) -> None:
        width = columns_of(text)
        with suppress(OSError, ValueError):
            if self._stream is not None:
                encoding = getattr(self._stream, "encoding", None) or "utf-8"
                safe = text.encode(encoding, "replace").decode(encoding)
                self._stream.write("\r" + safe + " " * (self._width - width))
                self._stream.flush()
        self._width = width


def moment(seconds: float | None) -> str:
    """A time in epoch seconds as a date in UTC; the number itself where there is no such date.

    >>> moment(1_792_310_400.0)
    '2026-10-18 08:00:00 UTC'
    """
    if seconds is None:
        return "never"
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return f"{seconds} s"


def span(seconds: float) -> str:
    """A length of time in its largest unit, rounded down.

    >>> span(59), span(90), span(7200), span(200_000), span(1e8), span(1e300)
    ('59 s', '1 min', '2 h', '2 d', '3 y', 'ages')
    """
    length = abs(seconds)
    if not length < _AGES:
        return "ages"
    for unit, size, most in (("s", 1, 60), ("min", 60, 60), ("h", 3600, 48), ("d", 86400, 730)):
        if length < size * most:
            return f"{int(length // size)} {unit}"
    return f"{int(length // (365 * 86400))} y"


def ago(seconds: float) -> str:
    """How long ago something was, ``seconds`` before now; in the future if they are negative."""
    return f"in {span(seconds)}" if seconds < 0 else f"{span(seconds)} ago"


def size_text(count: int) -> str:
    """A number of bytes for people.

    >>> size_text(999), size_text(52_100_000)
    ('999 bytes', '52.1 MB')
    """
    if count < 1000:
        return f"{count} bytes"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"
