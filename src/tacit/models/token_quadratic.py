"""The two-layer net with squares on pairs of tokens, which adds modulo p with cosines (Gromov)."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from tacit.arguments import Array, integer, one_of, positive
from tacit.models.token_arrays import DTYPES, rows
from tacit.problems.arithmetic import TokenPairs
from tacit.records import Record

WHO = "TokenQuadratic"


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

    Examples
    --------
    >>> import tacit
    >>> net = tacit.TokenQuadratic(width=4, alpha=1.0)
    >>> start = net.start(tacit.modular_addition(modulus=5))
    >>> {name: part.shape for name, part in start.items()}
    {'inner': (4, 10), 'outer': (5, 4)}
    """

    width: int = 128
    _: dataclasses.KW_ONLY
    alpha: float = 1.0
    shared: bool = False
    seed: int = 0
    precision: str = "single"

    def __post_init__(self) -> None:
        integer(WHO, "width", self.width, least=1)
        object.__setattr__(self, "alpha", positive(WHO, "alpha", self.alpha))
        if not isinstance(self.shared, bool | np.bool_):
            raise ValueError(f"{WHO}: shared must be True or False, got {self.shared!r}")
        object.__setattr__(self, "shared", bool(self.shared))
        integer(WHO, "seed", self.seed, least=0)
        one_of(WHO, "precision", self.precision, DTYPES)

    @property
    def homogeneity(self) -> int:
        return 3

    @property
    def symmetric(self) -> bool:
        """Whether (a, b) and (b, a) always have the same logits."""
        return self.shared

    def describe(self) -> dict[str, Any]:
        return {"model": WHO, **dataclasses.asdict(self)}

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
