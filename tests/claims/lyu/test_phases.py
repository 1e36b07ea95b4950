"""Claims of source L: that a wrong theory would be caught, their own tools, and odd input."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import tacit
from tacit import At, train
from tacit.claims.lyu import (
    clock,
    forecasts,
    kernel_phase,
    networks,
    rich_phase,
    runs,
    sharpness,
    sweep,
)
from tacit.measures import forecast as measured_forecast
from tacit.measures.forecast import forecast
from tacit.measures.forecast_run import forecast_run
from tacit.models.diagonal import DiagonalNet
from tacit.models.factorization import DifferenceFactorization
from tacit.problems.classification import Classification
from tacit.problems.regression import Regression
from tacit.regularizers.q import Q
from tacit.training.exact.dual.flow import DualFlow

REFUTED = ("fails", "inconclusive")
DRAWN = {"max_examples": 6, "deadline": None, "derandomize": True}


def refuted(name, words):
    """True if the claim falls, and by its check named so: not because the experiment broke."""
    verdict = tacit.verify(name)
    missed = [check.name for check in verdict.evidence.checks if check.misses]
    assert any(words in check for check in missed), (missed, verdict.evidence.findings[:1])
    return verdict.status in REFUTED


def kept(function, key=lambda *args, **options: (*args, *options.values())):
    """`function` that computes once per key: what a test does not break need not run again."""
    memory = {}

    def again(*args, **options):
        place = key(*args, **options)
        if place not in memory:
            memory[place] = function(*args, **options)
        return memory[place]

    return again


def with_rate(factor):
    """`train` at another rate of the weight decay."""

    def other(model, problem, method, **options):
        rate = factor * method.weight_decay
        return train(model, problem, dataclasses.replace(method, weight_decay=rate), **options)

    return other


def shuffled(make, seed=0):
    """Problems with the labels of other samples."""

    def problem(*args, **options):
        found = make(*args, **options)
        order = np.random.default_rng(seed).permutation(found.samples)
        return dataclasses.replace(found, y=found.y[order])

    return problem


@pytest.fixture
def one_set(monkeypatch):
    """One data set: a wrong theory shows on it."""
    for module in (kernel_phase, rich_phase, sharpness, clock):
        monkeypatch.setattr(module, "data_sets", lambda count: runs.data_sets(1))


# --- L-T1, wrong theories

squares, agreement, seen_now = kernel_phase.squares, kernel_phase._agreement, sweep.seen
parameters_of = rich_phase.parameters_of
_net = kept(networks._one)
_early = kept(kernel_phase.early, key=lambda problem, depth: depth)
_squares = kept(lambda seeds: squares(range(1)), key=lambda seeds: 0)
_agreement = kept(lambda problem, depth: agreement(problem, 2), key=lambda *_: 2)


@pytest.fixture
def kernel(monkeypatch, one_set):
    """L-T1 at fewer starts, and every part of it computed once."""
    monkeypatch.setattr(kernel_phase, "LOG_ALPHAS", np.array([40.0, 160.0, 320.0, 640.0]))
    monkeypatch.setattr(kernel_phase, "TURNED", slice(0, 2))
    monkeypatch.setattr(kernel_phase, "LAST", slice(1, 4))
    monkeypatch.setattr(networks, "LOG_ALPHAS", (2.0, 6.0))
    monkeypatch.setattr(networks, "_one", _net)
    for name, part in (("early", _early), ("squares", _squares), ("_agreement", _agreement)):
        monkeypatch.setattr(kernel_phase, name, part)


def test_the_kernel_phase_agrees_at_this_size(kernel):
    assert tacit.verify("L-T1").status == "holds"


def test_the_rich_limit_in_place_of_the_kernel_svm_is_refuted(monkeypatch, kernel):
    monkeypatch.setattr(kernel_phase, "margin_points", lambda p: runs.margin_points(p)[::-1])
    assert refuted("L-T1", "angle to the kernel SVM")


def test_the_svm_of_another_kernel_is_refuted(monkeypatch, kernel):
    points = lambda p: (kernel_phase.random_kernel_svm(p), runs.margin_points(p)[1])  # noqa: E731
    monkeypatch.setattr(kernel_phase, "margin_points", points)
    assert refuted("L-T1", "slope of 1/tan(angle)")


@pytest.mark.parametrize(
    ("break_run", "words"),
    [
        (lambda run: {"turn": run.turn**2}, "exponent of turn/g"),
        (lambda run: {"norm": run.norm * np.exp(0.1 * run.z)}, "|theta| e^(rate t)"),
    ],
)
def test_wrong_laws_of_the_parameters_are_refuted(monkeypatch, kernel, break_run, words):
    def early(problem, depth):
        return [dataclasses.replace(run, **break_run(run)) for run in _early(problem, depth)]

    monkeypatch.setattr(kernel_phase, "early", early)
    assert refuted("L-T1", words)


def test_a_decay_ten_percent_faster_is_refuted(monkeypatch, kernel):
    monkeypatch.setattr(runs, "train", with_rate(1.1))
    monkeypatch.setattr(kernel_phase, "early", lambda problem, depth: [
        runs.exact(problem, a, math.exp(-a), np.array([a / 2]), depth)
        for a in kernel_phase.LOG_ALPHAS])  # fmt: skip
    assert refuted("L-T1", "|theta| e^(rate t)")


def test_the_sparsest_interpolant_in_place_of_the_kernels_is_refuted(monkeypatch, kernel):
    sparse = lambda net, X, y: tacit.interpolate(X, y, tacit.L1()).beta  # noqa: E731
    monkeypatch.setattr(kernel_phase, "kernel_predictor", sparse)
    monkeypatch.setattr(kernel_phase, "squares", lambda seeds: squares(range(1)))
    assert refuted("L-T1", "kernel interpolant")


def test_the_svm_of_another_small_net_is_refuted(monkeypatch, kernel):
    real = networks.small_nets
    swapped = lambda size: dataclasses.replace(real(size), angles=real(size).elsewhere)  # noqa: E731
    monkeypatch.setattr(kernel_phase, "small_nets", swapped)
    assert refuted("L-T1", "small net")


def test_an_exact_flow_that_is_not_training_proves_nothing(monkeypatch, kernel):
    def other(problem, log_alpha, rate, z, depth):
        return runs.exact(problem, log_alpha, 1.01 * rate, z, depth)

    monkeypatch.setattr(kernel_phase, "in_parameters", other)
    monkeypatch.setattr(kernel_phase, "_agreement", lambda problem, depth: agreement(problem, 2))
    assert tacit.verify("L-T1").status == "inconclusive"


# --- L-T2

_late = kept(rich_phase.exact, key=lambda problem, a, rate, z: (a, float(z[0])))
_theta = kept(rich_phase._trained,
              key=lambda problem, net, *numbers: (str(net.describe()), *numbers))  # fmt: skip


@pytest.fixture
def rich(monkeypatch, one_set):
    monkeypatch.setattr(rich_phase, "LOG_ALPHAS", np.array([160.0, 640.0]))
    monkeypatch.setattr(rich_phase, "TRAINED", np.array([3.0, 6.0]))
    monkeypatch.setattr(rich_phase, "exact", _late)
    monkeypatch.setattr(rich_phase, "_trained", _theta)


def test_the_rich_phase_agrees_at_this_size(rich):
    assert tacit.verify("L-T2").status == "holds"


def test_the_kernel_limit_in_place_of_the_rich_one_is_refuted(monkeypatch, rich):
    monkeypatch.setattr(rich_phase, "margin_points", lambda p: runs.margin_points(p)[::-1])
    assert refuted("L-T2", "angle to the l1")


def test_the_time_before_the_jump_is_refuted(monkeypatch, rich):
    early = lambda p, a, rate, z: _late(p, a, rate, z / 3)  # noqa: E731
    monkeypatch.setattr(rich_phase, "exact", early)
    assert refuted("L-T2", "angle to the l1")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda beta, a, z: np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0)]),
        lambda beta, a, z: parameters_of(beta, 0.0, -1.0),
    ],
    ids=["no root", "a start that never decays"],
)
def test_the_kkt_residual_of_other_parameters_is_refuted(monkeypatch, rich, wrong):
    monkeypatch.setattr(rich_phase, "parameters_of", wrong)
    assert refuted("L-T2", "exponent of the KKT residual")


def test_parameters_trained_for_too_short_are_refuted(monkeypatch, rich):
    real = rich_phase.by_training
    early = lambda p, make, a, side=0.5: real(p, make, a, -rich_phase.LATE)  # noqa: E731
    monkeypatch.setattr(rich_phase, "by_training", early)
    assert refuted("L-T2", "trained parameters")
    assert refuted("L-T2", "quadratic units")


def test_the_kkt_residual_of_quadratic_units_by_hand():
    """theta = sum nu_n grad(y_n f_n) by least squares leaves less, and a start much more."""
    problem, net = networks.points(0)[0], networks.network(4.0, 0)
    theta = _theta(problem, net, 4.0, 6.0 * math.exp(4.0))
    found = rich_phase.kkt_residual(problem, net, theta)
    margins = problem.y * net.predict(theta, problem.X)
    scaled = theta / margins.min() ** (1 / 3)
    slopes = problem.y[:, None] * net.jacobian(scaled, problem.X)
    left = scaled - slopes.T @ np.linalg.lstsq(slopes.T, scaled)[0]
    assert np.linalg.norm(left) / np.linalg.norm(scaled) < found < 0.5
    other = rich_phase.kkt_residual(problem, net, net.start(6) + 0.05 * theta)
    assert other > 1.0


# --- L-sharp


@pytest.fixture
def jumps(monkeypatch, one_set):
    sizes = {2: np.array([20.0, 320.0]), 3: np.array([40.0, 160.0])}
    monkeypatch.setattr(sharpness, "LOG_ALPHAS", sizes)


def test_the_jump_agrees_at_this_size(jumps):
    assert tacit.verify("L-sharp").status == "holds"


def test_log_alpha_alone_does_not_follow_the_jump(monkeypatch, jumps):
    naive = lambda *args: (f := forecast(*args)) and dataclasses.replace(f, transition=f.naive)  # noqa: E731
    monkeypatch.setattr(sharpness, "forecast", naive)
    assert refuted("L-sharp", "drift")


def test_a_jump_of_another_decay_is_refuted(monkeypatch, jumps):
    monkeypatch.setattr(runs, "train", with_rate(1.04))
    monkeypatch.setattr(sharpness, "WINDOW", dict.fromkeys((2, 3), np.linspace(-15.0, 9.0, 241)))
    assert refuted("L-sharp", "rate t_half / log alpha")


def test_a_rate_that_stays_does_not_give_the_norm_at_the_jump(monkeypatch, jumps):
    monkeypatch.setattr(sharpness, "joint", lambda sizes: [(float(a), 1e-9) for a in sizes])
    assert refuted("L-sharp", "|theta| at the jump")


def test_the_jump_of_depth_3_by_two_flows(monkeypatch):
    """Trained in the parameters, the jump is where the exact flow has it; depth 2 has another."""
    problem, rate = runs.data_sets(1)[0], math.exp(-10.0)
    one = sharpness.jump(problem, 10.0, rate, 3)
    monkeypatch.setattr(sharpness, "exact", runs.in_parameters)
    two = sharpness.jump(problem, 10.0, rate, 3)
    for name in ("begins", "half", "ends", "log_norm"):
        assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-4)
    assert abs(sharpness.jump(problem, 10.0, rate, 2).half - one.half) > 0.1


def test_the_norm_at_the_jump_of_depth_3_has_the_exponent_one_third():
    problem = runs.data_sets(2)[1]
    first, last = (sharpness.jump(problem, a, math.exp(-a), 3).log_norm for a in (40.0, 160.0))
    assert (last - first) / math.log(4) == pytest.approx(1 / 3, abs=0.02)


# --- L-sweep

_seen = kept(sweep.seen, key=lambda problem, alpha, rate: (float(alpha), float(rate)))
_endless = kept(sweep.without_decay, key=lambda problem, *numbers: numbers)


@pytest.fixture
def grid(monkeypatch):
    monkeypatch.setattr(sweep, "ALPHAS", np.array([1.0, 30.0]))
    monkeypatch.setattr(sweep, "RATES", np.array([1e-2, 1e-3, 1e-4]))
    monkeypatch.setattr(sweep, "seen", _seen)
    monkeypatch.setattr(sweep, "without_decay", _endless)


def test_the_sweep_agrees_at_this_size(grid):
    assert tacit.verify("L-sweep").status == "holds"


def test_labels_of_other_samples_do_not_grok(monkeypatch, grid):
    monkeypatch.setattr(sweep, "majority", shuffled(sweep.majority))
    monkeypatch.setattr(sweep, "ALPHAS", np.array([30.0]))
    large = lambda p, a, r: (seen_now if a > 1 else _seen)(p, a, r)  # noqa: E731
    monkeypatch.setattr(sweep, "seen", large)
    assert refuted("L-sweep", "runs that grok")


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        ("seen", lambda p, a, r: _seen(p, 30 / a if a >= 1 else a, r), "neighbours"),
        (
            "seen",
            lambda p, a, r: _seen(p, a, {1e-2: 1e-4, 1e-3: 1e-3, 1e-4: 1e-2}[r]),
            "neighbours",
        ),
        ("without_decay", lambda p, a, t: _seen(p, a, 1e-4), "without decay"),
        ("SMALL", 30.0, "without decay"),
    ],
    ids=["larger starts first", "smaller rates first", "decay after all", "a large small start"],
)
def test_a_wrong_sweep_is_refuted(monkeypatch, grid, name, wrong, words):
    monkeypatch.setattr(sweep, name, wrong)
    assert refuted("L-sweep", words)


# --- L-clock

_walk = kept(clock.in_parameters,
             key=lambda p, a, rate, z, depth, rtol: (a, rate, depth))  # fmt: skip
_path = kept(clock.exact, key=lambda problem, a, rate, z: a)


@pytest.fixture
def walk(monkeypatch, one_set):
    monkeypatch.setattr(clock, "RATES", np.array([1e-3, 1e-5]))
    monkeypatch.setattr(clock, "LOG_ALPHAS", np.array([20.0, 640.0]))
    monkeypatch.setattr(clock, "in_parameters", _walk)
    monkeypatch.setattr(clock, "exact", _path)


def test_the_clock_agrees_at_this_size(walk):
    assert tacit.verify("L-clock").status == "holds"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda depth, log_alpha: Q(depth, log_alpha=log_alpha + math.log(1.1)),
        lambda depth, log_alpha: Q(depth + 1, log_alpha=log_alpha),
        lambda depth, log_alpha: Q(depth, log_alpha=2 * log_alpha),
    ],
    ids=["scale", "depth", "square"],
)
def test_another_q_is_refuted(monkeypatch, walk, wrong):
    monkeypatch.setattr(clock, "Q", wrong)
    assert refuted("L-clock", "distance to argmin Q")


def test_a_clock_ten_percent_fast_is_refuted(monkeypatch, walk):
    monkeypatch.setattr(runs, "train", with_rate(1.1))
    monkeypatch.setattr(clock, "in_parameters", runs.in_parameters)
    monkeypatch.setattr(clock, "Z", np.array([0.5, 3.5]))
    assert refuted("L-clock", "distance to argmin Q")


def test_a_wrong_power_of_mu_is_refuted(monkeypatch, walk):
    real = clock.ratchet_path
    wrong = lambda X, y, depth, mus: real(X, y, depth=depth, mus=np.sqrt(mus))  # noqa: E731
    monkeypatch.setattr(clock, "ratchet_path", wrong)
    assert refuted("L-clock", "Q_mu path")


# --- L-forecast


@pytest.fixture
def few(monkeypatch):
    net, rate = DiagonalNet(2, alpha=20.0), 1e-3
    table = forecasts.multiplication_table(8, fraction=0.6, seed=1)
    cases = [
        forecasts.Case("majority", "50", forecasts.majority(50, 500, seed=11), net, rate),
        forecasts.Case(
            "wide margin", "8", forecasts.wide_margin(32, 2000, gamma=8.0, seed=1), net, rate
        ),
        forecasts.Case("table", "8", table, DifferenceFactorization(alpha=10.0), rate),
    ]
    monkeypatch.setattr(forecasts, "grid", lambda size: cases)
    monkeypatch.setattr(forecasts, "by_turn", lambda: (0, []))


def test_the_forecast_agrees_at_this_size(few):
    assert tacit.verify("L-forecast").status == "holds"


def test_log_alpha_over_rate_is_refuted(monkeypatch, few):
    def naive(*args, **measure):
        found = forecast(*args, **measure)
        return dataclasses.replace(found, transition=found.naive)

    monkeypatch.setattr(forecasts, "forecast", naive)
    missed = [c.name for c in tacit.verify("L-forecast").evidence.checks if c.misses]
    for family in ("majority", "wide margin", "table"):
        assert f"{family}: worst error of the time foreseen for the test curve" in missed


def test_a_test_curve_that_is_not_measured_is_refuted_for_wide_margins(monkeypatch, few):
    """What the predictor does is not yet what the test curve does."""
    monkeypatch.setattr(forecasts, "forecast", lambda *args, measure=None: forecast(*args))
    assert refuted("L-forecast", "wide margin: worst error of the time foreseen for the test curve")


def test_norms_that_meet_do_not_tell_when_wide_margins_fall(monkeypatch, few):
    """The forecast as it was: no minimisers, start and displacement alone."""
    monkeypatch.setattr(measured_forecast, "minimisers", lambda *args: None)
    monkeypatch.setattr(forecasts, "forecast", lambda *args, measure=None: forecast(*args))
    assert refuted("L-forecast", "wide margin: worst error of the time foreseen for the test curve")


def test_a_turn_in_the_wrong_unit_is_refuted(monkeypatch, few):
    radians = lambda t, norm, turn: forecast_run(t, norm, np.radians(turn))  # noqa: E731
    monkeypatch.setattr(forecasts, "forecast_run", radians)
    assert refuted("L-forecast", "half turn that the run so far")


def test_a_run_of_another_rate_is_refuted(monkeypatch, few):
    monkeypatch.setattr(forecasts, "train", with_rate(1.5))
    assert refuted("L-forecast", "majority: worst error of the time foreseen for the predictor")


def test_nets_outside_of_their_interval_are_refuted(monkeypatch, few):
    monkeypatch.setattr(forecasts, "by_turn", lambda: (1, []))
    assert refuted("L-forecast", "quadratic nets")


# --- the tools, by second routes


def problem_of(kind, seed=0):
    if kind == "squares":
        return tacit.sparse_regression(4, 8, sparsity=2, noise=0.0, seed=seed)
    return runs.data_sets(seed + 1, loss=kind)[seed]


@pytest.mark.parametrize(("kind", "depth"), [("exp", 3), ("logistic", 2), ("squares", 2)])
def test_moments_of_the_exact_flow_are_those_of_the_parameters(kind, depth):
    problem, z = problem_of(kind), np.array([0.2, 1.0, 2.0, 4.0])
    one = runs.exact(problem, 1.0, 1e-2, z, depth, rtol=1e-9)
    two = runs.in_parameters(problem, 1.0, 1e-2, z, depth)
    names = ("predictor", "turn", "norm", "log_loss")
    for name in names:
        assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-5, abs=1e-6)
    other = runs.exact(problem, 1.0, 1.01e-2, z, depth, rtol=1e-9)
    assert other.log_loss != pytest.approx(two.log_loss, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("z", [0.5, 3.0, 5.0])
def test_parameters_follow_from_the_predictor(z):
    problem = problem_of("logistic")
    net = DiagonalNet(2, log_alpha=3.0)
    theta = rich_phase._trained(problem, net, 3.0, z * math.exp(3.0))
    beta = net.predictor(theta)
    assert rich_phase.parameters_of(beta, 3.0, z) == pytest.approx(theta, rel=1e-4, abs=1e-6)
    assert rich_phase.parameters_of(beta, 3.0, z + 0.1) != pytest.approx(theta, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_the_kkt_residual_vanishes_where_one_multiplier_serves_all(depth):
    """Orthogonal rows of one length share their multiplier, so that equal margins are KKT."""
    signs = np.array([1.0, -1.0, 1.0])
    problem = Classification(np.diag([2.0, 2.0, 2.0]), signs, "logistic")
    net, root = DiagonalNet(depth, alpha=1.0), 3 ** (1 / depth)
    theta = root * np.concatenate([signs > 0, signs < 0])
    assert rich_phase.kkt_residual(problem, net, theta) == pytest.approx(0, abs=1e-14)
    assert rich_phase.kkt_residual(problem, net, 1.5 * theta) == pytest.approx(0, abs=1e-14)
    for n in range(3):
        off = np.where(np.arange(6) == n + 3 * (signs[n] < 0), 1.1, 1.0) * theta
        assert rich_phase.kkt_residual(problem, net, off) > 0.01
    assert rich_phase.kkt_residual(problem, net, theta + 0.3) > 0.05
    assert rich_phase.kkt_residual(problem, net, np.roll(theta, 3)) == math.inf


@pytest.mark.parametrize("seed", range(3))
def test_the_kkt_residual_tends_to_zero_at_the_l1_point(seed):
    """With margins c - log(nu_n) the loss pulls with nu: what is left is complementarity, 1/c."""
    problem, net = problem_of("logistic", seed), DiagonalNet(2, alpha=1.0)
    found = tacit.max_margin(problem.X, problem.y, tacit.L1())
    on, tight = np.abs(found.beta) > 1e-9, found.dual > 1e-9
    nu = found.dual[tight] / found.dual.max()
    shift = np.zeros(8)
    shift[on] = np.linalg.lstsq(problem.signed_rows[np.ix_(tight, on)], -np.log(nu))[0]
    for c in (2000.0, 8000.0):
        beta = c * found.beta + shift
        theta = np.sqrt(np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0)]))
        left = float(nu @ -np.log(nu) / nu.sum() / c)
        assert rich_phase.kkt_residual(problem, net, theta) == pytest.approx(left, rel=1e-6)
    l2 = 100 * tacit.max_margin(problem.X, problem.y, tacit.L2()).beta
    theta = np.sqrt(np.concatenate([np.maximum(l2, 0), np.maximum(-l2, 0)]))
    assert rich_phase.kkt_residual(problem, net, theta) > 0.1


@settings(**DRAWN)
@given(steps=st.lists(st.floats(1e-3, 1.0), min_size=3, max_size=20), place=st.floats(0.01, 0.99))
def test_crossings_of_a_rising_share(steps, place):
    share, z = np.cumsum(steps), np.linspace(0.0, 1.0, len(steps)) ** 2
    part = share[0] + place * (share[-1] - share[0])
    assert sharpness._crossing(z, share, part) == pytest.approx(np.interp(part, share, z))
    again = np.concatenate([share, share])  # the first of two crossings counts
    assert sharpness._crossing(np.arange(len(again)), again, part) < len(share)
    for outside in (share[0], share[-1] + 0.1):
        with pytest.raises(RuntimeError, match="outside the window"):
            sharpness._crossing(z, share, outside)


@settings(**DRAWN)
@given(seed=st.integers(0, 10**6))
def test_the_share_of_ordered_neighbours_by_counting(seed):
    delays = np.random.default_rng(seed).integers(0, 4, (2, 3, 4)).astype(float)
    count = total = 0
    for p, a, r in np.ndindex(delays.shape):
        for q, b, s in ((p, a + 1, r), (p, a, r + 1)):
            if b < 3 and s < 4:
                total += 1
                count += delays[q, b, s] > delays[p, a, r]
    assert sweep._ordered(delays) == pytest.approx(count / total)


def test_margin_points_and_kernels_are_in_their_order():
    problem = problem_of("logistic", 1)
    kernel, rich = runs.margin_points(problem)
    assert np.linalg.norm(kernel) < np.linalg.norm(rich)
    assert np.abs(rich).sum() < np.abs(kernel).sum()
    weights = np.exp(np.random.default_rng(0).normal(0, 1, 8))
    scaled = tacit.max_margin(problem.X / np.sqrt(weights), problem.y, tacit.L2()).beta
    found = kernel_phase.random_kernel_svm(problem)
    assert found == pytest.approx(scaled / np.sqrt(weights), abs=1e-8)


def test_moments_complain_about_a_run_that_did_not_end():
    with pytest.raises(RuntimeError, match="did not reach its end"):
        runs.exact(problem_of("logistic"), 3.0, 1e-3, np.array([30.0]), depth=3)


# --- odd input of the flow and of the forecast


def predictors(net, problem, rate, times, rtol=1e-8):
    path = train(
        net, problem, DualFlow(rtol=rtol, weight_decay=rate), record=At(times=tuple(times))
    )
    assert path.outcome.ok
    return path.dataset.predictor.values[1:]


@settings(**DRAWN)
@given(x=st.floats(0.1, 3.0), y=st.floats(0.1, 3.0), log_alpha=st.floats(-1.0, 2.0))
def test_one_sample_of_one_feature(x, y, log_alpha):
    """beta' = 4 sqrt(beta^2 + 4 a^2) x (2 (y - x beta)) - 2 rate beta, a the decayed start."""
    net, times, rate = DiagonalNet(2, log_alpha=log_alpha), (0.05, 0.5, 5.0, 20.0), 0.1

    def velocity(t, beta):
        size = np.hypot(beta, 2 * np.exp(2 * (log_alpha - rate * t)))
        return 8 * size * x * (y - x * beta) - 2 * rate * beta

    raw = solve_ivp(velocity, (0, 20), [0.0], "LSODA", times, rtol=1e-10, atol=1e-12).y[0]
    problem = Regression(np.array([[x]]), np.array([y]))
    found = predictors(net, problem, rate, times)[:, 0]
    assert found == pytest.approx(raw, rel=1e-5)


@settings(**{**DRAWN, "max_examples": 4})
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["exp", "logistic", "squares"]))
def test_turned_zero_and_repeated_data(seed, kind):
    """Signs and order of features, a feature of zeros, samples given twice: known changes."""
    rng = np.random.default_rng(seed)
    problem, net, z = problem_of(kind), DiagonalNet(2, alpha=1.5), np.array([0.1, 1.0, 4.0])
    plain = predictors(net, problem, 0.1, z / 0.1)
    order, signs = rng.permutation(8), rng.choice([-1.0, 1.0], 8)
    turned = dataclasses.replace(problem, X=(problem.X * signs)[:, order], truth=None)
    assert predictors(net, turned, 0.1, z / 0.1) == pytest.approx((plain * signs)[:, order],
                                                                  rel=1e-4, abs=1e-6)  # fmt: skip
    wide = dataclasses.replace(problem, X=np.insert(problem.X, 3, 0.0, axis=1), truth=None)
    found = predictors(net, wide, 0.1, z / 0.1)
    assert found == pytest.approx(np.insert(plain, 3, 0.0, axis=1), rel=1e-4, abs=1e-6)
    # a sum of squares doubles with its samples, which halves time and doubles the rate
    factor = 2.0 if kind == "squares" else 1.0
    twice = dataclasses.replace(
        problem, X=np.repeat(problem.X, 2, axis=0), y=np.repeat(problem.y, 2)
    )
    found = predictors(net, twice, 0.1 * factor, z / (0.1 * factor))
    assert found == pytest.approx(plain, rel=1e-4, abs=1e-6)
    assert np.abs(plain[1] - plain[2]).max() > 1e-2


@pytest.mark.parametrize("rate", [1e6, 1e200])
def test_a_huge_rate_leaves_a_linear_answer(rate):
    """beta = 2 a 4 t <z, q> with q of the start: nothing else happens before all has decayed."""
    problem, z = problem_of("exp"), np.array([0.1, 1.0, 5.0])
    found = predictors(DiagonalNet(2, alpha=2.0), problem, rate, z / rate)
    wanted = np.outer(8 * 4 * np.exp(-2 * z) * z / rate, problem.signed_rows.mean(axis=0))
    assert found / wanted == pytest.approx(np.ones_like(found), abs=1e-3)


def test_a_tiny_start_still_walks_the_q_path():
    problem, rate, z = problem_of("squares"), 1e-5, np.array([1.0, 5.0])
    found = predictors(DiagonalNet(2, log_alpha=-2000.0), problem, rate, z / rate)
    for beta, time in zip(found, z, strict=True):
        limit = tacit.interpolate(problem.X, problem.y, Q(2, log_alpha=-2000 - time)).beta
        assert beta == pytest.approx(limit, abs=1e-4)
        far = tacit.interpolate(problem.X, problem.y, Q(2, log_alpha=2.0)).beta
        assert np.abs(beta - far).max() > 1e-2


@pytest.mark.parametrize(
    "problem",
    [
        Regression(np.zeros((3, 4)), np.array([1.0, 2.0, 3.0])),
        Regression(np.eye(3), np.zeros(3)),
        Classification(np.ones((4, 3)), np.array([1.0, -1.0, 1.0, -1.0])),
        Regression(np.ones((2, 3)), np.array([1.0, -1.0])),
    ],
    ids=["no features", "no targets", "labels that contradict", "targets that contradict"],
)
def test_data_that_pull_nothing_only_decay(problem):
    flow = DualFlow(weight_decay=0.1)
    data = train(
        DiagonalNet(2, alpha=2.0), problem, flow, record=At(times=(1e-300, 3.0, 3.0, 20.0))
    ).dataset
    assert np.abs(data.predictor.values).max() < 1e-12
    start = 2 * math.sqrt(2 * problem.dimension)
    norms = start * np.exp(-0.1 * np.array([0, 0, 3, 20]))
    assert data.parameter_norm.values == pytest.approx(norms, rel=1e-9)


@settings(**DRAWN)
@given(log_c=st.floats(-12.0, -3.0), growth=st.floats(0.01, 2.0), rate=st.floats(0.001, 1.0))
def test_a_forecast_from_two_exponentials(log_c, growth, rate):
    t = np.linspace(0.0, 1.0, 30) / growth
    turn = np.degrees(np.arctan(np.exp(log_c + growth * t)))
    found = forecast_run(t, 7 * np.exp(-rate * t), turn)
    assert found.transition == pytest.approx(-log_c / growth, rel=1e-6)
    assert found.weight_decay == pytest.approx(rate, rel=1e-6)
    assert found.log_norm == pytest.approx(math.log(7) + rate * log_c / growth, rel=1e-6, abs=1e-6)


@settings(**DRAWN)
@given(x=st.floats(0.1, 10.0), y=st.floats(0.1, 10.0), log_alpha=st.floats(2.0, 1000.0))
def test_the_forecast_of_one_sample_is_a_formula(x, y, log_alpha):
    """The fitting displacement is y / (2 sqrt(2) alpha x), the start sqrt(2) alpha."""
    problem, net = Regression(np.array([[x]]), np.array([y])), DiagonalNet(2, log_alpha=log_alpha)
    z = log_alpha + math.log(4 * x / y) / 2
    assert forecast(net, problem, 1e-3).transition * 1e-3 == pytest.approx(max(z, 0.0), rel=1e-9)
    twice = Regression(np.array([[x, 0.0], [x, 0.0]]), np.array([y, y]))  # the start is longer
    there = max(z + math.log(2) / 4, 0.0)
    assert forecast(net, twice, 1e-3).transition * 1e-3 == pytest.approx(there, rel=1e-9)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda p, net: forecast(net, dataclasses.replace(p, X=np.ones_like(p.X)), 1e-3),
         "do not separate"),
        (lambda p, net: forecast(net, p, math.inf), "finite number > 0"),
        (lambda p, net: forecast(net, p, 1e-3).steps(0), "learning_rate must be > 0"),
        (lambda p, net: forecast(DiagonalNet(2, alpha=1.0, signed=False), p, 1e-3), "Difference"),
        (lambda p, net: forecast_run([], [], []), "must not be empty"),
        (lambda p, net: forecast_run([1.0, math.nan], [1, 1], [1, 1]), "must be finite"),
        (lambda p, net: At(times=[math.inf]), "finite number"),
        (lambda p, net: train(net, p, tacit.ParameterFlow(weight_decay=0.1)), "give stop=Time"),
        (lambda p, net: DualFlow(weight_decay=True), "weight_decay must be a finite number"),
    ],
)  # fmt: skip
def test_wrong_input_speaks(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(problem_of("logistic"), DiagonalNet(2, alpha=3.0))
