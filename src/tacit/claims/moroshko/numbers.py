"""M-num: the training accuracies that section 5 and appendix H.1 quote, read off trained runs.

The source turns mu into a loss by log(1/eps) = alpha^2/mu, which defines mu and measures nothing.
What is measured here is how far training must go until its direction is as near to the l1 max
margin as the square of that mu, argmin Q_mu, is.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.measures import directions
from tacit.models.diagonal import DiagonalNet
from tacit.papers.instances import slope
from tacit.problems.classification import Classification, three_points
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.q import Q
from tacit.solvers.max_margin import max_margin
from tacit.studies.sizes import Size
from tacit.training.descent.methods import NormalizedDescent
from tacit.training.exact.dual.flow import DualFlow
from tacit.training.exact.parameter import ParameterFlow
from tacit.training.record import At, LogSpaced
from tacit.training.stop import LogLoss, Scale, Steps
from tacit.training.train import train

#: (alpha, mu) -> (digits of precision as printed, half a unit of its last digit)
PRINTED = {
    (100.0, 0.5): (8700.0, 50.0),
    (100.0, 0.001): (4e6, 5e5),
    (1.0, 0.001): (434.0, 0.5),
}
STEPS = {"quick": 4e-5, "full": 4e-6}  # of normalized descent
ALPHAS = np.array([1.0, 3.0, 10.0, 100.0])
SQUARES = (0.5, 0.001)  # mu of the first and the last square of Figure 3(b)
AROUND = np.geomspace(0.8, 1.25, 31)


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """Trained predictors of one data set from one alpha, by smoothed margin."""

    problem: Classification
    alpha: float
    smoothed_margin: Array
    predictor: Array

    def at(self, g: float) -> Array:
        """The predictor at the recorded smoothed margin `g`."""
        k = int(np.abs(self.smoothed_margin / g - 1).argmin())
        if abs(self.smoothed_margin[k] / g - 1) > 1e-7:  # ten times the rtol of the runs
            raise RuntimeError(f"numbers: the smoothed margin {g:g} was not recorded")
        return np.asarray(self.predictor[k])

    def nearest(self, direction: Array) -> tuple[float, float]:
        """The smoothed margin where the angle to `direction` is least, and that angle."""
        angles = directions.angle(self.predictor, direction)
        k = int(angles.argmin())
        if not 0 < k < len(angles) - 1:
            raise RuntimeError("numbers: the nearest point is at an end of the run")
        x, y = np.log(self.smoothed_margin[k - 1 : k + 2]), angles[k - 1 : k + 2] ** 2
        a, b, _ = np.polyfit(x - x[1], y, 2)
        return float(np.exp(x[1] - b / (2 * a))), float(angles[k])

    def reaches(self, direction: Array, angle: float) -> float:
        """The smoothed margin from which on `direction` is at most `angle` degrees away."""
        angles = directions.angle(self.predictor, direction)
        k = int(np.flatnonzero(angles > angle)[-1])
        if k == len(angles) - 1:
            raise RuntimeError(f"numbers: {angle:g} degrees are not reached by the end of the run")
        x, y = np.log(self.smoothed_margin[k : k + 2]), np.log(angles[k : k + 2])
        return float(np.exp(np.interp(-np.log(angle), -y, x)))


def trained(
    problem: Classification,
    alpha: float,
    g: list[float],
    *,
    flow: type[DualFlow] | type[ParameterFlow] = DualFlow,
) -> Run:
    """Depth 2 from `alpha`, recorded at the smoothed margins `g` and log-spaced up to the last."""
    stop, record = LogLoss(-max(g)), [LogSpaced(12), At(margins=g)]
    net = DiagonalNet(2, alpha=alpha)
    path = train(net, problem, flow(rtol=1e-8), stop=stop, record=record)
    if not path.outcome.ok:
        raise RuntimeError(f"numbers: alpha = {alpha:g}: {path.outcome}")
    return _recorded(problem, alpha, path)


def _recorded(problem: Classification, alpha: float, path: Any) -> Run:
    data = path.dataset.isel(time=slice(1, None))
    found = (np.asarray(data[name].values) for name in ("smoothed_margin", "predictor"))
    return Run(problem, alpha, *found)


def angle(one: Array, other: Array) -> float:
    """Degrees between two directions."""
    return float(directions.angle(one, other))


def l1_excess(problem: Classification, predictor: Array) -> float:
    """|w|_1 per unit of margin over the least possible, minus one."""
    least = np.abs(max_margin(problem.X, problem.y, L1()).beta).sum()
    margin = (problem.signed_rows @ predictor).min()
    return float(np.abs(predictor).sum() / margin / least - 1)


@claim(
    "M-num",
    statement="alpha = 100 leaves the l2 max margin (mu = 0.5) at loss 10^-8700 and comes near the"
    " l1 one (mu = 0.001) at about 10^-4000000, alpha = 1 at 10^-434; around the l2 predictor"
    " log(1/loss) is alpha^2; alpha = 100 is close to l1 at exp(-10^8), alpha = 0.001 at exp(-0.1)",
    place="section 5, text on Figure 3(b); appendix H.1",
    seconds=4,
)
def numbers(size: Size) -> Evidence:
    b, c = three_points("M-F3b"), three_points("M-F3c")
    l1, l2 = (max_margin(b.X, b.y, norm).beta for norm in (L1(), L2()))
    arc = angle(l1, l2)
    squares = {mu: angle(max_margin(b.X, b.y, Q(2, mu=mu)).beta, l1) for mu in SQUARES}
    runs = {
        a: trained(b, a, [*(a**2 / mu * f for mu in SQUARES for f in AROUND), a**2 / 0.5])
        for a in ALPHAS
    }
    needed = {(a, mu): run.reaches(l1, squares[mu]) for a, run in runs.items() for mu in SQUARES}
    read = [
        Check(
            f"alpha = {a:g}: digits of the loss where training is as near to l1 as the square"
            f" mu = {mu:g}",
            needed[a, mu] / np.log(10),
            *printed,
        )
        for (a, mu), printed in PRINTED.items()
    ]
    late = excesses(runs, l1, Q(2, mu=0.001))
    excess_rate = Check(
        "exponent in alpha of log(1/loss)/(alpha²/mu) - 1 at the square mu ="
        " 0.001, alpha = 1 to 100",
        slope(ALPHAS, late),
        -2.0,
        tolerance=0.05,
    )
    end = runs[100.0].at(2e4)
    removed = Check(
        "alpha = 100, mu = 0.5: share of the arc from l2 to l1",
        angle(end, l2) / arc,
        0.02,
        kind="at most",
    )
    visits = closest(b, l2)
    passed = [
        Check(
            f"alpha = {a:g}: share of the arc from l2 at gtilde = alpha²",
            angle(run.at(a**2), l2) / arc,
            0.02,
            kind="at most",
        )
        for a, (run, _, _) in visits.items()
    ]
    left = Check(
        "alpha = 100: the angle to l2 at mu = 0.5 over the least on the way",
        angle(end, l2) / visits[100.0][2],
        10.0,
        kind="at least",
    )
    rate = Check(
        "exponent in alpha of the gtilde nearest to l2 (ours)",
        visit_rate(visits),
        4 / 3,
        tolerance=0.05,
    )
    rich = {a: trained(c, a, g) for a, g in ((100.0, [1e4, 1e8]), (0.001, [1e-4, 0.1]))}
    excess = {
        (a, g): l1_excess(c, rich[a].at(g)) for a, g in ((100.0, 1e4), (100.0, 1e8), (0.001, 0.1))
    }
    near_l1 = [
        Check(
            f"M-F3c, alpha = {a:g}: excess l1 norm at gtilde = {g:g}",
            excess[a, g],
            0.01,
            kind="at most",
        )
        for a, g in ((100.0, 1e8), (0.001, 0.1))
    ]
    route, steps = descended(b, STEPS[size])
    again = Check(
        "alpha = 1: log(1/loss) at the square mu = 0.001 by normalized descent, over that"
        " of the flow",
        route.reaches(l1, squares[0.001]) / needed[1.0, 0.001],
        1.0,
        tolerance=0.002,
    )
    twin = angle(trained(b, 100.0, [2e4], flow=ParameterFlow).at(2e4), end)
    stay = [removed, left, *passed, rate, *near_l1]
    return Evidence(
        ran="M-F3b and M-F3c (our points) trained at depth 2: alpha = 1 to 100 beyond mu = 0.001,"
        " to loss e^-12500000, alpha = 1000, 10000 and 0.001; the loss is read where the trained"
        f" direction is as near to l1 as argmin Q_mu; alpha = 1 again by {steps} steps of"
        " normalized descent",
        checks=[*read, again, *stay],
        corrected=[*read[:2], excess_rate, again, *stay],
        correction="10^-434 is exp(-alpha²/mu) for alpha = 1 and mu = 0.001, the definition of mu;"
        " to come as near to l1 as the square mu = 0.001 training needs log(1/loss) = alpha²/mu"
        f" plus a constant, {1000 * late[0]:.0f} on these points: nothing at alpha = 100, but"
        f" 10^-{needed[1.0, 0.001] / np.log(10):.0f} at alpha = 1",
        counterexample={
            "alpha = 1: digits as near to l1 as the square mu = 0.001": needed[1.0, 0.001]
            / np.log(10),
            "printed": PRINTED[1.0, 0.001][0],
            "degrees from l1": squares[0.001],
            "degrees from l1 at log(1/loss) = alpha²/mu": angle(runs[1.0].at(1000.0), l1),
        },
        premises={
            "flows in the parameters and in the dual agree at mu = 0.5 (degrees)": (
                twin < 1e-5,
                twin,
            ),
        },
        controls={
            "a loss that does not depend on the start: alpha = 10 in place of 100": read[0].control(
                needed[10.0, 0.5] / np.log(10)
            ),
            "the square of depth 3 in place of that of depth 2 (mu = 0.5)": read[0].control(
                runs[100.0].reaches(l1, angle(max_margin(b.X, b.y, Q(3, mu=0.5)).beta, l1))
                / np.log(10)
            ),
            "the square of a mu 5% smaller": excess_rate.control(
                slope(ALPHAS, excesses(runs, l1, Q(2, mu=0.00095)))
            ),
            "mu = 0.001 just removed from l2": removed.control(
                angle(runs[100.0].at(1e7), l2) / arc
            ),
            "nearest to the square mu = 0.5 in place of l2": rate.control(
                slope(ALPHAS[1:], np.array([needed[a, 0.5] for a in ALPHAS[1:]]))
            ),
            "M-F3c, alpha = 100 at gtilde = 1e4": near_l1[0].control(excess[100.0, 1e4]),
        },
        findings=[
            "log(1/loss) where training is as near to l1 as the square, over alpha²/mu: "
            + ", ".join(
                f"{g / (a**2 / mu):.5f} (alpha = {a:g}, mu = {mu:g})"
                for (a, mu), g in needed.items()
            ),
            f"at mu = 0.5 the direction is {angle(end, l2):.3f} degrees from l2 and at"
            f" mu = 0.001 still {angle(runs[100.0].at(1e7), l1):.2f} from l1 (alpha = 1:"
            f" {angle(runs[1.0].at(1000.0), l1):.2f}), of {arc:.1f} degrees between the two",
            visited(visits),
            "M-F3c: excess l1 norm "
            + ", ".join(
                f"{value:.1e} (alpha = {a:g}, gtilde = {g:g})" for (a, g), value in excess.items()
            ),
        ],
        plots=[journey(visits, l2)],
    )


def excesses(runs: dict[float, Run], l1: Array, square: Q) -> Array:
    """log(1/loss)/(alpha^2/0.001) - 1 where each run is as near to l1 as the max margin of Q."""
    b = next(iter(runs.values())).problem
    goal = angle(max_margin(b.X, b.y, square).beta, l1)
    return np.array([run.reaches(l1, goal) / (a**2 / 0.001) - 1 for a, run in runs.items()])


Visits = dict[float, tuple[Run, float, float]]


def closest(problem: Classification, l2: Array) -> Visits:
    """For each alpha the run up to alpha^2, the smoothed margin nearest to l2, and the angle."""
    found = {}
    for alpha in (100.0, 1000.0, 10000.0):
        run = trained(problem, alpha, [alpha**2])
        found[alpha] = (run, *run.nearest(l2))
    return found


def visit_rate(visits: Visits) -> float:
    return slope(np.array(list(visits)), np.array([g for _, g, _ in visits.values()]))


def visited(visits: Visits) -> str:
    """Where the flow is nearest to l2, against the alpha^2 of appendix H.1."""
    seen = ", ".join(
        f"{g:.3g} ({apart:.1e} degrees) for alpha = {a:g}" for a, (_, g, apart) in visits.items()
    )
    return (
        f"gtilde = alpha² marks where the flow leaves l2; it is nearest to l2 earlier, at {seen}:"
        f" like alpha^{visit_rate(visits):.2f}, where the remaining 1/gtilde of the linear model"
        " and the departure (gtilde/alpha²)² balance"
    )


def descended(problem: Classification, step: float) -> tuple[Run, int]:
    """alpha = 1 beyond mu = 0.001 by the normalized descent of appendix H.5, and its steps."""
    stop = [Steps(int(20 / step)), Scale(0.0008)]
    model, record = DiagonalNet(2, alpha=1.0), LogSpaced(50)
    path = train(model, problem, NormalizedDescent(step), stop=stop, record=record)
    if not path.outcome.ok:
        raise RuntimeError(f"numbers: {path.outcome}")
    return _recorded(problem, 1.0, path), int(path.dataset.step.values[-1])


def journey(visits: Visits, l2: Array) -> Plot:
    series = [
        Series(f"alpha = {a:g}", run.smoothed_margin, directions.angle(run.predictor, l2))
        for a, (run, _, _) in visits.items()
    ]
    return Plot(
        "M-F3b: the way to the l2 max margin and off it, up to gtilde = alpha²",
        "smoothed margin",
        "angle to l2 in degrees",
        series,
        "log",
        "log",
    )
