"""Solved means certified: the error that a solution carries is at least the true one.

The true minimisers come from elsewhere: rational numbers for l1 and l2, mpmath for Q (oracle) and
for the duality of matrices (judge). The old code called every one of these instances solved.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judge
import oracle
import penchant
from fraction_walks import solve_exactly
from odd_problems import Problem
from penchant import L1, L2, Q, derive, interpolate, max_margin
from penchant.regularizers import Frobenius, Lp, Nuclear, Schatten, Spectral
from penchant.solvers import interpolate_path, max_margin_path, ratchet_path, stationary_points
from penchant.solvers.accuracy import Equations, Given
from penchant.solvers.certificate import TOLERANCE
from penchant.solvers.certificate import judge as verdict
from penchant.solvers.constraints import reduce
from penchant.solvers.margins import ratchet
from penchant.solvers.margins.rows import Margins, given_rows
from penchant.solvers.matrices import interpolate as matrix_solver
from penchant.solvers.matrices.measurements import measurements
from penchant.solvers.solution import SOLVED, Found

DIGITS = 120


def nearly_dependent(seed: int, decades: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """(X, y): the last row next to the first, columns over so many decades."""
    rng = np.random.default_rng(seed)
    samples = int(rng.integers(2, 4))
    dimension = int(rng.integers(samples + 1, 7))
    X, apart = rng.normal(size=(samples, dimension)), 10.0 ** -rng.integers(6, 13)
    X[-1] = X[0] + apart * rng.normal(size=dimension)
    X = X * 10.0 ** rng.uniform(-decades / 2, decades / 2, size=dimension)
    return X, rng.normal(size=samples)


def least_l1(X: np.ndarray, y: np.ndarray) -> float:
    """The least l1 norm of a fit, by all bases in rational numbers."""
    rows, targets = [[Fraction(v) for v in row] for row in X.tolist()], list(map(Fraction, y))
    values = []
    for basis in itertools.combinations(range(X.shape[1]), len(y)):
        beta = solve_exactly([[row[i] for i in basis] for row in rows], targets)
        if beta is not None:
            values.append(sum(map(abs, beta)))
    return float(min(values))


def least_l2(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The shortest fit, in rational numbers."""
    rows = [[Fraction(v) for v in row] for row in X.tolist()]
    gram = [[sum(a * b for a, b in zip(p, q, strict=True)) for q in rows] for p in rows]
    nu = solve_exactly(gram, list(map(Fraction, y)))
    assert nu is not None
    return np.array([float(sum(n * row[i] for n, row in zip(nu, rows, strict=True)))
                     for i in range(X.shape[1])])  # fmt: skip


def distance(beta: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(beta - exact).max() / np.abs(exact).max())


@pytest.mark.parametrize("decades", [0, 22])
@pytest.mark.parametrize("seed", range(8))
def test_l1_of_nearly_dependent_rows_is_the_least(seed, decades):
    X, y = nearly_dependent(seed, decades)
    solution = interpolate(X, y, L1(), throw=False)
    true = solution.value / least_l1(X, y) - 1
    assert abs(true) <= max(1e-12, 2 * solution.error)
    assert solution.outcome.ok


@pytest.mark.parametrize("decades", [0, 22])
@pytest.mark.parametrize("seed", range(8))
def test_l2_of_nearly_dependent_rows_is_right_to_what_is_said(seed, decades):
    X, y = nearly_dependent(seed, decades)
    solution = interpolate(X, y, L2(), throw=False)
    true = distance(solution.beta, least_l2(X, y))
    assert true <= max(1e-12, 2 * solution.error)
    assert solution.outcome.ok
    if "to rounding" in solution.outcome.sentence:
        assert true < 1e-12


@pytest.mark.parametrize(
    "make", [lambda D: Q(D, alpha=0.1), lambda D: derived(D)], ids=["Q", "derive"]
)
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("seed", [1, 2])
def test_q_of_nearly_dependent_rows_is_right_to_what_is_said(seed, depth, make):
    X, y = nearly_dependent(seed, decades=22 if seed % 2 else 0)
    exact = oracle.solve(X, y, depth, np.log(0.1)).beta
    solution = interpolate(X, y, make(depth), throw=False)
    true = distance(solution.beta, exact)
    assert true <= max(1e-11, 3 * solution.error)
    assert true < 1e-6 or not solution.outcome.ok


def derived(depth: int):
    return derive(lambda w: w**depth, start=0.1)


@pytest.mark.parametrize(
    "regularizer", [Nuclear(), Frobenius(), Schatten(Q(3, alpha=0.1))], ids=str
)
@pytest.mark.parametrize("seed", range(6))
def test_nearly_equal_measurements_are_certified(seed, regularizer):
    """Judged by duality and by the nearest matrix that fits, in mpmath."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3, 3))
    A[2] = A[0] + 10.0 ** -rng.integers(7, 12) * rng.normal(size=(3, 3))
    y = np.array([1.0, 0.5, 2.0])
    solution = interpolate(A, y, regularizer)
    case = Problem(seed, "interpolate", A, y, regularizer, "nearly equal", True)
    assert judge.wrong(case, solution) == ""
    assert solution.error <= TOLERANCE


SMOOTH = [L2(), Lp(1.5), Lp(3.0), Q(2, alpha=0.1), Q(3, alpha=0.3), Q(2, alpha=10.0)]


def answered(X: np.ndarray, y: np.ndarray, regularizer, beta, dual):
    """What the judge says about an answer that nobody has polished."""
    equations = Equations(regularizer, Given(X, y), reduce(X, y))
    certificate = equations.certificate(equations.answer(beta, dual[None]))
    return certificate, verdict(SOLVED, certificate)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(SMOOTH), st.sampled_from([1e-2, 1e-4, 1e-6]))
def test_poisoned_answers_are_caught(seed, regularizer, size):
    """Another fit of the rows, a wrong dual, a row that is missed, a constraint that is lost."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(3, 7)), rng.normal(size=3)
    right = interpolate(X, y, regularizer)
    certificate, outcome = answered(X, y, regularizer, right.beta, right.dual)
    assert outcome.ok
    assert certificate.error < 1e-9
    largest = np.abs(right.beta).max()
    aside = np.linalg.svd(X)[2][-1]
    other = right.beta + size * largest * aside / np.abs(aside).max()
    missed = right.beta * (1 + size)
    for beta in (other, missed):
        certificate, outcome = answered(X, y, regularizer, beta, right.dual)
        assert not outcome.ok
        assert certificate.error >= 0.5 * distance(right.beta, beta)
    lost = interpolate(X[:2], y[:2], regularizer)
    dual = np.append(lost.dual, 0.0)
    certificate, outcome = answered(X, y, regularizer, lost.beta, dual)
    assert not outcome.ok
    assert certificate.error >= 0.3 * min(1.0, distance(lost.beta, right.beta))
    _, outcome = answered(X, y, regularizer, right.beta, right.dual * (1 + 1e-3))
    assert not outcome.ok


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-6, 1e-2))
def test_a_poisoned_l1_answer_is_caught(seed, size):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(3, 7)), rng.normal(size=3)
    right = interpolate(X, y, L1())
    assert answered(X, y, L1(), right.beta, right.dual)[1].ok
    aside = np.linalg.svd(X)[2][-1]
    poisons = [
        (right.beta + size * np.abs(right.beta).max() * aside, right.dual),
        (right.beta * (1 + size), right.dual),
        (right.beta, right.dual * (1 + size)),
    ]
    for beta, dual in poisons:
        assert not answered(X, y, L1(), beta, dual)[1].ok


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([L2(), Q(2, alpha=0.1), L1(), Lp(3.0)]))
def test_poisoned_margins_are_caught(seed, regularizer):
    """A margin that is short, a dual of another problem, a predictor that is too long."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(4, 6))
    Z[:, 0] = np.abs(Z[:, 0]) + 0.5
    right = max_margin(Z, np.ones(4), regularizer)
    unit = np.exp(right.log_dual_unit)

    def said(beta, dual):
        given = given_rows(Z)
        margins = 1 - given.missing(beta)
        judged = Margins(regularizer, given, margins, unit * dual[None], beta, 1.0)
        return verdict(SOLVED, judged.certificate(0.0)).ok

    assert said(right.beta, right.dual)
    assert not said(right.beta * (1 - 1e-4), right.dual)
    assert not said(right.beta * (1 + 1e-4), right.dual)
    assert not said(right.beta, 1.01 * right.dual)
    assert not said(right.beta, np.roll(right.dual, 1) + right.dual)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2, 3]), st.sampled_from([1e-2, 1e-5]))
def test_poisoned_rows_of_a_ratchet_are_caught(seed, depth, size):
    """A predictor off its weights, one that misses a margin, a weight that fell, a lost sample."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(3, 5))
    Z[:, 0] = np.abs(Z[:, 0]) + 0.5
    mu = 0.01
    path = ratchet_path(Z, np.ones(3), depth, mus=[mu])
    walk, log_tau, nothing = ratchet.RatchetWalk(Q(depth, mu=1.0), Z), -np.log(mu), np.zeros(3)

    def said(beta, R, support, last=nothing):
        return ratchet.certify(walk, beta, R, support, log_tau, last).error

    beta, R, support = path.beta[0], path.dual[0], path.support[0]
    assert said(beta, R, support) == pytest.approx(path.error[0], abs=1e-12)
    assert path.error[0] < 1e-9
    aside = beta + size * np.abs(beta).max() * np.eye(5)[rng.integers(5)]
    assert said(aside, R, support) > 0.3 * size
    assert said(beta * (1 - size), R, support) > 0.3 * size
    assert not said(beta, R * (1 + size), support) <= 1e-7
    assert not said(beta, R, support, last=R * (1 + size)) <= 1e-7
    lost = ratchet_path(Z[:1], [1.0], depth, mus=[mu])
    if (Z @ lost.beta[0]).min() < 0.99:  # another sample binds
        assert not said(lost.beta[0], np.append(lost.dual[0], [0, 0]), np.inf < R) <= 1e-7


def test_every_solver_has_an_error():
    """What a user can call and what carries the certified error; None needs none."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(3, 5)), np.array([1.0, -1.0, 1.0])
    matrices = penchant.problems.Sensing(rng.normal(size=(3, 2, 2)), y)
    net = penchant.DiagonalNet(alpha=0.5)
    answers = [
        interpolate(X, y, Q(2, alpha=0.1)),
        interpolate(matrices, Nuclear()),
        interpolate_path(X, y, log_alphas=[0.0]),
        max_margin(X, y, L2()),
        max_margin_path(X, y, mus=[1.0]),
        ratchet_path(X, y, mus=[1.0]),
        stationary_points(X, y, Lp(0.5), starts=2)[0],
        penchant.solvers.saddles(X, y),
        penchant.solvers.slow_flow(X, np.ones(5)),
        penchant.solvers.slow_flow(X[:1, :4], np.eye(2), learning_rate=0.05, throw=False),
        penchant.solvers.saddles(matrices),
        penchant.measures.kernel_machine(net, penchant.Regression(X, y)),
        penchant.measures.kernel_machine(net, penchant.Classification(X, y)),
    ]
    for answer in answers:
        error = np.max(answer.error)
        outcome = getattr(answer, "outcome", None) or answer.outcomes[0]
        assert np.isfinite(error), type(answer)
        assert outcome.ok == (error <= TOLERANCE), type(answer)


def test_whatever_is_solved_carries_an_error_below_its_tolerance():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(4, 6)), np.ones(4)
    X[:, 0] = np.abs(X[:, 0]) + 0.5
    matrices = rng.normal(size=(4, 3, 3))
    solutions = [
        *(interpolate(X, y, r) for r in [*SMOOTH, L1(), derived(2)]),
        *(interpolate(matrices, y, r) for r in (Nuclear(), Frobenius(), Schatten(Q(2, alpha=0.1)))),
        *(
            max_margin(X, y, r)
            for r in [*SMOOTH, L1(), derived(2), Nuclear((2, 3)), Spectral((2, 3))]
        ),
        *stationary_points(X, y, Lp(0.5), starts=3),
    ]
    for solution in solutions:
        assert solution.outcome.ok
        assert 0 <= solution.error <= solution.certificate.tolerance
    path = interpolate_path(X, y, log_alphas=[0.0, -5.0])
    margins = max_margin_path(X, y, mus=[1.0, 1e-3])
    for error in (*path.error, *margins.error):
        assert 0 <= error <= TOLERANCE


@pytest.mark.parametrize("norm", [Spectral((3, 4)), Nuclear((3, 4))], ids=str)
@pytest.mark.parametrize("seed", [0, 2, 4, 6])
def test_matrix_margins_of_rows_over_sixteen_decades(seed, norm):
    """The gap is recomputed here: a predictor with margins of one, a dual of length one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3, 12))
    y = np.sign(X @ rng.normal(size=12))
    X = X * 10.0 ** rng.uniform(-8, 8, size=(3, 1))
    solution = max_margin(X, y, norm)
    assert (y * (X @ solution.beta)).min() > 1 - 1e-9
    assert (solution.dual >= 0).all()
    slopes = (solution.dual * y) @ X
    length = np.linalg.norm(slopes.reshape(3, 4), "nuc" if isinstance(norm, Spectral) else 2)
    assert solution.value <= solution.dual.sum() / max(1, length) * (1 + 1e-8)


def test_digits_do_not_change_what_mpmath_says():
    """The control: the judge of matrices sees a matrix that fits to rounding and is 1e-5 off."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 3, 3))
    A[2] = A[0] + 1e-11 * rng.normal(size=(3, 3))
    y = np.array([1.0, 0.5, 2.0])
    rows = mp.matrix(A.reshape(3, 9).tolist())
    with mp.workdps(DIGITS):
        nu = mp.lu_solve(rows * rows.T, mp.matrix((y * (1 + 1e-16 * np.arange(3))).tolist()))
        off = np.array([float(v) for v in rows.T * nu]).reshape(3, 3)
    off[0, 0] *= 1 + 1e-5
    flat = A.reshape(3, 9)
    with mp.workdps(60):
        exact = [[mp.mpf(float(v)) for v in row] for row in flat]
        text = judge.too_far(flat, exact, [mp.mpf(v) for v in y], [mp.mpf(v) for v in off.ravel()])
    assert "away" in text


@pytest.mark.parametrize(
    ("rows", "y"),
    [
        (
            [
                [3.4413835454498344e-09, -1511383807.9590328, -8.31572209743495e-09,
                 8.16501823999587e-08, -6.9119637323239785e-06],
                [-3.770008824830367e-09, 1655709170.0116062, 9.109808679668344e-09,
                 -8.944713779691425e-08, 7.572002342586967e-06],
            ],
            [-1.3367648897937432, 1.4644155075153382],
        ),
        (
            [
                [-3.7598858733924916e-10, 4.3565145248442506e-07, -1836974355.0779426],
                [-3.7598858725963757e-10, 4.356514524727893e-07, -1836974355.0150576],
            ],
            [1.1781342167642885, 1.1781342166881628],
        ),
    ],
)  # fmt: skip
def test_an_l1_answer_that_misses_its_rows_is_not_below_the_least(rows, y):
    """Its neighbour that meets them had the least value, and was taken for the answer."""
    X, y = np.array(rows), np.array(y)
    solution = interpolate(X, y, L1())
    assert abs(solution.value / least_l1(X, y) - 1) <= 2 * solution.error + 1e-15
    assert solution.error <= 1e-8


@pytest.mark.parametrize("norm", [L1(), Nuclear()], ids=str)
def test_a_norm_below_the_least_is_an_error_too(norm):
    """A predictor that misses a nearly dependent row by rounding, with a right dual."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2, 4))
    X[1] = X[0] + 1e-9 * rng.normal(size=4)
    y = np.array([1.0, 1.0 + 3e-9])
    given = X if isinstance(norm, L1) else X.reshape(2, 2, 2)
    right = interpolate(given, y, norm)
    answer = right.beta if isinstance(norm, L1) else right.matrix
    for size in (1e-3, 1e-5, 1e-7):
        poisoned = answer * (1 - size)  # misses rows by 1e-12 of the largest once it is refitted
        moved = poisoned.ravel() + np.linalg.lstsq(X[:1], y[:1] - X[:1] @ poisoned.ravel())[0]
        assert np.abs(X @ moved - y).max() < 1e-8
        if isinstance(norm, L1):
            assert answered(X, y, norm, moved, right.dual)[0].error > 0.1 * size
        else:
            assert of_nuclear(given, y, moved.reshape(2, 2), right.dual).error > 0.1 * size


def of_nuclear(matrices, y, matrix, dual):
    problem = penchant.problems.Sensing(matrices, y)
    proposal = Found(matrix, dual, 1, SOLVED)
    return matrix_solver.certified(problem, measurements(problem), Nuclear(), proposal).certificate


@pytest.mark.parametrize("norm", [Nuclear((2, 3)), Spectral((2, 3))], ids=str)
@pytest.mark.parametrize("apart", [1e-3, 1e-6, 1e-9])
def test_margins_of_nearly_equal_matrices(norm, apart):
    """Weights beside margins above one: no predictor nearby has both margins at one."""
    rng = np.random.default_rng(5)
    X = np.repeat(rng.normal(size=(1, 6)), 3, axis=0)
    X[1:] += apart * rng.normal(size=(2, 6))
    solution = max_margin(X, np.ones(3), norm)
    case = Problem(0, "max_margin", X, np.ones(3), norm, "nearly equal", True)
    assert judge.wrong(case, solution) == ""
    slopes = solution.dual @ X
    length = np.linalg.norm(slopes.reshape(2, 3), "nuc" if isinstance(norm, Spectral) else 2)
    assert solution.value <= solution.dual.sum() / max(1, length) * (1 + 1e-8)


def test_margins_of_the_spectral_norm_with_a_hundred_rows():
    """The first point of the central path is farther away than fifty safe steps."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 200))
    solution = max_margin(X, np.sign(X @ rng.normal(size=200)), Spectral((10, 20)))
    assert solution.error < 1e-8
