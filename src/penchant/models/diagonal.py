"""Diagonal linear networks: beta = w+^D - w-^D, beta = u v, and products of D separate layers.

Woodworth et al. 2020, eq. 3 and 10, and appendix C.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, flag, integer, log_scale, start_shape
from penchant.door import Invalid, door
from penchant.models.model import Separable
from penchant.records import Record, assign

WHO = "DiagonalNet"


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class DiagonalNet(Record, Separable):
    """beta = w+^depth - w-^depth from w+ = w- = alpha * shape.

    The scale is exactly one of `alpha`, `log_alpha` and `mu`.

    Parameters
    ----------
    depth
        The power, at least 2.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha, as far from 0 as you like.
    mu
        alpha**depth.
    shape
        The vector w0, all ones by default.
    signed
        False is w^depth alone.
    start
        (w_plus, w_minus) sets a biased start instead, w+ != w- (footnote 2 of Woodworth et al.
        2020); then give no scale.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> net = penchant.DiagonalNet(depth=2, alpha=0.1)
    >>> net.start(dimension=2), net.predictor(np.array([2.0, 1.0, 1.0, 3.0]))
    (array([0.1, 0.1, 0.1, 0.1]), array([ 3., -8.]))
    """

    stored_as: ClassVar = {"start": "biased"}

    depth: int
    alpha: float | None
    log_alpha: float | None
    shape: Array | None
    signed: bool
    biased: Array | None

    @door
    def __init__(
        self,
        depth: int = 2,
        *,
        alpha: float | None = None,
        log_alpha: float | None = None,
        mu: float | None = None,
        shape: ArrayLike | None = None,
        signed: bool = True,
        start: ArrayLike | None = None,
    ) -> None:
        depth = integer("depth", depth, least=2)
        signed = flag("signed", signed)
        if start is None:
            log_alpha = log_scale(depth, alpha, log_alpha, mu)
            with np.errstate(over="ignore", under="ignore"):
                alpha = float(np.exp(log_alpha)) if alpha is None else float(alpha)
            assign(self, shape=_shape(shape), biased=None)
        else:
            scales = {"alpha": alpha, "log_alpha": log_alpha, "mu": mu, "shape": shape}
            surplus = [name for name, value in scales.items() if value is not None]
            if surplus:
                raise Invalid(
                    f"start= already sets the scale, got {' and '.join(surplus)} too; "
                    "give one or the other"
                )
            assign(self, shape=None, biased=_biased(start, copies=2 if signed else 1))
        assign(self, depth=depth, alpha=alpha, log_alpha=log_alpha, signed=signed)

    @property
    def code(self) -> Any:
        return (type(self), self.depth, self.signed) if type(self) is DiagonalNet else self

    @property
    def homogeneity(self) -> int:
        return self.depth

    @property
    def copies(self) -> int:
        return 2 if self.signed else 1

    def shape_for(self, dimension: int) -> Array:
        """w0 with `dimension` entries."""
        if self.shape is None:
            return np.ones(dimension)
        if len(self.shape) != dimension:
            raise ValueError(
                f"{WHO}: shape has {len(self.shape)} entries but the data have {dimension} features"
            )
        return self.shape

    def start(self, dimension: int) -> Array:
        if self.biased is not None:
            if self.biased.shape[1] != dimension:
                raise ValueError(
                    f"{WHO}: start has {self.biased.shape[1]} entries per copy but the data have "
                    f"{dimension} features"
                )
            return self.biased.ravel().copy()
        shape = self.shape_for(dimension)
        assert self.alpha is not None
        with np.errstate(over="ignore", under="ignore"):
            weights = self.alpha * shape
            smallest, largest = np.abs(weights**self.depth).min(), np.abs(weights**self.depth).max()
        if smallest < np.finfo(float).tiny or not np.isfinite(largest):
            raise ValueError(
                f"{WHO}: parameters at log_alpha={self.log_alpha:g} and depth {self.depth} are "
                "beyond float64; use DualFlow, which works with logarithms"
            )
        return np.tile(weights, self.copies)

    def predictor(self, parameters: Array) -> Array:
        powers = self.table(parameters) ** self.depth
        return powers[0] - powers[1] if self.signed else powers[0]

    def change(self, start: Array, displacement: Array) -> Array:
        # a^D - b^D = (a - b) sum_k a^k b^(D-1-k), with a - b known exactly
        before, step = self.table(start), self.table(displacement)
        after, power, total = before + step, before, np.ones_like(before)
        for _ in range(self.depth - 1):  # total = sum_k after^k before^(m-k) for m = 0, 1, ...
            total, power = total * after + power, power * before
        moved = step * total
        return moved[0] - moved[1] if self.signed else moved[0]

    def slopes(self, parameters: Array) -> Array:
        slopes = self.depth * self.table(parameters) ** (self.depth - 1)
        slopes[1:] *= -1
        return slopes

    def bends(self, parameters: Array) -> Array:
        second = self.depth * (self.depth - 1) * self.table(parameters) ** (self.depth - 2)
        second[1:] *= -1
        bends = np.zeros((self.copies, *second.shape))
        for k, row in enumerate(second):
            bends[k, k] = row
        return bends


def _shape(shape: ArrayLike | None) -> Array | None:
    """w0 with its signs, as a vector without zeros: a weight that starts at zero never moves."""
    if start_shape(shape) is None:
        return None
    return finite_array("shape", shape, ndim=1)  # type: ignore[arg-type]


def _biased(start: ArrayLike, copies: int) -> Array:
    """The given start as a (copies x features) table in which every coordinate can move."""
    rule = "(w_plus, w_minus)" if copies == 2 else "one vector w"
    single = copies == 1 and np.ndim(start) == 1
    table = np.atleast_2d(finite_array("start", start, ndim=1 if single else 2))
    if len(table) != copies:
        raise Invalid(f"start must be {rule}, got {len(table)} vectors")
    stuck = np.flatnonzero(~table.any(axis=0))
    if len(stuck):
        raise Invalid(
            f"start must not be zero in every copy of a coordinate, got zeros at "
            f"index {stuck[0]}; such a coordinate never moves"
        )
    return table


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class ProductNet(Record, Separable):
    """beta = u * v with separate input and output weights.

    Parameters
    ----------
    u
        The input weights at the start.
    v
        The output weights at the start.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import penchant
    >>> net = penchant.models.ProductNet([1.0, 2.0], [0.5, 0.25])
    >>> net.predictor(net.start(dimension=2))
    array([0.5, 0.5])
    """

    u: ArrayLike
    v: ArrayLike

    @door
    def __post_init__(self) -> None:
        u = finite_array("u", self.u, ndim=1)
        v = finite_array("v", self.v, ndim=1)
        if len(u) != len(v):
            raise Invalid(f"u has {len(u)} entries but v has {len(v)}; they must match")
        stuck = np.flatnonzero((u == 0) & (v == 0))
        if len(stuck):
            raise Invalid(
                f"u and v must not both be zero, got zeros at index {stuck[0]}; "
                "such a coordinate never moves"
            )
        assign(self, u=u, v=v)

    homogeneity = 2
    copies = 2

    @property
    def code(self) -> Any:
        return type(self) if type(self) is ProductNet else self

    def start(self, dimension: int) -> Array:
        start = np.concatenate([np.asarray(self.u), np.asarray(self.v)])
        if len(start) != 2 * dimension:
            raise ValueError(
                f"ProductNet: u and v have {len(start) // 2} entries but the data have "
                f"{dimension} features"
            )
        return start

    def predictor(self, parameters: Array) -> Array:
        u, v = self.table(parameters)
        return u * v

    def change(self, start: Array, displacement: Array) -> Array:
        u, v = self.table(start)
        du, dv = self.table(displacement)
        return u * dv + v * du + du * dv

    def slopes(self, parameters: Array) -> Array:
        return self.table(parameters)[::-1]

    def bends(self, parameters: Array) -> Array:
        bends = np.zeros((2, *self.table(parameters).shape))
        bends[0, 1] = bends[1, 0] = 1.0
        return bends


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class DiagonalLayers(Record, Separable):
    """beta = u1+ ... uD+ - u1- ... uD- with separate weights in every layer.

    Layers that start equal stay equal, and train like one shared vector of weights, `DiagonalNet`,
    that moves D times as fast. The parameters are the positive layers, then the negative ones.

    Parameters
    ----------
    positive
        The layers u1+, ..., uD+ at the start, one row each.
    negative
        The layers u1-, ..., uD-; those of `positive` by default, for a predictor of zero.

    References
    ----------
    .. [1] Moroshko et al. (2020), Implicit Bias in Deep Linear Classification, section 3.

    Examples
    --------
    >>> import penchant
    >>> net = penchant.models.DiagonalLayers([[1.0, 2.0], [0.5, 0.5]])
    >>> net.predictor(2 * net.start(dimension=2)), net.homogeneity
    (array([0., 0.]), 2)
    """

    positive: ArrayLike
    negative: ArrayLike | None = None

    @door
    def __post_init__(self) -> None:
        layers = finite_array("positive", self.positive, ndim=2)
        if len(layers) < 2:
            raise Invalid(
                f"positive must have a row for each of two layers or more, got {len(layers)}"
            )
        other = layers if self.negative is None else finite_array("negative", self.negative, ndim=2)
        if other.shape != layers.shape:
            raise Invalid(
                f"negative must have the shape of positive, {layers.shape}, got {other.shape}"
            )
        stuck = np.flatnonzero(((layers == 0).sum(axis=0) > 1) & ((other == 0).sum(axis=0) > 1))
        if len(stuck):
            raise Invalid(
                f"two layers must not both be zero, got that at index {stuck[0]}; such a "
                "coordinate never moves"
            )
        assign(self, positive=layers, negative=other)

    @property
    def code(self) -> Any:
        return (type(self), self.depth) if type(self) is DiagonalLayers else self

    @property
    def depth(self) -> int:
        """The number of layers."""
        return len(np.asarray(self.positive))

    @property
    def homogeneity(self) -> int:
        return self.depth

    @property
    def copies(self) -> int:
        return 2 * self.depth

    def start(self, dimension: int) -> Array:
        start = np.concatenate([np.asarray(self.positive), np.asarray(self.negative)])
        if start.shape[1] != dimension:
            raise ValueError(
                f"DiagonalLayers: the layers have {start.shape[1]} entries but the data have "
                f"{dimension} features"
            )
        return start.ravel()

    def predictor(self, parameters: Array) -> Array:
        up, down = self._halves(parameters)
        return up.prod(axis=0) - down.prod(axis=0)

    def change(self, start: Array, displacement: Array) -> Array:
        # prod (a_k + s_k) - prod a_k = sum_k s_k prod_{j<k} (a_j + s_j) prod_{j>k} a_j
        totals = []
        for layers, steps in zip(self._halves(start), self._halves(displacement), strict=True):
            product, change = layers[0], steps[0]
            for layer, step in zip(layers[1:], steps[1:], strict=True):
                change = change * (layer + step) + product * step
                product = product * layer
            totals.append(change)
        return totals[0] - totals[1]

    def slopes(self, parameters: Array) -> Array:
        up, down = (self._others(layers) for layers in self._halves(parameters))
        return np.concatenate([up, -down])

    def bends(self, parameters: Array) -> Array:
        table, depth = self.table(parameters), self.depth
        bends = np.zeros((2 * depth, *table.shape))
        for sign, layers, first in zip((1, -1), self._halves(parameters), (0, depth), strict=True):
            for k in range(depth):
                rest = np.delete(layers, k, axis=0)
                places = [first + j for j in range(depth) if j != k]
                bends[first + k, places] = sign * self._others(rest)
        return bends

    def _halves(self, parameters: Array) -> tuple[Array, Array]:
        table = self.table(parameters)
        return table[: self.depth], table[self.depth :]

    @staticmethod
    def _others(layers: Array) -> Array:
        """The product of all layers but one, for each of them."""
        return np.array([np.delete(layers, k, axis=0).prod(axis=0) for k in range(len(layers))])
