"""Matrix problems: what they measure against plain sums, how they are drawn, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.problems.matrices import (
    commuting_sensing,
    gaussian_sensing,
    low_rank_completion,
    multiplication_table,
)
from tacit.problems.matrix_problem import Completion, Sensing

ONCE = settings(max_examples=30, deadline=None, derandomize=True)
PROBLEMS = {
    "completion": lambda seed: low_rank_completion(samples=11, dimension=5, rank=2, seed=seed),
    "oblong": lambda seed: Completion((2, 5), [[0, 4], [1, 2], [0, 0]], [1.0, 2.0, seed]),
    "sensing": lambda seed: gaussian_sensing(samples=7, dimension=4, rank=2, seed=seed),
    "commuting": lambda seed: commuting_sensing(samples=3, dimension=5, seed=seed, rank=2),
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


def test_the_truth_has_the_rank_that_was_asked_for():
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
    truth = commuting_sensing(samples=4, dimension=6, seed=0).truth
    assert (
        np.abs(
            truth @ commuting_sensing(samples=4, dimension=6, seed=0).measurements[0]
            - commuting_sensing(samples=4, dimension=6, seed=0).measurements[0] @ truth
        ).max()
        < 1e-14
    )


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


def test_an_entry_seen_twice_with_one_value_is_kept_once():
    problem = Completion((2, 2), [[1, 1], [0, 1], [1, 1]], [3.0, 4.0, 3.0])
    np.testing.assert_array_equal(problem.entries, [[1, 1], [0, 1]])
    np.testing.assert_array_equal(problem.y, [3.0, 4.0])


def test_recipes_and_seeds():
    for make in PROBLEMS.values():
        np.testing.assert_array_equal(make(4).y, make(4).y)
    assert low_rank_completion(samples=11, dimension=5, rank=2, seed=4).recipe == {
        "generator": "low_rank_completion",
        "samples": 11,
        "dimension": 5,
        "rank": 2,
        "seed": 4,
        "loss": "squares",
    }
    assert (
        low_rank_completion(samples=11, dimension=5, rank=2, seed=4).y
        != low_rank_completion(samples=11, dimension=5, rank=2, seed=5).y
    ).any()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Completion((2, 2), [[0, 2]], [1.0]), r"entry \(0, 2\), outside a matrix of shape"),
        (lambda: Completion((2, 2), [[-1, 0]], [1.0]), r"entry \(-1, 0\), outside"),
        (lambda: Completion((2, 2), 2 * [[0, 0]], [1.0, 2.0]), "observed twice with two values"),
        (lambda: Completion((2, 2), [[0, 0.5]], [1.0]), "must be integers"),
        (lambda: Completion((2, 2), [[0, 0]], [np.nan]), "values must be finite"),
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
        (
            lambda: commuting_sensing(samples=2, dimension=3, rotated=1),
            "rotated must be True or False",
        ),
        (lambda: multiplication_table(5, fraction=0), "fraction must be > 0"),
        (lambda: multiplication_table(5, fraction=1.5), "fraction must be at most 1"),
    ],
)
def test_bad_input_gets_one_sentence(make, words):
    with pytest.raises(ValueError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)
