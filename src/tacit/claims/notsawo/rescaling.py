"""N-LU: a homogeneous net can be rescaled without changing what it computes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.studies.sizes import Size

SCALES = np.logspace(-3, 3, 241)  # lambda
ACTIVATIONS: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "sqrt(relu)": (0.5, lambda z: np.sqrt(np.maximum(z, 0))),
    "relu": (1.0, lambda z: np.maximum(z, 0)),
    "square": (2.0, lambda z: z**2),
    "relu cubed": (3.0, lambda z: np.maximum(z, 0) ** 3),
}


@dataclasses.dataclass(frozen=True)
class Net:
    """y(x) = B phi(A x) with phi positively homogeneous of degree L."""

    A: Array
    B: Array
    degree: float
    phi: Callable[[Array], Array]

    def outputs(self, x: Array, scale: float, power: float) -> Array:
        """(B / scale^power) phi(scale A x), the net itself if power is the degree."""
        return np.asarray(self.phi(x @ (scale * self.A).T) @ (self.B / scale**power).T)

    def length(self, scale: float) -> float:
        """The Euclidean norm of the rescaled parameters, measured on them."""
        layers = [(scale * self.A).ravel(), (self.B / scale**self.degree).ravel()]
        return float(np.linalg.norm(np.concatenate(layers)))

    @property
    def sizes(self) -> tuple[float, float]:
        """N's a and b."""
        return float(np.sum(self.A**2)), float(np.sum(self.B**2))


def nets(count: int) -> list[tuple[str, Net]]:
    """`count` random nets for each activation."""
    rng = np.random.default_rng(0)
    made = []
    for name, (degree, phi) in ACTIVATIONS.items():
        for _ in range(count):
            spread = np.exp(rng.normal(0, 1, 2))
            A, B = spread[0] * rng.normal(size=(7, 4)), spread[1] * rng.normal(size=(3, 7))
            made.append((name, Net(A, B, degree, phi)))
    return made


def change(net: Net, power: float | None = None) -> float:
    """The largest relative change of the outputs over all scales, B divided by scale^power.

    The power is L if not given.
    """
    power = net.degree if power is None else power
    x = np.random.default_rng(1).normal(size=(50, net.A.shape[1]))
    plain = net.outputs(x, 1.0, 0.0)
    moved = [net.outputs(x, scale, power) for scale in SCALES]
    return float(max(np.abs(y - plain).max() for y in moved) / np.abs(plain).max())


def w(net: Net, scale: float) -> float:
    """w(lambda) = a lambda^2 + b / lambda^(2L)."""
    a, b = net.sizes
    return a * scale**2 + b / scale ** (2 * net.degree)


def least(net: Net) -> tuple[float, float]:
    """The scale of the shortest parameters and their squared norm, by a search on the net."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda s: float(np.log(net.length(float(np.exp(s))))),
        bracket=(-3.0, 3.0),
        options={"xtol": 1e-12},
    )
    scale = float(np.exp(found.x))
    return scale, net.length(scale) ** 2


def printed(net: Net) -> tuple[float, float]:
    """N's lambda_0 and w(lambda_0)."""
    (a, b), L = net.sizes, net.degree
    constant = L ** (1 / (L + 1)) + L ** (-L / (L + 1))
    return (L * b / a) ** (1 / (2 * (L + 1))), constant * (a**L * b) ** (1 / (L + 1))


def relative(measured: float, expected: float) -> float:
    return abs(measured / expected - 1)


def rises_once(net: Net) -> bool:
    """Whether the norm falls up to lambda_0, rises after it and is huge at both ends."""
    lengths = np.array([net.length(scale) for scale in SCALES])
    bottom = int(np.argmin(lengths))
    falls = (np.diff(lengths[: bottom + 1]) < 0).all() and (np.diff(lengths[bottom:]) > 0).all()
    return bool(falls) and min(net.length(1e-9), net.length(1e9)) > 1e3 * lengths.min()


def nearest(net: Net, length: float) -> float:
    """How near the rescalings of the net come to a random start of this norm, relative to it."""
    rng = np.random.default_rng(2)
    start = rng.normal(size=net.A.size + net.B.size)
    start *= length / np.linalg.norm(start)
    apart = [
        np.linalg.norm(np.append((s * net.A).ravel(), (net.B / s**net.degree).ravel()) - start)
        for s in np.logspace(-8, 8, 2001)
    ]
    return float(min(apart) / length)


@claim(
    "N-LU",
    statement="if phi is positively homogeneous of degree L, (B/lambda^L) phi(lambda A x) is the"
    " same function for every lambda, and the norm of its parameters w(lambda) = a lambda^2 +"
    " b lambda^(-2L) falls to its minimum at lambda_0 = (L b/a)^(1/(2(L+1))), which is"
    " (L^(1/(L+1)) + L^(-L/(L+1))) (a^L b)^(1/(L+1)), and rises without bound on both sides",
    place="Goldilocks zone & LU mechanism, w(lambda)",
    seconds=2,
)
def rescaling(size: Size) -> Evidence:
    family = nets(2 if size == "quick" else 20)
    found = [(net, *least(net), *printed(net)) for _, net in family]
    same = Check(
        "largest relative change of the outputs over lambda in [1e-3, 1e3]",
        max(change(net) for _, net in family),
        tolerance=1e-9,
    )
    place = Check(
        "largest relative distance of the shortest net's lambda to lambda_0",
        max(relative(s, s0) for _, s, _, s0, _ in found),
        tolerance=1e-6,
    )
    bottom = Check(
        "largest relative distance of the least squared norm to the printed minimum",
        max(relative(v, v0) for *_, v, _, v0 in found),
        tolerance=1e-9,
    )
    shape = Check(
        "nets whose norm does not fall and then rise without bound",
        sum(not rises_once(net) for _, net in family),
    )
    squared = Check(
        "largest relative distance of the squared norm to w(lambda)",
        max(relative(net.length(s) ** 2, w(net, s)) for _, net in family for s in SCALES[::20]),
        tolerance=1e-9,
    )
    plain = squared.control(
        max(relative(net.length(s), w(net, s)) for _, net in family for s in SCALES[::20])
    )
    relu = family[2][1]
    return Evidence(
        ran=f"{len(family)} random nets with 4 inputs, 7 hidden units and 3 outputs, phi = "
        + ", ".join(ACTIVATIONS)
        + ", 241 values of lambda; the minimum by a search over measured"
        " parameters",
        checks=[
            same,
            place,
            bottom,
            shape,
            dataclasses.replace(plain, name="largest relative distance of the norm to w(lambda)"),
        ],
        corrected=[same, place, bottom, shape, squared],
        correction="w(lambda) is the squared norm of the parameters, with Frobenius norms in a and"
        " b; the rest is right as printed",
        counterexample=f"A = B = 1 (one unit): the norm is sqrt(2) = {np.sqrt(2):.4f}, w(1) = 2",
        controls={
            "B/lambda for every phi, as for relu": same.control(
                min(change(net, 1.0) for _, net in family if net.degree != 1)
            ),
            "lambda_0 without the factor L, L = 2 and 3": place.control(
                min(
                    relative(s, s0 / net.degree ** (1 / (2 * net.degree + 2)))
                    for net, s, _, s0, _ in found
                    if net.degree > 1
                )
            ),
            "a minimum with a b^L for a^L b, L = 2 and 3": bottom.control(
                min(
                    relative(
                        v,
                        v0 * (net.sizes[1] / net.sizes[0]) ** ((net.degree - 1) / (net.degree + 1)),
                    )
                    for net, _, v, _, v0 in found
                    if net.degree > 1
                )
            ),
            "w as the norm": plain,
        },
        findings=[
            "'(otherwise y(x) for all x)' lacks '= 0'",
            "equal function at any norm is not equal distance: 'close to the initialization' does"
            " not follow, for the rescalings of one net form a curve. The nearest one to a random"
            f" start of norm R is at {nearest(relu, 10.0):.2f} R, {nearest(relu, 1e3):.2f} R and"
            f" {nearest(relu, 1e5):.2f} R for R = 10, 1e3 and 1e5 (a relu net)",
        ],
        plots=[
            Plot(
                "the norm of one function",
                "lambda",
                "squared norm of the parameters",
                [
                    Series(name, SCALES, [net.length(s) ** 2 for s in SCALES])
                    for name, net in family[:: len(family) // len(ACTIVATIONS)]
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )
