"""The tangent kernel of a net with a million parameters on 500 inputs, against torch.func.

The net is 784-1000-200-10 with ReLU in float32, the kernel that of its first output. PyTorch runs
its two recipes, contraction of Jacobians by vmap(jacrev) and products by vjp and jvp, and the
faster one counts, with the memory that it took. Ours is measured as it is called, compilation
included, and so is the mean over all ten outputs. It gains by keeping the gradients of dense layers
as their two factors, which a net of convolutions would not. Every measurement has a process of its
own, in turns, so that all meet the same load; the best time counts. Memory is the peak of the
process beyond what it had before the kernel. All may use all cores. The interpreter that
TORCH_PYTHON names runs PyTorch (this one if it names none).
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

NET = (784, 1000, 200, 10)
MEMORY = 3e8  # bytes that our side is allowed, kernel and all
RECIPES = ("contraction", "products")
OURS = ("first output", "mean")


def given(samples: int, net: tuple[int, ...], seed: int = 0) -> dict[str, np.ndarray]:
    """Inputs and He weights, under names that both sides know."""
    rng = np.random.default_rng(seed)
    found = {"x": rng.normal(size=(samples, net[0]))}
    for layer, (inputs, outputs) in enumerate(itertools.pairwise(net)):
        found[f"w{layer}"] = rng.normal(size=(outputs, inputs)) * np.sqrt(2 / inputs)
        found[f"b{layer}"] = 0.1 * rng.normal(size=outputs)
    return {name: array.astype(np.float32) for name, array in found.items()}


def rival(arrays: dict[str, np.ndarray], recipe: str) -> Callable[[], np.ndarray]:
    """The kernel of the first output by one of the recipes of torch.func."""
    import torch
    from torch.func import jacrev, jvp, vjp, vmap

    params = {name: torch.tensor(array) for name, array in arrays.items() if name != "x"}
    x, depth = torch.tensor(arrays["x"]), len(params) // 2

    def net(params: Any, x: Any) -> Any:
        for layer in range(depth):
            x = x @ params[f"w{layer}"].T + params[f"b{layer}"]
            x = torch.relu(x) if layer < depth - 1 else x
        return x[0]

    def contraction() -> Any:
        jacobian = vmap(jacrev(net), (None, 0))(params, x)
        flat = [jacobian[name].flatten(1) for name in params]
        return sum(torch.einsum("np,mp->nm", rows, rows) for rows in flat)

    def pair(one: Any, other: Any) -> Any:
        outputs, pull = vjp(lambda p: net(p, one), params)
        return jvp(lambda p: net(p, other), (params,), pull(torch.ones_like(outputs)))[1]

    def products() -> Any:
        return vmap(vmap(pair, (None, 0)), (0, None))(x, x)

    return lambda: {"contraction": contraction, "products": products}[recipe]().detach().numpy()


def ours(arrays: dict[str, np.ndarray], route: str) -> Callable[[], np.ndarray]:
    """The same kernel by us, or the mean over the outputs."""
    import jax

    from penchant.measures import tangent_kernel

    params = {name: array for name, array in arrays.items() if name != "x"}
    x, depth = arrays["x"], len(params) // 2

    def net(params: Any, x: Any) -> Any:
        for layer in range(depth):
            x = x @ params[f"w{layer}"].T + params[f"b{layer}"]
            x = jax.nn.relu(x) if layer < depth - 1 else x
        return x

    outputs = "mean" if route == "mean" else 0
    return lambda: tangent_kernel(net, params, x, outputs=outputs, memory=MEMORY)


def peak() -> float:
    """The largest resident size of this process so far, in bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * float(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    except (OSError, StopIteration):  # not Linux
        return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(file: str, route: str, out: str) -> dict[str, float]:
    """Seconds and bytes of one kernel, which is saved in `out`."""
    with np.load(file) as loaded:
        arrays = dict(loaded)
    run = (ours if route in OURS else rival)(arrays, route)
    before, begin = peak(), time.perf_counter()
    found = run()
    took = time.perf_counter() - begin
    np.save(out, found)
    return {"seconds": took, "bytes": peak() - before, "process": peak()}


def all_routes(samples: int, net: tuple[int, ...], repeats: int) -> dict[str, dict[str, Any]]:
    """The best time, the largest memory and the kernel of every route that ran."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "given.npz", Path(folder) / "kernel.npy"
        np.savez(file, **given(samples, net))
        for route in (*OURS, *RECIPES) * repeats:
            theirs = os.environ.get("TORCH_PYTHON", sys.executable)
            python = sys.executable if route in OURS else theirs
            call = [python, __file__, "--measure", str(file), route, str(out)]
            done = subprocess.run(call, capture_output=True, text=True)
            if done.returncode:
                print(f"{route} did not run: {(done.stderr.strip() or 'killed').splitlines()[-1]}")
                continue
            new = json.loads(done.stdout) | {"kernel": np.load(out)}
            old = found.get(route, new)
            new["seconds"] = min(new["seconds"], old["seconds"])
            new["bytes"] = max(new["bytes"], old["bytes"])
            found[route] = new
    return found


def report(found: dict[str, dict[str, Any]], judged: bool) -> None:
    """Prints a row per route, and the ratios to the better recipe of PyTorch."""
    from clock import ratio, seconds, table

    mine = found["first output"]
    size = np.abs(mine["kernel"]).max()
    rows = []
    for route, new in found.items():
        apart = f"{np.abs(new['kernel'] - mine['kernel']).max() / size:.1e}"
        name = f"torch.func, {route}" if route in RECIPES else f"ours, {route}"
        rows.append([name, seconds(new["seconds"]), f"{new['bytes'] / 1e6:.0f}",
                     f"{new['process'] / 1e6:.0f}", "" if route == "mean" else apart])  # fmt: skip
    table(["", "time", "MB for the kernel", "MB of the process", "difference"], rows)
    recipes = [found[route] for route in RECIPES if route in found]
    if not recipes:
        return
    best = min(recipes, key=lambda new: new["seconds"])
    apart = np.abs(best["kernel"] - mine["kernel"]).max() / size
    ratio("difference of the kernels, relative", apart, "<= 1e-5")
    for what, key, target in (("time", "seconds", "<= 1.5"), ("memory", "bytes", "<= 0.25"),
                              ("memory of the process", "process", "<= 0.25")):  # fmt: skip
        ratio(f"{what}, ours / torch.func", mine[key] / best[key], target, judged=judged)


def main() -> None:
    from clock import arguments

    quick = arguments(__doc__ or "").quick
    samples, net, repeats = (50, (64, 50, 20, 10), 1) if quick else (500, NET, 3)
    print(f"{samples} inputs, net {net}, {MEMORY:.0e} bytes allowed, {os.cpu_count()} cores\n")
    report(all_routes(samples, net, repeats), judged=not quick)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(*sys.argv[2:5])))
    else:
        main()
