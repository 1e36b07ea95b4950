"""W-GA: the regularizer of any separable reparametrization, derived and then trained against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.models.reparametrized import Reparametrized
from tacit.papers.endpoints import trained
from tacit.papers.instances import Instance, distance, instances
from tacit.regularizers.derive import derive
from tacit.regularizers.norms import L2
from tacit.regularizers.q import Q
from tacit.solvers.interpolate import interpolate
from tacit.studies.sizes import Size


def maps(dimension: int) -> dict[str, tuple[Callable[..., Any], Any]]:
    """Reparametrizations with their starts; the last three are in no source."""
    import jax.numpy as jnp

    rng = np.random.default_rng(dimension)
    uneven = rng.uniform(0.2, 0.6, dimension), rng.uniform(0.7, 1.0, dimension)
    return {
        "w^2": (lambda w: w**2, 0.3),
        "w^3": (lambda w: w**3, 0.4),
        "w^2 biased (footnote 2)": (lambda w: w**2, uneven),
        "u v unbalanced": (lambda u, v: u * v, uneven),
        "sinh w": (lambda w: jnp.sinh(w), 1.0),
        "w + w^3": (lambda w: w + w**3, 0.2),
        "u v^2": (lambda u, v: u * v**2, uneven),
    }


def errors(p: Instance) -> dict[str, tuple[float, float, float]]:
    """name -> distance of training to the derived minimiser, to plain l2, and its misfit."""
    found = {}
    for name, (function, start) in maps(p.X.shape[1]).items():
        end = trained(p.X, p.y, Reparametrized(function, start))
        predicted = interpolate(p.X, p.y, derive(function, start)).beta
        wrong = interpolate(p.X, p.y, L2()).beta
        found[name] = distance(end.beta, predicted), distance(end.beta, wrong), end.residual
    return found


def reproduction() -> tuple[float, float]:
    """Largest relative difference of derived value and gradient from Q for D = 2 and 3; control."""
    beta = np.concatenate([-np.geomspace(1e-3, 30, 12), np.geomspace(1e-3, 30, 12)])
    right, wrong = [], []
    for depth, function in ((2, lambda w: w**2), (3, lambda w: w**3)):
        for alpha in (0.05, 0.7, 2.0):
            derived, q = derive(function, alpha), Q(depth, alpha=alpha)
            right.append(np.abs(derived.gradient(beta) / q.gradient(beta) - 1).max())
            right.append(abs(derived(beta) / q(beta) - 1))
            other = Q(5 - depth, alpha=alpha).gradient(beta)
            wrong.append(np.abs(derived.gradient(beta) / other - 1).max())
    return float(max(right)), float(min(wrong))


@claim(
    "W-GA",
    statement="from a reparametrization beta = F(w) and its start, solving the dynamics for b and"
    " inverting it, grad Q = b^-1, gives the regularizer that training minimises",
    place="section 4, 'a general approach for deriving the implicit bias'; footnote 2",
    seconds=20,
)
def general_approach(size: Size) -> Evidence:
    count = 1 if size == "quick" else 8
    problems = instances(count, seed=17, samples=(3, 4), dimension=(8, 10))
    runs = [errors(p) for p in problems]
    worst = {name: max(run[name][0] for run in runs) for name in runs[0]}
    plain = {name: float(np.median([run[name][1] for run in runs])) for name in runs[0]}
    misfit = max(run[name][2] for run in runs for name in run)
    same, other = reproduction()
    end = Check(
        "largest distance of training to the derived minimiser", max(worst.values()), tolerance=1e-6
    )
    reproduced = Check("derived against Q, D = 2 and 3, value and gradient", same, tolerance=1e-8)
    return Evidence(
        ran=f"{len(worst)} maps ({', '.join(worst)}) trained in the parameters on {count}"
        " problem(s), each against the regularizer derived from the map alone",
        checks=[end, reproduced],
        premises={"every trained endpoint interpolates": (misfit < 1e-8, misfit)},
        controls={
            "plain l2 (nearest map)": end.control(min(plain.values())),
            "the other depth": reproduced.control(other),
        },
        findings=[f"{name}: distance {value:.1e}" for name, value in worst.items()],
        plots=[
            Plot(
                "training against the derived regularizer, map by map",
                "map (in the order listed)",
                "relative distance of the endpoint",
                [
                    Series(name, np.arange(len(found)), list(found.values()), "points")
                    for name, found in (("derived regularizer", worst), ("plain l2", plain))
                ],
                y_scale="log",
            )
        ],
    )
