"""R: the distance from the start in the parameters, the explicit rival of the implicit Q."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, log_scale
from tacit.regularizers.pair import SignedPair


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class R(SignedPair):
    """min |w - alpha w0|^2 over w+^2 - w-^2 = beta, W eq. (9).

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

    Examples
    --------
    >>> import tacit
    >>> round(tacit.R(alpha=1.0)([1.0, -2.0]), 4)
    0.5411
    """

    def __init__(
        self,
        *,
        alpha: float | None = None,
        log_alpha: float | None = None,
        mu: float | None = None,
        shape: ArrayLike | None = None,
    ) -> None:
        self.fill(log_scale("R", 2, alpha, log_alpha, mu), shape)

    def __str__(self) -> str:
        return f"R({self.scale_in_words()})"

    @property
    def power(self) -> float:
        return 2.0

    @property
    def layers(self) -> int:
        return 2

    @property
    def kappa(self) -> Array:
        return np.ones(1)
