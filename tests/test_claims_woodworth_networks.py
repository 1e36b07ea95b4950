"""W-F6ab: that wrong nets, flows and kernels would be caught, and the measures of its runs."""

import numpy as np
import pytest

from tacit.claims.registry import Claim
from tacit.claims.woodworth import network_runs, networks
from tacit.claims.woodworth.network_runs import Trained, data, kernel_outputs, net, start, trained
from tacit.models.tangent import gradient_distance
from tacit.probes.kernel_machines import kernel_interpolant
from tacit.records import NumericalError

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


def test_a_run_that_fails_makes_it_inconclusive(monkeypatch):
    def short(*arguments, **named):
        raise NumericalError("flow", network_runs.ended(2, 1.0, 0, data(0).training).outcome)

    monkeypatch.setattr(networks, "trained", short)
    assert CLAIM.run("quick").status == "inconclusive"


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
    assert end.loss <= 1e-9
    assert isinstance(run, Trained)


def test_the_scale_is_alpha_to_the_depth():
    ratio = start(3, 8.0, 0).start(2) / net(3, True).start(2)
    np.testing.assert_allclose(ratio, 2.0)


def test_the_critical_scale_is_where_descent_turns_unstable():
    """Just below it a step shrinks the fastest mode of the linearised net, above it grows."""
    scale = float(networks.critical(1)[0])
    for factor, stable in ((0.9, True), (1.1, False)):
        model = start(2, factor * scale, 0)
        J = model.jacobian(model.start(2), data(0).training.X)
        shrunk = abs(1 - 2 * networks.STEP * np.linalg.norm(J, 2) ** 2)
        assert (shrunk < 1) == stable


def test_a_crossing_is_found_on_a_known_curve():
    scales = (0.01, 1.0, 100.0)
    sweep = networks.Sweep(scales, 1)
    runs = np.zeros((1, 3, 1, len(Trained._fields)))
    runs[..., 0, 1] = np.array([1.0, 0.01, 1e-4])
    sweep.__dict__["runs"] = runs
    np.testing.assert_allclose(networks.crossing(sweep, 0.1), 0.1)


def test_a_run_that_comes_to_rest_is_made_again(monkeypatch):
    asked = []
    flow = network_runs.TangentFlow

    def counted(loss, rtol):
        asked.append(rtol)
        return flow(loss=loss, rtol=rtol, max_steps=1 if len(asked) == 1 else 10_000)

    monkeypatch.setattr(network_runs, "TangentFlow", counted)
    assert network_runs.ended(2, 10.0, 0, data(0).training).outcome.ok
    assert asked == pytest.approx([network_runs.RTOL, network_runs.RTOL / 10])
    monkeypatch.setattr(
        network_runs, "TangentFlow", lambda loss, rtol: flow(loss, rtol, max_steps=1)
    )
    with pytest.raises(NumericalError, match="raise max_steps"):
        network_runs.ended(2, 10.0, 0, data(0).training)
