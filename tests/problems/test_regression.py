"""Regression data: what is drawn, what is known of it, and what is refused."""

import numpy as np
import pytest

from penchant import Regression
from penchant.problems import sparse_recovery, sparse_regression
from refusals import refusals


def test_the_truth_is_sparse_and_of_unit_length():
    problem = sparse_regression(7, 50, sparsity=4, seed=3)
    assert np.count_nonzero(problem.truth) == 4
    assert set(problem.truth[problem.truth != 0]) == {0.5}
    assert np.linalg.norm(problem.truth) == pytest.approx(1)
    assert problem.X.shape == (7, 50)
    assert problem.y.shape == (7,)


def test_samples_and_noise_have_the_promised_moments():
    problem = sparse_regression(20_000, 3, sparsity=2, noise=0.1, seed=1)
    covariance = problem.X.T @ problem.X / 20_000
    noise = problem.y - problem.X @ problem.truth
    assert np.abs(covariance - np.eye(3)).max() < 0.03
    assert noise.var() == pytest.approx(0.01, rel=0.04)  # W section 4: variance 0.01
    assert noise.var() != pytest.approx(0.1, rel=0.5)  # control: 0.1 is not the variance


def test_population_error_is_the_error_on_new_samples():
    problem = sparse_regression(5, 6, sparsity=2, noise=0.5, seed=2)
    beta = np.linspace(-1, 1, 6)
    rng = np.random.default_rng(7)
    x = rng.standard_normal((400_000, 6))
    y = x @ problem.truth + 0.5 * rng.standard_normal(400_000)
    sampled = np.mean((x @ beta - y) ** 2) - 0.5**2
    assert problem.population_error(beta) == pytest.approx(sampled, rel=0.02)
    assert problem.population_error(problem.truth) == 0
    assert problem.population_error(beta) != pytest.approx(sampled + 0.25, rel=0.02)


def test_data_cannot_be_changed_and_do_not_follow_their_source():
    X, y = np.eye(2), np.ones(2)
    problem = Regression(X, y)
    X[0, 0] = 9
    assert problem.X[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        problem.y[0] = 3
    with pytest.raises(AttributeError):
        problem.y = y


test_bad_input_is_refused_in_one_sentence = refusals(
    (lambda: Regression(np.ones((2, 3)), np.ones(4)), "X has 2 rows but y has 4"),
    (lambda: Regression(np.ones(3), np.ones(3)), "X must have 2 dimension"),
    (lambda: Regression([["a"]], [1.0]), "X must hold real numbers, got strings"),
    (lambda: Regression(np.ones((0, 3)), []), "must not be empty"),
    (lambda: Regression(np.eye(2), np.ones(2), truth=np.ones(3)), r"one entry per feature"),
    (lambda: Regression(np.eye(2), np.ones(2), noise=-1), "noise must be >= 0, got -1"),
    (lambda: Regression(np.eye(2), np.ones(2)).population_error([1, 2]), "truth .* not known"),
    (
        lambda: sparse_regression(3, 4, sparsity=5),
        "sparsity must be at most dimension=4, the number of entries, got 5",
    ),
    (lambda: sparse_regression(3, 4, sparsity=0), "sparsity must be at least 1"),
    (lambda: sparse_regression(0, 4, sparsity=1), "samples must be at least 1"),
    (lambda: sparse_regression(3, 4, sparsity=1, noise=-0.1), "noise must be >= 0"),
    (lambda: sparse_regression(3, 4, sparsity=1, noise=np.inf), "noise must be a finite number"),
    (lambda: sparse_regression(3, 4, sparsity=1, seed=-1), "seed must be at least 0"),
    (lambda: sparse_regression(3, 4, sparsity=1.5), "sparsity must be an integer"),
)


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
def test_the_noise_has_the_requested_power(snr):
    problem = sparse_recovery(4000, 10, sparsity=3, seed=1, snr=snr)
    signal = problem.X @ problem.truth
    noise = problem.y - signal
    assert (signal @ signal) / (noise @ noise) == pytest.approx(snr, rel=5 * np.sqrt(2 / 4000))
    assert np.std(noise) == pytest.approx(problem.noise, rel=5 * np.sqrt(0.5 / 4000))


def test_an_infinite_ratio_leaves_clean_labels():
    problem = sparse_recovery(30, 100, sparsity=5, snr=np.inf)
    assert (problem.y == problem.X @ problem.truth).all()
    assert problem.noise == 0


def refused(sentence, **changes):
    given = {"samples": 30, "dimension": 100, "sparsity": 5} | changes
    return lambda: sparse_recovery(**given), f"^sparse_recovery: {sentence}"


test_bad_input_of_sparse_recovery_is_refused = refusals(
    refused("sparsity must be at most dimension=100", sparsity=101),
    refused("sparsity must be at least 1", sparsity=0),
    refused("samples must be at least 1", samples=0),
    refused("samples must be an integer", samples=2.5),
    refused("dimension must be at least 1", dimension=-1),
    refused("seed must be at least 0", seed=-1),
    refused("snr must be a number > 0", snr=0.0),
    refused("snr must be a number > 0", snr=float("nan")),
    refused("snr must be a number > 0", snr="high"),
)
