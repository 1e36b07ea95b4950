"""Theorem 2: in infinite training the parameters tend to the direction of a KKT point."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import Classification, DiagonalNet, Path
from penchant.lab import (
    Array,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    at_most,
    log_log,
    margin_of_mean,
    sized,
    within,
)
from penchant.measures import angle, kkt_residual
from penchant.models import LinearPredictor, Model, linearize
from penchant.plotting import latex
from penchant.problems import separable_points, three_points
from penchant.regularizers import Lp
from penchant.solvers import stationary_points
from penchant_papers.instances import slope
from penchant_papers.moroshko2020.nets import signs_of_products
from penchant_papers.moroshko2020.stopping import (
    max_margin_of,
    names_of,
    off_support,
    points_of,
    rows_at,
    trained,
)
from penchant_papers.moroshko2020.theorem_1 import NETS, QUADRATIC, net_named

CLOCK = np.geomspace(1e3, 1e8, 6)
HALVED = 0.5  # between 0, where residuals tend to, and 1, where those of the kernel stay


def tangent_residual(problem: Classification, model: Model, u: Array) -> float:
    """The same of u - u(0) and the features of the start, with the margins of the net itself.

    It vanishes for the shortest displacement that separates the data to first order, the kernel's.
    """
    start = model.start(problem.dimension)
    features = Classification(model.jacobian(start, problem.X), problem.y)
    return kkt_residual(features, LinearPredictor(), u - start, outputs=model.predict(u, problem.X))


def trained_to(model: Model, problem: Classification, margins: Array) -> Array:
    """Parameters of any model at these smoothed margins: du/dg = v/|v|^2, v the loss's pull."""
    from scipy.integrate import solve_ivp

    X, y = problem.X, problem.y

    def velocity(log_g: float, u: Array) -> Array:
        own = y * model.predict(u, X)
        weights = np.exp(own.min() - own)
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


def long_path(
    problem: Classification, depth: int, alpha: float, linear: bool = False
) -> tuple[Path, Array]:
    """A diagonal net, or its linearized twin, trained to the end of CLOCK; and its own times.

    The times are in units of alpha^D where that is large: what is late depends on the start.
    """
    net, clock = DiagonalNet(depth, alpha=alpha), CLOCK * max(1.0, alpha**depth)
    return trained(problem, linearize(net) if linear else net, clock), clock


def cell(depth: int, alpha: float, *, linear: bool) -> dict[str, Any]:
    """KKT residuals along the training of a diagonal net on panel 3b."""
    problem, net = three_points("3b"), DiagonalNet(depth, alpha=alpha)
    path, clock = long_path(problem, depth, alpha, linear)
    late = path.dataset.parameters.values[rows_at(path.dataset, clock)]
    return {"defect": [kkt_residual(problem, net, u) for u in late]}


def end_cell(run: str, *, exponent: float, seed: int) -> dict[str, Any]:
    """Degrees from the end of a depth-3 net to the nearest certified local minimiser of l_p.

    `run` is the data and alpha; p is `exponent`, and for 1 there is one such minimiser, the l1 max
    margin. `l2_away` is the same for the l2 max margin.
    """
    points, alpha = run.split(", ")
    problem = points_of(points, 3, 4, margin=0.3, seed=seed)
    beta = long_path(problem, 3, float(alpha))[0].predictor
    if exponent == 1:
        minimisers = [max_margin_of(problem, "l1")]
    else:
        minimisers = [p.beta for p in stationary_points(problem.X, problem.y, Lp(exponent))]
    away, l2 = [float(angle(beta, point)) for point in minimisers], max_margin_of(problem, "l2")
    return {
        "away": min(away),
        "l2_away": min(float(angle(l2, point)) for point in minimisers),
        "nearest": minimisers[int(np.argmin(away))],
    }


def net_cell(net: str, seed: int, *, tangent: bool) -> dict[str, float]:
    """The KKT residual of a net at smoothed margin 1e5 over that at 10; and the kernel's.

    `tangent` puts the kernel's in place of the net's.
    """
    if net == QUADRATIC:
        problem = signs_of_products(seed)
    else:
        problem = separable_points(4 + seed % 3, 5 + seed % 4, margin=0.3, seed=seed)
    model = net_named(net, 0.5, problem.dimension, seed)
    first, last = trained_to(model, problem, np.array([10.0, 1e5]))
    own, kernel = (
        residual(problem, model, last) / residual(problem, model, first)
        for residual in (kkt_residual, tangent_residual)
    )
    return {"fall": kernel if tangent else own, "fall_tangent": kernel}


study = sized(
    "M-T2",
    function=cell,
    arguments={"linear": False},
    grid={"depth": [2, 3], "alpha": [1.0]},
    dims={"defect": ["clock"]},
    printed={"grid": {"alpha": [0.1, 0.3, 1.0, 3.0]}},
)
linearized = sized(
    "M-T2-linearized",
    function=cell,
    arguments={"linear": True},
    grid={"depth": [2], "alpha": [1.0]},
    dims={"defect": ["clock"]},
)
PANELS = ["4a, 1", "4b, 0.3", "4b, 0.5"]
ends = sized(
    "M-T2-ends",
    function=end_cell,
    arguments={"exponent": 2 / 3, "seed": 0},
    grid={"run": PANELS},
    dims={"nearest": ["feature"]},
    printed={"grid": {"run": [*PANELS, *(f"{name}, 0.5" for name in names_of(8))]}},
)
nets = sized(
    "M-T2-nets",
    function=net_cell,
    arguments={"tangent": False},
    grid={"net": list(NETS)[1:]},
    seeds=16,
    printed={"seeds": 40},
)


def check(dataset: Dataset, linearized: Dataset, ends: Dataset, nets: Dataset) -> Evidence:
    """The rate at which the KKT residual falls, the end points at depth 3, and other nets."""
    # what is off the support fades: u_2/u_1 ~ g^((z-1)/2) at D = 2, g^(-1/D) at D > 2
    predicted = {2: -(1 - off_support(three_points("3b"))) / 2, 3: -1 / 3}

    def rate(row: DataArray) -> float:
        return slope(CLOCK[3:], row.values[3:]) - predicted[int(row.depth)]

    alphas = dataset.alpha.values
    runs = {(D, a): dataset.defect.sel(depth=D, alpha=a) for D in (2, 3) for a in alphas}
    rates = {
        rf"panel 3b, $D = {D}$: exponent of the KKT residual in $\log(1/\epsilon)$, minus "
        f"{predicted[D]:.4f}": within(
            max((rate(runs[D, a]) for a in alphas), key=abs), tolerance=0.01
        )
        for D in (2, 3)
    }
    logs = [np.log(row.values) for row in nets.fall.transpose("net", "seed")]
    every = at_most(max(np.exp(row.mean() + margin_of_mean(row)) for row in logs), HALVED)
    drawn = ends.away.drop_sel(run=PANELS).values
    typical = [np.median(drawn)] if drawn.size else []  # slow where two points nearly tie
    point = within(max(*ends.away.sel(run=PANELS).values, *typical), tolerance=0.01)
    two = [ends.nearest.sel(run=run).dropna("feature").values for run in PANELS[1:]]
    differ = float(angle(two[0], two[1]))
    slow = runs[2, 1.0].values
    first_rate = next(iter(rates.values()))
    return Evidence(
        ran=rf"panel 3b at depths 2 and 3 from $\alpha$ = {', '.join(f'{a:g}' for a in alphas)}, "
        f"panels 4a and 4b and {ends.sizes['run'] - len(PANELS)} random sets at depth 3, all "
        rf"trained in the parameters to $\log(1/\epsilon) = 10^8$; {nets.fall.size} nets with "
        "quadratic units or of the form $u^2 - v w$, $u v$, $u^3 - v^3$ on random sets to "
        "$10^5$",
        checks={
            **rates,
            r"$D = 3$, loss $e^{-10^8}$: angle to a certified stationary point of $\ell_{2/3}$, "
            "degrees, largest of the panels and of the median over random sets": point,
            "nets of four kinds: KKT residual at loss $e^{-10^5}$ over that at $e^{-10}$, "
            "geometric mean over random data, worst kind (0.999 upper limit)": every,
        },
        premises={"panel 4b ends at two points from two starts": (differ > 10, differ)},
        controls={
            r"the $\ell_2$ max margin of panel 4b": point.control(ends.l2_away.sel(run=PANELS[1])),
            "the linearized net on panel 3b, $D = 2$: the same exponent": first_rate.control(
                rate(linearized.defect.isel(depth=0, alpha=0))
            ),
            "$u - u(0)$ and the features of the start, quadratic units: the median": (
                every.control(nets.fall_tangent.sel(net=QUADRATIC).median())
            ),
            r"the endpoint of panel 4b from $\alpha = 0.5$ in place of that from "
            "0.3": point.control(differ),
        },
        findings=[
            "the approach is slow: at $D = 2$ the defect of $u$ falls like "
            rf"$\log(1/\epsilon)^{{{predicted[2]:.3f}}} = \log(1/\epsilon)^{{-(1-z)/2}}$, "
            rf"from {slow[0]:.2g} at $\log(1/\epsilon) = 10^3$ to {slow[-1]:.2g} at $10^8$; "
            r"at $D = 3$ like $\log(1/\epsilon)^{-1/3}$",
            r"panel 4b at $D = 3$: $\alpha = 0.3$ ends in the local minimum "
            rf"{np.round(two[0], 3).tolist()}, $\alpha = 0.5$ at "
            f"{np.round(two[1], 3).tolist()}; the theorem guarantees only a KKT point",
            "KKT residual at loss $e^{-10^5}$ over that at $e^{-10}$, median and largest: "
            + ", ".join(
                f"{float(values.median()):.2g}, {float(values.max()):.2g} ({values.net.item()})"
                for values in nets.fall.transpose("net", "seed")
            ),
        ],
        plots=[
            log_log(
                "panel 3b: KKT residual of the trained parameters",
                r"smoothed margin $\log(1/\epsilon)$",
                "relative defect",
                [
                    *(
                        (rf"$D = {D}$, $\alpha = {latex(a)}$", CLOCK, v)
                        for (D, a), v in runs.items()
                    ),
                    ("linearized, $D = 2$", CLOCK, linearized.defect.values.ravel(), "dashed"),
                ],
            )
        ],
    )


experiment = Experiment(
    "M-T2",
    statement="For any fixed start, limit points of $u/|u|$ are directions of KKT points of min "
    "$|u|_2$ subject to margins of at least 1; at depth 3 the predictors that training ends at are "
    r"stationary for the $\ell_{2/3}$ margin problem.",
    place="section 2, Theorem 2 and eq. (4)",
    study=(study, linearized, ends, nets),
    check=check,
    title="In the limit of infinite training, the parameters point to a KKT point of the margin"
    " problem",
    ours="the nets and the data sets",
    seconds=2,
)
