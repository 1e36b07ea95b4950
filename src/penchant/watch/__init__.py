"""A probe for your own training loop, for a PyTorch, Flax or Equinox module or a JAX function.

    watch = penchant.watch(model, probe_inputs, labels=labels, optimizer=optimizer)
    for step, batch in enumerate(loader):
        ...
        watch(step, train_loss=loss, test_accuracy=accuracy)
    watch.report("run.nc", "run.png")

It is light. Metrics are recorded at every call and stay on their device until a look. Looks at the
model are log-spaced in the steps and take at most 5% of the training time, which is counted as five
seconds at least (penchant.watch.schedule). Those that do not fit are taken at the end, from copies
of the parameters.

How it is called in each library:

    PyTorch       watch(step, ...)                    the module is read as it is now
    Linen         penchant.watch(module, x, parameters=variables), watch(step, variables, ...)
    NNX           penchant.watch(module, x), watch(step, ...)
    Equinox       penchant.watch(module, x), watch(step, module, ...); x goes through jax.vmap
    JAX           penchant.watch(apply, x, parameters=w), watch(step, w, ...)
    Lightning     from penchant.watch.lightning import LightningWatch, Trainer(callbacks=[...])
    Transformers  from penchant.watch.transformers import TransformersWatch, and as above
    Keras         from penchant.watch.keras import KerasWatch, callbacks=[...] of fit (JAX)
    a resumed run save watch.state_dict() with the checkpoint, and pass it to load_state_dict()

In a distributed run rank zero looks; parameters spread over processes (FSDP) are refused.

Limits. The outputs of one sample must not depend on the other samples. The forward hooks of a torch
module are run, and changes that a forward pass makes outside of parameters and buffers (a Python
counter) are not undone. Every floating-point leaf of the parameters of a JAX function counts as
trained, so close over batch statistics. Nuclear norms of matrices with more than 2048 rows and
columns are omitted.

The module has the name of its function, and can be called like the function.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, cast

from penchant.arguments import integer, positive, real
from penchant.door import door
from penchant.watch.backends.backend import LookOptions
from penchant.watch.backends.choice import backend_for
from penchant.watch.export import trackers_for
from penchant.watch.hooks import Hooks
from penchant.watch.idle import Idle, rank
from penchant.watch.measures import (
    Labels,
    Start,
    gain_row,
    kernel_row,
    linearized_row,
    output_row,
    read_labels,
)
from penchant.watch.optimizer import learning_rate_of, weight_decay_of
from penchant.watch.panel.instrument import read_options
from penchant.watch.regime import (
    DISTANCE_LIMITS,
    MISSED_LIMITS,
    REGIMES,
    RegimeNumbers,
    judge_regime,
)
from penchant.watch.reporting import report
from penchant.watch.rival import kernel_rival
from penchant.watch.watcher import Watch
from penchant.watch.widths import widths

__all__ = [
    "DISTANCE_LIMITS",
    "MISSED_LIMITS",
    "REGIMES",
    "RegimeNumbers",
    "Start",
    "Watch",
    "gain_row",
    "judge_regime",
    "kernel_rival",
    "kernel_row",
    "linearized_row",
    "output_row",
    "report",
    "watch",
    "widths",
]


@door
def watch(
    model: Any,
    probe_inputs: Any,
    *,
    parameters: Any = None,
    labels: Any = None,
    optimizer: Any = None,
    weight_decay: float | None = None,
    learning_rate: float | Callable[[float], float] | None = None,
    output: str | int | Callable[[Any], Any] | None = None,
    projections: int | None = 32,
    warm_batch: Any = None,
    to: Any = None,
    budget: float | None = 0.05,
    level: float | None = None,
    points_per_decade: int = 8,
    step: float = 0,
    batch_axis: int = 0,
    measure: str | Iterable[str] | None = None,
    loss: Callable[..., Any] | None = None,
    batch_size: int | None = None,
    on_look: Callable[[Watch], Any] | None = None,
    stop_when: Callable[[Watch], Any] | None = None,
    raise_errors: bool = False,
) -> Watch:
    """A Watch of `model`, to be called in its training loop; the model as it is now is the start.

    Parameters
    ----------
    model
        A torch.nn.Module, a module of Flax (Linen or NNX) or Equinox, or a JAX function
        apply(parameters, x).
    probe_inputs
        A batch of 10 to 200 fixed inputs, on which all kernels are computed. A mapping
        (input_ids=..., attention_mask=...) is passed to the model by name, a tuple by position.
    parameters
        The parameters of a JAX function or the variables of a Linen module, given here and at
        every call.
    labels
        The labels of these inputs: classes, signs -1 and +1, or numbers to fit. With them the
        record has the alignment of the kernel and the margin.
    optimizer
        The optimizer, whose learning rate and weight decay are read at every look: a torch
        optimizer or a list of them (Muon for the matrices, AdamW for the rest), an nnx.Optimizer
        or an optax state made with optax.inject_hyperparams. Of several groups or optimizers the
        group with most parameters counts.
    weight_decay
        The weight decay of the training, if no optimizer is given.
    learning_rate
        The learning rate, if no optimizer is given, or a function of the step that returns it.
        The forecast needs it: parameters decay by learning_rate * weight_decay in a step. With
        momentum m and the decay in the gradient it is 1/(1 - m) times that of the optimizer.
    output
        Which part of the return value of the model is used: a name ("logits"), a function of
        the return value, or the index of one output, or of one part of a tuple. By default it is
        the array, or its logits.
        The tangent kernel is the mean over all numbers that the model returns for a sample.
    projections
        If the model returns more than 512 numbers per sample, they are replaced by this many
        random sums of them, and a note in the report states the error. None takes all numbers.
    warm_batch
        A training batch whose statistics replace the fresh running statistics (of BatchNorm) at
        the start. Every look uses this state as it was at the start, since no optimizer moves it.
    to
        The trackers that get every look when it happens: "wandb", "mlflow", "trackio",
        ("tensorboard", folder), or a list of these. W&B gets a separate run in the group of the
        open one.
    budget
        The largest share of the training time that looks may take, which is counted as five
        seconds at least; None means no limit. The set-up (compilation and the first kernel) is not
        counted; `setup_seconds` states its time. Neither are looks that you ask for (`regime`,
        `look`, `report`, `figure`); `asked_seconds` of the record states theirs.
    level
        The test accuracy (or the test loss, in a record without accuracies) at which the task
        counts as solved; by default 0.95, or less for a test curve that levels off below it.
    points_per_decade
        The number of looks in each decade of steps.
    step
        The step at which the watch is made, for a run that is resumed.
    batch_axis
        The axis of `probe_inputs` that counts the samples: 1 for a model of (time, batch, ...)
        inputs. If `output` is no function, its outputs are (time, batch, ...), too; what a
        function returns has a row for each sample.
    measure
        Further measures that every look takes: "edge", "activations", "updates", "noise" or
        "balance", a list of these, or "all". Together they cost up to two looks.
    loss
        The loss of "edge" and "noise": a function of outputs and labels, or of the outputs alone
        if there are no labels, that returns the mean over a batch. By default the cross-entropy
        of classes, or else the mean squared error.
    batch_size
        The batch size of the training, with which "edge" is that of plain SGD.
    on_look
        A function of the watch that is called after every look in the loop.
    stop_when
        A function of the watch that is called at every look and glance (32 in each decade of
        steps). Once it has returned true, `should_stop` of the watch is true, and the callbacks
        for Lightning and Transformers stop their trainer.
    raise_errors
        Whether an error in a call is raised instead of being recorded in `failures`.

    Returns
    -------
    Watch
        To be called in the loop.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> def f(w, x):
    ...     return x @ w**2
    >>> w, x, y = np.ones(3), np.eye(3), np.array([1.0, 0.0, 0.0])
    >>> watch = penchant.watch(f, x, parameters=w, labels=y)
    >>> for step in range(1, 4):
    ...     w = w - 0.1 * 4 * w * (f(w, x) - y)
    ...     watch(step, w, train_loss=float(np.sum((f(w, x) - y) ** 2)))
    >>> len(watch.failures)
    0
    """
    if rank() > 0:
        return cast(Watch, Idle())
    if labels is not None and hasattr(labels, "detach"):
        labels = labels.detach().cpu()
    decay = weight_decay_of(weight_decay, optimizer)
    how = LookOptions(output, projections, warm_batch, batch_axis)
    backend, given = backend_for(model, probe_inputs, parameters, how)

    def read(samples: int, count: int) -> Labels | None:
        return None if labels is None else read_labels(labels, samples, count)

    return Watch(
        backend,
        given,
        read,
        weight_decay=decay,
        optimizer=optimizer,
        learning_rate=learning_rate_of(learning_rate, optimizer),
        trackers=trackers_for(to),
        hooks=Hooks(on_look, stop_when),
        panel=read_options(measure, loss, batch_size, labels),
        budget=None if budget is None else positive("budget", budget),
        level=None if level is None else positive("level", level),
        points_per_decade=integer("points_per_decade", points_per_decade, least=1),
        step=real("step", step),
        raise_errors=bool(raise_errors),
    )


class _CallableModule(types.ModuleType):
    """A module that can be called, because it hides the function of the same name."""

    __call__ = staticmethod(watch)


__signature__ = inspect.signature(watch)
__doc__ = f"{__doc__}\n{inspect.getdoc(watch)}"
sys.modules[__name__].__class__ = _CallableModule
