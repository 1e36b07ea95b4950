"""The regime of a run, kernel, leaving or rich, by three measures.

- The kernel: the distance of the centred tangent kernel from that of the start.
- The function: the share of what was learned that the model linearized at the start misses, even if
  its change may be multiplied by any factor.
- The gain: a kernel machine predicts the change at each probe input from the others; the gain is
  the relative reduction of its error by the present kernel, compared with that of the start.

Weight decay and a change of scale leave the first two at zero.

    measure        kernel below    rich above
    kernel         0.02            0.06
    function       0.18            0.42
    gain           0.30            0.53

The function counts as rich if the linearized model misses 42% of the whole change of the outputs,
including their change of scale. The regime is rich if two measures are. It is kernel if the first
two are and none is rich; the gain is not needed for it, because a change of scale changes the gain.
If some are kernel and one is rich, the regime is leaving if the third is in between, and unknown
otherwise. A run that was rich stays rich: it does not unlearn its features if the kernel returns.
If the outputs only grew or shrank as a whole, nothing was learned, and the regime is unknown: next
to no part of their change, and next to no part of the outputs themselves, is anything else. (From a
large start most of the change goes against the outputs of the start, although all is learned.)

The limits were chosen on 366 runs with settings drawn at random and 264 of a list, whose truth is
known by training the linearized model with the same optimizer to the same loss. Limits that name
more of them right (0.035 and 0.06, 0.22 and 0.42, 0.3 and 0.5) call runs kernel whose twin is up
to 0.3 away. `penchant verify watch-metrics` draws others, beside other measures of richness, and
`penchant verify watch-regime` goes through the list; docs/theory/your_network.md has the table.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from penchant.records import Record

# a measure is kernel below the first number and rich above the second
DISTANCE_LIMITS, MISSED_LIMITS, GAIN = (0.02, 0.06), (0.18, 0.42), (0.3, 0.53)
LIMITS = {
    "kernel_distance": DISTANCE_LIMITS,
    "linearized_error": MISSED_LIMITS,
    "kernel_gain": GAIN,
}
LEARNED = 0.05  # if less of change and outputs than this is not scale, nothing was learned
REGIMES = ("kernel", "leaving", "rich", "unknown")


class RegimeNumbers(NamedTuple):
    """The numbers of one look that decide the regime; NaN if unknown."""

    kernel_distance: float
    linearized_error: float
    kernel_gain: float = math.nan
    learned_share: float = 1.0
    output_change: float = 1.0
    output_share: float = 0.0  # of the outputs themselves that does not scale those of the start

    @property
    def learned(self) -> bool:
        """Whether anything but the scale of the outputs has changed."""
        return not max(self.learned_share, self.output_share) < LEARNED

    @property
    def missed(self) -> float:
        """The share of the whole change of the outputs that the linearized model misses."""
        return self.linearized_error * self.learned_share

    @property
    def score(self) -> float:
        """The mean of the three measures, each 0 at its kernel limit and 1 at its rich limit.

        Of the first two the logarithm counts. It ranks runs; votes name their regime.
        """
        parts = [
            _place(_log(self.kernel_distance), *map(_log, DISTANCE_LIMITS)),
            _place(_log(self.linearized_error), *map(_log, MISSED_LIMITS)),
            _place(self.kernel_gain, *GAIN),
        ]
        known = [part for part in parts if math.isfinite(part)]
        return float(np.mean(known)) if known else math.nan


def _log(value: float) -> float:
    return math.log(max(value, float(np.finfo(float).tiny)))


def _place(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low)


class Finding(NamedTuple):
    """A kind of regime, and the measures that decided."""

    kind: str
    decided: str


@dataclasses.dataclass(frozen=True, repr=False)
class Regime(Record):
    """`kind` is "kernel", "leaving", "rich" or "unknown", `evidence` says why in a sentence.

    `decided` names the measures for it: "kernel", "function", "gain", two of them or "all";
    "earlier" for a run that was rich before, or "none". `step` is that of the latest look with a
    kernel, `left` the first step at which the run was leaving or rich (NaN if there is none).
    """

    kind: str
    evidence: str
    decided: str = "none"
    step: float = math.nan
    kernel_distance: float = math.nan
    linearized_error: float = math.nan
    kernel_gain: float = math.nan
    left: float = math.nan


def regime(dataset: Any) -> Regime:
    """The regime of the run so far, from the dataset of a watch."""
    if dataset.attrs["changed"]:
        return Regime("unknown", f"the model is not that of the start ({dataset.attrs['changed']})")
    step, distance = (dataset[name].values for name in ("step", "kernel_distance"))
    last = dataset.sizes["time"] - 1
    looks = _looks(dataset)
    if last == 0 or not any(np.isfinite(look.kernel_distance) for look in looks[1:]):
        return Regime("unknown", "there has been no look at the tangent kernel since the start")
    while not math.isfinite(distance[last]):
        last -= 1
    history, look = findings(looks[: last + 1]), looks[last]
    out = [number for number, (kind, _) in enumerate(history) if kind in ("leaving", "rich")]
    rich = [number for number, (kind, _) in enumerate(history) if kind == "rich"]
    since = float(step[rich[0]]) if rich else math.nan
    return Regime(
        history[-1].kind,
        _evidence(float(step[last]), look, history[-1], since),
        history[-1].decided,
        float(step[last]),
        look.kernel_distance,
        look.linearized_error,
        look.kernel_gain,
        float(step[out[0]]) if out else math.nan,
    )


def regimes(dataset: Any) -> list[str]:
    """The kind of regime at every look; "unknown" without a kernel or without any change."""
    return [kind for kind, _ in findings(_looks(dataset))]


def findings(looks: Iterable[RegimeNumbers]) -> list[Finding]:
    """The regime at every look; after "rich" it stays rich."""
    history: list[Finding] = []
    for look in looks:
        now = judge_regime(look)
        was_rich = bool(history) and history[-1].kind == "rich"
        history.append(Finding("rich", "earlier") if was_rich and now.kind != "rich" else now)
    return history


def judge_regime(look: RegimeNumbers) -> Finding:
    """The regime of one look alone."""
    if not (look.output_change > 0 and math.isfinite(look.kernel_distance)):
        return Finding("unknown", "none")
    if not look.learned:
        return Finding("unknown", "none")
    votes = {
        "kernel": _vote(look.kernel_distance, DISTANCE_LIMITS),
        "function": _function(look),
        "gain": _vote(look.kernel_gain, GAIN),
    }
    known = [vote for vote in votes.values() if vote != "unknown"]
    if known.count("rich") >= 2:
        return Finding("rich", _named(votes, "rich"))
    if votes["kernel"] == votes["function"] == "kernel" and "rich" not in known:
        return Finding("kernel", _named(votes, "kernel"))
    if (
        "kernel" in known and "leaving" not in known
    ):  # a contradiction, or one of the two is missing
        return Finding("unknown", "none")
    between = "leaving" if "leaving" in known else "rich"
    return Finding("leaving", _named(votes, between))


def _named(votes: dict[str, str], vote: str) -> str:
    """The names of the measures with this vote, or "all"."""
    names = [name for name, choice in votes.items() if choice == vote]
    return "all" if len(names) == 3 else " and ".join(names)


def _function(look: RegimeNumbers) -> str:
    """The vote of the function: kernel by the learned change, rich by the whole change."""
    vote = _vote(look.linearized_error, MISSED_LIMITS)
    return "leaving" if vote == "rich" and not look.missed > MISSED_LIMITS[1] else vote


def _vote(value: float, limits: tuple[float, float]) -> str:
    low, high = limits
    if not math.isfinite(value):
        return "unknown"
    return "kernel" if value < low else "rich" if value > high else "leaving"


def _looks(dataset: Any) -> list[RegimeNumbers]:
    names = [name for name in RegimeNumbers._fields if name in dataset]  # records of 0.2 lack one
    columns = (dataset[name].values.tolist() for name in names)
    rows = zip(*columns, strict=True)
    return [RegimeNumbers(**dict(zip(names, row, strict=True))) for row in rows]


def _evidence(step: float, look: RegimeNumbers, finding: Finding, since: float) -> str:
    if not look.output_change > 0:
        return "the outputs on the probe inputs have not moved since the start"
    if not look.learned:
        return (
            f"at step {step:g} the outputs on the probe inputs are those of the start times a "
            f"number (only {look.learned_share:.1%} of their change is anything else), so nothing "
            "was learned from which the regime could be known"
        )
    near, far = MISSED_LIMITS
    text = (
        f"at step {step:g} the centred tangent kernel is {_number(look.kernel_distance)} away "
        f"from the start (kernel regime below {DISTANCE_LIMITS[0]:g}, rich above "
        f"{DISTANCE_LIMITS[1]:g}), the model linearized there misses "
        f"{_percent(look.linearized_error, MISSED_LIMITS)} of what was learned (kernel regime "
        f"below {near:.0%}), which is {_percent(look.missed, MISSED_LIMITS)} of the whole change "
        f"(rich above {far:.0%}), and the kernel predicts what was learned with an error that is "
        f"{_gain(look.kernel_gain)} than that of the start's kernel (kernel regime below "
        f"{GAIN[0]:.0%} smaller, rich above {GAIN[1]:.0%})"
    )
    return f"{text}; {_decision(finding, since)}"


def _gain(value: float) -> str:
    if not math.isfinite(value):
        return "an unknown share smaller"
    if value < 0:
        return f"{-value:.0%} larger"
    return f"{_percent(value, GAIN)} smaller"


def _number(value: float) -> str:
    """The value with enough digits to be on its own side of the limits."""
    texts = (f"{value:.{digits}g}" for digits in range(2, 18))
    return next(text for text in texts if _same_side(float(text), value, DISTANCE_LIMITS))


def _percent(value: float, limits: tuple[float, float]) -> str:
    if not math.isfinite(value):
        return "an unknown share"
    texts = (f"{100 * value:.{digits}f}" for digits in range(18))
    own = (text for text in texts if _same_side(float(text) / 100, value, limits))
    return f"{next(own, repr(100 * value))}%"


def _same_side(shown: float, value: float, limits: tuple[float, float]) -> bool:
    return _vote(shown, limits) == _vote(value, limits)


def _decision(finding: Finding, since: float) -> str:
    if finding.decided == "all":
        return "all agree"
    if finding.decided == "none":
        return "they do not agree, or one is missing"
    if finding.decided == "earlier":
        return f"it was rich at step {since:g}, and a run that was rich stays so"
    names = finding.decided.replace("function", "linearized model")
    return f"{names.replace(' and ', ' and the ')} decide{'s' if ' and ' not in names else ''}"
