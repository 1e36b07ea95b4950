"""Studies on disk: damaged and forged cells, and runs that are killed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import penchant
from damage import ESC, ODD, Found, chosen, command_fault, damaged, fault
from killed_studies import KILLER, STUDY, child, kill_points, killed_runs
from penchant import Study
from penchant.lab.studies.cells import Cell, cell_name
from penchant.lab.studies.compute import Result
from penchant.lab.studies.storage import files
from penchant.lab.studies.storage.folder import survey

SPEC = {"function": "study_cells:plain", "arguments": {"a": 1.0}, "dims": {}}
CELL = Cell(cell_name(SPEC, "code"), (0,), SPEC)
RESULT = Result("solved", "all well", {"x": 0.3, "s": "é", "v": (("t",), np.arange(3.0))}, 0.5)
PARTS = (
    {"dtype": "|O"},
    {"dtype": "x"},
    {"dtype": "<U99999999"},
    {"shape": [10**12]},
    {"data": "%"},
    {"shape": [-1, 0]},
    {"dims": 3},
    {"dims": []},
    {"dims": [f"{ESC}[2J"]},
    {"shape": []},
)


def cells(folder: Path, count: int) -> Found:
    """Two of three are damaged, and one of three is forged with a right checksum."""
    files.write_cell(folder, CELL, "code", RESULT)
    file = Path(files.file_of(folder, CELL.name))

    def read() -> Any:
        done, messages = survey(folder, {CELL.name}, "code")
        if messages:
            raise ValueError(messages[0])
        return done, files.read_cell(str(file))[2]

    found = []
    for name, copy in damaged(file.read_bytes(), count - count // 3):
        file.write_bytes(copy)
        found.append((f"cell: {name}", fault(read, as_written)))
    return found + going_on(folder / "study", count // 3)


def as_written(found: Any) -> bool:
    done, result = found
    values = result.values
    right = values["x"] == 0.3 and values["s"] == "é" and list(values["v"][1]) == [0, 1, 2]
    return right and result.seconds == 0.5 and CELL.name in done


def going_on(folder: Path, count: int) -> Found:
    """A study that goes on with a forged cell in its folder: never a traceback."""
    study = Study(name="plain", function="study_cells:plain", grid={"a": [1.0, 2.0]})
    folder.mkdir()
    penchant.run(study, folder)
    file = min(folder.glob("plain.cells/??/*.cell"))
    found = []
    for name, copy in chosen(forged(file.read_bytes()), count):
        file.write_bytes(copy)
        wrong = fault(lambda: penchant.run(study, folder), lambda dataset: True)
        wrong = wrong or command_fault("show", str(folder / "plain.nc"))
        found.append((f"forged cell: {name}", wrong))
    return found


def forged(content: bytes) -> Iterator[tuple[str, bytes]]:
    """The cell with a right checksum and one odd part."""
    whole = json.loads(content.partition(b"\n")[2])
    for number, odd in enumerate(ODD):
        for key in whole:
            yield f"{key} = odd {number}", signed({**whole, key: odd})
        yield f"sum = odd {number}", signed({**whole, "values": {**whole["values"], "sum": odd}})
    for part in PARTS:
        curve = {**whole["values"]["curve"], **part}
        yield f"array {part}", signed({**whole, "values": {**whole["values"], "curve": curve}})


def signed(content: dict[str, Any]) -> bytes:
    body = json.dumps(content).encode()
    return f"{files.MARK} {files.FORMAT} {files._checksum(body)}\n".encode() + body + b"\n"


IN_A_ROW = 5  # kills of one study before it may end


def kills(folder: Path, count: int) -> Found:
    """By `kill -9`, half in one process, half with two workers; each goes on to the same bytes."""
    study = Study(**STUDY)
    penchant.run(study, folder)
    expected = (folder / "slow.nc").read_bytes()
    found: Found = []
    for number in range(0, count, IN_A_ROW):
        out = folder / f"killed-{number}"
        out.mkdir()
        times = min(IN_A_ROW, count - number)
        if number % (2 * IN_A_ROW):
            killed_runs(out, kill_points(times, random.Random(number)))
        else:
            output = child(KILLER, out, number, times).communicate(timeout=300)[0]
            assert int(output.split()[0]) == times
        penchant.run(study, out)
        wrong = "" if (out / "slow.nc").read_bytes() == expected else "other bytes"
        found += [(f"kill {number + k} of a study", wrong) for k in range(times)]
    return found
