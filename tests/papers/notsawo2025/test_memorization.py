"""Theorems 3.1 and 3.4, memorization: runs against loops by hand, and that a wrong t1 is caught."""

import math

import numpy as np
import pytest

from tacit.evidence.evidence import judge
from tacit.papers.notsawo2025 import memorization
from tacit.papers.notsawo2025.recoveries import noisy, recovery
from tacit.papers.registry import library

MATRIX = {"samples": 14, "dimension": 5, "few": 1, "seed": 3}
TINY = {"samples": 6, "dimension": 9, "few": 1, "seed": 1}


@pytest.mark.parametrize("id", ["N-T31", "N-T34"])
@pytest.mark.parametrize(
    ("name", "factor"),
    [("t1_foreseen", 0.8), ("to_hat", 1e3), ("after", 2.0), ("before", 0.01), ("measurements", 10)],
)
def test_a_wrong_number_is_caught(data_of, id, name, factor):
    dataset, far = data_of(id)
    wrong = dataset.assign({name: dataset[name] * factor})
    assert judge(library()[id].check(wrong, far))[0] in ("fails", "inconclusive")


@pytest.mark.parametrize(("kind", "sizes"), [("sparse", TINY), ("completion", MATRIX)])
def test_a_cell_against_a_loop_by_hand(kind, sizes):
    found = memorization.cell(1e-3, 0.1, 10_000, 5000, kind=kind, noise=1e-2, **sizes)
    case = recovery(kind, noise=1e-2, **sizes)
    a, loss = np.full(len(case.truth), 1e-6), math.inf
    points = []
    while loss > 1e-4:
        points.append(a)
        H = np.sign(a)
        if kind == "completion":
            u, s, v = np.linalg.svd(a.reshape(5, 5))
            H = ((u * (s > 1e-13 * s[0])) @ v).ravel()
        a = a - 0.1 * (case.X.T @ (case.X @ a - case.y) + 1e-3 * H)
        loss = 0.5 * np.sum((case.X @ a - case.y) ** 2)
    assert found["t1"] == len(points)
    # least squares from zero, by another solver
    hat = np.linalg.lstsq(case.X, case.y, rcond=None)[0]
    assert case.memorized() == pytest.approx(hat, abs=1e-10)
    assert found["to_hat"] <= np.linalg.norm(a - hat) / np.linalg.norm(hat) * (1 + 1e-9)
    assert np.linalg.norm(hat - case.truth) > 0.1 * np.linalg.norm(case.truth)


@pytest.mark.parametrize("kind", ["completion", "sensing"])
def test_noise_has_the_power_that_was_asked_for(kind):
    problem = recovery(kind, samples=70, dimension=10, few=2, seed=2).problem
    noise = noisy(problem, 1e-2).y - problem.y
    assert np.sum(problem.y**2) / np.sum(noise**2) == pytest.approx(100, rel=0.4)
    faint = noisy(problem, 1e-8).y - problem.y
    assert np.linalg.norm(faint) == pytest.approx(1e-3 * np.linalg.norm(noise))
    assert noisy(problem, 0.0) is problem
