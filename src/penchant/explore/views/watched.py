"""The record of a watched training run, read again whenever its file changes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.explore.controls import WHO, Choice
from penchant.explore.picture import Curve, Panel, Picture, reach
from penchant.explore.state import Values, View
from penchant.plotting.style import BLUE, GREEN, ORANGE, PURPLE, RED

EVERY = 2.0  # seconds between two looks at the file
MOST_BYTES = 100_000_000
MEASURES = (
    ("kernel_distance", "distance of the tangent kernel", BLUE),
    ("linearized_error", "missed by the linearized net", ORANGE),
    ("kernel_gain", "gain of the present kernel", PURPLE),
)
METRIC_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED)
MOST = 1000  # points of a curve
SCALES = {"log": "logarithmic steps", "linear": "linear steps"}


def read_watch(file: Path) -> Any:
    """The record in `file` as it is now."""
    if not file.is_file():
        raise ValueError(f"{WHO}: there is no file {str(file)!r}; `watch.save` writes one")
    now = file.stat()
    return _read(file, now.st_mtime_ns, now.st_size)


@lru_cache(maxsize=2)
def _read(file: Path, when: int, size: int) -> Any:
    from penchant.watch.record import read

    return read(file)


def watch_view(file: Path) -> View:
    """The view of a record; the file is read once here, so that a wrong one is refused."""
    read_watch(file)
    return View(
        "watch",
        "A watched training run",
        f"{file.name}, read again when it changes: call watch.save({file.name!r}) in the loop, and "
        "this page follows the run.",
        (Choice("axis", "the axis of the steps", SCALES, "log"),),
        lambda values: picture(read_watch(file), values),
        lambda values: f"import penchant\n\nprint(penchant.load({file.name!r}))\n",
        refresh=EVERY,
    )


def metrics_in(dataset: Any) -> list[str]:
    """The numbers that the loop gave with its calls."""
    return [str(name) for name, v in dataset.data_vars.items() if v.dims == ("call",)]


def picture(dataset: Any, values: Values) -> Picture:
    """What the loop reported, and what the watch measured, over the steps."""
    from penchant.watch.reporting import read

    report = read(dataset)
    names = metrics_in(dataset)
    calls = _since_start(dataset, "call_step")
    given = [
        Curve(name, *_thinned(calls, dataset[name].values), "line", METRIC_COLOURS[n % 5])
        for n, name in enumerate(names)
    ]
    steps = _since_start(dataset, "step")
    measured = [
        Curve(label, *_thinned(steps, dataset[name].values), "line", colour)
        for name, label, colour in MEASURES
        if name in dataset
    ]
    axis = str(values["axis"])
    panels = (
        _panel("given", "What the loop reported", "loss or accuracy", tuple(given), axis),
        _panel(
            "measured", "How far the net is from its linearization", "share", tuple(measured), axis
        ),
    )
    last = max([0.0, *calls[-1:], *steps[-1:]])
    return Picture(panels, f"Step {last:,.0f}: {report.headline}.", {"step": last})


def _panel(name: str, title: str, label: str, curves: tuple[Curve, ...], axis: str) -> Panel:
    x = np.concatenate([curve.x for curve in curves]) if curves else np.ones(1)
    y = [curve.y for curve in curves] or [np.ones(1)]
    shown = np.log10(x[x > 0]) if axis == "log" else x
    return Panel(
        name,
        title,
        "step" if axis == "linear" else "step, power of ten",
        label,
        tuple(_on(curve, axis) for curve in curves),
        x_range=reach(shown),
        y_range=reach(*y, np.zeros(1)),
    )


def _on(curve: Curve, axis: str) -> Curve:
    """The curve over the steps or over their logarithm: bokeh cannot change a scale later."""
    if axis == "linear":
        return curve
    after = curve.x > 0
    return Curve(curve.name, np.log10(curve.x[after]), curve.y[after], curve.style, curve.colour)


def _since_start(dataset: Any, name: str) -> Array:
    start = float(dataset.attrs["start_step"])
    return np.asarray(dataset[name].values - start, dtype=float)


def _thinned(x: Array, y: Any) -> tuple[Array, Array]:
    every = max(1, len(x) // MOST)
    return x[::every], np.asarray(y, dtype=float)[::every]
