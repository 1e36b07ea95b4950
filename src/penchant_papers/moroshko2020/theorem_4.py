"""Theorem 4: the kernel limit, as a rate in alpha."""

from __future__ import annotations

import numpy as np

from penchant import Classification
from penchant.lab import Array, Dataset, Evidence, Experiment, log_log, sized, within
from penchant.measures import angle
from penchant.problems import three_points
from penchant_papers.instances import slope
from penchant_papers.moroshko2020.stopping import (
    max_margin_of,
    names_of,
    points_of,
    predictors,
)


def degrees(problem: Classification, depth: int, alpha: float, margin: float, norm: str) -> float:
    """The angle of the predictor at this smoothed margin to the max margin in `norm`."""
    (beta,) = predictors(problem, depth, alpha, [margin])
    return float(angle(beta, max_margin_of(problem, norm)))


def cell(points: str, depth: int, clock: float, *, norm: str, seed: int) -> dict[str, float]:
    """Degrees to the max margin in `norm` at log(1/eps) = alpha^(D/2) = `clock`."""
    problem, alpha = points_of(points, 4, 5, margin=0.5, seed=seed), clock ** (2 / depth)
    return {"alpha": alpha, "angle": degrees(problem, depth, alpha, alpha ** (depth / 2), norm)}


def wrong_cell(alpha: float) -> dict[str, float]:
    """Panel 3b at depth 2: degrees to l2 at log(1/eps) = 10 alpha^2, and to l1 at alpha."""
    problem = three_points("3b")
    return {
        "late": degrees(problem, 2, alpha, alpha**2 / 0.1, "l2"),
        "to_l1": degrees(problem, 2, alpha, alpha, "l1"),
    }


study = sized(
    "M-T4",
    function=cell,
    arguments={"norm": "l2", "seed": 0},
    grid={
        "points": ["3b", *names_of(6)],
        "depth": [2, 3],
        "clock": [100.0, 300.0, 1000.0],
    },
    printed={"grid": {"points": ["3b", *names_of(20)], "depth": [2, 3, 5]}},
)
wrong = sized("M-T4-wrong", function=wrong_cell, grid={"alpha": [10.0, 30.0, 100.0, 300.0]})


def off_line(clock: Array, far: Array, power: float = 1.0) -> float:
    """How far the last 1/tan of these angles is from the line in clock^power through the others."""
    cot, x = 1 / np.tan(np.radians(far)), clock**power
    foretold = cot[0] + (cot[1] - cot[0]) * (x[2] - x[0]) / (x[1] - x[0])
    return float(abs(cot[2] / foretold - 1))


def check(dataset: Dataset, wrong: Dataset) -> Evidence:
    """The law of the angle on every data set, its exponent on panel 3b, and the last angle."""
    depths, clock = dataset.depth.values, dataset.clock.values
    every = dataset.angle.values.reshape(-1, len(clock))
    alphas = dataset.alpha.values.reshape(-1, len(clock))
    halves = np.tile(depths / 2, dataset.sizes["points"])
    law = within(np.median([off_line(clock, far) for far in every]), tolerance=0.01)
    bare = max(
        abs(slope(a, far) + half) for a, far, half in zip(alphas, every, halves, strict=True)
    )
    panel = dataset.sel(points="3b")
    rates = {
        rf"panel 3b, $D = {D}$: exponent in $\alpha$ of the angle to $\ell_2$, minus "
        f"{-D / 2:g}": within(slope(row.alpha.values, row.angle.values) + D / 2, tolerance=0.03)
        for D in depths
        for row in (panel.sel(depth=D),)
    }
    near = within(np.median(every[:, -1]), tolerance=1.0)
    stays = wrong.late.values
    first_rate = next(iter(rates.values()))
    return Evidence(
        ran=f"{dataset.sizes['points']} data sets at depths {tuple(depths.tolist())}, trained in "
        r"the parameters from $\alpha = g^{2/D}$ to $\log(1/\epsilon) = g = \alpha^{D/2}$, "
        "for $g = 100$, 300, 1000",
        checks={
            r"deviation of 1/tan(angle) at $\log(1/\epsilon) = 1000$ from the line through 100 "
            "and 300, median over data sets and depths": law,
            **rates,
            r"$\log(1/\epsilon) = 1000$: angle to $\ell_2$, median, degrees": near,
        },
        controls={
            r"an angle that falls like $1/\log(1/\epsilon)^2$ (median)": law.control(
                np.median([off_line(clock, far, power=2) for far in every])
            ),
            r"$\log(1/\epsilon) = 10 \alpha^D$: exponent of the angle to "
            r"$\ell_2$": first_rate.control(slope(wrong.alpha.values, stays) + 1),
            r"the same: angle to $\ell_2$ at $\alpha = 300$": near.control(stays[-1]),
            r"the $\ell_1$ max margin in place of $\ell_2$": near.control(wrong.to_l1.values[-1]),
        },
        findings=[
            r"at $\log(1/\epsilon) = \alpha^{D/2}$ the predictor is $\log(1/\epsilon) w_{\ell_2}$ "
            r"plus a constant, so that 1/tan(angle) grows like $\log(1/\epsilon)$ plus a "
            "constant of the data: this is the distance of any gradient flow to its max "
            "margin, not the departure from the kernel, which is of the order "
            r"$(\log(1/\epsilon)/\alpha^D)^2$; because of that constant plain exponents miss "
            f"$-D/2$ by up to {bare:.3f}. Sets where a point nearly ties with the support "
            r"vectors are slower: the largest angle at $\log(1/\epsilon) = 1000$ is "
            f"{every[:, -1].max():.2g} degrees",
            rf"panel 3b at $\log(1/\epsilon) = 10 \alpha^2$ stays {stays[-1]:.2f} degrees away "
            r"from $\ell_2$ for every $\alpha$: the boundary of the kernel regime is where "
            "the source says",
        ],
        plots=[
            log_log(
                r"angle to the $\ell_2$ max margin, panel 3b",
                r"$\alpha$",
                "angle in degrees",
                [
                    *(
                        (
                            rf"$D = {D}$, $\log(1/\epsilon) = \alpha^{{D/2}}$",
                            panel.alpha.sel(depth=D),
                            panel.angle.sel(depth=D),
                        )
                        for D in depths
                    ),
                    (r"$D = 2$, $\log(1/\epsilon) = 10 \alpha^2$", wrong.alpha, stays, "dashed"),
                ],
            )
        ],
    )


experiment = Experiment(
    "M-T4",
    statement=r"If $\log(1/\epsilon)$ grows slower than $\alpha^D$, the direction tends to the "
    r"$\ell_2$ max margin.",
    place="section 4, Theorem 4; appendices F.1 and G.1",
    study=(study, wrong),
    check=check,
    title=r"Training stopped at $\log(1/\epsilon) = \alpha^{D/2}$ tends to the $\ell_2$ max margin",
    ours=r"the data sets, and the speed $\alpha^{D/2}$",
    seconds=2,
)
