"""Fourier progress measures of nets on modular addition: pure functions of their logits.

How it works. A net that adds modulo p by Fourier features has logits that depend on its tokens a
and b through cos(2 pi k (a + b) / p) and sin(2 pi k (a + b) / p) of few frequencies k. Over all
pairs these functions are orthogonal, so that the part of the logits in them is a projection: the
mean over all pairs of one sum, filtered by the discrete Fourier transform. The loss of this part
alone is low as soon as the circuit generalizes (restricted); the loss of what is left without it is
high as soon as the net relies on it, and low while it memorizes (excluded).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer
from penchant.door import Invalid, door
from penchant.records import Record

MOST = 0.9  # of the energy of all frequencies, which the key ones hold


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class FourierLosses(Record):
    """The loss on modular addition, whole, in the key frequencies alone, and without them.

    `fourier_losses` makes it.

    Attributes
    ----------
    loss
        The mean cross-entropy of the logits.
    restricted
        That of their mean over all pairs and their part in the key frequencies of a + b.
    excluded
        That of the logits without this part.
    frequencies
        The key frequencies.
    shares
        The share of the logits' variance over pairs in every frequency of a + b, from 1 on.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> losses = penchant.measures.fourier_losses(np.zeros((5, 5, 5)), [1])
    >>> isinstance(losses, penchant.measures.FourierLosses), losses.frequencies
    (True, (1,))
    """

    loss: float
    restricted: float
    excluded: float
    frequencies: tuple[int, ...]
    shares: Array


@door
def fourier_losses(
    logits: ArrayLike, frequencies: Sequence[int] | None = None, mask: Any = None
) -> FourierLosses:
    """Restricted and excluded loss of the logits of a net on addition modulo an odd p.

    Parameters
    ----------
    logits
        An array (p, p, p): the logits of all answers for every pair (a, b).
    frequencies
        The key frequencies, from 1 to (p - 1)/2; by default the fewest that hold nine tenths of the
        variance in all of them.
    mask
        True where a pair counts in the losses, such as the training pairs; by default all do.

    Returns
    -------
    FourierLosses
        The losses.

    References
    ----------
    .. [1] Nanda et al. (2023), Progress measures for grokking via mechanistic interpretability.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> a, b, c = np.meshgrid(*[np.arange(7)] * 3, indexing="ij")
    >>> losses = penchant.measures.fourier_losses(20 * np.cos(2 * np.pi * 2 * (a + b - c) / 7))
    >>> losses.frequencies, bool(abs(losses.excluded - np.log(7)) < 1e-9)
    ((2,), True)
    >>> bool(abs(losses.restricted - losses.loss) < 1e-9)
    True
    """
    table = finite_array("logits", logits, ndim=3)
    p = len(table)
    if table.shape != (p, p, p) or p < 3 or p % 2 == 0:
        raise Invalid(f"logits must have the shape (p, p, p) with an odd p >= 3, got {table.shape}")
    counted = np.ones((p, p), dtype=bool) if mask is None else _mask(mask, p)
    waves = _waves(table)
    energy = 2 * p * (np.abs(waves[1:]) ** 2).sum(axis=1)  # k and -k have the same
    whole = float(((table - table.mean(axis=(0, 1))) ** 2).sum())
    shares = energy / whole if whole > 0 else np.zeros_like(energy)
    keys = _fewest(energy) if frequencies is None else _checked(frequencies, p)
    part = _part(waves, keys, p)
    mean = table.mean(axis=(0, 1))
    whole_loss = _loss(table, counted)
    restricted, excluded = (_loss(kind, counted) for kind in (mean + part, table - part))
    return FourierLosses(whole_loss, restricted, excluded, keys, shares)


def _waves(table: Array) -> Array:
    """The coefficients of every frequency k >= 0 of a + b, divided so that energies add up."""
    p = len(table)
    sums = np.add.outer(np.arange(p), np.arange(p)) % p
    means = np.array([table[sums == s].mean(axis=0) for s in range(p)])
    return np.asarray(np.fft.rfft(means, axis=0) / np.sqrt(p))


def _part(waves: Array, keys: tuple[int, ...], p: int) -> Array:
    """The part of the logits in the key frequencies of a + b."""
    kept = np.zeros_like(waves)
    kept[list(keys)] = waves[list(keys)]
    of_sums = np.fft.irfft(kept * np.sqrt(p), n=p, axis=0)
    return np.asarray(of_sums[np.add.outer(np.arange(p), np.arange(p)) % p])


def _fewest(energy: Array) -> tuple[int, ...]:
    """The fewest frequencies that hold most of the energy, the largest first."""
    order = np.argsort(-energy, kind="stable")
    held = np.cumsum(energy[order])
    count = int(np.searchsorted(held, MOST * held[-1])) + 1
    return tuple(int(k) + 1 for k in order[:count])


def _checked(frequencies: Sequence[int], p: int) -> tuple[int, ...]:
    keys = tuple(integer("frequencies", k, least=1) for k in frequencies)
    if not keys or max(keys) > p // 2 or len(set(keys)) < len(keys):
        raise Invalid(f"frequencies must be different numbers from 1 to {p // 2}, got {keys}")
    return keys


def _mask(mask: Any, p: int) -> Array:
    array = np.asarray(mask)
    if array.shape != (p, p) or array.dtype != bool or not array.any():
        raise Invalid(
            f"mask must be an array ({p}, {p}) of True and False, True somewhere, got shape"
            f" {array.shape} of {array.dtype}"
        )
    return array


def _loss(logits: Array, counted: Array) -> float:
    """The mean cross-entropy of the answer a + b over the pairs that count."""
    p = len(logits)
    right = np.add.outer(np.arange(p), np.arange(p)) % p
    top = logits.max(axis=2, keepdims=True)
    log_sum = np.log(np.exp(logits - top).sum(axis=2)) + top[..., 0]
    own = np.take_along_axis(logits, right[..., None], axis=2)[..., 0]
    return float((log_sum - own)[counted].mean())
