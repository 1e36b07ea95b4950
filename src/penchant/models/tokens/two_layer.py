"""Two-layer nets on pairs of tokens, with squares (Gromov 2023) or ReLUs (Lyu et al. 2023)."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array, flag, integer, log_scale, one_of, positive
from penchant.door import Invalid, door
from penchant.models.tokens.net import rows
from penchant.precision import DTYPES
from penchant.problems.arithmetic import TokenPairs
from penchant.records import Record, assign


@dataclasses.dataclass(frozen=True, repr=False)
class TokenQuadratic(Record):
    """logits = W2 (W1 x)^2 entrywise, with x the one-hot codes of both tokens; 3-homogeneous.

    `inner` is W1, width x 2 tokens, its halves for the first and the second token; `outer` is
    W2, classes x width. The start is alpha times N(0, 1/2) for W1 and alpha times N(0, 1/width)
    for W2: at alpha = 1 units and logits are of order one.

    Parameters
    ----------
    width
        The number of hidden units.
    alpha
        The scale of the start.
    shared
        Both tokens use one half, width x tokens, so that (a, b) and (b, a) are one input.
    seed
        The seed of all random numbers.
    precision
        Training is in "single" or "double" precision.

    References
    ----------
    .. [1] Gromov (2023), Grokking modular arithmetic.

    Examples
    --------
    >>> import penchant
    >>> net = penchant.models.TokenQuadratic(width=4, alpha=1.0)
    >>> start = net.start(penchant.problems.modular_arithmetic(5, fraction=0.6))
    >>> {name: part.shape for name, part in start.items()}
    {'inner': (4, 10), 'outer': (5, 4)}
    """

    width: int = 128
    _: dataclasses.KW_ONLY
    alpha: float = 1.0
    shared: bool = False
    seed: int = 0
    precision: str = "single"

    @door
    def __post_init__(self) -> None:
        integer("width", self.width, least=1)
        alpha = positive("alpha", self.alpha)
        assign(self, alpha=alpha, shared=flag("shared", self.shared))
        integer("seed", self.seed, least=0)
        one_of("precision", self.precision, DTYPES)

    homogeneity = 3

    @property
    def symmetric(self) -> bool:
        """Whether (a, b) and (b, a) always have the same logits."""
        return self.shared

    def start(self, problem: TokenPairs) -> dict[str, Array]:
        """The parameters before training."""
        rng = np.random.default_rng(self.seed)
        inputs = problem.tokens * (1 if self.shared else 2)
        inner = rng.standard_normal((self.width, inputs)) / math.sqrt(2)
        outer = rng.standard_normal((problem.classes, self.width)) / math.sqrt(self.width)
        dtype = DTYPES[self.precision]
        return {"inner": dtype(self.alpha * inner), "outer": dtype(self.alpha * outer)}

    def logits(self, parameters: dict[str, Any], pairs: Any) -> Any:
        """One row of class scores per pair, for NumPy and JAX arrays alike."""
        first = second = parameters["inner"].T
        if not self.shared:
            tokens = len(first) // 2
            first, second = first[:tokens], first[tokens:]
        units = rows(first, pairs[:, 0]) + rows(second, pairs[:, 1])
        return (units * units) @ parameters["outer"].T


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

    References
    ----------
    .. [1] Lyu et al. (2023), Dichotomy of Early and Late Phase Implicit Biases Can Provably Induce
       Grokking.

    Examples
    --------
    >>> import penchant
    >>> net = penchant.models.TwoTokenNet(width=4, alpha=0.1)
    >>> net.start(penchant.problems.modular_arithmetic(5, fraction=0.6)).first.shape
    (5, 4)
    """

    width: int
    alpha: float
    log_alpha: float
    shared: bool
    seed: int
    precision: str

    @door
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
        log_alpha = log_scale(2, alpha, log_alpha)
        if abs(log_alpha) > LARGEST:
            raise Invalid(
                f"log_alpha must lie within -{LARGEST} and {LARGEST}, where float32 "
                f"can hold the weights, got {log_alpha:g}"
            )
        assign(
            self,
            width=integer("width", width, least=1),
            log_alpha=log_alpha,
            alpha=math.exp(log_alpha) if alpha is None else float(alpha),
            shared=flag("shared", shared),
            seed=integer("seed", seed, least=0),
            precision=one_of("precision", precision, DTYPES),
        )

    homogeneity = 2

    @property
    def symmetric(self) -> bool:
        """Whether (a, b) and (b, a) always have the same logits."""
        return self.shared

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
