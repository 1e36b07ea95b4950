"""Regularizers: gradients are derivatives, inverses invert, limits are reached."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import L1, L2, Q
from penchant.regularizers import Lp, R

settings.register_profile("penchant", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("penchant")

SHAPE = np.array([0.5, -2.0, 1.3])
SMOOTH = {
    "Q2": Q(2, alpha=0.3),
    "Q2 shape": Q(2, alpha=0.3, shape=SHAPE),
    "Q3": Q(3, alpha=0.7),
    "Q4 shape": Q(4, mu=0.01, shape=SHAPE),
    "Q10": Q(10, log_alpha=-1.0),
    "Q30": Q(30, mu=2.0),
    "R": R(alpha=0.4),
    "R shape": R(alpha=0.4, shape=SHAPE),
    "L2": L2(),
    "L2 weights": L2([1.0, 2.0, 3.0]),
    "L1.5": Lp(1.5),
    "L3": Lp(3.0),
}
smooth = pytest.mark.parametrize("reg", SMOOTH.values(), ids=SMOOTH.keys())
vectors = st.lists(st.floats(-50, 50).filter(lambda v: abs(v) > 1e-3), min_size=3, max_size=3).map(
    np.array
)


@smooth
@given(beta=vectors)
def test_gradient_is_the_derivative_of_the_value(reg, beta):
    step = 1e-5 * np.maximum(np.abs(beta), 0.1)
    for i in range(3):
        move = np.eye(3)[i] * step[i]
        terms = reg.terms(beta + move) - reg.terms(beta - move)
        assert np.abs(np.delete(terms, i)).max() < 1e-12  # a sum over coordinates
        quotient = terms[i] / (2 * step[i])
        assert quotient == pytest.approx(reg.gradient(beta)[i], rel=1e-5, abs=1e-9)


@smooth
@given(beta=vectors)
def test_inverse_gradient_inverts(reg, beta):
    s = reg.gradient(beta)
    # 1 - |s| is all that is left of a deep net's slack: digits below it cannot come back
    rtol = 1e-9 if np.abs(s).max() < 0.999 or not isinstance(reg, Q | R) else 1e-4
    np.testing.assert_allclose(reg.inverse_gradient(s), beta, rtol=rtol)


@smooth
@given(beta=vectors)
def test_slope_is_the_derivative_of_the_inverse_gradient(reg, beta):
    s = reg.gradient(beta) * 0.9
    step = 1e-6 * np.abs(s)
    quotient = (reg.inverse_gradient(s + step) - reg.inverse_gradient(s - step)) / (2 * step)
    np.testing.assert_allclose(quotient, reg.slope(s), rtol=1e-5)


def test_the_derivative_test_can_fail():
    q, other = Q(2, alpha=0.3), Q(2, alpha=0.31)
    beta, step = np.array([1.0, 2.0, -3.0]), 1e-5
    move = np.array([step, 0, 0])
    quotient = (q(beta + move) - q(beta - move)) / (2 * step)
    assert abs(quotient - other.gradient(beta)[0]) > 1e-2


def test_scale_may_be_given_in_three_ways():
    beta = np.array([0.2, -3.0])
    for depth in (2, 3, 7):
        values = [Q(depth, alpha=0.5)(beta), Q(depth, log_alpha=np.log(0.5))(beta),
                  Q(depth, mu=0.5**depth)(beta)]  # fmt: skip
        assert values[1:] == pytest.approx([values[0]] * 2, rel=1e-13)


@pytest.mark.parametrize("log_alpha", [-4605.0, -700.0, 300.0, 690.0])
@pytest.mark.parametrize("depth", [2, 3, 10])
def test_extreme_scales_stay_finite_and_ordered(depth, log_alpha):
    q = Q(depth, log_alpha=log_alpha)
    beta = np.array([1e-3, 1.0, 1e3])
    gradient = q.gradient(beta)
    assert np.isfinite(gradient).all()
    assert np.isfinite(q(beta))
    assert (np.diff(gradient) >= 0).all()
    if log_alpha < 0 and depth == 2:  # arcsinh(x) = log 2x + O(x^-2)
        np.testing.assert_allclose(gradient, np.log(beta) - 2 * log_alpha, rtol=1e-14)
    if log_alpha < 0 and depth > 2:
        np.testing.assert_allclose(gradient, 1.0, rtol=1e-14)


def test_r_is_the_shortest_move_in_the_parameters():
    from scipy.optimize import minimize_scalar

    alpha = 0.6
    for z in (0.05, 1.0, 40.0):
        best = minimize_scalar(
            lambda v, z=z: (np.sqrt(z + v * v) - alpha) ** 2 + (v - alpha) ** 2,
            bounds=(0, 1), method="bounded", options={"xatol": 1e-12},
        )  # fmt: skip
        assert R(alpha=alpha)([z]) == pytest.approx(best.fun, rel=1e-9)


def test_shape_weighs_coordinates_as_the_theorem_says():
    """W eq. (5): alpha^2 w0^2 q(beta / alpha^2 w0^2), coordinate by coordinate."""
    beta, alpha = np.array([0.4, -1.0, 7.0]), 0.3
    by_hand = sum(Q(2, alpha=alpha * abs(w))([b]) for w, b in zip(SHAPE, beta, strict=True))
    assert Q(2, alpha=alpha, shape=SHAPE)(beta) == pytest.approx(by_hand, rel=1e-13)
    assert Q(2, alpha=alpha)(beta) != pytest.approx(by_hand, rel=1e-3)


def test_norms_are_what_they_are_called():
    beta = np.array([3.0, -4.0])
    assert L1()(beta) == 7
    assert L2()(beta) == 25
    assert L2([2.0, 1.0])(beta) == 34
    assert L2(squared=False)(beta) == 5
    assert L2([2.0, 1.0], squared=False)(beta) == pytest.approx(np.sqrt(34), rel=1e-15)
    assert Lp(3)(beta) == pytest.approx(91 / 3)
    assert list(L1().gradient([2.0, 0.0])) == [1, 0]
    assert Lp(0.5)([4.0]) == pytest.approx(4.0)


def test_regularizers_print_what_they_are():
    assert str(Q(3, alpha=1.0)) == "Q(depth=3, log_alpha=0)"
    assert str(R(alpha=1.0)) == "R(log_alpha=0)"
    assert str(Lp(3)) == "Lp(3)"


@pytest.mark.parametrize("depth", [2, 3, 10])
def test_the_conjugate_is_that_of_the_value(depth):
    q = Q(depth, alpha=0.7, shape=[0.5, 1.0, 2.0, 1.5], tilt=[0.1, 0.0, -0.02, 0.01])
    s = np.array([-0.9, 1e-5, 0.3, 0.999]) / q.kappa - q.tilt
    beta = q.primal_of(s)
    apart = q.conjugate_of(s) - (s * beta - q.terms(beta))
    assert (np.abs(apart) <= 1e-14 * np.abs(s * beta)).all()  # the difference cancels


@pytest.mark.parametrize("depth", [2, 3, 10])
def test_the_conjugate_near_zero_is_half_the_product(depth):
    """Also where the square of s underflows: both are quadratic there."""
    q, s = Q(depth, log_alpha=400.0 / depth), np.array([1e-170, -1e-200])
    np.testing.assert_allclose(q.conjugate_of(s), s * q.primal_of(s) / 2, rtol=1e-12)
