"""Gradient flow of diagonal networks by its exact dual form: one variable per sample."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid, door_as
from penchant.models.diagonal import DiagonalNet
from penchant.problems.classification import Classification
from penchant.problems.regression import Regression
from penchant.records import Kind, Outcome
from penchant.solvers.margins.separation import require_separable
from penchant.training import stop as stopping
from penchant.training.exact.decay.dual import MarginDecay, SquareDecay
from penchant.training.exact.decay.follow import follow_decay, recorded
from penchant.training.exact.dual.anchors import LAZY, BoxAnchor, LazyAnchor, OpenAnchor
from penchant.training.exact.dual.escape import opening
from penchant.training.exact.dual.integrator import DualIntegrator, FlowAnchor, dual_form
from penchant.training.exact.dual.margin import MarginDual
from penchant.training.exact.flow import (
    Flow,
    Followed,
    RunSettings,
    decay_times,
    last_time,
    named,
    requested_times,
)
from penchant.training.exact.follow import follow, planned_fit
from penchant.training.exact.margins import follow_margin, margin_records, planned_margin
from penchant.training.exact.task import Problem, separable
from penchant.training.labels import build_dataset, columns, linear_columns
from penchant.training.task import Moment

WHO = "DualFlow"


@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class DualFlow(Flow):
    """The exact flow of a signed DiagonalNet with equal starts, of any depth, shape and scale.

    `rtol` is the accuracy of one step, relative to each coordinate of the predictor. On values
    training stops by default where the data are fitted, Interpolated(1e-20); Loss, LogLoss and
    Time are the other rules.

    On labels the flow is integrated in the smoothed margin, log(1/loss): records are log-spaced in
    it or At(margins=...), and Scale and Near can stop training too.

    Under weight decay Time alone ends training, by default 8/weight_decay after the start has
    decayed to size one, and records are log-spaced in time or At(times=...). Inseparable labels
    are fine there: the decay bounds the parameters.

    Parameters
    ----------
    rtol
        The accuracy of one step of the integrator.
    max_steps
        The most steps of the integrator.
    weight_decay
        The rate c of theta' = -grad L - c theta.
    certify
        True repeats the run at another tolerance and gives the path an `error`; see ParameterFlow.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.
    .. [2] Moroshko et al. (2020), Implicit Bias in Deep Linear Classification: Initialization Scale
       vs Training Accuracy.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = penchant.DiagonalNet(3, log_alpha=-5.0), penchant.stop.Interpolated()
    >>> path = penchant.train(net, problem, penchant.DualFlow(), stop=stop)
    >>> path.outcome.ok
    True
    """

    by_margin: ClassVar[bool] = True

    def follow(self, model: Any, problem: Any, settings: RunSettings) -> Followed:
        net, problem = _equal_starts(model, problem)
        if settings.weight_decay:
            return self._decay(net, problem, settings)
        if isinstance(problem, Classification):
            return self._classify(net, problem, settings)
        return self._regress(net, problem, settings)

    @door_as(WHO)
    def _regress(self, net: DiagonalNet, problem: Regression, settings: RunSettings) -> Followed:
        form, log_unit = dual_form(net, problem), 0.0
        if not form.y.any():
            moments, outcome = _unmoved(problem)
        else:
            log_size = form.log_reach()
            lazy = log_size < math.log(LAZY)
            anchor: FlowAnchor
            if lazy:
                anchor = LazyAnchor(form, log_size)
            else:
                anchor = OpenAnchor.first(form) if form.depth == 2 else BoxAnchor.first(form)
            log_unit = (log_size if lazy else 0.0) - form.log_rate
            plan = planned_fit(self, settings, net, problem, anchor.unit(), log_unit)
            flow = DualIntegrator(problem, anchor, self.rtol, plan, log_unit)
            moments, outcome = follow(flow, plan, flow.begin)
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            log_t = np.log([moment.t for moment in moments]) + log_unit
            record = {"t": named(np.exp(log_t), settings), "log_t": log_t}
        final = _parameters(net, problem.dimension, moments[-1])
        record |= columns(moments, "predictor", "dual")
        dataset = build_dataset(problem, linear_columns(problem, record), final)
        return Followed(dataset, outcome, final)

    @door_as(WHO)
    def _classify(
        self, net: DiagonalNet, problem: Classification, settings: RunSettings
    ) -> Followed:
        require_separable(problem.signed_rows)
        system = MarginDual(net, problem)
        plan = planned_margin(self, settings, net, system.g0)
        moments, outcome = follow_margin(system, plan, opening(system, plan))
        final = _parameters(net, problem.dimension, moments[-1])
        record = linear_columns(problem, margin_records(moments))
        return Followed(build_dataset(problem, record, final), outcome, final)

    @door_as(WHO)
    def _decay(self, net: DiagonalNet, problem: Problem, settings: RunSettings) -> Followed:
        why, rate = "under weight decay, where time alone ends training", settings.weight_decay
        stopping.understood(settings.stops, (stopping.Time,), why)
        dual: MarginDecay | SquareDecay
        if isinstance(problem, Classification):
            dual = MarginDecay(net, problem, rate)
        else:
            dual = SquareDecay(net, problem, rate)
        requested = settings.t_max
        if requested is None and settings.per_decade is None:
            requested = max(requested_times(settings), default=None)
        t_max = last_time(rate, dual.law.log_alpha + dual.law.top, requested)
        log_first = min(-dual.log_rate, math.log(t_max)) - math.log(1000.0)
        times = decay_times(settings, log_first, t_max)
        moments, outcome = follow_decay(dual, times, self, settings.progress)
        record = linear_columns(problem, recorded(dual, times, moments))
        return Followed(build_dataset(problem, record), outcome, None)


def _unmoved(problem: Regression) -> tuple[list[Moment], Outcome]:
    outcome = Outcome(Kind.SOLVED, "the start already fits the data")
    if problem.y.any():
        sentence = "y is orthogonal to every column of X, so nothing moves"
        outcome = Outcome(Kind.STALLED, sentence)
    zero, dual = np.zeros(problem.dimension), np.zeros(problem.samples)
    growth = np.zeros((2, problem.dimension))
    return [Moment(0.0, dual, predictor=zero, dual=dual, log_growth=growth)], outcome


@door_as(WHO)
def _equal_starts(model: object, problem: object) -> tuple[DiagonalNet, Problem]:
    model, problem = separable(model, problem)
    if not isinstance(model, DiagonalNet) or model.biased is not None or not model.signed:
        raise Invalid(
            f"the model must be a signed DiagonalNet with equal starts w+ = w-, got "
            f"{type(model).__name__} of another kind; use ParameterFlow"
        )
    return model, problem


def _parameters(net: DiagonalNet, dimension: int, end: Moment) -> Array | None:
    """w+ and w- at the end, or None where float64 cannot hold them."""
    assert net.log_alpha is not None
    shape, growth = net.shape_for(dimension), end.log_growth
    if net.depth % 2:  # there a negative pair has exchanged roles: w^D has the sign of w
        growth = np.where(shape < 0, growth[::-1], growth)
    log_size = net.log_alpha + np.log(np.abs(shape)) + growth
    if log_size.min() < -700 or log_size.max() > 700:
        return None
    return (np.sign(shape) * np.exp(log_size)).ravel()
