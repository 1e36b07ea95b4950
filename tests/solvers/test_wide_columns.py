"""Columns over many decades: the answer and its proof, in the units of the data.

Nothing here uses float64: the floats of data and answer are exact, and sums have 300 digits.
"""

import itertools

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

import judge
import oracle
import outcomes
from odd_problems import problem
from penchant import L1, L2, Q, interpolate
from penchant.lab import Kind
from penchant.regularizers import Lp
from penchant.solvers import exact

DECADES = [13, 32, 60]
NORMS = {L1(): 1.0, L2(): 2.0, Lp(1.1): 1.1, Lp(1.5): 1.5, Lp(3.0): 3.0}
DIGITS = 300


def data(decades, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3, 6)) * 10.0 ** np.linspace(-decades / 2, decades / 2, 6)
    return X, rng.normal(size=3)


def numbers(values):
    return [mpf(float(v)) for v in values]


def whole_dual(solution):
    """The dual without rounding, up to its unit."""
    parts = zip(solution.dual, *solution.dual_rest, strict=True)
    return [mp.fsum(numbers(entry)) for entry in parts]


def norm_of(p, vector):
    """|vector|_p."""
    if p == mp.inf:
        return max(abs(v) for v in vector)
    return mp.fsum(abs(v) ** p for v in vector) ** (1 / mpf(p))


def bound(X, y, p, dual):
    """What |b|_p cannot fall below if X b = y: y.nu / |X^T nu|_q for any nu (Hoelder)."""
    s = [mp.fdot(dual, numbers(column)) for column in X.T]
    q = mp.inf if p == 1 else mpf(p) / (mpf(p) - 1)
    return mp.fdot(dual, numbers(y)) / norm_of(q, s)


def apart(X, solution, reference):
    """The largest distance of two predictors, each column in its own unit."""
    pairs = zip(solution.beta, reference, np.abs(X).max(axis=0), strict=True)
    return float(max(abs(mpf(float(b)) - r) * float(c) for b, r, c in pairs))


def solved(X, y, regularizer):
    solution = interpolate(X, y, regularizer)
    assert solution.outcome.kind is Kind.SOLVED
    assert "rounding:" not in solution.outcome.sentence
    assert solution.residual < 1e-9
    assert solution.kkt < 1e-8
    return solution


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("decades", DECADES)
@pytest.mark.parametrize("norm", NORMS, ids=str)
def test_no_fit_has_a_smaller_norm(norm, decades, seed):
    (X, y), p = data(decades, seed), NORMS[norm]
    solution = solved(X, y, norm)
    with mp.workdps(DIGITS):
        value = norm_of(mpf(p), numbers(solution.beta))
        slack = max(1e-9, solution.error)
        assert value <= bound(X, y, p, whole_dual(solution)) * (1 + mpf(slack))


def test_a_dual_of_float64_alone_proves_nothing_over_60_decades():
    """The control: the first part of the dual is its rounding, whose bound is far below."""
    for norm, p in NORMS.items():
        X, y = data(60, 0)
        solution = interpolate(X, y, norm)
        assert len(solution.dual_rest) > 0
        with mp.workdps(DIGITS):
            value = norm_of(mpf(p), numbers(solution.beta))
            assert abs(bound(X, y, p, numbers(solution.dual))) < value / 2
        assert "dual_rest" in str(solution)
    assert "dual_rest" not in str(interpolate(X[:, :3] / np.abs(X[:, :3]).max(axis=0), y, L2()))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("decades", DECADES)
@pytest.mark.parametrize("depth", [2, 3])
def test_q_agrees_with_an_independent_solver(depth, decades, seed):
    X, y = data(decades, seed)
    for log_alpha in (-2.0, -7.0):
        solution = solved(X, y, Q(depth, log_alpha=log_alpha))
        reference = oracle.solve(X, y, depth, log_alpha).beta
        assert apart(X, solution, reference) < 1e-9


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("decades", DECADES)
def test_l1_and_l2_agree_with_their_formulas(decades, seed):
    X, y = data(decades, seed)
    with mp.workdps(DIGITS):
        rows, targets = mp.matrix(X.tolist()), mp.matrix(y.tolist())
        least = rows.T * mp.lu_solve(rows * rows.T, targets)
        assert apart(X, solved(X, y, L2()), list(least)) < 1e-9
        corners = []
        for columns in itertools.combinations(range(6), 3):
            fit = mp.lu_solve(mp.matrix(X[:, columns].tolist()), targets)
            corner = [mpf(0)] * 6
            for column, value in zip(columns, fit, strict=True):
                corner[column] = value
            corners.append(corner)
        best = min(corners, key=lambda b: norm_of(1, b))
        assert apart(X, solved(X, y, L1()), best) < 1e-9


@pytest.mark.parametrize("size", [1e-150, 1e120])
def test_a_dual_in_a_unit_of_its_own_is_still_a_sum(size):
    """Huge and tiny data are solved in other units; powers of two do not spoil the sum."""
    X, y = data(32, 1)
    for norm, p in NORMS.items():
        solution = solved(size * X, y, norm)
        with mp.workdps(DIGITS):
            value = norm_of(mpf(p), numbers(solution.beta))
            assert value <= bound(size * X, y, p, whole_dual(solution)) * (1 + mpf(10) ** -9)
            # and the unit makes it the gradient of |.|_p^p / p, not only a multiple of it
            largest = int(np.argmax(np.abs(solution.beta)))
            slope = mp.fdot(whole_dual(solution), numbers(size * X[:, largest]))
            slope *= mp.exp(mpf(solution.log_dual_unit))
            # L2 is the sum of squares, without the 1/2
            due = (1 + isinstance(norm, L2)) * abs(mpf(float(solution.beta[largest]))) ** (p - 1)
            assert abs(abs(slope) / due - 1) < 1e-8


@pytest.mark.parametrize("seed", [756, 1032, 3816, 5952, 6372, 7116])
def test_nearly_equal_rows_are_certified_without_allowance_for_rounding(seed):
    """Rows that differ by 1e-14: the combined rows have to be right to the last digit."""
    assert outcomes.outcome(problem(seed)) == ("solved and right", "")


def test_what_is_not_certified_is_not_called_solved(monkeypatch):
    """Where float64 has no room for the proof the outcome says so."""
    X, y = data(32, 0)
    monkeypatch.setattr("penchant.solvers.constraints.PARTS", 1)
    solution = interpolate(X, y, L2(), throw=False)
    assert solution.outcome.kind is Kind.APPROXIMATE
    assert solution.error > judge.RIGHT
    assert solution.kkt > judge.RIGHT


def test_products_are_rounded_once():
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(3, 5)) * 10.0 ** np.array([[0.0], [-16], [-200]])
    matrix = rng.normal(size=(5, 7)) * 10.0 ** rng.uniform(-100, 100, size=(5, 7))
    matrix[2], matrix[:, 3] = 0.0, 0.0
    with mp.workdps(DIGITS):
        vector = [mp.fsum(numbers(entry)) for entry in parts.T]
        target = rng.normal(size=7)
        products = [mp.fdot(vector, numbers(column)) for column in matrix.T]
        left = [float(t - v) for t, v in zip(numbers(target), products, strict=True)]
    np.testing.assert_allclose(
        exact.product(parts, matrix), [float(v) for v in products], rtol=3e-16
    )
    np.testing.assert_allclose(exact.rest(target, parts, matrix), left, rtol=3e-16)
    assert exact.product(np.array([[1e300]]), np.array([[-1e300]])) == [-np.inf]
