"""The panel in a watch: what it is shown at a look, and when the parameters are copied for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.watch.backends.backend import Backend
from penchant.watch.panel.instrument import Guard, InstrumentPanel, LookMoment, Row


class PanelRows:
    """The rows of a panel; `rate` gives the learning rate at a step.

    Updates are read off two calls in a row. The parameters of a call are copied only if a look may
    follow at the next one.
    """

    def __init__(
        self,
        panel: InstrumentPanel,
        backend: Backend,
        optimizer: Any,
        rate: Callable[[float], float],
    ):
        self.panel, self.backend = panel, backend
        self.optimizer, self.rate = optimizer, rate
        self.before: tuple[float, Mapping[str, Any]] | None = None
        self.last = -float("inf")  # step of the last call
        self.gap = 1.0  # steps between two calls

    def seen(self, step: float, parameters: Any, due: float | None) -> None:
        """End a call; `due` is the step of the next look, None if there may be none."""
        self.gap = step - self.last if step > self.last > -float("inf") else self.gap
        self.last = step
        if self.panel.steps_back and due is not None and step < due <= step + self.gap:
            arrays = self.backend.arrays(parameters)
            self.before = step, {name: array.copy() for name, array in arrays.items()}

    def row(self, step: float, parameters: Any, outputs: Array | None, guard: Guard) -> Row:
        """The numbers of a look; none if the outputs are not finite, and the run has diverged."""
        if outputs is None or not np.isfinite(outputs).all():
            return {}
        return self.panel.row(self._moment(step, parameters, outputs), guard)

    def late(
        self, step: float, parameters: Any, outputs: Array | None, kept: Any, guard: Guard
    ) -> Row:
        """The numbers of a look that was postponed, at copied parameters."""
        if outputs is None or not np.isfinite(outputs).all():
            return {}
        moment = LookMoment(step, self.backend.arrays(parameters), parameters, None, 0.0, outputs)
        return self.panel.row(moment, guard, kept)

    def keep(self, step: float, parameters: Any, guard: Guard) -> Any:
        """What must be stored of a look that is postponed."""
        return self.panel.keep(self._moment(step, parameters, None), guard)

    def _moment(self, step: float, parameters: Any, outputs: Array | None) -> LookMoment:
        near = self.before is not None and self.before[0] < step <= self.before[0] + self.gap
        return LookMoment(
            step,
            self.backend.arrays(parameters),
            parameters,
            self.optimizer,
            self.rate(step),
            outputs,
            self.before if near else None,
        )
