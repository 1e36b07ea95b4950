"""Decisions against a linear program, proofs in exact arithmetic, margins in their own units."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import penchant
from penchant.lab import Kind, door_as
from penchant.solvers import separation
from penchant.solvers.exact import independent, separates
from penchant.solvers.margins.active_set import Unbounded
from penchant.solvers.margins.separation import require_separable, separating

SEEDS = st.integers(0, 10_000)
MODEST = settings(deadline=None, derandomize=True, max_examples=60)


def labelled(rng, spread=3.0):
    """Random labels on points whose lengths differ by decades."""
    samples, dimension = rng.integers(1, 30), rng.integers(1, 20)
    X = rng.normal(size=(samples, dimension)) * 10.0 ** rng.uniform(-spread, spread, (samples, 1))
    return X, rng.choice([-1.0, 1.0], samples)


def lp_separable(Z):
    unit = Z / np.linalg.norm(Z, axis=1)[:, None]
    return linprog(np.zeros(Z.shape[1]), A_ub=-unit, b_ub=-np.ones(len(Z)), bounds=(None, None))


def test_the_decision_is_that_of_a_linear_program():
    rng, seen = np.random.default_rng(0), set()
    for _ in range(150):
        X, y = labelled(rng)
        found = separation(X, y)
        assert found.separable == (lp_separable(X * y[:, None]).status == 0)
        seen.add(found.separable)
    assert seen == {True, False}


@MODEST
@given(seed=SEEDS)
def test_the_certificate_proves_the_decision(seed):
    X, y = labelled(np.random.default_rng(seed))
    Z, found = X * y[:, None], separation(X, y)
    assert (found.weights >= 0).all()
    assert found.weights.sum() == pytest.approx(1)
    combination = np.linalg.norm(found.weights @ Z)
    assert found.residual == pytest.approx(combination, abs=1e-15 * np.abs(Z).max())
    if found.separable:  # weak duality is tight: a margin and a bound that are equal
        assert np.linalg.norm(found.direction) == pytest.approx(1)
        assert (Z @ found.direction).min() == pytest.approx(combination, rel=1e-8)
    else:
        touched = (found.weights * np.linalg.norm(Z, axis=1)).max()
        assert combination <= 1e-12 * touched


@MODEST
@given(seed=SEEDS, others=st.integers(1, 6), dimension=st.integers(2, 8))
def test_points_around_zero_are_recognised(seed, others, dimension):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(others, dimension))
    hidden = -rng.uniform(0.1, 1, others) @ rows  # closes a convex combination at zero
    Z = np.vstack([rows, hidden, rng.normal(size=(4, dimension))])
    found = separation(Z, np.ones(len(Z)))
    assert not found.separable
    assert found.margin == 0
    assert np.linalg.norm(found.weights @ Z) < 1e-13
    # control: without the point that closes it, few points in general position are separable
    if others + 4 <= dimension:
        assert separation(np.delete(Z, others, axis=0), np.ones(len(Z) - 1)).separable


def test_the_margin_is_the_known_one():
    found = separation([[3.0, 1.0], [-3.0, 1.0]], [1, 1])
    assert found.margin == pytest.approx(1)
    np.testing.assert_allclose(found.direction, [0, 1], atol=1e-15)
    np.testing.assert_allclose(found.weights, [0.5, 0.5])


@pytest.mark.parametrize("size", [1e-150, 1e-8, 1e8, 1e150])
def test_the_size_of_a_row_does_not_decide(size):
    rows = np.array([[1.0, 2.0], [2.0, -1.0], [-0.2, 1.0]])
    apart, across = rows.copy(), np.vstack([rows, [-3.0, -0.5]])
    apart[1] *= size
    across[3] *= size
    assert separation(apart, np.ones(3)).separable
    assert not separation(across, np.ones(4)).separable


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([[1, 0], [0, 0], [2, 1]], "row 1 of X is zero"),
        ([[1, 2], [3, 1], [-2, -4]], "rows 0 and 2 are the same point"),
        ([[1, 0], [-1, 1], [-1, -1]], "a convex combination of 3 of the y_n x_n has length"),
    ],
)
def test_require_separable_says_what_is_wrong(rows, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        door_as("somebody")(require_separable)(np.array(rows, float))
    assert str(caught.value).startswith("somebody: ")
    assert "drop" in str(caught.value)


def test_equal_points_of_one_label_are_separable():
    require_separable(np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="interpolate"):
        require_separable([[1.0], [-1.0]])


def test_one_class_may_be_inseparable():
    assert not separation([[1.0], [-1.0]], [1, 1]).separable
    assert not separation([[0.0, 0.0], [1.0, 0.0]], [1, 1]).separable


def exact_margins(Z, beta):
    """Z beta without rounding."""
    exact = [Fraction(float(b)) for b in beta]
    return [sum(Fraction(float(x)) * b for x, b in zip(row, exact, strict=True)) for row in Z]


def badly_scaled(seed, decades):
    """Signed rows that a known predictor separates, with columns over many decades."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 25)), int(rng.integers(2, 10))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-decades / 2, decades / 2, size=d)
    beta = rng.normal(size=d) / np.median(np.abs(X), axis=0)
    return X * np.sign(X @ beta)[:, None], beta


@pytest.mark.parametrize("decades", [13, 32, 60])
def test_columns_over_many_decades_are_separated(decades):
    for seed in range(40):
        Z, beta = badly_scaled(seed, decades)
        assert min(exact_margins(Z, beta)) > 0
        found = penchant.solvers.separation(Z, np.ones(len(Z)))
        assert found.separable
        assert min(exact_margins(Z, found.direction)) > 0


@pytest.mark.parametrize(
    "regularizer",
    [penchant.L1(), penchant.L2(), penchant.regularizers.Lp(3.0), penchant.Q(alpha=0.1)],
)
def test_independent_rows_over_many_decades_are_fitted(regularizer):
    """Any y is in the range of independent rows, whatever the units of the columns."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(5, 8)) * 10.0 ** np.linspace(-16, 16, 8)
        y = rng.normal(size=5)
        assert independent(X)
        found = penchant.interpolate(X, y, regularizer)
        assert found.outcome.kind is Kind.SOLVED
        assert found.kkt < 1e-8
        exact = [Fraction(float(b)) for b in found.beta]
        for row, target in zip(X, y, strict=True):
            terms = [Fraction(float(x)) * b for x, b in zip(row, exact, strict=True)]
            assert abs(float(sum(terms)) - target) < 1e-9 * np.abs(y).max()


@pytest.mark.parametrize(
    "regularizer",
    [
        penchant.L1(),
        penchant.L2(),
        penchant.regularizers.Lp(1.5),
        penchant.regularizers.Lp(3.0),
        penchant.Q(alpha=1e-3),
        penchant.Q(alpha=10.0),
    ],
)
def test_margins_of_rows_over_16_decades_are_met_in_their_own_units(regularizer):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(10, 20)) * 10.0 ** np.linspace(-8, 8, 10)[:, None]
        found = penchant.max_margin(Z, np.ones(10), regularizer)
        assert found.outcome.kind is Kind.SOLVED
        assert min(exact_margins(Z, found.beta)) > 1 - 1e-11
        assert found.residual < 1e-11
        assert found.kkt < 1e-8


def test_a_least_norm_over_16_decades_has_no_shorter_rival():
    """Weak duality: |b| >= nu.1 / |Z^T nu| for every b with margins of at least one."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(10, 20)) * 10.0 ** np.linspace(-8, 8, 10)[:, None]
        found = penchant.max_margin(Z, np.ones(10), penchant.L2())
        bound = found.dual.sum() / np.linalg.norm(found.dual @ Z)
        assert np.linalg.norm(found.beta) <= bound * (1 + 1e-9)


def test_separable_points_are_not_called_inseparable(monkeypatch):
    """Where the solver errs, a linear program and exact arithmetic have the last word."""

    def errs(rows, softness):
        raise Unbounded(np.ones(len(rows.c)))

    monkeypatch.setattr("penchant.solvers.margins.separation.least_squares", errs)
    Z, _ = badly_scaled(0, 13)
    with pytest.raises(penchant.NumericalError, match="a predictor with positive margins exists"):
        penchant.solvers.separation(Z, np.ones(len(Z)))
    opposite = np.array([[1.0, 2.0], [-1.0, -2.0]])
    assert not penchant.solvers.separation(opposite, np.ones(2)).separable
    failed = penchant.max_margin(Z, np.ones(len(Z)), penchant.L1(), throw=False)
    assert failed.outcome.kind is Kind.STALLED


def test_proofs_of_existence_are_exact():
    Z = np.array([[1.0, 1e-20], [-1.0, 1e-20]])
    assert separates(Z, np.array([0.0, 1.0]))
    assert not separates(Z, np.array([1e-20, 0.5]))  # 1e-20 - 5e-21 on one, below zero on the other
    assert separating(np.array([[1.0, 2.0], [-2.0, -4.0]])) is None
    integers = np.random.default_rng(0).integers(-9, 10, size=(5, 8)).astype(float)
    assert independent(integers)
    integers[4] = integers[:4].sum(axis=0)
    assert not independent(integers)
    integers[4, 0] = np.nextafter(integers[4, 0], np.inf)
    assert independent(integers)


def test_rows_that_differ_in_their_last_bit_are_not_called_inconsistent():
    X = np.random.default_rng(0).normal(size=(5, 8))
    X[4] = X[3]
    X[4, 0] = np.nextafter(X[4, 0], np.inf)
    y = np.arange(5.0)
    with pytest.raises(ValueError, match="the rows of X are independent, but too close"):
        penchant.interpolate(X, y, penchant.L2())
    X[4] = X[3]
    with pytest.raises(ValueError, match="no beta fits it"):
        penchant.interpolate(X, y, penchant.L2())
