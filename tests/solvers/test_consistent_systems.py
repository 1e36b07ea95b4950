"""Consistent systems are solved, not refused, and each solution is checked by another route."""

import numpy as np
import pytest
from scipy.linalg import null_space

import oracle
from general_solvers import least_l1
from penchant import L1, L2, Q, interpolate
from penchant.regularizers import Lp, R
from penchant.solvers import interpolate_path

X = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])
Y = np.array([1.0, -2.0])
EVERY = [Q(2, log_alpha=-3.0), Q(3, log_alpha=-1.0), Q(5, log_alpha=-0.5), L1(), L2(), Lp(1.5),
         R(log_alpha=-2.0)]  # fmt: skip


def assert_minimiser(rows, targets, regularizer, beta) -> None:
    """`beta` fits, and no feasible direction lowers the regularizer."""
    rows, targets = np.asarray(rows, float), np.asarray(targets, float)
    sizes = np.abs(rows).max(axis=1)
    sizes[sizes == 0] = 1.0
    assert (np.abs(rows @ beta - targets) / sizes).max() < 1e-12 * np.abs(beta).max()
    kernel = null_space(rows / sizes[:, None], rcond=1e-10)
    if isinstance(regularizer, L1):
        least = least_l1(rows / sizes[:, None], targets / sizes)
        assert np.abs(beta).sum() <= np.abs(least).sum() * (1 + 1e-9)
    elif kernel.size:
        gradient = regularizer.gradient(beta)
        assert np.abs(kernel.T @ gradient).max() < 1e-7 * np.abs(gradient).max()


def random_rows(seed: int, samples: int, dimension: int):
    return np.random.default_rng(seed).normal(size=(samples, dimension))


def consistent_systems() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """name -> (rows, targets), all solvable, none of full row rank and unit scale."""
    A = random_rows(0, 3, 7)
    b = np.array([1.0, 0.0, -0.5, 0.0, 0.25, 0.0, 2.0])
    low = random_rows(1, 6, 2) @ random_rows(2, 2, 7)
    holes = A.copy()
    holes[:, [1, 4]] = 0
    tall = random_rows(3, 12, 7)
    doubled = np.vstack([A, A[:2], 3 * A[:1]])
    padded = np.vstack([A, np.zeros((2, 7))])
    systems = {
        "more rows than columns": tall,
        "duplicate rows": doubled,
        "zero rows": padded,
        "zero columns": holes,
        "low rank": low,
        "low rank and zero columns": low * (np.arange(7) != 3),
        "one row": A[:1],
        "one column": random_rows(4, 5, 1),
        "one number": np.array([[2.5]]),
        "square": random_rows(5, 7, 7),
        "integers": np.random.default_rng(6).integers(-3, 4, (3, 7)),
        "badly scaled rows": A * np.array([[1e-9], [1.0], [1e9]]),
        "duplicate columns": np.hstack([A[:, :4], A[:, :3]]),
    }
    return {name: (rows, rows @ b[: rows.shape[1]]) for name, rows in systems.items()}


@pytest.mark.parametrize("regularizer", EVERY, ids=str)
@pytest.mark.parametrize("name", consistent_systems())
def test_consistent_systems_are_solved(name, regularizer):
    rows, targets = consistent_systems()[name]
    solution = interpolate(rows, targets, regularizer)
    assert solution.outcome.ok
    assert solution.dual.shape == (len(rows),)
    assert_minimiser(rows, targets, regularizer, solution.beta)
    if name == "zero columns":
        assert np.abs(solution.beta[[1, 4]]).max() < 1e-15


@pytest.mark.parametrize("regularizer", EVERY, ids=str)
def test_the_check_of_a_minimiser_can_fail(regularizer):
    rows, targets = consistent_systems()["low rank"]
    beta = interpolate(rows, targets, regularizer).beta
    with pytest.raises(AssertionError):
        assert_minimiser(rows, targets, regularizer, beta + 1e-3)
    aside = null_space(rows, rcond=1e-10)[:, 0]
    with pytest.raises(AssertionError):
        assert_minimiser(rows, targets, regularizer, beta + 1e-3 * aside)


@pytest.mark.parametrize("regularizer", EVERY, ids=str)
@pytest.mark.parametrize("rows", [X, np.zeros((2, 3)), np.vstack([X, X])], ids=["X", "0", "X X"])
def test_zero_targets_give_zero(rows, regularizer):
    solution = interpolate(rows, np.zeros(len(rows)), regularizer)
    assert solution.outcome.ok
    assert (solution.beta == 0).all()
    assert solution.residual == solution.kkt == 0


@pytest.mark.parametrize("depth", [2, 3, 5])
@pytest.mark.parametrize("log_alpha", [-2.0, -60.0])
def test_dependent_rows_change_nothing(depth, log_alpha):
    """The same constraints written with dependent rows have the same minimiser, by mpmath."""
    rows = random_rows(7, 3, 6)
    targets = np.array([1.0, -0.5, 2.0])
    exact = oracle.solve(rows, targets, depth, log_alpha).beta
    mixed = np.vstack([rows, rows[::-1], rows[0] + rows[1], np.zeros(6)])
    values = np.concatenate([targets, targets[::-1], [targets[0] + targets[1], 0.0]])
    solution = interpolate(mixed, values, Q(depth, log_alpha=log_alpha))
    assert np.abs(solution.beta - exact).max() < 1e-10 * np.abs(exact).max()
    path = interpolate_path(mixed, values, depth, log_alphas=[0.0, log_alpha])
    assert np.abs(path.beta[1] - exact).max() < 1e-10 * np.abs(exact).max()


SIZES = (1e-150, 1e-30, 1.0, 1e30, 1e150)


@pytest.mark.parametrize("depth", [2, 4])
@pytest.mark.parametrize("log_alpha", [-400.0, -1.0, 60.0])
@pytest.mark.parametrize("size_y", SIZES)
@pytest.mark.parametrize("size_x", SIZES)
def test_huge_and_tiny_data(size_x, size_y, log_alpha, depth):
    rows = size_x * random_rows(8, 2, 5)
    targets = size_y * np.array([1.0, -0.3])
    exact = oracle.solve(rows, targets, depth, log_alpha)
    # a dual vector below the floats leaves no certificate to compute, but beta must still be right
    representable = max(abs(v) for v in exact.dual) > 1e-290
    solution = interpolate(rows, targets, Q(depth, log_alpha=log_alpha), throw=representable)
    assert solution.outcome.ok or not representable
    assert np.abs(solution.beta - exact.beta).max() < 1e-10 * np.abs(exact.beta).max()


@pytest.mark.parametrize("regularizer", [L1(), L2(), Lp(1.5), Lp(3.0)], ids=str)
@pytest.mark.parametrize("size", [1e-150, 1e-30, 1e30, 1e150])
def test_norms_scale_with_the_targets(regularizer, size):
    rows, targets = random_rows(9, 2, 5), np.array([1.0, -0.3])
    unit = interpolate(rows, targets, regularizer).beta
    scaled = interpolate(rows, size * targets, regularizer).beta
    assert np.abs(scaled / size - unit).max() < 1e-9
    same = interpolate(size * rows, size * targets, regularizer).beta
    assert np.abs(same - unit).max() < 1e-9


@pytest.mark.parametrize("depth", [2, 3])
def test_badly_scaled_rows(depth):
    rows, targets = random_rows(10, 2, 5), np.array([1.0, -0.3])
    exact = oracle.solve(rows, targets, depth, -4.0).beta
    for exponents in ([-150, 0], [150, 0], [-100, 100], [-9, 9]):
        factors = np.power(10.0, exponents)
        solution = interpolate(factors[:, None] * rows, factors * targets, Q(depth, log_alpha=-4.0))
        assert np.abs(solution.beta - exact).max() < 1e-10 * np.abs(exact).max(), exponents


@pytest.mark.parametrize("kind", [np.float32, np.int32, list, tuple, np.asfortranarray])
def test_plain_lists_and_other_number_types_are_welcome(kind):
    rows, targets = [[1, 2, -1], [0, 1, 3]], [1, -2]
    plain = interpolate(np.array(rows, float), np.array(targets, float), Q(2, alpha=0.1)).beta
    convert = (lambda a: np.array(a, kind)) if kind in (np.float32, np.int32) else kind
    assert np.array_equal(interpolate(convert(rows), convert(targets), Q(2, alpha=0.1)).beta, plain)


def test_arguments_are_left_untouched():
    rows, targets, scales = X.copy(), Y.copy(), np.array([-1.0, -2.0])
    for array in (rows, targets, scales):
        array.setflags(write=False)
    interpolate(rows, targets, Q(2, alpha=0.1))
    interpolate_path(rows, targets, 3, log_alphas=scales)
    assert np.array_equal(rows, X)
    assert np.array_equal(targets, Y)
