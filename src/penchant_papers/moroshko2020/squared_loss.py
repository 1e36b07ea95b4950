"""Section 2: with the squared loss a large start follows its linearized twin at all times."""

from __future__ import annotations

import numpy as np

from penchant import DiagonalNet, Regression
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    at_most,
    exponents,
    log_log,
    sized,
    within,
)
from penchant.models import Model, linearize
from penchant.problems import three_points
from penchant.solvers import tangent_twin
from penchant_papers.moroshko2020.stopping import trained
from penchant_papers.moroshko2020.theorem_1 import NETS, QUADRATIC, QUARTER, net_named

RECORDS = 120
RESOLVED = 1e-9  # a hundred times the tolerance; rounding alone is 1.4e-10 at alpha = 32


def times_of(model: Model, X: Array) -> Array:
    """From far below the shortest time of the kernel of the start to many of its longest."""
    features = model.jacobian(model.start(X.shape[1]), X)
    rates = np.linalg.eigvalsh(features @ features.T) * 2
    return np.concatenate([[0.0], np.geomspace(1e-4 / rates[-1], 25 / rates[0], RECORDS)])


def cell(net: str, seed: int, alpha: float, *, off: float) -> dict[str, float]:
    """The largest distance of net and twin over all times, and the distance at the end.

    The twin of a start `off` times as large belongs to a wrong theory.
    """
    rng = np.random.default_rng(seed)
    problem = Regression(rng.normal(size=(4, 6)), rng.normal(size=4))
    models = [net_named(net, times * alpha, 6) for times in (1.0, off)]
    times = times_of(models[0], problem.X)
    real, twin = (tangent_twin(model, problem, times, np.eye(6)) for model in models)
    ends = real.outputs[-1], twin.tangent[-1]
    apart = np.linalg.norm(real.outputs - twin.tangent, axis=1)
    return {
        "distance": apart.max(),
        "at_the_end": apart[-1],
        "misfit": max(float(np.abs(problem.X @ end - problem.y).max()) for end in ends),
    }


def exp_cell(alpha: float, *, late: float) -> dict[str, float]:
    """The same with the exp loss on panel 3b at log(1/loss) = late alpha^2: relative distance."""
    problem, net = three_points("3b"), DiagonalNet(2, alpha=alpha)
    real, twin = (
        trained(problem, model, [late * alpha**2]).predictor for model in (net, linearize(net))
    )
    return {"distance": float(np.linalg.norm(real - twin) / np.linalg.norm(twin))}


KINDS = [net for net in NETS if net != QUADRATIC]
study = sized(
    "M-squared",
    function=cell,
    arguments={"off": 1.0},
    grid={"net": KINDS[:-1], "alpha": [2.0, 8.0]},
    seeds=3,
    printed={"grid": {"alpha": [2.0, 4.0, 8.0]}, "seeds": 12},
)
deep = sized(
    "M-squared-deep",
    function=cell,
    arguments={"off": 1.0},
    grid={"net": KINDS[-1:], "alpha": [1.5, 4.5]},
    seeds=3,
    printed={"grid": {"alpha": [1.5, 3.0, 4.5]}, "seeds": 12},
)
wrong = sized(
    "M-squared-wrong",
    function=cell,
    arguments={"off": 1.05},
    grid={"net": KINDS[:1], "alpha": [2.0, 8.0]},
    seeds=1,
)
exp = sized(
    "M-squared-exp", function=exp_cell, arguments={"late": 10.0}, grid={"alpha": [4.0, 8.0, 16.0]}
)


def check(dataset: Dataset, deep: Dataset, wrong: Dataset, exp: Dataset) -> Evidence:
    """The supremum over all times falls with alpha, at the rate of the kernel's order."""
    rows = {
        str(net): data.distance.sel(net=net).transpose("seed", "alpha")
        for data in (dataset, deep)
        for net in data.net.values
    }
    last = max(float((row[:, -1] / row[:, 0]).max()) for row in rows.values())
    shrinks = at_most(last, 0.1)
    powers = {net: exponents(row.alpha.values, row.values) for net, row in rows.items()}
    deviations = {net: powers[net].mean() + NETS[net][0] * NETS[net][1] for net in rows}  # + D k
    rate = within(max(deviations.values(), key=abs), tolerance=QUARTER)
    misfit = max(float(data.misfit.max()) for data in (dataset, deep))
    least = min(float(row.min()) for row in rows.values())
    off, late = wrong.distance.values.ravel(), exp.distance.values
    return Evidence(
        ran=f"{sum(map(len, rows.values()))} pairs of a net and its linearized model on random "
        r"regressions of 4 samples in 6 dimensions, from $\alpha = 2$ to 8 (1.5 to 4.5 at "
        "degree 3), in their parameters from $t = 0$ until both interpolate",
        checks={
            r"largest distance over all times, at the largest $\alpha$ over that at "
            "the smallest": shrinks,
            r"exponent of that distance in $\alpha$, $k = 2$ for an even kernel, else 1: "
            "deviation from $-k D$, mean over the data of the worst net": rate,
        },
        premises={
            "both are trained to interpolation (largest misfit)": (misfit < 1e-8, misfit),
            "the integrator resolves every distance (the least of them)": (
                least > RESOLVED,
                least,
            ),
        },
        controls={
            r"the exp loss at $\log(1/\mathrm{loss}) = 10 \alpha^2$: the same "
            "ratio": shrinks.control(late[-1] / late[0]),
            "$k = 1$ for an even kernel $(D = 2)$": rate.control(
                powers[KINDS[0]].mean() + NETS[KINDS[0]][0]
            ),
            "the linearized model of a start 5 % larger": shrinks.control(off[-1] / off[0]),
        },
        findings=[
            "fitted exponents minus -$k D$: "
            + ", ".join(f"{value:.3f} ({net})" for net, value in deviations.items())
            + r"; with the exp loss the distance at $\log(1/\mathrm{loss}) = 10 \alpha^2$ is "
            f"{late[0]:.3f} to {late[-1]:.3f} of the linearized model's norm, for every "
            r"$\alpha$",
        ],
        plots=[
            log_log(
                "largest distance to the linearized model over all times, squared loss",
                r"$\alpha$",
                "distance",
                [
                    *((net, row.alpha, row[0]) for net, row in rows.items()),
                    (
                        r"exp loss, at $\log(1/\mathrm{loss}) = 10 \alpha^2$",
                        exp.alpha,
                        late,
                        "dashed",
                    ),
                ],
            )
        ],
    )


experiment = Experiment(
    "M-squared",
    statement="With the squared loss the largest distance to the linearized model's trajectory "
    r"over all times vanishes as $\alpha$ grows; with the exp loss it does so only up to a "
    "fixed time.",
    place="section 2, after Theorem 1",
    study=(study, deep, wrong, exp),
    check=check,
    title="With the squared loss, a net with a large start follows its linearized model at all"
    " times",
    ours="the nets and the data sets",
)
