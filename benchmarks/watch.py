"""What a watch costs: training loops of PyTorch and JAX with and without one, time and memory.

The nets are 784-1000-200-10 with ReLU (a million parameters), in PyTorch and in JAX, and a small
net of two convolutions, all in float32 with momentum on batches of 128 of 5000 random images with
the labels of a linear teacher; the watch has 100 probe inputs with labels and its default budget
of 5%, and is called at every step. The set-up of the watch (compilation, the first kernel) comes
before the loop and stands in a column of its own. The loops with and without a watch take turns in
one process, on one thread: two processes of the very same loop differ by more than a watch costs.
The median of the ratios of neighbours counts, in processor time, which other programs disturb
less. A look with all measures of the panel, and AdamW, is compared with one without them; one look
at large nets beside torch.func, in time and memory, is real_nets.py. Memory is the peak of a
process with one loop. The overhead that the watch states of itself, by its own clock, stands beside
the measured one. The interpreter that TORCH_PYTHON names runs PyTorch (this one if it names none).
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

NETS = {"PyTorch, dense": 1500, "PyTorch, convolutions": 500, "JAX, dense": 1500}  # steps
SIZES = (784, 1000, 200, 10)
IMAGES, BATCH, PROBES = 5000, 128, 100


def images(count: int = IMAGES) -> tuple[np.ndarray, np.ndarray]:
    """Random images with the classes of a linear teacher."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, SIZES[0])).astype(np.float32)
    return X, (X @ rng.normal(size=(SIZES[0], SIZES[-1]))).argmax(axis=1)


def dense(sizes: tuple[int, ...]) -> Any:
    from torch import nn

    layers: list[Any] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def convolutions() -> Any:
    from torch import nn

    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 10),
    )  # fmt: skip


def torch_loop(net: str, steps: int, watched: bool) -> dict[str, float]:
    """Seconds of a loop of PyTorch, and what its watch says of itself."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    X, y = (torch.as_tensor(array) for array in images())
    model = dense(SIZES) if net.endswith("dense") else convolutions()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    order = np.random.default_rng(1).integers(len(X), size=(steps, BATCH))
    seen = watch_of(model, X[:PROBES], y[:PROBES]) if watched else None
    begin = time.process_time()
    for step, at in enumerate(order, start=1):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(X[at]), y[at])
        loss.backward()
        optimizer.step()
        value = loss.item()  # both sides wait for the loss, as a loop that logs it does
        if seen is not None:
            seen(step, train_loss=value)
    return result(time.process_time() - begin, seen)


def jax_loop(net: str, steps: int, watched: bool) -> dict[str, float]:
    """The same in JAX, with a compiled step."""
    import jax
    import jax.numpy as jnp

    X, y = images()
    rng = np.random.default_rng(0)
    params = [
        (np.sqrt(2 / a) * rng.normal(size=(a, b)), np.zeros(b))
        for a, b in itertools.pairwise(SIZES)
    ]
    params = jax.tree.map(np.float32, params)

    def apply(params: Any, x: Any) -> Any:
        for weight, bias in params[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        return x @ params[-1][0] + params[-1][1]

    def loss(params: Any, x: Any, y: Any) -> Any:
        return -jnp.mean(jax.nn.log_softmax(apply(params, x))[jnp.arange(BATCH), y])

    @jax.jit
    def update(params: Any, speed: Any, x: Any, y: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(params, x, y)
        speed = jax.tree.map(lambda v, g: 0.9 * v + g, speed, slopes)
        return jax.tree.map(lambda p, v: p - 0.01 * v, params, speed), speed, value

    order = rng.integers(len(X), size=(steps, BATCH))
    speed = jax.tree.map(np.zeros_like, params)
    jax.block_until_ready(update(params, speed, X[order[0]], y[order[0]]))  # compiled before
    seen = watch_of(apply, X[:PROBES], y[:PROBES], parameters=params) if watched else None
    begin = time.process_time()
    for step, at in enumerate(order, start=1):
        params, speed, value = update(params, speed, X[at], y[at])
        value = float(value)
        if seen is not None:
            seen(step, params, train_loss=value)
    return result(time.process_time() - begin, seen)


def watch_of(model: Any, x: Any, labels: Any, **more: Any) -> Any:
    from penchant import watch

    return watch(model, x, labels=labels, **more)


def result(seconds: float, seen: Any) -> dict[str, float]:
    """Seconds of the loop, peak of the process, and what the watch states."""
    from tangent_kernel import peak

    found = {"seconds": seconds, "bytes": peak()}
    if seen is not None:
        assert not seen.failures, seen.failures
        found |= {"stated": seen.overhead, "setup": seen.setup_seconds}
        found |= {"looks": len(seen.log.rows) - 1, "spent": seen.budget.spent}
    return found


def in_turns(net: str, steps: int, pairs: int) -> dict[str, Any]:
    """Loops without and with a watch in turns: the ratio of every pair, and the last of each."""
    run = jax_loop if net.startswith("JAX") else torch_loop
    run(net, 10, False)  # what a first loop alone pays for is paid
    ratios = []
    for pair in range(pairs):
        sides = {watched: run(net, steps, watched) for watched in (pair % 2 == 0, pair % 2 == 1)}
        ratios.append(sides[True]["seconds"] / sides[False]["seconds"])
    return {"ratios": ratios, "plain": sides[False], "watched": sides[True]}


def alone(net: str, steps: int, watched: int) -> dict[str, float]:
    """One loop, for the peak of its process."""
    return (jax_loop if net.startswith("JAX") else torch_loop)(net, steps, bool(watched))


def panel(net: str, steps: int, pairs: int) -> dict[str, Any]:
    """Median seconds of the measures of the panel at a look, and of the look without them."""
    import torch

    from penchant.watch.panel.instrument import MEASURES

    torch.set_num_threads(1)
    torch.manual_seed(0)
    X, y = (torch.as_tensor(array) for array in images(PROBES))
    model = dense(SIZES) if net.endswith("dense") else convolutions()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    seen = watch_of(model, X, y, optimizer=optimizer, measure="all", budget=None)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(X), y).backward()
        optimizer.step()
        seen(step)
    assert not seen.failures, seen.failures
    rows = seen.dataset.isel(time=slice(2, None))  # the first look pays for what it loads
    each = {name: rows[f"{name}_seconds"].values for name in MEASURES}
    whole = np.sum(list(each.values()), axis=0)
    rest = rows["look_seconds"].values - whole
    return {name: float(np.median(values)) for name, values in each.items()} | {
        "look": float(np.median(rest)),
        "ratio": float(np.median(whole / rest)),
    }


def measured(what: str, net: str, steps: int, count: int) -> dict[str, Any]:
    """in_turns or alone, in a process of its own."""
    theirs = os.environ.get("TORCH_PYTHON", sys.executable)
    python = theirs if net.startswith("PyTorch") else sys.executable
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "XLA_FLAGS": flags}
    source = str(Path(__file__).parents[1] / "src")
    path = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    call = [python, __file__, "--measure", what, net, str(steps), str(count)]
    done = subprocess.run(call, capture_output=True, text=True,
                          env={**os.environ, **one, "PYTHONPATH": path})  # fmt: skip
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or "killed").splitlines()[-1])
    return dict(json.loads(done.stdout))


def main() -> None:
    from clock import arguments, ratio, seconds, table

    quick = arguments(__doc__ or "").quick
    pairs = 1 if quick else 5
    print(f"{PROBES} probe inputs, 1 thread, {pairs} pair(s) of loops\n")
    rows, ratios = [], []
    for net, long in NETS.items():
        steps = 30 if quick else long
        try:
            turns = measured("in_turns", net, steps, pairs)
            peaks = [measured("alone", net, 20, watched)["bytes"] / 1e6 for watched in (0, 1)]
        except RuntimeError as reason:
            print(f"{net} did not run: {reason}")
            continue
        plain, seen = turns["plain"], turns["watched"]
        low, times, high = np.quantile(turns["ratios"], [0, 0.5, 1])
        rows.append([net, steps, seconds(plain["seconds"]), f"{times - 1:.1%}",
                     f"{low - 1:.1%} to {high - 1:.1%}", f"{seen['stated']:.1%}",
                     f"{seen['looks']:.0f}", seconds(seen["setup"]),
                     *(f"{peak:.0f}" for peak in peaks)])  # fmt: skip
        ratios.append((net, float(times), seen["stated"]))
    table(["", "steps", "plain", "overhead", "pairs", "stated", "looks", "set-up", "MB",
           "MB watched"], rows)  # fmt: skip
    costs = {net: measured("panel", net, 20, 1) for net in NETS if net.startswith("PyTorch")}
    names = [name for name in next(iter(costs.values())) if name != "ratio"]
    print()
    table(["seconds of one look", *names], [[net, *(seconds(cost[name]) for name in names)]
                                            for net, cost in costs.items()])  # fmt: skip
    for net, cost in costs.items():
        ratio(f"{net}: all measures / the rest of a look", cost["ratio"], "<= 2", judged=not quick)
    for net, times, stated in ratios:
        ratio(f"{net}: time, watched / plain", times, "<= 1.05", judged=not quick)
        ratio(f"{net}: overhead that the watch states", stated, "<= 0.05", judged=not quick)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        job, name, many, count = sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
        jobs = {"in_turns": in_turns, "alone": alone, "panel": panel}
        print(json.dumps(jobs[job](name, many, count)))
    else:
        main()
