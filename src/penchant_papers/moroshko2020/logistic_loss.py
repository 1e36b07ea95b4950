"""Section 2: with the logistic loss training has the same limits as with the exponential loss."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penchant import Classification
from penchant.lab import (
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    at_most,
    drawn,
    log_log,
    sized,
    within,
)
from penchant.measures import angle
from penchant.problems import separable_points
from penchant_papers.moroshko2020.stopping import follow, max_margin_of, stationarity
from penchant_papers.moroshko2020.theorem_6 import least_q

MU = 0.1
NAMES = ("kernel", "between", "rich", "rich_q", "rich_double", "apart", "sooner", "between_l2")
SCALES = [1e2, 1e4]  # alpha^D


def steady(problem: Classification) -> bool:
    """Whether l1 and l2 share their support vectors, 10 degrees apart, and l1 is stationary deep.

    These are sets on which the stability condition is likely at both depths.
    """
    best = [max_margin_of(problem, norm) for norm in ("l1", "l2")]
    margins = [problem.signed_rows @ beta for beta in best]
    same = [tuple(m < m.min() + 1e-6) for m in margins]
    deep = stationarity(problem, 3, best[0]) < 1e-6
    return deep and same[0] == same[1] and float(angle(*best)) > 10


@functools.lru_cache(maxsize=64)
def set_of(seed: int) -> Classification:
    return drawn(lambda k: separable_points(3, 5, margin=0.3, seed=k), steady, 1000 * seed)[0]


def cell(seed: int, depth: int, *, loss: str) -> dict[str, Any]:
    """Degrees from the directions of both losses to each other and to what the theorems say.

    kernel: log(1/eps) is alpha^(D/2); between: alpha^D/MU; rich: alpha^(2 D). `rich_q` is the angle
    of argmin Q_mu to l1 at mu = alpha^D/log(1/eps), `rich_double` at twice that mu.
    """
    points = set_of(seed)
    other = Classification(points.X, points.y, loss)
    goals = {
        "kernel": max_margin_of(points, "l2"),
        "between": least_q(points, depth, MU),
        "rich": max_margin_of(points, "l1"),
    }
    distances: dict[str, list[float]] = {name: [] for name in NAMES}
    for scale in SCALES:
        alpha, margins = scale ** (1 / depth), [scale**0.5, scale / MU, scale**2]
        betas = follow(other, depth, alpha, margins, 1e-6).predictor.values
        exp = follow(points, depth, alpha, [scale / (1.1 * MU), scale / MU], 1e-6).predictor.values
        for name, beta in zip(goals, betas, strict=True):
            distances[name].append(float(angle(beta, goals[name])))
        for name, beta in zip(("sooner", "apart"), exp, strict=True):
            distances[name].append(float(angle(betas[1], beta)))
        for times, name in ((1, "rich_q"), (2, "rich_double")):
            path = least_q(points, depth, times / scale)
            distances[name].append(float(angle(path, goals["rich"])))
        distances["between_l2"].append(float(angle(betas[1], goals["kernel"])))
    return distances


study = sized(
    "M-logistic",
    function=cell,
    arguments={"loss": "logistic"},
    grid={"depth": [2, 3]},
    seeds=12,
    dims={name: ["scale"] for name in NAMES},
    tiny={"seeds": 3},
    printed={"seeds": 100},
)


def check(dataset: Dataset) -> Evidence:
    """The rates at which the logistic loss tends to each limit and to the exp loss."""

    def power(name: str) -> DataArray:
        """The exponent in alpha^D of a distance, for each set and depth."""
        row = dataset[name]
        return np.log(row.isel(scale=-1) / row.isel(scale=0)) / np.log(SCALES[-1] / SCALES[0])

    def worst(values: DataArray, predicted: float) -> float:
        """The median over the sets at the depth where it is further from the prediction."""
        medians = values.median("seed").values
        return float(medians[np.abs(medians - predicted).argmax()])

    kernel = within(worst(power("kernel"), -0.5), -0.5, 0.1)
    between = within(worst(power("between"), -1.0), -1.0, 0.1)
    end = dataset.isel(scale=-1)
    rich = within(worst(end.rich / end.rich_q, 1.0), 1.0, 0.01)
    falls = at_most((end.rich / dataset.rich.isel(scale=0)).median("seed").max(), 1.0)
    both = at_most((end.apart / end.between).median("seed").max(), 0.5)
    typical = dataset.median("seed")
    return Evidence(
        ran=f"exact flows on the logistic loss and on the exp loss, {dataset.sizes['seed']} "
        r"sets of three points whose support vectors do not change, depths 2 and 3, $\alpha^D = "
        r"100$ and $10^4$, to $\log(1/\epsilon) = \alpha^{D/2}$, $10 \alpha^D$ and $\alpha^{2 D}$; "
        r"exponents in $\alpha^D$; medians at the worse depth",
        checks={
            r"$\log(1/\epsilon) = \alpha^{D/2}$: exponent of the angle to $\ell_2$ (-1/2: it is of "
            r"the order $1/\log(1/\epsilon)$)": kernel,
            r"$\log(1/\epsilon) = 10 \alpha^D$: exponent of the angle to $\operatorname{argmin} "
            r"Q_{0.1}$ (-1 by the rate of Theorem 6)": between,
            r"$\log(1/\epsilon) = \alpha^{2 D}$: angle to $\ell_1$ over that of "
            r"$\operatorname{argmin} Q_\mu$ at $\mu = \alpha^{-D}$, the larger scale": rich,
            r"the angle to $\ell_1$ at the larger scale over that at the smaller": falls,
            r"$\log(1/\epsilon) = 10 \alpha^D$: angle between both losses over that to the limit": (
                both
            ),
        },
        controls={
            "the exp loss at an accuracy 10 percent smaller: the same ratio": both.control(
                (end.sooner / end.between).median("seed").min()
            ),
            r"$\log(1/\epsilon) = 10 \alpha^D$ counted as the kernel regime": kernel.control(
                worst(power("between_l2"), -0.5)
            ),
            r"$\log(1/\epsilon) = \alpha^{2 D}$: the angle over that of $\operatorname{argmin} Q$ "
            r"at $2 \mu$": rich.control((end.rich / end.rich_double).median("seed").max()),
        },
        findings=[
            r"angles at $\alpha^D = 10^4$, medians in degrees: "
            + ", ".join(
                f"{float(typical[name].isel(scale=-1).sel(depth=D)):.2g} to {text} ($D = {D}$)"
                for name, text in (
                    ("kernel", r"$\ell_2$"),
                    ("between", r"$\operatorname{argmin} Q_{0.1}$"),
                    ("rich", r"$\ell_1$"),
                    ("apart", "the exp loss"),
                )
                for D in dataset.depth.values
            )
        ],
        plots=[
            log_log(
                r"the losses agree at equal $\log(1/\epsilon)$, here $10 \alpha^D$",
                r"$\alpha^D$",
                "degrees between both losses, median",
                [
                    ("$D = 2$, at equal loss", SCALES, typical.apart.sel(depth=2)),
                    ("$D = 3$, at equal loss", SCALES, typical.apart.sel(depth=3)),
                    (
                        "$D = 2$, exp loss stopped 10 % earlier",
                        SCALES,
                        typical.sooner.sel(depth=2),
                        "dashed",
                    ),
                ],
            )
        ],
    )


experiment = Experiment(
    "M-logistic",
    statement="The logistic loss has the same tail as the exp loss, and so the same asymptotics: "
    r"$\ell_2$, $\operatorname{argmin} Q_\mu$ and $\ell_1$ at the same accuracies.",
    place="section 2, the paragraph on the exp-loss",
    study=study,
    check=check,
    title="The logistic loss ends where the exp loss does, at every accuracy",
    ours=r"the data sets, $\mu = 0.1$ and the powers of $\alpha^D$",
)
