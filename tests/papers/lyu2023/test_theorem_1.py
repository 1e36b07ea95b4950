"""Theorem 1 of L: its status, and theories that its check refutes."""

import dataclasses

import numpy as np
import pytest

import tacit
from tacit import train
from tacit.papers.lyu2023 import runs, theorem_1


@pytest.fixture
def data(data_of):
    return data_of("L-T1")


def test_the_theorem_holds(verdict_of):
    assert verdict_of("L-T1").status == "holds"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (lambda d: {"to_kernel": d.to_rich}, "angle to the kernel SVM"),
        (lambda d: {"to_kernel": d.to_random}, "slope of 1/tan(angle)"),
        (lambda d: {"turn": d.turn**2}, "exponent of turn/g"),
        (lambda d: {"growth": d.growth * np.exp(0.05 * d.log_alpha)}, "|theta| e^(rate t)"),
    ],
    ids=["rich limit", "another kernel", "square of the turn", "slower decay"],
)
def test_a_wrong_law_is_refuted(data, refuted, changed, words):
    dataset = data[0]
    assert refuted("L-T1", (dataset.assign(changed(dataset)), *data[1:]), words)


def test_training_with_a_faster_decay_is_refuted(monkeypatch, data, refuted):
    def faster(model, problem, method, **options):
        rate = 1.1 * method.weight_decay
        return train(model, problem, dataclasses.replace(method, weight_decay=rate), **options)

    monkeypatch.setattr(runs, "train", faster)
    growth = data[0].growth.copy()
    growth.loc[{"problem": 0, "depth": 2, "log_alpha": 40.0}] = theorem_1.cell(0, 2, 40.0, c=0.5)[
        "growth"
    ]
    assert refuted("L-T1", (data[0].assign(growth=growth), *data[1:]), "|theta| e^(rate t)")


def test_the_sparsest_interpolant_in_place_of_the_kernels_is_refuted(monkeypatch, data, refuted):
    sparse = lambda net, X, y: tacit.interpolate(X, y, tacit.L1()).beta  # noqa: E731
    monkeypatch.setattr(theorem_1, "kernel_predictor", sparse)
    off = [[theorem_1.regression_cell(0, a, c=0.125)["off"]] for a in data[1].log_alpha.values]
    wrong = data[1].assign(off=(("log_alpha", "seed"), off))
    assert refuted("L-T1", (data[0], wrong, *data[2:]), "kernel interpolant")


def test_the_svm_of_another_start_is_refuted(data, refuted):
    wrong = data[2].assign(own=data[2].other)
    assert refuted("L-T1", (*data[:2], wrong, data[3]), "small net")


def test_an_exact_flow_that_is_not_training_proves_nothing(monkeypatch, data, judged):
    def other(problem, log_alpha, rate, z, depth):
        return runs.exact(problem, log_alpha, 1.01 * rate, z, depth)

    monkeypatch.setattr(theorem_1, "in_parameters", other)
    wrong = data[3].assign(apart=data[3].apart + theorem_1.flow_cell(0, 2)["apart"])
    assert judged("L-T1", (*data[:3], wrong)).status == "inconclusive"


def test_the_svm_of_a_weighted_kernel_by_scaled_features():
    problem = runs.data_set(1)
    weights = np.exp(np.random.default_rng(0).normal(0, 1, 8))
    scaled = tacit.max_margin(problem.X / np.sqrt(weights), problem.y, tacit.L2()).beta
    found = theorem_1.random_kernel_svm(problem)
    assert found == pytest.approx(scaled / np.sqrt(weights), abs=1e-8)
