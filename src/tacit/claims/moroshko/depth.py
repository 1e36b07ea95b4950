"""M-depth: how small mu must be for a delta-approximation of the l1 max margin."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.bias.max_margin import max_margin
from tacit.bias.norms import L1
from tacit.bias.q import Q
from tacit.claims.evidence import Check, Evidence
from tacit.claims.instances import slope
from tacit.claims.moroshko.courses import off_support, predictors
from tacit.claims.plot import Plot, Series
from tacit.claims.registry import claim
from tacit.claims.verdict import Size
from tacit.problems.classification import Classification, three_points

MUS = np.geomspace(1e-6, 1e-12, 4)
DEPTHS = (2, 3, 6)


def near_tie(eps: float) -> Classification:
    """One point (1, 1 - eps): the l1 max margin is e_1, and e_2 costs only eps more."""
    return Classification(np.array([[1.0, 1.0 - eps]]), np.ones(1))


def excess(depth: int, mu: float, eps: float) -> float:
    """|w|_1 - 1 of the Q_mu max margin on a near tie; the l1 max margin has norm 1."""
    data = near_tie(eps)
    beta = max_margin(data.X, data.y, Q(depth, mu=mu)).beta
    # <x, w> = 1 makes |w|_1 - 1 = eps w_2 without cancellation
    return float(eps * beta[1])


def worst_tie(depth: int, mu: float) -> tuple[float, float]:
    """(delta, eps): the largest excess over near ties and where it is found."""
    from scipy.optimize import minimize_scalar

    centre = 1 / np.log(1 / mu) if depth == 2 else mu ** ((depth - 2) / depth)
    found = minimize_scalar(lambda log_eps: -excess(depth, mu, float(np.exp(log_eps))),
                            bounds=(np.log(centre) - 4, min(np.log(centre) + 4, -0.1)),
                            method="bounded", options={"xatol": 1e-4})  # fmt: skip
    return -float(found.fun), float(np.exp(found.x))


def largest_share() -> float:
    """max of x/(1 + e^x): the constant of the law delta = c / log(1/mu) at depth 2."""
    from scipy.optimize import minimize_scalar

    return -float(minimize_scalar(lambda x: -x / (1 + np.exp(x)), bounds=(0.1, 5),
                                  method="bounded", options={"xatol": 1e-10}).fun)  # fmt: skip


def on_panel(depth: int) -> Array:
    """Relative l1 excess of the Q_mu max margin on M-F3b at MUS."""
    b = three_points("M-F3b")
    least = np.abs(max_margin(b.X, b.y, L1()).beta).sum()
    norms = [np.abs(max_margin(b.X, b.y, Q(depth, mu=mu)).beta).sum() for mu in MUS]
    return np.array(norms) / least - 1


@claim(
    "M-depth",
    statement="a delta-approximation of the l1 max margin needs mu = exp(-1/delta) at depth 2 and"
    " 1/mu polynomial in 1/delta at greater depth",
    place="section 4, Role of depth",
    seconds=4,
)
def depth(size: Size) -> Evidence:
    found = {D: [worst_tie(D, mu) for mu in MUS] for D in DEPTHS}
    deltas = {D: np.array([delta for delta, _ in rows]) for D, rows in found.items()}
    bits = np.log(1 / MUS)
    constant, z = largest_share(), off_support(three_points("M-F3b"))
    two = Check("worst near tie, D = 2, mu = 1e-12: delta log(1/mu)", deltas[2][-1] * bits[-1],
                constant, tolerance=0.01)  # fmt: skip
    deep = [Check(f"worst near tie, D = {D}: exponent of delta in mu", slope(MUS, deltas[D]),
                  (D - 2) / D, tolerance=0.01) for D in DEPTHS[1:]]  # fmt: skip
    panel = {D: on_panel(D) for D in (2, 3)}
    needed = slope(1 / panel[2], bits)
    printed = Check("M-F3b, D = 2: exponent of log(1/mu) in 1/delta", needed, 1.0, tolerance=0.1)
    # the same from training: alpha = 100 to smoothed margin alpha^2/mu
    mu, alpha = 1e-6, 100.0
    delta, eps = found[2][0]
    trained = predictors(near_tie(eps), 2, alpha, [alpha**2 / mu])[0]
    reached = eps * trained[1] / (trained[0] + (1 - eps) * trained[1])
    agree = Check("worst near tie at mu = 1e-6 trained in the parameters: delta over the"
                  " prediction", reached / delta, 1.0, tolerance=1e-3)  # fmt: skip
    return Evidence(
        ran="the worst of all points (1, 1 - eps) at mu = 1e-6 to 1e-12 for depths 2, 3, 6; M-F3b"
        " at the same mu; one worst case trained from alpha = 100",
        checks=[two, *deep, agree, printed],
        corrected=[two, *deep, agree],
        correction="exp(-1/delta) is what the worst data set needs: delta = c / log(1/mu) with"
        f" c = max x/(1+e^x) = {constant:.4f} at depth 2, and delta ~ mu^((D-2)/D) at depth D > 2;"
        " a given data set whose l1 max margin is unique needs only a power of 1/delta, at depth 2"
        " too",
        counterexample={"M-F3b, D = 2: exponent of delta in mu": slope(MUS, panel[2]),
                        "1 - z": 1 - z},
        controls={
            "depth 3 at mu = 1e-12: delta log(1/mu)": two.control(deltas[3][-1] * bits[-1]),
            "exponent 1 at D = 3": deep[0].control(predicted=1.0),
        },
        findings=[
            f"M-F3b, D = 2: delta falls like mu^{slope(MUS, panel[2]):.4f} (1 - z ="
            f" {1 - z:.4f}), D = 3 like mu^{slope(MUS, panel[3]):.4f}: polynomially in both cases",
            "on the worst data set depth shortens the training needed for delta = 0.01 from"
            f" log(1/eps) = alpha^2 e^{constant / 0.01:.0f} to alpha^3 times about"
            f" {(deltas[3][0] / MUS[0] ** (1 / 3) / 0.01) ** 3:.2g} at depth 3",
        ],
        plots=[
            Plot("largest l1 excess over near ties (1, 1 - eps)", "mu", "delta",
                 [Series(f"D = {D}", MUS, deltas[D]) for D in DEPTHS], x_scale="log",
                 y_scale="log")
        ],
    )  # fmt: skip
