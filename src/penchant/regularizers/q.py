"""Q, which gradient flow on a diagonal network of any depth minimises, and the explicit R."""

from __future__ import annotations

import abc
import copy
import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, integer, log_scale, start_shape, tilt_or_none
from penchant.door import Invalid, class_name, door, door_as
from penchant.records import assign
from penchant.regularizers import laws
from penchant.regularizers.regularizer import Regularizer, through_dual

FAR = 20.0  # log |beta|/mu from which on a slack is a power of mu/|beta|


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
    tilt: Array | None

    @door_as(class_name)
    def fill(
        self, log_alpha: float, shape: ArrayLike | None, tilt: ArrayLike | None = None
    ) -> None:
        """Sets the fields of a pair whose mu is (alpha |w0|)^layers; for use in `__init__`."""
        weights = start_shape(shape)
        tilt_array = tilt_or_none(tilt)
        sizes = {len(vector) for vector in (weights, tilt_array) if vector is not None}
        if len(sizes) > 1:
            raise Invalid(f"shape and tilt must have equally many entries, got {sizes}")
        assign(self, level=self.layers * log_alpha, log_alpha=log_alpha)
        assign(self, shape=weights, tilt=tilt_array, dimension=sizes.pop() if sizes else None)

    degree = 1.0
    in_jax = True
    has_prox = True

    def in_units(self, log_size: float) -> Self:
        """The pair whose mu is smaller by the same factor."""
        scaled = copy.copy(self)
        level = self.level - log_size
        assign(scaled, level=level, log_alpha=level / self.layers)
        return scaled

    def at_scale(self, log_alpha: float) -> Self:
        """The pair at another scale."""
        scaled = copy.copy(self)
        assign(scaled, level=self.layers * log_alpha, log_alpha=log_alpha)
        return scaled

    def scale_in_words(self) -> str:
        vectors = {"shape": self.shape, "tilt": self.tilt}
        more = [f", {name} of {len(v)}" for name, v in vectors.items() if v is not None]
        return f"log_alpha={self.log_alpha:.6g}{''.join(more)}"

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

    @property
    def tilt_or_zero(self) -> Any:
        """The tilt, zero where there is none."""
        return 0.0 if self.tilt is None else self.tilt

    def terms(self, beta: Array) -> Array:
        return laws.terms(beta, self.log_mu, self.power) / self.kappa - self.tilt_or_zero * beta

    def dual_of(self, beta: Array) -> Array:
        return laws.gradient(beta, self.log_mu, self.power) / self.kappa - self.tilt_or_zero

    def primal_of(self, s: Array) -> Array:
        return laws.primal(self.kappa * (s + self.tilt_or_zero), self.log_mu, self.power)

    def conjugate_of(self, s: Array) -> Array:
        inner = self.kappa * (s + self.tilt_or_zero)
        return laws.conjugate(inner, self.log_mu, self.power) / self.kappa

    def prox_of(self, beta: Any, weight: Any) -> Any:
        if self.tilt is None:
            return through_dual(self, beta, weight)
        upright = copy.copy(self)
        assign(upright, tilt=None)
        return through_dual(upright, beta + weight * self.tilt, weight)

    def slope(self, s: Array) -> Array:
        return self.kappa * laws.slope(
            self.kappa * (s + self.tilt_or_zero), self.log_mu, self.power
        )

    def log_softness(self, beta: Array, gradient: Array) -> Array:
        with np.errstate(divide="ignore"):
            grown = np.log(np.abs(beta)) - self.log_mu  # log |beta|/mu
        if math.isinf(self.power):  # b' = sqrt(beta^2 + 4 mu^2)
            return self.log_mu + np.logaddexp(2 * grown, 2 * math.log(2)) / 2
        # far out the slack is (mu/|beta|)^(1/p), also where 1 - s rounds it off
        far = np.log(self.kappa * self.power) + self.log_mu + grown * (1 + 1 / self.power)
        return np.where(grown > FAR, far, super().log_softness(beta, gradient))

    def softest(self, beta: Array) -> Any:
        """The largest coordinate, since b' grows with |beta|, unless every one has its own law."""
        return slice(None) if self.dimension is not None else [int(np.abs(beta).argmax())]


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Q(SignedPair):
    """The implicit regularizer of beta = w+^D - w-^D from w+ = w- = alpha * w0.

    Depth 2 is theorem 1 of Woodworth et al. 2020 (hypentropy), depth D > 2 their theorem 3. Give
    the scale as alpha, as log_alpha or as mu.

    With a shape coordinate i is (mu_i/kappa_i) q_D(beta_i/mu_i), where mu_i = (alpha |w0_i|)^D
    and kappa_i = |w0_i|^(D-2); for D = 2 that is their eq. 5.

    Parameters
    ----------
    depth
        The power D, at least 2.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha, as far from 0 as you like.
    mu
        alpha**depth.
    shape
        The vector w0; None stands for ones.
    tilt
        A vector whose inner product with beta is subtracted. A start with w+ != w- is a tilt: at
        alpha = 1 that of w+ = u, w- = v has the shape sqrt(u v) and the tilt log(u/v) for depth 2;
        for D > 2 with a = u^(2-D), b = v^(2-D) it has ((a + b)/2)^(1/(2-D)) and (b - a)/2.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import penchant
    >>> q = penchant.Q(depth=2, alpha=1.0)
    >>> round(q([1.0, -2.0]), 4)
    1.1795
    >>> q.gradient([1.0, -2.0]).round(4)
    array([ 0.4812, -0.8814])
    """

    depth: int

    @door
    def __init__(
        self,
        depth: int = 2,
        *,
        alpha: float | None = None,
        log_alpha: float | None = None,
        mu: float | None = None,
        shape: ArrayLike | None = None,
        tilt: ArrayLike | None = None,
    ) -> None:
        depth = integer("depth", depth, least=2)
        assign(self, depth=depth)
        self.fill(log_scale(depth, alpha, log_alpha, mu), shape, tilt)

    def __str__(self) -> str:
        return f"Q(depth={self.depth}, {self.scale_in_words()})"

    @property
    def power(self) -> float:
        return math.inf if self.depth == 2 else self.depth / (self.depth - 2)

    @property
    def layers(self) -> int:
        return self.depth

    @property
    def kappa(self) -> Array:
        return self.weights ** (self.depth - 2)


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class R(SignedPair):
    """min |w - alpha w0|^2 over w+^2 - w-^2 = beta (Woodworth et al. 2020, eq. 9).

    In units of alpha w0 Lagrange's conditions give w+ = 1/(1-s), w- = 1/(1+s), hence
    beta_i/mu_i = (1-s)^-2 - (1+s)^-2 with mu_i = (alpha w0_i)^2. That is h_4: the explicit
    regularizer of depth 2 is the implicit one of depth 4 at the same mu.

    Parameters
    ----------
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha, as far from 0 as you like.
    mu
        alpha**2.
    shape
        The vector w0; None stands for ones.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import penchant
    >>> round(penchant.regularizers.R(alpha=1.0)([1.0, -2.0]), 4)
    0.5411
    """

    @door
    def __init__(
        self,
        *,
        alpha: float | None = None,
        log_alpha: float | None = None,
        mu: float | None = None,
        shape: ArrayLike | None = None,
    ) -> None:
        self.fill(log_scale(2, alpha, log_alpha, mu), shape)

    def __str__(self) -> str:
        return f"R({self.scale_in_words()})"

    power = 2.0
    layers = 2
    kappa = np.ones(1)


def over_scales(pairs: Sequence[Any]) -> SignedPair:
    """Pairs that differ in their scale alone, as one law for predictors in the rows of a matrix."""
    law: SignedPair = copy.copy(pairs[0])
    assign(law, level=np.array([[pair.level] for pair in pairs]))
    return law
