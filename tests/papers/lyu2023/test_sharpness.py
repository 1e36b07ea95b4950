"""The place and the width of the jump: theories that the check refutes, and a second route."""

import dataclasses
import math

import pytest

from tacit import train
from tacit.papers.lyu2023 import runs, sharpness

DEPTH_2 = {"depth": 2, "first": -4.0, "last": 9.0, "log_rate": None}


@pytest.fixture
def data(data_of):
    return data_of("L-sharp")


def with_cells(dataset, **arguments):
    """The dataset of depth 2 with its cells computed again."""
    found = [sharpness.cell(0, a, **{**DEPTH_2, **arguments}) for a in dataset.log_alpha.values]
    names = ("begins", "half", "ends", "log_norm")
    return dataset.assign(
        {name: (("problem", "log_alpha"), [[row[name] for row in found]]) for name in names}
    )


def test_the_jump_is_where_it_is_said_to_be(verdict_of):
    assert verdict_of("L-sharp").status == "holds"


def test_log_alpha_alone_does_not_follow_the_jump(data, refuted):
    naive = data[0].assign(forecast=data[0].forecast * 0 + data[0].log_alpha)
    assert refuted("L-sharp", (naive, *data[1:]), "drift")


def test_a_jump_of_another_decay_is_refuted(monkeypatch, data, refuted):
    def faster(model, problem, method, **options):
        rate = 1.04 * method.weight_decay
        return train(model, problem, dataclasses.replace(method, weight_decay=rate), **options)

    monkeypatch.setattr(runs, "train", faster)
    wrong = with_cells(data[0], first=-15.0)
    assert refuted("L-sharp", (wrong, *data[1:]), "rate t_half / log alpha")


def test_a_rate_that_stays_does_not_give_the_norm_at_the_jump(data, refuted):
    wrong = with_cells(data[0], log_rate=math.log(1e-9))
    assert refuted("L-sharp", (wrong, *data[1:]), "|theta| at the jump")


def test_the_jump_of_depth_3_by_two_flows(monkeypatch):
    """Trained in the parameters, the jump is where the exact flow has it; depth 2 has another."""
    depth_3 = {**DEPTH_2, "depth": 3}
    one, shallow = sharpness.cell(0, 10.0, **depth_3), sharpness.cell(0, 10.0, **DEPTH_2)
    monkeypatch.setattr(sharpness, "exact", runs.in_parameters)
    two = sharpness.cell(0, 10.0, **depth_3)
    for name in ("begins", "half", "ends", "log_norm"):
        assert one[name] == pytest.approx(two[name], rel=1e-4)
    assert abs(shallow["half"] - one["half"]) > 0.1


def test_the_norm_at_the_jump_of_depth_3_has_the_exponent_one_third(data):
    first, last = data[1].log_norm.values[0]
    assert (last - first) / math.log(4) == pytest.approx(1 / 3, abs=0.02)
