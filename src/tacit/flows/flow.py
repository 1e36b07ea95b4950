"""The interface of a way to train: run a model on a problem and return the path it took."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from tacit.arguments import integer, positive, real
from tacit.flows.path import Path
from tacit.flows.schedule import points_per_decade
from tacit.models.model import Model
from tacit.training.exact.task import Problem
from tacit.training.task import Progress

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Flow(abc.ABC):
    """A training method with its settings; nothing about one run is kept in it."""

    @abc.abstractmethod
    def run(self, model: Model, problem: Problem, progress: Progress | None = None) -> Path:
        """Train `model` on `problem`.

        A Regression has the squared loss sum_n (f(x_n) - y_n)^2, a Classification the mean exp
        or logistic loss.
        """

    def run_decayed(
        self, model: Model, problem: Problem, rate: float, progress: Progress | None = None
    ) -> Path:
        """The same on loss + (rate/2) |parameters|^2; see `WeightDecay`, which calls this."""
        raise ValueError(
            f"WeightDecay: {type(self).__name__} has no weight decay; wrap DualFlow (exact, "
            "diagonal nets), ParameterFlow (any model) or GradientDescent"
        )

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """What is needed to build this flow again, as plain JSON values."""


def within_float64(
    run: Callable[Concatenate[Any, Given], Result],
) -> Callable[Concatenate[Any, Given], Result]:
    """`run` of a flow, with a sentence where its data or its start lead beyond float64."""

    @functools.wraps(run)
    def checked(self: Any, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                return run(self, *args, **kwargs)
        except (FloatingPointError, OverflowError):
            sizes = [
                f"|{name}| up to {np.abs(getattr(data, name)).max():.3g}"
                for data in (*args, *kwargs.values())
                for name in ("X", "y")
                if isinstance(getattr(data, name, None), np.ndarray)
            ]
            seen = f" ({', '.join(sizes)})" if sizes else ""
            raise ValueError(
                f"{type(self).__name__}: the squares or products of this problem{seen} and this "
                "start are beyond float64; rescale the data or take another start"
            ) from None

    return checked


def decayed(flow: Flow, rate: float) -> dict[str, Any]:
    """The description of `flow` under weight decay."""
    return {"flow": "WeightDecay", "rate": rate, "of": flow.describe()}


def check(who: str, flow: Any) -> None:
    """Refuse settings that no flow can run with."""
    if real(who, "loss", flow.loss, rule="a finite number >= 0") < 0:
        raise ValueError(f"{who}: loss must be >= 0, got {flow.loss}")
    if flow.t_max is not None:
        positive(who, "t_max", flow.t_max)
    if not 1e-13 <= positive(who, "rtol", flow.rtol) <= 1e-2:
        raise ValueError(f"{who}: rtol must be between 1e-13 and 1e-2, got {flow.rtol}")
    points_per_decade(who, flow.points_per_decade)
    integer(who, "max_steps", flow.max_steps, least=1)
