"""The recorded runs: how they are made, kept in one file, read, and split into two halves.

`python -m penchant_papers.probe.bench.recorded FOLDER RUNS` trains the runs of the seeds below
RUNS, each into a file of FOLDER as it ends, and writes the one file of all. A run is kept at steps
at least APART times as late as the one before, with what a watch could have shown there: step,
norm, turn from the start, losses and accuracies, and QUANTILES of the log-probability of the test
labels.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from pathlib import Path

import numpy as np

from penchant.lab import Array
from penchant_papers.probe.bench.recipe import BenchRun, drawn
from penchant_papers.probe.forecast_rules import RecordedRun, moments
from penchant_papers.probe.trajectories import record

FILE = Path(__file__).parent / "runs.npz"
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
LEVELS = tuple(f"q{number}" for number in range(len(QUANTILES)))
KEPT = (
    "norm",
    "turn",
    "train_loss",
    "test_loss",
    "train_accuracy",
    "test_accuracy",
    *LEVELS,
)
APART = 1.035
DIGITS = 12  # binary digits that are kept
MOVING = 0.1  # of the test accuracy in the last fifth of a run that has not ended
HALVES = ("fit", "judged")


@functools.cache
def runs() -> tuple[RecordedRun, ...]:
    """All runs, in the order of their seeds."""
    with np.load(FILE) as stored:
        columns = {name: stored[name].astype(float) for name in ("step", *KEPT)}
        ends = np.cumsum(stored["length"])
    parts = [np.split(columns[name], ends[:-1]) for name in columns]
    return tuple(
        _recorded(drawn(seed), dict(zip(columns, curves, strict=True)))
        for seed, curves in enumerate(zip(*parts, strict=True))
    )


def _recorded(run: BenchRun, curves: dict[str, Array]) -> RecordedRun:
    t, train, test = (curves[name] for name in ("step", "train_accuracy", "test_accuracy"))
    rates = {"learning_rate": run.rates(t)}
    return RecordedRun(run, curves | rates, moments(t, train, test))


def half(run: BenchRun) -> str:
    """Rules are fitted on one half of the runs, and judged on the other; a hash decides."""
    digest = hashlib.sha256(f"penchant bench {run.seed}".encode()).digest()
    return HALVES[digest[0] % 2]


def half_of(name: str) -> list[RecordedRun]:
    """The runs of a half, "fit" or "judged"."""
    return [recorded for recorded in runs() if half(recorded.run) == name]


def ended(recorded: RecordedRun) -> bool:
    """Whether the test accuracy has stopped to move, so that it is known whether the run groks."""
    t, test = recorded.curves["step"], recorded.curves["test_accuracy"]
    before = np.median(test[(t >= 0.75 * t[-1]) & (t <= 0.85 * t[-1])])
    return bool(abs(np.median(test[t >= 0.95 * t[-1]]) - before) < MOVING)


def thinned(curves: dict[str, Array]) -> dict[str, Array]:
    """The records that are kept, rounded to DIGITS."""
    t, chosen = curves["step"], [0]
    for place in range(1, len(t)):
        if t[place] >= APART * t[chosen[-1]] or place == len(t) - 1:
            chosen.append(place)
    kept = {name: _rounded(curves[name][chosen]) for name in KEPT}
    return {"step": t[chosen].astype(np.int32), **kept}


def _rounded(values: Array) -> Array:
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    rounded = np.round(mantissa * 2**DIGITS) / 2**DIGITS
    return np.ldexp(rounded, exponent).astype(np.float32)


def trained(seed: int) -> dict[str, Array]:
    """The run of a seed as the file has it."""
    return thinned(record(drawn(seed), seed, QUANTILES))


def write(folder: Path, count: int) -> None:
    """The file of the runs with seeds below `count`."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(count):
        if not (own := folder / f"{seed}.npz").exists():
            np.savez(own, **trained(seed))  # type: ignore[arg-type]
    parts = [np.load(folder / f"{seed}.npz") for seed in range(count)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in ("step", *KEPT)}
    np.savez_compressed(FILE, length=[len(part["step"]) for part in parts], **columns)  # type: ignore[arg-type]


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
