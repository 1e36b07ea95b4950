"""Blocked tangent kernels: any function, several outputs, within the memory that is allowed."""

import functools
import itertools
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import DiagonalNet, NumericalError
from penchant.lab import double_precision
from penchant.measures import (
    gradient_distance,
    gradient_turn,
    kernel_distance,
    kernel_regression,
    tangent_kernel,
)
from penchant.measures.kernels.blocks import (
    ROOM,
    Gradients,
    blocked_kernel,
    grouped_kernels,
    plan,
)
from penchant.measures.kernels.factors import Factors
from penchant.measures.kernels.gradients import FunctionGradients
from refusals import refusals

MANY = settings(deadline=None, derandomize=True, max_examples=60)


def mlp(params, x):
    for weight, bias in params[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    return x @ params[-1][0] + params[-1][1]


def mlp_params(seed, sizes, dtype=np.float64):
    rng = np.random.default_rng(seed)
    pairs = itertools.pairwise(sizes)
    return [(rng.normal(size=p).astype(dtype), rng.normal(size=p[1]).astype(dtype)) for p in pairs]


def shared(params, x):
    """One weight in two layers, as it is and transposed."""
    return jnp.tanh(jnp.tanh(x @ params["w"]) @ params["w"].T) @ params["out"]


def tokens(params, x):
    """Embeds integers, sends each through one layer, and sums; a counter is no parameter."""
    codes = params["table"][x]
    return jnp.sum(jnp.sin(codes @ params["inner"].T), axis=1) @ params["outer"] + params["count"]


@jax.custom_vjp
def cubed(x):
    return x**3


cubed.defvjp(lambda x: (x**3, x), lambda x, slope: (3 * x**2 * slope,))


def nested(params, x):
    """Products inside jit and scan, on the left, of a reshaped weight, through a custom rule."""
    inner = jax.jit(lambda w, x: jnp.einsum("ij,nj->ni", w, x))
    hidden = cubed(inner(params["first"], x))
    hidden, _ = jax.lax.scan(lambda h, _: (jnp.tanh(h @ params["loop"]), None), hidden, None, 2)
    return jax.vmap(lambda h: params["last"].reshape(3, 6) @ h)(hidden)


def convolution(params, x):
    """Images (n, 5, 5, 1) through a filter, an average and a layer with a half-precision bias."""
    dims = ("NHWC", "HWIO", "NHWC")
    maps = jax.lax.conv_general_dilated(x, params["filter"], (1, 1), "SAME", dimension_numbers=dims)
    return jax.nn.gelu(maps).reshape(len(x), -1) @ params["dense"] + params["bias"]


def zoo():
    """name: (function, parameters, inputs), all with several outputs."""
    rng = np.random.default_rng(3)
    normal = rng.standard_normal
    table = {"table": normal((7, 4)), "inner": normal((6, 4)), "outer": normal((6, 2)), "count": 3}
    nest = {"first": normal((6, 5)), "loop": 0.5 * normal((6, 6)), "last": normal(18)}
    conv = {"filter": normal((3, 3, 1, 2)), "dense": normal((50, 3)).astype(np.float32)}
    conv["bias"] = jnp.asarray([0.5, -1.25, 2.0], dtype=jnp.bfloat16)
    return {
        "mlp": (mlp, mlp_params(0, (4, 9, 8, 3)), normal((7, 4))),
        "shared": (shared, {"w": normal((4, 5)), "out": normal((4, 3))}, normal((6, 4))),
        "tokens": (tokens, table, rng.integers(0, 7, size=(6, 3))),
        "nested": (nested, nest, normal((5, 5))),
        "convolution": (convolution, conv, normal((5, 5, 5, 1))),
    }


ZOO = zoo()


def real(leaf):
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)


def outputs_and_jacobian(function, params, x):
    """f and its (samples, outputs, parameters) by jax.jacrev of the whole batch, in float64."""
    with double_precision():
        leaves, tree = jax.tree.flatten(params)
        flat = {i: jnp.asarray(a, jnp.float64) for i, a in enumerate(leaves) if real(a)}

        def run(flat):
            full = [flat.get(i, leaf) for i, leaf in enumerate(leaves)]
            found = function(jax.tree.unflatten(tree, full), x)
            return found, found

        found, outputs = jax.jit(jax.jacrev(run, has_aux=True))(flat)
        rows = [np.asarray(a).reshape(*outputs.shape, -1) for a in jax.tree.leaves(found)]
    return np.asarray(outputs), np.concatenate(rows, axis=-1)


@functools.cache
def dense(name):
    return outputs_and_jacobian(*ZOO[name])


@pytest.mark.parametrize("name", ZOO)
def test_the_kernel_of_any_function_is_that_of_its_jacobian(name):
    function, params, x = ZOO[name]
    J = dense(name)[1]
    full = tangent_kernel(function, params, x, outputs="full")
    np.testing.assert_allclose(full, np.einsum("ncp,mdp->ncmd", J, J), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["mlp", "tokens"])
def test_the_mean_over_outputs_and_one_of_them(name):
    function, params, x = ZOO[name]
    J = dense(name)[1]
    mean = tangent_kernel(function, params, x[:4], x[2:], outputs="mean")
    expected = np.einsum("ncp,mcp->nm", J[:4], J[2:]) / J.shape[1]
    np.testing.assert_allclose(mean, expected, rtol=1e-9, atol=1e-9)
    one = tangent_kernel(function, params, x, outputs=1)
    np.testing.assert_allclose(one, J[:, 1] @ J[:, 1].T, rtol=1e-9, atol=1e-9)
    assert np.abs(one - J[:, 0] @ J[:, 0].T).max() > 1e-3 * np.abs(one).max()  # another output


@pytest.mark.parametrize("name", ["tokens", "nested"])
def test_layers_are_factored_and_factors_give_the_same(name):
    function, params, x = ZOO[name]
    both = [
        FunctionGradients(function, params, x, outputs="full", factored=yes)
        for yes in (True, False)
    ]
    assert both[0].block(x, len(x)).layers
    assert not both[1].block(x, len(x)).layers
    kernels = [blocked_kernel(gradients, x, None, True, 1e8) for gradients in both]
    np.testing.assert_allclose(*kernels, rtol=1e-10, atol=1e-10)
    assert np.abs(kernels[0]).max() > 0.1


def test_shared_and_looped_weights_are_not_factored():
    for name, layers in (("shared", 1), ("nested", 2), ("mlp", 3)):  # of 2, 3 and 3 weights
        function, params, x = ZOO[name]
        gradients = FunctionGradients(function, params, x, outputs="mean")
        with double_precision():
            assert (
                len(jax.eval_shape(gradients.compiled.gradients, gradients.arrays, x).layers)
                == layers
            ), name


class Given(Gradients):
    """Gradients made of random rows and layers, to try blocks without compiling anything."""

    def __init__(self, seed, samples, outputs, layers, dtype):
        rng = np.random.default_rng(seed)
        self.all = Factors(
            {p: rng.normal(size=(samples, outputs, p)).astype(dtype) for p in (3, 5)},
            {
                f"{place}": (
                    rng.normal(size=(samples, t, 4)).astype(dtype)
                    if place % 2 == 0
                    else rng.integers(4, size=(samples, t)),
                    rng.normal(size=(samples, t, outputs, 2)).astype(dtype),
                )
                for place, t in enumerate(layers)
            },
        )
        self.outputs, self.fixed, self.times = outputs, 100, max(layers, default=1)
        self.names = {key: str(key) for key in [*self.all.rows, *self.all.layers]}
        pairs = self.all.layers.values()
        self.held = sum(a[0].nbytes for a in [*self.all.rows.values(), *itertools.chain(*pairs)])
        self.got = 0

    def work(self, size):
        return 10 * size

    def block(self, x, size):
        assert 0 < len(x) <= size
        self.got += len(x)
        layers = {key: (h[x], d[x]) for key, (h, d) in self.all.layers.items()}
        return Factors({key: a[x] for key, a in self.all.rows.items()}, layers)

    def values(self, x):
        raise NotImplementedError

    def move(self, params):
        raise NotImplementedError

    def jacobians(self):
        """The whole gradients of every parameter in float64."""
        found = dict(self.all.rows)
        for key, (h, slopes) in self.all.layers.items():
            inputs = h if h.dtype.kind == "f" else np.eye(4)[h]
            found[key] = np.einsum("ntk,ntco->ncko", inputs, slopes)
        return {k: a.reshape(*a.shape[:2], -1).astype(np.float64) for k, a in found.items()}

    def jacobian(self):
        return np.concatenate(list(self.jacobians().values()), axis=2)


@MANY
@given(
    seed=st.integers(0, 10**6),
    samples=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    outputs=st.integers(1, 3),
    layers=st.lists(st.integers(1, 3), max_size=2),
    memory=st.floats(0, 1),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_blocks_of_every_size_give_the_dense_kernel(seed, samples, outputs, layers, memory, dtype):
    source = Given(seed, sum(samples), outputs, layers, dtype)
    J, x, x2 = source.jacobian(), np.arange(samples[0]), samples[0] + np.arange(samples[1])
    error = 1e-12 if dtype is np.float64 else 1e-5
    for other, full in itertools.product((x2, None), (True, False)):
        allowed = bytes_between(source, len(x), len(x2 if other is x2 else x), full, memory)
        found = blocked_kernel(source, x, other, full, allowed)
        whole = np.einsum("ncp,mdp->ncmd", J[x], J[x2 if other is x2 else x])
        expected = whole if full else np.einsum("ncmc->nm", whole) / outputs
        np.testing.assert_allclose(found, expected, rtol=0, atol=error * np.abs(whole).max())
        if other is None:
            assert (found == (found.transpose(2, 3, 0, 1) if full else found.T)).all()


@MANY
@given(
    seed=st.integers(0, 10**6), layers=st.lists(st.integers(1, 3), max_size=3), full=st.booleans()
)
def test_groups_of_parameters_have_the_kernels_of_their_own_gradients(seed, layers, full):
    source, x = Given(seed, 6, 2, layers, np.float64), np.arange(6)
    keys = list(source.names)
    groups = {key: place % 2 for place, key in enumerate(keys)}
    allowed = bytes_between(source, 6, 6, full, 0.1) + 8 * 36 * 4 / ROOM
    found = grouped_kernels(source, x, None, full, allowed, groups)
    for number in (0, 1):
        parts = [J for key, J in source.jacobians().items() if groups[key] == number]
        J = np.concatenate(parts, axis=2)
        whole = np.einsum("ncp,mdp->ncmd", J, J)
        expected = whole if full else np.einsum("ncmc->nm", whole) / 2
        atol = 1e-12 * np.abs(whole).max()
        np.testing.assert_allclose(found[number], expected, rtol=0, atol=atol)
        assert np.abs(found[number] - found.sum(axis=0)).max() > atol  # a part is not the whole
    whole = blocked_kernel(source, x, None, full, 1e6)
    np.testing.assert_allclose(found.sum(axis=0), whole, rtol=0, atol=1e-12 * np.abs(whole).max())


def bytes_between(source, rows, columns, full, share):
    """From what one sample at a time needs (share 0) to what is enough for all (share 1)."""
    kept = source.outputs if full else 1
    result = source.fixed + 8 * rows * columns * kept**2
    tile = 40 * (source.times * kept) ** 2
    one = 2 * source.held + source.work(1) + tile
    return (result + one + share * 9 * (9 * tile + 2 * source.held)) / ROOM + 1


def test_gradients_are_got_once_if_all_can_be_held_and_else_in_passes():
    source, x = Given(0, 8, 1, [1], np.float64), np.arange(8)
    kernels, got = [], []
    for share in (1, 0):
        source.got = 0
        allowed = bytes_between(source, 8, 8, False, share)
        kernels.append(blocked_kernel(source, x, None, False, allowed))
        got.append(source.got)
    assert got == [8, 36]  # one sample at a time meets itself and those after it
    np.testing.assert_allclose(*kernels, rtol=1e-12)


def test_too_few_bytes_are_told_and_the_number_told_is_enough():
    function, params, x = ZOO["mlp"]
    told = r"memory=1e\+03 bytes are too few.*memory=\d+ is enough"
    with pytest.raises(ValueError, match=told) as raised:
        tangent_kernel(function, params, x, outputs="mean", memory=1000)
    enough = int(str(raised.value).split("memory=")[-1].split()[0])
    gradients = FunctionGradients(function, params, x, outputs="mean")
    assert plan(gradients, 7, 7, 1, enough) == (1, 1)
    assert plan(gradients, 7, 7, 1, 1e9) == (7, 7)
    with pytest.raises(ValueError, match="too few"):
        plan(gradients, 7, 7, 1, enough - 1)
    least = blocked_kernel(gradients, x, None, False, enough)
    np.testing.assert_allclose(least, tangent_kernel(function, params, x, outputs="mean"))


def test_a_model_is_blocked_too():
    net, x = DiagonalNet(3, alpha=0.7), np.random.default_rng(0).normal(size=(9, 5))
    whole, w = tangent_kernel(net, net.start(5), x), net.start(5)
    J = net.jacobian(w, x)
    np.testing.assert_allclose(whole, J @ J.T, rtol=1e-13)
    parts = tangent_kernel(net, w, x, memory=(80 + 8 * 81 + 2 * 2 * 80 + 40 * 4) / ROOM + 1)
    np.testing.assert_allclose(parts, whole, rtol=1e-13)
    assert tangent_kernel(net, w, x, outputs="full").shape == (9, 1, 9, 1)


def test_gradients_against_finite_differences():
    params, x = mlp_params(5, (3, 4, 2)), np.random.default_rng(1).normal(size=(2, 3))
    flat, tree = jax.tree.flatten(params)
    ends = np.cumsum([a.size for a in flat])

    def outputs(w):
        leaves = [
            part.reshape(a.shape) for part, a in zip(np.split(w, ends[:-1]), flat, strict=True)
        ]
        (inner, b), (outer, c) = jax.tree.unflatten(tree, leaves)
        return np.maximum(x @ inner + b, 0) @ outer + c

    w, step = np.concatenate([a.ravel() for a in flat]), 1e-6
    units = step * np.eye(len(w))
    J = np.stack([(outputs(w + e) - outputs(w - e)) / (2 * step) for e in units], axis=-1)
    found = tangent_kernel(mlp, params, x, outputs="full")
    np.testing.assert_allclose(found, np.einsum("ncp,mdp->ncmd", J, J), rtol=1e-6, atol=1e-7)


def test_precision_follows_the_parameters_unless_it_is_said():
    x = np.random.default_rng(1).normal(size=(5, 4))
    coarse = mlp_params(0, (4, 9, 1), np.float32)
    J = outputs_and_jacobian(mlp, coarse, x)[1][:, 0]
    exact = J @ J.T
    for precision, least, most in (
        (None, 1e-9, 1e-5),
        ("double", 0, 1e-13),
        ("single", 1e-9, 1e-5),
    ):
        K = tangent_kernel(mlp, coarse, x, precision=precision)
        assert K.dtype == np.float64
        assert least <= np.abs(K - exact).max() / np.abs(exact).max() <= most


CHILD = """
import sys
import jax.numpy as jnp
import numpy as np
from penchant.measures.kernels.blocks import blocked_kernel, plan
from penchant.measures.kernels.gradients import FunctionGradients

def bytes_of(name):
    line = next(line for line in open("/proc/self/status") if line.startswith(name))
    return 1024 * int(line.split()[1])

def net(params, x):
    return jnp.tanh(x @ params["w"]) @ params["v"]

rng, budgets = np.random.default_rng(0), [float(word) for word in sys.argv[1:]]
params = {"w": rng.normal(size=(500, 800)).astype("f"), "v": rng.normal(size=800).astype("f")}
x = rng.normal(size=(120, 500)).astype("f")
gradients = FunctionGradients(net, params, x, factored=False)
for allowed in budgets:
    plan(gradients, 120, 120, 1, allowed)  # compiles
gradients.block(x[:1], 1)  # JAX makes its threads
np.ones((300, 300), "f") @ np.ones((300, 300), "f")  # BLAS makes its buffers
before = bytes_of("VmRSS")
for allowed in budgets:  # the smallest first, since the peak never falls
    blocked_kernel(gradients, x, None, False, allowed)
    print(bytes_of("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_the_process_keeps_to_the_memory_that_is_allowed():
    # what is freed goes back to the system, or glibc's own reserve would be measured
    env = os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "1000000"}
    call = [sys.executable, "-c", CHILD, "60e6", "600e6"]
    done = subprocess.run(call, capture_output=True, text=True, check=True, env=env)
    little, much = map(int, done.stdout.split())  # all gradients are 120 x 1.6 MB = 192 MB
    assert little < 60e6
    assert 150e6 < much < 600e6  # control: it would take more if it may


@pytest.mark.parametrize("name", ["tokens", "convolution"])
def test_gradients_turn_by_the_distance_of_their_jacobians(name):
    function, params, x = ZOO[name]
    moved = jax.tree.map(lambda a: 1.1 * a + 0.05 if hasattr(a, "dtype") else a, params)
    F0, F1 = dense(name)[1], outputs_and_jacobian(function, moved, x)[1]
    expected = 1 - np.sum(F0 * F1) / (np.linalg.norm(F0) * np.linalg.norm(F1))
    assert gradient_distance(F0, F1) == pytest.approx(expected, rel=1e-9)
    assert gradient_turn(function, params, moved, x, outputs="mean") == pytest.approx(
        expected, rel=1e-9
    )
    assert gradient_turn(function, params, params, x, outputs="mean") == 0
    one = gradient_turn(function, params, moved, x, outputs=0)
    assert one == pytest.approx(gradient_distance(F0[:, 0], F1[:, 0]), rel=1e-9)


def test_small_turns_keep_their_digits():
    F = np.random.default_rng(0).normal(size=(4, 9))
    across = np.linalg.qr(F.reshape(-1, 1), mode="complete")[0][:, 1].reshape(F.shape)
    tilted = F + 1e-9 * np.linalg.norm(F) * across
    assert gradient_distance(F, tilted) == pytest.approx(0.5e-18, rel=1e-5)
    net = DiagonalNet(2, alpha=1.0)
    start = net.start(9)
    end = start + 1e-7 * np.random.default_rng(1).normal(size=start.shape)
    found = gradient_turn(net, start, end, F)
    assert found == pytest.approx(
        gradient_distance(net.jacobian(start, F), net.jacobian(end, F)), rel=1e-6
    )
    assert 0 < found < 1e-13


def test_a_rotation_of_all_gradients_is_seen_by_their_distance_alone():
    F = np.random.default_rng(0).normal(size=(4, 9))
    turned = F @ np.linalg.qr(np.random.default_rng(1).normal(size=(9, 9)))[0]
    assert kernel_distance(F @ F.T, turned @ turned.T) < 1e-14
    assert gradient_distance(F, turned) > 0.1


@pytest.mark.parametrize("name", ["mlp", "tokens"])
def test_regression_is_the_shortest_displacement(name):
    function, params, x = ZOO[name]
    train, new = x[:4], x[4:]
    f, J = dense(name)
    samples, outputs, width = J[:4].shape
    y = np.random.default_rng(9).normal(size=(samples, outputs))
    found = kernel_regression(function, params, train, y)
    h = np.linalg.lstsq(J[:4].reshape(-1, width), (y - f[:4]).ravel())[0]
    np.testing.assert_allclose(found.predict(new), f[4:] + J[4:] @ h, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.predict(train), y, rtol=1e-6, atol=1e-6)
    assert found.residual < 1e-8
    assert found.rank == samples * outputs
    apart = kernel_regression(function, params, train, y, outputs="mean")  # control: uncoupled
    assert np.abs(apart.predict(new) - found.predict(new)).max() > 1e-3


def test_regression_with_a_ridge_and_with_too_many_samples():
    net, rng = DiagonalNet(2, alpha=0.5), np.random.default_rng(2)
    X, y, w = rng.normal(size=(6, 3)), rng.normal(size=6), net.start(3)
    F = net.jacobian(w, X)
    goal = y - net.predict(w, X)
    ridged = kernel_regression(net, w, X, y, ridge=0.3)
    h = np.linalg.solve(F.T @ F + 0.3 * np.eye(6), F.T @ goal)
    np.testing.assert_allclose(ridged.predict(X), net.predict(w, X) + F @ h, rtol=1e-9)
    over = kernel_regression(net, w, X, y)
    h = np.linalg.lstsq(F, goal)[0]
    np.testing.assert_allclose(over.predict(X), net.predict(w, X) + F @ h, rtol=1e-7)
    assert "least squares" in over.outcome.sentence
    assert over.rank == 3
    assert over.residual > 1e-3


X = np.random.default_rng(0).normal(size=(5, 4))
PARAMS = mlp_params(0, (4, 3, 2))


def batch_normalized(params, x):
    return ((x - x.mean(axis=0)) / x.std(axis=0)) @ params


test_wrong_input_is_told = refusals(
    (lambda: tangent_kernel(mlp, PARAMS, X), "one number per row of x.*outputs='mean'"),
    (lambda: tangent_kernel(mlp, PARAMS, X, outputs=2), "outputs must be below 2"),
    (lambda: tangent_kernel(mlp, PARAMS, X, outputs=-1), "outputs must be at least 0"),
    (lambda: tangent_kernel(mlp, PARAMS, X, outputs="trace"), "unknown outputs 'trace'"),
    (lambda: tangent_kernel(mlp, PARAMS, X, outputs=0, precision="half"), "unknown precision"),
    (lambda: tangent_kernel(mlp, PARAMS, X, outputs=0, memory=-1), "memory must be > 0"),
    (lambda: tangent_kernel(mlp, PARAMS, X, X[:, :3], outputs=0), "x and x2 must have the same sh"),
    (lambda: tangent_kernel(mlp, PARAMS, [["a"]], outputs=0), "x must hold real numbers"),
    (lambda: tangent_kernel(DiagonalNet(2, alpha=1), [1.0] * 8, X, outputs=1), "one output"),
    (lambda: tangent_kernel(batch_normalized, np.ones(4), X), "not depend on the other rows"),
    (lambda: tangent_kernel(lambda p, x: x @ p, np.ones(4) + 0j, X), "params must be real"),
    (lambda: tangent_kernel(lambda p, x: x @ p, np.arange(4), X), "no floating-point array"),
    (lambda: tangent_kernel(lambda p, x: x @ p, [np.nan] * 4, X), "params must be finite"),
    (lambda: tangent_kernel(lambda p, x: jnp.argmax(x * p, 1), np.ones(4), X), "real numbers"),
    (lambda: tangent_kernel(lambda p, x: np.asarray(x @ p), np.ones(4), X), "jax.numpy"),
    (lambda: kernel_regression(mlp, PARAMS, X, np.ones(5)), r"shape of the outputs, \(5, 2\)"),
    (lambda: kernel_regression(mlp, PARAMS, X, np.ones((5, 2)), ridge=-1), "not be negative"),
    (lambda: gradient_distance(np.ones(3), np.ones(2)), "F0 and F1 must have one shape"),
    (lambda: gradient_distance(np.zeros(3), np.ones(3)), "F0 must not be zero"),
)


def test_gradients_that_are_not_finite_are_told():
    x = np.array([[1.0], [2.0], [0.0]])
    with pytest.raises(NumericalError, match="samples 0 and 2 is not finite"):
        tangent_kernel(lambda p, x: jnp.sqrt(p * x[:, 0]), 1.0, x)
    with pytest.raises(NumericalError, match="gradients are zero"):
        gradient_turn(lambda p, x: 0 * p * x[:, 0], 1.0, 2.0, x)


def test_other_parameters_of_one_structure_need_no_new_compilation():
    gradients = FunctionGradients(mlp, PARAMS, X, outputs="mean")
    blocked_kernel(gradients, X, None, False, 1e8)
    other = mlp_params(1, (4, 3, 2))
    gradients.move(other)
    compiled = dict(gradients.compiled.blocks)
    found = blocked_kernel(gradients, X, None, False, 1e8)
    assert gradients.compiled.blocks == compiled
    np.testing.assert_allclose(found, tangent_kernel(mlp, other, X, outputs="mean"), rtol=1e-12)
    acting = {"w": np.ones(4), "act": jnp.tanh}
    acted = FunctionGradients(lambda p, x: p["act"](x @ p["w"]), acting, X)
    with pytest.raises(ValueError, match="not arrays have changed"):
        acted.move(acting | {"act": jnp.sin})
    with pytest.raises(ValueError, match="another structure"):
        gradients.move(other[:1])
    with pytest.raises(ValueError, match="other shapes"):
        gradients.move(mlp_params(1, (4, 2, 2)))


def test_an_unbiased_start_whose_outputs_cancel_is_no_mixing_of_rows():
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    half = {"w": rng.normal(size=(5, 40)), "v": rng.normal(size=40)}
    params = {"plus": half, "minus": {name: part.copy() for name, part in half.items()}}
    x = rng.normal(size=(4, 5))

    def net(part, x):
        return jnp.tanh(x @ part["w"]) @ part["v"]

    kernel = tangent_kernel(lambda p, x: net(p["plus"], x) - net(p["minus"], x), params, x)
    np.testing.assert_allclose(kernel, 2 * tangent_kernel(net, half, x), rtol=1e-12)
