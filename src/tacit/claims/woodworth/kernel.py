"""W-K: the tangent kernel at a scaled start, and the predictor it leads to when alpha is large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.measures.kernels.tangent import kernel_predictor, tangent_kernel
from tacit.models.diagonal import DiagonalNet
from tacit.papers.endpoints import endpoint
from tacit.papers.instances import Instance, distance, instances, slope
from tacit.regularizers.norms import L2
from tacit.solvers.interpolate import interpolate
from tacit.studies.sizes import Size

Function = Callable[[Any, Any], Any]


def relu_net(width: int, seed: int) -> tuple[Function, list[Array], int]:
    """A two-layer ReLU net without biases as f(params, x), its parameters, and its homogeneity."""
    import jax.numpy as jnp

    rng = np.random.default_rng(seed)
    start = [rng.normal(size=(4, width)), rng.normal(size=(width, width)), rng.normal(size=width)]

    def net(params: list[Any], x: Any) -> Any:
        hidden = jnp.maximum(x @ params[0], 0)
        return jnp.maximum(hidden @ params[1], 0) @ params[2]

    return net, start, 3


def homogeneity_error(alpha: float, exponent: Callable[[int], float]) -> float:
    """Worst relative deviation of K at alpha w0 from alpha^exponent(D) K at w0, over models."""
    x = np.random.default_rng(3).normal(size=(5, 4))
    worst = 0.0
    for depth in (2, 3, 5):
        shape = np.array([0.7, -1.2, 1.5, 0.9])
        one, scaled = (
            DiagonalNet(depth, alpha=1.0, shape=shape),
            DiagonalNet(depth, alpha=alpha, shape=shape),
        )
        K0 = tangent_kernel(one, one.start(4), x)
        K = tangent_kernel(scaled, scaled.start(4), x)
        worst = max(worst, distance(K, alpha ** exponent(depth) * K0))
    net, start, D = relu_net(8, seed=1)
    K0 = tangent_kernel(net, start, x)
    K = tangent_kernel(net, [alpha * w for w in start], x)
    return max(worst, distance(np.asarray(K), alpha ** exponent(D) * np.asarray(K0)))


def affine_errors(alpha: float) -> tuple[float, float]:
    """Error of the affine model at its own start, with the bias term as printed and as meant."""
    rng = np.random.default_rng(2)
    x, w0 = rng.normal(size=(6, 4)), (rng.uniform(1, 2, 4), rng.uniform(0.3, 1, 4))
    net = DiagonalNet(2, start=(alpha * w0[0], alpha * w0[1]))
    at_start = net.predict(net.start(4), x)
    one = DiagonalNet(2, start=w0)
    meant = alpha**2 * one.predict(one.start(4), x)
    return distance(alpha**2 * at_start, at_start), distance(meant, at_start)


def approach(p: Instance, depth: int, alphas: Array) -> tuple[Array, Array, float]:
    """Distances of the trained predictor to the kernel predictor of its start and to plain l2,
    scale by scale, and the worst misfit of training."""
    plain = interpolate(p.X, p.y, L2()).beta
    right, wrong, misfits = [], [], []
    for alpha in alphas:
        model = DiagonalNet(depth, alpha=alpha, shape=p.shape)
        end = endpoint(p.X, p.y, alpha=alpha, depth=depth, shape=p.shape)
        right.append(distance(end.beta, kernel_predictor(model, p.X, p.y)))
        wrong.append(distance(end.beta, plain))
        misfits.append(end.residual)
    return np.array(right), np.array(wrong), max(misfits)


@claim(
    "W-K",
    statement="the tangent kernel at alpha w0 is alpha^(2D-2) K_0, it is 8 alpha^2 <x,x'> for"
    " the depth-2 net, and for large alpha training ends at its minimum-norm predictor",
    place="section 3; section 4 before Theorem 1",
    seconds=8,
)
def kernel_regime(size: Size) -> Evidence:
    scales = (0.03, 0.4, 7.0)
    scaling = max(homogeneity_error(a, lambda D: 2 * D - 2) for a in scales)
    wrong_scaling = min(homogeneity_error(a, lambda D: 2 * D) for a in scales)
    x = np.random.default_rng(0).normal(size=(6, 9))
    net = DiagonalNet(2, alpha=0.3)
    K = tangent_kernel(net, net.start(9), x)
    eight, four = (distance(K, c * 0.3**2 * x @ x.T) for c in (8, 4))
    p = instances(1, seed=21, samples=(4, 5), dimension=(12, 13))[0]
    alphas = {2: np.geomspace(2, 12, 5), 3: np.geomspace(1.5, 4, 5)}
    curves = {depth: approach(p, depth, grid) for depth, grid in alphas.items()}
    misfit = max(curve[2] for curve in curves.values())
    rates = {depth: slope(alphas[depth], curve[0]) for depth, curve in curves.items()}
    printed, meant = affine_errors(2.0)
    scale_check = Check("K(alpha w0) against alpha^(2D-2) K_0", scaling, tolerance=1e-10)
    eight_check = Check("K against 8 alpha² <x,x'>", eight, tolerance=1e-12)
    near = Check(
        "distance of training at the largest alpha to the kernel predictor",
        max(curve[0][-1] for curve in curves.values()),
        tolerance=1e-3,
    )
    shared = [
        scale_check,
        eight_check,
        near,
        Check("D = 2: exponent of that distance in alpha", rates[2], -4.0, tolerance=0.2),
        Check("D = 3: exponent of that distance in alpha", rates[3], -6.0, tolerance=0.3),
    ]
    return Evidence(
        ran="tangent kernels of diagonal nets (D = 2, 3, 5) and, by automatic differentiation, of a"
        " ReLU net of depth 3; training in the parameters at five scales for D = 2 and 3",
        checks=shared,
        proof=[
            Check(
                "affine model at its start, bias term alpha^D f(w(0),x) as printed",
                printed,
                tolerance=1e-10,
            )
        ],
        corrected=[
            Check("affine model at its start, bias term alpha^D f(w_0,x)", meant, tolerance=1e-10)
        ],
        correction="the bias term of f_K is f(w(0),x) = alpha^D f(w_0,x): the printed"
        " alpha^D f(w(0),x) counts the scale twice",
        counterexample={
            "alpha": 2.0,
            "D": 2,
            "relative error of the printed affine model at w(0)": printed,
        },
        premises={"every trained endpoint interpolates": (misfit < 1e-8, misfit)},
        controls={
            "exponent 2D in place of 2D-2": scale_check.control(wrong_scaling),
            "4 alpha² <x,x'>": eight_check.control(four),
            "plain l2 for a start that is not flat": near.control(
                min(curve[1][-1] for curve in curves.values())
            ),
        },
        plots=[
            Plot(
                "training approaches the kernel predictor of its start",
                "alpha",
                "relative distance",
                [
                    *(Series(f"D = {D}", alphas[D], curve[0]) for D, curve in curves.items()),
                    *(
                        Series(f"D = {D}, plain l2 (control)", alphas[D], curve[1], "dashed")
                        for D, curve in curves.items()
                    ),
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )
