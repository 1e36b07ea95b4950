"""Footnote 1: scaling the output of a homogeneous model is scaling its start."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from penchant import DiagonalNet
from penchant.lab import (
    DRAWS,
    Array,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    drawn,
    sized,
    within,
)
from penchant.models import ProductNet, Reparametrized
from penchant_papers.endpoints import trace
from penchant_papers.instances import Instance, random_instance

MODELS = {"depth 2": 2, "depth 3": 3, "depth 5": 5, "u v": 2}  # and their homogeneity
ALPHAS = [0.4, 2.0]
FAR = 0.5  # of |y|: no model starts nearer to the labels than this, so that all have to move
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


@functools.lru_cache(maxsize=8)  # the cells of one seed share their problem
def instance_far(seed: int) -> tuple[Instance, int]:
    """A problem whose labels every start misses by FAR, and how many draws that took."""

    def misses(p: Instance) -> bool:
        models = (model_of(name, p.shape, alpha) for name in MODELS for alpha in ALPHAS)
        outputs = (model.predict(model.start(len(p.shape)), p.X) for model in models)
        return all(np.abs(f - p.y).max() > FAR * np.abs(p.y).max() for f in outputs)

    def make(k: int) -> Instance:
        return random_instance(0, k, samples=(3, 4), dimension=(8, 9))

    return drawn(make, misses, DRAWS * seed)


def cell(name: str, alpha: float, seed: int) -> dict[str, Any]:
    """Outputs during training from alpha times the start, and those of alpha^D f from the start.

    The latter is followed to t/alpha^2; for controls also to t, and with alpha f for alpha^D f.
    """
    p, draws = instance_far(seed)
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
        "draws": draws,
        "moved": np.abs(along - along[0]).max() / np.abs(p.y).max(),
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
    grid={"name": [*MODELS, ODD], "alpha": ALPHAS},
    dims=dict.fromkeys(("t", "along", "beside"), ("time",)),
)


def check(dataset: Dataset) -> Evidence:
    """The same outputs at t/alpha^2, for homogeneous models and not for another one."""
    even, odd = dataset.sel(name=list(MODELS)), dataset.sel(name=ODD)
    same = within(even.off.max(), tolerance=1e-6)
    moved = float(even.moved.min())
    shown = dataset.sel(name="depth 3", alpha=2.0)
    return Evidence(
        ran=f"gradient flow of {', '.join(MODELS)} and, for a control, of {ODD}, in the "
        rf"parameters, with start or output scaled, $\alpha$ = {dataset.alpha.values.tolist()}; "
        f"problem {int(dataset.draws.max())} of those drawn, the first that all starts miss by "
        f"{FAR:g} of $|y|$",
        checks={
            r"largest difference of $\alpha^D f$ at $t/\alpha^2$ from $f$ started at $\alpha w_0$ "
            "at $t$, over $|y|$": same
        },
        premises={
            "the outputs change during training, the least change over the models, in units of "
            "$|y|$": (moved > 0.1, moved)
        },
        controls={
            "at the same time $t$": same.control(even.off_same_time.min()),
            r"$\alpha f$ in place of $\alpha^D f$": same.control(even.off_first_power.min()),
            f"{ODD}, which is not homogeneous": same.control(odd.off.min()),
        },
        findings=[
            r"both follow the same path, $u(t) = \alpha w(t/\alpha^2)$, and end at the same "
            r"point, at different speeds: the model with the scaled output is $\alpha^2$ "
            "times faster, which Chizat et al. take out of the loss"
        ],
        plots=[
            Plot(
                r"first output of a net of depth 3, $\alpha = 2$",
                "time $t$ of the scaled start",
                "output",
                [
                    Series(r"start scaled by $\alpha$", shown.t, shown.along),
                    Series(
                        r"output scaled by $\alpha^3$, at $t/\alpha^2$",
                        shown.t,
                        shown.beside,
                        "points",
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
    ours=r"the models, the scales, and the unit of time: $t/\alpha^2$",
    seconds=3,
)
