"""Margins of optimizers: learning rates are said, medians are judged, and wrong norms fail."""

import numpy as np
import pytest

import penchant
from penchant.lab import all_claims
from penchant_papers.beyond import adam_batch, margins
from penchant_papers.beyond.norms import lion


def evidence_of(id, data):
    return all_claims()[id].evidence(data)


@pytest.mark.parametrize("id", ["beyond-margins", "beyond-muon", "beyond-adam-batch"])
def test_the_verdict_says_the_chosen_learning_rates(id, data_of):
    evidence = evidence_of(id, data_of(id))
    told = " ".join([evidence.ran, *evidence.findings])
    kinds = adam_batch.RATES if id == "beyond-adam-batch" else {}
    assert "learning rates" in told
    for name, rate in kinds.items():
        assert f"{name} {rate:g}" in told


@pytest.mark.parametrize("id", ["beyond-margins", "beyond-muon", "beyond-adam-batch"])
def test_the_result_at_other_rates_is_told_and_does_not_decide(id, data_of):
    data = data_of(id)
    other = data[0].assign_coords(factor=[0.3])
    names = ("l2", "l_inf", "fitted") if id == "beyond-adam-batch" else ("share",)
    other = other.assign({name: 0.5 * other[name] for name in names})
    both = margins_of_both(data[0], other)
    evidence = evidence_of(id, (both, *data[1:]))
    assert any("at 0.3 times these rates the shares are" in line for line in evidence.findings)
    plain = evidence_of(id, data)
    assert [c.measured for c in evidence.checks.values()] == pytest.approx(
        [c.measured for c in plain.checks.values()]
    )


def margins_of_both(first, second):
    import xarray

    return xarray.concat([second, first], "factor", data_vars="minimal", join="outer")


def test_a_method_in_a_wrong_norm_fails(data_of):
    data, ways = data_of("beyond-margins")
    turned = data.share.isel(norm=[1, 2, 0])
    wrong = data.assign(share=data.share.copy(data=turned.values))
    experiment = all_claims()["beyond-margins"]
    verdict = experiment.verdict(experiment.evidence((wrong, ways)), "tiny")
    assert verdict.status != "holds"
    assert verdict.evidence.checks[next(iter(verdict.evidence.checks))].misses


def test_the_median_over_problems_is_judged(data_of):
    data, _ = data_of("beyond-margins")
    shares = margins.shares(data, margins.HEADING, margins.NORMS, "own")[:, -1]
    medians = margins.ends(data, margins.HEADING, margins.NORMS, "own")
    np.testing.assert_allclose(medians, np.sort(shares, axis=1)[:, 1:3].mean(axis=1))


@pytest.mark.parametrize("kind", [adam_batch.SIGNS, adam_batch.NORMAL])
def test_shares_of_an_end_are_those_of_its_path(kind):
    """Margins that all runs on a problem share are those that `margin_shares` computes alone."""
    of = adam_batch.data(kind, 5, 8, 12)
    path = penchant.train(
        penchant.models.LinearPredictor(),
        of,
        penchant.methods.SignDescent(0.01),
        stop=penchant.Steps(300),
    )
    norms = [
        penchant.L1(),
        adam_batch.EUCLIDEAN,
        penchant.regularizers.Linf(),
        adam_batch.own_norm(of)[0],
    ]
    alone = penchant.measures.margin_shares(path, of, norms).values[-1]
    np.testing.assert_allclose(margins.end_shares(of, path.predictor, norms), alone, rtol=1e-9)


def test_a_run_that_comes_back_to_zero_has_no_share_of_a_margin():
    """Long steps on the largest entry do so on these points; the printed size asks for them."""
    arguments = {"samples": 8, "dimension": 12}
    ended = margins.cell("largest entry alone", 2500, 3.0, 9, **arguments)
    assert (ended["share"] == 0).all()
    assert ended["log_loss"] == 0  # the exponential loss of the predictor zero is 1


def test_lion_takes_the_steps_of_optax():
    optax = pytest.importorskip("optax")
    problem, line = margins.data(3, 8, 12), penchant.models.LinearPredictor()
    own, other = (
        penchant.train(line, problem, method, stop=penchant.Steps(200)).predictor
        for method in (lion.Lion(0.01), optax.lion(0.01, b1=0.9, b2=0.99, weight_decay=0.0))
    )
    np.testing.assert_allclose(own, other, atol=1e-12)
    plain = penchant.train(line, problem, lion.Lion(0.01, ahead=0.0), stop=penchant.Steps(200))
    assert np.abs(own - plain.predictor).max() > 1e-3
