"""The finished study as one labelled dataset, from its cell files.

Dimensions: the axes of the grid in their order (`alpha` for model.alpha), then `seed` if there
are seeds; the values of the axes are the coordinates. Variables over them:

* every recorded name and every result of a probe or function, with its own dimensions after those
  of the grid; a curve is called `trajectory_NAME` and has the dimension `time`. Where cells differ
  in length the shorter are filled up with NaN; a cell without a value has NaN (texts: empty);
* `status`: "solved" or "not unique" after success; "empty", "not a number" or "path diverged" (and
  so on) for a cell that returned, but is doubtful (penchant.lab.studies.compute); "stalled",
  "budget spent", "infeasible", "diverged", "out of range" or "error" for one that failed; "missing"
  for one that was not needed or not reached;
* `sentence`: the message of the run or of its failure, or an empty text.

Attributes: `study` (name), `title`, `description` (the whole study as JSON: Study(**json.loads())
makes it again), `code` (version of the code), `versions` (JSON, of the cells), `mixed` (the
libraries whose versions differ between cells, if any), `command`, `cells`, `failed`, `doubtful`.
The file holds no times, so a resumed study gives the same file, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penchant.lab.studies.cells import Cell
from penchant.lab.studies.compute import DOUBTFUL, TRAJECTORY, USABLE, Result, Value
from penchant.lab.studies.storage.cell_file import NotACell, read_named
from penchant.lab.studies.storage.folder import Done
from penchant.versions import versions

if TYPE_CHECKING:
    import xarray

    from penchant.lab.studies.study import Study

MISSING = "missing"


def has_failed(status: np.ndarray) -> NDArray[np.bool_]:
    """Where cells failed; those that are missing or doubtful did not."""
    return ~np.isin(status, (*USABLE, MISSING))


def is_doubtful(status: np.ndarray) -> NDArray[np.bool_]:
    """Where cells returned, but ended in a state that needs a look."""
    return np.isin(status, DOUBTFUL)


def counts(results: Iterable[Result]) -> dict[str, int]:
    """How many of the results failed, and how many are doubtful."""
    status = [result.status for result in results]
    return {
        "failed": sum(word not in USABLE for word in status),
        "doubtful": sum(word in DOUBTFUL for word in status),
    }


def gather(
    study: Study,
    cells: Iterable[Cell],
    folder: Path,
    code: str,
    lost: Mapping[str, Done] | None = None,
    command: str = "",
) -> xarray.Dataset:
    """The dataset of a study; `lost` lists the cells that ended without a file."""
    results = {cell.index: _result(folder, cell.name, code, lost or {}) for cell in cells}
    present = {index: result for index, result in results.items() if result is not None}
    return (
        label(study, present)
        .assign_attrs(cells=len(results), **counts(present.values()))
        .assign_attrs(provenance(study, code, command, present.values()))
    )


def made_with(results: Iterable[Result]) -> dict[str, str]:
    """The versions that the cells were made with; `mixed` names the libraries that differ."""
    known = [dict(r.made_with) for r in results if r.made_with]
    names = dict.fromkeys(name for libraries in known for name in libraries)
    seen = {name: sorted({libraries.get(name, "none") for libraries in known}) for name in names}
    mixed = [f"{name} {' and '.join(all_)}" for name, all_ in seen.items() if len(all_) > 1]
    own = {name: all_[0] if len(all_) == 1 else all_ for name, all_ in seen.items()} or versions()
    return {"versions": json.dumps(own)} | ({"mixed": "; ".join(mixed)} if mixed else {})


def provenance(
    study: Study, code: str, command: str, results: Iterable[Result] = ()
) -> dict[str, str]:
    """Where a result comes from: enough to run it again."""
    return {
        "study": study.name,
        "title": study.title or study.name,
        "description": json.dumps(study.describe()),
        "code": code,
        **made_with(results),
        "command": command,
    }


def _result(folder: Path, name: str, code: str, lost: Mapping[str, Done]) -> Result | None:
    if name in lost:
        return lost[name].without_file()
    try:
        return read_named(folder, name, code)
    except NotACell:
        return None


def label(study: Study, results: Mapping[tuple[int, ...], Result]) -> xarray.Dataset:
    """The results at their places in the grid, with names, labels and units."""
    import xarray

    coordinates: dict[str, Any] = {axis.name: list(axis.values) for axis in study.axes}
    if study.seed_values is not None:
        coordinates["seed"] = list(study.seed_values)
    status = np.full(study.shape, MISSING, dtype=object)
    sentence = np.full(study.shape, "", dtype=object)
    for index, result in results.items():
        status[index], sentence[index] = result.status, result.sentence
    outer = study.dimensions
    variables: dict[str, Any] = {
        "status": (outer, status.astype(str)),
        "sentence": (outer, sentence.astype(str)),
    }
    names = dict.fromkeys(name for result in results.values() for name in result.values)
    for name in sorted(names):
        values = {index: r.values[name] for index, r in results.items() if name in r.values}
        own, array = stacked(study.shape, values)
        if set(own) & set(outer) or name in coordinates:
            raise ValueError(f"{study.source}: {name!r} repeats the name of an axis; rename it")
        variables[name] = ((*outer, *own), array)
    dataset = xarray.Dataset(variables, coordinates)
    _describe(study, dataset)
    return dataset


def stacked(
    shape: tuple[int, ...], values: Mapping[tuple[int, ...], Value]
) -> tuple[tuple[str, ...], np.ndarray]:
    """(own dimensions, one array over the grid), filled up where a cell is absent or short."""
    pairs = {
        index: value if isinstance(value, tuple) else ((), np.asarray(value))
        for index, value in values.items()
    }
    own = max((dims for dims, _ in pairs.values()), key=len)
    arrays = {index: array for index, (dims, array) in pairs.items() if len(dims) == len(own)}
    inner = tuple(max(sizes) for sizes in zip(*(a.shape for a in arrays.values()), strict=True))
    dtype = np.result_type(*{array.dtype for array in arrays.values()})
    whole = len(arrays) == int(np.prod(shape)) and {a.shape for a in arrays.values()} == {inner}
    if not whole and dtype.kind in "biu":
        dtype = np.dtype(np.float64)  # NaN stands for nothing
    filler: Any = np.nan if dtype.kind == "f" else dtype.type()
    out = np.full((*shape, *inner), filler, dtype)
    for index, array in arrays.items():
        position: tuple[Any, ...] = (*index, *map(slice, array.shape))
        out[position] = array
    return own, out


def _describe(study: Study, dataset: xarray.Dataset) -> None:
    """Long names and units, from the study, the vocabulary of paths, or the key of an axis."""
    from penchant.training.labels import LABELS, UNITS

    keys = {axis.name: axis.key for axis in study.axes}
    own = {
        "status": "how the cell ended",
        "sentence": "message about the cell",
        "seed": "seed of the cell",
    }
    for key, variable in dataset.variables.items():
        plain = str(key).removeprefix(TRAJECTORY)
        text = study.labels.get(str(key)) or own.get(str(key)) or keys.get(str(key))
        variable.attrs = {
            "units": UNITS.get(plain, "1"),
            "long_name": text or LABELS.get(plain, plain),
        }
