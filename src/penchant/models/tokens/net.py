"""The interface of a net on pairs of tokens that can be trained, for NumPy and JAX arrays alike."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from penchant.problems.arithmetic import TokenPairs


def rows(table: Any, numbers: Any) -> Any:
    """table[numbers] for a vector of row numbers.

    JAX gets a product with one-hot codes: the derivative of an indexed read adds up rows one by
    one, that of a product is a product.
    """
    if isinstance(table, np.ndarray):
        return table[np.asarray(numbers)]
    return (numbers[:, None] == np.arange(len(table))).astype(table.dtype) @ table


@runtime_checkable
class TokenNet(Protocol):
    """A net that maps pairs of tokens to one logit per class.

    Its parameters are a pytree of arrays, such as a dict of them by name, whose dtype is the
    precision of training. This class is a protocol: any class with these methods is a TokenNet.

    Examples
    --------
    >>> import penchant
    >>> net = penchant.models.TokenQuadratic(width=4)
    >>> sorted(net.start(penchant.problems.modular_arithmetic(5, fraction=0.6))), net.homogeneity
    (['inner', 'outer'], 3)
    """

    @property
    def symmetric(self) -> bool:
        """Whether (a, b) and (b, a) always have the same logits."""

    def start(self, problem: TokenPairs) -> Any:
        """The parameters before training, as NumPy arrays."""

    def logits(self, parameters: Any, pairs: Any) -> Any:
        """One row of class scores per pair, for NumPy and JAX arrays alike."""
