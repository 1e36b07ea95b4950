"""stationary_points against a full enumeration of the vertices of small problems."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import L1, max_margin
from penchant.problems import three_points, uniform_points
from penchant.regularizers import Lp
from penchant.solvers import stationary_points

SETS = ("3b", "3c", "3d", "4a", "4b")


def vertices(Z, p):
    """(local minimisers, other vertices) by trying every support with every set of rows."""
    best, others = {}, {}
    samples, dimension = Z.shape
    for size in range(1, min(Z.shape) + 1):
        for support in itertools.combinations(range(dimension), size):
            for active in itertools.combinations(range(samples), size):
                block = Z[np.ix_(active, support)]
                if abs(np.linalg.det(block)) < 1e-10:
                    continue
                beta = np.zeros(dimension)
                beta[list(support)] = inside = np.linalg.solve(block, np.ones(size))
                if (Z @ beta).min() < 1 - 1e-9 or np.abs(inside).min() < 1e-10:
                    continue
                nu = np.linalg.solve(block.T, np.abs(inside) ** (p - 1) * np.sign(inside))
                (best if nu.min() > 1e-10 else others)[tuple(np.round(beta, 7))] = beta
    return best, {key: beta for key, beta in others.items() if key not in best}


def named(solutions):
    return {tuple(np.round(s.beta, 7) + 0.0) for s in solutions}


@pytest.mark.parametrize("p", [2 / 3, 0.2])
@pytest.mark.parametrize("name", SETS)
def test_all_local_minimisers_of_three_points(name, p):
    data = three_points(name)
    found = stationary_points(data.X, data.y, Lp(p))
    best, others = vertices(data.signed_rows, p)
    assert named(found) == set(best)
    assert others  # control: there are vertices that must not be reported
    assert not named(found) & set(others)
    values = [s.value for s in found]
    assert values == sorted(values)
    assert max(max(s.kkt, s.residual) for s in found) < 1e-12


@settings(deadline=None, derandomize=True, max_examples=6)
@given(seed=st.integers(0, 1000), p=st.floats(0.1, 0.9))
def test_random_problems(seed, p):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(2, 6)), int(rng.integers(2, 5))))
    y = np.where(X @ rng.normal(size=X.shape[1]) > 0, 1.0, -1.0)
    found = stationary_points(X, y, Lp(p), starts=60)
    best, others = vertices(X * y[:, None], p)
    assert named(found) <= set(best)
    assert found[0].value == pytest.approx(min(Lp(p)(beta) for beta in best.values()))
    assert not named(found) & set(others)


def test_they_are_local_minimisers_indeed():
    data, p = uniform_points(seed=1), 2 / 3
    rng, norm = np.random.default_rng(0), Lp(p)
    for found in stationary_points(data.X, data.y, norm, starts=10)[:4]:
        assert min(norm(beta) for beta in feasible_near(data, found.beta, rng)) > found.value
    middle = max_margin(data.X, data.y, Lp(1.5)).beta  # control: the test can fail
    assert min(norm(beta) for beta in feasible_near(data, middle, rng)) < norm(middle)


def feasible_near(data, beta, rng):
    """Points near beta, moved by different sizes in different coordinates, with margins >= 1."""
    shape = (500, data.dimension)
    near = beta + 1e-4 * rng.normal(size=shape) * 10.0 ** rng.uniform(-6, 0, shape)
    return near / np.minimum(near @ data.signed_rows.T, 1).min(axis=1)[:, None]


def test_a_local_minimum_that_is_not_global():
    data = three_points("4b")
    found = stationary_points(data.X, data.y, Lp(2 / 3))
    np.testing.assert_allclose(found[0].beta, [0.625, 0, 0.625])
    assert any(np.allclose(s.beta, [2, 0, 0]) for s in found)
    best = max_margin(data.X, data.y, Lp(2 / 3))
    np.testing.assert_array_equal(best.beta, found[0].beta)
    assert f"best of {len(found)} local minimisers" in best.outcome.sentence


def test_sizes_and_seeds():
    data = three_points("4a")
    once, larger = (stationary_points(t * data.X, data.y, Lp(0.5), starts=30) for t in (1, 1e3))
    for one, other in zip(once, larger, strict=True):
        np.testing.assert_allclose(other.beta * 1e3, one.beta, rtol=1e-10, atol=1e-15)
        assert max(other.kkt, other.residual) < 1e-12
    again = stationary_points(data.X, data.y, Lp(0.5), starts=30, seed=0)
    assert [s.value for s in again] == [s.value for s in once]


def test_equal_points_and_more_points_than_features():
    data = three_points("3d")
    doubled = stationary_points(np.vstack([data.X, data.X]), np.ones(6), Lp(0.5))
    assert named(doubled) == named(stationary_points(data.X, data.y, Lp(0.5)))


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({"regularizer": L1()}, "expected Lp.p. with p < 1, got L1"),
        ({"regularizer": Lp(1.5)}, "got Lp.1.5.; a convex regularizer has one"),
        ({"starts": 0}, "starts must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"y": [0, 1]}, "got 0 and 1"),
        ({"y": [1, -1]}, "rows 0 and 1 are the same point"),
    ],
)
def test_wrong_input(args, sentence):
    known = {"X": [[1.0, 2.0], [2.0, 4.0]], "y": [1, 1], "regularizer": Lp(0.5)}
    with pytest.raises(ValueError, match=sentence):
        stationary_points(**{**known, **args})
