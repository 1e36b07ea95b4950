"""Figure 7: univariate ReLU nets learn linear splines from small starts, kernels' from large."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    at_least,
    at_most,
    margin_of_mean,
    share_at_least,
    sized,
    upper_share,
    within,
)
from penchant.plotting import latex
from penchant_papers.instances import slope
from penchant_papers.woodworth2020.figures import spline_survey
from penchant_papers.woodworth2020.figures.spline_nets import SHARES, cell, kernel_cell
from penchant_papers.woodworth2020.figures.spline_panels import draw

LARGE = (100.0, 400.0)  # alphas towards the kernel limit
MOST = 0.6
LESS = 1.05  # a second-order total variation up to this, over the least, is the least
RESEMBLES = 0.1  # a kernel limit nearer than this to a cubic spline resembles it
KINKED = 0.25  # of the bends of the linear spline: a jump of slope that no cubic spline has
ADDED = 0.05  # width alpha^2 on the plateau: of this order is what the start adds to the norm
TIGHT = 0.01  # a distance below this is invisible: the data span 1.3
BESIDE = 0.1  # one beyond this is seen at once
OFTEN = 0.25  # of the starts: no exception


GIVEN = {"problem": "zigzag", "width": 150, "rtol": 0.1}
WIDE = {"width": 10_000}
LABELS = {
    "alpha": r"initial scale $\alpha$",
    "layers": "relative scaling of the layers",
    "c": "factor on $w_1$ and $b_1$, with $w_2$ divided by it",
    "to_linear": "largest distance of the learned function to the linear spline",
    "to_linear_rms": "root mean square distance of the learned function to the linear spline",
    "to_kernel": "root mean square distance of the learned function to its kernel interpolant",
    "to_cubic": "largest distance of the learned function to the natural cubic spline",
    "norm": "sum of $|(w, b)| |v|$ of the net",
    "bend": "second-order total variation of the net over that of the linear spline",
    "least_norm": "the least such sum of an interpolating net",
    "spline_norm": "the sum for the linear spline",
    "input": "input",
    "learned": "function learned",
    "interpolant": "interpolant with the tangent kernel of the start",
}
DIMS = {name: ["point"] for name in ("input", "learned", "interpolant")}
study = sized(
    "W-F7",
    title="Large starts learn their kernel interpolant, small starts the linear spline of a zigzag",
    function=cell,
    arguments=GIVEN,
    grid={"layers": list(SHARES), "alpha": [0.03, 0.3, 1.0, 30.0]},
    seeds=1,
    dims=DIMS,
    labels=LABELS,
    draw={"x": "alpha", "colour": "to_linear", "log": True},
    printed={"arguments": WIDE, "grid": {"alpha": [0.01, 0.03, 0.1, 0.3, 1.0, 30.0]}},
)
flat = sized(
    "W-F7d",
    title="Where points bend the same way twice, even the smallest start learns no linear spline",
    function=cell,
    arguments={**GIVEN, "problem": "plateau", "alpha": (ADDED / 150) ** 0.5},
    grid={"layers": list(SHARES)},
    seeds=1,
    dims=DIMS,
    labels=LABELS,
    draw={"x": "layers", "colour": "to_linear", "log": False},
    printed={"arguments": {**WIDE, "alpha": (ADDED / 10_000) ** 0.5}},
)
BY_LAYERS = (
    *("to_own", "kink_distance", "rescaled", "mean_to_linear", "mean_to_cubic", "c_wide"),
    *("to_any_cubic", "kinked"),
)
kernel = sized(
    "W-F7-kernel",
    title="Large starts learn the interpolants of their kernels, which depend on the scaling",
    function=kernel_cell,
    arguments={"width": 150, "rtol": 0.01, "wide": 10_000},
    grid={"alpha": list(LARGE)},
    seeds=1,
    dims={
        "crossed": ["layers", "other"],
        "between": ["layers", "other"],
        "curved": ["kernel"],
        **{name: ["layers"] for name in BY_LAYERS},
    },
    printed={"arguments": WIDE},
)
random = sized(
    "W-F7-random",
    title="How often small starts learn the linear spline of random points",
    function=spline_survey.cell,
    arguments={"counts": {"peak": 100, "one way": 40}, "seed": 0},
    grid={"kind": [*spline_survey.KINDS, "steep"]},
    dims={name: ["draw"] for name in spline_survey.MEASURES},
    printed={"arguments": {"counts": {"peak": 300, "one way": 150}}},
)


def check(dataset: Dataset, flat: Dataset, kernel: Dataset, random: Dataset) -> Evidence:
    """Both limits on the zigzag, the plateau, and random points."""
    runs, level = dataset.isel(seed=0), flat.isel(seed=0)
    large = kernel.isel(seed=0).transpose("alpha", "layers", "other", ...)
    last = large.isel(alpha=-1)
    small, big = float(runs.alpha.min()), 1.0
    rich = runs.to_linear.sel(alpha=small).values
    coarse = runs.to_linear.sel(alpha=big).values
    powers = np.array([slope(np.array(LARGE), row) for row in large.to_own.values.T])
    by_kinks = (last.to_own / last.kink_distance).values
    pairs = list(itertools.permutations(range(len(SHARES)), 2))
    steep = random.sel(kind="steep")
    far = spline_survey.steep_rows(steep, "distance")[-1]
    beside, there = int((far > BESIDE).sum()), int((far < TIGHT).sum())
    spline, least = float(level.spline_norm[0]), float(level.least_norm[0])
    limits = spline_survey.shares(random)
    zig = within(rich.max(), tolerance=TIGHT)
    own = within(last.to_own.values.max(), tolerance=1e-3)
    power = within(powers[np.abs(powers + 1).argmax()], -1.0, tolerance=0.1)
    differ = at_least(min(float(last.between.values[pair]) for pair in pairs), 0.02)
    most = at_least(limits["mostly"], MOST)
    alone = "points (-1, 0), (0.7, 1), (1, 0), one bend: share of starts that end"
    smallest = max(float(runs.bend.sel(alpha=small).max()), float(level.bend.max()))
    bend = at_most(smallest, LESS)
    ratios = bends(random)
    excess = np.log(ratios)
    curved = within(last.curved.values.max(), tolerance=1e-3)
    kinks = dict(zip(SHARES, last.kinked.values, strict=True))
    both = {
        "zigzag and plateau, three scalings: second-order total variation from the smallest start "
        "over the least, at most": bend,
        rf"$\alpha = {small}$, three scalings: largest distance to the linear spline": zig,
        rf"$\alpha = {big}$ to {small}: least factor by which it falls": at_least(
            (coarse / rich).min(), 2.0
        ),
        rf"$\alpha = {latex(LARGE[-1])}$: largest distance (RMS) to the interpolant with the "
        "kernel of the start": own,
        r"exponent in $\alpha$ of that distance, furthest from -1": power,
        "that distance over the one predicted from the kinks at finite width, furthest"
        " from 1": within(by_kinks[np.abs(by_kinks - 1).argmax()], 1.0, tolerance=0.05),
        "least distance (RMS) between the kernel interpolants of two scalings, averaged over"
        " starts": differ,
    }
    steep_norms = [float(random[n].sel(kind="steep")) for n in ("least_norm", "spline_norm")]
    zig_norms = [float(runs[n].values.flat[0]) for n in ("least_norm", "spline_norm")]
    count = runs.to_linear.size + len(SHARES) * (1 + len(LARGE))
    return Evidence(
        ran=f"{count} nets minus a copy of their start, all parameters trained by gradient flow, "
        r"three scalings; narrower ones by descent from $\alpha = "
        f"{latex(spline_survey.ALPHA)}$ on {limits['peaks']:.0f} random sets of three points "
        f"with a peak and on {limits['ways']:.0f} of four points that bend one way",
        checks={
            **both,
            "four points on a plateau, three scalings: largest distance to the linear"
            " spline": within(level.to_linear.values.max(), tolerance=TIGHT),
            f"{alone} at the linear spline (0.999 upper limit)": at_least(
                upper_share(there, len(far)), 0.5
            ),
            f"random points: share whose second-order total variation is at most {LESS:g} times "
            "the least (0.999 upper limit)": at_least(
                upper_share(int((ratios <= LESS).sum()), len(ratios)), 0.9
            ),
            "kernel limits of three scalings: largest distance to the nearest cubic spline with "
            "knots at the data": at_most(last.to_any_cubic.max(), RESEMBLES),
        },
        corrected={
            **both,
            "plateau: least share by which the net has reduced the linear spline's excess over the"
            " least norm": at_least(((spline - level.norm.values) / (spline - least)).min(), 0.5),
            "three random points with a peak: share that ends at the linear spline (0.999 lower"
            " limit)": most,
            "four random points that bend one way: share that ends at the linear spline"
            " (0.999 upper limit)": at_most(limits["rarely"], MOST),
            f"{alone} {BESIDE:g} or more away from it (0.999 lower limit)": share_at_least(
                beside, len(far), OFTEN
            ),
            "random points: second-order total variation over the least, geometric mean (0.999 "
            "upper limit)": at_most(np.exp(excess.mean() + margin_of_mean(excess)), 1.5),
            "kernel limits of four scalings: deviation of $f'' (1 + x^2)^2$ from linear between "
            "the data": curved,
            "balanced scaling: jumps of slope of the kernel limit at the data over those of the "
            "linear spline, mean": at_least(
                last.kinked.values[list(SHARES).index("balanced")], KINKED
            ),
            "standard scaling: the same": at_most(kinks["standard"], 0.02),
        },
        correction="small starts learn the linear spline of the five points of a zigzag, and "
        "that of three random points with a peak in most draws but not in all, and "
        "that of four points that bend one way in few. Neither alternating bends nor "
        "the least norm decides: training ends when the loss is zero, and the kink of "
        "a unit may then still be on its way to a data point; for the same reason the second-order "
        "total variation is near the least, but at it in half of the random sets only. In the "
        "kernel limit $f'' (1 + x^2)^2$ is linear between the data: nearly a cubic spline where "
        "the outer layer is all of the kernel; the inner layer adds jumps of slope at the data, "
        "which no cubic spline has, and with balanced layers the limit is nearly the linear spline",
        counterexample={
            "points (-1, 0), (0.7, 1), (1, 0): median distance to the linear spline": float(
                np.median(far)
            ),
            "median norm of the nets, and that of the linear spline, the least": [
                float(np.median(spline_survey.steep_rows(steep, "norm")[-1])),
                steep_norms[1],
            ],
            "points (-1, 0), (-0.4, 1), (0.4, 1), (1, 0): distance to the linear spline": (
                level.to_linear.values
            ),
            "norm of the net there": level.norm.values,
            "norm of the linear spline": spline,
            "least norm (one bend at 0)": least,
        },
        premises={
            "zigzag: the linear spline has the least norm": (
                zig_norms[1] < zig_norms[0] * (1 + 1e-9),
                zig_norms[1],
            ),
            "plateau: the linear spline does not have the least norm": (
                spline > 1.05 * least,
                spline / least,
            ),
            "the three points: the linear spline has the least norm": (
                steep_norms[1] < steep_norms[0] * (1 + 1e-9),
                steep_norms[1],
            ),
            "at most one random set in twenty is not fitted": (
                limits["fitted"] >= 0.95,
                limits["fitted"],
            ),
        },
        controls={
            "the natural cubic spline in place of the linear one (nearest net)": zig.control(
                runs.to_cubic.sel(alpha=small).values.min()
            ),
            rf"$\alpha = {big}$, standard scaling, in place of a small start": zig.control(
                coarse[0]
            ),
            "the kernel of another scaling (nearest)": own.control(
                min(float(last.crossed.values[pair]) for pair in pairs)
            ),
            "exponent -2": power.control(predicted=-2.0),
            **{
                f"{theorem} (0.999 upper limit)": most.control(limits[name])
                for theorem, name in (
                    ("the linear spline always: four points that bend one way", "rarely"),
                    ("the least norm always, up to 2%: three points with a peak", "least"),
                    ("the natural cubic spline: three points with a peak", "cubic"),
                )
            },
            "two alphas in place of two scalings": differ.control(last.rescaled.values.max()),
            rf"$\alpha = {big}$ has the least second-order total variation": bend.control(
                runs.bend.sel(alpha=big).min()
            ),
            "the cubic spline: $f''$ itself is linear between the data": curved.control(
                last.curved_plain
            ),
        },
        findings=findings(runs, large, random),
    )


def bends(random: Dataset) -> Array:
    """Second-order total variations over the least, of the random sets that were fitted."""
    rows = [random.sel(kind=kind) for kind in spline_survey.KINDS]
    fitted = [row.bend.values[row.fitted.values > 0.5] for row in rows]
    return np.concatenate([values[np.isfinite(values)] for values in fitted])


def findings(runs: Dataset, large: Dataset, random: Dataset) -> list[str]:
    """What the nets say beyond the checks."""
    last = large.isel(alpha=-1)
    rows = zip(
        SHARES,
        last.c_wide.values,
        last.mean_to_linear.values,
        last.mean_to_cubic.values,
        strict=True,
    )
    likeness = "; ".join(
        f"{name} ($c = {c:.3f}$): {line:.3f} to the linear, {cubic:.3f} to the cubic one"
        for name, c, line, cubic in rows
    )
    return [
        *_table("distance to the linear spline", runs.alpha.values, runs.to_linear.values),
        *_table("RMS distance to the kernel interpolant", LARGE, large.to_own.values.T),
        "the interpolant of a finite net jumps at its knots and the net cannot, so their RMS "
        r"distance falls as $1/\alpha$ only, with a known prefactor; their largest distance "
        "does not fall at all",
        f"the kernel limit at width 10000, averaged over starts (largest distances): {likeness}. "
        "It resembles a cubic spline only where the outer layer dominates the kernel, and a "
        "larger $c$ changes nothing more; jumps of slope at the data over those of the linear "
        "spline: " + ", ".join(f"{v:.3f}" for v in last.kinked.values),
        "second-order total variation over the least, random points: "
        f"{np.median(bends(random)):.2f} at the median, at most {LESS:g} in "
        f"{np.mean(bends(random) <= LESS):.0%}",
        "plateau: the linear spline and the tent have the same total bend, so both have the"
        " least norm if biases do not count; gradient flow counts them",
        *spline_survey.findings(random),
    ]


def _table(what: str, alphas: Sequence[float], rows: Array) -> list[str]:
    at = ", ".join(f"{alpha:g}" for alpha in alphas)
    return [
        rf"{what} at $\alpha = {at}$, {name} scaling: " + ", ".join(f"{v:.2g}" for v in row)
        for name, row in zip(SHARES, rows, strict=True)
    ]


experiment = Experiment(
    "W-F7",
    statement="From small starts a wide univariate ReLU net learns the linear spline of its "
    "data, whatever the relative scaling of its layers; from large starts it learns "
    "the interpolant of the tangent kernel at the start, which depends on that scaling and "
    "resembles a cubic spline. The bias of small starts is the second-order total variation.",
    place="appendix B.1, Figure 7",
    study=(study, flat, kernel, random),
    check=check,
    draw=draw,
    title="Large starts learn their kernel interpolant, small starts the linear spline, except "
    "in (d)",
    ours=r"data points, values of $\alpha$ and $c$; panel (d), whose points bend the same way "
    "twice; random points; gradient flow to zero loss",
    scope={
        "tiny": "width 150 in place of 10000",
        "quick": "width 150 in place of 10000",
        "printed": "random points are learned with 50 units",
    },
    seconds=11,
)
