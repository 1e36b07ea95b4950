"""Theorem 6: the limit between kernel and rich, as a rate in alpha."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import Classification, Q, max_margin
from penchant.lab import (
    Array,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    log_log,
    sized,
    within,
)
from penchant.measures import angle
from penchant.plotting import latex
from penchant.problems import three_points
from penchant_papers.instances import slope
from penchant_papers.moroshko2020.stopping import named, names_of, predictors, stops

ALPHAS = {2: (10.0, 30.0, 100.0), 3: (5.0, 10.0, 20.0), 5: (2.0, 3.0, 5.0)}
MUS = [1.0, 0.1, 0.01, 0.001]


def least_q(problem: Classification, depth: int, mu: float) -> Array:
    """argmin Q_mu of this depth under margins of at least 1."""
    return max_margin(problem.X, problem.y, Q(depth, mu=mu)).beta


def cell(depth: int, mu: float, start: int, *, stretch: float) -> dict[str, float]:
    """Panel 3b from one of the ALPHAS: degrees to argmin Q at alpha^D/mu, and to that of depth D+1.

    The mu of Q is `stretch` times that of training, here and in the other cells.
    """
    problem, alpha = three_points("3b"), ALPHAS[depth][start]
    (beta,) = predictors(problem, depth, alpha, [alpha**depth / mu])
    return {
        "alpha": alpha,
        "angle": float(angle(beta, least_q(problem, depth, stretch * mu))),
        "angle_deeper": float(angle(beta, least_q(problem, depth + 1, mu))),
    }


def panel_cell(points: str, *, mus: list[float], stretch: float) -> dict[str, Any]:
    """Degrees to argmin Q at each mu from alpha = 100, depth 2; also to wrong ones."""
    problem = three_points(points)
    betas = predictors(problem, 2, 100.0, [1e4 / mu for mu in mus])
    goals = {"angle": (2, stretch), "angle_deeper": (3, 1.0), "angle_larger": (2, 1.1)}
    return {
        name: angle(betas, np.array([least_q(problem, depth, times * mu) for mu in mus]))
        for name, (depth, times) in goals.items()
    }


def stops_cell(points: str, *, mus: list[float], stretch: float, seed: int) -> dict[str, Any]:
    """What training says about condition 5 at each mu, and degrees to argmin Q at alpha^D = 1e6."""
    problem, depth = named(points, seed)
    exponents, betas = stops(problem, mus, depth)
    goal = np.array([least_q(problem, depth, stretch * mu) for mu in mus])
    return {"depth": depth, "exponent": exponents, "angle": angle(betas, goal)}


study = sized(
    "M-T6",
    function=cell,
    arguments={"stretch": 1.0},
    grid={"depth": [2, 3], "mu": MUS[1:3], "start": [0, 1, 2]},
    printed={"grid": {"depth": [2, 3, 5], "mu": MUS[:3]}},
)
panels = sized(
    "M-T6-panels",
    function=panel_cell,
    arguments={"mus": MUS, "stretch": 1.0},
    grid={"points": ["3b", "3c", "3d"]},
    dims={name: ["mu"] for name in ("angle", "angle_deeper", "angle_larger")},
)
PANELS = ["3b", "3c"]
FAILING = ["3d"]  # the condition fails at some mu
CLEAR = 0.25  # how far from 0 or D the exponent of a stop that counts may be
random = sized(
    "M-T6-stops",
    function=stops_cell,
    arguments={"mus": MUS, "stretch": 1.0, "seed": 0},
    grid={"points": [*PANELS, *FAILING, *names_of(5)]},
    dims={"exponent": ["mu"], "angle": ["mu"]},
    tiny={"grid": {"points": [*PANELS, *FAILING, *names_of(2)]}},
    printed={"grid": {"points": [*PANELS, *FAILING, *names_of(60)]}},
)


def stable(random: Dataset) -> DataArray:
    """Whether condition 5 holds, for each set and mu."""
    return random.exponent < random.depth / 2


def stops_where(random: Dataset, which: DataArray) -> Dataset:
    """The stops of these sets where `which` is true, along one dimension."""
    flat = random[["exponent", "angle"]].stack(stop=("points", "mu"))
    chosen = which.sel(points=random.points).stack(stop=("points", "mu")).values
    return flat.isel(stop=np.flatnonzero(chosen))


def spread_of(values: Array) -> str:
    """The least and the largest of some values, in a sentence."""
    return f"{values.min():.2g} to {values.max():.2g}"


def check(dataset: Dataset, panels: Dataset, random: Dataset) -> Evidence:
    """The rate on panel 3b, the angle at one alpha, and random sets where condition 5 holds."""
    rows = {
        (int(D), float(mu)): dataset.sel(depth=D, mu=mu)
        for D in dataset.depth.values
        for mu in dataset.mu.values
    }
    exponents = {key: slope(row.alpha.values, row.angle.values) for key, row in rows.items()}
    rates = {
        rf"panel 3b, $D = {D}$: largest deviation of the exponent in $\alpha$ from -$D$": within(
            max(abs(power + D) for (depth, _), power in exponents.items() if depth == D),
            tolerance=0.05,
        )
        for D in dataset.depth.values
    }
    near = within(panels.angle.sel(points=PANELS).values.max(), tolerance=0.01)
    good = stable(random)
    clear = np.minimum(random.exponent, random.depth - random.exponent) < CLEAR
    drawn = random.drop_sel(points=[*PANELS, *FAILING])
    held, failed = (stops_where(drawn, clear & which) for which in (good, ~good))
    known = stops_where(random.sel(points=FAILING), clear & ~good)
    doubt = 1 - float(clear.sel(points=drawn.points).mean())
    spread = within(np.quantile(held.angle, 0.9) if held.sizes["stop"] else np.nan, tolerance=0.01)
    doubtless = held.sizes["stop"] + failed.sizes["stop"]
    b, other = panels.sel(points="3b"), rows[2, 0.1]
    first_rate = next(iter(rates.values()))
    return Evidence(
        ran=f"panel 3b at depths {tuple(dataset.depth.values.tolist())}, three alphas and "
        rf"{dataset.sizes['mu']} values of $\mu$, panels 3b and 3c at $\alpha = 100$ and $\mu "
        f"= 1$ to 0.001, trained in the parameters; {drawn.sizes['points']} random sets at "
        r"depths 2 and 3 by the exact flow to $\alpha^D = 10^6$, where condition 5 is judged "
        r"at every $\mu$ by the margins during training from two alphas",
        checks={
            **rates,
            r"panels 3b and 3c, $\alpha = 100$, $\mu = 1$ to 0.001: largest angle to "
            r"$\operatorname{argmin} Q_\mu$, degrees": near,
            rf"{held.sizes['stop']} stops of random sets where condition 5 holds, $\alpha^D = "
            r"10^6$: angle to $\operatorname{argmin} Q_\mu$ that nine of ten do not exceed, "
            "degrees": spread,
        },
        premises={
            r"condition 5 holds on panels 3b and 3c at every $\mu$": (
                bool(good.sel(points=PANELS).all()),
                "judged by the margins during training",
            ),
            r"the accuracy needed is clearly $o(\alpha^D)$ or clearly of order $\alpha^D$ (share "
            "of the stops of random sets left out as unclear)": (doubt < 0.25, doubt),
        },
        controls={
            r"$Q$ of depth 3 (median over $\mu$)": near.control(np.median(b.angle_deeper)),
            r"$\mu$ 10% larger (median over $\mu$)": near.control(np.median(b.angle_larger)),
            r"panel 3d, where the condition fails $(\mu = 0.01)$": near.control(
                panels.angle.sel(points="3d")[2]
            ),
            "panel 3d where the condition fails (median angle)": spread.control(
                known.angle.median()
            ),
            r"$Q$ of depth 3: deviation of the exponent, $D = 2$, $\mu = 0.1$": first_rate.control(
                abs(slope(other.alpha.values, other.angle_deeper.values) + 2)
            ),
        },
        findings=[
            r"the angle to the $Q_\mu$ direction falls like $\alpha^{-D} = 1/(\mu "
            r"\log(1/\epsilon))$; exponents "
            + ", ".join(
                rf"{value:.3f} ($D = {D}$, $\mu = {latex(mu)}$)"
                for (D, mu), value in exponents.items()
            ),
            f"condition 5 decides: of {doubtless} stops of random sets it holds at "
            f"{held.sizes['stop']}, all within {held.angle.values.max(initial=0.0):.1e} "
            rf"degrees of $\operatorname{{argmin}} Q_\mu$, and fails at {failed.sizes['stop']}"
            + (f", {spread_of(failed.angle.values)} degrees away" if failed.sizes["stop"] else ""),
        ],
        plots=[
            log_log(
                r"panel 3b: angle to the $Q_\mu$ direction at smoothed margin $\alpha^D/\mu$",
                r"$\alpha$",
                "angle in degrees",
                [
                    (rf"$D = {D}$, $\mu = {latex(mu)}$", row.alpha, row.angle)
                    for (D, mu), row in rows.items()
                ],
            ),
            Plot(
                r"random sets: condition 5 decides which runs end at $\operatorname{argmin} Q_\mu$",
                r"exponent in $\alpha$ of the accuracy that stability needs",
                r"angle to $\operatorname{argmin} Q_\mu$ in degrees",
                [
                    Series(name, stops.exponent, stops.angle, "points")
                    for name, stops in (
                        ("the condition holds", held),
                        ("the condition fails", failed),
                        ("panel 3d, where it fails", known),
                    )
                    if stops.sizes["stop"]
                ],
                y_scale="log",
            ),
        ],
    )


experiment = Experiment(
    "M-T6",
    statement=r"Under the stability condition, if $\alpha^D / \log(1/\epsilon)$ tends to $\mu$, "
    r"the direction tends to the minimiser of $Q_\mu$ with margins of at least 1.",
    place="section 4, Theorem 6; appendices F.2 and G.2",
    study=(study, panels, random),
    check=check,
    title=r"Where support vectors do not change, training to margin $\alpha^D/\mu$ tends to "
    r"$\operatorname{argmin} Q_\mu$",
    ours="the data sets",
    seconds=3,
)
