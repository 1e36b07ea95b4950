"""Odd calls of every solver besides `interpolate` and `max_margin`, each with its own judge.

A call of this file knows how to run itself and how its answer is judged (answers.py). Data are as
odd as those of odd_problems, and as small as judges in fractions need.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import answers
import penchant
from answers import Verdict
from odd_problems import labels, log_alpha, rows, scaled, targets


@dataclasses.dataclass(frozen=True)
class Call:
    """One call, what its data are made of, and how its answer and its refusal are judged."""

    verb: str
    kind: str  # of the data
    run: Callable[[], Any]
    verdict: Callable[[Any], Verdict]
    unfit: Callable[[], bool] = lambda: False  # whether a ValueError is right
    seed: int = 0
    stream: int = 0

    def __str__(self) -> str:
        return f"{self.stream}/{self.seed}: {self.verb}, {self.kind}"


def draw(rng: np.random.Generator, seed: int, stream: int) -> Call:
    """The call of this number in a stream of random numbers."""
    names = list(SHARES)
    shares = np.array(list(SHARES.values()))
    make = names[int(rng.choice(len(names), p=shares / shares.sum()))]
    return dataclasses.replace(make(rng), seed=seed, stream=stream)


def design(rng, most_rows: int, most_columns: int, *, modest: bool = False) -> tuple[str, Any]:
    """(name, X); a modest one has units of no more than some decades, and no near equality."""
    samples, dimension = (int(rng.integers(1, most + 1)) for most in (most_rows, most_columns))
    name, X = rows(rng, samples, dimension)
    if modest and name == "nearly equal":
        name, X = "normal", rng.normal(size=X.shape)
    scale, X = spread(rng, X) if modest else scaled(rng, X, plain=False)
    return f"{name}, {scale}", X


def spread(rng, X: np.ndarray) -> tuple[str, np.ndarray]:
    """(name, design) in units that differ by some decades."""
    name = str(rng.choice(["plain", "float32", "columns", "rows", "all"]))
    if name == "columns":
        X = X * 10.0 ** rng.uniform(-2, 2, size=X.shape[1])
    elif name == "rows":
        X = X * 10.0 ** rng.uniform(-2, 2, size=(len(X), 1))
    elif name == "all":
        X = X * 10.0 ** rng.uniform(-30, 30)
    elif name == "float32":
        X = X.astype(np.float32)
    return name, X


def fitted(rng, X: np.ndarray, kind: str) -> tuple[str, np.ndarray, bool]:
    """(kind, y, whether some beta fits)."""
    name, y, solvable = targets(rng, X, ill="nearly" in kind)
    return f"{kind}, {name}", y, solvable


def saddles(rng) -> Call:
    kind, X = design(rng, 3, 4)
    if rng.random() < 0.3:
        kind, y = f"{kind}, any labels", rng.normal(size=len(X))
    else:
        kind, y, _ = fitted(rng, X, kind)
    depth = int(rng.choice([2, 3, 5]))
    return Call(
        "saddles",
        kind,
        lambda: penchant.solvers.saddles(X, y, depth=depth, throw=False),
        lambda answer: answers.of_saddles(X, y, answer),
    )


def slow_flow(rng) -> Call:
    kind, X = design(rng, 3, 4)
    start = (
        rng.integers(-2, 3, size=X.shape[1]) if rng.random() < 0.3 else rng.normal(size=X.shape[1])
    )
    start = start * 10.0 ** (rng.uniform(-100, 100) if rng.random() < 0.2 else 0.0)
    return Call(
        "slow_flow",
        kind,
        lambda: penchant.solvers.slow_flow(X, start, throw=False),
        lambda answer: answers.of_slow_flow(X, start, answer),
    )


def matrix_slow_flow(rng) -> Call:
    shape = tuple(int(n) for n in rng.integers(1, 3, size=2))
    _, X = rows(rng, int(rng.integers(1, 3)), shape[0] * shape[1])
    X = X * 10.0 ** rng.uniform(-8, 8, size=(len(X), 1))
    start = rng.normal(size=shape)
    rate = float(rng.choice([0.02, 0.05]))
    return Call(
        "slow_flow of a matrix",
        f"{shape}, rate {rate}",
        lambda: penchant.solvers.slow_flow(X, start, learning_rate=rate, throw=False),
        lambda answer: answers.of_nuclear_flow(X, start, rate, answer),
    )


def interpolate_path(rng) -> Call:
    kind, X = design(rng, 3, 6)
    kind, y, solvable = fitted(rng, X, kind)
    depth, scales = int(rng.choice([2, 3, 5])), [log_alpha(rng) for _ in range(3)]
    return Call(
        "interpolate_path",
        f"{kind}, depth {depth}, {scales}",
        lambda: penchant.solvers.interpolate_path(
            X, y, depth, log_alphas=scales, measure=lambda s: s
        ),
        lambda answer: answers.of_interpolations(X, y, depth, scales, answer, solvable),
        lambda: not solvable,
    )


def max_margin_path(rng) -> Call:
    kind, X = design(rng, 4, 5)
    y, _ = labels(rng, X)
    depth, mus = int(rng.choice([2, 3, 5])), 10.0 ** rng.uniform(-6, 3, size=3)
    return Call(
        "max_margin_path",
        f"{kind}, depth {depth}, {mus}",
        lambda: penchant.solvers.max_margin_path(X, y, depth, mus=mus, throw=False),
        lambda answer: answers.of_margins(X, y, depth, mus, answer),
        lambda: not answers.separable(X, y),
    )


def ratchet_path(rng) -> Call:
    kind, X = design(rng, 4, 4)
    y, _ = labels(rng, X)
    depth, mus = int(rng.choice([2, 3, 5])), 10.0 ** rng.uniform(-4, 3, size=2)
    return Call(
        "ratchet_path",
        f"{kind}, depth {depth}, {mus}",
        lambda: penchant.solvers.ratchet_path(X, y, depth, mus=mus, throw=False),
        lambda answer: answers.of_ratchet(X, y, depth, answer),
        lambda: not answers.separable(X, y),
    )


def matrix_saddles(rng) -> Call:
    side = int(rng.integers(2, 4))
    how = str(rng.choice(["whole", "commuting", "any"]))
    if how == "whole":
        matrix = rng.normal(size=(side, int(rng.integers(1, 4))))
        shape, count = matrix.shape, matrix.size
        problem = penchant.problems.Sensing(np.eye(count).reshape(count, *shape), matrix.ravel())
        known: Any = matrix
    elif how == "commuting":
        X, y = rng.normal(size=(int(rng.integers(1, side + 1)), side)), None
        y = X @ rng.normal(size=side)
        basis = np.linalg.qr(rng.normal(size=(side, side)))[0]
        problem = penchant.problems.Sensing(np.array([(basis * row) @ basis.T for row in X]), y)
        known = (X, y, basis)
    else:
        A = rng.normal(size=(int(rng.integers(1, side * side)), side, side))
        A = A * 10.0 ** rng.uniform(-1.5, 1.5, size=(len(A), 1, 1))
        problem = penchant.problems.Sensing(A, A.reshape(len(A), -1) @ rng.normal(size=side * side))
        known = None
    return Call(
        "saddles of a matrix",
        f"{how}, {problem.samples} of {problem.shape}",
        lambda: penchant.solvers.saddles(problem, throw=False),
        lambda answer: answers.of_greedy_rank(problem, known, answer),
    )


def stationary_points(rng) -> Call:
    kind, X = design(rng, 3, 4, modest=True)
    y, _ = labels(rng, X)
    norm = penchant.regularizers.Lp(float(rng.choice([0.3, 0.5, 0.8])))
    return Call(
        "stationary_points",
        f"{kind}, {norm}",
        lambda: penchant.solvers.stationary_points(X, y, norm, starts=4),
        lambda answer: answers.of_local_points(X, y, norm.p, answer),
        lambda: not answers.separable(X, y),
    )


def machine(rng, labelled: bool) -> Call:
    kind, X = design(rng, 4, 6)
    depth, scale = (
        int(rng.choice([2, 3, 5])),
        float(rng.choice([rng.uniform(-5, 3), -300.0, 200.0])),
    )
    route = str(rng.choice(["auto", "features", "kernel"]))
    net = penchant.DiagonalNet(depth, log_alpha=scale)
    kind = f"{kind}, depth {depth}, log_alpha {scale:.3g}, {route}"
    if labelled:
        y, _ = labels(rng, X)
        return Call(
            "kernel_machine of labels",
            kind,
            lambda: penchant.measures.kernel_machine(
                net, penchant.Classification(X, y), route=route, throw=False
            ),
            lambda answer: answers.of_kernel_svm(X, y, answer),
            lambda: not answers.clearly_separable(X, y),
        )
    kind, y, _ = fitted(rng, X, kind)
    return Call(
        "kernel_machine of targets",
        kind,
        lambda: penchant.measures.kernel_machine(
            net, penchant.Regression(X, y), route=route, throw=False
        ),
        lambda answer: answers.of_kernel_interpolant(X, y, answer),
    )


def labelled_machine(rng) -> Call:
    return machine(rng, labelled=True)


def fitted_machine(rng) -> Call:
    return machine(rng, labelled=False)


def norm_margin(rng) -> Call:
    shape = tuple(int(n) for n in rng.integers(1, 4, size=2))
    samples = int(rng.integers(1, 5))
    name, X = rows(rng, samples, shape[0] * shape[1])
    scale, X = scaled(rng, X, plain=True)
    y, _ = labels(rng, X)
    norm: Any = (
        penchant.regularizers.Linf(),
        penchant.regularizers.Nuclear(shape),
        penchant.regularizers.Spectral(shape),
    )[int(rng.integers(3))]
    return Call(
        f"max_margin {type(norm).__name__}",
        f"{name}, {scale}, {norm}",
        lambda: penchant.max_margin(X, y, norm, throw=False),
        lambda answer: answers.of_norm_margin(X, y, norm, answer),
        lambda: not answers.clearly_separable(X, y),
    )


def separation(rng) -> Call:
    kind, X = design(rng, 4, 5)
    y, _ = labels(rng, X)
    return Call(
        "separation",
        kind,
        lambda: penchant.solvers.separation(X, y),
        lambda answer: answers.of_separation(X, y, answer),
        lambda: bool(np.abs(X).max(axis=1).min() < 1e-300),
    )


def flow_data(rng) -> tuple[str, np.ndarray, np.ndarray]:
    """(kind, X, y) that some predictor fits, with few rows, in ordinary units."""
    kind, X = rows(rng, int(rng.integers(1, 4)), int(rng.integers(1, 6)))
    if kind == "nearly equal":
        kind, X = "normal", rng.normal(size=X.shape)
    return kind, X, X @ rng.integers(-2, 3, size=X.shape[1])


def vector_flow(rng) -> Call:
    kind, X, y = flow_data(rng)
    flow: Any = penchant.DualFlow() if rng.random() < 0.5 else penchant.ParameterFlow()
    depth, scale = int(rng.choice([2, 2, 3])), float(rng.uniform(-4, 1))
    q, net = penchant.Q(depth, log_alpha=scale), penchant.DiagonalNet(depth, log_alpha=scale)
    return Call(
        type(flow).__name__,
        f"{kind}, {q}",
        lambda: penchant.train(net, penchant.Regression(X, y), flow),
        lambda answer: answers.of_flow(X, y, q, answer.outcome, answer.predictor),
        lambda: not y.any(),
    )


def matrix_flow(rng) -> Call:
    """Measurements that commute: the eigenvalues train like a diagonal net."""
    kind, X, y = flow_data(rng)
    alpha, side = float(np.exp(rng.uniform(-3, 1))), X.shape[1]
    basis = np.linalg.qr(rng.normal(size=(side, side)))[0]
    problem = penchant.problems.Sensing(np.array([(basis * row) @ basis.T for row in X]), y)
    model = penchant.models.DifferenceFactorization(alpha=alpha)

    def spectrum(path: Any) -> np.ndarray:
        matrix = path.predictor.reshape(side, side)
        return np.asarray(np.einsum("ij,ik,kj->j", basis, matrix, basis))

    return Call(
        "MatrixFlow",
        f"{kind}, alpha {alpha:.3g}",
        lambda: penchant.train(model, problem, penchant.methods.MatrixFlow()),
        lambda path: answers.of_flow(
            X, y, penchant.Q(2, log_alpha=math.log(alpha)), path.outcome, spectrum(path)
        ),
        lambda: not y.any(),
    )


# of all calls of this file; flows and local points take longest
SHARES: dict[Callable[[Any], Call], float] = {
    saddles: 0.2,
    slow_flow: 0.16,
    interpolate_path: 0.1,
    fitted_machine: 0.1,
    labelled_machine: 0.1,
    norm_margin: 0.1,
    max_margin_path: 0.06,
    separation: 0.05,
    ratchet_path: 0.04,
    stationary_points: 0.03,
    matrix_saddles: 0.025,
    matrix_slow_flow: 0.01,
    vector_flow: 0.015,
    matrix_flow: 0.01,
}
