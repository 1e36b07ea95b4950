"""Coherence of rows and columns, and completion problems that choose entries by it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.problems.matrices import coherence, coherent_completion


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


def test_the_same_seed_gives_the_same_entries():
    truth = low_rank(6, 6, 2, 3)
    one, two, three = (
        coherent_completion(samples=20, truth=truth, tau=0.3, seed=s).entries for s in (5, 5, 6)
    )
    assert (one == two).all()
    assert (one != three).any()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"samples": 5}, "samples must be at most 4"),
        ({"tau": 1.5}, "tau must be between 0 and 1, got 1.5"),
        ({"tau": np.nan}, "coherent_completion: tau"),
        ({"seed": -1}, "coherent_completion: seed"),
        ({"truth": np.zeros((2, 2))}, "must not be all zero"),
    ],
)
def test_wrong_input_is_refused(arguments, sentence):
    good = {"truth": np.eye(2), "samples": 2, "tau": 0.5}
    coherent_completion(**good)
    with pytest.raises(ValueError, match=sentence):
        coherent_completion(**(good | arguments))
