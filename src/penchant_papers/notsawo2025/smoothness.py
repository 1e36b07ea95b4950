"""Premises as printed: homogeneous nets, Lemma 1's third point, Assumption 3, CL against PL."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    at_least,
    at_most,
    below,
    log_log,
    sized,
    within,
)
from penchant_papers.notsawo2025.single_steps import LOSSES, SmoothLoss, printed_delta, quadratic

WAVES, DIMENSION = 5, 3
NEARBY = 1e-6  # the distance of two points that stands for the limit of zero


def waves(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """a, W and b of phi(x) = sum_j a_j cos(W_j x + b_j), which curves up here and down there."""
    return rng.normal(size=WAVES), rng.normal(size=(WAVES, DIMENSION)), 6 * rng.random(WAVES)


def slope_of(phi: tuple[Array, Array, Array], x: Array) -> Array:
    a, W, b = phi
    return np.asarray(-(a * np.sin(x @ W.T + b)) @ W)


def curvatures(phi: tuple[Array, Array, Array], x: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of the Hessian at every row of x."""
    a, W, b = phi
    values, vectors = np.linalg.eigh(np.einsum("kj,jm,jn->kmn", -a * np.cos(x @ W.T + b), W, W))
    return values, vectors


def lemma_cell(*, seed: int, count: int) -> dict[str, Any]:
    """Lipschitz quotients of the slope of one phi, over eigenvalues of its Hessian.

    `forth` is the largest quotient of `count` pairs over the largest |eigenvalue| between them,
    `signed` the same with the largest eigenvalue in place of its absolute value; `back` is the
    least quotient of two points that lie close along the eigenvector of the largest |eigenvalue|.
    """
    rng = np.random.default_rng((seed, 21))
    phi = waves(rng)
    x, y = 2 * rng.normal(size=(2, count, DIMENSION))
    quotient = np.linalg.norm(slope_of(phi, y) - slope_of(phi, x), axis=1)
    quotient /= np.linalg.norm(y - x, axis=1)
    between = [curvatures(phi, x + s * (y - x))[0] for s in np.linspace(0, 1, 41)]
    most = np.abs(between).max(axis=(0, 2))
    signed = np.maximum(np.max(between, axis=(0, 2)), 1e-3 * most)
    values, vectors = curvatures(phi, x)
    place = np.argmax(np.abs(values), axis=1)
    rows = np.arange(count)
    near = NEARBY * vectors[rows, :, place]
    change = np.linalg.norm(slope_of(phi, x + near) - slope_of(phi, x), axis=1) / NEARBY
    return {
        "forth": float((quotient / most).max()),
        "signed": float((quotient / signed).max()),
        "back": float((change / np.abs(values[rows, place])).min()),
    }


def feasible_cell(*, seed: int, count: int) -> dict[str, int]:
    """Pairs (alpha, beta) that Assumption 3 and its printed form classify differently.

    `wrong` with beta < beta_max(alpha), the beta where delta is 2; `wrong_box` with one beta_max.
    """
    rng = np.random.default_rng((seed, 22))
    sizes = np.sort(np.exp(rng.normal(0, 1, (count, 2))), axis=1)
    step = rng.uniform(0, 1.2, count) * 2 / sizes[:, 1]
    beta = np.exp(rng.uniform(-3, 3, count))
    wrong = wrong_box = 0
    for (mu, L), a, b in zip(sizes, step, beta, strict=True):
        loss = quadratic((mu, L))
        inside = a < 2 / L and 0 < at(loss, a, b) < 2
        wrong += inside != (a < 2 / L and b < most_beta(loss, a))
        wrong_box += inside != (a < 2 / L and b < most_beta(loss, 1 / L))
    return {"wrong": wrong, "wrong_box": wrong_box}


def at(loss: SmoothLoss, step: float, beta: float) -> float:
    return float(printed_delta(loss, np.array(step), np.array(beta)))


def most_beta(loss: SmoothLoss, step: float) -> float:
    """The beta at which the printed delta reaches 2, by bisection."""
    from scipy.optimize import brentq

    top = 1.0
    for _ in range(1000):
        if at(loss, step, top) > 2:
            break
        top *= 2
    return float(brentq(lambda beta: at(loss, step, beta) - 2, 0.0, top))


def strength_cell(*, seed: int, count: int) -> dict[str, float]:
    """PL against CL: the implication that holds, and 1 - cos x for the one that does not.

    `implied` is the largest 4 g/(r^2 chi) of the losses that satisfy PL at random points, r^2 a bit
    above the 2 g/mu for which PL implies r-CL. `cl` is 4 g/(r^2 chi) of 1 - cos x at 1/2 for
    r = 1, `pl` its least |grad g|^2/(2 g) on the line.
    """
    x = np.linspace(-10, 10, 20_001)
    x = x[np.abs(np.sin(x / 2)) > 1e-3]
    ratio = np.sin(x) ** 2 / (1 - np.cos(x))
    chi = ratio[np.abs(x - 0.5) <= 1].min()
    return {
        "implied": max(share_of_cl(loss, count, seed) for loss in LOSSES.values()),
        "cl": 4 * (1 - math.cos(0.5)) / float(chi),
        "pl": float(ratio.min()) / 2,
    }


def share_of_cl(loss: SmoothLoss, count: int, seed: int) -> float:
    """The largest 4 g/(r^2 chi) for r^2 a bit above 2 g/mu, chi over 100 points of the ball."""
    rng = np.random.default_rng((seed, 23))
    worst = 0.0
    for x in 3 * rng.normal(size=(count, 1, loss.dimension)):
        g = float(loss.value(x)[0])
        radius = math.sqrt(2 * g / loss.mu * (1 + 1e-6))
        ball = rng.normal(size=(100, loss.dimension))
        lengths = radius * rng.random((100, 1)) ** (1 / loss.dimension)
        points = x + lengths * ball / np.linalg.norm(ball, axis=1, keepdims=True)
        chi = float((np.sum(loss.slope(points) ** 2, axis=1) / loss.value(points)).min())
        worst = max(worst, 4 * g / (radius**2 * chi))
    return worst


NETS = ("no biases", "biases in the first layer", "biases in every layer", "smooth units")
TOKENS = ("N's net", "N's net without biases")


FACTORS = np.array([0.3, 0.6, 2.0, 5.0])  # of all parameters


def relu(z: Array) -> Array:
    return np.maximum(z, 0)


def net_of(net: str, rng: np.random.Generator) -> tuple[Callable[[Any], Array], list[Array]]:
    """The outputs of a random net as a function of its tensors, and Gaussian tensors.

    N's net is b2 + W2 relu(b1 + W1 (E_x1 o E_x2)) on all pairs of seven tokens; the others are
    two-layer nets of three outputs.
    """
    from penchant.models import TokenMLP
    from penchant.problems import modular_arithmetic

    if net in TOKENS:
        problem = modular_arithmetic(7, operation="+", fraction=0.5)
        model = TokenMLP(4, 8, precision="double")
        tensors = model.start(problem)
        biased = net == TOKENS[0]
        drawn = [rng.normal(size=t.shape) for t in tensors.present().values()]
        pairs = np.argwhere(np.ones((7, 7)))

        def logits(parts: Any) -> Array:
            given = dict(zip(tensors.present(), parts, strict=True))
            given |= {} if biased else {n: 0.0 * given[n] for n in ("inner_bias", "outer_bias")}
            return np.asarray(model.logits(tensors._replace(**given), pairs))

        return logits, drawn
    X = rng.normal(size=(8, 3))
    unit = (lambda z: np.logaddexp(0, z)) if net == NETS[3] else relu
    first, last = net in NETS[1:3], net == NETS[2]

    def outputs(parts: Any) -> Array:
        W, b, V, c = parts
        return np.asarray(unit(X @ W.T + first * b) @ V.T + last * c)

    return outputs, [rng.normal(size=shape) for shape in ((5, 3), (5,), (3, 5), (3,))]


def net_cell(net: str, *, seed: int) -> dict[str, Any]:
    """By how much f(c theta) misses the best c^L f(theta), relative; L; and two outputs over c."""
    rng = np.random.default_rng((seed, 26))
    function, parts = net_of(net, rng)
    before = function(parts)
    after = np.array([function([c * part for part in parts]) for c in FACTORS])
    grown = np.log(np.linalg.norm(after, axis=(1, 2)) / np.linalg.norm(before))
    degree = float(grown @ np.log(FACTORS) / np.sum(np.log(FACTORS) ** 2))
    missed = after - FACTORS[:, None, None] ** degree * before
    sizes = np.linalg.norm(after, axis=(1, 2))
    return {
        "defect": float((np.linalg.norm(missed, axis=(1, 2)) / sizes).max()),
        "degree": degree,
        "grown": np.abs(after[:, 0, :2] / before[0, :2]).T,
    }


lemma = sized(
    "N-premises-lemma",
    function=lemma_cell,
    arguments={"count": 60},
    seeds=20,
    tiny={"seeds": 5},
    printed={"arguments": {"count": 2000}},
)
feasible = sized(
    "N-premises-feasible",
    function=feasible_cell,
    arguments={"count": 300},
    seeds=1,
    printed={"arguments": {"count": 20_000}},
)
nets = sized(
    "N-premises-nets",
    function=net_cell,
    grid={"net": [*NETS, *TOKENS]},
    seeds=20,
    dims={"grown": ["output", "factor"]},
    tiny={"seeds": 3},
    printed={"seeds": 400},
)
strength = sized(
    "N-premises-strength",
    function=strength_cell,
    arguments={"count": 30},
    seeds=1,
    printed={"arguments": {"count": 1000}},
)


def check(nets: Dataset, lemma: Dataset, feasible: Dataset, strength: Dataset) -> Evidence:
    """Which nets are homogeneous, both directions of the lemma, the set, and CL against PL."""
    worst = {str(net): float(nets.defect.sel(net=net).max()) for net in nets.net.values}
    biased = [NETS[2], TOKENS[0]]
    plain = [NETS[0], NETS[1], TOKENS[1]]
    degrees = nets.degree.sel(net=plain).transpose("net", "seed") - np.array([2, 2, 4])[:, None]
    homogeneous = at_most(max(worst[net] for net in (*plain, *biased)), 1e-9)
    stronger = at_least(strength.pl.min(), 1e-3)
    forth, back = at_most(lemma.forth.max(), 1.0, 1e-3), at_least(lemma.back.min(), 1.0, 1e-3)
    form = within(feasible.wrong.sum())
    both = {
        "lemma 1, third point: largest Lipschitz quotient of two points over the largest "
        "|eigenvalue| of the Hessian between them": forth,
        "lemma 1, third point: least quotient of two close points over the |eigenvalue| along "
        "them": back,
        r"assumption 3: pairs $(\alpha, \beta)$ on the wrong side of $\beta_{\max}(\alpha)$": form,
    }
    implied = at_most(strength.implied.max(), 1.0)
    tried = json.loads(feasible.attrs["description"])["arguments"]["count"]
    return Evidence(
        ran=f"{nets.sizes['net']} kinds of nets from {nets.sizes['seed']} starts; "
        f"{lemma.sizes['seed']} sums of {WAVES} cosines in $R^{DIMENSION}$; {tried} random $\\mu$, "
        r"$L$, $\alpha$ and $\beta$; the losses that satisfy PL and $1 - \cos x$",
        premises={
            r"$1 - \cos x$ is $r$-CL at 1/2 for $r = 1$": below(strength.cl.max(), 1.0),
        },
        checks={
            "homogeneity: largest relative defect of nets with ReLU units, with and without "
            "biases": homogeneous,
            r"least $|\nabla g|^2/(2 g)$ of $1 - \cos x$, which must be above 0 if CL implies "
            "PL": stronger,
            **both,
        },
        corrected={
            "homogeneity: the same of nets without biases or with biases in the first layer "
            "only": homogeneous.control(max(worst[net] for net in plain)),
            "largest distance of their degree from the number of factors": within(
                np.abs(degrees).max(), tolerance=1e-6
            ),
            r"PL gives $4 g < r^2 \chi$ for $r^2 > 2 g/\mu$: largest $4 g/(r^2 \chi)$": implied,
            **both,
        },
        correction="a feed-forward net with homogeneous activations is homogeneous if it has no "
        "biases beyond the first layer; CL at a point is weaker than PL, which implies it",
        counterexample={
            "the source's own net": "terms of degree 1, 2 and 4 in its parameters: the best "
            f"$c^L f(\\theta)$ misses $f(c \\theta)$ by {worst[TOKENS[0]]:.2g} of its terms "
            f"({worst[TOKENS[1]]:.0e} without biases)",
            "CL": r"$1 - \cos x$ at $x = 1/2$ with $r = 1$: $4 g = "
            f"{4 * (1 - math.cos(0.5)):.2f} < \\chi = 1 + \\cos(3/2) = {1 + math.cos(1.5):.2f}$, "
            f"but "
            r"$\nabla g = 0$ at $\pi$, where $g = 2$",
        },
        controls={
            "softplus units": homogeneous.control(worst[NETS[3]]),
            "the largest eigenvalue without its absolute value": forth.control(
                lemma.signed.max("seed")
            ),
            r"one $\beta_{\max}$ for every $\alpha$": form.control(feasible.wrong_box.sum()),
        },
        findings=[
            "biases in the first layer alone keep a net homogeneous: $v \\phi(W x + b)$ has the "
            "degree 2 in (W, b, v) for ReLU units; this is the net of Lyu et al. on modular "
            "addition",
        ],
        plots=[
            log_log(
                "without biases the net grows by one power of $c$, with them it does not",
                "factor $c$ of all parameters",
                r"$|f(c \theta)/f(\theta)|$ of one start",
                [
                    (f"{net}, {place} logit", FACTORS, one.isel(output=k), style)
                    for net, style, places in zip(
                        TOKENS, ("line", "dashed"), (("first", "second"), ("every",)), strict=True
                    )
                    for one in [nets.grown.sel(net=net).isel(seed=0)]
                    for k, place in enumerate(places)
                ],
            )
        ],
    )


experiment = Experiment(
    "N-premises",
    statement="Feed-forward nets with homogeneous activations are homogeneous in their "
    "parameters; a twice differentiable function is $L$-smooth exactly if the eigenvalues of its "
    r"Hessian are in $[-L, L]$ everywhere; the pairs $(\alpha, \beta)$ with $0 < \alpha < 2/L$ and "
    r"$0 < \delta < 2$ are those with $\alpha < \alpha_{\max}$ and $\beta < "
    r"\beta_{\max}(\alpha)$; the "
    "CL inequality is a strengthening of PL.",
    place="Grokking as a transition from the kernel to the rich regime, assumptions; Grokking "
    "Beyond "
    r"$\ell_2$, Lemma 1, Assumptions 1 and 3",
    study=(nets, lemma, feasible, strength),
    check=check,
    title="N's own net has biases, with which it is not homogeneous",
    ours="the nets, the functions and the constants",
    seconds=1,
)
