"""Kernel SVM and kernel interpolant: against general solvers, closed forms, and flows."""

import cvxpy as cp
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from penchant import (
    L1,
    L2,
    Classification,
    DiagonalNet,
    FunctionModel,
    ParameterFlow,
    Regression,
    interpolate,
    max_margin,
    train,
)
from penchant.lab import Kind
from penchant.measures import kernel_machine, tangent_kernel
from penchant.measures.kernels import features as tangent_features
from penchant.models import Difference, ProductNet, Unbiased, linearize, two_layer
from refusals import refusals

N, D = 12, 5
rng = np.random.default_rng(3)
X, X_NEW = rng.standard_normal((N, D)), rng.standard_normal((7, D))
Y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)  # labels that no plane in R^5 separates
TARGETS = rng.standard_normal(N)
NET = Difference(two_layer(20, alpha=2.0, seed=1))
BIASED = two_layer(20, alpha=2.0, activation="softplus", seed=1)
MANY = settings(deadline=None, derandomize=True, max_examples=25)
ROUTES = pytest.mark.parametrize("route", ["features", "kernel"])


def unit(v):
    return v / np.linalg.norm(v)


def features(function, start):
    """The tangent features on X by central differences."""
    eye = np.eye(len(start))
    return np.array([(function(start + 1e-6 * e, X) - function(start - 1e-6 * e, X)) / 2e-6
                     for e in eye]).T  # fmt: skip


def clarabel(K, y):
    """(dual, norm) of the SVM of a kernel: least norm of R^T nu under margins of 1, K = R R^T."""
    values, vectors = np.linalg.eigh(K)
    R = vectors * np.sqrt(np.maximum(values, 0))
    h = cp.Variable(len(K))
    margins = cp.multiply(y, R @ h) >= 1
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(h)), [margins])
    program.solve(cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return margins.dual_value * y, float(np.linalg.norm(h.value))


@ROUTES
@pytest.mark.parametrize("model", [NET, BIASED, Unbiased(BIASED)])
def test_the_svm_is_that_of_a_general_solver(model, route):
    K = tangent_kernel(model, model.start(D), X)
    found = kernel_machine(model, Classification(X, Y), route=route)
    dual, norm = clarabel(K, Y)
    assert found.norm == pytest.approx(norm, rel=1e-6)
    assert found.margin == pytest.approx(1 / norm, rel=1e-6)
    np.testing.assert_allclose(found.dual, dual, atol=1e-5 * np.abs(dual).max())
    assert max(found.kkt, found.residual) < 1e-10
    assert (found.dual * Y >= 0).all()
    assert found.outcome.kind is Kind.SOLVED
    factor = np.random.default_rng(0).standard_normal((N, 200))
    wrong = clarabel(factor @ factor.T * np.trace(K) / np.sum(factor**2), Y)  # a random kernel
    assert abs(wrong[1] / norm - 1) > 0.05
    assert np.abs(unit(wrong[0]) - unit(found.dual)).max() > 0.05


@ROUTES
def test_its_predictions_are_those_of_the_kernel(route):
    found = kernel_machine(BIASED, Classification(X, Y), route=route)
    K = tangent_kernel(BIASED, BIASED.start(D), X_NEW, X)
    np.testing.assert_allclose(found.predict(X_NEW), K @ found.dual, rtol=1e-8, atol=1e-10)
    J = BIASED.jacobian(BIASED.start(D), X)
    np.testing.assert_allclose(found.displacement, J.T @ found.dual, rtol=1e-7, atol=1e-10)
    assert np.linalg.norm(found.displacement) == pytest.approx(found.norm, rel=1e-12)
    start_too = found.predict(X_NEW) + BIASED.predict(BIASED.start(D), X_NEW)
    assert np.abs(start_too - found.predict(X_NEW)).max() > 0.1  # control: the start counts


@MANY
@given(
    seed=st.integers(0, 10**6),
    depth=st.integers(2, 6),
    log_alpha=st.sampled_from([-4600.0, -700.0, -120.0, -3.0, 0.0, 2.0, 90.0, 700.0, 4600.0]),
    route=st.sampled_from(["features", "kernel"]),
    paired=st.booleans(),
)
def test_diagonal_nets_have_the_l2_max_margin_at_every_scale(seed, depth, log_alpha, route, paired):
    local = np.random.default_rng(seed)
    x = local.standard_normal((int(local.integers(2, 15)), int(local.integers(2, 15))))
    y = np.where(x @ local.standard_normal(x.shape[1]) > 0, 1.0, -1.0)
    shape = local.uniform(0.5, 2.0, x.shape[1])
    net = DiagonalNet(depth, log_alpha=log_alpha, shape=shape)
    if paired:
        net = Difference(DiagonalNet(depth, log_alpha=log_alpha, shape=shape, signed=False))
    found = kernel_machine(net, Classification(x, y), route=route)
    expected = max_margin(x, y, L2(weights=shape ** (2.0 - 2 * depth)))
    np.testing.assert_allclose(unit(found.predictor), unit(expected.beta), atol=1e-7)
    np.testing.assert_allclose(found.predict(x), x @ found.predictor, rtol=1e-9, atol=1e-12)
    # |h|^2 = beta^T diag(2 D^2 alpha^(2D-2) w0^(2D-2))^-1 beta
    log_norm = 0.5 * np.log(expected.value / (2 * depth**2)) - (depth - 1) * log_alpha
    assert found.log_norm == pytest.approx(log_norm, rel=1e-9, abs=1e-7)


def test_the_l2_max_margin_of_equal_starts_is_not_the_l1():
    x = X[:4]
    found = unit(kernel_machine(DiagonalNet(2, alpha=10.0), Classification(x, Y[:4])).predictor)
    np.testing.assert_allclose(found, unit(max_margin(x, Y[:4], L2()).beta), atol=1e-12)
    assert np.abs(found - unit(max_margin(x, Y[:4], L1()).beta)).max() > 0.05


def test_another_start_is_another_kernel():
    w = NET.start(D) + np.random.default_rng(0).standard_normal(len(NET.start(D)))
    found = kernel_machine(NET, Classification(X, Y), start=w)
    assert found.norm == pytest.approx(clarabel(tangent_kernel(NET, w, X), Y)[1], rel=1e-6)
    assert found.norm != pytest.approx(kernel_machine(NET, Classification(X, Y)).norm, rel=1e-2)


def test_blocks_of_a_large_jacobian_make_the_same_machine(monkeypatch):
    whole = (
        kernel_machine(NET, Classification(X, Y), route="kernel"),
        kernel_machine(NET, Regression(X, TARGETS)),
    )
    monkeypatch.setattr(tangent_features, "BLOCK", 5 * len(NET.start(D)))
    parts = (
        kernel_machine(NET, Classification(X, Y), route="kernel"),
        kernel_machine(NET, Regression(X, TARGETS)),
    )
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(other.dual, one.dual, rtol=1e-9)
        np.testing.assert_allclose(other.predict(X_NEW), one.predict(X_NEW), rtol=1e-9)


@pytest.mark.parametrize("size", [1e-140, 1e-70, 1e70, 1e140])
def test_huge_and_tiny_gradients_have_a_unit(size):
    net = FunctionModel(lambda w, x: jnp.maximum(x @ w.reshape(D, 8), 0) @ jnp.ones(8) * size,
                        np.random.default_rng(1).standard_normal(8 * D))  # fmt: skip
    plain = FunctionModel(lambda w, x: net.function(w, x) / size, net.start(D))
    found, expected = (kernel_machine(m, Classification(X, Y)) for m in (net, plain))
    np.testing.assert_allclose(found.predict(X_NEW), expected.predict(X_NEW), rtol=1e-9)
    assert found.log_norm == pytest.approx(expected.log_norm - np.log(size), rel=1e-12)
    assert expected.log_unit == 0
    assert found.log_unit != 0


@ROUTES
@pytest.mark.parametrize("model", [NET, BIASED, Unbiased(BIASED)])
def test_the_interpolant_is_the_pseudoinverse(model, route):
    start = model.start(D)
    J, f = features(model.predict, start), model.predict(start, X)
    found = kernel_machine(model, Regression(X, TARGETS), route=route)
    move = np.linalg.lstsq(J, TARGETS - f, rcond=None)[0]
    np.testing.assert_allclose(found.displacement, move, atol=1e-6 * np.abs(move).max())
    K, K_new = tangent_kernel(model, start, X), tangent_kernel(model, start, X_NEW, X)
    closed = model.predict(start, X_NEW) + K_new @ np.linalg.solve(K, TARGETS - f)
    np.testing.assert_allclose(found.predict(X_NEW), closed, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found.predict(X), TARGETS, rtol=1e-9, atol=1e-10)
    assert found.norm == pytest.approx(np.sqrt((TARGETS - f) @ np.linalg.solve(K, TARGETS - f)))
    other = (
        tangent_kernel(model, start[::-1].copy(), X),
        tangent_kernel(model, start[::-1].copy(), X_NEW, X),
    )  # control: the kernel of other weights of the same size
    wrong = model.predict(start, X_NEW) + other[1] @ np.linalg.solve(other[0], TARGETS - f)
    assert np.abs(wrong - closed).max() > 0.05


@pytest.mark.parametrize(
    "net",
    [
        DiagonalNet(2, alpha=0.7, shape=[1.0, 2.0, -0.5, 1.0, 1.5]),
        DiagonalNet(3, start=rng.uniform(0.5, 1.5, (2, D))),
        Difference(ProductNet(rng.standard_normal(D), rng.standard_normal(D))),
        Unbiased(ProductNet(rng.standard_normal(D), rng.standard_normal(D))),
    ],
)
def test_the_linearised_flow_ends_at_the_interpolant(net):
    problem = Regression(X[:3], TARGETS[:3])
    end = train(linearize(net), problem, ParameterFlow()).predictor
    found = kernel_machine(net, problem)
    np.testing.assert_allclose(found.predictor, end, atol=1e-8)
    np.testing.assert_allclose(kernel_machine(net, problem).predictor, end, atol=1e-8)
    trained = train(net, problem, ParameterFlow()).predictor  # control: the kernel moves
    assert np.abs(trained - end).max() > 1e-3


def test_the_linearised_flow_of_a_network_ends_at_the_interpolant():
    start, x, y = BIASED.start(D), X[:4], TARGETS[:4]
    J, f = BIASED.jacobian(start, x), BIASED.predict(start, x)
    flow = solve_ivp(
        lambda _, h: -2 * J.T @ (f + J @ h - y),
        (0, 60 / np.linalg.eigvalsh(J @ J.T)[0]),
        np.zeros(len(start)),
        method="LSODA",
        rtol=1e-10,
        atol=1e-12,
    )
    found = kernel_machine(BIASED, Regression(x, y))
    np.testing.assert_allclose(found.displacement, flow.y[:, -1], atol=1e-6)
    assert np.abs(found.displacement).max() > 1e-2


@pytest.mark.parametrize("log_alpha", [-700.0, 0.0, 700.0])
def test_the_interpolant_of_a_signed_net_does_not_depend_on_its_scale(log_alpha):
    found = kernel_machine(DiagonalNet(3, log_alpha=log_alpha), Regression(X[:3], TARGETS[:3]))
    expected = interpolate(X[:3], TARGETS[:3], L2()).beta
    np.testing.assert_allclose(found.predictor, expected, rtol=1e-9)
    np.testing.assert_allclose(found.predict(X_NEW), X_NEW @ expected, rtol=1e-9)
    assert found.log_norm + 2 * log_alpha == pytest.approx(
        np.log(np.linalg.norm(expected) / np.sqrt(2 * 9)), rel=1e-9
    )


@ROUTES
def test_data_that_cannot_be_fitted_are_fitted_by_least_squares(route):
    net = DiagonalNet(2, start=rng.uniform(0.5, 1.5, (2, D)))
    found = kernel_machine(net, Regression(X, TARGETS), route=route)
    expected = np.linalg.lstsq(X, TARGETS, rcond=None)[0]
    np.testing.assert_allclose(found.predictor, expected, rtol=1e-8, atol=1e-9)
    assert "least squares" in found.outcome.sentence
    assert found.kkt < 1e-10
    assert found.residual > 0.1
    assert (
        "least squares" not in kernel_machine(net, Regression(X[:3], TARGETS[:3])).outcome.sentence
    )


@ROUTES
def test_points_given_twice_are_fitted_once(route):
    twice, y = np.vstack([X, X[:2]]), np.concatenate([TARGETS, TARGETS[:2]])
    found = kernel_machine(BIASED, Regression(twice, y), route=route)
    once = kernel_machine(BIASED, Regression(X, TARGETS))
    np.testing.assert_allclose(found.predict(X_NEW), once.predict(X_NEW), rtol=1e-6)
    split = np.concatenate([TARGETS, TARGETS[:2] + 1])  # control: contradictory targets
    assert (
        "least squares"
        in kernel_machine(BIASED, Regression(twice, split), route=route).outcome.sentence
    )


def test_nearly_equal_points_with_different_targets():
    close = np.vstack([X, X[:1] + 1e-7])
    y = np.append(TARGETS, TARGETS[0] + 1)
    found = kernel_machine(BIASED, Regression(close, y), route="features")
    assert "fits" in found.outcome.sentence
    np.testing.assert_allclose(found.predict(close), y, atol=1e-7)
    lost = kernel_machine(BIASED, Regression(close, y), route="kernel", throw=False)
    assert lost.residual > 0.1  # control: the kernel has squared 1e-7 away, and says so
    assert "route='features' does" in lost.outcome.sentence
    assert not lost.outcome.ok
    assert not lost.error <= 1e-7


@ROUTES
@pytest.mark.parametrize("apart", [1e-1, 1e-3, 1e-5])
def test_the_error_of_close_points_is_at_least_the_true_one(apart, route):
    """The true displacement of the same features, by QR in mpmath; nothing solved is far off."""
    close = np.vstack([X[:4], X[:1] + apart])
    y = np.append(TARGETS[:4], TARGETS[0] + 1)
    machine = kernel_machine(BIASED, Regression(close, y), route=route, throw=False)
    start = BIASED.start(D)
    J, goal = BIASED.jacobian(start, close), y - BIASED.predict(start, close)
    with mp.workdps(50):
        F = mp.matrix(J.tolist())
        exact = F.T * mp.lu_solve(F * F.T, mp.matrix(goal.tolist()))
        exact = np.array([float(v) for v in exact])
    true = np.linalg.norm(machine.displacement - exact) / np.linalg.norm(exact)
    assert true <= max(10 * machine.error, 1e-13)
    assert machine.error <= 1e-7 or not machine.outcome.ok
    if apart > 1e-4:
        assert machine.outcome.ok


@ROUTES
@pytest.mark.parametrize("model", [NET, DiagonalNet(2, alpha=3.0)])
def test_labels_that_cannot_be_separated(model, route):
    twice = np.vstack([X[:4], X[:1]])
    y = np.array([1.0, 1.0, -1.0, 1.0, -1.0])
    with pytest.raises(
        ValueError, match=r"kernel_machine: .*do not separate the labels; drop"
    ) as why:
        kernel_machine(model, Classification(twice, y), route=route)
    assert "\n" not in str(why.value)
    assert kernel_machine(model, Classification(twice[:4], y[:4]), route=route).outcome.ok


SADDLE = FunctionModel(lambda w, x: (x @ w) ** 2, np.zeros(D))


test_bad_input_is_refused_in_one_sentence = refusals(
    (
        lambda: kernel_machine(DiagonalNet(2, alpha=1.0), Classification(X, Y)),
        "do not separate the labels",
    ),
    (lambda: kernel_machine(NET, Classification(X, TARGETS)), "labels must be -1 and \\+1"),
    (
        lambda: kernel_machine(NET, Classification(np.vstack([X[:3], 0 * X[:1]]), Y[:4])),
        "of sample 3 are zero",
    ),
    (lambda: kernel_machine(SADDLE, Classification(X, Y)), "gradients vanish at this start"),
    (lambda: kernel_machine(NET, Classification(X, Y), route="primal"), "unknown route 'primal'"),
    (lambda: kernel_machine(NET, Classification(X, Y), start=[np.nan]), "start must be finite"),
    (lambda: kernel_machine(np.tanh, Classification(X, Y)), "expected a Model, got ufunc"),
    (lambda: kernel_machine(NET, Regression(X, TARGETS[:3])), "X has 12 rows but y has 3"),
    (
        lambda: kernel_machine(
            DiagonalNet(2, log_alpha=700.0, signed=False), Regression(X, TARGETS)
        ),
        "output at the start is beyond float64 .*Difference",
    ),
    (
        lambda: kernel_machine(DiagonalNet(2, log_alpha=700.0, shape=[1.0]), Classification(X, Y)),
        "1 entries but the data have 5",
    ),
    (lambda: kernel_machine(NET, Classification(X, Y)).predict([1.0]), "X must have 2 dimension"),
)
