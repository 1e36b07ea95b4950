"""W-F7: univariate ReLU nets learn linear splines from small starts, the kernel's from large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.claims.woodworth.spline_runs import (
    Learned,
    cubic_spline,
    learn,
    least_norm,
    linear_spline,
)
from tacit.claims.woodworth.spline_survey import ALPHA, surveys
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.measures.binomial import upper_limit
from tacit.models.hinges import sup_distance
from tacit.models.univariate import mean_kernel
from tacit.papers.instances import slope
from tacit.problems.regression import Regression
from tacit.problems.univariate import plateau, steep_end, zigzag
from tacit.studies.sizes import Size

WIDTH = {"quick": 500, "full": 10_000}
SHARES = {"standard": None, "between": 0.03, "balanced": 1.0}
# alphas towards the rich limit, smaller ones for wider nets, and towards the kernel limit
SMALL = {"quick": (1.0, 0.03), "full": (1.0, 0.3, 0.1, 0.03, 0.01)}
LARGE = (100.0, 400.0)
MOST = 0.6
ADDED = 0.05  # width alpha^2 on the plateau: of this order is what the start adds to the norm
TIGHT = 0.01  # a distance below this is none to the eye: the data span 1.3
COARSE, FINE = 0.1, 0.01  # rtol of the runs at small and at large alpha


def scalings(width: int) -> dict[str, float]:
    """Three relative scalings c of the layers, named by how much the inner one weighs.

    At c the tangent kernel has the inner layer's part over the outer one's 2 / (width c^4), at
    equal arguments. W's standard start has c = 1; at c = (2 / width)^(1/4) both weigh the same.
    """
    return {
        name: 1.0 if share is None else (2 / width / share) ** 0.25
        for name, share in SHARES.items()
    }


class Runs(NamedTuple):
    """Nets by the name of their scaling, then by alpha in the order of the constants above."""

    rich: dict[str, list[Learned]]
    kernel: dict[str, list[Learned]]
    flat: dict[str, Learned]  # on the plateau, from alpha = sqrt(ADDED / width)


def runs(width: int, small: Sequence[float]) -> Runs:
    data, flat, tiny = zigzag(), plateau(), (ADDED / width) ** 0.5
    ratio = scalings(width)
    return Runs(
        {n: [learn(data, width, a, c, rtol=COARSE) for a in small] for n, c in ratio.items()},
        {n: [learn(data, width, a, c, rtol=FINE) for a in LARGE] for n, c in ratio.items()},
        {n: learn(flat, width, tiny, c, rtol=COARSE) for n, c in ratio.items()},
    )


def distances(found: dict[str, list[Learned]], measure: str) -> Array:
    """A row per scaling and a column per alpha."""
    return np.array([[getattr(run, measure) for run in row] for row in found.values()])


def exponents(found: dict[str, list[Learned]]) -> Array:
    """The exponent in alpha of the distance to the kernel interpolant, per scaling."""
    return np.array([slope(np.array(LARGE), row) for row in distances(found, "to_kernel")])


def mean_interpolant(problem: Regression, width: int, alpha: float, scaling: float) -> Array:
    """On the grid of `grid`: the interpolant with the tangent kernel averaged over all starts."""
    x, points = problem.X[:, 0], grid(problem)
    dual = np.linalg.solve(mean_kernel(x, x, width, alpha=alpha, scaling=scaling), problem.y)
    return np.asarray(mean_kernel(points, x, width, alpha=alpha, scaling=scaling) @ dual)


def grid(problem: Regression) -> Array:
    return np.linspace(problem.X.min(), problem.X.max(), 801)


def likeness(problem: Regression) -> list[str]:
    """What the kernel limits of W's width 10000 look like: distances to the two splines."""
    points, width, told = grid(problem), WIDTH["full"], []
    for name, c in scalings(width).items():
        limit = mean_interpolant(problem, width, LARGE[-1], c)
        line, cubic = (
            np.abs(limit - f(points)).max() for f in (linear_spline(problem), cubic_spline(problem))
        )
        told.append(f"{name} (c = {c:.3f}): {line:.3f} to the linear, {cubic:.3f} to the cubic one")
    return told


def norms(problem: Regression) -> tuple[float, float]:
    """The least norm of any interpolating net, and that of the linear spline."""
    x = problem.X[:, 0]
    return least_norm(problem, np.union1d(np.linspace(-2, 2, 801), x)), least_norm(problem, x)


@claim(
    "W-F7",
    statement="from small starts a wide univariate ReLU net learns the linear spline of its data"
    " whatever the relative scaling of its layers; from large ones what the tangent kernel of the"
    " start interpolates, which depends on that scaling",
    place="appendix B.1, Figure 7",
    seconds=12,
)
def figure_7(size: Size) -> Evidence:
    width, small = WIDTH[size], SMALL[size]
    found = runs(width, small)
    rich, lazy = distances(found.rich, "to_linear"), distances(found.kernel, "to_kernel")
    last = {name: row[-1] for name, row in found.kernel.items()}
    apart = [
        last[a].between_interpolants(last[b])
        for a, b in (("standard", "between"), ("between", "balanced"), ("standard", "balanced"))
    ]
    powers = exponents(found.kernel)
    ratios = [row[-1].to_kernel / row[-1].kink_distance for row in found.kernel.values()]
    flat = np.array([run.to_linear for run in found.flat.values()])
    (least, spline), (flat_least, flat_spline) = norms(zigzag()), norms(plateau())
    zig = Check(
        f"alpha = {small[-1]}, three scalings: largest distance to the linear spline",
        rich[:, -1].max(),
        tolerance=TIGHT,
    )
    falls = Check(
        f"alpha = {small[0]} to {small[-1]}: least factor by which it falls",
        (rich[:, 0] / rich[:, -1]).min(),
        2.0,
        kind="at least",
    )
    kernel = Check(
        f"alpha = {LARGE[-1]:g}: largest distance (RMS) to the interpolant with the"
        " kernel of the start",
        lazy[:, -1].max(),
        tolerance=1e-3,
    )
    power = Check(
        "exponent in alpha of that distance, furthest from -1",
        powers[np.abs(powers + 1).argmax()],
        -1.0,
        tolerance=0.1,
    )
    kinks = Check(
        "that distance over what the kinks of a finite width give, furthest from 1",
        max(ratios, key=lambda r: abs(r - 1)),
        1.0,
        tolerance=0.05,
    )
    differ = Check(
        "least distance (RMS) between the kernel interpolants of two scalings",
        min(apart),
        0.02,
        kind="at least",
    )
    both = [zig, falls, kernel, power, kinks, differ]
    random, steep = surveys(size), norms(steep_end())
    draws = len(random.peaks.nets)
    beside = float(random.steep.distances(linear_spline)[0])
    most = Check(
        "three random points with a peak: share that ends at the linear spline (0.999 lower limit)",
        random.mostly,
        MOST,
        kind="at least",
    )
    alone = "points (-1, 0), (0.7, 1), (1, 0), one bend: distance to the linear spline"
    runs_all = [r for part in (found.rich, found.kernel) for row in part.values() for r in row]
    crossed = [last[a].from_interpolant(last[b]) for a in last for b in last if a != b]
    return Evidence(
        ran=f"{len(runs_all) + len(found.flat)} nets of width {width} with their subtracted copy,"
        " all parameters trained by gradient flow, three scalings; narrower ones by descent from"
        f" alpha = {ALPHA:g} on {draws} random sets of three points with a peak and on"
        f" {len(random.one_way.nets)} of four points that bend one way",
        checks=[
            *both,
            Check(
                "four points on a plateau, three scalings: largest distance to the linear spline",
                flat.max(),
                tolerance=TIGHT,
            ),
            Check(alone, beside, tolerance=TIGHT),
        ],
        corrected=[
            *both,
            Check(
                "plateau: least share of the linear spline's norm above the least norm that the"
                " net has given up",
                _given_up(found.flat, flat_least, flat_spline),
                0.5,
                kind="at least",
            ),
            most,
            Check(
                "four random points that bend one way: share that ends at the linear spline"
                " (0.999 upper limit)",
                random.rarely,
                MOST,
                kind="at most",
            ),
            Check(alone, beside, 0.2, kind="at least"),
        ],
        correction="small starts learn the linear spline of the five points of a zigzag, and of"
        " three random points with a peak in most draws but not in all; of four points that bend"
        " one way in few. Neither alternating bends nor the least norm decides: training ends when"
        " the loss is zero, and the kink of a unit may then still be on its way to a data point",
        counterexample={
            alone: beside,
            "its norm, and that of the linear spline, the least": [random.steep.norms[0], steep[1]],
            "points (-1, 0), (-0.4, 1), (0.4, 1), (1, 0): distance to the linear spline": flat,
            "norm of the net there": [run.norm for run in found.flat.values()],
            "norm of the linear spline": flat_spline,
            "least norm (one bend at 0)": flat_least,
        },
        premises={
            "every net fits its data": (
                all(r.outcome.ok for r in [*runs_all, *found.flat.values()]),
                "",
            ),
            "zigzag: the linear spline has the least norm": (spline < least * (1 + 1e-9), spline),
            "plateau: it has not": (flat_spline > 1.05 * flat_least, flat_spline / flat_least),
            "the three points: it has": (steep[1] < steep[0] * (1 + 1e-9), steep[1]),
            "of twenty random sets at most one is not fitted": (
                random.fitted >= 0.95,
                random.fitted,
            ),
        },
        controls={
            "the natural cubic spline for the linear one (nearest net)": zig.control(
                min(to_cubic(row[-1]) for row in found.rich.values())
            ),
            f"alpha = {small[0]}, standard scaling, for a small start": zig.control(rich[0, 0]),
            "the kernel of another scaling (nearest)": kernel.control(min(crossed)),
            "exponent -2": power.control(predicted=-2.0),
            **{
                f"{theorem} (0.999 upper limit)": most.control(
                    upper_limit(int(hits.sum()), len(hits))
                )
                for theorem, hits in (
                    (
                        "the linear spline always: four points that bend one way",
                        random.one_way.linear | ~random.one_way.fitted,
                    ),
                    (
                        "the least norm always, up to 2%: three points with a peak",
                        random.peaks.least,
                    ),
                    ("the natural cubic spline: three points with a peak", random.peaks.cubic),
                )
            },
            "two alphas in place of two scalings": differ.control(
                max(row[0].between_interpolants(row[-1]) for row in found.kernel.values())
            ),
        },
        findings=[
            *_table("distance to the linear spline", small, rich, found.rich),
            *_table("RMS distance to the kernel interpolant", LARGE, lazy, found.kernel),
            "the interpolant of a finite net jumps at its knots and the net cannot, so their RMS"
            " distance falls as 1/alpha only, with a known prefactor; their largest distance does"
            " not fall at all",
            "what the kernel limit looks like at width 10000, averaged over starts (largest"
            " distances): " + "; ".join(likeness(zigzag())) + ". Only where the outer layer rules"
            " the kernel does it resemble a cubic spline, and larger c change nothing more",
            "plateau: the linear spline and the tent have the same total bend, so both have the"
            " least norm if biases do not count; gradient flow counts them",
            *random.findings(),
        ],
        plots=[_plot(found, small[-1])],
    )


def to_cubic(run: Learned) -> float:
    """The largest distance of a net to the natural cubic spline of its data."""
    return sup_distance(run.function, cubic_spline(run.problem), grid(run.problem))


def _given_up(flat: dict[str, Learned], least: float, spline: float) -> float:
    """1 where the net has the least norm, 0 where it has that of the linear spline."""
    return min((spline - run.norm) / (spline - least) for run in flat.values())


def _table(
    what: str, alphas: Sequence[float], rows: Array, found: dict[str, list[Learned]]
) -> list[str]:
    at = ", ".join(f"{alpha:g}" for alpha in alphas)
    return [
        f"{what} at alpha = {at}, {name} scaling: " + ", ".join(f"{v:.2g}" for v in row)
        for name, row in zip(found, rows, strict=True)
    ]


def _plot(found: Runs, small: float) -> Plot:
    points = grid(zigzag())
    series = [
        Series(f"alpha = {small}, {name}", points, row[-1].function(points))
        for name, row in found.rich.items()
    ]
    series += [
        Series(f"alpha = {LARGE[-1]:g}, {name}", points, row[-1].function(points), "dashed")
        for name, row in found.kernel.items()
    ]
    series.append(Series("data", zigzag().X[:, 0], zigzag().y, "points"))
    return Plot("what small (solid) and large (dashed) starts learn", "x", "f(x)", series)
