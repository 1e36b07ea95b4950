"""Decay as a clock of the Q path: theories that the check refutes."""

import dataclasses
import math

import numpy as np
import pytest

from tacit import train
from tacit.papers.lyu2023 import clock, runs
from tacit.regularizers.q import Q

GIVEN = {"log_alpha": 2.0, "z": [0.5, 3.5]}


@pytest.fixture
def data(data_of):
    return data_of("L-clock")


def with_cell(dataset):
    """The regressions with the cell of depth 2 at the smallest rate computed again."""
    off = dataset.off.copy()
    off.loc[{"depth": 2, "rate": 1e-5, "seed": 0}] = clock.cell(2, 1e-5, 0, **GIVEN)["off"]
    return dataset.assign(off=off)


def test_the_clock_goes_right(verdict_of):
    assert verdict_of("L-clock").status == "holds"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda depth, log_alpha: Q(depth, log_alpha=log_alpha + math.log(1.1)),
        lambda depth, log_alpha: Q(depth + 1, log_alpha=log_alpha),
        lambda depth, log_alpha: Q(depth, log_alpha=2 * log_alpha),
    ],
    ids=["scale", "depth", "square"],
)
def test_another_q_is_refuted(monkeypatch, data, refuted, wrong):
    monkeypatch.setattr(clock, "Q", wrong)
    assert refuted("L-clock", (with_cell(data[0]), data[1]), "distance to argmin Q")


def test_a_clock_ten_percent_fast_is_refuted(monkeypatch, data, refuted):
    def faster(model, problem, method, **options):
        rate = 1.1 * method.weight_decay
        return train(model, problem, dataclasses.replace(method, weight_decay=rate), **options)

    monkeypatch.setattr(runs, "train", faster)
    assert refuted("L-clock", (with_cell(data[0]), data[1]), "distance to argmin Q")


def test_a_wrong_power_of_mu_is_refuted(monkeypatch, data, refuted):
    real = clock.ratchet_path
    wrong = lambda X, y, depth, mus: real(X, y, depth=depth, mus=np.sqrt(mus))  # noqa: E731
    monkeypatch.setattr(clock, "ratchet_path", wrong)
    turns = [
        [clock.direction_cell(0, a, around=[-2.0, 0.0, 2.0])["turn"]]
        for a in data[1].log_alpha.values
    ]
    changed = data[1].assign(turn=(("log_alpha", "problem"), turns))
    assert refuted("L-clock", (data[0], changed), "Q_mu path")
