"""Section 6: the lifted matrix decides the dynamics and its scale; units that need not explode."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import L2, DiagonalNet, Factorization, ParameterFlow, interpolate, train
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    at_least,
    exponents,
    log_log,
    mean_within,
    sized,
    within,
)
from penchant.methods import MatrixFlow
from penchant.models import SymmetricFactorization, wide_factorization, wishart_root
from penchant.problems import MatrixProblem, Sensing, gaussian_sensing, sparse_regression
from penchant.record import At, LogSpaced
from penchant.stop import Time
from penchant_papers.woodworth2020.theorem_4 import apart, lifts, stacked, to_nearest

D = 3
H = 1e-3  # of the time differences
TIMES = [0.1 - H, 0.1, 0.1 + H, 0.4, 0.8]


def course(model: Factorization | SymmetricFactorization, problem: MatrixProblem) -> Array:
    """M at TIMES of gradient flow in the factors, after its start."""
    stop, record = Time(TIMES[-1]), At(times=TIMES)
    path = train(model, problem, MatrixFlow(rtol=1e-9), stop=stop, record=record)
    return np.asarray(path.dataset.predictor)


def gap(one: Array, other: Array) -> float:
    """The largest distance of two courses relative to how far the first one goes."""
    way = np.linalg.norm(one - one[0], axis=(1, 2)).max()
    return float(np.linalg.norm(one - other, axis=(1, 2)).max() / way)


def cell(seed: int) -> dict[str, float]:
    """Which starts of the same product, and of the same lifted matrix, move alike.

    `rule` and `rule_printed` are the relative errors of M' = -2 (G M + M G) and of G M + M G with
    the gradient G of the loss in M, for symmetric measurements.
    """
    rng = np.random.default_rng(seed)
    plain = gaussian_sensing(4, D, rank=1, seed=seed)
    X = plain.measurements + plain.measurements.transpose(0, 2, 1)
    problem = Sensing(X, rng.standard_normal(4))
    W, turn = 0.7 * rng.standard_normal((D, 5)), np.linalg.qr(rng.standard_normal((8, 8)))[0]
    one, turned = (SymmetricFactorization(factors=(V,)) for V in (W, W @ turn[:5]))
    M = course(one, problem)
    before, now, after = M[1:4]
    G = 2 * problem.adjoint(problem.apply(now) - problem.y)
    velocity, rule = (after - before) / (2 * H), G @ now + now @ G

    U, V = 0.7 * rng.standard_normal((2, D, 5))
    stretch = np.diag([2.0, 0.5, 1.0, 3.0, 1.0])
    product = course(Factorization(factors=(U, V)), plain)
    other = course(Factorization(factors=(U @ stretch, V @ np.linalg.inv(stretch))), plain)
    stack = np.concatenate([U, V])
    same = course(stacked(stack @ turn[:5], D), plain)
    whole = course(SymmetricFactorization(factors=(stack,)), Sensing(lifts(plain), plain.y))
    return {
        "symmetric": gap(M, course(turned, problem)),
        "product": gap(product, other),
        "lifted": gap(product, same),
        "block": gap(product, whole[:, :D, D:]),
        "rule": apart(velocity, -2 * rule),
        "rule_printed": apart(velocity, rule),
    }


def scales(width: int, seed: int) -> dict[str, float]:
    """Sizes of the blocks of the lifted matrix of factors with N(0, 1) entries, d = 5.

    `prediction` is the RMS of <U V^T, X> over 200 Gaussian X of unit Frobenius norm.
    """
    d, rng = 5, np.random.default_rng((seed, width))
    W = wishart_root(2 * d, width, rng)
    M, diagonal = W[:d] @ W[d:].T, np.diag(W @ W.T)
    X = rng.standard_normal((200, d, d))
    X /= np.linalg.norm(X, axis=(1, 2))[:, None, None]
    sigma = np.linalg.norm(M) / d
    return {
        "off_diagonal": float(np.sqrt(np.mean(M**2))),
        "diagonal": float(np.mean(diagonal)),
        "sigma": float(sigma),
        "prediction": float(np.sqrt(np.mean(np.einsum("nij,ij->n", X, M) ** 2)) / sigma),
    }


def wide(width: int, power: float, seed: int) -> dict[str, float]:
    """Outputs of units and of the model for i.i.d. factors with alpha = width^power.

    The units are u_ij and v_ij times an input of size one; their RMS is read off U U^T and V V^T.
    """
    problem = gaussian_sensing(4, D, rank=1, seed=seed)
    rng = np.random.default_rng((seed, width))
    model = wide_factorization(width, alpha=width**power, shape=(D, D), seed=rng)
    path = train(model, problem, MatrixFlow(), record=LogSpaced(2))
    start = model.start(problem.dimension)
    begin, final = (np.linalg.norm(w) / np.sqrt(2 * D * width) for w in (start, path.parameters))
    return {
        "units": float(max(begin, final)),
        "output": float(np.abs(problem.apply(model.matrix(start))).max()),
        "from_kernel": to_nearest(path.predictor, problem, model),
    }


def fixed(alpha: float, seed: int) -> dict[str, float]:
    """The same for the unbiased net of width 1, the diagonal net of section 4, at scale alpha."""
    problem = sparse_regression(4, 9, sparsity=2, seed=seed)
    net = DiagonalNet(2, alpha=alpha)
    path = train(net, problem, ParameterFlow(), record=LogSpaced(2))
    least = interpolate(problem, L2()).beta
    return {
        "units": float(np.sqrt(np.mean(np.asarray(path.parameters) ** 2))),
        "output": float(np.abs(problem.X @ path.predictor).max()),
        "from_kernel": float(np.linalg.norm(path.predictor - least) / np.linalg.norm(least)),
    }


def biased(alpha: float, seed: int) -> dict[str, float]:
    """The first output of U V^T of a fixed width, i.i.d. and not unbiased."""
    problem = gaussian_sensing(4, D, rank=1, seed=seed)
    model = Factorization(6, alpha=alpha, seed=seed)
    return {"output": float(np.abs(problem.apply(model.matrix(model.start(D * D)))).max())}


SEEDS: dict[str, Any] = {"seeds": 20, "tiny": {"seeds": 6}, "printed": {"seeds": 60}}
# of what is trained
FEW: dict[str, Any] = {"seeds": 6, "printed": {"seeds": 40}}
study = sized("W-LD", function=cell, **FEW)
blocks = sized(
    "W-LD-scales", function=scales, grid={"width": [10**2, 10**4, 10**6, 10**8]}, **SEEDS
)
wider = sized(
    "W-LD-wide",
    function=wide,
    grid={"power": [-0.75, -0.375], "width": [10**4, 10**10]},
    **FEW,
)
larger = sized("W-LD-fixed", function=fixed, grid={"alpha": [3.0, 30.0]}, **FEW)
plain = sized("W-LD-biased", function=biased, grid={"alpha": [3.0, 30.0]}, **FEW)


def powers(dataset: Dataset, name: str, axis: str) -> Array:
    """The exponent of a variable along an axis, for every seed."""
    rows = dataset[name].transpose("seed", axis).values
    return exponents(dataset[axis].values, rows)


def check(
    dataset: Dataset, blocks: Dataset, wider: Dataset, larger: Dataset, plain: Dataset
) -> Evidence:
    """What decides the dynamics, four exponents in k, and both ways to the kernel regime."""
    kernel, rich = wider.sel(power=-0.375), wider.sel(power=-0.75)
    same = within(dataset[["symmetric", "lifted", "block"]].to_dataarray().max(), tolerance=1e-6)
    rule = within(dataset.rule.max(), tolerance=1e-3)
    off = mean_within(powers(blocks, "off_diagonal", "width"), 0.5, 0.01)
    diagonal = mean_within(powers(blocks, "diagonal", "width"), 1.0, 0.01)
    vanish = mean_within(powers(kernel, "units", "width"), -0.375, 0.01)
    explode = mean_within(powers(larger, "units", "alpha"), 1.0, 0.01)
    nearer = mean_within(-powers(kernel, "from_kernel", "width"), 0.5, 0.1)
    size = mean_within(blocks.prediction.values.ravel(), 1.0, 0.01)
    first = mean_within(powers(kernel, "output", "width"), -0.25, 0.03)
    return Evidence(
        ran=f"{dataset.symmetric.size} problems with four Gaussian measurements of 3 x 3 matrices "
        "and several starts each, factors of width $10^2$ to $10^{10}$ ($W W^T$ drawn by its "
        r"Wishart law), and diagonal nets from $\alpha = 3$ to 30; all trained in the factors",
        checks={
            r"same $W W^T$, same lifted matrix, and $U V^T$ against the block of the lifted "
            "problem: largest distance of two courses": same,
            "same $U V^T$ from other factors: least distance of two courses": at_least(
                dataset["product"].min(), 1e-3
            ),
            r"off-diagonal entries $\sim \alpha^2 k^{p}$: $p$": off,
            r"diagonal entries $\sim \alpha^2 k^{p}$: $p$": diagonal,
            r"RMS prediction for Gaussian $X$ of unit norm, over $\sigma$": size,
            r"wide, $\alpha = k^{-3/8}$: exponent in $k$ of the units, at start or end": vanish,
            r"wide: exponent in $k$ of the first output": first,
            "wide: minus the exponent in $k$ of the distance to the kernel regime's end": nearer,
            r"width 1: exponent in $\alpha$ of the units at the end": explode,
            r"width 1: least minus exponent in $\alpha$ of that distance": at_least(
                (-powers(larger, "from_kernel", "alpha")).min(), 1.0
            ),
        },
        proof={
            r"$M' = G M + M G$ with $G$ the gradient of the loss in $M$, as printed": within(
                dataset.rule_printed.max(), tolerance=1e-3
            )
        },
        corrected={"$M' = -2 (G M + M G)$": rule},
        correction=r"the equation for $M_W'$ lacks a factor -2: $W' = -2 G W$ gives $M' = -2 (G M "
        r"+ M G)$; the lifted matrix is $[U; V] [U; V]^T$, of which the middle form is no product",
        counterexample={
            "largest relative error of the printed $M'$": float(dataset.rule_printed.max())
        },
        controls={
            "the product alone decides (other factors of the same $U V^T$)": same.control(
                dataset["product"].min()
            ),
            "off-diagonal entries like $k$": off.control(predicted=1.0),
            r"diagonal entries like $\sqrt{k}$": diagonal.control(predicted=0.5),
            r"predictions of order $d \sigma = |U V^T|_F$": size.control(predicted=5.0),
            r"$\alpha = k^{-3/4}$, $\sigma = o(1/\sqrt{k})$: it falls too": nearer.control(
                float(-powers(rich, "from_kernel", "width").mean())
            ),
            "width 1: the units stay bounded": explode.control(predicted=0.0),
            "wide: the units stay as they are": vanish.control(predicted=0.0),
        },
        findings=[
            r"without unbiasing the output of $U V^T$ of width 6 explodes too, with exponent "
            f"{powers(plain, 'output', 'alpha').mean():.2f} in $\\alpha$",
            "from other factors of the same product the courses are "
            f"{dataset['product'].min():.2g} to {dataset['product'].max():.2g} of their way apart",
        ],
        plots=[
            log_log(
                "how large the units are where training ends near the kernel solution",
                "distance of the end to that of the kernel regime, relative",
                "RMS of the outputs of units",
                [
                    (
                        r"wide, $\alpha = k^{-3/8}$",
                        kernel.from_kernel.median("seed").values,
                        kernel.units.median("seed").values,
                        "points",
                    ),
                    (
                        r"width 1, $\alpha = 3, 10, 30$",
                        larger.from_kernel.median("seed").values,
                        larger.units.median("seed").values,
                        "points",
                    ),
                ],
            )
        ],
    )


experiment = Experiment(
    "W-LD",
    statement=r"$W W^T$ and the lifted matrix determine their own dynamics, $U V^T$ does not; the "
    r"off-diagonal entries of the lifted matrix are of order $\alpha^2 \sqrt{k}$ and the diagonal "
    r"ones of order $\alpha^2 k$; predictions for Gaussian $X$ of unit norm are of order $\sigma$; "
    "at fixed width the outputs of units explode on the way to the kernel regime, with the width "
    "they can vanish.",
    place="section 6",
    study=(study, blocks, wider, larger, plain),
    check=check,
    title="The lifted matrix determines its dynamics, and width needs no exploding units",
    seconds=5,
)
