"""M-open: what the flow does for huge alpha where the stability condition of M fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tacit.arguments import Array
from tacit.claims.moroshko.open_question_cases import (
    HUGE,
    MUS,
    Case,
    End,
    drawn,
    end,
    panel,
    stationarity,
    steepest_fall,
)
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.measures.directions import angle
from tacit.papers.instances import slope
from tacit.problems.classification import separable_points
from tacit.regularizers.norms import L1
from tacit.solvers.max_margin import max_margin
from tacit.studies.sizes import Size
from tacit.training.exact.parameter import ParameterFlow

SEEDS = {"quick": range(50, 58), "full": range(120)}
CLOSE = 1e-5  # degrees
ALPHAS = {2: np.array([100.0, 300.0, 1000.0]), 3: np.array([10.0, 20.0, 40.0])}
MIDDLE = int(np.argmin(np.abs(MUS - 0.01)))  # past the kinks of all three panels


def angles_to_ratchet(case: Case) -> Array:
    """Degrees between flow and ratchet at the scale MIDDLE, for the ALPHAS of the depth."""
    goal = case.ratchet.beta[MIDDLE]
    return np.array([angle(case.trained(a)[MIDDLE], goal) for a in ALPHAS[case.depth]])


def misjudged(cases: Sequence[Case], leaves: Callable[[Case], bool]) -> int:
    """On how many data sets a rule is wrong about the flow leaving the Q path."""
    return sum(leaves(case) != (case.off > CLOSE) for case in cases)


def median(values: Sequence[float]) -> float:
    return float(np.median(values))


@claim(
    "M-open",
    statement="as alpha grows the flow tends to the ratchet path, whose dual weights only grow;"
    " it stays away from the Q_mu path, at a distance that no alpha removes, where a weight of"
    " that path would have to fall, and follows it, also when support vectors change, where none"
    " would",
    place="section 5, last paragraph on Figure 3(d), and Figure 4 (left open there; the answer is"
    " ours)",
    seconds=8,
)
def open_question(size: Size) -> Evidence:
    every = [drawn(seed) for seed in SEEDS[size]]
    F3d, F4a, F4b = panels = panel("M-F3d", 2), panel("M-F4a", 3), panel("M-F4b", 3)
    calm = max(c.gap.max() for c in every if not (c.falls or c.changes))
    cases = [*panels, *(c for c in every if c.falls or c.changes)]
    left, kept = [c for c in cases if c.falls], [c for c in cases if not c.falls]
    ends = [end(c) for c in left]

    apart = max(angle(c.huge, c.ratchet.beta).max() for c in cases)
    limit = Check(
        "alpha^D = 1e12: largest angle of the flow to the ratchet, degrees", apart, tolerance=CLOSE
    )
    shares = np.array([c.off / c.gap.max() for c in left])
    share = Check(
        "where a weight falls: the flow's distance to the Q path over the ratchet's",
        shares[np.abs(shares - 1).argmax()],
        1.0,
        tolerance=1e-3,
    )
    followed = Check(
        "where support vectors change and no weight falls: largest angle of the flow"
        " to the Q path, degrees",
        max(c.off for c in kept),
        tolerance=CLOSE,
    )
    rule = Check(
        "data sets where a falling weight does not tell whether the flow leaves the Q path",
        misjudged(cases, lambda c: c.falls),
    )
    far = {case: angles_to_ratchet(case) for case in (F3d, F4a)}
    rates = [
        Check(
            f"{c.name}: exponent in alpha of the angle to the ratchet at mu = 0.01",
            slope(ALPHAS[c.depth], angles),
            -c.depth,
            tolerance=0.05,
        )
        for c, angles in far.items()
    ]

    trained = {(c, a): c.trained(a, ParameterFlow) for c, a in ((F3d, 100.0), (F4a, 10.0))}
    twin = max(angle(w, c.trained(a)).max() for (c, a), w in trained.items())
    found = [c.weights(a, w) for (c, a), w in trained.items()]
    misfit = max(wrong for _, wrong in found)
    growth = Check(
        "trained in the parameters: lowest increment of a weight, relative",
        min(steepest_fall(R) for R, _ in found),
        0.0,
        1e-6,
        "at least",
    )
    stationary = Check(
        "D = 3: largest deviation of the ratchet's end from a stationary point of"
        " the l_{2/3} margin",
        max(e.defect for e in ends if e.depth == 3),
        tolerance=1e-6,
    )
    l1_of_F4a = max_margin(F4a.problem.X, F4a.problem.y, L1()).beta
    return Evidence(
        ran=f"{len(every)} random data sets of 3 or 4 points in 3 to 5 dimensions, a third of them"
        f" at depth 3, and the panels M-F3d, M-F4a, M-F4b; the {len(cases)} whose Q path has an"
        " event trained with alpha = 1e6 (1e4 at depth 3), mu from 10 to 0.001; M-F3d and M-F4a"
        " in the parameters too",
        checks=[limit, share, followed, rule, *rates, growth, stationary],
        premises={
            "both kinds of data sets occur": (
                min(len(left), len(kept)) > 0,
                f"{len(left)} and {len(kept)}",
            ),
            "without an event ratchet and Q path are one": (calm < 1e-8, calm),
            "flows in the parameters and in the dual agree (degrees)": (twin < 1e-5, twin),
            "what was trained in the parameters has dual weights": (misfit < 1e-8, misfit),
        },
        controls={
            "the Q path in place of the ratchet (median)": limit.control(
                median([c.off for c in left])
            ),
            "the ratchet of depth D + 1 (median)": limit.control(
                median([angle(c.huge, c.ratchet_at(c.depth + 1).beta).max() for c in left])
            ),
            "a distance that huge alpha removes": share.control(predicted=0.0),
            "the Q path where a weight falls (median)": followed.control(
                median([c.off for c in left])
            ),
            "the rule that support vectors change": rule.control(
                misjudged(cases, lambda c: c.changes)
            ),
            "the Q path in place of the ratchet: the same exponent": rates[0].control(
                slope(ALPHAS[2], to_q_path(F3d, ALPHAS[2]))
            ),
            "the weights of the Q path": growth.control(steepest_fall(F3d.q.dual)),
            "the l1 max margin of M-F4a": stationary.control(stationarity(F4a, l1_of_F4a)),
        },
        findings=[
            counted(every),
            story(F3d),
            steady(F4b),
            rejoined(Case("seed 10", separable_points(3, 5, margin=0.3, seed=10), 3)),
            ends_of(ends),
        ],
        plots=[approach(F3d, far[F3d]), weights_plot(F3d)],
    )


def counted(every: Sequence[Case]) -> str:
    """How many of the random data sets the flow follows, with and without changes."""
    changing = [c for c in every if c.changes]
    fixed = [c for c in every if not c.changes]
    lost, hidden = ([c for c in group if c.falls] for group in (changing, fixed))
    dropped = sum(any(not change.enters for change in c.ratchet.changes) for c in hidden)
    return (
        f"of {len(changing)} random data sets whose Q path changes its support vectors the flow"
        f" follows {len(changing) - len(lost)} to the end and leaves {len(lost)}; of {len(fixed)}"
        f" where it keeps them the flow still leaves {len(hidden)}, because a weight falls; in"
        f" {dropped} of these the flow itself then loses a support vector, so that constant support"
        " vectors of the Q path do not imply the stability condition"
    )


def steady(case: Case) -> str:
    """A Q path that is left although no sample leaves its support."""
    gained, lost = (sum(c.enters == side for c in case.q.changes) for side in (True, False))
    top = case.q.dual.max(axis=0)
    fall = (top - case.q.dual[-1]).max()
    return (
        f"{case.name}: the support of the Q path gains {gained} sample and loses {lost}, yet a"
        f" weight falls by {fall:.3g} down to mu = {MUS[-1]:.3g}, and the flow is"
        f" {case.off:.3g} degrees away"
    )


def story(case: Case) -> str:
    """What happens on M-F3d, in numbers."""
    entry = case.q.changes[0]
    leaver = next(c for c in case.ratchet.changes if not c.enters)
    gone = next(c for c in case.q.changes if not c.enters)
    gaps = ", ".join(f"{case.gap[k]:.3g} at mu = {MUS[k]:.3g}" for k in (MIDDLE, -1))
    return (
        f"{case.name}: sample {entry.sample} reaches the margin at mu = {entry.mu:.4g}; on the Q"
        f" path the weight of sample {gone.sample} then falls to zero until mu = {gone.mu:.4g},"
        f" on the ratchet it rests at {case.ratchet.dual[-1, leaver.sample]:.4g}; the angle"
        f" between the two is {gaps}, in degrees, and the flow has it at every large alpha"
    )


def rejoined(case: Case) -> str:
    """A path that was left and found again."""
    apart = MUS[case.gap > CLOSE]
    return (
        "once a fallen weight has risen again to its former height the ratchet is back on the Q"
        f" path: {case.name} at depth {case.depth} is off it from mu = {apart.max():.2g} to"
        f" {apart.min():.2g}, by up to {case.gap.max():.2g} degrees, and on it afterwards"
        f" ({case.gap[-1]:.0e} degrees at mu = {MUS[-1]:.3g})"
    )


def ends_of(ends: Sequence[End]) -> str:
    """The limit mu -> 0 of the ratchets that left the Q path, by depth."""
    two = np.array([e.excess for e in ends if e.depth == 2])
    three = np.array([e.excess for e in ends if e.depth == 3])
    return (
        "as mu -> 0 at depth 2, where growing weights outgrow resting ones like log(1/mu), the"
        " ratchets that left the Q path still tend to the least l1 norm, slowly: largest excess"
        f" {two[:, 0].max():.2g} at mu = 1e-8 and {two[:, 1].max():.2g} at"
        f" 1e-16 (median {np.median(two[:, 1]):.1g}); at depth 3 they end at stationary points of"
        f" the l_{{2/3}} margin, {int((three[:, 1] > 1e-6).sum())} of {len(three)} of which are"
        f" not the l1 max margin (excess up to {three[:, 1].max():.2g})"
    )


def to_q_path(case: Case, alphas: Array) -> Array:
    """Degrees between flow and Q path at the scale MIDDLE."""
    return np.array([angle(case.trained(a)[MIDDLE], case.q.beta[MIDDLE]) for a in alphas])


def approach(case: Case, far: Array) -> Plot:
    """Flow against ratchet and Q path as alpha grows."""
    alphas = np.append(ALPHAS[case.depth], HUGE ** (1 / case.depth))
    far = np.append(far, angle(case.huge[MIDDLE], case.ratchet.beta[MIDDLE]))
    return Plot(
        f"{case.name} at mu = 0.01: the flow tends to the ratchet and not to the Q path",
        "alpha",
        "angle in degrees",
        [
            Series("to the ratchet", alphas, far),
            Series("to the Q path", alphas, to_q_path(case, alphas)),
        ],
        x_scale="log",
        y_scale="log",
        caption="At the largest alpha the angle to the ratchet is that of the integration's error.",
    )


def weights_plot(case: Case) -> Plot:
    """The dual weights of both paths."""
    series = []
    for n in range(case.problem.samples):
        series.append(Series(f"sample {n}, ratchet", MUS, case.ratchet.dual[:, n]))
        series.append(Series(f"sample {n}, Q path", MUS, case.q.dual[:, n], "dashed"))
    title = f"{case.name}: dual weights"
    return Plot(title, "mu (training goes left)", "dual weight R", series, x_scale="log")
