"""The exact flow on classification data against general integrators, closed forms and mpmath."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from general_solvers import gradient_flow
from penchant import Classification
from penchant.lab import Kind
from penchant.problems import separable_points, three_points
from penchant.training.exact.dual.margin import MarginDual
from penchant.training.exact.loss import log_mean_loss, rise, tail
from refusals import refusals


def run(problem, depth, stop, record=None, **options):
    scale = {k: options.pop(k) for k in ("alpha", "log_alpha", "shape") if k in options}
    net, flow = penchant.DiagonalNet(depth=depth, **scale), penchant.DualFlow(**options)
    return penchant.train(net, problem, flow, stop=stop, record=record)


def with_loss(problem, loss):
    return Classification(problem.X, problem.y, loss)


@pytest.mark.parametrize("loss", ["exp", "logistic"])
@pytest.mark.parametrize(("depth", "alpha"), [(2, 0.3), (2, 2.0), (3, 0.7), (5, 0.9)])
def test_flow_agrees_with_a_general_integrator_in_time(loss, depth, alpha):
    problem = with_loss(separable_points(5, 4, margin=0.3, seed=depth), loss)
    shape = [1.0, 0.6, 1.5, 1.0]
    path = run(problem, depth, penchant.stop.LogLoss(-4.0), alpha=alpha, shape=shape)

    def in_time(alpha):
        net = penchant.DiagonalNet(depth, alpha=alpha, shape=shape)
        with np.errstate(over="ignore"):  # a trial step may be wild; it is rejected
            return net.predictor(gradient_flow(net, problem, [path.t])[-1])

    beta = in_time(alpha)
    log_loss = float(log_mean_loss(loss, problem.signed_rows @ beta))
    assert log_loss == pytest.approx(-4.0, abs=1e-7)
    assert np.abs(path.predictor - beta).max() < 1e-7 * np.abs(beta).max()
    # control: another start scale does not come to the same place
    assert np.abs(path.predictor - in_time(1.2 * alpha)).max() > 1e-4 * np.abs(beta).max()


def one_sample(z, depth, log_alpha, g):
    """w at smoothed margin g for one sample: s = rho z and <z, w(rho)> = g, by mpmath."""
    with mpmath.workdps(60 + round(abs(depth * log_alpha))):
        mu = mpmath.e ** (depth * mpmath.mpf(log_alpha))
        p = mpmath.mpf(depth) / (depth - 2) if depth > 2 else None

        def w(rho):
            if p is None:
                return [2 * mu * mpmath.sinh(rho * z_i) for z_i in z]
            return [mu * ((1 - rho * z_i) ** -p - (1 + rho * z_i) ** -p) for z_i in z]

        def gap(rho):
            return mpmath.fsum(a * b for a, b in zip(z, w(rho), strict=True)) - g

        top = max(abs(z_i) for z_i in z)
        if p is None:
            low, high = mpmath.mpf(0), (mpmath.asinh(g / (2 * mu * top)) + mpmath.mpf(g) / mu) / top
            high = min(high, 2 * mpmath.asinh(g / (2 * mu * top)) / top)
        else:
            low, high = mpmath.mpf(0), (1 - mpmath.mpf(10) ** (2 - mpmath.mp.dps)) / top
        for _ in range(mpmath.mp.prec + 50):
            middle = (low + high) / 2
            low, high = (low, middle) if gap(middle) > 0 else (middle, high)
        return np.array([float(x) for x in w((low + high) / 2)])


@pytest.mark.parametrize(
    ("depth", "log_alpha", "g"),
    [(2, -60.0, 1e7), (2, -7.0, 1e10), (2, 11.5, 1e10), (2, 30.0, 1e3),
     (3, -7.0, 1e10), (3, 5.0, 1e7), (10, 0.0, 1e10), (10, -1.0, 1e5), (10, -7.0, 1e5)],
)  # fmt: skip
def test_one_sample_against_mpmath(depth, log_alpha, g):
    z = np.array([1.0, -0.7, 0.2])
    problem = Classification(z[None], [1.0])
    path = run(problem, depth, penchant.stop.LogLoss(-g), log_alpha=log_alpha)
    exact = one_sample(z, depth, log_alpha, g)
    assert path.predictor == pytest.approx(exact, rel=3e-7, abs=1e-9 * np.abs(exact).max())


@pytest.mark.parametrize("loss", ["exp", "logistic"])
@pytest.mark.parametrize("depth", [2, 3, 6])
def test_jacobian_is_the_derivative_of_the_velocity(loss, depth):
    problem = with_loss(three_points("3b"), loss)
    net = penchant.DiagonalNet(depth=depth, alpha=0.7, shape=[1, 2, 0.5])
    system = MarginDual(net, problem)
    state = system.start + np.random.default_rng(depth).uniform(0, 0.3, len(system.start))
    h, eye = 1e-6, np.eye(len(state))
    numeric = np.array([
        (system.velocity(1.3, state + h * e) - system.velocity(1.3, state - h * e)) / (2 * h)
        for e in eye
    ]).T  # fmt: skip
    assert np.abs(system.jacobian(1.3, state) - numeric).max() < 1e-8 * np.abs(numeric).max()


def test_tails_agree_with_plain_arithmetic_and_survive_where_it_does_not():
    gaps, g = np.array([0.2, -0.4, 3.0]), 2.0
    margins = g + gaps
    pull = 1 / (1 + np.exp(margins))
    found = tail("logistic", g, gaps)
    assert found.weights == pytest.approx(pull / pull.sum(), rel=1e-13)
    assert found.ratio == pytest.approx(np.log1p(np.exp(-margins)).mean() / pull.mean(), rel=1e-13)
    assert found.drift == pytest.approx(math.log(np.log1p(np.exp(-margins)).mean()) + g, abs=1e-13)
    far = tail("logistic", 1e9, gaps)
    near = tail("exp", 1e9, gaps)
    assert far.weights == pytest.approx(near.weights, rel=1e-14)
    assert (far.ratio, far.drift) == pytest.approx((1.0, near.drift), rel=1e-14)
    assert abs(found.ratio - 1) > 0.01  # control: near the start the two losses differ


@pytest.mark.parametrize("loss", ["exp", "logistic"])
@pytest.mark.parametrize("size", [1e-20, 1e-3, 0.4, 3.0, 80.0])
def test_the_rise_of_the_smoothed_margin_against_mpmath(loss, size):
    margins = size * np.array([1.0, -0.3, 0.7])
    with mpmath.workdps(60):
        terms = [mpmath.exp(-mpmath.mpf(float(m))) for m in margins]
        if loss == "logistic":
            terms = [mpmath.log1p(term) for term in terms]
        start = mpmath.mpf(1) if loss == "exp" else mpmath.log(2)
        exact = -mpmath.log(mpmath.fsum(terms) / 3 / start)
    assert rise(loss, margins) == pytest.approx(float(exact), rel=1e-12)


@given(
    samples=st.integers(1, 5), dimension=st.integers(2, 5), seed=st.integers(0, 10**6),
    depth=st.integers(2, 8), log_alpha=st.floats(-3, 8),
    loss=st.sampled_from(["exp", "logistic"]),
)  # fmt: skip
@settings(max_examples=12, deadline=None, derandomize=True)
def test_what_every_path_satisfies(samples, dimension, seed, depth, log_alpha, loss):
    problem = with_loss(separable_points(samples, dimension, margin=0.2, seed=seed), loss)
    path = run(problem, depth, penchant.stop.LogLoss(-1e4), log_alpha=log_alpha, rtol=1e-8)
    ds = path.dataset
    g, margins = ds.smoothed_margin.values, ds.margins.values
    assert path.outcome.kind is Kind.SOLVED
    assert g[-1] == pytest.approx(1e4)
    assert (np.diff(g) > 0).all()
    assert (np.diff(ds.log_t.values) > 0).all()
    assert (np.diff(ds.dual.values, axis=0) >= -1e-9 * np.abs(ds.dual.values).max()).all()
    # the margins that were carried along are those of the predictor, M eq. (10) holds of them
    direct = ds.predictor.values @ problem.signed_rows.T
    assert (
        np.abs(margins - direct) < 1e-6 * np.abs(margins).max(axis=1, keepdims=True) + 1e-6
    ).all()
    if loss == "exp":
        assert (ds.margin.values <= g + 1e-6 * g).all()
        assert (g <= ds.margin.values + math.log(samples) + 1e-6 * g).all()


def test_huge_starts_train_the_kernel_machine():
    problem = three_points("3b")
    path = run(problem, 2, penchant.stop.LogLoss(-1e6), log_alpha=5000.0)
    best = penchant.max_margin(problem.X, problem.y, penchant.L2()).beta
    assert penchant.measures.angle(path.predictor, best) < 1e-3
    assert path.dataset.kernel_distance.values[-1] == 0
    rich = run(problem, 2, penchant.stop.LogLoss(-1e6), log_alpha=0.0)  # control
    assert penchant.measures.angle(rich.predictor, best) > 10


@pytest.mark.parametrize(("samples", "dimension"), [(4, 3), (3, 400)])
def test_kernel_distances_are_those_of_the_tangent_kernels(samples, dimension):
    problem = separable_points(samples, dimension, margin=0.3, seed=1)
    net = penchant.DiagonalNet(depth=3, alpha=0.2)
    path = penchant.train(
        net, problem, penchant.DualFlow(rtol=1e-8), stop=penchant.stop.LogLoss(-30.0)
    )
    before, after = (
        penchant.measures.tangent_kernel(net, parameters, problem.signed_rows)
        for parameters in (net.start(dimension), path.parameters)
    )
    found = path.dataset.kernel_distance.values
    assert found[-1] == pytest.approx(penchant.measures.kernel_distance(before, after), rel=1e-8)
    assert found[-1] > 1e-3  # the kernel did move


def test_rules_stop_where_they_say():
    problem, net = three_points("3b"), penchant.DiagonalNet(depth=3, alpha=2.0)
    scale = penchant.train(net, problem, penchant.DualFlow(), stop=penchant.stop.Scale(mu=0.01))
    assert -scale.log_loss == pytest.approx(800.0)
    near = penchant.train(
        net, problem, penchant.DualFlow(), stop=penchant.stop.Near([1, 0, 0], degrees=3.0)
    )
    assert penchant.measures.angle(near.predictor, [1, 0, 0]) == pytest.approx(3.0, abs=1e-6)
    first = penchant.DualFlow()
    assert penchant.train(
        net, problem, first, stop=[penchant.stop.Near([1, 0, 0], 3.0), penchant.stop.LogLoss(-5.0)]
    ).log_loss == pytest.approx(-5.0)
    never = penchant.train(
        net, problem, penchant.DualFlow(rtol=1e-6), stop=penchant.stop.Near([0, 0, 1], 1.0)
    )
    assert not never.outcome.ok
    assert never.log_loss < -1e12


def test_time_and_step_limits_end_with_a_sentence():
    problem, net = three_points("3b"), penchant.DiagonalNet(depth=2, alpha=1.0)
    timed = penchant.train(
        net, problem, penchant.DualFlow(), stop=[penchant.stop.LogLoss(-100.0), penchant.Time(5.0)]
    )
    assert timed.t == pytest.approx(5.0, rel=1e-6)
    assert timed.outcome.kind is Kind.BUDGET_SPENT
    short = penchant.train(
        net, problem, penchant.DualFlow(max_steps=20), stop=penchant.stop.LogLoss(-100.0)
    )
    assert short.outcome.kind is Kind.BUDGET_SPENT
    assert "raise max_steps" in short.outcome.sentence


@pytest.mark.parametrize("stop", [penchant.stop.LogLoss(0.5), penchant.stop.Loss(2.0)])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 10.0])
def test_a_goal_that_the_start_meets_ends_flows_and_steps_before_they_begin(stop, alpha):
    problem, net = three_points("3b"), penchant.DiagonalNet(2, alpha=alpha)
    for method in (penchant.DualFlow(), penchant.ParameterFlow(), penchant.GradientDescent(0.1)):
        path = penchant.train(net, problem, method, stop=stop)
        assert path.outcome.kind is Kind.SOLVED, method
        assert (path.t, path.dataset.sizes["time"]) == (0.0, 1)
        np.testing.assert_allclose(path.parameters, net.start(problem.dimension), rtol=1e-12)
        assert path.log_loss == pytest.approx(0.0, abs=1e-12)
        onward = penchant.train(
            net, problem, method, stop=[penchant.Time(0.5), penchant.stop.LogLoss(-3.0)]
        )
        assert onward.t > 0  # the control: a goal that the start does not meet


def test_time_alone_is_followed_to_its_end():
    problem, short = three_points("3b"), penchant.Time(5.0)
    path = run(problem, 2, short, alpha=1.0)
    assert path.outcome.kind is Kind.SOLVED
    assert "followed to t=5" in path.outcome.sentence
    goal = run(problem, 2, [short, penchant.stop.LogLoss(-100.0)], alpha=1.0)
    assert goal.outcome.kind is Kind.BUDGET_SPENT
    np.testing.assert_array_equal(goal.predictor, path.predictor)


def test_only_the_margins_named_are_recorded():
    both = [penchant.record.LogSpaced(3), penchant.record.At(margins=[7.0, 123.4])]
    named, mixed = (
        run(three_points("3b"), 2, penchant.stop.LogLoss(-1e4), record, alpha=3.0).dataset
        for record in (both[1], both)
    )
    np.testing.assert_allclose(named.smoothed_margin[1:], [7.0, 123.4, 1e4], rtol=1e-12)
    assert named.loss.values[-1] == 0.0  # float64 holds only its logarithm
    assert named.log_loss.values[-1] == pytest.approx(-1e4, rel=1e-12)
    for row, g in ((1, 7.0), (2, 123.4)):
        alone = run(three_points("3b"), 2, penchant.stop.LogLoss(-g), alpha=3.0).predictor
        assert named.predictor.values[row] == pytest.approx(alone, rel=1e-7)
    assert mixed.sizes["time"] > 8
    for row in range(1, 4):
        nearest = int(np.abs((mixed.smoothed_margin - named.smoothed_margin[row]).values).argmin())
        np.testing.assert_array_equal(mixed.predictor[nearest], named.predictor[row])


def runs_until(stop, record=None):
    return run(three_points("3b"), 2, stop, record, alpha=10.0)


def runs_on(X, y):
    """On data that no predictor separates."""
    return penchant.train(
        penchant.DiagonalNet(alpha=1.0), Classification(X, y), penchant.DualFlow()
    )


test_wrong_input_is_refused_at_once = refusals(
    (lambda: penchant.stop.Scale(mu=0.0), "mu must be > 0"),
    (lambda: penchant.stop.Near([0, 0], 1.0), "must not be zero"),
    (lambda: penchant.stop.LogLoss(math.nan), "finite"),
    (lambda: runs_until("soon"), "stop must be a rule"),
    (lambda: runs_until(penchant.stop.Scale(1e-310)), "no float64 holds"),
    (lambda: runs_until(penchant.Steps(3)), "does not apply here; use Interpolated, Loss, LogLoss"),
    (lambda: runs_until(penchant.stop.Accuracy(train=1.0)), "Accuracy does not apply here"),
    (
        lambda: runs_until(None, penchant.record.At(times=[1.0])),
        r"cannot record at times; use At\(margins=...\)",
    ),
    (lambda: runs_on([[1.0, 2], [1, 2]], [1, -1]), "DualFlow"),
    (lambda: runs_on([[1.0, 2], [0, 0]], [1, 1]), "DualFlow"),
    (lambda: runs_on([[1.0, 0], [-1, 1], [0, -1]], [1, 1, 1]), "DualFlow"),
    (lambda: Classification([[1.0]], [0.0]), "2 \\* y - 1"),
    (lambda: Classification([[1.0], [2.0]], [0, 1]), "0 and 1"),
    (lambda: Classification([[1.0]], [3.0]), "labels must be -1 and \\+1, got 3"),
    (lambda: Classification([[1.0]], [1.0], loss="hinge"), "unknown loss"),
    (lambda: Classification([[1.0]], [1.0], truth=[1, 2]), "one entry per feature"),
    (lambda: three_points("3bb"), "did you mean"),
)


@pytest.mark.parametrize("seed", [1001, 1003, 1008])
def test_an_escape_from_a_saddle_agrees_with_the_integrator_through_it(seed, monkeypatch):
    problem = separable_points(4, 4, margin=0.2, seed=seed)
    both = [penchant.record.LogSpaced(), penchant.record.At(margins=[0.3, 5.0])]
    path = run(problem, 6, penchant.stop.LogLoss(-50.0), alpha=1e-3, record=both, rtol=1e-9)
    monkeypatch.setattr("penchant.training.exact.dual.flow.opening", lambda system, plan: None)
    walked = run(problem, 6, penchant.stop.LogLoss(-50.0), alpha=1e-3, record=both, rtol=1e-9)
    for g in (0.3, 5.0, 50.0):
        one, two = (p.dataset.isel(time=int(np.abs(p.dataset.smoothed_margin.values - g).argmin()))
                    for p in (path, walked))  # fmt: skip
        assert one.smoothed_margin == pytest.approx(g, rel=1e-7)
        assert penchant.measures.angle(one.predictor, two.predictor) < 1e-4
        assert float(one.log_t) == pytest.approx(float(two.log_t), abs=1e-5)
    # control: this start does rest at a saddle, where time goes on and the loss does not
    log_t = path.dataset.log_t.values[2:]
    assert np.diff(log_t).max() > 1


@pytest.mark.parametrize(
    ("depth", "alpha", "seed"), [(10, 1e-3, 1001), (10, 1e-5, 1002), (8, 1e-4, 1001)]
)
def test_saddles_deeper_than_rounding_are_left(depth, alpha, seed):
    problem = separable_points(4, 4, margin=0.2, seed=seed)
    path = run(problem, depth, penchant.stop.LogLoss(-1e5), alpha=alpha, rtol=1e-8)
    ds = path.dataset
    assert path.outcome.kind is Kind.SOLVED
    assert (np.diff(ds.smoothed_margin.values) > 0).all()
    assert (np.diff(ds.log_t.values) >= -1e-9).all()  # theta is interpolated inside steps
    direct = ds.predictor.values @ problem.signed_rows.T
    size = np.abs(ds.margins.values).max(axis=1, keepdims=True)
    assert (np.abs(ds.margins.values - direct) < 1e-6 * (1 + size)).all()
    # where it ends is stationary for the l_{2/D} margin, M theorem 2
    ends = [
        p.beta
        for p in penchant.solvers.stationary_points(
            problem.X, problem.y, penchant.regularizers.Lp(2 / depth)
        )
    ]
    assert min(float(penchant.measures.angle(path.predictor, beta)) for beta in ends) < 0.1


def test_a_rule_can_stop_an_escape():
    problem = separable_points(4, 4, margin=0.2, seed=1001)
    path = run(problem, 10, penchant.stop.LogLoss(-2.0), alpha=1e-3, rtol=1e-8)
    assert path.log_loss == pytest.approx(-2.0, rel=1e-9)
    first = path.dataset.predictor.values[5]
    near = run(problem, 10, penchant.stop.Near(first, 1e-3), alpha=1e-3, rtol=1e-8)
    assert near.outcome.kind is Kind.SOLVED
    assert near.log_loss > -0.3
