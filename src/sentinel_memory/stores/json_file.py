"""A memory in a JSON file: saved whole or not at all, and never over what somebody else wrote."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any, Final, TypeAlias
from weakref import ref

from .._basics.callers import warn_caller
from .._basics.forks import Forks
from .._basics.numbers import optional_count
from .._basics.times import waiting_option
from ..document import State, shape_problem
from ..errors import AlteredStoreWarning, DamagedStoreError, StoreConflictError
from . import _codec, _files, _locks, _paths, _turns

__all__ = ["JsonFileStore"]

_Fingerprint: TypeAlias = tuple[int, int]

_LOCK_TIMEOUT: Final = 30.0  # seconds a save waits for another writer


class _Call:
    """A load or save under way.

    The store holds it weakly, so that an interrupted ``finally`` cannot leave the store busy.
    """

    __slots__ = ("__weakref__",)


def _no_call() -> None:
    """Stand in for the reference to a call when there is none."""


class JsonFileStore:
    """Keeps one document in the file at ``path``, one line of JSON in UTF-8.

    ``path`` is a ``str`` or a path object; ``~`` is the home folder. The constructor touches no
    file; it raises ``TypeError`` or ``ValueError`` for what cannot be the path of a file. The
    store can be used from several threads, by several processes, and on after a fork; a copy or
    a pickle of it is a new store on the same path, which has not read anything.

    A symbolic link is written through, a hard link is not: it keeps the old document. An empty
    hidden file, ``.<name>.lock``, stays beside the file; it orders the writers. ``lock_timeout`` is
    how long a call waits for another writer, at least 0 seconds or a ``timedelta``; then a
    ``TimeoutError`` is raised. On a file system without locks ``save`` does without, and
    ``exclusive`` is an ``OSError``, unless ``locks=False`` promises that all writers are threads of
    one process. ``max_bytes``, a whole number of at least 1, bounds what is read and written. A
    number that is not one of these is ignored, with an ``IgnoredValueWarning``.

    The file ends with the member ``digest``: the SHA-256, in hexadecimal, of all bytes of the file
    before the comma that precedes it. It is no part of the document. ``load`` takes it off and
    says by ``altered``, and by an ``AlteredStoreWarning``, if it does not fit.

    In a folder that everybody may write in, links and files of other users are refused with a
    ``PermissionError``; in the folder of a group its members share the file, which keeps its
    group, mode and access-control list.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = JsonFileStore(os.path.join(folder, "guest.json"))
    ...     print(store.load())
    ...     store.save({"version": 1, "entries": []})
    ...     print(store.load())
    None
    {'version': 1, 'entries': []}
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        lock_timeout: float | timedelta = _LOCK_TIMEOUT,
        locks: bool = True,
        max_bytes: int | None = None,
    ) -> None:
        self._path: Final = _paths.absolute(path)
        self._timeout: Final = waiting_option(lock_timeout, "lock_timeout", _LOCK_TIMEOUT)
        self._locks: Final = bool(locks)
        self._most: Final = optional_count("max_bytes", max_bytes, "no bound")
        # Fingerprints: of the file that this store may overwrite, and of the one that a failed save
        # may have written; then the identity of the file when ``_known`` was last confirmed.
        self._known: _Fingerprint | None = None
        self._coming: _Fingerprint | None = None
        self._settled: tuple[int, ...] | None = None
        self._altered = False
        self._swept = False
        self._lock = threading.RLock()
        self._call: Callable[[], _Call | None] = _no_call
        _forks.register(self)

    @property
    def path(self) -> str:
        """The absolute path; a later change of the working folder does not change it."""
        return self._path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._path!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self._path, self._timeout, self._locks, self._most)

    @property
    def altered(self) -> bool:
        """Whether the document last loaded was not as it was saved; false if nothing was there."""
        return self._altered

    @property
    def version(self) -> Hashable | None:
        """A token for the document last loaded or saved, ``None`` if there was none.

        Equal tokens, within this process, mean equal documents.
        """
        return self._known

    def load(self) -> State | None:
        """The document in the file, ``None`` if there is no file.

        From now on a save may overwrite the document that was read, even if no memory loaded it:
        to overwrite on purpose, call ``store.load()`` before the save.

        Raises ``DamagedStoreError``, with the file untouched and still not to be overwritten,
        for anything but a whole document of version 1, and for more than ``max_bytes``;
        ``IsADirectoryError`` for a folder; other ``OSError`` as the system raises them.
        """
        with self._alone():
            found = self._read()
            if found is None:
                self._known = self._coming = self._settled = None
                self._altered = False
                return None
            state, altered = _codec.from_file(found.data, self._path)
            self._known, self._coming = _fingerprint(found.data), None
            self._settled, self._altered = _files.settled(found.status), altered
        if altered:
            self._warn()
        return state

    def save(self, state: State, /) -> None:
        """Replace the document in the file; at any crash it is the old or the new one, whole.

        When this returns, the document is on the disk. Missing folders are made. A file that
        was deleted is written anew. New files and folders are for their owner only; an existing
        file keeps its mode, but for set-id bits.

        Raises, with the file as it was: ``StoreConflictError`` if it is not the one that this store
        last read or wrote; ``TypeError`` or ``ValueError`` for a state that ``load`` could not give
        back, or of more than ``max_bytes``; ``TimeoutError`` if another writer was not done in
        time; ``OSError`` if the disk is full, a permission is missing, and so on. Only if flushing
        the folder fails, at the very end, the file is already the new one.
        """
        data = _codec.to_file(state)
        problem = shape_problem(state)
        if problem is not None:
            raise ValueError(f"state is not a document that could be read back: {problem}")
        if self._most is not None and len(data) > self._most:
            raise ValueError(
                f"state has {len(data)} bytes as a file, and max_bytes is {self._most};"
                " nothing was written"
            )
        with self._turn() as turn, self._alone():
            if turn.in_use() or not self._swept:
                self._swept = self._sweep(turn)
            self._replace(turn, data)
            _files.sync_folder(os.path.dirname(turn.target))

    def exclusive(self) -> AbstractContextManager[object]:
        """A block in which nobody else writes the file: no other thread, no other process.

        ``load`` and ``save`` of this store are part of the block. It belongs to the thread and
        task that entered it, and to what is started inside with a copy of its context. Whoever
        else saves waits, up to ``lock_timeout``; readers do not. Missing folders are made.

        Raises ``TimeoutError`` as ``save`` does, and ``OSError`` if the file system has no locks
        and the store was not made with ``locks=False``. A caller that would wait for itself
        gets a ``RuntimeError`` at once: for a second block of the same file in one thread, or a
        save of another store in it.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = JsonFileStore(os.path.join(folder, "guest.json"))
        ...     with store.exclusive():
        ...         state = store.load() or {"version": 1, "entries": []}
        ...         store.save({**state, "visits": state.get("visits", 0) + 1})
        ...     print(store.load()["visits"])
        1
        """
        return self._turn(exclusive=True)

    def changed(self) -> bool:
        """Whether the document is another one than was last loaded or saved, vanished or damaged.

        Costs one ``stat`` if the times of the file say that it is the same, which they can once
        they are 2 s old; otherwise the file is read.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mine = JsonFileStore(os.path.join(folder, "guest.json"))
        ...     mine.save({"version": 1, "entries": []})
        ...     other = JsonFileStore(mine.path)
        ...     _ = other.load()
        ...     other.save({"version": 1, "entries": [], "visits": 1})
        ...     print(mine.changed(), other.changed())
        True False
        """
        with self._alone():
            if self._settled is not None:
                try:
                    now = os.stat(self._path)
                except FileNotFoundError:
                    return True
                if _files.settled(now) == self._settled:
                    return False
            try:
                found = self._read()
            except DamagedStoreError:  # longer than max_bytes
                return True
            if found is None:
                return self._known is not None
            if _fingerprint(found.data) not in (self._known, self._coming):
                return True
            self._settled = _files.settled(found.status)
            return False

    def sweep(self) -> None:
        """Remove the temp files of writers that were killed, which hold the text of a document.

        ``save`` does this after a crash that it knows of; ``sweep`` looks in any case, so that no
        forgotten text stays behind. Costs the listing of a folder if there is nothing,
        and waits for other writers only if there is. Where the file system has no locks, nobody
        knows whether the writer of a temp file lives, and it stays.
        """
        target = _paths.resolve(self._path)
        try:
            if not _files.temp_files(target):
                return
        except (FileNotFoundError, PermissionError):  # no folder, or one that may not be listed
            return
        with self._turn() as turn, self._alone():
            self._swept = self._sweep(turn)

    def _turn(self, *, exclusive: bool = False) -> _turns.Turn:
        target = _paths.resolve(self._path)
        _files.make_folder(os.path.dirname(target))
        return _turns.Turn(
            target,
            owner=self,
            path=self._path,
            timeout=self._timeout,
            locks=self._locks,
            exclusive=exclusive,
        )

    def _read(self) -> _files.Found | None:
        target = _paths.resolve(self._path)
        try:
            return _files.read(target, most=self._most)
        except _files.TooLongError as error:
            problem = f"it has {error} bytes, and max_bytes is {self._most}"
        except OSError as error:
            if error.filename == target:
                error.filename = self._path
            raise
        raise DamagedStoreError(problem, path=self._path)

    def _sweep(self, turn: _turns.Turn) -> bool:
        """Whether no temp file is left; true also if sweeping is impossible without locks."""
        if self._locks and not turn.locked:
            return True
        try:
            paths = _files.temp_files(turn.target)
        except OSError:  # a folder that one may not list does not keep one from saving
            return False
        dead = [path for path in paths if not turn.is_alive(path)]
        return _files.sweep(dead) and len(dead) == len(paths)

    def _replace(self, turn: _turns.Turn, data: bytes) -> None:
        target = turn.target
        before = self._read_to_replace(target)
        old = None if before is None else _fingerprint(before.data)
        if old is not None and old not in (self._known, self._coming):
            raise self._conflict()
        rights = None if before is None else before.rights
        with _files.new_file(
            target, data, rights, when_created=turn.hold, marker=turn.marker
        ) as temp:
            # Flushing may have taken long, and not everybody who writes asks for the lock.
            now = self._read_to_replace(target)
            if now is not None and (before is None or now.data != before.data):
                raise self._conflict()
            # The rename may be interrupted, or fail and have taken place: until it is known, both
            # fingerprints are accepted as our own.
            self._known, self._coming, self._settled = old, _fingerprint(data), None
            try:
                _files.replace(temp, target, new=now is None)
            except FileExistsError:
                raise self._conflict() from None
            turn.adopt()
        self._known, self._coming = self._coming, None

    def _read_to_replace(self, target: str) -> _files.Found | None:
        try:
            return _files.read(target, to_replace=True, most=self._most)
        except _files.TooLongError:  # so it is not the file that this store last read or wrote
            raise self._conflict() from None

    def _warn(self) -> None:
        try:
            warn_caller(
                f"{self._path} is not as it was saved: somebody edited it, or it was damaged; it"
                " was loaded as it is, and the next save makes it good",
                AlteredStoreWarning,
            )
        except BaseException:  # a filter makes it an error; then nothing was loaded
            self._known = None
            raise

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
        """A block for one thread at a time; a signal handler inside it gets a ``RuntimeError``."""
        with self._lock:
            if self._call() is not None:
                raise RuntimeError(
                    f"{self!r} is in the middle of a load or save of this very thread;"
                    " in a signal handler set a flag, and save when the call has returned"
                )
            call = _Call()
            self._call = ref(call)
            try:
                yield
            finally:
                self._call = _no_call


def _fingerprint(data: bytes) -> _Fingerprint:
    """A fingerprint of ``data``, for this process only.

    The hash of ``bytes`` is a keyed one of 64 bits, far cheaper here than importing ``hashlib``.
    Times and inode numbers would not do: both repeat, and files are also edited in place.
    """
    return len(data), hash(data)


def _unpickled(
    kind: type[JsonFileStore], path: str, timeout: float, locks: bool, most: int | None
) -> JsonFileStore:
    """A copy of a store, which has read nothing."""
    return kind(path, lock_timeout=timeout, locks=locks, max_bytes=most)


def _after_fork(store: JsonFileStore) -> None:
    """Reset the store in a forked child, where a thread that was in a call does not exist."""
    _locks.opening.release()
    _turns.give_up_turns()
    store._lock = threading.RLock()
    store._call = _no_call
    store._coming = None  # the document that such a thread was writing is not from this process


_forks: Final = Forks(
    before=lambda _: _locks.opening.acquire(),
    in_parent=lambda _: _locks.opening.release(),
    in_child=_after_fork,
)
