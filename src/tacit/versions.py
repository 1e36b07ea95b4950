"""The versions that a result was obtained with."""

from __future__ import annotations

import platform

PACKAGES = ("numpy", "scipy", "jax", "sympy", "xarray")


def versions() -> dict[str, str]:
    """Name -> version of tacit, Python and the numerical packages, without importing them."""
    from importlib.metadata import PackageNotFoundError, version

    import tacit

    found = {"tacit": tacit.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
