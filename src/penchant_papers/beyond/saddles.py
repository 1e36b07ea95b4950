"""Training from a vanishing start as a list of jumps, at any depth; its mean as a lasso path."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penchant import L1, DiagonalNet, DualFlow, Regression, Time, interpolate, train
from penchant.lab import (
    Array,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    exponents,
    sized,
    within,
)
from penchant.plotting import BLACK, CYCLE, sheet_of
from penchant.record import At
from penchant.solvers import Saddles, saddles
from penchant_papers.beyond import OWN_RUNS

JUMPS = 16  # room for the jumps of one problem
NEAR = np.logspace(-5, -0.05, 40)  # distances from a predicted jump, as shares of its time
LONGER = 4.0  # times the last jump, the length of a run
MOST = 0.9  # of the jumps
RTOL = 1e-6  # of a step of the flow: times are judged to a few percent
FLAT = 1e-6  # relative to the labels: a loss below it counts as zero


def problem(seed: int, samples: int, dimension: int) -> Regression:
    """Random data and labels; with more samples than features nothing fits."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, dimension)) / math.sqrt(samples)
    return Regression(X, rng.standard_normal(samples))


def moments(jumps: Saddles) -> Array:
    """Times tau to record training at: close to every jump, and for a while after the last."""
    later = jumps.tau[1:, None] * (1 + np.concatenate([-NEAR, [0], NEAR]))
    return np.unique(
        np.concatenate([later.ravel(), jumps.tau[-1] * np.linspace(0.01, LONGER, 150)])
    )


def crossings(jumps: Saddles, problem: Regression, tau: Array, log_loss: Array) -> Array:
    """When training passes the geometric mean of the losses before and after each jump.

    NaN for a jump from a loss that is nearly zero.
    """
    loss = ((jumps.points @ problem.X.T - problem.y) ** 2).sum(axis=1)
    least = FLAT * float(problem.y @ problem.y)
    levels = np.sqrt(loss[:-1] * np.maximum(loss[1:], least))
    times = np.array([np.interp(-np.log(level), -log_loss, tau) for level in levels])
    return np.where(loss[:-1] > 100 * least, times, np.nan)


def greedy(problem: Regression, jumps: int) -> Array:
    """Jump times if s restarted at 0 at every saddle: the slopes alone decide, not their sums."""
    tau, active, beta = [0.0], np.zeros(problem.dimension, bool), np.zeros(problem.dimension)
    for _ in range(jumps):
        pull = np.abs(4 * problem.X.T @ (problem.y - problem.X @ beta)) * ~active
        tau.append(tau[-1] + 1 / max(pull.max(), 1e-12))
        active[pull.argmax()] = True
        beta[active] = np.linalg.lstsq(problem.X[:, active], problem.y)[0]
    return np.array(tau[1:])


def lasso_error(problem: Regression, tau: float, b: Array) -> float:
    """How far b misses the optimality of |X b - y|^2/2 + |b|_1/(4 tau), in units of the penalty."""
    pull = 4 * tau * problem.X.T @ (problem.y - problem.X @ b)
    there = np.abs(b) > 1e-2 * np.abs(b).max()
    far = np.where(there, np.abs(pull - np.sign(b)), np.maximum(np.abs(pull) - 1, 0))
    return float(far.max())


def cell(
    log_alpha: float, seed: int, *, samples: int, dimension: int, depth: int
) -> dict[str, Any]:
    """Measured and predicted jumps of one trained net, and its mean as a lasso solution."""
    data = problem(seed, samples, dimension)
    jumps = saddles(data, depth=depth)
    unit, wanted = math.exp(jumps.log_unit(log_alpha=log_alpha)), moments(jumps)
    net, stop = DiagonalNet(depth, log_alpha=log_alpha), Time(wanted[-1] * unit)
    path = train(
        net, data, DualFlow(rtol=RTOL), stop=stop, record=At(times=list(wanted * unit))
    ).dataset
    tau, trained = path.t.values / unit, path.predictor.values
    count = len(jumps.tau) - 1
    steps = np.diff(tau)[:, None] * (trained[1:] + trained[:-1]) / 2
    means = np.cumsum(steps, axis=0) / tau[1:, None]
    late = np.flatnonzero(tau[1:] > 2 * jumps.tau[1])
    size = float(np.abs(jumps.end).max())

    def padded(values: Array) -> Array:
        return np.concatenate([values, np.full(JUMPS - count, np.nan)])

    return {
        "jump": padded(crossings(jumps, data, tau, path.log_loss.values)),
        "predicted": padded(jumps.tau[1:]),
        "restarted": padded(greedy(data, count)),
        "monotone": float(jumps.monotone),
        "end": float(np.abs(trained[-1] - jumps.end).max() / size),
        "end_l1": float(np.abs(jumps.end - least_l1(data)).max() / size),
        "end_l2": float(np.abs(jumps.end - np.linalg.lstsq(data.X, data.y)[0]).max() / size),
        "mean_lasso": max(lasso_error(data, tau[k + 1], means[k]) for k in late),
        "last_lasso": lasso_error(data, tau[-1], trained[-1]),
        "predicted_lasso": max(lasso_error(data, t, jumps.average(t)) for t in jumps.tau[1:]),
    }


def least_l1(problem: Regression) -> Array:
    """The fit of least l1 norm, or the one of least loss where nothing fits."""
    if problem.dimension > len(problem.y):
        return interpolate(problem, L1()).beta
    return np.asarray(np.linalg.lstsq(problem.X, problem.y)[0])


LABELS = {
    "log_alpha": r"log of the start's scale $\alpha$",
    "jump": "time of the jump in training, in the units of the predicted time",
    "predicted": "predicted time of the jump",
    "mean_lasso": "distance of the mean predictor from the optimality of the lasso",
}
DIMS = {name: ["jump_number"] for name in ("jump", "predicted", "restarted")}
SHALLOW = [-30.0, -100.0, -300.0, -1000.0, -3000.0]
study = sized(
    "beyond-saddles",
    title="Training from a vanishing start jumps between saddles at predicted times",
    function=cell,
    arguments={"samples": 5, "dimension": 10, "depth": 2},
    grid={"log_alpha": [-100.0, -1000.0]},
    seeds=3,
    dims=DIMS,
    labels=LABELS,
    tiny={"seeds": 2},
    printed={"seeds": 20, "grid": {"log_alpha": SHALLOW}},
)
tall = sized(
    "beyond-saddles-tall",
    title="The same with more samples than features: the mean predictor is on the lasso's path",
    function=cell,
    arguments={"samples": 12, "dimension": 4, "depth": 2},
    grid={"log_alpha": [-1000.0]},
    seeds=3,
    dims=DIMS,
    labels=LABELS,
    tiny={"seeds": 2},
    printed={"seeds": 20, "grid": {"log_alpha": SHALLOW}},
)
deep = sized(
    "beyond-saddles-deep",
    title="The same jumps in another unit of time at depth 3",
    function=cell,
    arguments={"samples": 5, "dimension": 10, "depth": 3},
    grid={"log_alpha": [-3.0, -5.0]},
    seeds=3,
    dims=DIMS,
    labels=LABELS,
    tiny={"seeds": 2},
    printed={"seeds": 20, "grid": {"log_alpha": [-3.0, -5.0, -7.0, -9.0]}},
)


def errors(dataset: Dataset, against: str = "predicted") -> DataArray:
    """Median over problems and jumps of |jump - predicted| / predicted, at every scale."""
    return apart(dataset, against).median(["seed", "jump_number"])


def apart(dataset: Dataset, against: str = "predicted") -> DataArray:
    """|jump - predicted| / predicted of every jump."""
    return np.abs(dataset.jump - dataset[against]) / dataset[against]


def order(dataset: Dataset, size: Array) -> float:
    """The power of `size` that the error of a jump follows: the median over jumps."""
    rows = apart(dataset).stack(every=["seed", "jump_number"]).transpose("every", "log_alpha")
    known = rows.values[(rows.values > 0).all(axis=1)]
    return float(np.median(exponents(size, known)))


def check(dataset: Dataset, tall: Dataset, deep: Dataset) -> Evidence:
    """Jump times at two depths and their orders, the end, and the mean predictor."""
    least = {"log_alpha": -1}
    last, last_tall, last_deep = (d.isel(least) for d in (dataset, tall, deep))
    time = within(errors(dataset)[-1], tolerance=0.02)
    worst = within(max(float(apart(d).quantile(MOST)) for d in (last, last_tall)), tolerance=0.05)
    power = within(order(dataset, inverse_of(dataset)), 1, 0.2)
    end = within(max(float(d.end_l1.max()) for d in (dataset, tall)), tolerance=1e-9)
    mean = last_tall.mean_lasso.where(last_tall.monotone == 1)
    lasso = within(mean.max(), tolerance=0.02)
    ended = np.concatenate([np.ravel(d.end < 1e-2) for d in (last, last_deep)])
    exact = tall.predicted_lasso.where(tall.monotone == 1).max()
    astray = dataset.predicted_lasso.where(dataset.monotone == 0)
    return Evidence(
        ran=f"{dataset.sizes['seed']} random regressions with 5 samples of 10 features and "
        rf"{tall.sizes['seed']} with 12 of 4, trained by exact flow from $\alpha = "
        f"e^{{{dataset.log_alpha.values[0]:g}}}$ to $e^{{{dataset.log_alpha.values[-1]:g}}}$ "
        f"at depth 2, and from $e^{{{deep.log_alpha.values[0]:g}}}$ to "
        f"$e^{{{deep.log_alpha.values[-1]:g}}}$ at depth 3",
        premises={
            "most runs end within 1% of the last predicted saddle": (
                bool(ended.mean() > 0.5),
                f"{int(ended.sum())} of {ended.size}",
            ),
            "some problem is monotone": (bool((last_tall.monotone == 1).any()), ""),
        },
        checks={
            "depth 2, smallest start: median relative error of the predicted jump time": time,
            "the same, not exceeded by nine of ten jumps, with fewer and with more samples than"
            " features": worst,
            r"depth 2: power of $1/\log(1/\alpha)$ in that error": power,
            r"depth 3: power of $\alpha$ in that error": within(
                order(deep, np.exp(deep.log_alpha.values)), 1.0, 0.2
            ),
            r"largest distance of the last predicted saddle from the least $\ell_1$ norm, or the "
            "least loss": end,
            "monotone problems: largest distance of the mean predictor from the lasso's"
            " optimality": lasso,
        },
        controls={
            "$s$ restarts after every jump": time.control(errors(last, "restarted")),
            "$s$ restarts, nine of ten jumps": worst.control(
                apart(last, "restarted").quantile(MOST)
            ),
            r"the least $\ell_2$ norm as the endpoint": end.control(dataset.end_l2.min()),
            "depth 3 in the order of depth 2": power.control(order(deep, inverse_of(deep))),
            "the last predictor in place of the mean": lasso.control(
                last_tall.last_lasso.where(last_tall.monotone == 1).min()
            ),
        },
        findings=[
            "depth changes only the unit of time and the order of the error: the saddles and the "
            "order of the jumps are those of depth 2, because the dual $1 - "
            r"(w/\alpha)^{2-D}$ obeys the same law (ours)",
            "where no coordinate returns to zero the time average of the saddles is the lasso's"
            f" solution up to {float(exact):.1e}; in {int((astray[:, 0] > 0).sum())} of"
            f" {dataset.sizes['seed']} wide problems a coordinate returns, and the average"
            f" violates the lasso's optimality by up to {float(astray.max()):.2g} of the penalty",
        ],
    )


def inverse_of(dataset: Dataset) -> Array:
    return np.asarray(1 / np.abs(dataset.log_alpha.values))


def draw(dataset: Dataset, tall: Dataset, deep: Dataset) -> Figure:
    """Measured over predicted times, and how the error falls with the start at two depths."""
    picture, (a, b) = sheet_of(dataset, widths=(6.0, 6.0), height=4.8)
    first = dataset.isel(seed=0)
    places = np.arange(1, first.sizes["jump_number"] + 1)
    for k, log_alpha in enumerate(dataset.log_alpha.values):
        jumps, label = first.jump.sel(log_alpha=log_alpha), rf"$\alpha = e^{{{log_alpha:g}}}$"
        a.plot(places, jumps, "o^Dsv*"[k % 6], color=CYCLE[k % len(CYCLE)], label=label)
    a.plot(
        places,
        first.predicted.isel(log_alpha=0),
        "_",
        color=BLACK,
        markersize=18,
        label="predicted",
    )
    a.set(
        xlabel="number of the jump",
        ylabel=r"time of the jump $t / \log(1/\alpha)$",
        yscale="log",
        xlim=(0.5, float(first.predicted.isel(log_alpha=0).count()) + 0.5),
        title="when a net of depth 2 jumps",
    )
    a.legend()
    for data, x, name, colour in (
        (dataset, inverse_of(dataset), r"depth 2, over $1/\log(1/\alpha)$", CYCLE[0]),
        (deep, np.exp(deep.log_alpha.values), r"depth 3, over $\alpha$", CYCLE[1]),
    ):
        b.plot(x, errors(data), "o-", color=colour, label=name)
    line = np.array([1e-3, 1e-1])
    b.plot(line, line, "--", color=BLACK, linewidth=1.2, label="slope 1")
    b.set(
        xscale="log",
        yscale="log",
        xlabel=r"$1/\log(1/\alpha)$ or $\alpha$",
        ylabel="median relative error of the times",
        title="how the error falls with the start",
    )
    b.legend()
    return picture


experiment = Experiment(
    "beyond-saddles",
    statement=r"As $\alpha$ goes to 0, training of a diagonal net jumps between saddles and ends "
    r"at the least $\ell_1$ norm; the times $\tau \log(1/\alpha)$ of the jumps follow from a "
    "homotopy of sign-constrained least squares; where no coordinate returns to zero, the "
    "mean of the predictor over time is the lasso's path. At depth 3 the saddles are the same "
    r"and the times are $(2/3) \tau / \alpha$.",
    place="Pesme and Flammarion 2023 (arXiv 2304.00488), Algorithm 1; Berthier 2025"
    " (arXiv 2509.18766); depth 3: ours",
    study=(study, tall, deep),
    check=check,
    draw=draw,
    ours="the data, the scales, the level of the loss that marks a jump, and depth 3",
    scope=OWN_RUNS,
    seconds=6,
)
