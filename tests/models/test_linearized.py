"""The linearized twin: derivatives against JAX, no cancellation, and what its flows must be."""

from fractions import Fraction

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from penchant import (
    L2,
    DiagonalNet,
    DualFlow,
    GradientDescent,
    ParameterFlow,
    Steps,
    Time,
    interpolate,
    train,
)
from penchant.description import describe
from penchant.lab import double_precision
from penchant.methods import NormalizedDescent
from penchant.models import ProductNet, Reparametrized, linearize
from penchant.problems import sparse_regression, three_points
from penchant.stop import Interpolated, LogLoss
from refusals import refusals

D = 5
SHAPE = np.random.default_rng(0).uniform(0.5, 2, D) * np.array([1, -1, 1, 1, -1])
MODELS = {
    "depth 3": DiagonalNet(3, alpha=0.7, shape=SHAPE),
    "unsigned biased": DiagonalNet(4, start=SHAPE, signed=False),
    "product": ProductNet(SHAPE, SHAPE[::-1]),
    "reparametrized": Reparametrized(lambda u, v: u * v**2, (SHAPE, SHAPE[::-1])),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


def somewhere(model, size=0.3):
    start = model.start(D)
    return start, size * np.random.default_rng(1).standard_normal(start.shape)


def test_it_is_the_first_order_expansion(model):
    twin, (start, move) = linearize(model), somewhere(model)
    with double_precision():
        expand = jax.jit(lambda at, along: jax.jvp(model.predictor, (at,), (along,)))
        parts = expand(start, move)
        expected = sum(np.asarray(part) for part in parts)
    np.testing.assert_allclose(twin.predictor(start + move), expected, rtol=1e-12, atol=1e-13)
    assert (twin.start(D) == start).all()
    assert np.abs(model.predictor(start + move) - expected).max() > 1e-3


def test_slopes_are_constant_and_nothing_bends(model):
    twin, (start, move) = linearize(model), somewhere(model)
    np.testing.assert_array_equal(twin.slopes(start + move), model.slopes(start))
    assert not twin.bends(start + move).any()
    assert twin.homogeneity is None
    assert np.abs(model.slopes(start + move) - model.slopes(start)).max() > 1e-3


def test_change_does_not_cancel_far_from_zero():
    start = 1e6 * SHAPE
    twin = linearize(DiagonalNet(3, start=start, signed=False))
    move = 2.0**-10 * np.abs(SHAPE)
    exact = [float(3 * Fraction(a) ** 2 * Fraction(b)) for a, b in zip(start, move, strict=True)]
    np.testing.assert_allclose(twin.change(start, move), exact, rtol=1e-13)
    plain = twin.predictor(start + move) - twin.predictor(start)
    assert np.abs(plain / exact - 1).max() > 1e-12


@pytest.mark.parametrize(
    ("flow", "stop"), [(ParameterFlow(), None), (GradientDescent(0.005), Steps(30_000))]
)
def test_on_regression_it_ends_at_the_least_move_in_its_slopes(flow, stop):
    problem = sparse_regression(samples=3, dimension=D, sparsity=2, seed=0)
    path = train(linearize(DiagonalNet(2, alpha=0.5)), problem, flow, stop=stop)
    least = interpolate(problem.X, problem.y, L2()).beta
    np.testing.assert_allclose(path.predictor, least, atol=1e-8)
    itself = train(DiagonalNet(2, alpha=0.5), problem, ParameterFlow())
    assert np.abs(itself.predictor - least).max() > 1e-2


@pytest.mark.parametrize("loss", ["exp", "logistic"])
@pytest.mark.parametrize("depth", [2, 3])
def test_its_flow_is_that_of_a_linear_model_with_a_faster_clock(depth, loss):
    problem, alpha = three_points("3d", loss=loss), 0.7
    twin = linearize(DiagonalNet(depth, alpha=alpha))
    path = train(twin, problem, ParameterFlow(), stop=LogLoss(-1e4))
    linear = Reparametrized(lambda w: w, 0.0, signed=False)
    plain = train(linear, problem, ParameterFlow(), stop=LogLoss(-1e4))
    at = 2 * (depth * alpha ** (depth - 1)) ** 2  # squared slopes of a coordinate
    np.testing.assert_allclose(path.predictor, plain.predictor, rtol=1e-8)
    gap = float(plain.dataset.log_t[-1] - path.dataset.log_t[-1])
    assert gap == pytest.approx(np.log(at), abs=1e-7)
    curved = train(DiagonalNet(depth, alpha=alpha), problem, ParameterFlow(), stop=LogLoss(-1e4))
    assert np.abs(curved.predictor / plain.predictor - 1).max() > 1e-2


def test_its_flow_is_the_linear_flow_integrated_in_time():
    problem, t = three_points("3c"), 3.0
    twin, Z = linearize(DiagonalNet(2, alpha=0.3)), problem.signed_rows
    path = train(twin, problem, ParameterFlow(), stop=[Interpolated(), Time(t)])
    rate = 2 * (2 * 0.3) ** 2 / len(Z)
    run = solve_ivp(lambda _, b: rate * np.exp(-Z @ b) @ Z, (0, t), np.zeros(3), rtol=1e-11,
                    atol=1e-12)  # fmt: skip
    np.testing.assert_allclose(path.predictor, run.y[:, -1], rtol=1e-7)
    assert np.abs(path.predictor / (0.99 * run.y[:, -1]) - 1).max() > 1e-3


def test_normalized_descent_trains_it_too():
    problem, twin = three_points("3b"), linearize(DiagonalNet(2, alpha=1.0))
    flow = train(twin, problem, ParameterFlow(), stop=LogLoss(-5)).predictor
    stop = [Steps(10**6), LogLoss(-5)]
    ends = [train(twin, problem, NormalizedDescent(h), stop=stop) for h in (1e-3, 1e-4)]
    gaps = [np.abs(end.predictor - flow).max() for end in ends]
    assert gaps[1] < 5e-3
    assert gaps[0] > 3 * gaps[1]


def test_large_starts_follow_their_twin():
    """M Theorem 1: the relative distance falls like alpha^-4 at depth 2, as s^2 does."""
    problem, rule, distances = three_points("3b"), LogLoss(-4), []
    alphas = np.array([3.0, 6.0, 12.0])
    for alpha in alphas:
        net = DiagonalNet(2, alpha=alpha)
        real = train(net, problem, DualFlow(rtol=1e-12), stop=rule).predictor
        twin = train(linearize(net), problem, ParameterFlow(), stop=rule).predictor
        distances.append(np.abs(real - twin).max())
    slope = np.polyfit(np.log(alphas), np.log(distances), 1)[0]
    assert slope == pytest.approx(-4, abs=0.2)


def test_twins_are_described_and_printed():
    twin = linearize(DiagonalNet(2, alpha=0.5))
    assert describe(twin)["model"]["alpha"] == 0.5
    assert repr(twin) == "linearize(model=DiagonalNet(alpha=0.5))"
    np.testing.assert_array_equal(
        linearize(twin).predictor(np.arange(1.0, 7.0)), twin.predictor(np.arange(1.0, 7.0))
    )


test_bad_input_is_refused_in_one_sentence = refusals(
    (lambda: linearize("net"), "for a separable model.* got str"),
    (lambda: linearize(DiagonalNet(2, alpha=1.0), [1.0]), "at its own start; leave parameters out"),
    (lambda: linearize(DiagonalNet(2, alpha=1.0), output="logits"), "leave output out"),
    (lambda: linearize(DiagonalNet(2, log_alpha=690.0)).start(3), "use DualFlow"),
    (lambda: linearize(DiagonalNet(2, start=([1e200], [1e200]))).start(1), "beyond float64"),
    (lambda: linearize(ProductNet([1, 2], [1, 2])).start(3), "2 entries but .* 3 features"),
)
