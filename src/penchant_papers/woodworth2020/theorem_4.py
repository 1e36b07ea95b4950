"""Theorem 4: with commuting measurements width leads to the least Q of the spectrum."""

from __future__ import annotations

import numpy as np

from penchant import DiagonalNet, Factorization, NumericalError, Q, interpolate, train
from penchant.lab import (
    DRAWS,
    Array,
    Check,
    Dataset,
    Evidence,
    Experiment,
    at_most,
    drawn,
    log_log,
    sized,
    within,
)
from penchant.methods import MatrixFlow
from penchant.models import wide_factorization, wishart_root
from penchant.problems import (
    MatrixProblem,
    Sensing,
    aligned_sensing,
    commuting_sensing,
    gaussian_sensing,
)
from penchant.record import LogSpaced
from penchant.regularizers import Frobenius, Nuclear, Schatten, SpectralFunction
from penchant_papers.endpoints import trace
from penchant_papers.instances import slack_of, slope

D = 5
MU2 = 0.1  # mu^2 = alpha^2 k / 2 of the runs in k
SAME = 1e-6  # a relative distance up to which two matrices count as the same
TINY_MU2, HUGE_MU2 = 1e-10, 100.0
# The end from mu^2 is at a distance of order (mu^2)^slack from the least trace norm: 0.001 here,
# and the limit NEAR leaves a factor of ten for what depends on the problem.
SLACK, NEAR = 0.3, 0.01
DIRECT = 1000  # up to this width U and V themselves are drawn, beyond it W W^T by its Wishart law


def stacked(root: Array, rows: int) -> Factorization:
    """The factors U, of so many rows, and V whose stack [U; V] is `root`."""
    return Factorization(factors=(root[:rows], root[rows:]))


def limit_start(d: int, mu2: float) -> Factorization:
    """The start [U; V][U; V]^T = 2 mu^2 I of infinite width, with the 2d columns of appendix G."""
    return stacked(np.sqrt(2 * mu2) * np.eye(2 * d), d)


def wide_start(d: int, width: int, alpha: float, seed: int, direct: int = DIRECT) -> Factorization:
    """I.i.d. N(0, alpha^2) factors; above `direct` columns, 2d columns of the same W W^T law."""
    if width <= direct:
        return Factorization(width, alpha=alpha, seed=seed)
    rng = np.random.default_rng((seed, width))
    return wide_factorization(width, alpha=alpha, shape=(d, d), seed=rng)


def problem_of(family: str, seed: int) -> Sensing:
    """Diagonal or symmetric commuting measurements, or A diag(x_n) B^T, which do not commute."""
    if family == "turned":
        return aligned_sensing(3, (D, D), rank=2, seed=seed)
    diagonal = family == "diagonal"
    return commuting_sensing(
        samples=3, dimension=D, seed=seed, rank=2 if diagonal else 1, rotated=not diagonal
    )


def shear() -> Sensing:
    """Two commuting measurements, I and a shear: neither symmetric nor normal."""
    return Sensing(np.array([np.eye(2), np.eye(2, k=1)]), np.ones(2))


def spirals() -> Sensing:
    """Two commuting normal measurements of two plane rotations with scalings each, an example."""
    a, b = np.array([[[0.3, 0.8], [0.3, -1.3]], [[0.9, 0.4], [-0.5, 0.6]]])
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    stack = np.kron(np.array([np.diag(row) for row in a]), np.eye(2))
    stack = stack + np.kron(np.array([np.diag(row) for row in b]), turn)
    return Sensing(stack, np.array([1.0, -1.0]))


def commutator(stack: Array) -> float:
    """The largest entry of X_n X_m - X_m X_n."""
    products = stack[:, None] @ stack[None, :]
    return float(np.abs(products - products.transpose(1, 0, 2, 3)).max())


def lifts(problem: Sensing) -> Array:
    """The lifted measurements [[0, X_n], [X_n^T, 0]] / 2."""
    return limit_start(problem.shape[0], 1.0).lift(problem.measurements) / 2


def end(model: Factorization, problem: MatrixProblem) -> Array:
    """U V^T after training."""
    return train(model, problem, MatrixFlow(), record=LogSpaced(2)).predictor


def far(trained: Array, problem: Sensing, regularizer: SpectralFunction) -> float:
    """Relative Frobenius distance of a trained matrix to the argmin of the regularizer."""
    return apart(trained, interpolate(problem, regularizer).matrix)


def apart(trained: Array, goal: Array) -> float:
    """The relative Frobenius distance of two matrices."""
    return float(np.linalg.norm(trained - goal) / np.linalg.norm(goal))


def least_nuclear(problem: Sensing) -> Array:
    """A matrix of least nuclear norm, its norm certified up to SAME.

    Its solver promises 1e-8 and calls all above a failure; a wrong minimiser, which is compared by
    the limit SAME, needs no more than that limit.
    """
    solution = interpolate(problem, Nuclear(), throw=False)
    if not solution.certificate.error <= SAME:
        raise NumericalError("least_nuclear", solution.outcome)
    return solution.matrix


def schatten(mu2: float) -> Schatten:
    """Q_mu of the singular values, in the convention of W section 4: Q_alpha at alpha = mu."""
    return Schatten(Q(2, alpha=np.sqrt(mu2)))


def far_from_q(trained: Array, problem: Sensing, mu2: float) -> float:
    """The same distance to the argmin of Schatten-Q_mu."""
    return far(trained, problem, schatten(mu2))


def distances(trained: Array, problem: Sensing, mu2: float) -> dict[str, float]:
    """The distances of a trained matrix to the right and to three wrong minimisers."""
    return {
        "far": far_from_q(trained, problem, mu2),
        "far_double": far_from_q(trained, problem, 2 * mu2),
        "far_norm": far_from_q(trained, problem, D * mu2),
        "far_nuclear": apart(trained, least_nuclear(problem)),
        "far_frobenius": far(trained, problem, Frobenius()),
    }


def wrong_minimisers(limit: Check, dataset: Dataset) -> dict[str, Check]:
    """The controls of a check of these distances."""
    return {
        f"{theorem} (median)": limit.control(dataset[name].median())
        for theorem, name in (
            (r"$\mu^2 = \alpha^2 k$, without the 1/2", "far_double"),
            ("nuclear norm", "far_nuclear"),
            ("Frobenius norm", "far_frobenius"),
        )
    }


def cell(family: str, mu2: float, seed: int) -> dict[str, float]:
    """Distances of the end from 2 mu^2 I to the right and to three wrong minimisers."""
    problem = problem_of(family, seed)
    row = distances(end(limit_start(D, mu2), problem), problem, mu2)
    return {**row, "commutator": commutator(lifts(problem))}


def at_width(family: str, k: int, problem: int, seed: int) -> dict[str, float]:
    """Distance of the end from i.i.d. factors with alpha^2 k = 2 mu^2, and its off-diagonal."""
    measured = problem_of(family, seed + problem)
    M = end(wide_start(D, k, np.sqrt(2 * MU2 / k), seed), measured)
    return {
        "far": far_from_q(M, measured, MU2),
        "off_diagonal": float(np.linalg.norm(M - np.diag(np.diag(M)))),
    }


def others(draws: int, seed: int) -> dict[str, float]:
    """The law during training, problems that do not meet the premises, and sigma = 1."""
    problem, model = problem_of("diagonal", seed), limit_start(D, MU2)
    run = trace(problem.design, problem.y, model, t_end=20.0, points=12)
    delta = np.array([np.diag(model.matrix(w)) for w in run.parameters])
    dual = run.impulse @ np.einsum("nii->ni", problem.measurements)
    rng = np.random.default_rng((seed, draws))
    odd = {"shear": shear(), "spirals": spirals()}
    gauss = gaussian_sensing(samples=8, dimension=D, rank=1, seed=seed)
    plain, large = problem_of("symmetric", seed), wide_start(D, 10**6, 10**-1.5, seed)
    steady = end(large, plain)  # sigma = alpha^2 sqrt k = 1
    nets = [
        trace(
            problem.design.reshape(3, D, D)[:, range(D), range(D)],
            problem.y,
            DiagonalNet(2, alpha=np.sqrt(MU2)),
            t_end=t_end,
            points=12,
        ).parameters
        for t_end in (20.0, 10.0)
    ]
    betas = [w[:, :D] ** 2 - w[:, D:] ** 2 for w in nets]
    roots = [wishart_root(2 * D, 10**8, rng) for _ in range(draws)]
    ratios = [float(np.linalg.norm(W[:D] @ W[D:].T)) / (D * 1e4) for W in roots]
    return {
        **{
            name: float(
                np.abs(delta - 2 * MU2 * np.sinh(factor * dual)).max() / np.abs(delta).max()
            )
            for name, factor in (("law", -4.0), ("law_half", -2.0))
        },
        **{
            name: float(np.abs(delta - beta).max() / np.abs(delta).max())
            for name, beta in zip(("net", "net_half_time"), betas, strict=True)
        },
        **{
            f"far_{name}": far_from_q(end(limit_start(p.shape[0], 0.05), p), p, 0.05)
            for name, p in (*odd.items(), ("gauss", gauss))
        },
        "commute": max(commutator(p.measurements) for p in odd.values()),
        "lifted_commute": min(commutator(lifts(p)) for p in odd.values()),
        "steady_far": far(steady, plain, Frobenius()),
        "steady_nearest": to_nearest(steady, plain, large),
        "smallest_ratio": min(ratios),  # of the two printed meanings of sigma
        "largest_ratio": max(ratios),
    }


def clear(problem: Sensing) -> bool:
    """Whether the least trace norm has a certificate of some slack."""
    return slack_of(problem, interpolate(problem, Nuclear(), throw=False)) >= SLACK


def extremes(family: str, seed: int) -> dict[str, float]:
    """Ends from very small and very large mu, and their distances to both limits of the norm."""
    problem, draws = drawn(lambda k: problem_of(family, k), clear, DRAWS * seed)
    tiny, huge = (end(limit_start(D, mu2), problem) for mu2 in (TINY_MU2, HUGE_MU2))
    nuclear, frobenius = least_nuclear(problem), interpolate(problem, Frobenius()).matrix
    return {
        "to_nuclear": apart(tiny, nuclear),
        "to_frobenius": apart(huge, frobenius),
        "between": apart(nuclear, frobenius),
        "draws": draws,
    }


def to_nearest(trained: Array, problem: Sensing, model: Factorization) -> float:
    """Relative distance of `trained` to the interpolant nearest to the start."""
    begin = model.matrix(model.start(problem.dimension))
    shift = np.linalg.lstsq(problem.design, problem.y - problem.apply(begin), rcond=None)[0]
    return apart(trained, begin + shift.reshape(problem.shape))


study = sized(
    "W-T4",
    function=cell,
    grid={"family": ["diagonal", "symmetric", "turned"], "mu2": [0.01, MU2, 1.0]},
    seeds=1,
    printed={"seeds": 6},
)
WIDTHS = [100, 1000, 10_000, 100_000, 1_000_000]
widths = sized(
    "W-T4-widths",
    function=at_width,
    grid={
        "family": ["diagonal", "symmetric"],
        "k": [100, 10_000, 1_000_000],
        "problem": [0],
    },
    seeds=3,
    printed={"grid": {"k": WIDTHS, "problem": list(range(6))}, "seeds": 6},
)
limits = sized(
    "W-T4-limits",
    function=extremes,
    grid={"family": ["diagonal", "symmetric"]},
    seeds=5,
    tiny={"seeds": 2},
    printed={"seeds": 20},
)
further = sized("W-T4-others", function=others, arguments={"draws": 200, "seed": 0})


def check(dataset: Dataset, widths: Dataset, limits: Dataset, further: Dataset) -> Evidence:
    """The limit, the rate in k, eq. (67), and which measurements must commute."""
    k, rms = widths.k.values, np.sqrt((widths.far**2).mean(["family", "problem", "seed"])).values
    unseen = widths.off_diagonal.sel(family="diagonal", problem=0).mean("seed")
    rate_unseen = slope(k[k >= 10_000], unseen.values[k >= 10_000])
    o = {name: float(value) for name, value in further.data_vars.items() if value.dtype.kind == "f"}
    limit = within(dataset.far.sel(family=["diagonal", "symmetric"]).max(), tolerance=SAME)
    rate = within(slope(k, rms), -0.5, 0.1)
    near = within(rms[-1], tolerance=0.02)
    law = within(o["law"], tolerance=SAME)
    trace_norm = at_most(limits.to_nuclear.median(), NEAR)
    plain_norm = at_most(limits.to_frobenius.max(), NEAR)
    commuting = float(dataset.commutator.max())
    both = {
        r"start $2 \mu^2 I$ ($k \to \infty$): largest distance to argmin of the "
        r"Schatten $Q_\mu$": limit,
        r"exponent in $k$ of the distance to argmin of the Schatten $Q_\mu$": rate,
        "$k = 10^6$: root mean square of the distance": near,
        "eq. (67): deviation in training": law,
        r"$\mu^2 = 10^{-10}$: median distance to the least trace norm": trace_norm,
        r"$\mu^2 = 100$: largest distance to the least Frobenius norm": plain_norm,
    }
    return Evidence(
        ran=rf"{dataset.far.size} runs from $2 \mu^2 I$ with $\mu^2 = 0.01$ to 1, and i.i.d. "
        rf"starts of width $10^2$ to $10^6$ at $\mu^2 = {MU2}$ (above {DIRECT} columns $W "
        "W^T$ is drawn by its Wishart law), all trained in $U$ and $V$; for the limits of $Q_\\mu$ "
        f"{limits.draws.size} of {int(limits.draws.sum())} problems drawn, whose least trace norm "
        f"has a certificate with a slack of {SLACK:g}",
        checks={
            **both,
            "(67) is the law of Theorem 1: distance of the two courses": within(
                o["net"], tolerance=SAME
            ),
            "commuting but not symmetric: largest distance": within(
                max(o["far_shear"], o["far_spirals"]), tolerance=SAME
            ),
        },
        corrected={
            **both,
            r"the diagonal net at $\alpha = \mu$ and at half the time: distance": within(
                o["net_half_time"], tolerance=SAME
            ),
            r"$A \operatorname{diag}(x_n) B^T$ that do not commute (ours): largest "
            "distance": within(dataset.far.sel(family="turned").max(), tolerance=SAME),
        },
        correction="the lifted measurements must commute: $X_n X_m^T$ and $X_n^T X_m$ symmetric, "
        r"that is $X_n$ = $A \operatorname{diag}(x_n) B^T$ with A, $B$ orthogonal. Commuting "
        "symmetric $X_n$ are of this kind; for others, commuting is neither sufficient nor "
        r"necessary. The spectrum consists of the singular values, and $\sigma$ is $\alpha^2 "
        r"\sqrt{k}$, not $|U V^T|_F$ as in (a) nor that over $d$; the net of Theorem 1 moves twice "
        r"as fast, $\sinh(-8 X^T \int r)$ for the same loss",
        counterexample={
            r"$X_1 = I$, $X_2 = [[0, 1], [0, 0]]$, $y = (1, 1)$, $\mu^2 = 0.05$: distance": o[
                "far_shear"
            ],
            r"two commuting normal 4 x 4 measurements, $\mu^2 = 0.05$: distance": o["far_spirals"],
        },
        premises={
            "the symmetric measurements commute, and so do their lifted ones": (
                commuting < 1e-12,
                commuting,
            ),
            "the counterexamples commute": (o["commute"] < 1e-12, o["commute"]),
            "the lifted measurements of the counterexamples do not commute": (
                o["lifted_commute"] > 0.1,
                o["lifted_commute"],
            ),
        },
        controls={
            **wrong_minimisers(limit, dataset),
            "Gaussian measurements, which do not commute": limit.control(o["far_gauss"]),
            "exponent -1 in $k$": rate.control(predicted=-1.0),
            "exponent -1/4 in $k$": rate.control(predicted=-0.25),
            r"$\sigma = 1$ at $k = 10^6$, not small: distance to Frobenius": near.control(
                o["steady_far"]
            ),
            r"$\sigma = |U V^T|_F$, so $d$ times the $\mu^2$ (median)": limit.control(
                dataset.far_norm.median()
            ),
            "the large start has the least trace norm too": trace_norm.control(
                limits.between.median()
            ),
            "-2 for -4 in eq. (67)": law.control(o["law_half"]),
        },
        findings=[
            rf"the distance falls like {rms[-1] * 1e3:.2f}/$\sqrt{{k}}$ at $\mu^2 = {MU2}$, "
            f"fitted exponent {slope(k, rms):.3f}; the off-diagonal part, which no diagonal "
            "measurement depends on, is included and vanishes too, with exponent "
            f"{rate_unseen:.2f}",
            "the spectrum cannot mean the eigenvalues: [[1, 1], [-1, -1]] has the diagonal (1, "
            "-1) and the eigenvalues 0, 0, so that its $Q$ is zero",
            r"$\sigma = (1/d)|U V^T|_F$, the other definition of section 6, stays random as $k$ "
            f"grows: over 200 starts of width $10^8$ it is {o['smallest_ratio']:.2f} to "
            rf"{o['largest_ratio']:.2f} times $\alpha^2 \sqrt{{k}}$ at $d = {D}$",
            r"$\sigma \to 0$ is needed: at $\sigma = 1$ training ends at the interpolant nearest "
            f"to the start, up to {o['steady_nearest']:.1g}, not at the one of least norm",
            "the equation for $M_W'$ in section 6 lacks a factor -2: with $G$ the gradient of the "
            "loss in $M$, $W' = -2 G W$ gives $M' = -2 (G M + M G)$",
        ],
        plots=[
            log_log(
                rf"i.i.d. starts of width $k$ at $\mu^2 = {MU2}$: distance to argmin of the "
                r"Schatten $Q_\mu$",
                "$k$",
                "relative distance",
                [
                    ("trained", k, rms, "points"),
                    (r"like $1/\sqrt{k}$", k, rms[-1] * np.sqrt(k[-1] / k)),
                ],
            )
        ],
    )


experiment = Experiment(
    "W-T4",
    statement=r"With commuting measurements and i.i.d. $N(0, \alpha^2)$ factors, as the width $k$ "
    r"grows at $\alpha^2 k = 2 \mu^2$, $U V^T$ tends to the interpolating matrix with the "
    r"least $Q_\mu$ of the spectrum.",
    place="section 6, Theorem 4; appendix G, eq. (67)",
    study=(study, widths, limits, further),
    check=check,
    title="Wide factors approach the least $Q$ of the spectrum",
    seconds=4,
)
