"""The regularizer of any separable reparametrization, derived and compared with training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penchant import L2, Q, derive, interpolate
from penchant.lab import Dataset, Evidence, Experiment, Plot, Series, sized, within
from penchant.models import Reparametrized
from penchant_papers.endpoints import trained
from penchant_papers.instances import distance, random_instance


def sinh(w: Any) -> Any:
    import jax.numpy as jnp

    return jnp.sinh(w)


UNEVEN = None  # a start that differs from coordinate to coordinate and from weight to weight
MAPS: dict[str, tuple[Callable[..., Any], float | None]] = {  # the last three are in no source
    "w^2": (lambda w: w**2, 0.3),
    "w^3": (lambda w: w**3, 0.4),
    "w^2 biased (footnote 2)": (lambda w: w**2, UNEVEN),
    "u v unbalanced": (lambda u, v: u * v, UNEVEN),
    "sinh w": (sinh, 1.0),
    "w + w^3": (lambda w: w + w**3, 0.2),
    "u v^2": (lambda u, v: u * v**2, UNEVEN),
}


def cell(function: str, instance: int, seed: int) -> dict[str, float]:
    """Distance of training to the derived minimiser and to plain l2, and its misfit."""
    p = random_instance(instance, seed, samples=(3, 4), dimension=(8, 10))
    dimension = p.X.shape[1]
    rng = np.random.default_rng((seed, instance, dimension))
    uneven = rng.uniform(0.2, 0.6, dimension), rng.uniform(0.7, 1.0, dimension)
    of, flat = MAPS[function]
    start = uneven if flat is UNEVEN else flat
    end = trained(p.X, p.y, Reparametrized(of, start))
    predicted = interpolate(p.X, p.y, derive(of, start)).beta
    return {
        "far": distance(end.beta, predicted),
        "far_l2": distance(end.beta, interpolate(p.X, p.y, L2()).beta),
        "residual": end.residual,
    }


def reproduction(depth: int, alpha: float) -> dict[str, float]:
    """Largest relative difference of derived value and gradient from Q, and from the other Q."""
    beta = np.concatenate([-np.geomspace(1e-3, 30, 12), np.geomspace(1e-3, 30, 12)])
    derived, q = derive(MAPS[f"w^{depth}"][0], alpha), Q(depth, alpha=alpha)
    slopes = derived.gradient(beta)
    other = Q(5 - depth, alpha=alpha).gradient(beta)
    return {
        "off": max(np.abs(slopes / q.gradient(beta) - 1).max(), abs(derived(beta) / q(beta) - 1)),
        "off_other": np.abs(slopes / other - 1).max(),
    }


study = sized(
    "W-GA",
    function=cell,
    arguments={"seed": 17},
    grid={"function": list(MAPS), "instance": [0]},
    printed={"grid": {"instance": list(range(8))}},
)
known = sized(
    "W-GA-known",
    function=reproduction,
    grid={"depth": [2, 3], "alpha": [0.05, 2.0]},
    printed={"grid": {"alpha": [0.05, 0.7, 2.0]}},
)


def shown(name: str) -> str:
    """The name of a map with its formula as LaTeX."""
    word = " unbalanced" if "unbalanced" in name else " biased"
    formula, mark, remark = name.replace("sinh", r"\sinh").partition(word)
    return f"${formula}${mark}{remark}"


def check(dataset: Dataset, known: Dataset) -> Evidence:
    """Training compared with the derived regularizer, and that regularizer compared with Q."""
    worst, plain = dataset.far.max("instance"), dataset.far_l2.median("instance")
    names, misfit = dataset.function.values, float(dataset.residual.max())
    end = within(worst.max(), tolerance=1e-6)
    reproduced = within(known.off.max(), tolerance=1e-8)
    return Evidence(
        ran=f"{len(names)} maps ({', '.join(map(shown, names))}) trained in the parameters on"
        f" {dataset.sizes['instance']} problem(s), each against the regularizer derived from the"
        " map alone",
        checks={
            "largest distance of the trained endpoint to the minimiser of the derived"
            " regularizer": end,
            "derived regularizer against $Q$ at $D = 2$ and 3, value and gradient": reproduced,
        },
        premises={"every trained endpoint interpolates": (misfit < 1e-8, misfit)},
        controls={
            r"plain $\ell_2$ (nearest map)": end.control(plain.min()),
            "the other depth": reproduced.control(known.off_other.min()),
        },
        findings=[
            f"{shown(name)}: distance {far:.1e}"
            for name, far in zip(names, worst.values, strict=True)
        ],
        plots=[
            Plot(
                "trained endpoints against the derived regularizer, by map",
                "; ".join(f"{k}: {shown(name)}" for k, name in enumerate(names)),
                "relative distance of the endpoint",
                [
                    Series(name, np.arange(len(names)), distances, "points")
                    for name, distances in (
                        ("derived regularizer", worst),
                        (r"plain $\ell_2$", plain),
                    )
                ],
                y_scale="log",
            )
        ],
    )


experiment = Experiment(
    "W-GA",
    statement=r"For a reparametrization $\beta = F(w)$ and its start, the regularizer $Q$ that "
    r"training minimises follows from solving the dynamics for $b$ and setting $\nabla Q = "
    "b^{-1}$.",
    place="section 4, 'a general approach for deriving the implicit bias'; footnote 2",
    study=(study, known),
    check=check,
    title="Training minimises the regularizer derived from its reparametrization",
    seconds=8,
)
