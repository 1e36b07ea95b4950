"""Section 1, cited: linear convolutional nets prefer few frequencies, by the l_{2/D} penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penchant import L1, Classification, FunctionModel, max_margin
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    at_least,
    at_most,
    log_log,
    margin_of_mean,
    share_at_least,
    sized,
    upper_share,
)
from penchant.models import convolutional_net, filters_predictor
from penchant_papers.moroshko2020.theorem_2 import trained_to

SAMPLES, DIMENSION = 4, 9
SCALE = 0.05  # of the filters at the start
MARGINS = (1e2, 1e4)  # log(1/loss) on the way and at the end
SEEN = 0.01  # of the largest frequency; a smaller one counts as absent
NEAR = 0.05  # a relative residual up to this is that of a stationary point
CLOSE = 0.15  # an excess up to this over the least penalty is the least
DEPTHS = (2, 3)

Entries = NDArray[np.floating[Any]] | NDArray[np.complexfloating[Any, Any]]


def spectrum(beta: Array) -> NDArray[np.complex128]:
    """The frequencies of a vector, of the same Euclidean norm."""
    return np.fft.fft(beta, norm="ortho")


def unstationary(p: float, beta: Entries, pull: Entries) -> float:
    """How far |beta_k|^(2-p) pull_k is from a multiple of beta, relative.

    It is 0 where the pull of the margins is the gradient of sum |beta_k|^p in all entries that are
    not 0.
    """
    turned = np.abs(beta) ** (2 - p) * pull
    along = np.vdot(beta, turned).real / np.vdot(beta, beta).real
    return float(np.linalg.norm(turned - along * beta) / np.linalg.norm(turned))


def cell(depth: int, seed: int) -> dict[str, Any]:
    """Residuals of stationarity of the end, and at depth 2 excesses over the least penalty.

    `own` is for p = 2/D, `before` that on the way, `less` and `more` for the p of a layer less and
    more, `signal` for p = 2/D without the Fourier transform. `excess` is that of |spectrum|_1 at
    margins of at least 1, over a lower bound of its least value: nu >= 0 gives the bound
    sum nu / max_k |pull_k|.
    """
    rng = np.random.default_rng((seed, 11))
    X, y = rng.normal(size=(SAMPLES, DIMENSION)), rng.choice([-1.0, 1.0], SAMPLES)
    problem = Classification(X, y)
    start = SCALE * rng.normal(size=depth * DIMENSION)
    model = FunctionModel(convolutional_net(depth, alpha=SCALE).function, start, homogeneity=depth)
    way, beta = (filters_predictor(w, depth) for w in trained_to(model, problem, np.array(MARGINS)))

    def multipliers(end: Array) -> Array:
        margins = y * (X @ end)
        return np.exp(margins.min() - margins)

    def own(end: Array) -> float:
        return unstationary(2 / depth, spectrum(end), spectrum(X.T @ (multipliers(end) * y)))

    nu, few = multipliers(beta), spectrum(beta)
    pull = X.T @ (nu * y)
    sizes = np.abs(few[: DIMENSION // 2 + 1])
    least = nu.sum() / np.abs(spectrum(pull)).max()

    def excess(end: Array) -> float:
        return float(np.abs(spectrum(end)).sum() / (y * (X @ end)).min() / least - 1)

    return {
        "own": own(beta),
        "before": own(way),
        "less": unstationary(2 / (depth - 1), few, spectrum(pull)),
        "more": unstationary(2 / (depth + 1), few, spectrum(pull)),
        "signal": unstationary(2 / depth, beta, pull),
        "margin": (y * (X @ beta)).min(),
        "frequencies": int((sizes > SEEN * sizes.max()).sum()),
        "excess": excess(beta),
        "excess_l1": excess(max_margin(problem, L1()).beta),
    }


study = sized(
    "W-conv",
    title="Linear convolutional nets end at stationary points of a penalty of their frequencies",
    function=cell,
    grid={"depth": list(DEPTHS)},
    seeds=40,
    labels={
        "depth": "number of layers",
        "own": r"residual of stationarity for $p = 2/D$",
        "less": "the same for the $p$ of a layer less",
        "more": "the same for the $p$ of a layer more",
        "signal": "the same without the Fourier transform",
        "frequencies": "frequencies of the predictor",
        "excess": r"excess of the $\ell_1$ norm of the frequencies over its least value",
    },
    draw={"x": "depth", "colour": "own", "log": True},
    tiny={"seeds": 24},
    printed={"grid": {"depth": [2, 3, 4]}, "seeds": 200},
)


def mean_log(values: Array, side: int) -> float:
    """The geometric mean, with its 0.999 limit above (side 1) or below (side -1)."""
    logs = np.log(np.maximum(values, 1e-16))
    return float(np.exp(logs.mean() + side * margin_of_mean(logs)))


def check(dataset: Dataset) -> Evidence:
    """The penalty of the frequencies at which the nets end, and the least one at depth 2."""
    rows = {int(D): dataset.sel(depth=D) for D in dataset.depth.values}
    residual = at_most(max(mean_log(row.own.values, 1) for row in rows.values()), NEAR)
    several = dataset.frequencies.values > 1  # with one, the points of every p are the same
    best = (dataset.own < np.minimum(dataset.less, dataset.more)).values[several]
    most = share_at_least(int(best.sum()), best.size, 0.5)
    entries = (dataset.signal < dataset.own).values
    falls = np.log10(dataset.before / dataset.own).values.ravel()
    two = rows[2]
    excess = at_most(mean_log(two.excess.values, 1), CLOSE)
    last = float(dataset.margin.min())
    return Evidence(
        ran=f"{dataset.sizes['seed']} sets of {SAMPLES} Gaussian points in dimension {DIMENSION} "
        f"with random labels, nets of {list(rows)} circular convolutions from filters of size "
        rf"{SCALE:g}, flow to $\log(1/\mathrm{{loss}}) = 10^4$",
        checks={
            r"frequencies: residual of stationarity for $\ell_{2/D}$, geometric mean, the largest "
            "of the depths (0.999 upper limit)": residual,
            r"decades by which it falls from $\log(1/\mathrm{loss}) = 100$ on, mean (0.999 lower "
            "limit)": at_least(falls.mean() - margin_of_mean(falls), 0.3),
            "share of nets with several frequencies whose residual is less for $p = 2/D$ than for "
            "the $p$ of a layer more or less (0.999 lower limit)": most,
            r"$D = 2$: excess of the $\ell_1$ norm of the frequencies over a lower bound of the "
            "least, geometric mean (0.999 upper limit)": excess,
        },
        premises={
            "every net separates its data": (last > 0, last),
        },
        controls={
            r"the same penalty of the entries of $\beta$ (0.999 lower limit)": residual.control(
                min(mean_log(row.signal.values, -1) for row in rows.values())
            ),
            "share of all nets whose residual is less for the entries than for the frequencies "
            "(0.999 upper limit)": most.control(upper_share(int(entries.sum()), entries.size)),
            r"the $\ell_1$ max margin of the entries (0.999 lower limit)": excess.control(
                mean_log(two.excess_l1.values, -1)
            ),
        },
        findings=[
            "nets that end with one frequency, by depth: "
            + ", ".join(
                f"{int((row.frequencies == 1).sum())} of {row.own.size} ($D = {D}$)"
                for D, row in rows.items()
            ),
            "median of the excess at $D = 2$: "
            f"{float(two.excess.median()):.2g}, largest {float(two.excess.max()):.2g}: a frequency "
            "that the least penalty needs grows like a small power of the margin where its start "
            "is small",
        ],
        plots=[
            log_log(
                "stationarity of the ends for three penalties of the frequencies",
                "residual for $p = 2/D$",
                "residual for other penalties",
                [
                    *(
                        (f"{name}, $D = {D}$", row.own.values, row[key].values, "points")
                        for D, row in rows.items()
                        for key, name in (
                            ("more", "$p = 2/(D+1)$"),
                            ("signal", "$2/D$ of the entries"),
                        )
                    ),
                    ("equal", [1e-5, 1], [1e-5, 1], "dashed"),
                ],
                caption="Above the line the penalty $2/D$ of the frequencies fits better.",
            )
        ],
    )


experiment = Experiment(
    "W-conv",
    statement=r"A linear convolutional net of depth $D$ that separates its data tends to the "
    r"direction of a stationary point of the $\ell_{2/D}$ penalty of its frequencies with margins "
    "of at least 1; at depth 2 to that of the least such penalty, up to slow frequencies.",
    place="section 1, the result of Gunasekar et al. (2018) that it cites",
    study=study,
    check=check,
    title="Linear convolutional nets prefer few frequencies",
    ours="data, sizes and the start; filters of full width, exponential loss",
    seconds=8,
)
