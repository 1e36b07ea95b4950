"""Data from two opposed ReLU units, a teacher whose least parameter norm is known."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from tacit.arguments import Array, integer, real
from tacit.problems.regression import Regression, frozen
from tacit.records import Record

WHO = "opposed_units"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class OpposedUnits(Record):
    """Training samples, clean test samples, and the unit vectors p and q of the teacher."""

    training: Regression
    test: Regression
    directions: Array

    def least_norm(self, scale: float = 1.0) -> float:
        """The norm of the net relu(<scale p, x>)/scale - relu(<scale q, x>)/scale.

        At scale = 1 both layers have the same norm and no rescaling is shorter: it is 2.
        """
        return math.sqrt(2 * (scale**2 + scale**-2))


def opposed_units(
    samples: int, dimension: int = 10, *, test: int = 4000, noise: float = 0.0, seed: int = 0
) -> OpposedUnits:
    """y = relu(<p, x>) - relu(<q, x>) with x ~ N(0, 1) and p, q random, orthogonal, of length 1.

    The training labels carry Gaussian noise of standard deviation `noise` times that of y.
    """
    samples, test = integer(WHO, "samples", samples, least=1), integer(WHO, "test", test, least=1)
    dimension = integer(WHO, "dimension", dimension, least=2)
    seed = integer(WHO, "seed", seed, least=0)
    noise = real(WHO, "noise", noise, rule="a finite number >= 0")
    if noise < 0:
        raise ValueError(f"{WHO}: noise must be >= 0, got {noise}")
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.standard_normal((dimension, 2)))[0].T
    parts = []
    for count, spread in ((samples, noise), (test, 0.0)):
        X = rng.standard_normal((count, dimension))
        y = answers(directions, X)
        size = spread * float(y.std())
        about = f"{count} samples of two opposed ReLU units of {dimension} inputs, seed {seed}"
        noisy = y + size * rng.standard_normal(count)
        parts.append(Regression(X, noisy, noise=size, description=about, loss="half squares"))
    return OpposedUnits(parts[0], parts[1], frozen(directions))


def answers(directions: Array, X: Array) -> Array:
    """relu(<p, x>) - relu(<q, x>) for every row x of `X`."""
    first, second = np.maximum(X @ directions.T, 0).T
    return np.asarray(first - second)
