"""Functions for the cells of the tests' studies; worker processes import them from here."""

import math
import os
import signal
import subprocess
import sys
import time

import numpy as np

import penchant
from penchant import NumericalError, Outcome
from penchant.lab import Kind


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


class Rude(BaseException):
    """An error that is no Exception."""


def leaving(a):
    """Ways to leave that are no Exception."""
    if a == 1:
        sys.exit(0)
    if a == 2:
        raise SystemExit("enough")
    if a == 3:
        raise Rude("no\nException")
    if a == 4:
        os.environ.clear()
    return {"value": a}


def reading(a):
    """What a cell and a child of it get from the standard input."""
    child = subprocess.run(["cat"], capture_output=True, check=True)
    return {"text": sys.stdin.read(), "child": child.stdout.decode(), "value": a}


def forking(a, folder):
    """The child comes back from the cell as well: with a value, an error or an exit."""
    child = os.fork()
    if child == 0:
        if a == 1:
            raise ValueError("of the child")
        if a == 2:
            sys.exit(7)
        return {"value": -1.0, "code": -1}
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(os.path.join(folder, f"{a:g}"), "a") as stream:
        stream.write("parent\n")
    return {"value": a, "code": code}


def doubtful(a):
    """Ways to return that are no success."""
    problem = penchant.problems.sparse_regression(4, 6, sparsity=1)
    if a == 1:
        return {}
    if a == 2:
        return {"value": math.nan, "curve": np.array([1.0, math.nan])}
    if a == 3:
        return {"value": 1.0, "curve": np.full(2, math.nan)}
    if a >= 4:
        wild = penchant.GradientDescent(1e3, check=False)
        tame = penchant.GradientDescent(1e-3)
        methods = [wild] if a == 4 else [tame, wild]
        for method in methods:
            path = penchant.train(
                penchant.models.LinearPredictor(), problem, method, stop=penchant.Steps(200)
            )
        return {"value": path.log_loss, "curve": np.ones(2)}
    return {"value": -math.inf, "curve": np.array([1.0, math.nan])}


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
