"""Penalties: subgradients by their inequality, proximal maps by minimisation, NumPy and JAX."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from tacit.flows.penalized_derivatives import DerivativeMatch
from tacit.flows.penalties import (
    AbsoluteSum,
    Blocks,
    EuclideanNorm,
    NuclearNorm,
    SquaredSum,
    UserPenalty,
)
from tacit.flows.subgradient import Subgradient
from tacit.models.function import FunctionModel
from tacit.models.linear import LinearPredictor
from tacit.precision import double_precision
from tacit.problems.regression import Regression

MIXED = Blocks([(AbsoluteSum(), 1), (None, 1), (EuclideanNorm(), 2)])
PENALTIES = [AbsoluteSum(), SquaredSum(), EuclideanNorm(), NuclearNorm((2, 2)), MIXED]
EACH = pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: type(p).__name__)
# zeros on purpose: that is where the penalties have corners
ENTRY = st.one_of(st.just(0.0), st.floats(-3, 3).map(lambda x: round(x, 3)))
POINT = st.lists(ENTRY, min_size=4, max_size=4).map(np.array)
ALWAYS = settings(deadline=None, derandomize=True, max_examples=60)
SOME = settings(deadline=None, derandomize=True, max_examples=15)


def gap(penalty, slope, x, z):
    """h(z) - h(x) - <slope, z - x>, which no subgradient lets be negative."""
    return penalty.value(z) - penalty.value(x) - slope @ (z - x)


@EACH
@ALWAYS
@given(x=POINT, z=POINT)
def test_the_subgradient_inequality_holds(penalty, x, z):
    assert gap(penalty, penalty.subgradient(x), x, z) >= -1e-12


@EACH
def test_a_slope_that_is_too_steep_breaks_the_inequality(penalty):
    x = np.array([2.0, -1.5, 0.7, 3.0])
    assert gap(penalty, 1.2 * penalty.subgradient(x), x, 1.05 * x) < -1e-2


def moreau(penalty, theta, weight):
    return lambda z: ((z - theta) ** 2).sum() / 2 + weight * penalty.value(z)


@EACH
@SOME
@given(theta=POINT, weight=st.floats(0.01, 2))
def test_the_proximal_map_is_the_minimiser_that_a_general_solver_finds(penalty, theta, weight):
    near = penalty.prox(theta, weight)
    cost = moreau(penalty, theta, weight)
    options = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000, "maxfev": 8000, "adaptive": True}
    found = minimize(cost, near + 0.3, method="Nelder-Mead", options=options)
    assert cost(near) <= found.fun + 1e-10
    # the cost is 1-strongly convex: |z - near|^2 / 2 <= cost(z) - cost(near)
    assert ((found.x - near) ** 2).sum() / 2 <= found.fun - cost(near) + 1e-10


@EACH
@ALWAYS
@given(theta=POINT, z=POINT, weight=st.floats(0.01, 2))
def test_the_proximal_map_meets_its_optimality_condition(penalty, theta, z, weight):
    near = penalty.prox(theta, weight)
    assert gap(penalty, (theta - near) / weight, near, z) >= -1e-11 / weight


@EACH
def test_a_proximal_map_of_another_weight_is_no_minimiser(penalty):
    theta = np.array([2.0, -1.5, 0.7, 3.0])
    cost = moreau(penalty, theta, 0.5)
    assert cost(penalty.prox(theta, 0.8)) > cost(penalty.prox(theta, 0.5)) + 1e-3


@EACH
def test_numpy_and_compiled_jax_agree(penalty):
    import jax

    theta = np.array([0.0, -1.5, 0.7, 3.0])
    with double_precision():
        for name in ("value", "subgradient"):
            compiled = jax.jit(getattr(penalty, name))(theta)
            np.testing.assert_allclose(compiled, getattr(penalty, name)(theta), atol=1e-14)
        near = jax.jit(penalty.prox)(theta, 0.3)
    np.testing.assert_allclose(near, penalty.prox(theta, 0.3), atol=1e-14)


def test_corners_choose_the_source_s_subgradient():
    assert not AbsoluteSum().subgradient(np.zeros(3)).any()
    assert not EuclideanNorm().subgradient(np.zeros(3)).any()
    assert not NuclearNorm((2, 2)).subgradient(np.zeros(4)).any()
    np.testing.assert_array_equal(AbsoluteSum().subgradient(np.array([2.0, 0.0, -1.0])), [1, 0, -1])


def test_the_nuclear_subgradient_of_a_low_rank_matrix_is_that_of_its_compact_svd():
    u, v = np.array([1.0, 2.0, 2.0]), np.array([3.0, 0.0, 4.0, 0.0])
    slope = NuclearNorm((3, 4)).subgradient(np.outer(u, v).ravel())
    np.testing.assert_allclose(slope, np.outer(u, v).ravel() / 15, atol=1e-14)
    # all singular vectors, not the compact ones, would give a matrix of norm sqrt(3)
    assert abs(np.linalg.norm(slope) - 1) < 1e-12


def test_blocks_treat_every_tensor_apart():
    theta = np.array([-2.0, 5.0, 3.0, 4.0])
    assert MIXED.value(theta) == 2 + 5
    np.testing.assert_allclose(MIXED.subgradient(theta), [-1, 0, 0.6, 0.8])
    np.testing.assert_allclose(MIXED.prox(theta, 1.0), [-1, 5, 2.4, 3.2])
    both = Blocks([(SquaredSum(), 2), (UserPenalty(lambda w: w.sum()), 2)])
    assert both.curvature == 2
    assert not both.has_prox
    assert MIXED.has_prox


def test_a_user_s_penalty_is_differentiated_unless_it_brings_a_subgradient():
    theta = np.array([1.0, -2.0])
    quartic = UserPenalty(lambda w: (w**4).sum())
    with double_precision():
        np.testing.assert_allclose(quartic.subgradient(theta), 4 * theta**3)
    given = UserPenalty(lambda w: abs(w).sum(), subgradient=np.sign, prox=AbsoluteSum().prox)
    np.testing.assert_array_equal(given.subgradient(theta), [1, -1])
    np.testing.assert_array_equal(given.prox(theta, 1.5), [0, -0.5])
    assert given.has_prox
    assert not quartic.has_prox


def test_wrong_penalties_speak():
    with pytest.raises(ValueError, match="UserPenalty: value must be a function, got 3"):
        UserPenalty(3)
    with pytest.raises(ValueError, match="no proximal map"):
        UserPenalty(abs).prox(np.ones(2), 1.0)
    with pytest.raises(ValueError, match="12 entries but there are 4 parameters"):
        NuclearNorm((3, 4)).value(np.ones(4))
    with pytest.raises(ValueError, match=r"give shape=\(rows, columns\)"):
        NuclearNorm(None)
    with pytest.raises(ValueError, match=r"one row per point.*\(4, 3\), got \(4, 2\)"):
        DerivativeMatch(LinearPredictor(), np.ones((4, 3)), np.ones((4, 2)))
    with pytest.raises(ValueError, match="Blocks: 4 parameters in blocks but 3 are given"):
        MIXED.value(np.ones(3))


def test_derivative_matching_of_a_linear_predictor_is_a_distance():
    # grad_x <a, x> = a at every point
    slopes = np.arange(12.0).reshape(4, 3)
    penalty = DerivativeMatch(LinearPredictor(), np.ones((4, 3)), slopes)
    a = np.array([1.0, -2.0, 0.5])
    assert penalty.value(a) == pytest.approx(((a - slopes) ** 2).sum() / 2)
    np.testing.assert_allclose(penalty.subgradient(a), (a - slopes).sum(axis=0))
    assert not penalty.has_prox


def test_derivative_matching_has_the_slope_of_finite_differences():
    import jax.numpy as jnp

    def wave(w, rows):
        return w[3] * jnp.tanh(rows @ w[:3])

    rng = np.random.default_rng(0)
    points, theta = rng.standard_normal((5, 3)), rng.standard_normal(4)
    model = FunctionModel(wave, theta)
    penalty = DerivativeMatch(model, points, np.zeros((5, 3)))
    inner = np.cosh(points @ theta[:3]) ** -2
    wanted = theta[3] * inner[:, None] * theta[:3]  # the derivative by hand
    np.testing.assert_allclose(penalty.derivatives(theta), wanted, atol=1e-12)
    for i, slope in enumerate(np.asarray(penalty.subgradient(theta))):
        ends = [float(penalty.value(theta + sign * 1e-5 * np.eye(4)[i])) for sign in (1, -1)]
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-7)


def test_derivatives_alone_teach_a_slope_that_the_data_leave_open():
    # one sample fixes <a, x> only; the derivatives at it fix a
    x, truth = np.array([[1.0, 0.0, 0.0]]), np.array([0.5, -1.0, 2.0])
    problem, model = Regression(x, x @ truth, truth), LinearPredictor()
    penalty = DerivativeMatch(model, x, truth[None])
    taught = Subgradient(0.5, 400, penalty, 0.1, check=False).run(model, problem)
    np.testing.assert_allclose(taught.predictor, truth, atol=1e-8)
    plain = Subgradient(0.5, 400).run(model, problem)
    assert np.abs(plain.predictor - truth).max() > 1


@EACH
def test_a_description_is_plain(penalty):
    import json

    assert type(penalty).__name__ in json.dumps(penalty.describe())
