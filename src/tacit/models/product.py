"""The asymmetric diagonal network f = sum_i u_i v_i x_i (W Appendix C)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array
from tacit.models.model import Separable
from tacit.records import Record

WHO = "ProductNet"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class ProductNet(Record, Separable):
    """beta = u * v with separate input and output weights.

    Parameters
    ----------
    u
        The input weights at the start.
    v
        The output weights at the start.

    Examples
    --------
    >>> import tacit
    >>> net = tacit.ProductNet([1.0, 2.0], [0.5, 0.25])
    >>> net.predictor(net.start(dimension=2))
    array([0.5, 0.5])
    """

    u: ArrayLike
    v: ArrayLike

    def __post_init__(self) -> None:
        u = finite_array(WHO, "u", self.u, ndim=1)
        v = finite_array(WHO, "v", self.v, ndim=1)
        if len(u) != len(v):
            raise ValueError(f"{WHO}: u has {len(u)} entries but v has {len(v)}; they must match")
        stuck = np.flatnonzero((u == 0) & (v == 0))
        if len(stuck):
            raise ValueError(
                f"{WHO}: u and v must not both be zero, got zeros at index {stuck[0]}; "
                "such a coordinate never moves"
            )
        object.__setattr__(self, "u", u)
        object.__setattr__(self, "v", v)

    @property
    def homogeneity(self) -> int:
        return 2

    @property
    def copies(self) -> int:
        return 2

    def start(self, dimension: int) -> Array:
        start = np.concatenate([np.asarray(self.u), np.asarray(self.v)])
        if len(start) != 2 * dimension:
            raise ValueError(
                f"{WHO}: u and v have {len(start) // 2} entries but the data have "
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

    def describe(self) -> dict[str, Any]:
        u, v = np.asarray(self.u), np.asarray(self.v)
        return {"model": WHO, "u": u.tolist(), "v": v.tolist()}
