"""The watch as a callback of Lightning, with the library itself."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'penchant[torch]'")
pytest.importorskip("lightning", reason="needs lightning: pip install 'penchant[stacks]'")

import lightning
import torch
from lightning.pytorch.callbacks import BaseFinetuning, ModelCheckpoint
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from penchant import load
from penchant.watch.lightning import LightningWatch

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*"),  # of torch, in Lightning's own code
    pytest.mark.filterwarnings("ignore:.*num_workers.*"),
    pytest.mark.filterwarnings("ignore:.*Checkpoint directory.*"),
    pytest.mark.filterwarnings("ignore:.*fewer than the logging interval.*"),
]
EPOCHS = 8


class Learner(lightning.LightningModule):
    """Two inputs multiplied, by a net with batch normalization, under a falling learning rate."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(6, 30), nn.BatchNorm1d(30), nn.Tanh(), nn.Linear(30, 2))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, place):
        x, y = batch
        return functional.cross_entropy(self(x), y)

    def validation_step(self, batch, place):
        x, y = batch
        self.log("val/acc", (self(x).argmax(dim=1) == y).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.05, weight_decay=0.02)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        return {"optimizer": optimizer, "lr_scheduler": schedule}


def data():
    random = torch.Generator().manual_seed(1)
    x = torch.randn(40, 6, generator=random)
    return x, (x[:, 0] * x[:, 1] > 0).long()


def trainer(epochs, *callbacks, **more):
    """One on this processor that prints and logs nothing."""
    quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)
    return lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", callbacks=list(callbacks), **quiet, **more
    )


def fitted(folder, epochs, checkpoint=None, **options):
    x, y = data()
    options = {"labels": y[:12], "budget": None, "raise_errors": True} | options
    probe, others = options.pop("probe_inputs", x[:12]), options.pop("callbacks", [])
    watching = LightningWatch(probe, **options)
    loader = DataLoader(TensorDataset(x, y), batch_size=10)
    saving = ModelCheckpoint(dirpath=folder, save_last=True)
    held = trainer(epochs, *others, watching, saving, default_root_dir=folder)
    held.fit(Learner(), loader, loader, ckpt_path=checkpoint)
    return watching


def test_a_resumed_run_is_the_run(tmp_path):
    whole = fitted(tmp_path / "whole", EPOCHS).watch
    fitted(tmp_path / "half", EPOCHS // 2)
    resumed = fitted(tmp_path / "half", EPOCHS, tmp_path / "half" / "last.ckpt").watch
    a, b = whole.dataset, resumed.dataset
    np.testing.assert_array_equal(b.step, a.step)
    for name in ("kernel_distance", "linearized_error", "norm_l2", "output", "optimizer_rate"):
        np.testing.assert_allclose(b[name], a[name], rtol=1e-4, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(b.train_loss, a.train_loss, rtol=1e-5)
    np.testing.assert_array_equal(b.val_acc, a.val_acc)
    assert resumed.first == 0
    assert resumed.regime.kind == whole.regime.kind in ("leaving", "rich")
    state = torch.load(tmp_path / "half" / "last.ckpt", weights_only=False)["callbacks"]
    assert state["penchant.watch"]["first"] == 0


def test_a_second_fit_goes_on(tmp_path):
    x, y = data()
    watching = LightningWatch(x[:12], budget=None, raise_errors=True)
    loader, learner = DataLoader(TensorDataset(x, y), batch_size=10), Learner()
    again = trainer(1, watching, enable_checkpointing=False)
    again.fit(learner, loader, loader)
    first = watching.watch
    again.fit_loop.max_epochs = 2
    again.fit(learner, loader, loader)
    assert watching.watch is first
    assert first.dataset.call_step.values.tolist() == list(range(1, 9))


class Unfreeze(BaseFinetuning):
    """Trains the last layer, and from the second epoch on the first one as well."""

    def freeze_before_training(self, pl_module):
        self.freeze(pl_module.net[:2], train_bn=False)

    def finetune_function(self, pl_module, epoch, optimizer):
        if epoch == 1:
            self.make_trainable(pl_module.net[0])


def test_after_layers_are_unfrozen_the_regime_is_not_what_it_was(tmp_path):
    before = fitted(tmp_path / "frozen", 1, callbacks=[Unfreeze()], raise_errors=False).watch
    assert before.regime.kind == "kernel"  # a last layer alone is a linear model
    assert before.dataset.layer.values.tolist() == ["net.3.weight", "net.3.bias"]
    after = fitted(tmp_path / "thawed", 2, callbacks=[Unfreeze()], raise_errors=False).watch
    assert after.regime.kind == "unknown"
    assert "different: net.0.bias, net.0.weight" in after.regime.evidence
    assert "after (un)freezing layers" in after.failures[0].sentence


def test_what_the_trainer_knows_is_in_the_record(tmp_path, capsys):
    watching = fitted(tmp_path, 2, files=[tmp_path / "run.nc"], module="net")
    found = load(tmp_path / "run.nc")
    assert found.attrs["weight_decay"] == 0.02
    assert found.call_step.values.tolist() == list(range(1, 9))
    assert np.isfinite(found.train_loss.values).all()
    assert np.isfinite(found.val_acc.values[[3, 7]]).all()
    rates = dict(zip(found.step.values, found.optimizer_rate.values, strict=True))
    assert [rates[3], rates[5]] == pytest.approx([0.05, 0.045])
    assert found.layer.values.tolist()[0] == "0.weight"
    assert watching.watch.failures == ()
    assert "no optimizer moves 1.running_mean and running_var" in found.attrs["notes"][0]
    assert "no optimizer moves" in " ".join(capsys.readouterr().out.split())


def test_what_cannot_be_had_is_a_warning_and_training_goes_on(tmp_path):
    with pytest.warns(
        UserWarning, match=r"watch: the model does not run on probe_inputs .*training continues"
    ):
        watching = fitted(tmp_path, 1, probe_inputs=torch.ones(5, 3), raise_errors=False)
    assert watching.watch is None
    assert (tmp_path / "last.ckpt").exists()
    with pytest.raises(ValueError, match="does not run on probe_inputs"):
        fitted(tmp_path, 1, probe_inputs=torch.ones(5, 3))


@pytest.mark.parametrize("name", ["lightning", "transformers"])
def test_a_missing_library_is_named_with_its_extra(name):
    code = (
        f"import sys; sys.modules['{name}'] = None; sys.modules['{name}.pytorch'] = None\n"
        f"try:\n    import penchant.watch.{name}\nexcept ImportError as reason:\n    print(reason)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        f"watch: this callback needs the package {name}: pip install 'penchant[stacks]'"
    )


def test_losses_are_those_without_a_watch(tmp_path):
    """The callback changes nothing: the same weights at the end."""
    x, y = data()
    ends = []
    for callbacks in ([], [LightningWatch(x[:12], labels=y[:12], budget=None)]):
        learner, fitting = Learner(), trainer(2, *callbacks, enable_checkpointing=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitting.fit(learner, DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True))
        ends.append(json.dumps({n: v.tolist() for n, v in learner.state_dict().items()}))
    assert ends[0] == ends[1]
