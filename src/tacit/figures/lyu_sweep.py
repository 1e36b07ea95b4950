"""L-sweep: how long generalization waits, over the start and the decay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures.cells import Values, cell_of, without
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, CYCLE, GREY, PALE, caption_of, sheet
from tacit.plotting.typeset import typeset

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.problems.classification import Classification
    from tacit.training.path import Path

PRESETS: dict[str, Parameters] = {
    "quick": {
        "samples": 60,
        "dimension": 500,
        "seed": 0,
        "level": 0.95,
        "after": 8.0,
        "norms": [0.3, 1.0, 4.0, 16.0, 64.0, 256.0],
        "rates": [0.0, 1e-5, 1e-4, 1e-3, 1e-2],
        "points_per_decade": 15,
        "rtol": 1e-5,
    },
    "paper": {
        "samples": 100,
        "dimension": 2000,
        "seed": 0,
        "level": 0.95,
        "after": 8.0,
        "norms": [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0],
        "rates": [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2],
        "points_per_decade": 30,
        "rtol": 1e-7,
    },
}
KINDS = ("none", "mirage", "misgrok", "grok")

TEXTS = {
    "norm": "Euclidean norm of the start",
    "rate": "rate of the weight decay, lambda",
    "t1": "time from which training is solved; inf if it is not",
    "t2": "time from which the test accuracy is solved; inf if it is not by the end of the record",
    "delay": "t2 - t1",
    "kind": "0 none, 1 mirage, 2 misgrok, 3 grok",
    "final": "test accuracy at the end of the record",
    "end": "time at the end of the record",
    "level": "test accuracy, and mean probability of the training labels, that solve",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """t1, t2, delay and kind of the run at every rate and norm."""
    import xarray

    from tacit.problems.grokking import majority

    problem = majority(parameters["samples"], parameters["dimension"], seed=parameters["seed"])
    rates, norms = parameters["rates"], parameters["norms"]
    names = ("t1", "t2", "delay", "kind", "final", "end")
    found = {name: np.full((len(rates), len(norms)), np.nan) for name in names}
    for done, place in enumerate(np.ndindex(len(rates), len(norms)), start=1):
        row = _cell(problem, rates[place[0]], norms[place[1]], parameters)
        for name in names:
            found[name][place] = row[name]
        if progress:
            progress(done, len(rates) * len(norms))
    dataset = xarray.Dataset(
        {name: (("rate", "norm"), values) for name, values in found.items()},
        coords={"rate": rates, "norm": norms},
    ).assign(level=parameters["level"])
    for key, variable in dataset.variables.items():
        variable.attrs.update(long_name=TEXTS[str(key)], units="1")
    return dataset


@cell_of("rate", "norm", "slowest", "largest", without(PRESETS["quick"], "rates", "norms"))
def cell(parameters: Parameters) -> Values:
    """One run, judged; without decay it takes as long as `slowest` does from norm `largest`."""
    from tacit.problems.grokking import majority

    problem = majority(parameters["samples"], parameters["dimension"], seed=parameters["seed"])
    ends = {"rates": [parameters["slowest"]], "norms": [parameters["largest"]]}
    return _cell(problem, parameters["rate"], parameters["norm"], {**parameters, **ends})


def _cell(
    problem: Classification, rate: float, norm: float, parameters: Parameters
) -> dict[str, Any]:
    """One run, judged; training is solved when it gives the right labels probability `level`."""
    from tacit.measures.grokking import grokking

    assert problem.population is not None
    path = _run(problem, rate, norm, parameters)
    shown = path.dataset.isel(time=slice(1, None))
    test = np.array([problem.population.accuracy(row) for row in shown.predictor.values])
    seen = grokking(shown.t, confidence(shown.margins.values), test, parameters["level"])
    return {
        "t1": seen.t1,
        "t2": seen.t2,
        "delay": seen.delay,
        "kind": KINDS.index(seen.kind),
        "final": test[-1],
        "end": float(shown.t[-1]),
    }


def confidence(margins: Array) -> Array:
    """The mean probability 1/(1 + e^-margin) of the right label.

    Training accuracy itself is 1 from the first moment where samples are few: the mean of
    y_n x_n already separates them.
    """
    with np.errstate(over="ignore"):
        return np.mean(1 / (1 + np.exp(-margins)), axis=-1)


def _run(problem: Classification, rate: float, norm: float, parameters: Parameters) -> Path:
    """A flow until every transition has passed; without decay as long as at the smallest rate."""
    from tacit.models.diagonal import DiagonalNet
    from tacit.records import Kind, NumericalError
    from tacit.training.exact.dual.flow import DualFlow
    from tacit.training.record import LogSpaced
    from tacit.training.stop import LogLoss, Stop, Time
    from tacit.training.train import train

    slowest = rate or min(rate for rate in parameters["rates"] if rate > 0)
    largest = norm if rate else max(parameters["norms"])
    t_max = (parameters["after"] + max(math.log(largest), 0.0)) / slowest
    flow = DualFlow(rtol=parameters["rtol"], weight_decay=rate)
    # without decay the loss is about 1/t: the clock has to reach beyond t_max
    stop: list[Stop] = [Time(t_max)] if rate else [Time(t_max), LogLoss(-2 * math.log(t_max))]
    model = DiagonalNet(depth=2, alpha=norm / math.sqrt(2 * problem.dimension))
    record = LogSpaced(parameters["points_per_decade"])
    path = train(model, problem, flow, stop=stop, record=record)
    if not path.outcome.ok and (rate or path.outcome.kind is not Kind.BUDGET_SPENT):
        raise NumericalError(f"flow from norm {norm:g} at rate {rate:g}", path.outcome)
    return path


@figure(
    "L-sweep",
    title="Larger start, smaller decay: longer delay. Small start or no decay: no grokking",
    source="Lyu et al. 2023, poster, after Liu et al. 2023",
    data=data,
    presets=PRESETS,
    constructed="data, grid and seed",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The delay over start and decay, and the time of generalization in units of 1/lambda."""
    level = float(dataset.level)
    caption = (
        f"{caption_of(dataset.attrs)} Colours and the numbers in the cells: the delay t2 - t1. "
        f"Training is solved (t1) at mean probability {level:g} of the right label, test (t2) at "
        f"accuracy {level:g}."
    )
    picture, (grid, law) = sheet(dataset.title, caption, widths=(7.0, 4.4), height=4.9)
    _draw_grid(picture, grid, dataset)
    _draw_law(law, dataset)
    return picture


def _draw_grid(picture: Figure, axes: Axes, dataset: xarray.Dataset) -> None:
    from matplotlib.colors import LogNorm

    grok = dataset.kind.values == KINDS.index("grok")
    delay = np.where(grok, dataset.delay.values, np.nan)
    norm = LogNorm() if grok.any() else None  # without a delay there is nothing to scale
    axes.set_facecolor(PALE)
    image = axes.imshow(delay, origin="lower", aspect="auto", cmap="viridis_r", norm=norm)
    picture.colorbar(image, ax=axes, label="delay $t_2 - t_1$")
    middle = np.exp(np.nanmean(np.log(delay[grok]))) if grok.any() else 0.0
    for (i, j), value in np.ndenumerate(delay):
        text, colour = _cell_text(dataset.isel(rate=i, norm=j)), BLACK
        if np.isfinite(value):
            text, colour = typeset(f"{value:.1e}"), "white" if value > middle else BLACK
        axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=8)
    axes.grid(False)
    axes.set(xlabel=r"norm of the start $\|\theta(0)\|$", ylabel=r"weight decay $\lambda$")
    axes.set_xticks(range(dataset.sizes["norm"]), [f"{v:g}" for v in dataset.norm.values])
    axes.set_yticks(range(dataset.sizes["rate"]), [_power(v) for v in dataset.rate.values])


def _cell_text(cell: xarray.Dataset) -> str:
    """Why there is no grokking in a cell."""
    if math.isinf(float(cell.t1)):
        return "not\ntrained"
    if math.isinf(float(cell.t2)):
        return typeset(f"not by\n{float(cell.end):.1e}")
    return "no\ndelay"


def _power(value: float) -> str:
    return rf"$10^{{{math.log10(value):.2g}}}$" if value > 0 else "0"


def _draw_law(axes: Axes, dataset: xarray.Dataset) -> None:
    """lambda * t2 against the norm of the start: one line for all rates."""
    norms = dataset.norm.values
    decayed = dataset.sel(rate=dataset.rate.values[dataset.rate.values > 0])
    for colour, rate, marker in zip(CYCLE, decayed.rate.values, "osD^vP", strict=False):
        row = decayed.sel(rate=rate)
        late = row.kind.values == KINDS.index("grok")
        axes.plot(
            norms[late],
            rate * row.t2.values[late],
            marker,
            color=colour,
            markersize=6,
            label=rf"$\lambda$ = {_power(rate)}",
        )
    line = norms[norms >= 1]
    axes.plot(line, np.log(line), "--", color=GREY, linewidth=1.4, label=r"$\log\|\theta(0)\|$")
    axes.set(
        xscale="log",
        xlabel=r"norm of the start $\|\theta(0)\|$",
        ylabel=r"time of generalization $\lambda\, t_2$",
    )
    axes.legend(loc="upper left")
