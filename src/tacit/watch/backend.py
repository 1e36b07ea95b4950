"""What the watch needs of a model, whichever library it is written in."""

from __future__ import annotations

from typing import Any, Protocol

from tacit.arguments import Array

WHO = "watch"


class Backend(Protocol):
    """A model on fixed probe inputs; it keeps the parameters that it was made with, the start.

    `params` is what the caller passed at a step; a backend that reads a live module ignores it.
    No method changes the model, its gradients, its buffers or any random state.
    """

    names: tuple[str, ...]  # of the trained parameter arrays, shared ones once
    out_axis: int  # of arrays with more than two axes, the one that counts the outputs of a layer
    notes: tuple[str, ...]  # what the caller should know about how the model is looked at

    def check(self, params: Any) -> None:
        """Complains in one sentence unless the parameters are built as at the start."""

    def arrays(self, params: Any) -> dict[str, Any]:
        """The trained parameters by name, float32 or float64; they may be views of live ones."""

    def outputs(self, params: Any) -> Array:
        """f on the probe inputs, (samples, outputs)."""

    def kernel(self, params: Any) -> Array:
        """The tangent kernel on the probe inputs, (samples, samples)."""

    def linearized(self, params: Any) -> Array:
        """f0 + J0 (theta - theta0), the prediction of the model linearized at the start."""
