"""Metrics as single numbers, read immediately or left on their device until they are needed."""

from __future__ import annotations

import math
from typing import Any

from penchant.watch.backends.backend import WHO


def unread(name: str, value: Any) -> Any:
    """A metric without waiting for its device: a copy on it, or the number if there is none."""
    if math.prod(getattr(value, "shape", ())) != 1:
        return number(name, value)
    if hasattr(value, "detach") and value.device.type != "cpu" and not value.is_complex():
        return value.detach().clone()  # a later change in place must not change it
    if type(value).__name__ == "ArrayImpl" and value.dtype.kind != "c":
        return value
    return number(name, value)


def number(name: str, value: Any) -> float:
    """A metric as a float: a number, or an array or tensor that holds a single one."""
    bare = value.detach() if hasattr(value, "detach") else value
    size = math.prod(getattr(bare, "shape", ()))
    try:
        if size == 1:
            return float(bare.item() if hasattr(bare, "item") else bare)
    except (TypeError, ValueError, RuntimeError):
        pass
    seen = f"shape {tuple(bare.shape)}" if size != 1 else type(value).__name__
    raise ValueError(f"{WHO}: the metric {name} must be a single real number, got {seen}")


def shown(step: Any) -> float:
    """The step for a list of failures; NaN if it is not a number."""
    try:
        return number("step", step)
    except ValueError:
        return float("nan")
