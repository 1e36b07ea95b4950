"""Section 4: whether an accuracy superlinear in alpha^D suffices for the rich limit."""

from __future__ import annotations

from typing import Any

from penchant.lab import (
    Dataset,
    Evidence,
    Experiment,
    at_most,
    log_log,
    share_at_least,
    sized,
)
from penchant.measures import angle
from penchant.problems import separable_points
from penchant_papers.moroshko2020.figures.figure_8 import local_minimum
from penchant_papers.moroshko2020.stopping import follow, max_margin_of

SCALES = [1e2, 1e4]  # alpha^D


def cell(seed: int, depth: int, *, power: float) -> dict[str, Any]:
    """Degrees from training to a stationary predictor of l_{2/D}, at accuracies alpha^(D power).

    At depth 2 it is the l1 max margin, beyond it the local minimiser that is reached from the end
    of training. `middle` is the same at accuracy alpha^D, `to_l1` the angle to l1.
    """
    problem = separable_points(4, 5, margin=0.3, seed=seed)
    l1 = max_margin_of(problem, "l1")
    runs = [
        follow(problem, depth, scale ** (1 / depth), [scale, scale**power], 1e-5).predictor.values
        for scale in SCALES
    ]
    goal = l1 if depth == 2 else local_minimum(problem, runs[-1][-1], depth)
    return {
        "away": [float(angle(run[-1], goal)) for run in runs],
        "middle": [float(angle(run[0], goal)) for run in runs],
        "to_l1": [float(angle(run[-1], l1)) for run in runs],
    }


study = sized(
    "M-rich",
    function=cell,
    arguments={"power": 2.0},
    grid={"depth": [2, 3, 5]},
    seeds=20,
    dims={name: ["scale"] for name in ("away", "middle", "to_l1")},
    tiny={"seeds": 4},
    printed={"grid": {"depth": [2, 3, 4, 5, 8]}, "seeds": 100},
)


def check(dataset: Dataset) -> Evidence:
    """The share of sets on which training comes nearer, and how much."""
    count = dataset.sizes["seed"]
    first, last = (dataset.isel(scale=k) for k in (0, -1))
    nearer = {D: int((last.away < first.away).sel(depth=D).sum()) for D in dataset.depth.values}
    limit = 0.5 if count >= 20 else 0.01  # most sets; four of four show no more
    shares = {D: share_at_least(number, count, limit) for D, number in nearer.items()}
    close = {
        D: at_most((last.away / first.away).sel(depth=D).median(), 0.5)
        for D in dataset.depth.values
    }
    still = (last.middle / first.middle).median("seed")
    deep = last.sel(depth=last.depth > 2)
    near = at_most(deep.away.median("seed").max(), 1.0)
    apart = last.to_l1.sel(depth=3).values
    away = int((apart > 1).sum())
    shown = dataset[["away", "middle"]].median("seed")
    worst = last.away.max("seed")
    return Evidence(
        ran=f"exact flows on {count} sets of four points in five dimensions, whatever their "
        rf"support vectors do, at depths {', '.join(map(str, dataset.depth.values))} from "
        r"$\alpha^D = 100$ and $10^4$ to $\log(1/\epsilon) = \alpha^{2 D}$",
        checks={
            **{
                rf"$D = {D}$: share of the sets that come nearer to the rich limit with $\alpha$ "
                "(lower bound)": check
                for D, check in shares.items()
            },
            **{
                rf"$D = {D}$: angle to it, $\alpha^D = 10^4$ over 100, median": check
                for D, check in close.items()
            },
            r"$D > 2$, $\alpha^D = 10^4$: angle to a local minimum of $\ell_{2/D}$, median, the "
            "largest, degrees": near,
        },
        controls={
            rf"$\log(1/\epsilon) = \alpha^D$, not superlinear, $D = {D}$: the same median": (
                check.control(float(still.sel(depth=D)))
            )
            for D, check in close.items()
        },
        findings=[
            rf"at $D = 3$ {away} of {count} sets end more than a degree from the $\ell_1$ max "
            rf"margin, up to {apart.max():.1f}: there the limit of training is another local "
            r"minimum of $\ell_{2/3}$",
            "the largest angles that are left at the largest scale: "
            + ", ".join(f"{float(worst.sel(depth=D)):.2g} ($D = {D}$)" for D in worst.depth.values)
            + " degrees; near ties of the data make the approach slow",
        ],
        plots=[
            log_log(
                r"angle to the rich limit at $\log(1/\epsilon) = \alpha^{2 D}$ and $\alpha^D$",
                r"$\alpha^D$",
                "degrees, median",
                [
                    (rf"$D = {D}$, {text}", SCALES, shown[name].sel(depth=D), line)
                    for name, text, line in (
                        ("away", r"$\alpha^{2 D}$", "line"),
                        ("middle", r"$\alpha^D$", "dashed"),
                    )
                    for D in dataset.depth.values
                ],
            )
        ],
    )


experiment = Experiment(
    "M-rich",
    statement=r"An accuracy that grows faster than $\alpha^D$ may suffice for the rich limit "
    r"whatever the support vectors do: the $\ell_1$ max margin at depth 2, a stationary point of "
    r"the $\ell_{2/D}$ margin problem at greater depths.",
    place="section 4, the conjecture after Theorem 7",
    study=study,
    check=check,
    title=r"Beyond $\log(1/\epsilon) \sim \alpha^D$ training tends to the rich limit, stable or "
    r"not",
    ours=r"the data sets, and $\alpha^{2 D}$ as the superlinear accuracy; a trend on random "
    r"sets is "
    "no proof",
)
