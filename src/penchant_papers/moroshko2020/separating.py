"""Section 5: whether trajectories stay among the directions that separate the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant.lab import (
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_least,
    lower_share,
    sized,
    upper_share,
)
from penchant.plotting import latex
from penchant_papers.moroshko2020.figures.trajectories import rising_margins
from penchant_papers.moroshko2020.stopping import follow, names_of, points_of

PANELS = ["3b", "3c", "3d"]


def cell(points: str, alpha: float, *, records: int, seed: int) -> dict[str, Any]:
    """The smallest margin over |w| along a flow of depth 2, and that of the mean of the data."""
    problem = points_of(points, 5, 4, margin=0.1, seed=seed)
    margins = rising_margins(2, alpha, points=records, end=1e4, least_end=1e3)
    beta = follow(problem, 2, alpha, margins, 1e-6).predictor.values
    smallest = (beta @ problem.signed_rows.T).min(axis=1) / np.linalg.norm(beta, axis=1)
    mean = problem.signed_rows.mean(axis=0)
    return {
        "margin": margins,
        "smallest": smallest,
        "least": smallest.min(),
        "of_mean": (problem.signed_rows @ mean).min() / np.linalg.norm(mean),
    }


study = sized(
    "M-area",
    function=cell,
    arguments={"records": 80, "seed": 0},
    grid={
        "points": [*PANELS, *names_of(12)],
        "alpha": [0.01, 1.0, 100.0],
    },
    dims={"margin": ["record"], "smallest": ["record"]},
    tiny={"arguments": {"records": 40}},
    printed={
        "arguments": {"records": 300},
        "grid": {"points": [*PANELS, *names_of(100)]},
    },
)


def check(dataset: Dataset) -> Evidence:
    """The smallest margin during training: positive on the sets of Figure 3, not on random ones."""
    panels, drawn = dataset.sel(points=PANELS), dataset.drop_sel(points=PANELS)
    shown = at_least(panels.least.values.min())
    leaves = (drawn.least < 0).any("alpha")
    inside = drawn.of_mean.isel(alpha=0) > 0
    count, left, begun = drawn.sizes["points"], int(leaves.sum()), int(inside.sum())
    left_later = int((leaves & inside).sum())
    worst = np.unravel_index(drawn.least.values.argmin(), drawn.least.shape)
    row = drawn.isel(points=worst[0], alpha=worst[1])
    lines = [
        *((f"panel {p}", panels.sel(points=p, alpha=1.0)) for p in PANELS),
        (f"random set {row.points.item()}", drawn.isel(points=worst[0]).sel(alpha=1.0)),
    ]
    return Evidence(
        ran=f"exact flows of depth 2 from {dataset.sizes['alpha']} alphas on the sets of Figure 3"
        f" and {count} random separable sets of 5 points in 4 dimensions",
        checks={"Figure 3: lowest smallest margin over $|w|$ during training": shown},
        premises={
            "the mean of the data separates the sets of Figure 3 (least margin)": (
                bool((panels.of_mean > 0).all()),
                float(panels.of_mean.min()),
            )
        },
        controls={
            "every separable set: the same margin on the random sets": shown.control(
                row.least.item()
            ),
        },
        findings=[
            f"the sentence is not true of every separable set: {left} of {count} random sets (a "
            f"share of {lower_share(left, count):.2f} to {upper_share(left, count):.2f}) are "
            r"left at some time from some $\alpha$. Trajectories begin along the mean of the "
            "data, and from small starts soon follow one coordinate; neither has to separate "
            f"the data ({begun} of {count} means do, and {left_later} of these sets are left "
            "later)",
            f"the lowest margin over $|w|$ on random sets is {row.least.item():.3f}, of "
            rf"{row.points.item()} from $\alpha = {latex(float(row.alpha))}$, whose mean has "
            f"{row.of_mean.item():.3f} and whose end {float(row.smallest[-1]):.3f}; below the "
            "loss $1/N$ every predictor separates, so that all come back",
        ],
        plots=[
            Plot(
                "the smallest margin along training",
                r"smoothed margin $\log(1/\mathrm{loss})$",
                "smallest margin / $|w|$",
                [
                    Series(rf"{name}, $\alpha = 1$", line.margin, line.smallest)
                    for name, line in lines
                ],
                x_scale="log",
            )
        ],
    )


experiment = Experiment(
    "M-area",
    statement="With small steps, the trajectories on the sets of Figure 3 always remain among the"
    " directions that separate the data.",
    place="section 5, the paragraph on the sphere of Figure 3",
    study=study,
    check=check,
    title="The trajectories of Figure 3 separate the data at all times; not every set is like that",
    ours="the three points of each set and the random sets",
)
