"""A watch that the callbacks of a training framework start, call, save and end."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from penchant.measures.kernels.inputs import mapped
from penchant.watch import watch
from penchant.watch.backends.backend import WHO
from penchant.watch.watcher import Watch


class Attached:
    """A watch that is made when training starts, or restored from the state of a checkpoint.

    An error becomes a warning of one sentence and training continues, unless `raise_errors`.
    """

    def __init__(self, probe_inputs: Any, module: str | None, files: Iterable[Any], options: Any):
        self.probe_inputs, self.module, self.files = probe_inputs, module, tuple(files)
        self.options = dict(options)
        self.watch: Watch | None = None
        self.model: Any = None
        self.saved: Mapping[str, Any] | None = None  # the state of a checkpoint, not loaded yet

    def begin(self, model: Any, optimizer: Any, step: int) -> None:
        """Make the watch of `model`, whose weights are loaded, unless the last watch continues."""
        if self._continues(model, step):
            return
        try:
            self.watch, self.model = self._made(model, optimizer, step), model
            if self.saved:
                self.watch.load_state_dict(dict(self.saved))
        except Exception as reason:
            if self.options.get("raise_errors"):
                raise
            first = (str(reason) or type(reason).__name__).splitlines()[0]
            text = first if first.startswith(f"{WHO}:") else f"{WHO}: {first}"
            warnings.warn(f"{text} (training continues without a watch)", stacklevel=2)
            self.watch = None
        self.saved = None

    def call(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Call the watch at a step, with metric names that can be written to a file."""
        if self.watch is not None:
            named = {re.sub(r"\W", "_", name): value for name, value in metrics.items()}
            self.watch(step, **named)

    def end(self) -> None:
        """Take a last look, and write the report if there are files."""
        if self.watch is not None:
            self.watch.look()
            if self.files:
                self.watch.report(*self.files)

    def state(self) -> dict[str, Any]:
        return {} if self.watch is None else self.watch.state_dict()

    def _continues(self, model: Any, step: int) -> bool:
        """True if a second fit continues the watched training."""
        if self.watch is None or self.saved or model is not self.model:
            return False
        steps = self.watch.log.steps
        return not steps or step >= steps[-1] > 0

    def _made(self, model: Any, optimizer: Any, step: int) -> Watch:
        looked_at = model if self.module is None else model.get_submodule(self.module)
        device = next(looked_at.parameters()).device
        x, warm = (
            mapped(given, lambda leaf: leaf.to(device) if hasattr(leaf, "to") else leaf)
            for given in (self.probe_inputs, self.options.get("warm_batch"))
        )
        given = {"optimizer": optimizer, **self.options, "warm_batch": warm}
        if "weight_decay" in given and "optimizer" not in self.options:
            del given["optimizer"]  # the weight decay of the user has priority
        return watch(looked_at, x, step=step, **given)


def needed(library: str) -> Any:
    """The library, or an error that names the extra."""
    try:
        return importlib.import_module(library)
    except ImportError:
        name = library.split(".")[0]
        raise ImportError(
            f"{WHO}: this callback needs the package {name}: pip install 'penchant[stacks]'"
        ) from None
