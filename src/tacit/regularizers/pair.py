"""Regularizers of a signed pair: beta_i = mu_i h(kappa_i s_i), one law h and one scale for all."""

from __future__ import annotations

import abc
import copy
import dataclasses
import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, start_shape
from tacit.regularizers import hypentropy, powerlaw
from tacit.regularizers.prox import through_dual
from tacit.regularizers.regularizer import Regularizer


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class SignedPair(Regularizer):
    """The regularizer whose inverse gradient is mu_i h(kappa_i s).

    h(s) = (1-s)^-p - (1+s)^-p with p = `power`, or 2 sinh(s) when `power` is infinite. `level` is
    log mu of a coordinate of weight one, `log_weight` the rest of log mu_i. Solvers follow the
    minimiser in `level`.
    """

    level: float
    log_alpha: float
    shape: Array | None

    def fill(self, log_alpha: float, shape: ArrayLike | None) -> None:
        """Sets the fields of a pair whose mu is (alpha |w0|)^layers; for use in `__init__`."""
        weights = start_shape(type(self).__name__, shape)
        values = {"level": self.layers * log_alpha, "log_alpha": log_alpha, "shape": weights}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "dimension", None if weights is None else len(weights))

    degree = 1.0
    in_jax = True
    has_prox = True

    def in_units(self, log_size: float) -> Self:
        """The pair whose mu is smaller by the same factor."""
        scaled = copy.copy(self)
        level = self.level - log_size
        object.__setattr__(scaled, "level", level)
        object.__setattr__(scaled, "log_alpha", level / self.layers)
        return scaled

    def scale_in_words(self) -> str:
        shape = "" if self.shape is None else f", shape of {len(self.shape)}"
        return f"log_alpha={self.log_alpha:.6g}{shape}"

    @property
    @abc.abstractmethod
    def power(self) -> float:
        """The exponent p of the law, infinite for sinh."""

    @property
    @abc.abstractmethod
    def layers(self) -> int:
        """The power of alpha in mu."""

    @property
    def log_weight(self) -> Array:
        """log mu_i - level, one entry standing for all when there is no shape."""
        return self.layers * np.log(self.weights)

    @property
    @abc.abstractmethod
    def kappa(self) -> Array:
        """The factor between s and the argument of the law."""

    @property
    def weights(self) -> Array:
        """|w0|, one entry standing for all when no shape was given."""
        return np.ones(1) if self.shape is None else self.shape

    @property
    def log_mu(self) -> Array:
        """log of the size of beta_i at which kernel and rich regime meet."""
        return self.level + self.log_weight

    def terms(self, beta: Array) -> Array:
        if math.isinf(self.power):
            return hypentropy.terms(beta, self.log_mu) / self.kappa
        return powerlaw.terms(beta, self.log_mu, self.power) / self.kappa

    def dual_of(self, beta: Array) -> Array:
        if math.isinf(self.power):
            return hypentropy.gradient(beta, self.log_mu) / self.kappa
        return powerlaw.gradient(beta, self.log_mu, self.power) / self.kappa

    def primal_of(self, s: Array) -> Array:
        if math.isinf(self.power):
            return hypentropy.primal(self.kappa * s, self.log_mu)
        return powerlaw.primal(self.kappa * s, self.log_mu, self.power)

    def prox_of(self, beta: Any, weight: Any) -> Any:
        return through_dual(self, beta, weight)

    def slope(self, s: Array) -> Array:
        if math.isinf(self.power):
            return self.kappa * hypentropy.slope(self.kappa * s, self.log_mu)
        return self.kappa * powerlaw.slope(self.kappa * s, self.log_mu, self.power)
