"""Matrix problems: what they measure against plain sums, how they are drawn, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant.problems import (
    Completion,
    Sensing,
    aligned_sensing,
    coherent_completion,
    commuting_sensing,
    gaussian_sensing,
    low_rank_completion,
    multiplication_table,
)
from penchant.problems.completions import coherence
from refusals import refusals

ONCE = settings(max_examples=30, deadline=None, derandomize=True)
PROBLEMS = {
    "completion": lambda seed: low_rank_completion(samples=11, dimension=5, rank=2, seed=seed),
    "oblong": lambda seed: Completion((2, 5), [[0, 4], [1, 2], [0, 0]], [1.0, 2.0, seed]),
    "sensing": lambda seed: gaussian_sensing(samples=7, dimension=4, rank=2, seed=seed),
    "commuting": lambda seed: commuting_sensing(samples=3, dimension=5, seed=seed, rank=2),
    "aligned": lambda seed: aligned_sensing(3, (4, 5), rank=2, seed=seed),
    "table": lambda seed: multiplication_table(6, fraction=0.4, seed=seed),
}
everyone = pytest.mark.parametrize("name", PROBLEMS)


@everyone
@ONCE
@given(seed=st.integers(0, 10_000))
def test_apply_adjoint_and_design_are_one_map(name, seed):
    problem, rng = PROBLEMS[name](seed), np.random.default_rng(seed)
    matrix, weights = rng.standard_normal(problem.shape), rng.standard_normal(problem.samples)
    np.testing.assert_allclose(problem.apply(matrix), problem.design @ matrix.ravel(), atol=1e-13)
    inner = np.sum(problem.adjoint(weights) * matrix)
    np.testing.assert_allclose(inner, weights @ problem.apply(matrix), atol=1e-12)
    if problem.truth is not None:
        np.testing.assert_allclose(problem.apply(problem.truth), problem.y, atol=1e-12)


@everyone
def test_the_same_data_as_regression(name):
    problem = PROBLEMS[name](3)
    regression = problem.regression()
    np.testing.assert_array_equal(regression.X, problem.design)
    np.testing.assert_array_equal(regression.y, problem.y)
    assert regression.dimension == problem.dimension


def test_the_truth_has_the_requested_rank():
    for rank in (1, 3):
        for problem in (
            low_rank_completion(samples=9, dimension=6, rank=rank, seed=1),
            gaussian_sensing(samples=9, dimension=6, rank=rank, seed=1),
            commuting_sensing(samples=4, dimension=6, seed=1, rank=rank),
        ):
            assert np.linalg.matrix_rank(problem.truth) == rank


def test_commuting_measurements_commute_and_gaussian_ones_do_not():
    def spread(problem):
        A, B = problem.measurements[:2]
        return np.abs(A @ B - B @ A).max()

    assert spread(commuting_sensing(samples=4, dimension=6, seed=0)) < 1e-14
    assert spread(gaussian_sensing(samples=4, dimension=6, rank=2, seed=0)) > 1e-3
    plain = commuting_sensing(samples=4, dimension=6, seed=0, rotated=False)
    assert not plain.measurements[:, ~np.eye(6, dtype=bool)].any()
    problem = commuting_sensing(samples=4, dimension=6, seed=0)
    A, truth = problem.measurements[0], problem.truth
    assert np.abs(truth @ A - A @ truth).max() < 1e-14


@ONCE
@given(dimension=st.integers(2, 12), fraction=st.floats(0.05, 1), seed=st.integers(0, 99))
def test_the_table_hides_pairs_of_which_nothing_was_seen(dimension, fraction, seed):
    both = multiplication_table(dimension, fraction=fraction, seed=seed)
    one = multiplication_table(dimension, fraction=fraction, seed=seed, mirrored=False)
    np.testing.assert_array_equal(both.observed, both.observed.T)
    np.testing.assert_array_equal(both.hidden, one.hidden)
    assert not (both.hidden & both.observed).any()
    assert both.hidden.sum() + both.observed.sum() == dimension**2
    assert (one.entries[:, 0] <= one.entries[:, 1]).all()
    pairs = dimension * (dimension + 1) // 2
    assert one.samples == max(1, round(fraction * pairs))
    assert both.truth.max() == 1
    np.testing.assert_allclose(both.truth[0, 1] * dimension**2, 2)


def test_the_test_error_is_over_hidden_entries_only():
    problem = low_rank_completion(samples=6, dimension=4, rank=1, seed=0)
    assert problem.test_error(problem.truth) == 0
    assert problem.test_error(np.where(problem.observed, 1e9, problem.truth)) == 0
    off = problem.test_error(np.where(problem.observed, 1e9, problem.truth + 2))
    assert abs(off - 2) < 1e-14
    assert np.isnan(
        low_rank_completion(samples=16, dimension=4, rank=1, seed=0).test_error(problem.truth)
    )
    sensing = gaussian_sensing(samples=6, dimension=4, rank=1, seed=0)
    assert abs(sensing.test_error(sensing.truth + 2) - 2) < 1e-14


def test_an_entry_seen_twice_with_one_value_counts_once():
    problem = Completion((2, 2), [[1, 1], [0, 1], [1, 1]], [3.0, 4.0, 3.0])
    np.testing.assert_array_equal(problem.entries, [[1, 1], [0, 1]])
    np.testing.assert_array_equal(problem.y, [3.0, 4.0])


test_bad_input_gets_one_sentence = refusals(
    (lambda: Completion((2, 2), [[0, 2]], [1.0]), r"entry \(0, 2\), outside a matrix of shape"),
    (lambda: Completion((2, 2), [[-1, 0]], [1.0]), r"entry \(-1, 0\), outside"),
    (lambda: Completion((2, 2), 2 * [[0, 0]], [1.0, 2.0]), "observed twice with two values"),
    (lambda: Completion((2, 2), [[0, 0.5]], [1.0]), "must be integers"),
    (lambda: Completion((2, 2), [[0, 0]], [1.0, 2.0]), "1 entries but 2 values"),
    (lambda: Completion((2, 2), [[0, 0, 0]], [1.0]), r"pairs \(row, column\)"),
    (lambda: Completion((2, 2), np.empty((0, 2)), []), "must not be empty"),
    (lambda: Completion(4, [[0, 0]], [1.0]), "shape must be"),
    (lambda: Completion((0, 2), [[0, 0]], [1.0]), "shape must be at least 1, got 0"),
    (lambda: Completion((2, 3), [[0, 0]], [1.0], symmetric=True), "must be square"),
    (lambda: Completion((2, 2), [[0, 0]], [1.0], truth=np.eye(3)), "truth must have shape"),
    (lambda: Completion((2, 2), [[0, 0]], [1.0]).test_error(np.eye(2)), "give truth="),
    (lambda: Sensing(np.ones((2, 3, 3)), [1.0]), "2 measurements but y has 1"),
    (lambda: Sensing(np.full((1, 3, 3), np.inf), [1.0]), "measurements must be finite"),
    (lambda: Sensing(np.ones((0, 3, 3)), []), "must not be empty"),
    (lambda: low_rank_completion(samples=10, dimension=3, rank=1), r"at most dimension\^2 = 9"),
    (
        lambda: low_rank_completion(samples=5, dimension=3, rank=4),
        "rank must be at most dimension=3, got 4",
    ),
    (
        lambda: gaussian_sensing(samples=5, dimension=3, rank=4),
        "rank must be at most dimension=3, got 4",
    ),
    (lambda: commuting_sensing(samples=2, dimension=3, rank=4), "rank must be at most"),
    (lambda: commuting_sensing(samples=2, dimension=3, rotated=1), "rotated must be True or False"),
    (lambda: multiplication_table(5, fraction=0), "fraction must be > 0"),
    (lambda: multiplication_table(5, fraction=1.5), "fraction must be at most 1"),
)


def low_rank(rows, columns, rank, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, columns))


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.integers(2, 9), st.integers(2, 9), st.integers(1, 2), st.integers(0, 99))
def test_coherence_is_the_diagonal_of_the_projections(rows, columns, rank, seed):
    """By pseudo-inverses, which know nothing of the rank or of the SVD's signs."""
    matrix = low_rank(rows, columns, rank, seed)
    inverse = np.linalg.pinv(matrix, rcond=1e-10)
    of_rows, of_columns = coherence(matrix)
    assert of_rows == pytest.approx(rows / rank * np.diag(matrix @ inverse), abs=1e-8)
    assert of_columns == pytest.approx(columns / rank * np.diag(inverse @ matrix), abs=1e-8)
    assert of_rows.mean() == pytest.approx(1)
    assert of_columns.mean() == pytest.approx(1)


def test_coherence_of_known_matrices():
    assert coherence(np.ones((3, 4)))[0] == pytest.approx(np.ones(3))
    spike = np.zeros((3, 4))
    spike[1, 2] = -5.0
    rows, columns = coherence(spike)
    assert rows == pytest.approx([0, 3, 0])
    assert columns == pytest.approx([0, 0, 4, 0])


def test_the_most_coherent_entries_come_first():
    truth = low_rank(6, 5, 2, 0)
    rows, columns = coherence(truth)
    scores = rows[:, None] + columns[None, :]
    seen = coherent_completion(samples=12, truth=truth, tau=1.0).observed
    assert scores[seen].min() >= scores[~seen].max()
    assert seen.sum() == 12
    last = coherent_completion(samples=12, truth=truth, tau=1.0, least=True).observed
    assert scores[last].max() <= scores[~last].min()


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.integers(1, 30), st.floats(0, 1), st.integers(0, 99))
def test_a_share_is_chosen_and_the_rest_is_random(samples, tau, seed):
    truth = low_rank(6, 5, 2, 1)
    problem = coherent_completion(samples=samples, truth=truth, tau=tau, seed=seed)
    assert problem.samples == samples
    assert problem.y == pytest.approx(truth[problem.observed])
    first = coherent_completion(samples=max(1, round(tau * samples)), truth=truth, tau=1.0).observed
    assert round(tau * samples) == 0 or problem.observed[first].all()


def test_without_a_share_every_entry_is_as_likely():
    truth = low_rank(4, 4, 1, 2)
    counts = sum(
        coherent_completion(samples=4, truth=truth, tau=0.0, seed=s).observed.astype(int)
        for s in range(400)
    )
    assert abs(counts - 100).max() < 40  # 4.6 standard deviations
    half = sum(
        coherent_completion(samples=4, truth=truth, tau=0.5, seed=s).observed.astype(int)
        for s in range(400)
    )
    assert abs(half - 100).max() > 100


test_wrong_input_of_coherent_completion_is_refused = refusals(
    (lambda: coherent_completion(5, np.eye(2), tau=0.5), "samples must be at most 4"),
    (lambda: coherent_completion(2, np.eye(2), tau=1.5), "tau must be between 0 and 1, got 1.5"),
    (lambda: coherent_completion(2, np.eye(2), tau=np.nan), "coherent_completion: tau"),
    (lambda: coherent_completion(2, np.eye(2), tau=0.5, seed=-1), "coherent_completion: seed"),
    (lambda: coherent_completion(2, np.zeros((2, 2)), tau=0.5), "must not be all zero"),
)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_stack_is_measured_one_by_one(name):
    problem, rng = PROBLEMS[name](0), np.random.default_rng(1)
    matrices = rng.standard_normal((3, *problem.shape))
    weights = rng.standard_normal((3, problem.samples))
    one_by_one = [problem.apply(matrix) for matrix in matrices]
    np.testing.assert_allclose(problem.apply(matrices), one_by_one, rtol=1e-12, atol=1e-12)
    one_by_one = [problem.adjoint(row) for row in weights]
    np.testing.assert_allclose(problem.adjoint(weights), one_by_one, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_the_lifted_aligned_measurements_commute(shape):
    rows, columns = shape
    X = aligned_sensing(3, shape, rank=2, seed=4).measurements
    lifted = np.zeros((3, rows + columns, rows + columns))
    lifted[:, :rows, rows:] = X
    lifted += lifted.transpose(0, 2, 1)
    products = lifted[:, None] @ lifted[None]
    np.testing.assert_allclose(products, products.transpose(1, 0, 2, 3), atol=1e-13)
    other = gaussian_sensing(samples=3, dimension=4, rank=1).measurements
    assert np.abs(other[0] @ other[1].T - other[1] @ other[0].T).max() > 1e-3  # the control


NOISY = {
    "completion": lambda **given: low_rank_completion(60, 10, rank=1, **given),
    "gaussian": lambda **given: gaussian_sensing(60, 10, rank=1, **given),
    "commuting": lambda **given: commuting_sensing(60, 10, **given),
    "aligned": lambda **given: aligned_sensing(60, (10, 12), **given),
}


@pytest.mark.parametrize("name", NOISY)
def test_noise_changes_the_values_alone_and_has_its_size(name):
    plain, noisy = NOISY[name](seed=3), NOISY[name](seed=3, noise=0.5)
    np.testing.assert_array_equal(plain.design, noisy.design)
    np.testing.assert_array_equal(plain.truth, noisy.truth)
    size = np.std(noisy.y - plain.y)
    assert 0.34 < size < 0.67  # 0.5 (1 +- 3.3 / sqrt(2 60)), rounded outwards
    assert "noise 0.5" in noisy.description
    with pytest.raises(ValueError, match="noise must be"):
        NOISY[name](noise=-1.0)
