"""What one step does to every parameter array, and how near it is to the ball of weight decay.

AdamW with decay d keeps entries within 1/d, the ball of the l-infinity norm (Xie and Li 2024), and
Muon singular values within a/d, where a scales its update (Chen, Li and Liu 2025). Where weights
have no scale of their own, as before a normalization, a step turns them by rate / |w|^2 times the
gradient of the unit vector: the effective rate (van Laarhoven 2017, Kosson et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.watch.backends.backend import Backend
from penchant.watch.measures import WIDEST
from penchant.watch.optimizer import groups_of
from penchant.watch.panel.instrument import LookMoment, Row

POWER, TOLERANCE = 60, 1e-5  # turns of power iteration for large matrices, and where it ends
EXACT = 512  # smaller sides of matrices whose singular values are all computed
SIGNED = ("AdamW", "Lion")  # whose updates are bounded entry by entry


def update_share(before: Array, now: Array, steps: float = 1) -> float:
    """|w' - w| / |w|, for one of so many steps."""
    size = float(np.linalg.norm(before))
    return float(np.linalg.norm(now - before)) / size / steps if size > 0 else math.nan


def rotation(before: Array, now: Array, steps: float = 1) -> float:
    """The angle between w and w' in degrees, for one of so many steps; exact for small ones."""
    sizes = [float(np.linalg.norm(array)) for array in (before, now)]
    if not min(sizes) > 0:
        return math.nan
    a, b = (array / size for array, size in zip((before, now), sizes, strict=True))
    angle = 2 * math.atan2(float(np.linalg.norm(a - b)), float(np.linalg.norm(a + b)))
    return math.degrees(angle) / steps


def spectral_norm(matrix: Array) -> float:
    """The largest singular value."""
    if min(matrix.shape) <= EXACT:
        gram = matrix @ matrix.T if matrix.shape[0] < matrix.shape[1] else matrix.T @ matrix
        return math.sqrt(max(float(np.linalg.eigvalsh(gram)[-1]), 0.0))
    vector: Array = np.random.default_rng(0).standard_normal((matrix.shape[1],))
    size = 0.0
    for _ in range(POWER):
        vector = matrix.T @ (matrix @ (vector / np.linalg.norm(vector)))
        last, size = size, math.sqrt(float(np.linalg.norm(vector)))
        if abs(size - last) <= TOLERANCE * size:
            break
    return size


def ball_share(matrix: Array, kind: str, decay: float, scale: float = 1.0) -> float:
    """How much of the ball is used: the norm that belongs to `kind`, times decay over scale."""
    if not decay > 0:
        return math.nan
    if kind == "Muon":
        return spectral_norm(matrix) * decay / scale if matrix.ndim == 2 else math.nan
    return float(np.abs(matrix).max()) * decay / scale if kind in SIGNED else math.nan


class Updates:
    """The instrument; it needs the parameters of the call before."""

    axis = ""
    members: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __init__(self, backend: Backend):
        self.backend = backend

    def keep(self, moment: LookMoment) -> Any:
        return self._row(moment)  # weights alone: at a copy it costs what it costs later

    def row(self, moment: LookMoment) -> Row:
        return moment.kept or self._row(moment)

    def _row(self, moment: LookMoment) -> Row:
        columns = ("update_share", "rotation", "effective_rate", "spectral_norm", "ball_share")
        row = {name: np.full(len(self.backend.names), math.nan) for name in columns}
        rules = self._rules(moment)
        for place, name in enumerate(self.backend.names):
            array = moment.arrays[name].astype(np.float64)
            numbers = self._numbers(array, rules.get(name), moment.rate)
            if moment.before is not None:
                step, arrays = moment.before
                before, steps = arrays[name].astype(np.float64), moment.step - step
                numbers["update_share"] = update_share(before, array, steps)
                numbers["rotation"] = rotation(before, array, steps)
            for key, value in numbers.items():
                row[key][place] = value
        return row

    def _numbers(
        self, array: Array, rule: tuple[str, float, float, float] | None, rate: float
    ) -> dict[str, float]:
        kind, rate, decay, scale = rule or ("", rate, 0.0, 1.0)
        square = float(np.sum(array**2))
        numbers = {"effective_rate": rate / square if square > 0 else math.nan}
        if array.ndim >= 2:
            axis = self.backend.out_axis if array.ndim > 2 else 0
            matrix = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
            if min(matrix.shape) <= WIDEST:
                numbers["spectral_norm"] = spectral_norm(matrix)
        numbers["ball_share"] = ball_share(array, kind, decay, scale)
        return numbers

    def _rules(self, moment: LookMoment) -> Mapping[str, tuple[str, float, float, float]]:
        """Kind of optimizer, rate, decoupled decay and scale of the update, for every array."""
        groups = groups_of(moment.optimizer)
        if not groups:
            return {}
        live = self.backend.function.module.named_parameters()  # type: ignore[attr-defined]
        names = {id(value): name for name, value in live}
        return {
            names[id(value)]: (
                type(owner).__name__,
                float(group["lr"]),
                float(group.get("weight_decay", 0)),
                muon_scale(group, tuple(value.shape)),
            )
            for owner, group in groups
            for value in group["params"]
            if id(value) in names
        }


def muon_scale(group: Mapping[str, Any], shape: tuple[int, ...]) -> float:
    """The factor of torch.optim.Muon on the rate of an update; 1 for other optimizers."""
    if "ns_steps" not in group or len(shape) != 2:
        return 1.0
    if group.get("adjust_lr_fn") == "match_rms_adamw":
        return 0.2 * math.sqrt(max(shape))
    return math.sqrt(max(1.0, shape[0] / shape[1]))
