"""What a check says of data that were changed on purpose."""

import dataclasses

import pytest

import penchant
from penchant.lab import all_claims

REFUTED = ("fails", "inconclusive")


@pytest.fixture
def judged():
    """judged(id, data): the verdict on these datasets."""

    def verdict(id, data):
        experiment = all_claims()[id]
        return experiment.verdict(experiment.evidence(data), "tiny")

    return verdict


@pytest.fixture
def refuted(judged):
    """refuted(id, data, words): the claim falls, and by its check named so."""

    def falls(id, data, words):
        verdict = judged(id, data)
        missed = [name for name, check in verdict.evidence.checks.items() if check.misses]
        assert any(words in name for name in missed), (missed, verdict.evidence.findings[:1])
        return verdict.status in REFUTED

    return falls


@pytest.fixture
def faster(monkeypatch):
    """faster(module, factor): what the module trains has `factor` times its weight decay."""

    def change(module, factor):
        def train(model, problem, method, **options):
            other = dataclasses.replace(method, weight_decay=factor * method.weight_decay)
            return penchant.train(model, problem, other, **options)

        monkeypatch.setattr(module, "train", train)

    return change
