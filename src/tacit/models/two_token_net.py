"""A two-layer ReLU net on pairs of tokens with one logit per class (L, modular addition)."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array, integer, log_scale, one_of
from tacit.models.token_arrays import DTYPES
from tacit.problems.arithmetic import TokenPairs
from tacit.records import Record

WHO = "TwoTokenNet"
LARGEST = 40  # squares of the weights must fit into float32 too


class Weights(NamedTuple):
    """Parameters: `first` (inputs x width), `bias` (width) and `second` (width x classes)."""

    first: Any
    bias: Any
    second: Any


@dataclasses.dataclass(frozen=True, init=False, repr=False)
class TwoTokenNet(Record):
    """logits = relu(x first + bias) second, 2-homogeneous in its parameters.

    The start is alpha times He's for `first`, N(0, 2/inputs), and zero for `bias` and `second`:
    all logits are zero there, whatever alpha.

    Parameters
    ----------
    width
        The number of hidden units.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha, as far from 0 as you like.
    shared
        x is the sum of the one-hot codes of both tokens, so that (a, b) and (b, a) are the same
        input; with False it is their concatenation.
    seed
        The seed of all random numbers.
    precision
        Training is in "single" or "double" precision.

    Examples
    --------
    >>> import tacit
    >>> net = tacit.TwoTokenNet(width=4, alpha=0.1)
    >>> net.start(tacit.modular_addition(modulus=5)).first.shape
    (5, 4)
    """

    width: int
    alpha: float
    log_alpha: float
    shared: bool
    seed: int
    precision: str

    def __init__(
        self,
        width: int,
        *,
        alpha: float | None = None,
        log_alpha: float | None = None,
        shared: bool = True,
        seed: int = 0,
        precision: str = "single",
    ) -> None:
        if not isinstance(shared, bool | np.bool_):
            raise ValueError(f"{WHO}: shared must be True or False, got {shared!r}")
        log_alpha = log_scale(WHO, 2, alpha, log_alpha, None)
        if abs(log_alpha) > LARGEST:
            raise ValueError(
                f"{WHO}: log_alpha must lie within -{LARGEST} and {LARGEST}, where float32 can "
                f"hold the weights, got {log_alpha:g}"
            )
        fields = {
            "width": integer(WHO, "width", width, least=1),
            "log_alpha": log_alpha,
            "alpha": math.exp(log_alpha) if alpha is None else float(alpha),
            "shared": bool(shared),
            "seed": integer(WHO, "seed", seed, least=0),
            "precision": one_of(WHO, "precision", precision, DTYPES),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def homogeneity(self) -> int:
        return 2

    @property
    def symmetric(self) -> bool:
        """Whether (a, b) and (b, a) always have the same logits."""
        return self.shared

    def describe(self) -> dict[str, Any]:
        names = ("width", "alpha", "shared", "seed", "precision")
        return {"model": WHO, **{name: getattr(self, name) for name in names}}

    def codes(self, pairs: Any, tokens: int) -> Any:
        """x of every pair, one row each, for NumPy and JAX arrays alike."""
        codes = pairs[:, :, None] == np.arange(tokens)
        return codes.sum(axis=1) if self.shared else codes.reshape(len(pairs), -1)

    def start(self, problem: TokenPairs) -> Weights:
        """The parameters before training."""
        inputs = problem.tokens if self.shared else 2 * problem.tokens
        rng = np.random.default_rng(self.seed)
        he = rng.standard_normal((inputs, self.width)) * math.sqrt(2 / inputs)
        dtype = DTYPES[self.precision]
        second = np.zeros((self.width, problem.classes), dtype)
        return Weights(dtype(self.alpha * he), np.zeros(self.width, dtype), second)

    def logits(self, weights: Weights, pairs: Any) -> Any:
        """One row of class scores per pair, for NumPy and JAX arrays alike."""
        hidden = self._coded(weights, pairs) @ weights.first + weights.bias
        return (hidden * (hidden > 0)) @ weights.second

    def kernel(self, weights: Weights, pairs: Any) -> Array:
        """The tangent kernel of the pairs, averaged over the classes.

        K(x, x') = mean over c of <grad f_c(x), grad f_c(x')>; it needs no gradient, because the
        classes share the first layer and each has its own column of the second.
        """
        x = self._coded(weights, pairs)
        hidden = x @ weights.first + weights.bias
        active = (hidden > 0).astype(x.dtype)
        relu = hidden * active
        power = np.mean(np.square(weights.second), axis=1)
        kernel: Array = relu @ relu.T + (x @ x.T + 1) * ((active * power) @ active.T)
        return kernel

    def _coded(self, weights: Weights, pairs: Any) -> Any:
        tokens = len(weights.first) // (1 if self.shared else 2)
        return self.codes(pairs, tokens).astype(weights.first.dtype)
