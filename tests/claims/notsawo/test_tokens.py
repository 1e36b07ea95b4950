"""Source N, modular addition: that wrong curves would be caught, and the clock of Adam."""

import dataclasses
import math

import numpy as np
import pytest
import xarray

from tacit.claims.evidence import judge
from tacit.claims.notsawo import arithmetic, regularizers, token_runs
from tacit.claims.notsawo.token_runs import Task, Training, change, spread, token_run
from tacit.measures.adam_clock import MEMORY, adam_clock, adam_delay
from tacit.models.token_mlp import TokenMLP
from tacit.problems.operations import modular_arithmetic
from tacit.regularizers.norms import L1
from tacit.training.descent.methods import Adam
from tacit.training.record import LogSpaced
from tacit.training.stop import Steps
from tacit.training.train import train

ROOMS = {"l1": 2e-3, "l2^2": 1e-3, "nuclear": 7e-3, "l2": 1e-2}  # c of the invented runs


def curves(training, c=None, law=adam_delay, rise=0.2, solves=True):
    """An invented run that obeys the law, and whose l2 norm rises after t2."""
    steps = np.unique(np.geomspace(1, training.steps, 400).astype(int))
    pace = training.step * training.beta
    t1 = 0.6 / training.step
    t2 = t1 + float(law(pace, c or ROOMS[training.penalty])) if pace else math.inf
    with np.errstate(divide="ignore"):
        late = np.clip(np.log(steps / t2) * 10, -50, 50) if pace else np.full(len(steps), -50.0)
    test = np.where(steps < t1, 0.1, np.where(late >= 0, 1.0, 0.6))
    fall = np.where(late < 0, 1.0, np.maximum(0.6, (t2 / steps) ** 0.5 if pace else 1.0))
    grown = fall
    if training.penalty == "l1":  # falls to 0.9 of its value at t2, and ends at 1 + rise times it
        after = np.log(np.maximum(steps / t2, 1)) / math.log(training.steps / t2)
        grown = np.interp(after, [0, 0.3, 1], [1, 0.9, 1 + rise])
    values = {"train_accuracy": np.where(steps >= t1, 1.0, 0.5),
              "test_accuracy": test if solves else np.minimum(test, 0.8),
              "norm_l1": 100 * fall, "norm_l2": 10 * grown, "norm_nuclear": 50 * fall}  # fmt: skip
    data = {name: ("time", array) for name, array in values.items()}
    return xarray.Dataset(data, {"step": ("time", steps)})


def verdict(monkeypatch, module, **wrong):
    """The status of a claim on invented runs; `wrong` says how they differ from the right ones."""
    monkeypatch.setattr(module, "token_run", lambda task, training: curves(training, **wrong))
    claim = regularizers.regularizers if module is regularizers else arithmetic.arithmetic
    evidence = claim("quick")
    assert evidence.checks
    return judge(evidence)


def test_runs_as_claimed_pass(monkeypatch):
    assert verdict(monkeypatch, regularizers)[0] == "holds"
    assert verdict(monkeypatch, arithmetic)[0] == "holds"


def test_an_l2_norm_that_does_not_rise_under_l1_is_refuted(monkeypatch):
    status, reason = verdict(monkeypatch, regularizers, rise=-0.2)
    assert status != "holds"
    status, reason = verdict(
        monkeypatch, regularizers, rise=0.01
    )  # 12% above its least, 1% above t2
    assert (status, "l2 norm at the end to that at t2 under l1" in reason) == ("fails", True)


@pytest.mark.parametrize("module", [regularizers, arithmetic])
def test_runs_that_do_not_generalize_are_refuted(monkeypatch, module):
    assert verdict(monkeypatch, module, solves=False)[0] in ("fails", "inconclusive")


def test_betas_that_do_not_matter_are_refuted(monkeypatch):
    def same(pace, c):
        return 800.0

    status, reason = verdict(monkeypatch, regularizers, law=same)
    assert status in ("fails", "inconclusive")
    assert "beta" in reason
    assert verdict(monkeypatch, arithmetic, law=same)[0] in ("fails", "inconclusive")


@pytest.mark.parametrize(
    "law",
    [
        lambda pace, c: c / pace,
        lambda pace, c: 3e3 * (c / pace / 3e3) ** 0.5,
        lambda pace, c: adam_delay(pace, c * (pace / 1e-7) ** 0.3),
        lambda pace, c: adam_delay(pace, c * (pace / 1e-7) ** -0.3),
    ],
    ids=["gradient descent", "square root", "c falls with beta", "c grows"],
)
def test_another_law_of_the_delay_is_refuted(monkeypatch, law):
    """Runs that are long enough for it, so that nothing but the law is wrong."""

    def run(task, training):
        return curves(dataclasses.replace(training, steps=100 * training.steps), law=law)

    monkeypatch.setattr(arithmetic, "token_run", run)
    evidence = arithmetic.arithmetic("quick")
    assert all(premise.holds for premise in evidence.premises.values())
    assert ["predicted" in check.name for check in evidence.checks if not check.passes] == [True]


def test_the_right_law_and_its_rivals_are_farther_apart_than_the_tolerance(monkeypatch):
    monkeypatch.setattr(arithmetic, "token_run", lambda task, training: curves(training))
    evidence = arithmetic.arithmetic("quick")
    law = next(check for check in evidence.checks if "predicted" in check.name)
    assert law.measured < 0.05
    for name in arithmetic.RIVALS:
        assert evidence.controls[name].measured > law.measured + 0.1
    assert evidence.controls["t2 - t1 = c/(step beta), as in gradient descent"].measured > 1


def test_a_weaker_beta_is_predicted_by_the_clock():
    """Against `adam_delay` itself, which knows c."""
    delay = float(adam_delay(1e-7, 2e-3))
    assert float(arithmetic.log_law(delay, 30)) == pytest.approx(float(adam_delay(1e-7 / 30, 2e-3)))


def test_the_measures_of_a_norm_after_t2():
    steps = np.array([1, 10, 100, 1000])
    values = {"train_accuracy": [0, 1, 1, 1], "test_accuracy": [0, 0.5, 1, 1],
              "norm_l1": [9, 9, 8, 4], "norm_l2": [1, 5, 2, 4]}  # fmt: skip
    run = xarray.Dataset({k: ("time", np.array(v, float)) for k, v in values.items()},
                         {"step": ("time", steps)})  # fmt: skip
    assert (token_runs.memorized(run), token_runs.generalized(run)) == (10, 100)
    assert (change(run, "l2"), change(run, "l1")) == (2.0, 0.5)
    assert (regularizers.dip(run), regularizers.soon(run)) == (1.0, 2.0)
    assert (spread(run, 0), spread(run, -1)) == (16.0, 1.0)
    never = run.assign(test_accuracy=run.test_accuracy * 0.9)
    assert math.isinf(token_runs.generalized(never))
    assert math.isnan(regularizers.dip(never))
    assert math.isnan(change(never, "l2"))


def test_a_shared_run_is_that_of_adam():
    training = Training("l1", 1e-3, 1e-2, 300, points_per_decade=10)
    run = token_run(Task(7, 0.6, 8, seed=2), training)
    problem = modular_arithmetic(7, operation="+", fraction=0.6, seed=2)
    rules = {"penalty": 1e-3 * L1(), "stop": Steps(300), "record": LogSpaced(10)}
    path = train(TokenMLP(8, 8, seed=2), problem, Adam(1e-2), **rules)
    assert int(run.step[0]) == 1
    for name in ("train_accuracy", "test_accuracy", "norm_l1", "norm_l2"):
        np.testing.assert_array_equal(run[name], path.dataset[name][1:])
    assert token_run(Task(7, 0.6, 8, seed=2), training) is run  # the claims run it once


@pytest.mark.parametrize(
    ("step", "beta", "memory", "way"),
    [(1e-3, 1e-5, 1e-2, 0.5), (1e-2, 1e-6, 1e-2, 0.5), (1e-2, 1e-4, 1e-3, 0.2),
     (3e-3, 1e-3, 1e-1, 0.05)],
)  # fmt: skip
def test_the_delay_is_that_of_adam_on_a_slope_after_a_steeper_one(step, beta, memory, way):
    """Second route: Adam itself on one parameter, sqrt(v) left at `memory` by an earlier slope."""
    x, mean, square, taken = 0.0, 0.0, memory**2, 0
    while x < way:
        mean = 0.9 * mean + 0.1 * beta
        square = 0.999 * square + 0.001 * beta**2
        x += step * mean / math.sqrt(square)
        taken += 1
    # the first moment lags behind by 0.9/(1 - 0.9) = 9 steps, which the law leaves out
    assert float(adam_delay(step * beta, way * memory)) == pytest.approx(taken - 9, rel=0.03)


def test_the_clock_turns_the_delay_into_a_power_law():
    pace = np.geomspace(1e-9, 1e-3, 40)
    delays = adam_delay(pace, 2e-3)
    np.testing.assert_allclose(adam_clock(delays), 2e-3 / pace, rtol=1e-9)
    assert arithmetic.slope(pace, adam_clock(delays)) == pytest.approx(-1, abs=1e-9)
    assert arithmetic.slope(pace[:10], delays[:10]) > -0.2  # in steps it is a logarithm
    assert arithmetic.slope(pace[-10:], delays[-10:]) == pytest.approx(-1, abs=0.01)
    decade = float(adam_delay(1e-12, 2e-3) - adam_delay(1e-11, 2e-3))
    assert decade == pytest.approx(MEMORY * math.log(10), rel=1e-4)
    assert pytest.approx(2000, rel=1e-3) == MEMORY
