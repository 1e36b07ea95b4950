"""The edge of stability: sharpness times learning rate over the threshold of the optimizer.

How it works. Near a minimum one step of an optimizer is theta <- theta - D H theta, with momentum
or not, where D is diagonal: the learning rate, divided for Adam by the root of its second moment.
It is stable while the largest eigenvalue of D H is below a number c that momentum alone
determines: 2 for gradient descent, 2 (1 + m) for heavy-ball momentum m, (2 + 2 m) / (1 + 2 m) for
Nesterov's, 2 (1 + b) / (1 - b) for the averages of Adam (Cohen et al. 2021 and 2022). So the
largest eigenvalue of S H S with S = sqrt(D / c), which is 1 at the edge, is one number for all of
them, also if groups of parameters have several rates. Decay in the gradient is added to H.

The eigenvalue is found by locally optimal conjugate gradients (Knyazev 2001): x moves to the best
vector in the span of x, its residual and its last move. It needs one product with H in each turn,
holds a few vectors, and starts from the vector of the last look. (Lanczos needs as many products,
and all vectors; power iteration finds the largest modulus, which may be negative.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from penchant.arguments import Array
from penchant.door import Invalid, door_as
from penchant.measures.torch.gradients import as_numbers
from penchant.watch.backends.backend import WHO, Backend
from penchant.watch.optimizer import groups_of
from penchant.watch.panel.instrument import LookMoment, Row
from penchant.watch.panel.losses import ProbeLosses

Multiply = Callable[[Array], Array]

FIRST, LATER = 30, 4  # products with the Hessian at the first look and at a later one
ENOUGH = 0.02  # relative residual at which the search ends,
LEAST = 3  # but not before so many products: the start may be near another eigenvector,
FRESH = 0.05  # and a share of it is new in every look, since eigenvalues change their order
ROUNDED = 1e-7  # a relative residual that is rounding
SMALL = 1e-7  # directions that add less than this to the others are dropped
BATCHES = 16  # of the probe inputs, for batch sharpness, at most
STABLE, BEYOND = 0.85, 1.25  # between them the run is at the edge
UNKNOWN = "no threshold of stability is known for {}; edge knows SGD, Adam, AdamW and RMSprop"


class Eigenpair(NamedTuple):
    """An eigenvalue, its vector of length one, and the residual relative to the value."""

    value: float
    vector: Array
    error: float


class LinearStep(NamedTuple):
    """The linear part of one step: D / c for every parameter array, and the decay in the gradient.

    `plain` is true if no array has momentum or its own scale: then a batch can take the place of
    the whole.
    """

    scale: dict[str, Any]
    decay: dict[str, float]
    plain: bool
    rule: str


def largest_eigenvalue(multiply: Multiply, start: Array, most: int = FIRST) -> Eigenpair:
    """The largest eigenvalue of a symmetric matrix, given by its products with vectors."""
    x = start / np.linalg.norm(start)
    # rows: the vector, its residual and its last move; and their products with the matrix
    vectors, products = np.zeros((2, 3, len(x)), dtype=x.dtype)
    vectors[0], products[0], rank = x, multiply(x), 2
    for product in range(1, most + 1):
        value = float(vectors[0] @ products[0])
        residual = products[0] - value * vectors[0]
        size = float(np.linalg.norm(residual))
        done = size <= (ENOUGH if product >= LEAST else ROUNDED) * abs(value)
        if done or product == most or not size < math.inf:
            break
        vectors[1] = residual / size
        products[1] = multiply(vectors[1])
        weights = _best(vectors[:rank], products[:rank])
        for rows in (vectors, products):  # the new vector, and the move to it
            rows[::2] = weights @ rows[: weights.shape[1]]
        for row in (0, 2):
            length = np.linalg.norm(vectors[row])
            vectors[row] /= length
            products[row] /= length
        rank = 3
    return Eigenpair(value, vectors[0].copy(), size / abs(value) if size else 0.0)


def _best(vectors: Array, products: Array) -> Array:
    """How the vector with the largest Rayleigh quotient, and the move to it, are sums of rows."""
    gram = np.asarray(vectors @ vectors.T, dtype=np.float64)
    if len(gram) == 3 and np.linalg.eigvalsh(gram)[0] < SMALL:
        return _best(vectors[:2], products[:2])
    matrix = np.asarray(vectors @ products.T, dtype=np.float64)
    weights = scipy.linalg.eigh((matrix + matrix.T) / 2, gram)[1][:, -1]
    moved = weights * (np.arange(len(weights)) > 0)
    return np.stack([weights, moved]).astype(vectors.dtype)


def batch_sharpness(pairs: list[tuple[Array, Array]]) -> float:
    """The mean of g.Hg / g.g over batches, from their gradients g and products Hg.

    Andreyev and Beneventano 2024: at the edge of stochastic stability it is 2 over the rate.
    """
    ratios = [float(g @ hg) / float(g @ g) for g, hg in pairs if g.any()]
    return float(np.mean(ratios)) if ratios else 0.0


def stability(edge: float) -> str:
    """What a value of edge means."""
    if math.isnan(edge):
        return "not known"
    if edge < STABLE:
        return "stable"
    return "at the edge" if edge <= BEYOND else "beyond the edge"


@door_as(WHO)
def steps_of(optimizer: Any, names: Mapping[int, str]) -> LinearStep:
    """The linear part of a step of torch optimizers; `names` are those of tensors by id."""
    scale: dict[str, Any] = {}
    decay: dict[str, float] = {}
    rules: dict[str, None] = {}
    plain = True
    for owner, group in groups_of(optimizer):
        rule, simple = _rule(owner)
        for value in group["params"]:
            if id(value) in names:
                name = names[id(value)]
                scale[name], decay[name] = rule(owner, group, value)
                plain, rules[type(owner).__name__] = plain and simple(group), None
    return LinearStep(scale, decay, plain, " and ".join(rules))


def _rule(owner: Any) -> tuple[Any, Any]:
    kinds = [kind.__name__ for kind in type(owner).__mro__]
    never = lambda group: False  # noqa: E731
    if "SGD" in kinds:
        return _sgd, lambda group: not group.get("momentum")
    if kinds[0] in ("Adam", "AdamW"):
        return _adam, never
    if kinds[0] == "RMSprop":
        return _rmsprop, never
    raise Invalid(UNKNOWN.format(kinds[0]))


def _sgd(owner: Any, group: Any, value: Any) -> tuple[float, float]:
    m, rate = float(group.get("momentum", 0)), float(group["lr"])
    threshold = 2 * (1 + m)
    if m and group.get("nesterov"):
        threshold /= 1 + 2 * m
    if m:
        rate *= 1 - float(group.get("dampening", 0))
    return rate / threshold, float(group.get("weight_decay", 0))


def _adam(owner: Any, group: Any, value: Any) -> tuple[Any, float]:
    state = owner.state.get(value, {})
    first, second = group["betas"]
    if "exp_avg_sq" not in state:
        return math.nan, 0.0
    step = float(state["step"])
    squares = state["max_exp_avg_sq" if group.get("amsgrad") else "exp_avg_sq"]
    root = as_numbers((squares.detach() / (1 - second**step)).sqrt())
    size = (1 - first**step) * (root + float(group["eps"]))
    coupled = not (group.get("decoupled_weight_decay") or type(owner).__name__ == "AdamW")
    rate = float(group["lr"]) * (1 - first) / (2 * (1 + first))
    return rate / size, float(group["weight_decay"]) if coupled else 0.0


def _rmsprop(owner: Any, group: Any, value: Any) -> tuple[Any, float]:
    state = owner.state.get(value, {})
    if group.get("centered"):
        raise Invalid(UNKNOWN.format("a centered RMSprop"))
    if "square_avg" not in state:
        return math.nan, 0.0
    size = as_numbers(state["square_avg"].detach().sqrt()) + float(group["eps"])
    rate = float(group["lr"]) / (2 * (1 + float(group.get("momentum", 0))))
    return rate / size, float(group["weight_decay"])


class Edge:
    """The instrument: the warm start of the eigenvector, and how the optimizer steps."""

    axis = ""
    members: tuple[str, ...] = ()

    def __init__(
        self,
        backend: Backend,
        losses: ProbeLosses,
        batch_size: int | None,
        optimizer: Any,
        rate: float,
    ):
        self.backend, self.losses, self.batch_size = backend, losses, batch_size
        self.vector: Array | None = None
        self.random = np.random.default_rng(0)
        if optimizer is None and math.isnan(rate):
            raise Invalid("edge needs the learning rate: give optimizer= or learning_rate=")
        self.notes: tuple[str, ...] = (f"edge and noise use the {losses.name} of the probe inputs",)
        if optimizer is not None:
            self._steps(optimizer, rate)  # refuses one without a threshold

    def keep(self, moment: LookMoment) -> Any:
        return self._steps(moment.optimizer, moment.rate)

    def row(self, moment: LookMoment) -> Row:
        steps = moment.kept or self._steps(moment.optimizer, moment.rate)
        arrays = {name: moment.arrays[name] for name in self.backend.names}
        scale = np.sqrt(_flat(steps.scale, arrays))
        if not np.isfinite(scale).all():  # of Adam before its first step
            return {}
        decay: Any = _flat(steps.decay, arrays) if any(steps.decay.values()) else 0.0
        size = self.batch_size
        if steps.plain and size is not None and size < self.losses.count:
            value, error = self._in_batches(moment, scale, decay, size), math.nan
        else:
            with self.losses.curvature(moment.parameters) as product:
                decayed = 0.0 if np.ndim(decay) == 0 else decay * scale**2

                def multiply(v: Array) -> Array:
                    image = product(scale * v)
                    image *= scale
                    return image + decayed * v if np.ndim(decayed) else image

                pair = self._pair(multiply, scale)
            value, error = pair.value, pair.error
        row = {"edge": value, "edge_error": error}
        if np.ptp(scale) == 0 and scale[0] > 0:
            row["sharpness"] = value / float(scale[0]) ** 2
        return row

    def _pair(self, multiply: Multiply, like: Array) -> Eigenpair:
        start = self.random.standard_normal(len(like), dtype=like.dtype)
        first = self.vector is None
        if self.vector is not None:
            start = self.vector + FRESH / math.sqrt(len(like)) * start
        pair = largest_eigenvalue(multiply, start, FIRST if first else LATER)
        if np.isfinite(pair.vector).all():
            self.vector = pair.vector
        return pair

    def _in_batches(self, moment: LookMoment, scale: Array, decay: Any, size: int) -> float:
        parameters = moment.parameters
        origin = np.concatenate([moment.arrays[n].reshape(-1) for n in self.backend.names])
        order = np.random.default_rng(0).permutation(self.losses.count)
        count = min(BATCHES, self.losses.count // size)
        batches = order[: count * size].reshape(count, size)
        slopes = self.losses.gradients(parameters, batches)
        pairs = []
        for rows, slope in zip(batches, list(slopes), strict=True):
            along = scale * (slope + decay * origin)
            with self.losses.curvature(parameters, rows) as product:
                image = product(scale * along) + decay * scale * along
            pairs.append((along, scale * image))
        return batch_sharpness(pairs)

    def _steps(self, optimizer: Any, rate: float) -> LinearStep:
        if optimizer is None or not groups_of(optimizer):  # gradient descent at a given rate
            names = self.backend.names
            return LinearStep(dict.fromkeys(names, rate / 2), dict.fromkeys(names, 0.0), True, "")
        live = self.backend.function.module.named_parameters()  # type: ignore[attr-defined]
        return steps_of(optimizer, {id(value): name for name, value in live})


def _flat(parts: Mapping[str, Any], arrays: Mapping[str, Any]) -> Array:
    """One vector of all arrays, from an array or a number for each; zero for a missing one."""
    dtype = np.result_type(*(array.dtype for array in arrays.values()))
    return np.concatenate(
        [
            np.broadcast_to(np.asarray(parts.get(name, 0.0)), array.shape).reshape(-1)
            for name, array in arrays.items()
        ]
    ).astype(dtype)
