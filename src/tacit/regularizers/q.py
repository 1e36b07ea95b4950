"""Q: what gradient flow on a diagonal network of any depth, scale and shape minimises."""

from __future__ import annotations

import dataclasses
import math

from numpy.typing import ArrayLike

from tacit.arguments import Array, integer, log_scale
from tacit.regularizers.pair import SignedPair


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Q(SignedPair):
    """The implicit regularizer of beta = w+^D - w-^D from w+ = w- = alpha * w0.

    Depth 2 is W Theorem 1 (hypentropy), depth D > 2 is W Theorem 3. Give the scale as alpha, as
    log_alpha or as mu.

    With a shape coordinate i is (mu_i/kappa_i) q_D(beta_i/mu_i), where mu_i = (alpha |w0_i|)^D
    and kappa_i = |w0_i|^(D-2); for D = 2 that is W eq. (5).

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

    Examples
    --------
    >>> import tacit
    >>> q = tacit.Q(depth=2, alpha=1.0)
    >>> round(q([1.0, -2.0]), 4)
    1.1795
    >>> q.gradient([1.0, -2.0]).round(4)
    array([ 0.4812, -0.8814])
    """

    depth: int

    def __init__(
        self,
        depth: int = 2,
        *,
        alpha: float | None = None,
        log_alpha: float | None = None,
        mu: float | None = None,
        shape: ArrayLike | None = None,
    ) -> None:
        depth = integer("Q", "depth", depth, least=2)
        object.__setattr__(self, "depth", depth)
        self.fill(log_scale("Q", depth, alpha, log_alpha, mu), shape)

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
