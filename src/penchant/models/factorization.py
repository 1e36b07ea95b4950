"""Matrices as products of two factors: U V^T, W W^T and U U^T - V V^T.

Woodworth et al. 2020, section 6.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer, shape_or_none
from penchant.door import Invalid, class_name, door, door_as
from penchant.models.matrix import MatrixModel, Shape, scale
from penchant.records import Record, assign


class TwoFactors(MatrixModel):
    """A matrix quadratic in a stack W of factors, all of the same number of columns.

    The gradient of <G, M> in W is lift(G) W with a symmetric lift(G), so the flow only ever
    multiplies W from the left; and M is a linear part of the lifted matrix W W^T.
    """

    homogeneity = 2
    width: int | None

    @property
    def code(self) -> Any:
        own = type(self), self.width, self.shape
        return own if type(self) in (Factorization, SymmetricFactorization) else self

    def stack(self, parameters: Array) -> Array:
        """W: the factors on top of each other, one column per unit of width."""
        square = round((parameters.size / 2) ** 0.5)  # of two factors without a width
        return parameters.reshape(-1, self.width or square)

    @abc.abstractmethod
    def lift(self, weights: Array) -> Array:
        """The symmetric matrix S with d<weights, M>/dW = S W; also for a stack of weights."""

    @abc.abstractmethod
    def part(self, lifted: Array) -> Array:
        """M as a part of the lifted matrix W W^T; also for a stack of them."""

    def slope(self, parameters: Array, weights: Array) -> Array:
        return (self.lift(weights) @ self.stack(parameters)).reshape(-1)


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class Factorization(Record, TwoFactors):
    """M = U V^T with U and V of `width` columns and i.i.d. N(0, alpha^2) entries at the start.

    The scale is `alpha` or `log_alpha`.

    Parameters
    ----------
    width
        The number of columns.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha, as far from 0 as you like.
    seed
        The seed of all random numbers.
    shape
        (rows, columns) of M; None stands for a square.
    factors
        (U, V) gives the start itself instead.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import penchant
    >>> model = penchant.Factorization(factors=([[1.0], [2.0]], [[3.0], [4.0]]))
    >>> model.matrix(model.start(dimension=4))
    array([[3., 4.],
           [6., 8.]])
    """

    implied: ClassVar = {"factors": ("width", "seed", "shape")}

    width: int
    alpha: float | None
    log_alpha: float | None
    seed: int | None
    shape: Shape | None
    factors: tuple[Array, ...] | None

    def __init__(
        self,
        width: int | None = None,
        *,
        alpha: float | None = None,
        log_alpha: float | None = None,
        seed: int = 0,
        shape: Shape | None = None,
        factors: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        scales = {"width": width, "alpha": alpha, "log_alpha": log_alpha}
        _fill(self, ("U", "V"), factors, seed, shape, **scales)

    def start(self, dimension: int) -> Array:
        return _drawn(self, sum(self.shape_for(dimension)))

    def matrix(self, parameters: Array) -> Array:
        W = self.stack(parameters)
        rows = W.shape[0] // 2 if self.shape is None else self.shape[0]
        return W[:rows] @ W[rows:].T

    def lift(self, weights: Array) -> Array:
        rows, columns = weights.shape[-2:]
        # Woodworth et al. 2020, section 6, halve the blocks of their measurements: <M, X> appears
        # twice in the lifted one
        lifted = np.zeros((*weights.shape[:-2], rows + columns, rows + columns))
        lifted[..., :rows, rows:] = weights
        lifted[..., rows:, :rows] = np.swapaxes(weights, -1, -2)
        return lifted

    def part(self, lifted: Array) -> Array:
        rows = lifted.shape[-1] // 2 if self.shape is None else self.shape[0]
        return lifted[..., :rows, rows:]


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class SymmetricFactorization(Record, TwoFactors):
    """M = W W^T with `width` columns and i.i.d. N(0, alpha^2) entries at the start.

    Parameters
    ----------
    width
        The number of columns.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha, as far from 0 as you like.
    seed
        The seed of all random numbers.
    factors
        (W,) gives the start itself instead.

    Examples
    --------
    >>> import penchant
    >>> model = penchant.models.SymmetricFactorization(factors=([[1.0], [2.0]],))
    >>> model.matrix(model.start(dimension=4))
    array([[1., 2.],
           [2., 4.]])
    """

    implied: ClassVar = {"factors": ("width", "seed")}

    width: int
    alpha: float | None
    log_alpha: float | None
    seed: int | None
    factors: tuple[Array, ...] | None
    shape: Shape | None

    def __init__(
        self,
        width: int | None = None,
        *,
        alpha: float | None = None,
        log_alpha: float | None = None,
        seed: int = 0,
        factors: tuple[ArrayLike] | None = None,
    ) -> None:
        _fill(self, ("W",), factors, seed, width=width, alpha=alpha, log_alpha=log_alpha)

    def start(self, dimension: int) -> Array:
        return _drawn(self, self.shape_for(dimension)[0])

    def matrix(self, parameters: Array) -> Array:
        W = self.stack(parameters)
        return W @ W.T

    def lift(self, weights: Array) -> Array:
        return weights + np.swapaxes(weights, -1, -2)

    def part(self, lifted: Array) -> Array:
        return lifted


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class DifferenceFactorization(Record, TwoFactors):
    """M = U U^T - V V^T from U = V, so that M starts at zero: U = V = alpha I by default.

    Parameters
    ----------
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha, as far from 0 as you like.
    width
        The number of columns; only with a `seed`.
    seed
        Draws the entries of U = V i.i.d. from N(0, alpha^2) instead.

    Examples
    --------
    >>> import penchant
    >>> model = penchant.models.DifferenceFactorization(alpha=0.5)
    >>> start = model.start(dimension=4)
    >>> start, model.matrix(start)
    (array([0.5, 0. , 0. , 0.5, 0.5, 0. , 0. , 0.5]), array([[0., 0.],
           [0., 0.]]))
    """

    alpha: float
    log_alpha: float
    width: int | None
    seed: int | None
    shape: Shape | None

    @door
    def __init__(
        self,
        *,
        alpha: float | None = None,
        log_alpha: float | None = None,
        width: int | None = None,
        seed: int | None = None,
    ) -> None:
        alpha, log_alpha = scale(alpha, log_alpha)
        width = None if width is None else integer("width", width, least=1)
        seed = None if seed is None else integer("seed", seed, least=0)
        assign(self, alpha=alpha, log_alpha=log_alpha, width=width, seed=seed, shape=None)

    def start(self, dimension: int) -> Array:
        side, _ = self.shape_for(dimension)
        width = side if self.width is None else self.width
        if self.seed is not None:
            half = self.alpha * np.random.default_rng(self.seed).standard_normal((side, width))
        elif width == side:
            half = self.alpha * np.eye(side)
        else:
            raise ValueError(
                f"DifferenceFactorization: a start at the identity has width {side} here, got "
                f"{width}; give seed= for a Gaussian one"
            )
        return np.concatenate([half, half]).ravel()

    def matrix(self, parameters: Array) -> Array:
        W = self.stack(parameters)
        side = W.shape[0] // 2
        return W[:side] @ W[:side].T - W[side:] @ W[side:].T

    def lift(self, weights: Array) -> Array:
        side, both = weights.shape[-1], weights + np.swapaxes(weights, -1, -2)
        lifted = np.zeros((*weights.shape[:-2], 2 * side, 2 * side))
        lifted[..., :side, :side] = both
        lifted[..., side:, side:] = -both
        return lifted

    def part(self, lifted: Array) -> Array:
        side = lifted.shape[-1] // 2
        return lifted[..., :side, :side] - lifted[..., side:, side:]


@door_as(class_name)
def _fill(
    model: Factorization | SymmetricFactorization,
    names: tuple[str, ...],
    factors: Any,
    seed: object,
    shape: object = None,
    **scales: object,
) -> None:
    """Sets the fields of a model with a Gaussian start, or with `factors` called by `names`."""
    if factors is None:
        alpha, log_alpha = scale(scales["alpha"], scales["log_alpha"])
        width = integer("width", scales["width"], least=1)
        seed = integer("seed", seed, least=0)
        assign(model, width=width, alpha=alpha, log_alpha=log_alpha, seed=seed)
        assign(model, shape=shape_or_none(shape), factors=None)
        return
    if any(value is not None for value in scales.values()):
        raise Invalid("factors= already sets width and scale; leave out width, alpha and log_alpha")
    if not isinstance(factors, tuple | list) or len(factors) != len(names):
        raise Invalid(f"factors must be the {len(names)} array(s) {', '.join(names)}")
    checked = tuple(
        finite_array(name, factor, ndim=2) for name, factor in zip(names, factors, strict=True)
    )
    widths = {factor.shape[1] for factor in checked}
    if len(widths) > 1:
        raise Invalid(f"the factors must have the same width, got {sorted(widths)}")
    assign(model, width=widths.pop(), alpha=None, log_alpha=None, seed=None)
    assign(model, shape=(len(checked[0]), len(checked[-1])), factors=checked)


def _drawn(model: Factorization | SymmetricFactorization, rows: int) -> Array:
    """The flat start of a stack of so many rows."""
    if model.factors is not None:
        return np.concatenate(model.factors).ravel()
    assert model.alpha is not None
    return model.alpha * np.random.default_rng(model.seed).standard_normal(rows * model.width)
