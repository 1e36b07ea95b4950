"""The interface of a way to train: run a model on a problem and return the path it took."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from tacit.models.model import Model, Separable
from tacit.problems.classification import Classification
from tacit.problems.regression import Regression
from tacit.training.labels import Path

Problem = Regression | Classification
Given = ParamSpec("Given")
Result = TypeVar("Result")

#: called now and then with the fraction done and a short message
Progress = Callable[[float, str], None]


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


def separable(who: str, model: object, problem: object) -> tuple[Separable, Problem]:
    """`model` and `problem` if they are what a flow of linear predictors can train."""
    if not isinstance(problem, Problem):
        raise ValueError(
            f"{who}: the problem must be a Regression or a Classification, got "
            f"{type(problem).__name__}; wrap the data as Regression(X, y)"
        )
    if not isinstance(model, Separable):
        raise ValueError(
            f"{who}: the model must be a separable reparametrization of a linear predictor, such "
            f"as DiagonalNet or ProductNet, got {type(model).__name__}"
        )
    return model, problem
