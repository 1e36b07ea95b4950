"""Runs with settings drawn at random, and what measures of richness say at their end."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from penchant.lab import Array
from penchant.measures import kernel_distance
from penchant_papers.probe.nets import NETS, Net, Parameters
from penchant_papers.probe.optimizers import OPTIMIZERS
from penchant_papers.probe.runs import INPUTS, Ended, ProbeSetting, ended

SCALES = (0.2, 8.0)
ATTEMPTS = 20  # settings that are drawn until one trains


def drawn_setting(net: str, seed: int, attempt: int = 0) -> ProbeSetting:
    """Scale of the start, optimizer, inputs, and decay or not."""
    rng = np.random.default_rng([seed, 41, attempt, list(NETS).index(net)])
    low, high = SCALES
    return ProbeSetting(
        net,
        float(f"{low * (high / low) ** rng.random():.2g}"),
        str(rng.choice(list(OPTIMIZERS))),
        str(rng.choice(INPUTS)),
        bool(rng.random() < 0.5),
    )


def metric_cell(net: str, seed: int, *, samples: int, probes: int, steps: int) -> dict[str, Any]:
    """The numbers of the watch, the distance of the twin, and the other measures.

    A setting whose training diverges is drawn again.
    """
    for attempt in range(ATTEMPTS):
        try:
            end = ended(drawn_setting(net, seed, attempt), seed, samples, probes, steps)
        except ValueError:  # a kernel that is not finite
            continue
        return end.row | measured(NETS[net], end)
    raise ValueError(f"metric_cell: {ATTEMPTS} settings of {net} with seed {seed} do not train")


def measured(net: Net, end: Ended) -> dict[str, float]:
    """The measures that the watch does not use."""
    data = end.data
    before, after = (features(net, p, data.probe, data.x) for p in (end.first, end.last))
    outputs = np.asarray(net(end.last, data.probe, data.x), dtype=np.float64)
    return {
        "move": moved(end.first, end.last),
        "features_distance": 1 - cka(before @ before.T, after @ after.T),
        "collapse": collapse(features(net, end.last, data.x, data.x), data.y.argmax(1)),
        "low_rank": low_rank(after, outputs),
    }


def features(net: Net, p: Parameters, x: Any, base: Any) -> Array:
    """What the last layer of a net reads: the derivative of an output by its weights."""
    return np.asarray(_features(net)(p, x, base), dtype=np.float64)


@functools.cache
def _features(net: Net) -> Any:
    import jax

    def rows(p: Any, x: Any, base: Any) -> Any:
        last = "u" if "u" in p else "w2"

        def first(weights: Any, sample: Any) -> Any:
            return net(p | {last: weights}, sample[None], base)[0, 0]

        return jax.vmap(jax.grad(first), (None, 0))(p[last], x)[:, :, 0]

    return jax.jit(rows)


def moved(first: Parameters, last: Parameters) -> float:
    """The distance of the parameters from the start over the norm of the start."""
    apart, origin = (
        math.sqrt(sum(float(np.sum(np.square(np.asarray(part, np.float64)))) for part in parts))
        for parts in ([last[k] - first[k] for k in first], first.values())
    )
    return apart / origin


def cka(first: Array, second: Array) -> float:
    """The cosine of two kernels without their means (Kornblith et al., arXiv 1905.00414)."""
    pair = [kernel - kernel.mean(0) for kernel in (first, second)]
    pair = [kernel - kernel.mean(1, keepdims=True) for kernel in pair]
    return 1 - kernel_distance(*pair)


def collapse(features: Array, classes: Array) -> float:
    """NC1 of Papyan et al. (arXiv 2008.08186): the trace of within @ pinv(between) over classes."""
    kinds, places = np.unique(classes, return_inverse=True)
    means = np.stack([features[places == k].mean(0) for k in range(len(kinds))])
    apart, spread = means - means.mean(0), features - means[places]
    between = apart.T @ apart / len(kinds)
    within = spread.T @ spread / len(features)
    return float(
        np.trace(within @ np.linalg.pinv(between, rcond=1e-8, hermitian=True)) / len(kinds)
    )


def low_rank(features: Array, outputs: Array) -> float:
    """D_LR of Nam et al. (arXiv 2410.04264): one minus the CKA with what the net has learned.

    The second kernel is the projection onto the span of the outputs and constants.
    """
    left, sizes, _ = np.linalg.svd(outputs - outputs.mean(0), full_matrices=False)
    learned = left[:, sizes > 1e-6 * sizes[0]]
    return 1 - cka(features @ features.T, learned @ learned.T)
