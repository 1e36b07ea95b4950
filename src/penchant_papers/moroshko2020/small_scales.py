"""Section 5: whether alpha^2 / log(1/eps) decides also for small starts where training is."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import Classification
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_most,
    drawn,
    exponents,
    sized,
    within,
)
from penchant.measures import angle
from penchant.plotting import latex
from penchant.problems import separable_points
from penchant.solvers import max_margin_path
from penchant_papers.moroshko2020.stopping import follow, max_margin_of

MUS = [0.5, 0.2, 0.1, 0.04, 0.01, 0.001]  # those of Figure 3
LARGE = 100.0
ALPHAS = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
FOLLOWS = 0.01  # of the arc: so near to argmin Q_mu the largest start has to stay


def shares(problem: Classification, beta: Array) -> Array:
    """The angle to the l1 max margin over that between the l2 and l1 max margins."""
    l1, l2 = (max_margin_of(problem, norm) for norm in ("l1", "l2"))
    return np.asarray(angle(beta, l1) / angle(l2, l1))


def at_mus(problem: Classification, alpha: float, stretch: float = 1.0) -> Array:
    """Predictors where alpha^2 / log(1/eps) is each of the MUS, times `stretch`."""
    margins = alpha**2 / (stretch * np.array(MUS))
    return np.asarray(follow(problem, 2, alpha, margins, 1e-6).predictor.values)


def path_of(problem: Classification) -> Array:
    """argmin Q_mu at the MUS."""
    return np.asarray(max_margin_path(problem.X, problem.y, 2, mus=MUS).beta)


def follows(problem: Classification) -> bool:
    """Whether l1 and l2 are 10 degrees apart and the largest start follows the path."""
    if float(angle(*(max_margin_of(problem, norm) for norm in ("l1", "l2")))) < 10:
        return False
    gap = shares(problem, at_mus(problem, LARGE)) - shares(problem, path_of(problem))
    return bool(np.abs(gap).max() < FOLLOWS)


def cell(seed: int, *, alphas: list[float], stretch: float) -> dict[str, Any]:
    """How far training at each mu is from argmin Q_mu, in shares of the arc from l2 to l1.

    `late` is the same at the accuracies that belong to the largest start, whatever alpha is. The
    set has three points in four dimensions.
    """
    problem, draws = drawn(
        lambda k: separable_points(3, 4, margin=0.3, seed=k), follows, 1000 * seed
    )
    goal, end = shares(problem, path_of(problem)), LARGE**2 / np.array(MUS)
    off = [np.abs(shares(problem, at_mus(problem, a, stretch)) - goal) for a in alphas]
    late = shares(problem, follow(problem, 2, alphas[-2], end, 1e-6).predictor.values)
    return {"off": off, "late": np.abs(late - goal).max(), "draws": draws}


study = sized(
    "M-small",
    function=cell,
    arguments={"stretch": 1.0, "alphas": ALPHAS},
    seeds=16,
    dims={"off": ["alpha", "mu"]},
    tiny={"seeds": 3},
    printed={"seeds": 60},
)


def check(dataset: Dataset) -> Evidence:
    """The largest gap over mu, its median over the sets, for each alpha."""
    worst = dataset.off.max("mu").assign_coords(alpha=ALPHAS)
    typical = worst.median("seed")
    small = at_most(typical.sel(alpha=0.1), 0.05)
    one, large = (at_most(typical.sel(alpha=alpha), 0.05) for alpha in (1.0, 10.0))
    sets = dataset.sizes["seed"]
    powers = exponents(ALPHAS[-2:], worst.sel(alpha=ALPHAS[-2:]).transpose("seed", "alpha").values)
    rate = within(np.median(powers), -2.0, 0.25)
    example = int(worst.sel(alpha=0.1).values.argmax())
    return Evidence(
        ran=f"exact flows of depth 2 on {sets} sets of three points whose path a start of 100 "
        f"follows, from $\\alpha = 0.1$ to 30, where $\\alpha^2/\\log(1/\\epsilon) = \\mu$ for the "
        r"six $\mu$ of Figure 3; in shares of the arc from the $\ell_2$ to the $\ell_1$ max margin",
        checks={
            r"$\alpha = 0.1$: largest distance to $\operatorname{argmin} Q_\mu$, median": small,
            r"$\alpha = 1$: the same": one,
            r"$\alpha = 10$: the same": large,
        },
        corrected={
            r"$\alpha = 10$: largest distance to $\operatorname{argmin} Q_\mu$, median": large,
            r"its exponent in $\alpha$, 10 to 30, median (-2 by the rate of Theorem 6)": rate,
        },
        correction=r"$\mu = \alpha^2/\log(1/\epsilon)$ decides where training is as $\alpha$ "
        r"grows, up to a distance of the order of $\alpha^{-2}$; below 1 the direction at equal "
        r"$\mu$ is another one, nearer to the start: "
        + ", ".join(
            rf"{float(typical.sel(alpha=a)):.2g} of the arc at $\alpha = {latex(a)}$"
            for a in ALPHAS
        ),
        counterexample={
            "set": int(dataset.seed[example]),
            r"$\alpha$": 0.1,
            r"$\mu$": MUS[int(dataset.off.isel(alpha=0, seed=example).values.argmax())],
            r"distance to $\operatorname{argmin} Q_\mu$, share of the arc": float(
                worst.sel(alpha=0.1).isel(seed=example)
            ),
        },
        premises={
            "sets are drawn whose path the largest start follows (draws)": (
                True,
                int(dataset.draws.max()),
            )
        },
        controls={
            r"an accuracy that does not depend on $\alpha$: $\alpha = 10$ at those of $\alpha = "
            "100$": large.control(dataset.late.median()),
            r"the same exponent between $\alpha = 0.1$ and 0.3": rate.control(
                np.median(
                    exponents(
                        ALPHAS[:2], worst.isel(alpha=[0, 1]).transpose("seed", "alpha").values
                    )
                )
            ),
        },
        plots=[
            Plot(
                r"distance to $\operatorname{argmin} Q_\mu$ where $\alpha^2/\log(1/\epsilon) = "
                r"\mu$",
                r"initial scale $\alpha$",
                r"share of the arc from $\ell_2$ to $\ell_1$, median",
                [
                    Series("largest of six $\\mu$", ALPHAS, typical.values),
                    Series(
                        r"$\alpha^{-2}$",
                        ALPHAS[-3:],
                        [float(large.measured) * (10 / alpha) ** 2 for alpha in ALPHAS[-3:]],
                        "dashed",
                    ),
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


experiment = Experiment(
    "M-small",
    statement=r"Also at small scales of the start the direction of training is decided by $\mu = "
    r"\alpha^2/\log(1/\epsilon)$, as the squares of Figure 3(b) say.",
    place="section 5, the paragraph on the dashed lines of Figure 3",
    study=study,
    check=check,
    title=r"$\alpha^2/\log(1/\epsilon)$ decides where training is for large starts, not for "
    "small ones",
    ours="the points, drawn so that a large start follows the path, and the starts that are called "
    "small",
)
