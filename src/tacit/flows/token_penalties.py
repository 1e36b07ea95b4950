"""Penalties h on the tensors of a token net, with the subgradients that Adam adds to its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

FAINT = 1e-6  # singular values below this share of the largest count as zero in float32


class TensorPenalty(NamedTuple):
    """h as `value(tensors)` and `subgradient(tensors)`, on a dict of JAX arrays by name."""

    value: Callable[[dict[str, Any]], Any]
    subgradient: Callable[[dict[str, Any]], dict[str, Any]]


def tensor_penalty(name: str) -> TensorPenalty:
    """The penalty of this name; subgradients are 0 where a norm has a corner."""
    return PENALTIES[name]()


def norms(tensors: dict[str, Any]) -> dict[str, float]:
    """The l1, l2 and nuclear norms of NumPy tensors: l1 and l2 over all, nuclear as a sum."""
    flat = np.concatenate([np.ravel(part) for part in tensors.values()])
    singular = [_singular_values(part).sum() for part in tensors.values()]
    return {"l1": float(np.abs(flat).sum()), "l2": float(np.linalg.norm(flat)),
            "nuclear": float(sum(singular))}  # fmt: skip


def _singular_values(part: Any) -> Any:
    matrix = part if part.ndim == 2 else part[:, None]
    return np.linalg.svd(matrix, compute_uv=False)


def _per_tensor(
    value: Callable[[Any], Any], subgradient: Callable[[Any], Any]
) -> Callable[[], TensorPenalty]:
    """A penalty that is a sum over the tensors."""
    return lambda: TensorPenalty(
        lambda tensors: sum(value(part) for part in tensors.values()),
        lambda tensors: {name: subgradient(part) for name, part in tensors.items()},
    )


def _absolute() -> TensorPenalty:
    import jax.numpy as jnp

    return _per_tensor(lambda part: jnp.sum(jnp.abs(part)), jnp.sign)()


def _squared() -> TensorPenalty:
    import jax.numpy as jnp

    # N writes beta |theta|_2^2 without a half: its gradient is 2 beta theta
    return _per_tensor(lambda part: jnp.sum(part**2), lambda part: 2 * part)()


def _length(part: Any) -> Any:
    import jax.numpy as jnp

    return jnp.sqrt(jnp.sum(part**2))


def _unit(part: Any, length: Any) -> Any:
    import jax.numpy as jnp

    return jnp.where(length > 0, part / jnp.where(length > 0, length, 1), 0)


def _euclidean() -> TensorPenalty:
    return _per_tensor(_length, lambda part: _unit(part, _length(part)))()


def _euclidean_over_all() -> TensorPenalty:
    import jax.numpy as jnp

    def value(tensors: dict[str, Any]) -> Any:
        return jnp.sqrt(sum(jnp.sum(part**2) for part in tensors.values()))

    def subgradient(tensors: dict[str, Any]) -> dict[str, Any]:
        length = value(tensors)
        return {name: _unit(part, length) for name, part in tensors.items()}

    return TensorPenalty(value, subgradient)


def _nuclear() -> TensorPenalty:
    import jax.numpy as jnp

    def value(part: Any) -> Any:
        if part.ndim == 1:  # a vector is a matrix with one column
            return _length(part)
        return jnp.sum(jnp.linalg.svd(part, compute_uv=False))

    def subgradient(part: Any) -> Any:
        if part.ndim == 1:
            return _unit(part, _length(part))
        left, singular, right = jnp.linalg.svd(part, full_matrices=False)
        there = (singular > FAINT * singular[0]).astype(part.dtype)
        return (left * there) @ right  # U V^T

    return _per_tensor(value, subgradient)()


PENALTIES: dict[str, Callable[[], TensorPenalty]] = {
    "l1": _absolute,
    "l2^2": _squared,
    "l2": _euclidean,
    "l2 over all": _euclidean_over_all,
    "nuclear": _nuclear,
}
