"""ReLU nets on ten points of the circle: one run, and what the panels of Figure 6 measure."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.measures.kernels.machines import kernel_interpolant
from tacit.models.function import FunctionModel
from tacit.models.relu_net import relu_net
from tacit.models.tangent import gradient_distance
from tacit.precision import double_precision
from tacit.problems.circle import CircleTeacher, circle_teacher
from tacit.problems.regression import Regression
from tacit.records import NumericalError
from tacit.training.exact.tangent import TangentFlow
from tacit.training.path import Path
from tacit.training.record import At
from tacit.training.stop import Loss
from tacit.training.train import train

WIDTH = 30
RTOL, LOSS = 1e-2, 1e-9
STEP = 0.01  # of W's descent


@functools.lru_cache(maxsize=64)
def data(seed: int) -> CircleTeacher:
    return circle_teacher(seed=seed)


@functools.lru_cache(maxsize=16)
def net(depth: int, unbiased: bool) -> FunctionModel:
    """One model for all starts, so that its derivatives are compiled once."""
    return relu_net(depth, WIDTH, alpha=1.0, unbiased=unbiased)


def start(depth: int, scale: float, seed: int, unbiased: bool = True) -> FunctionModel:
    """The net of Figure 6 from alpha = scale^(1/depth): what its panels call alpha^D is `scale`."""
    return relu_net(depth, WIDTH, alpha=scale ** (1 / depth), seed=seed, unbiased=unbiased)


@functools.lru_cache(maxsize=256)
def features(depth: int, seed: int) -> Array:
    """The tangent features of a start with alpha = 1 at the training points."""
    return net(depth, True).jacobian(start(depth, 1.0, seed).start(2), data(seed).training.X)


def floor(depth: int, seed: int) -> float:
    """The loss at which the kernel regime rests: what of the labels no tangent feature reaches.

    Alpha only multiplies the features. Between two kinks the net is linear in its two inputs, so
    the features of three points there are dependent, and their labels need not be.
    """
    J = features(depth, seed)
    directions, sizes, _ = np.linalg.svd(J, full_matrices=False)
    beyond = directions[:, sizes <= np.finfo(float).eps * max(J.shape) * sizes[0]]
    return float(np.sum((beyond.T @ data(seed).training.y) ** 2))


def critical(depth: int, seed: int) -> float:
    """alpha^D above which descent with W's step is unstable at the start.

    Descent on the sum of squares needs step < 1 / lambda, and K grows as alpha^(2 (D - 1)).
    """
    free = 1 / (STEP * float(np.linalg.norm(features(depth, seed), 2)) ** 2)
    return float(free ** (depth / (2 * (depth - 1))))


@functools.cache
def tilted() -> Callable[..., Any]:
    """A compiled (function, parameters, direction, X) -> (f, its derivative in that direction)."""
    import jax

    def outputs(function: Any, parameters: Any, direction: Any, X: Any) -> Any:
        return jax.jvp(lambda w: function(w, X), (parameters,), (direction,))

    return jax.jit(outputs, static_argnums=0)


def on_circle(model: FunctionModel, at: Array, direction: Array, X: Array) -> tuple[Array, Array]:
    with double_precision():
        values, slopes = tilted()(model.function, at, direction, X)
    return np.asarray(values), np.asarray(slopes)


@functools.lru_cache(maxsize=1024)
def kernel_outputs(
    depth: int, scale: float, seed: int, unbiased: bool = True, drawn: int | None = None
) -> Array:
    """The outputs on the test grid of the kernel interpolant at the start.

    `drawn` is the seed of the start, that of the data by default.
    """
    problem = data(seed)
    begin = start(depth, scale, seed if drawn is None else drawn, unbiased).start(2)
    X, y = problem.training.X, problem.training.y
    machine = kernel_interpolant(net(depth, unbiased), X, y, start=begin)
    model, direction = net(depth, unbiased), machine.displacement * np.exp(-machine.log_unit)
    outputs, tilt = on_circle(model, begin, direction, problem.test.X)
    return outputs + tilt


def ended(
    depth: int,
    scale: float,
    seed: int,
    task: Regression,
    unbiased: bool = True,
    rtol: float = RTOL,
    loss: float = LOSS,
) -> Path:
    """The flow of one start to a sum of squares `loss`; raises where it does not get there.

    A long step may jump over the kink of a unit that was about to slide along it, and come to rest
    where the flow would not: then the run is made again with a tolerance ten times smaller.
    """
    model = start(depth, scale, seed, unbiased)
    for tolerance in (rtol, rtol / 10):
        flow = TangentFlow(rtol=tolerance)
        path = train(model, task, flow, stop=Loss(loss), record=At(times=[]))
        if path.outcome.ok:
            return path
    raise NumericalError(f"depth {depth}, alpha^D = {scale:g}, seed {seed}", path.outcome)


def turned(depth: int, scale: float, seed: int, end: Array, unbiased: bool = True) -> float:
    """The grad distance of Figure 6 (b): between the features of the start and those of the end."""
    begin, X = start(depth, scale, seed, unbiased).start(2), data(seed).training.X
    return gradient_distance(*(net(depth, unbiased).jacobian(w, X) for w in (begin, end)))


def trained(
    depth: int,
    scale: float,
    seed: int,
    unbiased: bool = True,
    rtol: float = RTOL,
    loss: float = LOSS,
) -> dict[str, float]:
    """What the panels show of one start; mean squares are in units of that of the teacher.

    `kernel_error` is the test error of the kernel predictor of the start, `apart` the root mean
    square of the trained net minus that predictor.
    """
    problem = data(seed)
    end = ended(depth, scale, seed, problem.training, unbiased, rtol, loss)
    still = np.zeros_like(end.parameters)
    outputs, _ = on_circle(net(depth, unbiased), end.parameters, still, problem.test.X)
    # K is only multiplied by a number as alpha grows: an output of zero leaves no trace of it
    kernel = kernel_outputs(depth, 1.0 if unbiased else scale, seed, unbiased)
    return {
        "test_error": problem.test_error(outputs),
        "grad_distance": turned(depth, scale, seed, end.parameters, unbiased),
        "kernel_error": problem.test_error(kernel),
        "apart": float(np.sqrt(np.mean((outputs - kernel) ** 2))),
        "steps": float(end.dataset.integrator_steps[-1]),
    }
