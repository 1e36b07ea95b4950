"""Univariate nets and their hinges: against W's model, JAX, Monte Carlo and general routes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.interpolate import CubicSpline

from penchant import GradientDescent, Regression, Steps, train
from penchant.measures import kernel_machine, mean_kernel
from penchant.models import Difference, two_layer, univariate_relu
from penchant.problems import plateau, zigzag
from penchant.record import LogSpaced
from penchant.solvers import cubic_spline, least_weights, linear_spline
from penchant.stop import Interpolated
from penchant_papers.woodworth2020.figures.hinges import (
    Layers,
    kernel_move,
    layers,
    net_hinges,
    rms_distance,
    sup_distance,
    tangent_hinges,
)
from penchant_papers.woodworth2020.figures.spline_nets import (
    learn,
)
from refusals import refusals

X = np.linspace(-1.3, 1.4, 27)


def drawn(seed, units):
    w, v, b = np.random.default_rng(seed).standard_normal((3, units))
    return Layers(w, v, b, 0.3)


def plain(net, x):
    return np.maximum(np.outer(x, net.w) + net.b, 0) @ net.v + net.c


def test_the_net_is_the_difference_of_two_nets_with_biases():
    model, twin = univariate_relu(7, alpha=0.8), Difference(two_layer(7, alpha=1.0, bias=True))
    parameters = np.random.default_rng(1).standard_normal(2 * (3 * 7 + 1))
    expected = twin.predict(parameters, X[:, None])
    np.testing.assert_allclose(model.predict(parameters, X[:, None]), expected, atol=1e-12)
    np.testing.assert_allclose(plain(layers(parameters), X), expected, atol=1e-12)


def test_the_start_is_the_printed_one():
    width, alpha, c = 40_000, 0.3, 0.5
    start = univariate_relu(width, alpha=alpha, scaling=c, seed=3).start(1)
    w, v, b, offset = layers(start)
    assert offset == 0
    np.testing.assert_array_equal(v[:width], -v[width:])
    np.testing.assert_array_equal(w[:width], w[width:])
    spreads = [w.std() / (alpha * c), b.std() / (alpha * c), v.std() * c / alpha]
    np.testing.assert_allclose(spreads, [1, 1, np.sqrt(2 / width)], rtol=0.02)


def test_scalings_leave_each_copy_and_zero_the_sum():
    one, other = (univariate_relu(9, alpha=2.0, scaling=c, seed=1).start(1) for c in (1.0, 0.1))
    half = len(one) // 2

    def copy(start):
        w, v, b = start[: half - 1].reshape(3, -1)
        return np.maximum(np.outer(X, w) + b, 0) @ v

    np.testing.assert_allclose(copy(one), copy(other), atol=1e-12)
    assert np.abs(copy(one)).max() > 0.1
    assert not univariate_relu(9, alpha=2.0, scaling=0.1, seed=1).predict(other, X[:, None]).any()


test_wrong_arguments_are_refused = refusals(
    (
        lambda: univariate_relu(3, alpha=1.0).start(2),
        "univariate_relu: .*one feature, got 2; use tw",
    ),
    (lambda: univariate_relu(3, alpha=1.0, scaling=-1.0), "univariate_relu: scaling"),
    (lambda: univariate_relu(0, alpha=1.0), "univariate_relu: width"),
)


@pytest.mark.parametrize("c", [1.0, 0.1])
def test_the_mean_kernel_within_monte_carlo_error_of_width_10000(c):
    width, alpha, x = 10_000, 0.7, zigzag().X[:, 0]
    model = univariate_relu(width, alpha=alpha, scaling=c, seed=5)
    w, v, b = (part[:width] for part in layers(model.start(1))[:3])
    z = np.outer(x, w) + b
    active, gated = np.maximum(z, 0), (z > 0) * v
    terms = active[:, None] * active + gated[:, None] * gated * (1 + np.outer(x, x))[..., None]
    found, error = 2 * terms.sum(axis=-1) + 2, 2 * terms.std(axis=-1) * np.sqrt(width)
    misses = (found - mean_kernel(x, x, width, alpha=alpha, scaling=c)) / error
    assert np.abs(misses).max() < 4
    # that of another scaling is far outside
    assert (
        np.abs((found - mean_kernel(x, x, width, alpha=alpha, scaling=1.5 * c)) / error).max() > 10
    )
    rows = model.jacobian(model.start(1), x[:, None])
    np.testing.assert_allclose(rows @ rows.T, found, rtol=1e-9)


@pytest.mark.parametrize("c", [1.0, 0.2])
def test_the_kernel_move_is_that_of_the_general_interpolant(c):
    problem = zigzag()
    model = univariate_relu(60, alpha=1.5, scaling=c, seed=2)
    machine = kernel_machine(model, problem)
    net = layers(model.start(1))
    mine, theirs = kernel_move(net, problem.X[:, 0], problem.y), layers(machine.displacement)
    for ours, general in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(ours, general, rtol=1e-6, atol=1e-9)
    function = tangent_hinges(net, mine)
    np.testing.assert_allclose(function(X), machine.predict(X[:, None]), atol=1e-8)
    np.testing.assert_allclose(function(problem.X[:, 0]), problem.y, atol=1e-9)


@given(seed=st.integers(0, 10**6), units=st.integers(1, 30))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_hinges_are_the_net_itself(seed, units):
    net = drawn(seed, units)
    net.w[0] = 0.0  # a unit that is on or off everywhere
    np.testing.assert_allclose(net_hinges(net)(X), plain(net, X), atol=1e-10)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_distances_against_quadrature_and_a_fine_grid(seed):
    f, g = net_hinges(drawn(seed, 4)), net_hinges(drawn(seed + 1, 3))
    breaks = np.union1d(f.breaks(-1, 2), g.breaks(-1, 2))
    square = quad(lambda x: (f(np.array([x])) - g(np.array([x])))[0] ** 2, -1, 2,
                  points=breaks[1:-1], limit=200)[0]  # fmt: skip
    np.testing.assert_allclose(rms_distance(f, g, breaks), np.sqrt(square / 3), rtol=1e-8)
    fine = np.linspace(-1, 2, 30_001)
    sup, seen = sup_distance(f, g, breaks), np.abs(f(fine) - g(fine)).max()
    assert seen <= sup * (1 + 1e-12)
    np.testing.assert_allclose(sup, seen, rtol=1e-2)


def test_the_splines():
    problem = zigzag()
    x, y = problem.X[:, 0], problem.y
    shuffled = Regression(problem.X[::-1], y[::-1])
    for spline in (linear_spline, cubic_spline):
        np.testing.assert_allclose(spline(shuffled)(X), spline(problem)(X))
        np.testing.assert_allclose(spline(problem)(x), y)
    middles = (x[1:] + x[:-1]) / 2
    np.testing.assert_allclose(linear_spline(problem)(middles), (y[1:] + y[:-1]) / 2)
    expected = CubicSpline(x, y, bc_type=((2, 0.0), (2, 0.0)))(middles)
    np.testing.assert_allclose(cubic_spline(problem)(middles), expected)


def test_least_norms_by_hand():
    data, grid = plateau(), np.union1d(np.linspace(-2, 2, 401), [-0.4, 0.4])
    bend = 5 / 3  # slopes 5/3, 0, -5/3; the tent bends once, by 10/3 at 0
    np.testing.assert_allclose(least_weights(data, data.X[:, 0]), 2 * bend * np.sqrt(1.16))
    np.testing.assert_allclose(least_weights(data, grid), 2 * bend)
    zig = zigzag()
    every = np.union1d(grid, zig.X[:, 0])
    np.testing.assert_allclose(least_weights(zig, every), least_weights(zig, zig.X[:, 0]))


def descended(problem, width, alpha, c, step):
    """The function at the end of small steps from the same start."""
    model = univariate_relu(width, alpha=alpha, scaling=c, seed=1)
    stop = [Steps(60_000), Interpolated(1e-8)]
    path = train(model, problem, GradientDescent(step), stop=stop, record=LogSpaced(1))
    assert path.outcome.ok
    return net_hinges(layers(path.parameters))


def test_learning_against_gradient_descent():
    problem, points = zigzag(), np.linspace(-1, 1, 201)
    descent = descended(problem, 40, 3.0, 0.5, 5e-4)(points)
    run, other = (learn(problem, 40, 3.0, 0.5, seed, rtol=0.01).function for seed in (1, 2))
    assert np.abs(descent - run(points)).max() < 1e-3
    assert np.abs(descent - other(points)).max() > 0.1


def test_descent_leaves_the_linear_spline_of_a_plateau_too():
    problem, points = plateau(), np.linspace(-1, 1, 201)
    descent = descended(problem, 40, 0.1, 0.5, 2e-3)(points)
    run = learn(problem, 40, 0.1, 0.5, seed=1, rtol=0.01)
    assert np.abs(descent - run.function(points)).max() < 2e-3
    assert np.abs(descent - linear_spline(problem)(points)).max() > 0.3
    assert run.norm < least_weights(problem, problem.X[:, 0])


def test_the_distance_to_the_kernel_and_its_kinks():
    near, far = (learn(zigzag(), 200, alpha, 0.3, rtol=0.01) for alpha in (400.0, 100.0))
    np.testing.assert_allclose(near.to_kernel, near.kink_distance, rtol=0.02)
    np.testing.assert_allclose(far.to_kernel / near.to_kernel, 4, rtol=0.05)

    def largest(run):
        """Just beside the jumps of the interpolant."""
        knots = run.interpolant.breaks(-1, 1)[1:-1]
        beside = np.concatenate([knots - 1e-12, knots + 1e-12])
        return np.abs(run.function(beside) - run.interpolant(beside)).max()

    # the interpolant jumps by a fixed amount at its knots, and the net is continuous
    np.testing.assert_allclose(largest(near), largest(far), rtol=0.05)
    assert largest(near) > 20 * near.to_kernel
