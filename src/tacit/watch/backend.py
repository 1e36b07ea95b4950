"""What the watch needs of a model, whichever library it is written in, and the choice of one."""

from __future__ import annotations

import sys
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


def backend_for(model: Any, probe_inputs: Any, params: Any, outputs: str | int) -> Backend:
    """The backend of a torch.nn.Module, or of a JAX function apply(params, x)."""
    if isinstance(probe_inputs, dict | tuple | set):
        raise ValueError(
            f"{WHO}: probe_inputs must be one array with a sample per row, got a "
            f"{type(probe_inputs).__name__}; wrap the model in one that takes a single array"
        )
    torch = sys.modules.get("torch")  # a module of torch cannot exist before torch is imported
    if torch is not None and isinstance(model, torch.nn.Module):
        from tacit.watch.torch_backend import TorchBackend

        if params is not None:
            raise ValueError(
                f"{WHO}: params are read from the torch module itself; leave params= out"
            )
        return TorchBackend(model, probe_inputs, outputs)
    if not callable(model):
        raise ValueError(
            f"{WHO}: model must be a torch.nn.Module (which needs torch: pip install "
            f"'tacit[torch]') or a JAX function apply(params, x), got {type(model).__name__}"
        )
    if params is None:
        raise ValueError(
            f"{WHO}: a JAX function needs its parameters: tacit.watch(apply, x, params=params), "
            "and then watch(step, params, ...) at every call"
        )
    from tacit.watch.jax_backend import JaxBackend

    return JaxBackend(model, params, probe_inputs, outputs)
