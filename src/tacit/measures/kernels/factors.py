"""Gradients of samples, kept as the two factors h, delta of a layer W h where those are smaller.

A weight of a single matrix product has the gradient sum_t delta_t h_t^T of a sample, so <grad,
grad'> = sum_ts <h_t, h'_s> <delta_t, delta'_s>; delta is the derivative in a zero added to the
product. Every other parameter (biases, convolutions, shared weights) keeps its whole gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tacit.lazy import jax, jnp

INLINED = ("jit", "pjit")  # the names of one primitive in different versions of JAX
REARRANGED = ("copy", "convert_element_type", "reshape", "squeeze", "transpose")


class Factors(NamedTuple):
    """Of n samples with C outputs: whole gradients `rows`, each (n, C, size of the parameter), and
    `layers` of inputs h (n, T, K) and slopes delta (n, T, C, O), for weights used T times.

    Every parameter has one key and is in one of the two. An h of integers (n, T) are numbers of
    rows of the weight, as of tokens in an embedding: it stands for unit vectors.
    """

    rows: dict[Any, Any]
    layers: dict[Any, tuple[Any, Any]]


class Weight(NamedTuple):
    """The parameter `leaf`, perhaps rearranged, on its way to a matrix product."""

    leaf: int
    value: Any


class Use(NamedTuple):
    """A matrix product of T vectors of K numbers each with a K x O weight."""

    times: int
    inputs: int
    outputs: int

    def pays(self, outputs: int) -> bool:
        """Is the kernel cheaper by factors than by whole gradients of `outputs` outputs?"""
        factored = self.times**2 * (self.inputs + outputs * self.outputs)
        return factored < outputs * self.inputs * self.outputs


class Taps:
    """Collects how each weight is used; adds `zeros` to the products and keeps their inputs."""

    def __init__(self, zeros: dict[int, Any] | None = None):
        self.zeros = zeros
        self.uses: dict[int, list[Use | None]] = {}
        self.inputs: dict[int, Any] = {}

    def product(self, eqn: Any, values: list[Any], place: int) -> Any:
        """The matrix product `eqn`, whose operand number `place` is a weight."""
        leaf, weight = values[place]
        other = values[1 - place]
        contracted = eqn.params["dimension_numbers"][0][1 - place]
        free = [axis for axis in range(other.ndim) if axis not in contracted]
        inputs = math.prod(other.shape[axis] for axis in contracted)
        use = Use(other.size // max(inputs, 1), inputs, weight.size // max(inputs, 1))
        self.uses.setdefault(leaf, []).append(use)
        values = [other, weight] if place == 1 else [weight, other]
        (found,) = _bind(eqn, values)
        if self.zeros is None:
            return found
        moved = jnp.transpose(other, (*free, *contracted))
        self.inputs[leaf] = moved.reshape(use.times, use.inputs)
        zero = self.zeros[leaf]
        return found + (zero if place == 1 else zero.T).reshape(found.shape).astype(found.dtype)


def factors(
    sample: Callable[[Any, Any], Any],
    arrays: Sequence[Any],
    learned: Sequence[int],
    x: Any,
    factored: bool = True,
) -> Callable[[Any, Any], Factors]:
    """A function of (arrays, x) that gives the Factors of every row of `x`.

    `sample(arrays, x_n)` returns the C outputs of one sample; `learned` says which of `arrays` are
    parameters. Only shapes and dtypes of `arrays` and of the single sample `x` matter. With
    `factored=False` every gradient is whole.
    """
    closed = jax.make_jaxpr(sample)(arrays, x)
    outputs = closed.out_avals[0].shape[0]
    layers = _layers(closed, arrays, learned, x, outputs) if factored else {}
    whole = [leaf for leaf in learned if leaf not in layers]

    def one(arrays: Any, x: Any) -> Factors:
        def run(rest: dict[int, Any], zeros: dict[int, Any]) -> Any:
            values = [rest.get(i, array) for i, array in enumerate(arrays)]
            if not zeros:
                return sample(values, x), {}
            taps = Taps(zeros)
            marked = [Weight(*v) if v[0] in zeros else v[1] for v in enumerate(values)]
            return _outputs(closed, [*marked, x], taps), taps.inputs

        return _pulled(run, {leaf: arrays[leaf] for leaf in whole}, layers, arrays)

    return jax.vmap(one, in_axes=(None, 0))


def _pulled(
    run: Callable[..., Any], rest: dict[int, Any], layers: dict[int, Use], arrays: Any
) -> Any:
    """The Factors of one sample: one pass forward, one back for every output."""
    zeros = {i: jnp.zeros((use.times, use.outputs), arrays[i].dtype) for i, use in layers.items()}
    found, pull, inputs = jax.vjp(run, rest, zeros, has_aux=True)
    units = jnp.eye(found.shape[0], dtype=found.dtype)
    if len(units) == 1:  # without an axis of outputs, and so without a copy that rearranges it
        rows, slopes = jax.tree.map(lambda array: array[None], pull(units[0]))
    else:
        rows, slopes = jax.vmap(pull)(units)
    flat = {i: row.reshape(row.shape[0], -1) for i, row in rows.items()}
    return Factors(flat, {i: (inputs[i], jnp.swapaxes(slopes[i], 0, 1)) for i in layers})


def _layers(
    closed: Any, arrays: Sequence[Any], learned: Sequence[int], x: Any, outputs: int
) -> dict[int, Use]:
    """The parameters used in one matrix product and nowhere else, where their factors pay."""
    taps = Taps()

    def run(arrays: Any, x: Any) -> Any:
        values = [Weight(i, a) if i in learned else a for i, a in enumerate(arrays)]
        return _outputs(closed, [*values, x], taps)

    jax.eval_shape(run, list(arrays), x)
    single = {leaf: uses[0] for leaf, uses in taps.uses.items() if len(uses) == 1}
    return {leaf: use for leaf, use in single.items() if use is not None and use.pays(outputs)}


def _outputs(closed: Any, values: list[Any], taps: Taps) -> Any:
    (found,) = _evaluate(closed.jaxpr, closed.consts, values, taps)
    return _plain(found, taps)


def _evaluate(jaxpr: Any, consts: Any, values: list[Any], taps: Taps) -> list[Any]:
    """The outputs of a jaxpr, with `taps` at the products of its weights."""
    held = dict(zip(jaxpr.constvars, consts, strict=True))
    held.update(zip(jaxpr.invars, values, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if hasattr(atom, "val") else held[atom]

    for eqn in jaxpr.eqns:
        held.update(zip(eqn.outvars, _step(eqn, [read(a) for a in eqn.invars], taps), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _step(eqn: Any, values: list[Any], taps: Taps) -> list[Any]:
    """The values of one equation; a weight that goes anywhere but into a product is noted."""
    name = eqn.primitive.name
    if name in INLINED:
        inner = eqn.params["jaxpr"]
        return _evaluate(inner.jaxpr, inner.consts, values, taps)
    places = [k for k, value in enumerate(values) if isinstance(value, Weight)]
    if len(places) == 1 and name == "dot_general" and not eqn.params["dimension_numbers"][1][0]:
        return [taps.product(eqn, values, places[0])]
    if places and name in REARRANGED and eqn.outvars[0].aval.dtype.kind in "fV":  # V: bfloat16
        leaf, value = values[0]
        return [Weight(leaf, *_bind(eqn, [value]))]
    return _bind(eqn, [_plain(value, taps) for value in values])


def _plain(value: Any, taps: Taps) -> Any:
    if not isinstance(value, Weight):
        return value
    taps.uses.setdefault(value.leaf, []).append(None)
    return value.value


def _bind(eqn: Any, values: list[Any]) -> list[Any]:
    given = eqn.primitive.get_bind_params(eqn.params)
    functions, parameters = given if isinstance(given, tuple) else ((), given)  # JAX before 0.9
    found = eqn.primitive.bind(*functions, *values, **parameters)
    return list(found) if eqn.primitive.multiple_results else [found]
