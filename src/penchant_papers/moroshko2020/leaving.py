"""Section 4: which power of alpha the accuracy needs in order to leave the kernel regime."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import Classification
from penchant.lab import Dataset, Evidence, Experiment, at_least, drawn, log_log, sized, within
from penchant.measures import angle
from penchant.problems import separable_points
from penchant.solvers import ratchet_path
from penchant_papers.instances import slope
from penchant_papers.moroshko2020.stopping import follow, max_margin_of

ALPHAS = np.array([50.0, 500.0])
MU = 0.1
NAMES = ("linear", "superlinear", "whole")


def arc_of(problem: Classification) -> float:
    """Degrees between the l2 and the l1 max margin."""
    return float(angle(*(max_margin_of(problem, norm) for norm in ("l1", "l2"))))


def cell(seed: int, depth: int) -> dict[str, Any]:
    """Degrees to the l2 max margin, over the arc to l1, from both scales at several accuracies.

    `limit` is that of the ratchet path, the limit of the flow, at the mu of `whole`.
    """
    problem, draws = drawn(
        lambda k: separable_points(3, 5, margin=0.3, seed=k),
        lambda one: arc_of(one) > 10,
        1000 * seed,
    )
    l2, arc = max_margin_of(problem, "l2"), arc_of(problem)
    shares: dict[str, list[float]] = {name: [] for name in NAMES}
    for alpha in ALPHAS:
        margins = margins_of(alpha, depth)
        order = np.argsort(margins)
        betas = follow(problem, depth, alpha, np.sort(margins), 1e-6).predictor.values
        for name, beta in zip(NAMES, betas[np.argsort(order)], strict=True):
            shares[name].append(float(angle(beta, l2)) / arc)
    limit = ratchet_path(problem.X, problem.y, depth, mus=[MU]).beta[0]
    return {**shares, "limit": float(angle(limit, l2)) / arc, "draws": draws}


def margins_of(alpha: float, depth: int) -> list[float]:
    """log(1/eps) of the NAMES; log N more, so that the training has learned every sample."""
    return [alpha + 2, alpha**1.5 + 2, alpha**depth / MU]


study = sized(
    "M-leave",
    function=cell,
    grid={"depth": [2, 3]},
    seeds=12,
    dims={name: ["start"] for name in NAMES},
    tiny={"seeds": 3},
    printed={"seeds": 100},
)


def check(dataset: Dataset) -> Evidence:
    """How the share of the way from l2 to l1 changes with the accuracy, at each of the three."""
    depths = dataset.depth.values.tolist()
    rows = dataset[list(NAMES)].median("seed")

    def power(name: str, depth: int) -> float:
        """The exponent of the median share in the accuracy."""
        goals = [margins_of(alpha, depth)[NAMES.index(name)] for alpha in ALPHAS]
        return slope(np.array(goals), rows[name].sel(depth=depth).values)

    def worst(name: str, predicted: float) -> float:
        return max((power(name, D) for D in depths), key=lambda p: abs(p - predicted))

    end = dataset.isel(start=-1)
    stays = within(worst("linear", 0.0), 0.0, 0.1)
    rich = at_least(end.superlinear.sel(depth=3).median(), 0.5)
    falls = within(worst("linear", -1.0), -1.0, 0.1)
    ratios = (end.whole / end.limit).median("seed").values
    leaves = within(ratios[np.abs(ratios - 1).argmax()], 1.0, 0.01)
    shown = end.sel(depth=2).isel(seed=int(end.linear.sel(depth=2).values.argmin()))
    return Evidence(
        ran=f"{dataset.sizes['seed']} sets of three points in five dimensions whose "
        r"$\ell_1$ and $\ell_2$ max margins are 10 degrees apart, at depths 2 and 3, from "
        r"$\alpha = 50$ and 500 to $\log(1/\epsilon) = \alpha + 2$, $\alpha^{1.5} + 2$ "
        r"and $10 \alpha^D$; angles to $\ell_2$ as shares of that to $\ell_1$",
        checks={
            r"$\log(1/\epsilon)$ linear in $\alpha$: exponent of the median share in "
            r"$\log(1/\epsilon)$ (0 where training stays away from $\ell_2$)": stays,
            r"$\log(1/\epsilon) = \alpha^{1.5}$, $D = 3$, the largest $\alpha$: median share": rich,
        },
        corrected={
            r"$\log(1/\epsilon)$ linear in $\alpha$: the same exponent (-1 by appendix E, where "
            r"$w$ stays at a bounded distance from $\log t$ times $\ell_2$)": falls,
            r"$\log(1/\epsilon) = 10 \alpha^D$, the largest $\alpha$: share over that of the limit "
            r"of the flow at $\mu = 0.1$, median": leaves,
        },
        correction=r"the accuracy that leaves the kernel regime is $\log(1/\epsilon)$ linear in "
        r"$\alpha^D$, as in Theorems 4 and 6; the two sentences that say linear and superlinear in "
        r"$\alpha$ omit the power. Linear in $\alpha$ training tends to the $\ell_2$ max margin",
        counterexample={
            "set": int(shown.seed),
            "depth": 2,
            r"$\alpha$": float(ALPHAS[-1]),
            r"share of the way from $\ell_2$ to $\ell_1$ at $\log(1/\epsilon) = \alpha + 2$": float(
                shown.linear
            ),
        },
        premises={
            "sets whose margins are apart are drawn (draws)": (True, int(dataset.draws.max()))
        },
        controls={
            r"$\log(1/\epsilon) = 10 \alpha^D$: exponent of the median share": falls.control(
                worst("whole", -1.0)
            ),
            r"$\log(1/\epsilon) = \alpha + 2$: share over that of the limit of the flow, median": (
                leaves.control((end.linear / end.limit).median("seed").max())
            ),
        },
        plots=[
            log_log(
                r"training leaves $\ell_2$ where $\log(1/\epsilon) \sim \alpha^D$, not $\alpha$",
                r"$\alpha$",
                r"share of the way from $\ell_2$ to $\ell_1$, median",
                [
                    (rf"$D = {D}$, at ${text}$", ALPHAS, rows[name].sel(depth=D), style)
                    for D, name, text, style in (
                        (2, "whole", r"10 \alpha^D", "line"),
                        (3, "whole", r"10 \alpha^D", "line"),
                        (2, "linear", r"\alpha + 2", "dashed"),
                        (3, "linear", r"\alpha + 2", "points"),
                    )
                ],
            )
        ],
    )


experiment = Experiment(
    "M-leave",
    statement=r"Training leaves the kernel regime once $\log(1/\epsilon)$ is linear in $\alpha$, "
    "and is at the rich limit where it is superlinear.",
    place="section 4, the paragraph The Rich Limit",
    study=study,
    check=check,
    title=r"The kernel regime is left at $\log(1/\epsilon)$ of the order of $\alpha^D$, not of "
    r"$\alpha$",
    ours="the data sets",
)
