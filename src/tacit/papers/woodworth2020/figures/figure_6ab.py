"""Figure 6 (a, b): ReLU nets leave the kernel regime as their start shrinks, and learn better."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Evidence, at_least, at_most, within
from tacit.lazy import Axes, DataArray, Dataset, Figure
from tacit.measures.curves import crossing
from tacit.papers.experiment import Experiment
from tacit.papers.instances import slope
from tacit.papers.woodworth2020.figures import circle_nets as nets
from tacit.plotting.style import BLUE, GREEN, GREY, RED, sheet_of
from tacit.problems.regression import Regression
from tacit.records import NumericalError
from tacit.studies.sizes import sized

RICH, LARGE = 1e-3, (1e3, 1e4)  # alpha^D
MEASURES = ("test_error", "grad_distance", "kernel_error", "apart", "steps")
LABELS = {
    "depth": "number of weight matrices of the student",
    "scale": "alpha^D, the depth-adjusted scale of the start",
    "test_error": "mean square of net minus teacher over the circle, the teacher's being 1",
    "kernel_error": "the same for the kernel predictor of the start",
    "grad_distance": "1 - cosine between the tangent features at the start and at the end",
    "apart": "root mean square over the circle of net minus kernel predictor",
    "steps": "exponential steps taken",
    "floor": "the loss at which training in the kernel regime of this start ends",
    "critical": "alpha^D above which steps of 0.01 on the sum of squares are unstable at the start",
    "rests": "why training ended above its target loss, if it did",
}


def cell(depth: int, scale: float, seed: int, *, rtol: float, loss: float) -> dict[str, Any]:
    """What both panels show of one start; NaN where training cannot reach its loss."""
    found: dict[str, Any] = dict.fromkeys(MEASURES, np.nan) | {"rests": ""}
    found |= {"floor": nets.floor(depth, seed), "critical": nets.critical(depth, seed)}
    if found["floor"] > loss:
        return found
    try:
        return found | nets.trained(depth, scale, seed, rtol=rtol, loss=loss)
    except NumericalError as error:
        return found | {"rests": str(error)}


def limits(depth: int, seed: int) -> dict[str, float]:
    """Distances (RMS) of the kernel predictor to a large start and to that of another start.

    The large start is trained to a loss of 1e-16: one of 1e-9 leaves so much of the slowest mode
    that it would hide the agreement. `biased` is the grad distance of a net of depth 2 that starts
    with an output, as alpha -> infinity: relative to an output that grows as alpha^D the targets
    vanish, and scale does not matter, so it is the net from alpha = 1 with targets zero.
    """
    own, other = (nets.kernel_outputs(depth, 1.0, seed, drawn=seed + more) for more in (0, 1))
    found = {
        "converged": nets.trained(depth, LARGE[-1], seed, loss=1e-16)["apart"],
        "stranger": float(np.sqrt(np.mean((own - other) ** 2))),
        "biased": np.nan,
    }
    if depth == 2:
        X = nets.data(seed).training.X
        end = nets.ended(2, 1.0, seed, Regression(X, np.zeros(len(X))), unbiased=False)
        found["biased"] = nets.turned(2, 1.0, seed, end.parameters, unbiased=False)
    return found


study = sized(
    "W-F6ab",
    title="From small starts the tangent features of ReLU nets change, and the test error at "
    "least halves",
    function=cell,
    arguments={"rtol": nets.RTOL, "loss": nets.LOSS},
    grid={"depth": [2, 5], "scale": [RICH, 1.0, 30.0, *LARGE]},
    seeds=5,
    labels=LABELS,
    draw={"x": "scale", "colour": "test_error", "log": True},
    tiny={"grid": {"depth": [2], "scale": [RICH, 1.0, *LARGE]}},
    printed={"grid": {"depth": [2, 3, 5], "scale": {"logspace": [-3.0, 4.0, 22]}}, "seeds": 21},
)
kernel = sized(
    "W-F6ab-limits",
    title="The kernel limit of the same nets, and two controls",
    function=limits,
    grid={"depth": [2, 5]},
    seeds=5,
    draw={"x": "depth", "colour": "converged"},
    tiny={"grid": {"depth": [2]}},
    printed={"grid": {"depth": [2, 3, 5]}},
)


def complete(dataset: Dataset) -> Dataset:
    """The draws of which every run reached its loss."""
    whole = dataset.test_error.notnull().all(["depth", "scale"])
    return dataset.isel(seed=np.flatnonzero(whole.values))


def medians(dataset: Dataset, name: str, scale: float) -> Array:
    """One number per depth."""
    return np.asarray(dataset[name].sel(scale=scale, method="nearest").median("seed").values)


def exponents(dataset: Dataset) -> Array:
    """Of the grad distance in alpha^D between the two largest scales: the median per depth."""
    ends = dataset.grad_distance.sel(scale=list(LARGE), method="nearest")
    rows = ends.transpose("depth", "seed", "scale").values
    return np.median([[slope(np.array(LARGE), row) for row in draws] for draws in rows], axis=1)


def gains(dataset: Dataset, name: str = "test_error") -> DataArray:
    """The error at the smallest scale over that at the largest, by depth and draw."""
    return dataset[name].isel(scale=0, drop=True) / dataset[name].isel(scale=-1, drop=True)


def check(dataset: Dataset, kernel: Dataset) -> Evidence:
    """Both panels at the smallest and largest scales, and the kernel predictor at the largest."""
    runs = complete(dataset)
    unfit, rested = left_out(dataset)
    tried = dataset.sizes["seed"] - len(unfit)
    if runs.sizes["seed"] == 0:
        raise ValueError(
            "in every draw a run ends above its target loss: " + next(iter(rested.values()))
        )
    away = float(kernel.biased.median("seed").max())
    turned = {scale: medians(runs, "grad_distance", scale) for scale in (RICH, *LARGE)}
    still = within(turned[LARGE[-1]].max(), tolerance=1e-3)
    powers = exponents(runs)
    law = within(powers[np.abs(powers + 2).argmax()], -2.0, tolerance=0.1)
    moved = at_least(turned[RICH].min(), 0.3)
    better = at_most(gains(runs).median("seed").values.max(), 0.5)
    limit = within(kernel.converged.median("seed").max(), tolerance=1e-4)
    return Evidence(
        ran=f"{runs.sizes['seed']} draws of points, teacher (mean square one) and He-uniform start"
        f" whose kernel can fit the labels; width {nets.WIDTH}, output zero at the start"
        " (difference of two nets), gradient flow to loss 1e-9, alpha^D from"
        f" {RICH:g} to {LARGE[-1]:g}",
        premises={
            "at most one draw in ten has a run that ends above its target loss": (
                len(rested) <= tried / 10,
                len(rested),
            ),
        },
        checks={
            f"alpha^D = {LARGE[-1]:g}: largest median grad distance over the depths": still,
            "exponent of the grad distance in alpha^D, the worst of the medians": law,
            f"alpha^D = {RICH:g}: least median grad distance over the depths": moved,
            "median test error at the small start over that at the large one, the worst"
            " depth": better,
            f"alpha^D = {LARGE[-1]:g}: RMS of net - kernel predictor, the worst median": limit,
        },
        controls={
            "the small start": still.control(turned[RICH].min()),
            "without unbiasing, alpha -> infinity": still.control(away),
            "exponent -1, as if units crossed their kinks one after another": law.control(
                predicted=-1.0
            ),
            "the large start": moved.control(turned[LARGE[0]].max()),
            "the kernel predictor": better.control(
                gains(runs, "kernel_error").median("seed").values.min()
            ),
            "the net from the small start equals the kernel predictor": limit.control(
                medians(runs, "apart", RICH).min()
            ),
            "the kernel predictor of another start": limit.control(
                kernel.stranger.median("seed").min()
            ),
        },
        findings=[*findings(runs, away), *unfit.values(), *rested.values()],
    )


def left_out(dataset: Dataset) -> tuple[dict[int, str], dict[int, str]]:
    """One sentence for every draw that the medians leave out."""
    unfit, rested = {}, {}
    floors = dataset.floor.isel(scale=0).transpose("seed", "depth")
    loss = nets.LOSS
    for seed, row in zip(dataset.seed.values, floors.values, strict=True):
        said = [text for text in dataset.rests.sel(seed=seed).values.flat if text]
        if row.max() > loss:
            unfit[int(seed)] = (
                f"draw {seed} is left out: the tangent features of its start do not span its "
                "labels, and training in the kernel regime ends at a loss of "
                + listed(dataset, row, ".2g")
                + " however large alpha is"
            )
        elif said:
            rested[int(seed)] = (
                f"draw {seed} is left out because it does not reach the target loss: {said[0]}"
            )
    return unfit, rested


def findings(runs: Dataset, away: float) -> list[str]:
    """What the runs say beyond the checks."""
    ones = runs.test_error.sel(scale=1.0, method="nearest") / runs.kernel_error.isel(scale=0)
    limits, depths = runs.critical.isel(scale=0).median("seed").values, runs.depth.values
    where = [
        np.exp(crossing(np.log(runs.scale), np.log(curve), np.log(0.1)))
        for curve in runs.grad_distance.median("seed").transpose("depth", "scale").values
    ]

    def row(values: Any, form: str) -> str:
        return listed(runs, values, form)

    return [
        "the unbiasing that W B.2 does not mention is needed: with an output f(w0) at the "
        "start, which grows as alpha^D, the residual and the distance from the start grow with "
        "the start. As alpha -> infinity the median grad distance at depth 2 then stays at "
        f"{away:.2g} (the net trained towards zero), and no start is in the kernel regime",
        "the grad distance is half the squared relative distance from the start, so its "
        f"exponent is -2 in alpha^D at every depth: {row(exponents(runs), '.3f')}; in alpha it "
        "is -2 D",
        "test error at the small start over the large one, median: "
        f"{row(gains(runs).median('seed').values, '.2g')}; it is smaller in"
        f" {row((gains(runs) < 1).sum('seed').values, '.0f')} of {runs.sizes['seed']} draws",
        "at alpha = 1 the nets are about to enter the kernel regime, as W says, but on these "
        f"data their test error is no longer low: {row(ones.median('seed').values, '.2f')} "
        "times that of the kernel predictor",
        f"W's step {nets.STEP:g} approximates the flow only for small starts: on the sum of "
        f"squares descent is unstable at the start above alpha^D = {row(limits, '.2g')}, and on "
        f"their mean above {row(limits * 10 ** (depths / (2 * depths - 2)), '.2g')}",
        "exponential steps per run, median over the draws, at the smallest and largest start: "
        f"{row(medians(runs, 'steps', RICH), '.0f')} and"
        f" {row(medians(runs, 'steps', LARGE[-1]), '.0f')}",
        f"alpha^D at which the median grad distance is 0.1: {row(where, '.2g')}; as alpha"
        f" {row(where ** (1 / depths), '.2g')}",
    ]


def listed(dataset: Dataset, values: Any, form: str) -> str:
    """The values with their depths."""
    pairs = zip(dataset.depth.values, values, strict=True)
    return ", ".join(f"{value:{form}} (D={depth})" for depth, value in pairs)


def draw(dataset: Dataset, kernel: Dataset) -> Figure:
    """Test errors of nets and kernel predictors, and the grad distance, over alpha^D."""
    runs = complete(dataset)
    picture, (a, b) = sheet_of(dataset, widths=(6.0, 6.0), height=4.9)
    styles = zip(runs.depth.values, (BLUE, RED, GREEN), "os^", strict=False)
    for depth, colour, marker in styles:
        rows = runs.sel(depth=depth)
        for axes, name in ((a, "test_error"), (b, "grad_distance")):
            _band(axes, rows, name, f"depth {depth}", colour, marker)
        a.plot(rows.scale, rows.kernel_error.median("seed"), "--", color=colour, linewidth=1.4)
    a.plot([], [], "--", color=GREY, linewidth=1.4, label="kernel predictor of the start")
    a.set(
        ylabel="test error / mean square of the teacher",
        title="(a) test error: equal to that of the kernel for large starts",
    )
    large = runs.scale.values[runs.scale.values >= 10]
    top = float(runs.grad_distance.median("seed").sel(scale=large[0]).max())
    law = 30 * top * (large / large[0]) ** -2.0
    b.plot(large, law, ":", color=GREY, label=r"slope $-2$ in $\alpha^D$")
    b.set(
        ylabel="grad distance (1 - cosine)",
        title="(b) tangent features change only from small starts",
    )
    for axes in (a, b):
        axes.set(xscale="log", yscale="log", xlabel=r"depth-adjusted scale of the start $\alpha^D$")
        axes.axvline(1.0, color=GREY, linewidth=1.0, label=r"He initialization, $\alpha = 1$")
        axes.legend(loc="lower right" if axes is a else "lower left")
    return picture


def _band(axes: Axes, rows: Dataset, name: str, label: str, colour: str, marker: str) -> None:
    """The median over the seeds with a band between the quartiles."""
    low, middle, high = (rows[name].quantile(q, "seed").values for q in (0.25, 0.5, 0.75))
    axes.plot(rows.scale, middle, color=colour, marker=marker, markersize=4, label=label)
    axes.fill_between(rows.scale, low, high, color=colour, alpha=0.18, linewidth=0)


experiment = Experiment(
    "W-F6ab",
    statement="ReLU nets of depth 2, 3 and 5 on 10 points of the circle stay in the kernel "
    "regime when the start is large (their tangent features do not change), leave it "
    "as alpha^D becomes small, and then have a smaller test error.",
    place="appendix B, Figure 6 (a) and (b)",
    study=(study, kernel),
    check=check,
    draw=draw,
    ours="the points, the teacher (Gaussian weights, mean square one over the circle), the scales"
    " and the seeds (median, bands from quartile to quartile); the output is zero at the start"
    " (difference of two nets); gradient flow instead of steps of 0.01",
    seconds=9,
)
