"""The lemmas and inequalities: wrong constants, and the runs by a second route."""

import mpmath
import numpy as np
import pytest

import penchant
from penchant.problems import three_points
from penchant_papers.moroshko2020.lemmas import closed_form, inequalities, norm_bound, runs

WRONG = {
    "M-L3": {"factor": 2.1},
    "M-L10": {"factor": 3.99},
    "M-L11": {"factor": 0.49},
    "M-L12": {"deeper": 1},
    "M-L13": {"tightened": 0.99},
    "M-I": {"longer": 1.02},
}


@pytest.mark.parametrize("id", WRONG)
def test_a_wrong_constant_is_refuted(id, verdict_with):
    assert verdict_with(id, **WRONG[id]).status == "fails"


def test_misprints_in_the_proofs_are_measured():
    """Each sentence carries a measured verdict; here both outcomes of it."""
    case = runs.single(3, 1.0)
    ratio, bracket = norm_bound.bracket(case)
    assert (np.diff(ratio) > 0).all()
    assert (np.diff(bracket) < 0).all()
    printed, mended = norm_bound.kernel_bracket(case, np.array([1e2, 1e6]))
    assert printed[1] > 1e3 * printed[0]
    assert mended[1] < 1e-3 * mended[0]
    assert r"increases for $N x_{\max}^2 = 1, 12$ but not for 0.02" in inequalities.not_monotone()


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_both_ways_of_training_agree(depth):
    """The time of the flow by LSODA, against ParameterFlow, whose clock is the smoothed margin."""
    case = runs.Case("4a", three_points("4a"), depth, 0.9)
    run = runs.run_in_time(case, goal=20.0)
    g = run.smoothed_margin
    stop = penchant.stop.LogLoss(-g[-1])
    record = [penchant.record.LogSpaced(), penchant.record.At(margins=g[:-1].tolist())]
    flow = penchant.ParameterFlow()
    data = penchant.train(case.model, case.problem, flow, stop=stop, record=record).dataset
    rows = np.abs(data.smoothed_margin.values[:, None] - g).argmin(axis=0)
    assert np.abs(data.smoothed_margin.values[rows] - g).max() < 1e-9
    assert np.abs(data.predictor.values[rows] - run.predictor).max() < 1e-7
    assert np.abs(data.log_t.values[rows] - run.log_t).max() < 1e-6
    wrong = penchant.DiagonalNet(depth, alpha=0.91)
    other = penchant.train(wrong, case.problem, flow, stop=stop, record=record).dataset
    assert np.abs(other.predictor.values[-1] - run.predictor[-1]).max() > 1e-3


@pytest.mark.parametrize("depth", [2, 4])
def test_the_speed_of_a_run_is_that_of_its_predictor(depth):
    """dw/dt by the chain rule against differences of w over time, a half of which must differ."""
    case = runs.Case("3c", three_points("3c"), depth, 1.2)
    run = runs.run_in_time(case, points=100_000)
    t = np.exp(run.log_t)
    k = np.flatnonzero((run.smoothed_margin > 1) & (run.smoothed_margin < 10))[1:-1]
    k = k[(t[k + 1] > t[k]) & (t[k] > t[k - 1])]
    before, after = t[k] - t[k - 1], t[k + 1] - t[k]
    back = (run.predictor[k] - run.predictor[k - 1]) / before[:, None]
    ahead = (run.predictor[k + 1] - run.predictor[k]) / after[:, None]
    slope = (back * after[:, None] + ahead * before[:, None]) / (before + after)[:, None]
    assert len(k) > 20
    assert closed_form.relative(slope, run.growth[k]) < 1e-2
    assert closed_form.relative(slope / 2, run.growth[k]) > 0.4


@pytest.mark.parametrize("depth", [3, 4, 5, 8])
def test_h_and_its_inverse(depth):
    z = np.array([-0.99, -0.5, 0.0, 1e-3, 0.9, 0.999])
    assert runs.h_inverse(runs.h(z, depth), depth) == pytest.approx(z, abs=1e-14)
    p = mpmath.mpf(depth) / (depth - 2)
    for point in z:
        f = lambda x: (1 - x) ** -p - (1 + x) ** -p  # noqa: E731
        assert runs.h(point, depth) == pytest.approx(float(f(mpmath.mpf(point))), rel=1e-12)
        slope = float(mpmath.diff(f, mpmath.mpf(point)))
        assert runs.h_slope(point, depth) == pytest.approx(slope, rel=1e-9)
