"""The inequalities that the proofs rest on, along training and for h_D."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_least,
    at_most,
    sized,
    within,
)
from penchant.problems import three_points
from penchant_papers.moroshko2020.lemmas.runs import (
    Case,
    RecordedTraining,
    cases,
    crowded,
    h,
    h_slope,
    listed,
    nth,
    numbered,
    of_kind,
    run_far,
)

DEPTHS, POWERS = (2, 3, 5), (3, 4, 5, 8, 20)


def gap(run: RecordedTraining) -> Array:
    """gtilde - gamma, between 0 and log N by eq. (10); the loss is that of the margins."""
    above = run.margins - run.margins.min(axis=1, keepdims=True)
    return np.asarray(-np.log(np.exp(-above).mean(axis=1)))


def pull(run: RecordedTraining) -> Array:
    """|X r|_2 / |r|_1, at least gamma_2 by eq. (19)."""
    q = run.shares / run.shares.sum(axis=1, keepdims=True)
    return np.asarray(np.linalg.norm(q @ run.case.rows, axis=1))


def supported(run: RecordedTraining) -> int:
    """How many samples are within one percent of the smallest margin at the end."""
    last = run.margins[-1]
    return int((last < 1.01 * last.min()).sum())


def of_h(deeper: int) -> dict[str, float]:
    """The least h_D' (D-2)/(2D), eq. (8), and |h_D(z)/z (D-2)/(2D) - 1| at z = 1e-5, eq. (9)."""
    z, tiny = np.linspace(-0.999, 0.999, 1999), np.array(1e-5)
    slopes = [h_slope(z, D + deeper).min() * (D - 2) / (2 * D) for D in POWERS]
    ratios = [float(h(tiny, D + deeper) / tiny) * (D - 2) / (2 * D) for D in POWERS]
    return {"slope": min(slopes), "zero": max(abs(ratio - 1) for ratio in ratios)}


def cell(run: str, *, longer: float, seed: int) -> dict[str, Any]:
    """The sides of the inequalities for one run; gamma_2 is taken `longer` times as large."""
    if run.startswith("h"):
        return of_h(deeper=int(run.removeprefix("h_D+")))
    if run == "panel":
        case = Case("panel 3b", three_points("3b"), 2, 100.0)
    elif run == "crowded":
        case = Case("panel 3d with 27 points far off", crowded(), 2, 30.0)
    else:
        case = nth(cases(seed, depths=DEPTHS), int(run.split()[1]))
    training = run_far(case)
    g, shortest = training.smoothed_margin, float(np.linalg.norm(case.rows, axis=1).min())
    above, length, pulled = (
        gap(training),
        np.linalg.norm(training.predictor, axis=1),
        pull(training),
    )
    return {
        "label": str(case),
        "margin": g,
        "above": above / np.log(len(case.rows)),
        "above_support": above[-1] / np.log(1 + supported(training)),
        "least_above": above.min(),
        "least_summed": (above - np.log(len(case.rows))).min(),
        "length": (g / length).max() / case.x_max,
        "length_shortest": (g / length).max() / shortest,
        "pull": pulled / (longer * case.gamma_2),
        "pull_shortest": pulled.min() / shortest,
        "drift": np.abs(training.margins.min(axis=1) + above - g).max(),
        "last_ratio": abs(g[-1] / training.margins[-1].min() - 1),
    }


FIXED = ["panel", "crowded", "h_D+0", "h_D+1"]
study = sized(
    "M-I",
    function=cell,
    arguments={"longer": 1.0, "seed": 5},
    grid={"run": [*numbered("far", 5), *FIXED]},
    dims={"margin": ["record"], "above": ["record"], "pull": ["record"]},
    tiny={"grid": {"run": [*numbered("far", 3), *FIXED]}},
    printed={"grid": {"run": [*numbered("far", 25), *FIXED]}},
)


def check(dataset: Dataset) -> Evidence:
    """Every inequality at its worst record, each with a plausible wrong one."""
    runs = of_kind(dataset, "far", "panel", "crowded")
    drift = runs.drift.values.max()
    ratio = at_most(runs.above.max(), 1.0, 1e-8)
    above_margin = at_least(runs.least_above.values.min(), tolerance=1e-8)
    norm = at_most(runs.length.values.max(), 1.0, 1e-8)
    weak = at_least(runs.pull.min(), 1.0, 1e-8)
    right, deeper = dataset.sel(run="h_D+0"), dataset.sel(run="h_D+1")
    slope = at_least(right.slope, 1.0, 1e-8)
    zero = within(right.zero, tolerance=1e-7)
    shown = [runs.sel(run=name) for name in ("far 0", "far 1", "panel")]
    return Evidence(
        ran=f"{runs.sizes['run']} data sets with labels of both signs and panels of M, depths "
        f"{DEPTHS}, trained in the parameters to loss $e^{{-1000000}}$; $h_D$ at depths 3, 4, "
        "5, 8 and 20",
        checks={
            r"eq. (10): largest $(\tilde{\gamma} - \gamma)/\log N$": ratio,
            r"eq. (10): least $\tilde{\gamma} - \gamma$": above_margin,
            r"eq. (12): largest $\tilde{\gamma}/(x_{\max} |w|_2)$": norm,
            r"eq. (19): least $|X r|_2/(\gamma_2 |r|_1)$": weak,
            "eq. (8): least $h_D'(z) (D-2)/(2 D)$": slope,
            "eq. (9): largest $|h_D(z)/z (D-2)/(2 D) - 1|$ at $z = 10^{-5}$": zero,
            r"eq. (11): $|\tilde{\gamma}/\gamma - 1|$ at loss $e^{-1000000}$": within(
                runs.last_ratio.values.max(), tolerance=1e-5
            ),
        },
        premises={"times and margins of the runs agree": (drift < 1e-5, drift)},
        controls={
            r"log(1 + support vectors) in place of $\log N$ in eq. (10)": ratio.control(
                runs.above_support.values.max()
            ),
            "the sum of the losses in place of their mean in eq. (10)": above_margin.control(
                runs.least_summed.values.min()
            ),
            "the shortest point in place of the longest in eq. (12)": norm.control(
                runs.length_shortest.values.max()
            ),
            r"the shortest point in place of $\gamma_2$ in eq. (19)": weak.control(
                runs.pull_shortest.values.min()
            ),
            "$h$ of depth $D + 1$ in eq. (8)": slope.control(deeper.slope),
            "$h$ of depth $D + 1$ in eq. (9)": zero.control(deeper.zero),
        },
        findings=[
            "eq. (19) is attained in the kernel regime: "
            rf"{float(runs.pull.sel(run='panel').min()):.8f} on panel 3b with $\alpha = 100$",
            not_monotone(),
        ],
        plots=[
            Plot(
                title,
                r"smoothed margin $\tilde{\gamma}$",
                label,
                [Series(str(run.label.values), run.margin, run[name].values) for run in shown],
                x_scale="log",
            )
            for name, title, label in (
                ("above", "eq. (10): between 0 and 1", r"$(\tilde{\gamma} - \gamma)/\log N$"),
                ("pull", "eq. (19): at least 1", r"$|X r|_2/(\gamma_2 |r|_1)$"),
            )
        ],
    )


def not_monotone() -> str:
    """log((e^g - 1)/K)/g, K = N x_max^2, which appendix E calls increasing."""
    g = np.linspace(0.05, 40, 4000)
    falls = {K: bool((np.diff(np.log(np.expm1(g) / K) / g) < 0).any()) for K in (0.02, 1.0, 12.0)}
    values = np.log(np.expm1(np.array([1.0, 10.0, 30.0])) / 0.02) / [1.0, 10.0, 30.0]
    bad = ", ".join(f"{K:g}" for K, fell in falls.items() if fell)
    good = ", ".join(f"{K:g}" for K, fell in falls.items() if not fell)
    return (
        r"appendix E: $\log((e^g - 1)/(N x_{\max}^2))/g$ increases for $N x_{\max}^2 = "
        f"{good}$ but not for {bad} (two points of length 0.1: {listed(values)} at $g = 1$, "
        r"10, 30); it needs $N x_{\max}^2 \geq 1$, and the proof only the limit 1"
    )


experiment = Experiment(
    "M-I",
    statement=r"During training $\gamma \leq \tilde{\gamma} \leq \gamma + \log N$, $|w|_2 \geq "
    r"\tilde{\gamma}/x_{\max}$ and $|X r|_2 \geq \gamma_2 |r|_1$ hold, and so do $h_D' \geq 2 "
    r"D/(D-2)$ and $h_D(z)/z \to 2 D/(D-2)$.",
    place="appendix B, eqs. (8)-(12); appendix C, eq. (19)",
    study=study,
    check=check,
    title="Margin, norm and gradient of the loss stay within their bounds during training",
)
