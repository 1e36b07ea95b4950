"""Appendix E: the linearized model's accuracy, and its distance from log t times the l2 margin."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penchant import Classification, DiagonalNet
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_least,
    at_most,
    drawn,
    sized,
)
from penchant.models import linearize
from penchant.problems import separable_points
from penchant_papers.moroshko2020.lemmas.runs import Case
from penchant_papers.moroshko2020.stopping import max_margin_of, rows_at, trained

MARGINS = [1.0, 10.0, 100.0, 1000.0]
CLEAR = 1e-6  # a margin of the l2 max margin within this of 1 is that of a support vector


def duals_of(problem: Classification) -> tuple[Array, Any, Any]:
    """The l2 max margin, which samples support it, and their dual variables."""
    Z, w = problem.signed_rows, max_margin_of(problem, "l2")
    support = Z @ w < 1 + CLEAR
    return w, support, np.linalg.lstsq(Z[support].T, w)[0]


def regular(problem: Classification) -> bool:
    """Whether every support vector has a positive dual variable and the others are clearly off."""
    w, support, nu = duals_of(problem)
    off = problem.signed_rows[~support] @ w
    return bool(nu.min() > 1e-3 and (not off.size or off.min() > 1.1))


@functools.lru_cache(maxsize=64)
def set_of(seed: int) -> tuple[Classification, int]:
    return drawn(lambda k: separable_points(5, 4, margin=0.3, seed=k), regular, 1000 * seed)


def cell(seed: int, depth: int, *, alpha: float, factor: float) -> dict[str, Any]:
    """Sides of eqs. (37) and (39), integrated, and |kappa| of eq. (40), along one run.

    `factor` multiplies log t in kappa, which is 1 in (40); `other` is |kappa| with the l1 max
    margin in place of l2.
    """
    problem, draws = set_of(seed)
    case = Case("", problem, depth, alpha)
    path = trained(problem, linearize(DiagonalNet(depth, alpha=alpha)), MARGINS, per_decade=8)
    data = path.dataset.isel(time=slice(1, None))
    log_t, g = data.log_t.values, data.smoothed_margin.values
    rate = np.log(2 * depth**2) + (2 * depth - 2) * np.log(alpha)

    def bound(length: float) -> Array:
        return np.asarray(np.logaddexp(0.0, rate + 2 * np.log(length) + log_t))

    w, support, nu = duals_of(problem)
    shift = np.linalg.lstsq(problem.signed_rows[support], -np.log(nu))[0]
    rows = rows_at(data, MARGINS)
    clock = (rate - np.log(len(problem.y)) + log_t[rows])[:, None]
    reached = data.predictor.values[rows] - shift
    sizes = [
        np.linalg.norm(reached - times * clock * best, axis=1)
        for times, best in ((factor, w), (1.0, max_margin_of(problem, "l1")))
    ]
    return {
        "kappa": sizes[0],
        "other": sizes[1],
        "below": (g - bound(case.gamma_2)).min(),
        "above": (bound(case.x_max) - g).min(),
        "wrong_below": (g - bound(case.x_max)).min(),
        "wrong_above": (bound(case.gamma_2) - g).min(),
        "support": int(support.sum()),
        "draws": draws,
    }


study = sized(
    "M-E",
    function=cell,
    arguments={"alpha": 3.0, "factor": 1.0},
    grid={"depth": [2, 3]},
    seeds=20,
    dims={"kappa": ["margin"], "other": ["margin"]},
    tiny={"seeds": 4},
    printed={"seeds": 100},
)


def growth(sizes: Any) -> Any:
    """The exponent of 1 + |kappa| in the smoothed margin, over the last decade."""
    return np.log10((1 + sizes.isel(margin=-1)) / (1 + sizes.isel(margin=-2)))


def check(dataset: Dataset) -> Evidence:
    """Both bounds at every record, and a kappa that stays bounded."""
    below, above = (at_least(dataset[name].min(), tolerance=1e-6) for name in ("below", "above"))
    bounded = at_most(growth(dataset.kappa).max(), 0.1)
    partly = int((dataset.support.isel(depth=0) < 5).sum())
    typical = dataset[["kappa", "other"]].isel(depth=0).median("seed")
    return Evidence(
        ran=f"{dataset.sizes['seed']} sets of five points in four dimensions whose support vectors "
        r"have positive dual variables, the linearized nets of depths 2 and 3 from $\alpha = 3$, "
        "trained in the parameters to loss $e^{-1000}$",
        checks={
            r"(37): least $\bar{\gamma} - \log(1 + 2 D^2 \alpha^{2D-2} \gamma_2^2 t)$": below,
            r"(39): least $\log(1 + 2 D^2 \alpha^{2D-2} x_{\max}^2 t) - \bar{\gamma}$": above,
            r"(44): exponent of $1 + |\kappa|$ in $\bar{\gamma}$, 100 to 1000, largest": bounded,
        },
        premises={
            "the premise of the proof is drawn (draws)": (True, int(dataset.draws.max())),
            "sets with samples off the margin": (partly > 0, partly),
        },
        controls={
            r"(37) with $x_{\max}$ in place of $\gamma_2$ (largest over the runs)": below.control(
                dataset.wrong_below.max()
            ),
            r"(39) with $\gamma_2$ in place of $x_{\max}$ (largest over the runs)": above.control(
                dataset.wrong_above.max()
            ),
            r"the $\ell_1$ max margin in $\kappa$ (median)": bounded.control(
                growth(dataset.other).median()
            ),
        },
        plots=[
            Plot(
                r"the distance of the linearized net from $\log t$ times the $\ell_2$ max margin",
                r"smoothed margin",
                r"$|\kappa|$, median at $D = 2$",
                [
                    Series(name, np.array(MARGINS), typical[key].values)
                    for name, key in ((r"$\ell_2$, eq. (40)", "kappa"), (r"$\ell_1$", "other"))
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


experiment = Experiment(
    "M-E",
    statement=r"The linearized model's accuracy $\bar{\gamma}$ lies between $\log(1 + 2 D^2 "
    r"\alpha^{2D-2} \gamma_2^2 t)$ and the same with $x_{\max}$, and $\kappa(t) = \bar{w}(t) - "
    r"\log(2 D^2 \alpha^{2D-2} t/N) w_{\ell_2} - \tilde{w}$ stays bounded.",
    place="appendix E, eqs. (34)-(44)",
    study=study,
    check=check,
    title=r"The linearized net stays at a bounded distance from $\log t$ times the $\ell_2$ max "
    "margin",
    ours="the data sets",
)
