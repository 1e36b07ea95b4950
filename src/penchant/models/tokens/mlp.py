"""An MLP on pairs of tokens: embeddings multiplied, one hidden layer, a logit per class.

It is the net of Notsawo et al. 2025.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import integer, one_of, positive
from penchant.door import Invalid, door
from penchant.precision import DTYPES
from penchant.problems.arithmetic import TokenPairs
from penchant.records import Record

WHO = "TokenMLP"
VARIANTS = ("source", "code")


class Tensors(NamedTuple):
    """The parameters; what a variant does not have is None, which JAX skips.

    `embedding` and `partner` are tokens x d1, `inner` is d2 x d1, `outer` is classes x d2.
    """

    embedding: Any
    partner: Any
    inner: Any
    inner_bias: Any
    outer: Any
    outer_bias: Any

    def present(self) -> dict[str, Any]:
        """The tensors that are there, by name."""
        return {name: part for name, part in self._asdict().items() if part is not None}


@dataclasses.dataclass(frozen=True, repr=False)
class TokenMLP(Record):
    """logits = b2 + W2 relu(b1 + W1 (E_x1 o E_x2)), all learnable, o the entrywise product.

    It is the net of Notsawo et al. 2025. They do not print its start; this is PyTorch's: E ~ N(0,
    1), and layers with n inputs uniform within 1/sqrt(n), biases too.

    Parameters
    ----------
    embedding
        The length of an embedding.
    width
        The number of hidden units.
    variant
        "source" is the above, with one embedding E, so that (x1, x2) and (x2, x1) are one
        input. "code" is what the authors' program has: an embedding for each place, o the
        product of square matrices, no biases, embeddings uniform within 1/sqrt(tokens) and
        layers with m outputs N(0, 1/m).
    scale
        Multiplies the embeddings.
    seed
        The seed of all random numbers.
    precision
        Training is in "single" or "double" precision.

    References
    ----------
    .. [1] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> problem = penchant.problems.modular_arithmetic(5, fraction=0.6)
    >>> net = penchant.models.TokenMLP(embedding=4, width=8)
    >>> net.logits(net.start(problem), np.array([[1, 2], [2, 1]])).shape
    (2, 5)
    """

    embedding: int = 64
    width: int = 64
    variant: str = "source"
    scale: float = 1.0
    seed: int = 0
    precision: str = "single"

    @door
    def __post_init__(self) -> None:
        integer("embedding", self.embedding, least=1)
        integer("width", self.width, least=1)
        integer("seed", self.seed, least=0)
        positive("scale", self.scale)
        one_of("variant", self.variant, VARIANTS)
        one_of("precision", self.precision, DTYPES)
        if self.variant == "code" and self.side**2 != self.embedding:
            raise Invalid(
                f"variant 'code' multiplies square matrices, so embedding must be a square "
                f"number, got {self.embedding}; take {self.side**2}"
            )

    @property
    def side(self) -> int:
        """The side of the square matrices of variant "code"."""
        return math.isqrt(self.embedding)

    @property
    def symmetric(self) -> bool:
        """Whether (x1, x2) and (x2, x1) always have the same logits."""
        return self.variant == "source"

    def start(self, problem: TokenPairs) -> Tensors:
        """The parameters before training."""
        rng = np.random.default_rng(self.seed)
        sizes = problem.tokens, self.embedding, self.width, problem.classes
        draw = _source_start if self.variant == "source" else _code_start
        parts = draw(rng, *sizes).present()
        for name in {"embedding", "partner"} & set(parts):
            parts[name] = self.scale * parts[name]
        dtype = DTYPES[self.precision]
        cast = {name: part.astype(dtype) for name, part in parts.items()}
        return Tensors(*(cast.get(name) for name in Tensors._fields))

    def logits(self, tensors: Tensors, pairs: Any) -> Any:
        """One row of class scores per pair, for NumPy and JAX arrays alike."""
        return self.readout(tensors, self.joined(tensors, pairs))

    def joined(self, tensors: Tensors, pairs: Any) -> Any:
        """The joint code of every pair: E_x1 o E_x2."""
        first = tensors.embedding[pairs[:, 0]]
        if self.variant == "source":
            return first * tensors.embedding[pairs[:, 1]]
        square = (-1, self.side, self.side)
        second = tensors.partner[pairs[:, 1]]
        return (first.reshape(square) @ second.reshape(square)).reshape(-1, self.embedding)

    def readout(self, tensors: Tensors, codes: Any) -> Any:
        """The logits of joint codes, one per row."""
        return self.scores(tensors, self.hidden_units(tensors, codes))

    def hidden_units(self, tensors: Tensors, codes: Any) -> Any:
        """relu(b1 + W1 code) for every row of codes."""
        before = codes @ tensors.inner.T
        if tensors.inner_bias is not None:
            before = before + tensors.inner_bias
        return before.clip(0)

    def scores(self, tensors: Tensors, units: Any) -> Any:
        """b2 + W2 units, one row of logits for every row of hidden units."""
        logits = units @ tensors.outer.T
        return logits if tensors.outer_bias is None else logits + tensors.outer_bias


def _source_start(
    rng: np.random.Generator, tokens: int, embedded: int, width: int, classes: int
) -> Tensors:
    def layer(inputs: int, *shape: int) -> Any:
        return rng.uniform(-1, 1, shape) / math.sqrt(inputs)

    return Tensors(
        embedding=rng.standard_normal((tokens, embedded)),
        partner=None,
        inner=layer(embedded, width, embedded),
        inner_bias=layer(embedded, width),
        outer=layer(width, classes, width),
        outer_bias=layer(width, classes),
    )


def _code_start(
    rng: np.random.Generator, tokens: int, embedded: int, width: int, classes: int
) -> Tensors:
    def embedding() -> Any:
        return rng.uniform(-1, 1, (tokens, embedded)) / math.sqrt(tokens)

    def layer(outputs: int, inputs: int) -> Any:
        return rng.standard_normal((outputs, inputs)) / math.sqrt(outputs)

    return Tensors(
        embedding=embedding(),
        partner=embedding(),
        inner=layer(width, embedded),
        inner_bias=None,
        outer=layer(classes, width),
        outer_bias=None,
    )
