"""The slow flow in any units of the rows: closed forms, a walk in fractions, poisoned paths."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from fraction_walks import walk_slow_flow
from general_solvers import least_l1
from penchant.lab import Kind
from penchant.limits import TimeLimit
from penchant.solvers.limits.pieces import FloatKernel, walk
from penchant.solvers.limits.slow_flow import certify
from refusals import refusals

few = settings(max_examples=40, deadline=None)


def walked(X, start):
    """(times, points) as floats."""
    times, points = walk_slow_flow(X, start)
    return np.array(times).astype(float), np.array(points).astype(float)


def same(flow, times, points):
    assert flow.outcome.kind is Kind.SOLVED, flow.outcome
    assert flow.error <= 1e-7
    assert len(flow.tau) == len(times)
    np.testing.assert_allclose(flow.tau, times, rtol=1e-7)
    np.testing.assert_allclose(flow.points, points, atol=1e-7 * np.abs(points).max())


def test_a_row_of_small_units_is_no_rounding():
    flow = penchant.solvers.slow_flow([[1e10, 0, 0], [0, 1e-7, 0]], [1.0, 1.0, 1.0])
    assert flow.end.tolist() == [1.0, 1.0, 0.0]
    assert flow.outcome.kind is Kind.SOLVED


@pytest.mark.parametrize("noise", [1e-6, 1e-10, 1e-14])
@pytest.mark.parametrize("seed", range(5))
def test_a_path_that_creeps_stays_on_its_row(noise, seed):
    """One row of nearly equal entries: velocities of the size of the noise."""
    rng = np.random.default_rng(seed)
    X, start = 1 + noise * rng.standard_normal((1, 10)), rng.standard_normal(10)
    flow = penchant.solvers.slow_flow(X, start)
    sums = flow.points @ X[0]
    np.testing.assert_allclose(sums, sums[0], atol=1e-12 * np.abs(start).sum())
    best = np.abs(sums[0] / X[0]).min()  # the heaviest column alone
    assert np.abs(flow.end).sum() == pytest.approx(best, rel=1e-15 / noise + 1e-12)
    assert np.count_nonzero(flow.end) == 1
    assert flow.time > 0.01 / noise


@few
@given(
    seed=st.integers(0, 10**6),
    held=st.integers(0, 5),
    units=st.lists(st.integers(-60, 60), min_size=5, max_size=5),
)
def test_diagonal_rows_hold_their_entries_and_others_fall_at_speed_one(seed, held, units):
    start = np.random.default_rng(seed).standard_normal(6)
    X = np.ldexp(np.eye(6)[:held], np.array(units[:held], dtype=int)[:, None])
    if not held:
        X = np.zeros((1, 6))
    flow = penchant.solvers.slow_flow(X, start)
    np.testing.assert_allclose(flow.tau[1:], np.sort(np.abs(start[held:])), rtol=1e-12)
    np.testing.assert_array_equal(flow.end, np.where(np.arange(6) < held, start, 0.0))


@few
@given(
    seed=st.integers(0, 10**6),
    samples=st.integers(1, 4),
    units=st.lists(st.integers(-200, 200), min_size=4, max_size=4),
    size=st.integers(-200, 200),
)
def test_units_of_rows_change_nothing_and_those_of_the_start_change_units(
    seed, samples, units, size
):
    rng = np.random.default_rng(seed)
    X, start = rng.standard_normal((samples, 6)), rng.standard_normal(6)
    flow = penchant.solvers.slow_flow(X, start)
    other = penchant.solvers.slow_flow(
        np.ldexp(X, np.array(units)[:samples, None]), np.ldexp(start, size)
    )
    np.testing.assert_array_equal(other.tau, np.ldexp(flow.tau, size))
    np.testing.assert_array_equal(other.points, np.ldexp(flow.points, size))


@few
@given(
    seed=st.integers(0, 10**6),
    samples=st.integers(1, 3),
    dimension=st.integers(1, 4),
    rows=st.lists(st.integers(-40, 40), min_size=3, max_size=3),
    twins=st.sampled_from([None, 0.0, 1e-5, 1e-10, 1e-13]),
    whole=st.booleans(),
)
def test_dense_rows_against_fractions(seed, samples, dimension, rows, twins, whole):
    """Rows in any units, a row that (nearly) repeats another, and small integers with ties."""
    rng = np.random.default_rng(seed)
    X, start = rng.standard_normal((samples, dimension)), rng.standard_normal(dimension)
    if whole:
        X, start = np.round(X), np.round(2 * start)
    if twins is not None and samples > 1:
        X[0] = X[1] + twins * rng.standard_normal(dimension)
    X = np.ldexp(X, np.array(rows)[:samples, None])
    same(penchant.solvers.slow_flow(X, start), *walked(X, start))


@pytest.mark.parametrize("name", ["points", "tau", "dual"])
@pytest.mark.parametrize("size", [1e-3, 1e-6, np.nan])
def test_a_poisoned_path_is_caught(name, size):
    rng = np.random.default_rng(0)
    X, start = rng.standard_normal((2, 5)), rng.standard_normal(5)
    path = walk(FloatKernel(X, start), TimeLimit(None))
    assert certify(X, path).ok
    numbers = getattr(path, name).copy()
    numbers[(-1, numbers[-1].argmax()) if numbers.ndim == 2 else -1] += size
    assert not certify(X, path._replace(**{name: numbers})).ok


def sparse_start(seed):
    """30 rows, 100 columns, and the least squares point of a truth with 5 entries."""
    rng = np.random.default_rng(seed)
    X, truth = rng.standard_normal((30, 100)), np.zeros(100)
    truth[:5] = rng.standard_normal(5)
    return X, np.linalg.pinv(X) @ (X @ truth)


@pytest.mark.parametrize("seed", range(12))
def test_many_entries_that_vanish_at_one_time_leave_the_path_certified(seed):
    """The end has 5 entries where rows allow 30: the last 25 vanish within rounding."""
    X, start = sparse_start(seed)
    flow = penchant.solvers.slow_flow(X, start)
    assert flow.error <= 1e-7
    best = least_l1(X, X @ start)
    np.testing.assert_allclose(flow.end, best, atol=1e-7 * np.abs(best).max())


@pytest.mark.parametrize("size", [1e-3, 1e-5])
@pytest.mark.parametrize("seed", [1, 2, 9])
def test_short_pieces_hide_no_error(seed, size):
    """A corner in the middle, a time, or the end along the kernel of X is off."""
    X, start = sparse_start(seed)
    path = walk(FloatKernel(X, start), TimeLimit(None))
    assert (np.diff(path.tau) < 1e-11 * path.tau[-1]).any()
    assert certify(X, path).ok
    astray = np.linalg.svd(X)[2][-1] * size
    middle = len(path.tau) // 2
    for corner in (middle, len(path.tau) - 1):
        points, tau = path.points.copy(), path.tau.copy()
        points[corner] += astray
        tau[corner:] *= 1 + size
        assert not certify(X, path._replace(points=points)).ok
        assert not certify(X, path._replace(tau=tau)).ok


def test_a_path_along_a_lost_row_is_caught():
    """The points leave X a = X start by 1e-10 of every row, and by 1 along their difference."""
    X = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1e-7]])
    path = walk(FloatKernel(X[:1], np.array([1.0, 1.0, 1.0])), TimeLimit(None))
    assert not certify(X, path).ok


def test_large_rows_that_nearly_repeat_say_how_far_they_are_known():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 80))
    X[1] = X[0] + 1e-11 * rng.standard_normal(80)
    flow = penchant.solvers.slow_flow(X, rng.standard_normal(80), throw=False)
    assert flow.outcome.kind in (Kind.APPROXIMATE, Kind.STALLED)
    assert not flow.error <= 1e-7


def test_a_time_limit_ends_the_path_with_a_sentence():
    rng = np.random.default_rng(0)
    X, start = rng.standard_normal((5, 9)), rng.standard_normal(9)
    flow = penchant.solvers.slow_flow(X, start, max_seconds=1e-9, throw=False)
    assert flow.outcome.kind is Kind.BUDGET_SPENT
    with pytest.raises(penchant.NumericalError, match="raise max_seconds"):
        penchant.solvers.slow_flow(X, start, max_seconds=1e-9)


def nuclear(**options):
    given = {"learning_rate": 0.01, "throw": False} | options
    X = given.pop("X", [[1.0, 0.0, 0.0, 0.0]])
    return penchant.solvers.slow_flow(X, [[1.0, 0.0], [0.0, 1.0]], **given)


def test_the_nuclear_flow_says_what_its_steps_resolve():
    flow = nuclear()
    assert flow.outcome.kind is Kind.APPROXIMATE
    assert flow.error == pytest.approx(0.01, rel=0.1)
    assert nuclear(learning_rate=1e308).error > 1e300
    np.testing.assert_allclose(flow.end, [1, 0, 0, 0], atol=0.02)


def test_a_matrix_is_measured_by_rows_by_matrices_or_by_a_problem():
    measurements = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    start, options = [[1.0, 0.5], [0.5, 1.0]], {"learning_rate": 0.01, "throw": False}
    flows = [
        penchant.solvers.slow_flow(X, start, **options)
        for X in (
            measurements,
            measurements.reshape(2, 4),
            penchant.problems.Sensing(measurements, [1.0, 1.0]),
        )
    ]
    for flow in flows[1:]:
        np.testing.assert_array_equal(flow.points, flows[0].points)
    usual = penchant.solvers.slow_flow(measurements, start, throw=False)
    assert usual.tau[1] == pytest.approx(1.5e-3, rel=1e-12)  # a thousandth of 1.5


test_what_only_a_matrix_needs_is_refused = refusals(
    (
        lambda: penchant.solvers.slow_flow([[1.0, 2.0]], [2.0, 0.0], learning_rate=0.1),
        "slow_flow: learning_rate is for a matrix as the start; .* leave out learning_rate",
    ),
    (lambda: penchant.solvers.slow_flow([[1.0, 2.0]], [2.0, 0.0], error=0.1), "error is for a mat"),
    (lambda: penchant.solvers.slow_flow([[1.0, 2.0]], np.eye(2)), r"one entry per column of X"),
)


def test_the_nuclear_flow_forgets_no_direction_of_equal_rows():
    once = nuclear()
    thrice = nuclear(X=[[1.0, 0.0, 0.0, 0.0], [1e9, 0.0, 0.0, 0.0], [1e-9, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(thrice.end, once.end, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"max_steps": 5}, Kind.BUDGET_SPENT, "raise max_steps"),
        ({"max_seconds": 1e-9}, Kind.BUDGET_SPENT, "raise max_seconds"),
    ],
)
def test_the_nuclear_flow_ends_with_a_sentence(options, kind, sentence):
    flow = nuclear(**options)
    assert flow.outcome.kind is kind
    assert sentence in flow.outcome.sentence
    with pytest.raises(penchant.NumericalError, match=sentence):
        nuclear(**options, throw=True)
