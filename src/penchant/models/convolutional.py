"""Linear convolutional nets of full width, and the frequencies of their predictors.

How it works. A circular convolution multiplies spectra, so f(x) = <w_1 * ... * w_D, x> is linear in
x with a predictor whose spectrum is the product of those of the filters (Gunasekar et al. 2018).
Gradient flow acts on each frequency by itself, and conserves |W_l|^2 - |W_m|^2 there. From filters
that are alpha times a unit impulse all W_l of a frequency stay equal up to their phases, and the
spectrum B of the predictor obeys B' = -D |B|^(2 - 2/D) G with the spectrum G of the gradient.

On even inputs (x_j = x_(-j)) all spectra are real, and every frequency is a diagonal net of depth D
without negative weights. A frequency k that appears m_k times in d entries is as fast as a weight
that starts at sqrt(D m_k / d) alpha. So where the net ends is known exactly, from any alpha:
`frequency_net` is that diagonal net on the problem in frequencies. On other inputs
the phase of B turns too; no potential of B has this flow as its mirror flow then, since the metric
|B|^(2/D - 2) is the same along and across the phase.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer, log_scale, one_of
from penchant.description import with_recipe
from penchant.door import Invalid, door, door_as
from penchant.lazy import jnp
from penchant.models.diagonal import DiagonalNet
from penchant.models.function import FunctionModel
from penchant.problems.classification import Classification
from penchant.problems.regression import Regression
from penchant.records import Record

STARTS = ("gaussian", "impulse")
EVEN = 1e-9  # of the largest entry: a smaller odd part of a row is rounding


@dataclasses.dataclass(frozen=True)
class ConvolutionalFunction:
    """<w_1 * ... * w_D, x>; equal ones are equal, so that compiled code serves every start."""

    depth: int

    def __call__(self, parameters: Any, X: Any) -> Any:
        spectra = jnp.fft.fft(parameters.reshape(self.depth, -1))
        return X @ jnp.fft.ifft(jnp.prod(spectra, axis=0)).real


@with_recipe
@door
def convolutional_net(
    depth: int = 2,
    *,
    alpha: float | None = None,
    log_alpha: float | None = None,
    start: str = "gaussian",
    seed: int = 0,
) -> FunctionModel:
    """f(x) = <w_1 * ... * w_D, x> with D circular convolutions of filters as long as x.

    Parameters
    ----------
    depth
        The number of filters D, the last of which is a dense layer.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha.
    start
        Filters of alpha times Gaussian numbers ("gaussian"), or of alpha times a unit impulse
        ("impulse"), whose spectra are flat.
    seed
        The seed of all random numbers.

    Returns
    -------
    FunctionModel
        The net; `models.filters_predictor` is its linear predictor.

    References
    ----------
    .. [1] Gunasekar et al. (2018), Implicit Bias of Gradient Descent on Linear Convolutional
       Networks.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> net = penchant.models.convolutional_net(2, alpha=0.5, start="impulse")
    >>> net.predict(net.start(dimension=3), np.eye(3)).round(4)
    array([0.25, 0.  , 0.  ])
    """
    depth, seed = integer("depth", depth, least=1), integer("seed", seed, least=0)
    one_of("start", start, STARTS)
    scale = float(np.exp(log_scale(depth, alpha, log_alpha)))
    begin = functools.partial(_start, depth=depth, scale=scale, start=start, seed=seed)
    return FunctionModel(
        ConvolutionalFunction(depth), begin, homogeneity=depth, name="convolutional_net"
    )


def _start(dimension: int, *, depth: int, scale: float, start: str, seed: int) -> Array:
    if start == "impulse":
        return np.asarray(scale * np.tile(np.eye(dimension)[0], depth))
    return np.asarray(scale * np.random.default_rng(seed).normal(size=depth * dimension))


@door
def filters_predictor(parameters: ArrayLike, depth: int) -> Array:
    """beta = w_1 * ... * w_D, the linear predictor of a `convolutional_net`.

    Parameters
    ----------
    parameters
        The filters, flat as (w_1, ..., w_D).
    depth
        The number of filters D.

    Examples
    --------
    >>> import penchant
    >>> penchant.models.filters_predictor([1.0, 0.0, 0.0, 2.0, 3.0, 4.0], 2)
    array([2., 3., 4.])
    """
    flat = finite_array("parameters", parameters, ndim=1)
    depth = integer("depth", depth, least=1)
    if len(flat) % depth:
        raise Invalid(
            f"parameters must be {depth} filters with a whole number of entries each, got "
            f"{len(flat)} numbers"
        )
    return np.asarray(np.fft.ifft(np.prod(np.fft.fft(flat.reshape(depth, -1)), axis=0)).real)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class FrequencyNet(Record):
    """A convolutional net on even inputs as the diagonal net that it is, on frequencies.

    Attributes
    ----------
    problem
        The problem in frequencies: one feature per frequency that even inputs have.
    net
        The diagonal net without negative weights.
    sizes
        The spectrum of the predictor over the weights of `net`.
    dimension
        The number of entries of the inputs.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.Regression([[1.0, 2.0, 2.0]], [3.0])
    >>> seen = penchant.models.frequency_net(problem, 2, alpha=0.1)
    >>> seen.problem.X.shape, seen.predictor([1.0, 0.0]).round(3)
    ((1, 2), array([0.5, 0.5, 0.5]))
    """

    problem: Any
    net: DiagonalNet
    sizes: Array
    dimension: int

    @door_as("FrequencyNet")
    def predictor(self, weights: ArrayLike) -> Array:
        """The predictor of the convolutional net with these weights of frequencies."""
        given = finite_array("weights", weights, ndim=1)
        if given.shape != self.sizes.shape:
            raise Invalid(f"weights must have {len(self.sizes)} entries, got {len(given)}")
        return np.asarray(np.fft.irfft(self.sizes * given, self.dimension))


@door
def frequency_net(
    problem: Regression | Classification,
    depth: int = 2,
    *,
    alpha: float | None = None,
    log_alpha: float | None = None,
) -> FrequencyNet:
    """`convolutional_net(depth, start="impulse")` on even inputs, as a diagonal net on frequencies.

    Gradient flow of both is the same, at all times. The diagonal net has a regularizer,
    derive(lambda w: w**depth, net.start(...), signed=False), for `interpolate` and `max_margin`.

    Parameters
    ----------
    problem
        A Regression or a Classification with even rows, x_j = x_(d - j).
    depth
        The number of filters D.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha.

    Returns
    -------
    FrequencyNet
        The problem in frequencies, the diagonal net, and the way back to predictors.

    References
    ----------
    .. [1] Gunasekar et al. (2018), Implicit Bias of Gradient Descent on Linear Convolutional
       Networks.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.Regression([[1.0, 2.0, 2.0]], [3.0])
    >>> net = penchant.models.convolutional_net(2, alpha=0.1, start="impulse")
    >>> path = penchant.train(net, problem, penchant.ParameterFlow())
    >>> seen = penchant.models.frequency_net(problem, 2, alpha=0.1)
    >>> twin = penchant.train(seen.net, seen.problem, penchant.ParameterFlow())
    >>> beta = penchant.models.filters_predictor(path.parameters, 2)
    >>> bool(abs(seen.predictor(twin.predictor) - beta).max() < 1e-9)
    True
    """
    if not isinstance(problem, Regression | Classification):
        raise Invalid(
            f"problem must be a Regression or a Classification, got {type(problem).__name__}"
        )
    depth = integer("depth", depth, least=2)
    scale = float(np.exp(log_scale(depth, alpha, log_alpha)))
    X, dimension = problem.X, problem.dimension
    odd = np.abs(X - np.roll(X[:, ::-1], 1, axis=1)).max(initial=0.0)
    if odd > EVEN * np.abs(X).max(initial=0.0):
        raise Invalid(
            "X must have even rows, x_j = x_(d-j), or phases turn and there is no regularizer; got "
            f"an odd part of {odd / 2:.3g}; train convolutional_net(...) itself"
        )
    count = dimension // 2 + 1
    appears = np.full(count, 2.0)
    appears[0] = 1.0
    if dimension % 2 == 0:
        appears[-1] = 1.0
    size = np.sqrt(depth * appears / dimension)
    spectra = np.fft.rfft(X).real
    rows = spectra / (depth * size ** (depth - 2))
    seen = type(problem)(rows, problem.y, loss=problem.loss)
    net = DiagonalNet(depth, start=scale * size, signed=False)
    return FrequencyNet(seen, net, size**-depth, dimension)
