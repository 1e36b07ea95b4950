"""When the weights leave the kernel regime: the forecast of a record without test accuracies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.forecasts.jump import JumpForecast, no_forecast
from penchant.forecasts.transition import Forecast, extrapolate

EVENT = "weights"
HOW = "pass train_accuracy= and test_accuracy= to the calls to have the jump of the test accuracy"
# `extrapolate` extends the kernel phase by a straight line, and runs come later: the margin falls
# on the way and the features begin to grow. In units of 1/rate the delay was 0.5 to 1.3 for ReLU
# and diagonal nets of degree 2 to 4 (1.6 at degree 5), and near the end it is at most 0.6 times
# log(decayed start / displacement). In 261 forecasts during 23 runs (descent, SGD, AdamW), the
# interval missed the truth 8 times, that of `extrapolate` 105 times; 6 and 38 of 79 on the runs
# that had no part in choosing these numbers, all 6 early: of degree 5, or AdamW at 5%.
LATER = (0.75, 1.5)  # expected and at most
NEARER = (0.3, 0.7)
DRIFT = 2.0  # a forecast may change again by this factor times its change since half of the record
SEEN = 0.1  # of the norm: before, the parameters turn because they fit the data
TURNS = (14.04, 45.0, 75.96)  # degrees at which the displacement is 1/4, 1 and 4 decayed starts


def forecast_turn(dataset: Any) -> JumpForecast:
    """When the weights leave the kernel regime under weight decay, by their norms and directions.

    The test accuracy may follow at once, later or never.
    """
    start = dataset.attrs["start_step"]
    t = dataset["glance_step"].values - start
    norm, turn = dataset["glance_norm"].values, dataset["glance_turn"].values
    known = np.isfinite(norm) & np.isfinite(turn)
    if np.count_nonzero(known) < 2:
        return _early("the record is too short for a forecast; record more of the run")
    t, norm, turn = t[known], norm[known], turn[known]
    if turn.max() >= TURNS[1]:
        return _seen(t, norm, turn, start)
    try:
        forecast = extrapolate(t, norm, turn)
    except ValueError as reason:
        return _early(str(reason))
    taken = -math.expm1(-forecast.weight_decay * float(t[-1]))
    if taken < SEEN:
        return _early(
            f"it is too early for a forecast: weight decay has removed {taken:.2%} of the norm, "
            f"and until about {SEEN:.0%} the parameters turn because they fit the data"
        )
    half = t <= t[-1] / 2
    try:
        before = extrapolate(t[half], norm[half], turn[half])
    except ValueError:
        return _early(
            "it is too early for a forecast: half of the record gives none to compare with"
        )
    drift = max(forecast.transition - before.transition, 0.0)
    return _later(forecast, drift, float(t[-1]), float(turn[-1]), start)


def _early(sentence: str) -> JumpForecast:
    return no_forecast("too early", f"{sentence} ({HOW})", EVENT)


def _later(forecast: Forecast, drift: float, now: float, turn: float, start: float) -> JumpForecast:
    """The forecast plus the usual delay of runs; before 45 degrees the event lies ahead."""
    short = -math.log(math.tan(math.radians(turn)))
    expected, most = (
        forecast.transition + min(later, nearer * short) / forecast.weight_decay
        for later, nearer in zip(LATER, NEARER, strict=True)
    )
    high = max(most, forecast.high) + DRIFT * drift
    step, low, high = (start + max(value, now) for value in (expected, forecast.low, high))
    sentence = (
        f"the norm decays at {forecast.weight_decay:.4g} per step, and the weights are expected to "
        f"leave the kernel regime at step {step:.4g}, between {low:.4g} and {high:.4g} ({HOW})"
    )
    return JumpForecast("expected", step, low, high, EVENT, sentence)


def _seen(t: Array, norm: Array, turn: Array, start: float) -> JumpForecast:
    """The finding for weights that have turned by 45 degrees."""
    highest = np.maximum.accumulate(turn)
    low, step, high = (float(np.interp(angle, highest, t)) for angle in TURNS)
    if not np.interp(step, t, norm) < (1 - SEEN) * norm[0]:
        sentence = (
            f"the weights had turned by {TURNS[1]:.0f} degrees at step {start + step:.4g}, when "
            f"weight decay had not removed {SEEN:.0%} of their norm: learning turned them, and "
            f"there is no kernel regime that weight decay would end ({HOW})"
        )
        return no_forecast("none", sentence, EVENT)
    sentence = (
        f"the weights have left the kernel regime: they had turned from the start by "
        f"{TURNS[0]:.0f} degrees at step {start + low:.4g}, by {TURNS[1]:.0f} at "
        f"{start + step:.4g}, and by {min(highest[-1], TURNS[2]):.0f} at {start + high:.4g}; "
        f"whether the test accuracy has risen is not known ({HOW})"
    )
    return JumpForecast("happened", start + step, start + low, start + high, EVENT, sentence)
