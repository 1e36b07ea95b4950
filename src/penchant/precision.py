"""How JAX computes, without touching its global settings: precision, and when."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

Given = ParamSpec("Given")
Result = TypeVar("Result")

#: what a net may start in, and with that is trained in
DTYPES: dict[str, Any] = {"single": np.float32, "double": np.float64}


def double_precision() -> contextlib.AbstractContextManager[Any]:
    """A context in which JAX computes in float64, whatever the global setting is."""
    import jax

    return jax.enable_x64(True)


def computed_now(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, computed when it is called also inside jax.jit, where it would be traced.

    Its arguments must be plain numbers and arrays; what it returns is a constant of the trace.
    """

    @functools.wraps(function)
    def computed(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        with _constants():
            return function(*args, **kwargs)

    return computed


def _constants() -> contextlib.AbstractContextManager[Any]:
    """Inside a trace, a context in which constants are computed at once; elsewhere nothing."""
    if "jax" not in sys.modules:
        return contextlib.nullcontext()
    import jax
    import jax.numpy as jnp

    # only there: the setting is part of the keys under which JAX keeps compiled programs
    traced = isinstance(jnp.zeros(()), jax.core.Tracer)
    return jax.ensure_compile_time_eval() if traced else contextlib.nullcontext()
