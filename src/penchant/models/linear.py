"""Linear predictors whose parameters are the predictor itself: a vector, or a matrix."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, real, shape_or_none
from penchant.door import Invalid, door, door_as
from penchant.models.matrix import MatrixModel, Shape
from penchant.models.model import Separable
from penchant.records import Record, assign

Begin = Array | float


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class LinearPredictor(Record, Separable):
    """f(x) = <beta, x> with beta as its own parameters.

    Parameters
    ----------
    start
        None for zeros, a number for every coordinate, or the vector itself.

    Examples
    --------
    >>> import penchant
    >>> penchant.models.LinearPredictor(0.5).start(dimension=3)
    array([0.5, 0.5, 0.5])
    """

    stored_as: ClassVar = {"start": "begin"}

    begin: Begin

    @door
    def __init__(self, start: ArrayLike | None = None) -> None:
        assign(self, begin=_begin(start, ndim=1))

    homogeneity = 1
    copies = 1

    @property
    def code(self) -> Any:
        return LinearPredictor if type(self) is LinearPredictor else self

    @door_as("LinearPredictor")
    def start(self, dimension: int) -> Array:
        return _filled(self.begin, (dimension,))

    def predictor(self, parameters: Array) -> Array:
        return parameters

    def change(self, start: Array, displacement: Array) -> Array:
        return displacement

    def slopes(self, parameters: Array) -> Array:
        return np.ones((1, len(parameters)))

    def bends(self, parameters: Array) -> Array:
        return np.zeros((1, 1, len(parameters)))


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class LinearMatrix(Record, MatrixModel):
    """f(X) = <M, X> with the entries of M, row after row, as its own parameters.

    Parameters
    ----------
    shape
        (rows, columns); None stands for a square.
    start
        None for zeros, a number for every entry, or the matrix itself.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> penchant.models.LinearMatrix((2, 3)).matrix(np.arange(6.0))
    array([[0., 1., 2.],
           [3., 4., 5.]])
    """

    stored_as: ClassVar = {"start": "begin"}

    shape: Shape | None
    begin: Begin

    @door
    def __init__(self, shape: Shape | None = None, start: ArrayLike | None = None) -> None:
        begin = _begin(start, ndim=2)
        shape = shape_or_none(shape)
        if isinstance(begin, np.ndarray):
            shape = shape or (begin.shape[0], begin.shape[1])
            _filled(begin, shape)
        assign(self, shape=shape, begin=begin)

    homogeneity = 1

    @property
    def code(self) -> Any:
        return (LinearMatrix, self.shape) if type(self) is LinearMatrix else self

    @door_as("LinearMatrix")
    def start(self, dimension: int) -> Array:
        return _filled(self.begin, self.shape_for(dimension)).ravel()

    def matrix(self, parameters: Array) -> Array:
        return parameters.reshape(self.shape_for(parameters.size))

    def slope(self, parameters: Array, weights: Array) -> Array:
        return weights.ravel()


def _begin(start: ArrayLike | None, ndim: int) -> Begin:
    """The start as one number or as an array of `ndim` dimensions."""
    start = 0.0 if start is None else start
    return real("start", start) if np.ndim(start) == 0 else finite_array("start", start, ndim)


def _filled(begin: Begin, shape: tuple[int, ...]) -> Array:
    """The start in this shape, as a fresh array."""
    if isinstance(begin, np.ndarray):
        if begin.shape != shape:
            raise Invalid(f"start must have shape {shape}, got {begin.shape}")
        return begin.copy()
    return np.full(shape, begin)
