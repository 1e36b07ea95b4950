"""N-F1: steps per second against eager PyTorch and the matrix-multiplication bound, and t1, t2.

All sides may use all cores, and both train the same net on the same pairs from the same start; the
largest difference of their losses stands beside the speeds. PyTorch runs in a process of its own,
by the interpreter that the environment variable TORCH_PYTHON names (this one if it names none),
with one thread and with one per core, and its better time counts. The bound is the time of the six
matrix products of a step and nothing else, in float32, over the pairs our step computes (mirrored
pairs are one input): by XLA, which has one thread per core, by NumPy's BLAS on one thread, or by
BLAS with one thread per core, whichever is fastest. Short spans of all of them take turns, so that
all meet the same load, and the fastest span of each counts. Processor time, the sum over all
threads, stands beside: other programs disturb it less.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RATE, BETA = 1e-3, 1e-6
PRINTED = 540, 9150  # t1 and t2 of the source
SIZES = {"modulus": 97, "fraction": 0.4}
LOSSES = 200  # steps over which the losses are compared


def eager(file: str, steps: int, repeats: int, threads: int) -> dict[str, Any]:
    """Seconds per step of PyTorch, and its losses; needs only NumPy and PyTorch."""
    import torch

    torch.set_num_threads(threads)
    given = np.load(file)
    left, right, labels = (torch.tensor(given[name]) for name in ("left", "right", "labels"))
    names = ("embedding", "inner", "inner_bias", "outer", "outer_bias")

    def trainer() -> Callable[[], Any]:
        parts = [torch.tensor(given[name], dtype=torch.float32, requires_grad=True)
                 for name in names]  # fmt: skip
        optimizer = torch.optim.Adam(parts, lr=RATE, weight_decay=2 * BETA)  # the slope of b |x|^2

        def step() -> Any:
            embedding, inner, inner_bias, outer, outer_bias = parts
            code = embedding[left] * embedding[right]
            hidden = torch.relu(torch.nn.functional.linear(code, inner, inner_bias))
            scores = torch.nn.functional.linear(hidden, outer, outer_bias)
            loss = torch.nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    step = trainer()
    losses = [float(step()) for _ in range(LOSSES)]
    return {"seconds": fastest(lambda: [step() for _ in range(steps)], repeats) / steps,
            "losses": losses}  # fmt: skip


def fastest(run: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest of several calls."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def rival(problem: Any, net: Any, steps: int, repeats: int) -> dict[int, dict[str, Any]]:
    """What `eager` measured for one thread and for one per core; empty without PyTorch."""
    left, right = problem.pairs[problem.train].T
    arrays = {"left": left, "right": right, "labels": problem.labels[problem.train]}
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "given.npz"
        np.savez(file, **arrays, **net.start(problem).present())
        for threads in sorted({1, os.cpu_count() or 1}):
            python = os.environ.get("TORCH_PYTHON", sys.executable)
            call = [python, __file__, "--eager", file, steps, repeats, threads]
            done = subprocess.run([str(c) for c in call], capture_output=True, text=True)
            if done.returncode:
                print(f"PyTorch did not run: {done.stderr.strip().splitlines()[-1]}")
                break
            found[threads] = json.loads(done.stdout)
    return found


def ours(problem: Any, net: Any, steps: int) -> tuple[Callable[[], Any], list[float]]:
    """A function that takes `steps` compiled steps, and our losses over the first ones."""
    import jax

    from penchant import L2, Adam, Steps, train
    from penchant.lab import double_precision
    from penchant.record import At
    from penchant.training.descent.compiled import Batches
    from penchant.training.descent.driver import Run
    from penchant.training.tokens import TokenTask

    adam, penalty, record = Adam(RATE), BETA * L2(), At(steps=range(LOSSES))
    task, whole = TokenTask(net, problem), Batches(None, problem.samples)
    with double_precision():
        compiled = Run(task, adam, penalty, whole, seed=0)
        state = jax.block_until_ready(compiled.advance(compiled.begin(), 1))
    path = train(net, problem, adam, penalty=penalty, stop=Steps(LOSSES), record=record)

    def run() -> None:
        with double_precision():
            jax.block_until_ready(compiled.advance(state, 1 + steps))

    return run, path.dataset.loss.values[:LOSSES].tolist()


def products(problem: Any, net: Any, steps: int) -> dict[str, Callable[[], Any]]:
    """Functions that take the six products of `steps` steps, by XLA and by NumPy's BLAS.

    Orthonormal columns keep the codes as they are from step to step, and one step needs the
    results of another, so that none is left out.
    """
    import jax
    from threadpoolctl import threadpool_limits

    from penchant.training.cross_entropy import distinct

    rng = np.random.default_rng(0)
    count, width, hidden = len(distinct(net, problem)[0]), net.embedding, net.width
    sizes = (hidden, width), (problem.classes, hidden)
    layers = [np.linalg.qr(rng.normal(size=size))[0] for size in sizes]
    data = tuple(np.float32(part) for part in (rng.normal(size=(count, width)), *layers))

    def six(codes: Any, inner: Any, outer: Any, turned: Callable[[Any], Any]) -> tuple[Any, ...]:
        hidden = codes @ inner.T
        scores = hidden @ outer.T
        back = scores @ outer
        return back @ inner, turned(back) @ codes, turned(scores) @ hidden

    def body(_: Any, carry: Any) -> Any:
        codes, *slopes = six(*carry, turned)
        return codes, *(a + 1e-12 * b for a, b in zip(carry[1:], slopes, strict=True))

    def turned(matrix: Any) -> Any:  # as in our step: XLA is slower with a product by matrix.T
        return jax.lax.optimization_barrier(matrix.T)

    def blas(threads: int | None) -> None:
        with threadpool_limits(limits=threads):
            for _ in range(steps):
                six(*data, np.transpose)

    loop = jax.jit(lambda carry: jax.lax.fori_loop(0, steps, body, carry))
    jax.block_until_ready(loop(data))
    return {"XLA": lambda: jax.block_until_ready(loop(data)), "BLAS on one thread": lambda: blas(1),
            "BLAS on all cores": lambda: blas(None)}  # fmt: skip


def in_turns(
    parts: dict[str, Callable[[], Any]], repeats: int
) -> tuple[dict[str, float], dict[str, float]]:
    """The least time and the least processor time of each part, in seconds."""
    times, work = (dict.fromkeys(parts, float("inf")) for _ in range(2))
    for _ in range(repeats):
        for name, part in parts.items():
            before = time.process_time()
            times[name] = min(times[name], fastest(part, 1))
            work[name] = min(work[name], time.process_time() - before)
    return times, work


def speeds(problem: Any, net: Any, steps: int, repeats: int, judged: bool) -> None:
    """Prints steps per second of all sides and both ratios."""
    from clock import ratio, seconds, table

    run, losses = ours(problem, net, steps)
    parts = {"ours": run} | products(problem, net, steps)
    times, work = in_turns(parts, repeats)
    rows = [[name if name == "ours" else f"products alone, {name}", f"{steps / times[name]:.0f}",
             seconds(work[name] / steps), ""] for name in parts]  # fmt: skip
    torch = rival(problem, net, steps, repeats)
    for threads, found in torch.items():
        apart = np.max(np.abs(np.array(found["losses"]) - losses))
        name = f"eager PyTorch, {threads} thread(s)"
        rows.append([name, f"{1 / found['seconds']:.0f}", "", f"{apart:.1e}"])
    table(["", "steps per second", "processor time per step", "largest difference of losses"], rows)
    if torch:
        best = min(found["seconds"] for found in torch.values())
        ratio("ours / eager PyTorch, steps per second", best * steps / times["ours"], ">= 1.4",
              judged=judged)  # fmt: skip
    what = "share of the matrix-multiplication bound"
    for name, found, fair in ((what, times, judged), (f"{what}, by processor time", work, False)):
        bound = min(found[part] for part in parts if part != "ours")
        ratio(name, bound / found["ours"], ">= 0.8", judged=fair)


def transition(seeds: int, judged: bool) -> None:
    """Prints t1 and t2 of several seeds beside the printed ones, and the time to t2."""
    from clock import ratio, seconds, table

    from penchant import L2, Adam, Steps, train
    from penchant.models import TokenMLP
    from penchant.problems import modular_arithmetic
    from penchant.record import LogSpaced
    from penchant.stop import Accuracy

    stop, record = [Steps(20_000), Accuracy(test=0.99)], LogSpaced(40)
    rows, took = [], []
    for seed in range(seeds):
        problem, begin = modular_arithmetic(operation="+", **SIZES, seed=seed), time.perf_counter()
        net = TokenMLP(seed=seed)
        path = train(net, problem, Adam(RATE), penalty=BETA * L2(), stop=stop, record=record)
        took.append(time.perf_counter() - begin)
        run, share = path.dataset, problem.twins.sum() / problem.test.sum()
        first = int(run.step[int(np.argmax(run.train_accuracy.values == 1))])
        middle = int(np.searchsorted(run.step, np.sqrt(first * path.steps)))
        plateau, novel = (f"{float(run[name][middle]):.3f}"
                          for name in ("test_accuracy", "novel_accuracy"))  # fmt: skip
        rows.append([seed, first, path.steps, seconds(took[-1]), plateau, novel, f"{share:.3f}"])
    rows.append(["source", *PRINTED, "", "", "", ""])
    print("\nt1 (training accuracy 1) and t2 (validation accuracy 0.99):")
    table(["seed", "t1", "t2", "time to t2", "plateau", "without twins", "share of twins"], rows)
    ratio("slowest run to t2 / 90 s", max(took) / 90, "<= 1", judged=judged)


def main() -> None:
    from clock import arguments

    from penchant.models import TokenMLP
    from penchant.problems import modular_arithmetic

    quick = arguments(__doc__ or "").quick
    problem, net = modular_arithmetic(operation="+", **SIZES), TokenMLP()
    print(f"{problem.description}; embedding 64, hidden 64, full batch, {os.cpu_count()} cores\n")
    speeds(problem, net, *((6, 5) if quick else (6, 100)), judged=not quick)
    if not quick:
        transition(3, judged=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--eager"]:
        print(json.dumps(eager(sys.argv[2], *map(int, sys.argv[3:6]))))
    else:
        main()
