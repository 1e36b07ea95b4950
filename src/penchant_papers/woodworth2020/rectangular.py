"""Footnote 4: the results on matrix factorization hold for measurements that are not square."""

from __future__ import annotations

import numpy as np

from penchant.lab import Dataset, Evidence, Experiment, log_log, sized, within
from penchant.models import wide_factorization
from penchant.problems import Sensing, aligned_sensing
from penchant_papers.instances import slope
from penchant_papers.woodworth2020.theorem_4 import (
    commutator,
    distances,
    end,
    far_from_q,
    stacked,
    wrong_minimisers,
)


def cell(shape: str, mu2: float, seed: int) -> dict[str, float]:
    """Theorem 4: distances of the end from 2 mu^2 I to the right and to three wrong minimisers."""
    rows, columns = map(int, shape.split(" x "))
    problem = aligned_sensing(3, (rows, columns), rank=2, seed=seed)
    model = stacked(np.sqrt(2 * mu2) * np.eye(rows + columns), rows)
    far = distances(end(model, problem), problem, mu2)
    return {**far, "commutator": commutator(model.lift(problem.measurements) / 2)}


def at_width(shape: str, k: int, mu2: float, seed: int) -> dict[str, float]:
    """Theorem 4 from i.i.d. factors of width k with alpha^2 k = 2 mu^2."""
    rows, columns = map(int, shape.split(" x "))
    problem = aligned_sensing(3, (rows, columns), rank=2, seed=seed)
    model = wide_factorization(
        k,
        alpha=np.sqrt(2 * mu2 / k),
        shape=(rows, columns),
        seed=np.random.default_rng((seed, k)),
    )
    return {"far": far_from_q(end(model, problem), problem, mu2)}


def completed(scale: float, rows: int, columns: int, samples: int, seed: int) -> dict[str, float]:
    """Figure 5: hidden entries of a rank-one matrix, trained from alpha^2 k = scale, k = 1e10.

    `error` is that of the hidden entries over their RMS, `kernel` the distance of the end to the
    interpolant nearest to the start.
    """
    rng = np.random.default_rng(seed)
    truth = np.outer(rng.normal(size=rows), rng.normal(size=columns))
    seen = np.zeros(truth.size, bool)
    seen[rng.permutation(truth.size)[:samples]] = True
    X = np.eye(truth.size)[seen].reshape(-1, rows, columns)
    problem, k = Sensing(X, truth.ravel()[seen]), 10**10
    model = wide_factorization(k, alpha=np.sqrt(scale / k), shape=(rows, columns), seed=rng)
    M, first = end(model, problem), model.matrix(model.start(problem.dimension))
    nearest = np.where(seen.reshape(rows, columns), truth, first)
    hidden = ~seen.reshape(rows, columns)
    size = np.linalg.norm(truth[hidden])
    return {
        "error": float(np.linalg.norm((M - truth)[hidden]) / size),
        "kernel": float(np.linalg.norm(M - nearest) / np.linalg.norm(nearest)),
    }


study = sized(
    "W-fn4",
    title="Measurements need not be square",
    function=cell,
    grid={"shape": ["5 x 8", "8 x 5", "5 x 6"], "mu2": [0.01, 0.1, 1.0]},
    seeds=1,
    printed={"seeds": 6},
)
widths = sized(
    "W-fn4-widths",
    title="Wide rectangular factors also approach the least $Q$ of the spectrum",
    function=at_width,
    arguments={"mu2": 0.1},
    grid={"shape": ["5 x 8", "8 x 5"], "k": [100, 10_000, 1_000_000]},
    seeds=3,
    printed={"seeds": 12},
)
completion = sized(
    "W-fn4-completion",
    title="Completion of a matrix that is not square, from small and from large starts",
    function=completed,
    arguments={"rows": 7, "columns": 12, "samples": 55},
    grid={"scale": [1e-4, 1e-2, 1.0, 1e2, 1e4]},
    seeds=9,
    tiny={"seeds": 3},
    printed={"seeds": 9},
)


def check(dataset: Dataset, widths: Dataset, completion: Dataset) -> Evidence:
    """Theorem 4 and both ends of the completion of Figure 5."""
    k, rms = widths.k.values, np.sqrt((widths.far**2).mean(["shape", "seed"])).values
    rich, kernel = completion.isel(scale=0), completion.isel(scale=-1)
    commuting = float(dataset.commutator.max())
    limit = within(dataset.far.max(), tolerance=1e-6)
    rate = within(slope(k, rms), -0.5, 0.1)
    recovery = within(rich.error.median(), tolerance=0.05)
    stays = within(kernel.kernel.max(), tolerance=0.01)
    return Evidence(
        ran=rf"{dataset.far.size} runs from $2 \mu^2 I$ and {widths.far.size} from i.i.d. "
        f"factors, with measurements of the shapes {', '.join(dataset['shape'].values)}; "
        f"completion of {completion.sizes['seed']} matrices of 7 x 12 from "
        f"{completion.sizes['scale']} scales",
        checks={
            r"start $2 \mu^2 I$: largest distance to argmin of the Schatten $Q_\mu$": limit,
            "exponent in $k$ of the distance": rate,
            r"completion, $\alpha^2 k = 10^{-4}$: median error of the hidden entries, "
            "relative": recovery,
            r"completion, $\alpha^2 k = 10^4$: largest distance to the interpolant nearest to the "
            "start": stays,
        },
        premises={"the lifted measurements commute": (commuting < 1e-12, commuting)},
        controls={
            **wrong_minimisers(limit, dataset),
            "exponent -1 in $k$": rate.control(predicted=-1.0),
            "the large start recovers the truth too": recovery.control(kernel.error.median()),
            "the small start ends near the kernel solution too": stays.control(rich.kernel.min()),
        },
        plots=[
            log_log(
                "completion of a 7 x 12 matrix of rank one",
                r"$\alpha^2 k$",
                "median",
                [
                    (
                        "error of the hidden entries, relative",
                        completion.scale,
                        completion.error.median("seed"),
                    ),
                    (
                        "distance to the kernel solution, relative",
                        completion.scale,
                        completion.kernel.median("seed"),
                        "dashed",
                    ),
                ],
            )
        ],
    )


experiment = Experiment(
    "W-fn4",
    statement="The results on matrix factorization, that is Theorem 4 and both limits of matrix "
    "completion, extend to measurements that are not square.",
    place="section 6, footnote 4",
    study=(study, widths, completion),
    check=check,
    ours="the shapes, the scales and the sizes",
    seconds=2,
)
