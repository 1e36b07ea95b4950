"""max_margin in l_inf, the nuclear and the spectral norm, against linear and conic programs."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from penchant import L1, L2, interpolate, max_margin
from penchant.regularizers import Linf, Nuclear, Spectral
from penchant.solvers.solution import kkt_residual
from refusals import refusals

SOME = settings(deadline=None, derandomize=True, max_examples=25)


def separable(seed, samples=7, dimension=12):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, dimension))
    return X, np.where(X @ rng.standard_normal(dimension) > 0, 1.0, -1.0)


def norms(rows, columns):
    """Each norm with its dual, by NumPy's own formulas."""
    shape = rows, columns
    spectral = lambda b: np.linalg.norm(b.reshape(shape), 2)  # noqa: E731
    nuclear = lambda b: np.linalg.norm(b.reshape(shape), "nuc")  # noqa: E731
    return {
        Linf(): (lambda b: np.abs(b).max(), lambda b: np.abs(b).sum()),
        Nuclear(shape): (nuclear, spectral),
        Spectral(shape): (spectral, nuclear),
    }


@SOME
@given(
    seed=st.integers(0, 2000),
    samples=st.integers(1, 15),
    rows=st.integers(1, 5),
    columns=st.integers(1, 5),
)
def test_no_predictor_has_a_larger_margin(seed, samples, rows, columns):
    X, y = separable(seed, samples, rows * columns)
    for regularizer, (norm, dual_norm) in norms(rows, columns).items():
        found = max_margin(X, y, regularizer)
        assert (y * (X @ found.beta)).min() > 1 - 1e-9
        assert found.dual.min() >= 0
        # sum nu <= sum nu_n margin_n(b) <= dual norm of sum nu_n y_n x_n times the norm of any b
        bound = found.dual.sum() / dual_norm((found.dual * y) @ X)
        assert norm(found.beta) <= bound * (1 + 1e-8)
        assert found.value == pytest.approx(norm(found.beta), rel=1e-12)


def test_the_certificate_can_fail():
    X, y = separable(3)
    for regularizer in norms(3, 4):
        found, other = max_margin(X, y, regularizer), max_margin(X, y, L2())
        slopes = (found.dual * y) @ X
        assert kkt_residual(regularizer, found.beta, slopes) < 1e-9
        assert kkt_residual(regularizer, other.beta, slopes) > 1e-2
        assert kkt_residual(regularizer, found.beta, 1.01 * slopes) > 1e-3


def test_the_better_one_of_the_last_points_of_the_path_is_the_answer():
    # beyond-muon at its shift 12043061: the last point of the central path is 200 roundings from
    # the bound, and its value was 1.1e-8 above that of the dual; the point before has 5e-11
    rng, unit = np.random.default_rng(12043061), np.eye(4)
    X, labels = rng.standard_normal((6, 6)), rng.integers(0, 4, 6)
    pairs = [(x, c, k) for x, c in zip(X, labels, strict=True) for k in range(4) if k != c]
    rows = np.array([np.outer(unit[c] - unit[k], x).ravel() for x, c, k in pairs])
    found = max_margin(rows, np.ones(len(rows)), Nuclear((4, 6)))
    norm, dual_norm = norms(4, 6)[Nuclear((4, 6))]
    assert (rows @ found.beta).min() > 1 - 1e-12
    assert norm(found.beta) <= found.dual.sum() / dual_norm(found.dual @ rows) * (1 + 1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_l_inf_has_the_value_of_its_dual_program(seed):
    X, y = separable(seed, 9, 14)
    n, d = X.shape  # max sum nu under |Z^T nu|_1 <= 1: nu, and bounds of |Z^T nu|
    Z, one = X * y[:, None], np.eye(d)
    limits = np.block([[Z.T, -one], [-Z.T, -one], [np.zeros((1, n)), np.ones((1, d))]])
    room = np.append(np.zeros(2 * d), 1.0)
    dual = linprog(np.append(-np.ones(n), np.zeros(d)), A_ub=limits, b_ub=room)
    assert max_margin(X, y, Linf()).value == pytest.approx(-dual.fun, rel=1e-9)
    assert max_margin(X, y, L2(squared=False)).value > -1.01 * dual.fun


@pytest.mark.parametrize(("rows", "columns", "samples"), [(3, 4, 8), (5, 2, 6), (4, 4, 20)])
def test_a_conic_solver_agrees(rows, columns, samples):
    X, y = separable(5, samples, rows * columns)
    for regularizer, cost in ((Nuclear, "nuc"), (Spectral, 2)):
        W = cp.Variable((rows, columns))
        limits = [y[n] * cp.trace(X[n].reshape(rows, columns).T @ W) >= 1 for n in range(samples)]
        wanted = cp.Problem(cp.Minimize(cp.norm(W, cost)), limits).solve(cp.CLARABEL)
        found = max_margin(X, y, regularizer((rows, columns)))
        assert found.value == pytest.approx(wanted, rel=1e-6)
        assert max(found.kkt, found.residual) < 1e-9


def test_one_column_is_a_vector_and_a_diagonal_is_its_entries():
    X, y = separable(8, 6, 5)
    euclidean = max_margin(X, y, L2(squared=False)).value
    for regularizer in (Nuclear, Spectral):
        assert max_margin(X, y, regularizer((5, 1))).value == pytest.approx(euclidean, rel=1e-9)
    diagonal = np.array([np.diag(row).ravel() for row in X])
    for regularizer, entries in ((Nuclear, L1()), (Spectral, Linf())):
        found = max_margin(diagonal, y, regularizer((5, 5))).value
        assert found == pytest.approx(max_margin(X, y, entries).value, rel=1e-9)


@SOME
@given(seed=st.integers(0, 500), power=st.integers(-6, 6))
def test_units_and_turned_samples(seed, power):
    X, y = separable(seed, 6, 12)
    rng, t = np.random.default_rng(seed), 10.0**power
    U, V = (np.linalg.qr(rng.standard_normal((k, k)))[0] for k in (3, 4))
    turned = (U @ X.reshape(-1, 3, 4) @ V).reshape(-1, 12)
    for regularizer in norms(3, 4):
        value = max_margin(X, y, regularizer).value
        assert t * max_margin(t * X, y, regularizer).value == pytest.approx(value, rel=1e-8)
        if not isinstance(regularizer, Linf):
            assert max_margin(turned, y, regularizer).value == pytest.approx(value, rel=1e-8)


ROW = [[1.0, 2.0, 3.0, 4.0]]
OPPOSITE = [[1.0, 2.0, 3.0, 4.0], [-1.0, -2.0, -3.0, -4.0]]


@pytest.mark.parametrize("norm", [Linf(), Nuclear((2, 2)), Spectral((2, 2))], ids=repr)
@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        (OPPOSITE, [1, 1], "rows 0 and 1 are the same point"),
        ([*ROW, [0.0] * 4], [1, 1], "row 1 of X is zero"),
        ([[1.0, 2.0, 3.0, np.nan]], [1], "finite"),
        (np.zeros((0, 4)), [], "empty"),
    ],
)
def test_bad_data(norm, X, y, sentence):
    with pytest.raises(ValueError, match=f"max_margin: .*{sentence}"):
        max_margin(X, y, norm)


test_norms_that_do_not_fit = refusals(
    (lambda: max_margin(ROW, [1], Spectral()), r"use Spectral\(shape=\(rows, columns\)\)"),
    (lambda: max_margin(ROW, [1], Nuclear((2, 3))), "6 coordinates,.* X has 4 columns"),
    (lambda: Spectral((2, 0)), "Spectral: shape must be"),
    (lambda: interpolate(ROW, [1.0], Linf()), "gradient of a norm cannot be inverted"),
    (
        lambda: interpolate(np.ones((1, 2, 2)), [1.0], Spectral()),
        r"a matrix needs Nuclear, Frobenius or Schatten, got Spectral",
    ),
)
