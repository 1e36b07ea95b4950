"""Sharpness-aware minimization on a diagonal net of two layers: minor features first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from penchant import Classification, GradientDescent, Steps, train
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    share_at_least,
    sized,
    upper_share,
    within,
)
from penchant.methods import SAM
from penchant.models import ProductNet
from penchant.plotting import BLACK, CYCLE, GREY, sheet_of
from penchant.record import LogSpaced
from penchant.regularizers import Linf
from penchant_papers.beyond import OWN_RUNS

RHO = 0.1
RATE, STEPS, FEW = 0.02, 20_000, 700  # a few steps show where gradient descent goes
FEATURES = (0.3, 2.0)  # the sample's entries are uniform between these
BEGUN = 0.01  # of its logarithm: a weight that has moved by as much has begun to move
LOW, HIGH, HIGHER = 0.45, 1.3, 2.0  # of the start at which |mu w| neither rises nor falls
MOMENTS = 60  # of a run that the picture shows
GONE = 0.5  # of rho: a weight that ends below it vanishes, as steps swing about zero
ENOUGH = 0.5  # of the runs
FATES = 0.65  # of the runs
MOST = 0.8  # of the weights


def sample(seed: int, dimension: int) -> Array:
    """One sample with positive entries, its label is 1; minor features first."""
    return np.sort(np.random.default_rng(seed).uniform(*FEATURES, dimension))


def threshold(mu: Array) -> float:
    """The start u = v = alpha at which |mu w| neither rises nor falls under SAM in l2.

    With c = rho / (sqrt(2) |mu w|) every weight obeys w_i' ~ mu_i (1 - c mu_i) w_i, so that
    |mu w|^2 rises where sum mu^3 w^2 > c sum mu^4 w^2.
    """
    return float(RHO * (mu**4).sum() / (math.sqrt(2 * (mu**2).sum()) * (mu**3).sum()))


def fate(mu: Array, alpha: float) -> bool:
    """Whether the weights grow from u = v = alpha, by the law of one weight alone."""

    def law(_: float, logs: Array) -> Array:
        c = RHO / (math.sqrt(2) * np.linalg.norm(mu * np.exp(logs)))
        return np.asarray(mu * (1 - c * mu) / (1 + c))

    def settled(_: float, logs: Array) -> float:
        return float(logs.max() - math.log(2 * alpha)) * float(logs.max() - math.log(alpha / 10))

    settled.terminal = True  # type: ignore[attr-defined]
    start = np.full(len(mu), math.log(alpha))
    return bool(
        solve_ivp(law, (0, 1000), start, events=settled, rtol=1e-8).y[:, -1].max() > start[0]
    )


def run(mu: Array, start: Array, method: Any, steps: int = STEPS) -> Array:
    """The weights w_i = sqrt(beta_i) along a run from u = v = start, one row for each moment."""
    problem = Classification(mu[None], np.ones(1), loss="logistic")
    path = train(ProductNet(start, start), problem, method, stop=Steps(steps), record=LogSpaced(40))
    return np.sqrt(np.maximum(path.dataset.predictor.values, 0.0))


def first_leader(weights: Array) -> int:
    """The weight that is ahead once one of them has moved, from equal starts."""
    moved = np.abs(np.log(np.maximum(weights, 1e-30) / weights[0])).max(axis=1) > BEGUN
    return int(weights[np.argmax(moved)].argmax()) if moved.any() else -1


def parabola(weights: Array, mu: Array) -> tuple[float, float]:
    """The largest distances of log w / w(0) from mu tau - mu^2 C and from mu tau, of its size."""
    grown = np.log(weights[1:] / weights[0])
    size = np.abs(grown).max()
    far = []
    for columns in (np.stack([mu, mu**2], axis=1), mu[:, None]):
        fits = columns @ np.linalg.lstsq(columns, grown.T)[0]
        far.append(float(np.abs(fits - grown.T).max() / size))
    return far[0], far[1]


def in_l2(factor: float, seed: int, *, dimension: int) -> dict[str, Any]:
    """SAM in l2 and gradient descent from equal weights, at a multiple of the threshold."""
    mu = sample(seed, dimension)
    alpha = factor * threshold(mu)
    start = np.full(dimension, alpha)
    weights, plain = run(mu, start, SAM(RATE, RHO)), run(mu, start, GradientDescent(RATE), FEW)
    pull = RHO / (alpha * math.sqrt(2 * (mu**2).sum()))  # c at the start
    grows = bool(weights[-1].max() > alpha)
    law, line = parabola(weights, mu) if grows else (math.nan, math.nan)
    shown = np.linspace(0, len(weights) - 1, MOMENTS).astype(int)
    return {
        "first": first_leader(weights),
        "first_plain": first_leader(plain),
        "predicted": int((mu * (1 - pull * mu)).argmax()),
        "last": int(weights[-1].argmax()),
        "grows": grows,
        "fate": fate(mu, alpha),
        "law": law,
        "line": line,
        "mu": mu,
        "weights": weights[shown] / alpha,
    }


def in_linf(seed: int, *, dimension: int) -> dict[str, Any]:
    """SAM in l_inf: some weights start above rho, the others and the largest feature below it."""
    rng, mu = np.random.default_rng([seed, 1]), sample(seed, dimension)
    above = rng.random(dimension) < 0.5
    above[rng.integers(dimension - 1)], above[-1] = True, False
    start = np.where(above, 1.3, 0.7) * RHO
    weights = run(mu, start, SAM(RATE, RHO, Linf()))
    plain = run(mu, start, GradientDescent(RATE), FEW)
    return {
        "agree": int(((weights[-1] > GONE * RHO) == above).sum()),
        "agree_plain": int(((plain[-1] > GONE * RHO) == above).sum()),
        "last": int(weights[-1].argmax()),
        "predicted": int(np.flatnonzero(above)[-1]),
    }


LABELS = {
    "factor": "start over the threshold",
    "first": "the feature that grows first",
    "last": "the feature that leads at the end",
}
SIZE = {"dimension": 6}
study = sized(
    "beyond-sam",
    title="Sharpness-aware minimization takes minor features first",
    function=in_l2,
    arguments=SIZE,
    grid={"factor": [LOW, HIGH, HIGHER]},
    seeds=10,
    dims={"mu": ["feature"], "weights": ["moment", "feature"]},
    labels=LABELS,
    tiny={"seeds": 9},
    printed={"seeds": 100},
)
signs = sized(
    "beyond-sam-linf",
    title="With signs, weights that start below rho vanish",
    function=in_linf,
    arguments=SIZE,
    seeds=20,
    labels=LABELS,
    tiny={"seeds": 16},
    printed={"seeds": 100},
)


def counted(agree: Any) -> tuple[int, int]:
    values = np.ravel(agree)
    return int(values.sum()), values.size


def check(dataset: Dataset, signs: Dataset) -> Evidence:
    """Who is first, who is last, the law of the logarithms, and who never grows."""
    grown, small = dataset.sel(factor=[HIGH, HIGHER]), dataset.sel(factor=LOW)
    major = dataset.sizes["feature"] - 1
    tells = (grown.predicted != major).values  # on the others SAM starts like gradient descent
    first = share_at_least(*counted((grown.first == grown.predicted).values[tells]), ENOUGH)
    last = share_at_least(*counted(grown.last == major), ENOUGH)
    gone = share_at_least(*counted(dataset.grows == dataset.fate), FATES)
    law = within(float(grown.law.max()), tolerance=0.02)
    weights = signs.sizes["seed"] * dataset.sizes["feature"]
    fate = share_at_least(int(signs.agree.sum()), weights, MOST)
    leader = share_at_least(*counted(signs.last == signs.predicted), ENOUGH)
    return Evidence(
        ran=f"{dataset.sizes['seed']} random samples of six positive features, each from three "
        rf"equal starts, and {signs.sizes['seed']} from starts above and below $\rho = {RHO}$, by "
        "the logistic loss in two layers $u v$, with $u = v$ at the start",
        checks={
            r"$\ell_2$: share of runs in which the feature that grows first is the one of largest"
            r" $\mu (1 - c \mu)$": first,
            r"$\ell_2$: share of runs in which the largest feature leads at the end": last,
            r"$\ell_2$: largest distance of $\log w$ from a parabola in $\mu$ without constant,"
            " of its size": law,
            r"$\ell_2$: share of runs that grow or vanish as the law of one weight says": gone,
            r"$\ell_\infty$: share of weights that grow if they start above $\rho$ and vanish if"
            " below": fate,
            r"$\ell_\infty$: share of runs led by the largest feature that started above"
            r" $\rho$": leader,
        },
        controls={
            "gradient descent: the feature that grows first": first.control(
                upper_share(*counted((grown.first_plain == grown.predicted).values[tells]))
            ),
            "the feature that grows first leads at the end": last.control(
                upper_share(*counted((grown.first == major).values[tells]))
            ),
            r"$\log w$ proportional to $\mu$, as in gradient descent": law.control(
                float(grown.line.min())
            ),
            "small starts grow, as in gradient descent": gone.control(
                upper_share(*counted(small.grows == 1))
            ),
            "all weights grow, as in gradient descent": fate.control(
                upper_share(int(signs.agree_plain.sum()), weights)
            ),
            "the largest feature leads, as in gradient descent": leader.control(
                upper_share(*counted(signs.predicted == major))
            ),
        },
        findings=[
            r"with $u = v = w$ and $c = \rho / (\sqrt{2} |\mu w|)$ every weight obeys $w' \sim \mu"
            r" (1 - c \mu) w$: $\log(w_i / w_i(0)) = \mu_i \tau - \mu_i^2 C$ with two numbers"
            " $\\tau$, $C$ for all features (ours), so that the feature nearest to $\\tau / (2 C)$"
            " leads",
            r"the limit of $\ell_2$ is not the best $\ell_1$ margin from every start: below the"
            " threshold the norm falls, the pull grows, and the predictor comes to zero in finite"
            " time (ours; the abstract of the source speaks of the direction of the limit)",
            f"at {LOW:g} of the threshold {int((small.grows == 0).sum())} of {small.grows.size}"
            " runs end at zero",
            f"at {HIGH:g} and {HIGHER:g} times the threshold the first to grow is not the largest"
            f" feature in {int(tells.sum())} of {tells.size} runs",
        ],
    )


def draw(dataset: Dataset, signs: Dataset) -> Figure:
    """One run, weight by weight; the parabolas of its logarithms; the law against training."""
    picture, (a, b) = sheet_of(dataset, widths=(6.0, 6.0), height=4.6)
    one = dataset.sel(factor=HIGH).isel(seed=0)
    mu, weights = one.mu.values, one.weights.values
    places = np.arange(len(weights))
    for k, feature in enumerate(mu):
        a.plot(places, weights[:, k], color=CYCLE[k], label=rf"$\mu = {feature:.2f}$")
    a.set(
        yscale="log",
        xlabel="moment of the run (equal steps of the logarithm of time)",
        ylabel=r"weight over its start, $w_i / \alpha$",
        title="minor features first, the largest last",
    )
    a.legend(title="feature")
    grid = np.linspace(0, mu.max() * 1.05, 200)
    for k, place in enumerate(np.linspace(len(weights) * 0.3, len(weights) * 0.5, 5).astype(int)):
        grown = np.log(weights[place])
        columns = np.stack([mu, mu**2], axis=1)
        fit = np.linalg.lstsq(columns, grown)[0]
        b.plot(mu, grown, "o^Dsv"[k], color=CYCLE[k], label=f"moment {place}")
        b.plot(grid, grid * fit[0] + grid**2 * fit[1], "-", color=CYCLE[k], linewidth=1)
    b.axhline(0.0, color=GREY, linewidth=1)
    b.plot([], [], "-", color=BLACK, linewidth=1, label="parabola through zero")
    b.set(
        xlabel=r"feature $\mu_i$",
        ylabel=r"$\log(w_i / \alpha)$",
        title="logarithms are a parabola in the feature",
    )
    b.legend()
    return picture


experiment = Experiment(
    "beyond-sam",
    statement=r"A diagonal net of two equal layers trained by SAM on one sample $\mu$: with the "
    r"$\ell_2$ norm minor features grow first and the largest leads at the end, as $\log w$ is a "
    r"parabola in $\mu$, and starts below a threshold proportional to $\rho$ end at zero; with "
    r"$\ell_\infty$ weights that start below $\rho$ vanish, and the largest feature that started "
    "above leads.",
    place="Moon, Si and Yun 2026 (arXiv 2603.08290), abstract; the parabola, the threshold and the"
    " rule of the first feature: ours",
    study=(study, signs),
    check=check,
    draw=draw,
    ours="the samples, the starts, the rate, and the derivation; of the source only the abstract"
    " could be read. Its statement on linear classifiers is not judged here",
    scope=OWN_RUNS,
    seconds=4,
)
