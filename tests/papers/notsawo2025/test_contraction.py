"""The PL version of Theorem 2.1: that a wrong factor or a wrong line would be caught."""

import numpy as np
import pytest

from penchant.lab.evidence.evidence import judge
from penchant_papers.notsawo2025 import contraction, single_steps


@pytest.mark.parametrize("line", ["step", "line", "bracket"])
def test_the_printed_line_is_refuted(data_of, line):
    dataset, by_hand = data_of("N-PL")
    wrong = dataset.assign({f"{line}_corrected": dataset[f"{line}_printed"]})
    assert judge(contraction.check(wrong, by_hand))[0] == "fails"


def test_the_printed_delta_is_refuted_along_a_run(data_of):
    dataset, by_hand = data_of("N-PL")
    wrong = by_hand.assign(chain_corrected=by_hand.chain_printed)
    assert judge(contraction.check(dataset, wrong))[0] == "fails"


@pytest.mark.parametrize("step", [0.2, 0.9, 1.1, 1.6])
@pytest.mark.parametrize("beta", [0.05, 0.2])
def test_the_corrected_delta_is_the_least_one(step, beta):
    """Against all directions of H, on a quadratic where nothing is lost."""
    angles = np.linspace(0, np.pi, 721)
    plane = single_steps.quadratic((1.0, 1.0))
    x = np.tile([1.0, 0.0], (721, 1))
    H = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    trial = single_steps.Trials(plane, x, H, np.full(721, step), np.full(721, beta))
    worst = (trial.after / trial.g).max()
    assert worst == pytest.approx(1 - single_steps.delta(plane, step, beta), rel=1e-12)
    assert worst > 1 - single_steps.printed_delta(plane, step, beta)
    assert contraction.gap(step, beta) == pytest.approx(0, abs=1e-12)
