"""What the whole suite shares: compiled programs, and fewer collections of garbage."""

import gc
import os
import sys
import tempfile
from importlib.metadata import version

# two workers share two cores: threads that spin for each other's work cost more than they give
os.environ.setdefault("OMP_NUM_THREADS", "1")
# most programs of a test run for milliseconds and compile for a second, much of it in XLA's newer
# emitters; jaxlib 0.12 has no such flag and stops at it, 0.8 and 0.10 were tried
KNOWN = tuple(int(part) for part in version("jaxlib").split(".")[:2]) < (0, 11)
FAST = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
PROGRAMS = {
    "JAX_COMPILATION_CACHE_DIR": "",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}


def pytest_configure(config):
    """A program that one test has compiled is read by the others, in both workers.

    A file that is read while the other worker writes it is a warning of JAX, which then compiles.
    """
    sys.dont_write_bytecode = True  # Python takes a module edited within a second for unchanged
    if not hasattr(config, "workerinput"):  # workers inherit the folder
        folder = tempfile.TemporaryDirectory(
            prefix="penchant-programs-", ignore_cleanup_errors=True
        )
        config.add_cleanup(folder.cleanup)
        # a hundred child processes would each compile all sources again, and so would each worker
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ |= PROGRAMS | {"JAX_COMPILATION_CACHE_DIR": folder.name}
    config.addinivalue_line("filterwarnings", "ignore:Error reading persistent compilation cache")
    if KNOWN and config.option.markexpr == "not slow":  # what is slow runs as it does for a user
        os.environ.setdefault("XLA_FLAGS", FAST)


def pytest_runtest_setup(item):
    """Programs are optimized for the papers alone, whose runs are long: compiling takes a third of
    the time of all other tests that use JAX, and half of that is optimization.
    """
    optimized = "papers" in item.path.parts or item.config.option.markexpr != "not slow"
    if (jax := sys.modules.get("jax")) is not None:
        jax.config.update("jax_disable_most_optimizations", not optimized)


def pytest_collection_finish():
    """What is imported by now and every traced program stay: collections, a twentieth of the
    suite's time, mostly find nothing. JAX has read its variables; child processes compile for
    themselves, since some are killed while they write.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    for name in PROGRAMS:
        os.environ.pop(name, None)
