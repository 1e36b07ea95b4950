"""Section 3: starts with an output, and the interpolant nearest to it in the norm of the kernel."""

from __future__ import annotations

import numpy as np

from penchant import L2, DiagonalNet, FunctionModel, Regression, interpolate, train
from penchant.lab import DRAWS, Array, drawn, sized
from penchant.measures import kernel_machine, tangent_kernel
from penchant.methods import TangentFlow
from penchant.models import relu_net
from penchant.record import At
from penchant.stop import Loss
from penchant_papers.endpoints import trained
from penchant_papers.instances import distance, random_instance

LEAST = 0.01  # mean square of an output of order one


def from_bias(alpha: float, seed: int) -> dict[str, float]:
    """Distances of biased ends to the interpolant nearest to F(start) in the norm of the kernel.

    `far` is for a start whose predictor stays of order one as alpha grows, `far_unbiased` what
    leaves the bias out, and `far_scaled` for alpha w0 with F(w0) not 0.
    """
    p = random_instance(0, seed, samples=(4, 5), dimension=(12, 13))
    rng = np.random.default_rng((seed, 9))
    bias, w0 = rng.uniform(-1, 1, 12), rng.uniform(0.5, 1.5, (2, 12))
    bounded = DiagonalNet(2, start=(np.full(12, alpha), np.sqrt(alpha**2 - bias)))
    scaled = DiagonalNet(2, start=(alpha * w0[0], alpha * w0[1]))

    def far(net: DiagonalNet) -> float:
        end = trained(p.X, p.y, net).beta
        goal = np.asarray(kernel_machine(net, Regression(p.X, p.y)).predictor)
        return distance(end, goal)

    end = trained(p.X, p.y, bounded).beta
    return {
        "far": far(bounded),
        "far_unbiased": distance(end, interpolate(p.X, p.y, L2()).beta),
        "far_scaled": far(scaled),
    }


def biased_net(scale: float, seed: int, growing: bool = False) -> FunctionModel:
    """A ReLU net of two layers minus one from a nearby start, whose output at the start is not 0.

    Both starts are of size alpha with alpha^2 = scale, and apart by 1/alpha: their difference stays
    of order one as alpha grows. `growing` multiplies one start by alpha, so that it grows as
    alpha^2.
    """
    alpha = scale**0.5
    net = relu_net(2, 60, alpha=1.0, seed=seed, unbiased=True)
    first, second = np.split(net.start(3), 2)
    moved = second + np.random.default_rng((seed, 5)).normal(size=second.size) / (
        np.sqrt(30) * (1.0 if growing else scale)
    )
    start = alpha * np.concatenate([first, moved])
    return FunctionModel(net.function, start, homogeneity=2, name="relu_net")


def relu_bias(scale: float, seed: int) -> dict[str, float]:
    """`from_bias` for ReLU nets: distances between functions on new points, relative.

    `far_zero` is the distance to the interpolant of the same kernel that is nearest to 0, and
    `output` the mean square of the output at the start, that of the labels being 1; starts with
    less than LEAST are drawn again.
    """
    rng = np.random.default_rng((seed, 6))
    X, new = rng.normal(size=(6, 3)), rng.normal(size=(200, 3))
    y = rng.normal(size=6)
    problem = Regression(X, y / np.sqrt(np.mean(y**2)))

    def ends(model: FunctionModel) -> tuple[Array, Array]:
        flow = train(model, problem, TangentFlow(rtol=0.01), stop=Loss(1e-10), record=At(times=[]))
        return model.predict(flow.parameters, new), kernel_machine(model, problem).predict(new)

    def output(net: FunctionModel) -> float:
        return float(np.mean(net.predict(net.start(3), X) ** 2))

    model, _ = drawn(
        lambda number: biased_net(scale, number), lambda net: output(net) > LEAST, DRAWS * seed
    )
    start = model.start(3)
    end, nearest = ends(model)
    across = tangent_kernel(model, start, np.concatenate([new, X]))[len(new) :]
    zero = np.linalg.solve(across[:, len(new) :], problem.y) @ across[:, : len(new)]
    return {
        "far": distance(end, nearest),
        "far_zero": distance(end, zero),
        "far_growing": distance(*ends(biased_net(scale, seed, growing=True))),
        "output": output(model),
    }


biases = sized(
    "W-K-bias", function=from_bias, grid={"alpha": [4.0, 16.0]}, seeds=5, tiny={"seeds": 2}
)
relu_biases = sized(
    "W-K-relu-bias",
    function=relu_bias,
    grid={"scale": [1e2, 1e4]},
    seeds=24,
    tiny={"seeds": 11},
    printed={"seeds": 100},
)
