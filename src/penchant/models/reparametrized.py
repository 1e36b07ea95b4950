"""Any separable reparametrization the user writes, as a model that can be trained."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import numpy as np

from penchant.arguments import Array
from penchant.lazy import jax
from penchant.models.model import Separable
from penchant.precision import double_precision
from penchant.records import Record, assign
from penchant.regularizers.derive.reparametrization import Reparametrization, read_starts

WHO = "Reparametrized"


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class Reparametrized(Record, Separable):
    """beta_i = map(parameters of coordinate i), with the arguments of `penchant.derive`.

    Parameters
    ----------
    map
        A function of the parameters of one coordinate. One of a single argument stands for the
        pair map(w+) - map(w-).
    start
        The parameters that each coordinate starts from.
    signed
        False takes a map of one argument alone, without its pair.

    Examples
    --------
    >>> import penchant
    >>> model = penchant.models.Reparametrized(lambda u, v: u * v, start=(1.0, 0.5))
    >>> model.predictor(model.start(dimension=2))
    array([0.5, 0.5])
    """

    stored_as: ClassVar = {"start": "begin"}

    map: Callable[..., Any]
    signed: bool
    begin: Array
    line: Reparametrization = dataclasses.field(repr=False)

    def __init__(self, map: Callable[..., Any], start: Any, signed: bool | None = None) -> None:
        line = Reparametrization(map)
        signed = len(line.names) == 1 if signed is None else bool(signed)
        starts = read_starts(line.names, start, signed)
        rows = starts.plus if starts.minus is None else np.hstack([starts.plus, starts.minus])
        assign(self, map=map, signed=signed, begin=rows.T, line=line)

    homogeneity = None  # the map may have none

    @property
    def code(self) -> Any:
        shared = type(self) is Reparametrized and isinstance(self.map, Hashable)
        return (Reparametrized, self.map, self.signed) if shared else self

    @property
    def copies(self) -> int:
        return len(self.begin)

    def start(self, dimension: int) -> Array:
        if self.begin.shape[1] not in (1, dimension):
            raise ValueError(
                f"{WHO}: start has {self.begin.shape[1]} entries but the data have"
                f" {dimension} features"
            )
        return np.broadcast_to(self.begin, (self.copies, dimension)).ravel().copy()

    def halves(self, parameters: Array) -> list[tuple[float, Array]]:
        """(sign, points) for the one line, or the two lines of a signed pair."""
        table = self.table(parameters)
        if not self.signed:
            return [(1.0, table.T)]
        half = self.copies // 2
        return [(1.0, table[:half].T), (-1.0, table[half:].T)]

    def predictor(self, parameters: Array) -> Array:
        if not isinstance(parameters, np.ndarray):  # of JAX, for compiled descent
            value = jax.vmap(lambda w: self.map(*w))
            return sum(sign * value(points) for sign, points in self.halves(parameters))
        values = [sign * self.line.evaluate(points)[0] for sign, points in self.halves(parameters)]
        return np.sum(values, axis=0)

    def change(self, start: Array, displacement: Array) -> Array:
        if np.abs(displacement).max() > 0.1 * np.abs(start).max():
            return self.predictor(start + displacement) - self.predictor(start)
        # a short way off the difference would cancel; the integral of the slopes does not
        nodes, weights = np.polynomial.legendre.leggauss(8)
        move = self.table(displacement)
        slopes = np.array([self.slopes(start + 0.5 * (1 + t) * displacement) for t in nodes])
        return 0.5 * np.einsum("q,qkf,kf->f", weights, slopes, move)

    def slopes(self, parameters: Array) -> Array:
        return np.concatenate(
            [sign * self.line.evaluate(points)[1].T for sign, points in self.halves(parameters)]
        )

    def bends(self, parameters: Array) -> Array:
        table = self.table(parameters)
        bends = np.zeros((self.copies, *table.shape))
        with double_precision():
            for k, (sign, points) in enumerate(self.halves(parameters)):
                block = sign * np.moveaxis(np.asarray(self.hessian(points)), 0, -1)
                size = len(block)
                bends[k * size : (k + 1) * size, k * size : (k + 1) * size] = block
        return bends

    @functools.cached_property
    def hessian(self) -> Callable[[Array], Any]:
        """The compiled second derivatives of the map at the rows of an array."""
        return jax.jit(jax.vmap(jax.hessian(lambda w: self.map(*w))))
