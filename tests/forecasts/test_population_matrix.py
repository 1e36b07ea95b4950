"""Matrices before the measurements: closed forms, the limits of the scale, draws, thresholds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import penchant
from penchant import L1, Q
from penchant.forecasts import population_error, population_matrix_error
from penchant.regularizers import Frobenius, Nuclear, Schatten, Spectral

LEFT, RIGHT = (np.linalg.qr(np.random.default_rng(k).normal(size=(12, 2)))[0] for k in (0, 1))
TRUTH = LEFT @ RIGHT.T / math.sqrt(2)
SETTING = {"samples": 60, "truth": TRUTH, "noise": 0.1}


def test_the_frobenius_norm_has_the_error_of_a_random_projection():
    for noise in (0.0, 0.1, 3.0):
        known = (1 - 60 / 144) + noise**2 * 60 / (144 - 60)
        error = population_matrix_error(Frobenius(), **{**SETTING, "noise": noise})
        assert error == pytest.approx(known, rel=1e-9)


def test_a_matrix_of_one_column_is_a_vector_of_one_group():
    # the nuclear norm of a column is its length: shrinking keeps the direction of b* + tau Z
    column = np.zeros((100, 1))
    column[0] = 1.0
    error = population_matrix_error(Nuclear(), samples=40, truth=column, noise=0.1)
    flat = population_matrix_error(Frobenius(), samples=40, truth=column, noise=0.1)
    assert error == pytest.approx(flat, rel=0.02)
    assert flat == pytest.approx(
        population_error(penchant.L2(), samples=40, dimension=100, truth=[1.0], noise=0.1).error
    )


def test_scales_end_at_the_norms():
    small, large = (population_matrix_error(r, **SETTING) for r in (Nuclear(), Frobenius()))
    for law in (Q(3, log_alpha=-1000),):
        assert population_matrix_error(Schatten(law), **SETTING) == pytest.approx(small, rel=1e-3)
    for law in (Q(4, log_alpha=1e5),):
        assert population_matrix_error(Schatten(law), **SETTING) == pytest.approx(large, rel=1e-9)
    between = population_matrix_error(Schatten(Q(2, alpha=0.3)), **SETTING)
    assert small < between < large


def test_units_and_rotations_do_not_matter():
    law = Schatten(Q(2, log_alpha=-2.0))
    plain = population_matrix_error(law, **SETTING)
    unit = 1e40
    scaled = population_matrix_error(
        Schatten(Q(2, log_alpha=-2.0 + math.log(unit) / 2)),
        samples=60,
        truth=unit * TRUTH,
        noise=0.1 * unit,
    )
    assert scaled / unit**2 == pytest.approx(plain, rel=1e-6)
    diagonal = np.diag(np.linalg.svd(TRUTH, compute_uv=False))
    turned = population_matrix_error(law, samples=60, truth=diagonal, noise=0.1)
    assert turned == pytest.approx(plain, rel=0.03)  # other draws of Z, in effect


def test_without_noise_enough_measurements_recover_the_truth():
    # the threshold of a matrix of rank one lies between its degrees of freedom and three times them
    spike = np.zeros((12, 12))
    spike[0, 0] = 1.0
    setting = {"truth": spike, "noise": 0.0}
    assert population_matrix_error(Nuclear(), samples=90, **setting) == 0
    assert population_matrix_error(Nuclear(), samples=23, **setting) > 0.1


@pytest.mark.parametrize("law", [Nuclear(), Schatten(Q(2, alpha=0.2))])
def test_draws_have_the_predicted_error(law):
    logs = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(60, 12, 12))
        y = np.tensordot(A, TRUTH, axes=2) + 0.1 * rng.normal(size=60)
        logs.append(math.log(((penchant.interpolate(A, y, law).matrix - TRUTH) ** 2).sum()))
    error = 3.3 * np.std(logs, ddof=1) / 4
    assert np.mean(logs) == pytest.approx(
        math.log(population_matrix_error(law, **SETTING)), abs=error
    )
    assert abs(np.mean(logs) - math.log(population_matrix_error(Frobenius(), **SETTING))) > error


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"samples": 144}, "samples must be below the number of entries"),
        ({"truth": [1.0]}, "truth"),
        ({"truth": np.zeros((3, 3)), "samples": 2, "noise": 0.0}, "must not both be zero"),
        ({"noise": -1.0}, "noise must be >= 0"),
        ({"regularizer": L1()}, "must be one of singular values"),
        ({"regularizer": Spectral()}, "is no sum over singular values"),
    ],
)
def test_what_cannot_be_predicted_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        population_matrix_error(**{"regularizer": Nuclear(), **SETTING, **change})
