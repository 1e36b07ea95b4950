"""Section 2: with the logistic loss training has the same limits as with the exponential loss."""

from __future__ import annotations

import functools
from typing import Any

from penchant import Classification
from penchant.lab import Dataset, Evidence, Experiment, at_most, drawn, log_log, sized
from penchant.measures import angle
from penchant.problems import separable_points
from penchant_papers.moroshko2020.stopping import follow, max_margin_of, stationarity
from penchant_papers.moroshko2020.theorem_6 import least_q

MU = 0.1
NAMES = ("kernel", "between", "rich", "apart", "sooner", "between_l2")
SCALES = [1e3, 1e5]  # alpha^D


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

    kernel: log(1/eps) is alpha^(D/2); between: alpha^D/MU; rich: alpha^(2 D).
    """
    points = set_of(seed)
    other = Classification(points.X, points.y, loss)
    goals = {
        "kernel": max_margin_of(points, "l2"),
        "between": least_q(points, depth, MU),
        "rich": max_margin_of(points, "l1"),
    }
    distances: dict[str, list[float]] = {
        name: [] for name in (*goals, "apart", "sooner", "between_l2")
    }
    for scale in SCALES:
        alpha, margins = scale ** (1 / depth), [scale**0.5, scale / MU, scale**2]
        betas = follow(other, depth, alpha, margins, 1e-8).predictor.values
        exp = follow(points, depth, alpha, [*margins[:1], scale / (1.1 * MU), *margins[1:]], 1e-8)
        twins = exp.predictor.values
        distances["between_l2"].append(float(angle(betas[1], goals["kernel"])))
        for name, beta in zip(goals, betas, strict=True):
            distances[name].append(float(angle(beta, goals[name])))
        distances["apart"].append(float(angle(betas[1], twins[2])))
        distances["sooner"].append(float(angle(betas[1], twins[1])))
    return {**distances, "arc": float(angle(goals["rich"], goals["kernel"]))}


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
    """Where the logistic loss ends, and how far from the exp loss, as alpha grows."""
    end = dataset.isel(scale=-1)
    kernel = at_most((end.kernel / end.arc).median("seed").max(), 0.05)
    between = at_most(end.between.median("seed").max(), 0.01)
    falls = at_most((end.rich / dataset.rich.isel(scale=0)).median("seed").max(), 0.6)
    typical = dataset.apart.median("seed")
    both = at_most(typical.max(), 0.02)
    return Evidence(
        ran=f"exact flows on the logistic loss and on the exp loss, {dataset.sizes['seed']} "
        f"sets of "
        r"three points whose support vectors do not change, depths 2 and 3, $\alpha^D = 10^3$ and "
        r"$10^5$, to $\log(1/\epsilon) = \alpha^{D/2}$, $10 \alpha^D$ and $\alpha^{2 D}$",
        checks={
            r"$\log(1/\epsilon) = \alpha^{D/2}$: angle to $\ell_2$ over that of $\ell_2$ to "
            r"$\ell_1$, median": kernel,
            r"$\log(1/\epsilon) = 10 \alpha^D$: angle to $\operatorname{argmin} Q_{0.1}$, median, "
            "degrees": between,
            r"$\log(1/\epsilon) = \alpha^{2 D}$: angle to $\ell_1$, $\alpha^D = 10^5$ over $10^3$, "
            "median": falls,
            r"angle between both losses at $\log(1/\epsilon) = 10 \alpha^D$, median, the larger of "
            "both scales, degrees": both,
        },
        controls={
            "the exp loss at an accuracy 10 percent smaller: its angle to the logistic loss": (
                both.control(end.sooner.median("seed").min())
            ),
            r"$\log(1/\epsilon) = 10 \alpha^D$ counted as the kernel regime": kernel.control(
                (end.between_l2 / end.arc).median("seed").min()
            ),
        },
        plots=[
            log_log(
                r"both losses at $\log(1/\epsilon) = 10 \alpha^D$",
                r"$\alpha^D$",
                "angle in degrees, median",
                [
                    *((f"$D = {D}$", SCALES, typical.sel(depth=D)) for D in dataset.depth.values),
                    (
                        r"$D = 2$, exp loss at $9 \alpha^D$",
                        SCALES,
                        dataset.sooner.sel(depth=2).median("seed"),
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
