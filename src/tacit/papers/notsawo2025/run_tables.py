"""Studies whose cells are runs listed one by one, as tables of what differs from `given`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.studies.compute import TRAJECTORY

if TYPE_CHECKING:
    import xarray

Runs = Sequence[Mapping[str, Any]]


def arguments(runs: Runs, **given: Any) -> dict[str, Any]:
    """The part of a study's size that its runs make up."""
    table = {"given": given, "runs": list(runs)}
    return {"arguments": table, "grid": {"run": list(range(len(runs)))}}


def dims_of(curves: Sequence[str]) -> dict[str, list[str]]:
    """The dimension of the curves of a run."""
    return {f"{TRAJECTORY}{name}": ["time"] for name in curves}


def runs_of(dataset: xarray.Dataset) -> list[xarray.Dataset]:
    """Every run by itself, with plain names of its curves and without what fills them up."""
    plain = {
        name: str(name).removeprefix(TRAJECTORY)
        for name in dataset.data_vars
        if str(name).startswith(TRAJECTORY)
    }
    found = []
    for number in range(dataset.sizes["run"]):
        run = dataset.isel(run=number).rename(plain)
        found.append(run.isel(time=np.flatnonzero(np.isfinite(run.step.values))))
    return found
