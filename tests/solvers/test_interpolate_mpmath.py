"""The float64 solvers and Q against mpmath, over depths, scales and shapes."""

import functools

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import minimize

import oracle
import oracle_q
from penchant import Q, interpolate
from penchant.regularizers import R
from penchant.solvers import interpolate_path

AGREE = 1e-10  # of max|beta|; what issue and users may rely on
EXACT = 1e-12  # relative, for values, gradients and inverse gradients


def random_problem(seed: int):
    """(X, y, shape) with N <= 4 and d <= 8; every third shape is all ones, one in five y sparse."""
    rng = np.random.default_rng(seed)
    samples = int(rng.integers(1, 5))
    dimension = int(rng.integers(samples + 1, 9))
    X = rng.normal(size=(samples, dimension))
    y = rng.normal(size=samples)
    if seed % 5 == 4:  # noise-free and sparse, the hard case for a Hessian
        y = 1.5 * X[:, 0] - 0.5 * X[:, -1]
    shape = (
        None
        if seed % 3 == 0
        else rng.choice([-1, 1], dimension) * np.exp(0.5 * rng.normal(size=dimension))
    )
    return X, y, shape


def distance(beta, reference) -> float:
    return float(np.abs(beta - reference.beta).max() / np.abs(reference.beta).max())


# 72 problems: every depth from 2 to 10 eight times, log alpha from 5 down to -1000
LOG_ALPHAS = (5.0, 0.5, -1.5, -6.0, -25.0, -110.0, -400.0, -1000.0)
CASES = [(depth, log_alpha) for depth in range(2, 11) for log_alpha in LOG_ALPHAS]


@pytest.mark.parametrize(("depth", "log_alpha"), CASES)
def test_interpolate_agrees_with_mpmath(depth, log_alpha):
    seed = 100 * depth + LOG_ALPHAS.index(log_alpha)
    X, y, shape = random_problem(seed)
    reference = oracle.solve(X, y, depth, log_alpha, shape)
    solution = interpolate(X, y, Q(depth=depth, log_alpha=log_alpha, shape=shape))
    assert solution.outcome.ok
    assert distance(solution.beta, reference) < AGREE
    assert solution.residual < 1e-9
    assert solution.kkt < 1e-9


def test_a_scale_one_part_in_a_million_away_is_distinguished():
    """The control: the comparison above would see a wrong scale, shape or depth."""
    X, y, shape = random_problem(1)
    reference = oracle.solve(X, y, 3, -1.5, shape)
    for wrong in (
        Q(depth=3, log_alpha=-1.5 * (1 + 1e-6), shape=shape),
        Q(depth=3, log_alpha=-1.5, shape=np.abs(shape) * (1 + 1e-6 * np.arange(len(shape)))),
        Q(depth=4, log_alpha=-1.5, shape=shape),
    ):
        assert distance(interpolate(X, y, wrong).beta, reference) > 10 * AGREE


@pytest.mark.parametrize(
    ("depth", "log_alpha"),
    [(2, -5000.0), (3, -5000.0), (4, -5000.0), (2, 690.0), (3, 690.0), (7, 690.0), (10, 690.0)],
)
def test_interpolate_agrees_at_extreme_scales(depth, log_alpha):
    X, y, shape = random_problem(7 * depth + (log_alpha > 0))
    reference = oracle.solve(X, y, depth, log_alpha, shape)
    solution = interpolate(X, y, Q(depth=depth, log_alpha=log_alpha, shape=shape))
    assert distance(solution.beta, reference) < AGREE


@pytest.mark.parametrize(("depth", "log_alpha"), [(2, -300.0), (3, -300.0), (6, -80.0)])
def test_flat_faces_are_split_as_the_flow_splits_them(depth, log_alpha):
    """Where l1 is not unique the minimiser is inside the face; both routes must find it."""
    X = np.array([[1.0, 1.0, 1.0, 0.0, 0.5], [1.0, -1.0, 0.0, 1.0, 0.25]])
    y = np.array([1.0, 0.5])
    shape = np.array([1.0, 1.3, 0.8, 1.1, 0.9]) if depth == 2 else None
    reference = oracle.solve(X, y, depth, log_alpha, shape)
    assert np.sum(np.abs(reference.beta) > 1e-3) > len(y), "premise: not a vertex"
    solution = interpolate(X, y, Q(depth=depth, log_alpha=log_alpha, shape=shape))
    assert distance(solution.beta, reference) < AGREE


PATH_SCALES = np.array([3.0, -0.5, -4.0, -17.0, -17.5, -90.0, -350.0, -1000.0])


@pytest.mark.parametrize("depth", [2, 3, 5, 10])
def test_interpolate_path_agrees_with_mpmath(depth):
    X, y, shape = random_problem(1000 + depth)
    order = np.random.default_rng(depth).permutation(len(PATH_SCALES))  # rows keep the asked order
    path = interpolate_path(X, y, depth=depth, log_alphas=PATH_SCALES[order], shape=shape)
    assert path.beta.shape == (len(PATH_SCALES), X.shape[1])
    assert path.dual.shape == (len(PATH_SCALES), len(y))
    for log_alpha, beta, outcome in zip(path.log_alphas, path.beta, path.outcomes, strict=True):
        assert outcome.ok
        assert distance(beta, oracle.solve(X, y, depth, log_alpha, shape)) < AGREE


@pytest.mark.parametrize(("depth", "log_alpha"), [(2, -20.0), (3, -2.0), (5, -1.0), (4, 3.0)])
def test_the_dual_vector_agrees_with_mpmath(depth, log_alpha):
    X, y, shape = random_problem(2000 + depth)
    reference = oracle.solve(X, y, depth, log_alpha, shape)
    dual = np.array([float(v) for v in reference.dual])
    solution = interpolate(X, y, Q(depth=depth, log_alpha=log_alpha, shape=shape))
    assert np.abs(solution.dual - dual).max() < 1e-9 * np.abs(dual).max()


@pytest.mark.parametrize("log_alpha", [-30.0, -2.0, 0.0, 4.0])
def test_the_explicit_regularizer_is_the_law_of_depth_four_at_the_same_mu(log_alpha):
    X, y, _ = random_problem(3000)
    reference = oracle.solve(X, y, 4, log_alpha / 2)  # mu = alpha^2 = (alpha^(1/2))^4
    assert distance(interpolate(X, y, R(log_alpha=log_alpha)).beta, reference) < AGREE


def test_the_explicit_regularizer_is_the_distance_from_the_start():
    """R against a general constrained minimiser of |w - alpha w0|^2, with a shape."""
    X, y, _ = random_problem(3001)
    d, alpha = X.shape[1], 0.7
    shape = np.linspace(0.5, 1.5, d)
    start = alpha * np.concatenate([shape, shape])
    fits = {"type": "eq", "fun": lambda w: X @ (w[:d] ** 2 - w[d:] ** 2) - y}
    found = minimize(
        lambda w: np.sum((w - start) ** 2), start, constraints=fits, method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-15},
    )  # fmt: skip
    nearest = found.x[:d] ** 2 - found.x[d:] ** 2
    assert np.abs(interpolate(X, y, R(alpha=alpha, shape=shape)).beta - nearest).max() < 1e-6
    assert np.abs(interpolate(X, y, Q(2, alpha=alpha, shape=shape)).beta - nearest).max() > 1e-3


# beta / mu runs over 600 decades at log mu = 0, and mu itself leaves the floats at the others
DECADES = np.array([-300, -160, -80, -20, -9, -4, -2, -1, -0.3, 0, 0.2, 1, 2, 4, 9, 20, 80, 300.0])
SHAPE = np.exp(np.linspace(-1.0, 1.0, 6))


def relative(got, exact) -> float:
    """The largest relative error, with entries below the normal floats compared absolutely."""
    with mp.workdps(40):
        return max(
            float(abs(mp.mpf(float(g)) - e) / max(abs(e), mp.mpf("1e-300")))
            for g, e in zip(got, exact, strict=True)
        )


@functools.cache
def wide_betas(depth: int, log_alpha: float) -> np.ndarray:
    """Floats beta with beta / mu over as many of the decades as floats allow, both signs."""
    logs = DECADES * np.log(10) + depth * log_alpha
    logs = logs[np.abs(logs) < 690]
    if not len(logs):  # mu itself is out of reach: beta of ordinary sizes
        logs = np.log(10) * np.array([-250.0, -3.0, 0.0, 2.0, 250.0])
    return np.exp(logs) * np.where(np.arange(len(logs)) % 2, -1, 1)


SCALES = (-5000.0, -200.0, -3.0, 0.0, 2.0, 100.0)


@pytest.mark.parametrize("depth", [2, 3, 4, 6, 10])
@pytest.mark.parametrize("log_alpha", SCALES)
def test_gradient_of_q(depth, log_alpha):
    beta = wide_betas(depth, log_alpha)
    exact = oracle_q.gradient(beta, depth, log_alpha)
    assert relative(Q(depth=depth, log_alpha=log_alpha).gradient(beta), exact) < EXACT
    if log_alpha in (-3.0, 0.0, 2.0):  # control, where beta / mu reaches down to the kernel regime
        off = Q(depth=depth, log_alpha=log_alpha + 1e-9).gradient(beta)
        assert relative(off, exact) > EXACT


@pytest.mark.parametrize("depth", [2, 3, 4, 6, 10])
@pytest.mark.parametrize("log_alpha", SCALES)
def test_value_of_q(depth, log_alpha):
    q = Q(depth=depth, log_alpha=log_alpha)
    for beta in wide_betas(depth, log_alpha):
        exact = oracle_q.value([beta], depth, log_alpha)
        assert relative([q([beta])], [exact]) < EXACT, beta


@pytest.mark.parametrize("depth", [2, 3, 4, 6, 10])
@pytest.mark.parametrize("log_alpha", [-3.0, 0.0, 2.0])
def test_q_with_a_shape(depth, log_alpha):
    q = Q(depth=depth, log_alpha=log_alpha, shape=SHAPE)
    beta = np.array([1e-30, -1e-3, 0.7, -5.0, 1e6, -1e40])
    assert relative(q.gradient(beta), oracle_q.gradient(beta, depth, log_alpha, SHAPE)) < EXACT
    assert relative([q(beta)], [oracle_q.value(beta, depth, log_alpha, SHAPE)]) < EXACT
    ones = oracle_q.gradient(beta, depth, log_alpha)
    assert relative(q.gradient(beta), ones) > 1e-3  # control: the shape matters


@pytest.mark.parametrize("depth", [2, 3, 4, 6, 10])
@pytest.mark.parametrize("log_alpha", [-50.0, -3.0, 0.0, 2.0])
def test_inverse_gradient_of_q(depth, log_alpha):
    s = np.array([1e-300, 1e-20, -1e-9, 1e-4, -0.01, 0.3, -0.9])
    s = np.append(s, [5.0, -60.0, 300.0] if depth == 2 else [1 - 2.0**-10, -1 + 2.0**-40])
    exact = oracle_q.inverse_gradient(s, depth, log_alpha)
    assert relative(Q(depth=depth, log_alpha=log_alpha).inverse_gradient(s), exact) < EXACT
    off = Q(depth=depth, log_alpha=log_alpha + 1e-9).inverse_gradient(s)
    assert relative(off, exact) > EXACT  # control


@pytest.mark.parametrize("depth", [2, 3, 10])
def test_slope_is_the_derivative_of_the_inverse_gradient(depth):
    s = np.array([1e-20, -1e-3, 0.3, -0.9, 0.999])
    slopes = oracle_q.Scale(depth, -2.0, (1.0,) * len(s)).slopes([mp.mpf(float(v)) for v in s])
    assert relative(Q(depth=depth, log_alpha=-2.0).slope(s), slopes) < EXACT
