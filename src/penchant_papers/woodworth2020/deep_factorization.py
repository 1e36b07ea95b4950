"""Section 5: the net of depth D is a product of D matrices whose measurements commute."""

from __future__ import annotations

import numpy as np

from penchant import DiagonalNet, GradientDescent, Steps, train
from penchant.lab import (
    DRAWS,
    Array,
    Dataset,
    Evidence,
    Experiment,
    drawn,
    log_log,
    share_at_least,
    sized,
    upper_share,
    within,
)
from penchant.models import DeepFactorization
from penchant.problems import Sensing, commuting_sensing, low_rank_completion
from penchant.record import LogSpaced
from penchant.stop import Interpolated
from penchant_papers.endpoints import trace
from penchant_papers.woodworth2020.figures.completion import determined
from penchant_papers.woodworth2020.theorem_4 import commutator

D = 3
T = 3.0


def doubled(problem: Sensing) -> Sensing:
    """The measurements diag(X_n, -X_n), so that [[W+^D, 0], [0, W-^D]] gives W+^D - W-^D."""
    zero = np.zeros_like(problem.measurements)
    above = np.concatenate([problem.measurements, zero], axis=2)
    below = np.concatenate([zero, -problem.measurements], axis=2)
    return Sensing(np.concatenate([above, below], axis=1), problem.y)


def product(depth: int, alpha: float, side: int) -> DeepFactorization:
    """W_1 ... W_D, all alpha I at the start."""
    return DeepFactorization(factors=[alpha * np.eye(side)] * depth)


def difference(matrix: Array) -> Array:
    """W+^D - W-^D of the doubled matrix."""
    side = len(matrix) // 2
    return matrix[:side, :side] - matrix[side:, side:]


def cell(depth: int, alpha: float, seed: int) -> dict[str, float]:
    """Courses of products and of diagonal nets on the same data, and of products that differ.

    `apart` is the distance of the product at time D t to the diagonal net at t, in the common
    basis, relative to how far the net goes; `same_time` the same at time t. `start` has i.i.d.
    factors of the same scale, `mixed` measurements of the same spectra that do not commute, and
    `other_depth` compares with the net of one layer more.
    """
    problem = commuting_sensing(2, D, rank=2, seed=seed)
    basis = np.linalg.eigh(problem.measurements[0])[1]
    spectra = np.einsum("ji,njk,ki->ni", basis, problem.measurements, basis)
    turns = np.linalg.qr(np.random.default_rng(seed).standard_normal((2, D, D)))[0]
    odd = Sensing(turns @ problem.measurements @ turns.transpose(0, 2, 1), problem.y)

    def net(depth: int) -> Array:
        run = trace(spectra, problem.y, DiagonalNet(depth, alpha=alpha), t_end=T, points=8)
        return run.parameters[:, :D] ** depth - run.parameters[:, D:] ** depth

    def course(model: DeepFactorization, data: Sensing, slower: int = depth) -> Array:
        big = doubled(data)
        run = trace(big.design, big.y, model, t_end=slower * T, points=8)
        ends = np.array([difference(model.matrix(w)) for w in run.parameters])
        return basis.T @ ends @ basis

    def far(matrices: Array, goal: Array) -> float:
        off = matrices - goal[:, None] * np.eye(D)
        return float(np.linalg.norm(off, axis=(1, 2)).max() / np.linalg.norm(goal, axis=1).max())

    same, goal = product(depth, alpha, 2 * D), net(depth)
    loose = DeepFactorization(depth, 2 * D, alpha=alpha / np.sqrt(2 * D), seed=seed)
    return {
        "apart": far(course(same, problem), goal),
        "same_time": far(course(same, problem, 1), goal),
        "other_depth": far(course(same, problem), net(depth + 1)),
        "start": far(course(loose, problem), goal),
        "mixed": far(course(same, odd), goal),
        "commutator": commutator(doubled(problem).measurements),
        "odd_commutator": commutator(doubled(odd).measurements),
    }


def duals(depth: int, seed: int) -> dict[str, float]:
    """Eq. (57) along training: w+ and w- as powers of X^T int r, with X and not its doubled form.

    `law` is the largest relative error of w+, w- = (alpha^(2-D) +- 2 D (D-2) X^T int r)^(-1/(D-2)).
    """
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((3, 6)), rng.standard_normal(3)
    alpha = 0.5
    run = trace(X, y, DiagonalNet(depth, alpha=alpha), t_end=2.0, points=8)
    plus, minus = run.parameters[:, :6], run.parameters[:, 6:]
    s = 2 * depth * (depth - 2) * run.impulse @ X
    law = [(alpha ** (2 - depth) + sign * s) ** (-1 / (depth - 2)) for sign in (1, -1)]
    errors = [np.abs(w / e - 1).max() for w, e in zip((plus, minus), law, strict=True)]
    half = (alpha ** (2 - depth) + s / 2) ** (-1 / (depth - 2))
    return {
        "law": float(max(errors)),
        "law_half": float(np.abs(plus / half - 1).max()),
        "columns": np.concatenate([X, -X], axis=1).shape[1] / plus.shape[1],
    }


def completed(depth: int, log10_scale: float, seed: int) -> dict[str, float]:
    """Error of hidden entries, relative, for products of this depth that start at one size.

    The entries of W_1 ... W_D are of order 10^log10_scale at every depth.
    """
    side = 5
    problem, _ = drawn(
        lambda number: low_rank_completion(17, side, rank=1, seed=number), determined, DRAWS * seed
    )
    # an entry of a product of D Gaussian matrices has variance alpha^(2 D) width^(D - 1)
    alpha = (10**log10_scale / side ** ((depth - 1) / 2)) ** (1 / depth)
    model = DeepFactorization(depth, side, alpha=alpha, seed=seed)
    stop = [Interpolated(1e-6), Steps(3000)]
    path = train(model, problem, GradientDescent(5e-3), stop=stop, record=LogSpaced(1), throw=False)
    assert problem.truth is not None
    size = float(np.sqrt(np.mean(problem.truth[problem.hidden] ** 2)))
    left = np.linalg.norm(problem.apply(path.predictor) - problem.y) / np.linalg.norm(problem.y)
    return {"error": problem.test_error(path.predictor) / size, "left": float(left)}


study = sized(
    "W-DF",
    function=cell,
    grid={"depth": [2, 3, 4], "alpha": [0.5]},
    seeds=3,
    tiny={"seeds": 1},
    printed={"seeds": 20},
)
laws = sized("W-DF-duals", function=duals, grid={"depth": [3, 4]}, seeds=10, tiny={"seeds": 2})
depths = sized(
    "W-DF-completion",
    function=completed,
    grid={"log10_scale": [-1.0, -2.0], "depth": [2, 4]},
    seeds=48,
    tiny={"seeds": 24},
    printed={"grid": {"log10_scale": [-1.0, -2.0, -3.0], "depth": [2, 3, 4]}, "seeds": 60},
)


def check(dataset: Dataset, laws: Dataset, depths: Dataset) -> Evidence:
    """The courses of both models, what breaks them, eq. (57), and completion by depth."""
    same = within(dataset.apart.max(), tolerance=1e-6)
    commutes = float(dataset.commutator.max())
    logs, most = np.log10(depths.error), int(depths.depth.max())
    falls = (logs.sel(depth=2) - logs.sel(depth=most)).transpose("seed", ...)
    paired = falls.mean("log10_scale").values  # one matrix at every depth
    better = share_at_least(int((paired > 0).sum()), paired.size, 0.5)
    worse = int((falls < 0).sum())  # at every size by itself
    sizes = rf"$10^{{{int(depths.log10_scale.max())}}}$ to $10^{{{int(depths.log10_scale.min())}}}$"
    left = float(depths.left.max())
    medians = depths.error.median("seed").transpose("log10_scale", "depth").values
    rows = [
        (size, list(zip(depths.depth.values, row, strict=True)))
        for size, row in zip(depths.log10_scale.values, medians, strict=True)
    ]
    errors = depths.error.sel(log10_scale=-2.0)
    two = errors.sel(depth=2).values
    return Evidence(
        ran=f"{dataset.apart.size} problems of two commuting measurements, products of 2 to 4 "
        "matrices and diagonal nets trained side by side; completion of "
        f"{depths.sizes['seed']} matrices of 5 x 5 by products of {depths.depth.values.tolist()} "
        f"matrices of size {sizes} at the start",
        checks={
            "largest distance of the product at time $D t$ to the diagonal net at $t$": same,
            f"completion from products of one size, {sizes}: share of matrices whose mean error at "
            f"depth {most} is less than at depth 2 (0.999 lower limit)": better,
        },
        proof={
            r"eqs. (56), (57) with $D (D-2)$: largest relative error of $w_+$": within(
                laws.law_half.max(), tolerance=1e-6
            ),
            r"eq. (57): columns of $\tilde{X}$ over entries of $\beta$": within(
                laws.columns.max(), 1.0, 0.0
            ),
        },
        corrected={
            r"with $2 D (D-2)$ and $X$: largest relative error of $w_+$ and $w_-$": within(
                laws.law.max(), tolerance=1e-6
            )
        },
        correction=r"the equivalence needs one scaled identity at the start of every factor, runs "
        "$D$ times slower than the net, whose layers share their weights, and for signed "
        r"predictors the measurements $\operatorname{diag}(X_n, -X_n)$. Eq. (57) has $X$ in "
        r"place of $\tilde{X}$, which has $2 d$ columns, and for $\sum r^2$ twice the constant",
        counterexample={
            "largest relative error of $w_+$ by (56)": float(laws.law_half.max()),
        },
        premises={
            "the measurements commute": (commutes < 1e-12, commutes),
            "completion fits: largest residual, relative": (left < 0.05, left),
        },
        controls={
            "measurements of the same spectra that do not commute": same.control(
                dataset.mixed.min()
            ),
            "i.i.d. factors of the same scale": same.control(dataset.start.min()),
            "the net of one layer more": same.control(dataset.other_depth.min()),
            "the same time for both": same.control(dataset.same_time.min()),
            "share of matrices and sizes where depth 2 is better (0.999 upper limit)": (
                better.control(upper_share(worse, falls.size))
            ),
        },
        findings=[
            "median error of the hidden entries, by depth: "
            + "; ".join(
                f"$10^{{{int(size)}}}$ " + ", ".join(f"{v:.3f} ($D={D}$)" for D, v in row)
                for size, row in rows
            )
        ],
        plots=[
            log_log(
                r"completion from products of size $10^{-2}$",
                "error of the hidden entries at depth 2, relative",
                "error of the same entries at greater depth",
                [
                    *(
                        (f"depth {D}", two, errors.sel(depth=D).values, "points")
                        for D in depths.depth.values[1:]
                    ),
                    ("as good as depth 2", np.sort(two), np.sort(two)),
                ],
                caption="Each point is one matrix; below the line the deeper product is better.",
            )
        ],
    )


experiment = Experiment(
    "W-DF",
    statement="The net of depth $D$ is equivalent to a product of $D$ matrices with commuting "
    "measurements; from starts of one size products of depth 4 complete most matrices of low rank "
    "better than products of depth 2.",
    place="section 5, before and after Theorem 3; appendix F, eq. (57)",
    study=(study, laws, depths),
    check=check,
    title="From starts of one size deeper products complete most matrices better",
    seconds=5,
)
