"""The rescaling argument: a homogeneous net computes one function at any norm of its parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penchant.lab import (
    Array,
    Axes,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    sized,
    within,
)
from penchant.plotting import BLACK, CYCLE, GREY, caption_of, log_axes, sheet
from penchant_papers.instances import listed

SCALES = np.logspace(-3, 3, 241)  # lambda
ENDS = (1e-9, 1e9)
STARTS = (10.0, 1e3, 1e5)  # norms of a start
ACTIVATIONS: dict[str, tuple[float, Callable[[Array], Array]]] = {  # degree L and phi
    "sqrt(relu)": (0.5, lambda z: np.sqrt(np.maximum(z, 0))),
    "relu": (1.0, lambda z: np.maximum(z, 0)),
    "square": (2.0, lambda z: z**2),
    "relu cubed": (3.0, lambda z: np.maximum(z, 0) ** 3),
}
LINES = ("-", "--", "-.", ":")


@dataclasses.dataclass(frozen=True)
class Net:
    """y(x) = B phi(A x) with phi positively homogeneous of degree L."""

    A: Array
    B: Array
    degree: float
    phi: Callable[[Array], Array]

    def outputs(self, x: Array, scale: float, power: float) -> Array:
        """(B / scale^power) phi(scale A x); the same function as the net if power is the degree."""
        return np.asarray(self.phi(x @ (scale * self.A).T) @ (self.B / scale**power).T)

    def parameters(self, scale: float) -> Array:
        """The parameters of the rescaled net."""
        return np.append((scale * self.A).ravel(), (self.B / scale**self.degree).ravel())

    def squared_norm(self, scale: float) -> float:
        """The squared Euclidean norm of the rescaled parameters, by summation."""
        return float(np.sum(self.parameters(scale) ** 2))


def change(net: Net, x: Array, power: float) -> Array:
    """The largest relative change of the outputs at every scale if B is divided by scale^power."""
    plain = net.outputs(x, 1.0, 0.0)
    moved = np.array([net.outputs(x, scale, power) for scale in SCALES])
    return np.asarray(np.abs(moved - plain).max(axis=(1, 2)) / np.abs(plain).max())


def least(net: Net) -> tuple[float, float]:
    """The scale at which the norm is least, and the squared norm there, by a numerical search."""
    from scipy.optimize import minimize_scalar

    minimum_of_log = minimize_scalar(
        lambda s: float(np.log(net.squared_norm(float(np.exp(s))))),
        bracket=(-3.0, 3.0),
        options={"xtol": 1e-12},
    )
    scale = float(np.exp(minimum_of_log.x))
    return scale, net.squared_norm(scale)


def nearest(net: Net, start: Array) -> float:
    """The distance of a start to the nearest rescaling of the net, over the norm of the start."""
    apart = [np.linalg.norm(net.parameters(s) - start) for s in np.logspace(-8, 8, 401)]
    return float(min(apart) / np.linalg.norm(start))


def cell(
    activation: str, net: int, *, seed: int, inputs: int, hidden: int, outputs: int
) -> dict[str, Any]:
    """Norms and outputs of the rescalings of one random net, and the one of least norm."""
    degree, phi = ACTIVATIONS[activation]
    rng = np.random.default_rng([seed, net, list(ACTIVATIONS).index(activation)])
    spread = np.exp(rng.normal(0, 1, 2))
    A, B = rng.normal(size=(hidden, inputs)), rng.normal(size=(outputs, hidden))
    one, x = Net(spread[0] * A, spread[1] * B, degree, phi), rng.normal(size=(50, inputs))
    scale, squared = least(one)
    start = np.random.default_rng([seed, net, 2]).normal(size=A.size + B.size)
    start /= np.linalg.norm(start)
    return {
        "degree": degree,
        "a": np.sum(one.A**2),
        "b": np.sum(one.B**2),
        "scale": SCALES,
        "squared_norm": [one.squared_norm(s) for s in SCALES],
        "squared_norm_at_ends": [one.squared_norm(s) for s in ENDS],
        "change": change(one, x, degree),
        "wrong_change": change(one, x, 1.0) if degree != 1 else np.full(len(SCALES), np.nan),
        "best_scale": scale,
        "least": squared,
        "distance": [nearest(one, length * start) for length in STARTS],
        "own_distance": nearest(one, one.parameters(float(np.exp(rng.normal(0, 3))))),
    }


study = sized(
    "N-LU",
    title="Rescaling the layers changes the norm of the parameters and nothing else",
    function=cell,
    arguments={"seed": 0, "inputs": 4, "hidden": 7, "outputs": 3},
    grid={"activation": list(ACTIVATIONS), "net": [0, 1]},
    dims={name: ["place"] for name in ("scale", "squared_norm", "change", "wrong_change")}
    | {"squared_norm_at_ends": ["end"], "distance": ["start"]},
    labels={
        "degree": "degree of homogeneity $L$ of the activation",
        "a": "squared norm of A",
        "b": "squared norm of $B$",
        "scale": r"$\lambda$: A is multiplied by it, $B$ divided by its power $L$",
        "squared_norm": "squared Euclidean norm of the rescaled parameters",
        "squared_norm_at_ends": r"the same at $\lambda = 10^{-9}$ and $10^9$",
        "change": r"largest relative change of the outputs against $\lambda = 1$",
        "wrong_change": r"the same when $B$ is divided by $\lambda$ for every $L$; NaN for $L = 1$",
        "best_scale": r"$\lambda$ at which the norm is least, by a search",
        "least": "the squared norm there",
        "distance": "distance of the nearest rescaling to a start of norm $R$, over $R$",
        "own_distance": "the same of a start that is a rescaling",
    },
    draw={"x": "net", "colour": "least"},
    printed={
        "arguments": {"inputs": 40, "hidden": 100, "outputs": 10},
        "grid": {"net": list(range(20))},
    },
)


def w(a: Any, b: Any, degree: Any, scale: Any) -> Any:
    """The source's w(lambda) = a lambda^2 + b / lambda^(2L)."""
    return a * scale**2 + b / scale ** (2 * degree)


def minimum(a: Any, b: Any, degree: Any) -> tuple[Any, Any]:
    """The source's lambda_0 and w(lambda_0)."""
    L, root = degree, 1 / (degree + 1)
    return (L * b / a) ** (root / 2), (L**root + L ** (-L * root)) * (a**L * b) ** root


def relative(measured: Any, expected: Any) -> Any:
    return abs(measured / expected - 1)


def falls_and_rises(dataset: Dataset) -> NDArray[np.bool_]:
    """Whether each norm falls to its least value, then rises, and is huge at both ends."""
    norms = dataset.squared_norm.values.reshape(-1, dataset.sizes["place"])
    ends = dataset.squared_norm_at_ends.values.reshape(-1, 2).min(axis=1)
    lows = norms.argmin(axis=1)
    turns = [
        (np.diff(n) * np.sign(np.arange(len(n) - 1) - k + 0.5) > 0).all()
        for n, k in zip(norms, lows, strict=True)
    ]
    return np.array(turns) & (ends > 1e6 * norms.min(axis=1))


def check(dataset: Dataset) -> Evidence:
    """The outputs, place and value of the minimum, and whether w is the norm or its square."""
    nets = dataset.a, dataset.b, dataset.degree
    a, b, L = nets
    at, value = minimum(*nets)
    predicted = w(*nets, dataset.scale)
    same = within(dataset.change.max(), tolerance=1e-9)
    place = within(relative(dataset.best_scale, at).max(), tolerance=1e-6)
    bottom = within(relative(dataset.least, value).max(), tolerance=1e-9)
    shape = within(np.sum(~falls_and_rises(dataset)))
    squared = within(relative(dataset.squared_norm, predicted).max(), tolerance=1e-9)
    plain = squared.control(relative(np.sqrt(dataset.squared_norm), predicted).max())
    both = {
        r"largest relative change of the outputs over $\lambda$ in $[10^{-3}, 10^3]$": same,
        r"largest relative distance of the $\lambda$ of least norm to $\lambda_0$": place,
        "largest relative distance of the least squared norm to the printed minimum": bottom,
        "nets whose norm does not first fall and then rise without bound": shape,
    }
    steep = L > 1
    without_factor = relative(dataset.best_scale, at / L ** (1 / (2 * L + 2)))
    swapped = relative(dataset.least, value * (b / a) ** ((L - 1) / (L + 1)))
    far = dataset.distance.sel(activation="relu").isel(net=0).values
    away = at_least(dataset.distance.min(), 0.5)
    return Evidence(
        ran=rf"{dataset.status.size} random nets, $\phi$ = {', '.join(ACTIVATIONS)}, "
        rf"{dataset.sizes['place']} values of $\lambda$; the minimum by a numerical search",
        checks={
            **both,
            r"largest relative distance of the norm to $w(\lambda)$": plain,
            "largest distance of a start of norm $R$ to the nearest rescaling of one solution,"
            " over $R$": at_most(dataset.distance.max(), 0.1),
        },
        corrected={
            **both,
            r"largest relative distance of the squared norm to $w(\lambda)$": squared,
            "least distance of a start of norm $R$ to the nearest rescaling, over $R$": away,
        },
        correction=r"$w(\lambda)$ is the squared norm of the parameters, with Frobenius norms in "
        "a and $b$; and a solution at every norm need not be close to a start of that norm, "
        "because "
        "the rescalings of one net form a curve; the rest is right as printed",
        counterexample={
            "the norm": rf"$A = B = 1$ (one unit): the norm is $\sqrt{{2}} = {np.sqrt(2):.4f}$, "
            "$w(1) = 2$",
            "close to the start": "the nearest rescaling of a ReLU net to a random start of norm "
            "$R$ "
            f"is {', '.join(f'{d:.2f} R' for d in far)} away for $R$ = {listed(STARTS)}",
        },
        controls={
            r"$B/\lambda$ for every $\phi$, as for relu": same.control(
                dataset.wrong_change.max("place").min()
            ),
            r"$\lambda_0$ without the factor $L$, $L = 2$ and 3": place.control(
                without_factor.where(steep).min()
            ),
            "a minimum with a $b^L$ for $a^L b$, $L = 2$ and 3": bottom.control(
                swapped.where(steep).min()
            ),
            r"$w(\lambda)$ is the norm": plain,
            "a start that is a rescaling itself": away.control(dataset.own_distance.max()),
        },
        findings=[
            "'(otherwise $y(x)$ for all $x$)' lacks '= 0'",
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """The squared norm over lambda with its least value, and the change of the outputs."""
    caption = (
        rf"{caption_of(dataset.attrs)} The net is $B \phi(A x)$ with $\phi$ of degree L. The "
        r"source's $w(\lambda)$ is the squared norm, its least value at $\lambda_0$. Changes "
        "of exactly 0 are not drawn."
    )
    picture, (left, right) = sheet(dataset.title, caption, widths=(5.2, 5.2), height=4.8)
    for k, name in enumerate(dataset.activation.values):
        _draw_net(left, right, dataset.sel(activation=name).isel(net=0), CYCLE[k], LINES[k])
    scale, norm = r"scale $\lambda$", r"squared norm $\|\lambda A\|^2 + \|B/\lambda^L\|^2$"
    log_axes(left, scale, norm)
    log_axes(right, scale, "relative change of the outputs", ylim=(1e-18, None))
    least = r"minimum, predicted at $\lambda_0$"
    left.plot([], [], "o", color="white", markeredgecolor=BLACK, label=least)
    eps, text = np.finfo(float).eps, r"rounding, $2.2 \times 10^{-16}$"
    right.axhline(eps, color=BLACK, linestyle=":", linewidth=1.2, label=text)
    right.plot([], [], color=GREY, linewidth=1.4, label=r"control, $B/\lambda$ for every $L$")
    left.set_title(r"the norm of the layers $\lambda A$ and $B/\lambda^L$ changes by decades")
    right.set_title("their function does not change, up to rounding")
    left.legend(loc="upper center")
    right.legend(loc="center", bbox_to_anchor=(0.5, 0.42))
    return picture


def _draw_net(left: Axes, right: Axes, one: Dataset, colour: str, line: str) -> None:
    at, value = minimum(float(one.a), float(one.b), float(one.degree))
    name = rf"$L$ = {float(one.degree):g}"
    text = rf"{name}, $\lambda_0$ = {at:.3g}"
    left.plot(one.scale, one.squared_norm, line, color=colour, label=text)
    left.plot(at, value, "o", color=colour, markeredgecolor=BLACK, zorder=4)
    right.plot(one.scale, one.change.where(one.change > 0), line, color=colour, label=name)
    wrong = one.wrong_change.where(one.wrong_change > 0)
    right.plot(one.scale, wrong, line, color=GREY, linewidth=1.4)


experiment = Experiment(
    "N-LU",
    statement=r"If $\phi$ is positively homogeneous of degree $L$, $(B/\lambda^L) \phi(\lambda A "
    r"x)$ is the same function for every $\lambda$; the norm of its parameters $w(\lambda) = "
    r"a \lambda^2 + b \lambda^{-2 L}$ has the minimum $(L^{1/(L+1)} + L^{-L/(L+1)}) (a^L "
    r"b)^{1/(L+1)}$ at $\lambda_0 = (L b/a)^{1/(2(L+1))}$, and rises without bound on both "
    "sides of it; so there is a solution that generalizes close to a start of any norm.",
    place=r"Goldilocks zone & LU mechanism, $w(\lambda)$",
    study=study,
    check=check,
    draw=draw,
    ours="the nets and their sizes",
    seconds=1,
)
