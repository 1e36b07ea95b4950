"""The law of the jump: its constants are those of the fit, and its errors are as stated."""

import functools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jump_points as fitted
from penchant.forecasts.jump import (
    LOSS_LAW,
    OVERDUE,
    PLAIN_LAW,
    Losses,
    Progress,
    expected_jump,
)

FILE = Path(__file__).parent / "jump_points.npz"
GOAL = 0.25


@functools.cache
def points(plain):
    found = fitted.read(FILE)
    use = np.full(len(found["z"]), True) if plain else np.isfinite(found["memorized"])
    return {name: values[use] for name, values in found.items()}


def runs_of(p):
    return np.unique(p["run"], return_inverse=True)[1]


def mean_error(p, said, time):
    return fitted.errors(p, said)[np.isclose(p["asked"], time)].mean()


@pytest.mark.parametrize(("plain", "law"), [(False, LOSS_LAW), (True, PLAIN_LAW)])
def test_the_constants_are_those_of_the_fit(plain, law):
    p = points(plain)
    found = fitted.fit(fitted.signs(p, plain), np.log(p["jump_z"]), runs_of(p))
    np.testing.assert_allclose(found, law, atol=6e-4)


def test_the_errors_of_what_was_left_out_are_as_stated():
    stated = {(False, "run"): 0.23, (False, "family"): 0.23, (True, "run"): 0.29}
    stated[True, "family"] = 0.31
    for (plain, group), error in stated.items():
        p = points(plain)
        x, y = fitted.signs(p, plain), np.log(p["jump_z"])
        said = fitted.left_out(x, y, runs_of(p), p[group])
        assert mean_error(p, said, 1.2) == pytest.approx(error, abs=0.005)
    p = points(plain=False)
    constant = np.full(len(p["z"]), np.median(np.log(p["jump_z"])))
    assert mean_error(p, constant, 1.2) > 2 * GOAL  # one z for all runs does not do it


def test_intervals_of_runs_that_were_left_out_hold_the_jump(monkeypatch):
    """80% of the points and 80% of those at 1.2 times the memorization, at later times more."""
    p = points(plain=False)
    x, y, run = fitted.signs(p, plain=False), np.log(p["jump_z"]), runs_of(p)
    held = np.full(len(y), np.nan)
    for one in range(run.max() + 1):
        law = fitted.fit(x[run != one], y[run != one], run[run != one])
        monkeypatch.setattr("penchant.forecasts.jump.LOSS_LAW", tuple(law))
        for i in np.flatnonzero(run == one):
            try:
                found = expected_jump(fitted.seen_at(p, i))
            except ValueError:
                continue
            held[i] = found.low <= p["jump_z"][i] <= found.high
    assert np.isnan(held).mean() < 0.02
    share = 1 / np.bincount(run)[run]
    assert np.nansum(held * share) / share[np.isfinite(held)].sum() >= 0.8
    assert np.nanmean(held[np.isclose(p["asked"], 1.2)]) >= 0.8
    assert np.nanmean(held[np.isclose(p["asked"], 3.0)]) >= 0.8


def test_the_law_is_the_formula_of_its_docstring():
    seen = Progress(0.5, 0.01, 1.0, 30.0, Losses(0.4, 6.0, 6.2, -0.3))
    numbers = 1, math.log(math.log(1 + 1 / 0.4)), math.log(6), 0.5, -0.3
    z = math.exp(sum(a * b for a, b in zip(LOSS_LAW, numbers, strict=True)))
    found = expected_jump(seen)
    assert found.z == pytest.approx(z)
    assert found.low < found.z < found.high
    plain = expected_jump(seen._replace(losses=None))
    log = math.log(math.tan(math.radians(30))) - math.log(0.5)
    numbers = 1, 0.01, 0.5, log
    z = math.exp(sum(a * b for a, b in zip(PLAIN_LAW, numbers, strict=True)))
    assert plain.z == pytest.approx(z)
    assert plain.high / plain.low > found.high / found.low  # less is known


@given(
    z=st.floats(1e-6, 50),
    accuracy=st.floats(0, 1),
    norm=st.floats(1e-6, 1e6),
    turn=st.floats(0, 180),
    memorized=st.floats(1e-12, 1e3),
    test=st.floats(1e-12, 1e6),
    more=st.floats(1, 10),
    slope=st.floats(-1e3, 1e3),
    known=st.booleans(),
)
@settings(deadline=None, derandomize=True, max_examples=300)
def test_what_is_expected_is_ahead(z, accuracy, norm, turn, memorized, test, more, slope, known):
    losses = Losses(memorized, test, more * test, slope) if known else None
    try:
        found = expected_jump(Progress(z, accuracy, norm, turn, losses))
    except ValueError:
        return  # overdue, or the test loss does not fall: see below
    assert z <= found.low <= found.high < math.inf
    assert OVERDUE[0] * z <= found.z


def test_runs_that_do_not_grok_lose_their_forecast():
    seen = Progress(2.0, 0.0, 1.0, 60.0, Losses(0.4, 9.0, 9.0, 0.1))
    with pytest.raises(ValueError, match="the test loss does not fall"):
        expected_jump(seen)
    early = seen._replace(z=0.1)
    assert expected_jump(early).z > 0.1
    with pytest.raises(ValueError, match="overdue"):
        expected_jump(seen._replace(z=100.0, losses=Losses(0.4, 3.0, 9.0, -0.1)))
    risen = expected_jump(seen._replace(half=2.3))  # of a rise that has begun, whatever the loss
    assert risen.z == 2.3
    assert 2.0 <= risen.low < 2.3 < risen.high < 4.0
