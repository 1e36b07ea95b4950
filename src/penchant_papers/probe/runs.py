"""Runs whose regime is known: settings, data, and one run with its twin."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from penchant.lab import Array
from penchant.measures import kernel_distance
from penchant.problems import Images, load_images
from penchant_papers.probe.nets import HIDDEN, NETS, Parameters, start
from penchant_papers.probe.optimizers import OPTIMIZERS, Rates
from penchant_papers.probe.twins import Data, Reals, kernel_of, seen, train, twin


class ProbeSetting(NamedTuple):
    """One run: a net from weights times `scale`, an optimizer, inputs, and decay or not."""

    net: str
    scale: float
    optimizer: str
    inputs: str = "pixels"
    decay: bool = False
    learns: bool = True

    @property
    def name(self) -> str:
        words = [f"{self.net} x {self.scale:g}", self.optimizer, self.inputs]
        words += ["decay"] * self.decay + ["no loss"] * (not self.learns)
        return ", ".join(words)


SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
INPUTS = ("centred", "pixels")
DENSE = [
    ProbeSetting("dense", *rest)
    for rest in itertools.product(SCALES, OPTIMIZERS, INPUTS, (False, True))
]
OTHERS = [
    ProbeSetting(net, *rest)
    for net in ("dense, biased", "LayerNorm")
    for rest in itertools.product((0.5, 1.0, 4.0), ("descent", "AdamW"), INPUTS, (False, True))
] + [
    ProbeSetting(net, scale, optimizer, decay=decay)
    for net, scales in (("BatchNorm", (0.5, 1.0, 4.0)), ("transformer", (0.5, 2.0)))
    for scale, optimizer, decay in itertools.product(scales, ("descent", "AdamW"), (False, True))
]
SHIFTED = [
    ProbeSetting("dense", scale, "AdamW", "pixels + 1", decay)
    for scale, decay in itertools.product((0.5, 1.0, 4.0), (False, True))
]
GROKKED = [
    ProbeSetting("quadratic", scale, "AdamW", "addition", True)
    for scale in (1.0, 0.5, 0.7, 1.4, 2.0)
]
STILL = [
    ProbeSetting(net, 1.0, "descent", "pixels", decay=True, learns=False)
    for net in ("dense, biased", "LayerNorm")
]
SETTINGS = {one.name: one for one in (*DENSE, *OTHERS, *SHIFTED, *GROKKED, *STILL)}
MODULUS, SHARE = 17, 0.7  # of the addition, and its share of pairs to train on


class Ended(NamedTuple):
    """The numbers of a run at its end, its parameters then and at the start, and its data."""

    row: dict[str, Any]
    first: Parameters
    last: Parameters
    data: Data


def cell(setting: str, seed: int, *, samples: int, probes: int, steps: int) -> dict[str, Any]:
    """What a watch measures at the end of one run, and the distance of its twin."""
    return ended(SETTINGS[setting], seed, samples, probes, steps).row


def ended(
    chosen: ProbeSetting, seed: int, samples: int, probes: int, steps: int, hidden: int = HIDDEN
) -> Ended:
    """One run of a setting and its twin."""
    if chosen.inputs == "addition":
        data, steps = addition(seed, probes), 3 * steps
    else:
        data = digits(chosen.inputs, seed, samples, probes)
    first = start(chosen.net, data.x.shape[1], data.y.shape[1], chosen.scale, seed, hidden)
    net, how = NETS[chosen.net], OPTIMIZERS[chosen.optimizer]
    at = rates(chosen, first, data, steps)
    last, losses, _ = train(net, False, steps, first, data, how, at)
    row = seen(net, first, last, data)
    (f0, f1, linear), kernels = row.pop("outputs"), row.pop("kernels")
    linear_twin = twin(net, first, data, how, at, steps, float(losses[-1]))
    moved = float(np.linalg.norm(f1 - f0))
    row |= {
        "twin_distance": float(np.linalg.norm(f1 - linear_twin.equal)) / moved,
        "nearest_twin": float(np.linalg.norm(f1 - linear_twin.path, axis=(1, 2)).min()) / moved,
        "accuracy": accuracy(f1, data.probe_y),
        "twin_accuracy": accuracy(linear_twin.equal, data.probe_y),
        "loss": float(losses[-1]),
        "twin_loss": linear_twin.loss,
        "uncentred": kernel_distance(*kernels),
        "missed": float(np.linalg.norm(f1 - linear)) / moved,
    }
    return Ended(row, first, last, data)


def accuracy(outputs: Array, y: Reals) -> float:
    return float(np.mean(outputs.argmax(axis=1) == y.argmax(axis=1)))


def rates(of: ProbeSetting, first: Any, data: Data, steps: int) -> Rates:
    """Steps that are stable; decay that would halve the weights by the end of the run."""
    if of.inputs == "addition":
        return Rates(0.01, 1.0)
    rate = 0.005
    if not OPTIMIZERS[of.optimizer].adaptive:
        some = data.x[: len(data.probe)]  # as many as in other kernels: one program for all
        kernel = kernel_of(NETS[of.net], first, some, data.x)
        rate = len(kernel) / float(np.linalg.eigvalsh(kernel)[-1])
    decay = -math.expm1(-math.log(2) / steps) / rate if of.decay else 0.0
    return Rates(rate, decay, float(of.learns))


@functools.cache
def _digits() -> Images:
    """Read once in a process, since reading takes as long as a run."""
    return load_images("digits", flat=True)


def digits(inputs: str, seed: int, samples: int, probes: int) -> Data:
    """Handwritten digits from 0 to 1 a pixel, as they are, without their mean, or plus 1."""
    images = _digits()
    order = np.random.default_rng([seed, 7]).permutation(len(images.train_labels))
    order = order[: samples + probes]
    x = images.train_images[order].astype(np.float32)
    if inputs == "centred":
        x = x - x[:samples].mean(axis=0)
    if inputs == "pixels + 1":
        x = x + 1
    y = np.eye(10, dtype=np.float32)[images.train_labels[order]]
    return Data(x[:samples], y[:samples], x[samples:], y[samples:], seed)


def addition(seed: int, probes: int, modulus: int = MODULUS, share: float = SHARE) -> Data:
    """Sums of two numbers, both one-hot; a share of the pairs to train on."""
    a, b = (part.ravel() for part in np.indices((modulus, modulus)))
    order = np.random.default_rng([seed, 11]).permutation(len(a))
    one_hot = np.eye(modulus, dtype=np.float32)
    x, y = np.hstack([one_hot[a], one_hot[b]])[order], one_hot[(a + b) % modulus][order]
    count = round(share * len(a))
    last = count + probes
    return Data(x[:count], y[:count], x[count:last], y[count:last], seed)
