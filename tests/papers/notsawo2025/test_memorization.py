"""Theorems 3.1 and 3.4, memorization: runs against loops by hand, and that a wrong t1 is caught."""

import numpy as np
import pytest

from penchant_papers.notsawo2025 import memorization
from penchant_papers.notsawo2025.recoveries import noisy, recovery
from recoveries_by_hand import descend, judged, losses

MATRIX = {"samples": 14, "dimension": 5, "few": 1, "seed": 3}
TINY = {"samples": 6, "dimension": 9, "few": 1, "seed": 1}


@pytest.mark.parametrize("id", ["N-T31", "N-T34"])
@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("t1_predicted", 0.8),
        ("to_hat", 1e3),
        ("after", 2.0),
        ("before", 0.01),
        ("measurements", 10),
    ],
)
def test_a_wrong_number_is_caught(data_of, id, name, factor):
    dataset, far = data_of(id)
    wrong = dataset.assign({name: dataset[name] * factor})
    assert judged(id, [wrong, far]) in ("fails", "inconclusive")


@pytest.mark.parametrize(("kind", "sizes"), [("sparse", TINY), ("completion", MATRIX)])
def test_a_cell_against_a_loop_by_hand(kind, sizes):
    found = memorization.cell(1e-3, 0.1, 10_000, 5000, kind=kind, noise=1e-2, **sizes)
    case = recovery(kind, noise=1e-2, **sizes)
    penalty = "l1" if kind == "sparse" else "nuclear"
    points = descend(case, 0.1, 1e-3, 1e-6, 10_000, penalty)
    t1 = int(np.argmax(losses(case, points) <= 1e-4))
    assert found["t1"] == t1 > 0
    # least squares from zero, by another solver
    hat = np.linalg.lstsq(case.X, case.y, rcond=None)[0]
    assert case.memorized() == pytest.approx(hat, abs=1e-10)
    assert found["to_hat"] <= np.linalg.norm(points[t1] - hat) / np.linalg.norm(hat) * (1 + 1e-9)
    assert np.linalg.norm(hat - case.truth) > 0.1 * np.linalg.norm(case.truth)


@pytest.mark.parametrize("kind", ["completion", "sensing"])
def test_noise_has_the_given_power(kind):
    problem = recovery(kind, samples=70, dimension=10, few=2, seed=2).problem
    noise = noisy(problem, 1e-2).y - problem.y
    assert np.sum(problem.y**2) / np.sum(noise**2) == pytest.approx(100, rel=0.4)
    faint = noisy(problem, 1e-8).y - problem.y
    assert np.linalg.norm(faint) == pytest.approx(1e-3 * np.linalg.norm(noise))
    assert noisy(problem, 0.0) is problem
