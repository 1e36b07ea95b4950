"""max_margin_path: every point against a cold solve, every change against a root of its own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from penchant import L1, L2, Q, interpolate, max_margin
from penchant.problems import three_points
from penchant.solvers import max_margin_path

MUS = np.logspace(3, -8, 23)


def points(seed):
    """(X, y) of positive features or random ones, some with equal points: supports that change."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(2, 12)), int(rng.integers(2, 12))))
    if seed % 3 == 0:
        return np.abs(X), np.ones(len(X))
    if seed % 3 == 1:
        X = np.vstack([X, X[:2], X.mean(axis=0)])
    return X, np.where(X @ rng.normal(size=X.shape[1]) > 0, 1.0, -1.0)


def replayed(path):
    """The support at every mu as the changes tell it, from the support at the largest."""
    order = np.argsort(-path.mus)
    support, supports = path.support[order[0]].copy(), np.zeros_like(path.support)
    changes = list(path.changes)
    for where in order:
        while changes and changes[0].mu >= path.mus[where]:
            change = changes.pop(0)
            assert support[change.sample] != change.enters  # nobody enters twice
            support[change.sample] = change.enters
        supports[where] = support
    return supports


def test_the_support_vectors_of_f3d_change_where_the_equations_say():
    X, y = three_points("3d").X, np.ones(3)
    path = max_margin_path(X, y, 2, mus=MUS)
    first, second = path.changes
    assert (first.sample, first.enters, second.sample, second.enters) == (0, True, 1, False)
    assert first.mu == pytest.approx(0.0366, rel=0.01)
    # a second route: with {1, 2} as equations the margin of 0 gets to one, and with all three as
    # equations the dual weight of 1 gets to zero
    enters = brentq(lambda m: X[0] @ pair(X, m, [1, 2]).beta - 1, -4, -2, xtol=1e-14)
    leaves = brentq(lambda m: pair(X, m, [0, 1, 2]).dual[1], -6, -4, xtol=1e-14)
    assert np.log(first.mu) == pytest.approx(enters, abs=1e-10)
    assert np.log(second.mu) == pytest.approx(leaves, abs=1e-10)
    np.testing.assert_array_equal(path.support[0], [False, True, True])
    np.testing.assert_array_equal(path.support[-1], [True, False, True])


def pair(X, log_mu, rows):
    return interpolate(X[rows], np.ones(len(rows)), Q(2, log_alpha=log_mu / 2))


def test_the_support_vectors_of_f3b_do_not_change():
    data = three_points("3b")
    path = max_margin_path(data.X, data.y, 2, mus=MUS)
    assert path.changes == ()
    assert (path.support == [True, True, False]).all()


@pytest.mark.parametrize("depth", [2, 3, 10])
@settings(deadline=None, derandomize=True, max_examples=12)
@given(seed=st.integers(0, 1000))
def test_the_path_is_made_of_solutions_and_its_changes_explain_the_supports(depth, seed):
    X, y = points(seed)
    path = max_margin_path(X, y, depth, mus=MUS)
    assert max(path.kkt.max(), path.residual.max()) < 1e-9
    np.testing.assert_array_equal(replayed(path), path.support)
    mus = [change.mu for change in path.changes]
    assert mus == sorted(mus, reverse=True)
    for where in (0, 8, 15, 22):
        cold = max_margin(X, y, Q(depth, mu=MUS[where]))
        size = np.abs(cold.beta).max()
        np.testing.assert_allclose(path.beta[where], cold.beta, rtol=0, atol=1e-9 * size)
        assert path.value[where] == pytest.approx(cold.value, rel=1e-9)
    for change in path.changes:  # there the margin is one and the dual weight zero
        there = max_margin(X, y, Q(depth, mu=change.mu))
        assert y[change.sample] * X[change.sample] @ there.beta == pytest.approx(1, abs=1e-8)
        if seed % 3 != 1:
            assert there.dual[change.sample] < 1e-8 * there.dual.max()


def test_there_are_changes_to_find():
    assert sum(len(max_margin_path(*points(s), 2, mus=MUS).changes) for s in range(6)) >= 6


def test_the_order_of_the_scales_does_not_matter():
    X, y = points(3)
    order = np.random.default_rng(0).permutation(len(MUS))
    path, mixed = max_margin_path(X, y, 3, mus=MUS), max_margin_path(X, y, 3, mus=MUS[order])
    np.testing.assert_allclose(mixed.beta, path.beta[order], rtol=1e-12)
    np.testing.assert_array_equal(mixed.mus, MUS[order])
    np.testing.assert_array_equal(mixed.support, path.support[order])
    assert mixed.changes == path.changes
    twice = max_margin_path(X, y, 3, mus=[0.1, 0.1, 0.1])
    np.testing.assert_array_equal(twice.beta[0], twice.beta[2])


def test_few_scales_find_the_same_changes_as_many():
    X, y = points(0)
    few = max_margin_path(X, y, 2, mus=[MUS[0], MUS[-1]]).changes
    many = max_margin_path(X, y, 2, mus=np.logspace(3, -8, 200)).changes
    assert len(few) == len(many) > 0
    for one, other in zip(few, many, strict=True):
        assert (one.sample, one.enters) == (other.sample, other.enters)
        assert one.mu == pytest.approx(other.mu, rel=1e-9)


@pytest.mark.parametrize("depth", [2, 3])
def test_changes_that_coincide(depth):
    rows = three_points("3d").X
    alone = max_margin_path(rows, np.ones(3), depth, mus=MUS).changes
    twins = np.block([[rows, np.zeros((3, 3))], [np.zeros((3, 3)), rows]])
    path = max_margin_path(twins, np.ones(6), depth, mus=MUS)
    assert path.kkt.max() < 1e-10
    np.testing.assert_array_equal(replayed(path), path.support)
    for change, pair_of in zip(alone, (path.changes[:2], path.changes[2:]), strict=True):
        assert {c.sample for c in pair_of} == {change.sample, change.sample + 3}
        assert all(c.mu == pytest.approx(change.mu, rel=1e-6) for c in pair_of)
    again = max_margin_path(np.vstack([rows, rows]), np.ones(6), depth, mus=MUS)
    assert [(c.sample % 3, c.enters) for c in again.changes] == [
        (c.sample, c.enters) for c in alone
    ]


def test_the_ends_are_l2_and_l1():
    X, y = points(2)
    path = max_margin_path(X, y, 2, mus=[1e9, 1e-250])
    for beta, norm in zip(path.beta, (L2(), L1()), strict=True):
        np.testing.assert_allclose(beta, max_margin(X, y, norm).beta, atol=1e-7)


def test_a_shape_moves_the_path():
    X, y = points(6)
    shape = np.linspace(0.5, 2, X.shape[1])
    path = max_margin_path(X, y, 3, mus=[1.0, 1e-3], shape=shape)
    for beta, mu in zip(path.beta, path.mus, strict=True):
        cold = max_margin(X, y, Q(3, mu=mu, shape=shape)).beta
        np.testing.assert_allclose(beta, cold, rtol=1e-10, atol=1e-13)
    assert np.abs(path.beta - max_margin_path(X, y, 3, mus=[1.0, 1e-3]).beta).max() > 1e-3


def test_it_prints():
    data = three_points("3d")
    text = str(max_margin_path(data.X, data.y, 2, mus=MUS))
    assert "0 enters at mu = 0.0365146; 1 leaves at mu = 0.0104704" in text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"mus": []}, "mus must not be empty"),
        ({"mus": [1.0, 0.0]}, "mus must be > 0, got 0.0 at index 1"),
        ({"mus": [1.0, -2.0]}, "mus must be > 0, got -2.0"),
        ({"mus": [np.nan]}, "mus must be finite"),
        ({"mus": 1.0}, "mus must have 1 dimension"),
        ({"depth": 1}, "depth must be at least 2"),
        ({"y": [0, 1, 1]}, "labels must be -1 and .1, got 0 and 1"),
        ({"y": [1, 1]}, "3 rows but y has 2"),
        ({"X": [[1.0], [-1.0], [2.0]]}, "rows 0 and 1 are the same point"),
        ({"X": [[1.0, 1], [0.0, 0], [2.0, 1]]}, "row 1 of X is zero"),
        ({"X": [[1.0, 0], [-1, 1], [-1, -1]]}, "not linearly separable"),
        ({"shape": [1.0]}, "1 coordinates, but X has 2 columns"),
    ],
)
def test_wrong_input(change, sentence):
    given_ = {"X": [[1.0, 2], [2.0, 1], [1.0, 1]], "y": [1, 1, 1], "mus": [1.0], "depth": 2}
    with pytest.raises(ValueError, match=sentence):
        max_margin_path(**{**given_, **change})
