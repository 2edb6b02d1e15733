"""The command line, for the person who has to know what is in the file of a memory.

    sentinel-memory FILE COMMAND        or        python -m sentinel_memory FILE COMMAND

Here are the table of the commands, the streams, and what becomes of errors; ``_cli`` has the rest.
Commands that only look write nothing, and make no file. The others are one transaction each, and
nothing goes that was not asked for.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Any, Final

from ._cli import changes, looks
from ._cli.arguments import make_parser
from ._cli.call import CLOSED, INTERRUPTED, NOTHING, WRONG, Call
from ._cli.files import File
from ._cli.showing import Output, Progress, Screen, Stop
from .errors import DamagedStoreError, SentinelMemoryError

__all__ = ["main", "run"]

_COMMANDS: Final[Mapping[str, Callable[[Call], int]]] = {
    "list": looks.list_entries,
    "show": looks.show,
    "recall": looks.recall,
    "context": looks.context,
    "stats": looks.stats,
    "check": looks.check,
    "export": looks.export,
    "forget": changes.forget,
    "prune": changes.prune,
    "pin": changes.pin,
    "unpin": changes.unpin,
    "import": changes.import_lines,
}


def main(
    argv: Sequence[str],
    stdin: Any = None,
    stdout: Output | None = None,
    stderr: Output | None = None,
    *,
    clock: Callable[[], float] = time.time,
) -> int:
    """Run one command and return its exit code; ``--help`` has the commands and the codes.

    ``argv`` is without the name of the program. The streams are text streams; ``None`` is one that
    is closed. ``clock`` gives epoch seconds, and is read once.

    >>> import sys
    >>> main(["no such file.json", "list"], stdout=sys.stdout, stderr=sys.stdout)
    sentinel-memory: there is no file no such file.json, and none was made
    2
    """
    screen, notes, progress = Screen(stdout), Screen(stderr), Progress(stderr)
    try:
        options = _parsed(argv, screen, notes)
        if isinstance(options, int):
            screen.flush()
            return options
        now = math.floor(clock() * 1000) / 1000
        name = getattr(options, "name", "")
        file = File(options.file, name, now=now, progress=progress)
        call = Call(options, file, screen, notes, progress, stdin, now)
        code = _COMMANDS[options.command](call)
        screen.flush()
        return code
    except BrokenPipeError:
        return CLOSED
    except KeyboardInterrupt:
        return _failed(notes, progress, "interrupted", INTERRUPTED)
    except Stop as error:
        return _failed(notes, progress, str(error), error.code)
    except DamagedStoreError as error:
        return _failed(notes, progress, str(error), NOTHING)
    except OSError as error:
        return _failed(notes, progress, _sentence(error), WRONG)
    except (SentinelMemoryError, ValueError, RuntimeError) as error:
        return _failed(notes, progress, str(error), WRONG)


def _parsed(argv: Sequence[str], screen: Screen, notes: Screen) -> argparse.Namespace | int:
    """The options, or the exit code if there is no command to run."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            return make_parser().parse_args(list(argv))
    except SystemExit as end:
        for text, to in ((out.getvalue(), screen), (err.getvalue(), notes)):
            for line in text.splitlines():
                to.line(line)
        return end.code if isinstance(end.code, int) else WRONG


def _failed(notes: Screen, progress: Progress, text: str, code: int) -> int:
    progress.end()
    with suppress(OSError, Stop):  # nobody is there to be told
        notes.line(f"sentinel-memory: {text}")
        notes.flush()
    return code


def _sentence(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{os.fsdecode(error.filename)}: {error.strerror}"


def run() -> int:
    """Run the command of this process's own arguments, on its own streams."""
    code = main(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        # What cannot be sent was said already; the interpreter would complain once more.
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return code
