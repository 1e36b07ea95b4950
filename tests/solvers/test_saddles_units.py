"""Saddles of data in any units: against closed forms, and a walk in fractions that tries all signs.

The judges share no code with the solver: diagonal data have a closed form, data in blocks are the
union of their blocks, and a small dense problem is walked in fractions by trying every support.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from fraction_walks import walk_saddles
from penchant.lab import Kind
from penchant.solvers.limits.jumps import Walk
from penchant.solvers.limits.saddles import certify

few = settings(max_examples=40, deadline=None)


def jumps_of_diagonal(diagonal, y):
    """(times, end): each coordinate jumps alone, at 1 / (4 |x_i y_i|), to y_i / x_i."""
    return np.sort(1 / (4 * np.abs(diagonal * y))), y / diagonal


def walked(X, y):
    """(times, points) as floats."""
    times, points = walk_saddles(X, y)
    return np.array([float(t) for t in times]), np.array(points).astype(float)


def same(found, times, points):
    assert found.outcome.kind is Kind.SOLVED, found.outcome
    assert found.error <= 1e-7
    assert len(found.tau) == len(times)
    np.testing.assert_allclose(found.tau, times, rtol=1e-7)
    scale = np.abs(points).max(axis=0)
    assert (np.abs(found.points - points) <= 1e-7 * scale).all()


def test_a_share_of_nothing_by_nothing_does_not_hang():
    found = penchant.solvers.saddles(np.diag([1e5, 1e-6]), [0.1, 1000.0], depth=3)
    np.testing.assert_allclose(found.end, [1e-6, 1e9], rtol=1e-12)
    np.testing.assert_allclose(found.tau, [0, 1 / 4e4, 1 / 4e-3], rtol=1e-12)


def test_a_small_unit_is_not_rounding():
    found = penchant.solvers.saddles([[5.5e6, 0], [0, 4e-10]], [2.0, 0.5])
    np.testing.assert_allclose(found.end, [2 / 5.5e6, 1.25e9], rtol=1e-12)
    assert found.outcome.kind is Kind.SOLVED


@pytest.mark.parametrize("seed", range(100))
def test_diagonal_data_in_any_units_have_a_closed_form(seed):
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 6)
    diagonal, y = (10.0 ** rng.uniform(-12, 12, size) * rng.choice([-1, 1], size) for _ in range(2))
    found = penchant.solvers.saddles(np.diag(diagonal), y)
    times, end = jumps_of_diagonal(diagonal, y)
    assert found.outcome.kind is Kind.SOLVED, found.outcome
    np.testing.assert_allclose(found.tau[1:], times, rtol=1e-12)
    np.testing.assert_allclose(found.end, end, rtol=1e-12)
    assert found.monotone


@few
@given(
    seed=st.integers(0, 10**6),
    units=st.lists(st.integers(-60, 60), min_size=4, max_size=4),
)
def test_data_in_blocks_are_the_union_of_their_blocks_in_any_units(seed, units):
    rng = np.random.default_rng(seed)
    blocks = [(rng.standard_normal((2, 3)), rng.standard_normal(2)) for _ in range(2)]
    blocks = [
        (np.ldexp(X, a), np.ldexp(y, b))
        for (X, y), (a, b) in zip(blocks, (units[:2], units[2:]), strict=True)
    ]
    X = np.zeros((4, 6))
    X[:2, :3], X[2:, 3:] = blocks[0][0], blocks[1][0]
    found = penchant.solvers.saddles(X, np.concatenate([y for _, y in blocks]))
    alone = [penchant.solvers.saddles(*block) for block in blocks]
    assert found.outcome.kind is Kind.SOLVED
    together = np.sort(np.concatenate([part.tau[1:] for part in alone]))
    np.testing.assert_allclose(found.tau[1:], together, rtol=1e-10)
    for part, side in zip(alone, (slice(0, 3), slice(3, 6)), strict=True):
        np.testing.assert_allclose(found.end[side], part.end, rtol=1e-9)


@few
@given(seed=st.integers(0, 10**6), x=st.integers(-300, 300), label=st.integers(-300, 300))
def test_units_of_all_data_change_units_alone(seed, x, label):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((3, 5)), rng.standard_normal(3)
    once, found = (
        penchant.solvers.saddles(X, y),
        penchant.solvers.saddles(np.ldexp(X, x), np.ldexp(y, label)),
    )
    np.testing.assert_array_equal(found.tau, np.ldexp(once.tau, -x - label))
    np.testing.assert_array_equal(found.points, np.ldexp(once.points, label - x))
    np.testing.assert_array_equal(found.dual, once.dual)


@few
@given(
    seed=st.integers(0, 10**6),
    samples=st.integers(1, 3),
    dimension=st.integers(1, 4),
    rows=st.lists(st.integers(-20, 20), min_size=3, max_size=3),
    columns=st.lists(st.integers(-30, 30), min_size=4, max_size=4),
    twins=st.sampled_from([None, 1e-5, 1e-10, 1e-13]),
)
def test_dense_data_in_any_units_against_fractions(seed, samples, dimension, rows, columns, twins):
    """Rows and columns in any units, and a row or a column that nearly repeats another."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((samples, dimension)), rng.standard_normal(samples)
    if twins is not None and seed % 2 and samples > 1:
        X[0] = X[1] + twins * rng.standard_normal(dimension)
    elif twins is not None and dimension > 1:
        X[:, 0] = X[:, 1] + twins * rng.standard_normal(samples)
    X = np.ldexp(X, np.array(rows)[:samples, None] + np.array(columns)[:dimension])
    y = np.ldexp(y, np.array(rows)[:samples])
    same(penchant.solvers.saddles(X, y), *walked(X, y))


def test_ties_are_as_in_fractions():
    for numbers in itertools.product([-1.0, 0.0, 1.0, 2.0], repeat=4):
        X, y = np.array(numbers).reshape(2, 2), np.array([1.0, 1.0])
        found = penchant.solvers.saddles(X, y)
        assert found.outcome.ok
        if found.outcome.kind is Kind.SOLVED and len(np.unique(np.abs(X), axis=1).T) == 2:
            same(found, *walked(X, y))


def poisoned(walk, **changed):
    return walk._replace(**{name: change(getattr(walk, name)) for name, change in changed.items()})


@pytest.mark.parametrize("name", ["points", "tau", "dual"])
@pytest.mark.parametrize("place", [1, 2, -1])
@pytest.mark.parametrize("size", [1e-3, 1e-6, np.nan])
def test_a_poisoned_list_is_caught(name, place, size):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((3, 6)), rng.standard_normal(3)
    found = penchant.solvers.saddles(X, y)
    walk = Walk(found.tau, found.points, found.dual, False, 0.0, True, None)
    assert certify(X, y, 4.0, np.ones((2, 6)), walk).ok

    def change(numbers):
        numbers = numbers.copy()
        where = place if numbers.ndim == 1 else (place, np.abs(numbers[place]).argmax())
        numbers[where] *= 1 + size
        return numbers

    assert not certify(X, y, 4.0, np.ones((2, 6)), poisoned(walk, **{name: change})).ok


def test_a_list_that_ends_early_is_caught():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((3, 6)), rng.standard_normal(3)
    found = penchant.solvers.saddles(X, y)
    walk = Walk(found.tau[:-1], found.points[:-1], found.dual[:-1], False, 0.0, True, None)
    assert not certify(X, y, 4.0, np.ones((2, 6)), walk).ok


def test_what_float64_does_not_hold_is_said():
    found = penchant.solvers.saddles([[1e-200]], [1e200], throw=False)
    assert found.outcome.kind is Kind.OUT_OF_RANGE
    with pytest.raises(penchant.NumericalError, match="beyond float64"):
        penchant.solvers.saddles([[1e200]], [1e200])


def test_large_data_that_cannot_be_certified_say_so():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 120)) * 10.0 ** rng.uniform(-9, 9, (40, 1))
    found = penchant.solvers.saddles(X, rng.standard_normal(40), throw=False)
    assert not found.outcome.ok
    assert not found.error <= 1e-7


def test_a_time_limit_ends_the_list_with_a_sentence():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5, 9)), rng.standard_normal(5)
    found = penchant.solvers.saddles(X, y, max_seconds=1e-9, throw=False)
    assert found.outcome.kind is Kind.BUDGET_SPENT
    assert "raise max_seconds" in found.outcome.sentence
    assert len(found.tau) == 2
    with pytest.raises(ValueError, match="max_seconds must be > 0"):
        penchant.solvers.saddles(X, y, max_seconds=0)
    assert math.isfinite(penchant.solvers.saddles(X, y, max_seconds=60).error)
