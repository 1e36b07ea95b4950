"""Theorem 2: after the jump the parameters are a KKT point of the margin problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penchant import DiagonalNet
from penchant.lab import (
    Array,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_most,
    sized,
)
from penchant.measures import angle, kkt_residual
from penchant_papers.instances import slope
from penchant_papers.lyu2023.runs import (
    data_set,
    exact,
    joint_rate,
    margin_points,
    network,
    points,
    trained,
)


def parameters_of(predictor: Array, log_alpha: float, z: float) -> Array:
    """u and v of depth 2 from u^2 - v^2 = beta and u v = alpha^2 e^(-2z), which training keeps."""
    product = math.exp(2 * (log_alpha - z))
    large = np.sqrt((np.abs(predictor) + np.hypot(predictor, 2 * product)) / 2)
    small = product / large
    up = predictor >= 0
    return np.concatenate([np.where(up, large, small), np.where(up, small, large)])


def cell(seed: int, log_alpha: float, *, z: float) -> dict[str, float]:
    """Angles and KKT residual of depth 2 at z (1/rate) log alpha, by the exact flow."""
    data, late = data_set(seed), z * log_alpha
    run = exact(data, log_alpha, joint_rate(log_alpha), np.array([late]))
    beta, (kernel, rich) = run.predictor.values[0], margin_points(data)
    theta = parameters_of(beta, log_alpha, late)
    return {
        "to_rich": float(angle(beta, rich)),
        "to_kernel": float(angle(beta, kernel)),
        "residual": kkt_residual(data, DiagonalNet(2, log_alpha=log_alpha), theta),
    }


def trained_cell(
    seed: int, depth: int, log_alpha: float, *, times: Sequence[float]
) -> dict[str, list[float]]:
    """KKT residuals of parameters trained to `times`, in units of (1/rate) log alpha."""
    data, net = data_set(seed), DiagonalNet(depth, log_alpha=log_alpha)
    return {"residual": [kkt_residual(data, net, trained(data, net, log_alpha, z)) for z in times]}


def network_cell(seed: int, log_alpha: float, *, times: Sequence[float]) -> dict[str, list[float]]:
    """The same of two layers of quadratic units."""
    data, net = points(seed)[0], network(log_alpha, seed)
    return {"residual": [kkt_residual(data, net, trained(data, net, log_alpha, z)) for z in times]}


BEFORE, AFTER = 0, 1  # the moments 1 - c and 1 + c
TRAINED: dict[str, Any] = {"arguments": {"times": [0.5, 1.5]}, "dims": {"residual": ["moment"]}}
study = sized(
    "L-T2",
    title=r"A diagonal net at $(1 + c)(1/\mathrm{rate}) \log \alpha$ compared with the ℓ₁ max "
    "margin",
    function=cell,
    arguments={"z": 1.5},
    grid={"log_alpha": [320.0, 640.0]},
    seeds=2,
    labels={
        "to_rich": r"angle to the $\ell_1$ max margin predictor",
        "to_kernel": r"angle to the $\ell_2$ max margin predictor",
        "residual": "KKT residual of the parameters",
    },
    draw={"x": "log_alpha", "colour": "residual", "log": True},
    printed={"seeds": 12},
)
in_parameters = sized(
    "L-T2-trained",
    title="The KKT residual of parameters trained before and after the jump",
    function=trained_cell,
    grid={"depth": [2, 3], "log_alpha": [3.0, 6.0]},
    **TRAINED,
    seeds=2,
    printed={"seeds": 8},
)
networks = sized(
    "L-T2-networks",
    title="The same for two layers of quadratic units",
    function=network_cell,
    grid={"log_alpha": [3.0, 6.0]},
    **TRAINED,
    seeds=4,
    printed={"seeds": 12},
)


def exponents(dataset: Dataset, name: str) -> list[float]:
    """The exponent in log alpha between the two largest alphas; others may still fall faster."""
    last = dataset.isel(log_alpha=slice(-2, None)).transpose("seed", "log_alpha")
    return [slope(last.log_alpha.values, row) for row in last[name].values]


def ratio(runs: Dataset, moment: int) -> Array:
    """The residual at the largest alpha over that at the smallest, mean over the data sets."""
    values = runs.residual.isel(moment=moment)
    return np.asarray((values.isel(log_alpha=-1) / values.isel(log_alpha=0)).mean("seed"))


def numbers(values: DataArray) -> str:
    """Numbers in a sentence."""
    return ", ".join(f"{value:.3g}" for value in values.values)


def check(dataset: Dataset, runs: Dataset, nets: Dataset) -> Evidence:
    """Angle and KKT residual fall like 1/log alpha after the jump, and not before."""
    end = dataset.sel(log_alpha=640.0)
    near = at_most(end.to_rich.median(), 0.5)
    exponent = at_most(max(exponents(dataset, "to_rich")), -1.0, 0.1)
    stationary = at_most(max(exponents(dataset, "residual")), -1.0, 0.1)
    # like 1/log alpha from 3 to 6 gives 1/2, no approach gives 1
    training = at_most(ratio(runs, AFTER).max(), 0.75)
    units = at_most(ratio(nets, AFTER).max(), 0.75)
    after = runs.residual.isel(moment=AFTER).mean("seed")
    diagonal = [f"depth {D}: {numbers(after.sel(depth=D))}" for D in runs.depth.values]
    quadratic = nets.residual.isel(moment=AFTER).mean("seed")
    residuals = dataset.residual.transpose("seed", "log_alpha").values[:3]
    return Evidence(
        ran=f"{dataset.sizes['seed']} data sets of 4 points in $R^8$ without near ties, logistic "
        r"loss, rate = $1/\alpha$, $c = 1/2$: $\log \alpha$ 320 and 640 by the exact flow, 3 "
        "to 6 trained in the parameters at depths 2, 3; two layers of three quadratic units "
        r"on labels that are not linear, $\log \alpha$ 3 and 6",
        checks={
            r"angle to the $\ell_1$ max margin predictor at $\log \alpha = 640$, "
            "median, degrees": near,
            r"largest exponent of the angle in $\log \alpha$, 320 to 640": exponent,
            r"largest exponent of the KKT residual in $\log \alpha$, 320 to 640": stationary,
            r"KKT residual of trained parameters (depths 2 and 3), $\log \alpha = 6$ over $\log "
            r"\alpha = 3$, mean over the data sets": training,
            "KKT residual of a two-layer net with quadratic units $(L = 3)$, the same mean": units,
        },
        controls={
            r"the $\ell_2$ max margin predictor after the jump": near.control(end.to_kernel.min()),
            "the KKT residual before the jump": training.control(ratio(runs, BEFORE).min()),
            "the same for the quadratic units": units.control(ratio(nets, BEFORE).min()),
            r"the $\ell_2$ max margin predictor: exponent of the angle to it": exponent.control(
                min(exponents(dataset, "to_kernel"))
            ),
        },
        findings=[
            r"both the angle and the KKT residual fall like $1/\log(1/\mathrm{rate})$: the margin "
            "problem is the limit of vanishing decay, and at a fixed rate training ends at "
            r"the minimiser of the penalised loss instead; residuals at $\log \alpha = 3$, 6: "
            f"{'; '.join(diagonal)}; quadratic units: {numbers(quadratic)}",
        ],
        plots=[
            Plot(
                r"KKT residual at $(1 + c)(1/\mathrm{rate}) \log \alpha$",
                r"$\log \alpha$",
                "residual",
                [
                    *(
                        Series(f"data set {k}, exact flow", dataset.log_alpha, row)
                        for k, row in enumerate(residuals)
                    ),
                    *(
                        Series(f"trained, depth {D}", runs.log_alpha, after.sel(depth=D))
                        for D in runs.depth.values
                    ),
                    Series("trained, quadratic units", nets.log_alpha, quadratic),
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


experiment = Experiment(
    "L-T2",
    statement=r"At time $(1 + c)(1/\mathrm{rate}) \log \alpha$ the parameters satisfy the KKT "
    r"conditions of min $|\theta|^2$ subject to margins of at least 1; for diagonal nets of "
    r"depth 2 the predictor is the $\ell_1$ max margin predictor.",
    place="Main results, Theorem 2",
    study=(study, in_parameters, networks),
    check=check,
    title="After the jump the parameters approach a KKT point of the margin problem",
    ours=r"the data, $c = 1/2$ and rate = $1/\alpha$, which takes both limits at once",
    seconds=3,
)
