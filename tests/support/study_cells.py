"""Functions for the cells of the tests' studies; worker processes import them from here."""

import os
import signal
import time

import numpy as np

from tacit.records import Kind, NumericalError, Outcome


def plain(a, b=0.0, seed=0):
    """Numbers, a text and an array whose length depends on the cell."""
    rng = np.random.default_rng(seed)
    return {"sum": a + b, "word": f"a{a:g}", "curve": rng.normal(size=1 + int(a)), "whole": seed}


def slow(a, seed=0):
    time.sleep(0.003)
    return {"draw": float(np.random.default_rng([int(a), seed]).normal())}


def product(a, seed=0):
    """Numbers that would differ in the last bits with another number of BLAS threads."""
    rng = np.random.default_rng([int(a), seed])
    X = rng.normal(size=(300, 200))
    return {"values": np.linalg.eigvalsh(X.T @ X), "inverse": np.linalg.inv(X.T @ X).sum()}


def moody(a):
    """Every way to fail."""
    if a == 1:
        raise NumericalError("moody", Outcome(Kind.DIVERGED, "loss 1e300 after 7 steps"))
    if a == 2:
        raise ZeroDivisionError("no\nway")
    if a == 3:
        raise MemoryError("of a small machine")
    return {"value": a}


def marked(a, folder):
    """Leaves a file for every call, so that a test can count them."""
    with open(os.path.join(folder, f"{a:g}"), "a") as stream:
        stream.write("called\n")
    return {"value": 2.0 * a}


def deadly(a, folder):
    """Kills its own process: always at a = 5, and the first time at a = 7."""
    trace = os.path.join(folder, "been here")
    if a == 5 or (a == 7 and not os.path.exists(trace)):
        if a == 7:
            open(trace, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"value": a}


def greedy(a):
    return {"block": np.full(20_000, a)}


def wrong(a):
    return {"a": a}


def step(alpha, width=1.0, seed=0):
    """0 below a threshold that depends on the seed and the width, 1 above it."""
    return {"error": float(alpha > 0.1 * width * (1 + seed)), "smooth": alpha / width}


def boundary(x, y):
    """The distance to the circle of radius 1."""
    return {"distance": float(np.hypot(x, y) - 1)}


def waiting(a, folder):
    """A cell that takes ten minutes, and says which process computes it."""
    open(os.path.join(folder, f"pid-{os.getpid()}"), "w").close()
    time.sleep(600)
    return {"value": a}
