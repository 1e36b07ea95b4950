"""The angle between the gradients of a model at two sets of parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import positive
from penchant.door import door
from penchant.measures.kernels.blocks import Gradients, plan
from penchant.measures.kernels.tangent import MEMORY, arguments, gradients_of, samples
from penchant.models.model import Model
from penchant.records import Kind, Outcome, Unsolved


@door
def gradient_turn(
    model: Model | Callable[[Any, Any], Any],
    start: Any,
    end: Any,
    x: ArrayLike,
    *,
    outputs: str | int | None = None,
    memory: float = MEMORY,
    precision: str | None = None,
) -> float:
    """`gradient_distance` of grad f(start, x) and grad f(end, x), computed in blocks.

    The gradients of all samples and outputs in all parameters form one vector.

    Parameters
    ----------
    model
        As in `tangent_kernel`.
    start
        The parameters at the start. Of a torch module, a mapping of names to arrays, such as a
        copy of its state_dict.
    end
        The parameters at the end, in the same form.
    x
        The samples.
    outputs
        As in `tangent_kernel`.
    memory
        The bytes that the computation may use.
    precision
        As in `tangent_kernel`.

    Returns
    -------
    float
        The distance.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> def f(w, x):
    ...     return x @ w**2
    >>> start, end = np.array([1.0, 1.0]), np.array([1.0, 0.0])
    >>> round(penchant.measures.gradient_turn(f, start, end, np.eye(2)), 4)
    0.2929
    """
    memory = positive("memory", memory)
    model, start, x = arguments(precision, model, start, x)
    rows = samples("x", x, model)
    gradients = gradients_of(model, start, rows, outputs, precision, factored=False)
    spare = memory - 8 * gradients.held  # four copies of one sample in float64
    size = plan(gradients, len(rows), 1, 1, spare).size
    first, second, apart = _lengths(gradients, start, end, rows, size)
    if not np.isfinite(first + second) or first * second == 0:
        kind = "zero" if first * second == 0 else "not finite"
        text = f"the gradients are {kind}, so their direction is undefined; take other parameters"
        raise Unsolved(Outcome(Kind.DIVERGED, text))
    # 2 |a| |b| (1 - cos) = |a - b|^2 - (|a| - |b|)^2, which keeps the digits of small angles
    distance = (apart**2 - (first - second) ** 2) / (2 * first * second)
    return float(min(max(distance, 0.0), 2.0))


def _lengths(
    gradients: Gradients, start: Any, end: Any, x: Any, size: int
) -> tuple[float, float, float]:
    """(|F0|, |F1|, |F0 - F1|) of the whole gradients at `start` and at `end`, over all samples."""
    squares = np.zeros(3)
    for at in range(0, len(x), size):
        gradients.move(start)
        before = gradients.block(x[at : at + size], size)
        gradients.move(end)
        after = gradients.block(x[at : at + size], size)
        for key, olds in before.rows.items():
            for old, new in zip(olds, after.rows[key], strict=True):
                a, b = old.astype(np.float64), new.astype(np.float64)
                squares += np.sum(a**2), np.sum(b**2), np.sum((a - b) ** 2)
        del before, after, olds
    first, second, apart = np.sqrt(squares)
    return float(first), float(second), float(apart)
