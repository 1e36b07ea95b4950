"""Data in any units, for solvers that the fuzzer once saw fail: rows of 1e-310 to 1e300."""

from __future__ import annotations

import numpy as np
import pytest

import penchant
from penchant.lab import Kind

GENERATOR = np.random.default_rng(4)
X = GENERATOR.normal(size=(3, 5))
Y = X @ np.array([1.0, 0.0, -2.0, 0.0, 0.5])
LABELS = np.sign(Y)
POWERS = [-900, -300, 300, 900]


@pytest.mark.parametrize("route", ["features", "kernel"])
@pytest.mark.parametrize("log_alpha", [-300.0, 0.0, 200.0])
@pytest.mark.parametrize("power", POWERS)
def test_kernel_machines(power, log_alpha, route):
    net = penchant.DiagonalNet(3, log_alpha=log_alpha)
    fit = penchant.measures.kernel_machine(
        net, penchant.Regression(np.ldexp(X, power), Y), route=route
    )
    exact = np.linalg.lstsq(X, Y, rcond=None)[0]
    np.testing.assert_allclose(np.ldexp(fit.predictor, power), exact, rtol=1e-9, atol=1e-12)
    assert fit.error < 1e-10
    svm = penchant.measures.kernel_machine(
        net, penchant.Classification(np.ldexp(X, power), LABELS), route=route
    )
    plain = penchant.max_margin(X, LABELS, penchant.L2()).beta
    np.testing.assert_allclose(np.ldexp(svm.predictor, power), plain, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(svm.predict(np.ldexp(X, power)), X @ plain, rtol=1e-9)
    # |h|^2 = |beta|^2 / (2 D^2 alpha^(2D-2)) for the features grad f
    log_norm = np.log(np.linalg.norm(plain)) - 0.5 * np.log(18) - 2 * log_alpha
    assert svm.log_norm == pytest.approx(log_norm - power * np.log(2), rel=1e-9)


def test_a_kernel_that_is_singular_in_float64_loses_no_direction():
    """The rows are parallel to 1e-9, and the square of that is nothing."""
    rows = np.array([[1.51764883e-06, -4684.34673], [-3.01588240e-06, 8797.88541]])
    y = np.array([1.0, -1.9])
    machine = penchant.measures.kernel_machine(
        penchant.DiagonalNet(alpha=1.0), penchant.Regression(rows, y), route="kernel"
    )
    np.testing.assert_allclose(machine.predictor, np.linalg.solve(rows, y), rtol=1e-5)


def test_slow_flow_and_saddles_of_subnormal_rows():
    flow = penchant.solvers.slow_flow(np.ldexp(X, -1030), np.ones(5))
    np.testing.assert_allclose(flow.end, penchant.solvers.slow_flow(X, np.ones(5)).end, atol=1e-6)
    found = penchant.solvers.saddles(np.ldexp(X, -1000), Y)
    np.testing.assert_allclose(
        np.ldexp(found.end, -1000), penchant.solvers.saddles(X, Y).end, atol=1e-9
    )
    lost = penchant.solvers.saddles(np.ldexp(X, -1030), Y, throw=False)
    assert lost.outcome.kind is Kind.OUT_OF_RANGE


@pytest.mark.parametrize("power", POWERS)
def test_margin_paths(power):
    mus = np.array([2.0, 1e-3])
    path = penchant.solvers.max_margin_path(np.ldexp(X, power), LABELS, mus=mus)
    for k, mu in enumerate(mus):
        one = penchant.max_margin(np.ldexp(X, power), LABELS, penchant.Q(2, mu=mu))
        np.testing.assert_allclose(path.beta[k], one.beta, rtol=1e-9)
        assert path.log_dual_unit[k] == pytest.approx(one.log_dual_unit)
    # mu = 2^-power mu' and X = 2^power X' are the same problem
    if abs(power) < 500:
        plain = penchant.solvers.max_margin_path(X, LABELS, mus=mus)
        other = penchant.solvers.max_margin_path(
            np.ldexp(X, power), LABELS, mus=np.ldexp(mus, -power)
        )
        np.testing.assert_allclose(np.ldexp(other.beta, power), plain.beta, rtol=1e-9)


@pytest.mark.parametrize("power", [-300, -60, 60, 300])
def test_ratchet_paths(power):
    mus = np.array([2.0, 1e-3])
    plain = penchant.solvers.ratchet_path(X, LABELS, mus=mus)
    other = penchant.solvers.ratchet_path(np.ldexp(X, power), LABELS, mus=np.ldexp(mus, -power))
    np.testing.assert_allclose(np.ldexp(other.beta, power), plain.beta, rtol=1e-9)
    np.testing.assert_allclose(np.ldexp(other.dual, power), plain.dual, rtol=1e-9, atol=1e-12)
    assert (plain.error < 1e-9).all()
    if power == -300:
        far = penchant.solvers.ratchet_path(np.ldexp(X, -900), LABELS, mus=mus, throw=False)
        assert all("rescale X" in outcome.sentence for outcome in far.outcomes)


def test_measurements_and_labels_of_zeros_move_nothing():
    problem = penchant.problems.Sensing(np.zeros((1, 2, 2)), [0.0])
    path = penchant.train(
        penchant.models.DifferenceFactorization(alpha=1.0), problem, penchant.methods.MatrixFlow()
    )
    assert path.outcome.ok
    assert not path.predictor.any()


def test_l1_margins_of_two_rows_over_thirteen_decades():
    rows = np.array([[1, 1, 1, 0, 0, 0, 1], [1, 0, 1, 0, 0, 0, 0]]) * [[4.4e-8], [1.1e5]]
    solution = penchant.max_margin(rows, [-1.0, 1.0], penchant.L1())
    # 1 / 4.4e-8 on a free column, and 1 / 1.1e5 where both rows meet, paid back in the first
    least = 1 / 4.4e-8 + 2 / 1.1e5
    assert solution.value == pytest.approx(least, rel=1e-12)


MATRICES = GENERATOR.normal(size=(3, 2, 3))
SIX = GENERATOR.normal(size=(3, 6))
SIGNS = np.sign(SIX @ GENERATOR.normal(size=6))
IN_UNITS = {
    "interpolate L1": lambda k: penchant.interpolate(np.ldexp(X, k), Y, penchant.L1()).beta,
    "interpolate Lp": lambda k: (
        penchant.interpolate(np.ldexp(X, k), Y, penchant.regularizers.Lp(3.0)).beta
    ),
    "stationary_points": lambda k: np.array(
        [
            p.beta
            for p in penchant.solvers.stationary_points(
                np.ldexp(SIX, k), SIGNS, penchant.regularizers.Lp(0.5), starts=9
            )
        ]
    ),
    **{
        f"interpolate {norm}": lambda k, norm=norm: (
            penchant.interpolate(np.ldexp(MATRICES, k), Y, norm).matrix
        )
        for norm in (penchant.regularizers.Nuclear(), penchant.regularizers.Frobenius())
    },
    **{
        f"max_margin {norm}": lambda k, norm=norm: (
            penchant.max_margin(np.ldexp(SIX, k), SIGNS, norm).beta
        )
        for norm in (
            penchant.L1(),
            penchant.L2(),
            penchant.regularizers.Linf(),
            penchant.regularizers.Lp(3.0),
            penchant.regularizers.Nuclear((2, 3)),
            penchant.regularizers.Spectral((2, 3)),
        )
    },
}


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("name", IN_UNITS)
def test_units_of_all_rows_change_no_digit(name, power):
    """A constant of its own unit that decides about data would decide otherwise here."""
    np.testing.assert_array_equal(np.ldexp(IN_UNITS[name](power), power), IN_UNITS[name](0))
