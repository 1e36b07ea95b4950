"""A Keras model is refused in a sentence whose way out works, with the library itself."""

import os
import re

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "jax")
keras = pytest.importorskip("keras", reason="needs keras: pip install 'penchant[stacks]'")

import penchant  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the library itself


class Mine(keras.Sequential):
    """A class of the user's own."""


@pytest.mark.parametrize("kind", [keras.Sequential, Mine])
def test_the_way_out_of_the_refusal_works(kind):
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(8, activation="tanh"), keras.layers.BatchNormalization()]
    model = kind([keras.Input((6,)), *layers, keras.layers.Dense(2)])
    x = np.random.default_rng(0).standard_normal((10, 6)).astype(np.float32)
    with pytest.raises(ValueError, match="a Keras model is watched as a function") as refused:
        penchant.watch(model, x)
    call = re.search(r"penchant\.watch\(.*\)$", str(refused.value))[0]
    watch = eval(call, {"penchant": penchant, "model": model, "x": x})
    np.testing.assert_allclose(watch.start.outputs, model(x, training=False), rtol=1e-4, atol=1e-5)
    model.compile(optimizer=keras.optimizers.SGD(0.5), loss="mse")
    model.fit(x, x[:, :2] * x[:, 2:4], epochs=5, verbose=0)
    watch(5, [variable.value for variable in model.trainable_variables])
    watch.look()
    assert not watch.failures
    assert watch.dataset.kernel_distance[-1] > 1e-3
