"""The Chatterjee-Lojasiewicz constant: exact, bounded, and what follows from it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from penchant.measures import Lojasiewicz, lojasiewicz, lojasiewicz_quadratic
from refusals import refusals

few = settings(max_examples=40, deadline=None, derandomize=True)


def ratios(X, y, points):
    residuals = points @ X.T - y
    return np.sum((residuals @ X) ** 2, axis=1) / (0.5 * np.sum(residuals**2, axis=1))


def disc(center, radius, rings=300, angles=4001):
    r, phi = np.meshgrid(np.linspace(0, radius, rings), np.linspace(0, 2 * np.pi, angles))
    return center + np.stack([r * np.cos(phi), r * np.sin(phi)], axis=-1).reshape(-1, 2)


PLANE = {
    "generic": ([[1.0, 0.5], [0.2, 0.3]], [1.0, -1.0], [3.0, -0.1], 0.5),
    "no interpolator": ([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [0.0, 0.0, 3.0], [3.0, 0.2], 2.0),
    "hard case": ([[2.0, 0.0], [0.0, 1.0]], [0.0, 0.0], [3.0, 0.0], 1.0),
    "nearly hard": ([[2.0, 0.0], [0.0, 1.0]], [0.0, 0.0], [3.0, 1e-9], 2.5),
    "nearly an interpolator": ([[2.0, 0.0], [0.0, 1.0]], [0.0, 0.0], [3.0, 0.1], 2.99),
}


@pytest.mark.parametrize("case", PLANE.values(), ids=PLANE.keys())
def test_exact_against_a_fine_grid_of_the_disc(case):
    X, y, center, radius = map(np.array, case)
    found = lojasiewicz_quadratic(X, y, center, float(radius))
    seen = ratios(X, y, disc(center, radius)).min()
    assert found.lower <= found.upper <= seen * (1 + 1e-9)
    assert found.error <= 1e-9 * found.upper
    assert seen == pytest.approx(found.upper, rel=1e-5)
    assert ratios(X, y, found.point[None])[0] == pytest.approx(found.upper, rel=1e-9)
    assert np.linalg.norm(found.point - center) <= radius * (1 + 1e-9)


@few
@given(
    seed=st.integers(0, 10**6),
    samples=st.integers(1, 6),
    dimension=st.integers(1, 6),
    radius=st.floats(0.01, 3),
)
def test_no_point_of_the_ball_is_below_the_exact_constant(seed, samples, dimension, radius):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(samples, dimension)), rng.normal(size=samples)
    center = rng.normal(size=dimension)
    found = lojasiewicz_quadratic(X, y, center, radius)
    away = rng.normal(size=(300, dimension))
    away *= radius * rng.uniform(size=(300, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    assert (ratios(X, y, center + away) >= found.lower * (1 - 1e-9)).all()
    assert found.lower >= 0.999999 * found.upper


def test_a_ball_with_an_interpolator_has_twice_the_least_curvature():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 6))
    center, y = rng.normal(size=6), rng.normal(size=3)
    far = np.linalg.norm(np.linalg.pinv(X) @ (y - X @ center))
    least = np.linalg.svd(X, compute_uv=False)[-1] ** 2
    inside = lojasiewicz_quadratic(X, y, center, 1.01 * far)
    assert inside.lower == inside.upper == pytest.approx(2 * least)
    assert lojasiewicz_quadratic(X, y, center, 0.3 * far).lower > 2.1 * least


def test_a_ball_with_a_least_squares_point_of_positive_loss_has_zero():
    found = lojasiewicz_quadratic([[1.0], [1.0]], [0.0, 2.0], [3.0], 2.5)
    assert found.lower == found.upper == 0
    assert found.holds is False
    assert found.zero_within == math.inf
    assert found.rate == 0


def test_the_condition_of_one_dimension_by_hand():
    # g = x^2/2 at 1: chi = 2, 4 g = 2, so r-CL means r > 1
    wide = lojasiewicz_quadratic([[1.0]], [0.0], [1.0], 1.001)
    assert wide.holds is True
    assert wide.zero_within == pytest.approx(1.0)
    assert wide.rate == pytest.approx(2.0)
    assert lojasiewicz_quadratic([[1.0]], [0.0], [1.0], 1.0).holds is False


def test_bounds_that_leave_the_condition_open_say_so():
    open_ = Lojasiewicz(1.0, 3.0, 0.5, 1.0, np.zeros(1), "by hand")
    assert open_.holds is None
    assert open_.error == 2.0
    assert "leave it open" in open_.sentence
    assert open_.rate == 0


def product(x):
    import jax.numpy as jnp

    return jnp.stack([x[0] * x[1] - 1.0])


@pytest.fixture(scope="module")
def hyperbola():
    return lojasiewicz(product, [1.5, 1.0], 0.6, lipschitz=1.0)


def test_residuals_are_bounded_from_both_sides(hyperbola):
    # |grad g|^2/g = 2 (x^2 + y^2): least at the point of the ball that is nearest to the origin
    exact = 2 * (np.hypot(1.5, 1.0) - 0.6) ** 2
    assert hyperbola.lower <= exact * (1 + 1e-9)
    assert hyperbola.upper >= exact * (1 - 1e-9)
    assert hyperbola.upper == pytest.approx(exact, rel=1e-4)
    assert hyperbola.lower == pytest.approx(exact, rel=0.05)


def test_the_flow_does_what_the_condition_promises(hyperbola):
    assert hyperbola.holds is True
    flow = solve_ivp(lambda t, x: -(x[0] * x[1] - 1) * x[::-1], (0, 8), [1.5, 1.0],
                     rtol=1e-10, atol=1e-12, dense_output=True)  # fmt: skip
    t = np.linspace(0, 8, 200)
    x = flow.sol(t)
    loss = 0.5 * (x[0] * x[1] - 1) ** 2
    # the loss of an integration at 1e-10 is rounding below 1e-16
    assert (loss <= hyperbola.loss * np.exp(-hyperbola.rate * t) + 1e-16).all()
    assert np.linalg.norm(x.T - [1.5, 1.0], axis=1).max() <= hyperbola.zero_within
    # the promise is not an empty one: a rate four times as large is broken
    assert (loss > hyperbola.loss * np.exp(-4 * hyperbola.rate * t) + 1e-16).any()


def wavy(x):
    import jax.numpy as jnp

    return jnp.sum(x**2 + 3 * jnp.sin(x) ** 2)


def test_a_loss_away_from_its_zeros_is_bounded_by_a_covering():
    found = lojasiewicz(wavy, [3.0], 1.0, lipschitz=8.0, starts=8, steps=100)
    x = np.linspace(2.0, 4.0, 200_001)
    seen = ((2 * x + 3 * np.sin(2 * x)) ** 2 / (x**2 + 3 * np.sin(x) ** 2)).min()
    assert found.lower <= seen
    assert found.upper == pytest.approx(seen, rel=1e-6)
    assert found.lower >= 0.95 * seen
    assert found.how == "covering by cubes"


def test_near_a_zero_and_without_constants_nothing_is_proved():
    near = lojasiewicz(wavy, [0.5], 1.0, lipschitz=8.0, starts=4, steps=20)
    assert near.lower == 0
    assert near.upper > 0
    blind = lojasiewicz(wavy, [3.0], 1.0, starts=2, steps=5)
    assert blind.lower == 0
    assert "give lipschitz" in blind.how
    assert blind.holds in (None, False)


def test_a_loss_without_a_zero_never_satisfies_the_condition():
    def raised(x):
        import jax.numpy as jnp

        return jnp.stack([x[0] ** 2 + 1.0])

    for radius in (0.5, 3.0):
        found = lojasiewicz(raised, [1.0], radius, lipschitz=2.0, starts=4, steps=50)
        assert found.holds is not True


def test_the_estimate_agrees_with_the_exact_constant():
    import jax.numpy as jnp

    rng = np.random.default_rng(4)
    X, y, center = rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=4)
    exact = lojasiewicz_quadratic(X, y, center, 0.4)
    found = lojasiewicz(lambda a: jnp.asarray(X) @ a - jnp.asarray(y), center, 0.4,
                        lipschitz=1e-9)  # fmt: skip
    assert exact.lower * (1 - 1e-9) <= found.upper <= exact.upper * (1 + 1e-6)
    assert 0 < found.lower <= exact.upper


test_bad_input_is_refused_in_a_sentence = refusals(
    (lambda: lojasiewicz_quadratic([[1.0]], [0.0], [1.0], 0.0), "radius must be > 0"),
    (lambda: lojasiewicz_quadratic([[1.0]], [0.0], [1.0, 2.0], 1.0), "center must have one"),
    (lambda: lojasiewicz_quadratic([[0.0]], [1.0], [1.0], 1.0), "X must not be all zero"),
    (lambda: lojasiewicz(product, [np.nan, 1.0], 1.0), "center must be finite"),
    (lambda: lojasiewicz(product, [1.0, 1.0], 1.0, lipschitz=-1.0), "lipschitz must be > 0"),
    (lambda: lojasiewicz(product, [1.5, 1.0], 0.6, lipschitz=0.1), "is too small"),
    (lambda: lojasiewicz(product, [1.0, 1.0], 1.0, starts=0), "starts must be at least 1"),
    (lambda: lojasiewicz(lambda x: x[:, None], [1.0], 1.0), "a number or a vector"),
    (lambda: lojasiewicz(lambda x: -(x**2).sum() - 1, [1.0], 1.0), "loss at the center"),
)
