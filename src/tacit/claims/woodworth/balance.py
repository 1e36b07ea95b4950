"""W-C: in the asymmetric model equal magnitudes stay equal and no sign ever flips."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.models.product import ProductNet
from tacit.papers.endpoints import Trace, trace
from tacit.papers.instances import Instance, instances
from tacit.studies.sizes import Size


def run(p: Instance, imbalance: float, seed: int, t_end: float) -> tuple[Array, Array, Trace]:
    """u(t), v(t) of f = sum u_i v_i x_i trained from |u| = alpha |w0|, |v| = (1+imbalance) |u|."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(p.shape))
    u = p.alpha * p.shape
    v = signs * np.abs(u) * (1 + imbalance)
    path = trace(p.X, p.y, ProductNet(u, v), t_end=t_end)
    u_path, v_path = np.split(path.parameters, 2, axis=1)
    return u_path, v_path, path


def imbalance_of(u: Array, v: Array) -> float:
    """Largest ||u_i| - |v_i|| on the way, relative to the largest weight."""
    return float(np.abs(np.abs(u) - np.abs(v)).max() / np.abs(u).max())


def flips(u: Array, v: Array) -> int:
    """Coordinates whose u or v changed sign at some recorded time."""
    moved = (np.sign(u) != np.sign(u[0])) | (np.sign(v) != np.sign(v[0]))
    return int(moved.any(axis=0).sum())


def printed_velocity(p: Instance, u: Array, v: Array) -> tuple[Array, Array]:
    """d|u|/dt as eq. (12) prints it, and with the sign and the power mended."""
    residual = p.X @ (u * v) - p.y
    printed = -2 * (residual**2) @ (p.X * (np.sign(u) * v))
    mended = -2 * residual @ (p.X * (np.sign(u) * v))
    return printed, mended


def measured_velocity(p: Instance, u: Array, v: Array) -> Array:
    """d|u|/dt off the trained flow itself: difference quotients extrapolated to zero time."""
    path = trace(p.X, p.y, ProductNet(u, v), t_end=3e-4, points=7)
    sizes = np.abs(path.parameters[:, : len(u)])
    (short, long), (one, other) = path.t[-2:], (sizes[-2:] - sizes[0]) / path.t[-2:, None]
    return (one * long - other * short) / (long - short)


@claim(
    "W-C",
    statement="if |u_i| = |v_i| at the start of f = sum u_i v_i x_i, the magnitudes stay equal and"
    " the signs never change",
    place="appendix C, eqs. (11)-(14)",
    seconds=5,
)
def balance(size: Size) -> Evidence:
    count = 8 if size == "quick" else 60
    problems = instances(count, seed=12, log10_alpha=(-1.5, 0.0))
    balanced = [run(p, 0.0, k, t_end=2.0) for k, p in enumerate(problems)]
    tilted = [run(p, 0.3, k, t_end=2.0) for k, p in enumerate(problems)]
    spread = max(imbalance_of(u, v) for u, v, _ in balanced)
    flipped = sum(flips(u, v) for u, v, _ in balanced)
    kept = min(imbalance_of(u, v) for u, v, _ in tilted)
    flipped_tilted = sum(flips(u, v) for u, v, _ in tilted)
    p, (u, v, _) = problems[0], balanced[0]
    at = len(u) // 2
    printed, mended = printed_velocity(p, u[at], v[at])
    truth = measured_velocity(p, u[at], v[at])
    scale = np.abs(truth).max()
    equal = Check("largest ||u| - |v|| on the way, relative", spread, tolerance=1e-8)
    signs = Check("coordinates whose sign flips", flipped, tolerance=0.0)
    shared = [equal, signs]
    return Evidence(
        ran=f"{count} problems trained in u and v from equal magnitudes with random signs, and"
        " again with |v| 30% larger",
        checks=shared,
        proof=[
            Check(
                "eq. (12) as printed against the flow, relative",
                np.abs(printed - truth).max() / scale,
                tolerance=1e-5,
            )
        ],
        corrected=[
            Check(
                "the mended eq. (12) against the flow, relative",
                np.abs(mended - truth).max() / scale,
                tolerance=1e-5,
            )
        ],
        correction="d|u|/dt = +sign(u) u' = -2 sum_n (f(x_n) - y_n) sign(u) v x_n: the minus sign"
        " in (11), (13) and the square on the residual in (12), (14) are misprints",
        counterexample={
            "d|u_1|/dt measured": truth[0],
            "eq. (12) as printed": printed[0],
            "mended": mended[0],
        },
        controls={
            "|v| 30% larger at the start": equal.control(kept),
            "signs, from |v| 30% larger": signs.control(float(flipped_tilted)),
        },
        findings=[f"from unequal magnitudes {flipped_tilted} signs flipped in {count} runs"],
        plots=[
            Plot(
                "||u| - |v|| along training",
                "time",
                "largest relative difference",
                [
                    Series("equal start", path.t[1:], largest(a, b), "line")
                    if k == 0
                    else Series("30% apart (control)", path.t[1:], largest(a, b), "dashed")
                    for k, (a, b, path) in enumerate([balanced[0], tilted[0]])
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


def largest(u: Array, v: Array) -> Array:
    return np.maximum(np.abs(np.abs(u) - np.abs(v)).max(axis=1) / np.abs(u).max(), 1e-18)[1:]
