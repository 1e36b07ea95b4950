"""Forecasts of the transition: theories that the check refutes."""

import numpy as np
import pytest

from penchant import forecast
from penchant.forecasts import transition
from penchant_papers.lyu2023 import forecasts

MAJORITY, WIDE, TABLE = "majority, n=40 d=300", "wide margin, gamma=6 d=1500", "table"


@pytest.fixture
def data(data_of):
    return data_of("L-forecast")


def with_cell(dataset, case):
    """The dataset with one cell computed again."""
    found = forecasts.cell(case, 20.0, 1e-3, 11)
    place = {"case": case, "alpha": 20.0, "rate": 1e-3, "seed": 11}
    changed = dataset.copy(deep=True)
    for name, value in found.items():
        changed[name].loc[place] = value
    return changed


def test_log_alpha_over_rate_is_refuted(data, judged):
    wrong = [d.assign(predicted=d.naive) for d in data[:2]]
    verdict = judged("L-forecast", (*wrong, data[2]))
    missed = [name for name, check in verdict.evidence.checks.items() if check.misses]
    for family in ("majority", "wide margin", "table"):
        assert f"{family}: worst error of the predicted time of the test curve" in missed


def test_what_the_predictor_does_is_not_yet_what_the_test_curve_does(data, refuted):
    wrong = [d.assign(predicted=d.turning) for d in data[:2]]
    words = "wide margin: worst error of the predicted time of the test curve"
    assert refuted("L-forecast", (*wrong, data[2]), words)


def test_norms_that_meet_do_not_tell_when_wide_margins_fall(monkeypatch, data, refuted):
    monkeypatch.setattr(transition, "minimisers", lambda *args: None)
    monkeypatch.setattr(forecasts, "forecast", lambda *args, measure=None: forecast(*args))
    words = "wide margin: worst error of the predicted time of the test curve"
    assert refuted("L-forecast", (with_cell(data[0], WIDE), *data[1:]), words)


def test_a_turn_in_the_wrong_unit_is_refuted(monkeypatch, data, refuted):
    def radians(*given, **named):
        if len(given) > 1:
            return forecast(*given, **named)
        return forecast({**given[0], "turn": np.radians(given[0]["turn"])})

    monkeypatch.setattr(forecasts, "forecast", radians)
    changed = with_cell(data[0], MAJORITY), *data[1:]
    assert refuted("L-forecast", changed, "half turn predicted from the run so far")


def test_a_run_of_another_rate_is_refuted(faster, data, refuted):
    faster(forecasts, 1.5)
    words = "majority: worst error of the predicted time of the predictor"
    assert refuted("L-forecast", (with_cell(data[0], MAJORITY), *data[1:]), words)


def test_nets_outside_of_their_interval_are_refuted(data, refuted):
    late = data[2].assign(half_turn=data[2].high + 0.1)
    assert refuted("L-forecast", (*data[:2], late), "quadratic nets")


def test_runs_without_a_clear_change_decide_nothing(data, judged):
    silent = data[0].assign(measured=data[0].measured.where(data[0].case != TABLE))
    verdict = judged("L-forecast", (silent, *data[1:]))
    assert verdict.status == "inconclusive"
    assert "table: most runs show a clear late change" in verdict.reason
