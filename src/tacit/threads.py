"""How many threads BLAS and XLA use; this is decided only here.

BLAS gets one: matrix-vector work is slower with two, many times slower on busy cores, and with one
thread numbers repeat exactly. XLA keeps its threads where a single model is trained, and gets one
where the cores are shared out by processes.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")

#: what BLAS libraries read when they load, in this process or in a child
BLAS_VARIABLES = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "BLIS_NUM_THREADS",
    ),
    "1",
)
#: the same and what XLA reads when it starts
VARIABLES = {**BLAS_VARIABLES, "NPROC": "1"}


@functools.cache
def controller() -> Any:
    """The loaded BLAS libraries; looking for them takes milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401  (its BLAS must be loaded before it can be limited)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread; what was set before comes back after it."""
    return controller().limit(limits=1, user_api="blas")


def on_one_blas_thread(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, with BLAS on one thread while it runs."""

    @functools.wraps(function)
    def limited(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        with one_blas_thread():
            return function(*args, **kwargs)

    return limited


@contextlib.contextmanager
def one_thread(*, xla: bool) -> Iterator[None]:
    """A context for a whole command or worker: one BLAS thread here, in libraries that load in it
    and in child processes; with `xla`, one for XLA too if it starts in it.
    """
    variables = VARIABLES if xla else BLAS_VARIABLES
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        with one_blas_thread():
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
