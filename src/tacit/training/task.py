"""What a driver needs to know of a model on a problem, whatever kind they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from tacit.arguments import Array

#: called now and then with the fraction done and a short message
Progress = Callable[[float, str], None]


class Moment(NamedTuple):
    """One moment of training as it is looked at from outside: NumPy arrays."""

    step: int
    t: float
    log_t: float
    parameters: Any


class Meter(Protocol):
    """Measures moments of one run and keeps those that are recorded."""

    first: Mapping[str, float]  # the numbers of the start

    def look(self, moment: Moment) -> Mapping[str, float]:
        """The numbers of a moment, among them `loss` and `log_loss`."""

    def bounds(self, moment: Moment) -> Iterator[Mapping[str, float]]:
        """Numbers that are no worse than the true ones and cost less, ever better; or none."""
        yield from ()

    def keep(self, moment: Moment, numbers: Mapping[str, float]) -> None:
        """Adds a moment to the records."""

    def dataset(self) -> Any:
        """The records as a labelled dataset, without attributes."""

    def stalled(self, moment: Moment) -> str | None:
        """Why nothing but decay can move the parameters any more, in words; None if they move."""
        return None


class Task(Protocol):
    """A checked pair of model and problem."""

    model: Any
    problem: Any
    start: Any  # the parameters, an array or a pytree of arrays
    objective: Any  # hashable: the loss as a function of data and parameters
    data: Any  # a pytree of arrays, one row per sample each
    samples: int
    outside: bool  # whether compiled steps go one by one, which convolutions need
    linear: bool  # whether there is a linear predictor

    def refuse_overflow(self, who: str) -> None:
        """A ValueError if the gradients of the start are beyond floating-point numbers."""
        return

    def trained(self, parameters: Any) -> Any:
        """Those of all parameters of the model that training moves, as the methods see them."""
        return parameters

    def whole(self, parameters: Any) -> Any:
        """All parameters of the model from those that training moves."""
        return parameters

    def full_data(self) -> Any:
        """`data`, or a shorter form of them for a run that sees all samples at every step."""
        return self.data

    def log_unit(self) -> float:
        """log of the loss that relative levels refer to."""

    def smoothness(self) -> float | None:
        """The largest eigenvalue of the Hessian of a quadratic loss; None for other losses."""

    def predictor(self, parameters: Any) -> Array:
        """The linear predictor."""

    def shaped(self, who: str, penalty: Any) -> Any:
        """The penalty as it acts on these parameters, or a ValueError where it cannot."""
        return penalty

    def meter(self, penalty: Any) -> Meter:
        """A new meter, which has the start as its first record."""

    def describe(self) -> dict[str, Any]:
        """The problem and the model as plain JSON values."""
