"""The record of a watch: collected during the run, labelled once, written completely or not."""

from __future__ import annotations

import array
import contextlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from penchant import store
from penchant.arguments import Array
from penchant.door import Invalid, door_as
from penchant.inspection import Refusal, read_text
from penchant.watch.backends.backend import WHO
from penchant.watch.metrics import number, unread
from penchant.watch.panel.instrument import NUMBERS as PANEL
from penchant.watch.panel.instrument import SECONDS
from penchant.watch.regime import LIMITS

MARK = "penchant watch"
LONGEST = 4000  # bytes of one text
NUMBERS = {
    "kernel_distance": "1 - cosine of the centred tangent kernel and that of the start",
    "kernel_alignment": "centred cosine of the tangent kernel and the kernel of the labels",
    "effective_rank": "exp of the entropy of the eigenvalues of the tangent kernel",
    "norm_l1": "sum of absolute parameters",
    "norm_l2": "Euclidean norm of all parameters",
    "norm_nuclear": "sum of the singular values of all weight matrices",
    "margin": "smallest margin of the labelled probe inputs",
    "direction_change": "angle of the parameters to the start in degrees",
    "relative_move": "distance of the parameters from the start over the norm of the start",
    "output_change": "root mean square change of the outputs since the start",
    "linearized_error": "share of what was learned that the model linearized at the start misses",
    "learned_share": "share of the output change that does not scale the outputs of the start",
    "probe_cross_entropy": "mean cross-entropy of the labelled probe inputs",
    "probe_squares": "mean sum of squares from outputs to labels of the probe inputs",
    "output_share": "share of the outputs that does not scale the outputs of the start",
    "kernel_gain": "1 - leave-one-out error of the kernel now over that of the kernel at the start",
    "optimizer_rate": "learning rate of the optimizer",
    "optimizer_decay": "weight decay of the optimizer",
    "forecast_step": "step at which the jump was expected at this look",
    "forecast_low": "lower end of the interval of that forecast",
    "forecast_high": "upper end of the interval of that forecast",
    "look_seconds": "time that the look took",
}
LAYERS = {
    "layer_l1": "sum of absolute entries",
    "layer_l2": "Euclidean norm",
    "layer_nuclear": "sum of singular values",
    "layer_moved": "distance from the start over the norm of the start, or over that of an average "
    "array of its size if it began at zero",
    "layer_distance": "kernel_distance of the gradients in this layer alone",
}
OUTPUTS = {
    "output": "the outputs of the model on the probe inputs",
    "linearized_output": "those of the model linearized at the start, at the same parameters",
}
GLANCES = {
    "glance_norm": NUMBERS["norm_l2"],
    "glance_turn": NUMBERS["direction_change"],
    "glance_rate": "share of the parameters that weight decay removes in one step",
}
ATTRIBUTES = (
    "weight_decay",
    "start_step",
    "parameters",
    "setup_seconds",
    "look_seconds",
    "training_seconds",
    "budget",
    "level",
    "changed",
    "notes",
    "failures",
)
PENDING = 1000  # metrics on a device that are not read yet
NEWER = {
    "output_share",
    "probe_cross_entropy",
    "probe_squares",
}  # than 0.2
TAKEN = {*NUMBERS, *LAYERS, *OUTPUTS, *GLANCES, "step", "call_step", "glance_step", "layer"}
CHOSEN = {**PANEL, **{name: (("time",), text) for name, text in SECONDS.items()}}


Guard = Callable[[str, float], contextlib.AbstractContextManager[Any]]


class Log:
    """The metrics of all calls and the rows of all looks and glances, in the order of the steps."""

    def __init__(self, names: tuple[str, ...]):
        self.names = names
        self.axes: dict[str, tuple[str, ...]] = {}  # names on the axes of the panel
        self.steps = array.array("d")
        self.metrics: dict[str, tuple[array.array[int], array.array[float]]] = {}
        self.rows: list[dict[str, Any]] = []
        self.late: list[dict[str, Any]] = []  # rows of looks that were taken after their step
        self.glances: list[tuple[float, float, float, float]] = []
        self.pending: list[tuple[str, int, Any]] = []  # metrics that are still on their device

    def call(self, step: float) -> None:
        """Open the call at `step`; a second call at the same step adds to the first."""
        if self.steps and step < self.steps[-1]:
            raise ValueError(
                f"{WHO}: the step fell from {self.steps[-1]:g} to {step:g}; count the steps "
                "through all epochs"
            )
        if not self.steps or step > self.steps[-1]:
            self.steps.append(step)

    def metric(self, name: str, value: Any) -> None:
        """Record a number under `name` at the open call; it may stay on its device for now."""
        if name in TAKEN or name in CHOSEN or name in ("module", "pair"):
            raise ValueError(f"{WHO}: the watch itself records {name}; use another name")
        self.pending.append((name, len(self.steps) - 1, unread(name, value)))

    @property
    def looks(self) -> list[dict[str, Any]]:
        """The rows of all looks, in the order of the steps."""
        return sorted([*self.rows, *self.late], key=lambda row: float(row["step"]))

    @property
    def full(self) -> bool:
        return len(self.pending) >= PENDING

    def read(self, kept: Guard = lambda kind, step: contextlib.nullcontext()) -> None:
        """Read the metrics that are still on their devices; `kept` is a guard against errors."""
        pending, self.pending = self.pending, []
        for name, place, value in pending:
            try:
                metric = value if type(value) is float else number(name, value)
            except Exception as reason:
                with kept(f"metric {name}", self.steps[place]):
                    raise reason
                continue
            places, values = self.metrics.setdefault(name, (array.array("q"), array.array("d")))
            places.append(place)
            values.append(metric)

    def glance(self, step: float, row: dict[str, Any], rate: float) -> None:
        """Record norm, direction and the rate of weight decay."""
        self.glances.append((step, row["norm_l2"], row["direction_change"], rate))

    def curve(self, name: str) -> Array:
        """A metric at every call, NaN where it was not given."""
        places, values = self.metrics[name]
        curve = np.full(len(self.steps), math.nan)
        curve[np.asarray(places, dtype=np.int64)] = values
        return curve

    def dataset(self, attributes: dict[str, Any], looks: list[dict[str, Any]] | None = None) -> Any:
        """Everything as an xarray.Dataset, with these rows of looks (by default all)."""
        import xarray

        looks = self.looks if looks is None else looks

        self.read()
        variables: dict[str, Any] = {name: ("call", self.curve(name)) for name in self.metrics}
        for name, text in NUMBERS.items():
            column = [row.get(name, math.nan) for row in looks]
            about: dict[str, Any] = {"long_name": text}
            about |= {"regime_limits": LIMITS[name]} if name in LIMITS else {}
            variables[name] = ("time", np.array(column, dtype=np.float64), about)
        for name, text in LAYERS.items():
            stacked = _stacked(looks, name, (len(self.names),))
            variables[name] = (("time", "layer"), stacked, {"long_name": text})
        for name, text in OUTPUTS.items():
            stacked = _stacked(looks, name, looks[0]["output"].shape)
            variables[name] = (("time", "sample", "component"), stacked, {"long_name": text})
        sizes = {"layer": len(self.names), **{axis: len(n) for axis, n in self.axes.items()}}
        for name, (dims, text) in CHOSEN.items():
            if any(name in row for row in looks):
                stacked = _stacked(looks, name, tuple(sizes[axis] for axis in dims[1:]))
                variables[name] = (dims, stacked, {"long_name": text})
        glances = np.array(self.glances, dtype=np.float64).reshape(-1, 1 + len(GLANCES))
        for place, (name, text) in enumerate(GLANCES.items(), start=1):
            variables[name] = ("glance", glances[:, place].copy(), {"long_name": text})
        coordinates = {
            "step": ("time", np.array([row["step"] for row in looks], dtype=np.float64)),
            "call_step": ("call", np.array(self.steps, dtype=np.float64)),
            "glance_step": ("glance", glances[:, 0].copy()),
            "layer": ("layer", np.array(self.names, dtype=str)),
        }
        coordinates |= {
            axis: (axis, np.array(names, dtype=str)) for axis, names in self.axes.items() if names
        }
        return xarray.Dataset(variables, coordinates, {"kind": MARK, **attributes})


def _stacked(looks: list[dict[str, Any]], name: str, shape: tuple[int, ...]) -> Array:
    missing = np.full(shape, math.nan)
    return np.array([row.get(name, missing) for row in looks], dtype=np.float64)


def until(dataset: Any, step: float) -> Any:
    """The record as it was at a step."""
    at = {"time": "step", "call": "call_step", "glance": "glance_step"}
    return dataset.isel({axis: dataset[name].values <= step for axis, name in at.items()})


@door_as(WHO)
def save(dataset: Any, file: str | os.PathLike[str]) -> Path:
    """Write the dataset of a watch to `file` by its suffix, .nc or .json, and return its path."""
    target = Path(file)
    if target.suffix == ".nc":
        return store.write(dataset, target)
    if target.suffix != ".json":
        raise Invalid(f"a record is written as .nc or .json, got {target.name!r}")
    content = _plain(_listed(dataset))
    content["checksum"] = store.json_checksum(content)
    with store.whole(target) as draft:
        draft.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
    return target


def read(file: str | os.PathLike[str]) -> Any:
    """The dataset of a watch that `save` wrote to `file`, .nc or .json."""
    target = Path(file)
    return checked(target, _from_json(target) if target.suffix == ".json" else store.read(target))


def is_record(dataset: Any) -> bool:
    """Whether a dataset says that it is the record of a watch."""
    return bool(dataset.attrs.get("kind") == MARK)


def checked(target: Path, dataset: Any) -> Any:
    """The dataset of a file, if it is the whole record of a watch."""
    if not is_record(dataset):
        raise ValueError(f"{WHO}: {target} is not the record of a watch")
    missing = [name for name in sorted(TAKEN - NEWER) if name not in dataset.variables]
    missing += [name for name in ATTRIBUTES if name not in dataset.attrs]
    if missing or not dataset.sizes["time"]:
        what = ", ".join(missing[:3]) or "looks"
        raise ValueError(f"{WHO}: {target} is an incomplete record (without {what})")
    if odd := _odd_entries(dataset):
        raise ValueError(
            f"{WHO}: {target} is not the record of a watch: its {odd[0]} is impossible"
        )
    return dataset


def _odd_entries(dataset: Any) -> list[str]:
    """The names of entries with wrong axes, or with texts in place of numbers."""
    dims = {
        **dict.fromkeys([*NUMBERS, "step"], ("time",)),
        "call_step": ("call",),
        **dict.fromkeys(LAYERS, ("time", "layer")),
        **dict.fromkeys(OUTPUTS, ("time", "sample", "component")),
        **dict.fromkeys([*GLANCES, "glance_step"], ("glance",)),
        **{name: axes for name, (axes, _) in CHOSEN.items()},
    }
    odd = [
        name
        for name, axes in dims.items()
        if name in dataset and (dataset[name].dims != axes or dataset[name].dtype.kind != "f")
    ]
    stated = dataset.attrs
    odd += [name for name in ATTRIBUTES[:6] if not _is_number(stated[name])]
    odd += [name for name in ("budget", "level") if not _is_number(stated[name], none=True)]
    odd += [] if isinstance(stated["changed"], str) else ["changed"]
    if not isinstance(stated["notes"], list) or not all(
        isinstance(n, str) for n in stated["notes"]
    ):
        odd.append("notes")
    if not isinstance(stated["failures"], list) or not all(map(_is_failure, stated["failures"])):
        odd.append("failures")
    return odd


def _is_number(value: Any, none: bool = False) -> bool:
    if value is None:
        return none
    return isinstance(value, int | float) and abs(value) <= 1e300


def _is_failure(value: Any) -> bool:
    """A kind, a step (NaN, or None in JSON, where it is not known), a count and a sentence."""
    if not isinstance(value, list) or len(value) != 4:
        return False
    kind, step, count, sentence = value
    texts = isinstance(kind, str) and isinstance(sentence, str)
    return texts and isinstance(count, int) and (step != step or _is_number(step, none=True))


def _listed(dataset: Any) -> dict[str, Any]:
    """The dataset as plain lists, with dtypes and shapes, which lists do not contain."""
    parts = {
        str(name): {
            "dims": list(variable.dims),
            "dtype": variable.dtype.str,
            "shape": list(variable.shape),
            "attrs": variable.attrs,
            "data": variable.values.tolist(),
        }
        for name, variable in dataset.variables.items()
    }
    return {"attrs": dataset.attrs, "coords": list(dataset.coords), "variables": parts}


def _from_json(target: Path) -> Any:
    import xarray

    if not target.exists():
        raise FileNotFoundError(f"{WHO}: there is no file {target}")
    if target.is_dir():
        raise ValueError(f"{WHO}: {target} is a folder; give the name of a file")
    try:
        held = json.loads(read_text(target))
        variables = {name: _variable(part) for name, part in held["variables"].items()}
        coordinates = {name: variables.pop(name) for name in held["coords"]}
        dataset = xarray.Dataset(variables, coordinates, held["attrs"])
        if held["checksum"] != store.json_checksum(held):
            raise Refusal("was changed or damaged: its checksum is wrong")
        return dataset
    except Refusal as reason:
        raise ValueError(f"{WHO}: {target} {reason}") from None
    except (*store.DAMAGED, RecursionError) as reason:
        first = (str(reason) or type(reason).__name__).splitlines()[0]
        raise ValueError(f"{WHO}: {target} is not a record in JSON ({first})") from None


def _variable(part: dict[str, Any]) -> tuple[Any, ...]:
    dtype = np.dtype(str(part["dtype"]))
    if dtype.kind not in "biufU" or dtype.itemsize > LONGEST:
        raise ValueError(f"a variable of type {part['dtype']!r:.40}")
    data = np.array(part["data"], dtype=dtype).reshape(part["shape"])
    return part["dims"], data, part["attrs"]


def _plain(value: Any) -> Any:
    """The same value with null for NaN and words for infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
