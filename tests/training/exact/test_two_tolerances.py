"""The certificate of a flow: what it costs, that it bounds the error, and what it reveals."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from penchant.lab import Kind
from penchant.methods import CentralFlow, MatrixFlow, TangentFlow
from penchant.record import At

REGRESSION = penchant.problems.sparse_regression(4, 8, sparsity=2, seed=0)
POINTS = penchant.problems.separable_points(5, 8, seed=0)
COMPLETION = penchant.problems.low_rank_completion(samples=14, dimension=5, rank=1, seed=1)
NET, END = penchant.DiagonalNet(2, alpha=0.1), penchant.Time(2.0)
RELU = penchant.models.relu_net(2, 6, alpha=0.5)
RUNS = {
    "parameters": (NET, REGRESSION, penchant.ParameterFlow(), None),
    "labels": (NET, POINTS, penchant.ParameterFlow(), penchant.stop.LogLoss(-30.0)),
    "dual": (NET, REGRESSION, penchant.DualFlow(), None),
    "dual, labels": (NET, POINTS, penchant.DualFlow(), penchant.stop.LogLoss(-30.0)),
    "dual, decay": (NET, REGRESSION, penchant.DualFlow(weight_decay=0.1), None),
    "decay": (NET, REGRESSION, penchant.ParameterFlow(weight_decay=0.1), END),
    "factors": (penchant.Factorization(5, alpha=0.1), COMPLETION, MatrixFlow(), None),
    "tangent": (RELU, REGRESSION, TangentFlow(), penchant.stop.Interpolated(1e-4)),
    "central": (NET, REGRESSION, CentralFlow(0.01, rtol=1e-6), END),
}


@pytest.mark.parametrize("name", RUNS)
def test_every_flow_takes_it_and_keeps_its_path(name):
    model, problem, flow, stop = RUNS[name]
    plain = penchant.train(model, problem, flow, stop=stop)
    path = penchant.train(model, problem, dataclasses.replace(flow, certify=True), stop=stop)
    values = "predictor" if "predictor" in plain.dataset else "predictions"
    np.testing.assert_array_equal(path.dataset[values], plain.dataset[values])
    assert path.dataset.error.dims == ("time",)
    assert 0 < path.error == path.dataset.error.values.max()
    # errors are some tens to hundreds of rtol, and the certificate some tens of them
    assert path.error < 1e5 * flow.rtol
    assert f"error at most {path.error:.2g}" in path.outcome.sentence
    with pytest.raises(AttributeError, match="certify=True"):
        plain.error  # noqa: B018


def distance(path, exact):
    """The largest distance at records of equal times, over the largest entry."""
    apart = np.abs(path.dataset.predictor.values - exact.dataset.predictor.values)
    return apart.max() / np.abs(path.dataset.predictor.values).max()


@settings(max_examples=5, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    depth=st.sampled_from([2, 3]),
    power=st.floats(-8, -4),
    log_alpha=st.floats(-4, 0.5),
)
def test_it_bounds_the_distance_to_the_dual_flow(seed, depth, power, log_alpha):
    problem = penchant.problems.sparse_regression(3, 6, sparsity=2, seed=seed)
    net = penchant.DiagonalNet(depth, log_alpha=log_alpha)
    flow, stop = penchant.ParameterFlow(rtol=10**power, certify=True), penchant.stop.Loss(1e-6)
    path = penchant.train(net, problem, flow, stop=stop)
    times = path.dataset.t.values
    again = {"stop": penchant.Time(times[-1]), "record": At(times=times[1:-1])}
    exact = penchant.train(net, problem, penchant.DualFlow(rtol=1e-11), **again)
    assert distance(path, exact) <= path.error


def test_dense_records_do_not_hide_the_error_of_a_flow_that_ends_its_steps_there():
    """Both runs took the steps between the records, and agreed to the last digit."""
    model = penchant.models.two_layer(6, alpha=1.0, activation="tanh", seed=1)
    dense = penchant.record.LogSpaced(200)
    path = penchant.train(
        model, REGRESSION, TangentFlow(rtol=1e-2, certify=True), stop=END, record=dense
    )
    times = path.dataset.t.values
    exact = penchant.train(
        model,
        REGRESSION,
        penchant.ParameterFlow(rtol=1e-10),
        stop=END,
        record=At(times=times[1:-1]),
    ).dataset
    true = np.abs(path.dataset.predictions.values - exact.predictions.values).max()
    assert 1e-9 < true / np.abs(exact.predictions.values).max() <= path.error


def layers(parameters, X):
    """<U V^T, X> for 2 x 2 layers: a function of which no flow knows that it keeps a sign."""
    U, V = parameters[:4].reshape(2, 2), parameters[4:].reshape(2, 2)
    return X @ (U @ V.T).ravel()


TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])
EVERY = np.eye(4).reshape(4, 2, 2)


def balanced_layers(seed, sign):
    """U, V = Q U and a target whose determinant has the sign of det U V^T, or the other one."""
    rng = np.random.default_rng(seed)
    U, target = rng.normal(size=(2, 2)), rng.normal(size=(2, 2))
    target[0] *= sign * np.sign(np.linalg.det(target))  # det U (Q U)^T = det U^2 > 0
    return U, TURN @ U, target


@pytest.mark.parametrize("seed", [4, 5])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_run_that_leaves_a_saddle_by_the_errors_of_its_steps_is_not_called_solved(seed, sign):
    """It fits data that the flow cannot fit, and every tolerance leaves at another time."""
    U, V, target = balanced_layers(seed, sign)
    net = penchant.models.FunctionModel(layers, np.concatenate([U.ravel(), V.ravel()]))
    problem = penchant.Regression(np.eye(4), target.ravel())
    path = penchant.train(net, problem, penchant.ParameterFlow(rtol=1e-7, certify=True))
    assert path.log_loss < -40
    assert path.outcome.ok == (sign > 0)
    if sign < 0:
        assert path.outcome.kind is Kind.APPROXIMATE
        assert "rounding decides" in path.outcome.sentence


@pytest.mark.parametrize("seed", [4, 5])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_factors_that_pass_a_saddle_by_the_errors_of_steps_say_so(seed, sign):
    """MatrixFlow stops there; the flow in the parameters was called solved."""
    U, V, target = balanced_layers(seed, sign)
    sensing = penchant.problems.Sensing(EVERY, target.ravel())
    model = penchant.Factorization(factors=(U, V))
    path = penchant.train(model, sensing, penchant.ParameterFlow(rtol=1e-8))
    assert path.outcome.ok == (sign > 0)
    assert ("past a saddle of lower rank" in path.outcome.sentence) == (sign < 0)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_start_whose_gradient_is_rounding_does_not_move(scale):
    """X^T (X beta - y) = 0 in real numbers; float64 leaves some 1e-17 of its terms."""
    rng = np.random.default_rng(0)
    X, away = rng.normal(size=(6, 3)), rng.normal(size=6)
    away -= X @ np.linalg.lstsq(X, away, rcond=None)[0]
    beta = np.array([1.1, 0.3, 2.7])
    net = penchant.models.Reparametrized(lambda w: w**2, np.sqrt(scale * beta), signed=False)
    problem = penchant.Regression(X, scale * (X @ beta + away))
    path = penchant.train(net, problem, penchant.ParameterFlow(certify=True))
    assert path.outcome.kind is Kind.STALLED
    assert "nothing moves" in path.outcome.sentence
    np.testing.assert_allclose(path.predictor, scale * beta, rtol=1e-14)


def test_a_saddle_is_left_by_nothing():
    zero = penchant.models.FunctionModel(lambda w, X: X[:, 0] * w[0] * w[1], np.zeros(2))
    problem = penchant.Regression([[1.0]], [1.0])
    path = penchant.train(zero, problem, penchant.ParameterFlow(certify=True))
    assert path.outcome.kind is Kind.STALLED
    assert "saddle" in path.outcome.sentence
    assert path.error < 1e-13


def test_a_wrong_switch_is_refused():
    with pytest.raises(ValueError, match="certify must be True or False, got 1"):
        penchant.ParameterFlow(certify=1)
