"""Figure 8: in ten dimensions, which local l_{2/3} max margin a depth-3 net ends at."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import Classification
from penchant.lab import (
    Array,
    Axes,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    share_at_least,
    sized,
)
from penchant.measures import angle
from penchant.plotting import LEGEND, latex, plane, sheet_of
from penchant.solvers import max_margin_path
from penchant_papers.moroshko2020.figures.excess import (
    PAIR,
    TEN,
    draw_excess,
    points_named,
    studies,
)
from penchant_papers.moroshko2020.figures.trajectories import lines_on
from penchant_papers.moroshko2020.stopping import follow, max_margin_of

TITLE = "In ten dimensions the start decides among local ℓ₂/₃ margins, unless the data are sparse"
study, landmarks = studies(
    "M-F8",
    list(TEN),
    [0.1, 0.5, 2.0, 10.0],
    [0.1, 10.0],
    title=TITLE,
    orders=(2 / 3, 2.0),
    depth=3,
    own={"points": 120, "end": 1e7, "least_end": 1e5},
    draw={"x": "alpha", "colour": "excess"},
)


SMALL, LARGE = 0.1, 10.0
MARKS = [1.0, 0.1, 0.01, 1e-3, 1e-4]  # mu at which a run is compared with the Q path
END = 1e10  # of the smoothed margin over alpha^3; later the flow is too stiff for float64


def local_minimum(problem: Classification, beta: Array, quasi: int) -> Array:
    """The local minimum of the l_{2/quasi} margin that reweighted l1 reaches from beta.

    The slopes of the quasi-norm at the last point are the costs of a linear program, until its
    solution stays.
    """
    from scipy.optimize import linprog

    Z = problem.signed_rows
    for _ in range(50):
        size = np.abs(beta) / np.abs(beta).max()
        costs = np.maximum(size, 1e-6) ** (2 / quasi - 1)
        halves = linprog(np.tile(costs, 2), A_ub=-np.hstack([Z, -Z]), b_ub=-np.ones(len(Z))).x
        before, beta = beta, halves[: Z.shape[1]] - halves[Z.shape[1] :]
        if float(angle(before, beta)) < 1e-6:
            break
    return beta


def set_cell(points: str, seed: int, *, depth: int, quasi: int) -> dict[str, Any]:
    """The ends from a small and a large start on one random set, in degrees from other points.

    `away` is the angle to a local minimum of the l_{2/quasi} margin, `off_path` the largest one to
    argmin Q_mu at equal mu; `l1_away` and `arc` are those of the l1 max margin, the latter to l2.
    """
    problem = points_named(points, seed)
    l1, l2 = (max_margin_of(problem, name) for name in ("l1", "l2"))
    X, y = problem.X, problem.y
    mus = np.logspace(2, -8, 31)  # three a decade, among them the marks
    path = max_margin_path(X, y, depth, mus=mus).beta
    marked = path[[int(np.abs(np.log(mus / mu)).argmin()) for mu in MARKS]]
    runs = []
    for alpha in (SMALL, LARGE):
        margins = alpha**depth / np.array([*MARKS, 1 / END])
        runs.append(follow(problem, depth, alpha, margins, 1e-4).predictor.values)
    ends = np.array([run[-1] for run in runs])
    return {
        "away": [float(angle(end, local_minimum(problem, end, quasi))) for end in ends],
        "to_l1": angle(ends, l1),
        "to_path": [angle(end, path).min() for end in ends],
        "off_path": [angle(run[:-1], marked).max() for run in runs],
        "apart": float(angle(*ends)),
        "l1_away": float(angle(l1, local_minimum(problem, l1, quasi))),
        "arc": float(angle(l1, l2)),
    }


GIVEN = {"depth": 3, "quasi": 3}
DIMS = {name: ["start"] for name in ("away", "to_l1", "to_path", "off_path")}
random = sized(
    "M-F8-random",
    function=set_cell,
    arguments=GIVEN,
    grid={"points": ["uniform"]},
    seeds=20,
    dims=DIMS,
    tiny={"seeds": 11},  # fewer sets could never show that half of all do
    printed={"seeds": 100},
)
sparse = sized(
    "M-F8-sparse",
    function=set_cell,
    arguments=GIVEN,
    grid={"points": ["spiked"]},
    seeds=4,
    dims=DIMS,
    tiny={"seeds": 2},
    printed={"seeds": 100},
)


def check(dataset: Dataset, landmarks: Dataset, random: Dataset, sparse: Dataset) -> Evidence:
    """Where the ends are, as shares and quantiles over random sets and over sparse ones."""
    random, sparse = (
        data.isel(points=0).assign_coords(start=[SMALL, LARGE]) for data in (random, sparse)
    )
    count = random.sizes["seed"]
    large = random.sel(start=LARGE)
    worst = int(large.to_path.values.argmax())
    close = share_at_least(int((large.to_path < 0.1 * random.arc).sum()), count, 0.5)
    stay = at_most(np.quantile(random.away, 2 / 3), 1.0)
    chosen = at_least(random.apart.median(), 1.0)
    ratios = {
        name: random[key].sel(start=LARGE) / random[key].sel(start=SMALL)
        for key, name in (("to_l1", r"$\ell_1$"), ("to_path", r"the $Q_\mu$ path"))
    }
    to_l1, to_path = (int((ratio < 1).sum()) for ratio in ratios.values())
    best = at_most(sparse.to_l1.max(), 1.0)
    along = at_most(sparse.off_path.sel(start=LARGE).max(), 1.0)
    minima = {name: landmarks.minimum.sel(curve_set=name).dropna("place") for name in TEN}
    counts = [places.sizes["place"] for places in minima.values()]
    deciding = {
        r"(a) random data: degrees from an end to a local minimum of the $\ell_{2/3}$ margin that "
        "two of three do not exceed": stay,
        "(a) random data: degrees between the ends of the two starts (median)": chosen,
        **{
            f"(a) random data: angle of the end to {name}, large start over small (median)": (
                at_most(ratio.median(), 1.0)
            )
            for name, ratio in ratios.items()
        },
        r"(b) sparse data: largest angle of an end to the $\ell_1$ max margin, degrees": best,
        r"(b) sparse data, $\alpha = 10$: largest angle to $\operatorname{argmin} Q_\mu$, $\mu = "
        "1$ to $10^{-4}$": along,
    }
    return Evidence(
        ran=rf"exact flows of depth 3 from $\alpha = {latex(SMALL)}$ and {LARGE:g} on {count} "
        f"sets of 10 points with entries $U(0, 1)$ and {sparse.sizes['seed']} sets of 4 "
        r"sparse points in ten dimensions, to $\log(1/\mathrm{loss}) = 10^{10} \alpha^3$; one "
        f"set of each kind from {dataset.sizes['alpha']} alphas",
        checks={
            "(a) random data, large start: share of the sets whose end is within a tenth of the "
            r"arc from $\ell_2$ to $\ell_1$ of the $Q_\mu$ path (lower bound)": close,
            **deciding,
        },
        corrected=deciding,
        correction=r"on random data the end from a large start is mostly nearer to $\ell_1$ and "
        r"to the $Q_\mu$ path than that from a small start, but seldom near them: half of the "
        f"sets end {float(large.to_path.median()):.0f} degrees or more from the path",
        counterexample={
            "data": f"10 points $U(0, 1)$, seed {int(random.seed[worst])}",
            r"degrees from the end of $\alpha = 10$ to the $Q_\mu$ path": float(
                large.to_path.max()
            ),
            r"degrees from $\ell_2$ to $\ell_1$": float(random.arc[worst]),
        },
        premises={"there are many local minima": (min(counts) > 5, " and ".join(map(str, counts)))},
        controls={
            r"the $\ell_1$ max margin of the random data as an end": stay.control(
                np.quantile(random.l1_away, 2 / 3)
            ),
            "sparse data: degrees between the ends of the two starts": chosen.control(
                sparse.apart.median()
            ),
            r"sparse data: the $\ell_2$ max margin as an end (least angle)": best.control(
                sparse.arc.min()
            ),
            r"sparse data: the small start along the $Q_\mu$ path (least)": along.control(
                sparse.off_path.sel(start=SMALL).min()
            ),
        },
        findings=[
            f"random data: the ends of the two starts differ on {int((random.apart > 1).sum())} "
            rf"of {count} sets; the end of the large start is nearer to $\ell_1$ on "
            rf"{to_l1} and to the $Q_\mu$ path on {to_path}; it is "
            rf"{float(large.to_l1.median()):.1f} degrees from $\ell_1$ in the median, up to "
            f"{float(large.to_l1.max()):.1f}, and from the path "
            f"{float(large.to_path.median()):.1f}, up to {float(large.to_path.max()):.1f}",
            r"sparse data: $|w|_1 \geq 1$ at margin 1, since no entry is above 1, and (1, 0, ...) "
            r"has this norm: it is the $\ell_1$ and the $\ell_{2/3}$ max margin of every such "
            "set",
        ],
    )


def draw(dataset: Dataset, landmarks: Dataset, *_: Dataset) -> Figure:
    """The plane of excess norms for random data, for sparse data, and a closer look at these."""
    picture, (a, b, c) = sheet_of(dataset, widths=(5.5, 5.5, 5.5), height=5.0)
    colours = plane.shades(dataset.alpha.values.tolist())
    for axes, name, near, text in (
        (a, "uniform", 12, "(a) random data: each start ends at its own minimum"),
        (b, "spiked", 8, "(b) sparse data: all end at the global minimum"),
        (c, "spiked", 0, r"(c) detail of (b): along the $Q_\mu$ path"),
    ):
        lines, row = lines_on(dataset, name, PAIR), landmarks.sel(curve_set=name)
        draw_excess(axes, lines, row, colours)
        _view(axes, np.vstack(list(lines.values())), row, text, near)
        axes.set(xlabel=r"excess $\ell_{2/3}$ quasi-norm", ylabel=r"excess $\ell_2$ norm")
    plane.key(c, colours, cross="", marks="", deeper=r"$\ell_{2/3}$", end="end of a flow")
    c.legend(**LEGEND)
    return picture


def _view(axes: Axes, curves: Array, row: Dataset, title: str, near: int) -> None:
    """Limits around the trajectories and the `near` next local minima, and how many those hold."""
    places = row.stationary.dropna("place").values
    shown = places[np.argsort(places.sum(axis=1))][:near]
    high = 1.05 * np.nanmax(np.vstack([curves, shown]), axis=0)
    axes.set(xlim=(-0.05 * high[0], high[0]), ylim=(-0.05 * high[1], high[1]))
    inside = int((places <= high).all(axis=1).sum())
    axes.set_title(f"{title}\n{inside} of the {len(places)} local minima found are in view")


experiment = Experiment(
    "M-F8",
    statement="On random data in ten dimensions training a depth-3 net ends at different local "
    r"minima of the $\ell_{2/3}$ margin problem, from a large start close to the $Q_\mu$ path "
    r"and to $\ell_1$; on sparse data training ends at the global minimum, which is the "
    r"$\ell_1$ max margin, from a large start along the $Q_\mu$ path.",
    place="appendix H.3, Figure 8",
    study=(study, landmarks, random, sparse),
    check=check,
    draw=draw,
    title=TITLE,
    ours=r"the sets drawn and the values of $\alpha$. The quasi-norm is $(\sum "
    "|w_i|^{2/3})^{3/2}$, taken of the predictor divided by its margin; stationary points are "
    "those found from many starts",
    seconds=8,
)
