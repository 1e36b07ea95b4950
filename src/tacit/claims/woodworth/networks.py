"""W-F6ab: ReLU nets leave the kernel regime as their start shrinks, and learn better there."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.claims.woodworth.network_runs import (
    DEPTHS,
    WIDTH,
    Trained,
    data,
    ended,
    fitting,
    floor,
    kernel_outputs,
    net,
    start,
    trained,
    turned,
)
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.papers.instances import slope
from tacit.problems.regression import Regression
from tacit.records import NumericalError
from tacit.studies.sizes import Size

RICH, LARGE = 1e-3, (1e3, 1e4)  # alpha^D
SCALES = {
    "quick": (RICH, 1.0, *LARGE),
    "full": (RICH, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, *LARGE),
}
DRAWS = {"quick": 5, "full": 20}
STEP = 0.01  # of W's descent


@dataclasses.dataclass(frozen=True, eq=False)
class Sweep:
    """The draws of which every run reached its loss: depth x scale x draw x field of Trained.

    `rested` says of the others where a run of theirs came to rest.
    """

    scales: tuple[float, ...]
    draws: tuple[int, ...]
    runs: Array
    rested: Mapping[int, str] = dataclasses.field(default_factory=dict)

    def field(self, name: str) -> Array:
        return np.asarray(self.runs[..., Trained._fields.index(name)])

    def median(self, name: str, scale: float) -> Array:
        """One number per depth."""
        return np.asarray(np.median(self.field(name)[:, self.scales.index(scale)], axis=1))

    def exponents(self) -> Array:
        """Of the grad distance in alpha^D between the two largest scales, per depth."""
        last = self.field("grad_distance")[:, -2:]
        slopes = [
            [slope(np.array(LARGE), last[i, :, s]) for s in range(len(self.draws))]
            for i in range(len(DEPTHS))
        ]
        return np.median(slopes, axis=1)

    def gain(self) -> Array:
        """Test error at the smallest scale over that at the largest: median per depth."""
        errors = self.field("test_error")
        return np.asarray(np.median(errors[:, 0] / errors[:, -1], axis=1))

    def wins(self) -> Array:
        """The number of draws in which the smallest scale has the smaller test error."""
        errors = self.field("test_error")
        return np.asarray((errors[:, 0] < errors[:, -1]).sum(axis=1))


def swept(scales: tuple[float, ...], draws: tuple[int, ...]) -> Sweep:
    """The sweep over `draws`; raises if none of them reached its loss in every run."""
    runs: dict[int, list[list[Trained]]] = {}
    rested: dict[int, str] = {}
    for seed in draws:
        try:
            runs[seed] = [[trained(depth, scale, seed) for scale in scales] for depth in DEPTHS]
        except NumericalError as error:
            rested[seed] = str(error)
            if len(rested) == len(draws):
                raise
    return Sweep(scales, tuple(runs), np.moveaxis(np.array(list(runs.values())), 0, 2), rested)


def converged(draws: tuple[int, ...]) -> Array:
    """RMS of net - kernel predictor at the largest scale, trained to a loss of 1e-16, per depth.

    A loss of 1e-9 leaves so much of the slowest mode that it would hide the agreement.
    """
    return np.median(
        [[trained(depth, LARGE[-1], seed, loss=1e-16).apart for seed in draws] for depth in DEPTHS],
        axis=1,
    )


def strangers(draws: tuple[int, ...]) -> Array:
    """The same between the kernel predictors of two starts, which differ by their seed alone."""

    def one(depth: int, seed: int) -> float:
        pair = [kernel_outputs(depth, 1.0, seed, drawn=seed + more) for more in (0, 1)]
        return float(np.sqrt(np.mean((pair[0] - pair[1]) ** 2)))

    return np.median([[one(depth, seed) for seed in draws] for depth in DEPTHS], axis=1)


def biased(draws: tuple[int, ...]) -> float:
    """Median grad distance of depth-2 nets that start with an output, as alpha -> infinity.

    Beside an output that grows as alpha^D the targets vanish, and scale does not matter: in the
    limit it is the net from alpha = 1 with targets zero.
    """

    def one(seed: int) -> float:
        X = data(seed).training.X
        end = ended(2, 1.0, seed, Regression(X, np.zeros(len(X))), unbiased=False)
        return turned(2, 1.0, seed, end.parameters, unbiased=False)

    return float(np.median([one(seed) for seed in draws]))


def critical(draws: tuple[int, ...]) -> Array:
    """alpha^D above which descent with W's step is unstable at the start: median per depth."""

    def one(depth: int, seed: int) -> float:
        J = net(depth, True).jacobian(start(depth, 1.0, seed).start(2), data(seed).training.X)
        # descent on the sum of squares needs step < 1 / lambda, and K grows as alpha^(2 (D - 1))
        free = 1 / (STEP * float(np.linalg.norm(J, 2)) ** 2)
        return float(free ** (depth / (2 * (depth - 1))))

    return np.median([[one(depth, seed) for seed in draws] for depth in DEPTHS], axis=1)


def crossing(sweep: Sweep, level: float = 0.1) -> Array:
    """alpha^D at which the median grad distance falls to `level`, one per depth."""
    curves = np.median(sweep.field("grad_distance"), axis=2)
    logs = np.log(sweep.scales)
    return np.exp([np.interp(-np.log(level), -np.log(curve), logs) for curve in curves])


@claim(
    "W-F6ab",
    statement="ReLU nets of depth 2, 3 and 5 on 10 points of the circle stay in the kernel regime"
    " when the start is large (their tangent features do not turn), leave it as alpha^D becomes"
    " small, and have a smaller test error there",
    place="appendix B, Figure 6 (a) and (b)",
    seconds=20,
)
def circle_nets(size: Size) -> Evidence:
    sweep = swept(SCALES[size], fitting(DRAWS[size], DEPTHS))
    few = sweep.draws[:5]
    away = biased(few)
    still = Check(
        f"alpha^D = {LARGE[-1]:g}: largest median grad distance of a depth",
        sweep.median("grad_distance", LARGE[-1]).max(),
        tolerance=1e-3,
    )
    law = Check(
        "exponent of the grad distance in alpha^D, the worst of the medians",
        _worst(sweep.exponents(), -2.0),
        -2.0,
        tolerance=0.1,
    )
    moved = Check(
        f"alpha^D = {RICH:g}: least median grad distance of a depth",
        sweep.median("grad_distance", RICH).min(),
        0.3,
        0.0,
        "at least",
    )
    better = Check(
        "median test error at the small start over that at the large one, the worst depth",
        sweep.gain().max(),
        0.5,
        0.0,
        "at most",
    )
    kernel = Check(
        f"alpha^D = {LARGE[-1]:g}: RMS of net - kernel predictor, the worst median",
        converged(few).max(),
        tolerance=1e-4,
    )
    return Evidence(
        ran=f"constructed: {len(sweep.draws)} draws of points, teacher (mean square one) and"
        f" He-uniform start, the first whose kernel can fit the labels; width {WIDTH}, output zero"
        " at the start (difference of two nets), gradient flow to loss 1e-9, alpha^D from"
        f" {RICH:g} to {LARGE[-1]:g}",
        premises={
            "of ten draws at most one has a run that rests above its loss": (
                len(sweep.rested) <= DRAWS[size] / 10,
                len(sweep.rested),
            ),
        },
        checks=[still, law, moved, better, kernel],
        controls={
            "the small start": still.control(sweep.median("grad_distance", RICH).min()),
            "without unbiasing, alpha -> infinity": still.control(away),
            "exponent -1, one kink after another": law.control(predicted=-1.0),
            "the large start": moved.control(sweep.median("grad_distance", LARGE[0]).max()),
            "the kernel predictor": better.control(_kernel_gain(sweep)),
            "the small start is the kernel predictor": kernel.control(
                sweep.median("apart", RICH).min()
            ),
            "the kernel predictor of another start": kernel.control(strangers(few).min()),
        },
        findings=findings(sweep, few, away),
        plots=plots(sweep),
    )


def findings(sweep: Sweep, few: tuple[int, ...], away: float) -> list[str]:
    """What the runs say beyond the checks."""
    ones = sweep.field("test_error")[:, sweep.scales.index(1.0)]
    share = np.median(ones / sweep.field("kernel_error")[:, 0], axis=1)
    found = [
        "the unbiasing that W B.2 does not mention is needed: with an output f(w0) at the start,"
        " which grows as alpha^D, the residual and the move grow with the start. As alpha ->"
        f" infinity the median grad distance at depth 2 then stays at {away:.2g} (the net trained"
        " towards zero), and no start is in the kernel regime",
        "the grad distance is |move|^2 / 2 relative to the start, so its exponent is -2 in alpha^D"
        " at every depth: " + _listed(sweep.exponents(), ".3f") + "; in alpha it is -2 D",
        "test error at the small start over the large one, median: "
        + _listed(sweep.gain(), ".2g")
        + f"; it is smaller in {_listed(sweep.wins(), '.0f')} of {len(sweep.draws)} draws",
        "at alpha = 1 the nets are about to enter the kernel regime as W says, but on these data"
        " their test error is no longer the good one: "
        + _listed(share, ".2f")
        + " times that of the kernel predictor",
        f"W's step {STEP:g} is flow-like only for small starts: on the sum of squares descent is"
        " unstable at the start above alpha^D = "
        + _listed(critical(few), ".2g")
        + ", and on their mean above "
        + _listed(critical(few) * 10 ** (np.array(DEPTHS) / (2 * np.array(DEPTHS) - 2)), ".2g"),
        "exponential steps per run, median over the draws, at the smallest and largest start: "
        + _listed(sweep.median("steps", RICH), ".0f")
        + " and "
        + _listed(sweep.median("steps", LARGE[-1]), ".0f"),
    ]
    wide = len(sweep.scales) > len(SCALES["quick"])
    return found + left_out(sweep) + (depths_apart(sweep) if wide else [])


def left_out(sweep: Sweep) -> list[str]:
    """One sentence for every draw that the medians do without, and why."""
    tried = {*sweep.draws, *sweep.rested}
    unfit = [
        f"draw {seed} is left out: the tangent features of its start do not span its labels, and"
        " the kernel regime rests at a loss of "
        + _listed(np.array([floor(depth, seed) for depth in DEPTHS]), ".2g")
        + " however large alpha is"
        for seed in range(max(tried))
        if seed not in tried
    ]
    rested = sweep.rested.items()
    return unfit + [f"draw {s} is left out, for it does not reach the loss: {w}" for s, w in rested]


def depths_apart(sweep: Sweep, level: float = 0.1) -> list[str]:
    """Where the depths leave the kernel regime, by both scales."""
    where = crossing(sweep, level)
    return [
        f"alpha^D at which the median grad distance is {level}: {_listed(where, '.2g')}; as"
        f" alpha {_listed(where ** (1 / np.array(DEPTHS)), '.2g')}"
    ]


def plots(sweep: Sweep) -> list[Plot]:
    """Both panels, medians over the draws."""
    scales = np.array(sweep.scales)

    def curves(name: str, label: str = "depth", style: str = "line") -> list[Series]:
        rows = np.median(sweep.field(name), axis=2)
        return [
            Series(f"{label} {d}", scales, row, style)  # type: ignore[arg-type]
            for d, row in zip(DEPTHS, rows, strict=True)
        ]

    errors = [*curves("test_error"), *curves("kernel_error", "kernel, depth", "dashed")]
    return [
        Plot("test error", "alpha^D", "mean square over the teacher's", errors, "log", "log"),
        Plot(
            "grad distance",
            "alpha^D",
            "1 - cosine of the tangent features",
            curves("grad_distance"),
            "log",
            "log",
        ),
    ]


def _kernel_gain(sweep: Sweep) -> float:
    """The ratio of test errors that the kernel predictor in the place of the net would give."""
    errors = sweep.field("kernel_error")
    return float(np.median(errors[:, 0] / errors[:, -1], axis=1).min())


def _worst(values: Array, law: float) -> float:
    return float(values[np.abs(values - law).argmax()])


def _listed(values: Array, form: str) -> str:
    """The values with their depths."""
    return ", ".join(f"{v:{form}} (D={d})" for d, v in zip(DEPTHS, values, strict=True))
