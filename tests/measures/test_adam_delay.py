"""Adam's clock, against Adam itself on one parameter that only a penalty pulls."""

import numpy as np
import pytest

from penchant import forecasts


@pytest.mark.parametrize("beta", [1e-3, 1e-4])
def test_the_delay_against_adam_by_hand(beta):
    """A loss of slope 1 for a thousand steps, then none: the penalty moves x by `way`."""
    step, way, square = 1e-2, 0.05, 0.999
    x = m = 0.0
    v, taken = 1.0, 0  # as after long training on a slope of 1
    while x > -way and taken < 100_000:
        m, v = 0.9 * m + 0.1 * beta, square * v + (1 - square) * beta**2
        x -= step * m / np.sqrt(v)
        taken += 1
    memory = forecasts.adam_memory(square)
    assert memory == pytest.approx(1999, abs=1)
    assert float(forecasts.adam_delay(step * beta, way)) == pytest.approx(taken, rel=0.05)
    assert float(forecasts.adam_delay(step * beta, way, 0.99)) < 0.5 * taken


def test_the_clock_inverts_the_delay():
    pace = np.array([1e-6, 1e-8])
    clock = forecasts.adam_clock(forecasts.adam_delay(pace, 2e-3))
    np.testing.assert_allclose(pace * clock, 2e-3, rtol=1e-12)
    assert np.isnan(forecasts.adam_clock(np.nan))
