"""The open question: what the flow does for huge alpha where the stability condition fails."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant.lab import (
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_least,
    log_log,
    sized,
    within,
)
from penchant.measures import angle
from penchant.plotting import latex
from penchant_papers.instances import slope
from penchant_papers.moroshko2020.ratchets import (
    APART,
    CALM,
    KEPT,
    LEFT,
    MUS,
    REJOINING,
    case_of,
    rows_of,
    steepest_fall,
    table,
)
from penchant_papers.moroshko2020.stopping import max_margin_of, stationarity

HUGE = 1e12  # alpha^D: alpha = 1e6 at depth 2, 1e4 at depth 3
CLOSE = 1e-4  # degrees: a hundred times the tolerance 1e-8 of the flow, in radians
MIDDLE = int(np.argmin(np.abs(MUS - 0.01)))  # past the kinks of all three panels


def cell(points: str, *, forgets: float, seed: int) -> dict[str, Any]:
    """Q path, ratchet and the flow from huge alpha on one data set.

    Events are falling weights and changing support vectors of the Q path; without any the flow
    is not trained. `forgets` moves the ratchet that share of its way to the Q path.
    """
    case, tries = case_of(points, seed)
    path, ratchet = case.q, case.ratchet(case.depth)
    beta = ratchet.beta + forgets * (path.beta - ratchet.beta)
    measures: dict[str, Any] = {
        "depth": case.depth,
        "tries": tries,
        "falls": case.falls,
        "changes": case.changes,
        "q_changes": table(path.changes),
        "ratchet_changes": table(ratchet.changes),
        "gap": angle(beta, path.beta),
        "q_dual": path.dual,
        "ratchet_dual": ratchet.dual,
    }
    if case.kind == CALM or points == REJOINING:
        return measures
    huge = case.trained(HUGE ** (1 / case.depth))
    measures |= {
        "to_ratchet": angle(huge, beta).max(),
        "to_q": angle(huge, path.beta).max(),
        "to_ratchet_deeper": angle(huge, case.ratchet(case.depth + 1).beta).max(),
    }
    if case.falls:
        ends = case.ratchet(case.depth, [1e-8, 1e-16]).beta
        l1 = max_margin_of(case.problem, "l1")
        excess = np.abs(ends).sum(axis=1) / np.abs(l1).sum() - 1
        measures |= {
            "excess": np.maximum(excess, 0.0),
            "defect": stationarity(case.problem, case.depth, ends[1]),
            "l1_defect": stationarity(case.problem, case.depth, l1),
        }
    return measures


def flow_cell(points: str) -> dict[str, Any]:
    """Degrees from flows to ratchet and Q path at mu = 0.01, from three alphas.

    From the first one also in the parameters: whether its dual weights grow, and how far both
    flows are apart (degrees).
    """
    case = case_of(points, 0)[0]
    alphas = {2: (100.0, 300.0, 1000.0), 3: (10.0, 20.0, 40.0)}[case.depth]
    betas = np.array([case.trained(alpha) for alpha in alphas])
    trained = case.trained(alphas[0], "parameters")
    weights, misfit = case.weights(alphas[0], trained)
    return {
        "alpha": alphas,
        "to_ratchet": angle(betas[:, MIDDLE], case.ratchet(case.depth).beta[MIDDLE]),
        "to_q": angle(betas[:, MIDDLE], case.q.beta[MIDDLE]),
        "growth": steepest_fall(weights),
        "misfit": misfit,
        "apart": float(angle(trained, betas[0]).max()),
        "q_growth": steepest_fall(case.q.dual),
    }


PANELS = ["3d", "4a", "4b"]


def sets(count: int) -> list[str]:
    """The values of the axis `points`."""
    numbers = {LEFT: count, KEPT: count // 2, CALM: count // 2}
    random = [f"{kind} {k}" for kind, number in numbers.items() for k in range(number)]
    return [*PANELS, *random, REJOINING]


study = sized(
    "M-open",
    function=cell,
    arguments={"forgets": 0.0, "seed": 0},
    grid={"points": sets(2)},
    dims={
        "gap": ["mu"],
        "q_dual": ["mu", "sample"],
        "ratchet_dual": ["mu", "sample"],
        "q_changes": ["q_change", "column"],
        "ratchet_changes": ["ratchet_change", "column"],
        "excess": ["late"],
    },
    printed={"grid": {"points": sets(20)}},
)
flows = sized(
    "M-open-flows",
    function=flow_cell,
    grid={"points": PANELS[:2]},
    dims={name: ["start"] for name in ("alpha", "to_ratchet", "to_q")},
)


def misjudged(cases: Dataset, leaves: DataArray) -> int:
    """On how many data sets a rule is wrong about the flow leaving the Q path."""
    return int((leaves.astype(bool) != (cases.to_q > CLOSE)).sum())


def check(dataset: Dataset, flows: Dataset) -> Evidence:
    """The flow from huge alpha against ratchet and Q path, on sets whose Q path has an event."""
    every = dataset.drop_sel(points=[*PANELS, REJOINING])
    event = (dataset.falls + dataset.changes > 0).drop_sel(points=REJOINING)
    calm = of_kind(dataset, CALM).gap.max()
    cases = dataset.sel(points=event.points[event])
    left, kept = (cases.isel(points=np.flatnonzero(cases.falls == side)) for side in (1, 0))
    limit = within(cases.to_ratchet.values.max(), tolerance=CLOSE)
    shares = (left.to_q / left.gap.max("mu")).values
    share = within(shares[np.abs(shares - 1).argmax()], 1.0, 1e-3)
    followed = within(kept.to_q.values.max(initial=0.0), tolerance=CLOSE)
    rule = within(misjudged(cases, cases.falls))
    rates = {
        rf"panel {name}: exponent in $\alpha$ of the angle to the ratchet at $\mu = 0.01$": within(
            slope(row.alpha.values, row.to_ratchet.values),
            -int(dataset.depth.sel(points=name)),
            0.05,
        )
        for name in PANELS[:2]
        for row in (flows.sel(points=name),)
    }
    growth = at_least(flows.growth.values.min(), tolerance=1e-6)
    deep = left.isel(points=np.flatnonzero(left.depth == 3))
    stationary = within(deep.defect.median(), tolerance=1e-6)
    twin, misfit = flows.apart.values.max(), flows.misfit.values.max()
    panel = flows.sel(points="3d")
    first_rate = next(iter(rates.values()))
    return Evidence(
        ran=f"{every.sizes['points']} random data sets of 3 or 4 points in 3 to 5 dimensions at "
        "depths 2 and 3, drawn by what their $Q$ path does, and the panels 3d, 4a and 4b; the "
        rf"{cases.sizes['points']} whose $Q$ path has an event trained with $\alpha = 10^6$ "
        r"($10^4$ at depth 3), $\mu$ from 10 to 0.001; panels 3d and 4a in the parameters too",
        checks={
            r"$\alpha^D = 10^{12}$: largest angle of the flow to the ratchet, degrees": limit,
            "where a weight falls: the flow's distance to the $Q$ path over the ratchet's": share,
            "where support vectors change and no weight falls: largest angle of the flow to the "
            "$Q$ path, degrees": followed,
            "data sets where a falling weight does not decide whether the flow leaves "
            "the $Q$ path": rule,
            **rates,
            "trained in the parameters: lowest increment of a weight, relative": growth,
            r"$D = 3$: deviation of the ratchet's end from a stationary point of the $\ell_{2/3}$ "
            "margin (median)": stationary,
        },
        premises={
            "without an event the ratchet and the $Q$ path coincide": (calm < 1e-8, float(calm)),
            "flows in the parameters and in the dual agree (degrees)": (twin < 1e-5, twin),
            "the runs in the parameters have dual weights": (misfit < 1e-8, misfit),
        },
        controls={
            "the $Q$ path in place of the ratchet (median)": limit.control(
                np.median(left.to_q.values)
            ),
            "the ratchet of depth $D + 1$ (median)": limit.control(
                np.median(left.to_ratchet_deeper.values)
            ),
            "the $Q$ path where a weight falls (median)": followed.control(
                np.median(left.to_q.values)
            ),
            "the rule that support vectors change": rule.control(misjudged(cases, cases.changes)),
            "the $Q$ path in place of the ratchet: the same exponent": first_rate.control(
                slope(panel.alpha.values, panel.to_q.values)
            ),
            "the weights of the $Q$ path": growth.control(panel.q_growth),
            r"the $\ell_1$ max margin of panel 4a": stationary.control(
                dataset.l1_defect.sel(points="4a")
            ),
        },
        findings=[
            counted(every),
            story(dataset.sel(points="3d")),
            steady(dataset.sel(points="4b")),
            rejoined(dataset.sel(points=REJOINING)),
            ends_of(left),
        ],
        plots=plots(dataset.sel(points="3d"), panel),
    )


def of_kind(dataset: Dataset, kind: str) -> Dataset:
    """The random sets that were drawn as this kind."""
    return dataset.isel(
        points=np.flatnonzero([str(p).startswith(kind) for p in dataset.points.values])
    )


def counted(every: Dataset) -> str:
    """How often random sets are of each kind, and what else happens where the flow leaves."""
    left, kept = of_kind(every, f"{LEFT} "), of_kind(every, f"{KEPT} ")
    hidden = left.isel(points=np.flatnonzero(left.changes.values == 0))
    dropped = sum((rows_of(row)[:, 2] == 0).any() for row in hidden.ratchet_changes)
    return (
        f"{left.sizes['points']} of {int(left.tries.sum())} random sets drawn have a $Q$ path "
        f"that the flow leaves by {APART:g} degrees or more, {kept.sizes['points']} of "
        f"{int(kept.tries.sum())} one that changes its support vectors and is followed to the "
        f"end; on {hidden.sizes['points']} of {left.sizes['points']} the flow leaves a $Q$ "
        f"path whose support vectors do not change, because a weight falls; in {dropped} of "
        "these the flow itself then loses a support vector, so that constant support vectors "
        "of the $Q$ path do not imply the stability condition"
    )


def steady(row: Dataset) -> str:
    """A Q path that is left although no sample leaves its support."""
    enters = rows_of(row.q_changes)[:, 2] == 1
    dual = row.q_dual.dropna("sample").values
    return (
        f"panel {row.points.item()}: the support of the $Q$ path gains {enters.sum()} sample and "
        f"loses {(~enters).sum()}, yet a weight falls by "
        rf"{(dual.max(axis=0) - dual[-1]).max():.3g} down to $\mu = {latex(MUS[-1], '.3g')}$, "
        f"and the flow is {float(row.to_q):.3g} degrees away"
    )


def story(row: Dataset) -> str:
    """What happens on panel 3d, in numbers."""
    changes, own = rows_of(row.q_changes), rows_of(row.ratchet_changes)
    (entry_mu, entry, _), gone = changes[0], changes[changes[:, 2] == 0][0]
    leaver = int(own[own[:, 2] == 0][0, 1])
    gaps = ", ".join(
        rf"{float(row.gap[k]):.3g} at $\mu = {latex(MUS[k], '.3g')}$" for k in (MIDDLE, -1)
    )
    return (
        rf"panel {row.points.item()}: sample {entry:.0f} reaches the margin at $\mu = "
        f"{latex(entry_mu, '.4g')}$; on the $Q$ path the weight of sample {gone[1]:.0f} then "
        rf"falls to zero until $\mu = {latex(gone[0], '.4g')}$, on the ratchet it stays at "
        f"{float(row.ratchet_dual[-1, leaver]):.4g}; the angle between the two is {gaps}, in "
        r"degrees, and the flow is that far away at every large $\alpha$"
    )


def rejoined(row: Dataset) -> str:
    """A path that was left and found again."""
    gap = row.gap.values
    apart = MUS[gap > CLOSE]
    return (
        "once a weight has risen again to its former value, the ratchet is back on the $Q$ path: "
        rf"one set at depth {int(row.depth)} is away from it from $\mu = "
        f"{latex(apart.max(), '.2g')}$ to {apart.min():.2g}, by up to {gap.max():.2g} "
        rf"degrees, and back on it afterwards ({gap[-1]:.0e} degrees at $\mu = "
        f"{latex(MUS[-1], '.3g')}$)"
    )


def ends_of(left: Dataset) -> str:
    """The limit mu -> 0 of the ratchets that left the Q path, by depth."""
    two, three = (left.excess.values[left.depth.values == depth] for depth in (2, 3))
    return (
        r"as $\mu \to 0$ at depth 2, where growing weights exceed constant ones by a factor of "
        r"$\log(1/\mu)$, the ratchets that left the $Q$ path still tend to the least $\ell_1$ "
        rf"norm, slowly: largest excess {two[:, 0].max():.2g} at $\mu = 10^{{-8}}$ and "
        f"{two[:, 1].max():.2g} at $10^{{-16}}$ (median {np.median(two[:, 1]):.1g}); at depth "
        r"3 they end at stationary points of the $\ell_{2/3}$ margin, "
        rf"{int((three[:, 1] > 1e-6).sum())} of {len(three)} of which are not the $\ell_1$ "
        f"max margin (excess up to {three[:, 1].max():.2g})"
    )


def plots(row: Dataset, approach: Dataset) -> list[Plot]:
    """Flow against ratchet and Q path as alpha grows, and the dual weights of both paths."""
    series = []
    for n in range(3):
        series.append(Series(f"sample {n}, ratchet", MUS, row.ratchet_dual[:, n]))
        series.append(Series(f"sample {n}, $Q$ path", MUS, row.q_dual[:, n], "dashed"))
    return [
        log_log(
            r"panel 3d at $\mu = 0.01$: the flow tends to the ratchet and not to the $Q$ path",
            r"$\alpha$",
            "angle in degrees",
            [
                ("to the ratchet", approach.alpha, approach.to_ratchet),
                ("to the $Q$ path", approach.alpha, approach.to_q),
            ],
        ),
        Plot(
            "panel 3d: dual weights",
            r"$\mu$ (training goes left)",
            "dual weight $R$",
            series,
            x_scale="log",
        ),
    ]


experiment = Experiment(
    "M-open",
    statement=r"As $\alpha$ grows, the flow tends to the ratchet path, whose dual weights never "
    r"decrease. Where a dual weight of the $Q_\mu$ path would have to fall, the flow leaves "
    r"that path by a distance that does not vanish for any $\alpha$; where none would, the "
    "flow follows it, even when support vectors change.",
    place="section 5, last paragraph on Figure 3(d), and Figure 4 (left open there; the answer is"
    " ours)",
    study=(study, flows),
    check=check,
    title="Large starts follow the ratchet path, whose dual weights never decrease, and not the "
    "$Q$ path",
    ours="the answer and the data sets",
    seconds=3,
)
