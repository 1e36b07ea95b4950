"""The tasks of source L: what is drawn, and the accuracy of any linear classifier on new data."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from penchant import L1, L2, max_margin
from penchant.problems import majority, wide_margin
from penchant.problems.population import MajorityCube, WideMargin
from refusals import refusals

calm = settings(deadline=None, derandomize=True, max_examples=40)


def by_corners(beta, relevant):
    """Accuracy over every corner of the cube, in whole numbers: beta must hold integers."""
    corners = np.array(list(itertools.product((-1, 1), repeat=len(beta))))
    y = np.sign(corners[:, :relevant].sum(axis=1))
    return float(np.mean(np.sign(y * (corners @ beta)) + 1) / 2)


def drawn(population, beta, count=40_000, seed=5):
    """Accuracy on `count` fresh points, and three standard deviations of it."""
    rng = np.random.default_rng(seed)
    if isinstance(population, MajorityCube):
        x = rng.choice([-1.0, 1.0], (count, population.dimension))
        y = np.sign(x[:, : population.relevant].sum(axis=1))
    else:
        w = population.direction
        z = rng.standard_normal((count, len(w)))
        y = np.sign(z @ w)
        x = z + population.gamma / 2 * np.outer(y, w)
    p = np.mean(np.sign(y * (x @ beta)) + 1) / 2
    return p, 3 * np.sqrt(0.25 / count)


@calm
@given(st.lists(st.integers(-9, 9), min_size=5, max_size=12), st.sampled_from([1, 3, 5]))
def test_accuracy_on_the_cube_is_exact_where_all_signs_are_enumerated(beta, relevant):
    population = MajorityCube(len(beta), relevant)
    assert population.accuracy(beta) == pytest.approx(by_corners(np.array(beta), relevant))
    assert population.error(beta) == 0


def test_fourteen_coordinates_by_corners():
    beta = np.random.default_rng(0).integers(-20, 21, 14)
    expected = by_corners(beta, 3)
    assert MajorityCube(14, 3).accuracy(beta) == pytest.approx(expected, abs=1e-12)
    assert MajorityCube(14, 5).accuracy(beta) != pytest.approx(expected, abs=1e-3)  # control


@calm
@given(st.lists(st.integers(-9, 9), min_size=8, max_size=12), st.integers(3, 6))
def test_the_gaussian_part_errs_by_no_more_than_its_bound(beta, exact):
    population = MajorityCube(len(beta), 3, exact)
    off = abs(population.accuracy(beta) - by_corners(np.array(beta), 3))
    assert off <= population.error(beta) + 1e-12


def test_the_bound_is_of_use_and_the_gaussian_part_is_at_work():
    rng = np.random.default_rng(1)
    flat = rng.choice([-1.0, 1.0], 2000)
    assert 1e-3 < MajorityCube(2000).error(flat) < 0.013  # 0.56 / sqrt(1985) and less
    tail = np.append(np.ones(3), 1e-3 * rng.standard_normal(500))
    assert MajorityCube(503).error(tail) < 1e-12  # nothing overrules three votes
    beta = rng.integers(1, 10, 13)
    rough, fine = MajorityCube(13, 3, 3), MajorityCube(13, 3, 13)
    assert fine.error(beta) == 0
    assert 1e-6 < abs(rough.accuracy(beta) - fine.accuracy(beta)) < rough.error(beta)


@pytest.mark.parametrize("relevant", [1, 3, 7])
def test_accuracy_on_the_cube_against_fresh_points(relevant):
    population = MajorityCube(60, relevant)
    beta = 0.3 * np.random.default_rng(2).standard_normal(60)
    beta[:relevant] += 1
    sampled, band = drawn(population, beta)
    assert population.accuracy(beta) == pytest.approx(sampled, abs=band + population.error(beta))
    beta[:relevant] -= 1  # the control: without the signal it is another number
    assert abs(population.accuracy(beta) - sampled) > 0.1


def test_known_accuracies_on_the_cube():
    cube = MajorityCube(10, 3)
    assert cube.accuracy([1, 1, 1, *[0] * 7]) == 1
    assert cube.accuracy([1, *[0] * 9]) == pytest.approx(0.75)  # a vote is right in 6 of 8
    assert cube.accuracy([1, 1, *[0] * 8]) == pytest.approx(0.75)  # both agree, or one half
    assert cube.accuracy([0.1, 0.2, 0, 0.3, *[0] * 6]) == by_corners(
        np.array([1, 2, 0, 3, *[0] * 6]), 3
    )  # 0.1 + 0.2 - 0.3 is a tie, though not in floating point
    assert cube.accuracy(np.zeros(10)) == 0.5


@pytest.mark.parametrize("gamma", [0.0, 0.5, 8.0])
@pytest.mark.parametrize("cosine", [-0.6, 0.0, 0.05, 0.4, 0.99])
def test_accuracy_at_a_wide_margin_by_an_integral(gamma, cosine):
    population = WideMargin([3.0, 0.0, 0.0], gamma)
    sine = np.sqrt(1 - cosine**2)

    def right(g):
        return 2 * norm.pdf(g) * norm.cdf(cosine * (g + gamma / 2) / sine)

    expected = quad(right, 0, 30, epsabs=1e-13, limit=200)[0]
    found = population.accuracy([7 * cosine, 0.0, 7 * sine])
    assert found == pytest.approx(expected, abs=1e-10)
    if cosine * gamma:  # the control: no gap
        assert population.accuracy([1, 0, 1]) != WideMargin([1, 0, 0], 0).accuracy([1, 0, 1])


@pytest.mark.parametrize("gamma", [1.0, 4.0])
def test_accuracy_at_a_wide_margin_against_fresh_points(gamma):
    rng = np.random.default_rng(3)
    population = WideMargin(rng.standard_normal(20), gamma)
    beta = 0.6 * population.direction + rng.standard_normal(20) / np.sqrt(20)
    sampled, band = drawn(population, beta)
    assert population.accuracy(beta) == pytest.approx(sampled, abs=band)
    assert abs(WideMargin(population.direction, 0).accuracy(beta) - sampled) > 2 * band


def test_at_no_gap_the_accuracy_is_the_angle():
    population = WideMargin([1.0, 0.0], 0)
    for degrees in (0, 30, 90, 135, 180):
        beta = [np.cos(np.radians(degrees)), np.sin(np.radians(degrees))]
        assert population.accuracy(beta) == pytest.approx(1 - degrees / 180, abs=1e-12)


POPULATIONS = [MajorityCube(9, 3), MajorityCube(40, 5, 7), WideMargin(np.arange(1.0, 8.0), 1.5)]


@pytest.mark.parametrize("population", POPULATIONS, ids=str)
@calm
@given(seed=st.integers(0, 10**6), scale=st.floats(1e-100, 1e100))
def test_accuracy_has_no_scale_lies_in_bounds_and_mirrors(population, seed, scale):
    dimension = getattr(population, "dimension", None) or len(population.direction)
    beta = np.round(np.random.default_rng(seed).standard_normal(dimension), 3)
    found = population.accuracy(beta)
    assert 0 <= found <= 1
    assert population.accuracy(scale * beta) == pytest.approx(found, abs=1e-12)
    assert population.accuracy(-beta) == pytest.approx(1 - found, abs=1e-12)


@pytest.mark.parametrize(
    "task",
    [majority(30, 200, seed=4), wide_margin(10, 200, gamma=5.0, seed=4)],
    ids=["majority", "wide_margin"],
)
def test_the_truth_is_perfect(task):
    assert task.population.accuracy(task.truth) == 1
    assert task.population.accuracy(-task.truth) == 0
    assert (np.sign(task.X @ task.truth) == task.y).all()
    assert np.linalg.norm(task.truth) == pytest.approx(1)
    assert task.loss == "logistic"
    assert "\n" not in str(task.population)


def test_the_draws_have_the_promised_law():
    cube, wide = majority(2000, 50, seed=1), wide_margin(2000, 50, gamma=3.0, seed=1)
    assert set(np.unique(cube.X)) == {-1.0, 1.0}
    assert np.abs(cube.X.mean(axis=0)).max() < 4.5 / np.sqrt(2000)
    # a sign among three agrees with their majority in 3 of 4 cases
    assert (cube.X[:, :3] * cube.y[:, None]).mean(axis=0) == pytest.approx(0.5, abs=0.08)
    heights = wide.y * (wide.X @ wide.truth)
    assert heights.min() >= 1.5
    assert heights.mean() == pytest.approx(1.5 + np.sqrt(2 / np.pi), abs=0.06)
    across = wide.X - np.outer(wide.X @ wide.truth, wide.truth)
    assert (across**2).sum(axis=1).mean() == pytest.approx(49, rel=0.02)


def test_the_l1_margin_is_right_on_the_cube_and_the_l2_margin_at_a_wide_gap():
    for task, good, bad in [
        (majority(100, 400), L1(), L2()),
        (wide_margin(32, 2000, gamma=8), L2(), L1()),
    ]:
        best, other = (
            task.population.accuracy(max_margin(task.X, task.y, reg).beta) for reg in (good, bad)
        )
        assert best > 0.99
        assert other < 0.9


test_wrong_input_is_an_error = refusals(
    (lambda: MajorityCube(10, 2), "relevant must be odd, got 2"),
    (lambda: MajorityCube(3, 5), "relevant must be at most dimension=3, got 5"),
    (lambda: MajorityCube(30, 3, 21), "exact must be between relevant=3 and 20, got 21"),
    (lambda: MajorityCube(30, 17), "exact must be between relevant=17 and 20, got 15"),
    (lambda: MajorityCube(5).accuracy([1.0, 2.0]), r"one entry per feature \(5\), got 2"),
    (lambda: WideMargin([0.0, 0.0], 1), "direction must not be zero"),
    (lambda: WideMargin([1.0], -1), "gamma must be >= 0, got -1"),
    (lambda: WideMargin([1.0], 1).accuracy([np.inf]), "beta must be finite"),
    (lambda: majority(0, 5), "samples must be at least 1, got 0"),
    (lambda: majority(5, 9, loss="hinge"), "unknown loss 'hinge'"),
    (lambda: wide_margin(5, 9, gamma=np.nan), "gamma must be a finite number >= 0, got nan"),
)
