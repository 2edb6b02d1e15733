"""Attacks on a file that a memory is kept in, each with a size and, where it draws, a seed.

An attack returns how many tries it made and what was broken afterwards, which should be nothing.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sentinel_memory import AlteredStoreWarning, DamagedStoreError, JsonFileStore, Memory
from support.attacks import Interrupt, at_a_line

WRITERS = 4
DELETED_EVERY = 0.0005  # seconds


def documents(draw: random.Random) -> list[dict[str, Any]]:
    """Small documents, as memories save them."""
    texts = ["peanuts", "Žofie 私", {"a": [1, 2.5, True, None]}, 'a "quoted" \\ word', ""]
    return [
        {
            "version": 1,
            "entries": [
                {
                    "key": f"user:{number}",
                    "data": draw.choice(texts),
                    "importance": draw.random(),
                    "createdAt": 1_792_310_400_000 + number,
                    "updatedAt": 1_792_310_400_000 + number,
                    "expiresAt": None,
                }
                for number in range(size)
            ],
            "working": {"data": {}, "updatedAt": None},
        }
        for size in (0, 1, 3, 8)
    ]


def flip_bit(data: bytearray, draw: random.Random) -> None:
    bit = draw.randrange(8 * len(data))
    data[bit // 8] ^= 1 << bit % 8


def flip_bit_near_the_end(data: bytearray, draw: random.Random) -> None:
    bit = draw.randrange(8 * (len(data) - 90), 8 * len(data))
    data[bit // 8] ^= 1 << bit % 8


def flip_bits(data: bytearray, draw: random.Random) -> None:
    for _ in range(draw.randint(2, 6)):
        flip_bit(data, draw)


def cut_short(data: bytearray, draw: random.Random) -> None:
    del data[draw.randrange(len(data) - 1) :]  # without the line end it is whole


def some_of(data: bytearray, draw: random.Random) -> slice:
    start = draw.randrange(len(data))
    return slice(start, min(len(data), start + draw.randint(1, 40)))


def overwrite(data: bytearray, draw: random.Random) -> None:
    piece = some_of(data, draw)
    data[piece] = draw.randbytes(piece.stop - piece.start)


def overwrite_with_zeros(data: bytearray, draw: random.Random) -> None:
    piece = some_of(data, draw)
    data[piece] = bytes(piece.stop - piece.start)


def overwrite_with_another_piece(data: bytearray, draw: random.Random) -> None:
    piece = some_of(data, draw)
    start = draw.randrange(len(data) - (piece.stop - piece.start) + 1)
    data[piece] = data[start : start + piece.stop - piece.start]


def swap_bytes(data: bytearray, draw: random.Random) -> None:
    one, other = draw.randrange(len(data)), draw.randrange(len(data))
    data[one], data[other] = data[other], data[one]


def double(data: bytearray, draw: random.Random) -> None:
    piece = some_of(data, draw)
    data[piece.start : piece.start] = data[piece]


def insert(data: bytearray, draw: random.Random) -> None:
    data.insert(draw.randrange(len(data)), draw.choice(b'0123456789abc",:{}[] \n'))


DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    flip_bit,
    flip_bit_near_the_end,
    flip_bits,
    cut_short,
    overwrite,
    overwrite_with_zeros,
    overwrite_with_another_piece,
    swap_bytes,
    double,
    insert,
)


def damaged_files(tries: int, seed: int, folder: Path) -> tuple[int, list[str]]:
    """Files that a disk damaged: an error, or known as altered, or no other content."""
    draw = random.Random(seed)
    saved = []
    for number, document in enumerate(documents(draw)):
        store = JsonFileStore(folder / f"{number}.json")
        store.save(document)
        saved.append((document, Path(store.path).read_bytes()))
    path = folder / "damaged.json"
    found = []
    for _ in range(tries):
        document, whole = draw.choice(saved)
        data = bytearray(whole)
        damage = draw.choice(DAMAGES)
        damage(data, draw)
        path.write_bytes(data)
        store = JsonFileStore(path)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", AlteredStoreWarning)
            try:
                state = store.load()
            except DamagedStoreError:
                continue
        if store.altered != bool(caught):
            found.append(f"{damage.__name__}: altered without a warning: {bytes(data)!r}")
        if not store.altered and state != document:
            found.append(f"{damage.__name__}: silently another one: {bytes(data)!r}")
    return tries, found


def add_entries(path: Path, writer: int, count: int) -> None:
    """``count`` transactions, each of which adds an entry."""
    memory = Memory.open(path, limit=WRITERS * count, load=False)
    for number in range(count):
        memory.transact(lambda m, key=f"{writer}:{number}": m.remember(key, key))  # type: ignore[misc]


def lock_deleted_throughout(count: int, folder: Path) -> tuple[int, list[str]]:
    """Four processes with ``count`` transactions each, while the lock file is deleted all the time.

    An error would be an answer, too; there should be none.
    """
    path = folder / "m.json"
    lock = folder / ".m.json.lock"
    children = set()
    for writer in range(WRITERS):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                signal.alarm(300)
                add_entries(path, writer, count)
                status = 0
            finally:
                os._exit(status)
        children.add(pid)
    found = []
    deleted = 0
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            children.remove(pid)
            if status:
                found.append(f"a writer ended with {os.waitstatus_to_exitcode(status)}")
        else:
            try:
                lock.unlink()
                deleted += 1
            except FileNotFoundError:
                pass
            time.sleep(DELETED_EVERY)
    state = JsonFileStore(path).load() or {"entries": []}
    lost = WRITERS * count - len(state["entries"])
    if lost:
        found.append(f"{lost} of {WRITERS * count} transactions were lost")
    if deleted < count:
        found.append(f"the lock file was deleted only {deleted} times")
    found += [f"{file.name} was left" for file in folder.iterdir() if file.suffix == ".tmp"]
    return WRITERS * count, found


LEFTOVER = ".m.json.0123456789abcdef.tmp"


def numbered(number: int) -> dict[str, Any]:
    return {"version": 1, "entries": [number]}


def first_save(store: JsonFileStore) -> None:
    store.save(numbered(2))


def later_save(store: JsonFileStore) -> None:
    store.save(numbered(2))


def exclusive_block(store: JsonFileStore) -> None:
    with store.exclusive():
        store.load()
        store.save(numbered(2))


def sweep(store: JsonFileStore) -> None:
    store.sweep()


def in_a_child(attack: Callable[[], tuple[int, list[str]]]) -> tuple[int, list[str]]:
    """The result of an attack in a process of its own."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the caller may have threads
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            gc.freeze()  # what the caller has need not be looked through at every collection
            with os.fdopen(writer, "w") as answer:
                json.dump(attack(), answer)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    if os.waitpid(pid, 0)[1]:
        return 0, ["the attack itself failed"]
    tries, found = json.loads(text)
    return tries, found


def interrupted_saves(tries: int, seed: int, folder: Path) -> tuple[int, list[str]]:
    """An exception at a random line of the package, in a call that writes.

    The file is the old or the new one, no lock is kept, and the next save works and cleans up.
    In a process of its own: an exception that a trace function raises where another one is being
    handled stays the context of all later ones.
    """
    return in_a_child(lambda: interrupted_saves_here(tries, seed, folder))


def interrupted_saves_here(tries: int, seed: int, folder: Path) -> tuple[int, list[str]]:
    """The same in this process."""
    draw = random.Random(seed)
    path, lock, leftover = folder / "m.json", folder / ".m.json.lock", folder / LEFTOVER
    found: list[str] = []

    def interrupt() -> None:
        raise Interrupt

    made = 0
    while made < tries:
        call = draw.choice([first_save, later_save, exclusive_block, sweep])
        at = draw.randrange(1, 600)
        for file in (path, lock, leftover):
            file.unlink(missing_ok=True)
        store = JsonFileStore(path, lock_timeout=0)
        if call is not first_save:
            store.save(numbered(1))
        if call is sweep:
            leftover.write_text("of a dead writer")
        try:
            at_a_line(at, interrupt, call, store)
        except Interrupt:
            made += 1
        else:
            continue
        gc.collect()  # what was interrupted at its very end is over when its traceback is gone
        where = f"{call.__name__}, line {at}"
        old = None if call is first_save else numbered(1)
        if JsonFileStore(path).load() not in (old, numbered(2)):
            found.append(f"{where}: neither the old nor the new file")
        try:
            other = JsonFileStore(path, lock_timeout=0)
            other.load()
            other.save(numbered(3))
            store.load()
            store.save(numbered(4))
            store.sweep()
        except (OSError, RuntimeError) as error:
            found.append(f"{where}: {error!r}")
        left = sorted(file.name for file in folder.iterdir())
        if left != [lock.name, path.name]:
            found.append(f"{where}: left {left}")
    return made, found
