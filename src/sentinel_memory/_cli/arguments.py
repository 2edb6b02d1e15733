"""What can be typed: the commands, their arguments, and their help."""

from __future__ import annotations

import argparse
import math

from .selecting import AGES, FIELDS, age, condition

__all__ = ["make_parser"]

_DESCRIPTION = """\
Look into the file of a memory, JSON or SQLite, and change it.

list, show, recall, context, stats, check and export only look: they write
nothing. The others are one transaction each; --dry-run says what they would
do. The limits of the memory evict nothing unless --evict allows it.
COMMAND --help has the options."""

_CODES = """\
exit codes:
  0    done
  1    nothing found, a key that is not there, a refusal (nothing was written),
       or a damaged file; of check: something is wrong with the file
  2    a wrong command line, no such file, or one that cannot be read or written
  130  interrupted with Ctrl-C
  141  the reader of the output has gone"""

_WHERE = f"only entries whose FIELD compares so, with = != < <= > >= or ~ (contains); {FIELDS}"


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    shared = _shared()
    parser = argparse.ArgumentParser(
        prog="sentinel-memory",
        description=_DESCRIPTION,
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[shared],
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="the file of the memory")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, text: str, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        return commands.add_parser(
            name, help=text, description=text, parents=[shared, *parents], allow_abbrev=False
        )

    _add_looking(command("list", "the entries, newest first", _selecting()), "list")
    _add_looking(command("show", "all about one entry"), "show")
    _add_looking(command("recall", "the entries that answer a question", _selecting()), "recall")
    text = "what a prompt would hold for a question, and why each entry is in it or not"
    _add_looking(command("context", text, _selecting()), "context")
    command("stats", "how much there is of what, and the limits")
    command("check", "what is wrong with the file: damage, entries that are not valid, limits")
    command("export", "the entries as JSON lines, the expired ones not", _selecting())
    forget = command("forget", "forget entries, whatever their state", _writing())
    forget.add_argument("keys", metavar="KEY", nargs="+", help="the key of an entry")
    prune = command("prune", "forget all entries that are meant", _selecting(), _writing())
    prune.add_argument("--pinned", action="store_true", help="pinned entries too")
    for name, text in (("pin", "keep entries whatever the limit"), ("unpin", "undo pin")):
        one = command(name, text, _writing())
        one.add_argument("keys", metavar="KEY", nargs="+", help="the key of an entry")
    _add_importing(command("import", "add the entries of JSON lines", _writing()))
    return parser


def _shared() -> argparse.ArgumentParser:
    # Absent unless given: else the default of a command would undo what stands before it.
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    shared.add_argument("--json", action="store_true", help="print JSON")
    shared.add_argument("--name", metavar="NAME", help="which of several memories in a database")
    return shared


def _selecting() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(
        "--kind", metavar="KIND", type=_kind, help="only keys that begin with KIND:"
    )
    parser.add_argument(
        "--where", metavar="CONDITION", type=condition, action="append", default=[], help=_WHERE
    )
    parser.add_argument("--older", metavar="AGE", type=age, help=f"last remembered before: {AGES}")
    parser.add_argument("--newer", metavar="AGE", type=age, help="last remembered since")
    return parser


def _writing() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do not")
    parser.add_argument(
        "--evict", action="store_true", help="let the least valuable entries go that are too many"
    )
    parser.add_argument("--limit", metavar="N", type=_count, help="the new limit of the memory")
    return parser


def _add_looking(parser: argparse.ArgumentParser, command: str) -> None:
    if command == "list":
        parser.add_argument("-n", metavar="N", type=_count, help="at most so many")
        return
    if command == "show":
        parser.add_argument("key", metavar="KEY", help="the key of the entry")
        return
    parser.add_argument("question", metavar="QUESTION", help="the question, in one argument")
    parser.add_argument(
        "--index",
        choices=("words", "conversation"),
        default="words",
        help="how entries are found: words is what a memory has by itself (default: %(default)s)",
    )
    if command == "recall":
        parser.add_argument(
            "-n", metavar="N", type=_count, default=5, help="at most so many (default: %(default)s)"
        )
        return
    parser.add_argument(
        "--budget", metavar="N", type=_budget, required=True, help="the most tokens of the text"
    )
    parser.add_argument(
        "--tokens",
        choices=("estimate", "careful"),
        default="estimate",
        help="how tokens are counted (default: %(default)s)",
    )
    parser.add_argument("--all", action="store_true", help="show every entry that is left out")


def _add_importing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "lines",
        metavar="LINES",
        nargs="?",
        default="-",
        help="a file of JSON lines; - is the input",
    )
    parser.add_argument(
        "--replace", action="store_true", help="overwrite entries whose keys are there already"
    )
    parser.add_argument(
        "--skip-invalid", action="store_true", help="import the rest if lines are not entries"
    )


def _kind(text: str) -> str:
    if ":" in text:
        raise argparse.ArgumentTypeError(f"{text!r} has a colon; a kind is what stands before it")
    return text


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16 and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _budget(text: str) -> float:
    try:
        budget = float(text)
    except ValueError:
        budget = -1
    if not (math.isfinite(budget) and budget >= 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of tokens, 0 or more")
    return int(budget) if budget.is_integer() else budget
