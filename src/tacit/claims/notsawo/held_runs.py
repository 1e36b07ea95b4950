"""Training at held norms, for the claim about the Goldilocks zone."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from tacit.arguments import Array
from tacit.claims.notsawo.runs import truth
from tacit.models.function import FunctionModel
from tacit.models.linear import LinearPredictor
from tacit.models.network import two_layer
from tacit.problems.opposed_units import OpposedUnits, opposed_units
from tacit.problems.regression import Regression
from tacit.training.descent.held_sweep import HeldSweep, held_sweep

SHARES = 2.0 ** np.linspace(-2, 2.5, 19)  # held norm over that of the truth; SHARES[MIDDLE] = 1
MIDDLE = 8
INPUTS, WIDTH, SAMPLES = 10, 40, 80
NET_STEPS = 3000
SPARSE_STEPS = {"l1": 2000, "l2": 20_000}  # l2 is slow where the norm is just that of X^+ y


@functools.cache
def student() -> FunctionModel:
    """The net that learns; one object, so that all of its runs share what was compiled."""
    return two_layer(WIDTH, alpha=1.0)


@dataclasses.dataclass(frozen=True)
class Curves:
    """Training and test loss against the held norm, both over those of the zero predictor."""

    sizes: Array
    train: Array
    test: Array
    ends: Array  # the trained parameters, one row per size

    @property
    def bottom(self) -> int:
        """The place of the least test loss."""
        return int(np.argmin(self.test))

    @property
    def rise(self) -> float:
        """The test loss at the smallest or at the largest norm, the lower one, over the least."""
        return float(min(self.test[0], self.test[-1]) / self.test.min())


def taught(case: OpposedUnits, sizes: Array, start: Array | None = None) -> Curves:
    """The student trained at each of the held norms."""
    sweep = held_sweep(
        student(), case.training, sizes, learning_rate=1e-3, steps=NET_STEPS, start=start
    )
    return Curves(sizes, sweep.loss, fresh_losses(case, sweep), sweep.parameters)


def fresh_losses(case: OpposedUnits, sweep: HeldSweep) -> Array:
    """The mean squared error on the test samples, over that of the zero predictor."""
    X, y = case.test.X, case.test.y
    errors = [np.sum((student().predict(theta, X) - y) ** 2) for theta in sweep.parameters]
    return np.array(errors) / float(np.sum(y**2))


@functools.lru_cache(maxsize=64)
def net(seed: int) -> tuple[OpposedUnits, Curves]:
    """One teacher and its student over all held norms."""
    case = opposed_units(SAMPLES, INPUTS, seed=seed)
    return case, taught(case, case.least_norm() * SHARES)


def shuffled(case: OpposedUnits) -> OpposedUnits:
    """The same samples with their labels in another order: nothing to be learnt."""
    y = np.random.default_rng(0).permutation(case.training.y)
    return dataclasses.replace(case, training=Regression(case.training.X, y, loss="half squares"))


def silent() -> Array:
    """The student's start made symmetric, so that it computes zero."""
    theta = student().start(INPUTS).copy()
    inner, outer = theta[: WIDTH * INPUTS].reshape(WIDTH, INPUTS), theta[WIDTH * INPUTS :]
    half = WIDTH // 2
    inner[half:], outer[half:] = inner[:half], -outer[:half]
    return theta


@dataclasses.dataclass(frozen=True)
class Recovered:
    """Sparse recovery at held norms: |a - a*|^2 / |a*|^2, training loss and end per norm."""

    problem: Regression
    start: Array
    norm: str
    sizes: Array
    train: Array
    error: Array
    ends: Array
    fall: Array  # of the training loss in the second half of the steps


def recovered(problem: Regression, norm: str, more: int = 1) -> Recovered:
    """Descent from a random start, held at multiples of the norm of the truth.

    `more` multiplies the number of steps; some problems need ten times as many for l1.
    """
    target = truth(problem)
    own = float(np.abs(target).sum() if norm == "l1" else np.linalg.norm(target))
    start = np.random.default_rng(7).standard_normal(problem.dimension)
    steps = more * SPARSE_STEPS[norm]
    sweep = held_sweep(LinearPredictor(), problem, own * SHARES, norm, 0.1, steps, start)
    gaps = np.sum((sweep.parameters - target) ** 2, axis=1) / float(target @ target)
    return Recovered(
        problem, start, norm, sweep.sizes, sweep.loss, gaps, sweep.parameters, sweep.fall
    )
