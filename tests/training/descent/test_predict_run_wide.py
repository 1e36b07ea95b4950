"""Predictions beyond depth 2: lines, the memory of momentum, losses, and trained runs."""

import numpy as np
import pytest

import penchant
from penchant.forecasts.lines import MapLine, PowerLine
from penchant.forecasts.mean_lines import MeanLines
from penchant.forecasts.mean_steps import MeanSteps

PROBLEM = penchant.problems.sparse_regression(8, 20, sparsity=2, noise=0.1, seed=4)
LABELLED = penchant.Classification(PROBLEM.X, np.where(PROBLEM.y > 0, 1.0, -1.0), loss="logistic")
SQUARE = penchant.models.Reparametrized(lambda w: w**2, start=0.2)
CUBIC = penchant.DiagonalNet(3, alpha=0.3)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_a_power_moves_on_the_gradient_line_of_its_map(depth):
    line, u, h = PowerLine(depth, np.array([0.3, 0.5])), np.array([-0.4, 0.1]), 1e-4
    point, before, after = line.at(u), line.at(u - h), line.at(u + h)
    np.testing.assert_allclose((after.w - before.w) / (2 * h), point.slope, rtol=1e-6)
    np.testing.assert_allclose(point.value, point.w**depth)
    for lower, upper in (("value", "slope"), ("slope", "bend"), ("bend", "third")):
        rise = getattr(after, lower) - getattr(before, lower)
        expected = getattr(point, upper) * (after.w - before.w)
        np.testing.assert_allclose(rise, expected, rtol=1e-6, atol=1e-15)


def test_an_integrated_line_is_the_closed_form_and_ends_in_nan():
    walked = MapLine(SQUARE, np.full(6, 0.2))
    u = np.array([-2.0, -0.3, 0.0, 0.5, 1.5, 1e6])
    exact = PowerLine(2, np.full(6, 0.2)).at(u)
    for seen, known in zip(walked.at(u), exact, strict=True):
        np.testing.assert_allclose(seen[:-1], known[:-1], rtol=1e-6, atol=1e-12)
        assert not np.isfinite(seen[-1]) or seen[-1] == known[-1]


def mean_lines(**given):
    given = {"rate": 3e-4, "decay": 0.0, "momentum": 0.0, "batch": 1, "label_noise": 0.0} | given
    model = penchant.DiagonalNet(2, alpha=0.1)
    return MeanLines(PROBLEM.X, PROBLEM.y, "squares", model, **given)


@pytest.mark.parametrize(
    ("batch", "decay", "noise"), [(8, 0.0, 0.0), (1, 0.0, 0.0), (3, 0.2, 0.0), (2, 0.1, 0.3)]
)
def test_depth_two_is_that_of_the_exact_sums(batch, decay, noise):
    """The expansion agrees with log((1 - gamma lambda)^2 (1 - q^2)) up to fourth order."""
    exact = MeanSteps(
        PROBLEM.X, PROBLEM.y, 2.0, rate=3e-4, decay=decay, batch=batch, label_noise=noise
    )
    lines = mean_lines(batch=batch, decay=decay, label_noise=noise)
    nu, tilt, zero = 0.02 * PROBLEM.y, np.zeros(20), np.zeros(20)
    one, other = exact.seen(nu, zero + 2 * np.log(0.1), tilt), lines.seen(nu, zero, tilt)
    np.testing.assert_allclose(other.beta, one.beta, rtol=1e-12)
    np.testing.assert_allclose(other.weight, one.weight, rtol=1e-12)
    known, seen = exact.gains(one.used), lines.gains(other.used, turns=other.turns)
    np.testing.assert_allclose(seen.c, known.c, rtol=2e-3)
    if not decay:  # under decay they differ by a combination of the samples
        np.testing.assert_allclose(seen.tilt, known.tilt, atol=2e-3 * np.abs(known.c).max())
    np.testing.assert_allclose(seen.variance, known.variance, rtol=5e-3)


@pytest.mark.parametrize(("batch", "momentum"), [(1, 0.7), (2, 0.5), (4, 0.9), (8, 0.6)])
def test_what_velocities_hold_is_the_mean_over_drawn_epochs(batch, momentum):
    """Sums of m^lag over earlier visits, of a sample's own and of another's gradients."""
    lines = mean_lines(batch=batch, momentum=momentum)
    rng, N = np.random.default_rng(0), 8
    held, own, others, count = np.zeros(N), 0.0, 0.0, 0
    velocity, square, plain = 0.0, 0.0, 0.0
    values = np.array([1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1.5, -1.5])  # of mean zero
    for epoch in range(4000):
        order = rng.permutation(N)
        for begin in range(0, N, batch):
            rows = order[begin : begin + batch]
            held *= momentum
            if epoch > 20:
                own += 2 * held[rows].mean()
                now = np.isin(np.arange(N), rows)
                same = (now.sum() - 1) / (N - 1)
                rest = (held.sum() - held[rows].mean()) / (N - 1)
                others += same + 2 * rest
                count += 1
            held[rows] += 1
            velocity = momentum * velocity + values[rows].mean()
            square, plain = square + velocity**2, plain + values[rows].mean() ** 2
    assert lines.others == pytest.approx(others / count, rel=0.02)
    assert lines.others + lines.alone == pytest.approx(1 + own / count, rel=0.02)
    if batch < N:
        kept = square / plain * (1 - momentum**2)
        assert lines.drawn == pytest.approx(kept, rel=0.03)


RUNS = {
    "depth 3": (CUBIC, PROBLEM, {}, 1, 3e-3, 3000),
    "depth 3, decay": (CUBIC, PROBLEM, {"weight_decay": 0.05}, 2, 3e-3, 6000),
    "logistic": (penchant.DiagonalNet(2, alpha=0.3), LABELLED, {}, 1, 0.05, 600),
    "momentum": (penchant.DiagonalNet(2, alpha=0.1), PROBLEM, {"momentum": 0.8}, 1, 5e-5, 40_000),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_trained_run_lies_in_the_interval(name):
    model, problem, given, batch, rate, steps = RUNS[name]
    method, stop = penchant.GradientDescent(rate, **given), penchant.Steps(steps)
    run = penchant.forecasts.predict_run(model, problem, method, batch=batch, stop=stop)
    own = penchant.methods.EffectiveScale(method)
    path = penchant.train(model, problem, own, batch=batch, stop=stop)
    scale = penchant.forecasts.effective_regularizer(path).shape
    assert ((run.low < scale) & (scale < run.high)).mean() > 0.7
    assert run.fails_at is None
    few = penchant.forecasts.predict_run(
        model, problem, method, batch=batch, stop=penchant.Steps(1)
    )
    width = np.log(run.high / run.low)
    moved = np.abs(np.log(few.scale / run.scale))  # the control: the start is outside
    assert (moved > width).mean() > 0.8


def test_the_map_of_depth_two_is_predicted_as_depth_two():
    method, stop = penchant.GradientDescent(2e-3), penchant.Steps(1000)
    net = penchant.DiagonalNet(2, alpha=0.2)
    known = penchant.forecasts.predict_run(net, PROBLEM, method, batch=2, stop=stop)
    run = penchant.forecasts.predict_run(SQUARE, PROBLEM, method, batch=2, stop=stop)
    fall = np.log(0.2 / known.scale)
    np.testing.assert_allclose(np.log(0.2 / run.scale), fall, atol=0.03 * fall.max())
    np.testing.assert_allclose(run.predictor, known.predictor, atol=2e-3)
    assert isinstance(run.regularizer, penchant.regularizers.Derived)


def test_a_decay_that_ends_is_predicted():
    plain, stop = penchant.GradientDescent(3e-3, weight_decay=0.3), penchant.Steps(4000)
    method = penchant.methods.Scheduled(plain, [0, 1000, 1000], [1, 1, 1], decays=[1, 1, 0])
    run = penchant.forecasts.predict_run(CUBIC, PROBLEM, method, stop=stop)
    path = penchant.train(CUBIC, PROBLEM, penchant.methods.EffectiveScale(method), stop=stop)
    scale = penchant.forecasts.effective_regularizer(path).shape
    np.testing.assert_allclose(np.log(run.scale), np.log(scale), atol=0.01)
    assert np.log(0.3 / scale).mean() > 0.8  # decay shrinks by 0.9
    np.testing.assert_allclose(run.predictor, path.predictor, atol=0.01)
