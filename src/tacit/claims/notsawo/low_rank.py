"""N-T35: when low-rank recovery with the nuclear norm recovers the truth, and how well."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.claims.notsawo.delays import (
    Names,
    Scaling,
    delay_checks,
    delay_plots,
    noise_check,
    per_pace,
    spread,
)
from tacit.claims.notsawo.nuclear_runs import (
    LEVEL,
    SOLVED,
    corner,
    memorized,
    more,
    noisy,
    nuclear_run,
    penalized,
    printed,
    recovered,
    slow_time,
    small,
    step_of,
    truth,
)
from tacit.claims.notsawo.runs import crossing
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.measures.grokking import Grokking, grokking
from tacit.papers.instances import slope
from tacit.problems.matrices import Completion, MatrixProblem, Sensing
from tacit.solvers.delay import descent_points, error_floor, memorization_steps
from tacit.studies.sizes import Size

BETAS = np.array([1e-2, 1e-3, 1e-4, 1e-5])
LEFT = np.array([3e-2, 1e-2, 3e-3, 1e-3])  # beta of the runs whose last error is measured
STEPS = np.array([0.5, 0.15, 0.05, 0.015])  # and their steps
RATIOS = np.array([1e4, 1e3, 1e2])  # signal over noise, where noise leaves more than FAINT does
FAINT = 1e-3  # beta of the runs with noise
NAMES = Names(
    "|A_hat - A*|_op",
    "tau the time of the slow phase",
    "|A - A*|_*",
    "|A - A_beta|_*",
    "A_beta the minimiser",
)


def scaling(problem: MatrixProblem, betas: Array) -> Scaling:
    """t2 at a relative error of 10% by subgradient descent."""
    step, tau = step_of(problem), slow_time(problem)
    t1 = memorization_steps(problem.design, problem.y, step, SOLVED)
    delays = []
    for beta in betas:
        record = np.unique(np.linspace(0.8, 1.4, 121) * tau / (step * beta)).astype(int)
        run = nuclear_run(problem, step, float(beta), np.unique(record).tolist())
        t2 = crossing(run.step.values.astype(float), run.relative_error.values, LEVEL)
        delays.append(t2 - t1)
    gap = memorized(problem) - truth(problem)
    return Scaling(
        step * betas,
        np.array(delays),
        tau,
        float(np.linalg.norm(gap, 2)),
        float(np.linalg.norm(gap)),
    )


def left(problem: Completion | Sensing, step: float, beta: float, snr: float = np.inf) -> Array:
    """The last fifty iterates of a run that has settled, long after the slow phase.

    Noise gives the flow more to do; it has more than twice as long.
    """
    times, seen = (2, problem) if np.isinf(snr) else (5, noisy(problem, snr))
    last = round(times * slow_time(problem, 1e-2) / (step * beta) + 100 / step)
    run = nuclear_run(seen, step, beta, range(last - 49, last + 1))
    return np.asarray(run.predictor.values[1:])


def apart(points: Array, goal: Array) -> float:
    """The mean nuclear distance."""
    return float(np.linalg.svd(points - goal, compute_uv=False).sum(axis=1).mean())


def judged(problem: MatrixProblem, beta: float, penalty: str) -> Grokking:
    """What the detector sees: from nearly zero with the nuclear norm, from 10 per entry with l2^2.

    The l2^2 run is in closed form, to the end of its last slow direction.
    """
    step, goal = step_of(problem), truth(problem).ravel()
    end = 5 * slow_time(problem) if penalty == "nuclear" else 10.0
    steps = np.unique(np.geomspace(1, end / (step * beta), 160).astype(int))
    if penalty == "nuclear":
        points = nuclear_run(problem, step, beta, steps.tolist()).predictor.values[1:]
        points = points.reshape(len(steps), -1)
    else:
        begin = np.full(len(goal), 10.0)
        points = descent_points(problem.design, problem.y, step, beta, begin, steps)
    loss = 0.5 * np.sum((points @ problem.design.T - problem.y) ** 2, axis=1)
    error = np.sum((points - goal) ** 2, axis=1) / float(goal @ goal)
    floor = error_floor(problem.design, goal) / float(goal @ goal)
    return grokking(steps, loss, error, LEVEL**2, floor=floor, error=True)


@claim(
    "N-T35",
    statement="after t1, |A(t) - A*|_* = O(step beta) if and only if t >= t1 + |A_hat - A*|_op/"
    "(step beta), for suitable X; t2 is proportional to |A_hat - A*|_op/(step beta) and the error"
    " at t2 to step beta",
    place="Low-rankness, Theorems 3.4 and 3.5 (ii); Figure 6",
    seconds=20,
)
def theorem_3_5(size: Size) -> Evidence:
    widely, once = (small(), printed()) if size == "quick" else (small() + printed(), more())
    laws = [scaling(p, BETAS) for p in widely]
    every = laws + [scaling(p, BETAS[1:2]) for p in once]
    ratios = np.array([law.scaled / law.gap for law in every])
    plain = np.array([law.scaled / law.frobenius for law in every])
    every += [scaling(noisy(p, snr), BETAS[1:2]) for p in small() for snr in (1e8, 1e4)]
    problem, beta = small()[0], 1e-2
    by_beta = [apart(left(problem, 0.5, float(b)), truth(problem)) for b in LEFT]
    ends = [left(problem, float(s), beta) for s in STEPS]
    goals = {"truth": truth(problem), "point": penalized(problem, beta)}
    by_step = {name: np.array([apart(end, goal) for end in ends]) for name, goal in goals.items()}
    kinds = {name: [judged(p, 1e-3, name) for p in small()] for name in ("nuclear", "l2")}
    found = delay_checks(
        NAMES, laws, every, (LEFT, np.array(by_beta)), (STEPS, by_step), (0.05, 0.1)
    )
    grok = Check("nuclear runs not called a grok", sum(g.kind != "grok" for g in kinds["nuclear"]))
    floors = np.array([apart(left(problem, 0.5, FAINT, snr), truth(problem)) for snr in RATIOS])
    noise = noise_check(f"|A - A*|_* at beta = {FAINT:g}", RATIOS, floors)
    faint = [apart(left(problem, 0.5, float(b), RATIOS[0]), truth(problem)) for b in LEFT]
    hats = [apart(memorized(noisy(problem, snr))[None], truth(problem)) for snr in RATIOS]
    worst = max(recovered(p) for p in (*widely, *once))
    tight = corner(1.001, 1.0, 1.0, 1 / 1.001)
    return Evidence(
        ran=f"{len(every)} completions and Gaussian sensings, 6 x 6 of rank 1 from 24 and 10 x 10"
        f" of rank 2 from 70, four of them with signal-to-noise ratios of 1e8 and 1e4: exponents on"
        f" {len(laws)}, beta 1e-2 to 1e-5; t2 at a relative error of 0.1; what is left after the"
        " slow phase over beta and over the step, and for ratios of 1e4 to 1e2",
        premises={"suitable X: the nuclear norm finds the truth": (worst < 1e-6, worst)},
        checks=[found.law, found.gap, found.in_beta, found.in_step, grok],
        corrected=[found.law, found.slow, found.in_beta, found.to_point, grok, noise],
        correction="t2 = t1 + tau/(step beta), tau the time that steepest descent of |A|_* on {X A"
        " = y} takes from A_hat to the error asked for; |A_hat - A*|_op is of its order in these"
        f" experiments, too short in {(ratios > 1).sum()} of {len(ratios)}. |A - A*|_* goes to"
        " that of the minimiser A_beta, O(beta) however small the step is, plus O(step beta); noise"
        " adds the error of the interpolator of least nuclear norm, like SNR^(-1/2)",
        counterexample={
            "numerator": "(t2 - t1) step beta/|A_hat - A*|_op = "
            + ", ".join(f"{r:.2f}" for r in ratios)
            + ": the error is still large at the printed t",
            "no constant": "[[a, 1], [1, x]] with x unknown, a = 1.001, A* of rank 1 and least"
            f" nuclear norm: tau = {tight:.4g} = {tight * 1.001:.3g} |A_hat - A*|_op exactly, and"
            " it grows like 2 log(1/(a - 1))",
            "error": f"beta = {beta:g}: |A - A*|_*/(step beta) = "
            + per_pace(STEPS, beta, by_step["truth"])
            + " at the steps "
            + ", ".join(f"{s:g}" for s in STEPS),
        },
        controls={
            "log(1/(step beta))/(step beta), as for smooth penalties": found.law.control(
                min((law.from_smooth for law in laws), key=abs)
            ),
            "|A_hat - A*|_op": found.slow.control(found.gap.measured),
            "|A_hat - A*|_op, best constant": found.slow.control(spread(ratios)),
            "|A_hat - A*|_F, best constant": found.slow.control(spread(plain)),
            f"O(beta) at a signal-to-noise ratio of {RATIOS[0]:g}": found.in_beta.control(
                slope(LEFT, np.array(faint)) - 1
            ),
            "the noise of the memorized point": noise.control(slope(RATIOS, np.array(hats)) + 0.5),
            "the truth for A_beta": found.to_point.control(found.in_step.measured),
            "the l2^2 penalty as a grok": grok.control(sum(g.kind != "grok" for g in kinds["l2"])),
        },
        findings=[
            f"tau predicts t2 to {found.slow.measured:.1e} with no fitted constant; the exponents"
            " are " + ", ".join(f"{law.exponent:.3f}" for law in laws),
            f"the l2^2 penalty from 10 per entry: {kinds['l2'][0].kind},"
            f" {kinds['l2'][0].reason}; the nuclear norm: {kinds['nuclear'][0].reason}",
            "the operator norm is hardly a better numerator than the Frobenius norm: the ratios of"
            f" tau to them spread over {ratios.min():.2f} to {ratios.max():.2f} and"
            f" {plain.min():.2f} to {plain.max():.2f}",
        ],
        plots=delay_plots(NAMES, laws[0], STEPS, by_step, "nuclear distance"),
    )
