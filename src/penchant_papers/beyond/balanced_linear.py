"""Two linear layers of unequal size: exact dynamics by a Riccati equation, lazy and rich."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penchant import Factorization, Path, Time, train
from penchant.lab import (
    DRAWS,
    Array,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    below,
    drawn,
    sized,
    within,
)
from penchant.measures import kernel_distance
from penchant.methods import MatrixFlow
from penchant.plotting import BLACK, CYCLE, latex, sheet_of
from penchant.problems import Sensing
from penchant.record import LogSpaced
from penchant.stop import Interpolated
from penchant_papers.beyond import OWN_RUNS
from penchant_papers.instances import slope

SHAPES = {"square": (3, 3), "funnel": (2, 5), "inverted funnel": (5, 2)}  # outputs, inputs
FITTED = Interpolated(1e-14)
WAITS = 2.0  # the least singular value is so many times smaller than the next, beyond reach
GROWTH = 4.0  # logarithm of the largest growth that one use of the closed form spans


def target(shape: str, seed: int) -> Array:
    """The correlation of labels with whitened inputs, of spectral norm one."""
    numbers = np.random.default_rng((1, seed)).standard_normal(SHAPES[shape])
    return np.asarray(numbers / np.linalg.norm(numbers, 2))


def reachable(shape: str, seed: int) -> bool:
    """True if the determinant of M = U V^T has the sign of the target's at the start.

    While U^T U = V^T V, the determinant of square layers keeps its sign: M has an inverse at every
    time, since U and V have one.
    """
    rows, columns = SHAPES[shape]
    U, V = layers(shape, 1.0, 0.0, seed)
    return rows != columns or np.linalg.det(U @ V.T) * np.linalg.det(target(shape, seed)) > 0


def reached(shape: str, seed: int) -> tuple[int, int]:
    """The first number from DRAWS * seed on with a target within reach, and the draws."""
    return drawn(lambda k: DRAWS * seed + k, lambda number: reachable(shape, number), 0)


def layers(
    shape: str, scale: float, imbalance: float, seed: int, wide: bool = False
) -> tuple[Array, Array]:
    """U and V with U^T U - V^T V = imbalance I, where the smaller layer has singular values scale.

    M = U V^T has as many hidden units as its smaller side; both layers have random orthonormal
    columns up to their size. In wide layers the two have separate hidden units, as with infinitely
    many, so that M starts at zero.
    """
    rng, (outputs, inputs) = np.random.default_rng((2, seed)), SHAPES[shape]
    u, v = (math.sqrt(scale**2 + max(extra, 0.0)) for extra in (imbalance, -imbalance))
    if wide:
        both = np.eye(outputs + inputs)
        return u * both[:outputs], v * both[outputs:]
    hidden = min(outputs, inputs)
    U, V = (np.linalg.qr(rng.standard_normal((n, hidden)))[0] for n in (outputs, inputs))
    return u * U, v * V


def trained(U: Array, V: Array, target: Array, rtol: float, stop: Any = FITTED) -> Path:
    """Gradient flow of |U V^T - target|^2, all entries being seen."""
    every = np.eye(target.size).reshape(-1, *target.shape)
    problem = Sensing(every, target.ravel())
    model, flow = Factorization(factors=(U, V)), MatrixFlow(rtol=rtol)
    return train(model, problem, flow, stop=stop, record=LogSpaced(4))


def riccati(W: Array, target: Array, imbalance: float, times: Array) -> Array:
    """W W^T of the stack W = [U; V] at these times, from W at time 0.

    W' = 2 F W - W W^T W with F = [[imbalance/2, target], [target^T, -imbalance/2]], a Riccati
    equation for W W^T. Its closed form maps a factor W to another one; it is applied repeatedly
    over spans in which nothing grows by more than e^GROWTH, since rounding errors dominate over
    long ones.
    """
    outputs, inputs = target.shape
    corner = imbalance / 2
    F = np.block([[corner * np.eye(outputs), target], [target.T, -corner * np.eye(inputs)]])
    rates, basis = np.linalg.eigh(F)
    C, clock, products = basis.T @ W, 0.0, []
    for time in times:
        count = max(1, math.ceil(2 * rates[-1] * (time - clock) / GROWTH))
        span = 2 * (time - clock) / count
        grown = np.exp(rates * span)[:, None]
        # the integral of e^(2 F s) over the span, in the eigenbasis
        past = np.array([math.expm1(2 * r * span) / (2 * r) if r else span for r in rates])
        for _ in range(count):
            inner = np.eye(C.shape[1]) + C.T @ (past[:, None] * C)
            C = np.linalg.solve(np.linalg.cholesky(inner), (grown * C).T).T
        clock = time
        products.append(basis @ C @ C.T @ basis.T)
    return np.array(products)


def kernel(U: Array, V: Array) -> Array:
    """The tangent kernel of M = U V^T on whitened inputs."""
    return np.kron(U @ U.T, np.eye(len(V))) + np.kron(np.eye(len(U)), V @ V.T)


def predicted_kernel(target: Array, imbalance: float) -> Array:
    """The tangent kernel of balanced layers that have reached U V^T = target.

    Where there are no more outputs than inputs, (U U^T)^2 - imbalance U U^T = target target^T.
    """
    flipped = len(target) > len(target.T)
    Y, half = (target.T, -imbalance / 2) if flipped else (target, imbalance / 2)
    squares, basis = np.linalg.eigh(Y @ Y.T)
    first = (basis * (half + np.sqrt(half**2 + squares))) @ basis.T
    blocks = first, Y.T @ np.linalg.solve(first, Y)
    one, other = blocks[::-1] if flipped else blocks
    return np.kron(one, np.eye(len(other))) + np.kron(np.eye(len(one)), other)


def turned(
    width: str, scale: float, imbalance: float, *, shape: str, seed: int, rtol: float
) -> dict[str, float]:
    """How far the kernel turns from a start of this scale and imbalance to the end of training."""
    number, _ = reached(shape, seed)
    U, V = layers(shape, scale, imbalance, number, wide=width == "wide")
    end = np.reshape(trained(U, V, target(shape, number), rtol).parameters, (-1, U.shape[1]))
    return {"distance": kernel_distance(kernel(U, V), kernel(end[: len(U)], end[len(U) :]))}


def cell(shape: str, imbalance: float, *, scale: float, seed: int, rtol: float) -> dict[str, Any]:
    """One run compared with the closed form at its times, and how far its kernel has turned."""
    number, draws = reached(shape, seed)
    Y, (U, V) = target(shape, number), layers(shape, scale, imbalance, number)
    path, rows, W = trained(U, V, Y, rtol), len(Y), np.vstack([U, V])
    t, M = path.dataset.t.values[1:], path.dataset.predictor.values[1:]
    exact, plain = (riccati(W, Y, size, t) for size in (imbalance, 0.0))
    end = np.reshape(path.parameters, W.shape)
    ends, held = (end[:rows], end[rows:]), imbalance * np.eye(W.shape[1])

    def far(lifted: Array) -> float:
        return float(np.abs(lifted[:, :rows, rows:] - M).max())

    return {
        "error": max(far(exact), float(np.abs(exact[-1] - end @ end.T).max())),
        "error_balanced": far(plain),
        "drift": float(np.abs(ends[0].T @ ends[0] - ends[1].T @ ends[1] - held).max()),
        "distance": kernel_distance(kernel(U, V), kernel(*ends)),
        "predicted": kernel_distance(kernel(U, V), predicted_kernel(Y, imbalance)),
        "time": float(t[-1]),
        "missed": float(np.linalg.norm(M[-1] - Y, 2) / np.linalg.norm(Y, -2)),
        "draws": draws,
    }


def beyond_reach(seed: int, *, scale: float, rtol: float) -> dict[str, float]:
    """Balanced square layers whose determinant has the wrong sign: how near they come.

    No matrix with a determinant of the other sign is nearer to the target than its least singular
    value, in the spectral norm. Along the exact flow the direction that would have to turn shrinks,
    and in floating point rounding revives it: training is followed until shortly before, and only
    where the other directions are learned by then.
    """

    def waits(number: int) -> bool:
        sizes = np.linalg.svd(target("square", number), compute_uv=False)
        return not reachable("square", number) and bool(sizes[1] > WAITS * sizes[2])

    number, draws = drawn(lambda k: DRAWS * seed + k, waits, 0)
    Y, (U, V) = target("square", number), layers("square", scale, 0.0, number)
    left, sizes, right = np.linalg.svd(Y)
    lower = (left[:, :2] * sizes[:2]) @ right[:2]
    path = trained(U, V, Y, rtol, Time(6 / float(sizes[2])))

    def nearest(other: Array) -> float:
        apart = np.linalg.norm(path.dataset.predictor.values - other, 2, axis=(1, 2))
        return float(apart.min() / sizes[2])

    return {"to_target": nearest(Y), "to_lower": nearest(lower), "draws": draws}


study = sized(
    "beyond-balanced-linear",
    title="Imbalance makes a linear net lazy, unless the larger layer has to rotate",
    function=cell,
    arguments={"scale": 0.03, "seed": 0, "rtol": 1e-10},
    grid={"shape": list(SHAPES), "imbalance": [-8.0, -4.0, 0.0, 4.0, 8.0]},
    labels={
        "imbalance": "imbalance: $U^T U - V^T V$ over the identity",
        "error": "largest distance of training from the closed form",
        "error_balanced": "the same without the imbalance",
        "distance": "kernel distance from start to end",
        "predicted": "predicted kernel distance from start to end",
        "time": "time to fit",
        "missed": "spectral distance of the end to the target, over its least singular value",
    },
    draw={"x": "imbalance", "y": "shape", "colour": "distance"},
    printed={"grid": {"imbalance": [-16.0, -8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0]}},
)
diagram = sized(
    "beyond-balanced-linear-diagram",
    title="Lazy and rich regimes by scale and imbalance",
    function=turned,
    arguments={"shape": "funnel", "seed": 0, "rtol": 1e-5},
    grid={"width": ["wide", "narrow"], "scale": [0.05, 3.0], "imbalance": [-6.0, 0.0, 6.0]},
    labels={
        "width": "wide, or as many hidden units as outputs",
        "scale": "singular values of the smaller layer",
        "imbalance": "imbalance",
        "distance": "kernel distance from start to end",
    },
    draw={"x": "imbalance", "y": "scale", "colour": "distance"},
    printed={
        "grid": {
            "scale": {"logspace": [-1.3, 0.5, 9]},
            "imbalance": [-6.0, -3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0, 6.0],
        }
    },
)

signs = sized(
    "beyond-balanced-linear-signs",
    title="A determinant of the wrong sign: balanced square layers stop one rank below the target",
    function=beyond_reach,
    arguments={"scale": 0.3, "rtol": 1e-8},
    grid={"seed": list(range(4))},
    labels={
        "to_target": "least distance to the target, over its least singular value",
        "to_lower": "the same to the target without its least singular value",
    },
    draw={"x": "seed", "colour": "to_target"},
    tiny={"grid": {"seed": list(range(2))}},
    printed={"grid": {"seed": list(range(20))}},
)


def check(dataset: Dataset, diagram: Dataset, signs: Dataset) -> Evidence:
    """The closed form along training, the kernel at its end, and which nets are lazy."""
    first, last = dataset.imbalance.values[[0, -1]]
    uneven = dataset.where(dataset.imbalance != 0, drop=True)
    square, positive = dataset.sel(shape="square"), dataset.imbalance.values[-2:]
    exact = within(dataset.error.max(), tolerance=1e-8)
    ends = within(np.abs(dataset.distance - dataset.predicted).max(), tolerance=1e-6)
    power = within(slope(positive, square.distance.sel(imbalance=positive).values), -4.0, 0.5)
    shapes = {"funnel": first, "inverted funnel": last}

    def turns(shape: str, size: float) -> float:
        """The kernel distance at an imbalance over that at the opposite one."""
        rows = dataset.distance.sel(shape=shape)
        return float(rows.sel(imbalance=size) / rows.sel(imbalance=-size))

    rich = {shape: at_least(turns(shape, size), 100.0) for shape, size in shapes.items()}
    beyond = at_least(signs.to_target.min(), 1.0, tolerance=1e-6)
    lower = at_most(signs.to_lower.max(), 0.1)
    wide, narrow = (diagram.distance.sel(width=width) for width in ("wide", "narrow"))
    corner = {"scale": 0, "imbalance": diagram.sizes["imbalance"] // 2}  # small and balanced

    def outside(distance: DataArray) -> float:
        """The distance at a small balanced start over the largest at a large or uneven one."""
        edges = distance.isel(scale=-1).max(), distance.isel(imbalance=[0, -1]).max()
        return float(distance.isel(corner)) / max(map(float, edges))

    spread = at_least(outside(wide), 10.0)
    mirrored = dataset.predicted.values[:, ::-1]
    delay = dataset.time.sel(shape="funnel", imbalance=first) / dataset.time.sel(
        shape="funnel", imbalance=last
    )
    return Evidence(
        ran=f"{dataset.distance.size} runs of two linear layers, 3 x 3, 2 x 5 and 5 x 2, on "
        f"whitened inputs with $U^T U - V^T V = {latex(first)} I$ to {last:g} I and singular "
        "values 0.03 in the smaller layer, followed to their end by exact flow (the "
        "determinants of square layers and target have one sign at the start; "
        f"{int(dataset.draws.sel(shape='square')[0])} draws); {signs.sizes['seed']} balanced "
        f"square ones whose determinants have opposite signs ({int(signs.draws.sum())} draws)",
        premises={"the imbalance does not change": below(dataset.drift.max(), 1e-8)},
        checks={
            "largest distance of training from the closed form, at any time": exact,
            "largest difference between the measured and the predicted kernel distance from start"
            " to end": ends,
            f"square, imbalance {positive[0]:g} to {positive[1]:g}: power of it in the kernel"
            " distance": power,
            **{
                f"{shape}, imbalance {shapes[shape]:g}: kernel distance over that of the opposite"
                " imbalance": one
                for shape, one in rich.items()
            },
            "square, balanced, determinants of opposite signs: least distance to the target, over"
            " its least singular value": beyond,
            "the same to the target without that singular value, at most": lower,
            "wide layers: kernel distance from a small balanced start over the largest from a"
            " start of large scale or imbalance": spread,
        },
        controls={
            "determinants of the right sign, as near": beyond.control(square.missed.max()),
            "the closed form of balanced layers": exact.control(uneven.error_balanced.min()),
            "the sign of the imbalance does not matter": ends.control(
                np.abs(dataset.distance - mirrored).max()
            ),
            "a funnel turns as a square does": rich["funnel"].control(turns("square", first)),
            "an inverted funnel does": rich["inverted funnel"].control(turns("square", last)),
            "layers without spare hidden units behave the same": spread.control(outside(narrow)),
            "a relative change of the kernel like 1/imbalance": power.control(predicted=-2.0),
        },
        findings=[
            f"a funnel of imbalance {first:g} takes {float(delay):.0f} times as long to fit as"
            f" one of {last:g}, and its kernel distance is"
            f" {float(dataset.distance.sel(shape='funnel', imbalance=first)):.2g}: rich, but late",
        ],
    )


def draw(dataset: Dataset, diagram: Dataset, signs: Dataset) -> Figure:
    """Kernel distances over the imbalance, and how far both closed forms are from training."""
    picture, (a, b) = sheet_of(dataset, widths=(6.0, 6.0), height=4.8)
    for colour, marker, shape in zip(CYCLE, "os^", SHAPES, strict=False):
        row, label = dataset.sel(shape=shape), "{} ({} x {})".format(shape, *SHAPES[shape])
        a.plot(row.imbalance, row.distance, marker, color=colour, markersize=8, label=label)
        a.plot(row.imbalance, row.predicted, "--", color=colour, linewidth=1.2)
        b.plot(row.imbalance, row.error, marker, color=colour, markersize=8)
        b.plot(row.imbalance, row.error_balanced, marker, color=colour, fillstyle="none")
    a.plot([], [], "--", color=BLACK, label="predicted")
    b.plot([], [], "o", color=BLACK, label="closed form")
    b.plot([], [], "o", color=BLACK, fillstyle="none", label="closed form of balanced layers")
    label = r"imbalance $\lambda$, $U^\top U - V^\top V = \lambda I$"
    a.set(
        yscale="log",
        xlabel=label,
        ylabel="kernel distance from start to end",
        title="lazy (low) and rich (high)",
    )
    a.legend()
    b.set(
        yscale="log",
        xlabel=label,
        ylabel="largest distance from training",
        title="the exact dynamics",
    )
    b.legend(loc="center")
    return picture


experiment = Experiment(
    "beyond-balanced-linear",
    statement=r"Two linear layers on whitened inputs conserve $U^T U - V^T V = \lambda I$ if it "
    "holds at the start, and $U U^T$, $V V^T$ and $U V^T$ follow the closed form of a Riccati "
    r"equation. If $\lambda = 0$ and the layers are square, the determinant of $U V^T$ keeps "
    "its sign: a target whose determinant has the other one is out of reach, and training "
    r"comes to the target without its least singular value. Large $|\lambda|$ makes a square "
    r"net lazy, with a kernel distance of order $\lambda^{-4}$; a net with fewer outputs than "
    r"inputs is lazy only for large positive $\lambda$, and rich but slow for large negative "
    r"$\lambda$. Wide layers are lazy from a large scale or a large imbalance of either sign.",
    place="Domine et al. 2025 (arXiv 2409.14623); the power -4 and the spans of the closed form:"
    " ours",
    study=(study, diagram, signs),
    check=check,
    draw=draw,
    ours="the shapes, the targets, the scale and the imbalances",
    scope=OWN_RUNS,
    seconds=3,
)
