"""Penalties: subgradients by their inequality, proximal maps by minimisation, NumPy and JAX."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from penchant import (
    L1,
    L2,
    FunctionModel,
    GradientDescent,
    Q,
    Regression,
    Steps,
    derive,
    interpolate,
    max_margin,
    train,
)
from penchant.lab import double_precision
from penchant.models import LinearPredictor
from penchant.regularizers import (
    Blocks,
    Custom,
    DerivativeMatch,
    Frobenius,
    Linf,
    Lp,
    Nuclear,
    Penalty,
    PerTensor,
    R,
    Schatten,
    Spectral,
)
from refusals import refusals

MIXED = Blocks([(L1(), 1), (None, 1), (L2(squared=False), 2)])
FLAT = [
    L1(),
    L2(),
    L2([0.5, 1.0, 2.0, 3.0]),
    L2(squared=False),
    Linf(),
    Lp(1.0),
    Lp(1.3),
    Lp(2.0),
    Lp(3.5),
    Q(2, mu=0.1),
    Q(2, mu=0.1, shape=[0.5, 1.0, 2.0, 3.0]),
    Q(3, mu=0.3),
    Q(10, mu=0.01),
    R(mu=0.2),
    Nuclear((2, 2)),
    Spectral((2, 2)),
    MIXED,
    0.7 * L1(),
    0.5 * L2() + 0.0 * L1(),
]
TREES = [  # these also act on pytrees of matrices and vectors
    Nuclear(),
    Spectral(),
    Frobenius(),
    Schatten(Q(2, mu=0.2)),
    Schatten(Q(4, mu=0.2)),
    PerTensor(L2(squared=False)),
]
PENALTIES = [*FLAT, *TREES]
EACH = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
# zeros on purpose: that is where the penalties have corners
ENTRY = st.one_of(st.just(0.0), st.floats(-3, 3).map(lambda x: round(x, 3)))
POINT = st.lists(ENTRY, min_size=4, max_size=4).map(np.array)
ALWAYS = settings(deadline=None, derandomize=True, max_examples=60)
SOME = settings(deadline=None, derandomize=True, max_examples=8)


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

    def everything(theta, weight):
        return penalty.value(theta), penalty.subgradient(theta), penalty.prox(theta, weight)

    with double_precision():
        compiled = jax.jit(everything)(theta, 0.3)
    for found, plain in zip(compiled, everything(theta, 0.3), strict=True):
        np.testing.assert_allclose(found, plain, atol=1e-14)


def test_corners_choose_the_source_s_subgradient():
    assert not L1().subgradient(np.zeros(3)).any()
    assert not L2(squared=False).subgradient(np.zeros(3)).any()
    assert not Nuclear((2, 2)).subgradient(np.zeros(4)).any()
    np.testing.assert_array_equal(L1().subgradient(np.array([2.0, 0.0, -1.0])), [1, 0, -1])


def test_the_nuclear_subgradient_of_a_low_rank_matrix_is_that_of_its_compact_svd():
    u, v = np.array([1.0, 2.0, 2.0]), np.array([3.0, 0.0, 4.0, 0.0])
    slope = Nuclear((3, 4)).subgradient(np.outer(u, v).ravel())
    np.testing.assert_allclose(slope, np.outer(u, v).ravel() / 15, atol=1e-14)
    # all singular vectors, not the compact ones, would give a matrix of norm sqrt(3)
    assert abs(np.linalg.norm(slope) - 1) < 1e-12


def test_blocks_treat_every_tensor_apart():
    theta = np.array([-2.0, 5.0, 3.0, 4.0])
    assert MIXED.value(theta) == 2 + 5
    np.testing.assert_allclose(MIXED.subgradient(theta), [-1, 0, 0.6, 0.8])
    np.testing.assert_allclose(MIXED.prox(theta, 1.0), [-1, 5, 2.4, 3.2])
    both = Blocks([(L2(), 2), (Custom(lambda w: w.sum()), 2)])
    assert both.curvature == 2
    assert not both.has_prox
    assert MIXED.has_prox


def test_a_user_s_penalty_is_differentiated_unless_it_brings_a_subgradient():
    theta = np.array([1.0, -2.0])
    quartic = Custom(lambda w: (w**4).sum())
    with double_precision():
        np.testing.assert_allclose(quartic.subgradient(theta), 4 * theta**3)
    given = Custom(lambda w: abs(w).sum(), subgradient=np.sign, prox=L1().prox)
    np.testing.assert_array_equal(given.subgradient(theta), [1, -1])
    np.testing.assert_array_equal(given.prox(theta, 1.5), [0, -0.5])
    assert given.has_prox
    assert not quartic.has_prox


test_wrong_penalties_are_refused = refusals(
    (lambda: Custom(3), "Custom: value must be a function, got 3"),
    (lambda: Custom(abs).prox(np.ones(2), 1.0), "no proximal map"),
    (lambda: Nuclear((3, 4)).value(np.ones(4)), "12 entries but there are 4 parameters"),
    (lambda: Nuclear(3), r"shape must be \(rows, columns\) or None, got 3"),
    (lambda: Nuclear().value(np.ones((2, 2, 2))), r"vectors, got shape \(2, 2, 2\)"),
    (lambda: -1 * L1(), "Penalty: weight must be a finite number >= 0, got -1"),
    (lambda: np.nan * L1(), "Penalty: weight must be a finite number >= 0, got nan"),
    (lambda: Penalty(1.0, "l1"), r"Penalty: expected a regularizer such as L1\(\)"),
    (lambda: L2([1.0, 2.0]).value(np.ones(3)), r"one array of 2 entries, got 1 of \[3\]"),
    (lambda: Lp(0.5).prox(np.ones(2), 1.0), r"Lp\(p=0.5\): no proximal map is known; L1"),
    (lambda: (L1() + L2()).prox(np.ones(2), 1.0), "known only if one weight is not 0"),
    (lambda: MIXED.value({"a": np.ones(4)}), "must be one flat array, got dict"),
    (lambda: MIXED.value(np.ones(3)), "Blocks: 4 parameters in blocks but 3 are given"),
    (
        lambda: DerivativeMatch(LinearPredictor(), np.ones((4, 3)), np.ones((4, 2))),
        r"one row per point.*\(4, 3\), got \(4, 2\)",
    ),
)


def test_a_penalty_and_a_number_have_no_sum():
    with pytest.raises(TypeError, match="unsupported operand"):
        L1() + 3


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
    problem, model = Regression(x, x @ truth, truth, loss="half squares"), LinearPredictor()
    penalty = DerivativeMatch(model, x, truth[None])
    taught = train(
        model,
        problem,
        GradientDescent(0.5, subgradient=True),
        penalty=0.1 * penalty,
        stop=Steps(400),
    )
    np.testing.assert_allclose(taught.predictor, truth, atol=1e-8)
    plain = train(model, problem, GradientDescent(0.5, subgradient=True), stop=Steps(400))
    assert np.abs(plain.predictor - truth).max() > 1


# ---- multiples, sums, pytrees ----


def test_a_number_times_a_regularizer_is_a_penalty():
    penalty = 1e-5 * L1()
    assert penalty == Penalty(1e-5, L1()) == np.float64(1e-5) * L1() == L1() * 1e-5
    assert hash(penalty) == hash(1e-5 * L1())
    assert penalty not in (1e-5 * L2(), 2e-5 * L1(), L1())
    assert 2 * (3 * L1()) == 6 * L1()
    assert 2 * (L1() + 3 * L2()) == 2 * L1() + 6 * L2()
    both = 0.5 * L1() + 2 * L2()
    theta = np.array([1.0, -2.0])
    assert both.value(theta) == 1.5 + 10
    np.testing.assert_array_equal(both.subgradient(theta), [4.5, -8.5])
    assert (both.curvature, both.smooth, both.has_prox) == (4, False, False)
    assert (0 * Custom(np.sum)).has_prox


def test_equal_arguments_make_equal_regularizers():
    texts = [
        "L1()",
        "L2()",
        "L2([1.0, 2.0])",
        "Lp(3)",
        "Q(3, mu=0.1)",
        "Q(mu=0.1, shape=[1.0, 2.0])",
        "Nuclear()",
        "Schatten(Q(2, mu=0.1))",
        "PerTensor(L1())",
        "Blocks([(L1(), 3)])",
    ]
    for text in texts:
        one, other = eval(text), eval(text)
        assert one == other
        assert hash(one) == hash(other)
    assert Q(2, mu=0.1) != Q(2, mu=0.2)
    assert L2([1.0, 2.0]) != L2([1.0, 3.0])
    assert L2() != L2(squared=False)


def test_weight_decay_is_half_its_rate_times_l2():
    theta = np.array([1.0, -3.0])
    np.testing.assert_array_equal((0.5 * 0.2 * L2()).subgradient(theta), 0.2 * theta)
    assert L2().curvature == L2([1.0, 0.3]).curvature == Frobenius().curvature == 2


def test_smooth_penalties_are_marked():
    assert [h.smooth for h in (L1(), L2(), L2(squared=False), Lp(1.5), Lp(1), Q(alpha=1.0))] == [
        False, True, False, True, False, True]  # fmt: skip
    assert not Nuclear().smooth
    assert Frobenius().smooth


@ALWAYS
@given(x=POINT, y=POINT, weight=st.floats(0.01, 2))
def test_a_pytree_is_treated_as_its_entries_together(x, y, weight):
    tree, flat = {"b": x.reshape(2, 2), "a": [y]}, np.concatenate([y, x])
    for h in (L1(), L2(), L2(squared=False), Lp(1.5), Q(2, mu=0.1), 0.3 * L1() + L2()):
        assert h.value(tree) == pytest.approx(h.value(flat), rel=1e-13)
        actions = [h.subgradient, *[lambda t, h=h: h.prox(t, weight)] * h.has_prox]
        for act in actions:
            found, wanted = act(tree), act(flat)
            assert found["b"].shape == (2, 2)
            np.testing.assert_allclose(found["a"][0], wanted[:4], rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(found["b"].ravel(), wanted[4:], rtol=1e-12, atol=1e-15)


@ALWAYS
@given(x=POINT, y=POINT, weight=st.floats(0.01, 2))
def test_tensors_apart_are_treated_one_by_one(x, y, weight):
    tree = {"b": x.reshape(2, 2), "a": y}
    for h in (Nuclear(), Schatten(Q(3, mu=0.1)), PerTensor(L2(squared=False))):
        assert h.value(tree) == pytest.approx(h.value(x.reshape(2, 2)) + h.value(y), rel=1e-13)
        for act in (h.subgradient, lambda t, h=h: h.prox(t, weight)):
            found = act(tree)
            np.testing.assert_allclose(found["b"], act(x.reshape(2, 2)), atol=1e-14)
            np.testing.assert_allclose(found["a"], act(y), atol=1e-14)
    # two tensors together are no two tensors apart
    assert PerTensor(L2(squared=False)).value([np.ones(2), np.ones(2)]) > 1.2 * np.sqrt(4)


@SOME
@given(x=POINT, z=POINT, weight=st.floats(0.05, 2))
def test_matrices_meet_the_inequalities_too(x, z, weight):
    for h in (Nuclear(), Frobenius(), Schatten(Q(2, mu=0.2)), Schatten(Q(4, mu=0.2))):
        x, z = x.reshape(2, 2), z.reshape(2, 2)
        assert h.value(z) - h.value(x) - (h.subgradient(x) * (z - x)).sum() >= -1e-12
        near = h.prox(x, weight)
        pull = (x - near) / weight
        assert h.value(z) - h.value(near) - (pull * (z - near)).sum() >= -1e-10 / weight


def test_a_vector_is_one_column():
    v = np.array([3.0, 0.0, -4.0])
    for h in (Nuclear(), Schatten(Q(3, mu=0.1)), Frobenius()):
        assert h.value(v) == pytest.approx(h.value(v[:, None]), rel=1e-14)
        np.testing.assert_allclose(h.subgradient(v), h.gradient(v[:, None])[:, 0], atol=1e-14)
    assert Nuclear().value(v) == 5


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_rounding_in_the_precision_of_the_leaf_is_no_direction(precision):
    rng = np.random.default_rng(0)
    matrix = (rng.standard_normal((40, 2)) @ rng.standard_normal((2, 30))).astype(precision)
    slope = Nuclear().subgradient(matrix)
    assert slope.dtype == precision
    assert np.linalg.norm(slope) ** 2 == pytest.approx(2, rel=1e-5)


def test_float32_stays_float32_in_compiled_code():
    import jax

    theta = {"a": np.ones((3, 2), np.float32), "b": np.ones(4, np.float32)}
    with double_precision():
        for h in (L1(), L2(), L2(squared=False), Lp(1.5), Q(3, mu=0.1), Nuclear(), 0.1 * Nuclear()):
            made = jax.jit(lambda t, h=h: (h.subgradient(t), h.prox(t, 0.1)))(theta)
            assert {leaf.dtype for leaf in jax.tree.leaves(made)} == {np.dtype(np.float32)}, h


@pytest.mark.parametrize("depth", [2, 3, 8])
@pytest.mark.parametrize("log_mu", [-600.0, -30.0, 3.0])
def test_q_and_its_proximal_map_at_far_scales(depth, log_mu):
    q, theta, weight = Q(depth, log_alpha=log_mu / depth), np.array([2.0, -0.3, 1e-6]), 0.01
    near = q.prox(theta, weight)
    slopes = [dual_by_bisection(depth, log_mu, abs(float(z))) for z in near]
    np.testing.assert_allclose(np.abs(near) + weight * np.array(slopes), np.abs(theta), rtol=1e-9)
    assert (np.sign(near) == np.sign(theta)).all()


def dual_by_bisection(depth, log_mu, size):
    """The s >= 0 with mu h(s) = size, by mpmath."""
    import mpmath

    with mpmath.workdps(160):
        goal = mpmath.mpf(size) * mpmath.e**-log_mu
        if depth == 2:
            return float(mpmath.asinh(goal / 2))
        p = mpmath.mpf(depth) / (depth - 2)
        low, high = mpmath.mpf(-400), mpmath.mpf(0)  # s = 1 - e^x
        for _ in range(120):
            x = (low + high) / 2
            slack = mpmath.e**x
            low, high = (x, high) if slack**-p - (2 - slack) ** -p > goal else (low, x)
        return float(1 - mpmath.e**low)


def test_a_regularizer_without_a_jax_form_works_in_compiled_code():
    import jax

    derived, theta = derive(lambda w: w**2, start=0.3), np.array([0.5, -1.0, 2.0])
    q = Q(2, alpha=0.3)
    with double_precision():
        slope = np.asarray(jax.jit(derived.subgradient)(theta))
        value = float(jax.jit(derived.value)(theta))
    np.testing.assert_allclose(slope, q.subgradient(theta), rtol=1e-10)
    assert value == pytest.approx(q.value(theta), rel=1e-9)
    assert not derived.has_prox
    with pytest.raises(ValueError, match="no proximal map is known"):
        derived.prox(theta, 0.1)


@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 2.0, 4.0]])
def test_the_norm_selects_what_its_square_selects(weights):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((2, 4)), np.array([1.0, -2.0])
    norm, square = L2(weights, squared=False), L2(weights)
    for solver, labels in ((interpolate, y), (max_margin, np.sign(y))):
        found, wanted = solver(X, labels, norm), solver(X, labels, square)
        np.testing.assert_array_equal(found.beta, wanted.beta)
        assert found.value == pytest.approx(np.sqrt(wanted.value), rel=1e-14)
        # both duals prove it: gradient(beta) = X^T (signs * dual)
        signed = X.T if solver is interpolate else (X * labels[:, None]).T
        np.testing.assert_allclose(norm.gradient(found.beta), signed @ found.dual, atol=1e-12)
        np.testing.assert_allclose(square.gradient(found.beta), signed @ wanted.dual, atol=1e-12)
    zero = interpolate(X, np.zeros(2), norm)
    assert zero.value == 0
    assert not zero.beta.any()
