"""Whether a run may go on where another one ended, and the records of both."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tacit.training.path import Path

SAME = ("problem", "model", "method", "penalty", "batch", "seed")


def resumed(who: str, before: Path, told: dict[str, Any], last: int) -> tuple[Any, Any, int]:
    """The parameters, the memory and the steps of `before`.

    A ValueError if the run `told` differs from it in more than stop and record.
    """
    if not isinstance(before, Path):
        raise ValueError(
            f"{who}: resume must be the path of an earlier run, got {type(before).__name__}"
        )
    if before.memory is None:
        raise ValueError(f"{who}: resume must be a path of steps that did not diverge")
    earlier = json.loads(before.dataset.attrs["description"])
    for part in SAME:
        old, new = earlier.get(part), told[part]
        if old != new:
            name = part
            if isinstance(old, dict) and isinstance(new, dict):
                name = next(k for k in {**new, **old} if old.get(k) != new.get(k))
                old, new = old.get(name), new.get(name)
                name = f"{name} of the {part}"
            raise ValueError(
                f"{who}: resume must have the same {name}, which was {old} and now is {new}; "
                "start afresh"
            )
    if last <= before.steps:
        raise ValueError(
            f"{who}: resume has taken {before.steps} steps already, which stop must exceed"
        )
    return before.parameters, before.memory, before.steps


def joined(before: Path, kept: Any, dataset: Any) -> Any:
    """The records of `before` that are `kept`, and those of `dataset` but for the start."""
    import xarray

    old = before.dataset.drop_vars("epoch", errors="ignore")
    parts = [old.isel(time=np.flatnonzero(kept)), dataset.isel(time=slice(1, None))]
    how: Any = {
        "data_vars": "minimal",
        "coords": "minimal",
        "compat": "override",
        "join": "override",
    }
    both = xarray.concat(parts, "time", **how, combine_attrs="override")
    if "final_parameters" in dataset:
        both["final_parameters"] = dataset["final_parameters"]
    return both
