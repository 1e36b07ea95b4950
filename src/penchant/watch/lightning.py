"""The watch as a callback of Lightning (extra stacks).

    from penchant.watch.lightning import LightningWatch
    watching = LightningWatch(probe_inputs, labels=labels)
    trainer = lightning.Trainer(callbacks=[watching])
    trainer.fit(module, loader)
    watching.watch.report("run.nc", "run.png")

The checkpoints of the trainer contain its state, so a resumed run keeps start, record and schedule.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penchant.watch.attached import Attached, needed
from penchant.watch.watcher import Watch

Callback: Any = needed("lightning.pytorch").Callback


class LightningWatch(Callback):
    """Looks at a LightningModule as it trains; `watch` is the Watch.

    The loss of training_step is recorded as train_loss, and metrics that validation logs keep their
    names. Learning rate and weight decay are read from the optimizer of the trainer. In a
    distributed run only rank zero looks.

    Parameters
    ----------
    probe_inputs
        Inputs of the module's forward, as in `penchant.watch`.
    module
        The name of a submodule that is looked at instead of the whole module.
    files
        The files to which the report is written at the end of training.
    options
        Options of `penchant.watch`, such as labels, output, to and budget.
    """

    def __init__(
        self,
        probe_inputs: Any,
        *,
        module: str | None = None,
        files: Iterable[Any] = (),
        **options: Any,
    ):
        super().__init__()
        self.attached = Attached(probe_inputs, module, files, options)

    @property
    def watch(self) -> Watch | None:
        """The watch, once training has started."""
        return self.attached.watch

    @property
    def state_key(self) -> str:
        return f"penchant.watch {self.attached.module or ''}".strip()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.is_global_zero:
            several = list(trainer.optimizers)
            optimizer = several if len(several) > 1 else several[0] if several else None
            self.attached.begin(pl_module, optimizer, trainer.global_step)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        self.attached.call(trainer.global_step, {} if loss is None else {"train_loss": loss})
        if self.watch is not None and self.watch.should_stop:
            trainer.should_stop = True

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.sanity_checking:
            self.attached.call(trainer.global_step, dict(trainer.callback_metrics))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.attached.end()

    def state_dict(self) -> dict[str, Any]:
        return self.attached.state()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.attached.saved = state_dict
