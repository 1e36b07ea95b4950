"""How many threads BLAS and XLA use; this is decided only here.

BLAS gets one: matrix-vector work is slower with two, many times slower on busy cores, and with one
thread numbers repeat exactly. XLA keeps its threads where a single model is trained, and gets one
where the cores are shared out by processes.

The number of BLAS threads belongs to the whole process, and several Python threads may ask for the
limit at the same time. So those inside are counted under a lock: the first one sets the limit, the
last one that leaves restores what the first one saw. The environment is treated in the same way.
An OpenBLAS built on OpenMP is different: there each Python thread has a number of its own.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
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
XLA_VARIABLES = {"NPROC": "1"}
VARIABLES = {**BLAS_VARIABLES, **XLA_VARIABLES}


@functools.cache
def controller() -> Any:
    """The loaded BLAS libraries; looking for them takes milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401  (its BLAS must be loaded before it can be limited)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class Shared:
    """A context with a setting of the whole process, which holds while anybody is inside.

    `enter` makes the setting and returns the function that undoes it.
    """

    def __init__(self, enter: Callable[[], Callable[[], object]]):
        self.enter = enter
        self.lock = threading.Lock()
        self.inside = 0

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.undo = self.enter()
            self.inside += 1

    def __exit__(self, *failure: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.undo()


@functools.cache
def _libraries(of_one_thread: bool) -> tuple[Any, ...]:
    """The BLAS libraries whose number of threads belongs to a Python thread, or to the process."""
    blas = [library for library in controller().lib_controllers if library.user_api == "blas"]
    return tuple(library for library in blas if _is_openmp(library) is of_one_thread)


def _is_openmp(library: Any) -> bool:
    layer = getattr(library, "threading_layer", "")
    return bool(library.internal_api == "openblas" and layer == "openmp")


def _limit(libraries: tuple[Any, ...]) -> Callable[[], None]:
    """Set the libraries to one thread; the function that comes back restores them."""
    before = [(library, library.num_threads) for library in libraries]
    changed = [(library, number) for library, number in before if number != 1]
    _set_threads((library, 1) for library, _ in changed)
    return lambda: _set_threads(changed)


def _set_threads(numbers: Iterable[tuple[Any, int]]) -> None:
    for library, number in numbers:
        # threadpoolctl 3.8 obeys only the Python thread that was the first to set a number; here
        # the first to enter and the last to leave may be different ones
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(number)
        release(force=True)


def _set_variables(variables: Mapping[str, str]) -> Callable[[], None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)

    def restore() -> None:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)  # a cell may have cleared the environment
            else:
                os.environ[name] = value

    return restore


BLAS = Shared(lambda: _limit(_libraries(False)))
BLAS_ENVIRONMENT = Shared(lambda: _set_variables(BLAS_VARIABLES))
XLA_ENVIRONMENT = Shared(lambda: _set_variables(XLA_VARIABLES))


def one_blas_thread() -> AbstractContextManager[None]:
    """A context in which BLAS uses one thread; what was set before comes back after it."""
    return _one_in_this_thread() if _libraries(True) else BLAS


@contextlib.contextmanager
def _one_in_this_thread() -> Iterator[None]:
    """The same where some libraries have a number of threads for each Python thread."""
    with BLAS:
        restore = _limit(_libraries(True))
        try:
            yield
        finally:
            restore()


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
    with contextlib.ExitStack() as stack:
        stack.enter_context(BLAS_ENVIRONMENT)
        if xla:
            stack.enter_context(XLA_ENVIRONMENT)
        stack.enter_context(one_blas_thread())
        yield
