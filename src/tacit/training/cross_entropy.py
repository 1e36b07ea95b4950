"""The cross-entropy of classes, in forms that keep the digits of tiny losses; JAX functions."""

from __future__ import annotations

from typing import Any

from tacit.lazy import jax, jnp

TAIL = 30.0  # below -TAIL log(log(1 + e^z)) is z to the last digits


def cross_entropy(outputs: Any, labels: Any) -> Any:
    """-log of the probability of its label for every row, as log(1 + sum_j exp(f_j - f_label)).

    Written so, neither a tiny loss nor its gradient is lost in the rounding of 1.
    """
    return jax.nn.softplus(_excess(outputs, labels))


def log_cross_entropy(outputs: Any, labels: Any) -> Any:
    """The logarithm of the same, also where the loss itself is too small for a number."""
    z = _excess(outputs, labels)
    near = jnp.log(jax.nn.softplus(jnp.maximum(z, -TAIL)))
    return jnp.where(z > -TAIL, near, z)


def _excess(outputs: Any, labels: Any) -> Any:
    """log of the sum of exp(f_j - f_label) over the other classes j, for every row."""
    own = jnp.take_along_axis(outputs, labels[:, None], axis=1)
    others = jnp.arange(outputs.shape[1]) != labels[:, None]
    return jax.nn.logsumexp(outputs - own, axis=1, where=others)
