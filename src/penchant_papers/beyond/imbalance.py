"""Unequal layers at the start: what training conserves, and the regularizer that follows."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import minimize

from penchant import Factorization, ParameterFlow, Q, Regression, derive, interpolate, train
from penchant.lab import Array, Dataset, Evidence, Experiment, Figure, at_least, sized, within
from penchant.measures import kernel_distance
from penchant.methods import MatrixFlow
from penchant.models import ProductNet
from penchant.plotting import CYCLE, sheet_of
from penchant.problems import Sensing
from penchant.record import LogSpaced
from penchant.regularizers import Regularizer
from penchant.stop import Interpolated
from penchant_papers.beyond import OWN_RUNS

SMALL = 0.3  # the size of the smaller layer


def sizes(imbalance: float) -> tuple[float, float]:
    """(a, b) with a^2 - b^2 = imbalance, the smaller of them being SMALL."""
    a, b = (math.sqrt(SMALL**2 + max(extra, 0.0)) for extra in (imbalance, -imbalance))
    return a, b


def far(beta: Array, end: Array) -> float:
    return float(np.linalg.norm(beta - end) / np.linalg.norm(end))


def least_potential(X: Array, y: Array, delta: float, tilt: Array) -> Array:
    """The argmin of Psi(beta) - <tilt, beta> under X beta = y, by a general solver.

    Psi = (k - 2 delta) sqrt(k + delta)/3 with k^2 = delta^2 + 4 |beta|^2, whose gradient is
    2 beta / sqrt(k + delta).
    """
    fit, free = np.linalg.lstsq(X, y)[0], null_space(X)

    def objective(z: Array) -> tuple[float, Array]:
        beta = fit + free @ z
        k = math.hypot(delta, 2 * float(np.linalg.norm(beta)))
        root = math.sqrt(k + delta)
        slope = free.T @ (2 * beta / root - tilt)
        return (k - 2 * delta) * root / 3 - float(tilt @ beta), slope

    start = np.zeros(free.shape[1])
    minimum = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-11})
    return np.asarray(fit + free @ minimum.x)


def neuron(imbalance: float, seed: int, *, samples: int, dimension: int) -> dict[str, Any]:
    """f(x) = a <w, x>: conserved delta = a^2 - |w|^2, the end, and how far its kernel turns."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((samples, dimension)), rng.standard_normal(samples)
    direction = rng.standard_normal(dimension)
    X, direction = X / math.sqrt(dimension), direction / np.linalg.norm(direction)
    if seed % 2:  # every other start points away from the data, so that a small a changes its sign
        direction = -np.sign(direction @ X.T @ y) * direction
    a, size = sizes(imbalance)
    w = size * direction
    model, stop = Factorization(factors=([[a]], w[:, None])), Interpolated(1e-16)
    flow, problem = MatrixFlow(rtol=1e-9), Sensing(X[:, None, :], y)
    path = train(model, problem, flow, stop=stop, record=LogSpaced(10))
    last, *turned = np.ravel(path.parameters)
    betas = path.dataset.predictor.values[:, 0]
    end, sign = betas[-1], np.sign(last)
    # (a^2 + |w|^2)^2 - 4 |beta|^2 = delta^2, with what a path records
    sums = path.dataset.parameter_norm.values**2
    lost = np.abs(sums**2 - 4 * (betas**2).sum(axis=1) - imbalance**2).max() / sums.max() ** 2

    def kernel(a: float, w: Array) -> Array:
        return a**2 * X @ X.T + np.outer(X @ w, X @ w)

    def predicted(delta: float, sign: float) -> float:
        scale = math.sqrt(math.hypot(delta, 2 * a * size) - delta)
        return far(least_potential(X, y, delta, sign * scale * direction), end)

    return {
        "lost": float(lost),
        "grown": float(np.abs(sums / sums[0] - 1).max()),
        "to_potential": predicted(imbalance, sign),
        "to_unturned": predicted(imbalance, 1.0),
        "to_balanced": predicted(0.0, 1.0),
        "flipped": float(sign < 0),
        "distance": kernel_distance(kernel(a, w), kernel(last, np.array(turned))),
    }


def diagonal(imbalance: float, seed: int, *, samples: int, dimension: int) -> dict[str, Any]:
    """beta = u v with u^2 - v^2 = imbalance in every coordinate: the end by `derive` and by Q."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, dimension)) / math.sqrt(dimension)
    truth = np.abs(rng.standard_normal(dimension)) * (rng.random(dimension) < 0.5)
    y, (u, v) = X @ truth, sizes(imbalance)
    ones = np.ones(dimension)
    path = train(
        ProductNet(u * ones, v * ones),
        Regression(X, y),
        ParameterFlow(rtol=1e-9),
        stop=Interpolated(1e-18),
        record=LogSpaced(10),
    )
    first, second = np.split(path.dataset.parameters.values, 2, axis=1)
    # u v = w+^2 - w-^2 with w+ = (u + v)/2 and w- = (u - v)/2
    plus, minus = (u + v) / 2, abs(u - v) / 2
    alpha = math.sqrt(plus * minus)
    tilted = Q(2, alpha=alpha, tilt=math.log(plus / minus) * ones)
    return {
        "lost": float(np.abs(first**2 - second**2 - imbalance).max() / (first**2).max()),
        "to_derived": far(interpolate(X, y, derived(u, v)).beta, path.predictor),
        "to_q": far(interpolate(X, y, tilted).beta, path.predictor),
        "to_upright": far(interpolate(X, y, Q(2, alpha=alpha)).beta, path.predictor),
        "to_balanced": far(
            interpolate(X, y, derived(*[math.sqrt(u * v)] * 2)).beta, path.predictor
        ),
        "distance": kernel_distance(*(X * (first**2 + second**2)[k] @ X.T for k in (0, -1))),
    }


@functools.lru_cache(maxsize=16)
def derived(u: float, v: float) -> Regularizer:
    """The regularizer of u v from this start; its lines are followed once for all problems."""
    return derive(product, start=(u, v))


def product(u: Any, v: Any) -> Any:
    return u * v


study = sized(
    "beyond-imbalance",
    title=r"The imbalance of a neuron $a \langle w, x\rangle$ determines its endpoint, and its "
    "sign makes it lazy or rich",
    function=neuron,
    arguments={"samples": 3, "dimension": 6},
    grid={"imbalance": [-4.0, -1.0, 0.0, 1.0, 4.0]},
    seeds=8,
    labels={
        "imbalance": "imbalance: $a^2 - |w|^2$",
        "lost": "change of the imbalance in training, relative",
        "to_potential": "distance of the endpoint to the least potential",
        "to_unturned": "the same with the tilt of the start, even where a changes its sign",
        "to_balanced": "the same for balanced layers",
        "distance": "kernel distance from start to end",
    },
    draw={"x": "imbalance", "colour": "distance"},
    tiny={"grid": {"imbalance": [-4.0, 0.0, 4.0]}},
    printed={"seeds": 100},
)
products = sized(
    "beyond-imbalance-diagonal",
    title=r"The same for each coordinate: $\beta = u v$ from unequal $u$ and $v$",
    function=diagonal,
    arguments={"samples": 4, "dimension": 8},
    grid={"imbalance": [-2.0, 2.0]},
    seeds=3,
    labels={
        "imbalance": "imbalance: $u^2 - v^2$",
        "to_derived": "distance of the endpoint to the least derived regularizer",
        "to_q": r"the same for $Q$ with the scale $\sqrt{|\delta|}/2$ and a tilt",
        "to_upright": "the same without the tilt",
        "to_balanced": "the same for balanced layers",
        "distance": "kernel distance from start to end",
    },
    draw={"x": "imbalance", "colour": "to_balanced"},
    tiny={"seeds": 1},
    printed={"grid": {"imbalance": [-2.0, -0.5, 0.5, 2.0]}, "seeds": 20},
)


def check(dataset: Dataset, products: Dataset) -> Evidence:
    """What is conserved, both ends, and the kernel; balanced layers as the control."""
    uneven = dataset.where(dataset.imbalance != 0, drop=True)
    first, last = (dataset.distance.isel(imbalance=k) for k in (0, -1))
    medians = dataset.distance.median("seed").values
    flipped = uneven.to_unturned.where(uneven.flipped == 1)
    conserved = within(max(float(dataset.lost.max()), float(products.lost.max())), tolerance=1e-7)
    end = within(dataset.to_potential.max(), tolerance=1e-6)
    derived = within(products.to_derived.max(), tolerance=1e-6)
    closed = within(products.to_q.max(), tolerance=1e-6)
    pair = [products.distance.isel(imbalance=k).median() for k in (0, -1)]
    mirrored = float(pair[0] / pair[1])
    lazy = at_least(first.median() / last.median(), 10.0)
    return Evidence(
        ran=rf"{dataset.lost.size} runs of a neuron $a \langle w, x\rangle$ (3 samples of 6 "
        f"features) and {products.lost.size} of $u v$ (4 of 8), by exact flow from unequal "
        "layers",
        premises={
            "in some runs a changes its sign": (bool(uneven.flipped.any()), ""),
        },
        checks={
            "largest relative change of $a^2 - |w|^2$, or of $u^2 - v^2$, in training": conserved,
            "one neuron: largest relative distance of an endpoint to the least potential, tilted by"
            " the final sign of a": end,
            "diagonal net: largest distance of an endpoint to the least derived"
            " regularizer": derived,
            r"the same to the least $Q$ of scale $\sqrt{|\delta|}/2$ with a tilt": closed,
            "median kernel distance at the most negative imbalance over that"
            " at the most positive": lazy,
        },
        controls={
            "the sizes of both layers are conserved": conserved.control(dataset.grown.min()),
            "the potential of balanced layers": end.control(uneven.to_balanced.min()),
            "the tilt of the start where a changes its sign": end.control(flipped.min()),
            "the derived regularizer of balanced layers": derived.control(
                products.to_balanced.min()
            ),
            "$Q$ without the tilt": closed.control(products.to_upright.min()),
            r"the same for $u v$, where only the size of $\delta$ matters": lazy.control(mirrored),
        },
        findings=[
            f"in {int(uneven.flipped.sum())} of {uneven.flipped.size} unbalanced runs a changes "
            r"its sign, $\beta$ passes through zero, and the tilt of the start is reversed; "
            "with the tilt of the start the prediction misses the endpoint by "
            f"{float(flipped.min()):.0%} to {float(flipped.max()):.0%} (ours)",
            "median kernel distances from start to end: "
            + ", ".join(
                f"{distance:.2g} at {delta:g}"
                for delta, distance in zip(dataset.imbalance.values, medians, strict=True)
            ),
        ],
    )


def draw(dataset: Dataset, products: Dataset) -> Figure:
    """Distances of the ends to three predictions, and the kernel distance, over the imbalance."""
    picture, (a, b) = sheet_of(dataset, widths=(6.0, 6.0), height=4.8)
    names = {
        "to_potential": "least potential",
        "to_unturned": "tilted as at the start",
        "to_balanced": "potential of balanced layers",
    }
    rows = dataset.transpose("imbalance", "seed")
    places = np.repeat(rows.imbalance.values, rows.sizes["seed"])
    for colour, marker, shift, (name, label) in zip(
        CYCLE, "os^", (0.0, -0.15, 0.15), names.items(), strict=False
    ):
        heights = np.maximum(rows[name].values.ravel(), 1e-12)
        a.plot(places + shift, heights, marker, color=colour, label=label)
    b.plot(places, rows.distance.values.ravel(), "o", color=CYCLE[0], label="one run")
    b.plot(rows.imbalance, rows.distance.median("seed"), "-", color=CYCLE[0], label="median")
    label = r"imbalance $\delta = a^2 - |w|^2$"
    a.set(
        yscale="log",
        xlabel=label,
        ylabel="relative distance of the endpoint",
        title="where a neuron ends",
    )
    a.legend(loc="center right", title="distance to the")
    b.set(
        yscale="log",
        xlabel=label,
        ylabel="kernel distance from start to end",
        title="a large second layer is lazy, a large first one is not",
    )
    b.legend()
    return picture


experiment = Experiment(
    "beyond-imbalance",
    statement=r"A neuron $a \langle w, x\rangle$ conserves $\delta = a^2 - |w|^2$ and ends at the "
    "least potential Psi_delta, tilted along its start, or against it where a changes its "
    r"sign; $\beta = u v$ conserves $u^2 - v^2$ and ends at the least $Q$ of scale "
    r"$\sqrt{|\delta|}/2$ with a tilt. Large positive $\delta$ makes the neuron lazy, large "
    r"negative $\delta$ does not.",
    place="Kunin et al. 2024 (arXiv 2406.06158) and Azulay et al. 2021 (arXiv 2102.09769); the"
    " change of sign: ours",
    study=(study, products),
    check=check,
    draw=draw,
    title="The imbalance of layers is conserved and determines the endpoint and the kernel regime",
    ours="the data, the sizes and the imbalances",
    scope=OWN_RUNS,
    seconds=4,
)
