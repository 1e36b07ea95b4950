"""The l1 margin without rounding: against HiGHS on tame data, by weak duality on wild ones."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from penchant import L1, max_margin
from penchant.lab import Kind
from penchant.solvers.continuation import Failed
from penchant.solvers.margins import face
from penchant.solvers.margins.rows import scaled_rows


def separable(rng, integer=False):
    n, d = int(rng.integers(1, 15)), int(rng.integers(2, 12))
    X = rng.integers(-2, 3, size=(n, d)).astype(float) if integer else rng.normal(size=(n, d))
    X[~X.any(axis=1)] = 1.0
    scores = X @ rng.normal(size=d)
    return X * np.where(scores >= 0, 1.0, -1.0)[:, None]


def fractions(values):
    return [Fraction(float(v)) for v in values]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def least_value(Z, dual):
    """What |b|_1 cannot fall below if Z b >= 1: sum(nu) / max|Z^T nu| for any nu >= 0."""
    assert min(dual) >= 0
    return sum(dual) / max(abs(dot(dual, fractions(column))) for column in Z.T)


@pytest.mark.parametrize("integer", [False, True])
def test_the_value_is_that_of_highs_and_the_pair_is_optimal(integer):
    seen = set()
    for seed in range(30):
        Z = separable(np.random.default_rng(seed), integer)
        n, d = Z.shape
        other = linprog(np.ones(2 * d), A_ub=-np.hstack([Z, -Z]), b_ub=-np.ones(n))
        rows = scaled_rows(Z)
        found = face.exact_vertex(rows)
        value = sum(abs(b) for b in found.b)
        assert float(value) * rows.scale == pytest.approx(other.fun, rel=1e-9)
        for row, target in zip(rows.A, rows.c, strict=True):
            assert dot(fractions(row), found.b) >= Fraction(float(target))
        assert min(found.nu) >= 0
        assert max(abs(dot(found.nu, fractions(column))) for column in rows.A.T) <= 1
        assert dot(found.nu, fractions(rows.c)) == value  # no gap at all
        seen.add(found.alone)
    assert seen == ({True, False} if integer else {True})


def test_rows_that_nothing_meets_and_problems_that_are_too_long_fail(monkeypatch):
    with pytest.raises(Failed, match="no predictor meets the margins"):
        face.exact_vertex(scaled_rows(np.array([[1.0, 2.0], [-1.0, -2.0]])))
    monkeypatch.setattr(face, "WORK", 10)
    with pytest.raises(Failed, match="needs more than 0 steps"):
        face.exact_vertex(scaled_rows(np.eye(4)))


def test_the_rule_against_cycles_ends_at_the_same_value(monkeypatch):
    Z = separable(np.random.default_rng(3), integer=True)
    values = []
    for patience in (0, 10):
        monkeypatch.setattr(face, "PATIENCE", patience)
        values.append(sum(abs(b) for b in face.exact_vertex(scaled_rows(Z)).b))
    assert values[0] == values[1]


def wild_rows(rng):
    return rng.normal(size=(10, 20)) * 10.0 ** np.linspace(-8, 8, 10)[:, None]


def wild_columns(decades):
    def made(rng):
        Z = separable(rng)
        Z = Z * 10.0 ** rng.uniform(-decades / 2, decades / 2, size=Z.shape[1])
        beta = rng.normal(size=Z.shape[1]) / np.median(np.abs(Z), axis=0)
        return Z * np.sign(Z @ beta)[:, None]

    return made


KINDS = {"rows 16": wild_rows} | {f"columns {k}": wild_columns(k) for k in (13, 32, 60)}


@pytest.mark.parametrize("kind", KINDS)
def test_no_predictor_with_these_margins_is_shorter(kind):
    for seed in range(12):
        Z = KINDS[kind](np.random.default_rng(seed))
        solution = max_margin(Z, np.ones(len(Z)), L1())
        assert solution.outcome.kind is Kind.SOLVED
        assert solution.kkt < 1e-10
        beta = fractions(solution.beta)
        assert min(dot(fractions(row), beta) for row in Z) > 1 - 1e-11
        parts = zip(solution.dual, *solution.dual_rest, strict=True)
        dual = [sum(fractions(entry)) for entry in parts]
        value = sum(abs(b) for b in beta)
        assert value <= least_value(Z, dual) * (1 + Fraction(1, 10**9))
