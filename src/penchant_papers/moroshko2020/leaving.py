"""Section 4: which power of alpha the accuracy needs in order to leave the kernel regime."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import Classification
from penchant.lab import Dataset, Evidence, Experiment, at_least, at_most, drawn, log_log, sized
from penchant.measures import angle
from penchant.problems import separable_points
from penchant_papers.moroshko2020.stopping import max_margin_of, predictors

SCALES = [1e2, 1e5]  # alpha^D


def arc_of(problem: Classification) -> float:
    """Degrees between the l2 and the l1 max margin."""
    return float(angle(*(max_margin_of(problem, norm) for norm in ("l1", "l2"))))


def cell(seed: int, depth: int) -> dict[str, Any]:
    """Degrees to the l2 max margin, over the arc to l1, from both scales at several accuracies."""
    problem, draws = drawn(
        lambda k: separable_points(3, 5, margin=0.3, seed=k),
        lambda one: arc_of(one) > 10,
        1000 * seed,
    )
    l2, arc = max_margin_of(problem, "l2"), arc_of(problem)
    shares: dict[str, list[float]] = {"linear": [], "superlinear": [], "whole": []}
    for scale in SCALES:
        alpha = scale ** (1 / depth)
        # log N more, so that the training has learned every sample at the smallest accuracies
        margins = [alpha + 2, alpha**1.5 + 2, 10 * scale]
        order = np.argsort(margins)
        betas = predictors(problem, depth, alpha, np.sort(margins), "dual")[np.argsort(order)]
        for name, beta in zip(shares, betas, strict=True):
            shares[name].append(float(angle(beta, l2)) / arc)
    return {**shares, "draws": draws}


study = sized(
    "M-leave",
    function=cell,
    grid={"depth": [2, 3]},
    seeds=12,
    dims={name: ["scale"] for name in ("linear", "superlinear", "whole")},
    tiny={"seeds": 4},
    printed={"seeds": 100},
)


def check(dataset: Dataset) -> Evidence:
    """What is left of the way from l2 to l1 at accuracies linear in alpha, and in alpha^D."""
    end = dataset.isel(scale=-1)
    printed = at_least(end.linear.min(), 0.1)
    rich = at_least(end.superlinear.sel(depth=3).median(), 0.5)
    kernel = at_most(end.linear.median("seed").max(), 0.1)
    leaves = at_least(end.whole.median("seed").min(), 0.1)
    keeps = at_least(float((end.whole / dataset.whole.isel(scale=0)).median("seed").min()), 0.5)
    rows = dataset.linear.median("seed")
    alphas = {D: np.array(SCALES) ** (1 / D) for D in dataset.depth.values.tolist()}
    worst = end.sel(depth=2).isel(seed=int(end.linear.sel(depth=2).values.argmin()))
    return Evidence(
        ran=f"{dataset.sizes['seed']} sets of three points in five dimensions whose "
        r"$\ell_1$ and $\ell_2$ max margins are 10 degrees apart, at depths 2 and 3, from "
        r"$\alpha^D = 100$ and $10^5$ to $\log(1/\epsilon) = \alpha + 2$, $\alpha^{1.5} + 2$ "
        r"and $10 "
        r"\alpha^D$; angles to $\ell_2$ as shares of that to $\ell_1$",
        checks={
            r"$\log(1/\epsilon)$ linear in $\alpha$, the largest $\alpha$: least share": printed,
            r"$\log(1/\epsilon) = \alpha^{1.5}$, $D = 3$: median share": rich,
        },
        corrected={
            r"$\log(1/\epsilon)$ linear in $\alpha^D$, the largest $\alpha$: median share, least "
            "of the depths": leaves,
            "the same over that of the smaller scale": keeps,
        },
        correction=r"the accuracy that leaves the kernel regime is $\log(1/\epsilon)$ linear in "
        r"$\alpha^D$, as in Theorems 4 and 6; the two sentences that say linear and superlinear in "
        r"$\alpha$ omit the power. Linear in $\alpha$ training tends to the $\ell_2$ max margin",
        counterexample={
            "set": int(worst.seed),
            "depth": 2,
            r"$\alpha$": float(alphas[2][-1]),
            r"share of the way from $\ell_2$ to $\ell_1$ at $\log(1/\epsilon) = \alpha + 2$": float(
                worst.linear
            ),
        },
        premises={
            "sets whose margins are apart are drawn (draws)": (True, int(dataset.draws.max())),
            r"linear in $\alpha$ is the kernel regime: largest median share": (
                kernel.passes,
                kernel.measured,
            ),
        },
        controls={
            r"$\log(1/\epsilon) = \alpha + 2$: the same median share": leaves.control(
                kernel.measured
            )
        },
        plots=[
            log_log(
                r"what is left at $\log(1/\epsilon) = \alpha + 2$",
                r"$\alpha$",
                r"share of the way from $\ell_2$ to $\ell_1$",
                [(f"$D = {D}$", alphas[D], rows.sel(depth=D)) for D in alphas],
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
