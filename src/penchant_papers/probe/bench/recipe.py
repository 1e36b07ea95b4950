"""The settings of the runs, drawn at random from a seed.

A run is a net, its data and its training. Additions modulo p are learned by nets of five kinds;
digits, sparse parities and labels of a teacher by ReLU nets with and without normalization. The
ranges were set after 21 runs with other seeds (from 9000 on), and transformers made smaller after
the first ten runs, such that about a third of the runs do not grok within their steps: without
decay, with few samples, or because they are drawn so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from penchant.lab import Array
from penchant_papers.probe.nets import Parameters, start
from penchant_papers.probe.optimizers import Optimizer
from penchant_papers.probe.runs import addition, digits
from penchant_papers.probe.trajectories import OPTIMIZERS, TRANSFORMERS, factor
from penchant_papers.probe.twins import Data

PROBES = 500  # test inputs
QUADRATIC, MLP, NORMAL = "quadratic", "embedded", "embedded, LayerNorm"
PLAIN, BLOCK = "transformer, not normalized", "transformer"
NETS = (QUADRATIC, MLP, NORMAL, PLAIN, BLOCK)
TASKS = {"addition": 0.62, "digits": 0.13, "parity": 0.13, "teacher": 0.12}
METHODS = OPTIMIZERS | {
    "Adam": Optimizer(memory=0.9, squares=0.98, adaptive=True, coupled=True),
    "Muon": Optimizer(memory=0.9, squares=0.98, adaptive=True, turned=True),
}
# a share of runs without decay, and one with few samples
STILL, FEW = 0.08, 0.1
LONGEST = 14_000  # steps
INPUTS, SPARSE = 24, 3  # bits of a parity, and those that count
TEACHER = 16  # inputs of a teacher


class BenchRun(NamedTuple):
    """A net, its data and its training; `share` is that of the pairs, or a number of samples."""

    seed: int
    task: str
    net: str
    p: int
    share: float
    optimizer: str
    learning_rate: float
    weight_decay: float
    steps: int
    scale: float
    hidden: int
    loss: str = "xent"
    schedule: str = "constant"

    @property
    def how(self) -> Optimizer:
        return METHODS[self.optimizer]

    @property
    def normalized(self) -> bool:
        return self.net in (NORMAL, BLOCK, "LayerNorm")

    @property
    def embeddings(self) -> str:
        """What the record of a watch says of them."""
        return "Embedding" if self.net in (MLP, NORMAL, *TRANSFORMERS) else ""

    @property
    def family(self) -> str:
        """The net on addition; the data otherwise."""
        return self.net if self.task == "addition" else self.task

    @property
    def decay_rate(self) -> float:
        """The share of the parameters that decay takes in a step; NaN if the optimizer has none."""
        if self.how.adaptive and self.how.coupled:
            return math.nan
        added = 1 - self.how.memory if self.how.coupled else 1.0
        return self.learning_rate * self.weight_decay / added

    def data(self, seed: int) -> Data:
        """Training and test data."""
        count = round(self.share)
        if self.task == "addition":
            return addition(seed, PROBES, self.p, self.share)
        if self.task == "digits":
            return digits("pixels", seed, count, PROBES)
        return (parity if self.task == "parity" else taught)(seed, count)

    def start(self, data: Data, seed: int) -> Parameters:
        """Random weights; the embedding of a one-hot token has entries of order one."""
        sizes = data.x.shape[1], data.y.shape[1]
        if self.net not in TRANSFORMERS:
            return start(self.net, *sizes, self.scale, seed, self.hidden)
        weights = start(self.net, *sizes, self.scale, seed, self.hidden, tokens=2)
        return weights | {"e": (0.5 * self.p**0.5 * weights["e"]).astype(np.float32)}

    def rates(self, steps: Array) -> Array:
        """The learning rate of the step that ended at each; for 0, that of the first."""
        part = factor(self.schedule, np.maximum(steps - 1, 0), self.steps)
        return self.learning_rate * np.asarray(part, dtype=np.float64)


def parity(seed: int, samples: int) -> Data:
    """Signs; the label is the product of the first SPARSE of INPUTS."""
    x = np.random.default_rng([seed, 31]).choice([-1.0, 1.0], (samples + PROBES, INPUTS))
    return _split(x, x[:, :SPARSE].prod(1) > 0, samples, seed)


def taught(seed: int, samples: int) -> Data:
    """Gaussian inputs; the label is the sign of the product of two random directions."""
    rng = np.random.default_rng([seed, 37])
    x = rng.standard_normal((samples + PROBES, TEACHER))
    first, second = (x @ rng.standard_normal((TEACHER, 2))).T
    return _split(x, first * second > 0, samples, seed)


def _split(x: Array, label: Array, samples: int, seed: int) -> Data:
    x, y = x.astype(np.float32), np.eye(2, dtype=np.float32)[label.astype(int)]
    return Data(x[:samples], y[:samples], x[samples:], y[samples:], seed)


def drawn(seed: int) -> BenchRun:
    """The setting of a seed."""
    rng = np.random.default_rng([seed, 34])

    def between(low: float, high: float) -> float:
        return float(f"{low * (high / low) ** rng.random():.2g}")

    task = str(rng.choice(list(TASKS), p=list(TASKS.values())))
    still, few = rng.random() < STILL, rng.random() < FEW
    net = str(rng.choice(NETS if task == "addition" else ("dense, biased", "LayerNorm")))
    plain = net in (QUADRATIC, "dense, biased")  # SGD trains no net with embeddings in these steps
    method = str(rng.choice(["AdamW", "Adam", "Muon", "SGD", "momentum"], p=_chances(plain)))
    p = int(rng.integers(17, 30)) if task == "addition" else 0
    share = {
        "addition": round(float(rng.uniform(*((0.2, 0.4) if few else (0.55, 0.85)))), 2),
        "digits": between(60, 400),
        "parity": between(120, 250) if few else between(500, 1000),
        "teacher": between(60, 120) if few else between(250, 700),
    }[task]
    scale = {
        QUADRATIC: (0.5, 2.0),
        MLP: (0.7, 2.5),
        NORMAL: (0.7, 2.5),
        PLAIN: (0.7, 2.0),
        BLOCK: (0.7, 2.0),
        "dense, biased": (8.0, 40.0) if task == "digits" else (1.0, 5.0),
        "LayerNorm": (1.0, 10.0) if task == "digits" else (1.0, 5.0),
    }[net]
    rate, decay = _rates(method, net, between)
    if still:
        decay = 0.0
    hidden, longest = int(rng.choice([64, 96, 128])), LONGEST
    if net in TRANSFORMERS:
        hidden, longest = 64, 8000  # they take five times as long
    steps = _steps(method, rate, decay, longest)
    return BenchRun(seed, task, net, p, share, method, rate, decay, steps, between(*scale), hidden)


def _chances(plain: bool) -> list[float]:
    return [0.38, 0.12, 0.18, 0.12, 0.2] if plain else [0.56, 0.18, 0.26, 0.0, 0.0]


def _rates(method: str, net: str, between: Callable[[float, float], float]) -> tuple[float, float]:
    if method == "AdamW":
        return between(0.001, 0.008), between(0.2, 3.0)
    if method == "Muon":
        return between(0.001, 0.008), between(0.1, 1.0)
    if method == "Adam":
        return between(0.001, 0.008), between(1e-5, 3e-3)
    rate = between(0.05, 0.2) if net == QUADRATIC else between(0.02, 0.1)
    part = 1.0 if method == "SGD" else 0.1
    return part * rate, between(0.002, 0.02)


def _steps(method: str, rate: float, decay: float, longest: int) -> int:
    """Twelve times the time of the decay, within limits."""
    if method == "Adam" or not decay > 0:
        return 5000
    momentum = 0.1 if method == "momentum" else 1.0
    return int(min(max(12 * momentum / (rate * decay), 2000), longest))
