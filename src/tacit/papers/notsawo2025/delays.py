"""The delay t2 - t1 of recovery with a penalty, and the error that is left: cells and checks."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Evidence, within
from tacit.evidence.plot import Plot, Series
from tacit.papers.instances import slope
from tacit.papers.notsawo2025.recoveries import reached, recovery

if TYPE_CHECKING:
    import xarray

LAST = 50  # iterates over which errors are means: they keep hopping over zero
SETTLE = 300.0  # step times steps that a run has to come to rest after its slow phase


def cell(beta: float, step: float, level: float, relative: bool, **problem: Any) -> dict[str, Any]:
    """t1, t2 and the errors at rest of one run, with what theory foresees.

    `relative` gives the step in units of the one that diverges, and the error `level` of t2 in
    units of |a*|. `tau` is the time of the slow phase down to that error, `gap` N's numerator;
    `to_truth` and `to_point` are h(a - a*) and h(a - a_beta) at rest, a_beta the minimiser of
    g + beta h, and `above_truth` and `above_point` are h(a) - h(a*) and h(a) - h(a_beta).
    """
    case = recovery(**problem)
    size = float(np.linalg.norm(case.truth))
    rate, error = (step * case.bound, level * size) if relative else (step, level)
    slow, pace = case.path, rate * beta
    tau = slow.reaches(case.truth, error)
    end = math.ceil(1.5 * slow.time / pace + SETTLE / rate)
    near = np.linspace(0.8, 1.4, 31) * tau / pace if math.isfinite(tau) else np.zeros(1)
    rest = np.arange(end - LAST + 1, end + 1)
    run = case.run(rate, beta, np.concatenate([np.floor(near), rest]))
    steps, points = run.step.values.astype(float), case.points(run)[-LAST:]
    t1, t2 = case.t1(rate), reached(steps, run.relative_error.values, error / size)
    gap, point = slow.points[0] - case.truth, case.penalized(beta)
    h = {
        name: float(case.sizes(rows).mean())
        for name, rows in {
            "to_truth": points - case.truth,
            "to_point": points - point,
            "at_rest": points,
            "of_point": point[None],
            "of_truth": case.truth[None],
            "point_error": (point - case.truth)[None],
            "noise_error": (case.least - case.truth)[None],
            "memory": gap[None],
        }.items()
    }
    return h | {
        "t1": t1,
        "t2": t2,
        "pace": pace,
        "scaled": (t2 - t1) * pace,
        "tau": tau,
        "bound": case.bound,
        "gap": case.dual(gap),
        "euclidean": float(np.linalg.norm(gap)),
        "above_truth": h["at_rest"] - h["of_truth"],
        "above_point": h["at_rest"] - h["of_point"],
        "last_error": float(np.linalg.norm(slow.end - case.truth) / (size if relative else 1)),
    }


@dataclasses.dataclass(frozen=True)
class Words:
    """How a theorem writes its quantities."""

    a: str  # the predictor
    gap: str  # the numerator as printed
    norm: str  # of the errors, its index
    named: str  # the same in words
    point: str  # the minimiser of g + beta h


def in_beta(variable: Any) -> Array:
    """One row for each problem, over beta."""
    return np.asarray(variable.transpose(..., "beta").values.reshape(-1, variable.sizes["beta"]))


def smallest(variable: Any) -> Array:
    """The values of every problem at its smallest beta, the last."""
    return in_beta(variable)[:, -1]


def spread(ratios: Array) -> float:
    """The largest relative miss of ratios from their best constant."""
    return float(np.ptp(ratios) / (ratios.max() + ratios.min()))


def evidence(
    words: Words,
    clean: list[xarray.Dataset],
    noisy: xarray.Dataset,
    steps: xarray.Dataset,
    tolerance: float,
    **told: Any,
) -> Evidence:
    """The law of the delay and of the errors, as printed and as corrected.

    The first of `clean` has several beta for the exponents; `noisy` has one problem over (noise,
    beta), `steps` the same one without noise over (step,); `tolerance` is that of the exponents
    of what is left.
    """
    first, a, error = clean[0], words.a, f"|{words.a} - {words.a}*|_{words.norm}"
    paces, delays = in_beta(first.pace), in_beta(first.scaled / first.pace)
    powers = [slope(p, d) for p, d in zip(paces, delays, strict=True)]
    smooth = [slope(p, np.log(1 / p) / p) for p in paces]
    low, weakest = first.beta[-2:], noisy.isel(beta=-1)
    found = weakest.scaled.where(np.isfinite(weakest.tau)) / weakest.tau
    scaled, tau, gap, plain = (
        np.concatenate([smallest(one[name]) for one in clean])
        for name in ("scaled", "tau", "gap", "euclidean")
    )
    with_noise = found.values[np.isfinite(found.values)]
    law = within(max((power + 1 for power in powers), key=abs), tolerance=0.05)
    printed = within(np.abs(scaled / gap - 1).max(), tolerance=0.05)
    slow = within(np.abs(np.append(scaled / tau, with_noise) - 1).max(), tolerance=0.05)
    by_beta = within(
        max((slope(low, row[-2:]) - 1 for row in in_beta(first.to_truth)), key=abs),
        tolerance=tolerance,
    )
    over_all = within(slope(first.beta, in_beta(first.to_truth)[0]) - 1, tolerance=tolerance)
    by_step, to_point = (
        within(slope(steps.step.values, steps[name].values) - 1, tolerance=tolerance)
        for name in ("to_truth", "to_point")
    )
    loud = weakest.isel(noise=noisy.noise.values > 1e-6)
    noise = within(slope(1 / loud.noise, loud.to_truth) + 0.5, tolerance=0.05)
    time = {"largest deviation of the exponent of t2 - t1 in step beta from -1": law}
    power = f"deviation of the exponent of {error} in"
    errors = {
        f"{power} beta from 1 at the smallest beta": by_beta,
        f"{power} beta from 1 over all beta, first problem": over_all,
    }
    faint = noisy.sel(noise=noisy.noise.values[0])
    ratios = scaled / gap
    return Evidence(
        checks={
            **time,
            f"largest |(t2 - t1) step beta/{words.gap} - 1|": printed,
            **errors,
            f"{power} the step from 1": by_step,
        },
        corrected={
            **time,
            "largest |(t2 - t1) step beta/tau - 1|, tau the time of the slow phase": slow,
            **errors,
            f"deviation of the exponent of |{a} - {words.point}|_{words.norm} in the step from"
            " 1": to_point,
            f"{power} the signal-to-noise ratio from -1/2": noise,
        },
        correction="t2 = t1 + tau/(step beta), tau the time that steepest descent of"
        f" |{a}|_{words.norm} on {{X {a} = y}} takes from {a}_hat to the required"
        f" error (tacit.slow_flow); {words.gap} only has the same order of magnitude"
        f" in N's experiment. {error} goes to that of {words.point}, the minimiser of"
        " g + beta h, O(beta) however small the step is, plus O(step beta); noise"
        " adds the error of the interpolator of least norm, like SNR^(-1/2), and"
        " where that is above the required error there is no t2.",
        counterexample={
            "numerator": f"(t2 - t1) step beta/{words.gap} = "
            + ", ".join(f"{r:.2f}" for r in ratios)
            + " without noise: the error is not as claimed at the printed t",
            "error": f"{error}/(step beta) = "
            + ", ".join(f"{v:.0f}" for v in (steps.to_truth / steps.pace).values)
            + " at step beta = "
            + ", ".join(f"{v:.1g}" for v in steps.pace.values),
            "noise": f"at a signal-to-noise ratio of {1 / float(faint.noise):g}:"
            f" {error}/(step beta) = "
            + ", ".join(f"{v:.0f}" for v in (faint.to_truth / faint.pace).values)
            + " at beta = "
            + ", ".join(f"{v:g}" for v in noisy.beta.values),
        }
        | told.pop("counterexample", {}),
        controls={
            "log(1/(step beta))/(step beta), as for smooth penalties": law.control(
                min((one - other for one, other in zip(powers, smooth, strict=True)), key=abs)
            ),
            words.gap: slow.control(printed.measured),
            f"{words.gap}, best constant": slow.control(spread(ratios)),
            f"|{a}_hat - {a}*|_2, best constant": slow.control(spread(scaled / plain)),
            f"O(beta) at a signal-to-noise ratio of {1 / float(loud.noise[0]):g}": by_beta.control(
                slope(noisy.beta[-2:], noisy.to_truth.sel(noise=float(loud.noise[0]))[-2:]) - 1
            ),
            "the noise of the memorized point": noise.control(
                slope(1 / loud.noise, loud.memory) + 0.5
            ),
            f"the truth in place of {words.point}": to_point.control(by_step.measured),
        },
        findings=[
            "the exponents of t2 - t1 are " + ", ".join(f"{power:.4f}" for power in powers),
            f"tau predicts t2 up to {slow.measured:.1e} with no fitted constant",
            f"at a signal-to-noise ratio of {1 / float(loud.noise[-1]):g} the slow phase ends with"
            f" the error {float(loud.last_error[-1]):.2g}"
            + (", and there is no t2" if np.isnan(loud.t2[-1]) else ""),
            *told.pop("findings", []),
        ],
        plots=plots(words, first, noisy, steps),
        **told,
    )


def plots(
    words: Words, clean: xarray.Dataset, noisy: xarray.Dataset, steps: xarray.Dataset
) -> list[Plot]:
    """The delay over step beta, what is left over the step, and what noise leaves."""
    pace, scaled, tau, gap = (in_beta(clean[n])[0] for n in ("pace", "scaled", "tau", "gap"))
    weakest = noisy.isel(beta=-1)
    return [
        Plot(
            "(a) time to recover",
            "step beta",
            "t2 - t1 in steps",
            [
                Series("tau/(step beta), slow phase", pace, tau / pace),
                Series(f"{words.gap}/(step beta), as printed", pace, gap / pace, "dashed"),
                Series("measured", pace, scaled / pace, "points"),
            ],
            "log",
            "log",
        ),
        Plot(
            "(b) error at convergence, fixed beta",
            "step beta",
            f"distance in the {words.named}",
            [
                Series("to the truth", steps.pace, steps.to_truth),
                Series("to the minimiser of g + beta h", steps.pace, steps.to_point),
                Series("step beta, as printed", steps.pace, steps.pace, "dashed"),
            ],
            "log",
            "log",
        ),
        Plot(
            "(c) error due to noise at the smallest beta",
            "noise power over signal power",
            f"distance to the truth in the {words.named}",
            [
                Series("interpolator of least norm", weakest.noise, weakest.noise_error),
                Series("at convergence", weakest.noise, weakest.to_truth, "points"),
            ],
            "log",
            "log",
        ),
    ]
