"""Regularizers of singular values and the derivative of spectral functions, by other routes."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import L1, Q
from penchant.problems import Completion, Sensing
from penchant.regularizers import Frobenius, Nuclear, Schatten, Spectral
from penchant.solvers.matrices.measurements import MeasurementRows, measurements
from penchant.solvers.matrices.path import barrier_gram, weighted
from penchant.solvers.matrices.state import DualState, Power, Sinh, law_of, spectrum
from refusals import refused_with

settings.register_profile("penchant", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("penchant")

REGULARIZERS = [
    Nuclear(),
    Spectral(),
    Frobenius(),
    Schatten(Q(2, alpha=0.3)),
    Schatten(Q(3, alpha=0.5)),
    Schatten(Q(10, mu=1e-3)),
]
any_regularizer = pytest.mark.parametrize("reg", REGULARIZERS, ids=str)
SHAPES = [(3, 3), (2, 5), (6, 2), (1, 4)]


def gaussian(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def orthogonal(size, seed):
    return np.linalg.qr(gaussian((size, size), seed))[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_values_by_other_formulas(shape):
    M = gaussian(shape)
    assert Nuclear()(M) == pytest.approx(np.linalg.norm(M, "nuc"), rel=1e-14)
    assert Spectral()(M) == pytest.approx(np.linalg.norm(M, 2), rel=1e-14)
    assert Frobenius()(M) == pytest.approx(np.sum(M**2), rel=1e-14)
    # W eq. (20) of every singular value, in 30 digits
    sizes = [mpmath.mpf(float(s)) for s in np.linalg.svd(M, compute_uv=False)]
    with mpmath.workdps(30):
        mu = mpmath.mpf("0.09")
        z = [s / mu for s in sizes]
        terms = [2 - mpmath.sqrt(4 + x * x) + x * mpmath.asinh(x / 2) for x in z]
        expected = float(mu * mpmath.fsum(terms))
    assert Schatten(Q(2, mu=0.09))(M) == pytest.approx(expected, rel=1e-13)


@any_regularizer
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_by_finite_differences(reg, shape):
    M, E = gaussian(shape), gaussian(shape, 1)
    step = 1e-5
    slope = (reg(M + step * E) - reg(M - step * E)) / (2 * step)
    assert np.sum(reg.gradient(M) * E) == pytest.approx(slope, rel=1e-7, abs=1e-8)


@any_regularizer
def test_only_the_spectrum_counts(reg):
    M = gaussian((4, 6))
    turned = orthogonal(4, 1) @ M @ orthogonal(6, 2)
    assert reg(turned) == pytest.approx(reg(M), rel=1e-13)
    assert reg(M.T) == pytest.approx(reg(M), rel=1e-13)
    stretched = np.diag([1.0, 1.0, 1.0, 2.0]) @ M  # the control: not an orthogonal map
    assert reg(stretched) > reg(M) * 1.01


@pytest.mark.parametrize("reg", REGULARIZERS[2:], ids=str)
def test_the_gradient_can_be_inverted(reg):
    M = gaussian((3, 5))
    assert reg.inverse_gradient(reg.gradient(M)) == pytest.approx(M, rel=1e-10, abs=1e-12)


@given(seed=st.integers(0, 10**6), rank=st.integers(0, 3))
def test_the_nuclear_subgradient_is_the_smallest(seed, rank):
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(4, rank)) @ rng.normal(size=(rank, 5))
    G = Nuclear().gradient(M)
    sizes = np.linalg.svd(G, compute_uv=False)
    assert sizes == pytest.approx([1.0] * rank + [0.0] * (4 - rank), abs=1e-9)
    other = rng.normal(size=(4, 5))
    assert Nuclear()(other) >= Nuclear()(M) + np.sum(G * (other - M)) - 1e-12
    # the control: twice as large is no subgradient any more
    assert rank == 0 or Nuclear()(2 * M) < Nuclear()(M) + np.sum(2 * G * M)


LAWS = {"sinh": Sinh(), "barrier": Power(1.0), "depth 10": Power(1.25), "depth 3": Power(3.0)}
PAIRS = [
    (0.5, 0.2), (0.9, 0.9), (0.9, 0.9 - 1e-9), (1 - 1e-6, 0.3), (1 - 1e-6, 1 - 2e-6),
    (0.4, 0.0), (0.0, 0.0), (1e-9, 1e-10),
]  # fmt: skip


def exact_b(law, s):
    if isinstance(law, Sinh):
        return 2 * mpmath.sinh(s)
    return (1 - s) ** (-mpmath.mpf(law.p)) - (1 + s) ** (-mpmath.mpf(law.p))


def exact_quotients(law, x, y):
    """The two quotients at 60 digits; equal arguments take the derivative."""
    with mpmath.workdps(60):
        x, y = mpmath.mpf(x), mpmath.mpf(y)
        b = lambda s: exact_b(law, s)  # noqa: E731
        tiny = mpmath.mpf(10) ** -25
        gap = (b(x) - b(y)) / (x - y) if x != y else (b(x + tiny) - b(x - tiny)) / (2 * tiny)
        total = (b(x) + b(y)) / (x + y) if x + y else b(tiny) / tiny
        return float(gap), float(total)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_divided_differences_in_many_digits(law, x, y):
    found = law.quotients(np.array([x]), np.array([y]), 0.0)
    # 1 - x is exact in float64, so nothing is lost there either
    assert np.ravel(found) == pytest.approx(exact_quotients(law, x, y), rel=3e-14)


def test_the_naive_quotient_is_worse():
    x, y = 0.9, 0.9 - 1e-9
    naive = 2 * (np.sinh(x) - np.sinh(y)) / (x - y)
    assert abs(naive / exact_quotients(Sinh(), x, y)[0] - 1) > 1e-9


def test_scales_beyond_float64():
    (found,), _ = Sinh().quotients(np.array([2000.0]), np.array([1999.0]), -2000.0)
    assert found == pytest.approx(1 - np.exp(-1), rel=1e-12)


def a_state(law, shape, seed=0, samples=3, m=-1.0):
    at = measurements(Sensing(gaussian((samples, *shape), seed), gaussian(samples, seed + 1)))
    assert isinstance(at, MeasurementRows)
    nu = gaussian(len(at.y), seed + 2)
    return DualState(at, law, m, 0.6 * nu / np.linalg.norm(at.adjoint(nu), 2))


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
@pytest.mark.parametrize("shape", SHAPES)
def test_the_derivative_of_the_matrix(law, shape):
    state, step = a_state(law, shape), 1e-5
    dnu = gaussian(len(state.nu), 9)
    ahead, behind = state.moved(step * dnu).matrix, state.moved(-step * dnu).matrix
    expected = (ahead - behind) / (2 * step)
    found = state.derivative(state.at.adjoint(dnu))
    assert np.abs(found - expected).max() < 1e-7 * np.abs(expected).max()
    # the Hessian says the same in other coordinates
    rows, slopes = weighted(state)
    hessian = (rows * slopes) @ rows.T
    assert hessian @ dnu == pytest.approx(state.at.apply(found), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("shape", [(4, 4), (3, 6)])
def test_the_barrier_s_hessian_for_single_entries(shape):
    rng = np.random.default_rng(0)
    positions = rng.permutation(shape[0] * shape[1])[:9]
    entries = np.stack(np.unravel_index(positions, shape), axis=1)
    at = measurements(Completion(shape, entries, rng.normal(size=9)))
    nu = rng.normal(size=9)
    state = DualState(at, Power(1.0), -2.0, 0.9 * nu / np.linalg.norm(at.adjoint(nu), 2))
    columns = [at.apply(state.derivative(at.adjoint(e))) for e in np.eye(9)]
    expected = np.stack(columns) + state.floor() * np.eye(9)
    assert barrier_gram(state) == pytest.approx(expected, rel=1e-10, abs=1e-13)
    assert barrier_gram(DualState(at, Sinh(), -2.0, nu)) is None


def test_the_law_of_each_depth():
    assert isinstance(law_of(Q(2, alpha=1.0)), Sinh)
    assert law_of(Q(4, alpha=1.0)) == Power(2.0)
    q = Q(5, alpha=0.7)
    s = np.array([0.9, 0.5, 0.1])
    assert spectrum(law_of(q), s, q.level).values == pytest.approx(q.inverse_gradient(s), rel=1e-13)


def test_what_is_refused():
    refused_with(lambda: Schatten(L1()), "Schatten", "Q", "L1()")
    refused_with(lambda: Schatten(0.1), "Schatten", "0.1")
    refused_with(lambda: Schatten(Q(2, alpha=0.1, shape=[1.0, 2.0])), "Schatten", "shape")
    for reg in REGULARIZERS:
        refused_with(lambda reg=reg: reg(np.ones(3)), str(reg), "matrix", "2 dimension")
        refused_with(lambda reg=reg: reg.gradient([[np.nan]]), str(reg), "finite", "nan")
        refused_with(lambda reg=reg: reg.inverse_gradient("x"), str(reg), "dual", "strings")


def test_they_print_as_they_are_written():
    assert [str(reg) for reg in REGULARIZERS[:3]] == ["Nuclear()", "Spectral()", "Frobenius()"]
    assert str(Schatten(Q(2, alpha=1.0))) == "Schatten(Q(depth=2, log_alpha=0))"
