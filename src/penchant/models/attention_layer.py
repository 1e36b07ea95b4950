"""One layer of attention with one query and a fixed head, f = v^T X^T softmax(X W z).

How it works. Once one token s has nearly all the weight, the derivative of f in the logits is a
product of tiny weights p_t and differences of scores; as it is usually written the entry of s is
lost to rounding long before the others. With the logits and scores relative to those of the token
that leads, d_t = l_t - l_s and g_t = <v, x_t - x_s>,

    f = <v, x_s> + sum_t p_t g_t,      df/dd_t = p_t (g_t - sum_r p_r g_r)

loses no digits, so that runs can be followed until p_t underflows, at margins near 700.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import finite_array, flag, integer, log_scale
from penchant.description import with_recipe
from penchant.door import Invalid, door
from penchant.lazy import jax, jnp
from penchant.models.function import FunctionModel


@with_recipe
@door
def attention(
    head: ArrayLike,
    *,
    factored: bool = False,
    rank: int | None = None,
    alpha: float | None = None,
    log_alpha: float | None = None,
    seed: int = 0,
) -> FunctionModel:
    """f(x) = v^T X^T softmax(X W z) with the head v fixed, of rows (tokens, query).

    It learns `penchant.problems.token_selection`. With `factored` W = K Q^T, and the parameters
    are K and then Q, flat in C order; otherwise they are W. `function.matrix(parameters)` of the
    model is W.

    Parameters
    ----------
    head
        The vector v.
    factored
        Whether keys and queries are trained, W = K Q^T, instead of W.
    rank
        The columns of K and Q, as many as v has entries by default.
    alpha
        The standard deviation of the Gaussian start of every parameter. Without a scale W starts
        at zero, and K and Q, for which zero is a saddle, at 0.1.
    log_alpha
        The natural logarithm of alpha.
    seed
        The seed of all random numbers.

    Returns
    -------
    FunctionModel
        The layer.

    References
    ----------
    .. [1] Tarzanagh et al. (2023), Transformers as Support Vector Machines.

    Examples
    --------
    >>> import penchant
    >>> data = penchant.problems.token_selection(samples=2, tokens=3, dimension=4)
    >>> model = penchant.models.attention(data.head)
    >>> model.predict(model.start(16), data.training.X) * data.y  # the mean score of the tokens
    array([0.33333333, 0.33333333])
    """
    v = finite_array("head", head, ndim=1)
    flag("factored", factored)
    if rank is not None and not factored:
        raise Invalid(f"rank={rank} is that of K and Q; give factored=True with it")
    size, seed = len(v), integer("seed", seed, least=0)
    columns = (size if rank is None else integer("rank", rank, least=1)) if factored else None
    scale = 0.1 if factored else 0.0
    if alpha is not None or log_alpha is not None:
        scale = math.exp(log_scale(1, alpha, log_alpha))
    count = size**2 if columns is None else 2 * size * columns
    begin = scale * np.random.default_rng(seed).standard_normal(count)
    return FunctionModel(AttentionFunction(tuple(v.tolist()), columns), begin, name="attention")


@dataclasses.dataclass(frozen=True)
class AttentionFunction:
    """The layer of `attention`; equal ones are equal, so that compiled code serves every start."""

    head: tuple[float, ...]
    rank: int | None

    def __call__(self, parameters: Any, X: Any) -> Any:
        size = len(self.head)
        if X.shape[1] % size or X.shape[1] < 2 * size:
            raise ValueError(
                f"attention: a row must hold tokens and a query of {size} entries each, got"
                f" {X.shape[1]} numbers; take the rows of a TokenSelection with this head"
            )
        parts = X.reshape(len(X), -1, size)
        tokens, queries, v = parts[:, :-1], parts[:, -1], np.array(self.head)
        logits = jnp.einsum("ntd,nd->nt", tokens, queries @ self.matrix(parameters).T)
        rows = jnp.arange(len(X))
        leader = jax.lax.stop_gradient(logits).argmax(axis=1)
        first = tokens[rows, leader]
        behind = jnp.exp(logits - logits[rows, leader][:, None])
        scores = (tokens - first[:, None]) @ v
        return first @ v + (behind * scores).sum(axis=1) / behind.sum(axis=1)

    def matrix(self, parameters: Any) -> Any:
        """W of flat parameters."""
        size = len(self.head)
        if self.rank is None:
            return parameters.reshape(size, size)
        keys, queries = parameters.reshape(2, size, self.rank)
        return keys @ queries.T
