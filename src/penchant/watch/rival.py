"""The kernel machine beside a fine-tuned net: what the same net could learn with frozen features.

How it works. The model linearized at its present parameters, f(x) + <grad f(x), h>, is fitted to
classes by the mean cross-entropy plus ridge |h|^2 / 2, where the ridge is in units of the mean
eigenvalue of the kernel over the samples. With K = V S V^T on the inputs and all outputs, h has the
coordinates b in which f = f0 + V sqrt(S) b and |h| = |b|: the problem is strongly convex with the
constant of the ridge, and |gradient| / ridge bounds the distance of b to the minimizer.

Only parameters that require gradients count: for an adapter it is the kernel of the adapter.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.optimize
import scipy.special

from penchant.arguments import Array, positive
from penchant.door import Invalid, door
from penchant.measures.kernels.tangent import tangent_kernel
from penchant.records import Kind, Outcome, Record, Unsolved
from penchant.watch.measures import read_labels

MOST = 2000  # equations: samples times outputs
TURNS = 5000  # of the minimizer
CERTAIN = 1e-2  # relative error of the displacement above which the fit is refused
LOST = 1e-10  # eigenvalues below this share of the largest are rounding


@dataclasses.dataclass(frozen=True, repr=False)
class KernelRival(Record):
    """The kernel machine of a classifier: its `outputs` on other inputs, and `loss` on its own.

    `error` bounds the distance of the displacement to the exact one, relative to its length.
    """

    loss: float
    error: float
    outputs: Array = dataclasses.field(repr=False)

    @property
    def classes(self) -> Array:
        """The classes of the other inputs."""
        return self.outputs.argmax(axis=1)


@door
def kernel_rival(
    model: Any, inputs: Any, labels: Any, others: Any, *, ridge: float = 0.01
) -> KernelRival:
    """The model linearized at its present parameters, fitted to classes, on other inputs.

    Call it before fine-tuning. If the fine-tuned net is no better, its features did not have to
    move.

    Parameters
    ----------
    model
        A torch.nn.Module with one output for every class.
    inputs
        The inputs of the fit.
    labels
        Their classes.
    others
        The inputs on which it is compared.
    ridge
        The weight of |h|^2 / 2, in units of the mean eigenvalue of the kernel over the samples.

    Returns
    -------
    KernelRival
        Its outputs, with the error of the fit.

    References
    ----------
    Malladi et al. 2023, A kernel-based view of language model fine-tuning.
    """
    ridge = positive("ridge", ridge)
    start, kernel, other, cross = _kernels(model, inputs, others)
    samples, count = start.shape
    targets = read_labels(_plain(labels), samples, count)
    if targets.classes is None:
        raise Invalid(f"labels must be classes from 0 to {count - 1}")
    sizes, vectors = np.linalg.eigh(kernel)
    kept = sizes > LOST * sizes[-1]
    if not kept.any():
        raise Invalid("no parameter that requires gradients changes the outputs")
    roots = np.sqrt(sizes[kept])
    features = vectors[:, kept] * roots
    weight = ridge * float(sizes.mean()) / samples
    solution, loss, slope = _fitted(start, features, targets.classes, weight)
    error = slope / weight / max(float(np.linalg.norm(solution)), np.finfo(float).tiny)
    moved = cross @ (vectors[:, kept] @ (solution / roots))
    rival = KernelRival(loss, error, other + moved.reshape(other.shape))
    if not error <= CERTAIN:
        text = f"the fit has a relative error of {error:.1g} after {TURNS} turns; raise ridge="
        raise Unsolved(Outcome(Kind.BUDGET_SPENT, text), rival)
    return rival


def _plain(labels: Any) -> Any:
    return labels.detach().cpu() if hasattr(labels, "detach") else labels


def _kernels(model: Any, inputs: Any, others: Any) -> tuple[Array, Array, Array, Array]:
    """Outputs and kernels of the inputs, and those of the others with the inputs."""
    from penchant.measures.torch.module import TorchFunction, as_array, torch_inputs

    function = TorchFunction(model)
    values = []
    for name, x in (("inputs", inputs), ("others", others)):
        with function.quiet():
            outputs = function(function.parameters(), torch_inputs(function, name, x))
        values.append(as_array(outputs).reshape(len(outputs), -1))
    equations = values[0].size
    if values[0].shape[1] < 2 or equations > MOST:
        raise Invalid(
            f"kernel_rival takes a model with 2 outputs or more and at most {MOST} inputs times "
            f"outputs, got {values[0].shape[0]} x {values[0].shape[1]}"
        )
    kernel = np.asarray(tangent_kernel(model, inputs, outputs="full"))
    cross = np.asarray(tangent_kernel(model, others, inputs, outputs="full"))
    return values[0], kernel.reshape(equations, -1), values[1], cross.reshape(-1, equations)


def _fitted(
    start: Array, features: Array, classes: Any, weight: float
) -> tuple[Array, float, float]:
    """The coordinates of the minimizer, its mean cross-entropy and the norm of the gradient."""
    samples, rows = len(start), np.arange(len(start))

    def objective(b: Array) -> tuple[float, Array]:
        logits = start + (features @ b).reshape(start.shape)
        logs = scipy.special.log_softmax(logits, axis=1)
        pull = np.exp(logs)
        pull[rows, classes] -= 1
        gradient = features.T @ pull.ravel() / samples + weight * b
        return float(-logs[rows, classes].mean() + weight / 2 * (b @ b)), gradient

    options = {"maxiter": TURNS, "maxfun": 2 * TURNS, "ftol": 0.0, "gtol": 1e-12, "maxcor": 30}
    b = scipy.optimize.minimize(
        objective, np.zeros(features.shape[1]), jac=True, method="L-BFGS-B", options=options
    ).x
    value, gradient = objective(b)
    return b, value - weight / 2 * float(b @ b), float(np.linalg.norm(gradient))
