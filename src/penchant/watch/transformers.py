"""The watch as a callback of the Trainer of Transformers (extra stacks).

    from penchant.watch.transformers import TransformersWatch
    watching = TransformersWatch({"input_ids": ids}, output=lambda answer: answer.logits[:, -1])
    trainer = transformers.Trainer(model, args, train_dataset=data, callbacks=[watching])
    trainer.train()
    watching.watch.report("run.nc", "run.png")

Its state is a file in every checkpoint folder: trainer.train(resume_from_checkpoint=True) keeps
start, record and schedule.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from penchant.door import door_as
from penchant.store import whole
from penchant.watch.attached import Attached, needed
from penchant.watch.backends.backend import WHO
from penchant.watch.watcher import Watch

TrainerCallback: Any = needed("transformers").TrainerCallback

STATE = "penchant_watch.pt"


class TransformersWatch(TrainerCallback):
    """Looks at a model as its Trainer trains it; `watch` is the Watch.

    The loss that the Trainer logs is recorded as train_loss, and metrics that it evaluates keep
    their names (eval_loss). Learning rate and weight decay are read from the optimizer of the
    Trainer. In a distributed run only rank zero looks.

    Parameters
    ----------
    probe_inputs
        Inputs as the model gets them, usually a mapping with input_ids, as in `penchant.watch`.
    module
        The name of a submodule that is looked at instead of the whole model.
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
        self.attached = Attached(probe_inputs, module, files, options)

    @property
    def watch(self) -> Watch | None:
        """The watch, once training has started."""
        return self.attached.watch

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None, **given: Any
    ) -> None:
        if state.is_world_process_zero:
            if state.global_step > 0:
                self.attached.saved = self._saved(args, state.global_step)
            self.attached.begin(model, given.get("optimizer"), state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.attached.call(state.global_step, {})
        if self.watch is not None and self.watch.should_stop:
            control.should_training_stop = True

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **given: Any
    ) -> None:
        if logs and "loss" in logs:
            self.attached.call(state.global_step, {"train_loss": logs["loss"]})

    def on_evaluate(
        self,
        args: Any,
        state: Any,
        control: Any,
        metrics: dict[str, Any] | None = None,
        **given: Any,
    ) -> None:
        numbers = {n: v for n, v in (metrics or {}).items() if isinstance(v, int | float)}
        self.attached.call(state.global_step, numbers)

    @door_as(WHO)
    def on_save(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if self.watch is not None:
            with whole(self._place(args, state.global_step)) as draft:
                needed("torch").save(self.attached.state(), draft)

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.attached.end()

    def _place(self, args: Any, step: int) -> Path:
        return Path(args.output_dir) / f"checkpoint-{step}" / STATE

    def _saved(self, args: Any, step: int) -> Any:
        """The state in the checkpoint of this step; None, with a warning, if it has none."""
        places = [self._place(args, step)]
        if isinstance(args.resume_from_checkpoint, str):
            places.insert(0, Path(args.resume_from_checkpoint) / STATE)
        for place in places:
            if place.exists():
                return needed("torch").load(place, weights_only=True)
        warnings.warn(
            f"{WHO}: the run continues from step {step}, but there is no state of a watch at "
            f"{places[-1]}; step {step} counts as the start",
            stacklevel=2,
        )
        return None
