"""A file ends with a digest: what a disk or a person did to it since is never silent."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from sentinel_memory import (
    AlteredStoreWarning,
    DamagedStoreError,
    JsonFileStore,
    Memory,
    StoreConflictError,
)
from support.store_attacks import damaged_files

STATE: dict[str, Any] = {
    "version": 1,
    "entries": [{"key": "user:name", "data": "Žofie 私 <peanuts>", "importance": 0.5}],
    "working": {"data": {}, "updatedAt": None},
}


def saved(path: Path) -> bytes:
    JsonFileStore(path).save(STATE)
    return path.read_bytes()


def loaded(path: Path, data: bytes) -> tuple[dict[str, Any] | None, bool]:
    """The document in a file of these bytes, and whether it counts as altered."""
    path.write_bytes(data)
    store = JsonFileStore(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state = store.load()
    assert store.altered == bool(caught)
    return state, store.altered


def test_the_last_member_is_the_digest_of_all_bytes_before_it(tmp_path: Path) -> None:
    data = saved(tmp_path / "m.json")
    body, _, rest = data.rpartition(b', "digest": ')
    assert rest == b'"%s"}\n' % hashlib.sha256(body).hexdigest().encode()
    assert json.loads(body + b"}") == STATE


def test_the_digest_is_not_part_of_the_state(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    assert loaded(path, saved(path)) == (STATE, False)


def test_every_flipped_bit_is_an_error_or_reported_as_altered(tmp_path: Path) -> None:
    """Also those in the digest, in its name, and after it."""
    whole = saved(tmp_path / "m.json")
    path = tmp_path / "flipped.json"
    altered = 0
    for bit in range(8 * len(whole)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        try:
            assert loaded(path, bytes(data))[1], bytes(data)
        except DamagedStoreError:
            continue
        altered += 1
    assert altered > 100


def test_damaged_files_are_never_silently_another_document(tmp_path: Path) -> None:
    assert damaged_files(2_000, 1, tmp_path) == (2_000, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"peanuts", b"walnuts"),
        (b'"digest"', b'"digesu"'),
        (b'"digest"', b'"Digest"'),
        (b'"digest": "', b'"digest": "0'),
        (b'"}\n', b'"}\n\n'),
        (b'"}\n', b'"}\r\n'),
        (b'"}\n', b'" }\n'),
        (b'"}\n', b'", "later": 1}\n'),
    ],
)
def test_an_edit_anywhere_is_reported_as_altered(tmp_path: Path, old: bytes, new: bytes) -> None:
    data = saved(tmp_path / "m.json")
    assert data.count(old) == 1
    state, altered = loaded(tmp_path / "m.json", data.replace(old, new))
    assert altered
    assert state is not None
    assert "digest" not in state


@pytest.mark.parametrize("value", [b"null", b"1", b'""', b'"abc"', b"{}", b'"%s"' % (b"0" * 64)])
def test_an_invalid_digest_counts_as_altered_and_is_removed(tmp_path: Path, value: bytes) -> None:
    data = b'{"version": 1, "entries": [], "digest": %s}' % value
    assert loaded(tmp_path / "m.json", data) == ({"version": 1, "entries": []}, True)


def test_64_hex_digits_at_the_end_under_another_name_count_as_altered(tmp_path: Path) -> None:
    """They may be a digest whose name was hit. If they fit, they are; else they stay."""
    path = tmp_path / "m.json"
    data = saved(path)
    assert loaded(path, data.replace(b'"digest"', b'"dagest"')) == (STATE, True)
    foreign = b'{"version": 1, "entries": [], "hash": "%s"}' % (b"af" * 32)
    assert loaded(path, foreign) == ({"version": 1, "entries": [], "hash": "af" * 32}, True)
    in_front = b'{"version": 1, "hash": "%s", "entries": []}' % (b"af" * 32)
    assert loaded(path, in_front)[1] is False


@pytest.mark.parametrize("spaces", [b"", b" "])
def test_a_digest_of_another_program_fits_with_and_without_spaces(
    tmp_path: Path, spaces: bytes
) -> None:
    body = b'{"version":1,"entries":[]'
    digest = hashlib.sha256(body).hexdigest().encode()
    data = b'%s,%s"digest":%s"%s"}' % (body, spaces, spaces, digest)
    assert loaded(tmp_path / "m.json", data) == ({"version": 1, "entries": []}, False)


def test_a_file_without_a_digest_loads_without_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    assert loaded(path, json.dumps(STATE).encode()) == (STATE, False)
    assert loaded(path, json.dumps(STATE, indent=2).encode()) == (STATE, False)


def test_a_file_that_an_editor_laid_out_anew_counts_as_altered(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    pretty = json.dumps(json.loads(saved(path)), indent=2, ensure_ascii=False)
    assert loaded(path, pretty.encode()) == (STATE, True)


def test_the_save_after_an_altered_load_writes_a_valid_digest(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(saved(path).replace(b"peanuts", b"walnuts"))
    store = JsonFileStore(path)
    with pytest.warns(AlteredStoreWarning):
        state = store.load()
    assert state is not None
    store.save(state)
    assert store.altered  # of the document last loaded
    assert store.load() == state
    assert not store.altered
    path.unlink()
    path.write_bytes(saved(tmp_path / "n.json").replace(b"peanuts", b"walnuts"))
    with pytest.warns(AlteredStoreWarning):
        store.load()
    path.unlink()
    assert store.load() is None
    assert not store.altered


def test_the_warning_names_the_path_at_the_line_of_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(saved(path).replace(b"peanuts", b"walnuts"))
    for call in (JsonFileStore(path).load, lambda: Memory.open(path)):
        with pytest.warns(AlteredStoreWarning) as caught:
            call()
        assert [str(path) in str(warning.message) for warning in caught] == [True]
        assert caught[0].filename == __file__
    assert issubclass(AlteredStoreWarning, UserWarning)


def test_where_the_warning_is_an_error_nothing_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    altered = saved(path).replace(b"peanuts", b"walnuts")
    path.write_bytes(altered)
    store = JsonFileStore(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AlteredStoreWarning):
            store.load()
    with pytest.raises(StoreConflictError):
        store.save(STATE)
    assert path.read_bytes() == altered


def test_a_state_that_was_read_by_hand_gets_a_digest_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    by_hand = json.loads(saved(path))
    by_hand["entries"] = []
    copy = dict(by_hand)
    JsonFileStore(tmp_path / "n.json").save(by_hand)
    assert by_hand == copy
    assert loaded(tmp_path / "n.json", (tmp_path / "n.json").read_bytes()) == (
        {"version": 1, "entries": [], "working": STATE["working"]},
        False,
    )
    with pytest.raises(ValueError, match="digest"):
        JsonFileStore(tmp_path / "n.json").save({**STATE, "digest": {"my": "section"}})
