"""ReLU nets on ten points of the circle: one run, and what the panels of Figure 6 measure."""

from __future__ import annotations

import functools
from typing import Any, cast

import numpy as np

from penchant import FunctionModel, Path, Regression, train
from penchant.lab import DRAWS, Array, drawn
from penchant.measures import gradient_distance
from penchant.methods import TangentFlow
from penchant.models import relu_net
from penchant.problems import CircleTeacher, circle_teacher
from penchant.record import At
from penchant.stop import Loss

WIDTH = 30
DEPTHS = (2, 3, 5)
RTOL, LOSS = 3e-2, 1e-9
STEP = 0.01  # the step of W's descent


@functools.lru_cache(maxsize=64)
def data(seed: int) -> CircleTeacher:
    return circle_teacher(seed=seed)


def start(depth: int, scale: float, seed: int, unbiased: bool = True) -> FunctionModel:
    """The net of Figure 6 from alpha = scale^(1/depth): what its panels call alpha^D is `scale`.

    It is a difference of two nets with equal starts. With the output of its start, the second one
    has weights zero: it has no gradient and stays zero, and what is compiled serves both.
    """
    net = relu_net(depth, WIDTH, alpha=scale ** (1 / depth), seed=seed, unbiased=True)
    if unbiased:
        return net
    first, second = np.split(net.start(2), 2)
    begin = np.concatenate([first, 0 * second])
    return FunctionModel(net.function, begin, homogeneity=depth, name="relu_net")


def gradients(model: FunctionModel, weights: Array, X: Array) -> Array:
    """The tangent features of a ReLU net, in NumPy: a row of gradients in the weights per sample.

    Layer by layer they are outer products, of which the model gives the factors.
    """
    layers = [
        (above[..., None] * below[..., None, :]).reshape(*below.shape[:2], -1)
        for below, above in cast(Any, model.function).factors(weights, X)
    ]
    return np.concatenate(list(np.concatenate(layers, axis=2)), axis=1)


def outputs_of(model: FunctionModel, weights: Array, X: Array, move: Array) -> Array:
    """`gradients(model, weights, X) @ move`, from the factors: the rows are never stored."""
    total, parts = np.zeros(len(X)), np.split(move, 2)
    begin = 0
    for below, above in cast(Any, model.function).factors(weights, X):
        rows, columns = above.shape[2], below.shape[2]
        end = begin + rows * columns
        for b, a, part in zip(below, above, parts, strict=True):
            total += ((a @ part[begin:end].reshape(rows, columns)) * b).sum(axis=1)
        begin = end
    return total


@functools.lru_cache(maxsize=256)
def features(depth: int, seed: int) -> Array:
    """The tangent features of a start with alpha = 1 at the training points."""
    model = start(depth, 1.0, seed)
    return gradients(model, model.start(2), data(seed).training.X)


def floor(depth: int, seed: int) -> float:
    """The least loss in the kernel regime: the part of the labels that no tangent feature reaches.

    Alpha only multiplies the features. Between two kinks the net is linear in its two inputs, so
    the features of three points there are dependent, and their labels need not be.
    """
    J = features(depth, seed)
    directions, sizes, _ = np.linalg.svd(J, full_matrices=False)
    beyond = directions[:, sizes <= np.finfo(float).eps * max(J.shape) * sizes[0]]
    return float(np.sum((beyond.T @ data(seed).training.y) ** 2))


@functools.lru_cache(maxsize=256)
def fitting(seed: int) -> tuple[int, int]:
    """The number of a draw whose labels every depth can fit in the kernel regime, and the tries."""
    fits = lambda number: all(floor(depth, number) <= LOSS for depth in DEPTHS)  # noqa: E731
    return drawn(int, fits, DRAWS * seed)


def critical(depth: int, seed: int) -> float:
    """alpha^D above which descent with W's step is unstable at the start.

    Descent on the sum of squares needs step < 1 / lambda, and K grows as alpha^(2 (D - 1)).
    """
    free = 1 / (STEP * float(np.linalg.norm(features(depth, seed), 2)) ** 2)
    return float(free ** (depth / (2 * (depth - 1))))


@functools.lru_cache(maxsize=1024)
def kernel_outputs(
    depth: int, scale: float, seed: int, unbiased: bool = True, other: int | None = None
) -> Array:
    """The outputs on the test grid of the kernel interpolant at the start.

    `other` is the seed of the start, that of the data by default.
    """
    problem, model = data(seed), start(depth, scale, seed if other is None else other, unbiased)
    begin, (X, y) = model.start(2), (problem.training.X, problem.training.y)
    misfit = y - model.function(begin, X)
    move = np.linalg.lstsq(gradients(model, begin, X), misfit, rcond=None)[0]
    grid = problem.test.X
    return np.asarray(model.function(begin, grid) + outputs_of(model, begin, grid, move))


def ended(
    depth: int,
    scale: float,
    seed: int,
    task: Regression,
    unbiased: bool = True,
    rtol: float = RTOL,
    loss: float = LOSS,
) -> Path:
    """The flow of one start to a sum of squares `loss`, or to where it comes to rest above it.

    A long step may jump over a kink along which the flow would slide, and stop where the flow would
    not: then the run is repeated with smaller tolerances. Where the smallest ends above its loss
    too, the outcome of the path says so.
    """
    model = start(depth, scale, seed, unbiased)
    for tolerance in (rtol, rtol / 3, rtol / 30, rtol / 300):
        flow = TangentFlow(rtol=tolerance)
        path = train(model, task, flow, stop=Loss(loss), record=At(times=[]))
        if path.outcome.ok:
            break
    return path


def turned(depth: int, scale: float, seed: int, end: Array, unbiased: bool = True) -> float:
    """The grad distance of Figure 6 (b): between the features of the start and those of the end."""
    model, X = start(depth, scale, seed, unbiased), data(seed).training.X
    return gradient_distance(*(gradients(model, w, X) for w in (model.start(2), end)))


def trained(
    depth: int,
    scale: float,
    seed: int,
    unbiased: bool = True,
    rtol: float = RTOL,
    loss: float = LOSS,
) -> dict[str, Any]:
    """What the panels show of one start; mean squares are in units of that of the teacher.

    `kernel_error` is the test error of the kernel predictor of the start, `apart` the root mean
    square of the trained net minus that predictor; `rests` says why training ended above its loss.
    """
    problem = data(seed)
    end = ended(depth, scale, seed, problem.training, unbiased, rtol, loss)
    outputs = start(depth, scale, seed, unbiased).function(end.parameters, problem.test.X)
    # alpha only multiplies K, and with zero output at the start it has no effect on the interpolant
    kernel = kernel_outputs(depth, 1.0 if unbiased else scale, seed, unbiased)
    return {
        "test_error": problem.test_error(outputs),
        "grad_distance": turned(depth, scale, seed, end.parameters, unbiased),
        "kernel_error": problem.test_error(kernel),
        "apart": float(np.sqrt(np.mean((outputs - kernel) ** 2))),
        "steps": float(end.dataset.integrator_steps[-1]),
        "rests": "" if end.outcome.ok else f"alpha^D = {scale:g}: {end.outcome.sentence}",
    }
