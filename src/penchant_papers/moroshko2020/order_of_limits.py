"""Eq. (2): the limit of F(u/|u|) where the scale grows first, and the direction that is meant."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import DiagonalNet
from penchant.lab import Dataset, Evidence, Experiment, at_most, log_log, sized, within
from penchant.measures import angle
from penchant.problems import separable_points
from penchant_papers.moroshko2020.stopping import follow, max_margin_of, trained

SCALES = [1e2, 1e5]  # alpha^D
LATE = 1e3  # the smoothed margin that stands for t -> infinity


def cell(seed: int, depth: int, *, scale: float) -> dict[str, Any]:
    """|F(u/|u|)| at t = 1 from both scales, and degrees of F(u) to the limits at a late time.

    The late time is that of a smoothed margin far below `scale` = alpha^D.
    """
    problem = separable_points(4, 5, margin=0.3, seed=seed)
    length = float(np.linalg.norm(problem.X, axis=1).max())
    sizes = []
    for own in SCALES:
        alpha = own ** (1 / depth)
        # by eq. (39) log(1/loss) at t = 1 is at most this for the linear model
        most = np.log1p(2 * depth**2 * alpha ** (2 * depth - 2) * length**2)
        path = trained(problem, DiagonalNet(depth, alpha=alpha), [most + 1], per_decade=10)
        data = path.dataset.isel(time=slice(1, None))
        row = int(np.abs(data.log_t.values).argmin())
        u = data.parameters.values[row]
        sizes.append(np.linalg.norm(data.predictor.values[row]) / np.linalg.norm(u) ** depth)
    late = follow(problem, depth, scale ** (1 / depth), [LATE], 1e-8).predictor.values[0]
    return {
        "size": sizes,
        "to_l2": float(angle(late, max_margin_of(problem, "l2"))),
        "to_l1": float(angle(late, max_margin_of(problem, "l1"))),
    }


study = sized(
    "M-eq2",
    function=cell,
    arguments={"scale": 1e9},
    grid={"depth": [2, 3]},
    seeds=20,
    dims={"size": ["scale"]},
    tiny={"seeds": 4},
    printed={"seeds": 100},
)


def check(dataset: Dataset) -> Evidence:
    """F(u/|u|) vanishes; the direction of F(u) is that of the kernel."""
    size = dataset["size"]
    kept = size.isel(scale=1) / size.isel(scale=0)
    limit = within(kept.max(), 1.0, 0.5)
    vanishes = at_most(kept.max(), 0.1)
    direction = at_most(dataset.to_l2.median(), 0.2)
    worst = dataset.sel(depth=2).isel(seed=int(kept.sel(depth=2).values.argmax()))
    shown = size.median("seed")
    return Evidence(
        ran=f"{dataset.sizes['seed']} sets of four points in five dimensions at depths 2 and 3: "
        r"$t = 1$ from $\alpha^D = 100$ and $10^5$, trained in the parameters, and "
        r"$\log(1/\epsilon) = 1000$ from $\alpha^D = 10^9$",
        checks={
            r"$|F(u/|u|)|$ at $t = 1$, $\alpha^D = 10^5$ over 100 (a limit in $\alpha$ other "
            r"than 0 "
            "has 1)": limit
        },
        corrected={
            r"$|F(u/|u|)|$ at $t = 1$, $\alpha^D = 10^5$ over 100, largest": vanishes,
            r"angle of $F(u)$ to the $\ell_2$ max margin at $\alpha^D = 10^9$, $\log(1/\epsilon) = "
            "1000$, median, degrees": direction,
        },
        correction=r"$F(u/|u|) = F(u)/|u|^D$, and at a fixed time $F(u)$ grows like $\log \alpha$ "
        r"while $|u|^D$ grows like $\alpha^D$: the limit in $\alpha$ is 0, which is in no "
        r"direction. "
        "It has to be $F(u)/|F(u)|$",
        counterexample={
            "set": int(worst.seed),
            "depth": 2,
            **{
                rf"$|F(u/|u|)|$ at $\alpha^2 = {scale:g}$": float(worst["size"][k])
                for k, scale in enumerate(SCALES)
            },
        },
        controls={r"the $\ell_1$ max margin": direction.control(dataset.to_l1.median())},
        plots=[
            log_log(
                "predictor of the parameters of length one at $t = 1$",
                r"$\alpha^D$",
                r"$|F(u/|u|)|$, median",
                [(f"$D = {D}$", SCALES, shown.sel(depth=D)) for D in dataset.depth.values],
            )
        ],
    )


experiment = Experiment(
    "M-eq2",
    statement=r"If $\alpha \to \infty$ first and then $t \to \infty$, $F(u/|u|)$ tends to the "
    "direction of the predictor of least norm in the RKHS of the tangent kernel with margins of at "
    "least 1.",
    place="section 2, eq. (2)",
    study=study,
    check=check,
    title="With the scale first, the predictor of $u/|u|$ vanishes, and its direction is the "
    "kernel's",
    ours="the data sets and the time 1",
)
