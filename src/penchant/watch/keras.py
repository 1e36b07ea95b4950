"""The watch as a callback of Keras with the backend JAX (extra stacks).

    from penchant.watch.keras import KerasWatch
    watching = KerasWatch(probe_inputs, labels=labels)
    model.fit(x, y, validation_data=(u, v), epochs=20, callbacks=[watching])
    watching.watch.report("run.nc", "run.png")

Keras keeps the weights of a running `fit` in its compiled step; the callback fetches them at the
steps of looks and glances alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from penchant.door import Invalid, door_as
from penchant.watch import watch
from penchant.watch.attached import Attached, needed
from penchant.watch.backends.backend import WHO
from penchant.watch.watcher import Watch

keras: Any = needed("keras")
Callback: Any = keras.callbacks.Callback


class KerasWatch(Callback):
    """Looks at a Keras model as `fit` trains it; `watch` is the Watch.

    The logs of `fit` are recorded: the loss as train_loss, other metrics of the training as
    train_accuracy and so on, those of the validation as val_loss and val_accuracy. State that no
    optimizer changes, such as that of BatchNormalization, stays as it is at the start.

    Parameters
    ----------
    probe_inputs
        Inputs of the model, as in `penchant.watch`.
    files
        The files to which the report is written at the end of training.
    options
        Options of `penchant.watch`, such as labels, output, to and budget.
    """

    def __init__(self, probe_inputs: Any, *, files: Iterable[Any] = (), **options: Any):
        super().__init__()
        self.attached = _KerasAttached(probe_inputs, None, files, options)
        self.step = 0

    @property
    def watch(self) -> Watch | None:
        """The watch, once training has started."""
        return self.attached.watch

    def on_train_begin(self, logs: Any = None) -> None:
        self.attached.begin(self.model, None, self.step)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.step += 1
        if self.watch is None:
            return
        weights = None
        if self.watch.looks.due(self.step) or self.watch.glances.due(self.step):
            self.model.jax_state_sync()
            weights = _weights(self.model)
        named = {f"train_{name}": value for name, value in (logs or {}).items()}
        self.watch(self.step, weights, **named)
        if self.watch.should_stop:
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if self.watch is not None:
            named = {n: value for n, value in (logs or {}).items() if n.startswith("val_")}
            self.model.jax_state_sync()
            self.watch(self.step, _weights(self.model), **named)

    def on_train_end(self, logs: Any = None) -> None:
        if self.watch is not None:
            self.watch.look(_weights(self.model))
            self.attached.end()


class _KerasAttached(Attached):
    @door_as(WHO)
    def _made(self, model: Any, optimizer: Any, step: int) -> Watch:
        if keras.backend.backend() != "jax":
            raise Invalid(
                f"the callback needs Keras with the backend jax, and it runs on "
                f"{keras.backend.backend()} (KERAS_BACKEND=jax, before keras is imported)"
            )
        fixed = [np.array(variable.value) for variable in model.non_trainable_variables]

        def apply(weights: Any, x: Any) -> Any:
            return model.stateless_call(weights, fixed, x, training=False)[0]

        given = dict(self.options)
        if model.optimizer is not None and "weight_decay" not in given:
            given["weight_decay"] = float(getattr(model.optimizer, "weight_decay", None) or 0.0)
            given.setdefault("learning_rate", lambda step: float(model.optimizer.learning_rate))
        return watch(apply, self.probe_inputs, parameters=_weights(model), step=step, **given)


def _weights(model: Any) -> list[Any]:
    """Copies of the trained arrays: the next step deletes those of the model."""
    return [np.array(variable.value) for variable in model.trainable_variables]
