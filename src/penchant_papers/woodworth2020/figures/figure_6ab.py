"""Figure 6 (a, b): ReLU nets leave the kernel regime as their start shrinks, and learn better."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import GradientDescent, Path, Regression, Steps, train
from penchant.lab import (
    Array,
    Axes,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_most,
    lower_share,
    margin_of_mean,
    share_at_least,
    sized,
    within,
)
from penchant.measures import crossing
from penchant.plotting import BLUE, GREEN, GREY, RED, sheet_of
from penchant.record import At
from penchant.stop import Loss
from penchant_papers.instances import slope
from penchant_papers.woodworth2020.figures import circle_nets as nets
from penchant_papers.woodworth2020.figures.kernel_regime import INSIDE, OUTSIDE

RICH, LARGE = 1e-3, (1e3, 1e4)  # alpha^D
# RMS to the kernel predictor: of order 1/alpha^D where units cross their kinks
NEAR = 10 / LARGE[-1]
BETTER = 0.8  # a test error that is smaller by a fifth counts as smaller
FITTED, COARSE = 1e-3, 1e-1  # sums of squares at which descent ends
MOST = 100_000  # steps of descent
REMOVED = 1e-4  # of a training towards zero: less than a hundredth of the start's output is left
SCOPE = "steps of 0.01 from the small start at depth 2 alone, gradient flow elsewhere"
MEASURES = ("test_error", "grad_distance", "kernel_error", "apart", "steps")
LABELS = {
    "depth": "number of weight matrices of the student",
    "scale": r"$\alpha^D$, the depth-adjusted scale of the start",
    "test_error": "mean square of net minus teacher over the circle, the teacher's being 1",
    "kernel_error": "the same for the kernel predictor of the start",
    "grad_distance": "1 - cosine between the tangent features at the start and at the end",
    "apart": "root mean square over the circle of net minus kernel predictor",
    "steps": "exponential steps taken",
    "tries": "draws until the tangent features of the start could fit the labels",
    "critical": r"$\alpha^D$ above which steps of 0.01 on the sum of squares are unstable at the "
    "start",
    "rests": "why training ended above its target loss, if it did",
}


def cell(depth: int, scale: float, seed: int, *, rtol: float, loss: float) -> dict[str, Any]:
    """What both panels show of one start.

    Draws whose labels the tangent features of a start do not span are drawn again.
    """
    number, tries = nets.fitting(seed)
    run = nets.trained(depth, scale, number, rtol=rtol, loss=loss)
    return {**run, "tries": tries, "critical": nets.critical(depth, number)}


def limits(depth: int, seed: int) -> dict[str, Any]:
    """Distances (RMS) of the kernel predictor to a large start and to that of another start.

    The large start is trained to a loss of 1e-16: one of 1e-9 leaves so much of the slowest mode
    that it would hide the agreement. `biased` is the grad distance of a net that starts with an
    output, as alpha -> infinity: relative to an output that grows as alpha^D the targets vanish,
    and scale does not matter, so it is the net from alpha = 1 with targets zero. It is trained to a
    loss of REMOVED: the features have turned by then, and in the rest units slide along their kinks
    for thousands of steps.
    """
    number, _ = nets.fitting(seed)
    own, other = (nets.kernel_outputs(depth, 1.0, number, other=number + more) for more in (0, 1))
    X = nets.data(number).training.X
    zero = Regression(X, np.zeros(len(X)))
    end = nets.ended(depth, 1.0, number, zero, unbiased=False, loss=REMOVED)
    return {
        "stranger": float(np.sqrt(np.mean((own - other) ** 2))),
        "converged": nets.trained(depth, LARGE[-1], number, loss=1e-16)["apart"],
        "biased": nets.turned(depth, 1.0, number, end.parameters, unbiased=False),
    }


def descent(depth: int, seed: int) -> dict[str, float]:
    """The printed net by descent with step 0.01 from the small start, beside its flow.

    Both end at a loss of FITTED. `apart` is the root mean square over the circle of their
    difference, `moved` that of the function between a loss of COARSE and the end of descent, and
    `early` the distance of the flow's end to where descent was at COARSE. Where descent does not
    reach FITTED there is no end to compare, the flow is not followed, and both are infinite.
    """
    number, _ = nets.fitting(seed)
    problem, model = nets.data(number), nets.start(depth, RICH, number, unbiased=False)
    steps, coarse = (
        train(
            model,
            problem.training,
            GradientDescent(nets.STEP),
            stop=[Loss(loss), Steps(MOST)],
            record=At(steps=[]),
        )
        for loss in (FITTED, COARSE)
    )

    def apart(one: Path, other: Path) -> float:
        outputs = [model.function(path.parameters, problem.test.X) for path in (one, other)]
        return float(np.sqrt(np.mean((outputs[0] - outputs[1]) ** 2)))

    loss, to_flow, early = float(steps.dataset.loss[-1]), np.inf, np.inf
    if loss <= FITTED:
        given = {"rtol": nets.RTOL / 10, "loss": FITTED}
        flow = nets.ended(depth, RICH, number, problem.training, unbiased=False, **given)
        to_flow, early = apart(steps, flow), apart(coarse, flow)
    return {
        "loss": loss,
        "apart": to_flow,
        "moved": apart(steps, coarse),
        "early": early,
        "turned": nets.turned(depth, RICH, number, steps.parameters, unbiased=False),
        "steps": float(steps.dataset.step[-1]),
    }


study = sized(
    "W-F6ab",
    title="From small starts the tangent features of ReLU nets change, and the test error falls",
    function=cell,
    arguments={"rtol": nets.RTOL, "loss": nets.LOSS},
    grid={"depth": list(nets.DEPTHS), "scale": [RICH, 1.0, *LARGE]},
    seeds=24,
    labels=LABELS,
    draw={"x": "scale", "colour": "test_error", "log": True},
    printed={
        "grid": {"depth": list(nets.DEPTHS), "scale": {"logspace": [-3.0, 4.0, 22]}},
        "seeds": 60,
    },
)
kernel = sized(
    "W-F6ab-limits",
    title="The kernel limit of the same nets, and nets that start with an output",
    function=limits,
    grid={"depth": list(nets.DEPTHS)},
    seeds=12,
    draw={"x": "depth", "colour": "converged"},
    printed={"grid": {"depth": list(nets.DEPTHS)}, "seeds": 40},
)
steps = sized(
    "W-F6ab-steps",
    title="Descent with step 0.01 from a small start learns what the flow learns",
    function=descent,
    grid={"depth": [2]},
    seeds=40,
    draw={"x": "depth", "colour": "apart"},
    printed={"grid": {"depth": list(nets.DEPTHS)}, "seeds": 40},
)
LITTLE = 0.5  # of what training still moves between two losses


def medians(dataset: Dataset, name: str, scale: float) -> Array:
    """One number per depth."""
    return np.asarray(dataset[name].sel(scale=scale, method="nearest").median("seed").values)


def exponents(dataset: Dataset) -> Array:
    """Of the grad distance in alpha^D between the two largest scales: the median per depth."""
    ends = dataset.grad_distance.sel(scale=list(LARGE), method="nearest")
    rows = ends.transpose("depth", "seed", "scale").values
    return np.median([[slope(np.array(LARGE), row) for row in draws] for draws in rows], axis=1)


def gains(dataset: Dataset, scale: float = RICH) -> DataArray:
    """The log of the error at a scale over that at the largest, by depth and draw."""
    errors = dataset.test_error
    return np.log(
        errors.sel(scale=scale, method="nearest", drop=True) / errors.isel(scale=-1, drop=True)
    )


def check(runs: Dataset, kernel: Dataset, steps: Dataset) -> Evidence:
    """Both panels at the smallest and largest scales, and the kernel predictor at the largest."""
    n, drawn = runs.sizes["seed"], int(runs.tries.isel(depth=0, scale=0).sum())
    lazy = runs.rests.sel(scale=list(LARGE), method="nearest")
    biased = kernel.biased.median("seed")
    still = within(runs.grad_distance.sel(scale=LARGE[-1], method="nearest").max(), 0.0, INSIDE)
    powers, turned = exponents(runs), runs.grad_distance.sel(scale=RICH, method="nearest")
    law = within(powers[np.abs(powers + 2).argmax()], -2.0, tolerance=0.1)
    left = share_at_least(int((turned > OUTSIDE).sum("seed").min()), n, 0.5)
    better, alike = (
        gains(runs, place).mean("depth").values for place in (RICH, float(runs.scale[-2]))
    )
    smaller = at_most(mean_ratio(better, 1), BETTER)
    limit = within(kernel.converged.median("seed").max(), tolerance=NEAR)
    fitted = (steps.loss <= FITTED).values  # elsewhere descent rests, or goes on after MOST steps
    pairs = int(fitted.sum())
    out = ((steps.turned > OUTSIDE).values & fitted).sum()
    ratios = {
        name: np.log((steps[name] / steps.moved).values[fitted]) for name in ("apart", "early")
    }
    alike_steps = at_most(mean_ratio(ratios["apart"], 1), LITTLE)
    both = {
        "the printed net by descent with step 0.01: share of draws outside of the kernel regime"
        " (0.999 lower limit)": share_at_least(int(out), pairs, 0.5),
        "its distance to the flow on the circle over how far it still moves from a loss of "
        rf"{COARSE:g} to {FITTED:g}, geometric mean (0.999 upper limit)": alike_steps,
        rf"$\alpha^D = {RICH:g}$: share of draws outside of the kernel regime, the least over the "
        "depths (0.999 lower limit)": left,
        "test error at the small start over that at the large one, geometric mean over draws and"
        " depths (0.999 upper limit)": smaller,
    }
    return Evidence(
        ran=f"{n} draws of points, teacher (mean square one) and He-uniform start, of {drawn} "
        f"those whose kernel can fit the labels; depths {runs.depth.values.tolist()}, width "
        rf"{nets.WIDTH}, gradient flow to loss $10^{{-9}}$, $\alpha^D$ from {RICH:g} to "
        f"{LARGE[-1]:g}, with the output of the start subtracted (difference of two nets), "
        r"and without it the limit of large $\alpha$; "
        f"{fitted.size} printed nets of depth {listed_depths(steps)} by descent with step "
        rf"{nets.STEP:g} from $\alpha^D = {RICH:g}$ to a sum of squares of {FITTED:g}",
        premises={
            "from the two largest starts every run reaches its target loss, as the tangent features"
            " of these draws can": (bool((lazy == "").all()), int((lazy != "").sum())),
            rf"more than half of the descents reach a loss of {FITTED:g} (0.999 lower limit); the "
            "others decide nothing": (
                lower_share(pairs, fitted.size) > 0.5,
                f"{pairs} of {fitted.size}",
            ),
        },
        checks={
            **both,
            r"as printed, $\alpha \to \infty$: largest median grad distance over the "
            "depths": within(biased.max(), tolerance=INSIDE),
        },
        corrected={
            **both,
            rf"outputs subtracted, $\alpha^D = {LARGE[-1]:g}$: largest grad distance": still,
            r"exponent of the grad distance in $\alpha^D$, the worst of the medians": law,
            rf"$\alpha^D = {LARGE[-1]:g}$: RMS of net - kernel predictor, the worst median": limit,
        },
        correction="a large start is in the kernel regime once its own output is subtracted, "
        "which W B.2 does not mention. As printed the output $f(w_0)$, and with it the "
        "residual and the distance from the start, grows with the start: however large "
        r"$\alpha$ is, the tangent features turn as much as in training towards zero, and "
        "deeper nets never enter",
        counterexample={
            r"grad distance as printed, $\alpha \to \infty$, median by depth": {
                str(depth): float(value)
                for depth, value in zip(kernel.depth.values, biased.values, strict=True)
            },
            rf"outputs subtracted, $\alpha^D = {LARGE[-1]:g}$": medians(
                runs, "grad_distance", LARGE[-1]
            ),
        },
        controls={
            "the small start stays in the kernel regime": still.control(turned.min()),
            rf"descent ended at a loss of {COARSE:g} (0.999 lower limit)": alike_steps.control(
                mean_ratio(ratios["early"], -1)
            ),
            "exponent -1, as if units crossed their kinks one after another": law.control(
                predicted=-1.0
            ),
            "the net from the small start equals the kernel predictor": limit.control(
                medians(runs, "apart", RICH).min()
            ),
            "the second largest start in place of the small one (0.999 lower limit)": (
                smaller.control(mean_ratio(alike, -1))
            ),
            "the kernel predictor of another start": limit.control(
                kernel.stranger.median("seed").min()
            ),
        },
        findings=[*findings(runs, kernel), *at_rest(runs)],
    )


def mean_ratio(logs: Array, side: int) -> float:
    """The geometric mean of ratios of these logarithms, at its upper (1) or lower (-1) limit."""
    if len(logs) < 3:
        return float("inf") if side > 0 else 0.0  # so few say nothing
    return float(np.exp(logs.mean() + side * margin_of_mean(logs)))


def at_rest(runs: Dataset) -> list[str]:
    """How many runs end above their loss, and why the first of them does."""
    why = [str(text) for text in runs.rests.values.flat if text]
    if not why:
        return []
    return [
        f"{len(why)} of {runs.rests.size} flows end above their loss and are judged where they "
        f"end; the first, from {why[0]}"
    ]


def findings(runs: Dataset, kernel: Dataset) -> list[str]:
    """What the runs say beyond the checks."""
    limits, depths = runs.critical.isel(scale=0).median("seed").values, runs.depth.values
    where = [
        np.exp(crossing(np.log(runs.scale), np.log(curve), np.log(0.1)))
        for curve in runs.grad_distance.median("seed").transpose("depth", "scale").values
    ]
    logs = gains(runs)

    def row(values: Any, form: str) -> str:
        return listed(runs, values, form)

    lines = [
        r"as printed, with the output of the start, the median grad distance as $\alpha \to "
        rf"\infty$ is {listed(kernel, kernel.biased.median('seed').values, '.2g')}",
        "the grad distance is half the squared relative distance from the start, so its exponent "
        rf"is -2 in $\alpha^D$ at every depth: {row(exponents(runs), '.3f')}; in $\alpha$ it "
        "is $-2 D$",
        "test error at the small start over the large one, median: "
        f"{row(np.exp(logs.median('seed').values), '.2g')}; it is smaller in"
        f" {row((logs < 0).sum('seed').values, '.0f')} of {runs.sizes['seed']} draws",
        f"W's step {nets.STEP:g} approximates the flow only for small starts: on the sum of "
        rf"squares descent is unstable at the start above $\alpha^D$ = {row(limits, '.2g')}, "
        f"and on their mean above {row(limits * 10 ** (depths / (2 * depths - 2)), '.2g')}",
        "exponential steps per run, median over the draws, at the smallest and largest start: "
        f"{row(medians(runs, 'steps', RICH), '.0f')} and"
        f" {row(medians(runs, 'steps', LARGE[-1]), '.0f')}",
        rf"$\alpha^D$ at which the median grad distance is 0.1: {row(where, '.2g')}; as $\alpha$ "
        f"{row(where ** (1 / depths), '.2g')}",
    ]
    if runs.scale.sel(scale=1.0, method="nearest") == 1.0:
        ones = runs.test_error.sel(scale=1.0) / runs.kernel_error.isel(scale=0)
        lines.append(
            r"at $\alpha = 1$ the nets are about to enter the kernel regime, as W says, but on "
            "these data their test error is no longer low: "
            f"{row(ones.median('seed').values, '.2f')} times that of the kernel predictor"
        )
    return lines


def listed_depths(dataset: Dataset) -> str:
    return ", ".join(map(str, dataset.depth.values))


def listed(dataset: Dataset, values: Any, form: str) -> str:
    """The values with their depths."""
    pairs = zip(dataset.depth.values, values, strict=True)
    return ", ".join(f"{value:{form}} ($D={depth}$)" for depth, value in pairs)


def draw(runs: Dataset, kernel: Dataset, steps: Dataset) -> Figure:
    """Test errors of nets and kernel predictors, and the grad distance, over alpha^D."""
    picture, (a, b) = sheet_of(runs, widths=(6.0, 6.0), height=4.9)
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
    statement="ReLU nets of several depths on 10 points of the circle stay in the kernel regime "
    r"when the start is large (their tangent features do not change), leave it as $\alpha^D$ "
    "becomes small, and then have a smaller test error.",
    place="appendix B, Figure 6 (a) and (b)",
    study=(study, kernel, steps),
    check=check,
    draw=draw,
    ours="the points, the teacher (Gaussian weights, mean square one over the circle), the scales"
    " and the seeds (median, bands from quartile to quartile); in the picture the output is zero at"
    " the start (difference of two nets); gradient flow beside steps of 0.01",
    scope={
        "tiny": SCOPE,
        "quick": SCOPE,
        "printed": "gradient flow in place of steps of 0.01 from large starts, where they are "
        "unstable",
    },
    seconds=12,
)
