"""Appendix C: in the asymmetric model equal magnitudes stay equal and no sign ever flips."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant.lab import Array, Dataset, Evidence, Experiment, log_log, within
from penchant.models import ProductNet
from penchant_papers.endpoints import Trace, trace
from penchant_papers.instances import Instance, by_instance, random_instance

INSTANT = 0.03  # of the fastest time scale: so long is the time over which a velocity is measured


def trained(p: Instance, imbalance: float, signs: Array) -> tuple[Array, Array, Trace]:
    """u(t), v(t) of f = sum u_i v_i x_i trained from |u| = alpha |w0|, |v| = (1+imbalance) |u|."""
    u = p.alpha * p.shape
    v = signs * np.abs(u) * (1 + imbalance)
    path = trace(p.X, p.y, ProductNet(u, v), t_end=2.0)
    u_path, v_path = np.split(path.parameters, 2, axis=1)
    return u_path, v_path, path


def apart(u: Array, v: Array) -> Array:
    """Largest ||u_i| - |v_i|| at every time, relative to the largest weight on the way."""
    return np.asarray(np.abs(np.abs(u) - np.abs(v)).max(axis=1) / np.abs(u).max())


def flips(u: Array, v: Array) -> int:
    """Coordinates whose u or v changed sign at some recorded time."""
    moved = (np.sign(u) != np.sign(u[0])) | (np.sign(v) != np.sign(v[0]))
    return int(moved.any(axis=0).sum())


def velocities(p: Instance, u: Array, v: Array) -> tuple[Array, Array, Array]:
    """d|u|/dt of the trained flow, of eq. (12) as printed, and with its sign and power corrected.

    The first is extrapolated to zero time from three difference quotients, over times up to
    theta = INSTANT in units of the fastest rate L of the flow. Such an extrapolation is off by
    theta^3 of the velocity over 700, and the integrator adds its rtol of |u|, 1e-11, over theta.
    """
    residual = p.X @ (u * v) - p.y
    rate = 2 * np.linalg.norm(p.X, 2) ** 2 * (u**2 + v**2).max()
    rate += 2 * np.abs(residual @ p.X).max()  # the Hessian of the loss is smaller than this
    path = trace(p.X, p.y, ProductNet(u, v), t_end=INSTANT / rate, points=7)
    sizes, times = np.abs(path.parameters[:, : len(u)]), path.t[-3:]
    quotients = (sizes[-3:] - sizes[0]) / times[:, None]
    flow = np.polynomial.polynomial.polyfit(times / times[-1], quotients, 2)[0]
    printed, mended = (-2 * r @ (p.X * (np.sign(u) * v)) for r in (residual**2, residual))
    return flow, printed, mended


def halfway(p: Instance, u: Array, v: Array) -> int:
    """The last recorded time at which half of the loss is left: later velocities vanish."""
    loss = (((u * v) @ p.X.T - p.y) ** 2).sum(axis=1)
    return int(np.flatnonzero(loss >= loss[0] / 2)[-1])


def cell(instance: int, seed: int) -> dict[str, Any]:
    """One problem trained from equal magnitudes, and from |v| 30% larger."""
    p = random_instance(instance, seed, log10_alpha=(-1.5, 0.0))
    signs = np.random.default_rng((seed, instance)).choice([-1.0, 1.0], len(p.shape))
    u, v, path = trained(p, 0.0, signs)
    tilted = trained(p, 0.3, signs)[:2]
    at = halfway(p, u, v)
    truth, printed, mended = velocities(p, u[at], v[at])
    scale = np.abs(truth).max()
    return {
        "t": path.t,
        "apart": apart(u, v),
        "apart_tilted": apart(*tilted),
        "flips": flips(u, v),
        "flips_tilted": flips(*tilted),
        "off_printed": np.abs(printed - truth).max() / scale,
        "off_mended": np.abs(mended - truth).max() / scale,
        "velocity": [truth[0], printed[0], mended[0]],
    }


along = {name: ["time"] for name in ("t", "apart", "apart_tilted")}
study = by_instance(
    "W-C",
    cell,
    8,
    tiny=3,
    printed=60,
    arguments={"seed": 12},
    dims={**along, "velocity": ["how"]},
)


def check(dataset: Dataset) -> Evidence:
    """Magnitudes and signs on the way, against starts with |v| 30% larger; eq. (12)."""
    first, flipped = dataset.isel(instance=0), int(dataset.flips_tilted.sum())
    equal = within(dataset.apart.max(), tolerance=1e-8)
    signs = within(dataset.flips.sum(), tolerance=0.0)
    return Evidence(
        ran=f"{dataset.sizes['instance']} problems trained in $u$ and $v$ from equal magnitudes "
        "with random signs, and again with $|v|$ 30% larger",
        checks={
            "largest $||u| - |v||$ during training, relative": equal,
            "coordinates whose sign flips": signs,
        },
        proof={
            "eq. (12) as printed against the flow, relative, the worst problem": within(
                dataset.off_printed.max(), tolerance=1e-5
            )
        },
        corrected={
            "the corrected eq. (12) against the flow, relative, the worst problem": within(
                dataset.off_mended.max(), tolerance=1e-5
            )
        },
        correction=r"$d|u|/dt = +\operatorname{sign}(u) u' = -2 \sum_n (f(x_n) - y_n) "
        r"\operatorname{sign}(u) v x_n$: the minus sign in (11), (13) and the square on the "
        "residual in (12), (14) are misprints",
        counterexample=dict(
            zip(
                ("$d|u_1|/dt$ measured", "eq. (12) as printed", "corrected"),
                first.velocity.values,
                strict=True,
            )
        ),
        controls={
            "$|v|$ 30% larger at the start": equal.control(dataset.apart_tilted.max("time").min()),
            "sign flips from $|v|$ 30% larger": signs.control(flipped),
        },
        findings=[
            f"from unequal magnitudes {flipped} signs flipped in {dataset.sizes['instance']} runs"
        ],
        plots=[
            log_log(
                "$||u| - |v||$ along training",
                "time",
                "largest relative difference",
                [
                    ("equal start", first.t[1:], np.maximum(first.apart[1:], 1e-18)),
                    ("30% apart (control)", first.t[1:], first.apart_tilted[1:], "dashed"),
                ],
            )
        ],
    )


experiment = Experiment(
    "W-C",
    statement=r"If $|u_i| = |v_i|$ at the start of $f = \sum u_i v_i x_i$, the magnitudes stay "
    "equal and the signs never change.",
    place="appendix C, eqs. (11)-(14)",
    study=study,
    check=check,
    title="Equal magnitudes stay equal",
)
