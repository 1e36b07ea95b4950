"""Writes claims.json, figures.json and paths.json; leaves the tree when the rewrite is done.

python tests/frozen/freeze.py claims [--verdicts verdicts.json of `tacit verify`] | figures | paths
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from cases import HERE, cases, old, run

SLOW = 30.0  # seconds of the processor beyond which a figure is left out
WHOLE = 40  # numbers that are kept one by one
SAMPLES = 5
RECORDED = ("t", "log_t", "step", "epoch", "log_loss", "train_loss", "test_loss")


def chosen(id: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch(id, pattern) for pattern in patterns)


def digest(values: Any) -> Any:
    """Short arrays as they are; of others the shape, mean, norm and five fixed entries."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        return [str(entry) for entry in spread(array.ravel())]
    array = array.astype(float)
    if array.ndim <= 1 and array.size <= WHOLE:
        return array.tolist()
    finite = array[np.isfinite(array)]
    found = {"shape": list(array.shape), "finite": int(finite.size)}
    found |= {"mean": float(finite.sum() / max(finite.size, 1))}
    found |= {"norm": float(np.linalg.norm(finite)), "samples": spread(array.ravel()).tolist()}
    return found


def spread(row: Any) -> Any:
    """Five entries from the first to the last."""
    return row[np.linspace(0, len(row) - 1, min(SAMPLES, len(row))).astype(int)]


# ---------------------------------------------------------------- claims


def claims(patterns: Sequence[str] = (), verdicts: str | None = None) -> dict[str, Any]:
    """Status and numbers of every claim, from a file of `tacit verify` or run now."""
    if verdicts is not None:
        entries = json.loads(Path(verdicts).read_text())["verdicts"]
    else:
        from tacit import verify
        from tacit.papers.registry import library

        ids = [claim.id for claim in library().select(None) if chosen(claim.id, patterns)]
        found = verify(ids, jobs=2, progress=lambda seen: print(f"{seen.id} done", flush=True))
        entries = [{**dataclasses.asdict(one), "status": one.status} for one in found]
    return {entry["id"]: claim(entry) for entry in entries if chosen(entry["id"], patterns)}


def claim(entry: dict[str, Any]) -> dict[str, Any]:
    evidence, found = entry["evidence"], {}
    for part in ("checks", "proof", "corrected"):
        found |= {f"{part}: {check['name']}": numbers(check) for check in evidence[part]}
    found |= {f"control: {name}": numbers(seen) for name, seen in evidence["controls"].items()}
    found |= {f"premise: {name}": plain(seen) for name, seen in evidence["premises"].items()}
    return {"status": entry["status"], **found}


def numbers(check: dict[str, Any]) -> dict[str, Any]:
    return {key: plain(check[key]) for key in ("measured", "predicted", "tolerance")}


def plain(value: Any) -> Any:
    """`value` with the numbers that strict JSON cannot hold as numbers again."""
    if isinstance(value, dict):
        if list(value) == ["$float"]:
            return float(value["$float"])
        return {key: plain(entry) for key, entry in value.items()}
    return value


# ---------------------------------------------------------------- figures


def figures(patterns: Sequence[str] = (), left_out: dict[str, str] | None = None) -> dict[str, Any]:
    """The digest of every variable of the quick data of every figure that is not slow."""
    from tacit.figures import figures as registered
    from tacit.figures import make

    found, left_out = {}, {} if left_out is None else left_out
    for id in registered():
        if not chosen(id, patterns) or id in left_out:
            continue
        begin = time.process_time()
        try:
            dataset = make(id)
        except FileNotFoundError as reason:
            left_out[id] = str(reason)
            continue
        if time.process_time() - begin > SLOW:
            left_out[id] = "slow"
            continue
        found[id] = {str(key): digest(value.values) for key, value in dataset.variables.items()}
        print(f"{id}: {len(found[id])} variables, {time.process_time() - begin:.1f} s", flush=True)
    return {"left out": left_out, **found}


# ---------------------------------------------------------------- paths


def paths(patterns: Sequence[str] = ()) -> dict[str, Any]:
    """Every case as data, what it is in the old grammar, and where its path went."""
    found = {}
    for case in cases():
        if chosen(case["id"], patterns):
            path = summary(run(case, old(case)))
            found[case["id"]] = {"case": case, "old": old(case), "path": path}
            print(case["id"], path["outcome"], path["steps"], path.get("log_loss"), flush=True)
    return found


def summary(path: Any) -> dict[str, Any]:
    """The end of a path, and five of its records."""
    if hasattr(path, "sizes"):
        found = {"outcome": ", ".join(end.kind.value for end in path.outcomes), "steps": None}
        return found | {key: digest(getattr(path, key)) for key in ("parameters", "loss", "fall")}
    data, steps = path.dataset, getattr(path, "steps", getattr(path, "epochs", None))
    if steps is None and "step" in data:
        steps = data.step.values[-1]
    found = {"outcome": path.outcome.kind.value, "steps": None if steps is None else int(steps)}
    found["parameters"] = parameters(path)
    for name in ("predictor", "predictions"):
        if getattr(path, name, None) is not None:
            found[name] = digest(getattr(path, name))
    return found | {name: spread(data[name].values).tolist() for name in RECORDED if name in data}


def parameters(path: Any) -> Any:
    """All last parameters in rising order, which does not depend on how they are arranged."""
    import jax

    names = ("parameters", "weights", "tensors", "params")
    last = next((getattr(path, name) for name in names if hasattr(path, name)), None)
    parts = [np.ravel(np.asarray(part)) for part in jax.tree.leaves(last)]
    return digest(np.sort(np.concatenate(parts))) if parts else None


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("claims", "figures", "paths"))
    parser.add_argument("--verdicts", help="verdicts.json of `tacit verify`, in place of a run")
    given = parser.parse_args(arguments)
    if given.what == "claims":
        found = claims(verdicts=given.verdicts)
    else:
        found = figures() if given.what == "figures" else paths()
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
    (HERE / f"{given.what}.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
