"""The path of a file: as a caller gives it, without links, and the names beside it."""

from __future__ import annotations

import errno
import os
from typing import Final

from ._rights import refuse_planted_link

__all__ = ["absolute", "beside", "resolve"]

_MAX_LINKS: Final = 40  # symbolic links followed, as by Linux; then ELOOP
_MAX_STEM: Final = 100  # bytes; a name may have 255, on some encrypted file systems 143


def absolute(path: str | os.PathLike[str]) -> str:
    """The path that a caller gave, from the root on; a later change of folder does not matter.

    ``~`` is the home folder. ``TypeError`` or ``ValueError`` for what cannot name a file.
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise TypeError(f"path must be a str or a path object of one, not {type(path).__name__}")
    if not text:
        raise ValueError("path is empty")
    if "\0" in text:
        raise ValueError("path has a NUL character")
    separators = tuple(filter(None, (os.sep, os.altsep)))
    if text.endswith(separators):
        raise ValueError(f"path must be that of a file, and {text!r} is that of a folder")
    text = _with_home(text)
    if os.name == "posix" and ".." in text.split(os.sep):
        # What ".." means after a symbolic link is only known when the file is opened.
        return os.path.join(os.getcwd(), text)
    return os.path.abspath(text)


def _with_home(text: str) -> str:
    """``text`` with the folder that ``~`` or ``~user`` at its beginning stands for."""
    first, slash, _ = text.partition(os.sep)
    # A file may be called "~name" where no user is.
    if not first.startswith("~") or (first != "~" and not slash):
        return text
    expanded = os.path.expanduser(text)
    home = os.path.expanduser(first)
    if home == first or not os.path.isabs(home) or (first == "~" and not _has_home()):
        raise ValueError(f"path begins with {first!r}, and there is no such home folder")
    return expanded


def _has_home() -> bool:
    """Whether $HOME is not empty: an empty one would be taken for the root folder."""
    return os.name != "posix" or os.environ.get("HOME") != ""


def resolve(path: str) -> str:
    """The path that the absolute ``path`` stands for, without symbolic links on its way.

    Nothing need exist there. Refuses with ``PermissionError`` a link that leads to the file from
    a folder that everybody may write in, and one on the way there that somebody else put into
    such a folder; the system does the same, but not everywhere. ``OSError`` for links that go in
    a circle.
    """
    if os.name != "posix":
        return _follow_last_link(path)
    real, rest, links = "/", [part for part in reversed(path.split("/")) if part], 0
    while rest:
        name = rest.pop()
        if name in (".", ".."):
            real = real if name == "." else os.path.dirname(real)
            continue
        step = os.path.join(real, name)
        link = _link_at(step)
        if link is None:
            real = step
            continue
        links += 1
        if links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        refuse_planted_link(step, real, last=not rest)
        if link.startswith("/"):
            real = "/"
        rest += [part for part in reversed(link.split("/")) if part]
    return real


def _link_at(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):  # no link, or nothing there
            return None
        raise


def _follow_last_link(path: str) -> str:
    """The path with a link at its end followed; links in its folders are left to the system."""
    real = path
    for _ in range(_MAX_LINKS):
        link = _link_at(real)
        if link is None:
            return real
        real = os.path.join(os.path.dirname(real), link)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def beside(target: str, ending: str) -> str:
    """A hidden name beside ``target``.

    Long names are cut. Files that share a cut name share a lock, so that is harmless.
    """
    folder, stem = os.path.split(target)
    while len(os.fsencode(stem)) > _MAX_STEM:
        stem = stem[:-1]
    return os.path.join(folder, f".{stem}.{ending}")
