"""separation: the decision against a linear program, and its certificates taken at their word."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tacit.solvers.separation import require_separable, separation

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
        require_separable("somebody", np.array(rows, float))
    assert str(caught.value).startswith("somebody: ")
    assert "drop" in str(caught.value)


def test_equal_points_of_one_label_are_separable():
    require_separable("somebody", np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="interpolate"):
        require_separable("somebody", [[1.0], [-1.0]])


def test_one_class_may_be_inseparable():
    assert not separation([[1.0], [-1.0]], [1, 1]).separable
    assert not separation([[0.0, 0.0], [1.0, 0.0]], [1, 1]).separable
