"""The distance from the start explains neither the bias of training nor its transition."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import L2, Q, interpolate
from penchant.lab import (
    Array,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    at_most,
    log_log,
    sized,
    within,
)
from penchant.models import LinearPredictor
from penchant.regularizers import R
from penchant_papers.endpoints import endpoint, trained
from penchant_papers.instances import Instance, by_instance, distance, random_instance, slope

ALPHA = 0.5  # at which R is compared as printed


def real_roots(z: float) -> Array:
    """The real roots of the quartic p_z(u), as printed above Figure 2."""
    roots = np.roots([1, -6, 12 - 2 * z**2, -(8 + 10 * z**2), z**2 + z**4])
    return np.sort(roots.real[np.abs(roots.imag) < 1e-6 * (1 + np.abs(roots))])


def shortest(z: float, alpha: float = 1.0) -> float:
    """min (w+ - alpha)^2 + (w- - alpha)^2 over w+^2 - w-^2 = z, by search in the parameters."""
    from scipy.optimize import minimize_scalar

    def moved(minus: float) -> float:
        plus = np.sqrt(abs(z) + minus**2)
        return (plus - alpha) ** 2 + (minus - alpha) ** 2

    best = minimize_scalar(
        moved, bounds=(0.0, 2 * alpha), method="bounded", options={"xatol": 1e-12}
    )
    return float(best.fun)


def nearest_parameters(p: Instance) -> Array:
    """F(argmin |w - alpha 1|^2 with zero loss), W eq. (8), by constrained search in w."""
    from scipy.optimize import minimize

    d = p.X.shape[1]

    def fit(w: Array) -> Array:
        return p.X @ (w[:d] ** 2 - w[d:] ** 2) - p.y

    def fit_jacobian(w: Array) -> Array:
        return np.hstack([2 * p.X * w[:d], -2 * p.X * w[d:]])

    minimum = minimize(
        lambda w: float(np.sum((w - p.alpha) ** 2)),
        np.full(2 * d, p.alpha) + 1e-3,
        jac=lambda w: 2 * (w - p.alpha),
        constraints={"type": "eq", "fun": fit, "jac": fit_jacobian},
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    return np.asarray(minimum.x[:d] ** 2 - minimum.x[d:] ** 2)


def cell(instance: int, seed: int) -> dict[str, Any]:
    """Distances of the solution of eq. (8) to argmin R, argmin Q, and training at two depths."""
    p = random_instance(instance, seed, samples=(2, 5), dimension=(6, 10), log10_alpha=(-1, -0.3))
    nearest = nearest_parameters(p)
    deeper = endpoint(p.X, p.y, alpha=p.alpha**0.5, depth=4).beta
    return {
        "to_R": distance(nearest, interpolate(p.X, p.y, R(alpha=p.alpha)).beta),
        "to_Q": distance(nearest, interpolate(p.X, p.y, Q(2, alpha=p.alpha)).beta),
        "to_training": distance(nearest, endpoint(p.X, p.y, alpha=p.alpha).beta),
        "deeper_training": distance(deeper, nearest),
    }


def linear(instance: int, seed: int) -> dict[str, float]:
    """Standard linear regression from a random start: its end, and the nearest solution to it."""
    p = random_instance(instance, seed)
    begin = p.alpha * p.shape
    move = np.linalg.lstsq(p.X, p.y - p.X @ begin, rcond=None)[0]
    end = trained(p.X, p.y, LinearPredictor(begin))
    return {
        "linear_to_R": distance(end.beta, begin + move),
        "linear_to_l2": distance(end.beta, interpolate(p.X, p.y, L2()).beta),
        "linear_misfit": end.residual,
    }


def values(points: int, seed: int) -> dict[str, Any]:
    """r at random points by four routes, R as printed, and how fast R and Q reach l1."""
    rng = np.random.default_rng(seed)
    z = 10 ** rng.uniform(-1.5, 2, points)
    beta = rng.normal(size=6)
    roots = [real_roots(v) for v in z]
    alphas, logs = np.geomspace(1e-2, 1e-6, 9), np.geomspace(1e2, 1e6, 9)  # logs of 1/alpha
    norm, near = np.abs(beta).sum(), -np.log(alphas)

    def gaps_Q(logs: Array) -> list[float]:
        """|Q/log(1/alpha^2)/|b|_1 - 1|."""
        return [abs(Q(2, log_alpha=-x)(beta) / (2 * x * norm) - 1) for x in logs]

    return {
        "r": [R(alpha=1.0)([v]) for v in z],
        "q": [Q(2, alpha=1.0)([v]) for v in z],
        "searched": [shortest(v) for v in z],
        "smallest_root": [candidates[0] for candidates in roots],
        "roots": [len(candidates) for candidates in roots],
        "roots_at_one": real_roots(1.0),
        "r_at_one": shortest(1.0),
        "searched_R": sum(shortest(b, ALPHA) for b in beta),
        "printed_R": R(alpha=1.0)(beta / ALPHA**2),
        "alpha": alphas,
        "gap_R": [abs(R(log_alpha=-x)(beta) / norm - 1) for x in near],
        "gap_Q": gaps_Q(near),
        "log_alpha": logs,
        "far_gap_Q": gaps_Q(logs),
    }


study = by_instance("W-R", cell, 3, printed=12, arguments={"seed": 8})
standard = by_instance("W-R-linear", linear, 20, tiny=4, printed=100, arguments={"seed": 9})
formulas = sized(
    "W-R-values",
    function=values,
    arguments={"points": 60, "seed": 4},
    dims={
        **{key: ["z"] for key in ("r", "q", "searched", "smallest_root", "roots")},
        "roots_at_one": ["root"],
        **{key: ["scale"] for key in ("alpha", "gap_R", "gap_Q")},
        **{key: ["log_scale"] for key in ("log_alpha", "far_gap_Q")},
    },
    printed={"arguments": {"points": 1000}},
)


def relative(one: DataArray, other: DataArray) -> float:
    return float(np.abs(one / other - 1).max())


def check(dataset: Dataset, standard: Dataset, formulas: Dataset) -> Evidence:
    """R against three other routes to it, against Q, and against training."""
    f, alphas = formulas, formulas.alpha.values
    R_is, R_printed = float(f.searched_R), float(f.printed_R)
    solved = within(dataset.to_R.max(), tolerance=1e-5)
    value = within(relative(f.r, f.searched), tolerance=1e-7)
    regression = within(standard.linear_to_R.max(), tolerance=1e-6)
    misfit = float(standard.linear_misfit.max())
    polynomial = within(slope(alphas, f.gap_R.values), 1.0, 0.05)
    logarithmic = within(slope(f.log_alpha.values, f.far_gap_Q.values), -1.0, 0.05)
    shared = {
        "$R$ against the shortest move found in the parameters": value,
        "$r(z)$ against the quartic's smallest real root": within(
            relative(f.smallest_root, f.r), tolerance=1e-5
        ),
        r"exponent of $|R/|b|_1 - 1|$ in $\alpha$": polynomial,
        r"exponent of $|Q/\log(1/\alpha^2)/|b|_1 - 1|$ in $\log(1/\alpha)$": logarithmic,
        r"distance of eq. (8), solved in the parameters, to $\operatorname{argmin} R$": solved,
        r"training at depth 4, same $\mu$: distance to the solution of eq. (8)": within(
            dataset.deeper_training.max(), tolerance=1e-5
        ),
        "standard linear regression, trained: distance to the solution nearest to its "
        "start": regression,
    }
    return Evidence(
        ran=f"$r$ at {f.sizes['z']} points by search in the parameters, by the quartic's roots "
        "and by $R$; eq. (8) solved in the parameters and training on the same problems; linear "
        f"regression trained from {standard.sizes['instance']} random starts",
        checks={
            **shared,
            "real roots of $p_z$ (printed: unique)": within(f.roots.max(), 1.0),
            r"$R$ as printed, $\sum r(b_i/\alpha^2)$, at $\alpha = 0.5$": within(
                R_printed / R_is - 1, tolerance=1e-7
            ),
        },
        corrected={
            **shared,
            "real roots of $p_z$": at_most(f.roots.max(), 2.0),
            r"$\alpha^2 \sum r(b_i/\alpha^2)$, at $\alpha = 0.5$": within(
                ALPHA**2 * R_printed / R_is - 1, tolerance=1e-7
            ),
        },
        correction=r"$R(\beta) = \alpha^2 \sum r(\beta_i/\alpha^2)$, and $r(z)$ is the smallest "
        "of the two real roots of $p_z$ (for $z = 0$ they are 0 and 2, the latter threefold)",
        counterexample={
            "$z$": 1.0,
            "real roots of $p_z$": f.roots_at_one.values,
            "$r(1)$ by search": float(f.r_at_one),
            r"$\sum r(b/\alpha^2)$ at $\alpha = 0.5$": R_printed,
            r"shortest move at $\alpha = 0.5$": R_is,
        },
        premises={"linear regression interpolates": (misfit < 1e-8, misfit)},
        controls={
            r"linear regression: the least $\ell_2$ norm (median)": regression.control(
                standard.linear_to_l2.median()
            ),
            r"$\operatorname{argmin} Q$ in place of $\operatorname{argmin} R$": solved.control(
                dataset.to_Q.median()
            ),
            r"training in place of $\operatorname{argmin} R$": solved.control(
                dataset.to_training.median()
            ),
            "$q(z)$ in place of $r(z)$": value.control(relative(f.q, f.searched)),
            r"exponent 2 for $R$, that of $\mu = \alpha^2$": polynomial.control(predicted=2.0),
            r"$Q$ approaches $\ell_1$ as fast as $R$": polynomial.control(
                slope(alphas, f.gap_Q.values)
            ),
            r"$R$ approaches $\ell_1$ as slowly as $Q$": logarithmic.control(
                slope(-np.log(alphas), f.gap_R.values)
            ),
        },
        findings=[
            r"$R$ of depth 2 is $Q$ of depth 4 at $\mu = \alpha^2$: both integrate the inverse of "
            "$(1 - s)^{-2} - (1 + s)^{-2}$. So the explicit bias of a shallow net is the "
            "implicit bias of one twice as deep, and training at depth 4 ends where eq. (8) "
            "says"
        ],
        plots=[
            log_log(
                "distance to the ℓ₁ norm, relative",
                r"$\alpha$",
                r"|regularizer / $\ell_1$ norm − 1|",
                [("$R$", alphas, f.gap_R), (r"$Q / \log(1/\alpha^2)$", alphas, f.gap_Q)],
                caption=r"$R$ approaches ℓ₁ like $\alpha$, $Q$ (divided by $\log 1/\alpha^2$) "
                r"only like $1/\log(1/\alpha)$.",
            )
        ],
    )


experiment = Experiment(
    "W-R",
    statement="The explicit regularizer $R$, the distance from the start, is algebraic and "
    r"differs from $Q$; it approaches the $\ell_1$ norm polynomially in $\alpha$, whereas $Q$ "
    r"needs an exponentially small $\alpha$. For standard linear regression the distance from the "
    "start is the bias.",
    place="section 4, eqs. (8), (9), the quartic $p_z$ and Figure 2",
    study=(study, standard, formulas),
    check=check,
    title="$R$ approaches the ℓ₁ norm polynomially, $Q$ only logarithmically",
)
