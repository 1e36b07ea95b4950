"""The interface of what training minimises: a sum over coordinates with a monotone gradient."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, plain_vector
from penchant.door import door_as
from penchant.regularizers.arrays import as_floats, leaves, mapped, repeated, space_of
from penchant.regularizers.penalty import Term

STEPS = 30  # Newton's method starts within a factor of 2 of the right value; 8 are enough


class Regularizer(Term):
    """A convex function of a predictor beta that is a sum over its coordinates.

    The minimiser of a regularizer under X beta = y has gradient(beta) = X^T dual, so a solver
    needs the inverse of the gradient map, b(s), and its slope b'(s), both coordinatewise. A
    number times a regularizer is a penalty for training: it is then a sum over all entries of all
    parameters, and training calls `value`, `subgradient` and `prox`.

    This class is abstract. L1, L2, Lp, Q, R and the results of `derive` are subclasses.

    Examples
    --------
    >>> import penchant
    >>> regularizer = penchant.Q(alpha=1.0)
    >>> isinstance(regularizer, penchant.regularizers.Regularizer)
    True
    >>> regularizer.inverse_gradient(regularizer.gradient([1.0, -2.0])).round(6)
    array([ 1., -2.])
    """

    #: number of coordinates the regularizer is tied to (by weights or a shape), None if any
    dimension: int | None = None
    #: R(c beta) = c^degree R'(beta) with R' = R.in_units(log c); None where there is no such R'
    degree: float | None = None
    #: whether `terms` and `dual_of` also take JAX arrays; if not, compiled code calls them in NumPy
    in_jax: bool = False

    def __call__(self, beta: ArrayLike) -> float:
        """The value at `beta`."""
        return float(np.sum(self.terms(self.vector("beta", beta))))

    def gradient(self, beta: ArrayLike) -> Array:
        """The gradient at `beta`; where there is a kink, the subgradient of least size."""
        return self.dual_of(self.vector("beta", beta))

    def inverse_gradient(self, s: ArrayLike) -> Array:
        """b(s): the beta whose gradient is `s`."""
        return self.primal_of(self.vector("s", s))

    @door_as(str)
    def vector(self, name: str, value: ArrayLike) -> Array:
        """`value` as a finite vector of the right length."""
        if plain_vector(value) and self.dimension in (None, len(value)):
            return value  # no name of the caller is needed, and a `repr` takes longer than a value
        array = finite_array(name, value, ndim=1)
        if self.dimension not in (None, len(array)):
            raise ValueError(f"{self}: {name} must have {self.dimension} entries, got {len(array)}")
        return array

    def in_units(self, log_size: float) -> Regularizer:
        """The regularizer of beta / e^log_size with the same minimisers."""
        return self

    @property
    def smooth(self) -> bool:
        return True

    def value(self, theta: Any) -> Any:
        """The sum over all entries of all leaves."""
        self._must_fit(theta)
        return sum(self._entrywise(self.terms, leaf).sum() for leaf in leaves(theta))

    def subgradient(self, theta: Any) -> Any:
        self._must_fit(theta)
        return mapped(lambda leaf: self._entrywise(self.dual_of, leaf), theta)

    def prox(self, theta: Any, weight: Any) -> Any:
        self._must_fit(theta)
        if not self.has_prox:
            return super().prox(theta, weight)
        return mapped(
            lambda leaf: self._entrywise(lambda beta: self.prox_of(beta, weight), leaf), theta
        )

    def prox_of(self, beta: Any, weight: Any) -> Any:
        """Coordinatewise proximal map; raises an error if there is none."""
        return super().prox(beta, weight)

    def _entrywise(self, function: Callable[[Any], Any], leaf: Any) -> Any:
        """`function` of the entries of a NumPy or JAX array, in its shape and precision."""
        flat = leaf.reshape(-1)
        if self.in_jax or isinstance(leaf, np.ndarray):
            return as_floats(function(flat), leaf).reshape(leaf.shape)
        import jax

        def outside(entries: Any) -> Array:
            return function(np.asarray(entries, np.float64)).astype(leaf.dtype)

        like = jax.ShapeDtypeStruct(flat.shape, leaf.dtype)
        values = jax.pure_callback(outside, like, flat, vmap_method="sequential")
        return values.reshape(leaf.shape)

    def _must_fit(self, theta: Any) -> None:
        """An error if there is one number per coordinate and the parameters are not as many."""
        if self.dimension is None:
            return
        sizes = [int(leaf.size) for leaf in leaves(theta)]
        if sizes != [self.dimension]:
            raise ValueError(
                f"{self}: the parameters must be one array of {self.dimension} entries, got "
                f"{len(sizes)} of {sizes}; use Blocks for parts of them"
            )

    def log_softness(self, beta: Array, gradient: Array) -> Array:
        """log b'(s) at the s of `beta`, its gradient: how far it moves when its dual does."""
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.log(self.slope(gradient)), beta.shape)

    def conjugate_of(self, s: Array) -> Array:
        """The summands of the conjugate, s b(s) - R(b(s))."""
        image = self.primal_of(s)
        return s * image - self.terms(image)

    def softest(self, beta: Array) -> Any:
        """Places of coordinates among which log_softness is largest: all, where nothing is known.

        They are a slice or an index array.
        """
        return slice(None)

    @abc.abstractmethod
    def terms(self, beta: Array) -> Array:
        """The summands, one per coordinate."""

    @abc.abstractmethod
    def dual_of(self, beta: Array) -> Array:
        """Coordinatewise gradient."""

    @abc.abstractmethod
    def primal_of(self, s: Array) -> Array:
        """Coordinatewise inverse of the gradient."""

    @abc.abstractmethod
    def slope(self, s: Array) -> Array:
        """Coordinatewise derivative of `primal_of`."""


def soft_threshold(theta: Any, weight: Any) -> Any:
    """theta minus its part within [-weight, weight]: the proximal map of the absolute value."""
    return theta - space_of(theta).clip(theta, -weight, weight)


def through_dual(regularizer: Regularizer, theta: Any, weight: Any) -> Any:
    """The proximal map of an even h whose inverse gradient b is convex for s >= 0."""
    space, size = space_of(theta), abs(theta)
    begin = space.minimum(_ratio(size, weight), regularizer.dual_of(size))

    def step(s: Any) -> Any:
        with np.errstate(invalid="ignore"):  # where the slack is below rounding, s is 1 and stays
            above = regularizer.primal_of(s) + weight * s - size
            move = above / (regularizer.slope(s) + weight)
        return space.where(space.isfinite(move), space.maximum(s - move, 0.0), s).astype(s.dtype)

    s = repeated(step, begin, STEPS)
    z, pulled = regularizer.primal_of(s), weight * s
    # the smaller of the two is known without cancellation
    near = space.where(z <= pulled, z, space.maximum(size - pulled, 0.0))
    return space.copysign(near, theta)


def of_power(p: float, theta: Any, weight: Any) -> Any:
    """That of (1/p) |z|^p for p >= 2: z + weight z^(p-1) = |theta|, by Newton's method."""
    space, size = space_of(theta), abs(theta)
    begin = space.minimum(size, _ratio(size, weight) ** (1 / (p - 1)))

    def step(z: Any) -> Any:
        move = (z + weight * z ** (p - 1) - size) / (1 + weight * (p - 1) * z ** (p - 2))
        return space.maximum(z - move, 0.0).astype(z.dtype)

    return space.copysign(repeated(step, begin, STEPS), theta)


def _ratio(size: Any, weight: Any) -> Any:
    space = space_of(size)
    return space.where(weight > 0, size / space.where(weight > 0, weight, 1.0), space.inf)


class PlainWalk:
    """beta = b(s) and the slope b'(s) of any regularizer, at a dual s that moves by increments."""

    def __init__(self, regularizer: Regularizer, s: Array) -> None:
        self.regularizer, self.s = regularizer, s
        with np.errstate(all="ignore"):  # outside its domain b may be anything
            self.beta, self.slope = regularizer.primal_of(s), regularizer.slope(s)

    def moved(self, ds: Array) -> PlainWalk:
        return PlainWalk(self.regularizer, self.s + ds)
