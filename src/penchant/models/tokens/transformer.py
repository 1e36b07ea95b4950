"""A transformer of one block on pairs of tokens: it reads "a b =" and answers at "="."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from penchant.arguments import Array, flag, integer, one_of, positive
from penchant.door import Invalid, door
from penchant.models.tokens.net import rows
from penchant.precision import DTYPES
from penchant.problems.arithmetic import TokenPairs
from penchant.records import Record, assign
from penchant.regularizers.arrays import space_of

WHO = "TokenTransformer"
LENGTH = 3  # a, b and "="


@dataclasses.dataclass(frozen=True, repr=False)
class TokenTransformer(Record):
    """Attention and a ReLU layer on the residual stream at "=", without layer norm.

    The input is embedding + position for a, b and "=", whose embedding is the last row. Only
    the stream at "=" is read, and it may see all three positions: causal and full attention agree.
    The stream s becomes s + W_out relu(W_in s + b_in) + b_out after attention, and logits are
    `unembedding` times it. The start is N(0, 1/width) for embedding and position, times
    `scale`, N(0, 1/n) for layers with n inputs, zero for biases. Sizes by default are those of
    Nanda et al. 2023.

    Parameters
    ----------
    width
        The width of the stream.
    heads
        The number of heads; each has width/heads rows of `query`, `key` and `value`.
    hidden
        The number of hidden units.
    positions
        False leaves out the positions: the net then cannot distinguish a from b. With them it must
        learn that (a, b) and (b, a) have the same sum.
    scale
        Multiplies embedding and position.
    seed
        The seed of all random numbers.
    precision
        Training is in "single" or "double" precision.

    References
    ----------
    .. [1] Nanda et al. (2023), Progress measures for grokking via mechanistic interpretability.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> problem = penchant.problems.modular_arithmetic(5, fraction=0.6)
    >>> net = penchant.models.TokenTransformer(width=8, heads=2, hidden=16)
    >>> net.logits(net.start(problem), np.array([[1, 2], [2, 1]])).shape
    (2, 5)
    """

    width: int = 128
    heads: int = 4
    hidden: int = 512
    positions: bool = True
    scale: float = 1.0
    seed: int = 0
    precision: str = "single"

    @door
    def __post_init__(self) -> None:
        for name in ("width", "heads", "hidden"):
            integer(name, getattr(self, name), least=1)
        integer("seed", self.seed, least=0)
        one_of("precision", self.precision, DTYPES)
        positions = flag("positions", self.positions)
        assign(self, scale=positive("scale", self.scale), positions=positions)
        if self.width % self.heads:
            raise Invalid(
                f"width must be a multiple of heads, which share it, got width "
                f"{self.width} and heads {self.heads}; take width "
                f"{self.heads * math.ceil(self.width / self.heads)}"
            )

    @property
    def symmetric(self) -> bool:
        """Whether (a, b) and (b, a) always have the same logits."""
        return not self.positions

    def start(self, problem: TokenPairs) -> dict[str, Array]:
        """The parameters before training."""
        rng = np.random.default_rng(self.seed)

        def layer(outputs: int, inputs: int) -> Array:
            return rng.standard_normal((outputs, inputs)) / math.sqrt(inputs)

        width, hidden = self.width, self.hidden
        tensors = {"embedding": self.scale * layer(problem.tokens + 1, width)}
        if self.positions:
            tensors["position"] = self.scale * layer(LENGTH, width)
        tensors |= {name: layer(width, width) for name in ("query", "key", "value", "output")}
        tensors |= {
            "inner": layer(hidden, width),
            "inner_bias": np.zeros(hidden),
            "outer": layer(width, hidden),
            "outer_bias": np.zeros(width),
            "unembedding": layer(problem.classes, width),
        }
        dtype = DTYPES[self.precision]
        return {name: part.astype(dtype) for name, part in tensors.items()}

    def logits(self, parameters: dict[str, Any], pairs: Any) -> Any:
        """One row of class scores per pair, for NumPy and JAX arrays alike."""
        stream = self.attended(parameters, pairs)
        before = stream @ parameters["inner"].T + parameters["inner_bias"]
        hidden = before * (before > 0)
        stream = stream + hidden @ parameters["outer"].T + parameters["outer_bias"]
        return stream @ parameters["unembedding"].T

    def attended(self, parameters: dict[str, Any], pairs: Any) -> Any:
        """The residual stream at "=" after attention, one row per pair.

        Keys and values belong to a token at a position, so they are computed once for all pairs;
        the query is that of "=" and the same for all.
        """
        seen = self._keys_and_values(parameters)
        chosen = [rows(part, pairs[:, position]) for position, part in enumerate(seen[:2])]
        last = space_of(seen[2]).broadcast_to(seen[2], chosen[0].shape)
        table = space_of(last).stack([*chosen, last])  # positions x pairs x (heads + width)
        scores = table[:, :, : self.heads]
        powers = space_of(scores).exp(scores - scores.max(axis=0))
        weights = powers / powers.sum(axis=0)
        values = table[:, :, self.heads :].reshape(LENGTH, len(last), self.heads, -1)
        mixed = (weights[..., None] * values).sum(axis=0).reshape(len(last), self.width)
        return self._stream(parameters)[2] + mixed @ parameters["output"].T

    def _stream(self, parameters: dict[str, Any]) -> list[Any]:
        """The vectors that enter the block: all tokens at both positions, and "="."""
        embedding = parameters["embedding"]
        parts = [embedding[:-1], embedding[:-1], embedding[-1:]]
        if not self.positions:
            return parts
        return [
            part + position for part, position in zip(parts, parameters["position"], strict=True)
        ]

    def _keys_and_values(self, parameters: dict[str, Any]) -> list[Any]:
        """For every position its scores under the query of "=", one per head, and its values."""
        stream = self._stream(parameters)
        query = (stream[2] @ parameters["query"].T).reshape(self.heads, -1)
        query = query / math.sqrt(self.width // self.heads)

        def seen(part: Any) -> Any:
            keys = (part @ parameters["key"].T).reshape(len(part), self.heads, -1)
            scores = (keys * query).sum(axis=2)
            return space_of(part).concatenate([scores, part @ parameters["value"].T], axis=1)

        return [seen(part) for part in stream]
