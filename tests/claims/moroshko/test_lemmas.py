"""The lemmas, inequalities and numbers of source M: statuses, and that wrong constants are seen."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest

import tacit
from tacit.claims.moroshko import deep_lemmas, inequalities, lemmas, numbers, traces
from tacit.problems.classification import three_points


@pytest.fixture
def few(monkeypatch):
    """Fewer data sets, enough to refute a wrong statement."""
    monkeypatch.setitem(lemmas.COUNTS, "quick", 3)
    monkeypatch.setitem(lemmas.LONG, "quick", 3)
    monkeypatch.setattr(deep_lemmas, "DEEP", (3, 4))


SABOTAGE = {
    "M-L3": (inequalities, "RATE", 2.1),
    "M-L10": (lemmas, "SINH", 3.99),
    "M-L11": (lemmas, "BOUND", 0.49),
}


@pytest.mark.parametrize("id", SABOTAGE)
def test_a_wrong_constant_is_refuted(id, few, monkeypatch):
    monkeypatch.setattr(*SABOTAGE[id])
    assert tacit.verify(id).status == "fails"


def test_a_wrong_power_is_refuted(few, monkeypatch):
    true = deep_lemmas.h
    monkeypatch.setattr(deep_lemmas, "h", lambda z, depth: true(z, depth + 1))
    assert tacit.verify("M-L12").status == "fails"


def test_a_correction_that_is_too_tight_is_refuted(few, monkeypatch):
    true = deep_lemmas.argument
    monkeypatch.setattr(deep_lemmas, "argument", lambda run: 0.99 * true(run))
    assert tacit.verify("M-L13").status == "fails"


def test_a_wrong_l2_margin_is_refuted(few, monkeypatch):
    true = traces.Case.gamma_2.func
    monkeypatch.setattr(traces.Case, "gamma_2", property(lambda case: 1.02 * true(case)))
    assert tacit.verify("M-I").status == "fails"


@pytest.mark.parametrize("tampered", ["digits", "direction"])
def test_wrong_numbers_are_refuted(tampered, monkeypatch):
    if tampered == "digits":
        monkeypatch.setitem(numbers.PRINTED, (100.0, 0.5), (8600.0, 50.0))
    else:
        true = numbers.Q
        monkeypatch.setattr(numbers, "Q", lambda depth, mu: true(depth, mu=0.95 * mu))
    assert tacit.verify("M-num").status == "fails"


def test_misprints_in_the_proofs_are_measured():
    """Each sentence carries a measured verdict; here both outcomes of it."""
    run = traces.course(traces.Case("crowded", inequalities.crowded(), 2, 10.0), goal=1e5)
    assert "average, more than the 1" in inequalities.lost_factor(run, sample=1)
    assert "not more than the 1" in inequalities.lost_factor(run, sample=29)
    case = traces.single(3, 1.0)
    assert "gtilde/alpha² grows" in deep_lemmas.scale_of_g1(case)
    assert "bracket falls" in deep_lemmas.scale_of_g1(case)
    printed, mended = lemmas.kernel_bracket(case, np.array([1e2, 1e6]))
    assert printed[1] > 1e3 * printed[0]
    assert mended[1] < 1e-3 * mended[0]
    assert "increases for N x_max² = 1, 12 but not for 0.02" in inequalities.not_monotone()


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_both_ways_of_training_agree(depth):
    """Physical time by LSODA in t, against ParameterFlow, whose clock is the smoothed margin."""
    case = traces.Case("M-F4a", three_points("M-F4a"), depth, 0.9)
    run = traces.trace(case, goal=20.0)
    g = run.smoothed_margin
    flow = tacit.ParameterFlow()
    data = tacit.train(
        case.model,
        case.problem,
        flow,
        stop=tacit.LogLoss(-g[-1]),
        record=[tacit.LogSpaced(), tacit.At(margins=g[:-1].tolist())],
    ).dataset
    rows = np.abs(data.smoothed_margin.values[:, None] - g).argmin(axis=0)
    assert np.abs(data.smoothed_margin.values[rows] - g).max() < 1e-9
    assert np.abs(data.predictor.values[rows] - run.predictor).max() < 1e-7
    assert np.abs(data.log_t.values[rows] - np.log(run.t)).max() < 1e-6
    wrong = tacit.DiagonalNet(depth, alpha=0.91)
    other = tacit.train(
        wrong,
        case.problem,
        flow,
        stop=tacit.LogLoss(-g[-1]),
        record=[tacit.LogSpaced(), tacit.At(margins=g[:-1].tolist())],
    ).dataset
    assert np.abs(other.predictor.values[-1] - run.predictor[-1]).max() > 1e-3


@pytest.mark.parametrize("depth", [2, 4])
def test_the_speed_of_a_trace_is_that_of_its_predictor(depth):
    """dw/dt by the chain rule against differences of w over time, a half of which must differ."""
    run = traces.trace(traces.Case("M-F3c", three_points("M-F3c"), depth, 1.2), points=100_000)
    k = np.flatnonzero((run.smoothed_margin > 1) & (run.smoothed_margin < 10))[1:-1]
    k = k[(run.t[k + 1] > run.t[k]) & (run.t[k] > run.t[k - 1])]
    before, after = run.t[k] - run.t[k - 1], run.t[k + 1] - run.t[k]
    back = (run.predictor[k] - run.predictor[k - 1]) / before[:, None]
    ahead = (run.predictor[k + 1] - run.predictor[k]) / after[:, None]
    slope = (back * after[:, None] + ahead * before[:, None]) / (before + after)[:, None]
    assert len(k) > 20
    assert lemmas.relative(slope, run.growth[k]) < 1e-2
    assert lemmas.relative(slope / 2, run.growth[k]) > 0.4


@pytest.mark.parametrize("depth", [3, 4, 5, 8])
def test_h_and_its_inverse(depth):
    z = np.array([-0.99, -0.5, 0.0, 1e-3, 0.9, 0.999])
    assert deep_lemmas.h_inverse(deep_lemmas.h(z, depth), depth) == pytest.approx(z, abs=1e-14)
    p = mpmath.mpf(depth) / (depth - 2)
    for point in z:
        f = lambda x: (1 - x) ** -p - (1 + x) ** -p  # noqa: E731
        assert deep_lemmas.h(point, depth) == pytest.approx(float(f(mpmath.mpf(point))), rel=1e-12)
        slope = float(mpmath.diff(f, mpmath.mpf(point)))
        assert deep_lemmas.h_slope(point, depth) == pytest.approx(slope, rel=1e-9)


def test_the_digits_are_those_of_the_trained_loss():
    """-log10 of the loss of the predictor where alpha = 1 is as near to l1 as the last square."""
    problem = three_points("M-F3b")
    l1 = tacit.max_margin(problem.X, problem.y, tacit.L1()).beta
    square = tacit.max_margin(problem.X, problem.y, tacit.Q(2, mu=0.001)).beta
    g = numbers.trained(problem, 1.0, np.geomspace(900, 1250, 40).tolist()).reaches(
        l1, numbers.angle(square, l1)
    )
    run = numbers.trained(problem, 1.0, [g], flow=tacit.ParameterFlow)
    margins = [mpmath.mpf(m) for m in problem.signed_rows @ run.at(g)]
    loss = sum(mpmath.exp(-m) for m in margins) / 3
    assert float(-mpmath.log10(loss)) == pytest.approx(481.93, abs=0.01)
    assert numbers.angle(run.at(g), l1) == pytest.approx(numbers.angle(square, l1), abs=1e-4)
    # the definition of mu gives another number, and another direction
    assert 1000 / np.log(10) == pytest.approx(434.3, abs=0.01)
    there = numbers.trained(problem, 1.0, [1000.0]).at(1000.0)
    assert numbers.angle(there, l1) - numbers.angle(square, l1) > 0.25


def test_where_an_angle_is_reached():
    g = np.geomspace(1, 100, 20)
    beta = np.stack([np.ones(20), np.tan(np.radians(30 / g))], axis=1)
    run = numbers.Run(three_points("M-F3b"), 1.0, g, beta)
    assert run.reaches(np.array([1.0, 0.0]), 2.0) == pytest.approx(15.0, rel=1e-9)
    with pytest.raises(RuntimeError, match="not reached"):
        run.reaches(np.array([1.0, 0.0]), 0.1)


def test_the_nearest_point_lies_inside_the_run():
    """The parabola finds a minimum between records, and an end is refused."""
    g = np.geomspace(1, 100, 20)
    turn = np.log(g / 7.3)
    beta = np.stack([np.cos(1e-3 * turn), np.sin(1e-3 * turn)], axis=1)
    run = numbers.Run(three_points("M-F3b"), 1.0, g, beta)
    assert run.nearest(np.array([1.0, 0.0]))[0] == pytest.approx(7.3, rel=1e-6)
    with pytest.raises(RuntimeError, match="at an end"):
        replace(run, smoothed_margin=g[-4:], predictor=beta[-4:]).nearest(np.array([1.0, 0.0]))
    with pytest.raises(RuntimeError, match="not recorded"):
        run.at(2.0)
