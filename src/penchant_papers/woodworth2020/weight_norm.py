"""What a small weight norm selects at depth D, explicitly and on labels: |beta|_(2/D), not l1."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from penchant import L1, L2, Classification, DiagonalNet, ParameterFlow, max_margin, train
from penchant.lab import (
    DRAWS,
    Array,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_least,
    share_at_least,
    sized,
    within,
)
from penchant.measures import angle
from penchant.problems import separable_points
from penchant.regularizers import Lp
from penchant.solvers import stationary_points
from penchant.stop import LogLoss

ALPHA, FAR = 0.3, 1e8  # the start, and log(1 / loss) at the end of training
NEAR = 1.0  # degrees
DEPTH = 3  # of the nets on labels


def vertices(X: Array, y: Array) -> Iterator[Array]:
    """The interpolating predictors with as many entries as samples, where |beta|_p is least."""
    n, d = X.shape
    for support in map(list, itertools.combinations(range(d), n)):
        beta = np.zeros(d)
        beta[support] = np.linalg.solve(X[:, support], y)
        yield beta


def lightest(X: Array, y: Array, depth: int, rng: np.random.Generator) -> Array:
    """The interpolating parameters (w+, w-) of least |w|_2, by searches in the parameters.

    There are four for every set of as many inputs as samples, from larger weights there.
    """
    from scipy.optimize import minimize

    d = X.shape[1]

    def misfit(w: Array) -> Array:
        return X @ (w[:d] ** depth - w[d:] ** depth) - y

    def slope(w: Array) -> Array:
        return depth * np.hstack([X * w[:d] ** (depth - 1), -X * w[d:] ** (depth - 1)])

    def begin(support: tuple[int, ...]) -> Array:
        w = np.full((2, d), 0.05)
        w[:, support] = 10 ** rng.uniform(-0.5, 0.7, (2, len(support)))
        return w.ravel()

    ends = [
        minimize(
            lambda w: w @ w,
            begin(support),
            jac=lambda w: 2 * w,
            constraints={"type": "eq", "fun": misfit, "jac": slope},
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-14},
        ).x
        for support in itertools.combinations(range(d), len(y))
        for _ in range(4)
    ]
    fitting = [w for w in ends if np.abs(misfit(w)).max() < 1e-8]
    return min(fitting, key=lambda w: float(w @ w), default=np.full(2 * d, np.nan))


def cell(depth: int, instance: int, seed: int) -> dict[str, float]:
    """The least |w|^2 that interpolates over the least |beta|_p^p, p = 2/D; and that of l1."""
    rng = np.random.default_rng((DRAWS * seed + instance, depth))
    X, y, p = rng.normal(size=(2, 4)), rng.normal(size=2), 2 / depth
    w, candidates = lightest(X, y, depth, rng), list(vertices(X, y))
    sizes = [float(np.sum(np.abs(b) ** p)) for b in candidates]
    l1 = int(np.argmin([np.abs(b).sum() for b in candidates]))
    return {
        "excess": float(w @ w) / min(sizes) - 1,
        "l1_excess": sizes[l1] / min(sizes) - 1,
        "apart": float(
            np.abs(w[:4] ** depth - w[4:] ** depth - candidates[np.argmin(sizes)]).max()
        ),
    }


def on_labels(instance: int, seed: int) -> dict[str, float]:
    """Degrees from the end of training with the logistic loss to what a norm selects."""
    points = separable_points(3, 5, margin=0.3, seed=DRAWS * seed + instance)
    problem = Classification(points.X, points.y, loss="logistic")
    net, stop = DiagonalNet(DEPTH, alpha=ALPHA), LogLoss(-FAR)
    beta = train(net, problem, ParameterFlow(rtol=1e-6), stop=stop, throw=True).predictor
    local = stationary_points(points.X, points.y, Lp(2 / DEPTH), starts=20)
    away = [float(angle(beta, point.beta)) for point in local]
    norms = {name: max_margin(points.X, points.y, r()).beta for name, r in (("l1", L1), ("l2", L2))}
    return {
        "to_local": min(away),
        "to_best": away[0],
        **{f"to_{name}": float(angle(beta, end)) for name, end in norms.items()},
    }


study = sized(
    "W-norm",
    title=r"The least weights that interpolate have the least $|\beta|_{2/D}$",
    function=cell,
    arguments={"seed": 0},
    grid={"depth": [3, 4], "instance": list(range(20))},
    tiny={"grid": {"instance": list(range(4))}},
    printed={"grid": {"instance": list(range(100))}},
)
labels = sized(
    "W-norm-labels",
    title="With the logistic loss a deep net ends at a local minimum of the same norm",
    function=on_labels,
    arguments={"seed": 0},
    grid={"instance": list(range(20))},
    printed={"grid": {"instance": list(range(100))}},
)


def check(dataset: Dataset, labels: Dataset) -> Evidence:
    """The norm that small weights select, and that on which training on labels ends."""
    n = labels.sizes["instance"]
    hits = {
        name: int((labels[f"to_{name}"] < NEAR).sum()) for name in ("local", "best", "l1", "l2")
    }
    explicit = within(dataset.excess.max(), tolerance=1e-6)
    local = share_at_least(hits["local"], n, 0.5)
    worst = int(labels.to_best.values.argmax())
    shared = {
        r"least $|w|_2^2$ that interpolates over the least $|\beta|_{2/D}^{2/D}$, minus 1, at "
        "worst": explicit,
        r"largest difference of the two predictors": within(dataset.apart.max(), tolerance=1e-5),
    }
    return Evidence(
        ran=rf"{dataset.excess.size} Gaussian problems $(N = 2, d = 4)$ at depths "
        rf"{dataset.depth.values.tolist()}: $|w|_2$ minimised over the parameters that "
        r"interpolate, from 24 starts each, and $|\beta|_{2/D}$ over all vertices; "
        f"{n} "
        rf"sets of three separable points in five dimensions, depth {DEPTH}, $\alpha = {ALPHA}$, "
        r"logistic loss trained in the parameters to $e^{-10^8}$",
        checks={
            **shared,
            rf"logistic: share that ends within {NEAR:g} degree of the least "
            r"$|\beta|_{2/3}$": at_least(hits["best"] / n, 1.0),
        },
        corrected={
            **{f"{name}, once more": one for name, one in shared.items()},
            rf"logistic: share that ends within {NEAR:g} degree of a local minimum of "
            r"$|\beta|_{2/3}$ (0.999 lower limit)": local,
        },
        correction=r"the logistic loss leads to a stationary point of $|\beta|_{2/D}$ subject to "
        "margins, which need not be its minimum; the minimum of the weight norm itself is that of "
        r"$|\beta|_{2/D}$, as printed",
        counterexample={
            "degrees from the end of one net to the least, to the nearest local minimum": [
                float(labels.to_best[worst]),
                float(labels.to_local[worst]),
            ]
        },
        controls={
            r"the $\ell_1$ solution has the least $|\beta|_{2/D}$": explicit.control(
                dataset.l1_excess.max()
            ),
            r"logistic: the share at the $\ell_2$ max margin": local.control(hits["l2"] / n),
        },
        findings=[
            rf"{hits['best']} of {n} nets end at the least $|\beta|_{{2/3}}$, {hits['local']} at a "
            rf"local minimum and {hits['l1']} at the $\ell_1$ max margin, which is one in some sets"
        ],
        plots=[
            Plot(
                "logistic loss at depth 3: where training ends",
                r"set of points, in the order of the distance to $\ell_1$",
                "angle (degrees), at least 0.001",
                [
                    Series(
                        name, np.arange(1, n + 1), np.maximum(labels[key][order], 1e-3), "points"
                    )
                    for order in [np.argsort(labels.to_l1.values)]
                    for name, key in (
                        (r"to a local minimum of $|\beta|_{2/3}$", "to_local"),
                        (r"to the least $|\beta|_{2/3}$", "to_best"),
                        (r"to the $\ell_1$ max margin (control)", "to_l1"),
                    )
                ],
                y_scale="log",
            )
        ],
    )


experiment = Experiment(
    "W-norm",
    statement=r"Regularizing $|w|_2$ is the same as regularizing $|\beta|_{2/D}$, and with the "
    r"logistic loss training of a deep net leads to $|\beta|_{2/D}$ again, where the squared loss "
    r"leads to $\ell_1$.",
    place="section 5, below Theorem 3",
    study=(study, labels),
    check=check,
    title=r"Small weights select $|\beta|_{2/D}$; on labels training ends at its local minima",
    ours=r"the problems, $D$, $\alpha$ and the loss at which training ends",
    seconds=8,
)
