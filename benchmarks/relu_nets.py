"""W-F6ab: 20 scales x 10 seeds x 3 depths by exponential steps against an eager PyTorch loop.

Both train the same nets (unbiased, width 30) from the same starts to a loss of 1e-9. The rival is
gradient descent in float64 on one thread, by the interpreter that the environment variable
TORCH_PYTHON names (this one if it names none). Its step is 0.01, or half of 1/lambda at the start
where that is smaller, for a larger one is unstable. Its time is a time at which the flow was still
above the loss over its step, times the seconds of one eager step; a sample of the starts stands for
all of them, so that its whole is an extrapolation. Errors are root mean squares over the circle
against compiled descent with a step of 0.001, or a tenth of 1/lambda where that is smaller, at the
end or after 10 000 of these steps. Ours is all runs with their compilation. Processor time is
compared, which other programs disturb less.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

DEPTHS, WIDTH = (2, 3, 5), 30
LONG = 10_000  # small steps over which errors are compared, at most


def eager(file: str, depth: int, steps: int) -> float:
    """Seconds per step of PyTorch; needs only NumPy and PyTorch."""
    import torch

    torch.set_num_threads(1)
    given = np.load(file)
    X, y = torch.tensor(given["X"]), torch.tensor(given["y"])
    sizes = [2, *[WIDTH] * (depth - 1), 1]
    shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
    parts, at = [], 0
    for rows, columns in 2 * shapes:
        flat = given["start"][at : at + rows * columns].reshape(rows, columns)
        parts.append(torch.tensor(flat, requires_grad=True))
        at += rows * columns
    optimizer = torch.optim.SGD(parts, lr=1e-5)

    def net(weights: list[Any]) -> Any:
        hidden = X
        for W in weights[:-1]:
            hidden = torch.relu(hidden @ W.T)
        return (hidden @ weights[-1].T)[:, 0]

    def step() -> None:
        optimizer.zero_grad()
        loss = ((net(parts[:depth]) - net(parts[depth:]) - y) ** 2).sum()
        loss.backward()
        optimizer.step()

    times = []
    for _ in range(6):
        begin = time.process_time()
        for _ in range(steps):
            step()
        times.append((time.process_time() - begin) / steps)
    return min(times)


def rival(depth: int, model: Any, problem: Any, steps: int) -> float | None:
    """What `eager` measures in a process of its own; None without PyTorch."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "given.npz"
        np.savez(file, X=problem.X, y=problem.y, start=model.start(2))
        python = os.environ.get("TORCH_PYTHON", sys.executable)
        call = [python, __file__, "--eager", str(file), str(depth), str(steps)]
        done = subprocess.run(call, capture_output=True, text=True)
    if done.returncode:
        print(f"PyTorch did not run: {done.stderr.strip().splitlines()[-1]}")
        return None
    return float(json.loads(done.stdout))


@functools.cache
def compiled_descent() -> Any:
    """A compiled (function, X, y, start, step, steps) -> parameters."""
    import jax
    import jax.numpy as jnp

    @functools.partial(jax.jit, static_argnums=0)
    def descend(f: Any, X: Any, y: Any, start: Any, step: Any, steps: Any) -> Any:
        slope = jax.grad(lambda w: jnp.sum((f(w, X) - y) ** 2))
        return jax.lax.fori_loop(0, steps, lambda _, w: w - step * slope(w), start)

    return descend


def sample(depth: int, scale: float, seed: int) -> dict[str, float]:
    """The rival's steps to the loss, and the errors of both at one time, for one start."""
    from tacit.claims.woodworth.network_runs import RTOL, data, ended, net, start
    from tacit.flows.exponential import TangentFlow
    from tacit.precision import double_precision

    problem, model = data(seed), start(depth, scale, seed)
    task, shared = problem.training, net(depth, True)
    limit = 1 / np.linalg.norm(shared.jacobian(model.start(2), task.X), 2) ** 2
    whole = ended(depth, scale, seed, task)
    fine, coarse = min(0.001, 0.1 * limit), min(0.01, 0.5 * limit)
    t = min(whole.t, LONG * fine)
    found = []
    for step in (fine, coarse):
        with double_precision():
            given = (model.function, task.X, task.y, model.start(2))
            w = compiled_descent()(*given, step, round(t / step))
        found.append(shared.predict(np.asarray(w), problem.test.X))
    ours = TangentFlow(rtol=RTOL, t_max=t, loss=1e-30).end(model, task)
    found.append(shared.predict(ours.parameters, problem.test.X))
    apart = [float(np.sqrt(np.mean((outputs - found[0]) ** 2))) for outputs in found[1:]]
    # our last step, at most four times the one before, may have gone far beyond the target
    return {"t": t, "step": coarse, "steps": whole.t / 5 / coarse, "ours": whole.steps,
            "error": apart[0], "our error": apart[1]}  # fmt: skip


def sweep(scales: Any, seeds: int) -> tuple[float, float, int]:
    """(seconds, processor seconds, failed runs) of ours for all starts, in a fresh state."""
    from tacit.claims.woodworth.network_runs import data, ended
    from tacit.records import NumericalError

    begin, work, failed = time.perf_counter(), time.process_time(), 0
    for depth in DEPTHS:
        for scale in scales:
            for seed in range(seeds):
                try:
                    ended(depth, float(scale), seed, data(seed).training)
                except NumericalError:
                    failed += 1
    return time.perf_counter() - begin, time.process_time() - work, failed


def main() -> None:
    from clock import arguments, ratio, seconds, table

    quick = arguments(__doc__ or "").quick
    from tacit.claims.woodworth.network_runs import data, start

    scales, seeds = np.logspace(-3, 3, 4 if quick else 20), 2 if quick else 10
    chosen = (
        ((0.1, 10.0), (0,)) if quick else ((1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1e3), (1, 2, 3))
    )
    took, work, failed = sweep(scales, seeds)
    runs = len(DEPTHS) * len(scales) * seeds
    print(f"ours, rtol 0.01: {runs} runs in {seconds(took)}, {seconds(work)} of processor time, "
          f"{failed} failed\n")  # fmt: skip
    rows, eager_total, errors = [], 0.0, []
    for depth in DEPTHS:
        found = [(scale, seed, sample(depth, scale, seed))
                 for scale in chosen[0] for seed in chosen[1]]  # fmt: skip
        each = rival(depth, start(depth, 1.0, 0), data(0).training, 20 if quick else 200)
        if each is None:
            return
        # a sample with few extremes: the median over the seeds, the mean over the scales
        steps = np.reshape([one["steps"] for *_, one in found], (len(chosen[0]), -1))
        eager_total += each * float(np.median(steps, axis=1).mean()) * runs / len(DEPTHS)
        for scale, seed, one in found:
            rows.append([depth, f"{scale:g}", seed, f"{one['step']:.1e}", f"{one['steps']:.1e}",
                         seconds(one["steps"] * each), one["ours"], f"{one['t']:.2g}",
                         f"{one['error']:.1e}", f"{one['our error']:.1e}"])  # fmt: skip
        errors += [(one["error"], one["our error"]) for *_, one in found]
        print(f"depth {depth}: eager PyTorch {seconds(each)} of processor time a step", flush=True)
    table(["depth", "alpha^D", "seed", "its step", "its steps", "its time", "our steps",
           "errors at t", "its error", "our error"], rows)  # fmt: skip
    middle = np.median(errors, axis=0)
    print(f"median error: descent {middle[0]:.1e}, ours {middle[1]:.1e}")
    print(f"all {runs} runs by eager PyTorch: {seconds(eager_total)} (extrapolated)")
    ratio("our median error / that of descent", middle[1] / middle[0], "<= 1", judged=not quick)
    ratio("eager PyTorch / ours, processor time", eager_total / work, ">= 200", judged=not quick)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--eager"]:
        print(json.dumps(eager(sys.argv[2], *map(int, sys.argv[3:5]))))
    else:
        main()
