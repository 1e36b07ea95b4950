"""Section 1: weight decay on a ReLU net of one input, and the bends of what it learns."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from penchant import Adam, FunctionModel, Regression, Steps, train
from penchant.lab import (
    DRAWS,
    Array,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Record,
    Series,
    at_most,
    drawn,
    margin_of_mean,
    sized,
)
from penchant.models import univariate_relu
from penchant.problems import zigzag
from penchant.record import At
from penchant.regularizers import Custom
from penchant.solvers import least_bend
from penchant_papers.woodworth2020.figures.hinges import layers, net_hinges
from penchant_papers.woodworth2020.figures.spline_survey import KINDS, draw

WIDTH, STEPS = 50, 20_000
STEP = 2e-3  # of Adam
STARTS = 2  # of the net: each is compiled
LITTLE, MORE = 1e-3, 1e-2  # decay
LESS = 1.05  # a second-order total variation up to this, over the least, is the least
NEAR = 0.05  # the largest misfit of a net that fits, of targets whose largest is 1


@dataclasses.dataclass(frozen=True)
class Penalized(Record):
    """The least of sum (f(x) - y)^2 + 2 decay TV(f), TV the total variation of f', and its values.

    TV is linear where no bend changes its sign, so that the values at the data are y minus decay
    times its slope; `holds` says that no bend has changed its sign and that the slopes at both ends
    have no more weight than the bends between them (Savarese et al., Theorem 3.1). The problem is
    convex, and such a point is its solution.
    """

    values: Array
    bend: float
    objective: float
    holds: bool


def penalized(problem: Regression, decay: float) -> Penalized:
    x, y = problem.X[:, 0], problem.y
    order = np.argsort(x)
    rises = np.diff(np.eye(len(x)), axis=0) / np.diff(x[order])[:, None]
    bends = np.diff(rises, axis=0)
    signs = np.sign(bends @ y[order])
    values = y[order] - decay * signs @ bends
    after, slopes = bends @ values, rises @ values
    bend = float(signs @ after)
    holds = bool((np.sign(after) == signs).all() and abs(slopes[0] + slopes[-1]) <= bend)
    objective = float(np.sum((values - y[order]) ** 2) + 2 * decay * bend)
    return Penalized(values[np.argsort(order)], bend, objective, holds)


@functools.lru_cache(maxsize=8)
def net_from(start: int) -> tuple[FunctionModel, Custom]:
    """A net from a standard start, and its squared weights in both layers, biases left out.

    All its runs share one object, so that its steps are compiled once.
    """
    counted = np.tile(np.repeat([1.0, 0.0], [2 * WIDTH, WIDTH + 1]), 2)
    penalty = Custom(lambda parameters: (counted * parameters**2).sum())
    return univariate_relu(WIDTH, alpha=1.0, seed=start), penalty


def is_plain(problem: Regression) -> bool:
    """Whether the least of all functions is known at both decays, and near the data at LITTLE."""
    little = penalized(problem, LITTLE)
    off = float(np.abs(little.values - problem.y).max())
    return little.holds and penalized(problem, MORE).holds and off < NEAR / 2


def points(number: int, seed: int) -> tuple[Regression, int]:
    """Three random points with a peak, or the zigzag for number 0; and the tries that it took."""
    count, rule = KINDS["peak"]

    def made(turn: int) -> Regression:
        x, y = draw(count, rule, 1, turn)[0]
        return Regression(x[:, None], y)

    return (zigzag(), 1) if number == 0 else drawn(made, is_plain, DRAWS * (DRAWS * seed + number))


def cell(decay: float, number: int, seed: int) -> dict[str, Any]:
    """A net after Adam on the loss plus `decay` times its squared weights.

    `bend` is its second-order total variation over the least of an interpolation, and `given` that
    of the convex problem in the functions; `excess` is the objective over the least of that
    problem, less 1. Without decay it is that of LITTLE, of a net that was trained without it.
    """
    (problem, tries), weight = points(number, seed), decay or LITTLE
    model, penalty = net_from(STARTS * seed + number % STARTS)
    method, stop = Adam(STEP), Steps(STEPS)
    kept = At(steps=[])
    path = train(
        model, problem, method, penalty=decay * penalty, stop=stop, record=kept, throw=True
    )
    net, best = layers(path.parameters), penalized(problem, weight)
    misfit = net_hinges(net)(problem.X[:, 0]) - problem.y
    objective = float(misfit @ misfit + weight * np.sum(net.w**2 + net.v**2))
    return {
        "bend": float(np.abs(net.w) @ np.abs(net.v)) / least_bend(problem),
        "given": best.bend / least_bend(problem),
        "misfit": float(np.abs(misfit).max()),
        "excess": objective / best.objective - 1,
        "holds": best.holds,
        "tries": tries,
    }


study = sized(
    "W-decay",
    title="A little weight decay leaves a function whose slope varies least",
    function=cell,
    arguments={"seed": 0},
    grid={"decay": [0.0, LITTLE, MORE], "number": list(range(24))},
    labels={
        "decay": "weight decay",
        "bend": "second-order total variation over the least of an interpolation",
        "given": "the same of the least of the loss plus twice the decay times the variation",
        "misfit": "largest misfit of the data",
        "excess": "objective of the net over that least, less 1",
    },
    tiny={"grid": {"number": list(range(12))}},
    printed={"grid": {"number": list(range(200))}},
)


def largest_mean(rows: Array) -> float:
    """The 0.999 upper limit of the geometric mean of a row, of the rows the largest."""
    return max(float(np.exp(np.mean(row) + margin_of_mean(row))) for row in np.log(rows))


def check(dataset: Dataset) -> Evidence:
    """The objective and the variation that decay leads to, beside those without it."""
    rows = dataset.transpose("decay", "number")
    plain, decayed = rows.sel(decay=0.0), rows.sel(decay=[LITTLE, MORE])
    little = rows.sel(decay=LITTLE)
    least = at_most(largest_mean(1 + decayed.excess.values), LESS)
    bend = at_most(largest_mean(little.bend.values[None]), LESS)
    same = at_most(largest_mean(np.maximum(ratio := decayed.bend / decayed.given, 1 / ratio)), LESS)
    own, other = (np.log(values) for values in (plain.bend.values, 1 + plain.excess.values))
    fits, holds = float(little.misfit.max()), float(decayed.holds.min())
    return Evidence(
        ran=f"nets of {2 * WIDTH} units from $\\alpha = 1$ on the zigzag and on "
        f"{plain.sizes['number'] - 1} random sets of three points with a peak (of "
        f"{int(plain.tries[1:].sum())} draws), {STEPS} steps of "
        f"Adam with decay {LITTLE:g} and {MORE:g} on the weights of both layers, and without",
        checks={
            r"$\sum r^2 + \lambda |w|^2$ over the least $\sum r^2 + 2 \lambda \int |f''|$ of all "
            "functions, geometric mean, larger of both decays (0.999 upper limit)": least,
            r"$\int |f''|$ of the net and of that function, their ratio: the same": same,
            rf"decay {LITTLE:g}: $\int |f''|$ over the least of an interpolation, geometric mean "
            "(0.999 upper limit)": bend,
        },
        premises={
            "the least of all functions: no bend changes its sign, and the ends weigh less": (
                holds == 1,
                holds,
            ),
            f"with decay {LITTLE:g} the nets fit the data: largest misfit": (fits < NEAR, fits),
        },
        controls={
            "no decay, the same starts: the objective (0.999 lower limit)": least.control(
                np.exp(other.mean() - margin_of_mean(other))
            ),
            r"no decay, the same starts: $\int |f''|$ (0.999 lower limit)": bend.control(
                np.exp(own.mean() - margin_of_mean(own))
            ),
            "the least of an interpolation, whatever the decay": same.control(
                largest_mean(1 / rows.given.sel(decay=[MORE]).values)
            ),
        },
        findings=[
            rf"$\int |f''|$ over the least: {float(np.exp(own.mean())):.2f} without decay, "
            f"{float(np.exp(np.log(little.bend).mean())):.3f} with {LITTLE:g} (geometric means); "
            f"from the zigzag alone {float(plain.bend[0]):.2f} and {float(little.bend[0]):.3f}",
        ],
        plots=[
            Plot(
                r"$\int |f''|$ of what a net learns, over the least of an interpolation",
                "net without decay",
                "net with decay, same data and start",
                [
                    *(
                        Series(
                            rf"$\lambda = {decay:g}$",
                            plain.bend.values,
                            rows.bend.sel(decay=decay).values,
                            "points",
                        )
                        for decay in (LITTLE, MORE)
                    ),
                    Series("no change", ends := np.array([1.0, 2.0]), ends, "dashed"),
                ],
                caption="Each point is a data set; 1 is the linear spline.",
            )
        ],
    )


experiment = Experiment(
    "W-decay",
    statement="A little weight decay on a wide ReLU net of one input prefers a small total "
    r"variation of the first derivative: training ends near the least of $\sum r^2 + 2 \lambda "
    r"\int |f''|$ over all functions, and so, for a small $\lambda$, near the interpolation of "
    r"least $\int |f''|$.",
    place="section 1, the result of Savarese et al. (2019) that it cites",
    study=study,
    check=check,
    title="A little weight decay leaves a function whose slope varies least",
    ours="data sets, width, decays, Adam; biases have no decay",
    scope=dict.fromkeys(
        ("tiny", "quick", "printed"), f"{2 * WIDTH} units in place of infinite width"
    ),
    seconds=5,
)
