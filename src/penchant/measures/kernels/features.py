"""The tangent features grad f(start, x) of any model, in a unit that float64 can represent."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, entries, one_of
from penchant.door import Invalid
from penchant.models.diagonal import DiagonalNet
from penchant.models.model import Model, Separable
from penchant.models.unbiased import Difference

BLOCK = 10**7  # numbers of a Jacobian held at a time
ROUTES = ("auto", "features", "kernel")
HELD = 10**7  # numbers of features above which only their kernel is held
PLAIN = 200  # exponents of two: gradients below 2^PLAIN and above 2^-PLAIN keep their own unit


LARGEST = 900  # exponent of two of slopes in the unit of the features


@dataclasses.dataclass(frozen=True)
class TangentFeatures:
    """The features F = factor * grad f(start, x) of `model`.

    The gradients of the user's model are exp(log_unit) F; `log_output` is the logarithm of the
    same ratio for f(start, x).
    """

    model: Model
    start: Array
    factor: float
    log_unit: float
    log_output: float

    def output(self, X: Array) -> Array:
        """f(start, x) of the user's model."""
        if isinstance(self.model, Separable):
            return X @ self.constant()
        return self._in_full(self.model.predict(self.start, X))

    def constant(self) -> Array:
        """The linear predictor at the start, of a separable model."""
        assert isinstance(self.model, Separable)
        return self._in_full(self.model.predictor(self.start))

    def _in_full(self, values: Array) -> Array:
        if self.log_output == 0.0 or not values.any():
            return values
        with np.errstate(over="ignore", under="ignore"):
            values = values * np.exp(self.log_output)
        if not np.isfinite(values).all():
            raise Invalid(
                f"the output at the start is beyond float64 (e^{self.log_output:.0f} times "
                "that of the unit start); wrap the model in Difference, whose output starts at zero"
            )
        return values

    def rows(self, X: Array) -> Array:
        """Features of every sample; for separable models in one coordinate per input feature."""
        if isinstance(self.model, Separable):
            return X * self.root
        held = self.__dict__.get("_held")
        if held is not None and held[0] is X:
            return np.asarray(held[1])
        return self.factor * self.model.jacobian(self.start, X)

    @contextlib.contextmanager
    def hold(self, X: Array) -> Iterator[None]:
        """A context in which the features of X are computed once, where they fit into a block."""
        if not isinstance(self.model, Separable) and self._whole(X):
            self.__dict__["_held"] = X, self.rows(X)
        try:
            yield
        finally:
            self.__dict__.pop("_held", None)

    def expand(self, coordinates: Array) -> Array:
        """The flat displacement whose coordinates in the space of `rows` are `coordinates`."""
        if not isinstance(self.model, Separable):
            return coordinates
        return (self._shares * coordinates).ravel()

    def kernel(self, X: Array) -> Array:
        """F F^T without holding all of F."""
        if isinstance(self.model, Separable):
            rows = self.rows(X)
            return rows @ rows.T
        K = np.empty((len(X), len(X)))
        for at in self._blocks(X):
            left = self.rows(X[at])
            for other in self._blocks(X):
                if other.start >= at.start:
                    right = left if other == at else self.rows(X[other])
                    K[at, other] = left @ right.T
                    K[other, at] = K[at, other].T
        return K

    def pull(self, X: Array, dual: Array) -> Array:
        """F^T dual, flat."""
        if isinstance(self.model, Separable):
            return self.expand(self.rows(X).T @ dual)
        return self.factor * self.model.pullback(self.start, X, dual)

    def push(self, X: Array, displacement: Array) -> Array:
        """F displacement, one number per sample."""
        if isinstance(self.model, Separable):
            return self.rows(X) @ (self._shares * self.model.table(displacement)).sum(axis=0)
        if self._whole(X):
            return self.rows(X) @ displacement
        return np.concatenate([self.rows(X[at]) @ displacement for at in self._blocks(X)])

    def tilt(self, displacement: Array) -> Array:
        """The change of the linear predictor of a separable model."""
        assert isinstance(self.model, Separable)
        slopes = self.factor * self.model.slopes(self.start)
        return (slopes * self.model.table(displacement)).sum(axis=0)

    @functools.cached_property
    def root(self) -> Array:
        """Lengths of (d beta_i / d w_ki)_k; in suitable coordinates J = X diag(root)."""
        assert isinstance(self.model, Separable)
        slopes = self.factor * self.model.slopes(self.start)
        size = float(np.abs(slopes).max())
        return np.asarray(size * np.linalg.norm(slopes / size, axis=0))

    @functools.cached_property
    def _shares(self) -> Array:
        """The part of each copy in the unit vector along a coordinate of `rows`."""
        assert isinstance(self.model, Separable)
        slopes, root = self.factor * self.model.slopes(self.start), self.root
        return np.divide(slopes, root, out=np.zeros_like(slopes), where=root > 0)

    def _whole(self, X: Array) -> bool:
        """Whether all samples are one block."""
        return len(X) <= max(1, BLOCK // len(self.start))

    def _blocks(self, X: Array) -> Iterator[slice]:
        size = max(1, BLOCK // len(self.start))
        return (slice(at, at + size) for at in range(0, len(X), size))


def tangent(model: Model, X: Array, start: ArrayLike | None = None) -> TangentFeatures:
    """The tangent features of `model` at its start, or at the parameters given instead."""
    if not isinstance(model, Model):
        raise Invalid(f"expected a Model, got {type(model).__name__}")
    if start is not None:
        count = len(model.start(X.shape[1]))
        return scaled(model, X, entries("start", start, count, "one per parameter"))
    twin = unit_twin(model)
    # beyond these the slopes at the start and the unit of X together may leave float64
    far = twin is not None and abs((twin[2] - 1) * twin[1]) > PLAIN * math.log(2.0)
    try:
        begin = None if far else model.start(X.shape[1])
    except ValueError:
        if twin is None:
            raise
        begin = None
    if begin is None and twin is not None:
        at_one, log_alpha, depth = twin
        features = scaled(at_one, X, at_one.start(X.shape[1]))
        # grad f(alpha w0) = alpha^(D-1) grad f(w0), Woodworth et al. 2020, section 3
        log_unit = features.log_unit + (depth - 1) * log_alpha
        return dataclasses.replace(features, log_unit=log_unit, log_output=depth * log_alpha)
    assert begin is not None
    return scaled(model, X, begin)


def unit_twin(model: Model) -> tuple[Model, float, int] | None:
    """The same model with alpha = 1, log alpha and the depth; None if it has no alpha."""
    if isinstance(model, DiagonalNet) and model.log_alpha is not None:
        net = DiagonalNet(model.depth, alpha=1.0, shape=model.shape, signed=model.signed)
        return net, model.log_alpha, model.depth
    if isinstance(model, Difference) and (inner := unit_twin(model.model)) is not None:
        return Difference(inner[0]), *inner[1:]
    return None


def scaled(model: Model, X: Array, start: Array) -> TangentFeatures:
    """The features at `start`, divided by a power of two if their squares could overflow."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if isinstance(model, Separable):
            size, inputs = float(np.abs(model.slopes(start)).max()), float(np.abs(X).max())
        else:
            rows = X[: max(1, BLOCK // len(start))]
            size, inputs = float(np.abs(model.jacobian(start, rows)).max()), 1.0
    if not math.isfinite(size):
        raise Invalid("the gradients at this start are beyond float64; take a smaller one")
    if size == 0:
        raise Invalid(
            "the gradients vanish at this start, so it has no tangent kernel; take another start"
        )
    exponent = math.frexp(size)[1] + (math.frexp(inputs)[1] if inputs else 0)
    exponent = 0 if max(abs(exponent), abs(math.frexp(size)[1])) < PLAIN else exponent
    slope = math.frexp(size)[1]  # the slopes in this unit stay in the range of float64, too
    exponent = max(slope - LARGEST, min(exponent, slope + LARGEST))
    exponent = max(-LARGEST, min(exponent, LARGEST))
    return TangentFeatures(model, start, math.ldexp(1.0, -exponent), exponent * math.log(2.0), 0.0)


class Frame(NamedTuple):
    """Features as rows `left * sizes` in a few orthonormal coordinates, `right` their axes."""

    left: Array
    sizes: Array
    right: Array | None


def chosen_route(at: TangentFeatures, X: Array, route: str) -> str:
    """The given route; for "auto" the one that fits the sizes."""
    if one_of("route", route, ROUTES) != "auto":
        return route
    width = X.shape[1] if isinstance(at.model, Separable) else len(at.start)
    return "kernel" if len(X) * width > HELD else "features"


def lengths_of(at: TangentFeatures, X: Array, route: str) -> Array:
    """The lengths of the features, none of them zero."""
    if route == "kernel":
        sizes = np.sqrt(np.maximum(np.diag(at.kernel(X)), 0.0))
    else:
        sizes = np.linalg.norm(at.rows(X), axis=1)
    zero = np.flatnonzero(sizes == 0)
    if zero.size:
        raise Invalid(
            f"the tangent features of sample {zero[0]} are zero, so its margin is zero for "
            "every displacement; drop that sample"
        )
    return sizes


def framed(at: TangentFeatures, X: Array, route: str, sizes: Array) -> Frame:
    """Features divided by `sizes`, in at most as many coordinates as samples, without rounding."""
    if route == "features":
        rows = at.rows(X) / sizes[:, None]
        left, values, right = np.linalg.svd(rows, full_matrices=False)
        kept = values > np.finfo(float).eps * max(rows.shape) * values[0]
        return Frame(left[:, kept], values[kept], right[kept])
    squares, left = np.linalg.eigh(at.kernel(X) / sizes / sizes[:, None])
    kept = squares > np.finfo(float).eps * len(X) * squares[-1]
    return Frame(left[:, kept], np.sqrt(squares[kept]), None)
