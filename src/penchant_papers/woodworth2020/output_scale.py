"""Footnote 1: scaling the output of a homogeneous model is scaling its start."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from penchant import DiagonalNet
from penchant.lab import Array, Dataset, Evidence, Experiment, Plot, Series, sized, within
from penchant.models import ProductNet, Reparametrized
from penchant_papers.endpoints import trace
from penchant_papers.instances import random_instance

MODELS = {"depth 2": 2, "depth 3": 3, "depth 5": 5, "u v": 2}  # and their homogeneity
ODD = "w + w^3"  # not homogeneous; its output is scaled by alpha^3


@dataclasses.dataclass(frozen=True)
class Scaled:
    """A model whose output is multiplied by a number."""

    model: Any
    factor: float

    def start(self, dimension: int) -> Array:
        return np.asarray(self.model.start(dimension))

    def predict(self, w: Array, X: Array) -> Array:
        return np.asarray(self.factor * self.model.predict(w, X))

    def pullback(self, w: Array, X: Array, weights: Array) -> Array:
        return np.asarray(self.factor * self.model.pullback(w, X, weights))


def model_of(name: str, shape: Array, scale: float) -> Any:
    """The model from `scale` times its start."""
    if name == "u v":
        return ProductNet(scale * shape, scale * np.abs(shape[::-1]))
    if name == ODD:
        return Reparametrized(lambda w: w + w**3, scale * 0.8)
    return DiagonalNet(MODELS[name], alpha=scale, shape=shape)


def cell(name: str, alpha: float, seed: int) -> dict[str, Any]:
    """Outputs during training from alpha times the start, and those of alpha^D f from the start.

    The latter is followed to t/alpha^2; for controls also to t, and with alpha f for alpha^D f.
    """
    p = random_instance(0, seed, samples=(3, 4), dimension=(8, 9))
    D, t_end = MODELS.get(name, 3), 0.05 * alpha ** (2 - 2 * MODELS.get(name, 3))
    scaled = model_of(name, p.shape, alpha)
    run = trace(p.X, p.y, scaled, t_end=t_end, points=24)
    along = np.array([scaled.predict(w, p.X) for w in run.parameters])

    def outputs(factor: float, end: float) -> Array:
        model: Any = Scaled(model_of(name, p.shape, 1.0), factor)
        other = trace(p.X, p.y, model, t_end=end, points=24)
        return np.array([model.predict(w, p.X) for w in other.parameters])

    def off(other: Array) -> float:
        return float(np.abs(other - along).max() / np.abs(p.y).max())

    beside = outputs(alpha**D, t_end / alpha**2)
    return {
        "t": run.t,
        "along": along[:, 0],
        "beside": beside[:, 0],
        "left": np.abs(along[-1] - p.y).max() / np.abs(p.y).max(),
        "off": off(beside),
        "off_same_time": off(outputs(alpha**D, t_end)),
        "off_first_power": off(outputs(alpha, t_end / alpha**2)),
    }


study = sized(
    "W-fn1",
    title="Scaling the output of a homogeneous model is equivalent to scaling its start",
    function=cell,
    arguments={"seed": 41},
    grid={"name": [*MODELS, ODD], "alpha": [0.4, 2.0]},
    dims=dict.fromkeys(("t", "along", "beside"), ("time",)),
)


def check(dataset: Dataset) -> Evidence:
    """The same outputs at t/alpha^2, for homogeneous models and not for another one."""
    even, odd = dataset.sel(name=list(MODELS)), dataset.sel(name=ODD)
    same = within(even.off.max(), tolerance=1e-6)
    moved = float(np.abs(even.along.isel(time=-1) - even.along.isel(time=0)).min())
    shown = dataset.sel(name="depth 3", alpha=2.0)
    return Evidence(
        ran=f"gradient flow of {', '.join(MODELS)} and, for a control, of {ODD}, in the parameters,"
        f" with start or output scaled, alpha = {dataset.alpha.values.tolist()}",
        checks={
            "largest difference of alpha^D f at t/alpha² from f started at"
            " alpha w0 at t, over |y|": same
        },
        premises={"the outputs change during training": (moved > 0.1, moved)},
        controls={
            "at the same time t": same.control(even.off_same_time.min()),
            "alpha f in place of alpha^D f": same.control(even.off_first_power.min()),
            f"{ODD}, which is not homogeneous": same.control(odd.off.min()),
        },
        findings=[
            "both follow the same path, u(t) = alpha w(t/alpha²), and end at the same point, at "
            "different speeds: the model with the scaled output is alpha² times faster, which "
            "Chizat et al. take out of the loss"
        ],
        plots=[
            Plot(
                "first output of a net of depth 3, alpha = 2",
                "time t of the scaled start",
                "output",
                [
                    Series("start scaled by alpha", shown.t, shown.along),
                    Series(
                        "output scaled by alpha^3, at t/alpha^2", shown.t, shown.beside, "points"
                    ),
                ],
                x_scale="log",
            )
        ],
    )


experiment = Experiment(
    "W-fn1",
    statement="For a homogeneous model the dynamics from a scaled start are those of a scaled"
    " output, up to the unit of time.",
    place="section 3, footnote 1",
    study=study,
    check=check,
    ours="the models, the scales, and the unit of time: t/alpha^2",
    seconds=3,
)
