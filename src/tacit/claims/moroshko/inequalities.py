"""M-L3 and M-I: how fast the loss falls, and the inequalities that the proofs of M rest on."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.claims.moroshko.deep_lemmas import h, h_slope
from tacit.claims.moroshko.lemmas import COUNTS, LONG, listed
from tacit.claims.moroshko.traces import Case, Course, Trace, cases, course, single, trace
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.problems.classification import Classification, three_points
from tacit.regularizers.norms import L2
from tacit.solvers.max_margin import max_margin
from tacit.studies.sizes import Size

RATE = 2.0  # the constant of lemma 3
DEPTHS = (2, 3, 5)


def log_clock(run: Trace | Course, gamma: float | None = None) -> Array:
    """log of 2 D^2 alpha^(2D-2) gamma_2^2 t per record."""
    case, D = run.case, run.case.depth
    log_rate = np.log(RATE * D**2) + (2 * D - 2) * np.log(case.alpha)
    log_rate += 2 * np.log(case.gamma_2 if gamma is None else gamma)
    log_t = run.log_t if isinstance(run, Course) else np.log(run.t)
    return np.asarray(log_rate + log_t)


def log_excess(run: Trace | Course, gamma: float | None = None) -> Array:
    """log of L(t) (1 + 2 D^2 alpha^(2D-2) gamma_2^2 t) per record: <= 0 by M lemma 3."""
    return np.asarray(np.logaddexp(0.0, log_clock(run, gamma)) - run.smoothed_margin)


@claim(
    "M-L3",
    statement="for D >= 2, any alpha and all t, the loss is at most"
    " 1/(1 + 2 D^2 alpha^(2D-2) gamma_2^2 t)",
    place="section 4, Lemma 3; appendix D, eqs. (30)-(33)",
    seconds=4,
)
def lemma_3(size: Size) -> Evidence:
    near = [trace(case) for case in cases(COUNTS[size], seed=3, depths=DEPTHS)]
    far = [course(case) for case in cases(LONG[size], seed=4, depths=DEPTHS)]
    equal = [trace(single(D, 100.0)) for D in DEPTHS]
    kernel = trace(Case("M-F3b", three_points("M-F3b"), 2, 100.0))
    small = course(single(2, 0.3))
    short = Check(
        "largest log of loss over bound, to loss e^-25",
        max(log_excess(run).max() for run in (*near, *equal, kernel)),
        0.0,
        1e-8,
        "at most",
    )
    return Evidence(
        ran=f"{len(near)} data sets at depths {DEPTHS}, alpha^D from 0.1 to 100, in the parameters"
        f" and in t to loss e^-25, {len(far)} to loss e^-1000000 with log t; one point and M-F3b"
        " with alpha = 100",
        checks=[
            short,
            Check(
                "the same to loss e^-1000000",
                max(log_excess(run).max() for run in far),
                0.0,
                1e-8,
                "at most",
            ),
        ],
        controls={
            "exp(-2 D² alpha^(2D-2) gamma_2² t), as of the squared loss, one point": short.control(
                min((np.exp(log_clock(run)) - run.smoothed_margin).max() for run in equal)
            ),
            "x_max in place of gamma_2, on M-F3b": short.control(
                log_excess(kernel, gamma=kernel.case.x_max).max()
            ),
        },
        findings=[
            "attained when all points are equal, in the kernel regime: one point at alpha = 100"
            f" has log(bound/loss) at most {max(-log_excess(run).min() for run in equal):.1e} for"
            f" D = {', '.join(map(str, DEPTHS))} to loss e^-25. On M-F3b at alpha = 100"
            f" bound/loss rises to {np.exp(-log_excess(kernel).min()):.4f} and comes back to"
            f" {np.exp(-log_excess(kernel)[-1]):.6f}, for there the weights turn to those of the"
            " l2 max margin",
            "loose outside the kernel regime: with log(1/loss) = 1000000 the bound is too large by"
            f" a factor 10^{min(-log_excess(run)[-1] for run in far) / np.log(10):.2f} to"
            f" 10^{max(-log_excess(run)[-1] for run in far) / np.log(10):.2f}; one point with"
            f" alpha = 0.3: 10^{-log_excess(small)[-1] / np.log(10):.2f}",
        ],
        plots=[bounds([kernel, near[0], near[1], near[2]])],
    )


def bounds(runs: list[Trace]) -> Plot:
    series = [Series(str(run.case), run.smoothed_margin, np.exp(-log_excess(run))) for run in runs]
    return Plot(
        "how far lemma 3 is above the loss", "log(1/loss)", "bound / loss", series, "log", "log"
    )


def gap(run: Course) -> Array:
    """gtilde - gamma, which eq. (10) puts between 0 and log N; the loss is that of the margins."""
    above = run.margins - run.margins.min(axis=1, keepdims=True)
    return np.asarray(-np.log(np.exp(-above).mean(axis=1)))


def clock_error(run: Course) -> float:
    """How far log(1/loss) of the margins is from the clock of the run, at most."""
    return float(np.abs(run.margins.min(axis=1) + gap(run) - run.smoothed_margin).max())


def length_share(run: Course, size: float | None = None) -> Array:
    """gtilde / (x_max |w|_2), at most one by eq. (12)."""
    norm = np.linalg.norm(run.predictor, axis=1)
    return np.asarray(run.smoothed_margin / norm / (run.case.x_max if size is None else size))


def pull(run: Course, size: float | None = None) -> Array:
    """|X r|_2 / (gamma_2 |r|_1), at least one by eq. (19)."""
    q = run.shares / run.shares.sum(axis=1, keepdims=True)
    size = run.case.gamma_2 if size is None else size
    return np.asarray(np.linalg.norm(q @ run.case.rows, axis=1) / size)


def least_slope(deeper: int = 0) -> float:
    """The least h_D'(z) (D-2)/(2D) over depths and z, at least one by eq. (8)."""
    z = np.linspace(-0.999, 0.999, 1999)
    shares = [h_slope(z, D + deeper).min() * (D - 2) / (2 * D) for D in (3, 4, 5, 8, 20)]
    return float(min(shares))


def slope_at_zero(deeper: int = 0) -> float:
    """The largest |h_D(z)/z (D-2)/(2D) - 1| at z = 1e-5, zero in the limit by eq. (9)."""
    z = np.array(1e-5)
    ratios = [float(h(z, D + deeper) / z) * (D - 2) / (2 * D) for D in (3, 4, 5, 8, 20)]
    return max(abs(ratio - 1) for ratio in ratios)


@claim(
    "M-I",
    statement="gamma <= gtilde <= gamma + log N, |w|_2 >= gtilde/x_max, |X r|_2 >= gamma_2 |r|_1"
    " along training, h_D' >= 2D/(D-2) and h_D(z)/z -> 2D/(D-2)",
    place="appendix B, eqs. (8)-(12); appendix C, eq. (19)",
    seconds=4,
)
def inequalities(size: Size) -> Evidence:
    kernel = course(Case("M-F3b", three_points("M-F3b"), 2, 100.0))
    leaving = course(Case("M-F3d with 27 points far off", crowded(), 2, 30.0))
    runs = [
        *(course(case) for case in cases(LONG[size] + 1, seed=5, depths=DEPTHS)),
        kernel,
        leaving,
    ]
    above = max(gap(run).max() / np.log(len(run.case.rows)) for run in runs)
    drift = max(map(clock_error, runs))
    last = max(abs(run.smoothed_margin[-1] / run.margins[-1].min() - 1) for run in runs)
    ratio = Check("eq. (10): largest (gtilde - gamma)/log N", above, 1.0, 1e-8, "at most")
    above_margin = Check(
        "eq. (10): least gtilde - gamma", min(gap(run).min() for run in runs), 0.0, 1e-8, "at least"
    )
    norm = Check(
        "eq. (12): largest gtilde/(x_max |w|_2)",
        max(length_share(run).max() for run in runs),
        1.0,
        1e-8,
        "at most",
    )
    weak = Check(
        "eq. (19): least |X r|_2/(gamma_2 |r|_1)",
        min(pull(run).min() for run in runs),
        1.0,
        1e-8,
        "at least",
    )
    slope = Check("eq. (8): least h_D'(z) (D-2)/(2D)", least_slope(), 1.0, 1e-8, "at least")
    zero = Check(
        "eq. (9): largest |h_D(z)/z (D-2)/(2D) - 1| at z = 1e-5", slope_at_zero(), tolerance=1e-7
    )
    return Evidence(
        ran=f"{len(runs)} data sets with labels of both signs and panels of M, depths {DEPTHS},"
        " trained in the parameters to loss e^-1000000; h_D at depths 3, 4, 5, 8 and 20",
        checks=[
            ratio,
            above_margin,
            norm,
            weak,
            slope,
            zero,
            Check("eq. (11): |gtilde/gamma - 1| at loss e^-1000000", last, 0.0, 1e-5),
        ],
        premises={"clock and margins of the runs agree": (drift < 1e-5, drift)},
        controls={
            "log(1 + support vectors) in place of log N in eq. (10)": ratio.control(
                max(gap(run)[-1] / np.log(1 + supported(run)) for run in runs)
            ),
            "the sum of the losses in place of their mean in eq. (10)": above_margin.control(
                min((gap(run) - np.log(len(run.case.rows))).min() for run in runs)
            ),
            "the shortest point in place of the longest in eq. (12)": norm.control(
                max(length_share(run, shortest(run.case)).max() for run in runs)
            ),
            "the shortest point in place of gamma_2 in eq. (19)": weak.control(
                min(pull(run, shortest(run.case)).min() for run in runs)
            ),
            "h of depth D + 1 in eq. (8)": slope.control(least_slope(deeper=1)),
            "h of depth D + 1 in eq. (9)": zero.control(slope_at_zero(deeper=1)),
        },
        findings=[
            f"eq. (19) is attained in the kernel regime: {pull(kernel).min():.8f} on M-F3b with"
            " alpha = 100",
            lost_factor(leaving, sample=1),
            not_monotone(),
            early_times(),
        ],
    )


def supported(run: Course) -> int:
    """How many samples are within one percent of the smallest margin at the end."""
    last = run.margins[-1]
    return int((last < 1.01 * last.min()).sum())


def shortest(case: Case) -> float:
    return float(np.linalg.norm(case.rows, axis=1).min())


def crowded() -> Classification:
    """M-F3d, whose sample 1 leaves the margin, with 27 more points that never come near it."""
    rows = three_points("M-F3d").signed_rows
    more = np.outer(np.linspace(2, 4, 27), rows.mean(axis=0))
    return Classification(np.concatenate([rows, more]), np.ones(30))


def lost_factor(run: Course, sample: int, rho: float = 1.01) -> str:
    """The mean of exp(-x_k w + gtilde) up to the gtilde_1^* of appendix F.2, for this rho_0."""
    N = len(run.case.rows)
    ratio = run.margins[:, sample] / run.margins.min(axis=1)
    inside = (ratio < rho) | (run.smoothed_margin < 2 * rho * np.log(N) / (rho - 1))
    end = int(np.flatnonzero(inside)[-1]) + 2
    g = np.append(0.0, run.smoothed_margin[:end])
    mean = float(np.trapezoid(np.append(1.0, N * run.shares[:end, sample]), g) / g[-1])
    verdict = "more" if mean > 1 else "not more"
    return (
        "eq. (68) lacks a factor N: eq. (10) bounds its integrand by N and not by 1. On"
        f" {run.case}, sample {sample} stays off the margin by a factor {rho:g} from gtilde ="
        f" {g[-1]:.3g} on, and up to there its integrand is {mean:.2f} on average, {verdict} than"
        " the 1 of eq. (68); the limit 0 is not affected"
    )


def not_monotone() -> str:
    """log((e^g - 1)/K)/g, K = N x_max^2, which appendix E calls increasing."""
    g = np.linspace(0.05, 40, 4000)
    falls = {K: bool((np.diff(np.log(np.expm1(g) / K) / g) < 0).any()) for K in (0.02, 1.0, 12.0)}
    values = np.log(np.expm1(np.array([1.0, 10.0, 30.0])) / 0.02) / [1.0, 10.0, 30.0]
    bad = ", ".join(f"{K:g}" for K, fell in falls.items() if fell)
    good = ", ".join(f"{K:g}" for K, fell in falls.items() if not fell)
    return (
        "appendix E: log((e^g - 1)/(N x_max²))/g increases for N x_max² ="
        f" {good} but not for {bad} (two points of length 0.1: {listed(values)} at g = 1, 10, 30);"
        " it needs N x_max² >= 1, and the proof only the limit 1"
    )


def early_times() -> str:
    """The step before eq. (43) of M for t below N/(2 D^2 alpha^(2D-2)) and above."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [4.0, 3.0]])
    problem = Classification(X, np.ones(4))
    found = max_margin(problem.X, problem.y, L2())
    support = np.abs(X @ found.beta - 1) < 1e-6
    nu = np.linalg.lstsq(X[support].T, found.beta)[0]
    shift = np.linalg.lstsq(X[support], -np.log(nu))[0]
    margins, rest = X[~support] @ found.beta, np.exp(-X[~support] @ shift)
    theta, c_1 = margins.min(), rest.max()
    # both sides of the step share the factor exp(-x_n kappa(t)), which cancels
    ratio = {base: float((base ** (theta - margins) * rest / c_1).max()) for base in (0.1, 10.0)}
    return (
        "appendix E, before eq. (43): replacing x_n w_l2 by theta asks for t >="
        " N/(2 D² alpha^(2D-2)). On points with margins"
        f" {listed(margins)} off the support, left over right side is {ratio[0.1]:.3g} at a tenth"
        f" of that time and {ratio[10.0]:.3g} at ten times it (it must be at most 1); the proof"
        " may start later"
    )
