"""derive in other geometries: by hand, by other maps of gradient flow, by training; refusals."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import penchant
from penchant import L1, L2, Adam, GradientDescent, Regression, Steps, derive, interpolate, train
from penchant.methods import EffectiveScale, SignDescent
from penchant.models import Reparametrized
from penchant.regularizers import Linf, Lp, Spectral
from refusals import refusals

BETA = np.array([-2.0, -0.5, 0.01, 0.03, 0.5, 3.0])
RNG = np.random.default_rng(4)
X = RNG.standard_normal((3, 6))
PROBLEM = Regression(X, X @ (0.2 * RNG.standard_normal(6)))


def product(u, v):
    return u * v


def square(w):
    return w**2


def cube(w):
    return w**3


def test_signs_on_a_product_are_known_by_hand_on_both_sides_of_zero():
    # |v| - |u| = gap is conserved and both weights move at speed one: beta = u (|u| + gap)
    potential = derive(product, start=(0.1, 0.3), geometry=Linf())
    gap = 0.2
    u = np.sign(BETA) * (np.sqrt(gap**2 + 4 * np.abs(BETA)) - gap) / 2
    np.testing.assert_allclose(potential.gradient(BETA), u - 0.1, atol=1e-14)
    np.testing.assert_allclose(potential.inverse_gradient(u - 0.1), BETA, rtol=1e-12)
    np.testing.assert_allclose(potential.slope(u - 0.1), 2 * np.abs(u) + gap, rtol=1e-10)

    def integral(b):
        return ((gap**2 + 4 * b) ** 1.5 - gap**3) / 12 - gap * b / 2 - 0.1 * b

    np.testing.assert_allclose(potential([0.5]), integral(0.5) - integral(0.03), rtol=1e-10)
    assert np.abs(derive(product, start=(0.1, 0.3)).gradient(BETA) - u + 0.1).max() > 0.1


def test_a_weight_that_signs_bring_to_zero_stays_there():
    pair = derive(square, start=0.1, geometry=Linf())
    np.testing.assert_allclose(pair.gradient([0.02, 1.0, -1.0]), [0.05, 0.9, -0.9], rtol=1e-12)
    assert pair.range == (-np.inf, np.inf)
    alone = derive(square, start=0.1, signed=False, geometry=Linf())
    assert alone.range[0] == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("p", [3.0, 4.0, 8.0])
def test_steepest_flow_is_gradient_flow_of_another_power(p):
    """w^D in l_p is z^(D/k), k = (D - 1)(1 - q/2) + 1, in the same time."""
    power = p / (p - 1)
    k = 2 * (1 - power / 2) + 1
    scale, start = k / 3 ** (1 - power / 2), 0.7
    own = derive(cube, start=start, signed=False, unit=1.0, geometry=Lp(p))
    other = derive(lambda z: (scale * z) ** (3 / k), start**k / scale, signed=False, unit=1.0)
    beta = np.array([0.4, 0.9, 2.0]) * start**3
    np.testing.assert_allclose(own.gradient(beta), other.gradient(beta), rtol=1e-8)


@pytest.mark.parametrize("p", [1.5, 4.0])
def test_a_pair_follows_its_own_differential_equation(p):
    power = 1 / (p - 1)

    def weight(s):
        def speed(_, w):
            return np.sign(s) * (3 * w**2) ** power

        return solve_ivp(speed, (0, abs(s)), [0.5], rtol=1e-12, atol=1e-14).y[0, -1]

    s = np.array([0.02, 0.1, 0.25])
    expected = [weight(x) ** 3 - weight(-x) ** 3 for x in s]
    derived = derive(cube, start=0.5, unit=1.0, geometry=Lp(p))
    np.testing.assert_allclose(derived.inverse_gradient(s), expected, rtol=1e-9)


def test_the_euclidean_geometry_is_that_of_gradient_flow():
    plain, named = (derive(product, start=(0.1, 0.3), geometry=g) for g in (None, L2()))
    np.testing.assert_array_equal(plain.gradient(BETA), named.gradient(BETA))


def test_steps_of_signs_keep_their_start_and_move_the_gradient_of_its_potential():
    net, method = penchant.DiagonalNet(2, alpha=0.5), EffectiveScale(SignDescent(1e-4))
    path = train(net, PROBLEM, method, stop=Steps(3000))
    potential, dual = penchant.forecasts.effective_regularizer(path), path.memory[-1]
    np.testing.assert_allclose(potential.starts.plus, 0.5, rtol=1e-12)
    np.testing.assert_allclose(potential.gradient(path.predictor), dual, atol=1e-12)
    euclidean = penchant.Q(2, alpha=0.5).gradient(path.predictor)
    assert np.abs(euclidean - dual).max() > 0.1
    # and yet the end is not the fit of least potential: the dual is no combination of the samples
    least = interpolate(X, X @ path.predictor, potential).beta
    assert np.abs(least - path.predictor).max() > 0.01
    adam = Adam(1e-4, mean_decay=0.0, square_decay=0.0, epsilon=0.0)
    other = train(net, PROBLEM, EffectiveScale(adam), stop=Steps(3000))
    np.testing.assert_allclose(other.memory[-1], dual, atol=1e-12)


def test_the_law_on_a_map_of_the_user():
    model = Reparametrized(product, start=(0.3, 0.6))
    path = train(model, PROBLEM, EffectiveScale(SignDescent(1e-4)), stop=Steps(1000))
    potential = penchant.forecasts.effective_regularizer(path, model)
    np.testing.assert_allclose(potential.gradient(path.predictor), path.memory[-1], atol=1e-12)


def flipped():
    net = penchant.DiagonalNet(2, alpha=0.05)
    path = train(net, PROBLEM, EffectiveScale(SignDescent(1e-3)), stop=Steps(500))
    assert "changed its sign" in path.outcome.sentence
    return penchant.forecasts.effective_regularizer(path)


test_geometries_without_a_regularizer = refusals(
    (lambda: derive(square, 0.1, geometry=L1()), r"Linf\(\) and Lp\(p\).*L1\(\) has no"),
    (lambda: derive(square, 0.1, geometry=Spectral()), "has no regularizer of single"),
    (lambda: derive(square, 0.1, geometry=Lp(1)), "has no regularizer of single"),
    (lambda: derive(square, 0.1, geometry="linf"), "'linf' has no regularizer"),
    by="derive",
)
test_methods_without_the_law = refusals(
    (lambda: EffectiveScale(SignDescent(1e-3, momentum=0.5)), "SignDescent without momentum"),
    (lambda: EffectiveScale(Adam(1e-3)), "Adam with mean_decay, square_decay, epsilon"),
    by="EffectiveScale",
)


def test_a_weight_that_changed_its_sign_has_left_the_law():
    with pytest.raises(ValueError, match="effective_regularizer: a weight changed its sign"):
        flipped()
    assert EffectiveScale(GradientDescent(0.1)).signs is False
