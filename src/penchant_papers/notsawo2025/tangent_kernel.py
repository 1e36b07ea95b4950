"""From the kernel to the rich regime: the directions before t2, the time t2, and the end."""

from __future__ import annotations

import numpy as np

from penchant.lab import Array, Dataset, Evidence, Experiment, Plot, Series, at_most, sized, within
from penchant.measures import crossing
from penchant.plotting import latex
from penchant_papers.instances import listed
from penchant_papers.notsawo2025.decayed_nets import (
    APART,
    DEGREES,
    EARLY,
    LATE,
    POWERS,
    RESIDUALS,
    SHARES,
    cell,
)

MORE = 1.5  # factor of safety on what is of order 1/log|theta(0)|, a law of large starts
study = sized(
    "N-NTK",
    title=r"Diagonal nets under weight decay leave the kernel regime at $\log|\theta(0)| / \beta$",
    function=cell,
    arguments={"seed": 0, "samples": 4, "features": 8, "powers": POWERS, "rtol": 1e-5},
    grid={
        "log_gamma": [120.0, 320.0],
        "instance": [0, 1],
        "task": ["classification", "regression"],
    },
    dims={name: ["place"] for name in (*DEGREES, *RESIDUALS, "share")},
    labels={
        **DEGREES,
        **RESIDUALS,
        "log_gamma": r"log of $|\theta(0)|$",
        "share": r"$\beta t / \log|\theta(0)|$",
        "kkt_of_kernel": "KKT residual of the predictor of the kernel, with balanced layers",
        "euler": r"largest $\langle w(0)(x), \theta(0)\rangle$, over the norm of the features",
    },
    draw={"x": "log_gamma", "colour": "kkt_of_kernel"},
    tiny={"grid": {"instance": [0]}},
    # At rtol 1e-6 the residuals of the eight regressions from the larger start have the same three
    # digits as at 1e-5, but one takes 6 times as long as any other; at 1e-7 a run was not at
    # its end after 100,000 integrator steps.
    printed={"grid": {"instance": list(range(8))}},
)


def ran(dataset: Dataset) -> str:
    gammas = listed(dataset.log_gamma)
    return (
        f"{dataset.sizes['instance']} classifications and regressions of 4 samples in $R^8$, "
        r"diagonal nets of depth 2, $\theta(0) = \alpha$ (1, ..., 1), exact flow with $\beta "
        rf"= |\theta(0)|^{{-c}}$, $c = 1$ and 0.0375, $\log|\theta(0)| = {gammas}$; {APART:g} "
        f"degrees or more between the two limits, as in {dataset.sizes['instance']} of "
        f"{int(dataset.draws.max())} draws at least"
    )


def at(dataset: Dataset, name: str, place: int, task: str | None = None) -> Array:
    """A measure at one time for the largest start, of every run or of one task."""
    values = dataset[name].isel(place=place, log_gamma=-1)
    return np.ravel(values.values if task is None else values.sel(task=task).values)


def curves(dataset: Dataset, names: dict[str, str], task: str) -> list[Series]:
    """Measures of the first run from the largest start, at equally spaced times."""
    even = [int(np.abs(SHARES - share).argmin()) for share in np.linspace(0.25, 1.75, 61)]
    run = dataset.isel(log_gamma=-1, instance=0, place=sorted(set(even))).sel(task=task)
    return [Series(text, run.share.values, run[name].values) for name, text in names.items()]


def check_direction(dataset: Dataset) -> Evidence:
    """At (1 - epsilon) t2: the directions of the predictor, of theta, and of its change."""
    tasks = ("classification", "regression")
    same = within(at(dataset, "to_kernel", EARLY).max(), tolerance=1.0)
    both = {"largest angle of the predictor to that of the kernel at $t_2/2$, degrees": same}
    corrected = [
        within(at(dataset, "moved_to_kernel", EARLY, task).max(), tolerance=1.0) for task in tasks
    ]
    moved = r"largest angle of $e^{\beta t} \theta - \theta(0)$ to the kernel solution in"
    first = dataset.moved_to_kernel.isel(place=EARLY).sel(task="classification").max("instance")
    euler = float(dataset.euler.max())
    names = {
        "theta_to_kernel": r"$\theta(t)$, as printed",
        "moved_to_kernel": r"$\theta(t)$ without the decay, minus $\theta(0)$",
        "theta_to_start": r"$\theta(t)$ to $\theta(0)$",
        "moved_to_rich": r"the same, to the $\ell_1$ solution",
    }
    return Evidence(
        ran=ran(dataset),
        checks={
            **both,
            **{
                rf"largest angle of $\theta(t_2/2)$ to the kernel solution in {task}, "
                "degrees": within(at(dataset, "theta_to_kernel", EARLY, task).max(), tolerance=1.0)
                for task in tasks
            },
        },
        corrected={
            **both,
            **{f"{moved} {task}": one for task, one in zip(tasks, corrected, strict=True)},
            r"largest angle of $\theta(t_2/2)$ to $\theta(0)$, degrees": within(
                at(dataset, "theta_to_start", EARLY).max(), tolerance=1.0
            ),
        },
        correction=r"$\theta(t_1)$ points along $\theta(0)$; the difference $e^{\beta t_1} "
        r"\theta(t_1) - \theta(0)$ points along the solution of the kernel problem, in "
        "classification and in regression",
        counterexample=r"by Euler $\langle \nabla f(\theta(0)), \theta(0)\rangle = L "
        r"f(\theta(0))$, which is 0 for a start that computes zero: every solution of the "
        r"kernel problem is a sum of these gradients and orthogonal to $\theta(0)$, whose "
        r"direction $\theta$ keeps",
        premises={
            r"$\theta(0)$ is orthogonal to all features of the kernel": (euler < 1e-12, euler)
        },
        controls={
            r"the solution of least $\ell_1$ norm": corrected[0].control(
                at(dataset, "moved_to_rich", EARLY).min()
            ),
            "a kernel with random weights": corrected[0].control(
                at(dataset, "moved_to_random", EARLY).min()
            ),
            r"$\theta(t_1) - \theta(0)$, without the decay": corrected[0].control(
                at(dataset, "plain_to_kernel", EARLY).min()
            ),
            "the predictor at $3 t_2/2$": same.control(at(dataset, "to_kernel", LATE).min()),
        },
        findings=[
            r"in classification the angle falls like $1/\log|\theta(0)|$: "
            + listed(first, ".2f")
            + " degrees; in regression it is exponentially small",
        ],
        plots=[
            Plot(task, r"$\beta t / \log|\theta(0)|$", "degrees", curves(dataset, names, task))
            for task in tasks
        ],
    )


def progress(dataset: Dataset) -> Array:
    """The angle of every predictor to the kernel's, over that at the end of its run.

    The end has the decay of its run, of order 0.01 in a regression from the smaller start, and can
    lie ten degrees from the limit without decay.
    """
    far = dataset.to_kernel / dataset.to_kernel.isel(place=-1)
    return np.asarray(far.transpose("log_gamma", "task", "instance", "place").values)


def crossings(dataset: Dataset, level: float) -> Array:
    """The share of log|theta(0)| / beta at which the runs pass the level, a row for each start."""
    rows = progress(dataset)
    flat = rows.reshape(rows.shape[0], -1, rows.shape[-1])
    return np.array([[crossing(SHARES, row, level) for row in runs] for runs in flat])


def check_time(dataset: Dataset) -> Evidence:
    """When the predictor leaves the kernel limit, when it is halfway to its end, and how fast.

    Every deviation from t2 is of order 1/log|theta(0)| in the share of t2, and so is the width.
    """
    half, low, high = (crossings(dataset, level) for level in (0.5, 0.1, 0.9))
    place = within(np.median(half[-1]), 1.0, 0.05)
    widths, ends = high - low, dataset.to_kernel.isel(place=-1)
    law = float(dataset.log_gamma[0] / dataset.log_gamma[-1])
    width = at_most(np.median(widths[-1] / widths[0]), MORE * law)
    largest = float(dataset.log_gamma[-1])
    lines = [
        Series(rf"$\log|\theta(0)| = {latex(float(g))}$", SHARES, row[0, 0])
        for g, row in zip(dataset.log_gamma.values, progress(dataset), strict=True)
    ]
    return Evidence(
        ran=ran(dataset),
        checks={
            r"median of $\beta t / \log|\theta(0)|$ halfway, at the largest start": place,
            "largest distance from 1 where a tenth of the path is done": within(
                np.abs(low[-1] - 1).max(), tolerance=0.05
            ),
            "median width of the transition from 10 % to 90 % of the path, over that"
            " from the smallest start": width,
        },
        premises={
            f"every run ends {APART / 2:g} degrees or more from the kernel limit": (
                bool(ends.min() >= APART / 2),
                float(ends.min()),
            )
        },
        controls={
            r"$\log|\theta(0)| / (2 \beta)$, for a penalty $\beta |\theta|^2$": place.control(
                predicted=0.5
            ),
            r"$\log|\theta(0)|^2 / \beta$": place.control(predicted=2.0),
            r"$1/\beta$, independent of the start": place.control(predicted=1 / largest),
            r"the halfway point of the smallest start, in units of $1/\beta$": place.control(
                float(np.median(half[0])) * float(dataset.log_gamma[0]) / largest
            ),
        },
        findings=[
            "halfway at "
            + "; ".join(
                rf"{np.median(row):.3f} for $\log|\theta(0)| = {latex(float(g))}$"
                for g, row in zip(dataset.log_gamma.values, half, strict=True)
            )
        ],
        plots=[
            Plot(
                "a transition at $t_2$, sharper for larger starts",
                r"$\beta t / \log|\theta(0)|$",
                "angle to the kernel limit, over that at the end",
                lines,
            )
        ],
    )


def check_margins(dataset: Dataset) -> Evidence:
    """At (1 + epsilon) t2: the KKT conditions with linear margins, and with those of the net."""
    printed = within(at(dataset, "kkt_linear", LATE).max(), tolerance=0.02)
    corrected = within(at(dataset, "kkt", LATE).max(), tolerance=0.02)
    early, late = (dataset.kkt.isel(place=place) for place in (EARLY, LATE))
    law = float(dataset.log_gamma[0] / dataset.log_gamma[-1])  # residuals of 1/log|theta(0)|
    falls = at_most((late.isel(log_gamma=-1) / late.isel(log_gamma=0)).max(), MORE * law)
    names = {
        "kkt_linear": r"linear in $\theta$, as printed",
        "kkt": "margins of the net, corrected",
    }
    return Evidence(
        ran=ran(dataset),
        checks={
            r"largest KKT residual at $3 t_2/2$, margins $y \langle w(x), \theta\rangle$ "
            r"linear in $\theta$": printed
        },
        corrected={
            r"largest KKT residual at $3 t_2/2$, margins $y f(\theta; x)$ of the net": corrected,
            "largest of these residuals over that of the smallest start": falls,
        },
        correction=r"the condition is $y f(\theta; x) \geq 1$, in regression $f(\theta; x) = y$, "
        r"under which $|\theta|^2 / 2$ is least; by Euler it is $y \langle \nabla f(\theta; "
        r"x), \theta\rangle \geq L$ with the gradient at $\theta$ itself, not a fixed vector "
        "of features",
        counterexample=r"$\langle y(x), \theta\rangle$ is the product of an output with the "
        "parameters, which is not defined; with the features $w(0)(x)$ in its place "
        rf"$\theta(3 t_2/2)$ is {at(dataset, 'theta_to_kernel', LATE).min():.0f} degrees or "
        "more from the solution",
        controls={
            r"$\theta$ at $t_2/2$, from a larger start": falls.control(
                (early.isel(log_gamma=-1) / early.isel(log_gamma=0)).min()
            ),
            r"$\theta$ at $t_2/2$": corrected.control(at(dataset, "kkt", EARLY).min()),
            "the predictor of the kernel, with balanced layers": corrected.control(
                dataset.kkt_of_kernel.min()
            ),
        },
        findings=[r"$|\theta|_2 / 2$ has the same minimiser as $|\theta|_2^2 / 2$, which is meant"],
        plots=[
            Plot(
                task,
                r"$\beta t / \log|\theta(0)|$",
                "KKT residual",
                curves(dataset, names, task),
                y_scale="log",
            )
            for task in ("classification", "regression")
        ],
    )


PLACE = "Grokking as a transition from the kernel to the rich regime"
OURS = (
    r"diagonal nets of depth 2, the problems, $\beta = |\theta(0)|^{-c}$ with $c = 1$ "
    "(classification)"
)
OURS += r" and 0.0375 (regression), $\log|\theta(0)| = 120$ and 320, $\epsilon = 1/2$"
FAMILY = "one family, diagonal nets of depth 2 on 4 samples in $R^8$, of finite starts"
SCOPE = {"quick": f"{FAMILY}; two problems of each kind", "printed": FAMILY}
direction = Experiment(
    "N-NTK",
    statement="For a homogeneous model with a large start and weight decay, gradient flow at $t_1 "
    r"= (1 - \epsilon) t_2$ gives the classifier (in regression the interpolant) of the "
    r"tangent kernel, and $\theta(t_1)/|\theta(t_1)|$ points along the solution of the "
    "kernel's problem.",
    place=f"{PLACE}, first item",
    study=study,
    check=check_direction,
    title=r"The change of $\theta$ points along the kernel solution; $\theta$ itself still points "
    "along its start",
    ours=OURS,
    scope=SCOPE,
    seconds=2,
)
time = Experiment(
    "N-NTK-t2",
    statement=r"Gradient flow on $g + (\beta/2) |\theta|^2$ from a large start leaves the kernel "
    r"regime at $t_2 = \log|\theta(0)| / \beta$.",
    place=f"{PLACE}, $t_2$",
    study=study,
    check=check_time,
    title=r"The kernel regime ends at $t_2 = \log|\theta(0)| / \beta$",
    ours=OURS,
    scope=SCOPE,
    seconds=3,
)
margins = Experiment(
    "N-NTK-KKT",
    statement=r"At $(1 + \epsilon) t_2$ the parameters point along a KKT point of min "
    r"$|\theta|/2$ subject to $y \langle y(x), \theta\rangle \geq 1$ in classification and "
    r"$\langle y(x), \theta\rangle = y$ in regression.",
    place=f"{PLACE}, second item",
    study=study,
    check=check_margins,
    title="After $t_2$ the parameters meet the KKT conditions of the net's own margins",
    ours=OURS,
    scope=SCOPE,
    seconds=3,
)
