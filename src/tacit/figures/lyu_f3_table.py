"""L-F3a: a multiplication table completed by U U^T - V V^T, memorized at once, understood late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tacit.figures.cells import Values, cell_of, values_of, without
from tacit.figures.registry import Parameters, figure
from tacit.figures.table_completion import completed
from tacit.plotting.style import BLACK, BLUE, CYCLE, GREY, RED, caption_of
from tacit.plotting.transition import LEGEND, rows
from tacit.plotting.typeset import typeset

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRESETS: dict[str, Parameters] = {
    "quick": {
        "dimension": 40,
        "fraction": 0.15,
        "seed": 0,
        "alpha": 10.0,
        "decays": [1e-4, 1e-6],
        "step": 0.1,
        "end": 25.0,
        "records": 200,
        "rtol": 1e-6,
        "level": 0.02,
    },
    "paper": {
        "dimension": 97,
        "fraction": 0.05,
        "seed": 0,
        "alpha": 10.0,
        "decays": [1e-4, 1e-6],
        "step": 0.1,
        "end": 25.0,
        "records": 200,
        "rtol": 1e-6,
        "level": 0.02,
    },
}
HEIGHTS = (2.4, 1.2, 1.2, 0.9, 0.9, 0.9)


@cell_of("decay", without(PRESETS["quick"], "decays"))
def cell(parameters: Parameters) -> Values:
    """The run at one decay, with the minimisers of its problem."""
    run = completed({**parameters, "decays": [parameters["decay"]]}).isel(decay=0, drop=True)
    return values_of(run, "record")


@figure(
    "L-F3a",
    title="Multiplication table: memorized at once, understood after the decay",
    source="Lyu et al. 2023, poster, completing multiplication tables",
    data=completed,
    presets=PRESETS,
    constructed="the table is i j/d^2; entries are drawn one by one, and a symmetric matrix then "
    "knows (j, i) too; the seed is one whose least nuclear norm is the table's (18 of 20 seeds in "
    "preset quick, 5 of 10 in preset paper); the second decay, because the last error is "
    "proportional to the decay; in preset quick also d and the share seen",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Errors, distances, nuclear norm, parameter norm, turn and kernel distance over one time."""
    caption = f"{caption_of(dataset.attrs)} A step of descent is {dataset.attrs['step']:g} of t."
    picture, axes = rows(dataset.title, caption, HEIGHTS)
    _foreseen(axes, dataset)
    for number, colour in enumerate(_colours(dataset)):
        run = dataset.isel(decay=number)
        _draw_run(axes, run.isel(record=run.t.values > 0), colour)
    _furnish(axes, dataset)
    picture.align_ylabels(axes)
    return picture


def _colours(dataset: xarray.Dataset) -> list[str]:
    count = dataset.sizes["decay"]
    return [RED, BLUE] if count == 2 else [CYCLE[k % len(CYCLE)] for k in range(count)]


def _draw_run(axes: Sequence[Axes], run: xarray.Dataset, colour: str) -> None:
    error, distance, nuclear, norm, turn, kernel = axes
    name = typeset(f"lambda = {float(run.decay):.1e}")
    error.plot(run.t, run.test_error, color=colour, linewidth=3, label=f"test, {name}")
    error.plot(run.t, run.train_error, "--", color=colour, linewidth=1.4, label=f"training, {name}")
    distance.plot(run.t, run.from_kernel, "-.", color=colour, linewidth=1.4)
    distance.plot(run.t, run.from_nuclear, color=colour)
    nuclear.plot(run.t, run.norm_nuclear, color=colour)
    norm.plot(run.t, run.parameter_norm, color=colour)
    turn.plot(run.t, run.turn, color=colour)
    kernel.plot(run.t, run.kernel_distance, color=colour)


def _foreseen(axes: Sequence[Axes], dataset: xarray.Dataset) -> None:
    """What was known before training: the forecasts and (1/lambda) log alpha."""
    for number, colour in enumerate(_colours(dataset)):
        run = dataset.isel(decay=number)
        for one in axes:
            one.axvspan(
                float(run.forecast_low),
                float(run.forecast_high),
                color=colour,
                alpha=0.13,
                linewidth=0,
                zorder=0,
            )
            one.axvline(float(run.forecast), color=BLACK, linestyle="--", linewidth=1.2, zorder=2)
            one.axvline(float(run.theory), color=GREY, linestyle=":", linewidth=1.2, zorder=2)


def _furnish(axes: Sequence[Axes], dataset: xarray.Dataset) -> None:
    error, distance, nuclear, norm, turn, kernel = axes
    error.set(ylabel="root mean\nsquare error", xscale="log", yscale="log")
    times = dataset.t.values[dataset.t.values > 0]
    error.set_xlim(times.min(), times.max())
    error.plot([], [], "--", color=BLACK, linewidth=1.2, label="forecast before training")
    error.plot([], [], color=GREY, linewidth=8, alpha=0.3, label="its interval")
    error.plot([], [], ":", color=GREY, linewidth=1.2, label=r"$(1/\lambda)\,\log\alpha$")
    distance.plot([], [], "-.", color=BLACK, linewidth=1.4, label="kernel interpolant")
    distance.plot([], [], color=BLACK, label="least nuclear norm")
    distance.set(ylabel="relative\ndistance to", yscale="log")
    nuclear.axhline(1, color=BLACK, linewidth=0.9, label="least that fits\nthe data")
    nuclear.set(ylabel="nuclear norm\nover least", ylim=(0, None))
    norm.set(ylabel="parameter\nnorm", yscale="log")
    turn.set(ylabel="turn from\nstart (deg)", ylim=(0, 92), yticks=(0, 45, 90))
    kernel.set(ylabel="kernel\ndistance", ylim=(-0.03, None), xlabel="training time $t$")
    for one in (error, distance, nuclear):
        one.legend(**LEGEND)
    error.set_title(_summary(dataset))


def _summary(dataset: xarray.Dataset) -> str:
    """When each run fell, and when it was foreseen to, a line for every decay."""
    lines = []
    for number in range(dataset.sizes["decay"]):
        run = dataset.isel(decay=number)
        decay, jump, forecast = (
            f"{float(run[name]):.1e}" for name in ("decay", "jump", "forecast")
        )
        text = f"lambda = {decay}: half of the fall at t = {jump}, foreseen {forecast}"
        lines.append(typeset(text))
    return "\n".join(lines)
