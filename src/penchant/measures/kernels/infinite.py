"""Kernels of nets of infinite width: of their outputs at the start, and of their training.

How it works. At the start of a wide net the units of a layer are independent Gaussian functions of
the input, and the covariance S of the sums of one layer gives that of the next:

    S_1 = v_1 <x, z> / d + b_1,    A_l = E s(p) s(q),    S_(l+1) = v_(l+1) A_l + b_(l+1),

with (p, q) Gaussian of covariance S_l, the activation s, the variance v_l of the weights of layer l
times the number of its inputs, and the variance b_l of its biases. S of the last layer is the
kernel of the outputs (Cho and Saul 2009; Lee et al. 2018). A gradient in a layer is the product of
its inputs and of what comes back from the outputs, whose covariances multiply:

    K = sum_l (n_(l-1) A_(l-1) + [biases]) B_l,    B_L = 1,    B_l = v_(l+1) E s'(p) s'(q) B_(l+1)

(Jacot et al. 2018). The weights here are those that are trained, not weights in units of their
variance, so that layer l counts with its number of inputs n_(l-1), as in the nets of this library:
K is what the tangent kernel of the net of these widths fluctuates around, by 1/sqrt(width).

E s(p) s(q) has a closed form for each activation below: the angle between both arguments for ReLU
(Cho and Saul), an arcsine for erf (Williams 1997), polynomials for powers.

Pitfalls. arccos(1 - 1e-16) is 1e-8, and a b - c^2 of equal rows is 1e-16 a b: a cosine that
rounding cannot tell from 1 counts as 1. So angles below sqrt(2 NEAR), 6e-8, are not resolved, and
an entry of the tangent kernel of ReLU is off by up to this angle over 2 pi per layer, 1e-8 of its
size. Squares of inputs beyond float64 are refused at the door.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer, one_of, positive, real
from penchant.door import Invalid, door, door_as
from penchant.records import Record, assign

WHO = "InfiniteKernel"
KINDS = ("tangent", "output")
NEAR = 8 * np.finfo(float).eps  # a cosine this close to 1 counts as 1


class PairMoments(NamedTuple):
    """E s(p) s(q) and E s'(p) s'(q) of Gaussians with variances a, b and covariance c."""

    values: Callable[[Array, Array, Array], Array]
    slopes: Callable[[Array, Array, Array], Array]


def _cosine(a: Array, b: Array, c: Array) -> Array:
    size = np.sqrt(a) * np.sqrt(b)
    cosine = np.clip(c / np.where(size > 0, size, 1.0), -1.0, 1.0)
    return np.where(1 - np.abs(cosine) < NEAR, np.sign(cosine), cosine)


def _relu(a: Array, b: Array, c: Array) -> Array:
    cosine = _cosine(a, b, c)
    angle = np.arccos(cosine)
    sine = np.sqrt((1 - cosine) * (1 + cosine))
    whole = sine + (np.pi - angle) * cosine
    return np.asarray(np.sqrt(a) * np.sqrt(b) * whole / (2 * np.pi))


def _relu_slopes(a: Array, b: Array, c: Array) -> Array:
    share = (np.pi - np.arccos(_cosine(a, b, c))) / (2 * np.pi)
    return np.where((a > 0) & (b > 0), share, 0.0)


def _erf(a: Array, b: Array, c: Array) -> Array:
    return np.asarray(2 / np.pi * np.arcsin(2 * c / np.sqrt((1 + 2 * a) * (1 + 2 * b))))


def _erf_slopes(a: Array, b: Array, c: Array) -> Array:
    # (1 + 2a)(1 + 2b) - 4c^2 without the difference of large squares
    apart = a * b - c * c
    left = 1 + 2 * a + 2 * b + 4 * np.where(apart < NEAR * a * b, 0.0, apart)
    return np.asarray(4 / np.pi / np.sqrt(left))


MOMENTS = {
    "linear": PairMoments(lambda a, b, c: c, lambda a, b, c: np.ones_like(c)),
    "quadratic": PairMoments(lambda a, b, c: a * b + 2 * c * c, lambda a, b, c: 4 * c),
    "relu": PairMoments(_relu, _relu_slopes),
    "erf": PairMoments(_erf, _erf_slopes),
}


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class InfiniteKernel(Record):
    """The kernel of a dense net of infinite width; call it on rows: K(X) or K(X, Z).

    `penchant.measures.kernel_regression(kernel, X, y)` is regression with it.

    Parameters
    ----------
    activation
        "relu", "erf", "linear" or "quadratic".
    widths
        The units of the hidden layers. They do not change the kernel of the outputs; in the tangent
        kernel every layer counts with the number of its inputs.
    weights
        The variance of the weights times the inputs of their layer: a number, or one per layer.
    biases
        The variance of the biases at the start, a number or one per layer; None for no biases.
    kind
        "tangent", the kernel that trains the net, or "output", the covariance of outputs at the
        start.
    copies
        How many nets with equal starts the outputs are the difference of; 2 doubles the tangent
        kernel.

    References
    ----------
    .. [1] Cho and Saul (2009), Kernel Methods for Deep Learning.
    .. [2] Williams (1997), Computing with Infinite Networks.
    .. [3] Lee et al. (2018), Deep Neural Networks as Gaussian Processes.
    .. [4] Jacot et al. (2018), Neural Tangent Kernel: Convergence and Generalization in Neural
       Networks.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> kernel = penchant.measures.InfiniteKernel("relu", widths=(1,), kind="output")
    >>> kernel(np.array([[1.0, 0.0], [0.0, 1.0]])).round(4)
    array([[1.    , 0.3183],
           [0.3183, 1.    ]])
    """

    outputs: ClassVar[int] = 1
    activation: str
    widths: tuple[int, ...]
    _: dataclasses.KW_ONLY
    weights: float | tuple[float, ...] = 2.0
    biases: float | tuple[float, ...] | None = None
    kind: str = "tangent"
    copies: int = 1

    @door
    def __post_init__(self) -> None:
        one_of("activation", self.activation, MOMENTS)
        one_of("kind", self.kind, KINDS)
        given: Any = [self.widths] if np.ndim(self.widths) == 0 else list(self.widths)
        widths = tuple(integer("widths", width, least=1) for width in given)
        if not widths:
            raise Invalid("widths must name at least one hidden layer, got none")
        layers = len(widths) + 1
        weights = _each("weights", self.weights, layers, positive)
        biases = (
            None if self.biases is None else _each("biases", self.biases, layers, _not_negative)
        )
        copies = integer("copies", self.copies, least=1)
        assign(self, widths=widths, weights=weights, biases=biases, copies=copies)

    @door_as(WHO)
    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> Array:
        """The kernel between the rows of X and those of Z, or of X."""
        rows = finite_array("X", X, ndim=2)
        others = rows if Z is None else finite_array("Z", Z, ndim=2)
        if rows.shape[1] != others.shape[1]:
            raise Invalid(f"Z must have {rows.shape[1]} columns as X has, got {others.shape[1]}")
        if not rows.shape[1]:
            raise Invalid("X must have a column or more, got none")
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            K = self._between(rows, others)
        if not np.isfinite(K).all():
            raise Invalid(
                f"the squares of X (entries up to {np.abs(rows).max():.3g}) or of the weights are "
                "beyond float64; rescale X"
            )
        return K

    def _between(self, X: Array, Z: Array) -> Array:
        moments = MOMENTS[self.activation]
        features = X.shape[1]
        weights: Any = self.weights
        biases: Any = self.biases or (0.0,) * len(weights)
        a, b = (X**2).sum(axis=1)[:, None] / features, (Z**2).sum(axis=1)[None] / features
        c = X @ Z.T / features
        if X is Z:
            np.fill_diagonal(c, a[:, 0])
        trained = self.kind == "tangent"
        with_bias = 0.0 if self.biases is None else 1.0
        # forwards, the kernel of all layers so far: a next layer multiplies it by its B
        tangent = features * c + with_bias
        variances = zip(weights[1:], biases[1:], self.widths, strict=True)
        a, b, c = (weights[0] * part + biases[0] for part in (a, b, c))
        for weight, bias, width in variances:
            if trained:
                back = weight * moments.slopes(a, b, c)
            below = [moments.values(a, a, a), moments.values(b, b, b), moments.values(a, b, c)]
            if trained:
                tangent = tangent * back + width * below[2] + with_bias
            a, b, c = (weight * part + bias for part in below)
        return np.asarray(self.copies * tangent if trained else c)

    @door_as(WHO)
    def features(self, X: ArrayLike) -> Array:
        """Rows F with F F^T = K(X): a max margin or an interpolant in F is that of the kernel."""
        values, vectors = np.linalg.eigh(self(X))
        kept = values > len(values) * np.finfo(float).eps * max(values[-1], 0.0)
        return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))

    @door_as(WHO)
    def fluctuation(self, measured: ArrayLike, X: ArrayLike) -> float:
        """|measured - K| / |K| on the rows of X: how far a net is from infinite width.

        `measured` is the tangent kernel of a net; over starts it falls as 1/sqrt(width).
        """
        K = self(X)
        given = finite_array("measured", measured, ndim=2)
        if given.shape != K.shape:
            raise Invalid(f"measured must have the shape {K.shape} of K(X), got {given.shape}")
        return float(np.linalg.norm(given - K) / np.linalg.norm(K))

    def values(self, x: Any) -> Array:
        """The outputs that regression begins from: zeros, the mean over starts."""
        return np.zeros((len(x), 1))


def _each(
    name: str, given: Any, count: int, check: Callable[[str, Any], float]
) -> tuple[float, ...]:
    """One number per layer."""
    numbers = (given,) * count if np.ndim(given) == 0 else tuple(given)
    if len(numbers) != count:
        raise Invalid(f"{name} must be one number or {count}, one per layer, got {len(numbers)}")
    return tuple(float(check(name, number)) for number in numbers)


def _not_negative(name: str, value: Any) -> float:
    if real(name, value) < 0:
        raise Invalid(f"{name} must not be negative, got {value:g}")
    return float(value)


@door
def infinite_kernel(model: Any, kind: str = "tangent") -> InfiniteKernel:
    """The kernel that a dense net has at infinite width, with its activation, depth and scales.

    Parameters
    ----------
    model
        `two_layer`, `relu_net` or `dense_net` of penchant.models, from Gaussian weights.
    kind
        "tangent", the kernel that trains the net, or "output", the covariance of outputs at the
        start.

    Returns
    -------
    InfiniteKernel
        The kernel, in which each layer counts with the width that the model has.

    Raises
    ------
    ValueError
        The kernel of this model is not known in closed form.

    References
    ----------
    .. [1] Jacot et al. (2018), Neural Tangent Kernel: Convergence and Generalization in Neural
       Networks.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> net = penchant.models.relu_net(3, 1000, alpha=1.0, start="gaussian")
    >>> X = np.random.default_rng(0).normal(size=(3, 5))
    >>> measured = penchant.measures.tangent_kernel(net, net.start(5), X)
    >>> penchant.measures.infinite_kernel(net).fluctuation(measured, X) < 0.2
    True
    """
    one_of("kind", kind, KINDS)
    recipe = getattr(model, "recipe", None) or {}
    read = READERS.get(recipe.get("is", ""))
    if read is None:
        name = recipe.get("is") or type(model).__name__
        raise Invalid(
            f"no closed form is known for {name}; take two_layer, relu_net or dense_net, or "
            "tangent_kernel(model, ...) for the kernel of this net itself"
        )
    return read(model, recipe, kind)


def _of_two_layer(model: Any, recipe: Any, kind: str) -> InfiniteKernel:
    sigma = recipe["activation"]
    if sigma not in MOMENTS:
        raise Invalid(
            f"no closed form is known for the activation {sigma!r}; take one of "
            f"{', '.join(MOMENTS)}, or tangent_kernel(model, ...) for this net itself"
        )
    variance = _scale(recipe, 1) ** 2
    biases = 0.0 if recipe["bias"] else None
    return InfiniteKernel(sigma, (recipe["width"],), weights=variance, biases=biases, kind=kind)


def _of_relu_net(model: Any, recipe: Any, kind: str) -> InfiniteKernel:
    widths = (recipe["width"],) * (recipe["depth"] - 1)
    if not widths:
        raise Invalid("a relu_net of depth 1 has no hidden layer; its kernel is X X^T itself")
    return _of_layers(recipe, widths, kind, 2 if recipe["unbiased"] else 1)


def _of_dense_net(model: Any, recipe: Any, kind: str) -> InfiniteKernel:
    # the outputs of the start are subtracted as numbers, which changes no gradient
    return _of_layers(recipe, tuple(np.atleast_1d(recipe["widths"]).tolist()), kind, 1)


def _of_layers(recipe: Any, widths: Sequence[int], kind: str, copies: int) -> InfiniteKernel:
    if recipe.get("start", "gaussian") != "gaussian":
        raise Invalid(
            f"the first layer must be Gaussian, got start={recipe['start']!r}; its sums have few "
            "terms, however wide the net is; make the model with start='gaussian'"
        )
    if kind == "output" and recipe.get("unbiased"):
        raise Invalid("an unbiased net begins at zero outputs; use kind='tangent'")
    depth = len(widths) + 1
    factors = np.broadcast_to(recipe.get("layers") or 1.0, (depth,))
    variances = 2 * (_scale(recipe, 1) * factors) ** 2
    return InfiniteKernel(
        "relu", tuple(widths), weights=tuple(variances.tolist()), kind=kind, copies=copies
    )


def _scale(recipe: Any, default: float) -> float:
    """The factor alpha of all weights."""
    if recipe.get("log_alpha") is not None:
        return float(np.exp(recipe["log_alpha"]))
    return float(recipe.get("alpha") or default)


READERS = {"two_layer": _of_two_layer, "relu_net": _of_relu_net, "dense_net": _of_dense_net}
