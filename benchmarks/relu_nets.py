"""20 scales x 10 seeds x 3 depths of W's Figure 6 against an eager PyTorch loop.

Both train the same nets (unbiased, width 30) from the same starts to a loss of 1e-9. The rival is
gradient descent in float64 on one thread, by the interpreter that the environment variable
TORCH_PYTHON names (this one if it names none). Its step is 0.01, or half of 1/lambda at the start
where that is smaller, for a larger one is unstable. Its time is extrapolated: the seconds of one
eager step, measured over 1200 of them at each depth, times the steps of every run, a time at which
the flow was still above the loss over the step of descent. Errors are root mean squares over the
circle, for a sample of the starts, against compiled descent with a step of 0.001, or a tenth of
1/lambda where that is smaller, at the end or after 10 000 of these steps. Ours is all runs with
their compilation. Processor time is compared, which other programs disturb less.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
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
Start = tuple[int, float, int]  # depth, alpha^D, seed
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


@functools.cache
def limit(depth: int, scale: float, seed: int) -> float:
    """1/lambda at the start: descent on the sum of squares is stable below it."""
    from penchant_papers.woodworth2020.figures.circle_nets import data, gradients, start

    model = start(depth, scale, seed)
    J = gradients(model, model.start(2), data(seed).training.X)
    return float(np.linalg.norm(J, 2) ** -2)


def coarse(start: Start) -> float:
    """The step of the rival."""
    return min(0.01, 0.5 * limit(*start))


def sample(start_: Start, end: float) -> dict[str, float]:
    """The errors of both at one time, for one start."""
    from penchant import Time, train
    from penchant.lab import double_precision
    from penchant.methods import TangentFlow
    from penchant.record import At
    from penchant.stop import Interpolated
    from penchant_papers.woodworth2020.figures.circle_nets import RTOL, data, start

    problem, model = data(start_[2]), start(*start_)
    task, fine = problem.training, min(0.001, 0.1 * limit(*start_))
    t = min(end, LONG * fine)
    found = []
    for step in (fine, coarse(start_)):
        with double_precision():
            given = (model.function, task.X, task.y, model.start(2))
            w = compiled_descent()(*given, step, round(t / step))
        found.append(model.function(np.asarray(w), problem.test.X))
    rules = [Time(t), Interpolated(1e-30)]
    ours = train(model, task, TangentFlow(rtol=RTOL), stop=rules, record=At(times=[]))
    found.append(model.function(ours.parameters, problem.test.X))
    apart = [float(np.sqrt(np.mean((outputs - found[0]) ** 2))) for outputs in found[1:]]
    return {"t": t, "error": apart[0], "our error": apart[1]}


def sweep(scales: Any, seeds: int) -> tuple[float, float, dict[Start, Any]]:
    """(seconds, processor seconds, the ends by their starts) of ours, in a fresh state."""
    from penchant import NumericalError
    from penchant_papers.woodworth2020.figures.circle_nets import data, ended

    begin, work, ends = time.perf_counter(), time.process_time(), {}
    for depth, scale, seed in itertools.product(DEPTHS, map(float, scales), range(seeds)):
        with contextlib.suppress(NumericalError):
            ends[depth, scale, seed] = ended(depth, scale, seed, data(seed).training)
    return time.perf_counter() - begin, time.process_time() - work, ends


def steps_of(start: Start, end: Any) -> float:
    """The rival's steps to the loss, at least.

    Our last step, at most four times the one before, may have gone far beyond the loss.
    """
    return float(end.t / 5 / coarse(start))


def medians(times: dict[Start, float]) -> float:
    """The sum over depths and scales of the median time over the seeds, which no extreme rules."""
    groups: dict[tuple[int, float], list[float]] = {}
    for (depth, scale, _), spent in times.items():
        groups.setdefault((depth, scale), []).append(spent)
    return float(sum(np.median(group) for group in groups.values()))


def main() -> None:
    from clock import arguments, ratio, seconds, table

    quick = arguments(__doc__ or "").quick
    from penchant_papers.woodworth2020.figures.circle_nets import data, start

    scales, seeds = np.logspace(-3, 3, 4 if quick else 20), 2 if quick else 10
    took, work, ends = sweep(scales, seeds)
    runs = len(DEPTHS) * len(scales) * seeds
    print(
        f"ours, rtol 0.01: {runs} runs in {seconds(took)}, {seconds(work)} of processor time, "
        f"{runs - len(ends)} failed\n"
    )
    each: dict[int, float] = {}
    for depth in DEPTHS:
        measured = rival(depth, start(depth, 1.0, 0), data(0).training, 20 if quick else 200)
        if measured is None:
            return
        each[depth] = measured
        print(f"depth {depth}: eager PyTorch {seconds(measured)} of processor time a step")
    steps = {one: steps_of(one, end) for one, end in ends.items()}
    times = {one: count * each[one[0]] for one, count in steps.items()}
    chosen = {float(scales[k]) for k in range(0, len(scales), 3)}, (0,) if quick else (1, 2, 3)
    rows, errors = [], []
    for one in (s for s in ends if s[1] in chosen[0] and s[2] in chosen[1]):
        found = sample(one, ends[one].t)
        errors.append((found["error"], found["our error"]))
        ours = int(ends[one].dataset.integrator_steps[-1])
        rows.append(
            [
                one[0],
                f"{one[1]:.2g}",
                one[2],
                f"{coarse(one):.1e}",
                f"{steps[one]:.1e}",
                seconds(times[one]),
                ours,
                f"{found['t']:.2g}",
                f"{found['error']:.1e}",
                f"{found['our error']:.1e}",
            ]
        )
    table(
        [
            "depth",
            "alpha^D",
            "seed",
            "its step",
            "its steps",
            "its time",
            "our steps",
            "errors at t",
            "its error",
            "our error",
        ],
        rows,
    )
    middle = np.median(errors, axis=0)
    print(f"median error: descent {middle[0]:.1e}, ours {middle[1]:.1e}")
    total, typical = sum(times.values()), medians(times) * seeds
    print(
        f"all {len(ends)} runs by eager PyTorch: {seconds(total)} (extrapolated), "
        f"{seconds(typical)} if every seed took the median of its depth and scale"
    )
    ratio("our median error / that of descent", middle[1] / middle[0], "<= 1", judged=not quick)
    ratio("eager PyTorch / ours, processor time", total / work, ">= 200", judged=not quick)
    ratio("the same of the median times", typical / work, ">= 200", judged=not quick)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--eager"]:
        print(json.dumps(eager(sys.argv[2], *map(int, sys.argv[3:5]))))
    else:
        main()
