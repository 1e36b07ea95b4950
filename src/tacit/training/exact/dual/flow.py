"""Gradient flow of diagonal networks by its exact dual form: one variable per sample."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array, positive
from tacit.flows.flow import Flow, Problem, Progress, decayed, separable, within_float64
from tacit.flows.stopping import Rule, rules, settings
from tacit.models.diagonal import DiagonalNet
from tacit.models.model import Model
from tacit.problems.classification import Classification
from tacit.problems.regression import Regression
from tacit.records import Kind, Outcome, Record
from tacit.solvers.separation import require_separable
from tacit.threads import on_one_blas_thread
from tacit.training.exact.decay.dual import MarginDecay, SquareDecay
from tacit.training.exact.decay.follow import asked_times, follow, last_time, record_times, recorded
from tacit.training.exact.dual.box import BoxDual
from tacit.training.exact.dual.escape import opening
from tacit.training.exact.dual.form import dual_form
from tacit.training.exact.dual.lazy import LAZY, LazyDual
from tacit.training.exact.dual.margin import MarginDual
from tacit.training.exact.dual.open import OpenDual
from tacit.training.exact.follow import Limits, Snapshot, check, march
from tacit.training.exact.margins.follow import course, march_margin, margin_records
from tacit.training.labels import Path, label

WHO = "DualFlow"

Dual = LazyDual | OpenDual | BoxDual


@dataclasses.dataclass(frozen=True, repr=False)
class DualFlow(Record, Flow):
    """The exact flow of a signed DiagonalNet with equal starts, of any depth, shape and scale.

    `loss` is the target, relative to the loss of the zero predictor. `rtol` is the accuracy of
    one step, relative to each coordinate of the predictor. `t_max` is in training time.

    On a Classification the clock is the smoothed margin, log(1/loss): records are log-spaced in
    it and at those given in `record`, and `until` is a rule or several (LogLoss, Scale, Near)
    that replace `loss`; the first that is met stops.
    """

    loss: float = 1e-20
    t_max: float | None = None
    points_per_decade: int = 20
    rtol: float = 1e-10
    max_steps: int = 100_000
    until: Rule | Sequence[Rule] | None = None
    record: Sequence[float] | None = None

    def __post_init__(self) -> None:
        check(WHO, self)
        rules(WHO, self.until)

    def describe(self) -> dict[str, Any]:
        return {"flow": WHO, **settings(self)}

    @on_one_blas_thread
    @within_float64
    def run(self, model: Model, problem: Problem, progress: Progress | None = None) -> Path:
        net, problem = _equal_starts(model, problem)
        if isinstance(problem, Classification):
            return self._classify(net, problem, progress)
        form = dual_form(net, problem)
        if not form.y.any():
            return self._at_rest(net, problem)
        flow: Dual
        if form.log_reach() < math.log(LAZY):
            flow = LazyDual(form)
        else:
            flow = OpenDual(form) if form.depth == 2 else BoxDual(form)
        records, outcome = self._march(flow, problem, progress)
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            log_t = np.log([record.t for record in records]) + flow.log_unit
            recorded = {"t": np.exp(log_t), "log_t": log_t}
        recorded["predictor"] = np.array([record.predictor for record in records])
        recorded["dual"] = np.array([flow.dual(record.state) for record in records])
        final = _parameters(net, problem.dimension, records[-1])
        return label(problem, net.describe(), self.describe(), outcome, recorded, final)

    def _classify(
        self, net: DiagonalNet, problem: Classification, progress: Progress | None
    ) -> Path:
        require_separable(WHO, problem.signed_rows)
        system = MarginDual(net, problem)
        plan = course(WHO, self, rules(WHO, self.until), net, system.g0)
        records, outcome = march_margin(system, plan, progress, opening(system, plan))
        last = records[-1]
        end = Snapshot(0.0, last.predictor, last.predictor, last.log_growth)
        final = _parameters(net, problem.dimension, end)
        described = net.describe(), self.describe(), outcome
        return label(problem, *described, margin_records(records), final)

    def run_decayed(
        self, model: Model, problem: Problem, rate: float, progress: Progress | None = None
    ) -> Path:
        """The exact flow under weight decay, to `t_max`, recorded over time.

        By default `t_max` is 8/rate after the start has decayed to size one. `record` holds times
        here. Inseparable labels are fine: the decay bounds the parameters.
        """
        net, problem = _equal_starts(model, problem)
        dual: MarginDecay | SquareDecay
        if isinstance(problem, Classification):
            dual = MarginDecay(net, problem, rate)
        else:
            dual = SquareDecay(net, problem, rate)
        asked = self.t_max
        if asked is None and self.record is not None:
            asked = max(positive(WHO, "record", t) for t in self.record)
        t_max = last_time(rate, dual.law.log_alpha + dual.law.top, asked)
        if self.record is None:
            first = min(-dual.log_rate, math.log(t_max)) - math.log(1000.0)
            times = record_times(first, t_max, self.points_per_decade)
        else:
            times = asked_times(WHO, self.record, t_max)
        states, outcome = follow(dual, times, self.rtol, self.max_steps, progress)
        described = net.describe(), decayed(self, rate), outcome
        return label(problem, *described, recorded(dual, times, states))

    def _at_rest(self, net: DiagonalNet, problem: Regression) -> Path:
        """The path of data that exert no force on a zero predictor."""
        outcome = Outcome(Kind.SOLVED, "the start already fits the data")
        if problem.y.any():
            sentence = "y is orthogonal to every column of X, so nothing moves"
            outcome = Outcome(Kind.STALLED, sentence)
        begin = Snapshot(0.0, np.zeros(problem.dimension), np.zeros(problem.samples))
        recorded = {"t": np.zeros(1), "log_t": np.full(1, -np.inf)}
        recorded |= {"predictor": begin.predictor[None], "dual": begin.state[None]}
        final = _parameters(net, problem.dimension, begin)
        return label(problem, net.describe(), self.describe(), outcome, recorded, final)

    def _march(
        self, flow: Dual, problem: Regression, progress: Progress | None
    ) -> tuple[list[Snapshot], Outcome]:
        t_max = math.inf
        if self.t_max is not None:
            with np.errstate(over="ignore", under="ignore"):
                t_max = max(float(np.exp(math.log(self.t_max) - flow.log_unit)), 1e-300)
        return march(
            flow.begin(),
            flow.steps(self.rtol, t_max),
            problem,
            Limits(self.loss, t_max, self.max_steps),
            first=0.01 * flow.unit(),
            per_decade=self.points_per_decade,
            progress=progress,
            log_unit=flow.log_unit,
        )


def _equal_starts(model: object, problem: object) -> tuple[DiagonalNet, Problem]:
    """`model` and `problem` if the dual form covers them."""
    model, problem = separable(WHO, model, problem)
    if not isinstance(model, DiagonalNet) or model.biased is not None or not model.signed:
        raise ValueError(
            f"{WHO}: the model must be a signed DiagonalNet with equal starts w+ = w-, got "
            f"{model.describe()['model']} of another kind; use ParameterFlow"
        )
    return model, problem


def _parameters(net: DiagonalNet, dimension: int, end: Snapshot) -> Array | None:
    """w+ and w- at the end, or None where float64 cannot hold them."""
    assert net.log_alpha is not None
    shape = net.shape_for(dimension)
    growth = np.zeros((2, dimension)) if end.log_growth is None else end.log_growth
    if net.depth % 2:  # there a negative pair runs the other way round: w^D has the sign of w
        growth = np.where(shape < 0, growth[::-1], growth)
    log_size = net.log_alpha + np.log(np.abs(shape)) + growth
    if log_size.min() < -700 or log_size.max() > 700:
        return None
    return (np.sign(shape) * np.exp(log_size)).ravel()
