"""The probe for the user's own training loop, of a PyTorch module or a JAX function.

    watch = tacit.watch(model, probe_inputs, labels=labels, weight_decay=1e-4)
    for step, batch in enumerate(loader):
        ...
        watch(step, train_loss=loss, test_accuracy=accuracy)
    watch.report("run.nc", "run.png")

It is light: metrics are kept at every call (a number on an accelerator is waited for), looks at
the model are log-spaced in the steps and at most 5% of the training time (tacit.watch.schedule).

What it cannot do. The model must take one array with a sample per row, and return one number or
one row of numbers per sample that does not depend on the other samples; wrap it otherwise. Of a
torch module the forward hooks are run, and what a forward pass changes outside of parameters and
buffers (a Python counter) is not undone; parameters spread over processes are not gathered. Of a
JAX function every floating-point leaf of parameters counts as trained: close over batch statistics.
Nuclear norms of matrices with more than 2048 rows and columns are left out.

This room has the name of its function, and calling one is calling the other.
"""

from __future__ import annotations

import inspect
import sys
import types
from typing import Any

from tacit.arguments import integer, positive, real
from tacit.watch.backend import WHO
from tacit.watch.choice import backend_for
from tacit.watch.measures import Labels, read_labels
from tacit.watch.record import load
from tacit.watch.reporting import report
from tacit.watch.watcher import Watch

__all__ = ["Watch", "load", "report", "watch"]


def watch(
    model: Any,
    probe_inputs: Any,
    *,
    parameters: Any = None,
    labels: Any = None,
    weight_decay: float = 0.0,
    outputs: str | int = "mean",
    budget: float | None = 0.05,
    level: float | None = None,
    points_per_decade: int = 8,
    step: float = 0,
    raise_errors: bool = False,
) -> Watch:
    """A Watch of `model`, to be called in its training loop; the model as it is now is the start.

    Parameters
    ----------
    model
        A torch.nn.Module, or a JAX function apply(parameters, x).
    probe_inputs
        A batch of 10 to 200 fixed inputs as the model gets them; all kernels are looked at on
        it.
    parameters
        The parameters of a JAX function, given here and at every call.
    labels
        Classes, signs -1 and +1, or numbers to fit, of these inputs; they add alignment and
        margin.
    weight_decay
        The weight decay of the training.
    outputs
        "mean" takes the tangent kernel as the mean over the outputs, an index that of one
        output.
    budget
        The largest share of the training time that looks take; None is no limit. The set-up
        (compilation and the first kernel) comes on top and is stated in `setup_seconds`.
    level
        The test accuracy (of a record without accuracies, the test loss) at which the task
        counts as solved; by default 0.95, and less for a test curve that ends short of it.
    points_per_decade
        The number of looks in each decade of steps.
    step
        The step at which the watch is made, for a run that is resumed.
    raise_errors
        Raises what goes wrong in a call, instead of keeping it in `failures`.

    Returns
    -------
    Watch
        To be called in the loop.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> def f(w, x):
    ...     return x @ w**2
    >>> w, x, y = np.ones(3), np.eye(3), np.array([1.0, 0.0, 0.0])
    >>> watch = tacit.watch(f, x, parameters=w, labels=y)
    >>> for step in range(1, 4):
    ...     w = w - 0.1 * 4 * w * (f(w, x) - y)
    ...     watch(step, w, train_loss=float(np.sum((f(w, x) - y) ** 2)))
    >>> len(watch.failures)
    0
    """
    if labels is not None and hasattr(labels, "detach"):
        labels = labels.detach().cpu()
    decay = real(WHO, "weight_decay", weight_decay)
    if decay < 0:
        raise ValueError(f"{WHO}: weight_decay must be >= 0, got {decay:g}")
    if isinstance(outputs, str) and outputs != "mean":
        raise ValueError(f"{WHO}: outputs must be 'mean' or an index, got {outputs!r}")

    def read(samples: int, count: int) -> Labels | None:
        return None if labels is None else read_labels(labels, samples, count)

    return Watch(
        backend_for(model, probe_inputs, parameters, outputs),
        parameters,
        read,
        weight_decay=decay,
        budget=None if budget is None else positive(WHO, "budget", budget),
        level=None if level is None else positive(WHO, "level", level),
        points_per_decade=integer(WHO, "points_per_decade", points_per_decade, least=1),
        step=real(WHO, "step", step),
        raise_errors=bool(raise_errors),
    )


class _Room(types.ModuleType):
    """A room that can be called: once imported it hides the function of the same name."""

    __call__ = staticmethod(watch)


__signature__ = inspect.signature(watch)
__doc__ = f"{__doc__}\n{inspect.getdoc(watch)}"
sys.modules[__name__].__class__ = _Room
