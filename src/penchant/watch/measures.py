"""The numbers of one look at a model, from plain arrays: the changes since the start."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array, finite_array
from penchant.door import Invalid, door_as
from penchant.measures.distances import kernel_distance
from penchant.measures.kernels.numbers import effective_rank, kernel_alignment, without_mean
from penchant.watch.backends.backend import WHO, Backend

Guard = Callable[[str], contextlib.AbstractContextManager[Any]]
Arrays = dict[str, NDArray[np.floating[Any]]]

WIDEST = 2048  # no nuclear norm of a matrix whose smaller side exceeds this: it takes seconds
SMALL = 128
CHUNK = 2**15  # entries converted to float64 at a time, which fit into the cache
FEWEST = 3  # with fewer probe inputs the direction of a centred kernel cannot change
STILL = 1e-9  # smaller relative changes of the outputs count as none,
ROUNDED = 16  # and so do changes below this many times the precision of the parameters
RIDGE = 0.01  # of a kernel machine on the probe inputs, in units of the mean eigenvalue


@dataclasses.dataclass(frozen=True)
class Start:
    """The model at the start, with which later looks are compared."""

    arrays: Arrays
    outputs: Array
    kernels: Array  # by groups of parameters

    @functools.cached_property
    def kernel(self) -> Array:
        """The whole tangent kernel."""
        return np.asarray(self.kernels.sum(axis=0))

    @property
    def parameters(self) -> int:
        return sum(array.size for array in self.arrays.values())

    def moved(self, change: Array) -> bool:
        """True if a change of the outputs is more than rounding."""
        precision = max(float(np.finfo(array.dtype).eps) for array in self.arrays.values())
        least = max(STILL, ROUNDED * precision) * float(np.linalg.norm(self.outputs))
        return float(np.linalg.norm(change)) > least


@dataclasses.dataclass(frozen=True)
class Labels:
    """Labels of the probe inputs: a row of `values` each, and the classes or signs, if any.

    For classes the values are one-hot, with columns only for classes that occur: the others would
    be zero, and a vocabulary has 50,000.
    """

    values: Array
    classes: NDArray[np.int64] | None
    signs: Array | None


@door_as(WHO)
def read_labels(labels: Any, samples: int, outputs: int) -> Labels:
    """Labels as classes (integers below the number of outputs), signs, or numbers to fit."""
    raw = np.asarray(labels)
    values = finite_array("labels", raw, ndim=1 if raw.ndim < 2 else 2)
    if len(values) != samples:
        raise Invalid(f"{samples} probe inputs need as many labels, got {len(values)}")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 1 and outputs == 1:
        return _single(values)
    if values.ndim == 1:
        return _classes(values, outputs)
    if values.shape[1] != outputs:
        raise Invalid(f"the model has {outputs} outputs per row but the labels {values.shape[1]}")
    one_hot = bool(((values == 0) | (values == 1)).all() and (values.sum(axis=1) == 1).all())
    return Labels(values, values.argmax(axis=1) if one_hot else None, None)


def _single(values: Array) -> Labels:
    """Labels of a model with one output; 0 and 1 are taken as the signs of its logit."""
    if np.isin(values, (0.0, 1.0)).all():
        values = 2 * values - 1
    signs = values if np.isin(values, (-1.0, 1.0)).all() else None
    return Labels(values[:, None], None, signs)


def _classes(values: Array, outputs: int) -> Labels:
    if not ((values >= 0) & (values < outputs) & (values == np.floor(values))).all():
        raise ValueError(
            f"{WHO}: the model has {outputs} outputs, so labels must be classes from 0 to "
            f"{outputs - 1} or rows of {outputs} numbers, got {values.min():g} to {values.max():g}"
        )
    classes = values.astype(np.int64)
    return Labels((classes[:, None] == np.unique(classes)).astype(np.float64), classes, None)


def look_row(
    backend: Backend, start: Start, labels: Labels | None, parameters: Any, kept: Guard
) -> dict[str, Any]:
    """All numbers of a look; each part has its own guard `kept`, so that it can fail alone."""
    row: dict[str, Any] = {}
    with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverges
        with kept("parameters"):
            arrays = backend.arrays(parameters)
            row |= move_row(start, arrays)
            row |= norm_row(arrays)
        with kept("outputs"):
            outputs = backend.outputs(parameters)
            row |= output_row(start, outputs, labels) | {"output": outputs}
            with kept("linearized model"):
                linear = backend.linearized(parameters)
                row |= linearized_row(start, outputs, linear) | {"linearized_output": linear}
        with kept("tangent kernel"):
            kernels = backend.kernels(parameters)
            kernel = kernels.sum(axis=0)
            row |= kernel_row(start, kernel, labels)
            row |= layer_row(start, kernels, backend.groups)
            if "output" in row:
                row |= gain_row(start, row["output"], kernel)
    return row


def kernel_row(start: Start, kernel: Array, labels: Labels | None) -> dict[str, float]:
    """Distance of the tangent kernel from the start, its effective rank and its alignment."""
    row = {
        "kernel_distance": centred_distance(start.kernel, kernel),
        "effective_rank": effective_rank(kernel),
    }
    if labels is not None and len(labels.values) > 1 and np.ptp(labels.values, axis=0).any():
        row["kernel_alignment"] = kernel_alignment(kernel, labels.values, centred=True)
    return row


def layer_row(start: Start, kernels: Array, groups: tuple[int, ...]) -> dict[str, Any]:
    """For every parameter array, the distance of the kernel of its group from the start."""
    pairs = zip(start.kernels, kernels, strict=True)
    distances = np.array([centred_distance(before, now) for before, now in pairs])
    return {"layer_distance": distances[list(groups)]}


@door_as(WHO)
def centred_distance(first: Array, second: Array) -> float:
    """1 - cosine of two kernels without the mean of their features; NaN if little remains.

    For positive inputs the mean is most of the kernel, and its direction hardly changes: without
    centring, the distance was 0.006 for nets whose centred kernels were 0.1 apart.
    """
    if len(first) < FEWEST:
        return math.nan
    try:
        pair = [without_mean(kernel) for kernel in (first, second)]
    except ValueError:  # the probe inputs are equal
        return math.nan
    return kernel_distance(*pair)


def output_row(start: Start, outputs: Array, labels: Labels | None) -> dict[str, float]:
    """The root mean square change of the outputs; with labels the smallest margin and two losses.

    The losses are the mean cross-entropy, and the sum of squares by which the outputs of a sample
    differ from its label (one-hot, or a sign).
    """
    change = outputs - start.outputs
    row = {"output_change": float(np.sqrt(np.mean(change**2)))}
    if labels is not None:
        row["margin"] = _margin(outputs, labels)
        row["probe_cross_entropy"], row["probe_squares"] = _losses(outputs, labels)
    return row


def linearized_row(start: Start, outputs: Array, linearized: Array) -> dict[str, float]:
    """The share of the change that the model linearized at the start misses, up to a factor.

    The part along the outputs of the start is removed from both changes, and the linearized change
    may be multiplied by a number. So weight decay, which shrinks the outputs and the tangent
    features of the start, does not count as missed. `learned_share` is the share of the change that
    remains without that part, and `output_share` the same part as a share of the outputs.
    """
    row = dict.fromkeys(("linearized_error", "learned_share", "output_share"), math.nan)
    change = outputs - start.outputs
    if not start.moved(change):
        return row
    learned = _rejected(change, start.outputs)
    row["learned_share"] = float(np.linalg.norm(learned) / np.linalg.norm(change))
    if outputs.any():
        row["output_share"] = float(np.linalg.norm(learned) / np.linalg.norm(outputs))
    if row["learned_share"] > STILL and change.size >= FEWEST:  # two directions are removed
        missed = _rejected(learned, _rejected(linearized - start.outputs, start.outputs))
        row["linearized_error"] = float(np.linalg.norm(missed) / np.linalg.norm(learned))
    return row


def _rejected(vector: Array, direction: Array) -> Array:
    """The vector without its part along a direction."""
    size = float(np.abs(direction).max())
    if not size > 0:
        return vector
    unit = direction / size
    return vector - (float(np.sum(vector * unit)) / float(np.sum(unit * unit))) * unit


def gain_row(start: Start, outputs: Array, kernel: Array) -> dict[str, float]:
    """1 - e / e0 for the errors of two kernel machines, of the kernel now and that of the start.

    Each predicts the change of the outputs at every probe input from that at all others.
    """
    change = outputs - start.outputs
    if not start.moved(change):
        return {"kernel_gain": math.nan}
    before, now = (left_out_error(matrix, change) for matrix in (start.kernel, kernel))
    return {"kernel_gain": 1 - now / before if before > 0 else math.nan}


@door_as(WHO)
def left_out_error(kernel: Array, values: Array) -> float:
    """The leave-one-out error of ridge regression with a constant, relative to the values.

    The means over all samples are removed from the kernel and the values first. The error is NaN if
    nothing is left of either.
    """
    try:
        centred = without_mean(kernel)
    except ValueError:
        return math.nan
    target = values - values.mean(axis=0)
    size = float(np.linalg.norm(target))
    if not size > 0:
        return math.nan
    count = len(centred)
    ridge = RIDGE * float(np.trace(centred)) / count
    inverse = np.linalg.inv(centred + ridge * np.eye(count))
    errors = (inverse @ target) / np.diag(inverse)[:, None]
    return float(np.linalg.norm(errors)) / size


def move_row(start: Start, arrays: Arrays) -> dict[str, Any]:
    """Norm of all parameters, the angle to the start in degrees, and the relative move.

    The move is also given for every array. The move of one that began at zero (a bias, the B of
    LoRA) is over the norm that an array of its size has on average at the start.
    """
    squares = _squares(arrays, start.arrays)
    size, origin, apart = (float(value) for value in np.sqrt(squares.sum(axis=0)))
    if not math.isfinite(size):
        raise ValueError(f"{WHO}: the parameters are not finite any more; training has diverged")
    both = size > 0 and origin > 0
    return {
        "norm_l2": size,
        "direction_change": math.degrees(_angle(size, origin, apart)) if both else math.nan,
        "relative_move": apart / origin if origin > 0 else math.nan,
        "layer_moved": np.sqrt(squares[:, 2] / _units(start.arrays, squares[:, 1])),
    }


def _units(arrays: Arrays, squares: Array) -> Array:
    """The squared norms at the start; the average of their size for arrays that began at zero."""
    sizes = np.array([array.size for array in arrays.values()], dtype=np.float64)
    began = squares > 0
    usual = squares.sum() / sizes[began].sum() if began.any() else np.nan
    return np.where(began, squares, usual * np.maximum(sizes, 1))


def _squares(arrays: Arrays, others: Arrays) -> Array:
    """|a|^2, |b|^2 and |a - b|^2 of every array, summed in float64 without copying it."""
    squares = np.zeros((len(arrays), 3))
    for place, (name, array) in enumerate(arrays.items()):
        first, second = array.reshape(-1), others[name].reshape(-1)
        for at in range(0, first.size, CHUNK):
            a, b = (v[at : at + CHUNK].astype(np.float64) for v in (first, second))
            squares[place] += a @ a, b @ b, (a - b) @ (a - b)
    return squares


def _angle(size: float, origin: float, apart: float) -> float:
    """The angle between vectors, from their lengths and distance; exact for small angles too."""
    turned = (apart - (size - origin)) * (apart + (size - origin))  # 2 |a| |b| (1 - cos)
    return 2 * math.asin(min(math.sqrt(max(turned, 0.0) / (size * origin)) / 2, 1.0))


def norm_row(arrays: Arrays) -> dict[str, Any]:
    """l1 and l2 norm of every parameter array, and l1 norm of all."""
    values = [array.reshape(-1) for array in arrays.values()]
    l1 = np.array([np.abs(array).sum(dtype=np.float64) for array in values])
    l2 = np.array([np.sqrt(np.einsum("i,i", v, v, dtype=np.float64)) for v in values])
    return {"layer_l1": l1, "layer_l2": l2, "norm_l1": float(l1.sum())}


def nuclear_row(arrays: Arrays, out_axis: int) -> dict[str, Any]:
    """The nuclear norm of every matrix, and their sum; NaN for vectors and large matrices."""
    norms = np.array([nuclear(array, out_axis) for array in arrays.values()])
    matrices = [array.ndim >= 2 for array in arrays.values()]
    total = float(norms[matrices].sum()) if any(matrices) else math.nan
    return {"layer_nuclear": norms, "norm_nuclear": total}


def nuclear(array: NDArray[np.floating[Any]], out_axis: int) -> float:
    """Sum of singular values of an array as a matrix, `out_axis` against all others.

    NaN for vectors and for matrices above WIDEST. Those above SMALL go through the eigenvalues of
    the smaller Gram matrix, which is ten times faster and exact to about 1e-7 of the result.
    """
    if array.ndim < 2:
        return math.nan
    matrix = np.moveaxis(array, out_axis, 0).reshape(array.shape[out_axis], -1)
    matrix = matrix.astype(np.float64, copy=False)
    side = min(matrix.shape)
    if side > WIDEST or not np.isfinite(matrix).all():
        return math.nan
    if side <= SMALL:
        return float(np.linalg.svd(matrix, compute_uv=False).sum())
    gram = matrix @ matrix.T if len(matrix) == side else matrix.T @ matrix
    return float(np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0)).sum())


def _losses(outputs: Array, labels: Labels) -> tuple[float, float]:
    """Cross-entropy and squares; NaN without classes or signs."""
    if labels.signs is not None:
        margins = labels.signs * outputs[:, 0]
        return float(np.logaddexp(0, -margins).mean()), float(((margins - 1) ** 2).mean())
    if labels.classes is None:
        return math.nan, math.nan
    own = outputs[np.arange(len(outputs)), labels.classes]
    entropies = np.logaddexp.reduce(outputs, axis=1) - own
    squares = (outputs**2).sum(axis=1) - 2 * own + 1
    return float(entropies.mean()), float(squares.mean())


def _margin(outputs: Array, labels: Labels) -> float:
    if labels.signs is not None:
        return float((labels.signs * outputs[:, 0]).min())
    if labels.classes is None:
        return math.nan
    rows = np.arange(len(outputs))
    others = outputs.copy()
    others[rows, labels.classes] = -np.inf
    return float((outputs[rows, labels.classes] - others.max(axis=1)).min())
