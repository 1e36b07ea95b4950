"""Penalties h on the tensors of a token net, with the subgradients that Adam adds to its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tacit.flows.penalties import AbsoluteSum, EuclideanNorm, Penalty, SquaredSum

FAINT = 1e-6  # singular values below this share of the largest count as zero in float32


class TensorPenalty(NamedTuple):
    """h as `value(tensors)` and `subgradient(tensors)`, on a dict of JAX arrays by name."""

    value: Callable[[dict[str, Any]], Any]
    subgradient: Callable[[dict[str, Any]], dict[str, Any]]


def tensor_penalty(name: str) -> TensorPenalty:
    """The penalty of this name; subgradients are 0 where a norm has a corner."""
    return PENALTIES[name]


def norms(tensors: dict[str, Any]) -> dict[str, float]:
    """The l1, l2 and nuclear norms of NumPy tensors: l1 and l2 over all, nuclear as a sum."""
    flat = np.concatenate([np.ravel(part) for part in tensors.values()])
    singular = [_singular_values(part).sum() for part in tensors.values()]
    return {"l1": float(np.abs(flat).sum()), "l2": float(np.linalg.norm(flat)),
            "nuclear": float(sum(singular))}  # fmt: skip


def _singular_values(part: Any) -> Any:
    matrix = part if part.ndim == 2 else part[:, None]
    return np.linalg.svd(matrix, compute_uv=False)


def _per_tensor(value: Callable[[Any], Any], subgradient: Callable[[Any], Any]) -> TensorPenalty:
    """A penalty that is a sum over the tensors."""
    return TensorPenalty(
        lambda tensors: sum(value(part) for part in tensors.values()),
        lambda tensors: {name: subgradient(part) for name, part in tensors.items()},
    )


def _each(penalty: Penalty) -> TensorPenalty:
    return _per_tensor(penalty.value, penalty.subgradient)


def _over_all(penalty: Penalty) -> TensorPenalty:
    """A penalty of all entries together."""

    def flat(tensors: dict[str, Any]) -> Any:
        import jax.numpy as jnp

        return jnp.concatenate([part.reshape(-1) for part in tensors.values()])

    def subgradient(tensors: dict[str, Any]) -> dict[str, Any]:
        import jax.numpy as jnp

        ends = np.cumsum([part.size for part in tensors.values()])[:-1].tolist()
        parts = jnp.split(penalty.subgradient(flat(tensors)), ends)
        shapes = zip(tensors.items(), parts, strict=True)
        return {name: part.reshape(old.shape) for (name, old), part in shapes}

    return TensorPenalty(lambda tensors: penalty.value(flat(tensors)), subgradient)


def _nuclear_norm(part: Any) -> Any:
    import jax.numpy as jnp

    if part.ndim == 1:  # a vector is a matrix with one column
        return EuclideanNorm().value(part)
    return jnp.sum(jnp.linalg.svd(part, compute_uv=False))


def _nuclear_slope(part: Any) -> Any:
    import jax.numpy as jnp

    if part.ndim == 1:
        return EuclideanNorm().subgradient(part)
    left, singular, right = jnp.linalg.svd(part, full_matrices=False)
    there = (singular > FAINT * singular[0]).astype(part.dtype)
    return (left * there) @ right  # U V^T


PENALTIES: dict[str, TensorPenalty] = {
    "l1": _each(AbsoluteSum()),
    "l2^2": _each(SquaredSum()),  # N writes beta |theta|_2^2 without a half
    "l2": _each(EuclideanNorm()),
    "l2 over all": _over_all(EuclideanNorm()),
    "nuclear": _per_tensor(_nuclear_norm, _nuclear_slope),
}
