"""CentralFlow, the averaged path of gradient descent, as a method of `train`."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from penchant.arguments import positive
from penchant.door import door_as
from penchant.records import Checks, Kind, Outcome
from penchant.training.exact.central.bends import refuse_implicit
from penchant.training.exact.central.integrator import CentralIntegrator
from penchant.training.exact.flow import Flow, Followed, RunSettings
from penchant.training.exact.follow import Goal, follow, planned
from penchant.training.exact.stiff import check_decay, fit_level
from penchant.training.samples import SampleTask
from penchant.training.task import Moment

WHO = "CentralFlow"


@dataclasses.dataclass(frozen=True, repr=False)
class CentralFlow(Flow):
    """The averaged path of gradient descent at `learning_rate`, below and beyond its stable range.

    Where the largest eigenvalue of the Hessian reaches 2/learning_rate descent does not diverge: it
    oscillates, and the oscillation keeps that eigenvalue there. This flow follows the average, and
    the path records `oscillation`, the standard deviation of every parameter, and `sharpness`, the
    largest eigenvalue over 2/learning_rate. To first order it also has the effect of steps of
    finite length that is there in the stable range. Steps of descent are cheaper where a run has
    only some hundred of them.

    Training time is that of GradientDescent: the learning rate times the number of steps.

    Parameters
    ----------
    learning_rate
        The learning rate of the gradient descent that is averaged.
    oscillates
        False leaves out the oscillation, to see what it does.
    finite_steps
        False leaves out the effect of finite steps, which is the flow as published.
    rtol
        The accuracy of one step of the integrator.
    max_steps
        The most steps of the integrator.
    weight_decay
        The rate c of a decay that is part of every step.
    certify
        True repeats the run at another tolerance and gives the path an `error`; see ParameterFlow.

    References
    ----------
    .. [1] Cohen, Damian et al. (2025), Understanding Optimization in Deep Learning with Central
       Flows (arXiv 2410.24206).
    .. [2] Even et al. (2023), (S)GD over Diagonal Linear Networks: Implicit Regularisation, Large
       Stepsizes and Edge of Stability.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(15, 40, sparsity=3)
    >>> net, stop = penchant.DiagonalNet(2, alpha=0.1), penchant.stop.Interpolated(1e-6)
    >>> central = penchant.train(net, problem, penchant.methods.CentralFlow(0.04), stop=stop)
    >>> bool(abs(central.dataset.sharpness.values.max() - 1) < 0.05)
    True
    """

    tolerances: ClassVar[tuple[float, float]] = (1e-10, 1e-1)
    learning_rate: float
    oscillates: bool = True
    finite_steps: bool = True
    rtol: float = dataclasses.field(default=1e-4, kw_only=True)
    max_steps: int = dataclasses.field(default=3_000, kw_only=True)

    checks: ClassVar[Checks] = {**Flow.checks, "learning_rate": positive}

    def on_squares(self) -> CentralFlow:
        return dataclasses.replace(self, learning_rate=self.learning_rate / 2)

    @door_as(WHO)
    def follow(self, model: Any, problem: Any, settings: RunSettings) -> Followed:
        task = SampleTask(model, problem)
        refuse_implicit(task)
        rate = settings.weight_decay
        if rate:
            check_decay(task, settings)
        level = -math.inf if rate else fit_level(task, settings)
        t_max = math.inf if settings.t_max is None else settings.t_max
        system = CentralIntegrator(task, self, rate, t_max)
        plan = planned(self, settings, system.unit, 0.02 * system.unit, level)
        plan = plan._replace(rests=not rate, goals=_goals(system, level))
        moments, outcome = follow(system, plan, system.at(0.0))
        recorded = {
            "oscillation": np.array([moment.oscillation for moment in moments]),
            "sharpness": np.array([moment.sharpness for moment in moments]),
        }
        return Followed(task.dataset(moments, recorded, rate), outcome, moments[-1].state)


def _goals(system: CentralIntegrator, level: float) -> tuple[Goal, ...]:
    """The loss to stop at, found within a step: late steps are long."""
    if level == -math.inf:
        return ()

    def outcome(now: Moment) -> Outcome:
        return Outcome(Kind.SOLVED, f"the target is met at {system.state_text(now)}")

    return (Goal(lambda now: system.log_loss(now) - level, outcome),)
