"""W-F6ab: that wrong nets, flows and kernels would be caught, and the measures of its runs."""

import numpy as np
import pytest

from tacit.claims.registry import Claim
from tacit.claims.woodworth import network_runs, networks
from tacit.claims.woodworth.network_runs import Trained, data, kernel_outputs, net, start, trained
from tacit.measures.kernels.machines import kernel_interpolant
from tacit.models.tangent import gradient_distance
from tacit.records import Kind, NumericalError, Outcome

REFUTED = ("fails", "inconclusive")
CLAIM = Claim("W-F6ab", "statement", "place", networks.circle_nets)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """One depth: a wrong theory shows on it."""
    for module in (network_runs, networks):
        monkeypatch.setattr(module, "DEPTHS", (2,))


@pytest.fixture(scope="module")
def runs():
    """Every run of the claim, trained once."""
    kept = {}

    def once(depth, scale, seed, loss=1e-9):
        if (depth, scale, seed, loss) not in kept:
            kept[depth, scale, seed, loss] = trained(depth, scale, seed, loss=loss)
        return kept[depth, scale, seed, loss]

    return once


@pytest.fixture
def cheap(monkeypatch, runs):
    monkeypatch.setattr(networks, "trained", runs)


def changed(monkeypatch, runs, change):
    """The claim with every run replaced by `change(run, scale)`."""

    def wrong(depth, scale, seed, loss=1e-9):
        return change(runs(depth, scale, seed, loss), scale)

    monkeypatch.setattr(networks, "trained", wrong)
    return CLAIM.run("quick").status


def test_it_holds(cheap):
    verdict = CLAIM.run("quick")
    assert verdict.status == "holds", verdict.reason
    assert any("unbiasing" in line for line in verdict.evidence.findings)
    assert len(verdict.evidence.plots) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda run, scale: run._replace(grad_distance=min(1.0, run.grad_distance + 0.002)),
        lambda run, scale: run._replace(grad_distance=np.sqrt(run.grad_distance)),
        lambda run, scale: run._replace(grad_distance=run.grad_distance / 10),
        lambda run, scale: run._replace(test_error=run.kernel_error),
        lambda run, scale: run._replace(apart=run.apart + 0.001),
    ],
    ids=["never still", "another exponent", "hardly turned", "no better", "another predictor"],
)
def test_a_wrong_measure_is_refuted(monkeypatch, runs, change):
    assert changed(monkeypatch, runs, change) in REFUTED


def test_nets_with_an_output_at_the_start_are_refuted(monkeypatch, runs):
    """At alpha^D = 10 already their features turn as much as they ever will."""

    def wrong(depth, scale, seed, loss=1e-9):
        if scale < 1:
            return runs(depth, scale, seed, loss)
        return trained(depth, min(scale, 10.0), seed, unbiased=False)

    monkeypatch.setattr(networks, "trained", wrong)
    assert CLAIM.run("quick").status in REFUTED


def failing(runs, seeds, scale=1.0):
    """Runs that come to rest in some draws."""

    def run(depth, at, seed, loss=1e-9):
        if seed in seeds and at == scale:
            raise NumericalError("flow", Outcome(Kind.STALLED, f"seed {seed} at rest"))
        return runs(depth, at, seed, loss)

    return run


@pytest.mark.parametrize("seeds", [{2}, set(range(5))], ids=["one of five", "all"])
def test_runs_that_fail_make_it_inconclusive(monkeypatch, runs, seeds):
    monkeypatch.setattr(networks, "trained", failing(runs, seeds))
    verdict = CLAIM.run("quick")
    assert verdict.status == "inconclusive"
    assert "at rest" in " ".join(verdict.evidence.findings)


def test_a_draw_with_a_failed_run_is_left_out_and_named(monkeypatch, runs):
    monkeypatch.setattr(networks, "trained", failing(runs, {1}))
    sweep = networks.swept((1.0, 1e3), (0, 1, 2))
    assert sweep.draws == (0, 2)
    assert sweep.runs.shape == (1, 2, 2, len(Trained._fields))
    np.testing.assert_array_equal(sweep.runs[0, :, 1], [runs(2, s, 2) for s in (1.0, 1e3)])
    assert any("draw 1 is left out, for" in line and "at rest" in line
               for line in networks.left_out(sweep))  # fmt: skip


def test_one_draw_in_ten_may_come_to_rest(monkeypatch, runs):
    """Of ten draws: with one left out it holds, with two it does not say."""
    monkeypatch.setitem(networks.DRAWS, "quick", 10)
    for seeds, status in (({3}, "holds"), ({3, 7}, "inconclusive")):
        monkeypatch.setattr(networks, "trained", failing(runs, seeds))
        assert CLAIM.run("quick").status == status


def test_kernel_outputs_are_those_of_the_interpolant():
    problem, model = data(1), start(2, 1.0, 1)
    X, y = problem.training.X, problem.training.y
    slow = kernel_interpolant(model, X, y).predict(problem.test.X)
    np.testing.assert_allclose(kernel_outputs(2, 1.0, 1), slow, atol=1e-9)
    J, grid = (model.jacobian(model.start(2), rows) for rows in (X, problem.test.X))
    np.testing.assert_allclose(slow, grid @ np.linalg.pinv(J) @ y, atol=1e-6)
    np.testing.assert_allclose(kernel_outputs(2, 9.0, 1), slow, atol=1e-9)  # whatever alpha
    other = kernel_outputs(2, 1.0, 1, drawn=2)
    assert np.abs(other - slow).max() > 1e-3


def features(depth, seed):
    return net(depth, True).jacobian(start(depth, 1.0, seed).start(2), data(seed).training.X)


def test_a_start_whose_features_miss_the_labels_is_found():
    """By least squares, and by three points of which no unit of the start sees a kink between."""
    task, J = data(19).training, features(2, 19)
    miss = task.y - J @ np.linalg.lstsq(J, task.y, rcond=1e-12)[0]
    assert network_runs.floor(2, 19) == pytest.approx(miss @ miss, rel=1e-6)
    first = start(2, 1.0, 19).start(2)[: 2 * network_runs.WIDTH].reshape(-1, 2)
    patterns, groups = np.unique(task.X @ first.T > 0, axis=0, return_inverse=True)
    three = np.flatnonzero(groups.ravel() == np.bincount(groups.ravel()).argmax())
    assert (len(patterns), len(three)) == (8, 3)
    # the net is linear on the three: one combination of their features is zero
    null = np.cross(*task.X[three].T)
    assert network_runs.floor(2, 19) == pytest.approx((null @ task.y[three]) ** 2 / (null @ null))
    assert not network_runs.fits(19, (2,))
    assert network_runs.fits(19, (5,))  # more kinks
    assert not network_runs.fits(19, (5, 2))


@pytest.mark.parametrize("seed", [1, 10])
def test_a_start_whose_features_reach_the_labels_is_kept(seed):
    """The worst conditioned of the draws too."""
    J, y = features(2, seed), data(seed).training.y
    miss = y - J @ np.linalg.lstsq(J, y)[0]
    assert np.linalg.matrix_rank(J) == len(y)
    assert miss @ miss < 1e-20
    assert network_runs.floor(2, seed) == 0.0
    assert network_runs.fits(seed, (2,))


def test_the_flow_of_a_large_start_rests_at_the_floor():
    with pytest.raises(NumericalError):
        network_runs.ended(2, 100.0, 19, data(19).training)
    floor = network_runs.floor(2, 19)
    end = network_runs.ended(2, 100.0, 19, data(19).training, loss=1.01 * floor)
    assert np.exp(end.log_loss) > 0.99 * floor


def test_draws_that_do_not_fit_are_passed_over_and_named():
    assert network_runs.fitting(20, (2,)) == (*range(19), 20)
    assert network_runs.fitting(20, (2,), loss=1e-3) == tuple(range(20))
    (line,) = networks.left_out(networks.Sweep((), (*range(19), 20), np.empty(0)))
    assert line.startswith("draw 19 is left out")
    assert f"{network_runs.floor(2, 19):.2g} (D=2)" in line
    assert networks.left_out(networks.Sweep((), tuple(range(19)), np.empty(0))) == []


def test_the_claim_uses_the_draws_that_fit(monkeypatch, runs):
    """A draw that does not fit gives way to the next, and no run is made from it."""
    seen = set()

    def watched(depth, scale, seed, loss=1e-9):
        seen.add(seed)
        return runs(depth, scale, seed, loss)

    monkeypatch.setattr(networks, "trained", watched)
    monkeypatch.setattr(network_runs, "fits", lambda seed, depths, loss: seed != 1)
    verdict = CLAIM.run("quick")
    assert seen == {0, 2, 3, 4, 5}
    assert verdict.status == "holds", verdict.reason
    assert any(line.startswith("draw 1 is left out") for line in verdict.evidence.findings)


def test_a_run_measures_what_it_says():
    run = trained(2, 0.1, 1)
    end = network_runs.ended(2, 0.1, 1, data(1).training)
    model = start(2, 0.1, 1)
    outputs = model.predict(end.parameters, data(1).test.X)
    assert run.test_error == pytest.approx(np.mean((outputs - data(1).test.y) ** 2))
    pair = [model.jacobian(w, data(1).training.X) for w in (model.start(2), end.parameters)]
    assert run.grad_distance == pytest.approx(gradient_distance(*pair))
    cosine = np.sum(pair[0] * pair[1]) / np.prod([np.linalg.norm(J) for J in pair])
    assert run.grad_distance == pytest.approx(1 - cosine, rel=1e-6)
    assert np.exp(end.log_loss) <= 1e-9
    assert isinstance(run, Trained)


def test_the_scale_is_alpha_to_the_depth():
    ratio = start(3, 8.0, 0).start(2) / net(3, True).start(2)
    np.testing.assert_allclose(ratio, 2.0)


def test_the_critical_scale_is_where_descent_turns_unstable():
    """Just below it a step shrinks the fastest mode of the linearised net, above it grows."""
    scale = float(networks.critical((0,))[0])
    for factor, stable in ((0.9, True), (1.1, False)):
        model = start(2, factor * scale, 0)
        J = model.jacobian(model.start(2), data(0).training.X)
        shrunk = abs(1 - 2 * networks.STEP * np.linalg.norm(J, 2) ** 2)
        assert (shrunk < 1) == stable


def test_a_crossing_is_found_on_a_known_curve():
    scales = (0.01, 1.0, 100.0)
    runs = np.zeros((1, 3, 1, len(Trained._fields)))
    runs[..., 0, 1] = np.array([1.0, 0.01, 1e-4])
    sweep = networks.Sweep(scales, (0,), runs)
    np.testing.assert_allclose(networks.crossing(sweep, 0.1), 0.1)


def test_a_run_that_comes_to_rest_is_made_again(monkeypatch):
    asked = []
    flow = network_runs.TangentFlow

    def counted(rtol):
        asked.append(rtol)
        return flow(rtol=rtol, max_steps=1 if len(asked) == 1 else 10_000)

    monkeypatch.setattr(network_runs, "TangentFlow", counted)
    assert network_runs.ended(2, 10.0, 0, data(0).training).outcome.ok
    assert asked == pytest.approx([network_runs.RTOL, network_runs.RTOL / 10])
    monkeypatch.setattr(network_runs, "TangentFlow", lambda rtol: flow(rtol=rtol, max_steps=1))
    with pytest.raises(NumericalError, match="raise max_steps"):
        network_runs.ended(2, 10.0, 0, data(0).training)
