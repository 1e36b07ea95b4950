"""What the panel says of a run: one sentence for each measure, and their cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.watch.panel.edge import stability
from penchant.watch.panel.instrument import MEASURES


def panel_sentences(dataset: Any) -> dict[str, str]:
    """The sentence of every measure that the record has, by its name."""
    chosen = [name for name in MEASURES if f"{name}_seconds" in dataset]
    return {name: SENTENCES[name](dataset) or "no number yet" for name in chosen}


def panel_cost(dataset: Any) -> str:
    """What each measure took at a look, and all together beside the rest of it; "" for none."""
    columns = {name: f"{name}_seconds" for name in MEASURES if f"{name}_seconds" in dataset}
    if not columns:
        return ""
    each = {name: dataset[column].values for name, column in columns.items()}
    whole = np.sum(list(each.values()), axis=0)
    times = float(np.nanmedian(whole / (dataset["look_seconds"].values - whole)))
    costs = ", ".join(f"{name} {np.nanmedian(values):.2g} s" for name, values in each.items())
    return f"{costs} at a look (median), together {times:.2g} times the rest of it"


def _last(dataset: Any, name: str) -> float:
    """The last number that is known, NaN if none is."""
    values = dataset[name].values if name in dataset else np.array([])
    known = values[np.isfinite(values)]
    return float(known[-1]) if known.size else np.nan


def _lasts(dataset: Any, name: str) -> Array:
    """The numbers of the last look that has some, without the unknown ones."""
    values = dataset[name].values if name in dataset else np.empty((0, 0))
    known = [row[np.isfinite(row)] for row in values if np.isfinite(row).any()]
    return known[-1] if known else np.array([])


def _span(values: Array, unit: str = "") -> str:
    low, high = f"{values.min():.2g}", f"{values.max():.2g}"
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def _joined(parts: dict[str, Array | float], texts: dict[str, str]) -> str:
    """The texts of those parts that are known, with their numbers."""
    said = []
    for name, values in parts.items():
        known = np.atleast_1d(np.asarray(values, dtype=np.float64))
        if known.size and np.isfinite(known).all():
            said.append(texts[name].format(_span(known)))
    return ", ".join(said)


def _edge(dataset: Any) -> str:
    value, error = _last(dataset, "edge"), _last(dataset, "edge_error")
    if np.isnan(value):
        return ""
    text = f"{stability(value)}: {value:.3g} times the threshold of the optimizer"
    if error > 0.1:
        text += f" (the eigenvector has a residual of {error:.0%})"
    if not np.isnan(sharp := _last(dataset, "sharpness")):
        text += f", sharpness {sharp:.3g}"
    return text


def _activations(dataset: Any) -> str:
    dead = _lasts(dataset, "dead_units")
    parts: dict[str, Array | float] = {
        "unit_size": _lasts(dataset, "unit_size"),
        "unit_rank": _lasts(dataset, "unit_rank"),
        "dead_units": float(dead.max()) if dead.size else np.nan,
        "neural_collapse": _last(dataset, "neural_collapse"),
        "low_rank": _last(dataset, "low_rank"),
    }
    return _joined(
        parts,
        {
            "unit_size": "outputs of layers have size {}",
            "unit_rank": "their inputs effective rank {}",
            "dead_units": "a share of at most {} of units is dead",
            "neural_collapse": "NC1 is {}",
            "low_rank": "D_LR is {}",
        },
    )


def _updates(dataset: Any) -> str:
    names = ("update_share", "rotation", "ball_share")
    return _joined(
        {name: _lasts(dataset, name) for name in names},
        {
            "update_share": "a step changes arrays by {} of their norms",
            "rotation": "turns them by {} degrees",
            "ball_share": "and they use {} of the ball of weight decay",
        },
    )


def _noise(dataset: Any) -> str:
    known = dataset["noise_scale"].values if "noise_scale" in dataset else np.array([np.nan])
    text = f"the gradient noise scale is above {dataset.sizes['sample']} samples, the probe inputs"
    if np.isfinite(known[-1]):
        text = f"the gradient noise scale is {known[-1]:.3g} samples"
    if (zero := _last(dataset, "zero_loss")) > 0:
        text += f", {zero:.0%} of the loss terms are exactly zero in float32"
    return text


def _balance(dataset: Any) -> str:
    drift = _lasts(dataset, "balance_drift")
    if not drift.size:
        return "no two arrays that follow each other have a conserved balance"
    pairs = f"{len(drift)} pair{'s' if len(drift) > 1 else ''} of layers"
    return f"the balance of {pairs} has drifted by {_span(drift)} of the squared norms"


SENTENCES: dict[str, Callable[[Any], str]] = {
    "edge": _edge,
    "activations": _activations,
    "updates": _updates,
    "noise": _noise,
    "balance": _balance,
}
