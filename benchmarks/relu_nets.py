"""W-F6ab: 20 scales x 10 seeds x 3 depths by exponential steps against an eager PyTorch loop.

Both train the same nets (unbiased, width 30) from the same starts to a loss of 1e-9. The rival is
gradient descent in float64 on one thread, by the interpreter that the environment variable
TORCH_PYTHON names (this one if it names none). Errors are root mean squares over the circle
against compiled descent with a step of 0.001, or a tenth of 1/lambda at the start where that is
smaller; the rival's step is 0.01 or half of 1/lambda at the start, for a larger one is unstable.
Its time is its steps, counted by the compiled loop, times the seconds of an eager step; runs of a
sample of starts stand for all of them, so that the whole is an extrapolation. Ours is all 600 runs
with their compilation, by the clock and by processor time.
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

DEPTHS, WIDTH, LOSS = (2, 3, 5), 30, 1e-9
CAP = 2_000_000  # steps of descent that are waited for


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
    """(function, X, y, start, step, loss, cap) -> (steps, loss, parameters), compiled."""
    import jax
    import jax.numpy as jnp

    @functools.partial(jax.jit, static_argnums=0)
    def descend(f: Any, X: Any, y: Any, start: Any, step: Any, target: Any, cap: Any) -> Any:
        both = jax.value_and_grad(lambda w: jnp.sum((f(w, X) - y) ** 2))

        def body(carry: Any) -> Any:
            k, _, slope, w = carry
            w = w - step * slope
            return k + 1, *both(w), w

        go_on = lambda c: (c[0] < cap) & (c[1] > target) & jnp.isfinite(c[1])  # noqa: E731
        k, loss, _, w = jax.lax.while_loop(go_on, body, (0, *both(start), start))
        return k, loss, w

    return descend


def sample(depth: int, scale: float, seed: int) -> dict[str, float]:
    """Steps and errors of descent and of ours on one start."""
    from tacit.claims.woodworth.network_runs import data, ended, net, start
    from tacit.precision import double_precision

    problem, model = data(seed), start(depth, scale, seed)
    task, shared = problem.training, net(depth, True)
    limit = 1 / np.linalg.norm(shared.jacobian(model.start(2), task.X), 2) ** 2
    pair = {}
    for name, step in (("fine", min(0.001, 0.1 * limit)), ("coarse", min(0.01, 0.5 * limit))):
        with double_precision():
            given = (model.function, task.X, task.y, model.start(2))
            k, loss, w = compiled_descent()(*given, step, LOSS, CAP)
        pair[name] = int(k), float(loss), shared.predict(np.asarray(w), problem.test.X)
    ours = ended(depth, scale, seed, task)
    outputs = shared.predict(ours.parameters, problem.test.X)
    fine = pair["fine"][2]
    done = max(pair["fine"][1], pair["coarse"][1]) <= LOSS
    return {"steps": pair["coarse"][0], "ours": ours.steps, "done": done,
            "error": float(np.sqrt(np.mean((pair["coarse"][2] - fine) ** 2))),
            "our error": float(np.sqrt(np.mean((outputs - fine) ** 2)))}  # fmt: skip


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
    chosen = ((0.1, 10.0), (0,)) if quick else ((1e-2, 1e-1, 1.0, 100.0), (0, 1, 3))
    took, work, failed = sweep(scales, seeds)
    runs = len(DEPTHS) * len(scales) * seeds
    print(f"ours, rtol 0.01: {runs} runs in {seconds(took)}, {seconds(work)} of processor time, "
          f"{failed} failed\n")  # fmt: skip
    rows, eager_total, errors = [], 0.0, []
    for depth in DEPTHS:
        found = [(scale, seed, sample(depth, scale, seed))
                 for scale in chosen[0] for seed in chosen[1]]  # fmt: skip
        each = rival(depth, start(depth, 1.0, 0), data(0).training, 20 if quick else 300)
        if each is None:
            return
        eager_total += each * float(np.mean([one["steps"] for *_, one in found])) * runs / 3
        for scale, seed, one in found:
            rows.append([depth, f"{scale:g}", seed, one["steps"], "" if one["done"] else "not done",
                         seconds(one["steps"] * each), f"{one['error']:.1e}", one["ours"],
                         f"{one['our error']:.1e}"])  # fmt: skip
        errors += [(one["error"], one["our error"]) for *_, one in found if one["done"]]
        print(f"depth {depth}: eager PyTorch {seconds(each)} of processor time a step")
    table(["depth", "alpha^D", "seed", "steps of 0.01", "", "eager time", "error", "our steps",
           "our error"], rows)  # fmt: skip
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
