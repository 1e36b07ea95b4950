"""Small torch networks for tests: CASES maps a name to how one is built and its inputs drawn.

There are more samples than entries along any other axis, so that whatever mistakes one for the
other fails.
"""

import functools

import torch
from torch import nn

N = 9
make = functools.partial
CASES = {}


class Net(nn.Module):
    """A module with the parts and the forward pass given."""

    def __init__(self, run, parts):
        super().__init__()
        self.run = run
        for name, build in parts.items():
            setattr(self, name, build())

    def forward(self, *inputs):
        return self.run(self, *inputs)


def net(run, **parts):
    return make(Net, run, parts)


def parameter(*shape, scale=1.0):
    return lambda: nn.Parameter(scale * torch.randn(shape))


def normal(*shape):
    return lambda: torch.randn(N, *shape, dtype=torch.float64)


def tokens(*shape, top=7):
    return lambda: torch.randint(top, (N, *shape))


def both(*draws):
    return lambda: tuple(draw() for draw in draws)


def case(draw, **parts):
    """Add a network with this forward pass to CASES, under its name."""

    def add(run):
        CASES[run.__name__.replace("_", " ")] = (net(run, **parts), draw)
        return run

    return add


def lin(*sizes, **options):
    return make(nn.Linear, *sizes, **options)


def mlp(inner, outer):
    return lambda: nn.Sequential(nn.Linear(inner, 6), nn.GELU(), nn.Linear(6, outer))


def read(x):
    """Two numbers of every sample, which weigh all entries differently."""
    flat = x.flatten(1)
    weights = torch.cos(torch.arange(flat.shape[1] * 2.0, dtype=x.dtype)).reshape(-1, 2)
    return torch.tanh(flat) @ weights
