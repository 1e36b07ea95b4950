"""W-R: the distance from the start explains neither the bias of training nor its transition."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.papers.endpoints import endpoint
from tacit.papers.instances import Instance, distance, instances, slope
from tacit.regularizers.explicit import R
from tacit.regularizers.q import Q
from tacit.solvers.interpolate import interpolate
from tacit.studies.sizes import Size


def quartic(z: float) -> Array:
    """Coefficients of p_z(u), highest power first, as printed above Figure 2."""
    return np.array([1, -6, 12 - 2 * z**2, -(8 + 10 * z**2), z**2 + z**4])


def real_roots(z: float) -> Array:
    roots = np.roots(quartic(z))
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

    found = minimize(
        lambda w: float(np.sum((w - p.alpha) ** 2)),
        np.full(2 * d, p.alpha) + 1e-3,
        jac=lambda w: 2 * (w - p.alpha),
        constraints={"type": "eq", "fun": fit, "jac": fit_jacobian},
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    return np.asarray(found.x[:d] ** 2 - found.x[d:] ** 2)


@claim(
    "W-R",
    statement="the explicit R (distance from the start) is algebraic, is not Q, and reaches l1"
    " polynomially in alpha, where Q needs exponentially small alpha",
    place="section 4, eqs. (8), (9), the quartic p_z and Figure 2",
    seconds=6,
)
def explicit(size: Size) -> Evidence:
    rng = np.random.default_rng(4)
    z = 10 ** rng.uniform(-1.5, 2, 60 if size == "quick" else 1000)
    r = np.array([R(alpha=1.0)([v]) for v in z])
    brute = np.array([shortest(v) for v in z])
    counts = np.array([len(real_roots(v)) for v in z])
    smallest = np.array([real_roots(v)[0] for v in z])
    beta, alpha = rng.normal(size=6), 0.5
    measured_R = sum(shortest(b, alpha) for b in beta)
    printed_R = R(alpha=1.0)(beta / alpha**2)
    alphas, tiny = np.geomspace(1e-2, 1e-6, 9), np.geomspace(1e2, 1e6, 9)
    speed_R = slope(alphas, gaps_R(beta, -np.log(alphas)))
    speed_Q = slope(tiny, gaps_Q(beta, tiny))
    far = endpoints(3 if size == "quick" else 12)
    solved = Check(
        "distance of eq. (8), solved in the parameters, to argmin R", far[0], tolerance=1e-5
    )
    value = Check(
        "R against the shortest move found in the parameters", relative(r, brute), tolerance=1e-7
    )
    polynomial = Check("exponent of |R/|b|_1 - 1| in alpha", speed_R, 1.0, tolerance=0.05)
    logarithmic = Check(
        "exponent of |Q/log(1/alpha²)/|b|_1 - 1| in log(1/alpha)", speed_Q, -1.0, tolerance=0.05
    )
    shared = [
        value,
        Check(
            "r(z) against the quartic's smallest real root", relative(smallest, r), tolerance=1e-5
        ),
        polynomial,
        logarithmic,
        solved,
        Check(
            "training at depth 4, same mu: distance to the solution of eq. (8)",
            far[3],
            tolerance=1e-5,
        ),
    ]
    return Evidence(
        ran=f"r at {len(z)} points by search in the parameters, by the quartic's roots and by R;"
        " eq. (8) solved in the parameters and training on the same problems",
        checks=[
            *shared,
            Check("real roots of p_z (printed: unique)", counts.max(), 1.0),
            Check(
                "R as printed, sum r(b_i/alpha²), at alpha = 0.5",
                printed_R / measured_R - 1,
                tolerance=1e-7,
            ),
        ],
        corrected=[
            *shared,
            Check("real roots of p_z", counts.max(), 2.0, kind="at most"),
            Check(
                "alpha² sum r(b_i/alpha²), at alpha = 0.5",
                alpha**2 * printed_R / measured_R - 1,
                tolerance=1e-7,
            ),
        ],
        correction="R(beta) = alpha² sum r(beta_i/alpha²), and r(z) is the smallest of the two real"
        " roots of p_z (for z = 0 they are 0 and 2, the latter threefold)",
        counterexample={
            "z": 1.0,
            "real roots of p_z": real_roots(1.0),
            "r(1) by search": shortest(1.0),
            "sum r(b/alpha²) at alpha = 0.5": printed_R,
            "shortest move at alpha = 0.5": measured_R,
        },
        controls={
            "argmin Q in place of argmin R": solved.control(far[1]),
            "training in place of argmin R": solved.control(far[2]),
            "q(z) in place of r(z)": value.control(
                relative(np.array([Q(2, alpha=1.0)([v]) for v in z]), brute)
            ),
            "exponent 2 for R, that of mu = alpha²": polynomial.control(predicted=2.0),
            "Q as fast as R": polynomial.control(slope(alphas, gaps_Q(beta, -np.log(alphas)))),
            "R as slow as Q": logarithmic.control(
                slope(-np.log(alphas), gaps_R(beta, -np.log(alphas)))
            ),
        },
        findings=[
            "R of depth 2 is Q of depth 4 at mu = alpha²: both integrate the inverse of"
            " (1-s)^-2 - (1+s)^-2. So the explicit bias of a shallow net is the implicit bias of"
            " one twice as deep, and training at depth 4 ends where eq. (8) says"
        ],
        plots=[
            Plot(
                "distance to the l1 norm, relative",
                "alpha",
                "|regularizer / l1 norm − 1|",
                [
                    Series("R", alphas, gaps_R(beta, -np.log(alphas))),
                    Series("Q / log(1/alpha²)", alphas, gaps_Q(beta, -np.log(alphas))),
                ],
                x_scale="log",
                y_scale="log",
                caption="R reaches l1 like alpha, Q (divided by log 1/alpha²) only like 1/log.",
            )
        ],
    )


def relative(one: Array, other: Array) -> float:
    return float(np.max(np.abs(one / other - 1)))


def gaps_R(beta: Array, depth_of_start: Array) -> Array:
    """|R/|b|_1 - 1| at alpha = e^-x for x in `depth_of_start`."""
    norm = np.abs(beta).sum()
    return np.array([abs(R(log_alpha=-x)(beta) / norm - 1) for x in depth_of_start])


def gaps_Q(beta: Array, depth_of_start: Array) -> Array:
    """|Q/log(1/alpha^2)/|b|_1 - 1| at alpha = e^-x for x in `depth_of_start`."""
    norm = np.abs(beta).sum()
    return np.array([abs(Q(2, log_alpha=-x)(beta) / (2 * x * norm) - 1) for x in depth_of_start])


def endpoints(count: int) -> tuple[float, float, float, float]:
    """Distances of eq. (8)'s solution: to argmin R (worst), to argmin Q and to depth-2 training
    (medians), to depth-4 training (worst)."""
    right, wrong, trained, deeper = [], [], [], []
    for p in instances(count, seed=8, samples=(2, 5), dimension=(6, 10), log10_alpha=(-1, -0.3)):
        found = nearest_parameters(p)
        right.append(distance(found, interpolate(p.X, p.y, R(alpha=p.alpha)).beta))
        wrong.append(distance(found, interpolate(p.X, p.y, Q(2, alpha=p.alpha)).beta))
        trained.append(distance(found, endpoint(p.X, p.y, alpha=p.alpha).beta))
        deeper.append(distance(endpoint(p.X, p.y, alpha=p.alpha**0.5, depth=4).beta, found))
    return max(right), float(np.median(wrong)), float(np.median(trained)), max(deeper)
