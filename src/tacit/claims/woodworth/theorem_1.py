"""W-T1: where depth-2 training ends, and the law that beta obeys on the way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tacit.arguments import Array
from tacit.claims.evidence import Check, Evidence
from tacit.claims.instances import Instance, distance, instances
from tacit.claims.plot import Plot, Series
from tacit.claims.registry import claim
from tacit.claims.training import endpoint, trace
from tacit.claims.verdict import Size
from tacit.models.diagonal import DiagonalNet
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.q import Q
from tacit.solvers.interpolate import interpolate

COUNTS = {"quick": 16, "full": 100}


def solved(p: Instance, q: Q) -> Array:
    return interpolate(p.X, p.y, q).beta


def law_error(p: Instance, predicted: Callable[[Array], Array], t_end: float) -> float:
    """Largest relative difference of beta(t), trained, from `predicted(X^T int_0^t r)`."""
    model = DiagonalNet(2, alpha=p.alpha, shape=p.shape)
    run = trace(p.X, p.y, model, t_end=t_end)
    beta = np.array([model.predictor(w) for w in run.parameters])
    law = np.array([predicted(z @ p.X) for z in run.impulse])
    return float(np.abs(beta - law).max() / np.abs(beta).max())


@claim(
    "W-T1",
    statement="gradient flow of w+^2 - w-^2 from alpha w0 ends at argmin Q_{alpha,w0}; on the way"
    " beta(t) is 2 alpha^2 w0^2 sinh of a combination of the rows of X",
    place="section 4, Theorem 1 (special and general case); appendix D, eq. (17)",
    seconds=10,
)
def theorem_1(size: Size) -> Evidence:
    problems = instances(COUNTS[size], seed=1)
    ends = [endpoint(p.X, p.y, alpha=p.alpha, shape=p.shape) for p in problems]
    misfit = max(e.residual for e in ends)
    targets = {
        "argmin Q": lambda p: Q(2, alpha=p.alpha, shape=p.shape),
        "all-ones shape": lambda p: Q(2, alpha=p.alpha),
        "sqrt(2) alpha, w+ and w- counted together": lambda p: Q(
            2, alpha=np.sqrt(2) * p.alpha, shape=p.shape
        ),
        "argmin l2": lambda p: L2(),
        "argmin l1": lambda p: L1(),
    }
    far = {
        name: np.array(
            [
                distance(e.beta, interpolate(p.X, p.y, make(p)).beta)
                for p, e in zip(problems, ends, strict=True)
            ]
        )
        for name, make in targets.items()
    }
    plain = [endpoint(p.X, p.y, alpha=p.alpha) for p in problems[:4]]
    special = max(
        distance(e.beta, solved(p, Q(2, alpha=p.alpha)))
        for p, e in zip(problems, plain, strict=False)
    )

    def law(p: Instance, factor: float) -> float:
        scale = 2 * (p.alpha * p.shape) ** 2
        return law_error(p, lambda z: scale * np.sinh(-factor * z), t_end=1.0)

    along = {factor: [law(p, factor) for p in problems[:6]] for factor in (2.0, 4.0, 8.0)}
    end = Check("largest distance to argmin Q, any shape", far["argmin Q"].max(), tolerance=1e-6)
    shared = [end, Check("the same, w0 = 1", special, tolerance=1e-6)]
    printed, mended = (
        Check(
            f"deviation from beta = 2 alpha² w0² sinh(-{f:g} X^T int r) on the way",
            max(along[f]),
            tolerance=1e-6,
        )
        for f in (4.0, 8.0)
    )
    return Evidence(
        ran=f"{len(problems)} problems with 2 to 7 samples and 10 to 24 features, alpha from 0.003"
        " to 3, signed shapes, trained in the parameters; 4 with w0 = 1; 6 followed along the way",
        checks=shared,
        proof=[printed],
        corrected=[mended],
        correction="with the loss sum r² eq. (15) reads w' = -4 X~^T r∘w, so (16) carries 4 and"
        " (17) carries 8 where 2 and 4 are printed; the theorem stands: the factor cancels",
        counterexample={
            "deviation of eq. (17) as printed": max(along[4.0]),
            "with 8": max(along[8.0]),
        },
        premises={"every trained endpoint interpolates": (misfit < 1e-8, misfit)},
        controls={
            **{
                f"{name} (median)": end.control(float(np.median(v)))
                for name, v in far.items()
                if name != "argmin Q"
            },
            "eq. (17) with 2": mended.control(float(np.median(along[2.0]))),
        },
        plots=[
            Plot(
                "trained endpoint against one right and four wrong predictions",
                "alpha",
                "relative distance",
                [
                    Series(name, [p.alpha for p in problems], np.maximum(v, 1e-16), "points")
                    for name, v in far.items()
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )
