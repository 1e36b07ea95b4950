"""Sparse recovery by subgradient descent: a million steps against eager PyTorch, and N's grid.

n=100, N=30, s=5, step 0.1, beta 1e-5 (N). PyTorch takes the same steps in float64 on one thread,
in three ways: as it is usually written, with autograd and a sign added to the gradient; with the
gradient derived by hand; and as lean as eager code gets, with every operation in place. Every
eager step costs the same, so that it takes some and their time is scaled up. The grid is 6 steps
from .005 to .1 by 6 betas from 1e-6 to 1e-1, up to 1e7 steps; a run ends when |a - a*|^2 <= 1e-4,
which is t2, or after 5 |a_hat - a*|_inf / (step beta) steps, when its error has long been flat.
"""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np
import rivals  # noqa: F401  (holds XLA to one core, before JAX starts)
from clock import ONE_THREAD, arguments, best_of, ratio, seconds, table

from penchant import L1, GradientDescent, Path, Regression, Steps, train
from penchant.models import LinearPredictor
from penchant.problems import sparse_recovery
from penchant.stop import Below

STEP, BETA, START, REACHED = 0.1, 1e-5, 1e-6, 1e-4


def ours(problem: Regression, steps: int) -> Path:
    model, method = LinearPredictor(START), GradientDescent(STEP, subgradient=True)
    return train(model, problem, method, penalty=BETA * L1(), stop=Steps(steps))


def usual(torch: Any, X: Any, y: Any, steps: int) -> np.ndarray:
    """The loop as it is usually written, with autograd."""
    a = torch.full((X.shape[1],), START, dtype=torch.float64, requires_grad=True)
    for _ in range(steps):
        loss = 0.5 * ((X @ a - y) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            a -= STEP * (a.grad + BETA * a.sign())
        a.grad = None
    return a.detach().numpy()


def derived(torch: Any, X: Any, y: Any, steps: int) -> np.ndarray:
    """The loop with its gradient derived by hand."""
    a = torch.full((X.shape[1],), START, dtype=torch.float64)
    with torch.no_grad():
        for _ in range(steps):
            a = a - STEP * (X.T @ (X @ a - y) + BETA * a.sign())
    return a.numpy()


def lean(torch: Any, X: Any, y: Any, steps: int) -> np.ndarray:
    """The least that eager code can do: 2 products, a sign and 2 updates, all in place."""
    a = torch.full((X.shape[1],), START, dtype=torch.float64)
    residual, pull, sign = torch.empty_like(y), torch.empty_like(a), torch.empty_like(a)
    columns = X.T.contiguous()
    with torch.no_grad():
        for _ in range(steps):
            torch.addmv(y, X, a, beta=-1.0, out=residual)
            torch.mv(columns, residual, out=pull)
            torch.sign(a, out=sign)
            pull.add_(sign, alpha=BETA)
            a.sub_(pull, alpha=STEP)
    return a.numpy()


def eager(problem: Regression, steps: int, whole: int, mine: float, judged: bool) -> None:
    """Prints PyTorch's times for `whole` steps and the ratios to ours, or that it is missing."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        print("PyTorch is not installed, so nothing was compared: pip install torch==2.13.0")
        return
    torch.set_num_threads(1)
    X, y = torch.tensor(problem.X), torch.tensor(problem.y)
    wanted = ours(problem, steps).predictor
    rows, ratios = [], {}
    for name, loop in (("autograd", usual), ("by hand", derived), ("lean", lean)):
        took, found = best_of(6, lambda loop=loop: loop(torch, X, y, steps))
        scaled = took * whole / steps
        ratios[name] = scaled / mine
        apart = f"{np.abs(found - wanted).max():.1e}"
        rows.append([f"PyTorch {torch.__version__}, {name}", seconds(took / steps),
                     seconds(scaled), f"{scaled / mine:.3g}", apart])  # fmt: skip
    head = ["eager loop", "a step", f"{whole} steps", "ratio", f"apart after {steps} steps"]
    table(head, rows)
    ratio("eager PyTorch / ours", ratios["autograd"], ">= 20", judged=judged)


def million(problem: Regression, steps: int, trial: int, judged: bool) -> None:
    """Prints our time for `steps` steps, with and without compiling, and compares."""
    begin = time.perf_counter()
    ours(problem, 10)
    first = time.perf_counter() - begin
    took, path = best_of(3, lambda: ours(problem, steps))
    error = float(path.dataset.test_error[-1])
    table(["ours", "a step", f"{steps} steps", "first call", "records", "|a - a*|^2"],
          [["Subgradient", seconds(took / steps), seconds(took), seconds(first),
            path.dataset.sizes["time"], f"{error:.1e}"]])  # fmt: skip
    eager(problem, trial, steps, took, judged)


def reach(problem: Regression, step: float, beta: float, most: int) -> tuple[Path, float]:
    """(path, seconds) of one place of the grid."""
    least = np.linalg.pinv(problem.X) @ problem.y
    assert problem.truth is not None
    last = 5 * float(np.abs(least - problem.truth).max()) / (step * beta)
    steps = int(min(most, last + 1000))
    stop = [Steps(steps), Below("test_error", REACHED)]
    begin = time.perf_counter()
    path = train(
        LinearPredictor(START),
        problem,
        GradientDescent(step, subgradient=True),
        penalty=beta * L1(),
        stop=stop,
    )
    return path, time.perf_counter() - begin


def grid(problem: Regression, size: int, most: int, judged: bool) -> None:
    """Prints t2 for every place of the grid, and the time of all."""
    sizes, betas = np.geomspace(0.005, 0.1, size), np.geomspace(1e-6, 1e-1, size)
    rows, total, taken = [], 0.0, 0
    for step in sizes:
        cells = []
        for beta in betas:
            path, took = reach(problem, float(step), float(beta), most)
            total, taken = total + took, taken + path.steps
            cells.append(f"{path.steps:.3g}" if "error" in path.outcome.sentence and path.outcome.ok
                         else f"> {path.steps:.3g}")  # fmt: skip
        rows.append([f"{step:.3g}", *cells])
    table(["t2: step, beta", *(f"{beta:.0e}" for beta in betas)], rows)
    print(f"{taken:.3g} steps in {seconds(total)}, {seconds(total / taken)} each with everything")
    ratio("the grid / 5 minutes", total / 300, "<= 1", judged=judged)


def main() -> None:
    quick = arguments(__doc__ or "").quick
    problem = sparse_recovery(30, 100, sparsity=5, seed=0)
    print(f"Sparse recovery, n=100, N=30, step {STEP:g}, beta {BETA:g}. {ONE_THREAD}\n")
    million(problem, 20_000 if quick else 10**6, 1_000 if quick else 5_000, judged=not quick)
    print()
    grid(problem, 2 if quick else 6, 10**5 if quick else 10**7, judged=not quick)


if __name__ == "__main__":
    main()
