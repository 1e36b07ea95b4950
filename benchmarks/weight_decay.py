"""Weight decay through the transition: L-F1 at its full size, and a small one against descent.

The full size, 256 corners of a cube in 100,000 dimensions, runs in a process of its own, which
reports the time of one run, what it was spent on, and its peak memory. Time on the processor stands
beside it, since the two differ where other work is going on.

The small size is also trained by compiled gradient descent. The path error is the largest
difference of the test accuracy to that of a much more accurate flow, from t = 10 on. Steps far
beyond the stability limit of the start still train here, only less accurately, so descent may take
any step: the one at which its path error is ours is read off runs with several steps over the part
of the path in which the accuracy moves, and checked. All its steps cost the same, and the time of
the whole run is that of those taken scaled up to all of them.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
import rivals  # noqa: F401  (holds XLA to one core, before JAX starts)
from clock import ONE_THREAD, arguments, best_of, ratio, seconds, table
from threadpoolctl import threadpool_limits

from penchant import Classification, DiagonalNet, DualFlow, GradientDescent, Path, Steps, train
from penchant.problems import majority
from penchant.record import At

RATE, END = 1e-3, 10.0  # decay, and rate * t at the end
LAST = END / RATE
MOVES = 0.4  # the part of the path in which the test accuracy moves
TRIALS = (0.5, 0.25, 0.125, 0.0625, 0.03125)
PER_DECADE = 15
PARTS = {
    "follow": "of it integration",
    "recorded": "recording",
    "kernel_distances": "kernel distances",
}


def net(norm: float, problem: Classification) -> DiagonalNet:
    """Every u_i = v_i, of this total norm."""
    return DiagonalNet(depth=2, alpha=norm / np.sqrt(2 * problem.dimension))


def records(end: float = LAST) -> np.ndarray:
    """Whole times from 10 on: log-spaced ones, and evenly spaced ones for the transition."""
    spaced = np.geomspace(LAST / 1000, LAST, 3 * PER_DECADE + 1)
    times = np.unique(np.rint(np.concatenate([spaced, np.linspace(0, LAST, 21)[1:]])))
    return times[times <= end]


def flow(norm: float, problem: Classification, rtol: float, times: np.ndarray) -> Path:
    run = DualFlow(rtol=rtol, weight_decay=RATE)
    return train(net(norm, problem), problem, run, record=At(times=times.tolist()))


def spent(profile: cProfile.Profile, name: str) -> float:
    """Seconds in the function of this name and in all that it calls."""
    stats: Any = pstats.Stats(profile)
    return sum(entry[3] for (_, _, function), entry in stats.stats.items() if function == name)


def full(samples: int, dimension: int, norm: float) -> dict[str, float]:
    """Times in seconds, the accuracy at the end and MB, of the run at full size."""
    flow(1.0, majority(5, 9), 1e-3, records()[-1:])  # the first run imports SciPy and xarray
    busy = time.process_time()
    drawing, problem = best_of(1, lambda: majority(samples, dimension))
    profile = cProfile.Profile()
    run, path = best_of(1, lambda: profile.runcall(flow, norm, problem, 1e-4, records()))
    found = {"data": drawing, "run": run, "busy": time.process_time() - busy}
    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes on macOS, kilobytes on Linux
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    found["end"] = float(path.dataset.test_accuracy[-1])
    return found | {part: spent(profile, part) for part in PARTS}


def full_size(size: tuple[int, int, float], judged: bool) -> None:
    """Prints time and memory of a process of its own that trains at full size."""
    run = [sys.executable, __file__, "--full", *map(str, size)]
    found = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    samples, dimension, norm = size
    print(f"L-F1, n={samples}, d={dimension}, norm {norm:g}, rtol 1e-4, to rate t = {END:g}")
    head = ["data", "run", *PARTS.values(), "processor, all", "records", "peak memory", "accuracy"]
    times = [seconds(found[name]) for name in ("data", "run", *PARTS, "busy")]
    peak, end = f"{found['peak']:.0f} MB", f"{found['end']:.4f}"
    table(head, [[*times, len(records()), peak, end]])
    ratio("data and run / 30 s", (found["data"] + found["run"]) / 30, "<= 1", judged=judged)
    ratio("peak memory / 4 GB", found["peak"] / 4000, "<= 1", judged=judged)


def errors(path: Path, norm: float, problem: Classification) -> tuple[float, float]:
    """Largest differences to the reference: of the test accuracy, and of beta, relative."""
    found = path.dataset.isel(time=slice(1, None))
    exact = flow(norm, problem, 1e-10, found.t.values).dataset.isel(time=slice(1, None))
    assert np.allclose(found.t, exact.t, rtol=1e-9)
    apart = np.linalg.norm(found.predictor.values - exact.predictor.values, axis=1)
    accuracy = np.abs(found.test_accuracy.values - exact.test_accuracy.values)
    return float(accuracy.max()), float((apart / exact.norm_l2.values).max())


def ours(norm: float, problem: Classification, repeats: int) -> list[tuple[float, float, float]]:
    """Prints our times and errors; (rtol, seconds, path error) for several tolerances."""
    rows, found = [], []
    for rtol in (1e-2, 1e-3, 1e-4, 1e-5):
        took, path = best_of(repeats, lambda rtol=rtol: flow(norm, problem, rtol, records()))
        accuracy, predictor = errors(path, norm, problem)
        rows.append([f"{rtol:g}", seconds(took), f"{accuracy:.1e}", f"{predictor:.1e}"])
        found.append((rtol, took, accuracy))
    table(["ours: rtol", "time", "path error", "relative error of beta"], rows)
    return found


def descend(
    step: float, end: float, norm: float, problem: Classification
) -> tuple[float, int, Path]:
    """(seconds, steps, path) of descent to the time `end`."""
    steps = sorted({round(t / step) for t in records(end)})
    method = GradientDescent(step, weight_decay=RATE)
    stop, record = Steps(steps[-1]), At(steps=steps)
    start = time.perf_counter()
    path = train(net(norm, problem), problem, method, stop=stop, record=record)
    return time.perf_counter() - start, steps[-1], path


def trials(norm: float, problem: Classification) -> tuple[np.ndarray, float]:
    """Prints descent for several steps; its path errors, and the seconds of one step."""
    rows, found = [], []
    idle = min(descend(1.0, 10.0, norm, problem)[0] for _ in range(2))  # compiles, takes 10 steps
    for step in TRIALS:
        took, steps, path = descend(step, MOVES * LAST, norm, problem)
        accuracy, predictor = errors(path, norm, problem)
        rows.append([f"{step:g}", steps, seconds(took), f"{accuracy:.1e}", f"{predictor:.1e}"])
        found.append(accuracy)
    print(f"\nCompiled gradient descent to rate t = {MOVES * END:g}:")
    table(["step", "steps", "time with compiling", "path error", "relative error of beta"], rows)
    return np.array(found), (took - idle) / steps


def step_for(error: float, found: np.ndarray) -> float:
    """The step of descent with this path error, by a power law through the nearest two trials."""
    place = int(np.clip(np.searchsorted(-found, -error), 1, len(found) - 1))
    (x0, x1), (y0, y1) = np.log(TRIALS[place - 1 : place + 1]), np.log(found[place - 1 : place + 1])
    return float(np.exp(x1 + (np.log(error) - y1) * (x1 - x0) / (y1 - y0)))


def against_descent(norm: float, problem: Classification, repeats: int, judged: bool) -> None:
    """Prints the ratio at the path error of each of our tolerances."""
    mine = ours(norm, problem, repeats)
    found, cost = trials(norm, problem)
    rows, wholes = [], {}
    for rtol, took, error in mine:
        step = step_for(error, found)
        whole = wholes[rtol] = cost * LAST / step
        rows.append([f"{rtol:g}", f"{error:.1e}", f"{step:.2g}", f"{LAST / step:.2g}",
                     seconds(whole), f"{whole / took:.3g}"])  # fmt: skip
    print(f"\nAt equal path errors ({seconds(cost)} a step, extrapolated to all of them):")
    table(["rtol", "path error", "step of descent", "its steps", "its time", "ratio"], rows)
    rtol, took, error = mine[2]
    step = step_for(error, found)
    checked = errors(descend(step, MOVES * LAST / 2, norm, problem)[2], norm, problem)[0]
    print(f"step {step:.2g}, checked to rate t = {MOVES * END / 2:g}: path error {checked:.1e}")
    ratio(f"gradient descent / ours at the path error of rtol {rtol:g}", wholes[rtol] / took,
          ">= 30", judged=judged)  # fmt: skip


def main() -> None:
    quick = arguments(__doc__ or "").quick
    print(f"Weight decay {RATE:g}, logistic loss, depth 2. {ONE_THREAD}\n")
    full_size((50, 2000, 64.0) if quick else (256, 100_000, 128.0), judged=not quick)
    samples, dimension, norm = (40, 200, 20.0) if quick else (100, 2000, 64.0)
    print(f"\nn={samples}, d={dimension}, norm {norm:g}:")
    flow(1.0, majority(5, 9), 1e-3, records()[-1:])  # the first run imports SciPy and xarray
    with threadpool_limits(limits=1):
        against_descent(norm, majority(samples, dimension), 1 if quick else 3, judged=not quick)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--full"]:
        size = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
        print(json.dumps(full(*size)))
    else:
        main()
