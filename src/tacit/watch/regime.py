"""Which regime a run is in: kernel, leaving or rich, by how far its tangent kernel has turned.

The limits come from trained models of a known regime; tests/watch/test_jax.py trains them again.
Kernel distance at the end of training, with the linearized error |f - f_lin| / |f - f0|:

    diagonal net, sparse regression      alpha  1     0.3     0.2    0.1   0.03  0.01  0.001
    (W section 4; n=40, d=100)        distance  7e-8  0.0009  0.012  0.15  0.43  0.54  0.60
                              linearized error  3e-4  0.04    0.14   0.45  0.84  0.95  1.00
             test error (kernel predictor 0.78) 0.78  0.75    0.69   0.48  0.13  0.03  0.001
    unbiased ReLU net of 100 units       alpha  2     1       0.5    0.3   0.1   0.03
    (30 inputs in 10 dimensions)      distance  2e-5  0.0015  0.041  0.15  0.37  0.38
                              linearized error  0.02  0.12    0.33   0.49  0.73  0.90
             test error (kernel predictor 0.28) 0.28  0.27    0.26   0.23  0.19  0.19

Below a distance of 0.01 with less than a fifth of the change missed by the linearized model, the
predictor is that of the kernel to a few percent; above 0.25 it has found what the kernel does not.
Under weight decay the tangent features shrink with the parameters, which the linearized model does
not know although the direction of the kernel lasts: then the distance decides alone.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from tacit.records import Record

KERNEL = 0.01  # kernel distance below which a run is in the kernel regime
RICH = 0.25  # and above which it is rich
MISSED = 0.2  # the most that the linearized model may miss in the kernel regime


@dataclasses.dataclass(frozen=True, repr=False)
class Regime(Record):
    """`kind` is "kernel", "leaving", "rich" or "unknown", `evidence` says why in a sentence.

    `step` is that of the latest look with a kernel, `left` the first at which the kernel distance
    was above the limit of the kernel regime (NaN if at none).
    """

    kind: str
    evidence: str
    step: float = math.nan
    kernel_distance: float = math.nan
    linearized_error: float = math.nan
    left: float = math.nan


def regime(dataset: Any) -> Regime:
    """The regime of the run so far, from the dataset of a watch."""
    if dataset.attrs["changed"]:
        return Regime("unknown", f"the model is not that of the start ({dataset.attrs['changed']})")
    step, distance, missed = (
        dataset[name].values for name in ("step", "kernel_distance", "linearized_error")
    )
    known = np.flatnonzero(np.isfinite(distance))
    last = known[-1] if len(known) else 0
    if last == 0:
        return Regime("unknown", "there has been no look at the tangent kernel since the start")
    change = float(dataset["output_change"].values[last])
    if not change > 0:
        return Regime("unknown", "the outputs on the probe inputs have not moved since the start")
    decay = dataset.attrs["weight_decay"] > 0
    now, error = float(distance[last]), float(missed[last])
    out = np.flatnonzero(distance >= KERNEL)
    left = float(step[out[0]]) if len(out) else math.nan
    kind = _kind(now, math.nan if decay else error)
    return Regime(kind, _evidence(step[last], now, error, decay), step[last], now, error, left)


def regimes(dataset: Any) -> list[str]:
    """The kind of regime at every look, "unknown" where there is no kernel or nothing has moved."""
    decay = dataset.attrs["weight_decay"] > 0
    names = ("kernel_distance", "linearized_error", "output_change")
    rows = zip(*(dataset[name].values for name in names), strict=True)
    return [
        _kind(distance, math.nan if decay else missed)
        if math.isfinite(distance) and change > 0
        else "unknown"
        for distance, missed, change in rows
    ]


def _kind(distance: float, missed: float) -> str:
    if distance > RICH:
        return "rich"
    return "leaving" if distance >= KERNEL or missed >= MISSED else "kernel"


def _evidence(step: float, distance: float, missed: float, decay: bool) -> str:
    text = (
        f"at step {step:g} the tangent kernel is {distance:.2g} away from the start (kernel regime "
        f"below {KERNEL:g}, rich above {RICH:g})"
    )
    if decay:
        return f"{text}; under weight decay that decides alone"
    share = f"{missed:.0%}" if math.isfinite(missed) else "an unknown share"
    return (
        f"{text}, and the model linearized there misses {share} of the change (kernel regime below "
        f"{MISSED:.0%})"
    )
