"""The panel that a user chose, made with the watch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penchant.door import door_as
from penchant.watch.backends.backend import WHO, Backend
from penchant.watch.measures import Labels
from penchant.watch.optimizer import RateReader
from penchant.watch.panel.activations import Activations
from penchant.watch.panel.balance import Balance
from penchant.watch.panel.edge import Edge
from penchant.watch.panel.instrument import Instrument, InstrumentPanel, PanelOptions
from penchant.watch.panel.losses import losses_of
from penchant.watch.panel.noise import Noise
from penchant.watch.panel.rows import PanelRows
from penchant.watch.panel.updates import Updates


@door_as(WHO)
def panel_of(
    options: PanelOptions,
    backend: Backend,
    parameters: Any,
    labels: Labels | None,
    rates: RateReader,
    step: float,
) -> PanelRows:
    """The instruments of `options` for a run that begins at `step`."""
    chosen, optimizer, rate = options.measures, rates.optimizer, rates.learning_rate
    needed = {"edge", "noise"}.intersection(chosen)
    losses: Any = losses_of(backend, labels, options.labels, options.loss) if needed else None
    makers: dict[str, Callable[[], Instrument]] = {
        "edge": lambda: Edge(backend, losses, options.batch_size, optimizer, rate(step)),
        "activations": lambda: Activations(backend, labels),
        "updates": lambda: Updates(backend),
        "noise": lambda: Noise(losses, labels),
        "balance": lambda: Balance(backend, parameters),
    }
    panel = InstrumentPanel({name: makers[name]() for name in chosen})
    return PanelRows(panel, backend, optimizer, rate)
