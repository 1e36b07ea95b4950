"""Modular addition with Adam: that another law of the delay would be caught, and Adam's clock."""

import math

import numpy as np
import pytest

from figure_checks import assert_can_be_read
from penchant.forecasts import adam_clock, adam_delay
from penchant.lab.evidence.evidence import judge
from penchant_papers.instances import slope
from penchant_papers.notsawo2025.figures import algorithmic_dataset as module
from penchant_papers.notsawo2025.figures.algorithmic_dataset import MEMORY
from penchant_papers.notsawo2025.figures.runs import USUAL
from token_datasets import token_dataset

C = {"l1": 2e-3, "l2^2": 1e-3, "nuclear": 7e-3}
RUNS = module.study.at("printed").arguments["runs"]


def invented(law=adam_delay, longer=1, solves=True):
    """The runs of the printed size with curves that obey the law."""
    return token_dataset([curves({**USUAL, **run}, law, longer, solves) for run in RUNS])


def curves(run, law, longer, solves):
    steps = np.unique(np.geomspace(1, longer * run["steps"], 1200).astype(int))
    pace, t1 = run["learning_rate"] * run["beta"], 0.6 / run["learning_rate"]
    delay = law(pace, C[run["penalty"]]) if pace else math.inf
    delay = 1 / pace if run["decoupled"] else delay
    t2 = t1 + float(delay)
    test = np.where(steps >= t2, 1.0, np.where(steps < t1, 0.1, 0.6))
    train = np.where(steps >= t1, 1.0, 0.5)
    shown = test if solves else np.minimum(test, 0.8)
    return {**run, "step": steps, "train_accuracy": train, "test_accuracy": shown}


def test_the_printed_size_has_the_source_s_table_and_step_and_all_three_penalties():
    given = module.study.at("printed").arguments["given"]
    assert (given["modulus"], given["fraction"], given["width"]) == (97, 0.4, 64)
    usual = [run for run in RUNS if run["beta"] and not run.get("decoupled")]
    assert {run["penalty"] for run in usual if run["learning_rate"] == 1e-3} == set(C)
    assert sum(run["steps"] for run in RUNS) < 20_000 * 110  # steps of a minute, minutes


def test_runs_as_claimed_pass():
    evidence = module.check(invented())
    assert judge(evidence)[0] == "holds"
    law = next(check for name, check in evidence.checks.items() if "predicted" in name)
    assert law.measured < 0.05
    for name in module.RIVALS:
        assert evidence.controls[name].measured > law.measured + 0.1
    assert (
        evidence.controls[
            r"$t_2 - t_1 = c/(\mathrm{step}\,\beta)$, as in gradient descent"
        ].measured
        > 1
    )


def test_runs_that_do_not_generalize_or_not_later_for_a_smaller_beta_are_refuted():
    undecided = ("fails", "inconclusive")
    assert judge(module.check(invented(solves=False)))[0] in undecided
    assert judge(module.check(invented(law=lambda pace, c: 2500.0)))[0] in undecided


@pytest.mark.parametrize(
    "law",
    [
        lambda pace, c: 0.03 * c / pace,
        lambda pace, c: 3e3 * (c / pace / 3e3) ** 0.5,
        lambda pace, c: adam_delay(pace, c * (pace / 1e-7) ** 0.3),
        lambda pace, c: adam_delay(pace, c * (pace / 1e-7) ** -0.3),
    ],
    ids=["gradient descent", "square root", "c falls with beta", "c grows"],
)
def test_another_law_of_the_delay_is_refuted(law):
    """Runs that are long enough for it, so that nothing but the law is wrong."""
    evidence = module.check(invented(law=law, longer=100))
    assert all(premise.holds for premise in evidence.premises.values())
    failed = [name for name, check in evidence.checks.items() if not check.passes]
    assert ["predicted" in name for name in failed] == [True]


def test_a_weaker_beta_is_predicted_by_the_clock():
    """Against `adam_delay`, which has c as an argument."""
    delay = float(adam_delay(1e-7, 2e-3))
    assert float(module.log_law(delay, 30)) == pytest.approx(float(adam_delay(1e-7 / 30, 2e-3)))


@pytest.mark.parametrize(
    ("step", "beta", "memory", "way"),
    [
        (1e-3, 1e-5, 1e-2, 0.5),
        (1e-2, 1e-6, 1e-2, 0.5),
        (1e-2, 1e-4, 1e-3, 0.2),
        (3e-3, 1e-3, 1e-1, 0.05),
    ],
)
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
    assert slope(pace, adam_clock(delays)) == pytest.approx(-1, abs=1e-9)
    assert slope(pace[:10], delays[:10]) > -0.2  # in steps it is a logarithm
    assert slope(pace[-10:], delays[-10:]) == pytest.approx(-1, abs=0.01)
    decade = float(adam_delay(1e-12, 2e-3) - adam_delay(1e-11, 2e-3))
    assert decade == pytest.approx(MEMORY * math.log(10), rel=1e-4)
    assert pytest.approx(2000, rel=1e-3) == MEMORY


def test_the_picture_shows_both_laws():
    picture = module.experiment.picture([invented()])
    assert_can_be_read(picture)
    times, clock = picture.axes
    row = module.parts(invented())[0][0]
    solid, dotted = times.lines[:2]
    weaker = row.step_betas[0] / solid.get_xdata()
    np.testing.assert_allclose(solid.get_ydata(), module.log_law(row.delays[0], weaker))
    np.testing.assert_allclose(dotted.get_ydata(), row.delays[0] * weaker)
    np.testing.assert_allclose(clock.lines[0].get_ydata() * clock.lines[0].get_xdata(), row.c[0])
