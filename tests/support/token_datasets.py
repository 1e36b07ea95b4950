"""Invented runs on modular addition, in the form that the studies of token nets have."""

import numpy as np
import xarray

from penchant_papers.notsawo2025.figures.runs import CURVES, USUAL

SIZES = {"modulus": 31, "fraction": 0.5, "width": 32, "learning_rate": 1e-2, "decoupled": False}


def token_dataset(runs):
    """The dataset of these runs; each is a dict of its curves and of what was run."""
    longest = max(len(run["step"]) for run in runs)
    found = {}
    for name in CURVES:
        filled = np.full((len(runs), longest), np.nan)
        for row, run in zip(filled, runs, strict=True):
            curve = run.get(name, np.ones(len(run["step"])))
            row[: len(curve)] = curve
        found[f"trajectory_{name}"] = (("run", "time"), filled)
    usual = {name: value for name, value in USUAL.items() if name != "seed"}
    for name in (*SIZES, *usual, "beta", "twins", "split"):
        values = [{**SIZES, **usual, "twins": 0.5, "split": 0, **run}[name] for run in runs]
        found[name] = ("run", np.array(values))
    attributes = {"title": "invented", "source": "none", "size": "tiny", "ours": ""}
    return xarray.Dataset(found, {"run": np.arange(len(runs))}, attributes)
