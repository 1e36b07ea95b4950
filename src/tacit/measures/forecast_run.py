"""The forecast of a transition from a run so far: its norms and its angles."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array
from tacit.measures.forecast import SPREAD, Forecast


def forecast_run(t: ArrayLike, norm: ArrayLike, turn: ArrayLike) -> Forecast:
    """The transition foreseen by a run so far: its norm and `turn` (degrees) from the start, at t.

    `weight_decay` of the forecast is the rate of the norm's decay. The turn is the angle
    between e^(-z) theta0 and e^(-z) theta0 + delta, so its tangent is |delta| over the decayed
    start and passes 1 at the transition; the logarithms of both are fitted by lines over the
    second half of the record.

    Parameters
    ----------
    t
        The times.
    norm
        The norm of the parameters at these times.
    turn
        The angle from the start in degrees at these times.

    Returns
    -------
    Forecast
        The times.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> t = np.linspace(1.0, 20.0, 40)
    >>> turn = np.degrees(np.arctan(1e-3 * np.exp(0.1 * t)))
    >>> found = tacit.forecast_run(t, np.exp(-0.1 * t), turn)
    >>> round(found.weight_decay, 3), round(found.transition)
    (0.1, 69)
    """
    who = "forecast_run"
    times = finite_array(who, "t", t, ndim=1)
    norms, turns = (_matching(who, name, v, times) for name, v in (("norm", norm), ("turn", turn)))
    if not (np.diff(times) > 0).all() or not 1e-150 < times[-1] < 1e150:
        raise ValueError(f"{who}: t must increase, and end between 1e-150 and 1e150")
    late = (times >= times[-1] / 2) & (times > 0)
    if np.count_nonzero(late) < 4:
        raise ValueError(
            f"{who}: the second half of the record must hold at least 4 times, got "
            f"{np.count_nonzero(late)}; record more of the run"
        )
    if (norms <= 0).any() or (turns[late] <= 0).any():
        raise ValueError(f"{who}: norms and late turns must be > 0; has the run begun to train?")
    slope, error = _slope(times[late], np.log(norms[late]))
    if not -slope > 2 * error:
        raise ValueError(
            f"{who}: the norm does not decay clearly (rate {-slope:.3g} +- {error:.2g}), so there "
            "is no transition to forecast; is there weight decay?"
        )
    ratios = np.log(np.tan(np.radians(np.minimum(turns[late], 89.9))))
    growth, doubt = _slope(times[late], ratios)
    if not growth > 2 * doubt:
        raise ValueError(
            f"{who}: the turn does not grow clearly (by e^({growth:.3g} +- {doubt:.2g} t)), so "
            "there is nothing to extrapolate; record more of the run"
        )
    ahead = -float(ratios[-1]) / growth
    width = 2 * doubt / growth * abs(ahead) + math.log(SPREAD) / growth
    log_norm = float(np.log(norms[-1])) + slope * ahead
    return _from_run(float(times[-1]), ahead, width, (-slope, error), log_norm)


def _from_run(
    now: float, ahead: float, width: float, rate: tuple[float, float], log_norm: float
) -> Forecast:
    time, low, high = (max(now + z, 0.0) for z in (ahead, ahead - width, ahead + width))
    when = f"expected at t = {time:.4g}" if ahead > 0 else f"has happened, at about t = {time:.4g}"
    sentence = f"the norm decays at {rate[0]:.4g} +- {rate[1]:.2g}; the transition {when}"
    basis = "the run so far"
    return Forecast(time, low, high, rate[0], math.nan, log_norm, math.nan, basis, sentence)


def _matching(who: str, name: str, values: ArrayLike, t: Array) -> Array:
    array = finite_array(who, name, values, ndim=1)
    if len(array) != len(t):
        raise ValueError(f"{who}: {name} must have one value per time ({len(t)}), got {len(array)}")
    return array


def _slope(x: Array, y: Array) -> tuple[float, float]:
    """The least-squares slope and its standard error."""
    x, y = x - x.mean(), y - y.mean()
    square = float(x @ x)
    slope = float(x @ y) / square
    left = y - slope * x
    return slope, math.sqrt(float(left @ left) / max(len(x) - 2, 1) / square)
