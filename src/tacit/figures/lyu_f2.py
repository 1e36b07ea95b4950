"""L-F2: misgrokking, a dense classifier of wide l2 margin that weight decay forgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.figures.cells import Values, cell_of, values_of
from tacit.figures.decayed import decayed
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import caption_of
from tacit.plotting.transition import draw_transition

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

PRESETS: dict[str, Parameters] = {
    "quick": {
        "samples": 32,
        "dimension": 2000,
        "gamma": 8.0,
        "seed": 0,
        "norm": 64.0,
        "rate": 1e-3,
        "end": 12.0,
        "t_first": 0.01,
        "points_per_decade": 20,
        "rtol": 1e-6,
    },
    "paper": {
        "samples": 32,
        "dimension": 100_000,
        "gamma": 25.0,
        "seed": 0,
        "norm": 128.0,
        "rate": 1e-3,
        "end": 12.0,
        "t_first": 0.01,
        "points_per_decade": 10,
        "rtol": 1e-6,
    },
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """The run of L-F2 over training time."""
    from tacit.problems.grokking import wide_margin

    names = ("samples", "dimension", "gamma", "seed")
    found = decayed(wide_margin(**{name: parameters[name] for name in names}), parameters)
    if progress:
        progress(1, 1)
    return found


@cell_of(PRESETS["quick"])
def cell(parameters: Parameters) -> Values:
    """The curves of the run, what was foreseen and when it jumped."""
    return values_of(data(parameters))


@figure(
    "L-F2",
    title="Misgrokking: the kernel's classifier is right, and is lost when the start has decayed",
    source="Lyu et al. 2023, poster, labels of large l2 margin",
    data=data,
    presets=PRESETS,
    constructed="the seed and the start; in preset quick also the size of the data and the gap",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Accuracy, norm, turn, margins and kernel distance over one time axis."""
    return draw_transition(dataset, caption_of(dataset.attrs))
