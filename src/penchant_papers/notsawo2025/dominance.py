"""(i) and (ii) of Theorem 2.1's proof: what holds while the gradient of the loss dominates."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from penchant.bounds import ball_radius, contraction, dominated_steps
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_least,
    at_most,
    exponents,
    log_log,
    mean_within,
    sized,
)

SAMPLES, DIMENSION = 3, 6
MOST = 3000  # steps of a run, unless the penalty dominates sooner
LONG = 100_000  # the same for the precision
TILTS = (0.28, 0.5)  # of the opposing penalty; a run takes about 2/tilt^2 units of time
CLOSE = 0.9995  # of beta |H| over |G|, the opposing penalty
SMALL = 0.02  # its step times L; sqrt(1 - CLOSE^2) must be larger
PENALTIES = ("l1", "distance to a point", "opposing")
BETAS = np.logspace(-5, -2, 4)


@dataclasses.dataclass(frozen=True)
class Family:
    """Losses (1/2)|A x - y|^2 with a zero, one for each instance, and a penalty beta h of each."""

    A: Array
    y: Array
    start: Array
    H: Callable[[Array], Array]  # a subgradient of beta h
    step: Array
    share: Array  # gamma: a run lasts while beta |H| <= gamma |G|

    def residual(self, x: Array) -> Array:
        return np.asarray(np.einsum("krn,kn->kr", self.A, x) - self.y)

    def g(self, x: Array) -> Array:
        return np.asarray(0.5 * np.sum(self.residual(x) ** 2, axis=1))

    def G(self, x: Array) -> Array:
        return np.asarray(np.einsum("krn,kr->kn", self.A, self.residual(x)))

    @property
    def curvatures(self) -> tuple[Array, Array]:
        """mu and L: g is mu-PL, since it has a zero, and L-smooth."""
        sizes: Array = np.asarray(np.linalg.svd(self.A, compute_uv=False) ** 2)
        return sizes[:, -1], sizes[:, 0]


def losses(rng: np.random.Generator, count: int, samples: int) -> tuple[Array, Array, Array]:
    """A, y with a zero of the loss, and a start."""
    A = rng.normal(size=(count, samples, DIMENSION)) / math.sqrt(DIMENSION)
    zero, start = rng.normal(size=(2, count, DIMENSION))
    return A, np.einsum("krn,kn->kr", A, zero), start


def family(penalty: str, count: int, seed: int) -> Family:
    """`count` random losses with one kind of penalty, whose beta lets a run take a step.

    The opposing penalty is convex: with e the residual of one sample, w a direction that the loss
    does not see and e0 = |e(0)|, it is (CLOSE/(2 c)) (2 e0 - |e| - tilt w.x)_+^2 for the c that
    makes its gradient CLOSE times that of the loss at the start.
    """
    rng = np.random.default_rng((seed, PENALTIES.index(penalty)))
    opposing = penalty == "opposing"
    A, y, start = losses(rng, count, 1 if opposing else SAMPLES)
    if opposing:
        A /= np.linalg.norm(A, axis=2, keepdims=True)
        side = rng.normal(size=(count, DIMENSION))
        side -= np.sum(side * A[:, 0], axis=1, keepdims=True) * A[:, 0]
        side /= np.linalg.norm(side, axis=1, keepdims=True)
        tilt = rng.uniform(*TILTS, (count, 1))
        first = np.einsum("kn,kn->k", A[:, 0], start) - y[:, 0]
        sign = np.sign(first)[:, None]

        def H(x: Array) -> Array:
            e = sign * (np.sum(A[:, 0] * x, axis=1) - y[:, 0])[:, None]
            moved = np.sum(side * (x - start), axis=1, keepdims=True)
            left = np.maximum(2 * np.abs(first)[:, None] - e - tilt * moved, 0.0)
            pull = sign * A[:, 0] + tilt * side
            return np.asarray(-CLOSE * left * pull / np.hypot(1, tilt))

        return Family(A, y, start, H, np.full(count, SMALL), np.full(count, CLOSE))
    share = rng.uniform(0.3, 0.95, count)
    most = 2 * np.sqrt((1 - share) / (1 + share)) / np.linalg.norm(A, 2, axis=(1, 2)) ** 2
    step = rng.uniform(0.05, 0.5, count) * most  # of the step up to which `ball_radius` is finite
    goal = np.zeros((1, DIMENSION)) if penalty == "l1" else 3 * rng.normal(size=start.shape)
    case = Family(A, y, start, np.sign if penalty == "l1" else lambda x: x - goal, step, share)
    lengths = (np.linalg.norm(part(start), axis=1) for part in (case.G, case.H))
    beta = share * next(lengths) / next(lengths) * 10.0 ** rng.uniform(-3, 0, count)
    return dataclasses.replace(case, H=lambda x: beta[:, None] * case.H(x))


def cell(penalty: str, *, seed: int, count: int) -> dict[str, Any]:
    """Runs while beta |H| <= gamma |G|: the distance to the start, and the loss.

    `far_*` are the largest distances to the start over three radii, `rate` the largest
    (g(k)/g(0))^(1/k), and `slower` the largest g(k)/((1 - delta)^k g(0)).
    """
    case = family(penalty, count, seed)
    (mu, L), gamma = case.curvatures, case.share
    x, g0 = case.start, case.g(case.start)
    gone, rate = np.zeros((2, count))
    logs, on = [np.zeros(count)], np.ones(count, bool)
    for k in range(1, MOST + 1):
        G, H = case.G(x), case.H(x)
        ratio = np.linalg.norm(H, axis=1) / np.linalg.norm(G, axis=1)
        on &= ratio <= gamma + 1e-12
        if not on.any():
            break
        x = np.where(on[:, None], x - case.step[:, None] * (G + H), x)
        gone = np.maximum(gone, np.linalg.norm(x - case.start, axis=1))
        log = np.log(case.g(x) / g0)
        rate = np.where(on, np.maximum(rate, np.exp(log / k)), rate)
        logs.append(np.where(on, log, -np.inf))
    printed = 2 * np.sqrt(g0 / (2 * mu))  # r-CL holds for every larger r
    right = [ball_radius(*row) for row in zip(g0, 2 * mu, L, case.step, gamma, strict=True)]
    rows = zip(mu, L, case.step, gamma, strict=True)
    delta = [contraction(mu=m, L=top, learning_rate=a, share=g) for m, top, a, g in rows]
    bound = np.arange(len(logs))[:, None] * np.log1p(-np.array(delta))
    return {
        "gamma": gamma,
        "far_printed": gone / printed,
        "far_right": gone / np.array(right),
        "far_longer": gone / ((1 + gamma) * printed),
        "rate": rate,
        "slower": np.exp((np.array(logs) - bound).max(axis=0)),
        "slower_printed": np.exp(
            (np.array(logs) - np.arange(len(logs))[:, None] * np.log1p(-mu * case.step)).max(axis=0)
        ),
    }


def dominance_cell(*, seed: int, count: int) -> dict[str, Any]:
    """(ii) with l1: the least |G|/(beta |H|) over k < t for `count` random settings.

    beta is the largest that the premise of (ii) allows: with the printed free tau and the largest
    entry of H, with tau = 1 - (1 + gamma) step L, or with |H|_2 alone, and with both.
    """
    rng = np.random.default_rng((seed, 9))
    A, y, start = losses(rng, count, SAMPLES)
    case = Family(A, y, start, np.sign, *np.ones((2, count)))
    L = case.curvatures[1]
    gamma, free = rng.uniform(0.1, 0.95, (2, count))
    t = rng.integers(1, 40, count)
    step = rng.uniform(0.02, 0.95, count) / (L * (1 + gamma))
    tau = 1 - (1 + gamma) * step * L
    first = np.linalg.norm(case.G(start), axis=1)
    length = math.sqrt(DIMENSION)
    most = {
        "printed": (free, 1.0),
        "tau_alone": (tau, 1.0),
        "length_alone": (free, length),
        "right": (tau, length),
    }
    least = {}
    for name, (shrink, size) in most.items():
        beta = gamma * first * shrink**t / size
        x, worst = start, np.full(count, np.inf)
        for k in range(int(t.max())):
            G, H = case.G(x), beta[:, None] * np.sign(x)
            ratio = np.linalg.norm(G, axis=1) / np.linalg.norm(H, axis=1)
            worst = np.where(k < t, np.minimum(worst, ratio), worst)
            x = x - step[:, None] * (G + H)
        least[name] = worst
    steps = [
        dominated_steps(*row, length)
        for row in zip(first, L, step, gamma, gamma * first * tau**t / length, strict=True)
    ]
    return {**least, "wrong_steps": np.abs(np.array(steps) - t)}


def precision_cell(*, seed: int) -> dict[str, Any]:
    """g at the last step at which G dominates the l1 penalty, for every beta, and the distance."""
    rng = np.random.default_rng((seed, 11))
    A, y, start = (np.repeat(part, len(BETAS), axis=0) for part in losses(rng, 1, SAMPLES))
    case = Family(A, y, start, lambda x: BETAS[:, None] * np.sign(x), *np.ones((2, len(BETAS))))
    (mu, *_), (L, *_) = case.curvatures
    x, on, gone = start, np.ones(len(BETAS), bool), 0.0
    for _ in range(LONG):
        G, H = case.G(x), case.H(x)
        on &= np.linalg.norm(H, axis=1) <= np.linalg.norm(G, axis=1)
        if not on.any():
            break
        x = np.where(on[:, None], x - 0.2 / L * (G + H), x)
        gone = max(gone, float(np.linalg.norm(x - start, axis=1).max()))
    radius = 2 * math.sqrt(float(case.g(start)[0]) / (2 * mu))
    return {"reached": case.g(x), "gone": gone / radius, "over": not on.any()}


EACH = ["instance"]
NAMES = ("gamma", "far_printed", "far_right", "far_longer", "rate", "slower", "slower_printed")
study = sized(
    "N-ball",
    function=cell,
    arguments={"count": 20},
    grid={"penalty": list(PENALTIES)},
    seeds=1,
    dims=dict.fromkeys(NAMES, EACH),
    tiny={"arguments": {"count": 6}},
    printed={"arguments": {"count": 400}},
)
dominances = sized(
    "N-ball-dominance",
    function=dominance_cell,
    arguments={"count": 200},
    seeds=1,
    dims=dict.fromkeys(("printed", "tau_alone", "length_alone", "right", "wrong_steps"), EACH),
    printed={"arguments": {"count": 5000}},
)
precisions = sized(
    "N-ball-precision",
    function=precision_cell,
    seeds=8,
    dims={"reached": ["beta"]},
    tiny={"seeds": 4},
    printed={"seeds": 40},
)


def still(beta: float = 0.3, steps: int = 100) -> float:
    """g(k)/g(0) on x^2/2 from 1 with h = (x - 1 - 1/beta)^2/2: beta |H| = |G| at every step."""
    x = 1.0
    for _ in range(steps):
        x -= 0.5 * (x + beta * (x - 1 - 1 / beta))
    return x**2


def check(dataset: Dataset, dominances: Dataset, precisions: Dataset) -> Evidence:
    """The ball and the rate while G dominates, for how long it does, and the loss it reaches."""
    count, opposing = dataset.sizes["instance"], dataset.sel(penalty="opposing")
    plain = dataset.sel(penalty=list(PENALTIES[:2]))
    ball = at_most(dataset.far_printed.max(), 1.0, 1e-6)
    falls = at_most(max(float(dataset.rate.max()), still() ** (1 / 100)), 1 - 1e-9)
    slower = at_most(dataset.slower.max(), 1.0, 1e-9)
    lasts = at_least(dominances.printed.min(), 1.0, 1e-9)
    powers = exponents(BETAS, precisions.reached.transpose("seed", ..., "beta").values)
    order = mean_within(powers, 2.0, bias=0.05)
    inside = at_most(precisions.gone.max(), 1.0, 1e-6)
    shared = {
        r"exponent in $\beta$ of the loss at which $\beta |H|$ reaches $|G|$, mean over the losses "
        r"($\ell_1$)": order,
        r"largest distance to the start until then, over $2 \sqrt{g(0)/\chi}$": inside,
    }
    return Evidence(
        ran=f"{count} losses $(1/2)|A x - y|^2$ with a zero for each of the penalties "
        f"{listed_names()}, all convex; descent while $\\beta |H| \\leq \\gamma |G|$, $\\gamma$ "
        f"0.3 to "
        f"0.95, and {CLOSE:g} for the opposing penalty; (ii) with $\\ell_1$ on "
        rf"{dominances.sizes['instance']} settings; {len(powers)} losses, $\beta$ $10^{{-5}}$ to "
        "$10^{-2}$, for the precision",
        premises={
            "every run takes a step": (bool((dataset.far_printed > 0).all()), count),
            r"$\beta |H|$ reaches $|G|$ in every run for the precision": (
                bool(precisions.over.all()),
                len(powers),
            ),
        },
        checks={
            "(i) largest distance to the start over the least $r$ for which $g$ is $r$-CL": ball,
            r"(i) largest $(g(k)/g(0))^{1/k}$ while $\beta |H| \leq |G|$": falls,
            r"(ii) least $|G|/(\beta |H|)$ at $k < t$, $\tau$ and $\gamma$ free": lasts,
            **shared,
        },
        corrected={
            r"(i) largest distance to the start over $2 \sqrt{g(0)/\chi}/(\sqrt{1 - \gamma^2} - "
            r"\alpha L (1 + \gamma)/2)$": ball.control(dataset.far_right.max()),
            r"(i) largest $g(k)$ over $(1 - \delta)^k g(0)$": slower,
            r"(ii) least $|G|/(\beta |H|)$ at $k < t$, $\tau = 1 - (1 + \gamma) \alpha L$ and "
            "the Euclidean length of $H$": lasts.control(dominances.right.min()),
            **shared,
        },
        correction=r"With $\beta |H| \leq \gamma |G|$ for a $\gamma < 1$: the ball needs $4 g(0) "
        r"< r^2 "
        r"\chi (\sqrt{1 - \gamma^2} - \alpha L (1 + \gamma)/2)^2$; the factor is $1 - \delta$ with "
        r"$\delta$ = $(\chi/2) \alpha \min_s (1 + s)(2 - \alpha L (1 + s))$ over $s = -\gamma$ and "
        r"$\gamma$; (ii) holds for $\tau = 1 - (1 + \gamma) \alpha L$ and $L_h$ the largest "
        "Euclidean length of $H$.",
        counterexample={
            "the ball": r"$g = x_1^2/2$ from (1, 0), $\chi = 2$, $4 g = 2 < 2 r^2$ for every $r > "
            r"1$; $\beta h = (0.9995/(2 c)) (2 - x_1 - k x_2)_+^2$, $c = \sqrt{1 + k^2}$, is "
            r"convex and "
            r"$\beta |H| < |G|$ along the run, which goes $2/k$ along $x_2$. In the runs: up to "
            f"{float(opposing.far_printed.max()):.1f} $r$",
            r"no $\delta > 0$": r"$g = x^2/2$ from 1, $h = (x - 1 - 1/\beta)^2/2$: $\beta H = "
            r"-G$ and "
            f"nothing moves; $g(100)/g(0) = {still():g}$",
            "(ii)": f"the least $|G|/(\\beta |H|)$ is {float(dominances.printed.min()):.2g}; even "
            f"at $k = 0$, because $|H|_2$ is $\\sqrt{{p}}$ times the largest entry of $H$",
        },
        controls={
            r"(i) a ball that is $1 + \gamma$ times as large, as every step is": ball.control(
                opposing.far_longer.min()
            ),
            r"(i) with the $\delta = \alpha \mu$ of small steps without a penalty": slower.control(
                dataset.slower_printed.max()
            ),
            r"(ii) with the right $\tau$ and the largest entry of $H$": lasts.control(
                dominances.tau_alone.min()
            ),
            r"(ii) with the Euclidean length of $H$ and a free $\tau$": lasts.control(
                dominances.length_alone.min()
            ),
            r"a precision of the order $\beta$": order.control(predicted=1.0),
        },
        findings=[
            r"under the penalties that are not built to oppose the loss the printed ball is kept: "
            f"at most {float(plain.far_printed.max()):.2f} $r$",
            r"the loss that is reached while $G$ dominates is $c \beta^2$: $C = 2$ in the source's "
            rf"$\epsilon_g = \Omega(\beta^C)$; exponents {powers.min():.3f} to {powers.max():.3f}",
        ],
        plots=[
            log_log(
                "the loss at which the penalty takes over",
                r"strength $\beta$",
                r"$g$ at the last step with $\beta |H| \leq |G|$",
                [
                    ("first of the losses", BETAS, precisions.reached.isel(seed=0)),
                    (r"the order $\beta^2$", BETAS, BETAS**2, "dashed"),
                ],
            ),
            Plot(
                "only the opposing penalty leaves the printed ball",
                "run, by its distance",
                "largest distance to the start over $r$",
                [
                    *(
                        Series(typeset(penalty), rank, np.sort(one.values.ravel()), "points")
                        for penalty in PENALTIES
                        for one in [dataset.far_printed.sel(penalty=penalty)]
                        for rank in [np.arange(1, one.size + 1)]
                    ),
                    Series("the printed ball", [1, count], [1.0, 1.0], "dashed"),
                ],
                y_scale="log",
            ),
        ],
    )


def listed_names() -> str:
    """The penalties in a sentence."""
    return ", ".join(map(typeset, PENALTIES))


def typeset(penalty: str) -> str:
    return penalty.replace("l1", r"$\ell_1$")


experiment = Experiment(
    "N-ball",
    statement=r"If $g$ is $r$-CL at the start, then (i) as long as $\beta |H| \leq |G|$ the "
    r"iterates "
    r"stay within $r$ of the start and $g(k) \leq (1 - \delta)^k g(0)$ for some $\delta$ in (0, "
    r"1); "
    r"(ii) for all $\gamma$ and $\tau$ in (0, 1), $\gamma |G(0)| \geq \tau^{-t} \beta L_h$ with "
    r"$L_h$ the largest entry of $H$ gives $\beta |H| \leq |G|$ for $k < t$; together they let $g$ "
    r"reach a precision that is a power of $\beta$ inside the ball.",
    place=r"Grokking Beyond $\ell_2$, (i), (ii) and the proof of (ii)",
    study=(study, dominances, precisions),
    check=check,
    title=r"While the loss dominates it falls to $c\,\beta^2$; near equality the iterates leave "
    r"the ball",
    ours="the losses, the penalties and the steps",
    seconds=1,
)
