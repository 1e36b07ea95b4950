"""Two linear layers of unequal size: exact dynamics by a Riccati equation, lazy and rich."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Evidence, at_least, below, within
from tacit.lazy import DataArray, Dataset, Figure
from tacit.models.factorization import Factorization
from tacit.models.tangent import kernel_distance
from tacit.papers.experiment import Experiment
from tacit.papers.instances import slope
from tacit.plotting.style import BLACK, CYCLE, sheet_of
from tacit.problems.matrix_problem import Sensing
from tacit.studies.sizes import sized
from tacit.training.exact.matrices.flow import MatrixFlow
from tacit.training.path import Path
from tacit.training.record import LogSpaced
from tacit.training.stop import Interpolated
from tacit.training.train import train

SHAPES = {"square": (3, 3), "funnel": (2, 5), "inverted funnel": (5, 2)}  # outputs, inputs
GROWTH = 4.0  # logarithm of the largest growth that one use of the closed form spans


def target(shape: str, seed: int) -> Array:
    """The correlation of labels with whitened inputs, of spectral norm one."""
    drawn = np.random.default_rng((1, seed)).standard_normal(SHAPES[shape])
    return np.asarray(drawn / np.linalg.norm(drawn, 2))


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


def trained(U: Array, V: Array, target: Array, rtol: float) -> Path:
    """Gradient flow of |U V^T - target|^2, all entries being seen."""
    every = np.eye(target.size).reshape(-1, *target.shape)
    problem = Sensing(every, target.ravel())
    model, stop = Factorization(factors=(U, V)), Interpolated(1e-14)
    return train(model, problem, MatrixFlow(rtol=rtol), stop=stop, record=LogSpaced(4))


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
    C, clock, found = basis.T @ W, 0.0, []
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
        found.append(basis @ C @ C.T @ basis.T)
    return np.array(found)


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
    U, V = layers(shape, scale, imbalance, seed, wide=width == "wide")
    end = np.reshape(trained(U, V, target(shape, seed), rtol).parameters, (-1, U.shape[1]))
    return {"distance": kernel_distance(kernel(U, V), kernel(end[: len(U)], end[len(U) :]))}


def cell(shape: str, imbalance: float, *, scale: float, seed: int, rtol: float) -> dict[str, Any]:
    """One run compared with the closed form at its times, and how far its kernel has turned."""
    Y, (U, V) = target(shape, seed), layers(shape, scale, imbalance, seed)
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
    }


study = sized(
    "beyond-balanced-linear",
    title="Imbalance makes a linear net lazy, unless the larger layer has to rotate",
    function=cell,
    arguments={"scale": 0.03, "seed": 0, "rtol": 1e-10},
    grid={"shape": list(SHAPES), "imbalance": [-8.0, -4.0, 0.0, 4.0, 8.0]},
    labels={
        "imbalance": "imbalance: U^T U - V^T V over the identity",
        "error": "largest distance of training from the closed form",
        "error_balanced": "the same without the imbalance",
        "distance": "kernel distance from start to end",
        "predicted": "predicted kernel distance from start to end",
        "time": "time to fit",
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


def check(dataset: Dataset, diagram: Dataset) -> Evidence:
    """The closed form along training, the kernel at its end, and which nets are lazy."""
    first, last = dataset.imbalance.values[[0, -1]]
    uneven = dataset.where(dataset.imbalance != 0, drop=True)
    square, positive = dataset.sel(shape="square"), dataset.imbalance.values[-2:]
    exact = within(dataset.error.max(), tolerance=1e-8)
    ends = within(np.abs(dataset.distance - dataset.predicted).max(), tolerance=1e-6)
    power = within(slope(positive, square.distance.sel(imbalance=positive).values), -4.0, 0.5)
    shapes = {"funnel": first, "inverted funnel": last}
    rich = {
        shape: at_least(
            dataset.distance.sel(shape=shape, imbalance=size)
            / dataset.distance.sel(shape=shape, imbalance=-size),
            100.0,
        )
        for shape, size in shapes.items()
    }
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
        ran=f"{dataset.distance.size} runs of two linear layers, 3 x 3, 2 x 5 and 5 x 2, on"
        f" whitened inputs with U^T U - V^T V = {first:g} I to {last:g} I and singular values 0.03"
        " in the smaller layer, followed to their end by exact flow",
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
            "wide layers: kernel distance from a small balanced start over the largest from a"
            " start of large scale or imbalance": spread,
        },
        controls={
            "the closed form of balanced layers": exact.control(uneven.error_balanced.min()),
            "the sign of the imbalance does not matter": ends.control(
                np.abs(dataset.distance - mirrored).max()
            ),
            "the same, for the funnel": rich["funnel"].control(1.0),
            "the same, for the inverted funnel": rich["inverted funnel"].control(1.0),
            "layers without spare hidden units behave the same": spread.control(outside(narrow)),
            "a relative change of the kernel like 1/imbalance": power.control(predicted=-2.0),
        },
        findings=[
            f"a funnel of imbalance {first:g} takes {float(delay):.0f} times as long to fit as"
            f" one of {last:g}, and its kernel distance is"
            f" {float(dataset.distance.sel(shape='funnel', imbalance=first)):.2g}: rich, but late",
        ],
    )


def draw(dataset: Dataset, diagram: Dataset) -> Figure:
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
    statement="Two linear layers on whitened inputs conserve U^T U - V^T V = lambda I if it"
    " holds at the start, and U U^T, V V^T and U V^T follow the closed form of a"
    " Riccati equation. Large |lambda| makes a square net lazy, with a kernel distance"
    " of order lambda^-4; a net with fewer outputs than inputs is lazy only for large"
    " positive lambda, and rich but slow for large negative lambda. Wide layers are"
    " lazy from a large scale or a large imbalance of either sign.",
    place="Domine et al. 2025 (arXiv 2409.14623); the power -4 and the spans of the closed form:"
    " ours",
    study=(study, diagram),
    check=check,
    draw=draw,
    ours="the shapes, the targets, the scale and the imbalances",
    seconds=3,
)
