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
    with pytest.raises(ValueError, match="a Keras model is watched by the callback") as refused:
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


def test_the_callback_sees_what_fit_trains(tmp_path):
    """A run without the callback ends with the same weights, and the record is that of them."""
    from penchant.watch.keras import KerasWatch

    x = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)

    def fitted(*callbacks):
        keras.utils.set_random_seed(0)
        layers = [keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(2)]
        model = keras.Sequential([keras.Input((6,)), *layers])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        optimizer = keras.optimizers.AdamW(0.01, weight_decay=0.05)
        model.compile(optimizer=optimizer, loss=loss, metrics=["accuracy"])
        options = {"batch_size": 10, "verbose": 0, "shuffle": False}
        model.fit(x, y, epochs=6, validation_data=(x[:8], y[:8]), callbacks=callbacks, **options)
        return model

    watching = KerasWatch(
        x[:12], labels=y[:12], budget=None, raise_errors=True, files=[tmp_path / "run.nc"]
    )
    model, plain = fitted(watching), fitted()
    for mine, other in zip(model.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, other)
    table = watching.watch.dataset
    assert table.step.values.tolist()[:4] == [0, 1, 2, 3]
    assert float(table.step[-1]) == 24
    np.testing.assert_allclose(table.output[-1], model(x[:12]), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(table.glance_rate[1:], 0.01 * 0.05, rtol=1e-5)
    norm = np.sqrt(sum((w.astype(float) ** 2).sum() for w in model.get_weights()))
    assert float(table.norm_l2[-1]) == pytest.approx(norm, rel=1e-5)
    for name in ("train_loss", "train_accuracy", "val_loss", "val_accuracy"):
        assert np.isfinite(table[name]).any(), name
    assert (tmp_path / "run.nc").exists()
    stopped = KerasWatch(x[:12], stop_when=lambda watch: watch.log.steps[-1] >= 5)
    fitted(stopped)
    assert stopped.step < 24
