"""Section 5: whether trajectories stay among the directions that separate the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.evidence.evidence import Evidence, at_least
from tacit.evidence.plot import Plot, Series
from tacit.lazy import Dataset
from tacit.papers.experiment import Experiment
from tacit.papers.moroshko2020.figures.trajectories import rising_margins
from tacit.papers.moroshko2020.stopping import follow, names_of, points_of
from tacit.studies.sizes import sized

PANELS = ["3b", "3c", "3d"]


def cell(points: str, alpha: float, *, records: int, seed: int) -> dict[str, Any]:
    """The smallest margin over |w| along a flow of depth 2, and that of the mean of the data.

    `inside` is the least of it where the loss is below 1/N, `inside_half` where it is below 1/2.
    """
    problem = points_of(points, 5, 4, margin=0.1, seed=seed)
    margins = rising_margins(2, alpha, points=records, end=1e4, least_end=1e3)
    beta = follow(problem, 2, alpha, margins, 1e-8).predictor.values
    smallest = (beta @ problem.signed_rows.T).min(axis=1) / np.linalg.norm(beta, axis=1)
    mean = problem.signed_rows.mean(axis=0)
    return {
        "margin": margins,
        "smallest": smallest,
        "least": smallest.min(),
        "of_mean": (problem.signed_rows @ mean).min() / np.linalg.norm(mean),
        "inside": smallest[margins > np.log(len(problem.y))].min(),
        "inside_half": smallest[margins > np.log(2)].min(),
    }


study = sized(
    "M-area",
    function=cell,
    arguments={"records": 80, "seed": 0},
    grid={
        "points": [*PANELS, *names_of(4)],
        "alpha": [0.01, 1.0, 100.0],
    },
    dims={"margin": ["record"], "smallest": ["record"]},
    printed={
        "arguments": {"records": 300},
        "grid": {"points": [*PANELS, *names_of(100)]},
    },
)


def check(dataset: Dataset) -> Evidence:
    """The smallest margin during training: positive on the panels, not on every separable set."""
    panels, drawn = dataset.sel(points=PANELS), dataset.drop_sel(points=PANELS)
    shown = at_least(panels.least.values.min())
    every = at_least(drawn.least.values.min())
    late = at_least(dataset.inside.values.min())
    begins = drawn.of_mean.values > 0
    worst = np.unravel_index(drawn.least.values.argmin(), drawn.least.shape)
    row = drawn.isel(points=worst[0], alpha=worst[1])
    outside = float((drawn.smallest < 0).any("record").mean())
    both = {"Figure 3: lowest smallest margin over |w| during training": shown}
    return Evidence(
        ran=f"exact flows of depth 2 from {dataset.sizes['alpha']} alphas on the sets of Figure 3"
        f" and {drawn.sizes['points']} random separable sets of 5 points in 4 dimensions",
        checks={**both, "random separable sets: the same margin": every},
        corrected={**both, "every set, from the loss 1/N on: the same margin": late},
        correction="trajectories begin along the mean of the data, and from small starts soon"
        " follow one coordinate; neither direction has to separate the data. They"
        " separate the data from the loss 1/N on, and on the sets of Figure 3 at all"
        " times",
        counterexample={
            "data": str(row.points.values),
            "alpha": float(row.alpha),
            "smallest margin over |w| of the mean": float(row.of_mean),
            "lowest during training": float(row.least),
            "at the end": float(row.smallest[-1]),
        },
        premises={
            "the mean separates some random sets and not others": (
                0 < begins.mean() < 1,
                f"{begins.mean():.2f} of the runs",
            )
        },
        controls={
            "sets whose mean separates, at all times": late.control(
                drawn.least.values[begins].min(initial=np.inf)
            ),
            "every set, from the loss 1/2 on": late.control(dataset.inside_half.values.min()),
        },
        findings=[
            f"{outside:.0%} of the runs on random sets do not separate the data at some time,"
            f" and {float((drawn.least.values[begins] < 0).mean()):.0%} of those that separate"
            " them at first"
        ],
        plots=[
            Plot(
                "the smallest margin along training",
                "smoothed margin log(1/loss)",
                "smallest margin / |w|",
                [
                    Series(f"{name}, alpha = 1", line.margin, line.smallest)
                    for name, line in (
                        *((f"panel {p}", panels.sel(points=p, alpha=1.0)) for p in PANELS),
                        (str(row.points.values), drawn.isel(points=worst[0]).sel(alpha=1.0)),
                    )
                ],
                x_scale="log",
            )
        ],
    )


experiment = Experiment(
    "M-area",
    statement="With small steps, the trajectories always remain among the directions that"
    " separate the data.",
    place="section 5, the paragraph on the sphere of Figure 3",
    study=study,
    check=check,
    title="A trajectory begins among the separating directions only if the mean of the data does",
    ours="the random sets",
)
