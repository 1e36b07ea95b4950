"""L-F1: grokking, a sparse majority learned late under weight decay."""

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
        "samples": 100,
        "dimension": 2000,
        "relevant": 3,
        "seed": 0,
        "norm": 64.0,
        "rate": 1e-3,
        "end": 12.0,
        "t_first": 0.01,
        "points_per_decade": 20,
        "rtol": 1e-6,
    },
    "paper": {
        "samples": 256,
        "dimension": 100_000,
        "relevant": 3,
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
    """The run of L-F1 over training time."""
    from tacit.problems.grokking import majority

    names = ("samples", "dimension", "seed", "relevant")
    found = decayed(majority(**{name: parameters[name] for name in names}), parameters)
    if progress:
        progress(1, 1)
    return found


@cell_of(PRESETS["quick"])
def cell(parameters: Parameters) -> Values:
    """The curves of the run, what was foreseen and when it jumped."""
    return values_of(data(parameters))


@figure(
    "L-F1",
    title="Grokking: the kernel's classifier first, the sparse one when the start has decayed",
    source="Lyu et al. 2023, poster, sparse linear classification",
    data=data,
    presets=PRESETS,
    constructed="the seed; in preset quick also the size of the data and the start",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Accuracy, norm, turn, margins and kernel distance over one time axis."""
    return draw_transition(dataset, caption_of(dataset.attrs))
