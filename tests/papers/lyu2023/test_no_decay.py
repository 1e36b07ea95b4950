"""Training without decay: theories that the check refutes, and the parameters themselves."""

import numpy as np
import pytest

from penchant import DiagonalNet, DualFlow, train
from penchant.lab import all_claims
from penchant.problems import majority
from penchant.stop import LogLoss
from penchant_papers.lyu2023 import no_decay


@pytest.fixture
def data(data_of):
    return data_of("L-no-decay")


def test_the_predicted_time_is_that_of_large_starts(data):
    run = no_decay.transitions(*data)
    ratio = (run.measured_log_t / run.predicted_log_t).values
    assert (np.diff(np.abs(np.log(ratio))) < 0).all()
    assert float(run.trajectory_log_t.max()) > np.log(10) * 10**4


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            lambda run, limit: (run.assign_coords(alpha=run.alpha**2), limit),
            r"exponent of $\log t$",
        ),
        (lambda run, limit: (run, limit.assign(mu=2 * limit.mu)), "measured over predicted"),
        (
            lambda run, limit: (run, limit.assign(limit_accuracy=limit.q_accuracy)),
            "test accuracy from that of the limit",
        ),
    ],
    ids=["the start itself", "another mu", "weights that fall"],
)
def test_a_wrong_law_is_refuted(data, refuted, wrong, words):
    assert refuted("L-no-decay", wrong(*data), words)


def test_runs_that_never_generalize_decide_nothing(data, judged):
    curve = data[0].trajectory_test_accuracy
    still = data[0].assign(trajectory_test_accuracy=0.5 + 0 * curve)
    assert judged("L-no-decay", (still, data[1])).status == "inconclusive"


def test_norm_and_turn_without_decay_are_those_of_the_parameters():
    problem, alpha = majority(10, 30), 0.7
    path = train(DiagonalNet(depth=2, alpha=alpha), problem, DualFlow(), stop=LogLoss(-50.0))
    growth, turn = no_decay.norm_and_turn(path.predictor[None], alpha)
    start = np.full(60, alpha)
    lengths = np.linalg.norm(path.parameters), np.linalg.norm(start)
    assert growth[0] == pytest.approx(lengths[0] / lengths[1], rel=1e-9)
    cosine = path.parameters @ start / (lengths[0] * lengths[1])
    assert turn[0] == pytest.approx(np.degrees(np.arccos(cosine)), rel=1e-9)
    assert turn[0] > 5


def test_the_axis_shows_the_logarithm_of_the_time_in_plain_numbers(data):
    picture = all_claims()["L-no-decay"].picture(data)
    picture.canvas.draw()
    ticks = [text.get_text() for text in picture.axes[-1].get_xticklabels()]
    assert ticks == ["0", "1", "10", "100", "1 000", "10 000", "100 000"]
    assert "log" in picture.axes[-1].get_xlabel()
