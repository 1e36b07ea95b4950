"""derive: formulas found by hand, flows in the parameters, the sources' Q, and every refusal."""

import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp

import penchant
from penchant import L2, NumericalError, Q, derive, interpolate
from penchant.lab import Kind
from refusals import refusals

BETA = np.array([-300.0, -2.0, -0.7, -1e-3, -1e-9, 1e-12, 1e-5, 0.1, 1.0, 7.0, 1e4])


def regression(samples=3, features=8, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(samples, features)), rng.normal(size=samples)


@functools.cache
def power(depth, alpha):
    return derive(lambda w: w**depth, start=alpha)


# The sources' Q, without being told


@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 0.7, 1e6])
@pytest.mark.parametrize("depth", [2, 3, 5])
def test_powers_reproduce_q_in_value_and_gradient(depth, alpha):
    derived, q = power(depth, alpha), Q(depth=depth, alpha=alpha)
    for beta in (BETA, BETA * alpha**depth):
        np.testing.assert_allclose(derived.gradient(beta), q.gradient(beta), rtol=1e-12)
        np.testing.assert_allclose(derived.terms(beta), q.terms(beta), rtol=1e-11)
        assert derived(beta) == pytest.approx(q(beta), rel=1e-12)
    wrong = Q(depth=depth, alpha=1.001 * alpha)
    assert np.abs(derived.terms(beta) / wrong.terms(beta) - 1).max() > 1e-4


@pytest.mark.parametrize(("depth", "factor"), [(2, 4.0), (3, 3 * 0.2), (5, 15 * 0.2**3)])
def test_the_unit_is_that_of_the_sources(depth, factor):
    # W Appendix D: nu = -4 int r; W eq. (58): nu = -alpha^(D-2) D (D-2) int r
    assert power(depth, 0.2).unit == pytest.approx(factor, rel=1e-12)
    raw = derive(lambda w: w**depth, start=0.2, unit=1.0)
    np.testing.assert_allclose(factor * raw.gradient(BETA), power(depth, 0.2).gradient(BETA))


@pytest.mark.parametrize(("depth", "alpha"), [(2, 1e-3), (2, 0.7), (3, 1e-3), (3, 0.7), (5, 1e-2)])
def test_powers_select_the_interpolant_of_q(depth, alpha):
    X, y = regression(4, 12, seed=depth)
    solution = interpolate(X, y, power(depth, alpha))
    expected = interpolate(X, y, Q(depth=depth, alpha=alpha)).beta
    np.testing.assert_allclose(solution.beta, expected, atol=1e-10)
    assert solution.residual < 1e-12
    assert solution.kkt < 1e-12
    assert np.abs(solution.beta - interpolate(X, y, L2()).beta).max() > 1e-5


def test_slacks_far_below_rounding_are_resolved():
    # D = 5 at 1e-6: 1 - |s| is about 1e-18, so s alone could not tell beta
    X, y = regression()
    solution = interpolate(X, y, power(5, 1e-6))
    expected = interpolate(X, y, Q(depth=5, alpha=1e-6)).beta
    np.testing.assert_allclose(solution.beta, expected, atol=1e-10)
    assert solution.residual < 1e-12


def test_a_start_per_coordinate_is_the_shape_of_q():
    shape = np.linspace(0.3, 1.0, 8)
    X, y = regression()
    derived = derive(lambda w: w**3, start=0.2 * shape)
    q = Q(depth=3, alpha=0.2, shape=shape)
    assert derived.dimension == 8
    np.testing.assert_allclose(derived.gradient(BETA[:8]), q.gradient(BETA[:8]), rtol=1e-11)
    np.testing.assert_allclose(
        interpolate(X, y, derived).beta, interpolate(X, y, q).beta, atol=1e-10
    )
    flat = interpolate(X, y, Q(depth=3, alpha=0.2)).beta
    assert np.abs(flat - interpolate(X, y, derived).beta).max() > 1e-3


# Laws solved by hand, in the raw clock w' = F'(w)


def gudermann(s, start):
    return np.tan(s + np.arctan(np.sinh(start)))


def tangent(s, start):
    w = np.tan(np.sqrt(3) * s + np.arctan(np.sqrt(3) * start)) / np.sqrt(3)
    return w + w**3


LAWS = {
    "w": (lambda w: w, 0.7, lambda s, a: a + s),
    "w^2": (lambda w: w**2, 0.3, lambda s, a: a**2 * np.exp(4 * s)),
    "w^3": (lambda w: w**3, 0.4, lambda s, a: (1 / a - 3 * s) ** -3.0),
    "w^5": (lambda w: w**5, 0.5, lambda s, a: (a**-3 - 15 * s) ** (-5 / 3)),
    "sinh": (jnp.sinh, 0.3, gudermann),
    "w+w^3": (lambda w: w + w**3, 0.2, tangent),
    "exp": (lambda w: jnp.exp(w), -0.5, lambda s, a: 1 / (np.exp(-a) - s)),
    "log": (lambda w: jnp.log(w), 2.0, lambda s, a: np.log(a**2 + 2 * s) / 2),
    "sin": (jnp.sin, 0.4, lambda s, a: np.tanh(s + np.arctanh(np.sin(a)))),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("signed", [True, False])
def test_laws_solved_by_hand(name, signed):
    map, start, law = LAWS[name]
    derived = derive(map, start, signed=signed, unit=1.0)
    s = np.array([-0.3, -0.1, -1e-3, 0.0, 1e-7, 0.02, 0.25])
    expected = law(s, start) - (law(-s, start) if signed else 0)
    np.testing.assert_allclose(derived.inverse_gradient(s), expected, rtol=1e-9, atol=1e-16)
    np.testing.assert_allclose(derived.gradient(expected), s, rtol=1e-9, atol=1e-13)
    wrong = law(s, 1.001 * start) - (law(-s, 1.001 * start) if signed else 0)
    if name != "w":  # the identity forgets its start
        assert np.abs(derived.inverse_gradient(s) - wrong).max() > 1e-8


@pytest.mark.parametrize("start", [(0.1, 0.3), (-0.2, 0.5), (0.4, 0.4), (0.0, 0.7)])
def test_a_product_moves_on_a_hyperbola(start):
    u, v = start
    derived = derive(lambda u, v: u * v, start=start, unit=1.0)
    s = np.linspace(-1.5, 1.5, 9)
    # u' = v and v' = u
    grown, fading = (u + v) / 2 * np.exp(s), (u - v) / 2 * np.exp(-s)
    np.testing.assert_allclose(derived.inverse_gradient(s), grown**2 - fading**2, rtol=1e-11)
    np.testing.assert_allclose(derived.slope(s), 2 * (grown**2 + fading**2), rtol=1e-11)


def test_equal_factors_stay_on_the_saddles_stable_line():
    derived = derive(lambda u, v, w: u * v * w, start=(0.1, 0.1, 0.1), unit=1.0)
    low, high = derived.range
    assert low == 0.0
    assert high == np.inf
    s = np.array([-1e4, -10.0, 0.0, 5.0])  # every factor follows w' = w^2
    np.testing.assert_allclose(derived.inverse_gradient(s), (10 - s) ** -3.0, rtol=1e-10)


def test_biased_starts_of_a_pair():
    plus, minus = 0.2, 0.5
    derived = derive(lambda w: w**2, start=(plus, minus))
    assert derived.start_predictor == pytest.approx(plus**2 - minus**2)
    s = np.array([-2.0, -0.1, 0.0, 0.3, 4.0])
    expected = plus**2 * np.exp(s) - minus**2 * np.exp(-s)
    np.testing.assert_allclose(derived.inverse_gradient(s), expected, rtol=1e-12)
    assert derived(np.full(3, derived.start_predictor)) == 0.0


def test_the_identity_gives_l2():
    X, y = regression()
    solution = interpolate(X, y, derive(lambda w: w, start=3.0))
    np.testing.assert_allclose(solution.beta, interpolate(X, y, L2()).beta, atol=1e-13)


MAPS = {
    "w+w^3": (lambda w: w + w**3, 0.3, None),
    "sinh": (lambda w: jnp.sinh(w), 0.0, None),
    "w^2 unsigned": (lambda w: w**2, 0.4, False),
    "softplus": (lambda w: jax.nn.softplus(w), -1.0, None),
    "-w^3": (lambda w: -(w**3), 0.5, None),
    "uv": (lambda u, v: u * v, (0.1, -0.4), None),
    "uv+w^3": (lambda u, v, w: u * v + w**3, (0.2, 0.3, 0.4), None),
    "leaky": (lambda w: jnp.where(w > 0, w, 0.1 * w) ** 3 + w, 0.2, None),
}


@functools.cache
def mapped(name):
    map, start, signed = MAPS[name]
    return derive(map, start, signed)


@functools.cache
def bounded(signed):
    return derive(lambda w: jnp.tanh(w), 0.2, signed)


@pytest.mark.parametrize("name", MAPS)
@settings(deadline=None, derandomize=True, max_examples=5)
@given(logs=st.lists(st.floats(-6, 3), min_size=2, max_size=6), sides=st.integers(0, 63))
def test_the_gradient_is_increasing_and_has_the_inverse_b(name, logs, sides):
    derived = mapped(name)
    low, high = derived.range
    beta = np.array([(1 if sides >> i & 1 else -1) * 10.0**log for i, log in enumerate(logs)])
    beta = np.sort(np.where((low < beta) & (beta < high), beta, np.abs(beta)))
    s = derived.gradient(beta)
    assert np.all(np.diff(s)[np.diff(beta) > 1e-9 * np.abs(beta[1:])] > 0)
    # s may be known only to rounding, so allow what that does to b
    rounding = 1e-13 * np.abs(s) * derived.slope(s)
    assert np.all(np.abs(derived.inverse_gradient(s) - beta) <= 1e-10 * np.abs(beta) + rounding)


@pytest.mark.parametrize("name", ["w+w^3", "w^2 unsigned", "-w^3", "uv+w^3", "leaky"])
def test_the_value_is_the_integral_of_the_gradient(name):
    derived = mapped(name)
    origin = derived.start_predictor
    for beta in (0.03, 2.0):
        area, error = quad(lambda b: derived.gradient(np.array([b]))[0], origin, beta, epsrel=1e-9)
        assert derived(np.array([beta])) == pytest.approx(area, rel=1e-8, abs=10 * error)


# Gradient flow in the parameters, written out by hand

FLOWS = {
    "w+w^3": (
        lambda w: w + w**3,
        0.3,
        lambda p: (p[0] + p[0] ** 3) - (p[1] + p[1] ** 3),
        lambda p: np.stack([1 + 3 * p[0] ** 2, -1 - 3 * p[1] ** 2]),
        np.array([0.3, 0.3]),
    ),
    "sinh": (
        lambda w: jnp.sinh(w),
        1.2,
        lambda p: np.sinh(p[0]) - np.sinh(p[1]),
        lambda p: np.stack([np.cosh(p[0]), -np.cosh(p[1])]),
        np.array([1.2, 1.2]),
    ),
    "biased uv": (
        lambda u, v: u * v,
        (0.3, -0.1),
        lambda p: p[0] * p[1],
        lambda p: p[::-1],
        np.array([0.3, -0.1]),
    ),
}


@pytest.mark.parametrize("name", FLOWS)
def test_gradient_flow_ends_where_the_derived_regularizer_says(name):
    map, start, predictor, jacobian, begin = FLOWS[name]
    X, y = regression(seed=5)
    samples, features = X.shape

    def velocity(_, state):
        parameters = state[:-samples].reshape(2, features)
        residual = X @ predictor(parameters) - y
        return np.concatenate([(-jacobian(parameters) * (residual @ X)).ravel(), -residual])

    state = np.concatenate([np.repeat(begin, features), np.zeros(samples)])
    flow = solve_ivp(velocity, (0, 60), state, method="DOP853", rtol=1e-12, atol=1e-13)
    trained = predictor(flow.y[:-samples, -1].reshape(2, features))
    assert np.abs(X @ trained - y).max() < 1e-9  # the premise: training has interpolated
    solution = interpolate(X, y, derive(map, start, unit=1.0))
    np.testing.assert_allclose(solution.beta, trained, atol=1e-8)
    # in this unit the dual is the time integral of the residuals
    np.testing.assert_allclose(solution.dual, flow.y[-samples:, -1], atol=1e-8)
    for wrong in (L2(), Q(depth=2, alpha=0.3), Q(depth=3, alpha=0.3)):
        assert np.abs(interpolate(X, y, wrong).beta - trained).max() > 1e-4


# Where predictors end


@pytest.mark.parametrize(
    ("make", "low", "high"),
    [
        (lambda: bounded(None), -2.0, 2.0),
        (lambda: bounded(False), -1.0, 1.0),
        (lambda: mapped("w^2 unsigned"), 0.0, np.inf),
        (lambda: derive(lambda w: (w - 1) ** 2, 1.5, False), 0.0, np.inf),
        (lambda: derive(lambda w: 5 - w**4, 0.3, False), -np.inf, 5.0),
        (lambda: derive(lambda w: jnp.log(w), 0.5, False), -np.inf, np.inf),
        (lambda: derive(lambda w: jnp.tan(w), 0.5), -np.inf, np.inf),
        (lambda: derive(lambda w: w**0.5, 4.0, False), 0.0, np.inf),
    ],
)
def test_the_range_is_what_training_can_reach(make, low, high):
    for end, expected in zip(make().range, (low, high), strict=True):
        assert end == expected or abs(end - expected) < 1e-9


def test_predictors_out_of_reach_are_refused_with_the_interval():
    derived = bounded(False)
    with pytest.raises(ValueError, match=r"beta\[1\] = 1.5 .* training cannot reach it.*\(-1, 1\)"):
        derived(np.array([0.5, 1.5]))
    assert derived(np.array([0.5, 0.999])) > 0


def test_a_line_that_leaves_the_domain_of_the_map_ends_there():
    derived = derive(lambda w: w**0.5, start=1.0, signed=False, unit=1.0)
    # w' = 1/(2 sqrt w) reaches w = 0 at s = -4/3
    s = np.array([-1.4, -1.3, 1.0])
    beta = derived.inverse_gradient(s)
    assert np.isnan(beta[0])
    np.testing.assert_allclose(beta[1:], (1 + 0.75 * s[1:]) ** (1 / 3), rtol=1e-10)


def test_the_closed_end_has_a_value_and_an_infinite_gradient():
    derived = mapped("w^2 unsigned")
    assert derived.gradient(np.zeros(1))[0] == -np.inf
    assert derived(np.zeros(1)) == pytest.approx(0.16, rel=1e-12)  # b log(b/a^2) - b + a^2


def test_unreachable_targets_are_infeasible():
    X = np.abs(regression()[0])
    solution = interpolate(X, X @ np.full(8, 3.0), bounded(None), throw=False)
    assert solution.outcome.kind is Kind.INFEASIBLE
    with pytest.raises(NumericalError, match="no predictor inside the range"):
        interpolate(X, -X @ np.ones(8), mapped("w^2 unsigned"))
    assert interpolate(X, X @ np.full(8, 1.9), bounded(None)).residual < 1e-9


def test_outside_the_box_b_is_infinite():
    s = np.array([-1.1, 0.5, 1.2])
    beta = power(3, 0.2).primal_of(s)
    np.testing.assert_array_equal(beta[[0, 2]], [-np.inf, np.inf])
    assert beta[1] == pytest.approx(0.2**3 * (0.5**-3 - 1.5**-3))


# Closed forms

s, beta = sympy.symbols("s beta", real=True)
alpha, u0, v0 = sympy.symbols("alpha u0 v0", positive=True)


def test_depth_two_is_recognised():
    form = power(2, 0.3).closed_form
    root = sympy.sqrt(4 * alpha**4 + beta**2)
    gradient = sympy.asinh(beta / (2 * alpha**2))
    assert sympy.simplify(form.primal - 2 * alpha**2 * sympy.sinh(s)) == 0
    assert sympy.simplify(form.gradient - gradient) == 0
    assert sympy.simplify(form.value - (2 * alpha**2 - root + beta * gradient)) == 0
    assert form.name == "Q(depth=2, alpha=0.3)"


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_deeper_powers_are_recognised(depth):
    form = power(depth, 0.2).closed_form
    p = sympy.Rational(depth, depth - 2)
    expected = alpha**depth * ((1 - s) ** -p - (1 + s) ** -p)
    assert sympy.simplify(form.primal - expected) == 0
    assert form.gradient is None
    assert form.name == f"Q(depth={depth}, alpha=0.2)"


def test_a_product_has_a_closed_form():
    form = derive(lambda u, v: u * v, start=(0.2, 0.5)).closed_form
    expected = ((u0 + v0) ** 2 * sympy.exp(s) - (u0 - v0) ** 2 * sympy.exp(-s)) / 4
    assert sympy.simplify(form.primal - expected) == 0
    assert sympy.simplify(sympy.diff(form.value, beta) - form.gradient) == 0
    assert sympy.simplify(form.primal.subs(s, form.gradient) - beta) == 0
    assert form.name is None


@pytest.mark.parametrize("name", ["w^3", "sinh", "w+w^3", "exp", "log", "sin"])
def test_closed_forms_agree_with_the_numbers(name):
    map, start, _ = LAWS[name]
    derived = derive(map, start, signed=False)
    form = derived.closed_form
    at = 0.1 * derived.unit * np.array([-1.0, 0.3, 1.0])
    found = sympy.lambdify(sympy.Symbol("s", real=True), form.primal.subs(form.starts))(at)
    np.testing.assert_allclose(found, derived.inverse_gradient(at), rtol=1e-10)


def test_maps_without_a_formula_say_so():
    assert bounded(None).closed_form is None
    assert "none found" in repr(bounded(None))


def test_a_wrong_formula_is_not_accepted():
    from penchant.regularizers.derive.closed_form import Search

    search = Search(power(3, 0.2))
    right = power(3, 0.2).closed_form.primal.subs(alpha, 0.2)
    args = (search.s, search.dual_samples, search.samples)
    assert search.agrees(right, *args)
    assert not search.agrees(1.0001 * right, *args)


def test_it_prints_as_a_table():
    derived = power(2, 0.3)
    assert str(derived) == "derive(lambda w: ..., start=0.3)"
    assert "w**2, signed pair" in repr(derived)
    assert "from -inf to inf" in repr(derived)
    assert "2*alpha**2*sinh(s)" in repr(derived)
    assert "Q(depth=2, alpha=0.3)" in derived._repr_html_()
    assert "<table>" in derived._repr_html_()


# Refusals


def branching(w):
    return w if w > 0 else -w


test_wrong_input_is_refused_in_one_sentence = refusals(
    (lambda: derive(3.0, 1.0), "must be a function"),
    (lambda: derive(lambda: 1.0, 1.0), "at least one parameter"),
    (lambda: derive(lambda *w: w[0], 1.0), "one by one"),
    (lambda: derive(lambda w: np.sinh(w), 1.0), r"jnp\.sinh, not np\.sinh"),
    (lambda: derive(branching, 1.0), "without branching on values"),
    (lambda: derive(lambda w: w @ np.ones(3), 1.0), "one coordinate at a time"),
    (lambda: derive(lambda w: 2.0, 1.0), "does not depend on its parameters"),
    (lambda: derive(lambda w: 0 * w, 1.0), "does not depend on its parameters"),
    (lambda: derive(lambda w: jnp.array([w, w]), 1.0), r"returns shape \(2,\)"),
    (lambda: derive(lambda w: 1j * w, 1.0), "complex128"),
    (lambda: derive(lambda w: w / w.sum(), np.ones(3)), "not separable|not depend"),
    (lambda: derive(lambda w: jnp.cumsum(w), np.ones(3)), r"one number, but it returns shape"),
    (lambda: derive(lambda w: w**2 + jnp.sum(w), 1.0), "not separable"),
    (lambda: derive(lambda w: jnp.sum(w**2), 1.0), "not separable"),
    (
        lambda: derive(lambda w: w**2, 0.0),
        "gradient zero at the start w = 0, so",
    ),
    (lambda: derive(lambda u, v: u * v, (0.0, 0.0)), "u = 0, v = 0, so gradient flow never"),
    (lambda: derive(lambda w: jnp.log(w), -1.0), "not finite at the start w = -1"),
    (lambda: derive(lambda w: jnp.sqrt(w), 0.0), "not differentiable at the start"),
    (lambda: derive(lambda w: w**2, 1e-200), "leaves double precision; rescale"),
    (lambda: derive(lambda w: w**2, np.nan), "must be finite"),
    (lambda: derive(lambda w: w**2, "a"), "must hold real numbers, got strings"),
    (lambda: derive(lambda w: w**2, 1j), "complex numbers"),
    (lambda: derive(lambda w: w**2, []), "must not be empty"),
    (lambda: derive(lambda w: w**2, np.ones((2, 2))), r"1 dimension\(s\), got shape \(2, 2\)"),
    (lambda: derive(lambda w: w**2, (np.ones(3), np.ones(4))), "one length, got 3 and 4"),
    (lambda: derive(lambda w: w**2, (1.0, 1.0, 1.0)), "got a tuple of 3"),
    (lambda: derive(lambda w: w**2, (1.0, 1.0), signed=False), "no tuple"),
    (lambda: derive(lambda u, v: u * v, 1.0), "for each of the map's 2 arguments u, v"),
    (lambda: derive(lambda u, v: u * v, (1.0, 1.0, 1.0)), "got a tuple of 3"),
    (lambda: derive(lambda w: w**2, 1.0, unit=0.0), "unit must be > 0"),
    (lambda: derive(lambda w: w**2, np.ones(3))(np.ones(4)), "must have 3 entries, got 4"),
    by="derive",
)


def test_signed_pairs_of_several_arguments():
    pair = derive(lambda u, v: u * v, start=((0.1, 0.2), (0.3, 0.1)), signed=True, unit=1.0)
    assert pair.start_predictor == pytest.approx(0.02 - 0.03)
    with mpmath.workdps(30):
        grown = [mpmath.mpf(a + b) ** 2 / 4 for a, b in ((0.1, 0.2), (0.3, 0.1))]
        fading = [mpmath.mpf(a - b) ** 2 / 4 for a, b in ((0.1, 0.2), (0.3, 0.1))]
        e = mpmath.exp(mpmath.mpf("0.8"))  # at s = 0.4
        expected = (grown[0] * e - fading[0] / e) - (grown[1] / e - fading[1] * e)
    assert pair.inverse_gradient(np.array([0.4]))[0] == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("call", [derive, penchant.models.Reparametrized])
def test_a_function_of_numpy_is_refused_and_ends_no_process(call):
    """JAX holds functions weakly, which NumPy's do not allow: a few such calls ended Python."""
    for _ in range(100):
        with pytest.raises(ValueError, match=r"write it with jax.numpy \(jnp.sinh, not np.sinh\)"):
            call(np.square, start=0.5)
