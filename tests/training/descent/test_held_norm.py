"""Descent at a held norm: projections, closed forms and general solvers against it."""

import itertools
import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import L1, Classification, Regression, Steps, train
from penchant.lab import Kind, double_precision
from penchant.methods import HeldNorm, held_sweep
from penchant.models import LinearMatrix, LinearPredictor, rescale_layers, two_layer
from penchant.problems import Completion, opposed_units, sparse_recovery
from penchant.problems.teacher import answers
from penchant.record import At
from penchant.solvers import error_floor, held_best, held_ridge
from penchant.stop import Below
from penchant.training.descent.held_norm import onto_l1_ball, onto_l1_sphere, onto_l2_sphere
from refusals import refusals

modest = settings(max_examples=30, deadline=None, derandomize=True)
numbers = st.floats(-10, 10).filter(lambda x: x == 0 or abs(x) > 1e-3)
points = st.sampled_from([1, 2, 6]).flatmap(  # few lengths: each is compiled once
    lambda count: st.lists(numbers, min_size=count, max_size=count).map(np.array)
)
sizes = st.floats(0.01, 30)
SPARSE = sparse_recovery(10, 20, sparsity=2, seed=0)


def drawn(samples, features, seed):
    rng = np.random.default_rng(seed)
    return Regression(rng.standard_normal((samples, features)), rng.standard_normal(samples))


# --- projections


def projected(onto, point, size):
    with double_precision():
        return np.asarray(jax.jit(onto)(point, size))


def shrunk(point, size):
    """Onto the l1 ball by bisection on the threshold, without sorting."""
    low, high = 0.0, float(np.abs(point).max())
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(np.abs(point) - middle, 0).sum() > size:
            low = middle
        else:
            high = middle
    return np.sign(point) * np.maximum(np.abs(point) - high, 0)


@modest
@given(points, sizes)
def test_the_l1_ball_projection_agrees_with_bisection(point, size):
    found = projected(onto_l1_ball, point, size)
    if np.abs(point).sum() <= size:
        np.testing.assert_array_equal(found, point)
    else:
        np.testing.assert_allclose(found, shrunk(point, size), atol=1e-11)


def test_the_l1_ball_projection_agrees_with_a_general_solver():
    import cvxpy

    rng = np.random.default_rng(0)
    for size in (0.3, 2.0, 50.0):
        point = rng.normal(size=8)
        a = cvxpy.Variable(8)
        cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(a - point)),
                      [cvxpy.norm1(a) <= size]).solve(solver="CLARABEL")  # fmt: skip
        found = projected(onto_l1_ball, point, size)
        np.testing.assert_allclose(found, a.value, atol=1e-6)


def nearest_by_faces(point, size):
    """The least distance to the l1 sphere: over all sign patterns, over all sets of free entries.

    On a face the nearest point with given zeros moves the other entries by equal amounts.
    """
    best = math.inf
    for signs in itertools.product((-1.0, 1.0), repeat=len(point)):
        turned = point * signs
        for free in itertools.product((False, True), repeat=len(point)):
            free_entries = np.array(free)
            if not free_entries.any():
                continue
            on = np.where(
                free_entries, turned + (size - turned[free_entries].sum()) / free_entries.sum(), 0.0
            )
            if (on >= 0).all():
                best = min(best, float(np.linalg.norm(on - turned)))
    return best


@modest
@given(st.lists(numbers, min_size=3, max_size=3).map(np.array), sizes)
def test_the_l1_sphere_projection_is_nearest(point, size):
    found = projected(onto_l1_sphere, point, size)
    assert np.abs(found).sum() == pytest.approx(size, rel=1e-12)
    distance = float(np.linalg.norm(found - point))
    assert distance == pytest.approx(nearest_by_faces(point, size), rel=1e-9, abs=1e-12)


@modest
@given(points.filter(lambda p: p.any()), sizes, st.integers(0, 100))
def test_no_point_of_the_sphere_is_nearer(point, size, seed):
    found = projected(onto_l2_sphere, point, size)
    assert np.linalg.norm(found) == pytest.approx(size, rel=1e-12)
    others = np.random.default_rng(seed).normal(size=(50, len(point)))
    others *= size / np.linalg.norm(others, axis=1)[:, None]
    assert np.linalg.norm(found - point) <= np.linalg.norm(others - point, axis=1).min() + 1e-12


# --- linear predictors: closed form, general solvers


@modest
@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 1000), st.floats(0.2, 0.9))
def test_held_ridge_is_the_minimiser_in_the_ball(samples, features, seed, share):
    """It meets the conditions of the convex problem |a| <= size, which decide it."""
    problem = drawn(samples, features, seed)
    shortest = np.linalg.pinv(problem.X) @ problem.y
    size = share * float(np.linalg.norm(shortest))
    a = held_ridge(problem.X, problem.y, size)
    assert np.linalg.norm(a) == pytest.approx(size, rel=1e-9)
    pull = problem.X.T @ (problem.y - problem.X @ a)
    mu = float(pull @ a) / size**2
    assert mu > 0
    np.testing.assert_allclose(pull, mu * a, rtol=1e-7, atol=1e-9 * np.linalg.norm(pull))


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.integers(0, 1000), st.sampled_from([0.3, 0.7, 1.5, 4.0]))
def test_descent_held_in_l2_ends_at_the_closed_form(seed, share):
    problem = drawn(5, 9, seed)
    start = np.random.default_rng(seed + 1).normal(size=9)
    size = share * float(np.linalg.norm(np.linalg.pinv(problem.X) @ problem.y))
    sweep = held_sweep(LinearPredictor(), problem, [size], steps=20_000, start=start)
    end = held_ridge(problem.X, problem.y, size, start)
    np.testing.assert_allclose(sweep.parameters[0], end, atol=2e-5 * size)
    wrong = held_ridge(problem.X, problem.y, 1.01 * size, start)
    assert np.abs(sweep.parameters[0] - wrong).max() > 1e-4 * size


def test_descent_held_in_l1_ends_where_a_general_solver_does():
    import cvxpy

    problem = sparse_recovery(30, 100, sparsity=5, seed=4, snr=math.inf)
    own = np.abs(problem.truth).sum()
    shares = np.array([0.3, 0.8, 1.0])
    start = np.random.default_rng(0).normal(size=100)
    sweep = held_sweep(LinearPredictor(start), problem, own * shares, "l1", steps=3000)
    assert sweep.ok
    for share, end in zip(shares[:-1], sweep.parameters, strict=False):
        a = cvxpy.Variable(100)  # in units of |a*|_1, which suits the solver's tolerances
        gap = cvxpy.sum_squares(problem.X @ a - problem.y / own)
        cvxpy.Problem(cvxpy.Minimize(gap), [cvxpy.norm1(a) <= share]).solve(solver="CLARABEL")
        np.testing.assert_allclose(end / own, a.value, atol=1e-4)
    np.testing.assert_allclose(sweep.parameters[-1], problem.truth, atol=1e-5 * own)
    assert np.linalg.norm(sweep.parameters[0] - problem.truth) > 0.1 * own


def test_the_best_held_norm_is_that_of_a_fine_scan():
    problem = sparse_recovery(12, 30, sparsity=3, seed=2, snr=math.inf)
    for seed in (0, 1, 2, 3):  # with the start's unseen part along the truth's and against it
        start = np.random.default_rng(seed).normal(size=30)
        size, error = held_best(problem.X, problem.truth, start)
        scan = size * np.linspace(0.8, 1.2, 401)
        gaps = [problem.population_error(held_ridge(problem.X, problem.y, w, start)) for w in scan]
        assert min(gaps) == pytest.approx(error, rel=1e-4)
        assert scan[int(np.argmin(gaps))] == pytest.approx(size, rel=2e-3)
        assert error <= error_floor(problem.X, problem.truth) * (1 + 1e-12)


# --- the flow


def test_the_norm_is_held_and_the_loss_never_rises():
    case, model = opposed_units(30, 5, seed=1, test=10), two_layer(8, alpha=1.0)
    for norm, size in (("l2", 3.0), ("l1", 9.0)):
        method = HeldNorm(1e6, size=size, norm=norm)
        path = train(model, case.training, method, stop=Steps(60), record=At(range(61)))
        norms = np.linalg.norm(path.dataset.parameters, 1 if norm == "l1" else 2, axis=1)
        np.testing.assert_allclose(norms, size, rtol=1e-12)
        loss = path.dataset.loss.values
        assert (np.diff(loss) <= 1e-12 * loss[0]).all()
        assert loss[-1] < 0.9 * loss[0]
        outputs = model.predict(path.parameters, case.training.X)
        assert np.sum((outputs - case.training.y) ** 2) / 2 == pytest.approx(loss[-1])


def test_a_sweep_is_the_single_runs():
    case, model = opposed_units(30, 5, seed=1, test=10), two_layer(8, alpha=1.0)
    norms = np.array([0.5, 2.0, 5.0])
    sweep = held_sweep(model, case.training, norms, learning_rate=0.01, steps=150)
    scale = np.sum(case.training.y**2) / 2
    assert case.training.loss == "half squares"
    for k, size in enumerate(norms):
        path = train(model, case.training, HeldNorm(0.01, size=size), stop=Steps(150))
        np.testing.assert_allclose(sweep.parameters[k], path.parameters, rtol=1e-7, atol=1e-9)
        assert sweep.loss[k] == pytest.approx(math.exp(path.log_loss) / scale, rel=1e-7)
    assert np.abs(sweep.parameters[0] - sweep.parameters[1]).max() > 0.01


def test_a_path_says_what_it_is():
    method = HeldNorm(size=0.3, norm="l1")
    stop = [Steps(500), Below("test_error", 1e-30)]
    path = train(LinearPredictor(1.0), SPARSE, method, stop=stop)
    assert path.outcome.kind is Kind.BUDGET_SPENT
    assert path.method == method
    np.testing.assert_array_equal(path.dataset.t, path.dataset.step)
    assert path.dataset.norm_l1.values == pytest.approx(0.3)
    assert "HeldNorm" in str(method)


def test_matrix_entries_are_held_like_their_design():
    rng = np.random.default_rng(3)
    truth = np.outer(rng.normal(size=4), rng.normal(size=4))
    entries = np.argwhere(rng.random((4, 4)) < 0.6)
    problem = Completion((4, 4), entries, truth[tuple(entries.T)])
    start = rng.normal(size=(4, 4))
    for size in (0.5, 6.0):
        path = train(LinearMatrix(start=start), problem, HeldNorm(size=size), stop=Steps(20_000))
        end = held_ridge(problem.design, problem.y, size, start.ravel())
        np.testing.assert_allclose(path.parameters, end, atol=1e-6)


@pytest.mark.parametrize("loss", ["exp", "logistic"])
def test_a_classifier_at_a_held_norm_has_the_best_direction(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    y = np.where(X @ [1.0, 0.5] + 0.5 * rng.normal(size=12) > 0, 1.0, -1.0)
    problem = Classification(X, y, loss)
    sweep = held_sweep(LinearPredictor(1.0), problem, [2.0], steps=3000)
    angles = np.linspace(0, 2 * np.pi, 100_001)
    margins = 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1) @ problem.signed_rows.T
    losses = np.exp(-margins) if loss == "exp" else np.logaddexp(0, -margins)
    best = angles[int(np.argmin(losses.mean(axis=1)))]
    end = sweep.parameters[0]
    assert end == pytest.approx(2 * np.array([np.cos(best), np.sin(best)]), abs=1e-3)
    assert sweep.loss[0] == pytest.approx(losses.mean(axis=1).min(), rel=1e-6)


def test_unfinished_sizes_say_so():
    short = held_sweep(LinearPredictor(1.0), SPARSE, [0.05, 5.0], steps=4)
    assert not short.ok
    assert any(outcome.kind is Kind.BUDGET_SPENT for outcome in short.outcomes)
    assert "raise steps" in next(o.sentence for o in short.outcomes if not o.ok)
    assert held_sweep(LinearPredictor(1.0), SPARSE, [0.05, 5.0], steps=3000).ok
    for name, variable in short.dataset.variables.items():
        assert variable.attrs["long_name"], name
    np.testing.assert_array_equal(short.dataset["size"], [0.05, 5.0])


def test_labels_that_are_all_zero_have_no_scale():
    sweep = held_sweep(LinearPredictor(1.0), Regression(np.eye(2)[:1], [0.0]), [1.0], steps=500)
    assert sweep.parameters[0] == pytest.approx([0.0, 1.0], abs=1e-6)
    assert np.isfinite(sweep.loss).all()


# --- rescaling and the teacher


@modest
@given(st.integers(0, 100), st.floats(1.01, 20))
def test_rescaled_layers_compute_the_same(seed, factor):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=24)  # 6 units of 3 inputs
    a, b = np.sum(theta[:18] ** 2), np.sum(theta[18:] ** 2)
    least = math.sqrt(2 * math.sqrt(a * b))
    moved = rescale_layers(theta, 18, factor * least)
    assert np.linalg.norm(moved) == pytest.approx(factor * least, rel=1e-12)
    X = rng.normal(size=(9, 3))

    def outputs(w):
        return np.maximum(X @ w[:18].reshape(6, 3).T, 0) @ w[18:]

    np.testing.assert_allclose(outputs(moved), outputs(theta), rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="must be at least"):
        rescale_layers(theta, 18, 0.99 * least)


def test_the_opposed_units_are_what_they_say():
    case = opposed_units(50, 6, seed=3, noise=0.1, test=20_000)
    p, q = case.directions
    assert np.allclose(case.directions @ case.directions.T, np.eye(2))
    x = case.test.X[7]
    assert case.test.y[7] == pytest.approx(max(p @ x, 0) - max(q @ x, 0))
    assert case.test.y.mean() == pytest.approx(0, abs=0.02)
    # E relu(z)^2 = 1/2 and E relu(z) relu(z') = 1/(2 pi) for independent z, z'
    assert case.test.y.var() == pytest.approx(1 - 1 / math.pi, rel=0.03)
    residual = case.training.y - answers(case.directions, case.training.X)
    assert residual.std() == pytest.approx(case.training.noise, rel=0.3)
    theta = np.concatenate([p, q, [1.0, -1.0]])
    assert np.linalg.norm(theta) == pytest.approx(case.least_norm())
    wide = rescale_layers(theta, 12, case.least_norm(3.0))
    assert wide[-1] == pytest.approx(-1 / 3)
    assert case.least_norm(3.0) > case.least_norm()


# --- wrong input


def train_held(problem, model=None, **more):
    model = model or LinearPredictor(1.0)
    return train(model, problem, HeldNorm(), **{"stop": Steps(1), **more})


test_wrong_input_is_refused = refusals(
    (lambda: HeldNorm(size=-1.0), "size must be > 0"),
    (lambda: HeldNorm(norm="l3"), "unknown norm"),
    (lambda: HeldNorm(weight_decay=0.1), "has no weight decay"),
    (
        lambda: train_held(SPARSE, stop=[Steps(1), Below("margin", 1)]),
        "margin, which is not recorded",
    ),
    (lambda: train_held(SPARSE, penalty=0.1 * L1()), "takes no penalty"),
    (lambda: train_held(SPARSE, batch=2), "works on all samples at once"),
    (lambda: train_held(SPARSE, LinearPredictor()), "start must not be zero"),
    (lambda: held_sweep(LinearPredictor(1.0), SPARSE, [1.0, 0.0]), "sizes must be > 0"),
    (lambda: held_sweep(LinearPredictor(1.0), SPARSE, [1.0], "max"), "unknown norm"),
    (lambda: held_sweep(LinearPredictor(1.0), SPARSE, [1.0], start=[1.0]), "20 parameters"),
    (lambda: held_sweep(LinearPredictor(1.0), SPARSE, [1.0], start=1.0), "20 parameters"),
    (lambda: held_sweep(LinearPredictor(1.0), SPARSE.X, [1.0]), "the problem must be"),
    (lambda: held_ridge(SPARSE.X, SPARSE.y, 100.0), "depends on the start"),
    (lambda: held_ridge(SPARSE.X, SPARSE.y, 100.0, np.ones(3)), "20 entries"),
    (lambda: held_ridge(SPARSE.X, SPARSE.y, 100.0, SPARSE.X[0]), "no part in the null space"),
    (lambda: rescale_layers(np.ones(3), 3, 9.0), "inner must be below"),
    (lambda: opposed_units(5, 1), "dimension must be at least 2"),
    (lambda: opposed_units(5, noise=-1.0), "noise must be >= 0"),
)
