"""The central flow: its derivatives, its complementarity problem, and its end by other routes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

from general_solvers import loss_gradient
from penchant import (
    Classification,
    DiagonalNet,
    Factorization,
    GradientDescent,
    ParameterFlow,
    Regression,
    Steps,
    Time,
    train,
)
from penchant.methods import CentralFlow
from penchant.models import ProductNet, Reparametrized, SymmetricFactorization, two_layer
from penchant.problems import (
    gaussian_sensing,
    low_rank_completion,
    separable_points,
    sparse_regression,
)
from penchant.stop import Interpolated
from penchant.training.exact.central.bends import Curvature, growth
from penchant.training.exact.central.complementarity import complementary
from penchant.training.samples import SampleTask

VALUES = sparse_regression(6, 8, sparsity=2, seed=3)
LABELS = separable_points(6, 4, margin=0.3, seed=1)
PAIRS = {
    "depth 2": (DiagonalNet(2, alpha=0.5), VALUES),
    "depth 4": (DiagonalNet(4, alpha=0.8), VALUES),
    "product": (ProductNet(np.full(8, 0.3), np.full(8, 0.6)), VALUES),
    "own map": (Reparametrized(lambda u, v: u * v**2, start=(0.4, 0.7)), VALUES),
    "exp": (DiagonalNet(3, alpha=0.5), LABELS),
    "logistic": (DiagonalNet(3, alpha=0.5), Classification(LABELS.X, LABELS.y, loss="logistic")),
    "completion": (
        Factorization(3, alpha=0.5),
        low_rank_completion(samples=10, dimension=4, rank=1, seed=1),
    ),
    "sensing": (
        SymmetricFactorization(2, alpha=0.5),
        gaussian_sensing(samples=8, dimension=4, rank=1, seed=1),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_derivatives_are_those_of_differences(name):
    model, problem = PAIRS[name]
    task, rng, decay = SampleTask(model, problem), np.random.default_rng(0), 0.1
    w = task.start * (1 + 0.3 * rng.standard_normal(task.start.size))
    u, v = rng.standard_normal((2, w.size))
    slope, here = loss_gradient(model, problem), Curvature(task, w, decay)

    def gradient(z):
        return slope(z) + decay * z

    np.testing.assert_allclose(here.gradient, gradient(w), rtol=1e-10, atol=1e-12)
    h = 1e-5
    along = (gradient(w + h * u) - gradient(w - h * u)) / (2 * h)
    size = np.abs(along).max()
    np.testing.assert_allclose(here.times(u), along, atol=1e-7 * size)
    np.testing.assert_allclose(here.hessian() @ u, here.times(u), atol=1e-10 * size)
    twice = [Curvature(task, w + s * h * v, decay).times(u) for s in (1, -1)]
    turned = (twice[0] - twice[1]) / (2 * h)
    np.testing.assert_allclose(here.turned(u, v), turned, atol=1e-6 * np.abs(turned).max())
    np.testing.assert_allclose(here.turned(u, v), here.turned(v, u), atol=1e-6)


@pytest.mark.parametrize("name", ["depth 4", "product", "sensing"])
def test_growth_of_steps_is_the_function_of_the_matrix(name):
    model, problem = PAIRS[name]
    task = SampleTask(model, problem)
    here, row = Curvature(task, task.start), np.arange(1.0, task.start.size + 1)
    bend, step = here.bends.whole(here.first), 1e-3
    values, vectors = np.linalg.eigh(bend)
    direct = vectors @ (growth(step * values) * (vectors.T @ row))
    np.testing.assert_allclose(here.bends.stepped(here.first, step, row), direct, rtol=1e-9)
    assert not np.allclose(direct, row, rtol=1e-6)
    for z in (-1.2, 0.3, 0.8):  # a step multiplies by 1 - z, a flow of this rate too
        assert np.exp(-z * growth(np.array([z]))[0]) == pytest.approx(1 - z)


def problem_of(seed, size):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((size, size))
    rows = rng.standard_normal((size * size + 3, size, size))
    rows = rows + rows.transpose(0, 2, 1)
    return (A + A.T) / 2, np.einsum("nij,npq->ijpq", rows, rows)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_complementary_matrices_meet_all_three_conditions(seed, size):
    A, B = problem_of(seed, size)
    S = complementary(A, B)
    M = A + np.einsum("ijpq,pq->ij", B, S)
    assert np.linalg.eigvalsh(S)[0] >= -1e-12
    assert np.linalg.eigvalsh(M)[0] >= -1e-5
    assert abs(np.vdot(S, M)) <= 1e-5 * (1 + np.abs(S).max())


@pytest.mark.parametrize("seed", range(4))
def test_the_complementarity_problem_by_brute_force(seed):
    A, B = problem_of(seed, 2)

    def value(flat):  # S = L L^T, without any constraint
        L = np.array([[flat[0], 0.0], [flat[1], flat[2]]])
        S = L @ L.T
        return np.vdot(A, S) + np.einsum("ij,ijpq,pq->", S, B, S) / 2

    starts = np.random.default_rng(seed).standard_normal((6, 3))
    best = min((minimize(value, s, tol=1e-14) for s in starts), key=lambda end: end.fun)
    L = np.array([[best.x[0], 0.0], [best.x[1], best.x[2]]])
    np.testing.assert_allclose(complementary(A, B), L @ L.T, atol=1e-5)


def sparse(seed=0, alpha=0.03):
    problem = sparse_regression(15, 40, sparsity=3, seed=seed)
    return DiagonalNet(2, alpha=alpha), problem


def stable(net, problem):
    """The end of the flow and the largest stable learning rate there."""
    end = train(net, problem, ParameterFlow(rtol=1e-8))
    task = SampleTask(net, problem)
    largest = np.linalg.eigvalsh(Curvature(task, end.parameters).hessian())[-1]
    return end.predictor, 2 / largest


def distance(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def test_one_eigenvalue_at_the_bound_by_a_general_solver():
    """The published flow, projected on the surface where the largest eigenvalue is 2/rate."""
    net, problem = sparse()
    rate = 1.1 * stable(net, problem)[1]
    X, y, d = problem.X, problem.y, 40
    both, signs = np.hstack([X, X]), np.repeat([2.0, -2.0], d)

    def pieces(w):
        slopes, r = signs * w, X @ (w[:d] ** 2 - w[d:] ** 2) - y
        hessian = 2 * np.outer(slopes, slopes) * (both.T @ both)
        hessian += np.diag(2 * signs * (r @ both))
        values, vectors = np.linalg.eigh(hessian)
        u = vectors[:, -1]
        Ju, bent = both @ (slopes * u), both @ (signs * u * u)
        turn = 2 * slopes * (bent @ both) + 4 * signs * u * (Ju @ both)
        return 2 * slopes * (r @ both), values[-1], turn

    def velocity(_, w):
        gradient, largest, turn = pieces(w)
        gap = 2 / rate - largest
        # what is left of the gap closes at a rate of its own, faster than anything else
        share = max(-(turn @ gradient) - 200 * gap, 0.0) / (turn @ turn)
        return -gradient - share * turn

    start = net.start(d)
    other = solve_ivp(velocity, (0, 12), start, "LSODA", rtol=1e-5, atol=1e-8)
    w = other.y[:, -1]
    own = train(net, problem, CentralFlow(rate, finite_steps=False, rtol=1e-6), stop=Time(12.0))
    assert distance(own.predictor, w[:d] ** 2 - w[d:] ** 2) < 2e-3
    assert float(own.dataset.sharpness[-1]) == pytest.approx(1.0, abs=1e-3)
    assert distance(stable(net, problem)[0], own.predictor) > 0.2


def test_tiny_rates_are_gradient_flow():
    net, problem = sparse()
    end, rate = stable(net, problem)
    path = train(net, problem, CentralFlow(1e-6 * rate, rtol=1e-8), stop=Interpolated(1e-12))
    assert distance(path.predictor, end) < 1e-4
    assert not path.dataset.oscillation.values.any()


@pytest.mark.parametrize(
    ("net", "share", "flow_misses"),
    [
        (DiagonalNet(2, alpha=0.1), 0.5, 0.03),
        (DiagonalNet(2, alpha=0.03), 1.1, 0.3),
        (DiagonalNet(2, alpha=0.03), 1.3, 0.7),
        (DiagonalNet(3, alpha=0.3), 1.2, 0.2),
        (ProductNet(np.full(40, 0.3), np.full(40, 0.1)), 1.2, 0.2),
    ],
)
def test_steps_of_descent_end_where_it_ends(net, share, flow_misses):
    problem = sparse_regression(15, 40, sparsity=3, seed=1 if net.homogeneity == 3 else 0)
    if isinstance(net, ProductNet):
        problem = sparse_regression(15, 40, sparsity=3, seed=1)
    end, rate = stable(net, problem)
    steps = GradientDescent(share * rate, check=False)
    descent = train(net, problem, steps, stop=[Steps(30_000), Interpolated(1e-12)])
    central = train(net, problem, CentralFlow(share * rate), stop=Interpolated(1e-12))
    assert descent.outcome.ok
    assert central.outcome.ok
    far = distance(end, descent.predictor)
    assert far > flow_misses
    assert distance(central.predictor, descent.predictor) < min(0.025, 0.3 * far)


def test_a_factorization_oscillates_where_its_record_says():
    model = Factorization(4, alpha=0.1, seed=1)
    problem = low_rank_completion(samples=30, dimension=8, rank=1, seed=1)
    _, rate = stable(model, problem)
    steps = GradientDescent(1.2 * rate, check=False)
    descent = train(model, problem, steps, stop=[Steps(30_000), Interpolated(1e-8)])
    central = train(model, problem, CentralFlow(1.2 * rate), stop=Interpolated(1e-8))
    apart = central.predictor - descent.predictor
    assert np.linalg.norm(apart) < 0.05 * np.linalg.norm(descent.predictor)
    oscillation = central.dataset.oscillation
    assert oscillation.dims == ("time", "parameter")
    assert (oscillation.values >= 0).all()
    assert oscillation.values.max() > 1e-3
    assert float(oscillation.isel(time=-1).max()) < 0.1 * oscillation.values.max()


def test_half_squares_take_twice_the_rate():
    net, problem = sparse()
    rate = 1.1 * stable(net, problem)[1]
    half = Regression(problem.X, problem.y, loss="half squares")
    paths = [
        train(net, p, CentralFlow(r), stop=Time(t))
        for p, r, t in ((problem, rate, 20.0), (half, 2 * rate, 40.0))
    ]
    np.testing.assert_allclose(*(path.predictor for path in paths), rtol=1e-10)
    np.testing.assert_allclose(*(path.dataset.sharpness[-1] for path in paths), rtol=1e-10)


@pytest.mark.parametrize("loss", ["exp", "logistic"])
def test_labels(loss):
    problem = Classification(LABELS.X, LABELS.y, loss=loss)
    net, rate = DiagonalNet(2, alpha=1.0), 0.1
    goal = Interpolated(1e-3)
    descent = train(net, problem, GradientDescent(rate), stop=[Steps(100_000), goal])
    central = train(net, problem, CentralFlow(rate), stop=goal)
    flow = train(net, problem, ParameterFlow(), stop=goal)
    assert central.log_loss == pytest.approx(descent.log_loss, abs=0.01)
    far = distance(flow.predictor, descent.predictor)
    assert distance(central.predictor, descent.predictor) < max(0.5 * far, 2e-3)


def test_decay_is_part_of_every_step():
    net, problem = sparse()
    rate = 1.1 * stable(net, problem)[1]
    steps = GradientDescent(rate, weight_decay=0.05, check=False)
    count = 1500
    descent = train(net, problem, steps, stop=Steps(count))
    flow = CentralFlow(rate, weight_decay=0.05)
    central = train(net, problem, flow, stop=Time(count * rate))
    smooth = train(net, problem, ParameterFlow(weight_decay=0.05), stop=Time(count * rate))
    far = distance(smooth.predictor, descent.predictor)
    assert far > 0.2
    assert distance(central.predictor, descent.predictor) < 0.3 * far


def test_rates_that_no_average_follows():
    net, problem = sparse(alpha=1.0)
    with pytest.raises(ValueError, match="CentralFlow: learning_rate must be below 2 over"):
        train(net, problem, CentralFlow(1.0))
    with pytest.raises(ValueError, match="needs a model whose Hessian is explicit"):
        train(two_layer(3, alpha=0.5), problem, CentralFlow(1e-3))
    with pytest.raises(ValueError, match="learning_rate must be"):
        CentralFlow(0.0)
    with pytest.raises(ValueError, match="beyond float64"):
        train(DiagonalNet(2, alpha=1e120), problem, CentralFlow(1e-3))


def test_where_nothing_oscillates_the_end_is_right_to_third_order():
    """Below the stable rate; the published flow is right to first order there."""
    problem, net = sparse_regression(15, 40, sparsity=3, seed=0), DiagonalNet(2, alpha=0.1)
    fitted, powers = Interpolated(1e-12), {}
    for finite in (True, False):
        far = []
        for rate in (0.011, 0.022):
            method = CentralFlow(rate, finite_steps=finite, rtol=1e-8)
            central = train(net, problem, method, stop=fitted)
            descent = train(net, problem, GradientDescent(rate), stop=[Steps(20_000), fitted])
            far.append(np.linalg.norm(central.predictor - descent.predictor))
        powers[finite] = np.log2(far[1] / far[0])
    assert powers[True] > 2.5
    assert 0.7 < powers[False] < 1.3
