"""The forecast: its formula by another route, its margin level, runs so far, and bad input."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import penchant
from penchant import FunctionModel, forecast
from penchant.forecasts import kernel_regime_end
from penchant.problems import majority, multiplication_table, separable_points, wide_margin
from penchant_papers.lyu2023.forecasts import half_turned, jump

RECORDED = ("t", "parameter_norm", "turn")


def run_of(t, norm, turn):
    return dict(zip(RECORDED, (t, norm, turn), strict=True))


# models whose regularizer is not known: only the norms speak


def unknown(depth, log_alpha, dimension):
    """A diagonal net as any function: its regularizer is not told."""

    def function(w, X):
        return X @ (w[:dimension] ** depth - w[dimension:] ** depth)

    return FunctionModel(function, np.full(2 * dimension, math.exp(log_alpha)), homogeneity=depth)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    log_alpha=st.floats(1.0, 300.0),
    log_rate=st.floats(-300.0, -6.0),
    depth=st.sampled_from([2, 3, 5]),
)
def test_the_start_and_the_displacement_meet(seed, log_alpha, log_rate, depth):
    """For a diagonal net delta0 is |w| / (sqrt 2 D alpha^(D-1)), w the l2 max margin point."""
    problem = separable_points(4, 9, margin=0.3, seed=seed)
    rate = math.exp(log_rate)
    w = penchant.max_margin(problem.X, problem.y, penchant.L2()).beta
    log_delta = math.log(np.linalg.norm(w) / math.sqrt(2) / depth) - (depth - 1) * log_alpha
    log_start = log_alpha + math.log(18) / 2
    # g of the theory; at most 1 means a decay too strong for a transition
    log_level = math.log(depth) + log_rate + 2 * (log_delta + (depth - 1) * log_start) / depth
    if -log_level < 3:
        return
    net = penchant.DiagonalNet(depth, log_alpha=log_alpha)
    z, g = kernel_regime_end(depth, rate, log_start, net, problem)
    met = log_delta + math.log(g) + (depth - 1) * z
    assert log_start - z == pytest.approx(met, abs=1e-6 * abs(log_alpha))
    # loss against decay there: e^-g = L rate g |delta|^2 with |delta| that of margin one
    balance = math.log(depth) + log_rate + math.log(g) + 2 * (met - math.log(g))
    assert -g == pytest.approx(balance, abs=1e-6 * (abs(log_rate) + log_alpha))


def test_without_a_known_regularizer_the_norms_speak():
    """As any function: the end of the kernel regime; a quarter of the norm to 1.5/rate later."""
    problem, rate = separable_points(4, 9, margin=0.3, seed=5), 1e-5
    found = forecast(unknown(3, 2.0, 9), problem, rate)
    log_start = 2.0 + math.log(18) / 2
    z, g = kernel_regime_end(3, rate, log_start, penchant.DiagonalNet(3, log_alpha=2.0), problem)
    assert found.transition * rate == pytest.approx(z)
    assert found.smoothed_margin == pytest.approx(g)
    assert found.log_norm == pytest.approx(log_start - z)
    interval = found.low * rate, found.high * rate
    assert interval == pytest.approx((z - math.log(4) / 3, z + 1.5))
    assert "tangent kernel" in found.basis
    assert (
        "minimisers of Q" in forecast(penchant.DiagonalNet(3, log_alpha=2.0), problem, rate).basis
    )


def test_it_tends_to_log_alpha_over_rate():
    problem, rate = separable_points(4, 9, margin=0.3, seed=0), 1e-9
    ratios = []
    for log_alpha in (5.0, 50.0, 500.0):
        found = forecast(penchant.DiagonalNet(2, log_alpha=log_alpha), problem, rate)
        assert found.naive == pytest.approx(log_alpha / rate)
        ratios.append(abs(found.transition / found.naive - 1))
    assert ratios[0] > 3 * ratios[1] > 9 * ratios[2]


@pytest.fixture(scope="module")
def run():
    problem, rate = majority(40, 300, seed=2), 1e-3
    net = penchant.DiagonalNet(2, alpha=4.0)
    path = penchant.train(
        net, problem, penchant.DualFlow(rtol=1e-6, weight_decay=rate), stop=penchant.Time(9 / rate)
    )
    return net, problem, rate, path.dataset


def test_a_run_is_forecast_before_it_happens(run):
    net, problem, rate, dataset = run
    expected = forecast(net, problem, rate)
    half_turn = float(np.interp(45, dataset.turn.values, dataset.t.values))
    assert expected.low <= half_turn <= expected.high
    seen = dataset.t.values <= expected.transition / 2
    on_the_way = forecast({k: dataset[k].values[seen] for k in RECORDED})
    assert on_the_way.weight_decay == pytest.approx(rate, rel=0.02)
    assert on_the_way.low <= half_turn <= on_the_way.high
    # half of the predictor's turning; (1/rate) log alpha and the total norm's log are not there
    turns = half_turned(dataset, rate) / rate
    assert abs(expected.transition - turns) < 0.2 / rate
    for other in (expected.naive, math.log(np.linalg.norm(net.start(300))) / rate):
        assert abs(other - turns) > 0.8 / rate


def test_a_run_past_its_transition_says_so(run):
    dataset = run[3]
    past = forecast(dataset)
    assert "has happened" in past.sentence


def test_time_as_steps(run):
    net, problem, rate, _ = run
    expected = forecast(net, problem, rate)
    assert expected.steps(0.01) == math.ceil(expected.transition / 0.01)


def test_regression_meets_where_theory_says():
    """delta0 of a diagonal net is |w| / (sqrt(8) alpha) with w the shortest interpolant."""
    problem = penchant.problems.sparse_regression(5, 12, sparsity=2, noise=0.0, seed=3)
    w = np.linalg.pinv(problem.X) @ problem.y
    found = forecast(unknown(2, math.log(20.0), 12), problem, 1e-4)
    delta = np.linalg.norm(w) / math.sqrt(8) / 20
    assert found.transition * 1e-4 == pytest.approx(math.log(20 * math.sqrt(24) / delta) / 2)
    with pytest.raises(ValueError, match="so strong"):
        forecast(penchant.DiagonalNet(2, alpha=2.0), problem, 1e3)


# models whose regularizer is known: the minimisers of Q, held against runs

WAYS = {
    "majority": (lambda s: majority(40, 300, seed=s), penchant.DiagonalNet(2, alpha=6.0)),
    "depth 3": (lambda s: majority(40, 300, seed=s), penchant.DiagonalNet(3, alpha=4.0)),
    "wide margin": (
        lambda s: wide_margin(20, 400, gamma=4.0, seed=s),
        penchant.DiagonalNet(2, alpha=6.0),
    ),
    "regression": (
        lambda s: penchant.problems.sparse_regression(30, 80, sparsity=2, noise=0.0, seed=s),
        penchant.DiagonalNet(2, alpha=6.0),
    ),
}
RATE = 1e-4


def by_training(net, problem, expected):
    flow = penchant.DualFlow(rtol=1e-6, weight_decay=RATE)
    return penchant.train(net, problem, flow, stop=penchant.Time(expected.high + 6 / RATE)).dataset


@pytest.mark.parametrize("family", WAYS)
def test_the_predictor_turns_and_the_test_curve_jumps_where_it_was_predicted(family):
    make, net = WAYS[family]
    labels = family in ("majority", "depth 3", "wide margin")
    for seed in (21, 22):
        problem = make(seed)
        expected = forecast(net, problem, RATE)
        data = by_training(net, problem, expected)
        # another route: how the predictor of the run itself turns
        assert half_turned(data, RATE) == pytest.approx(expected.transition * RATE, abs=0.3)
        seen, tested = jump(data) * RATE, forecast(net, problem, RATE, measure=measured_by(problem))
        assert tested.low * RATE < seen < tested.high * RATE
        assert tested.transition * RATE == pytest.approx(seen, abs=0.6 if labels else 0.1)


def test_a_start_of_unequal_entries_turns_where_it_was_predicted():
    net = penchant.DiagonalNet(3, alpha=3.0, shape=np.linspace(0.5, 2.0, 40))
    problem = penchant.problems.sparse_regression(20, 40, sparsity=2, noise=0.0, seed=21)
    expected = forecast(net, problem, RATE)
    turns = half_turned(by_training(net, problem, expected), RATE)
    assert turns == pytest.approx(expected.transition * RATE, abs=0.1)
    # control: equal entries of the same norm turn elsewhere
    equal = penchant.DiagonalNet(3, alpha=3.0 * float(np.linalg.norm(net.shape)) / math.sqrt(40))
    assert abs(forecast(equal, problem, RATE).transition * RATE - turns) > 0.2


def measured_by(problem):
    if isinstance(problem, penchant.Classification):
        return problem.population.accuracy
    if isinstance(problem, penchant.Regression):
        return lambda beta: float(((beta - problem.truth) ** 2).sum())
    return problem.test_error


def test_a_wide_margin_forgives_the_turning_and_its_measure_knows():
    """The fall comes after the predictor has turned; neither the norms nor log alpha tell it."""
    problem, net = wide_margin(32, 2000, gamma=8.0, seed=11), penchant.DiagonalNet(2, alpha=20.0)
    predictor = forecast(net, problem, 1e-3)
    accuracy = forecast(net, problem, 1e-3, measure=problem.population.accuracy)
    flow = penchant.DualFlow(rtol=1e-6, weight_decay=0.001)
    seen = jump(penchant.train(net, problem, flow, stop=penchant.Time(13000.0)).dataset)
    assert accuracy.transition == pytest.approx(seen, abs=300)
    assert seen - predictor.transition > 1000
    assert seen - forecast(unknown(2, math.log(20.0), 2000), problem, 1e-3).transition > 1000
    # the test accuracy of the two ends, by the max margins themselves
    kernel, rich = (
        problem.population.accuracy(penchant.max_margin(problem.X, problem.y, norm).beta)
        for norm in (penchant.L2(), penchant.L1())
    )
    assert kernel > 0.99 > 0.85 > rich


TABLES = [(8, 0.6, 10.0), (12, 0.5, 3.0), (16, 0.5, 100.0), (24, 0.4, 10.0)]


def predicted_and_seen(dimension, fraction, alpha, rate, seed=0):
    """The forecasts of a table and its run in the parameters, in units of 1/rate."""
    problem = multiplication_table(dimension, fraction=fraction, seed=seed)
    model = penchant.models.DifferenceFactorization(alpha=alpha)
    plain = forecast(model, problem, rate)
    tested = forecast(model, problem, rate, measure=problem.test_error)
    flow = penchant.ParameterFlow(rtol=1e-6, weight_decay=rate)
    data = penchant.train(
        model,
        problem,
        flow,
        stop=penchant.Time(plain.high + 3 / rate),
        record=penchant.record.LogSpaced(40),
    ).dataset
    return plain, tested, half_turned(data, rate), jump(data) * rate


@pytest.mark.parametrize(("dimension", "fraction", "alpha"), TABLES)
def test_tables_turn_and_are_completed_where_it_was_predicted(dimension, fraction, alpha):
    rate = 1e-3
    plain, tested, turns, seen = predicted_and_seen(dimension, fraction, alpha, rate)
    assert plain.transition * rate == pytest.approx(turns, abs=0.15)
    assert tested.transition * rate == pytest.approx(seen, abs=0.25)
    for found in (plain, tested):
        assert found.low < seen / rate < found.high


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dimension", "fraction", "rate"),
    [(40, 0.2775, 1e-2), (40, 0.15, 1e-4), (64, 0.15, 1e-2), (97, 0.1, 0.0941), (97, 0.1, 0.941)],
)
def test_large_tables_too(dimension, fraction, rate):
    """The last is 941 entries of the 97 x 97 table with decay 1e-3 next to a mean: it does grok."""
    plain, tested, turns, seen = predicted_and_seen(dimension, fraction, 10.0, rate)
    assert plain.transition * rate == pytest.approx(turns, abs=0.15)
    assert plain.low < seen / rate < plain.high
    assert tested.transition * rate == pytest.approx(seen, abs=0.25)


def test_the_start_of_a_matrix_model_has_the_norm_of_its_parameters():
    """|theta0| = alpha sqrt(2 d) for U = V = alpha I, and not the norm of the shape (d, d)."""
    problem = multiplication_table(16, fraction=0.5, seed=0)
    found = forecast(penchant.models.DifferenceFactorization(alpha=10.0), problem, 1e-3)
    log_start = found.log_norm + found.transition * 1e-3
    assert log_start == pytest.approx(math.log(10 * math.sqrt(32)))
    # a Gaussian start has no known regularizer: the norms meet, those of its own start
    model = penchant.models.DifferenceFactorization(alpha=10.0, seed=3)
    found = forecast(model, problem, 1e-3)
    norm = np.linalg.norm(model.start(256))
    assert found.log_norm + found.transition * 1e-3 == pytest.approx(math.log(norm))


def test_a_strong_decay_next_to_many_entries_is_not_refused():
    """A large norm is no reason to refuse; what counts is how much of y is left unfitted."""
    problem = multiplication_table(24, fraction=0.5, seed=0)
    rate = 1e-3 * problem.samples
    assert (
        forecast(penchant.models.DifferenceFactorization(alpha=10.0), problem, rate).transition > 0
    )
    with pytest.raises(ValueError, match="so strong"):
        forecast(penchant.models.DifferenceFactorization(alpha=10.0), problem, 1e3)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    factor=st.floats(0.1, 10.0),
    more=st.floats(0.5, 100.0),
    depth=st.sampled_from([2, 3, 4]),
)
@example(seed=803, factor=2.0, more=1.0, depth=2)  # rounding ended the record a stage early
def test_the_forecast_follows_its_symmetries(seed, factor, more, depth):
    """A start e^more times as large decays for `more` longer; y times c is a start c^(-1/L)."""
    problem = penchant.problems.sparse_regression(6, 14, sparsity=2, noise=0.0, seed=seed)
    first = forecast(penchant.DiagonalNet(depth, log_alpha=8.0), problem, 1e-7)
    later = forecast(penchant.DiagonalNet(depth, log_alpha=8.0 + more), problem, 1e-7)
    assert (later.transition - first.transition) * 1e-7 == pytest.approx(more, rel=1e-6)
    scaled = penchant.Regression(problem.X, factor * problem.y)
    other = forecast(penchant.DiagonalNet(depth, log_alpha=8.0), scaled, 1e-7)
    gap = (first.transition - other.transition) * 1e-7
    assert gap == pytest.approx(math.log(factor) / depth, abs=1e-6)


def test_a_small_start_has_no_kernel_phase():
    found = forecast(penchant.DiagonalNet(2, alpha=1e-3), majority(40, 300, seed=2), 1e-3)
    assert found.transition == 0
    assert "no delayed transition" in found.sentence
    assert math.isnan(found.naive)


def zero(problem):
    return penchant.Regression(problem.X, 0 * problem.y)


def biased():
    return FunctionModel(lambda w, X: X @ w[:2] + w[2] ** 2, np.ones(3), homogeneity=None)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda p: forecast(penchant.DiagonalNet(2, alpha=3.0), p, 0.0), "without decay"),
        (
            lambda p: forecast(penchant.DiagonalNet(2, alpha=3.0), p, -1.0),
            "weight_decay must be > 0",
        ),
        (lambda p: forecast(penchant.DiagonalNet(2, alpha=3.0), p, 1e4), "so strong"),
        (lambda p: forecast(penchant.DiagonalNet(2, alpha=3.0), "p", 1e-3), "must be a Regression"),
        (lambda p: forecast(biased(), p, 1e-3), "needs f\\(c theta\\)"),
        (lambda p: forecast(unknown(2, 1.0, 2), p, 1e-3, measure=np.sum), "leave measure out"),
        (
            lambda p: forecast(
                penchant.DiagonalNet(2, alpha=3.0), majority(8, 20), 1e-9, measure=lambda beta: 1.0
            ),
            "the measure stays at 1",
        ),
        (lambda p: forecast(penchant.DiagonalNet(2, alpha=3.0), zero(p), 1e-3), "nothing to fit"),
        (lambda p: forecast(run_of([1.0] * 9, [1.0] * 9, [1.0] * 9)), "t must increase"),
        (lambda p: forecast({"t": [1.0]}), "this one has no parameter_norm"),
        (lambda p: forecast(run_of([1.0], [1.0], [1.0]), p), "give it alone"),
        (lambda p: forecast(run_of([1, 2], [1, 1], [1, 1])), "at least 4 times"),
        (lambda p: forecast(run_of(range(9), [1.0] * 9, [1.0] * 9)), "does not decay"),
        (
            lambda p: forecast(run_of(range(9), np.exp(-np.arange(9.0)), [0.0] * 9)),
            "has the run begun",
        ),
        (lambda p: forecast(run_of(range(9), [1.0] * 8, [1.0] * 9)), "one value per time"),
    ],
)
def test_wrong_input_speaks(make, sentence):
    problem = separable_points(4, 2, margin=0.3, seed=1)
    with pytest.raises(ValueError, match=sentence):
        make(problem)


NOISY = penchant.problems.sparse_regression(4, 8, sparsity=1, noise=0.0, seed=3)
WIDE = penchant.DiagonalNet(2, alpha=1.0)


def test_small_steps_on_all_samples_turn_when_the_flow_does():
    for measure in (None, NOISY.population_error):
        flow = penchant.forecast(WIDE, NOISY, 0.01, measure=measure)
        method = penchant.GradientDescent(1e-6, weight_decay=0.01)
        found = penchant.forecast(WIDE, NOISY, method=method, measure=measure)
        assert found.transition == pytest.approx(flow.transition, rel=0.1)
        assert found.weight_decay == flow.weight_decay == 0.01
        assert found.basis == "the start, by the mean of its steps"


def test_label_noise_on_small_batches_moves_the_transition_as_training_does():
    decay, rate = 0.03, 6e-4
    flow = penchant.forecast(WIDE, NOISY, decay, measure=NOISY.population_error).transition
    method = penchant.GradientDescent(rate, label_noise=0.5, weight_decay=decay)
    half = NOISY.population_error(np.linalg.lstsq(NOISY.X, NOISY.y)[0]) / 2
    times = []
    for batch in (1, 4):
        found = penchant.forecast(
            WIDE, NOISY, method=method, batch=batch, measure=NOISY.population_error
        )
        record = penchant.record.At(steps=[int(t / rate) for t in np.linspace(0.2, flow, 100)])
        run = penchant.train(
            WIDE, NOISY, method, batch=batch, stop=penchant.Time(flow), record=record
        ).dataset
        measured = flow * (run.test_error.values[1:] > half).mean()  # the curve is noisy
        assert found.transition == pytest.approx(measured, rel=0.1)
        times.append(found.transition)
    assert times[0] < 0.6 * flow
    assert times[0] < times[1] < 0.95 * flow


def test_a_method_says_its_own_decay():
    method = penchant.GradientDescent(1e-3, weight_decay=0.01)
    with pytest.raises(ValueError, match=r"give weight_decay to the method, got 0.1 too"):
        penchant.forecast(WIDE, NOISY, 0.1, method=method)
    with pytest.raises(ValueError, match="a flow has no batch, got 1"):
        penchant.forecast(WIDE, NOISY, 0.1, batch=1)
    with pytest.raises(ValueError, match="without decay"):
        penchant.forecast(WIDE, NOISY, method=penchant.GradientDescent(1e-3))
    with pytest.raises(ValueError, match="forecast: only steps of GradientDescent"):
        penchant.forecast(WIDE, NOISY, method=penchant.Adam(1e-3, weight_decay=0.01))
