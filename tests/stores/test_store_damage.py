"""A file that cannot be trusted is never taken for an empty memory, and never touched."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sentinel_memory import DamagedStoreError, JsonFileStore, StoreConflictError
from sentinel_memory.stores import _codec

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "entries": [
        {
            "key": "user:name",
            "data": {"text": 'Žofie "私" [\\', "n": [1, -2.5e3, True, None]},
            "importance": 0.9,
            "createdAt": 1_792_310_400_000,
            "updatedAt": 1_792_310_400_000,
            "expiresAt": None,
        },
        {"key": "{", "data": "]", "importance": 1, "createdAt": 1, "updatedAt": 2},
    ],
    "working": {"data": {}, "updatedAt": None},
}


def saved(path: Path) -> bytes:
    JsonFileStore(path).save(DOCUMENT)
    return path.read_bytes()


def check_damaged(path: Path, data: bytes, reason: str) -> None:
    """Loading ``data`` is an error of that reason; then saving is none the less a conflict."""
    path.write_bytes(data)
    store = JsonFileStore(path)
    with pytest.raises(DamagedStoreError) as caught:
        store.load()
    assert reason in caught.value.reason
    assert caught.value.path == str(path)
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(StoreConflictError):
        store.save(DOCUMENT)
    assert path.read_bytes() == data


def document(entry: str = "", more: str = "") -> bytes:
    return f'{{"version": 1, "entries": [{entry}]{more}}}'.encode()


NUMBER = "a number that is not finite"
TOO_DEEP = "more than 200 levels"
VERSION = "its version must be the integer 1, not "
ENTRIES = "its entries are missing or not a list"

DAMAGE = {
    "no bytes": (b"", "it is empty"),
    "white space": (b" \n\t\r\n", "it is empty"),
    "null": (b"null", "it must be an object, not "),
    "list": (b"[]", "it must be an object, not "),
    "string": (b'"version"', "it must be an object, not "),
    "number": (b"1", "it must be an object, not "),
    "true": (b"true", "it must be an object, not "),
    "text": (b"hello", "it is not JSON: Expecting value at line 1 column 1"),
    "binary": (bytes(range(128, 256)), "it is not UTF-8: byte 0x80 at position 0"),
    "zeros, as some crashes leave them": (bytes(512), "it is not JSON"),
    "latin-1": (document('"\u010desky"').replace("č".encode(), b"\xe8"), "it is not UTF-8"),
    "surrogates in UTF-8": (document('"?"').replace(b"?", b"\xed\xa0\x80"), "it is not UTF-8"),
    "UTF-16": (document().decode().encode("utf-16"), "it is UTF-16 or UTF-32"),
    "UTF-16-LE": (document().decode().encode("utf-16-le"), "it is UTF-16 or UTF-32"),
    "UTF-16-BE": (document().decode().encode("utf-16-be"), "it is UTF-16 or UTF-32"),
    "UTF-32": (document().decode().encode("utf-32"), "it is UTF-16 or UTF-32"),
    "two marks": (b"\xef\xbb\xbf\xef\xbb\xbf" + document(), "it is not JSON"),
    "two documents": (document() + document(), "it is not JSON: Extra data"),
    "trailing bytes": (document() + b"\0", "it is not JSON: Extra data"),
    "trailing comma": (document("1,"), "it is not JSON"),
    "comment": (b"// memory\n" + document(), "it is not JSON"),
    "single quotes": (b"{'version': 1}", "it is not JSON"),
    "line end in a string": (document('"a\nb"'), "it is not JSON: Invalid control character"),
    "open string": (b'{"version": 1, "entries": ["text', "it is cut short: Unterminated string"),
    "open list": (b'{"version": 1, "entries": [', "it is cut short: Expecting value"),
    "open object": (b'{"version": 1, "entries": []\n', "it is cut short: Expecting ','"),
    "an empty object": (b"{}", VERSION + "None"),
    "no version": (b'{"entries": []}', VERSION + "None"),
    "version true": (b'{"version": true, "entries": []}', VERSION + "True"),
    "version 1.0": (b'{"version": 1.0, "entries": []}', VERSION + "1.0"),
    "version '1'": (b'{"version": "1", "entries": []}', VERSION + "'1'"),
    "version 0": (b'{"version": 0, "entries": []}', VERSION + "0"),
    "version -1": (b'{"version": -1, "entries": []}', VERSION + "-1"),
    "version null": (b'{"version": null, "entries": []}', VERSION + "None"),
    "version list": (b'{"version": [1], "entries": []}', VERSION + "[1]"),
    "version 2": (b'{"version": 2, "facts": []}', "its version is 2, from a newer release"),
    "no entries": (b'{"version": 1}', ENTRIES),
    "entries null": (b'{"version": 1, "entries": null}', ENTRIES),
    "entries object": (b'{"version": 1, "entries": {}}', ENTRIES),
    "entries string": (b'{"version": 1, "entries": "[]"}', ENTRIES),
    "NaN": (document("NaN"), NUMBER + ": NaN"),
    "Infinity": (document("Infinity"), NUMBER + ": Infinity"),
    "-Infinity": (document('{"data": [-Infinity]}'), NUMBER + ": -Infinity"),
    "1e400": (document("1e400"), NUMBER + ": 1e400"),
    "-1E+400": (document(more=', "later": {"x": -1E+400}'), NUMBER + ": -1E+400"),
    "digits and a point": (document("9" * 400 + ".0"), NUMBER),
    "NaN in rejected": (document(more=', "rejected": [NaN]'), NUMBER),
    "5,000 digits": (document("7" * 5000), "4300 digits"),
    "key twice in the document": (document(more=', "entries": []'), "name 'entries' more than"),
    "version twice": (document(more=', "version": 1'), "name 'version' more than once"),
    "key twice in an entry": (document('{"key": "a", "key": "b"}'), "name 'key' more than once"),
    "key twice, once escaped": (document('{"k": 1, "\\u006b": 1}'), "name 'k' more than once"),
    "key twice in data": (document('{"data": [{"": 1, "": 1}]}'), "name '' more than once"),
    "a long key twice": (document('{"k": 1, "k": 1}'.replace("k", "k" * 999)), "k more than"),
    "201 levels": (document("[" * 199 + "]" * 199), TOO_DEEP),
    "201 levels of objects": (document('{"a":' * 199 + "1" + "}" * 199), TOO_DEEP),
    "201 levels in a section": (document(more=', "x": ' + "[" * 200 + "]" * 200), TOO_DEEP),
    "208 levels outside rejected": (document(more=', "x": ' + "[" * 207 + "]" * 207), TOO_DEEP),
    "209 levels in rejected": (document(more=', "rejected": ' + "[" * 208 + "]" * 208), TOO_DEEP),
    "201 levels, rejected is an object": (
        document(more=', "rejected": ' + '{"a":' * 200 + "1" + "}" * 200),
        TOO_DEEP,
    ),
    "200,000 levels": (document("[" * 200_000 + "]" * 200_000), TOO_DEEP),
    "200,000 levels of objects": (document('{"":' * 200_000 + "1" + "}" * 200_000), TOO_DEEP),
    "200,000 levels and no document": (b"[" * 200_000 + b"]" * 200_000, TOO_DEEP),
    "201 levels and no document": (b"[" * 201 + b"]" * 201, TOO_DEEP),
    "200,000 open lists": (b"[" * 200_000, ""),
    "200,000 open objects": (b'{"":' * 200_000, ""),
    "200,000 closed lists": (document() + b"]" * 200_000, "it is not JSON: Extra data"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_the_error_names_the_damage_and_the_bytes_stay(tmp_path: Path, name: str) -> None:
    check_damaged(tmp_path / "memory.json", *DAMAGE[name])


def test_a_file_cut_at_any_byte_is_damage(tmp_path: Path) -> None:
    """All but the one cut that loses nothing: the line end after the document."""
    path = tmp_path / "memory.json"
    whole = saved(path)
    assert whole.endswith(b"}\n")
    for length in range(len(whole) - 1):
        check_damaged(path, whole[:length], "")
    path.write_bytes(whole[:-1])
    assert JsonFileStore(path).load() == DOCUMENT


def test_a_file_without_its_beginning_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    whole = saved(path)
    for start in range(1, len(whole)):
        check_damaged(path, whole[start:], "")


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
@example(data=b"")
@example(data=b"{}")
def test_any_bytes_are_a_document_or_damage_and_never_none(tmp_path: Path, data: bytes) -> None:
    check_never_nothing(tmp_path / "memory.json", data)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """The bytes of a document with a few pieces replaced, doubled or taken away."""
    data = bytearray(json.dumps(DOCUMENT, ensure_ascii=False).encode())
    pieces = st.sampled_from(
        [b"", b"[", b"]", b"{", b"}", b'"', b"\\", b",", b"1", b"e999", b"NaN", b"\xff", b"\0"]
    )
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 12)))
        piece = draw(pieces | st.just(bytes(data[start:end]) * 2) | st.binary(max_size=3))
        data[start:end] = piece
    return bytes(data)


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=mutated())
def test_a_mutated_file_is_a_document_or_damage_and_never_none(tmp_path: Path, data: bytes) -> None:
    check_never_nothing(tmp_path / "memory.json", data)


def check_never_nothing(path: Path, data: bytes) -> None:
    """What loads has a version and entries and can be saved and loaded again, the same."""
    path.write_bytes(data)
    store = JsonFileStore(path)
    try:
        state = store.load()
    except DamagedStoreError:
        with pytest.raises(StoreConflictError):
            store.save(DOCUMENT)
        assert path.read_bytes() == data
    else:
        assert path.read_bytes() == data
        assert state is not None
        assert state == json.loads(data.decode("utf-8-sig"))
        assert type(state["version"]) is int
        assert type(state["entries"]) is list
        store.save(state)
        assert repr(store.load()) == repr(state)


@pytest.mark.parametrize(
    ("data", "state"),
    [
        (b"\xef\xbb\xbf" + document("1"), {"version": 1, "entries": [1]}),
        (b" \r\n" + document("1") + b"\n\n ", {"version": 1, "entries": [1]}),
        (document('"\\ud800"'), {"version": 1, "entries": ["\ud800"]}),
        (document('"\\ud83d\\ude00"'), {"version": 1, "entries": ["\U0001f600"]}),
        (document('"\\u0000"'), {"version": 1, "entries": ["\0"]}),
        (document("7" * 4300), {"version": 1, "entries": [int("7" * 4300)]}),
        (document("1e308"), {"version": 1, "entries": [1e308]}),
        (document("1e-400"), {"version": 1, "entries": [0.0]}),
        (document('"NaN", "1e400"'), {"version": 1, "entries": ["NaN", "1e400"]}),
        (
            document('{"a": {"a": 1}}, {"a": 2}'),
            {"version": 1, "entries": [{"a": {"a": 1}}, {"a": 2}]},
        ),
        (document('{}, [], null, ""'), {"version": 1, "entries": [{}, [], None, ""]}),
    ],
)
def test_an_unusual_but_valid_document_is_loaded_and_can_be_saved(
    tmp_path: Path, data: bytes, state: dict[str, Any]
) -> None:
    path = tmp_path / "memory.json"
    path.write_bytes(data)
    store = JsonFileStore(path)
    assert store.load() == state
    store.save(state)
    assert store.load() == state


@pytest.mark.parametrize("opened", [b"[", b'{"":', b'[{"a":', b"[\n"])
@pytest.mark.parametrize("closed", [0, 1, 209])
def test_text_that_nests_too_deeply_never_reaches_the_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: bytes, closed: int
) -> None:
    """Whether its brackets pair up or not: not every parser guards its stack."""
    path = tmp_path / "memory.json"
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("it was parsed"))
    path.write_bytes(opened * 100_000 + b"1" + b"]" * closed)
    with pytest.raises(DamagedStoreError, match=TOO_DEEP):
        JsonFileStore(path).load()


@pytest.mark.parametrize("text", ['["cut [[[[', '["cut \\"[[[[', '[["a", "[[[[', '{"[[[['])
def test_brackets_in_a_text_that_was_cut_short_do_not_count_as_levels(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "memory.json"
    check_damaged(path, (text + "[" * 500).encode(), "it is cut short: Unterminated string")


@pytest.mark.parametrize("levels", [2, 30, 190])
def test_deep_documents_take_no_longer_to_measure_than_flat_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, levels: int
) -> None:
    """Counted in passes over the text, not in time: few, however deep it is."""
    piece = "[" * levels + "]" * levels
    text = ",".join([piece] * (20_000 // levels))
    data = f'{{"version": 1, "entries": [{text}]}}'.encode()
    passes: list[int] = []

    def counted(steps: Iterable[int]) -> Iterator[int]:
        passes.append(len(list(steps)))
        return accumulate(steps)

    monkeypatch.setattr(_codec, "accumulate", counted)
    state = _codec.from_bytes(data, "m.json")
    assert len(state["entries"]) == 20_000 // levels
    assert len(passes) <= 1
    assert sum(passes) <= 2 * 20_000 + 10


@pytest.mark.parametrize("levels", [199, 200, 201, 208, 209])
@pytest.mark.parametrize("name", ["entries", "rejected", "later"])
def test_the_levels_of_a_state_are_checked_without_writing_it(levels: int, name: str) -> None:
    """As ``to_bytes`` does; the document is the first level."""
    deep: Any = []
    for _ in range(levels - 2):
        deep = [deep]
    state = {"version": 1, "entries": [], name: deep}
    if levels <= (208 if name == "rejected" else 200):
        _codec.check_levels(state)
        assert _codec.to_bytes(state)
    else:
        for call in (_codec.check_levels, _codec.to_bytes):
            with pytest.raises(ValueError, match=TOO_DEEP):
                call(state)


def test_a_state_that_contains_itself_is_refused_quickly() -> None:
    circle: list[Any] = []
    circle += [circle, circle, (circle, {"a": circle})]
    with pytest.raises(ValueError, match=TOO_DEEP):
        _codec.check_levels({"version": 1, "entries": circle})
    shared: list[Any] = []
    for _ in range(150):  # 2 ** 150 ways lead to the innermost one
        shared = [shared, shared]
    _codec.check_levels({"version": 1, "entries": shared})


@pytest.mark.parametrize("text", ["[" * 500, "}" * 500, '\\" [[', "\\\\", '\\\\\\"{{{{' * 100])
def test_brackets_and_quotes_inside_of_strings_do_not_count_as_levels(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "memory.json"
    state = {"version": 1, "entries": [text, {text: [text]}, "", text]}
    store = JsonFileStore(path)
    store.save(state)
    assert store.load() == state


def test_the_section_of_rejected_items_may_nest_deeper(tmp_path: Path) -> None:
    """A memory moves what it rejects there, a few levels down; it must stay writable."""
    path = tmp_path / "memory.json"
    deepest = document("[" * 198 + "]" * 198)
    path.write_bytes(deepest)
    store = JsonFileStore(path)
    state = store.load()
    assert state is not None
    state["rejected"] = [{"reason": "too deep", "entry": state["entries"].pop()}]
    store.save(state)
    assert store.load() == state
    path.write_bytes(document(more=', "rejected": ' + "[" * 207 + "]" * 207))
    state = store.load()
    assert state is not None
    store.save(state)
    assert store.load() == state


def test_a_document_as_deep_as_allowed_loads_and_saves_deep_in_a_program(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    path.write_bytes(document("[" * 198 + "]" * 198))
    store = JsonFileStore(path)

    def deep_in(levels: int) -> None:
        if levels:
            deep_in(levels - 1)
        else:
            state = store.load()
            assert state is not None
            store.save(state)

    deep_in(sys.getrecursionlimit() // 2)


def test_a_used_up_stack_is_not_reported_as_damage(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path / "memory.json")
    store.save(DOCUMENT)
    outcomes: set[object] = set()

    def deeper() -> None:
        try:
            outcomes.add(store.load() == DOCUMENT)
        except RecursionError:
            outcomes.add(RecursionError)
            raise
        deeper()

    with pytest.raises(RecursionError):
        deeper()
    assert outcomes == {True, RecursionError}
    assert store.load() == DOCUMENT
    store.save(DOCUMENT)


def test_the_error_contains_no_text_of_the_document(tmp_path: Path) -> None:
    """Errors end up in logs; what a user said must not."""
    path = tmp_path / "memory.json"
    secret = "peanuts"
    path.write_text('{"version": 1, "entries": ["peanuts", ')
    with pytest.raises(DamagedStoreError) as caught:
        JsonFileStore(path).load()
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert secret not in "".join(traceback.format_exception(error))
