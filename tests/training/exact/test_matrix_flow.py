"""MatrixFlow against gradient descent, SciPy's solvers, the lifted flow and a closed form."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from general_solvers import gradient_flow, loss_gradient
from penchant import (
    L2,
    DiagonalNet,
    DualFlow,
    Factorization,
    GradientDescent,
    ParameterFlow,
    Regression,
    Steps,
    Time,
    train,
)
from penchant.lab import Kind
from penchant.methods import MatrixFlow
from penchant.models import DeepFactorization, DifferenceFactorization, SymmetricFactorization
from penchant.problems import (
    Completion,
    Sensing,
    commuting_sensing,
    gaussian_sensing,
    low_rank_completion,
    multiplication_table,
)
from penchant.record import At, LogSpaced
from penchant.stop import Accuracy, Interpolated, Loss
from penchant.training.exact.matrices.system import FactorSystem, extrapolated
from refusals import refusals

SMALL = low_rank_completion(samples=14, dimension=5, rank=1, seed=1)
CASES = {
    "product": (Factorization(9, alpha=0.3, seed=2), SMALL),
    "narrow": (Factorization(3, alpha=0.3, seed=2), SMALL),
    "sensing": (
        Factorization(9, alpha=0.3, seed=2),
        gaussian_sensing(samples=8, dimension=4, rank=1, seed=0),
    ),
    "symmetric": (
        SymmetricFactorization(9, alpha=0.3, seed=2),
        multiplication_table(5, fraction=0.4),
    ),
    "difference": (DifferenceFactorization(alpha=0.5), multiplication_table(5, fraction=0.4)),
    "unequal": (
        DifferenceFactorization(alpha=0.4, width=7, seed=3),
        multiplication_table(5, fraction=0.4),
    ),
}
everyone = pytest.mark.parametrize("name", CASES)


def end_of_flow(model, problem, t, rate=0.0):
    """The parameters at time t by a general solver at full width."""
    return gradient_flow(model, problem, [t], rate)[-1]


def descend(model, problem, step, count):
    w, slope = model.start(problem.dimension), loss_gradient(model, problem)
    for _ in range(count):
        w = w - step * slope(w)
    return w


@everyone
def test_the_reduction_is_exact_also_for_gradient_descent(name):
    model, problem = CASES[name]
    system, step = FactorSystem(model, problem), 0.01
    Z = system.start
    for _ in range(200):
        Z = Z + step * system.velocity(Z)
    full = model.matrix(descend(model, problem, step, 200))
    assert np.abs(system.matrix(Z) - full).max() < 1e-14 * max(1.0, np.abs(full).max()) * 10
    # the control: two columns are not enough
    Z = system.start[:, :2]
    for _ in range(200):
        Z = Z + step * system.velocity(Z)
    assert np.abs(system.matrix(Z) - full).max() > 1e-6


def test_the_reduction_does_not_grow_with_the_width():
    for width, columns in ((3, 3), (10, 10), (5000, 10)):
        system = FactorSystem(Factorization(width, alpha=0.01), SMALL)
        assert system.start.shape == (10, columns)


@everyone
def test_against_a_general_solver_at_full_width(name):
    model, problem = CASES[name]
    path = train(model, problem, MatrixFlow(), stop=Time(1.5))
    w = end_of_flow(model, problem, 1.5)
    np.testing.assert_allclose(path.predictor, model.matrix(w), rtol=0, atol=2e-7)
    np.testing.assert_allclose(path.parameters, w, rtol=0, atol=2e-7)
    np.testing.assert_allclose(path.dataset.parameter_norm[-1], np.linalg.norm(w), rtol=1e-7)
    elsewhere = train(model, problem, MatrixFlow(), stop=Time(0.3)).predictor
    assert np.abs(elsewhere - path.predictor).max() > 1e-5


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    rows=st.integers(1, 5),
    columns=st.integers(1, 5),
    width=st.integers(1, 12),
    seed=st.integers(0, 999),
    log_alpha=st.floats(-5, 1),
)
def test_any_shape_width_and_scale(rows, columns, width, seed, log_alpha):
    rng = np.random.default_rng(seed)
    seen = rng.random((rows, columns)) < 0.6
    seen[0, 0] = True
    problem = Completion((rows, columns), np.argwhere(seen), rng.standard_normal(seen.sum()))
    model = Factorization(width, log_alpha=log_alpha, seed=seed, shape=(rows, columns))
    # the error is proportional to rtol: 3.6e-7 at the default of 1e-8, for seed 541
    path = train(model, problem, MatrixFlow(rtol=1e-9), stop=Time(2.0), record=LogSpaced(3))
    np.testing.assert_allclose(
        path.predictor, model.matrix(end_of_flow(model, problem, path.t)), rtol=0, atol=1e-7
    )


def test_gradient_descent_tends_to_the_flow_in_first_order():
    model, problem = CASES["product"]
    end = train(model, problem, MatrixFlow(rtol=1e-11), stop=Time(1.0)).predictor
    steps = np.array([0.01, 0.005, 0.0025, 0.00125])
    ends = [model.matrix(descend(model, problem, h, round(1 / h))) for h in steps]
    errors = [np.abs(found - end).max() for found in ends]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert abs(slope - 1) < 0.05


@everyone
def test_lifted_against_factors(name):
    model, problem = CASES[name]
    factors = train(model, problem, MatrixFlow(rtol=1e-10))
    lifted = train(model, problem, MatrixFlow(rtol=1e-11, form="lifted"))
    assert factors.outcome.kind is lifted.outcome.kind is Kind.SOLVED
    np.testing.assert_allclose(factors.predictor, lifted.predictor, rtol=0, atol=1e-8)
    other = train(model, problem, MatrixFlow(rtol=1e-10), stop=Interpolated(1e-4))
    assert np.abs(other.predictor - lifted.predictor).max() > 1e-5


@pytest.mark.parametrize("alpha", [2.0, 0.3, 1e-2, 1e-3])
def test_the_end_game_keeps_the_accuracy(alpha):
    model = Factorization(8, alpha=alpha, seed=4)
    loose, tight = (train(model, SMALL, MatrixFlow(rtol=r)) for r in (1e-6, 1e-11))
    assert loose.outcome.ok
    assert tight.outcome.ok
    assert loose.log_loss <= np.log(1e-20 * np.sum(SMALL.y**2)) + 1e-9
    scale = np.abs(tight.predictor).max()
    assert np.abs(loose.predictor - tight.predictor).max() < 1e-5 * scale
    default = train(model, SMALL, MatrixFlow())
    assert np.abs(default.predictor - tight.predictor).max() < 1e-7 * scale
    assert abs(loose.t / tight.t - 1) < 0.05


def test_the_conserved_difference():
    model, problem = CASES["product"]
    path = train(model, problem, MatrixFlow(rtol=1e-10))

    def difference(parameters):
        W = model.stack(parameters)
        return W[:5].T @ W[:5] - W[5:].T @ W[5:]

    before = difference(model.start(25))
    np.testing.assert_allclose(difference(path.parameters), before, rtol=0, atol=1e-9)
    assert np.abs(difference(descend(model, problem, 0.02, 300)) - before).max() > 1e-5


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
def test_commuting_measurements_against_the_dual_flow_of_a_diagonal_net(mu):
    # W eq. (67): from a lifted matrix 2 mu^2 I the spectrum is that of a depth-2 diagonal net
    problem = commuting_sensing(samples=3, dimension=6, seed=2, rank=2)
    side, zero = np.sqrt(2) * mu * np.eye(6), np.zeros((6, 6))
    model = Factorization(factors=(np.hstack([side, zero]), np.hstack([zero, side])))
    path = train(model, problem, MatrixFlow(rtol=1e-10))
    basis = np.linalg.eigh(np.tensordot([1.0, 0.7, 0.3], problem.measurements, 1))[1]
    spectra = np.einsum("ia,nij,ja->na", basis, problem.measurements, basis)
    rows = Regression(spectra, problem.y)
    net = train(DiagonalNet(alpha=mu), rows, DualFlow())
    np.testing.assert_allclose(path.predictor, (basis * net.predictor) @ basis.T, rtol=0, atol=1e-8)
    other = train(DiagonalNet(alpha=1.2 * mu), rows, DualFlow()).predictor
    assert np.abs(other - net.predictor).max() > 1e-5


def test_decayed_training_follows_time_or_comes_to_rest():
    model, problem = CASES["difference"]
    path = train(model, problem, MatrixFlow(weight_decay=0.1), stop=Time(2.0))
    assert path.outcome.kind is Kind.SOLVED
    assert "followed to t=2" in path.outcome.sentence
    model, problem = DifferenceFactorization(alpha=1.0), MINUS
    decayed = MatrixFlow(rtol=1e-10, weight_decay=0.5)
    rest = train(model, problem, decayed, record=LogSpaced(2))
    assert "held by weight decay" in rest.outcome.sentence
    slope = loss_gradient(model, problem)(rest.parameters)
    assert np.abs(slope + 0.5 * rest.parameters).max() < 1e-6
    assert np.abs(slope).max() > 1e-2


def test_two_layers_are_a_factorization():
    deep = DeepFactorization(2, 6, alpha=0.3, seed=1)
    first, second = deep.layers(deep.start(25))
    pair = Factorization(factors=(first, second.T))
    by_layers = train(deep, SMALL, MatrixFlow(rtol=1e-10), stop=Time(3.0))
    by_factors = train(pair, SMALL, MatrixFlow(rtol=1e-10), stop=Time(3.0))
    np.testing.assert_allclose(by_layers.predictor, by_factors.predictor, rtol=0, atol=1e-8)


def test_three_layers_against_a_general_solver():
    deep = DeepFactorization(3, 4, alpha=0.5, seed=1)
    path = train(deep, SMALL, MatrixFlow(rtol=1e-10), stop=Time(2.0))
    w = end_of_flow(deep, SMALL, 2.0)
    np.testing.assert_allclose(path.predictor, deep.matrix(w), rtol=0, atol=1e-7)


@everyone
def test_weight_decay_against_a_general_solver(name):
    model, problem = CASES[name]
    path = train(model, problem, MatrixFlow(weight_decay=0.1), stop=Time(4.0))
    w = end_of_flow(model, problem, 4.0, rate=0.1)
    np.testing.assert_allclose(path.parameters, w, rtol=0, atol=1e-6)
    start = model.start(problem.dimension)
    cosine = w @ start / np.linalg.norm(w) / np.linalg.norm(start)
    np.testing.assert_allclose(path.dataset.turn[-1], np.degrees(np.arccos(cosine)), atol=1e-4)
    flow = MatrixFlow(rtol=1e-10, form="lifted", weight_decay=0.1)
    lifted = train(model, problem, flow, stop=Time(4.0))
    np.testing.assert_allclose(lifted.predictor, model.matrix(w), rtol=0, atol=1e-6)
    undecayed = train(model, problem, MatrixFlow(), stop=Time(4.0))
    assert np.abs(undecayed.parameters - w).max() > 1e-3


@everyone
def test_the_tangent_kernel_against_the_jacobian(name):
    model, problem = CASES[name]
    system = FactorSystem(model, problem)
    J = model.jacobian(model.start(problem.dimension), problem.design)
    modes = system.modes(system.start)
    kernel = (modes.basis * modes.rates) @ modes.basis.T
    np.testing.assert_allclose(kernel, J @ J.T, rtol=0, atol=1e-12)
    direction = np.random.default_rng(0).standard_normal(system.start.shape)
    pushed = J @ system.parameters(direction)
    np.testing.assert_allclose(system.push(direction, system.start), pushed, atol=1e-12)


@pytest.mark.parametrize("order", [3, 4, 5])
def test_every_extrapolation_adds_an_order(order):
    system = FactorSystem(*CASES["product"])

    def error(count):
        W = system.start
        for _ in range(count):
            W, _ = extrapolated(system, W, 0.4 / count, system.modes(W), order)
        return np.abs(system.matrix(W) - exact).max()

    exact = train(*CASES["product"], MatrixFlow(rtol=1e-11), stop=Time(0.4)).predictor
    assert abs(np.log2(error(24) / error(48)) - order) < 0.35


def test_a_tiny_start_of_a_rank_one_truth_recovers_it():
    problem = low_rank_completion(samples=20, dimension=5, rank=1, seed=3)
    model = Factorization(20, log_alpha=-60.0)
    path = train(model, problem, MatrixFlow(), record=LogSpaced(2))
    assert path.outcome.ok
    assert path.dataset.test_error[-1] < 1e-8
    # its escape along the leading direction of S takes log(1 / alpha) / (2 sigma)
    sigma = np.linalg.norm(problem.adjoint(problem.y), 2)
    half = np.searchsorted(path.dataset.loss.values[::-1], 0.5 * path.dataset.loss.values[0])
    about = path.t if half == 0 else path.dataset.t.values[::-1][half - 1]
    assert 0.5 < about / (60 / (2 * sigma)) < 4


def test_labels_and_records():
    model, problem = CASES["product"]
    data = train(model, problem, MatrixFlow()).dataset
    assert data.predictor.dims == ("time", "row", "column")
    assert (np.diff(data.t) > 0).all()
    assert (np.diff(data.log_loss) < 0).all()
    np.testing.assert_allclose(data.norm_nuclear[-1], np.linalg.norm(data.predictor[-1], "nuc"))
    np.testing.assert_allclose(data.norm_l2[-1], np.linalg.norm(data.predictor[-1]))
    np.testing.assert_allclose(data.test_error[-1], problem.test_error(data.predictor[-1].values))
    assert all(v.attrs["units"] and v.attrs["long_name"] for v in data.variables.values())
    given_data = Completion((5, 5), problem.entries, problem.y)
    dataset = train(model, given_data, MatrixFlow(), stop=Time(0.1)).dataset
    np.testing.assert_array_equal(dataset.y, problem.y)
    assert "test_error" not in dataset


ZERO = Factorization(factors=(np.zeros((5, 2)), np.zeros((5, 2))))
UNSIGNED, DEEP = SymmetricFactorization(3, alpha=0.5), DeepFactorization(3, 4, alpha=2)
FIT, SPENT, STALLED = Kind.SOLVED, Kind.BUDGET_SPENT, Kind.STALLED
TWICE = Sensing(np.ones((2, 3, 3)), [1.0, 2.0])
MINUS = Completion((2, 2), [[0, 0], [1, 1]], [-1.0, 2.0])


@pytest.mark.parametrize(
    ("flow", "stop", "model", "problem", "kind", "words"),
    [
        (MatrixFlow(), None, ZERO, SMALL, STALLED, "a saddle"),
        (MatrixFlow(form="lifted"), None, ZERO, SMALL, STALLED, "a saddle"),
        (MatrixFlow(), [Time(0.1), Loss(1e-9)], *CASES["product"], SPENT, "by Time"),
        (MatrixFlow(), Time(0.1), *CASES["product"], FIT, "followed to t=0.1"),
        (MatrixFlow(max_steps=2), None, *CASES["product"], SPENT, "raise max_steps"),
        (MatrixFlow(), None, Factorization(4, alpha=0.5), TWICE, STALLED, "no matrix fits y"),
        (MatrixFlow(), None, UNSIGNED, MINUS, STALLED, "cannot fit y"),
        (MatrixFlow(max_steps=9), None, DEEP, SMALL, SPENT, "perhaps because the flow is stiff"),
        (MatrixFlow(), Loss(6), DifferenceFactorization(alpha=1), MINUS, FIT, "already fits"),
        (MatrixFlow(), None, Factorization(9, alpha=1e4), SMALL, FIT, "rounding allows"),
    ],
)
def test_outcomes_are_sentences(flow, stop, model, problem, kind, words):
    outcome = train(model, problem, flow, stop=stop).outcome
    assert outcome.kind is kind, outcome
    assert words in outcome.sentence


test_bad_input_gets_one_sentence = refusals(
    (lambda: MatrixFlow(form="raw"), "unknown form"),
    (lambda: MatrixFlow(rtol=1), "rtol must be between"),
    (lambda: MatrixFlow(rtol=1e-12), "rtol must be between 1e-11"),
    (
        lambda: train(*CASES["product"], MatrixFlow(), stop=Accuracy(train=1)),
        "Accuracy does not apply .* use Interpolated, Loss, LogLoss, Time",
    ),
    (
        lambda: train(*CASES["product"], MatrixFlow(), record=At(steps=[1])),
        r"cannot record at steps; use At\(times=...\)",
    ),
    (lambda: train(DiagonalNet(alpha=1), SMALL, MatrixFlow()), "must be a matrix model"),
    (
        lambda: train(ZERO, Regression([[1.0]], [1.0]), MatrixFlow()),
        "a Completion or a Sensing",
    ),
    (
        lambda: train(DeepFactorization(3, 2, alpha=1), SMALL, MatrixFlow(form="lifted")),
        "needs a model of two factors",
    ),
    (lambda: MatrixFlow(weight_decay=-1), "weight_decay must be >= 0"),
    (lambda: train(Factorization(3, alpha=1, shape=(2, 3)), SMALL, MatrixFlow()), "6 entries"),
    (lambda: At(times=[-1.0]), "times must be >= 0, got -1"),
    (lambda: At(times="log"), "times must list moments"),
    (lambda: At(times=[np.nan]), "times must be"),
    (
        lambda: train(*CASES["product"], MatrixFlow(), stop=Time(3.0), record=At(times=[5.0])),
        r"MatrixFlow: At\(times=...\) must stay within Time\(3\), got 5",
    ),
)


# --- records --------------------------------------------------------------------------------

REQUESTED = [3.0, 0.5, 0.02, 3.0, 0.0, 0.5]


@pytest.mark.parametrize(
    "case",
    [
        (MatrixFlow(), "product", 0.0),
        (MatrixFlow(weight_decay=0.1), "difference", 0.1),
        (MatrixFlow(form="lifted"), "symmetric", 0.0),
        (MatrixFlow(), "deep", 0.0),
    ],
    ids=lambda case: case[1],
)
def test_records_are_at_the_requested_times_each_once(case):
    flow, name, rate = case
    model, problem = (DeepFactorization(3, 5, alpha=0.6), SMALL) if name == "deep" else CASES[name]
    path = train(model, problem, flow, stop=Time(3.0), record=At(times=REQUESTED))
    assert path.dataset.t.values.tolist() == [0.0, 0.02, 0.5, 3.0]
    for t, matrix in zip(path.dataset.t.values[1:], path.dataset.predictor.values[1:], strict=True):
        exact = model.matrix(end_of_flow(model, problem, float(t), rate))
        assert np.abs(matrix - exact).max() < 1e-6 * np.abs(exact).max()


def test_records_beyond_the_end_are_not_made_up():
    model, problem = CASES["product"]
    free = train(model, problem, MatrixFlow())
    path = train(model, problem, MatrixFlow(), record=At(times=[0.1, 1e9]))
    assert path.dataset.t.values.tolist() == [0.0, 0.1, path.t]
    assert path.t == pytest.approx(free.t, rel=1e-3)
    np.testing.assert_allclose(path.predictor, free.predictor, atol=1e-7)


def test_log_spaced_records_and_named_times_go_together():
    model, problem = CASES["product"]
    spaced = train(model, problem, MatrixFlow(), record=LogSpaced(4)).dataset.t.values
    both = train(model, problem, MatrixFlow(), record=[LogSpaced(4), At(times=[0.1, 0.7])])
    t = both.dataset.t.values
    assert (np.diff(t) > 0).all()
    np.testing.assert_allclose(t, np.union1d(spaced[:-1], [0.1, 0.7, t[-1]]), rtol=1e-12)
    exact = model.matrix(end_of_flow(model, problem, 0.7))
    np.testing.assert_allclose(both.dataset.predictor.values[t == 0.7][0], exact, atol=1e-6)


# --- one grammar ----------------------------------------------------------------------------

SAME = ("predictor", "predictions", "norm_l2", "norm_nuclear", "test_error", "relative_error")


@pytest.mark.parametrize("name", ["product", "sensing", "difference"])
def test_flow_and_descent_record_the_same_names_and_come_to_the_same_numbers(name):
    model, problem = CASES[name]
    flow = train(model, problem, MatrixFlow(), stop=Time(0.5)).dataset
    stiff = train(model, problem, ParameterFlow(rtol=1e-9), stop=Time(0.5)).dataset
    steps = train(model, problem, GradientDescent(1e-4), stop=Steps(5000)).dataset
    assert set(flow.variables) <= set(steps.variables)
    assert set(flow.variables) <= set(stiff.variables)
    for one in (*SAME, "log_loss", "parameter_norm", "turn"):
        np.testing.assert_allclose(stiff[one][-1], flow[one][-1], rtol=1e-5, atol=1e-6, err_msg=one)
        np.testing.assert_allclose(steps[one][-1], flow[one][-1], rtol=2e-2, atol=2e-3, err_msg=one)
        assert steps[one].attrs == flow[one].attrs
    M = flow.predictor.values[-1]
    apart = np.sqrt(np.sum((M - problem.truth) ** 2) / np.sum(problem.truth**2))
    assert flow.relative_error.values[-1] == pytest.approx(apart, rel=1e-12)


@pytest.mark.parametrize("form", ["factors", "lifted"])
def test_half_the_squares_run_the_same_way_in_twice_the_time(form):
    model, problem = CASES["product"]
    half = dataclasses.replace(problem, loss="half squares")
    flow = MatrixFlow(rtol=1e-9, form=form, weight_decay=0.2)
    whole = train(model, problem, flow, stop=Time(2.0), record=At(times=[0.5]))
    slow = MatrixFlow(rtol=1e-9, form=form, weight_decay=0.1)
    path = train(model, half, slow, stop=Time(4.0), record=At(times=[1.0]))
    assert path.dataset.t.values.tolist() == [0.0, 1.0, 4.0]
    np.testing.assert_array_equal(path.dataset.predictor, whole.dataset.predictor)
    assert path.log_loss == pytest.approx(whole.log_loss - np.log(2))
    w, slope = model.start(problem.dimension), loss_gradient(model, problem)
    grown = solve_ivp(lambda _, w: -slope(w) / 2 - 0.1 * w, (0, 4), w, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(path.predictor, model.matrix(grown.y[:, -1]), atol=1e-6)


@everyone
def test_a_penalty_of_squares_is_a_weight_decay(name):
    model, problem = CASES[name]
    rules = {"stop": Time(1.0), "record": At(times=[])}
    decayed = train(model, problem, MatrixFlow(weight_decay=0.3), **rules)
    penalized = train(model, problem, MatrixFlow(), penalty=0.15 * L2(), **rules)
    np.testing.assert_array_equal(penalized.parameters, decayed.parameters)
    free = train(model, problem, MatrixFlow(), **rules)
    assert np.abs(free.parameters - decayed.parameters).max() > 1e-2


def test_a_goal_stops_decayed_training_too():
    model, problem = CASES["product"]
    path = train(model, problem, MatrixFlow(weight_decay=0.01), stop=[Loss(0.1), Time(50.0)])
    assert path.outcome.kind is Kind.SOLVED
    assert path.t < 50
    assert path.dataset.loss.values[-1] <= 0.1 < path.dataset.loss.values[-2]
    never = train(model, problem, MatrixFlow(weight_decay=0.5), stop=[Loss(1e-6), Time(50.0)])
    assert never.outcome.kind is Kind.BUDGET_SPENT
