"""The backend for a model."""

from __future__ import annotations

import sys
from typing import Any

from penchant.watch.backends.backend import WHO, Backend, LookOptions


def backend_for(
    model: Any, probe_inputs: Any, parameters: Any, how: LookOptions
) -> tuple[Backend, Any]:
    """The backend for a module or a function, and the parameters of its first call."""
    if isinstance(probe_inputs, set | str):
        raise ValueError(
            f"{WHO}: probe_inputs must be an array with a sample per row, or a tuple or mapping of "
            f"such arrays, got a {type(probe_inputs).__name__}"
        )
    if any(kind.__module__.split(".")[0] == "keras" for kind in type(model).__mro__):
        raise ValueError(
            f"{WHO}: a Keras model is watched by the callback in penchant.watch.keras, or "
            "as a function of its trainable variables: with the backend jax, penchant.watch("
            "lambda w, x: model.stateless_call(w, model.non_trainable_variables, x)[0], x, "
            "parameters=[v.value for v in model.trainable_variables])"
        )
    torch = sys.modules.get("torch")  # a module of torch cannot exist before torch is imported
    if torch is not None and isinstance(model, torch.nn.Module):
        from penchant.watch.backends.torch_backend import TorchBackend

        if parameters is not None:
            raise ValueError(
                f"{WHO}: parameters are read from the torch module itself; leave parameters= out"
            )
        return TorchBackend(model, probe_inputs, how), None
    from penchant.watch.backends.jax_backend import JaxBackend
    from penchant.watch.backends.jax_models import jax_model

    known, given = jax_model(model, parameters)
    return JaxBackend(known, given, probe_inputs, how), given
