"""Prints what differs from the frozen numbers; leaves the tree when the rewrite is done.

python tests/frozen/compare.py claims|figures|paths [ids or patterns] [--tolerance 1e-9] [--strict]

A number differs if it moved by more than the tolerance times itself, or times the root mean square
of its array or the tolerance of its check if that is more; --strict takes the number itself only.
--verdicts reads a file of `tacit verify` in place of a run; --old runs the paths in the old
grammar, to test the freezing.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

import numpy as np
from cases import HERE, LABELS, cases, new, old, run
from freeze import RECORDED, chosen, claims, figures, summary

TOLERANCES = {  # of single entries, as "what id: number"; the first pattern that fits
    "paths ClassDescent-04: *": 1e-4,  # single precision
    "paths ClassDescent-11: *": 1e-4,
    "paths TokenAdam-08: *": 1e-4,
    "paths ImageTraining-11: *": 1e-4,
}
CLOCKS = ("step", "epoch", "log_t", "t")
Pair = tuple[str, Any, Any, float]  # a name, the frozen number, the present one, their scale


def pairs(frozen: Any, now: Any, key: str = "", scale: float = 0.0) -> Iterator[Pair]:
    """Every number or word of `frozen` beside that of `now`."""
    if isinstance(frozen, dict) and isinstance(now, dict):
        if "norm" in frozen and "finite" in frozen:
            scale = frozen["norm"] / math.sqrt(max(frozen["finite"], 1))
        scale = max(scale, frozen.get("tolerance") or 0.0)
        for name in frozen | now:
            where = f"{key}, {name}" if key else name
            yield from pairs(frozen.get(name), now.get(name), where, scale)
    elif isinstance(frozen, list) and isinstance(now, list) and len(frozen) == len(now):
        size = [x * x for x in frozen if isinstance(x, int | float) and math.isfinite(x)]
        scale = max(scale, math.sqrt(sum(size) / max(len(size), 1)))
        for k, both in enumerate(zip(frozen, now, strict=True)):
            yield from pairs(*both, f"{key}[{k}]", scale)
    else:
        yield key, frozen, now, scale


def change(frozen: Any, now: Any, scale: float) -> float:
    """The relative change; infinite where words, shapes or missing numbers differ."""
    kinds = {type(frozen), type(now)}
    if not kinds <= {int, float}:
        return 0.0 if frozen == now else math.inf
    if frozen == now or (math.isnan(frozen) and math.isnan(now)):
        return 0.0
    apart = abs(frozen - now)
    return apart / max(abs(frozen), scale) if math.isfinite(apart) and frozen + scale else math.inf


def path_pairs(case: dict[str, Any], frozen: dict[str, Any], written: str) -> Iterator[Pair]:
    """The pairs of one path, records beside those of the same step or the nearest time."""
    path = run(case, written)
    now = summary(path)
    ends = [name for name in frozen if name not in RECORDED and frozen[name] is not None]
    yield from pairs({name: frozen[name] for name in ends}, {name: now.get(name) for name in ends})
    if "t" not in frozen and "epoch" not in frozen:
        return
    clock = next((name for name in CLOCKS if name in frozen and name in path.dataset), None)
    for name in (name for name in RECORDED if name in frozen):
        values = now.get(name, [None])
        if clock is not None and name in path.dataset:
            places = [nearest(path.dataset[clock].values, time) for time in frozen[clock]]
            values = path.dataset[name].values[places].tolist()
        for k, both in enumerate(zip(frozen[name], values, strict=False)):
            yield f"{name}[{k}]", *both, log_scale(case, both[0]) if "log" in name else 0.0


def nearest(times: Any, time: float) -> int:
    with np.errstate(invalid="ignore"):
        return int(
            np.argmin(np.where(times == time, 0.0, np.nan_to_num(abs(times - time), nan=9e99)))
        )


def log_scale(case: dict[str, Any], log: float) -> float:
    """1, and more where the residuals of a squared loss are near rounding, 1e-15."""
    return 1.0 if case["data"] in LABELS else max(1.0, 1e-6 * math.exp(min(-log / 2, 700.0)))


def compared(given: argparse.Namespace, frozen: dict[str, Any]) -> Iterator[tuple[str, list[Pair]]]:
    """Every id with its pairs, or with one pair that says why there are none."""
    if given.what == "paths":
        written = {case["id"]: (case, (old if given.old else new)(case)) for case in cases()}
        for id in (id for id in frozen if chosen(id, given.ids)):
            case, text = written[id]
            try:
                yield id, list(path_pairs(case, frozen[id]["path"], text))
            except Exception as reason:
                yield id, [(text, "a path", f"{type(reason).__name__}: {reason}", 0.0)]
        return
    if given.what == "claims":
        now = claims(given.ids, given.verdicts)
    else:
        now = figures(given.ids, frozen["left out"])
    for id in frozen | now:
        if chosen(id, given.ids) and id != "left out":
            yield id, list(pairs(frozen.get(id), now.get(id)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("claims", "figures", "paths"))
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--tolerance", type=float, default=1e-9)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--verdicts")
    parser.add_argument("--old", action="store_true")
    given = parser.parse_intermixed_args()
    frozen = json.loads((HERE / f"{given.what}.json").read_text())
    table, count = [], 0
    for id, numbers in compared(given, frozen):
        moved = []
        for key, before, now, scale in numbers:
            name = f"{given.what} {id}: {key}"
            fits = (value for pattern, value in TOLERANCES.items() if fnmatch(name, pattern))
            apart = change(before, now, 0.0 if given.strict else scale)
            if apart > next(fits, given.tolerance):
                moved.append(apart)
                print(f"{id}: {key}: {before} -> {now} ({apart:.2g})", flush=True)
        count += len(numbers)
        if moved:
            table.append((id, len(numbers), len(moved), max(moved)))
    print(f"\n{'id':28} {'numbers':>8} {'differ':>8} {'largest change':>15}")
    for row in sorted(table, key=lambda row: -row[3]):
        print("{:28} {:8} {:8} {:15.3g}".format(*row))
    print(f"{count} numbers compared, {sum(row[2] for row in table)} differ in {len(table)} ids")
    return 1 if table else 0


if __name__ == "__main__":
    sys.exit(main())
