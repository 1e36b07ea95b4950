"""Cell files: exact, whole or absent; what is not a cell is named and set aside."""

import contextlib
import errno
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from penchant.lab.studies.cells import Cell, cell_name
from penchant.lab.studies.compute import Result
from penchant.lab.studies.storage import cell_file
from penchant.lab.studies.storage.cell_file import (
    CannotWrite,
    NotACell,
    file_of,
    read_named,
    write_cell,
)
from penchant.lab.studies.storage.folder import finished, listed, survey

SPEC = {"function": "m:f", "arguments": {"a": 1.0}, "dims": {}}
CODE = "1.0+abc"
CELL = Cell(cell_name(SPEC, CODE), (0,), SPEC)
RESULT = Result("solved", "all – well", {"x": 0.1 + 0.2, "s": "é"}, 0.5)


@pytest.fixture
def folder(tmp_path):
    write_cell(tmp_path, CELL, CODE, RESULT)
    return tmp_path


def everything(folder):
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


dtypes = st.sampled_from(["<f8", "<f4", "<i8", "<u2", "|b1", "<U3", ">f8"])
values = st.one_of(
    st.floats(), st.integers(-(2**60), 2**60), st.booleans(), st.text(max_size=5),
    dtypes.flatmap(lambda d: arrays.arrays(d, arrays.array_shapes(max_dims=2, max_side=4))),
)  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=60)
@given(value=values)
def test_values_come_back_as_they_went_in(value, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cells")
    packed = (tuple("ab"[: value.ndim]), value) if isinstance(value, np.ndarray) else value
    write_cell(folder, CELL, CODE, Result("solved", "", {"v": packed}, 0.0))
    found = read_named(folder, CELL.name, CODE).values["v"]
    if isinstance(packed, tuple):
        assert found[0] == packed[0]
        np.testing.assert_array_equal(found[1], value)
        assert found[1].dtype == value.dtype.newbyteorder("<")
    else:
        assert type(found) is type(value)
        assert found == value or (found != found and value != value)


def test_a_file_that_is_cut_or_changed_anywhere_is_refused(folder):
    file = Path(file_of(folder, CELL.name))
    whole = file.read_bytes()
    assert read_named(folder, CELL.name, CODE) == RESULT
    last = len(whole) - 1  # a line end that says nothing
    spoiled = [whole[:size] for size in range(last)]
    spoiled += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(0, last, 7)]
    for content in spoiled:
        file.write_bytes(content)
        with pytest.raises(NotACell):
            read_named(folder, CELL.name, CODE)


def signed(body):
    return f"{cell_file.MARK} {cell_file.FORMAT} {cell_file._checksum(body)}\n".encode() + body


def body(**changes):
    right = {"name": CELL.name, "code": CODE, "cell": SPEC, "status": "solved", "sentence": "",
             "seconds": 0.1, "made_with": {}, "values": {}}  # fmt: skip
    return json.dumps({**right, **changes}).encode()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"hello, I am a letter", "is not a cell of penchant"),
        (b"\x80\x04\x95pickle", "is not a cell of penchant"),
        (b"penchant-cell 0 0123\n{}\n", "is of cell format 0, this is 2"),
        (signed(b"[]"), "is a cell with missing or wrong parts"),
        (signed(b"{}"), "is a cell with missing or wrong parts"),
        (signed(body(name="0" * 32)), "belongs to another cell"),
        (signed(body(code="0.9+old")), r"belongs to another version of the code, 0\.9\+old"),
        (signed(body().replace(b"0.1", b"1" + b"0" * 400)), "a cell with missing or wrong parts"),
        (signed(b"[" * 100_000), "is a cell with missing or wrong parts"),
        (signed(body(values={"v": {"dims": [], "dtype": "|O", "shape": [], "data": ""}})),
         "holds values of type object"),
        (signed(body(values={"v": {"dims": [], "dtype": "<f8", "shape": [9], "data": ""}})),
         "is a cell with missing or wrong parts"),
    ],
)  # fmt: skip
def test_a_foreign_or_older_file_is_named_and_set_aside(folder, content, reason):
    file = Path(file_of(folder, CELL.name))
    file.write_bytes(content)
    assert finished(folder, {CELL.name}, CODE) == {}
    assert file.exists()  # looking alone moves nothing
    done, messages = survey(folder, {CELL.name}, CODE)
    assert done == {}
    (sentence,) = messages
    assert file.name in sentence
    with pytest.raises(NotACell, match=reason):
        raise NotACell(sentence)
    assert (folder / "aside" / file.name).read_bytes() == content
    assert not file.exists()


def test_files_set_aside_do_not_replace_each_other(folder):
    file = Path(file_of(folder, CELL.name))
    for text in ("first", "second"):
        file.write_text(text)
        survey(folder, {CELL.name}, CODE)
    assert [p.read_text() for p in sorted((folder / "aside").iterdir())] == ["first", "second"]


def test_a_cell_of_a_larger_grid_stays(folder):
    done, messages = survey(folder, set(), CODE)
    assert (done, messages) == ({}, [])
    assert listed(folder) == {CELL.name}
    done, _ = survey(folder, {CELL.name}, CODE)
    assert done[CELL.name].sentence == RESULT.sentence


def test_an_unknown_file_is_set_aside_and_an_older_cell_stays(folder):
    directory = Path(file_of(folder, CELL.name)).parent
    (directory / "notes.txt").write_text("mine")
    older = Cell(CELL.name[:2] + "0" * 30, (), SPEC)
    write_cell(folder, older, "0.9+old", RESULT)
    done, messages = survey(folder, {CELL.name}, CODE)
    assert set(done) == {CELL.name}
    assert len(messages) == 1
    assert "notes.txt is not a cell of penchant" in messages[0]
    assert everything(folder / "aside") == ["notes.txt"]
    assert listed(folder) == {CELL.name, older.name}


def test_a_pipe_among_the_cells_is_set_aside_unread(folder):
    file = Path(file_of(folder, CELL.name))
    file.unlink()
    os.mkfifo(file)
    done, messages = survey(folder, {CELL.name}, CODE)
    assert done == {}
    assert "is not a plain file" in messages[0]


def test_drafts_of_killed_writers_go_when_they_are_old(folder):
    directory = Path(file_of(folder, CELL.name)).parent
    for name, age in (("old.cell.1.part", 7200), ("young.cell.2.part", 10)):
        (directory / name).write_text("half")
        os.utime(directory / name, (time.time() - age,) * 2)
    _, messages = survey(folder, {CELL.name}, CODE)
    assert messages == []
    assert everything(directory) == sorted([f"{CELL.name}.cell", "young.cell.2.part"])


@pytest.mark.parametrize("at", ["open", "write", "replace"])
def test_a_disk_that_refuses_leaves_what_was_there(folder, monkeypatch, at):
    def refuse(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    @contextlib.contextmanager
    def filling(draft):
        with open(draft, "xb") as stream:
            stream.write(b"half")
            refuse()
        yield stream

    before = everything(folder)
    if at == "replace":
        monkeypatch.setattr(cell_file.os, "replace", refuse)
    else:
        monkeypatch.setattr(cell_file, "_created", refuse if at == "open" else filling)
    with pytest.raises(CannotWrite, match=r"cannot write cells into .* \(No space left"):
        write_cell(folder, CELL, CODE, Result("solved", "newer", {}, 0.0))
    assert everything(folder) == before
    assert read_named(folder, CELL.name, CODE) == RESULT
