"""Figure 6 (a, b): that wrong nets, flows and kernels would be caught, and what a run measures."""

import numpy as np
import pytest

from penchant import Regression, train
from penchant.lab.evidence.evidence import HOLDING, judge
from penchant.measures import gradient_distance, kernel_machine
from penchant.methods import TangentFlow
from penchant.models import relu_net
from penchant.record import At
from penchant.stop import Loss
from penchant_papers.woodworth2020.figures import circle_nets, figure_6ab, figure_6c, figure_6d
from penchant_papers.woodworth2020.figures.circle_nets import data, kernel_outputs, start, trained

ID = figure_6ab.experiment.id


@pytest.fixture
def datasets(data_of):
    return [dataset.copy(deep=True) for dataset in data_of(ID)]


def status(*datasets):
    return judge(figure_6ab.experiment.evidence(datasets))[0]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("grad_distance", lambda runs: np.minimum(1.0, runs.grad_distance + 0.02)),
        ("grad_distance", lambda runs: np.sqrt(runs.grad_distance)),
        ("grad_distance", lambda runs: runs.grad_distance / 10),
        ("test_error", lambda runs: runs.kernel_error),
    ],
    ids=["never still", "another exponent", "hardly turned", "no better"],
)
def test_a_wrong_measure_is_refuted(datasets, name, change):
    runs, limits, steps = datasets
    runs[name] = change(runs)
    assert status(runs, limits, steps) not in HOLDING


def test_another_predictor_in_the_kernel_limit_is_refuted(datasets):
    runs, limits, steps = datasets
    assert status(runs, limits.assign(converged=limits.converged + 0.001), steps) not in HOLDING


def test_descent_that_learns_something_else_is_refuted(datasets):
    runs, limits, steps = datasets
    assert status(runs, limits, steps) in HOLDING
    assert status(runs, limits, steps.assign(apart=steps.early)) not in HOLDING
    assert status(runs, limits, steps.assign(turned=steps.turned / 100)) not in HOLDING
    assert status(runs, limits, steps.assign(moved=steps.apart)) not in HOLDING
    assert status(runs, limits, steps.assign(loss=2 * figure_6ab.FITTED)) not in HOLDING


def test_as_printed_large_starts_never_enter_the_kernel_regime(verdict_of):
    """The net with its own output at the start: what is printed is judged, and misses."""
    verdict = verdict_of(ID)
    missed = [name for name, check in verdict.evidence.checks.items() if check.misses]
    assert verdict.status == "holds as corrected"
    assert missed == [
        r"as printed, $\alpha \to \infty$: largest median grad distance over the depths"
    ]


def test_nets_with_an_output_at_the_start_are_refuted(datasets):
    runs, limits, steps = datasets
    large = runs.scale >= 10.0
    runs["grad_distance"] = runs.grad_distance.where(~large, limits.biased.median("seed"))
    assert status(runs, limits, steps) not in HOLDING


def test_as_printed_it_would_hold_if_outputs_at_the_start_did_no_harm(datasets):
    runs, limits, steps = datasets
    assert status(runs, limits.assign(biased=limits.biased / 100), steps) == "holds"


def test_one_border_of_the_kernel_regime_in_all_panels(datasets):
    assert figure_6ab.INSIDE == figure_6c.INSIDE == figure_6d.INSIDE == 0.01
    assert figure_6ab.OUTSIDE == figure_6c.OUTSIDE == figure_6d.OUTSIDE
    evidence = figure_6ab.experiment.evidence(datasets)
    still = [c for n, c in evidence.corrected.items() if "largest grad distance" in n]
    assert [check.tolerance for check in still] == [figure_6ab.INSIDE]


def at_rest(runs, count, scale, turned=1e-5):
    """The same runs, of which some from one scale come to rest above their loss, hardly turned."""
    runs = runs.copy(deep=True)
    runs["rests"] = runs.rests.astype("<U20")
    place = {"seed": runs.seed.values[:count], "scale": scale}
    runs.rests.loc[place] = "a start: at rest"
    runs.grad_distance.loc[place] = turned
    runs.test_error.loc[place] = runs.kernel_error.loc[place]
    return runs


def test_flows_at_rest_above_their_loss_count_as_they_are(datasets):
    """None is left out: what rests before its features turn is no net that left the regime."""
    runs, limits, steps = datasets
    small = figure_6ab.RICH
    rest = int((at_rest(runs, 1, small).rests != "").sum())  # one draw at every depth
    evidence = figure_6ab.experiment.evidence((at_rest(runs, 1, small, turned=0.5), limits, steps))
    assert judge(evidence)[0] == "holds as corrected"
    assert f"{rest} of {runs.rests.size} flows end above their loss" in evidence.findings[-1]
    assert status(at_rest(runs, 9, small), limits, steps) not in HOLDING
    assert (
        status(at_rest(runs, 15, small, turned=0.5), limits, steps) not in HOLDING
    )  # errs as a kernel


def test_a_large_start_that_misses_labels_its_features_reach_is_inconclusive(datasets):
    runs, limits, steps = datasets
    assert status(at_rest(runs, 1, figure_6ab.LARGE[0]), limits, steps) == "inconclusive"


def test_a_run_that_does_not_reach_its_loss_says_so_and_is_measured(monkeypatch):
    flow = circle_nets.TangentFlow
    monkeypatch.setattr(circle_nets, "TangentFlow", lambda rtol: flow(rtol=rtol, max_steps=1))
    run = figure_6ab.cell(2, 1.0, 0, rtol=1e-2, loss=1e-9)
    assert 0 < run["grad_distance"] < 1
    assert run["rests"].startswith("alpha^D = 1: ")
    assert "raise max_steps" in run["rests"]


def test_kernel_outputs_are_those_of_the_interpolant():
    problem, model = data(1), start(2, 1.0, 1)
    X, y = problem.training.X, problem.training.y
    slow = kernel_machine(model, Regression(X, y)).predict(problem.test.X)
    np.testing.assert_allclose(kernel_outputs(2, 1.0, 1), slow, atol=1e-9)
    J, grid = (model.jacobian(model.start(2), rows) for rows in (X, problem.test.X))
    np.testing.assert_allclose(slow, grid @ np.linalg.pinv(J) @ y, atol=1e-6)
    np.testing.assert_allclose(kernel_outputs(2, 9.0, 1), slow, atol=1e-9)  # whatever alpha
    other = kernel_outputs(2, 1.0, 1, other=2)
    assert np.abs(other - slow).max() > 1e-3


@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.parametrize("depth", [2, 5])
def test_outputs_of_a_move_are_the_features_times_the_move(depth, unbiased):
    model, X = start(depth, 1.0, 3, unbiased), data(3).training.X
    begin = model.start(2)
    move = np.random.default_rng(0).normal(size=len(begin))
    slow = circle_nets.gradients(model, begin, X) @ move
    np.testing.assert_allclose(circle_nets.outputs_of(model, begin, X, move), slow, rtol=1e-11)


def test_a_start_whose_features_miss_the_labels_is_found():
    """By least squares, and by three points of which no unit of the start sees a kink between."""
    task, J = data(19).training, circle_nets.features(2, 19)
    miss = task.y - J @ np.linalg.lstsq(J, task.y, rcond=1e-12)[0]
    floor = circle_nets.floor(2, 19)
    assert floor == pytest.approx(miss @ miss, rel=1e-6)
    first = start(2, 1.0, 19).start(2)[: 2 * circle_nets.WIDTH].reshape(-1, 2)
    patterns, groups = np.unique(task.X @ first.T > 0, axis=0, return_inverse=True)
    three = np.flatnonzero(groups.ravel() == np.bincount(groups.ravel()).argmax())
    assert (len(patterns), len(three)) == (8, 3)
    # the net is linear on the three: one combination of their features is zero
    null = np.cross(*task.X[three].T)
    assert floor == pytest.approx((null @ task.y[three]) ** 2 / (null @ null))
    assert circle_nets.floor(5, 19) < 1e-9 < floor  # more kinks


@pytest.mark.parametrize("seed", [1, 10])
def test_a_start_whose_features_reach_the_labels_is_taken(seed):
    """The worst conditioned of the draws too."""
    J, y = circle_nets.features(2, seed), data(seed).training.y
    miss = y - J @ np.linalg.lstsq(J, y)[0]
    assert np.linalg.matrix_rank(J) == len(y)
    assert miss @ miss < 1e-20
    assert circle_nets.floor(2, seed) == 0.0


def test_the_flow_of_a_large_start_rests_at_the_floor():
    assert not circle_nets.ended(2, 100.0, 19, data(19).training).outcome.ok
    floor = circle_nets.floor(2, 19)
    end = circle_nets.ended(2, 100.0, 19, data(19).training, loss=1.01 * floor)
    assert np.exp(end.log_loss) > 0.99 * floor


def test_draws_that_do_not_fit_are_drawn_again():
    """Number 1004 among them, on which the integrator gave up from every large start."""
    assert circle_nets.floor(2, 1004) > 1e-9
    numbers = []
    for seed in range(12):
        number, tries = circle_nets.fitting(seed)
        assert number == 1000 * seed + tries - 1
        numbers.append(number)
    assert all(circle_nets.floor(d, n) <= 1e-9 for n in numbers for d in circle_nets.DEPTHS)


def test_a_run_measures_what_it_says():
    run = trained(2, 0.1, 1)
    end = circle_nets.ended(2, 0.1, 1, data(1).training)
    model = start(2, 0.1, 1)
    outputs = model.predict(end.parameters, data(1).test.X)
    assert run["test_error"] == pytest.approx(np.mean((outputs - data(1).test.y) ** 2))
    pair = [model.jacobian(w, data(1).training.X) for w in (model.start(2), end.parameters)]
    assert run["grad_distance"] == pytest.approx(gradient_distance(*pair))
    cosine = np.sum(pair[0] * pair[1]) / np.prod([np.linalg.norm(J) for J in pair])
    assert run["grad_distance"] == pytest.approx(1 - cosine, rel=1e-6)
    assert np.exp(end.log_loss) <= 1e-9


def test_a_second_net_of_zero_weights_changes_nothing():
    """The net with the output of its start, as a difference, ends where the plain one ends."""
    depth = 3
    plain = relu_net(depth, circle_nets.WIDTH, alpha=1.0, seed=3)
    zero = Regression(data(3).training.X, np.zeros(10))
    ends = [
        train(model, zero, TangentFlow(rtol=1e-3), stop=Loss(1e-9), record=At(times=[]))
        for model in (plain, start(depth, 1.0, 3, unbiased=False))
    ]
    one, other = (np.asarray(end.parameters) for end in ends)
    np.testing.assert_allclose(other, np.r_[one, 0 * one], atol=1e-9)
    J = plain.jacobian(plain.start(2), zero.X), plain.jacobian(one, zero.X)
    turned = circle_nets.turned(depth, 1.0, 3, other, unbiased=False)
    assert turned == pytest.approx(gradient_distance(*J), rel=1e-6)


def test_a_smaller_error_in_few_draws_is_not_enough(datasets):
    """The mean of the logarithms has to be beyond chance, over draws that are independent."""
    runs, limits, steps = datasets
    few = runs.seed.isin(runs.seed.values[:3]) | (runs.scale > 1)
    runs["test_error"] = runs.test_error.where(few, runs.kernel_error)
    assert status(runs, limits, steps) not in HOLDING


def test_the_scale_is_alpha_to_the_depth():
    ratio = start(3, 8.0, 0).start(2) / start(3, 1.0, 0).start(2)
    np.testing.assert_allclose(ratio, 2.0)


def test_the_critical_scale_is_where_descent_turns_unstable():
    """Just below it a step shrinks the fastest mode of the linearised net, above it grows."""
    scale = circle_nets.critical(2, 0)
    for factor, stable in ((0.9, True), (1.1, False)):
        model = start(2, factor * scale, 0)
        J = model.jacobian(model.start(2), data(0).training.X)
        shrunk = abs(1 - 2 * circle_nets.STEP * np.linalg.norm(J, 2) ** 2)
        assert (shrunk < 1) == stable


def test_a_run_that_comes_to_rest_is_made_again(monkeypatch):
    asked = []
    flow = circle_nets.TangentFlow

    def counted(rtol):
        asked.append(rtol)
        return flow(rtol=rtol, max_steps=1 if len(asked) == 1 else 10_000)

    monkeypatch.setattr(circle_nets, "TangentFlow", counted)
    assert circle_nets.ended(2, 10.0, 0, data(0).training).outcome.ok
    assert asked == pytest.approx([circle_nets.RTOL, circle_nets.RTOL / 3])
    monkeypatch.setattr(circle_nets, "TangentFlow", lambda rtol: flow(rtol=rtol, max_steps=1))
    assert "raise max_steps" in circle_nets.ended(2, 10.0, 0, data(0).training).outcome.sentence


def test_the_drawing(data_of):
    runs = data_of(ID)[0]
    picture = figure_6ab.experiment.picture(data_of(ID))
    a, b = picture.axes
    medians = runs.isel(depth=0)[list(figure_6ab.MEASURES)].median("seed")
    np.testing.assert_allclose(a.get_lines()[0].get_ydata(), medians.test_error)
    np.testing.assert_allclose(a.get_lines()[1].get_ydata(), medians.kernel_error)
    np.testing.assert_allclose(b.get_lines()[0].get_ydata(), medians.grad_distance)
    np.testing.assert_allclose(b.get_lines()[0].get_xdata(), runs.scale)
