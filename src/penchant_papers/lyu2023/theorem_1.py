"""Theorem 1: before the jump the classifier is the kernel SVM of the start, though it decays."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import L2, Classification, DiagonalNet, max_margin
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_most,
    below,
    sized,
    within,
)
from penchant.measures import angle, assumptions, kernel_machine
from penchant.problems import sparse_regression
from penchant_papers.instances import distance, furthest, slope
from penchant_papers.lyu2023.runs import (
    TIE,
    data_set,
    exact,
    in_parameters,
    joint_rate,
    margin_points,
    network,
    points,
    trained,
)


def random_kernel_svm(problem: Classification, seed: int) -> Array:
    """The max margin predictor of a kernel with random weights on the features."""
    rng = np.random.default_rng([seed, 1])  # not that of the data
    weights = np.exp(rng.normal(0, 1, problem.dimension))
    return max_margin(problem.X, problem.y, L2(weights=weights)).beta


def cell(seed: int, depth: int, log_alpha: float, *, c: float) -> dict[str, Any]:
    """Angles at (1 - c)(1/rate) log alpha; turn, norm and margin then and at half of that time."""
    # near a tie of the kernel SVM the angle is that of another one until log(1/loss) is large
    data = data_set(seed, clear_kernel=True)
    z = (1 - c) * log_alpha * np.array([0.5, 1.0])
    run = exact(data, log_alpha, joint_rate(log_alpha), z, depth)
    beta, (kernel, rich) = run.predictor.values[-1], margin_points(data)
    return {
        "to_kernel": float(angle(beta, kernel)),
        "to_rich": float(angle(beta, rich)),
        "to_random": float(angle(beta, random_kernel_svm(data, seed))),
        "turn": run.turn.values,
        "growth": run.growth.values,
        "margin": run.smoothed_margin.values,
    }


def regression_cell(seed: int, log_alpha: float, *, c: float) -> dict[str, float]:
    """The distance to the kernel interpolant at (1 - c)(1/rate) log alpha."""
    problem = sparse_regression(4, 8, sparsity=2, noise=0.0, seed=seed)
    target = np.asarray(kernel_machine(DiagonalNet(2, alpha=1.0), problem).predictor)
    z = np.array([(1 - c) * log_alpha])
    run = exact(problem, log_alpha, joint_rate(log_alpha), z, rtol=1e-7)
    return {"off": distance(run.predictor.values[0], target)}


def network_cell(seed: int, log_alpha: float, *, c: float) -> dict[str, float | bool]:
    """Angles between a net's outputs on new points and its kernel SVM's, and another start's."""
    (problem, new), net = points(seed), network(log_alpha, seed)
    outputs = net.predict(trained(problem, net, log_alpha, 1 - c), new)
    here = kernel_machine(net, problem).predict(new)
    there = kernel_machine(network(log_alpha, seed + 100), problem).predict(new)
    assumed = assumptions(net, problem.X)
    return {
        "own": float(angle(outputs, here)),
        "other": float(angle(outputs, there)),
        "assumed": assumed.homogeneous and assumed.smooth and assumed.zero_output,
    }


def flow_cell(seed: int, depth: int) -> dict[str, float]:
    """How far the exact flow is from training in the parameters, through the transition."""
    data, z = data_set(seed), np.array([0.5, 1.5, 3.0, 4.5])
    reduced = exact(data, 3.0, 1e-3, z, depth, rtol=1e-9).predictor.values
    trained = in_parameters(data, 3.0, 1e-3, z, depth).predictor.values
    return {"apart": max(distance(a, b) for a, b in zip(reduced, trained, strict=True))}


MOMENTS = ["moment"]  # half of the time, and the time
STARTS = [20.0, 80.0, 160.0, 320.0, 640.0]
study = sized(
    "L-T1",
    title=r"A diagonal net at $(1 - c)(1/\mathrm{rate}) \log \alpha$ compared with the kernel SVM "
    "of its start",
    function=cell,
    arguments={"c": 0.5},
    grid={"depth": [2, 3], "log_alpha": [40.0, 160.0, 320.0, 640.0]},
    seeds=2,
    dims={"turn": MOMENTS, "growth": MOMENTS, "margin": MOMENTS},
    labels={
        "to_kernel": r"angle to the $\ell_2$ max margin predictor",
        "to_rich": r"angle to the $\ell_1$ max margin predictor",
        "growth": r"$|\theta| e^{\mathrm{rate}\, t} / |\theta_0|$",
        "margin": r"smoothed margin $\log(1/\mathrm{loss})$",
    },
    draw={"x": "log_alpha", "colour": "to_kernel", "log": True},
    printed={"grid": {"log_alpha": STARTS}, "seeds": 12},
)
regression = sized(
    "L-T1-regression",
    title="Regression: the distance to the kernel interpolant before the transition",
    function=regression_cell,
    arguments={"c": 0.125},
    grid={"log_alpha": [14.0, 16.0]},
    seeds=1,
    printed={"seeds": 8},
)
networks = sized(
    "L-T1-networks",
    title="A net with quadratic units compared with the kernel SVM of its start",
    function=network_cell,
    arguments={"c": 0.5},
    grid={"log_alpha": [2.0, 6.0]},
    seeds=3,
    printed={"grid": {"log_alpha": [2.0, 4.0, 6.0]}, "seeds": 8},
)
flows = sized(
    "L-T1-flows",
    title="The exact flow of the dual compared with training in the parameters",
    function=flow_cell,
    grid={"depth": [2, 3]},
    seeds=1,
    printed={"seeds": 4},
)


def bent(dataset: Dataset, power: int = 1) -> Array:
    """By how much the line of 1/tan(angle)^power over log(1/loss) bends, relative to its slope."""
    last = dataset.isel(log_alpha=slice(-3, None)).transpose("seed", "depth", "log_alpha", ...)
    heights = np.tan(np.radians(last.to_kernel.values)) ** -power
    slopes = np.diff(heights) / np.diff(last.margin.values[..., -1])
    return np.abs(slopes[..., 1] / slopes[..., 0] - 1)


def turning(dataset: Dataset, c: float, moment: int = -1) -> Array:
    """The deviation of the exponent of turn/g in alpha from -L c: turn is |delta| / |theta|.

    Beyond log alpha = 160 the turn of the parameters is below float64.
    """
    seen = dataset.sel(log_alpha=slice(None, 160.0)).transpose("log_alpha", "seed", "depth", ...)
    turned = np.radians(seen.turn.values[..., moment]) / seen.margin.values[..., -1]
    flat = np.log(turned).reshape(len(seen.log_alpha), -1)
    exponents = np.polyfit(seen.log_alpha.values, flat, 1)[0].reshape(turned.shape[1:])
    return exponents + seen.depth.values * c


def check(dataset: Dataset, regression: Dataset, nets: Dataset, flows: Dataset) -> Evidence:
    """Angle, its law, turn and norm of diagonal nets; regression; nets of quadratic units."""
    c = 0.5
    end = dataset.sel(log_alpha=640.0)
    alphas, rows = np.exp(regression.log_alpha.values), regression.off.transpose("seed", ...).values
    own, other = (nets[name].transpose("seed", "log_alpha").values for name in ("own", "other"))
    described = ", ".join(
        rf"{value:.3g} at $\log \alpha = {a:g}$"
        for a, value in zip(nets.log_alpha, own.mean(axis=0), strict=True)
    )
    near = at_most(end.to_kernel.max(), 0.5)
    falls = within(bent(dataset).max(), tolerance=0.1)
    turns = within(furthest(turning(dataset, c)), tolerance=0.02)
    shrinks = within(np.abs(dataset.growth.isel(moment=-1) - 1).max(), tolerance=1e-6)
    interpolates = within(furthest([slope(alphas, row) + 0.5 for row in rows]), tolerance=0.1)
    nonlinear = at_most(np.mean(own[:, -1] / own[:, 0]), 0.6)
    return Evidence(
        ran=f"{dataset.sizes['seed']} data sets of 4 points in $R^8$, drawn until their max "
        f"margins are {TIE:.0%} away from a tie, depths 2 and 3, logistic loss, rate = "
        rf"$1/\alpha$, $c = 1/2$, $\log \alpha$ {dataset.log_alpha.values[0]:g} to 640 by the "
        "exact flow; regression at $c = 1/8$; a two-layer net with quadratic activation and the "
        "difference trick $(L = 3)$ trained in its parameters",
        checks={
            r"largest angle to the kernel SVM at $\log \alpha = 640$, degrees": near,
            r"largest relative change of the slope of 1/tan(angle) in $\log(1/\mathrm{loss})$, "
            r"$\log \alpha$ 160 to 640": falls,
            r"largest deviation of the exponent of turn/$g$ in $\alpha$ from $-L c$": turns,
            r"largest deviation of $|\theta| e^{\mathrm{rate}\, t}/|\theta_0|$ from 1": shrinks,
            "largest deviation of the exponent of the distance to the kernel interpolant in "
            r"$\alpha$ from $-4 c$ $(c = 1/8)$": interpolates,
            r"angle between a small net's outputs and those of its kernel SVM, largest $\alpha$ "
            "over smallest, mean over the nets": nonlinear,
        },
        premises={
            r"the exact flow agrees with training in the parameters ($\alpha = e^3$, "
            "relative)": below(flows.apart.max(), 1e-5),
            "the small net satisfies the assumptions of L": (bool(nets.assumed.all()), described),
        },
        controls={
            r"the $\ell_1$ max margin predictor": near.control(end.to_rich.min()),
            "the SVM of a random kernel": near.control(end.to_random.sel(depth=2).min()),
            r"an angle like $1/\sqrt{\log(1/\mathrm{loss})}$": falls.control(
                bent(dataset, power=2).min()
            ),
            "a direction that no longer turns: the turn at half the time, depth 2": turns.control(
                turning(dataset.sel(depth=[2]), c, moment=0).max()
            ),
            "a small net against the SVM of another start": nonlinear.control(
                np.mean(other[:, -1] / other[:, 0])
            ),
        },
        findings=[
            r"the angle to the kernel SVM falls like $1/\log \alpha$ and no faster: the predictor "
            r"is $\log(1/\mathrm{loss})$ times the SVM plus a constant, and "
            r"$\log(1/\mathrm{loss})$ is about (2c + 1) $\log \alpha$ here; the parameters "
            r"keep their direction up to $\alpha^{-L c}$, which is much smaller",
            f"outputs of the small nets against their kernel SVM, mean of the degrees: {described}",
        ],
        plots=[
            Plot(
                r"angle to the kernel SVM at $(1 - c)(1/\mathrm{rate}) \log \alpha$",
                r"$\log \alpha$",
                "angle (degrees)",
                [
                    Series(f"data set {k}, depth {D}", dataset.log_alpha, row.to_kernel)
                    for k in range(min(3, dataset.sizes["seed"]))
                    for D in dataset.depth.values
                    for row in [dataset.isel(seed=k).sel(depth=D)]
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


experiment = Experiment(
    "L-T1",
    statement=r"With start $\alpha \theta_0$ and weight decay, the model at time $(1 - "
    r"c)(1/\mathrm{rate}) \log \alpha$ is the kernel SVM of its start (for diagonal nets the "
    r"$\ell_2$ max margin predictor, for regression the kernel interpolant), and until then "
    r"the parameters keep their direction while their norm decays like $e^{-\mathrm{rate}\, "
    "t}$.",
    place="Main results, Theorem 1; Key insights, kernel regime",
    study=(study, regression, networks, flows),
    check=check,
    title="Before the jump the classifier approaches the kernel SVM of the start",
    ours=r"the data, $c = 1/2$ and rate = $1/\alpha$, which takes both limits at once",
    seconds=3,
)
