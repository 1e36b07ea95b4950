"""BLAS on one thread: matrix-vector work is slower with two, and numbers repeat exactly."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any


@functools.cache
def controller() -> Any:
    """The loaded BLAS libraries; looking for them takes milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401  (its BLAS must be loaded before it can be limited)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread; what was set before comes back after it."""
    return controller().limit(limits=1, user_api="blas")
