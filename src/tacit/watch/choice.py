"""Which backend looks at a model."""

from __future__ import annotations

import sys
from typing import Any

from tacit.watch.backend import WHO, Backend


def backend_for(model: Any, probe_inputs: Any, parameters: Any, outputs: str | int) -> Backend:
    """The backend of a torch.nn.Module, or of a JAX function apply(parameters, x)."""
    if isinstance(probe_inputs, dict | tuple | set):
        raise ValueError(
            f"{WHO}: probe_inputs must be one array with a sample per row, got a "
            f"{type(probe_inputs).__name__}; wrap the model in one that takes a single array"
        )
    torch = sys.modules.get("torch")  # a module of torch cannot exist before torch is imported
    if torch is not None and isinstance(model, torch.nn.Module):
        from tacit.watch.torch_backend import TorchBackend

        if parameters is not None:
            raise ValueError(
                f"{WHO}: parameters are read from the torch module itself; leave parameters= out"
            )
        return TorchBackend(model, probe_inputs, outputs)
    if not callable(model):
        raise ValueError(
            f"{WHO}: model must be a torch.nn.Module (which needs torch: pip install "
            f"'tacit[torch]') or a JAX function apply(parameters, x), got {type(model).__name__}"
        )
    if parameters is None:
        raise ValueError(
            f"{WHO}: a JAX function needs its parameters: tacit.watch(apply, x, parameters=w), "
            "and then watch(step, parameters, ...) at every call"
        )
    from tacit.watch.jax_backend import JaxBackend

    return JaxBackend(model, parameters, probe_inputs, outputs)
