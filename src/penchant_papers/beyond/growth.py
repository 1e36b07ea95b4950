"""Vanishing starts of any direction: jumps at growth times, and the end of least weighted l1."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.optimize import linprog

from penchant import DiagonalNet, DualFlow, ParameterFlow, Regression, Time, train
from penchant.lab import (
    Array,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    drawn,
    share_at_least,
    sized,
    upper_share,
    within,
)
from penchant.models import DiagonalLayers, Separable
from penchant.plotting import BLACK, CYCLE, GREY, sheet_of
from penchant.record import At
from penchant.solvers import Saddles, saddles
from penchant_papers.beyond import OWN_RUNS
from penchant_papers.beyond.saddles import JUMPS, crossings, problem
from penchant_papers.instances import distance

NEAR = np.logspace(-3.5, -0.05, 15)  # distances from a predicted jump, as shares of its time
LONGER = 4.0  # times the last jump, the length of a run
SPREAD = 0.5  # logarithms of the start's direction are uniform in [-SPREAD, SPREAD]
CLOSE = 0.01  # of the largest weight: a run ends there
STAY = 0.1  # of the time of a jump: a stay that is as long is looked at in its middle
RTOL = 1e-6  # of a step of the flow
ENOUGH = 0.5  # of the runs, and of the stays
MOST = 0.9  # of the jumps
APART = 5 * CLOSE  # ends of right and wrong rules that are this far apart tell them from each other
DRAWS = 1000  # numbers between the seeds of two problems
# the logarithm of the scale; in the parameters float64 holds no much smaller ones
SCALES = {
    "depth 2": -250.0,
    "analytic map": -200.0,
    "depth 3": -9.0,
    "unequal layers": -9.0,
    "depth 5": -4.0,
}


@dataclasses.dataclass(frozen=True)
class Beginning:
    """A model at a small scale, its growth times, and training time over tau."""

    model: Any
    growth: Array
    unit: float


class AnalyticMap(Separable):
    """sinh(u)^2 - v sinh(v)/2, whose curvatures at zero, 2 and -1, are two rates of growth."""

    homogeneity, copies = None, 2

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def start(self, dimension: int) -> Array:
        return np.full(2 * dimension, self.scale)

    def predictor(self, parameters: Array) -> Array:
        u, v = self.table(parameters)
        return np.asarray(np.sinh(u) ** 2 - v * np.sinh(v) / 2)

    def change(self, start: Array, displacement: Array) -> Array:
        return self.predictor(start + displacement) - self.predictor(start)

    def slopes(self, parameters: Array) -> Array:
        u, v = self.table(parameters)
        return np.array([np.sinh(2 * u), -(np.sinh(v) + v * np.cosh(v)) / 2])

    def bends(self, parameters: Array) -> Array:
        u, v = self.table(parameters)
        bends = np.zeros((2, 2, len(u)))
        bends[0, 0], bends[1, 1] = 2 * np.cosh(2 * u), -np.cosh(v) - v * np.sinh(v) / 2
        return bends


def start(family: str, log_alpha: float, dimension: int, rng: np.random.Generator) -> Beginning:
    """A net from a random direction."""
    if family == "unequal layers":
        return unequal_layers(log_alpha, dimension, rng)
    if family == "analytic map":
        growth = np.repeat([[1.0], [2.0]], dimension, axis=1)
        return Beginning(AnalyticMap(math.exp(log_alpha)), growth, -log_alpha)
    depth = int(family.split()[1])
    direction = np.exp(rng.uniform(-SPREAD, SPREAD, (2, dimension)))
    if depth == 2:  # powers of the scale count, factors do not
        growth = rng.uniform(1 - SPREAD / 2, 1 + SPREAD / 2, (2, dimension))
        net = DiagonalNet(2, start=np.exp(log_alpha * growth) * direction)
        return Beginning(net, growth, -log_alpha)
    net = DiagonalNet(depth, start=math.exp(log_alpha) * direction)
    unit = 2 * math.exp((2 - depth) * log_alpha) / (depth * (depth - 2))
    return Beginning(net, direction ** (2.0 - depth), unit)


def unequal_layers(log_alpha: float, dimension: int, rng: np.random.Generator) -> Beginning:
    """u1 u2 u3 - v1 v2 v3 from different sizes in every layer."""
    layers = np.exp(rng.uniform(-SPREAD, SPREAD, (2, 3, dimension)))
    rises, falls = np.array([[escapes(sizes) for sizes in half.T] for half in layers]).T
    growth = np.minimum(rises, falls[:, ::-1]).T  # whichever product grows with that sign first
    alpha = math.exp(log_alpha)
    return Beginning(DiagonalLayers(*(alpha * layers)), growth, 2 / alpha)


def escapes(sizes: Array) -> tuple[float, float]:
    """When the product of three weights runs away upwards and downwards, under a unit pull.

    a_k^2 + x is the square of every weight, dx/dt = 2 prod a_k, and z^2 = x + min a^2. Downwards
    the smallest weight first falls to zero, z = 0, and then grows with the other sign.
    """
    squares = np.sort(sizes**2)

    def speed(z: float) -> float:
        return 1 / math.sqrt(float(np.prod(squares[1:] - squares[0] + z * z)))

    first = math.sqrt(squares[0])
    way, rest = quad(speed, 0, first)[0], quad(speed, first, np.inf)[0]
    return rest, 2 * way + rest


def least_weighted(problem: Regression, growth: Array) -> Array:
    """The fit of least sum of t+ b+ and t- b-, by linear programming."""
    up, down = np.broadcast_to(growth, (2, problem.dimension))
    signed = np.hstack([problem.X, -problem.X])
    parts = linprog(np.concatenate([up, down]), A_eq=signed, b_eq=problem.y).x
    return np.asarray(parts[: problem.dimension] - parts[problem.dimension :])


def moments(jumps: Saddles) -> Array:
    """Times tau to record: close to every jump, in the middle of every stay, after the last."""
    later = jumps.tau[1:, None] * (1 + np.concatenate([-NEAR, [0], NEAR]))
    ahead = jumps.tau[-1] * np.linspace(1.0, LONGER, 30)
    return np.unique(np.concatenate([later.ravel(), middles(jumps), ahead]))


def middles(jumps: Saddles) -> Array:
    return np.asarray((jumps.tau[1:-1] + jumps.tau[2:]) / 2)


def measured(data: Regression, begin: Beginning, flow: Any) -> dict[str, Any]:
    """Jumps, stays and the end of one trained net, beside what three growth times predict."""
    jumps = saddles(data, growth=tuple(begin.growth))
    plain, swapped = saddles(data), saddles(data, growth=tuple(begin.growth[::-1]))
    wanted = moments(jumps)
    stop, record = Time(wanted[-1] * begin.unit), At(times=list(wanted * begin.unit))
    path = train(begin.model, data, flow, stop=stop, record=record).dataset
    tau, trained = path.t.values / begin.unit, path.predictor.values
    long = np.diff(jumps.tau[1:]) > STAY * jumps.tau[1:-1]
    inside = trained[np.abs(tau - middles(jumps)[:, None]).argmin(axis=1)]

    def distances(one: Array, other: Array) -> Array:
        return np.asarray(np.abs(one - other).max(axis=1) / np.abs(jumps.end).max())

    def stays(at: Array) -> Array:
        return padded(np.where(long, distances(inside, at), np.nan))

    other = plain.at(middles(jumps))
    best = least_weighted(data, begin.growth)
    return {
        "jump": padded(crossings(jumps, data, tau, path.log_loss.values)),
        "predicted": padded(jumps.tau[1:]),
        "plain": padded(plain.tau[1:]),
        "swapped": padded(swapped.tau[1:]),
        "stay": stays(jumps.points[1:-1]),
        "stay_plain": stays(other),
        "between": padded(np.where(long, distances(other, jumps.points[1:-1]), np.nan)),
        "end": distance(trained[-1], best),
        "end_plain": distance(trained[-1], least_weighted(data, np.ones((2, 1)))),
        "end_swapped": distance(trained[-1], least_weighted(data, begin.growth[::-1])),
        "list_end": distance(jumps.end, best),
        "list_plain": distance(plain.end, best),
    }


def padded(values: Array) -> Array:
    return np.concatenate([values, np.full(JUMPS, np.nan)])[:JUMPS]


def decided(data: Regression, growth: Array) -> bool:
    """Whether the end tells growth times from none, and their two signs from each other."""
    best = least_weighted(data, growth)
    others = [np.ones((2, 1)), *([] if (growth[0] == growth[1]).all() else [growth[::-1]])]
    return all(distance(least_weighted(data, other), best) > APART for other in others)


def instance(
    begin: Callable[[np.random.Generator], Beginning], seed: int, samples: int, dimension: int
) -> tuple[tuple[Regression, Beginning], int]:
    """A problem and a start that tell right from wrong, and how many draws that took."""

    def make(own_seed: int) -> tuple[Regression, Beginning]:
        rng = np.random.default_rng([own_seed, 1])
        return problem(own_seed, samples, dimension), begin(rng)

    return drawn(make, lambda pair: decided(pair[0], pair[1].growth), DRAWS * seed)


def cell(family: str, seed: int, *, samples: int, dimension: int) -> dict[str, Any]:
    """A net of one family, trained in its parameters."""

    def begin(rng: np.random.Generator) -> Beginning:
        return start(family, SCALES[family], dimension, rng)

    (data, net), draws = instance(begin, seed, samples, dimension)
    return {"draws": draws} | measured(data, net, ParameterFlow(rtol=RTOL))


def far(log_alpha: float, seed: int, *, samples: int, dimension: int) -> dict[str, Any]:
    """Depth 2 at scales that only the dual reaches: w+ = w- = alpha^t."""

    def begin(rng: np.random.Generator) -> Beginning:
        growth = rng.uniform(1 - SPREAD / 2, 1 + SPREAD / 2, dimension)
        net = DiagonalNet(2, log_alpha=log_alpha, shape=np.exp(log_alpha * (growth - 1)))
        return Beginning(net, np.array([growth, growth]), -log_alpha)

    (data, net), _ = instance(begin, seed, samples, dimension)
    rows = measured(data, net, DualFlow(rtol=RTOL))
    return {name: values for name, values in rows.items() if "swapped" not in name}


LABELS = {
    "family": "the net",
    "log_alpha": r"log of the start's scale $\alpha$",
    "jump": "time of the jump in training, in the units of the predicted time",
    "predicted": "predicted time of the jump",
    "end": r"distance of the trained predictor from the least weighted $\ell_1$ norm",
}
TIMES = ("jump", "predicted", "plain", "swapped", "stay", "stay_plain", "between")
DIMS = {name: ["jump_number"] for name in TIMES}
SIZE = {"samples": 4, "dimension": 8}
study = sized(
    "beyond-growth",
    title="Vanishing starts of any direction jump at their growth times",
    function=cell,
    arguments=SIZE,
    grid={"family": list(SCALES)},
    seeds=8,
    dims=DIMS,
    labels=LABELS,
    tiny={"seeds": 3},
    printed={"seeds": 40},
)
deep = sized(
    "beyond-growth-far",
    title="The same at depth 2 down to the smallest scales",
    function=far,
    arguments=SIZE,
    grid={"log_alpha": [-1000.0]},
    seeds=8,
    dims={name: DIMS[name] for name in TIMES if name != "swapped"},
    labels=LABELS,
    tiny={"seeds": 3},
    printed={"seeds": 40, "grid": {"log_alpha": [-100.0, -1000.0]}},
)


def apart(dataset: Dataset, against: str = "predicted") -> DataArray:
    """|jump - predicted| / predicted of every jump."""
    return np.abs(dataset.jump - dataset[against]) / dataset[against]


def medians(datasets: list[Dataset], against: str = "predicted") -> Array:
    """The median over jumps of every family of runs."""
    rows = [apart(data, against) for data in datasets]
    own = [row.median([name for name in row.dims if name != "family"]) for row in rows]
    return np.concatenate([np.ravel(values) for values in own])


def tails(datasets: list[Dataset], against: str = "predicted") -> float:
    """What nine of ten jumps of all runs do not exceed."""
    errors = np.concatenate([np.ravel(apart(data, against)) for data in datasets])
    return float(np.nanquantile(errors, MOST))


def ended(datasets: list[Dataset], name: str) -> tuple[int, int]:
    """How many runs end within 1% of a prediction, and how many there are."""
    close = np.concatenate([np.ravel(data[name] < CLOSE) for data in datasets])
    return int(close.sum()), close.size


def rested(datasets: list[Dataset], name: str) -> tuple[int, int]:
    """How many long stays have their middle within 5% of a prediction, of those that tell."""
    close, tells = (
        np.concatenate([np.ravel(test(data)) for data in datasets])
        for test in (lambda data: data[name] < APART, lambda data: data.between > 2 * APART)
    )
    return int((close & tells).sum()), int(tells.sum())


def check(dataset: Dataset, deep: Dataset) -> Evidence:
    """Times, saddles and ends; the same without growth times and with their signs exchanged."""
    smallest = deep.isel(log_alpha=-1)
    runs = [dataset, smallest]
    time = within(medians(runs).max(), tolerance=0.02)
    tail = within(tails(runs), tolerance=0.05)
    stay = share_at_least(*rested(runs, "stay"), ENOUGH)
    end = share_at_least(*ended(runs, "end"), ENOUGH)
    rule = within(max(float(data.list_end.max()) for data in runs), tolerance=1e-9)
    shown = {name: ended([dataset.sel(family=name)], "end") for name in dataset.family.values}
    shown[rf"$\alpha = e^{{{float(smallest.log_alpha):g}}}$"] = ended([smallest], "end")
    return Evidence(
        ran=f"{dataset.sizes['seed']} random regressions with 4 samples of 8 features for each of "
        "five families, trained in the parameters: signed nets of depth 2 from $w = "
        r"\alpha^t a$, $\alpha = e^{-250}$; the map $\sinh^2 u - v \sinh(v) / 2$ from $e^{-200}$; "
        r"signed nets of depths 3 and 5 from $w = \alpha a$, $\alpha = e^{-9}$ and $e^{-4}$, "
        "and differences of products of three layers that start unequal; "
        rf"{smallest.sizes['seed']} by the exact dual at depth 2 and $\alpha = "
        rf"e^{{{float(smallest.log_alpha):g}}}$",
        checks={
            "worst family: median relative error of the predicted jump time": time,
            "nine of ten jumps have at most this error": tail,
            "share of long stays whose middle is within 5% of the predicted saddle": stay,
            r"share of runs that end within 1% of the least weighted $\ell_1$ norm": end,
            r"largest distance of a list's end from the least weighted $\ell_1$ norm, by linear"
            " programming": rule,
        },
        controls={
            "no growth times: jump times, best family": time.control(medians(runs, "plain").min()),
            r"$t^+$ and $t^-$ exchanged: jump times, best family": time.control(
                medians([dataset], "swapped").min()
            ),
            "no growth times: nine of ten jumps": tail.control(tails(runs, "plain")),
            "no growth times: stays": stay.control(upper_share(*rested(runs, "stay_plain"))),
            r"the least $\ell_1$ norm as the end": end.control(
                upper_share(*ended(runs, "end_plain"))
            ),
            r"$t^+$ and $t^-$ exchanged: the end": end.control(
                upper_share(*ended([dataset], "end_swapped"))
            ),
            "the end of the list without growth times": rule.control(
                min(float(data.list_plain.min()) for data in runs)
            ),
        },
        findings=[
            "runs that end within 1%: "
            + ", ".join(f"{name} {count} of {total}" for name, (count, total) in shown.items())
            + "; problems on which the wrong ends agree with the right one are drawn again"
            f" ({float(dataset.draws.mean()):.1f} draws in the mean)",
            "at depth 2 a factor of the start does not count and a power of its scale does; at"
            r" depth $D > 2$ a factor $a$ counts as $a^{2-D}$; of unequal layers the growth times"
            " are integrals, and a product changes its sign when its smallest layer passes zero",
        ],
    )


def draw(dataset: Dataset, deep: Dataset) -> Figure:
    """Measured over predicted jump times, with and without growth times; the ends."""
    picture, (a, b) = sheet_of(dataset, widths=(6.0, 6.0), height=4.8)
    names = list(dataset.family.values)
    a.plot(
        dataset.plain.values.ravel(),
        dataset.jump.values.ravel(),
        "x",
        color=GREY,
        markersize=4,
        label="predicted without growth times",
    )
    for k, name in enumerate(names):
        rows = dataset.sel(family=name)
        a.plot(
            rows.predicted.values.ravel(),
            rows.jump.values.ravel(),
            "o^Dsv"[k],
            color=CYCLE[k],
            markersize=5,
            label=name,
        )
    line = np.array([np.nanmin(dataset.predicted), np.nanmax(dataset.predicted)])
    a.plot(line, line, "-", color=BLACK, linewidth=1.0)
    a.set(
        xscale="log",
        yscale="log",
        xlabel=r"predicted time of the jump, $\tau$",
        ylabel=r"time of the jump in training, $\tau$",
        title="jumps come at their growth times",
    )
    a.legend()
    floor = 1e-9
    for k, name in enumerate(names):
        rows = dataset.sel(family=name)
        for shift, values, colour in (
            (-0.12, rows.end, CYCLE[k]),
            (0.12, rows.end_plain, GREY),
        ):
            heights = np.maximum(values.values.ravel(), floor)
            b.plot(np.full(heights.size, k + shift), heights, "o^Dsv"[k], color=colour, ms=5)
    b.axhline(CLOSE, color=BLACK, linestyle="--", linewidth=1)
    b.set(
        yscale="log",
        ylabel="distance of the end of training",
        title=r"from the least weighted $\ell_1$ norm; grey: the plain one",
    )
    b.set_xticks(range(len(names)), names)
    b.set_xlabel("net")
    return picture


experiment = Experiment(
    "beyond-growth",
    statement=r"A diagonal net that starts at $s \theta^*$ jumps, as $s$ goes to 0, between the "
    "saddles of a homotopy of sign-constrained least squares in which each weight is released at "
    "a growth time of its own, $t^+_i$ or $t^-_i$, and ends at the least $\\sum_i t^+_i "
    r"\beta^+_i + t^-_i \beta^-_i$. At depth $D > 2$ the times are $a^{2-D}$ for a weight that "
    "starts at $s a$, and integrals for unequal layers; at depth 2 they depend on the curvatures "
    "of the map at zero alone, and on the power of the scale.",
    place="the theorem that arXiv 2607.12332 announces for infinitesimal starts; growth times and"
    " their formulas: derived here",
    study=(study, deep),
    check=check,
    draw=draw,
    ours="the data, the directions, the scales, and the derivation; of the source only the abstract"
    " could be read",
    scope=OWN_RUNS,
    seconds=5,
)
