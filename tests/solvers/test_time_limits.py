"""Every solver that can take long has a time limit, ends soon after it, and says so."""

from __future__ import annotations

import time

import numpy as np
import pytest

import penchant
from penchant import L1, Q, derive, limits
from penchant.lab import Kind
from penchant.regularizers import Frobenius, Linf, Lp, Nuclear, Schatten, Spectral

GENERATOR = np.random.default_rng(7)
X = GENERATOR.normal(size=(4, 12))
Y = GENERATOR.normal(size=4)
LABELS = np.sign(X @ GENERATOR.normal(size=12))
MATRICES = penchant.problems.Sensing(GENERATOR.normal(size=(4, 3, 3)), Y)
SCALES = np.array([1.0, 1e-2, 1e-4])
NOW = 1e-9  # seconds: spent before the first turn of a loop

SINGLE = {
    **{
        f"interpolate {r}": lambda r=r, **more: penchant.interpolate(X, Y, r, **more)
        for r in (
            L1(),
            Lp(1.5),
            Lp(3.0),
            Q(2, alpha=0.1),
            Q(3, alpha=0.1),
            derive(lambda w: w**3, start=0.5),
        )
    },
    **{
        f"interpolate {r}": lambda r=r, **more: penchant.interpolate(MATRICES, r, **more)
        for r in (Nuclear(), Schatten(Q(3, alpha=0.1)))
    },
    **{
        f"max_margin {r}": lambda r=r, **more: penchant.max_margin(X, LABELS, r, **more)
        for r in (
            L1(),
            Linf(),
            Lp(0.5),
            Lp(3.0),
            Q(2, alpha=0.1),
            Nuclear((3, 4)),
            Spectral((3, 4)),
        )
    },
    "saddles": lambda **more: penchant.solvers.saddles(X, Y, **more),
    "slow_flow": lambda **more: penchant.solvers.slow_flow(X, np.ones(12), **more),
    "saddles of a matrix": lambda **more: penchant.solvers.saddles(MATRICES, **more),
    "kernel machine of labels": lambda **more: penchant.measures.kernel_machine(
        penchant.DiagonalNet(alpha=0.5), penchant.Classification(X, LABELS), **more
    ),
}
PATHS = {
    "interpolate_path": lambda **more: penchant.solvers.interpolate_path(
        X, Y, 3, log_alphas=np.log(SCALES), **more
    ),
    "max_margin_path": lambda **more: penchant.solvers.max_margin_path(
        X, LABELS, 3, mus=SCALES, throw=False, **more
    ),
    "ratchet_path": lambda **more: penchant.solvers.ratchet_path(
        X, LABELS, mus=SCALES, throw=False, **more
    ),
}


@pytest.mark.parametrize("name", SINGLE)
def test_a_call_without_time_says_so(name):
    solution = SINGLE[name](max_seconds=NOW, throw=False)
    assert solution.outcome.kind is Kind.BUDGET_SPENT
    assert "raise max_seconds" in solution.outcome.sentence
    assert not solution.error <= 1e-7
    with pytest.raises(penchant.NumericalError, match="raise max_seconds"):
        SINGLE[name](max_seconds=NOW)
    assert SINGLE[name](max_seconds=1000.0).outcome.ok
    with pytest.raises(ValueError, match="max_seconds"):
        SINGLE[name](max_seconds=-1.0)


@pytest.mark.parametrize("name", PATHS)
def test_a_path_keeps_what_it_has(name, monkeypatch):
    """The clock jumps once the first scales are done; later ones fail, and only these."""
    whole = PATHS[name](max_seconds=1000.0)
    assert all(outcome.ok for outcome in whole.outcomes)
    for asked in (5, 20):  # some questions for the time into the path
        turns = iter(range(10**6))
        with monkeypatch.context() as patch:
            clock = lambda: 0.0 if next(turns) < asked else 1e9  # noqa: B023, E731
            patch.setattr(limits.time, "monotonic", clock)
            path = PATHS[name](max_seconds=1.0)
        assert not path.outcomes[-1].ok
        for k, outcome in enumerate(path.outcomes):
            if outcome.ok:
                np.testing.assert_array_equal(path.beta[k], whole.beta[k])
            else:
                assert outcome.kind is Kind.BUDGET_SPENT
                assert "raise max_seconds" in outcome.sentence
                assert np.isnan(path.beta[k]).all()


def test_local_points_are_those_found_in_time(monkeypatch):
    with pytest.raises(penchant.NumericalError, match="raise max_seconds"):
        penchant.solvers.stationary_points(X, LABELS, Lp(0.5), max_seconds=NOW)
    everything = penchant.solvers.stationary_points(X, LABELS, Lp(0.5))
    turns = iter(range(10**6))
    monkeypatch.setattr(limits.time, "monotonic", lambda: 0.0 if next(turns) < 60 else 1e9)
    some = penchant.solvers.stationary_points(X, LABELS, Lp(0.5), max_seconds=1.0)
    assert 0 < len(some) < len(everything)
    assert all(point.outcome.ok for point in some)


@pytest.mark.parametrize(
    "call",
    [
        lambda X, y, **more: penchant.max_margin(X, np.sign(y), Linf(), **more),
        lambda X, y, **more: penchant.max_margin(X, np.sign(y), Spectral((20, 20)), **more),
        lambda X, y, **more: penchant.interpolate(X, y, derive(lambda w: w**7, start=0.01), **more),
    ],
    ids=["HiGHS", "central path", "homotopy"],
)
def test_long_calls_end_soon_after_their_time(call):
    """They take seconds; one matrix, or one program of HiGHS, may still be worked on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 400))
    begin = time.process_time()
    solution = call(X, X @ rng.normal(size=400), max_seconds=0.2, throw=False)
    assert solution.outcome.kind is Kind.BUDGET_SPENT
    assert time.process_time() - begin < 3.0


@pytest.mark.parametrize("decades", [0, 16])
@pytest.mark.parametrize("power", [2, 3])
def test_margins_of_a_derived_regularizer_take_seconds(power, decades):
    """Three points of twelve features, in one unit and in units apart, without a limit."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3, 12))
    labels = np.sign(points @ rng.normal(size=12))
    points = points * 10.0 ** rng.uniform(-decades / 2, decades / 2, size=(3, 1))
    begin = time.process_time()
    solution = penchant.max_margin(points, labels, derive(lambda w: w**power, start=0.1))
    assert time.process_time() - begin < 8.0
    assert (labels * (points @ solution.beta)).min() > 1 - 1e-9


def test_an_inner_call_keeps_the_limit_of_the_outer_one():
    with limits.limited(NOW):
        inner = penchant.interpolate(X, Y, Q(2, alpha=0.1), throw=False)
    assert inner.outcome.kind is Kind.BUDGET_SPENT
    assert penchant.interpolate(X, Y, Q(2, alpha=0.1)).outcome.ok
    assert penchant.interpolate(MATRICES, Frobenius(), max_seconds=NOW).outcome.ok  # no loop
