"""The largest spectral norm of the layers of a net: the norm in which Muon steps are steepest."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, entries, shape_or_none
from penchant.door import Invalid, door, door_as
from penchant.regularizers.arrays import space_of
from penchant.regularizers.penalty import Blocks, Term
from penchant.regularizers.spectral import Nuclear, Spectral


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class LayerSpectral(Term):
    """max_l |W_l| in the spectral norm, over the matrices W_l of flat parameters.

    A step along U V^T of every layer, as Muon takes it, is steepest in this norm. The dual norm is
    the sum of the nuclear norms. A vector of n numbers is the shape (n, 1).

    Parameters
    ----------
    shapes
        The shapes of the layers in the order of the parameters, each in C order.

    References
    ----------
    .. [1] Gronich and Vardi (2026), The Implicit Bias of Adam and Muon on Smooth Homogeneous Neural
       Networks.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> norm = penchant.regularizers.LayerSpectral([(2, 2), (2, 1)])
    >>> theta = np.array([3.0, 0.0, 0.0, 2.0, 0.0, 4.0])
    >>> norm(theta), float(norm.dual_norm.value(theta))
    (4.0, 9.0)
    """

    shapes: tuple[tuple[int, int], ...]

    @door
    def __init__(self, shapes: Sequence[tuple[int, int]]) -> None:
        if isinstance(shapes, str) or not np.iterable(shapes):
            raise Invalid(f"shapes must be pairs (rows, columns), got {shapes!r}")
        checked = tuple(shape_or_none(shape) for shape in shapes)
        if not checked or None in checked:
            raise Invalid(f"shapes must be one pair (rows, columns) or more, got {shapes!r}")
        object.__setattr__(self, "shapes", checked)

    @property
    def dimension(self) -> int:
        """The number of parameters."""
        return sum(math.prod(shape) for shape in self.shapes)

    @property
    def dual_norm(self) -> Blocks:
        """The sum of the nuclear norms of the layers."""
        return Blocks([(Nuclear(shape), math.prod(shape)) for shape in self.shapes])

    @property
    def diagonal(self) -> Spectral:
        """The norm of the block diagonal matrix of all layers, which has the same value."""
        rows, columns = np.sum(self.shapes, axis=0).tolist()
        return Spectral((rows, columns))

    @door_as(str)
    def on_diagonal(self, rows: Array) -> Array:
        """Every row as the flat block diagonal matrix of its layers."""
        diagonal = np.zeros((len(rows), *self.diagonal.shape))  # type: ignore[misc]
        top = left = 0
        for (height, width), part in zip(self.shapes, self._cut(rows.T), strict=True):
            block = part.T.reshape(-1, height, width)
            diagonal[:, top : top + height, left : left + width] = block
            top, left = top + height, left + width
        return diagonal.reshape(len(rows), -1)

    @door_as(str)
    def __call__(self, parameters: ArrayLike) -> float:
        """The value at flat parameters."""
        theta = entries("parameters", parameters, self.dimension, "one per entry of the layers")
        return float(self.value(theta))

    def value(self, theta: Any) -> Any:
        return space_of(theta).stack(self._sizes(theta)).max()

    def subgradient(self, theta: Any) -> Any:
        """That of the layer with the largest norm, the first where there are several."""
        space, sizes = space_of(theta), self._sizes(theta)
        largest = space.stack(sizes).argmax()
        pairs = zip(self.shapes, self._cut(theta), strict=True)
        parts = [Spectral(shape).subgradient(part) for shape, part in pairs]
        return space.concatenate([(largest == k) * part for k, part in enumerate(parts)])

    def _sizes(self, theta: Any) -> list[Any]:
        pairs = zip(self.shapes, self._cut(theta), strict=True)
        return [Spectral(shape).value(part) for shape, part in pairs]

    def _cut(self, theta: Any) -> Iterator[Any]:
        if theta.shape[0] != self.dimension:
            raise ValueError(
                f"{self!r}: the layers have {self.dimension} entries but there are"
                f" {theta.shape[0]} parameters"
            )
        ends = np.cumsum([math.prod(shape) for shape in self.shapes]).tolist()
        for end, shape in zip(ends, self.shapes, strict=True):
            yield theta[end - math.prod(shape) : end]
