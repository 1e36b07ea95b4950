"""Section 5: how long training stays at the saddle point, by scale and depth."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import DiagonalNet, NumericalError, ParameterFlow
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_least,
    sized,
    within,
)
from penchant.models import linearize
from penchant.problems import separable_points
from penchant_papers.moroshko2020.stopping import follow, rows_at, trained

DEPTHS = [2, 3, 5, 9]
HALF = np.log(2.0)


def cell(seed: int, depth: int, *, alphas: list[float]) -> dict[str, Any]:
    """log of the time at which the loss is 1/2 from each alpha, and from alpha^D = 0.1.

    `linear` is that of the linearized net at depth 3, whose kernel does not grow.
    """
    problem = separable_points(4 + seed % 3, 5, margin=0.4, seed=seed)

    def log_time(alpha: float, margin: float) -> float:
        try:
            path = follow(problem, depth, alpha, [margin], flow="parameters")
        except NumericalError:  # rarely an integrator stalls where the path leaves the saddle
            path = follow(problem, depth, alpha, [margin], flow="dual")
        return float(path.log_t.values[0])

    def linear_time(alpha: float) -> float:
        twin = linearize(DiagonalNet(depth, alpha=alpha))
        data = trained(problem, twin, [HALF], ParameterFlow(rtol=1e-7)).dataset
        return float(data.log_t.values[rows_at(data, [HALF])[0]])

    return {
        "log_t": [log_time(alpha, HALF) for alpha in alphas],
        "at_scale": log_time(0.1 ** (1 / depth), HALF),
        "linear": [linear_time(alpha) for alpha in alphas]
        if depth == 3
        else [np.nan] * len(alphas),
    }


ALPHAS = [0.1, 0.03, 0.01]
study = sized(
    "M-escape",
    function=cell,
    arguments={"alphas": ALPHAS},
    grid={"depth": DEPTHS},
    seeds=12,
    dims={"log_t": ["start"], "linear": ["start"]},
    tiny={"seeds": 3},
    printed={"seeds": 100},
)


def by_scale(values: Array) -> Array:
    """The exponents in alpha of times given by their logarithms, along the last axis."""
    return np.polyfit(np.log(ALPHAS), np.moveaxis(values, -1, 0).reshape(3, -1), 1)[0].reshape(
        values.shape[:-1]
    )


def check(dataset: Dataset) -> Evidence:
    """The exponent of the time in alpha at each depth, and the growth with depth."""
    rows = dataset.transpose("seed", "depth", "start")
    powers, predicted = by_scale(rows.log_t.values), -(np.array(DEPTHS) - 2.0)
    deep = within(np.abs(powers - predicted)[:, 1:].max(), tolerance=0.25)
    shallow = rows.log_t.sel(depth=2).values
    grows = at_least(np.exp(shallow[:, -1] - shallow[:, 0]).min(), 1.3)
    # log t against depth, from 4 on: a factor 1/alpha for every layer
    per_layer, fixed = (
        np.polyfit(DEPTHS[1:], values.T, 1)[0]
        for values in (rows.log_t.values[:, 1:, 0], rows.at_scale.values[:, 1:])
    )
    exponential = at_least(per_layer.min(), 1.0)
    kernel = by_scale(rows.linear.sel(depth=3).values)
    median = rows.log_t.median("seed")
    return Evidence(
        ran=f"exact flows of depths 2 to 9 on {dataset.sizes['seed']} sets "
        r"of 4 to 6 points in five dimensions from $\alpha = 0.1$, 0.03 and 0.01, until the "
        "loss is half of that of the start",
        checks={
            r"$D > 2$: exponent of the time in $\alpha$, largest deviation from $2 - D$": deep,
            r"$D = 2$: time from $\alpha = 0.01$ over that from 0.1, least": grows,
            r"$\alpha = 0.1$: growth of $\log t$ by layer from $D = 3$ on, least": exponential,
        },
        controls={
            "$D = 3$, the linearized net, whose kernel stays that of the start (least)": (
                deep.control(np.abs(kernel + 1).min())
            ),
            r"depth at a fixed $\alpha^D = 0.1$: the same growth": exponential.control(fixed.max()),
        },
        findings=[
            r"exponential in depth is the time at a fixed $\alpha$, by the factor $1/\alpha$ for "
            r"every layer; at a fixed scale of the predictor, $\alpha^D = 0.1$ as in Figure 5, a "
            f"layer changes $\\log t$ by {np.median(fixed):.2f} only",
            r"at $D = 2$ the time grows like $\log(1/\alpha)$: "
            f"{np.median(np.exp(shallow[:, -1] - shallow[:, 0])):.2f} times from 0.1 to 0.01 "
            "(median)",
        ],
        plots=[
            Plot(
                "time until the loss is half of that of the start",
                "depth $D$",
                "$\\log_{10}$ of the time, median",
                [
                    Series(rf"$\alpha = {a:g}$", np.array(DEPTHS), median[:, k].values / np.log(10))
                    for k, a in enumerate(ALPHAS)
                ]
                + [
                    Series(
                        r"$\alpha^D = 0.1$",
                        np.array(DEPTHS),
                        rows.at_scale.median("seed").values / np.log(10),
                        "dashed",
                    )
                ],
            )
        ],
    )


experiment = Experiment(
    "M-escape",
    statement="A smaller scale of the start takes longer to leave the saddle point $u = 0$, and "
    "leaving it may take a time that is exponential in the depth.",
    place="section 5, the paragraph on Figure 5(a)",
    study=study,
    check=check,
    title="At a fixed start below one, leaving the saddle takes exponentially long in the depth",
    ours="the data sets, and half of the loss of the start as the sign that the saddle is left",
)
