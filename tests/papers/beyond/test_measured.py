"""Certified flows, frequencies, infinite width, the kernel phase: wrong theories fail."""

import numpy as np
import pytest

from penchant.lab import all_claims
from penchant_papers.beyond import certified, infinite_width


@pytest.mark.parametrize(
    ("id", "study", "wrong"),
    [
        ("beyond-certified", 0, {"certified": "rtol"}),
        ("beyond-convolution", 0, {"to_frequencies": "to_equal"}),
        ("beyond-infinite-width", 0, {"fluctuation": "equally"}),
        ("beyond-infinite-width", 0, {"along": "along_halved"}),
        ("beyond-kernel-error", 0, {"predicted": "plain"}),
        ("beyond-kernel-error", 1, {"rich": "kernel"}),
        ("beyond-kernel-error", 1, {"kernel": "rich"}),
    ],
)
def test_a_wrong_theory_fails(id, study, wrong, data_of):
    data = list(data_of(id))
    data[study] = data[study].assign({old: data[study][new] for old, new in wrong.items()})
    experiment = all_claims()[id]
    assert experiment.verdict(experiment.evidence(data), "tiny").status != "holds"
    assert experiment.verdict(experiment.evidence(data_of(id)), "tiny").status == "holds"


def test_runs_are_compared_where_both_record():
    cell = certified.cell("net, labels", 3)
    assert cell["compared"] > 0.9
    assert cell["error"] < cell["certified"]


def test_the_kernel_of_equal_layers_is_the_same_where_inputs_are_as_many_as_units():
    kernel = infinite_width.InfiniteKernel("relu", (6,))
    X = np.random.default_rng(0).normal(size=(4, 6))
    equal = infinite_width.wrong_kernels(kernel, X)["equally"]
    np.testing.assert_allclose(equal, kernel(X), rtol=1e-12)
