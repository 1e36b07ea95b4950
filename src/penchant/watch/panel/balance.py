"""What gradient flow conserves between two layers, and how far training has moved it.

If the function does not change when the units between two layers are multiplied by G, that is
W -> G W, b -> G b and V -> V G^-1, gradient flow on any loss conserves W W^T + b b^T - V^T V: all
of it if every invertible G is such a symmetry (a linear layer, Arora et al. 2018), its diagonal if
every positive diagonal G is (ReLU, Du et al. 2018). Which holds for two arrays that follow each
other is found by trying: the outputs on the probe inputs are compared at the start. Then the
weights alone are needed. Large steps, noise, momentum and weight decay move what is conserved.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.watch.backends.backend import Backend
from penchant.watch.panel.instrument import LookMoment, Row

SAME = 1e-4  # relative change of the outputs that counts as rounding
MOST = 64  # pairs that are tried
LARGE = 1024  # units above which only their diagonal is compared


class Law(NamedTuple):
    """A pair of arrays with the vectors (biases) on the units between them.

    `whole` says that the matrix is conserved, otherwise its diagonal is.
    """

    first: str
    second: str
    biases: tuple[str, ...]
    whole: bool

    @property
    def name(self) -> str:
        return f"{_owner(self.first)} to {_owner(self.second)}"


def conserved(incoming: Array, outgoing: Array, biases: tuple[Array, ...] = ()) -> Array:
    """W W^T + b b^T - V^T V for W (units, inputs) and V (outputs, units)."""
    value = incoming @ incoming.T - outgoing.T @ outgoing
    for bias in biases:
        value = value + np.outer(bias, bias)
    return np.asarray(value)


def conserved_units(incoming: Array, outgoing: Array, biases: tuple[Array, ...] = ()) -> Array:
    """The diagonal of the same."""
    value = (incoming**2).sum(axis=1) - (outgoing**2).sum(axis=0)
    return np.asarray(value + sum(bias**2 for bias in biases))


class Balance:
    """The instrument: the laws that the model has, and what they conserved at the start."""

    axis = "pair"

    def __init__(self, backend: Backend, parameters: Any):
        self.backend = backend
        arrays = {name: array.copy() for name, array in backend.arrays(parameters).items()}
        self.laws = list(self._laws(arrays))
        self.members = tuple(law.name for law in self.laws)
        self.start = [self._value(law, arrays) for law in self.laws]
        none = "no two arrays that follow each other have a conserved balance"
        self.notes: tuple[str, ...] = () if self.laws else (none,)

    def keep(self, moment: LookMoment) -> Any:
        return None

    def row(self, moment: LookMoment) -> Row:
        if not self.laws:
            return {}
        pairs = []
        for law, start in zip(self.laws, self.start, strict=True):
            value, size = self._value(law, moment.arrays)
            pairs.append(
                (np.linalg.norm(value) / size, np.linalg.norm(value - start[0]) / start[1])
            )
        return dict(zip(("balance", "balance_drift"), np.array(pairs).T, strict=True))

    def _value(self, law: Law, arrays: Mapping[str, Any]) -> tuple[Array, float]:
        """What is conserved, and the squared norms of both layers as its unit."""
        w, v, biases = self._matrices(law, arrays)
        value = (conserved if law.whole else conserved_units)(w, v, biases)
        size = np.sum(w**2) + np.sum(v**2) + sum(np.sum(bias**2) for bias in biases)
        return value, float(size)

    def _matrices(
        self, law: Law, arrays: Mapping[str, Any]
    ) -> tuple[Array, Array, tuple[Array, ...]]:
        w, v = (np.asarray(arrays[name], dtype=np.float64) for name in (law.first, law.second))
        w = np.moveaxis(w, self._out, 0)
        v = np.moveaxis(v, self._in, -1)
        biases = tuple(np.asarray(arrays[name], dtype=np.float64) for name in law.biases)
        return w.reshape(len(w), -1), v.reshape(-1, v.shape[-1]), biases

    @property
    def _out(self) -> int:
        return self.backend.out_axis

    @property
    def _in(self) -> int:
        return 1 if self.backend.out_axis == 0 else -2

    def _laws(self, arrays: Mapping[str, Any]) -> Any:
        arrays = _generic(arrays)
        with self.backend.at(arrays) as parameters:
            outputs = self.backend.outputs(parameters)
        layers = [name for name, array in arrays.items() if array.ndim >= 2]
        tried = 0
        for first, second in itertools.pairwise(layers):
            units = arrays[first].shape[self._out]
            if units != arrays[second].shape[self._in] or units == 1 or tried >= MOST:
                continue
            tried += 1
            for biases in self._biases(first, units, arrays):
                law = Law(first, second, biases, False)
                if self._holds(law, arrays, outputs):
                    whole = Law(first, second, biases, True)
                    few = units <= LARGE
                    yield whole if few and self._holds(whole, arrays, outputs) else law
                    break

    def _biases(self, first: str, units: int, arrays: Mapping[str, Any]) -> Any:
        """The vectors beside an array that may be its bias: with them, and without."""
        beside = tuple(
            name
            for name, array in arrays.items()
            if array.shape == (units,) and _owner(name) == _owner(first)
        )
        return [beside, ()] if beside else [()]

    def _holds(self, law: Law, arrays: Mapping[str, Any], outputs: Array) -> bool:
        """Whether the outputs stay the same under a random G of this law."""
        changed = dict(arrays)
        w, v, biases = self._matrices(law, arrays)
        rng = np.random.default_rng(0)
        factors = np.exp(rng.uniform(-0.7, 0.7, len(w)))
        G, inverse = np.diag(factors), np.diag(1 / factors)
        if law.whole:
            turn = np.linalg.qr(rng.standard_normal(G.shape))[0]
            G, inverse = turn @ G, inverse @ turn.T
        for name, moved, axis in ((law.first, G @ w, self._out), (law.second, v @ inverse, None)):
            array = arrays[name]
            if axis is not None:
                shape = np.moveaxis(array, axis, 0).shape
                back = np.moveaxis(moved.reshape(shape), 0, axis)
            else:
                shape = np.moveaxis(array, self._in, -1).shape
                back = np.moveaxis(moved.reshape(shape), -1, self._in)
            changed[name] = np.ascontiguousarray(back, dtype=array.dtype)
        for name, bias in zip(law.biases, biases, strict=True):
            changed[name] = (G @ bias).astype(arrays[name].dtype)
        with self.backend.at(changed) as parameters:
            other = self.backend.outputs(parameters)
        size = float(np.abs(outputs - outputs.mean(axis=0)).max())
        return math.isfinite(size) and float(np.abs(other - outputs).max()) <= SAME * size


def _generic(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays with noise: at a start with zeros more would be a symmetry than at others."""
    rng = np.random.default_rng(0)
    sizes = [float(np.sqrt(np.mean(array**2))) for array in arrays.values()]
    usual = float(np.mean(sizes)) or 1.0
    return {
        name: (array + (size or usual) * rng.standard_normal(array.shape)).astype(array.dtype)
        for (name, array), size in zip(arrays.items(), sizes, strict=True)
    }


def _owner(name: str) -> str:
    """The path of the module that has the array, or the name of a bare one."""
    return name.rpartition(".")[0] or name
