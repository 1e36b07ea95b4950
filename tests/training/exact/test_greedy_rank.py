"""Greedy rank: singular values by hand, alternating least squares, plain integration."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import penchant
from penchant.lab import Kind
from penchant.training.exact.matrices.greedy_rank import certify
from refusals import refusals


def seen(matrix, **options):
    """All entries of a matrix as measurements."""
    matrix = np.asarray(matrix, dtype=float)
    design = np.eye(matrix.size).reshape(-1, *matrix.shape)
    return penchant.problems.Sensing(design, matrix.ravel(), **options)


def truncated(matrix, rank):
    left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    return (left[:, :rank] * sizes[:rank]) @ right[:rank]


@settings(max_examples=8, deadline=None)
@given(
    gaps=st.lists(st.floats(0.3, 2.0), min_size=1, max_size=3),
    shape=st.tuples(st.integers(3, 5), st.integers(3, 5)),
    seed=st.integers(0, 100),
)
def test_of_a_matrix_seen_whole_the_singular_values_come_one_by_one(gaps, shape, seed):
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((side, side)))[0] for side in shape)
    sizes = np.cumsum(gaps)[::-1]
    matrix = (left[:, : len(sizes)] * sizes) @ right[:, : len(sizes)].T
    found = penchant.solvers.saddles(seen(matrix))
    np.testing.assert_array_equal(found.ranks, np.arange(len(sizes) + 1))
    for rank, point in enumerate(found.points):
        np.testing.assert_allclose(point, truncated(matrix, rank), atol=1e-9)
    np.testing.assert_allclose(found.tau[1:], 1 / (2 * sizes), rtol=1e-9)
    np.testing.assert_allclose(found.rates[:-1], 2 * sizes, rtol=1e-9)
    left_over = [float((sizes[rank:] ** 2).sum()) for rank in range(len(sizes) + 1)]
    np.testing.assert_allclose(found.loss, left_over, atol=1e-12)


def test_a_symmetric_matrix_keeps_its_positive_part():
    found = penchant.solvers.saddles(seen(np.diag([2.0, -3.0, 1.0])), symmetric=True)
    np.testing.assert_allclose(found.end, np.diag([2.0, 0.0, 1.0]), atol=1e-12)
    np.testing.assert_allclose(found.tau, [0, 1 / 8, 1 / 4])
    nothing = penchant.solvers.saddles(seen(np.diag([-2.0, -1.0])), symmetric=True)
    assert nothing.ranks.tolist() == [0]


def test_half_the_squares_take_twice_the_time():
    matrix = np.diag([2.0, 1.0])
    once, half = (
        penchant.solvers.saddles(seen(matrix, loss=loss)) for loss in ("squares", "half squares")
    )
    np.testing.assert_allclose(half.tau, 2 * once.tau)
    np.testing.assert_allclose(half.loss, once.loss / 2, atol=1e-20)
    np.testing.assert_allclose(half.end, once.end, atol=1e-12)


def alternating(problem, rank, rounds=4000):
    """A completion of this rank by alternating least squares."""
    left, sizes, right = np.linalg.svd(np.where(problem.observed, problem.truth, 0.0))
    U, V = left[:, :rank] * sizes[:rank], right[:rank].T
    for _ in range(rounds):
        for fixed, free, known, values in (
            (V, U, problem.observed, problem.truth),
            (U, V, problem.observed.T, problem.truth.T),
        ):
            for i, row in enumerate(known):
                free[i] = np.linalg.lstsq(fixed[row], values[i, row], rcond=None)[0]
    return U @ V.T


def test_seed_9_is_completed_to_the_least_rank_and_not_to_the_least_nuclear_norm():
    problem = penchant.problems.low_rank_completion(samples=60, dimension=10, rank=1, seed=9)
    found = penchant.solvers.saddles(problem)
    assert found.ranks.tolist() == [0, 1]
    np.testing.assert_allclose(found.end, alternating(problem, 1, 400), atol=1e-8)
    least = penchant.interpolate(problem, penchant.regularizers.Nuclear()).matrix
    assert np.linalg.norm(least, "nuc") < 0.98 * np.linalg.norm(found.end, "nuc")
    np.testing.assert_allclose(problem.apply(least), problem.y, atol=1e-6)


def test_a_second_point_adds_a_second_rank():
    problem = penchant.problems.low_rank_completion(samples=80, dimension=10, rank=2, seed=0)
    found = penchant.solvers.saddles(problem)
    assert found.ranks.tolist() == [0, 1, 2]
    np.testing.assert_allclose(found.end, problem.truth, atol=1e-9)
    slope = problem.adjoint(problem.apply(found.points[1]) - problem.y)
    assert np.abs(slope @ found.points[1].T).max() < 1e-10 * np.abs(slope).max()  # critical


def jump(problem, alpha, level):
    """When a plain integration of U and V from alpha times a Gaussian start passes the loss."""
    rows, columns = problem.shape
    start = alpha * np.random.default_rng(0).standard_normal((rows + columns) ** 2)

    def move(t, w):
        U, V = np.split(w.reshape(rows + columns, -1), [rows])
        slope = 2 * problem.adjoint(problem.apply(U @ V.T) - problem.y)
        return -np.concatenate([slope @ V, slope.T @ U]).ravel()

    def passes(t, w):
        U, V = np.split(w.reshape(rows + columns, -1), [rows])
        return float(np.sum((problem.apply(U @ V.T) - problem.y) ** 2)) - level

    passes.terminal = True
    path = solve_ivp(move, (0, 1e4), start, "DOP853", events=passes, rtol=1e-9, atol=1e-3 * alpha)
    return path.t[-1]


def test_the_times_are_those_of_a_plain_integration():
    """The growth of the time of a jump with log(1/alpha), so that what does not grow cancels."""
    problem = penchant.problems.gaussian_sensing(samples=22, dimension=6, rank=2, seed=3)
    found = penchant.solvers.saddles(problem)
    restarted = 1 / found.rates[0] + 1 / found.rates[1]
    level = math.sqrt(found.loss[0] * found.loss[1]), 0.1 * found.loss[1]
    alphas = 1e-6, 1e-10
    for tau, loss, rtol in zip(found.tau[1:], level, (0.02, 0.01), strict=True):
        early, late = (jump(problem, alpha, loss) for alpha in alphas)
        np.testing.assert_allclose((late - early) / math.log(1e4), tau, rtol=rtol)
    assert restarted > 1.5 * found.tau[2]  # a control: what grows begins anew at every point


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000))
def test_measurements_that_commute_follow_the_saddles_of_a_diagonal_net(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((3, 5)), rng.standard_normal(3)
    basis = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    measurements = np.array([(basis * row) @ basis.T for row in X])
    found, known = (
        penchant.solvers.saddles(penchant.problems.Sensing(measurements, y)),
        penchant.solvers.saddles(X, y),
    )
    np.testing.assert_allclose(found.tau, 2 * known.tau, rtol=1e-8)
    spectra = np.einsum("ij,nik,kj->nj", basis, found.points, basis)
    np.testing.assert_allclose(spectra, known.points, atol=1e-7)


def test_measurements_that_leave_blocks_alone_are_followed_in_each_of_them():
    parts = [
        penchant.problems.gaussian_sensing(samples=11, dimension=4, rank=1, seed=k) for k in (1, 2)
    ]
    blocks = np.zeros((22, 8, 8))
    for k, part in enumerate(parts):
        side = slice(4 * k, 4 * k + 4)
        blocks[11 * k : 11 * k + 11, side, side] = part.measurements
    found = penchant.solvers.saddles(
        penchant.problems.Sensing(blocks, np.concatenate([part.y for part in parts]))
    )
    alone = [penchant.solvers.saddles(part) for part in parts]
    together = np.sort(np.concatenate([one.tau[1:] for one in alone]))
    np.testing.assert_allclose(found.tau[1:], together, rtol=1e-8)
    for k, one in enumerate(alone):
        side = slice(4 * k, 4 * k + 4)
        np.testing.assert_allclose(found.end[side, side], one.end, atol=1e-8)


def test_ties_and_nothing_to_learn_are_named():
    tie = penchant.solvers.saddles(seen(np.eye(2)))
    assert tie.outcome.kind is Kind.NOT_UNIQUE
    assert "two directions grow equally fast at the point of rank 0" in tie.outcome.sentence
    np.testing.assert_allclose(tie.end, np.eye(2), atol=1e-12)
    zero = penchant.solvers.saddles(seen(np.zeros((2, 3))))
    assert zero.tau.tolist() == [0.0]
    assert zero.end.shape == (2, 3)


def test_a_least_loss_at_infinity_is_a_failure_with_a_sentence():
    problem = penchant.problems.low_rank_completion(samples=17, dimension=5, rank=2, seed=1)
    found = penchant.solvers.saddles(problem, throw=False)
    assert not found.outcome.ok
    assert found.ranks.tolist() == [0, 1]
    with pytest.raises(penchant.NumericalError, match="the flow of rank 2 does not converge"):
        penchant.solvers.saddles(problem)


def graded(seed, spread=3.0):
    """Few measurements whose sizes lie many decades apart, which stiff steps could not follow."""
    rng = np.random.default_rng(seed)
    side, count = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    sizes = 10.0 ** rng.uniform(-spread / 2, spread / 2, (count, 1, 1))
    return penchant.problems.Sensing(
        rng.standard_normal((count, side, side)) * sizes, rng.standard_normal(count)
    )


@pytest.mark.parametrize("seed", range(12))
def test_measurements_of_different_sizes_are_followed_to_the_end(seed):
    problem = graded(seed)
    found = penchant.solvers.saddles(problem)
    assert found.error <= 1e-7
    # independent measurements, fewer than entries: all are fitted, each in its own units
    left = np.abs(problem.apply(found.end) - problem.y) / np.abs(problem.y)
    assert left.max() < 1e-5
    assert (np.diff(found.loss) < 0).all()


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), inputs=st.integers(-300, 300), labels=st.integers(-150, 150))
def test_units_of_measurements_and_labels_change_units_alone(seed, inputs, labels):
    problem = penchant.problems.gaussian_sensing(samples=6, dimension=3, rank=1, seed=seed)
    once = penchant.solvers.saddles(problem)
    scaled = np.ldexp(problem.measurements, inputs)
    other = penchant.solvers.saddles(penchant.problems.Sensing(scaled, np.ldexp(problem.y, labels)))
    np.testing.assert_array_equal(other.tau, np.ldexp(once.tau, -inputs - labels))
    np.testing.assert_array_equal(other.points, np.ldexp(once.points, labels - inputs))
    np.testing.assert_array_equal(other.loss, np.ldexp(once.loss, 2 * labels))
    np.testing.assert_array_equal(other.rates, np.ldexp(once.rates, inputs + labels))


def test_factors_that_grow_for_ever_are_recognised_by_their_power():
    problem = penchant.problems.low_rank_completion(samples=17, dimension=5, rank=2, seed=1)
    sentence = penchant.solvers.saddles(problem, throw=False).outcome.sentence
    assert "the factors grow like t^0.2" in sentence
    assert "its least loss lies at infinity" in sentence


@pytest.mark.parametrize("place", [1, -1])
@pytest.mark.parametrize("size", [1e-3, 1e-5, np.nan])
def test_a_poisoned_list_is_caught(place, size):
    problem = penchant.problems.low_rank_completion(samples=80, dimension=10, rank=2, seed=0)
    points = penchant.solvers.saddles(problem).points
    model = penchant.Factorization(factors=(np.zeros((10, 1)), np.zeros((10, 1))))
    assert certify(problem, model, points).ok
    poisoned = points.copy()
    poisoned[place, 0, 0] += size
    assert not certify(problem, model, poisoned).ok
    assert not certify(problem, model, points[:-1]).ok  # it ends too early


def test_a_time_limit_ends_the_list_with_a_sentence():
    found = penchant.solvers.saddles(graded(0), max_seconds=1e-9, throw=False)
    assert found.outcome.kind is Kind.BUDGET_SPENT
    assert "raise max_seconds" in found.outcome.sentence
    assert found.ranks.tolist() == [0]


test_bad_inputs_are_refused = refusals(
    (
        lambda: penchant.solvers.saddles(np.eye(2), [1.0, 2.0], symmetric=True),
        "symmetric is for a Completion or a Sensing, got ndarray",
    ),
    (
        lambda: penchant.solvers.saddles(seen(np.eye(2)), depth=3),
        "its model two factors; leave out depth 3",
    ),
    (
        lambda: penchant.solvers.saddles(seen(np.ones((2, 3))), symmetric=True),
        "square, got shape",
    ),
    (
        lambda: penchant.solvers.saddles(seen(np.eye(2)), symmetric=1),
        "symmetric must be True or",
    ),
    by="saddles: ",
)
