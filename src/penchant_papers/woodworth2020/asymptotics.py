"""The two ends of Q, eqs. (6) and (7): weighted l2 for large alpha, l1 for small."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import L1, L2, Q, interpolate
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    at_least,
    at_most,
    log_log,
    share_at_least,
    sized,
    within,
)
from penchant.solvers import interpolate_path
from penchant_papers.endpoints import endpoint
from penchant_papers.instances import Instance, by_instance, distance, random_instance, slope

LARGE, SMALL = 20.0, 1e-6  # the scales that are trained


def problem(instance: int, seed: int) -> Instance:
    return random_instance(instance, seed, samples=(3, 6), dimension=(10, 16))


def beyond(beta: Array, least: Array, shape: Array, log_alpha: float) -> float:
    """How much the l1 norm in excess of `least` is above what eq. (7) allows, over |least|_1.

    Q = log(1/alpha^2) |beta|_1 + C(beta), so Q(beta) <= Q(least) bounds the excess by
    (C(least) - C(beta)) / log(1/alpha^2), with C from the corrected expansion of q.
    """

    def remainder(b: Array) -> float:
        size = np.abs(b[b != 0])
        return float(np.sum(size * (np.log(size / shape[b != 0] ** 2) - 1)))

    norm = np.abs(least).sum()
    allowed = (remainder(least) - remainder(beta)) / (-2 * log_alpha)
    return float((np.abs(beta).sum() - norm - allowed) / norm)


def cell(instance: int, seed: int) -> dict[str, Any]:
    """One problem trained at both ends, from two shapes at the small one; its path to l1."""
    p = problem(instance, seed)
    least = interpolate(p.X, p.y, L1()).beta
    weighted, plain = (interpolate(p.X, p.y, r).beta for r in (L2(1 / p.shape**2), L2()))
    large = endpoint(p.X, p.y, alpha=LARGE, shape=p.shape)
    shapes = p.shape, np.ones_like(p.shape)
    small = [endpoint(p.X, p.y, alpha=SMALL, shape=shape) for shape in shapes]
    log_alphas, log_small = -np.array([10.0, 100.0, 1000.0]), np.log(SMALL)
    path = interpolate_path(p.X, p.y, log_alphas=log_alphas, shape=p.shape).beta
    return {
        "far_weighted": distance(large.beta, weighted),
        "far_plain": distance(large.beta, plain),
        "rich": max(
            beyond(e.beta, least, s, log_small) for e, s in zip(small, shapes, strict=True)
        ),
        "wrong_rich": beyond(weighted, least, p.shape, log_small),
        "residual": max(e.residual for e in (large, *small)),
        "along": [beyond(b, least, p.shape, m) for b, m in zip(path, log_alphas, strict=True)],
        "distance": [distance(b, least) for b in path],
    }


def additive(instance: int, seed: int) -> dict[str, float]:
    """Whether the two limits can be norms of a Hilbert space.

    With such a norm the interpolant is linear in the targets: `rich` and `kernel` are how far the
    predictor trained on y + z is from the sum of those trained on y and on z, relative. The other
    two are by how much Q at either end violates the parallelogram law, at two sparse vectors.
    """
    p, rng = problem(instance, seed), np.random.default_rng((seed, instance))
    targets = [p.y, rng.normal(size=len(p.y))]
    targets.append(targets[0] + targets[1])

    def left(alpha: float) -> float:
        one, other, both = (endpoint(p.X, y, alpha=alpha).beta for y in targets)
        return float(np.linalg.norm(both - one - other) / np.linalg.norm(both))

    a, b = rng.normal(size=(2, p.X.shape[1])) * (rng.random((2, p.X.shape[1])) < 0.3)
    a[0], b[1] = 1.0, 1.0

    def law(log_alpha: float, power: float) -> float:
        q = Q(2, log_alpha=log_alpha)
        squares = [float(q(v)) ** power for v in (a + b, a - b, a, b)]
        return abs(squares[0] + squares[1] - 2 * squares[2] - 2 * squares[3]) / sum(squares)

    return {
        "rich": left(SMALL),
        "kernel": left(LARGE),
        "rich_law": law(-1e6, 2.0),
        "kernel_law": law(np.log(LARGE), 1.0),
    }


def remainders(seed: int) -> dict[str, Any]:
    """What (6), (7) and two expansions of q leave, over a range of scales."""
    beta = np.random.default_rng(seed).normal(size=12)
    shape = np.resize(np.abs(problem(0, seed).shape[:10]), 12)
    alphas, log_alphas = np.geomspace(3, 30, 8), -np.geomspace(5, 1e6, 12)
    exact = np.array([Q(2, alpha=a, shape=shape)(beta) for a in alphas])
    limit = np.array([np.sum(beta**2 / (4 * a**2 * shape**2)) for a in alphas])
    values = np.array([Q(2, log_alpha=m, shape=shape)(beta) for m in log_alphas])
    z = np.geomspace(1e2, 1e4, 7)
    q = Q(2, alpha=1.0).terms(z)
    return {
        "alpha": alphas,
        "kernel": np.abs(exact - limit),  # which (6) says is O(alpha^-6)
        "bounded": np.abs(values + 2 * log_alphas * np.abs(beta).sum()),
        "z": z,
        "q": q,
        "printed": np.abs(z * (q - z * np.log(z))),
        "mended": np.abs(z * (q - z * np.log(z) + z - 2)),
    }


study = by_instance(
    "W-A",
    cell,
    4,
    tiny=2,
    printed=20,
    arguments={"seed": 11},
    dims={"along": ["log_alpha"], "distance": ["log_alpha"]},
)
formulas = sized(
    "W-A-formulas",
    function=remainders,
    arguments={"seed": 11},
    dims={
        **{key: ["large"] for key in ("alpha", "kernel")},
        "bounded": ["small"],
        **{key: ["point"] for key in ("z", "q", "printed", "mended")},
    },
)

hilbert = by_instance("W-A-hilbert", additive, 40, tiny=12, printed=100, arguments={"seed": 12})
NONE = 0.05  # relative: what is above is no rounding and no remainder of (7)


def check(dataset: Dataset, formulas: Dataset, hilbert: Dataset) -> Evidence:
    """Remainders of both equations, trained ends, and the printed expansion of q."""
    z, printed, mended = (formulas[name].values for name in ("z", "printed", "mended"))
    bounded, misfit = formulas.bounded.values, float(dataset.residual.max())
    order = within(slope(formulas.alpha.values, formulas.kernel.values), -6.0, 0.05)
    trained_l2 = within(dataset.far_weighted.max(), tolerance=1e-4)
    trained_l1 = at_most(dataset.rich.max(), tolerance=1e-6)
    n = hilbert.sizes["instance"]
    bent = share_at_least(int((hilbert.rich > NONE).sum()), n, 0.5)
    law = at_least(hilbert.rich_law.max(), NONE)
    shared = {
        "exponent of the remainder of (6)": order,
        r"spread of the remainder of (7) times $\log(1/\alpha^2)$, $\log \alpha -5$ to "
        "$-10^6$": within(np.ptp(bounded) / bounded.max(), tolerance=1e-3),
        r"trained at $\alpha = 20$: distance to the weighted $\ell_2$ solution": trained_l2,
        r"trained at $\alpha = 10^{-6}$: excess $\ell_1$ norm minus what (7) allows, "
        "relative": trained_l1,
        r"the same for the minimisers of $Q$, $\log \alpha = -10$ to -1000": at_most(
            dataset.along.max(), tolerance=1e-6
        ),
        r"no kernel: share of problems where training from $\alpha = 10^{-6}$ is not additive in "
        rf"the targets, by {NONE:.0%} or more (0.999 lower limit)": bent,
        r"no kernel: $Q/\log(1/\alpha^2)$ at $\log \alpha = -10^6$, largest violation of the "
        "parallelogram law, relative": law,
    }
    return Evidence(
        ran=f"$q$, $Q$ at 8 to 12 scales; {dataset.sizes['instance']} problems trained in the "
        r"parameters at $\alpha = 20$ and $10^{-6}$, the latter from two shapes each; their "
        rf"minimisers followed to $\log \alpha = -1000$; {n} problems trained on two targets and "
        "on their sum",
        checks={**shared, r"$|z| |q(z) - |z| \log|z||$ at $z = 10^4$": at_most(printed[-1], 3.0)},
        corrected={
            **shared,
            r"$|z| |q(z) - |z| \log|z| + |z| - 2|$ at $z = 10^4$": at_most(mended[-1], 3.0),
        },
        correction=r"$q(z) = |z| \log|z| - |z| + 2 + O(1/|z|)$; eq. (7) and its "
        r"$O(1/\log(1/\alpha^2))$ hold",
        counterexample={
            "$z$": z[-1],
            "$q(z)$": float(formulas.q[-1]),
            r"$|z| \log|z|$": z[-1] * np.log(z[-1]),
        },
        premises={"every trained endpoint interpolates": (misfit < 1e-8, misfit)},
        controls={
            "exponent -4 in (6)": order.control(predicted=-4.0),
            r"unweighted $\ell_2$ at $\alpha = 20$": trained_l2.control(dataset.far_plain.median()),
            r"the weighted $\ell_2$ solution in place of training": trained_l1.control(
                dataset.wrong_rich.median()
            ),
            r"the same share from $\alpha = 20$, a kernel": bent.control(
                (hilbert.kernel > NONE).mean()
            ),
            r"$4 \alpha^2 Q$ at $\alpha = 20$ in the parallelogram law": law.control(
                hilbert.kernel_law.max()
            ),
        },
        findings=[
            r"from $\log \alpha = -10$ to -1000 the distance to the $\ell_1$ solution falls to "
            f"{float((dataset.distance[:, -1] / dataset.distance[:, 0]).median()):.2g} of its "
            r"first value at the median: faster than $1/\log(1/\alpha)$ once the support is "
            "fixed"
        ],
        plots=[
            log_log(
                "$q(z)$ minus two expansions for large $z$",
                "$z$",
                "|$q(z)$ − expansion|",
                [
                    (r"$|z| \log|z|$ (as printed)", z, printed / z),
                    (r"$|z| \log|z| - |z| + 2$", z, mended / z),
                ],
            )
        ],
    )


experiment = Experiment(
    "W-A",
    statement=r"$Q$ tends to the $\ell_2$ norm weighted by $1/w_0^2$ as $\alpha$ grows, and to "
    r"the $\ell_1$ norm, for every $w_0$, as $\alpha$ falls, which is the norm of no kernel.",
    place="section 4, eqs. (6), (7) and the expansion of $q$ between them",
    study=(study, formulas, hilbert),
    check=check,
    title="For large $z$, $q(z)$ has a linear term that is not printed",
    seconds=2,
)
