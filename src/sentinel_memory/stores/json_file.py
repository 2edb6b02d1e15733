"""A memory in a JSON file: saved whole or not at all, and never over what somebody else wrote."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from .._basics.forks import Forks
from ..document import State, shape_problem
from ..errors import StoreConflictError
from . import _codec, _files

__all__ = ["JsonFileStore"]

_Fingerprint: TypeAlias = tuple[int, int]


class JsonFileStore:
    """Keeps one document in the file at ``path``, one line of JSON in UTF-8.

    ``path`` is a ``str`` or a path object; ``~`` is the home folder. The constructor touches no
    file; it raises ``TypeError`` or ``ValueError`` for what cannot be the path of a file. The
    store can be used from several threads, by several processes, and on after a fork; a copy or
    a pickle of it is a new store on the same path, which has not read anything.

    A symbolic link is written through, a hard link is not: it keeps the old document. An empty
    hidden file, ``.<name>.lock``, stays beside the file; it orders the writers and must be
    there for all of them. The writers of one file are meant to be processes of one user.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = JsonFileStore(os.path.join(folder, "guest.json"))
    ...     print(store.load())
    ...     store.save({"version": 1, "entries": []})
    ...     print(store.load())
    None
    {'version': 1, 'entries': []}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path: Final = _absolute(path)
        self._known: _Fingerprint | None = None  # of what may be overwritten
        self._coming: _Fingerprint | None = None  # of what a save that failed may have left
        self._swept = False
        self._lock = threading.RLock()
        self._busy = False
        _forks.register(self)

    @property
    def path(self) -> str:
        """The absolute path; a later change of the working folder does not change it."""
        return self._path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._path!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._path,)

    def load(self) -> State | None:
        """The document in the file, ``None`` if there is no file.

        From now on a save may overwrite what was read, also if it is not what was loaded into
        a memory: ``store.load()`` before a save is how to overwrite on purpose.

        Raises ``DamagedStoreError``, with the file untouched and still not to be overwritten,
        for anything but a whole document of version 1; ``IsADirectoryError`` for a folder;
        other ``OSError`` as the system raises them.
        """
        with self._alone():
            found = _files.read(self._path)
            if found is None:
                self._known = self._coming = None
                return None
            state = _codec.from_bytes(found.data, self._path)
            self._known, self._coming = _fingerprint(found.data), None
            return state

    def save(self, state: State, /) -> None:
        """Replace the document in the file; at any crash it is the old or the new one, whole.

        When this returns, the document is on the disk. Missing folders are made. A file that
        was deleted is written anew. New files and folders are for their owner only; an existing
        file keeps its mode.

        Raises, with the file as it was: ``StoreConflictError`` if it is not what this store
        last read or wrote; ``TypeError`` or ``ValueError`` for a state that ``load`` could not
        give back; ``OSError`` if the disk is full, a permission is missing, and so on. Only if
        flushing the folder fails, at the very end, the file is already the new one.
        """
        data = _codec.to_bytes(state)
        problem = shape_problem(state)
        if problem is not None:
            raise ValueError(f"state is not a document that could be read back: {problem}")
        with self._alone():
            target = _files.resolve(self._path)
            folder = os.path.dirname(target)
            _files.make_folder(folder)
            with _files.locked(target) as lock:
                if lock is not None:
                    self._swept = _files.sweep(target, lock, thoroughly=not self._swept)
                self._replace(target, data, lock)
                _files.sync_folder(folder)

    def _replace(self, target: str, data: bytes, lock: int | None) -> None:
        before = _files.read(target, to_replace=True)
        old = None if before is None else _fingerprint(before.data)
        if old is not None and old not in (self._known, self._coming):
            raise self._conflict()
        status = None if before is None else before.status
        with _files.new_file(target, data, status, lock) as temp:
            # Flushing may have taken long, and not everybody who writes asks for the lock.
            now = _files.read(target, to_replace=True)
            if now is not None and (before is None or now.data != before.data):
                raise self._conflict()
            # Should the rename be interrupted, or fail and have taken place, either is ours.
            self._known, self._coming = old, _fingerprint(data)
            _files.replace(temp, target)
        self._known, self._coming = self._coming, None

    def _conflict(self) -> StoreConflictError:
        if self._known is not None:
            what = "changed since this store last read or wrote it"
        else:
            what = "exists, and this store has not read it"
        return StoreConflictError(
            f"{self._path} {what}; nothing was written. Load it into the memory to go on from"
            " there, or call load() of the store and save again to overwrite it"
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time; a signal handler in the middle of a call gets an error."""
        with self._lock:
            if self._busy:
                raise RuntimeError(
                    f"{self!r} is in the middle of a load or save of this very thread;"
                    " in a signal handler set a flag, and save when the call has returned"
                )
            self._busy = True
            try:
                yield
            finally:
                self._busy = False


def _fingerprint(data: bytes) -> _Fingerprint:
    """A fingerprint of ``data``, for this process only.

    The hash of ``bytes`` is a keyed one of 64 bits, far cheaper here than importing ``hashlib``.
    Times and inode numbers would not do: both repeat, and files are also edited in place.
    """
    return len(data), hash(data)


def _absolute(path: str | os.PathLike[str]) -> str:
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
    text = os.path.expanduser(text)
    if os.name == "posix" and ".." in text.split(os.sep):
        # What ".." means after a symbolic link is only known when the file is opened.
        return os.path.join(os.getcwd(), text)
    return os.path.abspath(text)


def _after_fork(store: JsonFileStore) -> None:
    """A thread that was in a call when another one forked does not exist in the child."""
    _files.opening.release()
    _files.close_inherited_locks()
    store._lock = threading.RLock()
    store._busy = False
    store._coming = None  # what that thread was about to write is not from this process


_forks: Final = Forks(
    before=lambda _: _files.opening.acquire(),
    in_parent=lambda _: _files.opening.release(),
    in_child=_after_fork,
)
