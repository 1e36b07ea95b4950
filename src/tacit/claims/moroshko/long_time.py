"""M-T2: trained for ever, the parameters point at a KKT point of the margin problem."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tacit.arguments import Array
from tacit.claims.moroshko.courses import course, off_support
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.measures.directions import angle
from tacit.models.diagonal import DiagonalNet
from tacit.models.linearized import Linearized
from tacit.models.model import Model, Separable
from tacit.models.product import ProductNet
from tacit.papers.instances import slope
from tacit.papers.moroshko2020.nets import QuadraticNet, SquareMinusProduct, signs_of_products
from tacit.problems.classification import Classification, separable_points, three_points
from tacit.regularizers.norms import L2, Lp
from tacit.solvers.max_margin import max_margin
from tacit.solvers.stationary import stationary_points
from tacit.studies.sizes import Size
from tacit.training.exact.parameter import ParameterFlow

CLOCK = np.geomspace(1e3, 1e8, 6)


def kkt_defect(problem: Classification, model: Model, u: Array, power: float = 1.0) -> float:
    """How far u, scaled to margin 1, is from u = sum_n lambda_n grad(y_n f_n), lambda >= 0.

    Only samples within 1% of the smallest margin may have a multiplier (complementarity). With
    `power` = 3 the left side is u^3: the gradient of |u|_4^4/4 in the place of |u|_2^2/2.
    """
    from scipy.optimize import nnls

    assert model.homogeneity is not None
    margins = problem.y * model.predict(u, problem.X)
    u = u / margins.min() ** (1 / model.homogeneity)
    gradients = problem.y[:, None] * model.jacobian(u, problem.X)
    goal = np.sign(u) * np.abs(u) ** power
    return float(nnls(gradients[margins <= 1.01 * margins.min()].T, goal)[1] / np.linalg.norm(goal))


def trained_to(model: Model, problem: Classification, margins: Array) -> Array:
    """Parameters of any model at these smoothed margins: du/dg = v/|v|^2, v the loss's pull."""
    from scipy.integrate import solve_ivp

    X, y = problem.X, problem.y

    def velocity(log_g: float, u: Array) -> Array:
        found = y * model.predict(u, X)
        weights = np.exp(found.min() - found)
        v = model.pullback(u, X, y * weights / weights.sum())
        return np.asarray(np.exp(log_g) * v / (v @ v))

    span = np.log(1e-6), float(np.log(margins[-1]))
    run = solve_ivp(
        velocity,
        span,
        model.start(problem.dimension),
        method="LSODA",
        t_eval=np.log(margins),
        rtol=1e-9,
        atol=1e-10,
    )
    if not run.success:
        raise RuntimeError(f"trained_to: {run.message}")
    return np.asarray(run.y.T)


def general_cases(size: Size) -> dict[str, tuple[Model, Classification]]:
    """Nets of four kinds on data of their own, all from alpha = 0.5 and with f = 0 there."""
    seeds = range(2 if size == "quick" else 6)
    found: dict[str, tuple[Model, Classification]] = {
        f"quadratic units, seed {s}": (QuadraticNet(0.5, s), signs_of_products(s)) for s in seeds
    }
    for s in seeds:
        data = separable_points(4 + s % 3, 5 + s % 4, margin=0.3, seed=s)
        start = np.full(data.dimension, 0.5)
        nets = {
            "u² - v w": SquareMinusProduct(0.5),
            "u v": ProductNet(start, 0 * start),
            "diagonal, D = 3": DiagonalNet(3, alpha=0.5),
        }
        found |= {f"{name}, seed {s}": (net, data) for name, net in nets.items()}
    return found


def defects(
    problem: Classification,
    depth: int,
    alpha: float,
    twin: Callable[[DiagonalNet], Separable] = lambda net: net,
) -> tuple[Array, Array]:
    """KKT defects of a diagonal net, or of what `twin` trains, and the last predictor.

    The clock counts in units of alpha^D where that is large: what is late depends on the start.
    """
    model, clock = DiagonalNet(depth, alpha=alpha), CLOCK * max(1.0, alpha**depth)
    path = course(problem, twin(model), clock.tolist(), ParameterFlow)
    reached = path.dataset.smoothed_margin.values
    rows = [int(np.abs(reached - g).argmin()) for g in clock]
    found = [kkt_defect(problem, model, u) for u in path.dataset.parameters.values[rows]]
    return np.array(found), path.predictor


def nearest(problem: Classification, beta: Array) -> tuple[float, Array]:
    """Degrees to the nearest local minimiser of the l_{2/3} margin problem, and which."""
    points = stationary_points(problem.X, problem.y, Lp(2 / 3))
    away = [float(angle(beta, point.beta)) for point in points]
    best = int(np.argmin(away))
    return away[best], points[best].beta


def general_fall(
    cases: dict[str, tuple[Model, Classification]],
) -> tuple[dict[str, float], dict[str, float]]:
    """KKT defects at smoothed margin 1e5 over those at 10, and the same for |u|_4."""
    found: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for name, (model, problem) in cases.items():
        first, last = trained_to(model, problem, np.array([10.0, 1e5]))
        for values, power in zip(found, (1.0, 3.0), strict=True):
            ends = [kkt_defect(problem, model, u, power) for u in (first, last)]
            values[name] = ends[1] / ends[0]
    return found


@claim(
    "M-T2",
    statement="for any fixed start, limit points of u/|u| are along KKT points of min |u|_2 with"
    " margins of at least 1, whose predictors are stationary for the l_{2/D} margin problem",
    place="section 2, Theorem 2 and eq. (4)",
    seconds=8,
)
def long_time(size: Size) -> Evidence:
    b, F4a, F4b = (three_points(name) for name in ("M-F3b", "M-F4a", "M-F4b"))
    alphas = (0.3, 1.0) if size == "quick" else (0.1, 0.3, 1.0, 3.0)
    runs = {(D, a): defects(b, D, a)[0] for D in (2, 3) for a in alphas}
    # what is off the support fades: u_2/u_1 ~ g^((z-1)/2) at D = 2, g^(-1/D) at D > 2
    predicted = {2: -(1 - off_support(b)) / 2, 3: -1 / 3}
    worst = {
        D: max((slope(CLOCK[3:], runs[D, a][3:]) - predicted[D] for a in alphas), key=abs)
        for D in (2, 3)
    }
    rates = [
        Check(
            f"M-F3b, D = {D}: exponent of the KKT defect in log(1/eps), less {predicted[D]:.4f}",
            worst[D],
            tolerance=0.01,
        )
        for D in (2, 3)
    ]
    random = {
        f"seed {s}": separable_points(3, 4, margin=0.3, seed=s)
        for s in range(2 if size == "quick" else 8)
    }
    ends = {
        (name, a): nearest(p, defects(p, 3, a)[1])
        for name, p, starts in (
            ("M-F4a", F4a, (1.0,)),
            ("M-F4b", F4b, (0.3, 0.5)),
            *((name, p, (0.5,)) for name, p in random.items()),
        )
        for a in starts
    }
    general, other = general_fall(general_cases(size))
    every = Check(
        "nets of four kinds on random data: largest KKT defect at loss e^-1e5 over that at e^-10",
        max(general.values()),
        0.2,
        kind="at most",
    )
    far = max(away for away, _ in ends.values())
    point = Check(
        "D = 3, loss e^-1e8: largest angle to a certified stationary point of l_{2/3}, degrees",
        far,
        tolerance=0.01,
    )
    two = [ends["M-F4b", a][1] for a in (0.3, 0.5)]
    differ = float(angle(two[0], two[1]))
    start = float(runs[2, 1.0][0])
    l2 = max_margin(F4b.X, F4b.y, L2()).beta
    return Evidence(
        ran=f"M-F3b at depths 2 and 3 from alpha = {', '.join(f'{a:g}' for a in alphas)}, M-F4a and"
        f" M-F4b and {len(random)} random sets at depth 3, all trained in the parameters to"
        f" log(1/eps) = 1e8; {len(general)} nets with quadratic units or of the form u² - v w,"
        " u v, u³ - v³ on random sets to 1e5",
        checks=[*rates, point, every],
        premises={"M-F4b ends at two points from two starts": (differ > 10, differ)},
        controls={
            "the l2 max margin of M-F4b": point.control(nearest(F4b, l2)[0]),
            "the linearized net on M-F3b, D = 2: the same exponent": rates[0].control(
                slope(CLOCK[3:], defects(b, 2, 1.0, Linearized)[0][3:]) - predicted[2]
            ),
            "|u|_4 in place of |u|_2, nets of four kinds": every.control(max(other.values())),
            "the end of M-F4b from alpha = 0.5 for that from 0.3": point.control(differ),
        },
        findings=[
            "the approach is slow: at D = 2 the defect of u falls like log(1/eps)^"
            f"{predicted[2]:.3f} = log(1/eps)^(-(1-z)/2), from {start:.2g} at log(1/eps) = 1e3 to"
            f" {runs[2, 1.0][-1]:.2g} at 1e8; at D = 3 like log(1/eps)^(-1/3)",
            "M-F4b at D = 3: alpha = 0.3 ends in the local minimum "
            f"{np.round(two[0], 3).tolist()}, alpha = 0.5 at {np.round(two[1], 3).tolist()}; the"
            " theorem promises no more than a KKT point",
            "KKT defect at loss e^-1e5 over that at e^-10: "
            + ", ".join(f"{value:.2g} ({name})" for name, value in general.items()),
        ],
        plots=[
            Plot(
                "M-F3b: KKT defect of the trained parameters",
                "smoothed margin log(1/eps)",
                "relative defect",
                [Series(f"D = {D}, alpha = {a:g}", CLOCK, v) for (D, a), v in runs.items()],
                x_scale="log",
                y_scale="log",
            )
        ],
    )
