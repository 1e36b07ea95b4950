"""How long generalization waits, over the start and the decay."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penchant import Classification, DiagonalNet, DualFlow, NumericalError, Path, Time, train
from penchant.lab import (
    Array,
    Axes,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    Kind,
    at_least,
    at_most,
    sized,
)
from penchant.measures import LATE_CHANGES, grokking
from penchant.plotting import BLACK, CYCLE, GREY, PALE, caption_of, latex, sheet
from penchant.problems import majority
from penchant.record import LogSpaced
from penchant.stop import LogLoss, Stop

SMALL, LARGE = 1.0, 16.0  # norms of starts that are rich from the beginning, and kernel at first


def cell(
    rate: float,
    norm: float,
    seed: int,
    *,
    samples: int,
    dimension: int,
    level: float,
    after: float,
    slowest: float,
    largest: float,
    points_per_decade: int,
    rtol: float,
) -> dict[str, Any]:
    """One run, judged; training is solved when it gives the right labels probability `level`.

    It ends at (after + log norm) / rate; without decay at the end of `slowest` from `largest`.
    """
    problem = majority(samples, dimension, seed=seed)
    assert problem.population is not None
    start, decay = (norm, rate) if rate else (largest, slowest)
    t_max = (after + max(math.log(start), 0.0)) / decay
    path = run(problem, rate, norm, t_max, points_per_decade, rtol)
    shown = path.dataset.isel(time=slice(1, None))
    test = np.array([problem.population.accuracy(row) for row in shown.predictor.values])
    seen = grokking(shown.t, confidence(shown.margins.values), test, level)
    return {
        "t1": seen.t1,
        "t2": seen.t2,
        "delay": seen.delay,
        "kind": LATE_CHANGES.index(seen.kind),
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


def run(
    problem: Classification, rate: float, norm: float, t_max: float, density: int, rtol: float
) -> Path:
    """The exact flow from a start of this norm until every transition has passed."""
    flow = DualFlow(rtol=rtol, weight_decay=rate)
    # without decay the loss is about 1/t, so log(1/loss) must reach beyond log t_max
    stop: list[Stop] = [Time(t_max)] if rate else [Time(t_max), LogLoss(-2 * math.log(t_max))]
    model = DiagonalNet(depth=2, alpha=norm / math.sqrt(2 * problem.dimension))
    path = train(model, problem, flow, stop=stop, record=LogSpaced(density))
    if not path.outcome.ok and (rate or path.outcome.kind is not Kind.BUDGET_SPENT):
        raise NumericalError(f"flow from norm {norm:g} at rate {rate:g}", path.outcome)
    return path


study = sized(
    "L-sweep",
    title="A larger start and a smaller decay delay grokking; a small start or no decay prevents"
    " it",
    function=cell,
    arguments={
        "samples": 80,
        "dimension": 150,
        "level": 0.95,
        "after": 8.0,
        "slowest": 1e-3,
        "largest": 256.0,
        "points_per_decade": 15,
        "rtol": 1e-5,
    },
    grid={"rate": [0.0, 1e-3, 1e-2], "norm": [0.3, 64.0, 256.0]},
    seeds=2,
    labels={
        "norm": "Euclidean norm of the start",
        "rate": r"rate of the weight decay, $\lambda$",
        "t1": r"time from which training is solved; $\infty$ if it is not",
        "t2": r"time from which the test is solved; $\infty$ if it is not by the end of the record",
        "delay": "$t_2 - t_1$",
        "kind": ", ".join(f"{number} {kind}" for number, kind in enumerate(LATE_CHANGES)),
        "final": "test accuracy at the end of the record",
        "end": "time at the end of the record",
    },
    draw={"x": "norm", "y": "rate", "colour": "delay", "log": True},
    printed={
        "arguments": {
            "samples": 100,
            "dimension": 2000,
            "slowest": 1e-6,
            "points_per_decade": 30,
            "rtol": 1e-7,
        },
        "grid": {
            "rate": [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2],
            "norm": [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0],
        },
    },
)


def ordered(delays: Array) -> float:
    """The share of neighbours for which the larger start, or the smaller decay, waits longer.

    The last two axes are the rate, falling, and the norm, rising.
    """
    with np.errstate(invalid="ignore"):  # between two runs that never grok
        up = np.concatenate([np.diff(delays, axis=-1).ravel(), np.diff(delays, axis=-2).ravel()])
    return float(np.mean(up > 0))


def check(dataset: Dataset) -> Evidence:
    """Large starts with decay grok, later if larger or with less decay; no other run does."""
    runs = dataset.transpose("seed", "rate", "norm").sortby("rate", ascending=False)
    grok = runs.kind == LATE_CHANGES.index("grok")
    large, decayed = runs.norm >= LARGE, runs.rate > 0
    late = runs.sel(rate=runs.rate[decayed], norm=runs.norm[large])
    share = grok.sel(rate=late.rate, norm=late.norm)
    still = grok.sel(rate=0.0)
    small = grok.sel(norm=runs.norm[runs.norm <= SMALL])
    order = at_least(ordered(late.delay.values), 1.0)
    none = at_most(np.concatenate([still.values.ravel(), small.values.ravel()]).mean(), 0.0)
    slowest = late.isel(seed=0, rate=-1)
    units = ", ".join(f"{delay:.2f}" for delay in (slowest.delay * slowest.rate).values)
    return Evidence(
        ran=f"{runs.sizes['rate']} x {runs.sizes['norm']} runs of depth 2 on corners of a cube "
        "with the majority of three coordinates as label, logistic loss, exact flow; without "
        f"decay up to $t = {latex(float(runs.end.sel(rate=0.0).max()), '.2g')}$",
        checks={
            "share of large starts with decay that grok": at_least(share.mean(), 1.0),
            "share of neighbouring grid cells whose delays are ordered as L says": order,
            "share of runs without decay, or from a norm of at most 1, that grok": none,
        },
        controls={
            "a larger start and a smaller decay delay training itself": order.control(
                ordered(late.t1.values)
            ),
            "runs with decay from a large start": none.control(share.isel(rate=-1, norm=-1).mean()),
        },
        findings=[
            f"delay in units of 1/rate at rate {float(slowest.rate):g}, by norm of the start ("
            + ", ".join(f"{n:g}" for n in slowest.norm.values)
            + f"): {units}",
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """The delay over start and decay, and the time of generalization in units of 1/lambda."""
    first = dataset.isel(seed=0)
    caption = (
        f"{caption_of(dataset.attrs)} Colours and numbers in the cells show the delay $t_2 - "
        "t_1$. Training is solved $(t_1)$ at mean probability 0.95 of the right label, test "
        "$(t_2)$ at accuracy 0.95."
    )
    picture, (grid, law) = sheet(dataset.title, caption, widths=(7.0, 4.4), height=4.9)
    _draw_grid(picture, grid, first)
    _draw_law(law, first)
    return picture


def _draw_grid(picture: Figure, axes: Axes, dataset: Dataset) -> None:
    from matplotlib.colors import LogNorm

    grok = dataset.kind.values == LATE_CHANGES.index("grok")
    delay = np.where(grok, dataset.delay.values, np.nan)
    norm = LogNorm() if grok.any() else None  # without a delay there is nothing to scale
    axes.set_facecolor(PALE)
    image = axes.imshow(delay, origin="lower", aspect="auto", cmap="viridis_r", norm=norm)
    picture.colorbar(image, ax=axes, label="delay $t_2 - t_1$")
    middle = np.exp(np.nanmean(np.log(delay[grok]))) if grok.any() else 0.0
    for (i, j), value in np.ndenumerate(delay):
        text, colour = _cell_text(dataset.isel(rate=i, norm=j)), BLACK
        if np.isfinite(value):
            text, colour = f"${latex(value, '.1e')}$", "white" if value > middle else BLACK
        axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=8)
    axes.grid(False)
    axes.set(xlabel=r"norm of the start $\|\theta(0)\|$", ylabel=r"weight decay $\lambda$")
    axes.set_xticks(range(dataset.sizes["norm"]), [f"{v:g}" for v in dataset.norm.values])
    axes.set_yticks(range(dataset.sizes["rate"]), [_power(v) for v in dataset.rate.values])


def _cell_text(cell: Dataset) -> str:
    """Why there is no grokking in a cell."""
    if math.isinf(float(cell.t1)):
        return "not\ntrained"
    if math.isinf(float(cell.t2)):
        return f"not by\n${latex(float(cell.end), '.1e')}$"
    return "no\ndelay"


def _power(value: float) -> str:
    return rf"$10^{{{math.log10(value):.2g}}}$" if value > 0 else "0"


def _draw_law(axes: Axes, dataset: Dataset) -> None:
    """lambda * t2 against the norm of the start: one line for all rates."""
    norms = dataset.norm.values
    decayed = dataset.sel(rate=dataset.rate.values[dataset.rate.values > 0])
    for colour, rate, marker in zip(CYCLE, decayed.rate.values, "osD^vP", strict=False):
        row = decayed.sel(rate=rate)
        late = row.kind.values == LATE_CHANGES.index("grok")
        axes.plot(
            norms[late],
            rate * row.t2.values[late],
            marker,
            color=colour,
            markersize=6,
            label=rf"$\lambda$ = {_power(rate)}",
        )
    line = np.geomspace(1, max(1.0, norms.max()), 30)
    axes.plot(line, np.log(line), "--", color=GREY, linewidth=1.4, label=r"$\log\|\theta(0)\|$")
    axes.set(
        xscale="log",
        xlabel=r"norm of the start $\|\theta(0)\|$",
        ylabel=r"time of generalization $\lambda\, t_2$",
    )
    axes.legend(loc="upper left")


experiment = Experiment(
    "L-sweep",
    statement="A larger start and a smaller weight decay make the delay of grokking longer;"
    " without weight decay, or from a small start, there is no grokking.",
    place="title quotation and prior work, after Liu et al. 2023",
    study=study,
    check=check,
    draw=draw,
    ours="data, grid and seed",
    seconds=2,
)
