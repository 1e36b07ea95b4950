"""Matrix completion and two-layer nets with quadratic units: one system with both phases."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penchant import FunctionModel, ParameterFlow, Regression, Time, forecast, interpolate, train
from penchant.lab import (
    DRAWS,
    Array,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_least,
    at_most,
    below,
    drawn,
    sized,
    within,
)
from penchant.models import DifferenceFactorization
from penchant.problems import Sensing
from penchant.record import At
from penchant.regularizers import Frobenius, Nuclear
from penchant_papers.instances import slack_of
from penchant_papers.lyu2023.multiplication_table import EARLY, LATE, SLACK, apart


def teacher(samples: int, dimension: int, seed: int) -> tuple[Array, Array, Array]:
    """Gaussian points, the answers of one quadratic unit of either sign, and its matrix."""
    rng = np.random.default_rng(seed)
    X, unit = rng.normal(size=(samples, dimension)), rng.normal(size=dimension)
    truth = rng.choice([-1.0, 1.0]) * np.outer(unit, unit) / (unit @ unit)
    return X, np.einsum("ni,ij,nj->n", X, truth, X), truth


def sensing(samples: int, dimension: int, seed: int) -> tuple[Array, Sensing, Array, Array, float]:
    """The points, the same data as inner products with x x^T, both limits and the slack.

    The slack is that of the dual certificate.
    """
    X, y, truth = teacher(samples, dimension, seed)
    problem = Sensing(np.einsum("ni,nj->nij", X, X), y, truth)
    kernel, nuclear = (
        interpolate(problem.measurements, y, norm(), throw=False) for norm in (Frobenius, Nuclear)
    )
    return X, problem, kernel.matrix, nuclear.matrix, slack_of(problem, nuclear)


@functools.lru_cache(maxsize=4)
def determined(samples: int, dimension: int, seed: int) -> tuple[Any, int]:
    """A teacher that its answers clearly determine, and that the kernel interpolant is not near.

    The matrix of least nuclear norm is the teacher's own.
    """

    def fits(case: Any) -> bool:
        _, problem, kernel, nuclear, slack = case
        known = slack >= SLACK and apart(nuclear, problem.truth) < 1e-6
        return bool(known and apart(kernel, nuclear) >= BETWEEN)

    return drawn(lambda k: sensing(samples, dimension, k), fits, seed=DRAWS * seed)


def units(theta: Any, X: Any) -> Any:
    """sum_j <u_j, x>^2 - sum_j <v_j, x>^2, theta the rows of U and below them those of V."""
    W = theta.reshape(2 * X.shape[1], -1)
    U, V = W[: X.shape[1]], W[X.shape[1] :]
    return ((X @ U) ** 2).sum(axis=1) - ((X @ V) ** 2).sum(axis=1)


def cell(seed: int, *, samples: int, dimension: int, alpha: float, rate: float) -> dict[str, Any]:
    """U U^T - V V^T at EARLY and LATE times the forecast, against both limits and the truth."""
    (_, problem, kernel, nuclear, slack), tries = determined(samples, dimension, seed)
    matrices, _ = trained(problem, alpha, rate, (EARLY, LATE))
    return {
        "tries": tries,
        "slack": slack,
        "to_kernel": [apart(matrix, kernel) for matrix in matrices],
        "to_nuclear": [apart(matrix, nuclear) for matrix in matrices],
        "misfit": [float(np.abs(problem.apply(m) - problem.y).max()) for m in matrices],
        "error": [apart(matrix, problem.truth) for matrix in matrices],
    }


def trained(problem: Sensing, alpha: float, rate: float, moments: Any) -> tuple[Array, float]:
    """The matrices at these multiples of the forecast, and the forecast."""
    model = DifferenceFactorization(alpha=alpha)
    unit = forecast(model, problem, rate).transition
    flow, times = ParameterFlow(rtol=1e-7, weight_decay=rate), np.array(moments) * unit
    path = train(
        model, problem, flow, stop=Time(times[-1]), record=At(times=times[:-1]), throw=True
    )
    rows = [int(np.abs(path.dataset.t.values - t).argmin()) for t in times]
    return path.dataset.predictor.values[rows], unit


def link_cell(
    seed: int, *, samples: int, dimension: int, alpha: float, rate: float
) -> dict[str, float]:
    """The net of quadratic units, trained by its own gradients, against the matrix on new points.

    `kernel` is the same distance for the kernel interpolant, as if training had stayed there.
    """
    (X, problem, kernel, *_), _ = determined(samples, dimension, seed)
    new = np.random.default_rng((seed, 3)).normal(size=(50, dimension))
    (matrix,), unit = trained(problem, alpha, rate, (LATE,))
    start = DifferenceFactorization(alpha=alpha).start(dimension**2)
    flow = ParameterFlow(rtol=1e-7, weight_decay=rate)
    net = FunctionModel(units, start)
    path = train(net, Regression(X, problem.y), flow, stop=Time(LATE * unit), throw=True)
    outputs = net.predict(np.asarray(path.parameters), new)
    off = {}
    for name, one in (("same", matrix), ("kernel", kernel)):
        answers = np.einsum("ni,ij,nj->n", new, one, new)
        off[name] = float(np.linalg.norm(outputs - answers) / np.linalg.norm(outputs))
    return off


NEAR, NEARLY = 0.05, 0.1  # distances that count as at the kernel interpolant, and at the teacher
BETWEEN = 0.25  # distance of the two, so that no matrix is that near to both
GIVEN = {"samples": 14, "dimension": 6, "alpha": 5.0, "rate": 1e-5}
study = sized(
    "L-units",
    function=cell,
    arguments=GIVEN,
    seeds=20,
    dims={name: ["moment"] for name in ("to_kernel", "to_nuclear", "misfit", "error")},
    tiny={"seeds": 3},
    printed={"seeds": 100},
)
links = sized(
    "L-units-link",
    function=link_cell,
    arguments=GIVEN,
    seeds=1,
    printed={"seeds": 10},
)


FIRST, LAST = 0, 1  # the moments before and after the jump


def check(dataset: Dataset, links: Dataset) -> Evidence:
    """The net and the matrix are one system, which has both phases."""
    early, late = (dataset.isel(moment=k) for k in (FIRST, LAST))
    same = within(links.same.max(), tolerance=1e-6)
    kernel = at_most(early.to_kernel.max(), NEAR)
    nuclear = at_most(late.to_nuclear.max(), NEARLY)
    groks = at_least((early.error / late.error).min(), 5.0)
    fits = float(dataset.misfit.max())
    return Evidence(
        ran=f"{dataset.sizes['seed']} teachers of one quadratic unit in $R^6$, {GIVEN['samples']} "
        "Gaussian points, squared loss; $U U^T - V V^T$ from 5 I under a decay of $10^{-5}$, at "
        f"{EARLY:g} and {LATE:g} times the forecast; {links.sizes['seed']} nets of 12 quadratic "
        f"units "
        "trained by their own gradients",
        checks={
            "largest distance of the trained net's outputs to $x^T (U U^T - V V^T) x$ on new "
            "points,"
            " relative": same,
            "largest distance to the kernel interpolant before the jump, relative": kernel,
            "largest distance to the matrix of least nuclear norm after it, relative": nuclear,
            "least fall of the distance to the teacher over the jump, as a factor": groks,
        },
        controls={
            "the kernel interpolant": same.control(links.kernel.min()),
            "the matrix of least nuclear norm before the jump": kernel.control(
                early.to_nuclear.min()
            ),
            "the kernel interpolant after the jump": nuclear.control(late.to_kernel.min()),
            "the fall of the distance to the kernel interpolant": groks.control(
                (early.to_kernel / late.to_kernel).max()
            ),
        },
        premises={
            "training is solved at both moments": below(fits, 1e-3),
        },
        findings=[
            f"{dataset.sizes['seed']} of {int(dataset.tries.sum())} teachers drawn are determined "
            f"by {GIVEN['samples']} answers with a slack of {SLACK:g} and are {BETWEEN:g} of their "
            "size or more away from the kernel interpolant",
        ],
        plots=[
            Plot(
                title,
                "teacher",
                "relative distance of $U U^T - V V^T$",
                [
                    Series(f"to {name}", dataset.seed.values, moment[key].values, "points")
                    for name, key in (
                        ("the kernel interpolant", "to_kernel"),
                        ("the teacher, which has the least nuclear norm", "error"),
                    )
                ],
                y_scale="log",
            )
            for title, moment in (
                (f"before the jump, at {EARLY:g} times the forecast", early),
                (f"after the jump, at {LATE:g} times the forecast", late),
            )
        ],
    )


experiment = Experiment(
    "L-units",
    statement="A two-layer net with quadratic units of output weights 1 and -1, trained on the "
    "squared loss, is $U U^T - V V^T$ trained on inner products with $x x^T$; under weight decay "
    "it is first the kernel interpolant, of least Frobenius norm, and after the jump that of least "
    "nuclear norm, which is the teacher's where the answers determine it.",
    place="Example: completing multiplication tables, 'related to learning two-layer nets with "
    "quadratic activation'",
    study=(study, links),
    check=check,
    title="A net of quadratic units memorizes first and finds its teacher at the jump",
    ours="the teacher, the sizes, the start and the decay: the poster names the relation only",
    seconds=6,
)
