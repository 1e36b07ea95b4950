"""Stop rules on what is learned: an accuracy, a recorded number, a direction."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from numpy.typing import ArrayLike

from penchant.arguments import Array, positive, real, unit_vector
from penchant.door import Invalid, door
from penchant.measures.distances import turn
from penchant.training.stop import Stop


@dataclasses.dataclass(frozen=True, repr=False)
class Accuracy(Stop):
    """Stop at the first record with a `train` and a `test` accuracy of at least these.

    Parameters
    ----------
    train
        The accuracy on the training samples; None sets no condition.
    test
        The accuracy on the test samples; None sets no condition.

    Examples
    --------
    >>> import penchant
    >>> problem, net = penchant.problems.three_points("3b"), penchant.DiagonalNet(2, alpha=1.0)
    >>> stop = [penchant.Steps(1000), penchant.stop.Accuracy(train=1.0)]
    >>> penchant.train(net, problem, penchant.GradientDescent(0.1), stop=stop).outcome.ok
    True
    """

    train: float | None = None
    test: float | None = None

    @door
    def __post_init__(self) -> None:
        for name, level in self.levels.items():
            if not 0 < real(name.split("_")[0], level) <= 1:
                raise Invalid(f"levels must be above 0 and at most 1, got {level:g}")
        if not self.levels:
            raise Invalid("give train= or test=, an accuracy to reach")

    @property
    def levels(self) -> dict[str, float]:
        given = {"train_accuracy": self.train, "test_accuracy": self.test}
        return {name: level for name, level in given.items() if level is not None}

    def missed(self, numbers: Mapping[str, float]) -> str | None:
        low = {name: level for name, level in self.levels.items() if not numbers[name] >= level}
        return listed({name: f"{numbers[name]:.4g} below {low[name]:g}" for name in low}) or None

    def __str__(self) -> str:
        return listed({name: f"{level:g}" for name, level in self.levels.items()})


def listed(texts: Mapping[str, str]) -> str:
    """Recorded numbers with their texts, in words."""
    return " and ".join(f"{name.replace('_', ' ')} {text}" for name, text in texts.items())


@dataclasses.dataclass(frozen=True, repr=False)
class Below(Stop):
    """Stop at the first record where the recorded number `name` is at most `value`.

    Parameters
    ----------
    name
        The name of a recorded number.
    value
        The level that it must fall to.

    Examples
    --------
    >>> import penchant
    >>> problem, net = penchant.problems.three_points("3b"), penchant.DiagonalNet(2, alpha=1.0)
    >>> stop = [penchant.Steps(10_000), penchant.stop.Below("loss", 0.1)]
    >>> penchant.train(net, problem, penchant.GradientDescent(0.1), stop=stop).outcome.ok
    True
    """

    words, checks = "{name} {value:g}", {"value": real}
    name: str
    value: float

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ValueError(f"Below: name must be that of a recorded number, got {self.name!r}")
        super().__post_init__()

    @property
    def levels(self) -> dict[str, float]:
        return {self.name: self.value}

    def missed(self, numbers: Mapping[str, float]) -> str | None:
        value = numbers[self.name]
        return None if value <= self.value else f"{self.name} {value:.3g} above {self.value:g}"


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class Near(Stop):
    """Stop once the predictor is within `degrees` of `direction`.

    Parameters
    ----------
    direction
        A vector with an entry per feature.
    degrees
        The largest angle.

    Examples
    --------
    >>> import penchant
    >>> problem, net = penchant.problems.three_points("3b"), penchant.DiagonalNet(2, alpha=0.1)
    >>> goal = penchant.max_margin(problem, penchant.L1()).beta
    >>> stop = penchant.stop.Near(goal, degrees=10)
    >>> path = penchant.train(net, problem, penchant.DualFlow(), stop=stop)
    >>> round(float(penchant.measures.angle(path.predictor, goal)), 4)
    10.0
    """

    directional, words = True, "{degrees:g} degrees from the direction"
    direction: Array
    degrees: float

    @door
    def __init__(self, direction: ArrayLike, degrees: float) -> None:
        object.__setattr__(self, "direction", unit_vector("direction", direction))
        object.__setattr__(self, "degrees", positive("degrees", degrees))

    def gap(self, predictor: Array) -> float:
        return float(turn(self.direction, predictor)) - self.degrees if predictor.any() else 180.0
