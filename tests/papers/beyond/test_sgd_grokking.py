"""The times of grokking with noise: the premise of the problems, and whether the check can fail."""

import numpy as np
import pytest

import penchant
from penchant.lab import all_claims
from penchant_papers.beyond import sgd_grokking

ID = "beyond-sgd-grokking"


def status_of(data):
    experiment = all_claims()[ID]
    return experiment.verdict(experiment.evidence((data,)), "tiny").status


def test_a_problem_has_a_truth_of_least_l1_norm():
    plain = [
        penchant.problems.sparse_regression(4, 8, sparsity=1, noise=0.0, seed=s) for s in range(40)
    ]
    met = [sgd_grokking.recoverable(of) for of in plain]
    assert 20 < sum(met) < 40
    for of, recovered in zip(plain, met, strict=True):
        norm = np.abs(penchant.interpolate(of, penchant.L1()).beta).sum()
        assert (norm > 1 - 1e-6) == recovered  # the truth has the norm 1
    problems = [sgd_grokking.problem(seed, 4, 8) for seed in range(5)]
    assert all(sgd_grokking.recoverable(of) for of, _ in problems)
    assert len({of.X[0, 0] for of, _ in problems}) == 5


def test_a_run_that_was_stopped_too_early_decides_nothing(data_of):
    (data,) = data_of(ID)
    assert status_of(data) == "holds"
    ended = data.ended.copy()
    ended[{"batch": 0, "seed": 0}] = 0.0
    assert status_of(data.assign(ended=ended)) == "inconclusive"


@pytest.mark.parametrize("wrong", ["order of batches", "times without noise"])
def test_a_wrong_theory_fails(wrong, data_of):
    (data,) = data_of(ID)
    if wrong == "order of batches":
        turned = data.shrinks.isel(batch=slice(None, None, -1))
        data = data.assign(shrinks=data.shrinks.copy(data=turned.values))
    else:
        data = data.assign(predicted=data.flow)
    assert status_of(data) == "fails"
