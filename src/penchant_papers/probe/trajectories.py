"""Runs that may grok, recorded all the way: norms, the turn from the start, losses, accuracies."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from penchant.lab import Array
from penchant_papers.probe.nets import NETS, Net, Parameters, start
from penchant_papers.probe.optimizers import Optimizer, muon, stepped, with_memory
from penchant_papers.probe.runs import addition, digits
from penchant_papers.probe.twins import Data

EVEN, RATIO = 300, 1.02  # records at equal distances, and at most so far apart before
PROBES = 600  # test inputs
OPTIMIZERS = {
    "SGD": Optimizer(coupled=True),
    "momentum": Optimizer(memory=0.9, coupled=True),
    "AdamW": Optimizer(memory=0.9, squares=0.98, adaptive=True),
    "AdamW 0.999": Optimizer(memory=0.9, squares=0.999, adaptive=True),
}
CURVES = (
    "step",
    "learning_rate",
    "norm",
    "turn",
    "train_loss",
    "test_loss",
    "train_accuracy",
    "test_accuracy",
)
TRANSFORMERS = ("transformer", "transformer, not normalized")


class ProbeRun(NamedTuple):
    """A net, its data and its training; `learning_rate` as PyTorch has it.

    `p` is the modulus of the addition, and `share` the part of the pairs to train on; without p
    the inputs are `share` images of digits.
    """

    net: str
    p: int
    share: float
    optimizer: str
    learning_rate: float
    weight_decay: float
    steps: int
    scale: float = 1.0
    hidden: int = 128
    loss: str = "xent"
    schedule: str = "constant"

    @property
    def task(self) -> str:
        return "addition" if self.p else "digits"

    @property
    def how(self) -> Optimizer:
        return OPTIMIZERS[self.optimizer]

    @property
    def decay_rate(self) -> float:
        """The share of the parameters that decay takes in a step with the largest learning rate."""
        added = 1 - self.how.memory if self.how.coupled else 1.0
        return self.learning_rate * self.weight_decay / added

    @property
    def name(self) -> str:
        data = f"mod {self.p}, {self.share:g}" if self.p else f"{self.share:g} digits"
        words = [f"{self.net} {self.hidden} x {self.scale:g}", data, self.loss]
        words += [f"{self.optimizer} {self.learning_rate:g}, decay {self.weight_decay:g}"]
        words += [self.schedule] * (self.schedule != "constant")
        return "; ".join([*words, f"{self.steps} steps"])

    def data(self, seed: int) -> Data:
        """Training and test data; for squared errors the labels stay one-hot."""
        if self.p:
            return addition(seed, PROBES, self.p, self.share)
        return digits("pixels", seed, round(self.share), PROBES)

    def start(self, data: Data, seed: int) -> Parameters:
        """Random weights; the embedding of a one-hot token has entries of order one."""
        sizes = data.x.shape[1], data.y.shape[1]
        if self.net not in TRANSFORMERS:
            return start(self.net, *sizes, self.scale, seed, self.hidden)
        weights = start(self.net, *sizes, self.scale, seed, self.hidden, tokens=2)
        return weights | {"e": (0.5 * self.p**0.5 * weights["e"]).astype(np.float32)}

    def rates(self, steps: Array) -> Array:
        """The learning rate of the step that ended at each; for 0, that of the first."""
        last = np.maximum(steps - 1, 0)
        part = np.asarray(factor(self.schedule, last, self.steps), dtype=np.float64)
        return self.learning_rate * part


def factor(schedule: str, k: Any, steps: int) -> Any:
    """The learning rate at step k as a part of the largest; `steps` is the length of the run."""
    import jax.numpy as jnp

    part = (k + 1.0) / steps
    if schedule == "constant":
        return 0 * part + 1.0
    if schedule == "warm-up":
        return jnp.minimum(1.0, part / 0.02)
    if schedule == "warm-up, cosine":
        fall = 0.1 + 0.45 * (1 + jnp.cos(jnp.pi * part))
        return jnp.minimum(1.0, part / 0.02) * fall
    raise ValueError(f"factor: schedule must be constant, warm-up or warm-up, cosine: {schedule!r}")


def record_steps(total: int) -> Array:
    """0, all steps while they are few, at most 2% apart, and at least EVEN at equal distances."""
    growing = np.geomspace(1, total, int(np.log(total) / np.log(RATIO)) + 2)
    both = np.concatenate([[0], growing, np.linspace(0, total, EVEN + 1)])
    return np.unique(np.rint(both).astype(np.int64))


class Program(NamedTuple):
    """What a run is compiled for."""

    net: Net
    loss: str
    schedule: str
    turned: bool  # hidden matrices take the steps of Muon
    quantiles: tuple[float, ...]


def record(run: Any, seed: int, quantiles: Sequence[float] = ()) -> dict[str, Array]:
    """CURVES and the displacement at the steps of `record_steps`, of a ProbeRun or one like it.

    `quantiles` are those of the log-probability of the test labels, recorded as "q0", "q1", ...
    """
    data = run.data(seed)
    first, at = run.start(data, seed), record_steps(run.steps)
    kind = Program(NETS[run.net], run.loss, run.schedule, run.how.turned, tuple(quantiles))
    arrays = _compiled()(kind, first, data, run.how, *_numbers(run), at)
    curves = {name: np.asarray(values, dtype=np.float64) for name, values in arrays.items()}
    return {"step": at.astype(np.float64), "learning_rate": run.rates(at), **curves}


def _numbers(run: Any) -> tuple[float, float, int]:
    """The learning rate of a mean of gradients, the decay, and the number of steps."""
    mean = 1.0 if run.how.adaptive else 1 - run.how.memory
    return run.learning_rate / mean, run.weight_decay, run.steps


@functools.cache
def _compiled() -> Any:
    import jax

    # runs are so short that most of their time is the compilation
    fewer = {"xla_backend_optimization_level": 1}
    return jax.jit(_curves, static_argnums=(0,), compiler_options=fewer)


def _curves(
    program: Program,
    first: Any,
    data: Any,
    how: Any,
    rate: Any,
    decay: Any,
    total: Any,
    at: Any,
) -> Any:
    """The program of `record`.

    Compiling it takes longer than running it, so that it has few pieces: the parameters are one
    vector, and a record evaluates the net once, on the training and the test inputs together.
    """
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    net, kind, schedule, turned, quantiles = program
    flat, tree_of = ravel_pytree(first)
    how = with_memory(how, first) if turned else how
    inputs = jnp.concatenate([data.x, data.probe])
    labels = jnp.concatenate([data.y, data.probe_y])

    def errors(outputs: Any, y: Any) -> Any:
        if kind == "mse":
            return 0.5 * ((outputs - y) ** 2).sum(1)
        return -(y * jax.nn.log_softmax(outputs)).sum(1)

    def loss(p: Any) -> Any:
        return errors(net(tree_of(p), data.x, data.x), data.y).mean()

    def step(k: Any, state: Any) -> Any:
        slope = jax.grad(loss)(state[0])
        now = rate * factor(schedule, k, total)
        moved = stepped(how, now, decay, k, state, slope)
        return muon(tree_of, now, decay, state[0], moved, slope) if turned else moved

    def record(state: Any, ends: Any) -> Any:
        begin, end = ends
        state = jax.lax.fori_loop(begin, end, step, state)
        return state, curves(state[0])

    def spread(outputs: Any) -> dict[str, Any]:
        if not quantiles:
            return {}
        likely = (data.probe_y * jax.nn.log_softmax(outputs)).sum(1)
        levels = jnp.quantile(likely, jnp.array(quantiles))
        return {f"q{number}": level for number, level in enumerate(levels)}

    def curves(p: Any) -> dict[str, Any]:
        outputs = net(tree_of(p), inputs, data.x)
        right = outputs.argmax(1) == labels.argmax(1)
        means = {"loss": errors(outputs, labels), "accuracy": right * 1.0}
        sides = {"train": slice(count), "test": slice(count, None)}
        return (
            geometry(p)
            | spread(outputs[count:])
            | {
                f"{side}_{name}": values[rows].mean()
                for side, rows in sides.items()
                for name, values in means.items()
            }
        )

    def geometry(p: Any) -> dict[str, Any]:
        norm = jnp.linalg.norm(p)
        here, there = p / norm, flat / size
        apart, both = jnp.linalg.norm(here - there), jnp.linalg.norm(here + there)
        turn = jnp.degrees(2 * jnp.arctan2(apart, both))
        return {"norm": norm, "turn": turn, "displacement": jnp.linalg.norm(p - flat)}

    size, count = jnp.linalg.norm(flat), len(data.x)
    zeros = jnp.zeros_like(flat)
    pairs = (jnp.concatenate([at[:1], at[:-1]]), at)
    return jax.lax.scan(record, (flat, zeros, zeros), pairs)[1]
