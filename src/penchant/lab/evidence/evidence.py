"""What a claim function returns, and the one place where evidence becomes a status."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from penchant.arguments import one_of
from penchant.door import Invalid, door, door_as
from penchant.lab.evidence.plot import Plot
from penchant.records import Record, brief

Rule = Literal["error", "at most", "at least"]
Status = Literal["holds", "holds, proof corrected", "holds as corrected", "fails", "inconclusive"]

RARE = 1e-3  # the probability that a true statement misses by chance

RELATIONS: dict[Rule, str] = {"error": "≤>", "at most": "≤>", "at least": "≥<"}
STATUSES: tuple[Status, ...] = get_args(Status)
HOLDING: tuple[Status, ...] = STATUSES[:3]


def plain(value: Any) -> Any:
    """`value` with numpy scalars, arrays and tuples turned into types that JSON has."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def number(name: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        rule = f"{name} must be one real number"
        raise Invalid(f"{rule}, got {type(value).__name__} {value!r}") from None


@dataclass(frozen=True, repr=False)
class Check(Record):
    """One measured number against one rule.

    "error" means |measured - predicted| <= tolerance, "at most" measured <= predicted + tolerance,
    "at least" measured >= predicted - tolerance. A distance is an error with predicted 0.
    """

    name: str
    measured: float
    predicted: float = 0.0
    tolerance: float = 0.0
    kind: Rule = "error"

    @door_as(lambda check: f"Check {check.name!r}" if check.name else "Check")
    def __post_init__(self) -> None:
        for name in ("measured", "predicted", "tolerance"):
            object.__setattr__(self, name, number(name, getattr(self, name)))
        if not 0 <= self.tolerance < math.inf:
            raise Invalid(f"tolerance must be finite and >= 0, got {self.tolerance}")
        one_of("kind", self.kind, ("error", "at most", "at least"))

    @property
    def excess(self) -> float:
        """How far `measured` lies beyond the rule: <= 0 inside, > 0 outside, NaN if unknown."""
        gap = self.measured - self.predicted
        side = {"error": abs(gap), "at most": gap, "at least": -gap}[self.kind]
        return side - self.tolerance

    @property
    def passes(self) -> bool:
        """True if a finite measurement obeys the rule."""
        return math.isfinite(self.measured) and self.excess <= 0

    @property
    def misses(self) -> bool:
        """True if the measurement certainly breaks the rule; NaN neither passes nor misses."""
        return self.excess > 0

    @property
    def rule(self) -> tuple[Rule, float]:
        return self.kind, self.tolerance

    def control(self, measured: Any = None, *, predicted: Any = None) -> Check:
        """The same check with the number that a wrong theorem gives: it must miss."""
        return replace(
            self,
            measured=self.measured if measured is None else measured,
            predicted=self.predicted if predicted is None else predicted,
        )

    @property
    def sentence(self) -> str:
        """The comparison in symbols, for example `3.1e-09 ≤ 1e-06`."""
        return self._compared("off by ", ".6g", ".4g")

    @property
    def brief(self) -> str:
        """The same with three digits, for a line of a terminal."""
        if self.predicted or self.kind == "error":
            return self._compared("off ", ".3g", ".3g")
        limit = self.tolerance if self.kind == "at most" else -self.tolerance
        return replace(self, predicted=limit, tolerance=0.0)._compared("", ".3g", ".3g")

    def _compared(self, off: str, value: str, distance: str) -> str:
        if not (self.passes or self.misses):
            return f"{self.measured:{distance}} is inconclusive"
        relation = RELATIONS[self.kind][0 if self.passes else 1]
        if self.kind == "error":
            gap = f"{abs(self.measured - self.predicted):{distance}}"
            return f"{off if self.predicted else ''}{gap} {relation} {self.tolerance:{distance}}"
        sign = "+" if self.kind == "at most" else "−"
        slack = f" {sign} {self.tolerance:{distance}}" if self.tolerance else ""
        return f"{self.measured:{value}} {relation} {self.predicted:{value}}{slack}"


def within(measured: Any, predicted: Any = 0.0, tolerance: float = 0.0) -> Check:
    """The check |measured - predicted| <= tolerance, named by the evidence that holds it."""
    return Check("", measured, predicted, tolerance)


def at_most(measured: Any, limit: Any = 0.0, tolerance: float = 0.0) -> Check:
    """The check measured <= limit + tolerance, named by the evidence that holds it."""
    return Check("", measured, limit, tolerance, "at most")


def at_least(measured: Any, limit: Any = 0.0, tolerance: float = 0.0) -> Check:
    """The check measured >= limit - tolerance, named by the evidence that holds it."""
    return Check("", measured, limit, tolerance, "at least")


@functools.lru_cache(2**14)
def _derived(control: float, measured: float) -> bool:
    """True if `control` is `measured` scaled, inverted or shifted by a number of two digits."""
    if control == measured or not math.isfinite(control * measured):
        return False
    if any(_counted(number) or _is_bound_of_all(number) for number in (control, measured)):
        return False  # 0 and 1, or 1/8 and 1/2, can differ by a round number by chance
    made = [control / measured, control * measured]
    if 1e-6 < abs(measured / control) < 1e6:  # else the difference is the larger of the two
        made += [control - measured, control + measured]
    return any(abs(float(f"{number:.1e}") - number) <= 1e-12 * abs(number) for number in made)


@functools.lru_cache(2**14)
def _counted(number: float) -> bool:
    """True for a count, and for a share of some thousand cases."""
    near = Fraction(number).limit_denominator(2000)
    return abs(number - near) <= 1e-12 * abs(number)


@functools.lru_cache(2**14)
def _is_bound_of_all(share: float) -> bool:
    """True for the bound of a share of which all cases count, or none: with 1 - it, one number."""
    ends = [number for number in (share, 1 - share) if RARE / 2 <= number < 0.9999]
    cases = [math.log(RARE / 2) / math.log(number) for number in ends]
    return any(abs(number - round(number)) <= 1e-9 * number for number in cases)


@dataclass(frozen=True, repr=False)
class Premise(Record):
    """Whether an assumption of the claim was met in the run, and the number that says so."""

    holds: bool
    value: float | str = ""

    def __post_init__(self) -> None:
        holds = np.asarray(self.holds)
        if holds.size != 1 or holds.dtype.kind not in "biuf" or holds.item() not in (0, 1):
            raise ValueError(f"Premise: holds must be True or False, got {self.holds!r:.80}")
        object.__setattr__(self, "holds", bool(holds.item()))
        object.__setattr__(self, "value", plain(self.value))

    def __str__(self) -> str:
        number = f" ({brief(self.value)})" if self.value != "" else ""
        return f"{'met' if self.holds else 'not met'}{number}"


@door
def below(value: Any, limit: float) -> Premise:
    """The premise that a measured number is below its limit."""
    measured = number("value", value)
    return Premise(measured < number("limit", limit), measured)


@dataclass(frozen=True, repr=False)
class Evidence(Record):
    """What one run of a claim found.

    `checks` test the statement as printed; `proof` tests a printed line of its proof or an equation
    beside it. `corrected` replaces the checks that miss: those of the proof if there are any, else
    all of `checks`; `correction` is the corrected sentence. If only the proof is corrected, the
    statement itself must pass. `controls` maps a wrong theorem to the number it gives, compared
    with the first deciding check, or to `check.control(number)`. Checks are given by their names,
    as in `{"distance to the truth": at_most(gap, 0.1)}`, and premises may be written as
    `(holds, value)` or `below(value, limit)`.
    """

    ran: str
    checks: Mapping[str, Check] = field(default_factory=dict)
    proof: Mapping[str, Check] = field(default_factory=dict)
    corrected: Mapping[str, Check] = field(default_factory=dict)
    premises: Mapping[str, Any] = field(default_factory=dict)
    controls: Mapping[str, Any] = field(default_factory=dict)
    counterexample: str | Mapping[str, Any] | None = None
    correction: str | None = None
    findings: Sequence[str] = ()
    plots: Sequence[Plot] = ()

    def __post_init__(self) -> None:
        for name in ("checks", "proof", "corrected"):
            object.__setattr__(self, name, _named(name, getattr(self, name)))
        object.__setattr__(self, "plots", tuple(self.plots))
        object.__setattr__(self, "findings", tuple(str(line) for line in self.findings))
        object.__setattr__(self, "counterexample", plain(self.counterexample))
        object.__setattr__(self, "premises", {k: _premise(v) for k, v in self.premises.items()})
        self._refuse_half_a_correction()
        self._refuse_equal_names()
        object.__setattr__(self, "controls", {k: self._control(k) for k in self.controls})

    @property
    def deciding(self) -> Sequence[Check]:
        """The printed checks, with the corrected ones in place of those that miss."""
        if self.corrected and self.proof_misses:
            return (*self.checks.values(), *self.corrected.values())
        if self.corrected and self.statement_misses and not self.proof:
            return tuple(self.corrected.values())
        return (*self.checks.values(), *self.proof.values())

    @property
    def _all(self) -> Sequence[Check]:
        parts = (self.checks, self.proof, self.corrected)
        return [check for part in parts for check in part.values()]

    @property
    def statement_misses(self) -> bool:
        """True if the statement fails as printed."""
        return any(check.misses for check in self.checks.values())

    @property
    def proof_misses(self) -> bool:
        """True if a printed line of the proof, or an equation beside the statement, fails."""
        return any(check.misses for check in self.proof.values())

    @property
    def arithmetic(self) -> list[str]:
        """The controls that are a measured number scaled, shifted or inverted by a round one.

        Such a number is no evidence against a wrong theorem: it was constructed to miss.
        """
        return [
            name
            for name, control in self.controls.items()
            if any(_derived(control.measured, check.measured) for check in self._all)
        ]

    @property
    def guarded(self) -> bool:
        """True if a control, computed or trained, was compared by the rule of a deciding check."""
        rules, made = {check.rule for check in self.deciding}, set(self.arithmetic)
        return any(c.rule in rules for name, c in self.controls.items() if name not in made)

    def _control(self, name: str) -> Check:
        given = self.controls[name]
        if not isinstance(given, Check):
            if not self.deciding:
                raise ValueError(
                    f"Evidence: control {name!r} has no check to be compared with; add one"
                )
            given = self.deciding[0].control(given)
        # A wrong theorem judged more strictly than the right one would prove nothing.
        if given.rule not in {check.rule for check in self._all}:
            rule = f"no check has its rule ({given.kind}, tolerance {given.tolerance:g})"
            raise ValueError(f"Evidence: control {name!r}: {rule}; write check.control(value)")
        return replace(given, name=name)

    def _refuse_half_a_correction(self) -> None:
        if bool(self.corrected) != bool(self.correction):
            rule = "`corrected` (checks) and `correction` (a sentence) go together"
            missing = "correction" if self.corrected else "corrected"
            raise ValueError(f"Evidence: {rule}, but {missing} is missing")

    def _refuse_equal_names(self) -> None:
        decided_with_checks = (*self.proof, *self.corrected) if self.proof else ()
        twice = [name for name in decided_with_checks if name in self.checks]
        if twice:
            raise ValueError(f"Evidence: check names must differ, got {', '.join(twice)} twice")


def _named(part: str, given: Mapping[str, Check]) -> dict[str, Check]:
    if not isinstance(given, Mapping):
        rule = f"{part} must map names to checks, got {type(given).__name__}"
        raise ValueError(f'Evidence: {rule}; write {{"distance": at_most(gap, 0.1)}}')
    return {name: replace(check, name=name) for name, check in given.items()}


def _premise(given: Any) -> Premise:
    if isinstance(given, Premise):
        return given
    return Premise(*given) if isinstance(given, tuple) else Premise(given)


def judge(evidence: Evidence) -> tuple[Status, str]:
    """The status of a claim and the sentence that justifies it; every status is decided here."""
    doubt = _why_inconclusive(evidence)
    if doubt:
        return "inconclusive", doubt
    for check in evidence.deciding:
        if check.misses:
            return "fails", f"{check.name}: {check.sentence}"
    for check in evidence.deciding:
        if not check.passes:
            return "inconclusive", f"{check.name}: {check.sentence}"
    if not evidence.guarded:
        return "inconclusive", "no control shows that a wrong theorem would miss the tolerance"
    if evidence.statement_misses:
        return "holds as corrected", "the printed statement misses; the corrected one passes"
    if evidence.proof_misses:
        sentence = "the statement passes; a printed line of its proof misses, its correction passes"
        return "holds, proof corrected", sentence
    return "holds", "every check passes and every control misses"


def _why_inconclusive(evidence: Evidence) -> str | None:
    """Why this evidence cannot decide anything, or None."""
    for name, premise in evidence.premises.items():
        if not premise.holds:
            return f"premise not met: {name} ({brief(premise.value)})"
    for name, control in evidence.controls.items():
        if not control.misses:
            verb = "passes too" if control.passes else "was not measured"
            return f"the control {verb}: {name}: {control.sentence}"
    return None if evidence.checks else "nothing was checked"
