"""Growth times, SAM and steepest flows: wrong theories are caught, and laws hold by hand."""

import math

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from penchant.lab import all_claims
from penchant_papers.beyond import growth
from penchant_papers.beyond.norms import sam


def verdict_of(id, data):
    experiment = all_claims()[id]
    return experiment.verdict(experiment.evidence(data), "tiny")


@pytest.mark.parametrize("wrong", ["plain", "swapped"])
def test_jumps_at_wrong_growth_times_are_no_evidence(data_of, wrong):
    data, far = data_of("beyond-growth")
    assert verdict_of("beyond-growth", (data, far)).status == "holds"
    worse = data.assign(jump=data[wrong], end=data[f"end_{wrong}"])
    assert verdict_of("beyond-growth", (worse, far)).status != "holds"


def test_equal_layers_grow_at_the_time_of_one_shared_weight():
    for scale in (0.5, 1.0, 2.0):  # 1 / a at depth 3, in units of the start; never downwards
        assert quad(lambda x, a=scale: 0.5 * (a * a + x) ** -1.5, 0, np.inf)[0] == pytest.approx(
            1 / scale
        )
    up, down = growth.escapes(np.array([1.0, 1.0 + 1e-9, 1.0 + 1e-6]))
    assert up == pytest.approx(1.0, rel=1e-5)
    assert down > 5


def test_a_product_of_unequal_layers_escapes_when_its_own_flow_does():
    sizes = np.array([0.7, 1.1, 1.6])

    def far(_, u):
        return np.abs(u).max() - 1e4

    far.terminal = True
    for sign, time in zip((1, -1), growth.escapes(sizes), strict=True):

        def flow(_, u, sign=sign):
            return sign * np.array([u[1] * u[2], u[0] * u[2], u[0] * u[1]])

        walked = solve_ivp(flow, (0, 100), sizes, events=far, rtol=1e-9)
        assert walked.t[-1] == pytest.approx(time, rel=1e-3)


@pytest.mark.slow
def test_gradient_descent_is_not_taken_for_sam(data_of):
    data, signs = data_of("beyond-sam")
    plain = data.assign(first=data.first_plain, law=data.line)
    assert verdict_of("beyond-sam", (plain, signs)).status != "holds"


def test_the_fate_of_a_start_is_that_of_its_weights():
    mu = sam.sample(3, 6)
    least = sam.RHO * mu.min() / math.sqrt(2 * (mu**2).sum())  # from here all weights fall
    assert not sam.fate(mu, 0.99 * least)
    assert sam.fate(mu, 1.3 * sam.threshold(mu))


@pytest.mark.slow
def test_the_regularizer_of_gradient_flow_is_not_taken_for_that_of_signs(data_of):
    data, escapes, fits = data_of("beyond-geometries")
    wrong = data.assign(off=data.off_plain)
    assert verdict_of("beyond-geometries", (wrong, escapes, fits)).status != "holds"
