"""Square layers that start balanced: det M keeps its sign, and the flow says where that ends it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

import penchant
from penchant.lab import Kind

MATCHES = pytest.mark.parametrize("sign", [1, -1])


def seen(matrix):
    return penchant.problems.Sensing(np.eye(matrix.size).reshape(-1, *matrix.shape), matrix.ravel())


def of_sign(matrix, sign):
    """The matrix, with its first row turned if its determinant has the other sign."""
    if np.sign(np.linalg.det(matrix)) != sign:
        matrix = matrix * np.where(np.arange(len(matrix)) == 0, -1.0, 1.0)[:, None]
    return matrix


def balanced(rng, side, sign):
    """U and V = Q U with a signed permutation Q, so that U^T U = V^T V without rounding."""
    U = 0.5 * rng.standard_normal((side, side))
    return U, of_sign(np.eye(side)[rng.permutation(side)], sign) @ U


def exactly(U, V, target, end):
    """M at the time `end` in so many digits that rounding leaves no saddle before that.

    From balanced layers the stack W = [U; V] obeys W' = 2 F W - W W^T W, F = [0, T; T^T, 0], and
    W W^T = E W_0 (1 + 2 W_0^T (integral of E^2) W_0)^-1 W_0^T E with E = e^(2 F t).
    """
    side = len(target)
    with mp.workdps(60 + int(4 * np.linalg.norm(target, 2) * end)):
        W = mp.matrix(np.vstack([U, V]).tolist())
        zero = np.zeros((side, side))
        rates, basis = mp.eigsy(mp.matrix(np.block([[zero, target], [target.T, zero]]).tolist()))
        W = basis.T * W
        grown = mp.diag([mp.exp(2 * r * end) for r in rates])
        past = mp.diag([(mp.exp(4 * r * end) - 1) / (4 * r) for r in rates])
        inner = mp.eye(side) + 2 * W.T * past * W
        P = basis * grown * W * mp.inverse(inner) * W.T * grown * basis.T
        return np.array(P[:side, side:].tolist(), dtype=float)


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6), side=st.integers(2, 4), start=st.sampled_from([1, -1]))
def test_a_target_of_the_same_sign_is_reached_and_of_the_other_is_not(seed, side, start):
    rng = np.random.default_rng(seed)
    U, V = balanced(rng, side, start)
    left, right = (np.linalg.qr(rng.standard_normal((side, side)))[0] for _ in range(2))
    drawn = (left * np.cumsum(rng.uniform(0.3, 1.0, side))) @ right
    for sign in (1, -1):
        target = of_sign(drawn, sign)
        model = penchant.Factorization(factors=(U, V))
        path = penchant.train(model, seen(target), penchant.methods.MatrixFlow())
        exact = exactly(U, V, target, min(path.t, 100.0))
        np.testing.assert_allclose(path.predictor, exact, atol=1e-6)
        assert path.outcome.ok == (sign == start)
        if sign == start:
            np.testing.assert_allclose(path.predictor, target, atol=1e-6)
        else:
            assert path.outcome.kind is Kind.STALLED
            assert "stands at a saddle of lower rank" in path.outcome.sentence
            assert np.linalg.matrix_rank(path.predictor, rtol=1e-8) == side - 1
            assert np.abs(exact - target).max() > 0.01  # it rests away from the target


@MATCHES
def test_a_hundredth_of_imbalance_reaches_both_signs(sign):
    rng = np.random.default_rng(0)
    U, V = balanced(rng, 3, 1)
    target = of_sign(rng.standard_normal((3, 3)), sign)
    path = penchant.train(
        penchant.Factorization(factors=(1.01 * U, V)), seen(target), penchant.methods.MatrixFlow()
    )
    assert path.outcome.ok
    np.testing.assert_allclose(path.predictor, target, atol=1e-6)


@MATCHES
def test_wide_layers_and_the_lifted_flow_know_it_too(sign):
    rng = np.random.default_rng(2)
    target = of_sign(rng.standard_normal((2, 2)), sign)
    U = 0.5 * rng.standard_normal((2, 5))  # five hidden units, U^T U = V^T V
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    wide = penchant.Factorization(factors=(U, turn @ U))
    assert penchant.train(wide, seen(target), penchant.methods.MatrixFlow()).outcome.ok == (
        sign == 1
    )
    path = penchant.train(wide, seen(target), penchant.methods.MatrixFlow(form="lifted"))
    assert path.outcome.ok == (sign == 1)
    if sign == -1:
        assert path.outcome.kind is Kind.STALLED


def test_a_flow_of_the_lifted_matrix_that_breaks_down_says_so():
    """W W^T became indefinite here, and its norm was the root of a negative number."""
    rng = np.random.default_rng(1)
    target = of_sign(rng.normal(size=(3, 3)), -1)
    U = rng.normal(size=(3, 3)) * 0.5
    turn = of_sign(np.linalg.qr(rng.normal(size=(3, 3)))[0].T, 1).T
    model = penchant.Factorization(factors=(U, turn @ U))
    path = penchant.train(model, seen(target), penchant.methods.MatrixFlow(form="lifted"))
    assert path.outcome.kind is Kind.STALLED


def test_a_singular_target_is_still_reached():
    rng = np.random.default_rng(0)
    U, V = balanced(rng, 2, 1)
    target = np.outer([1.0, 2.0], [0.5, -1.0])
    stop = penchant.stop.Interpolated(1e-6)
    path = penchant.train(
        penchant.Factorization(factors=(U, V)),
        seen(target),
        penchant.methods.MatrixFlow(),
        stop=stop,
    )
    assert path.outcome.ok
