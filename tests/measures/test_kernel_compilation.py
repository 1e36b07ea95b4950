"""Tangent kernels of JAX functions are compiled once, and what was compiled goes with the function.

Whatever is traced runs the Python function: its runs are counted, and not seconds. A call traces it
once to see that it is the same program; whatever compiles traces it several times.
"""

import functools
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from penchant.measures import gradient_turn, kernel_regression, tangent_kernel
from penchant.measures.kernels import compiled as compiled_functions

RNG = np.random.default_rng(0)
X, Y, PARAMS = RNG.normal(size=(6, 4)), RNG.normal(size=6), RNG.normal(size=4)


class Net:
    """A function as a method: every look at `net.apply` makes a new object."""

    def __init__(self):
        self.scale, self.runs = 1.0, []

    def apply(self, params, x):
        self.runs.append(1)
        return self.scale * jnp.tanh(x @ params)


def kernel_by_hand(params, x, scale=1.0):
    J = scale * (1 - np.tanh(x @ params) ** 2)[:, None] * x
    return J @ J.T


def kinds(net):
    """Every kind of callable, each a call of `net.apply`."""

    def plain(params, x):
        return net.apply(params, x)

    jitted, partial = jax.jit(plain), functools.partial(plain)
    found = {"function": plain, "jit": jitted, "partial": partial}
    return {name: (lambda kind=kind: kind) for name, kind in found.items()} | {
        "method": lambda: net.apply
    }


@pytest.mark.parametrize("kind", ["function", "jit", "method", "partial"])
def test_a_second_call_compiles_nothing(kind):
    net = Net()
    of = kinds(net)[kind]
    tangent_kernel(of(), PARAMS, X)
    traced = len(net.runs)
    assert traced > (0 if kind == "jit" else 2)
    for params in (PARAMS, -2 * PARAMS):
        found = tangent_kernel(of(), params, X)
        np.testing.assert_allclose(found, kernel_by_hand(params, X), rtol=1e-12)
    assert len(net.runs) <= traced + 2
    tangent_kernel(of(), PARAMS.astype("f"), X)  # control: another precision is compiled anew
    assert kind == "jit" or len(net.runs) > traced + 4


def test_regression_its_predictions_and_turns_compile_nothing_again():
    net = Net()

    def all_three(shift):
        machine = kernel_regression(net.apply, PARAMS + shift, X, Y)
        gradient_turn(net.apply, PARAMS, PARAMS + shift, X)
        return machine.predict(X[:2])

    all_three(0.1)
    traced = len(net.runs)
    again = all_three(0.2)
    assert traced > 6
    assert len(net.runs) == traced + 2  # one look at the program for each of the two calls
    w = PARAMS + 0.2
    K, f = kernel_by_hand(w, X), np.tanh(X @ w)
    machine = kernel_regression(lambda p, x: jnp.tanh(x @ p), w, X, Y)  # a function of its own
    np.testing.assert_allclose(again, f[:2] + (K @ machine.dual[:, 0])[:2], rtol=1e-9)


def test_what_was_compiled_goes_with_the_function():
    def used(kind):
        net = Net()
        function, known = kinds(net)[kind](), set(compiled_functions._compilations)
        tangent_kernel(function, PARAMS, X)
        assert len(set(compiled_functions._compilations) - known) == 1
        return weakref.ref(net)

    gc.collect()  # takes half a second late in the suite, so all kinds share it
    before = len(compiled_functions._compilations)
    nets = {kind: used(kind) for kind in ("function", "jit", "method", "partial")}
    gc.collect()
    assert {kind: net() for kind, net in nets.items()} == dict.fromkeys(nets)
    assert len(compiled_functions._compilations) == before


def test_a_few_shapes_are_kept():
    net = Net()
    for d in range(1, compiled_functions.SHAPES + 3):
        tangent_kernel(net.apply, np.ones(d), np.ones((1, d)))
    assert len(compiled_functions._compilations[id(net)].shapes) == compiled_functions.SHAPES


SCALE = 1.0


def scaled(z):
    return SCALE * z


def test_a_function_that_reads_something_else_now_is_compiled_anew(monkeypatch):
    net, inner, listed, array = Net(), 1.0, [1.0], np.ones(6)

    def outer(params, x):
        return scaled(jnp.tanh(x @ params))

    def enclosed(params, x):
        return inner * jnp.tanh(x @ params)

    def weighted(params, x):
        return array[0] * jnp.tanh(x @ params)

    def first(params, x):
        return listed[0] * jnp.tanh(x @ params)

    functions = {
        "attribute": net.apply,
        "global of a callee": outer,
        "closure": enclosed,
        "list": first,
        "array": weighted,
    }
    for function in functions.values():
        found = tangent_kernel(function, PARAMS, X)
        np.testing.assert_allclose(found, kernel_by_hand(PARAMS, X), rtol=1e-12)
    net.scale = inner = listed[0] = 3.0
    array *= 3
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    for name, function in functions.items():
        found = tangent_kernel(function, PARAMS, X)
        expected = kernel_by_hand(PARAMS, X, 3.0)
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=name)


def test_a_counter_that_the_function_sets_itself_is_no_change():
    runs = 0

    def counting(params, x):
        nonlocal runs
        runs += 1
        return jnp.tanh(x @ params)

    tangent_kernel(counting, PARAMS, X)
    known = dict(compiled_functions._compilations[id(counting)].shapes)
    tangent_kernel(counting, PARAMS, X)
    assert compiled_functions._compilations[id(counting)].shapes == known


def test_constant_leaves_of_the_parameters_count():
    def acting(params, x):
        return params["act"](x @ params["w"])

    sine = tangent_kernel(acting, {"w": PARAMS, "act": jnp.sin}, X)
    tanh = tangent_kernel(acting, {"w": PARAMS, "act": jnp.tanh}, X)
    np.testing.assert_allclose(tanh, kernel_by_hand(PARAMS, X), rtol=1e-12)
    assert np.abs(sine - tanh).max() > 0.1


def test_rows_that_mix_are_noticed_in_later_calls_too():
    def mixed(params, x):  # only where the second parameter is not zero
        return x @ params[0] + params[1] * x.mean()

    tangent_kernel(mixed, [PARAMS, np.array(0.0)], X)
    with pytest.raises(ValueError, match="not depend on the other rows"):
        tangent_kernel(mixed, [PARAMS, np.array(1.0)], X)
