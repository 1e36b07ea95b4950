"""Ours: under decay, training passes along W's and M's paths; beta(t) is a minimiser of Q."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penchant import Q, interpolate
from penchant.lab import Dataset, Evidence, Experiment, Plot, Series, at_most, sized, within
from penchant.measures import angle
from penchant.problems import sparse_regression
from penchant.solvers import ratchet_path
from penchant_papers.instances import distance, slope
from penchant_papers.lyu2023.runs import data_set, exact, in_parameters, joint_rate


def cell(
    depth: int, rate: float, seed: int, *, log_alpha: float, z: Sequence[float]
) -> dict[str, float]:
    """Largest distance of a trained regression at rate t = z to argmin Q of the decayed scale.

    `larger` is the same for a scale 10% larger, `still` for the scale of the start.
    """
    problem, times = sparse_regression(4, 9, sparsity=2, noise=0.0, seed=seed), np.array(z)
    path = in_parameters(problem, log_alpha, rate, times, depth, rtol=1e-10).predictor.values
    scales = {
        "off": log_alpha - times,
        "larger": log_alpha - times + math.log(1.1),
        "still": np.full(len(times), log_alpha),
    }
    return {
        name: max(
            distance(beta, interpolate(problem.X, problem.y, Q(depth, log_alpha=scale)).beta)
            for beta, scale in zip(path, own, strict=True)
        )
        for name, own in scales.items()
    }


def direction_cell(seed: int, log_alpha: float, *, around: Sequence[float]) -> dict[str, float]:
    """Largest angle to M's limit path at mu = alpha^2 e^(-2 rate t) / g, `around` log alpha.

    That path is argmin Q_mu with margins >= 1 where no dual weight would have to fall, and the
    flow's limit with weights that never fall elsewhere: under decay too they only grow. `alone` has
    mu = alpha^2 e^(-2 rate t), as if the loss did not matter.
    """
    data, z = data_set(seed), log_alpha + np.array(around)
    run = exact(data, log_alpha, joint_rate(log_alpha), z)
    decayed = np.exp(2 * (log_alpha - z))
    mus = {"turn": decayed / run.smoothed_margin.values, "alone": decayed}
    return {
        name: float(
            np.max(angle(run.predictor.values, ratchet_path(data.X, data.y, depth=2, mus=own).beta))
        )
        for name, own in mus.items()
    }


study = sized(
    "L-clock",
    title="Regression under weight decay compared with the minimiser of $Q$ at the decayed scale",
    function=cell,
    arguments={"log_alpha": 2.0, "z": [0.5, 1.5, 2.5, 3.5]},
    grid={"depth": [2, 3], "rate": [1e-3, 1e-5]},
    seeds=1,
    labels={
        "rate": "rate of the weight decay",
        "off": "relative distance to "
        r"$\operatorname{argmin} Q$",
    },
    draw={"x": "rate", "colour": "off", "log": True},
    printed={"grid": {"rate": [1e-3, 1e-4, 1e-5]}, "seeds": 5},
)
directions = sized(
    "L-clock-directions",
    title="Classification under weight decay compared with M's $Q$ path at the decayed scale",
    function=direction_cell,
    arguments={"around": [-2.0, 0.0, 2.0]},
    grid={"log_alpha": [20.0, 640.0]},
    seeds=3,
    labels={
        "turn": r"angle to the $Q_\mu$ path at $\mu = (\alpha e^{-\mathrm{rate}\, t})^2 / "
        r"\log(1/\mathrm{loss})$"
    },
    draw={"x": "log_alpha", "colour": "turn", "log": True},
    printed={"grid": {"log_alpha": [20.0, 80.0, 320.0, 640.0]}, "seeds": 8},
)


def check(dataset: Dataset, directions: Dataset) -> Evidence:
    """Distances to argmin Q of the order of the rate; angles like 1/log(1/rate)."""
    dataset, rates = dataset.sortby("rate"), np.sort(dataset.rate.values)
    rows = dataset.off.transpose("seed", "depth", "rate").values.reshape(-1, len(rates))
    wrong = dataset.isel(seed=0).sel(depth=2)
    turns = directions.turn.transpose("seed", "log_alpha").values
    alone = directions.alone.transpose("seed", "log_alpha").values
    near = within(rows[:, 0].max(), tolerance=1e-3)
    first = within(max((slope(rates, row) - 1 for row in rows), key=abs), tolerance=0.1)
    direction = at_most(np.median(turns[:, -1] / turns[:, 0]), 1 / 8)
    starts = ", ".join(f"$e^{{-{a:g}}}$" for a in directions.log_alpha.values)
    return Evidence(
        ran=f"{dataset.sizes['seed']} regressions (4 samples, 9 features, depths 2 and 3) trained "
        rf"in the parameters from $\alpha = e^2$ at {len(rates)} rates; {len(turns)} data "
        r"sets of 4 points in $R^8$ by the exact flow with rate = $1/\alpha$, at rate $t = "
        r"\log \alpha - 2$, $\log \alpha$ and $\log \alpha + 2$",
        checks={
            r"largest relative distance to $\operatorname{argmin} Q$ at rate $10^{-5}$": near,
            "largest deviation of that distance's exponent in the rate from 1": first,
            r"angle to the $Q_\mu$ path at rate $e^{-640}$ over that at $e^{-20}$ "
            "(median)": direction,
        },
        controls={
            "a scale 10% larger": near.control(wrong.larger[0]),
            "the scale of the start at all times": near.control(wrong.still[0]),
            "a scale 10% larger: the same exponent": first.control(
                slope(rates, wrong.larger.values) - 1
            ),
            r"$\mu = (\alpha e^{-\mathrm{rate}\, t})^2$ without "
            r"$\log(1/\mathrm{loss})$": direction.control((alone[:, -1] / alone[:, 0]).min()),
        },
        findings=[
            "so weight decay alone moves training along W's path from kernel to rich, and at "
            "finite size the transition happens where that path turns for the given data, not "
            r"at $\alpha e^{-\mathrm{rate}\, t} = 1$; in classification the approach is only "
            rf"$1/\log(1/\mathrm{{rate}})$, angles in degrees at rate {starts}: "
            + "; ".join(", ".join(f"{v:.2g}" for v in row) for row in turns[:2]),
        ],
        plots=[
            Plot(
                "distance to the $Q$ path of the decayed start",
                "rate of weight decay",
                "relative distance",
                [
                    Series(f"depth {D}", rates, dataset.off.isel(seed=0).sel(depth=D))
                    for D in dataset.depth.values
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


experiment = Experiment(
    "L-clock",
    statement="(Ours) Under a small weight decay, a diagonal net passes during training through "
    r"the minimisers of $Q$ with the scale $\alpha e^{-\mathrm{rate}\, t}$: in regression, "
    r"$\beta(t) = \operatorname{argmin} Q$ subject to $X \beta = y$; in classification, the "
    r"direction is that of M's $Q_\mu$ path at $\mu = (\alpha e^{-\mathrm{rate}\, t})^2 / "
    r"\log(1/\mathrm{loss})$.",
    place="ours; it joins L Theorems 1 and 2 to W Theorems 1 and 3 and to M Theorem 6",
    study=(study, directions),
    check=check,
    title="Under a small weight decay, training passes through the minimisers of $Q$",
    ours="the statement, the data, starts and rates",
    seconds=1,
)
