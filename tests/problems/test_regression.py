"""Regression data: what is drawn, what is known of it, and what is refused."""

import numpy as np
import pytest

from tacit import Regression, sparse_regression


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


def test_a_seed_names_the_data():
    once, again, other = (sparse_regression(4, 9, sparsity=2, seed=s) for s in (5, 5, 6))
    assert (once.X == again.X).all()
    assert (once.y == again.y).all()
    assert (once.X != other.X).any()


def test_the_recipe_draws_the_same_data_again():
    problem = sparse_regression(5, 8, sparsity=3, noise=0.3, seed=11)
    recipe = dict(problem.recipe)
    assert recipe.pop("generator") == "sparse_regression"
    assert (sparse_regression(**recipe).y == problem.y).all()


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


def test_records_print():
    text = str(sparse_regression(3, 4, sparsity=1))
    assert "Regression" in text
    assert "noise" in text


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Regression(np.ones((2, 3)), np.ones(4)), "X has 2 rows but y has 4"),
        (lambda: Regression(np.ones(3), np.ones(3)), "X must have 2 dimension"),
        (lambda: Regression([[1.0, np.nan]], [1.0]), "X must be finite"),
        (lambda: Regression([[1j]], [1.0]), "X must hold real numbers, got complex"),
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
        (
            lambda: sparse_regression(3, 4, sparsity=1, noise=np.inf),
            "noise must be a finite number",
        ),
        (lambda: sparse_regression(3, 4, sparsity=1, seed=-1), "seed must be at least 0"),
        (lambda: sparse_regression(3, 4, sparsity=1.5), "sparsity must be an integer"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence) as refused:
        make()
    assert "\n" not in str(refused.value)
