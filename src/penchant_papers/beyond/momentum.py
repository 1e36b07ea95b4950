"""Momentum: the one number on which the end of a run depends, and its effective scale and tilt."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from penchant import GradientDescent, Path, Q, Regression, Steps, train
from penchant.lab import Array, Dataset, Evidence, Experiment, Figure, exponents, sized, within
from penchant.plotting import BLACK, CYCLE, sheet_of
from penchant.problems import sparse_regression
from penchant_papers.beyond import OWN_RUNS
from penchant_papers.beyond.clock import TARGETS, far, net
from penchant_papers.beyond.step_sums import (
    GradientSums,
    RatioSums,
    momentum_regularizer,
    summed_regularizer,
)
from penchant_papers.instances import furthest

FIRST = 0.8  # the momentum at which all three laws begin with nearly one learning rate
LAWS: dict[str, Callable[[float, float], float]] = {  # (inertia, momentum) -> learning rate
    "ours": lambda inertia, m: 2 * inertia * (1 - m) ** 2 / (1 + m),
    "Papazov": lambda inertia, m: inertia * (1 - m) ** 2,
    "rate": lambda inertia, m: 2 * inertia * (1 - FIRST) / (1 + FIRST) * (1 - m),
}
NAMES = {
    "ours": r"equal $\gamma(1+m)/(2(1-m)^2)$",
    "Papazov": r"equal $\gamma/(1-m)^2$",
    "rate": r"equal $\gamma/(1-m)$",
}


@functools.lru_cache(maxsize=32)
def momentum_flow(
    problem: Regression, alpha: float, inertia: float, time: float
) -> Callable[[Any], Array]:
    """beta(t) of inertia w'' + w' = -grad L(w) from rest at w+ = w- = alpha."""
    model = net(alpha)

    def fall(_: float, state: Array) -> Array:
        w, velocity = np.split(state, 2)
        pull = model.pullback(w, problem.X, 2 * (problem.X @ model.predictor(w) - problem.y))
        return np.concatenate([velocity, -(pull + velocity) / inertia])

    start = model.start(problem.dimension)
    begin = np.concatenate([start, np.zeros_like(start)])
    solution = solve_ivp(
        fall, (0, 1.1 * time), begin, "DOP853", rtol=1e-10, atol=1e-12, dense_output=True
    )
    return lambda t: model.predictor(solution.sol(t)[: len(start)])


@functools.lru_cache(maxsize=8)
def problem(samples: int, dimension: int, seed: int) -> Regression:
    return sparse_regression(samples, dimension, sparsity=2, noise=0.1, seed=seed)


def cell(
    law: str,
    inertia: float,
    momentum: float,
    seed: int,
    *,
    alpha: float,
    samples: int,
    dimension: int,
    time: float,
) -> dict[str, Any]:
    """Distances of one run to the momentum flow, and of its end to the least Q of four kinds."""
    data = problem(samples, dimension, seed)
    rate = LAWS[law](inertia, momentum)
    step = rate / (1 - momentum)  # the time of the flow that a step takes
    method = GradientSums(
        RatioSums(GradientDescent(rate, momentum=momentum)), longer=1 / (1 - momentum)
    )
    stop = Steps(round(time / step))
    path = train(net(alpha), data, method, stop=stop)
    end = path.predictor
    flow, size = momentum_flow(data, alpha, inertia, time), float(np.linalg.norm(end))
    # velocities belong to half steps: the run starts from rest half a step before its first step
    predicted = [flow(float(t)) for t in (path.dataset.step.values + 0.5) * step]
    return {
        "end": float(np.linalg.norm(end - flow(time)) / size),
        "along": float(np.linalg.norm(path.dataset.predictor - predicted, axis=1).max() / size),
        **selected(data, path, alpha, momentum),
    }


def selected(problem: Regression, path: Path, alpha: float, momentum: float) -> dict[str, float]:
    """Distances of an end to the least Q of four kinds."""
    q, plain = momentum_regularizer(path, alpha, momentum), summed_regularizer(path, alpha)
    kinds = {
        "to_formula": q,
        "to_plain": plain,
        "to_scale": Q(2, alpha=1.0, shape=q.shape),
        "to_start": Q(2, alpha=alpha),
    }
    return {name: far(problem, path.predictor, kind) for name, kind in kinds.items()}


study = sized(
    "beyond-momentum",
    title=r"Momentum changes the endpoint through one number, learning $\mathrm{rate}\,(1 + m)/(2 "
    "(1 - m)^2)$",
    function=cell,
    arguments={"alpha": 0.1, "samples": 8, "dimension": 20, "time": 20.0},
    grid={"law": list(LAWS), "inertia": [0.04, 0.08, 0.16], "momentum": [0.95, 0.975]},
    seeds=3,
    labels={
        "law": "quantity held fixed as momentum grows",
        "inertia": "inertia of the flow",
        "end": "distance of the endpoint to that of the momentum flow",
        "along": "largest distance of the path to the momentum flow",
        "to_formula": "distance of the endpoint to the minimiser of $Q$ with scale and tilt by "
        "sums over its steps",
        "to_plain": r"the same with the sums of plain steps of rate $\gamma/(1 - m)$",
        "to_scale": "the same without the tilt",
        "to_start": "the same with the scale of the start",
    },
    draw={"x": "momentum", "colour": "end", "log": True},
    tiny={"grid": {"inertia": [0.02, 0.25]}, "seeds": 3, "arguments": {"time": 15.0}},
    printed={
        "seeds": 20,
        "arguments": {"time": 30.0},
        "grid": {"inertia": [0.02, 0.07, 0.25], "momentum": [0.8, 0.9, 0.95, 0.98]},
    },
)


def orders(dataset: Dataset, name: str, law: str) -> Array:
    """The power of 1 - m that an error follows, for every inertia: the median over problems."""
    rows = dataset[name].sel(law=law).transpose("inertia", "seed", "momentum").values
    rest = 1 - dataset.momentum.values
    return np.array([np.median(exponents(rest, table)) for table in rows])


def check(dataset: Dataset) -> Evidence:
    """The two sums to rounding; the order of the error of three laws of momentum."""
    exact = within(dataset.to_formula.max(), tolerance=1e-9)
    end, along = (orders(dataset, name, "ours") for name in ("end", "along"))
    papazov, rate = (orders(dataset, "along", law) for law in ("Papazov", "rate"))
    # the next term is of relative order 1 - m, at most 0.2, in an error that halves with 1 - m;
    # along the path it grows with the inertia, so that few problems need a large momentum
    second = within(furthest(end, 2), 2.0, 0.25)
    path = within(furthest(along, 2), 2.0, 0.25)
    first = within(furthest(papazov, 1), 1.0, 0.25)
    held = dataset.sel(law="ours").max(["momentum", "seed"])
    last = dataset.end.sel(law=list(LAWS)).isel(momentum=-1).mean("seed").transpose("law", ...)
    return Evidence(
        ran=f"{dataset.end.size} runs of SGD with heavy-ball momentum on all samples of "
        f"{dataset.sizes['seed']} sparse regressions with 8 samples of 20 features and noise, "
        r"depth 2 from $\alpha = 0.1$, compared with the integrated flow inertia $w'' + w' = "
        r"-\nabla L(w)$; powers are medians over the problems",
        checks={
            "largest relative distance of an endpoint to the minimiser of $Q$ with the scale and "
            "the tilt that the sums give": exact,
            r"equal $\mathrm{rate}\,(1 + m)/(2 (1 - m)^2)$: power of $1 - m$ in the distance of "
            "the endpoint to the flow's": second,
            "the same for the whole path": path,
            r"equal $\mathrm{rate}/(1 - m)^2$: that power for the path": first,
        },
        controls={
            r"the sums of plain steps of rate $\gamma/(1 - m)$": exact.control(
                dataset.to_plain.min()
            ),
            TARGETS["to_scale"]: exact.control(dataset.to_scale.min()),
            TARGETS["to_start"]: exact.control(dataset.to_start.min()),
            r"equal $\mathrm{rate}/(1 - m)^2$, which is of first order": second.control(
                furthest(orders(dataset, "end", "Papazov"), 2)
            ),
            r"the path at equal $\mathrm{rate}/(1 - m)^2$": path.control(furthest(papazov, 2)),
            r"equal $\mathrm{rate}/(1 - m)$, the effective learning rate": first.control(
                furthest(rate, 1)
            ),
        },
        findings=[
            f"inertia {inertia:g}: at momentum {dataset.momentum.values[-1]:g} ends with one "
            rf"value of $\mathrm{{rate}}\,(1 + m)/(2 (1 - m)^2)$ are {row['ours']:.2g} from "
            r"the flow's, with one value of $\mathrm{rate}/(1 - m)^2$ "
            rf"{row['Papazov']:.2g}, with one value of $\mathrm{{rate}}/(1 - m)$ "
            f"{row['rate']:.2g}; without the tilt (the perturbed start) the prediction misses "
            f"the endpoint by up to {float(held.to_scale.sel(inertia=inertia)):.1%}"
            for inertia in dataset.inertia.values
            for row in [dict(zip(LAWS, last.sel(inertia=inertia).values, strict=True))]
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """How three laws fail as momentum falls, and what is missed without the tilt."""
    picture, (a, b) = sheet_of(dataset, widths=(6.0, 6.0), height=4.8)
    rest, inertia = 1 - dataset.momentum.values, dataset.inertia.values
    shown = len(inertia) // 2
    for k, (law, label) in enumerate(NAMES.items()):
        rows = dataset.end.sel(law=law).isel(inertia=shown).mean("seed")
        a.plot(rest, rows, "o^s"[k] + "-", color=CYCLE[k], label=label)
    low = float(dataset.end.sel(law="ours").isel(inertia=shown).mean("seed")[-1])
    for power, style in ((1, ":"), (2, "--")):
        line = 0.6 * low * (rest / rest[-1]) ** power
        a.plot(rest, line, style, color=BLACK, linewidth=1.2, label=f"slope {power}")
    a.set(
        xscale="log",
        yscale="log",
        ylim=(low / 3, 300 * float(dataset.end.isel(inertia=shown).max())),
        xlabel="1 - momentum $m$",
        ylabel="relative distance of the endpoint to the flow's",
        title=f"same endpoint at another momentum? (inertia {inertia[shown]:g})",
    )
    a.set_xticks(rest, [f"{x:.2g}" for x in rest])
    a.minorticks_off()
    a.legend(loc="upper right")
    for k, (name, label) in enumerate(TARGETS.items()):
        rows = dataset[name].sel(law="ours").transpose("inertia", "momentum", "seed").values
        points = rows.reshape(len(inertia), -1)
        places = np.repeat(inertia, points.shape[1])
        b.plot(places, np.maximum(points.ravel(), 1e-17), "os^"[k], color=CYCLE[k], label=label)
    b.set(
        xscale="log",
        yscale="log",
        ylim=(1e-17, 30),
        xlabel=r"inertia $\gamma(1+m)/(2(1-m)^2)$",
        ylabel="relative distance of the endpoint to the least $Q$",
        title="what the endpoint minimises",
    )
    b.set_xticks(inertia, [f"{x:g}" for x in inertia])
    b.minorticks_off()
    b.legend(loc="center left")
    return picture


experiment = Experiment(
    "beyond-momentum",
    statement=r"Gradient descent with heavy-ball momentum $m$ and learning rate $\gamma$ on "
    r"$w_+^2 - w_-^2$ follows the flow inertia $w'' + w' = -\nabla L$ with inertia $\gamma (1 "
    r"+ m)/(2 (1 - m)^2)$ to second order in $1 - m$, and with inertia $\gamma/(1 - m)^2$ to "
    "first order. Its endpoint minimises $Q$ of an effective scale minus a tilt: with $f = "
    r"w_{k+1}/w_k$, $\log w$ loses $((f - 1 - \log f) + m (\log f - 1 + 1/f))/(1 - m)$ at "
    "every step, half the sum over $w_+$ and $w_-$ of which is lost by the log of the scale, "
    "and the difference is the tilt.",
    place=r"Papazov et al. 2024 (arXiv 2403.05293): $\gamma/(1 - m)^2$ and the perturbed start of "
    "the flow; the factor $1 + m$ is that of the modified loss of Ghosh et al. 2023 (arXiv "
    "2302.00849); the orders, and the exact form for steps: ours",
    study=study,
    check=check,
    draw=draw,
    ours="the data, momenta and training times",
    scope=OWN_RUNS,
    seconds=4,
)
