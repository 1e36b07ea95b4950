"""Theorems 1 and 2 for tables: first the kernel interpolant, later the least nuclear norm."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from penchant import ParameterFlow, Path, Time, forecast, interpolate, train
from penchant.lab import (
    DRAWS,
    Array,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_most,
    below,
    drawn,
    sized,
    within,
)
from penchant.measures import kernel_machine
from penchant.models import DifferenceFactorization
from penchant.problems import Completion, multiplication_table
from penchant.record import At, LogSpaced
from penchant.regularizers import Frobenius, Nuclear
from penchant_papers.instances import distance, furthest, slope

SLACK, EXCESS = 0.2, 1.05
RATE = 1e-5  # next to a sum of squares
EARLY, LATE, LAST = 0.5, 2.0, 3.0  # 1 - c, and 1 + c for two c, in units of the forecast


@dataclasses.dataclass(frozen=True)
class Limits:
    """The symmetric matrices that the two phases are expected to select."""

    kernel: Array
    nuclear: Array
    value: float
    certificate: float  # the worst optimality condition of the second
    slack: float  # 1 minus the second singular value of its dual certificate, whose first is 1
    truth_excess: float  # the table's own nuclear norm over the least


def table(dimension: int, fraction: float, seed: int) -> tuple[Completion, Limits]:
    """A table with a share of its pairs observed, and both minimisers over symmetric matrices.

    In these, (i, j) determines (j, i). At U = V = alpha I every entry has its own tangent feature,
    so the kernel interpolant has the least Frobenius norm: it is zero at unobserved entries.
    """
    seen, both = (
        multiplication_table(dimension, fraction=fraction, seed=seed, mirrored=mirrored)
        for mirrored in (False, True)
    )
    kernel, nuclear = (interpolate(both, norm) for norm in (Frobenius(), Nuclear()))
    values = np.linalg.svd(both.adjoint(nuclear.dual), compute_uv=False)
    assert seen.truth is not None
    return seen, Limits(
        kernel=kernel.matrix,
        nuclear=nuclear.matrix,
        value=nuclear.value,
        certificate=max(nuclear.residual, nuclear.kkt),
        slack=float(1 - values[1] / values[0]),
        truth_excess=nuclear_norm(seen.truth) / nuclear.value,
    )


@functools.lru_cache(maxsize=8)
def drawn_table(
    dimension: int, fraction: float, seed: int, determined: bool = True, slack: float = SLACK
) -> tuple[Completion, Limits, int]:
    """A table that its observed entries determine, clearly; or one that they clearly do not.

    The certificate of the first kind has a `slack`, which sets how long its completion takes; a
    table of the second kind has a nuclear norm that exceeds the least by EXCESS. The last value is
    how many tables were drawn.
    """

    def fits(pair: tuple[Completion, Limits]) -> bool:
        limits = pair[1]
        return limits.slack >= slack if determined else limits.truth_excess >= EXCESS

    (problem, limits), tries = drawn(
        lambda k: table(dimension, fraction, k), fits, seed=DRAWS * seed
    )
    return problem, limits, tries


def nuclear_norm(matrix: Any) -> float:
    """The sum of the singular values."""
    return float(np.linalg.norm(matrix, "nuc"))


def kernel_matrix(problem: Completion, alpha: float) -> Array:
    """The matrix of the kernel interpolant of U = V = alpha I."""
    model = DifferenceFactorization(alpha=alpha)
    start = model.start(problem.dimension)
    move = kernel_machine(model, problem).displacement
    # the matrix is quadratic in the parameters, so this difference is its derivative
    return (model.matrix(start + move) - model.matrix(start - move)) / 2


def followed(problem: Completion, alpha: float, rate: float, until: float) -> tuple[Path, float]:
    """The path from U = V = alpha I to `until` times the forecast, and the forecast."""
    model = DifferenceFactorization(alpha=alpha)
    unit = forecast(model, problem, rate).transition
    times = [share * unit for share in (EARLY, LATE) if share < until]
    flow, record = ParameterFlow(rtol=1e-7, weight_decay=rate), [LogSpaced(1), At(times=times)]
    path = train(model, problem, flow, stop=Time(until * unit), record=record, throw=True)
    return path, unit


def conditions(problem: Completion, path: Path, rate: float) -> tuple[float, float]:
    """How far theta is from KKT of min |theta|^2 with f = y, and the certificate's second value.

    KKT requires theta = sum_n nu_n grad f_n; nu is minus the derivative of the loss over the rate.
    The symmetric matrix of nu has eigenvalues 1 on the range of M and at most 1 in size elsewhere.
    """
    nu = problem.adjoint(-2 * (path.predictions - problem.y) / rate)
    theta: Any = path.parameters
    pull = DifferenceFactorization(alpha=1.0).slope(theta, nu)
    left = float(np.linalg.norm(pull - theta) / np.linalg.norm(theta))
    return left, float(np.linalg.svd(nu + nu.T, compute_uv=False)[1])


def apart(matrix: Array, other: Array) -> float:
    """The distance of two matrices in the Frobenius norm, relative to the second."""
    return float(np.linalg.norm(matrix - other) / np.linalg.norm(other))


def cell(
    alpha: float, seed: int, *, dimension: int, fraction: float, rate: float, determined: bool
) -> dict[str, float]:
    """A run in its parameters at EARLY, LATE and LAST times the forecast, against both limits."""
    problem, limits, tries = drawn_table(dimension, fraction, seed, determined)
    kernel = kernel_matrix(problem, 10.0)
    path, unit = followed(problem, alpha, rate, LAST)
    places = [int(np.argmin(abs(path.dataset.t.values - share * unit))) for share in (EARLY, LATE)]
    early, late = path.dataset.predictor.values[places]
    kkt, second = conditions(problem, path, rate)
    assert problem.truth is not None
    return {
        "from_kernel": apart(early, kernel),
        "from_nuclear": apart(early, limits.nuclear),
        "late_error": problem.test_error(late),
        "last_error": problem.test_error(path.predictor),
        "kernel_error": problem.test_error(kernel),
        "last_excess": nuclear_norm(path.predictor) / limits.value,
        "kernel_excess": nuclear_norm(kernel) / limits.value,
        "truth_excess": limits.truth_excess,
        "tries": tries,
        "kkt": kkt,
        "early_kkt": conditions(problem, followed(problem, alpha, rate, EARLY)[0], rate)[0],
        "second": second,
        "certificate": limits.certificate,
        "off_truth": distance(limits.nuclear, np.asarray(problem.truth)),
        "off_frobenius": distance(kernel, limits.kernel),
    }


LABELS = {
    "from_kernel": "distance to the kernel interpolant at half of the forecast, relative",
    "from_nuclear": "distance to the least nuclear norm at half of the forecast, relative",
    "late_error": "test error at twice the forecast",
    "last_error": "test error at three times the forecast",
    "last_excess": "nuclear norm over the least that fits, at three times the forecast",
    "kkt": "KKT residual of the parameters at three times the forecast",
    "second": "second singular value of the certificate",
}
study = sized(
    "L-table",
    title="A table under weight decay compared with the kernel interpolant and the least nuclear"
    " norm",
    function=cell,
    arguments={"dimension": 10, "fraction": 0.6, "rate": RATE, "determined": True},
    grid={"alpha": [10.0, 100.0, 1000.0]},
    seeds=2,
    labels=LABELS,
    draw={"x": "alpha", "colour": "late_error", "log": True},
    tiny={"grid": {"alpha": [10.0, 1000.0]}, "seeds": 1},
    printed={"arguments": {"dimension": 40, "fraction": 0.2775}, "seeds": 3},
)
other = sized(
    "L-table-other",
    title="Tables whose nuclear norm is larger than that of another matrix that fits",
    function=cell,
    arguments={"dimension": 8, "fraction": 0.4, "rate": RATE, "determined": False},
    grid={"alpha": [1000.0]},
    seeds=2,
    labels=LABELS,
    tiny={"seeds": 1},
    printed={"arguments": {"dimension": 10}, "seeds": 4},
)


def check(dataset: Dataset, other: Dataset) -> Evidence:
    """Kernel interpolant before and least nuclear norm after the transition, with their rates."""
    runs = dataset.transpose("seed", "alpha")
    alphas, end = runs.alpha.values, runs.isel(alpha=-1)
    powers = {
        name: np.array([slope(alphas, row) for row in runs[name].values])
        for name in ("from_kernel", "from_nuclear", "late_error")
    }
    fading = 2 * (LATE - 1)
    tries = [int(data.tries.isel(alpha=0).sum()) for data in (runs, other)]
    near = at_most(end.from_kernel.max(), 1e-4)
    lazy = within(furthest(powers["from_kernel"] + 4 * (1 - EARLY)), tolerance=0.1)
    least = within(furthest(end.last_excess, 1.0), 1.0, 0.01)
    selects = within(furthest(other.last_excess, 1.0), 1.0, 0.01)
    # from the order one at the forecast, at the rate of the certificate
    due = alphas[-1] ** (-2 * (LAST - 1) * (1 - end.second.values)) + RATE
    solved = at_most((end.last_error.values / due).max(), 1.0)
    rate = within(
        furthest(powers["late_error"] + fading * (1 - runs.second.isel(alpha=0).values)),
        tolerance=0.1,
    )
    kkt = at_most(end.kkt.max(), 0.01)
    return Evidence(
        ran=f"{runs.sizes['seed']} tables that their entries determine, of {tries[0]} drawn, and "
        rf"{other.sizes['seed']} that they do not, of {tries[1]}; $\alpha = 10$ to 1000, rate "
        "$10^{-5}$ with the sum of squares, trained in the parameters; times in units of the "
        "forecast made before training",
        checks={
            r"largest distance to the kernel interpolant at $\alpha = 1000$, $c = 1/2$": near,
            r"largest deviation of that distance's exponent in $\alpha$ from $-4 c$": lazy,
            r"nuclear norm over the least that fits, $\alpha = 1000$, $c = 2$": least,
            "the same where the table itself has a larger nuclear norm": selects,
            r"largest test error at $\alpha = 1000$, $c = 2$, over $\alpha^{-2 c(1 - s)}$ plus "
            "the rate, $s$ the second singular value of the certificate": solved,
            r"largest deviation of the test error's exponent in $\alpha$ ($c = 1$) from $-2 c (1 "
            "- s)$": rate,
            r"largest KKT residual of the parameters at $\alpha = 1000$, $c = 2$": kkt,
        },
        premises={
            "the least nuclear norm is certified by its dual": below(runs.certificate.max(), 1e-8),
            "the observed entries determine the table: it is the matrix of least nuclear"
            " norm": below(runs.off_truth.max(), 1e-8),
            "the kernel interpolant has the least Frobenius norm and is zero at unobserved"
            " entries": below(runs.off_frobenius.max(), 1e-10),
        },
        controls={
            "the matrix of least nuclear norm before the transition": near.control(
                end.from_nuclear.min()
            ),
            "the least nuclear norm before the transition: the same exponent": lazy.control(
                (powers["from_nuclear"] + 4 * (1 - EARLY)).min()
            ),
            "the kernel interpolant's nuclear norm after the transition": least.control(
                end.kernel_excess.min()
            ),
            "the kernel interpolant's test error": solved.control(
                (end.kernel_error.values / due).min()
            ),
            "the KKT residual before the transition": kkt.control(end.early_kkt.min()),
            "the table where another matrix has a smaller norm": selects.control(
                other.truth_excess.min()
            ),
            "every direction decays with the start, whatever the certificate": rate.control(
                (powers["late_error"] + fading).min()
            ),
        },
        findings=[
            r"after the transition the test error falls like $\exp(-2 (1 - s)\,\mathrm{rate}\,t)$ "
            "down to a bias of the order of the rate; $s$ = "
            + ", ".join(f"{s:.3f}" for s in runs.second.isel(alpha=0).values)
            + r" here, so the slack of the certificate, and not only $\alpha$, determines the "
            "waiting time",
            r"test error of the first table at 3 times the forecast, by $\alpha$: "
            + ", ".join(f"{error:.2g}" for error in runs.last_error.values[0]),
        ],
        plots=[
            Plot(
                "distance to the kernel interpolant at $(1 - c)$ and test error at $(1 + c)$ of "
                "the forecast",
                r"$\alpha$",
                "distance, error",
                [
                    Series(f"{words}, table {k}", alphas, row)
                    for words, name in (
                        ("kernel, $c = 1/2$", "from_kernel"),
                        ("test, $c = 1$", "late_error"),
                    )
                    for k, row in enumerate(runs[name].values)
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


experiment = Experiment(
    "L-table",
    statement=r"Theorems 1 and 2 hold for regression with $U U^T - V V^T$ from $U = V = \alpha "
    "I$: before the transition the matrix is the kernel interpolant of its start, and after "
    "it the matrix of least nuclear norm, which completes a multiplication table.",
    place="Example: completing multiplication tables",
    study=(study, other),
    check=check,
    title="The matrix is first the kernel interpolant and late in training that of least nuclear"
    " norm",
    ours="the tables $i j/d^2$, the observed pairs, starts and rate",
    seconds=2,
)
