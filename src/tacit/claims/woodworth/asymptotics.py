"""W-A: the two ends of Q, eqs. (6) and (7): weighted l2 for large alpha, l1 for small."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.papers.endpoints import endpoint
from tacit.papers.instances import Instance, distance, instances, slope
from tacit.regularizers import hypentropy
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.q import Q
from tacit.solvers.interpolate import interpolate
from tacit.solvers.interpolation_path import interpolate_path
from tacit.studies.sizes import Size


def q(z: Array) -> Array:
    return hypentropy.terms(z, 0.0)


def kernel_remainder(shape: Array, beta: Array, alphas: Array) -> Array:
    """|Q - sum beta^2/(4 alpha^2 w0^2)|, which eq. (6) says is O(alpha^-6)."""
    exact = [Q(2, alpha=a, shape=shape)(beta) for a in alphas]
    limit = [float(np.sum(beta**2 / (4 * a**2 * shape**2))) for a in alphas]
    return np.abs(np.array(exact) - np.array(limit))


def rich_remainder(shape: Array, beta: Array, log_alphas: Array) -> Array:
    """|Q/log(1/alpha^2) - |beta|_1| log(1/alpha^2), which eq. (7) says stays bounded."""
    values = np.array([Q(2, log_alpha=m, shape=shape)(beta) for m in log_alphas])
    return np.abs(values + 2 * log_alphas * np.abs(beta).sum())


@claim(
    "W-A",
    statement="Q tends to l2 weighted by 1/w0^2 as alpha grows and to l1, whatever w0, as it falls",
    place="section 4, eqs. (6), (7) and the expansion of q between them",
    seconds=8,
)
def asymptotics(size: Size) -> Evidence:
    count = 4 if size == "quick" else 20
    problems = instances(count, seed=11, samples=(3, 6), dimension=(10, 16))
    beta, shape = np.random.default_rng(0).normal(size=12), problems[0].shape[:10]
    shape = np.resize(np.abs(shape), 12)
    alphas, log_alphas = np.geomspace(3, 30, 8), -np.geomspace(5, 1e6, 12)
    order = slope(alphas, kernel_remainder(shape, beta, alphas))
    bounded = rich_remainder(shape, beta, log_alphas)
    z = np.geomspace(1e2, 1e4, 7)
    printed = np.abs(z * (q(z) - z * np.log(z)))
    mended = np.abs(z * (q(z) - z * np.log(z) + z - 2))
    kernel, wrong_kernel, rich, wrong_rich, misfit = ends(problems)
    rates = path_to_l1(problems)
    order_check = Check("exponent of the remainder of (6)", order, -6.0, tolerance=0.05)
    trained_l2 = Check(
        "trained at alpha = 20: distance to the weighted l2 solution", kernel, tolerance=1e-4
    )
    trained_l1 = Check(
        "trained at alpha = 1e-6: excess l1 norm over what (7) allows",
        rich,
        1.0,
        tolerance=1e-6,
        kind="at most",
    )
    shared = [
        order_check,
        Check(
            "spread of the remainder of (7) times log(1/alpha²), log alpha -5 to -1e6",
            float(np.ptp(bounded) / bounded.max()),
            tolerance=1e-3,
        ),
        trained_l2,
        trained_l1,
        Check(
            "largest distance to the l1 solution times |log alpha|, last over first",
            rates,
            1.0,
            kind="at most",
        ),
    ]
    return Evidence(
        ran=f"q, Q at 8 to 12 scales; {count} problems trained in the parameters at alpha = 20"
        " and 1e-6, there from two shapes each; their minimisers followed to log alpha = -1000",
        checks=[
            *shared,
            Check("|z| |q(z) - |z| log|z|| at z = 1e4", printed[-1], 3.0, kind="at most"),
        ],
        corrected=[
            *shared,
            Check("|z| |q(z) - |z| log|z| + |z| - 2| at z = 1e4", mended[-1], 3.0, kind="at most"),
        ],
        correction="q(z) = |z| log|z| - |z| + 2 + O(1/|z|); eq. (7) and its O(1/log(1/alpha²))"
        " stand",
        counterexample={"z": z[-1], "q(z)": q(z)[-1], "|z| log|z|": z[-1] * np.log(z[-1])},
        premises={"every trained endpoint interpolates": (misfit < 1e-8, misfit)},
        controls={
            "exponent -4 in (6)": order_check.control(predicted=-4.0),
            "unweighted l2 at alpha = 20": trained_l2.control(wrong_kernel),
            "the weighted l2 solution in place of training": trained_l1.control(wrong_rich),
        },
        findings=[
            "from log alpha = -10 to -1000 the distance to the l1 solution times |log alpha| falls"
            f" to {rates:.2f} of itself in the slowest problem: no slower than 1/log(1/alpha), and"
            " faster once the support has settled"
        ],
        plots=[
            Plot(
                "q(z) minus two expansions for large z",
                "z",
                "|q(z) − expansion|",
                [
                    Series("|z| log|z| (as printed)", z, printed / z),
                    Series("|z| log|z| − |z| + 2", z, mended / z),
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


def ends(problems: list[Instance]) -> tuple[float, float, float, float, float]:
    """Worst trained distances at both ends, and those of the wrong theorems."""
    kernel, wrong_kernel, rich, wrong_rich, misfits = [], [], [], [], []
    for p in problems:
        weighted = interpolate(p.X, p.y, L2(1 / p.shape**2)).beta
        plain = interpolate(p.X, p.y, L2()).beta
        least = interpolate(p.X, p.y, L1())
        large = endpoint(p.X, p.y, alpha=20.0, shape=p.shape)
        kernel.append(distance(large.beta, weighted))
        wrong_kernel.append(distance(large.beta, plain))
        misfits.append(large.residual)
        for shape in (p.shape, np.ones_like(p.shape)):
            small = endpoint(p.X, p.y, alpha=1e-6, shape=shape)
            rich.append(share_of_excess(small.beta, least.beta, shape))
            misfits.append(small.residual)
        wrong_rich.append(share_of_excess(weighted, least.beta, p.shape))
    wrong = float(np.median(wrong_kernel)), float(np.median(wrong_rich))
    return max(kernel), wrong[0], max(rich), wrong[1], max(misfits)


def share_of_excess(beta: Array, least: Array, shape: Array, alpha: float = 1e-6) -> float:
    """The l1 norm in excess of `least`, relative to what eq. (7) leaves room for.

    Q = log(1/alpha^2) |beta|_1 + C(beta), so Q(beta) <= Q(least) bounds the excess by
    (C(least) - C(beta)) / log(1/alpha^2), with C from the mended expansion of q.
    """

    def remainder(b: Array) -> float:
        size = np.abs(b[b != 0])
        return float(np.sum(size * (np.log(size / shape[b != 0] ** 2) - 1)))

    excess = np.abs(beta).sum() - np.abs(least).sum()
    return float(excess * np.log(1 / alpha**2) / (remainder(least) - remainder(beta)))


def path_to_l1(problems: list[Instance]) -> float:
    """How much distance * |log alpha| changes from log alpha = -10 to -1000, worst problem."""
    log_alphas = -np.array([10.0, 100.0, 1000.0])
    growth = []
    for p in problems:
        target = interpolate(p.X, p.y, L1()).beta
        path = interpolate_path(p.X, p.y, log_alphas=log_alphas, shape=p.shape)
        scaled = [distance(b, target) * -m for b, m in zip(path.beta, log_alphas, strict=True)]
        growth.append(scaled[-1] / scaled[0])
    return max(growth)
