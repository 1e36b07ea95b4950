"""Sparse X: the answers of dense X where both can be had, and no dense copy where it is large."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import L1, L2, Q, derive, interpolate, max_margin
from penchant.lab import Kind
from penchant.regularizers import Linf, Lp, R
from penchant.solvers import (
    interpolate_path,
    max_margin_path,
    primal_residual,
    ratchet_path,
    sparse_rows,
)

settings.register_profile("penchant", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("penchant")

REGULARIZERS = {
    "Q2": lambda d: Q(2, alpha=0.05),
    "Q2 small": lambda d: Q(2, log_alpha=-40.0),
    "Q2 shape": lambda d: Q(2, alpha=0.05, shape=np.linspace(0.5, 2, d)),
    "Q2 tilt": lambda d: Q(2, alpha=0.5, tilt=np.linspace(-0.3, 0.3, d)),
    "Q5": lambda d: Q(5, alpha=0.4),
    "R": lambda d: R(alpha=0.1),
    "derived": lambda d: derive(lambda w: w**3 + w, start=0.0),
    "L1": lambda d: L1(),
    "L2 weights": lambda d: L2(np.linspace(0.1, 3, d)),
    "Lp 1.3": lambda d: Lp(1.3),
    "Lp 4": lambda d: Lp(4.0),
}
any_regularizer = pytest.mark.parametrize("make", REGULARIZERS.values(), ids=REGULARIZERS.keys())
instances = {
    "seed": st.integers(0, 10**6),
    "samples": st.integers(1, 8),
    "wide": st.integers(5, 12),
    "kind": st.sampled_from(["normal", "signs", "counts"]),
}


def drawn(seed, samples, wide, kind):
    """(sparse X without empty rows, targets, labels) with more than four columns a row."""
    rng = np.random.default_rng(seed)
    dimension, count = wide * samples, samples * int(rng.integers(2, 8))
    rows = np.concatenate([np.arange(samples), rng.integers(0, samples, count)])
    places = rows, rng.integers(0, dimension, len(rows))
    X = scipy.sparse.coo_array((rng.normal(size=len(rows)), places), shape=(samples, dimension))
    X = X.tocsr()
    if kind != "normal":
        X.data = np.sign(X.data) if kind == "signs" else np.ceil(3 * np.abs(X.data))
    return X, rng.normal(size=samples), np.where(rng.normal(size=samples) > 0, 1.0, -1.0)


def answer(verb, X, y, regularizer):
    try:
        return verb(X, y, regularizer, throw=False)
    except ValueError:
        return None


@any_regularizer
@given(**instances)
@settings(max_examples=12)
def test_sparse_and_dense_answers_agree(make, **instance):
    X, targets, labels = drawn(**instance)
    for verb, y in ((interpolate, targets), (max_margin, labels)):
        regularizer = make(X.shape[1])
        ours, dense = (answer(verb, x, y, regularizer) for x in (X, X.toarray()))
        assert (ours is None) == (dense is None)
        if ours is not None and dense.outcome.ok:
            assert ours.outcome.ok
            size = np.abs(dense.beta).max()
            assert np.abs(ours.beta - dense.beta).max() <= size * (ours.error + dense.error + 1e-9)
            assert ours.error < 1e-7


@given(**instances)
@settings(max_examples=8)
def test_sparse_and_dense_paths_agree(**instance):
    X, targets, labels = drawn(**instance)
    levels = np.linspace(2.0, -12.0, 9)
    for depth in (2, 4):
        try:
            dense = interpolate_path(X.toarray(), targets, depth, log_alphas=levels)
        except ValueError:
            with pytest.raises(ValueError, match="y must lie in the range"):
                interpolate_path(X, targets, depth, log_alphas=levels)
            continue
        ours = interpolate_path(X, targets, depth, log_alphas=levels)
        np.testing.assert_allclose(ours.beta, dense.beta, atol=1e-9 * np.abs(dense.beta).max())
    try:
        dense = max_margin_path(X.toarray(), labels, mus=np.exp(levels))
    except ValueError:
        return
    ours = max_margin_path(X, labels, mus=np.exp(levels))
    np.testing.assert_allclose(ours.beta, dense.beta, atol=1e-9 * np.abs(dense.beta).max())
    assert len(ours.changes) == len(dense.changes)


def test_the_certificate_is_computed_from_the_sparse_data():
    X, y, _ = drawn(3, 8, 10, "normal")
    solution = interpolate(X, y, Q(2, alpha=0.05))
    exactly = primal_residual(X.toarray(), y, solution.beta)
    assert solution.residual == pytest.approx(exactly, abs=1e-15)
    slopes = Q(2, alpha=0.05).dual_of(solution.beta)
    np.testing.assert_allclose(X.T @ solution.dual, slopes, atol=1e-13 * np.abs(slopes).max())
    # the control: a beta that lost a digit is not certified
    rows = sparse_rows.rows_of(X)
    assert np.abs(y - rows @ (solution.beta * (1 + 1e-6))).max() > 1e-8


def large(samples, dimension, entries, seed=0):
    rng = np.random.default_rng(seed)
    places = rng.integers(0, samples, entries), rng.integers(0, dimension, entries)
    X = scipy.sparse.coo_array((rng.normal(size=entries), places), shape=(samples, dimension))
    return X.tocsr(), rng.normal(size=samples)


@pytest.mark.parametrize("regularizer", [Q(2, alpha=1e-2), Q(4, alpha=0.1), L1(), L2()], ids=str)
def test_large_data_never_become_dense(regularizer):
    X, y = large(200, 120_000, 100_000)  # 192 MB as an array
    tracemalloc.start()
    Z = X * np.sign(y)[:, None]
    solutions = interpolate(X, y, regularizer), max_margin(X, np.sign(y), regularizer)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert all(solution.error < 1e-9 for solution in solutions)
    assert peak < 110e6
    for solution, rows in zip(solutions, (X, Z), strict=True):  # stationarity by the public law
        s, beta = rows.T @ solution.dual, solution.beta
        slopes = regularizer.dual_of(beta)
        on = np.abs(beta) > 0
        np.testing.assert_allclose(s[on], slopes[on], atol=1e-9 * np.abs(slopes).max())
        assert regularizer != L1() or np.abs(s).max() <= 1 + 1e-9
    assert np.abs(X @ solutions[0].beta - y).max() < 1e-9
    assert (Z @ solutions[1].beta).min() > 1 - 1e-9


def test_large_data_that_need_another_basis_end_in_a_sentence(monkeypatch):
    monkeypatch.setattr(sparse_rows, "DENSE", 100)
    X, y, _ = drawn(9, 6, 10, "signs")
    twice = scipy.sparse.vstack([X, X[:1]]).tocsr()
    with pytest.raises(ValueError, match="too close to dependent, and it is too large"):
        interpolate(twice, np.append(y, y[0]), Q(2, alpha=0.1))
    stalls = 0
    for seed in range(60):
        X, y, _ = drawn(seed, 16, 6, "signs")
        ours = answer(interpolate, X, y, Q(10, log_alpha=-7.0))
        if ours is not None and not ours.outcome.ok:
            assert ours.outcome.kind is Kind.STALLED
            assert "basis" in ours.outcome.sentence
            stalls += 1
    assert 0 < stalls < 30


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr"])
def test_every_layout_and_a_few_columns_will_do(layout):
    X, y, _ = drawn(1, 6, 8, "normal")
    expected = interpolate(X.toarray(), y, Q(2, alpha=0.1)).beta
    for kind in (scipy.sparse.coo_array, scipy.sparse.coo_matrix):
        same = kind(X).asformat(layout)
        np.testing.assert_allclose(interpolate(same, y, Q(2, alpha=0.1)).beta, expected, atol=1e-12)
    few = scipy.sparse.csr_array(np.eye(6, 8))  # no larger than the Gram matrices: an array
    expected = max_margin(np.eye(6, 8), np.ones(6), L1()).beta
    np.testing.assert_allclose(max_margin(few, np.ones(6), L1()).beta, expected)


def test_data_far_from_one_are_solved_in_other_units():
    X, y, labels = drawn(5, 6, 8, "normal")
    for factor in (1e-180, 1e180):
        ours, dense = (interpolate(x * factor, y, Q(2, alpha=0.1)) for x in (X, X.toarray()))
        np.testing.assert_allclose(ours.beta, dense.beta, rtol=1e-9)
        ours, dense = (max_margin(x * factor, labels, L2()) for x in (X, X.toarray()))
        np.testing.assert_allclose(ours.beta, dense.beta, rtol=1e-9, atol=1e-14 / factor)


def test_wrong_sparse_input_gets_one_sentence():
    X, y, labels = drawn(0, 6, 8, "normal")
    spoiled = X.copy()
    spoiled.data[0] = np.nan
    holed = X.tolil()
    holed[2] = 0
    holed[4] = 0
    for verb, target in ((interpolate, y), (max_margin, labels)):
        with pytest.raises(ValueError, match=r"row 2 of the sparse X is empty.*1 other empty"):
            verb(holed, target, L2())
        with pytest.raises(ValueError, match="finite, got nan"):
            verb(spoiled, target, L2())
        with pytest.raises(ValueError, match="complex numbers"):
            verb(X.astype(complex), target, L2())
        with pytest.raises(ValueError, match="6 rows but y has 5 entries"):
            verb(X, target[1:], L2())
        with pytest.raises(ValueError, match="empty, got shape"):
            verb(X[:0], target[:0], L2())
    with pytest.raises(ValueError, match="-1 and \\+1"):
        max_margin(X, y, L2())
    with pytest.raises(ValueError, match="needs all entries"):
        max_margin(X, labels, Linf())
    with pytest.raises(ValueError, match="toarray"):
        ratchet_path(X, labels, mus=[1.0])
    opposite = scipy.sparse.vstack([X, X[:1]]).tocsr()
    with pytest.raises(ValueError, match="not linearly separable"):
        max_margin(opposite, np.append(np.ones(6), -1.0), Q(2, alpha=0.1))
