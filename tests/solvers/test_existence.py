"""Nothing is said not to exist that does, and margins are met in the units of the data."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tacit
from tacit.records import Kind
from tacit.solvers import separation
from tacit.solvers.exact import independent, separates
from tacit.solvers.margins.active_set import Unbounded
from tacit.solvers.separation import separating


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
        found = tacit.separation(Z, np.ones(len(Z)))
        assert found.separable
        assert min(exact_margins(Z, found.direction)) > 0


@pytest.mark.parametrize("regularizer", [tacit.L1(), tacit.L2(), tacit.Lp(3.0), tacit.Q(alpha=0.1)])
def test_independent_rows_over_many_decades_are_fitted(regularizer):
    """Any y is in the range of independent rows, whatever the units of the columns."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(5, 8)) * 10.0 ** np.linspace(-16, 16, 8)
        y = rng.normal(size=5)
        assert independent(X)
        found = tacit.interpolate(X, y, regularizer)
        assert found.outcome.kind is Kind.SOLVED
        assert found.kkt < 1e-8
        exact = [Fraction(float(b)) for b in found.beta]
        for row, target in zip(X, y, strict=True):
            terms = [Fraction(float(x)) * b for x, b in zip(row, exact, strict=True)]
            assert abs(float(sum(terms)) - target) < 1e-9 * np.abs(y).max()


@pytest.mark.parametrize(
    "regularizer",
    [
        tacit.L1(),
        tacit.L2(),
        tacit.Lp(1.5),
        tacit.Lp(3.0),
        tacit.Q(alpha=1e-3),
        tacit.Q(alpha=10.0),
    ],
)
def test_margins_of_rows_over_16_decades_are_met_in_their_own_units(regularizer):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(10, 20)) * 10.0 ** np.linspace(-8, 8, 10)[:, None]
        found = tacit.max_margin(Z, np.ones(10), regularizer)
        assert found.outcome.kind is Kind.SOLVED
        assert min(exact_margins(Z, found.beta)) > 1 - 1e-11
        assert found.residual < 1e-11
        assert found.kkt < 1e-8


def test_a_least_norm_over_16_decades_has_no_shorter_rival():
    """Weak duality: |b| >= nu.1 / |Z^T nu| for every b with margins of at least one."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(10, 20)) * 10.0 ** np.linspace(-8, 8, 10)[:, None]
        found = tacit.max_margin(Z, np.ones(10), tacit.L2())
        bound = found.dual.sum() / np.linalg.norm(found.dual @ Z)
        assert np.linalg.norm(found.beta) <= bound * (1 + 1e-9)


def test_inseparable_is_not_said_of_separable_points(monkeypatch):
    """Where the solver errs, a linear program and exact arithmetic have the last word."""

    def errs(rows, softness):
        raise Unbounded(np.ones(len(rows.c)))

    monkeypatch.setattr(separation, "least_squares", errs)
    Z, _ = badly_scaled(0, 13)
    with pytest.raises(tacit.NumericalError, match="a predictor with positive margins exists"):
        tacit.separation(Z, np.ones(len(Z)))
    opposite = np.array([[1.0, 2.0], [-1.0, -2.0]])
    assert not tacit.separation(opposite, np.ones(2)).separable
    failed = tacit.max_margin(Z, np.ones(len(Z)), tacit.L1(), throw=False)
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


def test_no_beta_fits_is_not_said_of_rows_that_differ_in_their_last_bit():
    X = np.random.default_rng(0).normal(size=(5, 8))
    X[4] = X[3]
    X[4, 0] = np.nextafter(X[4, 0], np.inf)
    y = np.arange(5.0)
    with pytest.raises(ValueError, match="some beta fits y, for the rows of X are independent"):
        tacit.interpolate(X, y, tacit.L2())
    X[4] = X[3]
    with pytest.raises(ValueError, match="no beta fits it"):
        tacit.interpolate(X, y, tacit.L2())
