"""Tangent kernels of many kinds of torch modules, against autograd sample by sample in float64.

Every kernel is right to 1e-6, or the module is refused by a sentence.
"""

import copy

import numpy as np
import pytest

import penchant

torch = pytest.importorskip("torch")

from penchant.measures.torch.quiet import plain_attention  # noqa: E402
from support import torch_blocks, torch_layers, torch_transformers  # noqa: E402, F401
from support.torch_nets import CASES  # noqa: E402

RIGHT, NEARLY = 1e-6, 2e-4  # in float64 and in float32, relative to the largest entry


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def converted(x, dtype):
    parts = tuple(p.to(dtype) if p.is_floating_point() else p for p in as_tuple(x))
    return parts if isinstance(x, tuple) else parts[0]


def built(name):
    """The module in float64 and eval mode with its inputs; no bias is zero."""
    torch.manual_seed(0)
    build, draw = CASES[name]
    module, x = build(), draw()
    module.double()(*as_tuple(x))  # lazy layers get their shapes, running averages move
    with torch.no_grad():
        for value in module.parameters():
            value.add_(0.1 * torch.randn_like(value))
    return module.eval(), x


def by_hand(module, x):
    """<grad f_c(x_n), grad f_d(x_m)> by torch.autograd.grad, one output of one sample at a time."""
    params, rows = [p for p in module.parameters() if p.requires_grad], []
    parts = as_tuple(x)
    for n in range(len(parts[0])):
        for output in module(*(part[n : n + 1] for part in parts)).reshape(-1):
            slopes = torch.autograd.grad(output, params, retain_graph=True, materialize_grads=True)
            rows.append(torch.cat([s.to_dense().flatten() for s in slopes]))
    jacobian = torch.stack(rows).reshape(len(parts[0]), -1, len(rows[0])).numpy()
    return np.einsum("ncp,mdp->ncmd", jacobian, jacobian)


def spoil_memory():
    """Fill freed memory with NaN, which whatever reads beyond an array then returns."""
    for power in range(4, 19):
        spoiled = [torch.full((2**power,), np.nan, dtype=torch.float64) for _ in range(4)]
        del spoiled


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_that_of_autograd(name):
    module, x = built(name)
    with plain_attention():
        expected = by_hand(module, x)
    before = copy.deepcopy(module.state_dict())
    spoil_memory()
    found = penchant.measures.tangent_kernel(module, x, outputs="full")
    size = np.abs(expected).max()
    assert np.abs(found - expected).max() <= RIGHT * size
    for key, value in module.state_dict().items():
        assert torch.equal(value, before[key]), key
    module, x = module.float(), converted(x, torch.float32)
    for _ in range(2):
        spoil_memory()
        found = penchant.measures.tangent_kernel(module, x, outputs="full")
        assert np.abs(found - expected).max() <= NEARLY * size


def test_there_are_many_kinds():
    assert len(CASES) >= 120
