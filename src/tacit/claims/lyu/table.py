"""L-table: completing a multiplication table, first by the kernel, later by the nuclear norm."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.measures.forecast import forecast
from tacit.measures.kernels.machines import kernel_interpolant
from tacit.models.factorization import DifferenceFactorization
from tacit.papers.instances import distance, slope
from tacit.problems.matrices import Completion, multiplication_table
from tacit.regularizers.spectral import Frobenius, Nuclear
from tacit.solvers.interpolate import interpolate
from tacit.solvers.matrices.solution import MatrixSolution
from tacit.studies.sizes import Size
from tacit.training.exact.parameter import ParameterFlow
from tacit.training.record import At, LogSpaced
from tacit.training.stop import Time
from tacit.training.train import train

ALPHAS = np.array([10.0, 100.0, 1000.0])
RATE = 1e-5  # next to a sum of squares; its bias is of the order of the rate
EARLY, LATE, LAST = 0.5, 2.0, 3.0  # 1 - c, and 1 + c for two c, in units of the forecast


@dataclasses.dataclass(frozen=True)
class Case:
    """A table with some pairs seen, and the same with both entries of every such pair."""

    seen: Completion
    mirrored: Completion

    @property
    def truth(self) -> Array:
        assert self.seen.truth is not None
        return self.seen.truth


@dataclasses.dataclass(frozen=True)
class Trained:
    """One run at the three times, and how far its parameters are from KKT at the last."""

    early: Array
    late: Array
    last: Array
    kkt: float
    second: float


def cases(size: Size) -> list[Case]:
    """Tables of which the least nuclear norm is told by what was seen; a premise checks that."""
    chosen = (
        [(16, 0.5, 0), (16, 0.5, 1)] if size == "quick" else [(40, 0.2775, s) for s in range(3)]
    )
    return [table(*one) for one in chosen]


def untold(size: Size) -> list[Case]:
    """Tables that what was seen does not tell: another matrix fits with a smaller nuclear norm."""
    return [table(10, 0.4, seed) for seed in ((2, 3) if size == "quick" else (0, 2, 3, 4))]


def table(dimension: int, fraction: float, seed: int) -> Case:
    seen, both = (
        multiplication_table(dimension, fraction=fraction, seed=seed, mirrored=m)
        for m in (False, True)
    )
    return Case(seen, both)


def least_nuclear(case: Case) -> MatrixSolution:
    """The least nuclear norm over symmetric matrices, which know (j, i) with (i, j)."""
    return interpolate(case.mirrored, Nuclear())


def kernel_matrix(case: Case, alpha: float) -> Array:
    """The matrix of the kernel interpolant of U = V = alpha I."""
    model = DifferenceFactorization(alpha=alpha)
    start = model.start(case.seen.dimension)
    move = kernel_interpolant(model, case.seen.design, case.seen.y).displacement
    # the matrix is quadratic in the parameters, so this difference is its derivative
    return (model.matrix(start + move) - model.matrix(start - move)) / 2


def followed(case: Case, alpha: float, until: float) -> tuple[Any, float]:
    """The path from U = V = alpha I to `until` times the forecast, and the forecast."""
    model, problem = DifferenceFactorization(alpha=alpha), case.seen
    unit = forecast(model, problem, RATE).transition
    times = [share * unit for share in (EARLY, LATE) if share < until]
    flow, record = ParameterFlow(rtol=1e-7, weight_decay=RATE), [LogSpaced(1), At(times=times)]
    path = train(model, problem, flow, stop=Time(until * unit), record=record)
    if not path.outcome.ok:
        raise RuntimeError(f"training under decay did not reach its end: {path.outcome}")
    return path, unit


def trained(case: Case, alpha: float) -> Trained:
    """A run in its parameters, at the times of the claim."""
    path, unit = followed(case, alpha, LAST)
    places = [int(np.argmin(abs(path.dataset.t.values - share * unit))) for share in (EARLY, LATE)]
    early, late = path.dataset.predictor.values[places]
    return Trained(early, late, path.predictor, *conditions(case.seen, path))


def conditions(problem: Completion, path: Any) -> tuple[float, float]:
    """How far theta is from KKT of min |theta|^2 with f = y, and the certificate's second value.

    KKT asks for theta = sum_n nu_n grad f_n; nu is what the loss pulls with, over the rate. The
    symmetric matrix of nu has eigenvalues 1 where M lives and, elsewhere, at most 1 in size.
    """
    nu = problem.adjoint(-2 * (path.predictions - problem.y) / RATE)
    theta, model = path.parameters, DifferenceFactorization(alpha=1.0)
    left = float(np.linalg.norm(model.slope(theta, nu) - theta) / np.linalg.norm(theta))
    return left, float(np.linalg.svd(nu + nu.T, compute_uv=False)[1])


def errors(case: Case, runs: list[Trained], name: str) -> Array:
    return np.array([case.seen.test_error(getattr(run, name)) for run in runs])


@claim(
    "L-table",
    statement="Theorems 1 and 2 for regression with U U^T - V V^T from U = V = alpha I: before the"
    " transition the matrix is the kernel interpolant of its start, after it the one of least"
    " nuclear norm, which completes a multiplication table",
    place="Example: completing multiplication tables",
    seconds=10,
)
def completion(size: Size) -> Evidence:
    tables = cases(size)
    nuclear = [least_nuclear(case) for case in tables]
    kernels = [kernel_matrix(case, ALPHAS[0]) for case in tables]
    runs = [[trained(case, alpha) for alpha in ALPHAS] for case in tables]
    before = [
        np.array([distance(run.early, kernel) for run in row])
        for row, kernel in zip(runs, kernels, strict=True)
    ]
    after = [errors(case, row, "late") for case, row in zip(tables, runs, strict=True)]
    last = max(errors(case, row, "last")[-1] for case, row in zip(tables, runs, strict=True))
    ratio = max(
        (_nuclear(row[-1].last) / found.value for row, found in zip(runs, nuclear, strict=True)),
        key=_off,
    )
    power = max((slope(ALPHAS, row) + 4 * (1 - EARLY) for row in before), key=abs)
    falls = max(
        (
            slope(ALPHAS, values) + 2 * (1 - row[0].second) * (LATE - 1)
            for values, row in zip(after, runs, strict=True)
        ),
        key=abs,
    )
    soon = min(conditions(case.seen, followed(case, ALPHAS[-1], EARLY)[0])[0] for case in tables)
    near = Check(
        "largest distance to the kernel interpolant at alpha = 1000, c = 1/2",
        max(row[-1] for row in before),
        1e-4,
        kind="at most",
    )
    lazy = Check(
        "largest deviation of that distance's exponent in alpha from -4c", power, tolerance=0.1
    )
    least = Check("nuclear norm over the least that fits, alpha = 1000, c = 2", ratio, 1.0, 0.01)
    solved = Check("largest test error at alpha = 1000, c = 2", last, 1e-4, kind="at most")
    rate = Check(
        "largest deviation of the test error's exponent in alpha (c = 1) from"
        " -2c(1 - s), s the second singular value of the certificate",
        falls,
        tolerance=0.1,
    )
    kkt = Check(
        "largest KKT residual of the parameters at alpha = 1000, c = 2",
        max(row[-1].kkt for row in runs),
        0.01,
        kind="at most",
    )
    others = [_excesses(case) for case in untold(size)]
    selects = Check(
        "the same where the table itself has a larger nuclear norm",
        max((run for run, _ in others), key=_off),
        1.0,
        0.01,
    )
    return Evidence(
        ran=f"{len(tables)} tables ({tables[0].seen.description}), alpha = 10, 100, 1000, rate"
        f" {RATE:g} next to the sum of squares, trained in the parameters; times in units of the"
        " forecast made before training",
        checks=[near, lazy, least, selects, solved, rate, kkt],
        premises=_premises(tables, nuclear, kernels),
        controls={
            "the matrix of least nuclear norm before the transition": near.control(
                min(
                    distance(row[-1].early, found.matrix)
                    for row, found in zip(runs, nuclear, strict=True)
                )
            ),
            "the least nuclear norm before the transition: the same exponent": lazy.control(
                min(
                    slope(ALPHAS, np.array([distance(run.early, found.matrix) for run in row]))
                    + 4 * (1 - EARLY)
                    for row, found in zip(runs, nuclear, strict=True)
                )
            ),
            "the kernel interpolant's nuclear norm after it": least.control(
                min(
                    _nuclear(kernel) / found.value
                    for kernel, found in zip(kernels, nuclear, strict=True)
                )
            ),
            "the kernel interpolant's test error": solved.control(
                min(
                    case.seen.test_error(kernel)
                    for case, kernel in zip(tables, kernels, strict=True)
                )
            ),
            "the KKT residual before the transition": kkt.control(soon),
            "the table where another matrix has a smaller norm": selects.control(
                min(own for _, own in others)
            ),
            "every direction fades with the start, whatever the certificate": rate.control(
                min(slope(ALPHAS, values) + 2 * (LATE - 1) for values in after)
            ),
        },
        findings=_findings(tables, runs),
        plots=[
            Plot(
                "distance to the kernel interpolant at (1 - c) and test error at (1 + c) of"
                " the forecast",
                "alpha",
                "distance, error",
                [
                    Series(f"{name}, table {k}", ALPHAS, row)
                    for name, rows in (("kernel, c = 1/2", before), ("test, c = 1", after))
                    for k, row in enumerate(rows)
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


def _excesses(case: Case) -> tuple[float, float]:
    """The nuclear norms of a run's end and of the table itself, over the least that fits."""
    least, last = least_nuclear(case).value, trained(case, ALPHAS[-1]).last
    return _nuclear(last) / least, _nuclear(case.truth) / least


def _off(ratio: float) -> float:
    return abs(ratio - 1)


def _nuclear(matrix: Array) -> float:
    return float(np.linalg.norm(matrix, "nuc"))


def _premises(
    tables: list[Case], nuclear: list[MatrixSolution], kernels: list[Array]
) -> dict[str, Any]:
    certified = max(max(found.kkt, found.residual) for found in nuclear)
    told = max(
        distance(found.matrix, case.truth) for case, found in zip(tables, nuclear, strict=True)
    )
    same = max(
        distance(kernel, interpolate(case.mirrored, Frobenius()).matrix)
        for case, kernel in zip(tables, kernels, strict=True)
    )
    return {
        "the least nuclear norm is certified by its dual": (certified < 1e-8, certified),
        "what was seen tells the table: it is the matrix of least nuclear norm": (
            told < 1e-8,
            told,
        ),
        "the kernel interpolant is the least Frobenius norm, zero where nothing was seen": (
            same < 1e-10,
            same,
        ),
    }


def _findings(tables: list[Case], runs: list[list[Trained]]) -> list[str]:
    decays = ", ".join(f"{row[0].second:.3f}" for row in runs)
    case = tables[0]
    last = ", ".join(f"{value:.2g}" for value in errors(case, runs[0], "last"))
    return [
        "after the transition the test error falls like exp(-2 (1 - s) rate t) down to a bias of"
        f" the order of the rate; s = {decays} here, so the slack of the certificate, not only"
        " alpha, says how long to wait",
        f"test error of the first table at 3 times the forecast, alpha = 10, 100, 1000: {last}",
    ]
