"""Gradients of samples, stored as the two factors h, delta of a layer W h where this is smaller.

The gradient of one sample in a weight of a single matrix product is sum_t delta_t h_t^T, so <grad,
grad'> = sum_ts <h_t, h'_s> <delta_t, delta'_s>; delta is the derivative in a zero added to the
product. The gradients in all other parameters (biases, convolutions, shared weights) stay whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from penchant.lazy import jax, jnp

INLINED = ("jit", "pjit")  # the names of one primitive in different versions of JAX
REARRANGED = ("copy", "convert_element_type", "reshape", "squeeze", "transpose")


class Factors(NamedTuple):
    """The gradients of n samples with C outputs.

    `rows` are whole gradients, each (n, C, size of the parameter); `layers` are pairs of inputs
    h (n, T, K) and slopes delta (n, T, C, O), for weights used T times. Every parameter has one key
    in one of the two. An integer h (n, T) holds row numbers of the weight, such as tokens of an
    embedding, and represents unit vectors.
    """

    rows: dict[Any, Any]
    layers: dict[Any, tuple[Any, Any]]


class Weight(NamedTuple):
    """The value of the parameter `leaf`, possibly rearranged, before its matrix product."""

    leaf: int
    value: Any


class Use(NamedTuple):
    """A matrix product of T vectors of K numbers each with a K x O weight."""

    times: int
    inputs: int
    outputs: int

    def pays(self, outputs: int) -> bool:
        """True if factors give the kernel of `outputs` outputs faster than whole gradients."""
        factored = self.times**2 * (self.inputs + outputs * self.outputs)
        return factored < outputs * self.inputs * self.outputs


class Taps:
    """Records the uses of each weight, adds `zeros` to the products and stores their inputs."""

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
        (result,) = _bind(eqn, values)
        if self.zeros is None:
            return result
        moved = jnp.transpose(other, (*free, *contracted))
        self.inputs[leaf] = moved.reshape(use.times, use.inputs)
        zero = self.zeros[leaf]
        return result + (zero if place == 1 else zero.T).reshape(result.shape).astype(result.dtype)


def factors(
    sample: Callable[[Any, Any], Any],
    arrays: Sequence[Any],
    learned: Sequence[int],
    x: Any,
    factored: bool = True,
) -> Callable[[Any, Any], Factors]:
    """A function of (arrays, x) that returns the Factors of every row of `x`.

    `sample(arrays, x_n)` returns the C outputs of one sample; `learned` says which of `arrays` are
    parameters. Only the shapes and dtypes of `arrays` and of the single sample `x` are used. With
    `factored=False` every gradient is whole.
    """
    closed = jax.make_jaxpr(sample)(arrays, x)
    outputs = closed.out_avals[0].shape[0]
    layers = _layers(closed, arrays, learned, x, outputs) if factored else {}
    whole = [leaf for leaf in learned if leaf not in layers]

    def sample_factors(arrays: Any, x: Any) -> Factors:
        def run(rest: dict[int, Any], zeros: dict[int, Any]) -> Any:
            values = [rest.get(i, array) for i, array in enumerate(arrays)]
            if not zeros:
                return sample(values, x), {}
            taps = Taps(zeros)
            marked = [Weight(*v) if v[0] in zeros else v[1] for v in enumerate(values)]
            return _outputs(closed, [*marked, x], taps), taps.inputs

        return _pulled(run, {leaf: arrays[leaf] for leaf in whole}, layers, arrays)

    return jax.vmap(sample_factors, in_axes=(None, 0))


def _pulled(
    run: Callable[..., Any], rest: dict[int, Any], layers: dict[int, Use], arrays: Any
) -> Any:
    """The Factors of one sample: one forward pass, and one backward pass for every output."""
    zeros = {i: jnp.zeros((use.times, use.outputs), arrays[i].dtype) for i, use in layers.items()}
    outputs, pull, inputs = jax.vjp(run, rest, zeros, has_aux=True)
    units = jnp.eye(outputs.shape[0], dtype=outputs.dtype)
    if len(units) == 1:  # no axis of outputs, so no copy that rearranges it
        rows, slopes = jax.tree.map(lambda array: array[None], pull(units[0]))
    else:
        rows, slopes = jax.vmap(pull)(units)
    flat = {i: row.reshape(row.shape[0], -1) for i, row in rows.items()}
    return Factors(flat, {i: (inputs[i], jnp.swapaxes(slopes[i], 0, 1)) for i in layers})


def _layers(
    closed: Any, arrays: Sequence[Any], learned: Sequence[int], x: Any, outputs: int
) -> dict[int, Use]:
    """The parameters used only in one matrix product, if factors are faster for them."""
    taps = Taps()

    def run(arrays: Any, x: Any) -> Any:
        values = [Weight(i, a) if i in learned else a for i, a in enumerate(arrays)]
        return _outputs(closed, [*values, x], taps)

    jax.eval_shape(run, list(arrays), x)
    single = {leaf: uses[0] for leaf, uses in taps.uses.items() if len(uses) == 1}
    return {leaf: use for leaf, use in single.items() if use is not None and use.pays(outputs)}


def _outputs(closed: Any, values: list[Any], taps: Taps) -> Any:
    (output,) = _evaluate(closed.jaxpr, closed.consts, values, taps)
    return _plain(output, taps)


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
    """The values of one equation; records a weight that is used outside a product."""
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
    results = eqn.primitive.bind(*functions, *values, **parameters)
    return list(results) if eqn.primitive.multiple_results else [results]
