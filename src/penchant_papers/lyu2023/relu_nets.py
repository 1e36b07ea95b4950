"""Theorems 1 and 2 on ReLU nets, which are not smooth: descent on the difference of two copies."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from penchant import L2, Classification, max_margin
from penchant.lab import (
    DRAWS,
    Array,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_most,
    drawn,
    lower_share,
    margin_of_mean,
    sized,
)
from penchant.measures import angle, kkt_residual
from penchant.models import LinearPredictor
from penchant_papers.lyu2023.runs import joint_rate

POINTS, FEATURES, NEW = 6, 6, 200
SCALED, STEP = 10.0, 0.05  # the step is the smaller of SCALED/|theta|^2 and STEP
MOST = 0.5  # of the nets are to classify their points; the theorem is about those


@dataclasses.dataclass(frozen=True)
class Nets:
    """Differences of two copies of v.relu(W x), one for each instance, on XOR of two coordinates.

    Parameters are one row (W, v) for each instance and copy; the copies start equal, so that the
    output is zero.
    """

    X: Array  # instance, point, feature
    y: Array
    width: int

    def split(self, theta: Array) -> tuple[Array, Array]:
        """W and v of every instance and copy."""
        W = theta[..., : self.width * FEATURES].reshape(*theta.shape[:-1], self.width, FEATURES)
        return W, theta[..., self.width * FEATURES :]

    def outputs(self, theta: Array, X: Array) -> Array:
        W, v = self.split(theta)
        units = np.maximum(np.einsum("kcwf,knf->kcnw", W, X), 0)
        both = np.einsum("kcnw,kcw->kcn", units, v)
        return np.asarray(both[:, 0] - both[:, 1])

    def features(self, theta: Array, X: Array) -> Array:
        """The gradient of every output in all parameters of its instance, flat."""
        W, v = self.split(theta)
        sums = np.einsum("kcwf,knf->kcnw", W, X)
        inner = ((sums > 0) * v[:, :, None])[..., None] * X[:, None, :, None, :]
        parts = np.concatenate([inner.reshape(*sums.shape[:3], -1), np.maximum(sums, 0)], axis=3)
        return np.asarray(np.concatenate([parts[:, 0], -parts[:, 1]], axis=2))

    def slope(self, theta: Array) -> Array:
        """The gradient of the sum of the logistic losses."""
        W, v = self.split(theta)
        sums = np.einsum("kcwf,knf->kcnw", W, self.X)
        units = np.maximum(sums, 0)
        both = np.einsum("kcnw,kcw->kcn", units, v)
        pull = -self.y / (1 + np.exp(self.y * (both[:, 0] - both[:, 1])))
        pull = np.stack([pull, -pull], axis=1)
        outer = np.einsum("kcn,kcnw->kcw", pull, units)
        inner = np.einsum("kcnw,knf->kcwf", pull[..., None] * (sums > 0) * v[:, :, None], self.X)
        return np.concatenate([inner.reshape(*theta.shape[:2], -1), outer], axis=2)


def instance(seed: int, width: int) -> tuple[Array, Array, Array]:
    """Points, new points and two starts (W, v) at alpha = 1."""
    rng = np.random.default_rng((seed, 31))
    X, new = rng.normal(size=(POINTS, FEATURES)), rng.normal(size=(NEW, FEATURES))
    W = rng.normal(size=(2, width * FEATURES)) / math.sqrt(FEATURES)
    return X, new, np.concatenate([W, rng.normal(size=(2, width)) / math.sqrt(width)], axis=1)


def active(one: tuple[Array, Array, Array], width: int) -> bool:
    """Whether both starts have a unit that is not zero at every point: else f is zero there."""
    X, _, starts = one
    W = starts[:, :-width].reshape(2, width, FEATURES)
    return bool((np.einsum("swf,nf->snw", W, X) > 0).any(axis=2).all())


def drawn_nets(count: int, width: int, seed: int) -> tuple[Nets, Array, Array, Array]:
    """Nets, new points, their starts at alpha = 1 and other starts, (W, v) twice each."""
    cases = [
        drawn(lambda k: instance(k, width), lambda one: active(one, width), DRAWS * seed, number)[0]
        for number in range(count)
    ]
    X, new, starts = (np.array(part) for part in zip(*cases, strict=True))
    labels = np.where(X[..., 0] * X[..., 1] > 0, 1.0, -1.0)
    first, other = (np.repeat(starts[:, k, None], 2, axis=1) for k in range(2))
    return Nets(X, labels, width), new, first, other


def descend(nets: Nets, start: Array, log_alpha: float, moments: Any) -> list[Array]:
    """The parameters at these multiples of (1/rate) log alpha, the time being the sum of steps."""
    rate, theta = joint_rate(log_alpha), math.exp(log_alpha) * start
    t, left, states = np.zeros(len(start)), list(np.array(moments) * log_alpha / rate), []
    while left:
        squares = np.sum(theta**2, axis=(1, 2))
        step = np.minimum(np.minimum(SCALED / squares, STEP), left[0] - t)
        theta = theta - step[:, None, None] * (nets.slope(theta) + rate * theta)
        t = t + step
        if (t >= left[0]).all():
            states.append(theta)
            left.pop(0)
    return states


def cell(log_alpha: float, *, seed: int, count: int, width: int, c: float) -> dict[str, Any]:
    """Angles to the kernel SVM of two starts at 1 - c, KKT residuals at 1 - c and 1 + c."""
    nets, new, start, other = drawn_nets(count, width, seed)
    before, after = descend(nets, start, log_alpha, (1 - c, 1 + c))
    outputs = nets.outputs(before, new)
    angles = {
        name: [float(angle(*pair)) for pair in zip(outputs, machine(nets, at, new), strict=True)]
        for name, at in (("own", start), ("other", other))
    }
    return {**angles, "before": residuals(nets, before), "after": residuals(nets, after)}


def machine(nets: Nets, start: Array, new: Array) -> list[Array]:
    """The outputs on new points of the kernel SVM of a start, for every instance."""
    seen, unseen = nets.features(start, nets.X), nets.features(start, new)
    return [
        beyond @ max_margin(rows, y, L2()).beta
        for rows, beyond, y in zip(seen, unseen, nets.y, strict=True)
    ]


def residuals(nets: Nets, theta: Array) -> list[float]:
    """How far the parameters of every instance are from a KKT point of the margin problem.

    The gradients times the parameters are twice the outputs (degree 2), so that the condition is
    that of the linear problem in the gradients.
    """
    flat = theta.reshape(len(theta), -1)
    return [
        kkt_residual(Classification(slopes, y), LinearPredictor(), one)
        for slopes, y, one in zip(nets.features(theta, nets.X), nets.y, flat, strict=True)
    ]


study = sized(
    "L-relu",
    function=cell,
    arguments={"count": 20, "width": 12, "c": 0.5},
    grid={"log_alpha": [1.25, 2.75]},
    seeds=1,
    dims={name: ["instance"] for name in ("own", "other", "before", "after")},
    labels={
        "own": "angle to the outputs of the kernel SVM of the start, degrees",
        "other": "the same for another start",
        "before": "KKT residual at $1 - c$",
        "after": "KKT residual at $1 + c$",
    },
    tiny={"grid": {"log_alpha": [1.25, 2.25]}},
    printed={"arguments": {"count": 100}, "grid": {"log_alpha": [1.25, 2.0, 2.75, 3.5]}},
)


def check(dataset: Dataset) -> Evidence:
    """Both distances fall with alpha: to the kernel SVM before the jump, to KKT after it."""
    learned = (abs(dataset.before) + abs(dataset.after) < np.inf).all("log_alpha")
    total, kept = dataset.sizes["instance"], int(learned.sum())
    dataset = dataset.isel(instance=learned.isel(seed=0).values)
    first, last = (dataset.isel(log_alpha=k, seed=0) for k in (0, -1))
    kernel = at_most(highest(last.own / first.own), 0.85)
    kkt = at_most(highest(last.after / first.after), 0.85)
    near = at_most(highest(last.own / last.other), 0.5)
    sizes = ", ".join(f"{a:g}" for a in dataset.log_alpha.values)
    x, means = dataset.log_alpha.values, dataset.mean(("seed", "instance"))
    return Evidence(
        ran=f"{kept} differences of two copies of a net of 12 ReLU units, six "
        "Gaussian points in $R^6$ with the signs of $x_1 x_2$, logistic loss, descent with rate = "
        rf"$1/\alpha$, $c = 1/2$, $\log \alpha$ = {sizes}",
        checks={
            r"angle to the kernel SVM of the start at $1 - c$, largest $\alpha$ over smallest, "
            r"mean "
            "with its margin": kernel,
            "the same angle over that to the kernel SVM of another start, largest "
            r"$\alpha$": near,
            r"KKT residual at $1 + c$, largest $\alpha$ over smallest, mean with its margin": kkt,
        },
        controls={
            "the kernel SVM of another start": kernel.control(lowest(last.other / first.other)),
            "the KKT residual at $1 - c$": kkt.control(lowest(last.before / first.before)),
            "another start against the own": near.control(lowest(last.other / last.own)),
        },
        premises={
            "most nets classify all points correctly at both moments; the others are left out": (
                lower_share(kept, total) >= MOST,
                f"{kept} of {total}",
            ),
        },
        findings=[
            "mean angle to the kernel SVM of the start: "
            + ", ".join(
                rf"{float(one.own.mean()):.1f} at $\log \alpha = {float(one.log_alpha):g}$"
                for one in (first, last)
            )
            + "; mean KKT residual after the jump: "
            + ", ".join(f"{float(one.after.mean()):.2f}" for one in (first, last)),
            "a flow with error control stops at the kinks of ReLU units; descent steps over them",
        ],
        plots=[
            Plot(
                "before the jump: near the kernel SVM of the own start",
                r"$\log \alpha$",
                "angle in degrees, mean over the nets",
                [
                    Series("to the kernel SVM, at $1 - c$", x, means.own.values),
                    Series("control: to that of another start", x, means.other.values, "dashed"),
                ],
            ),
            Plot(
                "after the jump: nearer to a KKT point",
                r"$\log \alpha$",
                "KKT residual, mean over the nets",
                [
                    Series("after the jump, at $1 + c$", x, means.after.values),
                    Series("before the jump, at $1 - c$", x, means.before.values, "dashed"),
                ],
            ),
        ],
    )


def highest(values: Any) -> float:
    """The mean of independent values plus what it may be off by chance."""
    return float(values.mean()) + margin_of_mean(values.values)


def lowest(values: Any) -> float:
    """The mean of independent values minus what it may be off by chance."""
    return float(values.mean()) - margin_of_mean(values.values)


experiment = Experiment(
    "L-relu",
    statement=r"Theorems 1 and 2 extend to nets that are not smooth: with a difference of two ReLU "
    r"nets the outputs at $(1 - c)(1/\mathrm{rate}) \log \alpha$ come nearer to those of the "
    r"kernel "
    r"SVM of the start, and the parameters at $(1 + c)(1/\mathrm{rate}) \log \alpha$ to a KKT "
    r"point of "
    r"the margin problem, the larger $\alpha$ is.",
    place="Assumption 2, 'the proof should be extendable to non-smooth cases'",
    study=study,
    check=check,
    title="ReLU nets have both phases too: the kernel SVM first, a KKT point later",
    ours=r"the nets, the data, $c = 1/2$ and rate = $1/\alpha$; descent in place of the flow",
    seconds=3,
)
