"""
Watch a Lightning run
=====================

A callback watches any Lightning module, here the part `net` of one that learns to read digits. The
picture is the report of the watch: its last row shows which layers moved, and when (extra stacks).
"""

import sys

import torch
from torch.nn import Linear, ReLU, Sequential
from torch.utils.data import DataLoader, TensorDataset

import penchant

try:
    import lightning
except ImportError:
    sys.exit("this script needs Lightning, which is not installed: pip install 'penchant[stacks]'")
from penchant.watch.lightning import LightningWatch

images, tensor = penchant.problems.load_images("digits", train=500, flat=True), torch.tensor
X, y = tensor(images.train_images), tensor(images.train_labels)
test = TensorDataset(tensor(images.test_images), tensor(images.test_labels))


class Reader(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Sequential(Linear(64, 99), ReLU(), Linear(99, 99), ReLU(), Linear(99, 10))

    def training_step(self, batch, number):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, number):
        self.log("test_accuracy", (self.net(batch[0]).argmax(dim=1) == batch[1]).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, weight_decay=0.01)


torch.manual_seed(0)
call = LightningWatch(X[:50], labels=y[:50], module="net", budget=None)
trainer = lightning.Trainer(max_epochs=60, logger=False, enable_checkpointing=False, callbacks=call)
trainer.fit(Reader(), DataLoader(TensorDataset(X, y), 50, shuffle=True), DataLoader(test, 1000))
picture = call.watch.report().figure()
picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "watch_a_lightning_run.png")
