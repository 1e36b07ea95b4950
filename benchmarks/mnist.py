"""W-F6c: samples per second of SGD on MNIST with 5000 hidden units, against eager PyTorch.

Both sides train the same net (784-5000-10, ReLU, no biases, float32) from the same start on the
same batches of 256, drawn from all 60000 images, with one thread per core; the largest difference
of their losses over the first steps stands beside the speeds. PyTorch runs in a process of its
own, by the interpreter that the environment variable TORCH_PYTHON names (this one if it names
none). Short spans of both take turns, so that both meet the same load; the fastest span of each
counts, and both sleep in between, since idle threads of the other side may still spin. Processor
time, the sum over all threads, stands beside: other programs disturb it less. Our side leaves the
67 pixels out that are black in all training images (see `penchant.training.images`). If MNIST is
not in the cache folder, noise of the same size with as many black pixels takes its place: beyond
their number the speed does not depend on what the images show.
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

STEP, BATCH, HIDDEN = 0.05, 256, 5000
BLACK = 67  # pixels of MNIST that no training image has
LOSSES = 20  # steps over which the losses are compared
PAUSE = 0.3  # seconds for the other side's threads to fall asleep


def timed(run: Callable[[], Any]) -> tuple[float, float]:
    """Seconds and processor seconds of a call."""
    begin, work = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - begin, time.process_time() - work


def eager(folder: str, span: int) -> None:
    """PyTorch's losses, and for every line of the input the times of a span; one line each."""
    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    given = {file.stem: np.load(file) for file in Path(folder).glob("*.npy")}
    images, labels, rows = (torch.tensor(given[name]) for name in ("images", "labels", "rows"))
    first, last = (
        torch.tensor(given[name].T.copy(), requires_grad=True)  # as nn.Linear has them
        for name in ("first", "last")
    )
    linear = torch.nn.functional.linear
    optimizer = torch.optim.SGD([first, last], lr=STEP)

    def step(batch: Any) -> Any:
        scores = linear(torch.relu(linear(images[batch], first)), last)
        loss = torch.nn.functional.cross_entropy(scores, labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    print(json.dumps([float(step(batch)) for batch in rows[:LOSSES]]), flush=True)
    for _ in sys.stdin:
        print(json.dumps(timed(lambda: [step(batch) for batch in rows[:span]])), flush=True)


class Rival:
    """PyTorch in a process of its own that takes a span whenever it is asked."""

    def __init__(self, arrays: dict[str, np.ndarray], span: int):
        self.folder = tempfile.TemporaryDirectory()
        for name, array in arrays.items():
            np.save(Path(self.folder.name) / f"{name}.npy", array)
        python = os.environ.get("TORCH_PYTHON", sys.executable)
        call = [python, __file__, "--eager", self.folder.name, str(span)]
        self.process = subprocess.Popen(
            call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.losses = self._answer()

    def _answer(self) -> Any:
        """The next line of the process; None if it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def span(self) -> tuple[float, float]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        seconds, work = self._answer()
        return seconds, work

    def close(self) -> str:
        """The last line of what the process had to complain about."""
        errors = self.process.communicate()[1].strip().splitlines()
        self.folder.cleanup()
        return errors[-1] if errors else ""


def pictures() -> Any:
    """MNIST, or noise of its size."""
    from penchant.problems.images import Images, load_images

    try:
        return load_images("mnist", flat=True)
    except FileNotFoundError:
        rng = np.random.default_rng(0)
        lit = np.arange(784, dtype=np.float32) >= BLACK
        sets = [
            (rng.random((count, 784), dtype=np.float32) * lit, rng.integers(0, 10, count))
            for count in (60000, 1000)
        ]
        description = (
            "MNIST is not in the cache folder: noise of its size, which takes the same time"
        )
        return Images("noise", *sets[0], *sets[1], tuple("0123456789"), description, {})


class Ours:
    """Our training, step by step, span by span or by the epoch."""

    def __init__(self, images: Any, net: Any, span: int):
        from penchant import GradientDescent
        from penchant.lab import double_precision
        from penchant.training.descent.compiled import batches
        from penchant.training.descent.driver import Run
        from penchant.training.images import ImageTask

        self.count, self.precision = span, double_precision
        task = ImageTask(net, images, still=True)
        size = batches(task.samples, BATCH)
        self.run = Run(task, GradientDescent(STEP), None, size, seed=0)
        with self.precision():
            self.state = self.run.begin()
        full = task.samples // BATCH * BATCH
        self.rows = np.asarray(self.state.draws[1])[:full].reshape(-1, BATCH)

    def advance(self, target: int) -> None:
        """Takes the steps of the first epoch up to `target`."""
        import jax

        with self.precision():
            self.state = jax.block_until_ready(self.run.advance(self.state, target))

    def losses(self, count: int) -> list[float]:
        """The losses of the first batches, each before its step."""
        from penchant.training.descent.compiled import per_sample

        task, found = self.run.task, []
        for k, rows in enumerate(self.rows[:count]):
            batch = per_sample(lambda part, rows=rows: part[rows], task.data)
            found.append(float(task.objective.value(batch, self.state.parameters)))
            self.advance(k + 1)
        return found

    def span(self) -> tuple[float, float]:
        self.state = self.state._replace(taken=1)  # the first step of an epoch also draws its order
        return timed(lambda: self.advance(self.count + 1))

    def epoch(self) -> float:
        """Seconds of a whole epoch."""
        self.state = self.state._replace(taken=0)
        return timed(lambda: self.advance(self.run.batches.epoch))[0]


def speeds(images: Any, net: Any, span: int, repeats: int, judged: bool) -> None:
    """Prints samples per second of both sides and their ratio."""
    from clock import ratio, seconds, table

    ours = Ours(images, net, span)
    losses = ours.losses(LOSSES)
    start = dict(zip(("first", "last"), net.start(images).values(), strict=True))
    arrays = {"images": images.train_images, "labels": images.train_labels, "rows": ours.rows}
    rival = Rival(arrays | start, span)
    sides = {"ours": ours.span} | ({"eager PyTorch": rival.span} if rival.losses else {})
    best = dict.fromkeys(sides, (np.inf, np.inf))
    for _ in range(repeats):
        for name, side in sides.items():
            time.sleep(PAUSE)
            best[name] = tuple(np.minimum(best[name], side()))
    complaint = rival.close()
    rows = [
        [name, f"{span * BATCH / wall:.0f}", seconds(wall / span), seconds(work / span)]
        for name, (wall, work) in best.items()
    ]
    table(["", "samples per second", "time per step", "processor time per step"], rows)
    if len(best) < 2:
        print(f"PyTorch did not run: {complaint}")
        return
    apart = np.max(np.abs(np.array(rival.losses) - losses))
    print(
        f"losses from {losses[0]:.4f} to {losses[-1]:.4f} over {LOSSES} steps; largest "
        f"difference between the sides {apart:.1e}"
    )
    wall, work = (best["eager PyTorch"][k] / best["ours"][k] for k in range(2))
    ratio("ours / eager PyTorch, samples per second", wall, ">= 1", judged=judged)
    ratio("the same by processor time", work, ">= 1", judged=False)
    if judged:
        print(f"a whole epoch of ours: {seconds(ours.epoch())}")


def main() -> None:
    from clock import arguments

    from penchant.models import dense_net

    quick = arguments(__doc__ or "").quick
    images = pictures()
    hidden = 100 if quick else HIDDEN
    print(f"{images.description}; {hidden} hidden units, batch {BATCH}, {os.cpu_count()} cores\n")
    net = dense_net((hidden,), alpha=1.0)
    speeds(images, net, *((20, 3) if quick else (20, 15)), judged=not quick)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--eager"]:
        eager(sys.argv[2], int(sys.argv[3]))
    else:
        main()
