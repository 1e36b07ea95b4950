"""JAX, its NumPy and torch, imported when first used, which keeps `import penchant` fast.

The classes of xarray and matplotlib are for annotations alone and are never imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["Axes", "DataArray", "Dataset", "Figure", "jax", "jnp", "torch"]


class _Module:
    """A module that is imported with the first of its names."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    import torch
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset
else:
    Axes = DataArray = Dataset = Figure = Any
    jax, jnp, torch = _Module("jax"), _Module("jax.numpy"), _Module("torch")
