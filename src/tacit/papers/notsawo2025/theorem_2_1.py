"""Theorem 2.1: memorize fast, then spend of the order of 1/(step beta) steps on the penalty."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.papers.experiment import Experiment
from tacit.papers.instances import slope
from tacit.papers.notsawo2025.recoveries import reached
from tacit.papers.notsawo2025.two_weights import (
    MOST,
    SHARP,
    SMOOTH,
    condition,
    descend,
    examples,
    zero_by_first_chi,
)
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray

TIME = 4.0  # tau = step beta steps: the "Theta(1/(step beta))" after which errors are read
NEAR = 0.02  # h - h_g* that counts as generalized
BOUND = 10.0  # an O() with constants of order one stays below, here between 0.2 and 5
WINDOW = 40  # last steps, over which errors are maxima: subgradient descent never comes to rest
LEVELS = (1e-3, 1e-6, 1e-9)  # of g, on the way to memorization


def cell(example: str, beta: float, *, step: float) -> dict[str, float]:
    """Errors after TIME/(step beta) steps, half of them, or log(1/(step beta)) instead of TIME.

    Errors are |f - f*| and |h - h_g*|, largest over the window; `above` is the largest h - h_g*,
    or 0 if h is below h_g* throughout. Where h has a kink no logarithm is needed (NaN).
    """
    pace, case = step * beta, examples()[example]
    times = {"": TIME, "half_": TIME / 2}
    if example in SMOOTH:
        times["log_"] = math.log(1 / pace)
    ends = {name: round(time / pace) for name, time in times.items()}
    near = np.unique(np.round(np.linspace(0.02, TIME, 400) / pace))
    windows = [np.arange(end - WINDOW, end + 1.0) for end in ends.values()]
    at = np.unique(np.concatenate([near, *windows]))
    _, g, h = descend(example, step, beta, at)
    gap, off = h - case.h_star, g + beta * h - case.f_star(beta)
    found = dict.fromkeys(("log_f", "log_h", "log_above"), math.nan)
    for name, end in ends.items():
        last = (at >= end - WINDOW) & (at <= end)
        found[f"{name}f"] = float(np.abs(off[last]).max())
        found[f"{name}h"] = float(np.abs(gap[last]).max())
        found[f"{name}above"] = max(float(gap[last].max()), 0.0)
    kept = np.isin(at, near)
    found["delay"] = reached(near, np.maximum(gap[kept], 1e-12), NEAR)
    found["memorized"] = float(memorization(example, beta)[0][0])
    return found


def memorization(example: str, beta: float) -> tuple[Array, Array]:
    """The steps (of 0.1) at which g passes LEVELS, and the point where it passes the last."""
    record = np.arange(1, MOST + 1.0)
    points, g, _ = descend(example, 0.1, beta, record)
    return np.array([reached(record, g, level) for level in LEVELS]), points[np.argmax(g <= 1e-9)]


def ball(example: str) -> dict[str, Any]:
    """The CL condition on the ball around the start, and how far away the memorized point is."""
    case, found = examples()[example], condition(example)
    levels, point = memorization(example, 1e-6)
    return {
        "holds": bool(found.holds),
        "chi": found.lower,
        "zero_within": found.zero_within,
        "with_first_chi": zero_by_first_chi(case),
        "levels": levels,
        "way": float(np.linalg.norm(point - np.array(case.start))),
    }


study = sized(
    "N-T21",
    function=cell,
    arguments={"step": 0.1},
    grid={"example": [*SHARP, *SMOOTH], "beta": [1e-2, 1e-3, 1e-4]},
    standard={"grid": {"beta": [1e-2, 1e-3, 1e-4, 1e-5]}},
    full={"grid": {"beta": [1e-2, 1e-3, 1e-4, 1e-5, 1e-6]}},
)
steps = sized(
    "N-T21-steps",
    function=cell,
    arguments={"beta": 1e-2},
    grid={"example": SHARP, "step": [1e-1, 1e-2, 1e-3, 1e-4]},
)
balls = sized(
    "N-T21-ball", function=ball, grid={"example": [*SHARP, *SMOOTH]}, dims={"levels": ["level"]}
)


def check(dataset: xarray.Dataset, steps: xarray.Dataset, balls: xarray.Dataset) -> Evidence:
    """Both orders, the law of the delay, exponential memorization and its distance."""
    pace, smaller = 0.1 * dataset.beta, 1e-2 * steps.step
    sharp, smooth = dataset.sel(example=SHARP), dataset.sel(example=SMOOTH)

    def worst(name: str, of: Callable[[Any, Any], Any], log: bool) -> float:
        """The largest error in units of `of`(step, beta), smooth penalties with the log or not."""
        late = smooth[f"log_{name}"] if log else smooth[name]
        rows = [(sharp[name], of(0.1, dataset.beta)), (late, of(0.1, dataset.beta))]
        rows.append((steps[name], of(steps.step, 1e-2)))
        return max(float((errors / unit).max()) for errors, unit in rows)

    def law(name: str) -> list[float]:
        later = dataset.isel(beta=slice(1, None))
        return [slope(0.1 * later.beta, row) + 1 for row in later[name].values]

    f_error = Check(
        "largest |f - f*|/(step beta^2)",
        worst("f", lambda s, b: s * b**2, log=False),
        BOUND,
        kind="at most",
    )
    h_error = Check(
        "largest |h - h_g*|/(step beta)",
        worst("h", lambda s, b: s * b, log=False),
        BOUND,
        kind="at most",
    )
    h_right = Check(
        "largest |h - h_g*|/beta",
        worst("h", lambda s, b: b, log=True),
        BOUND,
        kind="at most",
    )
    delay = Check(
        "largest deviation of the exponent of the delay in step beta from -1",
        max(law("delay"), key=abs),
        tolerance=0.05,
    )
    decades = np.diff(balls.levels.values, axis=1)
    fast = Check(
        "unevenness of the steps per decade of g during memorization",
        np.abs(decades[:, 1] / decades[:, 0] - 1).max(),
        tolerance=0.25,
    )
    near = Check(
        "largest distance of the memorized point over 2 sqrt(g/chi)",
        float((balls.way / balls.zero_within).max()),
        1.0,
        1e-3,
        "at most",
    )
    last = steps.sel(example=SHARP[0]).isel(step=-1)
    half = smooth.half_f.sel(example=SMOOTH[0]) / (0.1 * dataset.beta**2)
    reach = f"beta {float(dataset.beta[0]):g} to {float(dataset.beta[-1]):g}"
    return Evidence(
        ran="; ".join(dataset.example.values) + f": steps 0.1 with {reach}, and"
        f" beta 0.01 with steps 0.1 to 1e-4; errors after {TIME:g}/(step beta) steps",
        premises={
            f"{name}: r-CL at the start": _met(balls.sel(example=name))
            for name in balls.example.values
        },
        checks=[f_error, h_error, delay, fast, near],
        corrected=[
            f_error.control(worst("f", lambda s, b: s * b**2, log=True)),
            h_right,
            delay,
            fast,
            near,
        ],
        correction="h reaches h_g* only up to O(beta): at the minimiser of f itself h - h_g* is"
        " of order -beta, however small the step is. Theta(1/(step beta)) steps"
        " suffice where h has a kink at its least interpolator (l1, nuclear norm:"
        " finite time); where it is smooth there the approach is exponential in step"
        " beta t, and an error O(step beta^2) takes Theta(log(1/(step beta))/(step"
        " beta)) steps.",
        counterexample={
            "h": f"g = (x + 2y - 2)^2/2, h = |x| + |y|, h_g* = 1: descent ends at y = 1 - beta/4;"
            f" with step {float(last.step):g} and beta 0.01 |h - h_g*| = {float(last.h):.4g} ="
            f" {float(last.h / (last.step * 1e-2)):.0f} step beta",
            "time": "the same g, h = x^2 + y^2, from (2, -1): |f - f*|/(step beta^2) after"
            f" {TIME / 2:g}/(step beta) steps: "
            + ", ".join(f"{value:.3g}" for value in half.values)
            + f" at step 0.1, {reach}",
        },
        controls={
            "h up to O(step beta)": h_error.control(worst("h", lambda s, b: s * b, log=True)),
            "h up to O(beta^2)": h_right.control(worst("h", lambda s, b: b**2, log=True)),
            "no logarithm for smooth penalties": f_error.control(
                float((smooth.f / (0.1 * dataset.beta**2)).max())
            ),
            "a delay that scales like the time to memorize": delay.control(
                min(law("memorized"), key=abs)
            ),
            "chi at the start in place of the least chi on the ball": near.control(
                float((balls.way / balls.with_first_chi).max())
            ),
        },
        findings=[
            "at the kinks |f - f*|/(step beta^2) settles at "
            + ", ".join(
                f"{float(one / (0.1 * dataset.beta[-1] ** 2)):.3g} ({name})"
                for name, one in zip(SHARP, sharp.f.isel(beta=-1), strict=True)
            )
            + ": the order step beta^2 is sharp",
            "from above, h - h_g* is O(step beta) as printed, at most"
            f" {worst('above', lambda s, b: s * b, log=True):.2f} step beta here; it is"
            " the shrinkage below h_g* that is of the order beta",
        ],
        plots=[
            Plot(
                "(a) time to generalize: like 1/(step beta)",
                "step beta",
                "steps until h is 0.02 above its least value",
                [Series(n, pace, dataset.delay.sel(example=n)) for n in [*SHARP, *SMOOTH]],
                "log",
                "log",
            ),
            Plot(
                "(b) remaining error of h: like beta, for every step",
                "step beta",
                "|h - h_g*|",
                [
                    Series("line, l1: step 0.1, beta varies", pace, sharp.h[0]),
                    Series("line, l1: beta 0.01, step varies", smaller, steps.h[0]),
                    Series("step beta, the printed order", smaller, smaller, "dashed"),
                ],
                "log",
                "log",
            ),
        ],
    )


def _met(ball: xarray.Dataset) -> tuple[bool, float]:
    return bool(ball.holds), float(ball.chi)


experiment = Experiment(
    "N-T21",
    statement="If g is r-CL at the start, subgradient descent on g + beta h first goes"
    " exponentially fast to a zero of g near the start, and within Theta(1/(step beta)) more steps"
    " f reaches f* up to O(step beta^2) and h reaches h_g* = inf of h where g = 0 up to"
    " O(step beta).",
    place="Grokking Beyond the l2 norm, Theorem 2.1",
    study=(study, steps, balls),
    check=check,
    title="The penalty takes about 1/(step β) steps and leaves an error of order β",
    ours="the objectives, the steps and the strengths",
    seconds=4,
)
