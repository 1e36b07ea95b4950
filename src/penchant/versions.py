"""The versions that a result was obtained with."""

from __future__ import annotations

import functools
import platform

PACKAGES = ("numpy", "scipy", "jax", "jaxlib", "sympy", "xarray")


def versions() -> dict[str, str]:
    """Name -> version of penchant, Python and the numerical packages, without importing them."""
    return dict(_read())


@functools.cache
def _read() -> dict[str, str]:
    """The same, read from disk once: that takes milliseconds."""
    from importlib.metadata import PackageNotFoundError, version

    import penchant

    numbers = {"penchant": penchant.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:
            continue
    return numbers
