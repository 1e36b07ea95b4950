"""Sparse recovery data: their law, their noise, and what is refused."""

import numpy as np
import pytest

from tacit.problems.regression import sparse_recovery


def test_the_law_of_the_data():
    problem = sparse_recovery(200, 400, sparsity=100, seed=3)
    # variances of 80000 and 100 Gaussian numbers: five standard deviations
    assert np.mean(problem.X**2) * 200 == pytest.approx(1, abs=5 * np.sqrt(2 / 80000))
    support = np.flatnonzero(problem.truth)
    assert len(support) == 100
    assert np.mean(problem.truth[support] ** 2) * 400 == pytest.approx(1, abs=5 * np.sqrt(2 / 100))


def test_the_support_is_a_random_set():
    supports = [
        tuple(np.flatnonzero(sparse_recovery(5, 20, sparsity=4, seed=s).truth)) for s in range(20)
    ]
    assert len(set(supports)) > 15
    seen = {k for support in supports for k in support}
    assert min(seen) <= 1
    assert max(seen) >= 18


@pytest.mark.parametrize("snr", [1.0, 1e4])
def test_the_noise_has_the_power_asked_for(snr):
    problem = sparse_recovery(4000, 10, sparsity=3, seed=1, snr=snr)
    signal = problem.X @ problem.truth
    noise = problem.y - signal
    assert (signal @ signal) / (noise @ noise) == pytest.approx(snr, rel=5 * np.sqrt(2 / 4000))
    assert np.std(noise) == pytest.approx(problem.noise, rel=5 * np.sqrt(0.5 / 4000))


def test_an_infinite_ratio_leaves_clean_labels():
    problem = sparse_recovery(30, 100, sparsity=5, snr=np.inf)
    assert (problem.y == problem.X @ problem.truth).all()
    assert problem.noise == 0


def test_the_recipe_draws_the_same_data_again():
    problem = sparse_recovery(30, 100, sparsity=5, seed=7, snr=100.0)
    recipe = dict(problem.recipe)
    assert recipe.pop("generator") == "sparse_recovery"
    again = sparse_recovery(**recipe)
    assert (again.X == problem.X).all()
    assert (again.y == problem.y).all()
    assert (sparse_recovery(30, 100, sparsity=5, seed=8).X != problem.X).any()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"sparsity": 101}, "sparsity must be at most dimension=100"),
        ({"sparsity": 0}, "sparsity must be at least 1"),
        ({"samples": 0}, "samples must be at least 1"),
        ({"samples": 2.5}, "samples must be an integer"),
        ({"dimension": -1}, "dimension must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"snr": 0.0}, "snr must be a number > 0"),
        ({"snr": float("nan")}, "snr must be a number > 0"),
        ({"snr": "high"}, "snr must be a number > 0"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(arguments, sentence):
    given = {"samples": 30, "dimension": 100, "sparsity": 5} | arguments
    with pytest.raises(ValueError, match=f"^sparse_recovery: {sentence}"):
        sparse_recovery(**given)
