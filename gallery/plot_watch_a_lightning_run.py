"""
Watch a Lightning run
=====================

A callback watches any Lightning module. This one learns to read digits. The picture is the report
of the watch: accuracy, loss, the regime in time, norms, and which layers moved (extra stacks).
"""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

import tacit

try:
    import lightning
except ImportError:
    sys.exit("this script needs Lightning, which is not installed: pip install 'tacit[stacks]'")
from tacit.watch.lightning import WatchCallback

images, tensor = tacit.load_images("digits", train=500, flat=True), torch.tensor
X, y = tensor(images.train_images), tensor(images.train_labels)
test = TensorDataset(tensor(images.test_images), tensor(images.test_labels))


class Reader(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.eye, self.middle = torch.nn.Linear(64, 100), torch.nn.Linear(100, 100)
        self.head = torch.nn.Linear(100, 10)

    def forward(self, x):
        return self.head(torch.relu(self.middle(torch.relu(self.eye(x)))))

    def training_step(self, batch, number):
        return torch.nn.functional.cross_entropy(self(batch[0]), batch[1])

    def validation_step(self, batch, number):
        self.log("test_accuracy", (self(batch[0]).argmax(dim=1) == batch[1]).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, weight_decay=0.01)


torch.manual_seed(0)
watching = WatchCallback(X[:50], labels=y[:50], budget=None)  # in your own runs: without budget
trainer = lightning.Trainer(max_epochs=40, accelerator="cpu", logger=False, callbacks=[watching])
trainer.fit(Reader(), DataLoader(TensorDataset(X, y), 50, shuffle=True), DataLoader(test, 1000))
picture = watching.watch.report().figure()
picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "watch_a_lightning_run.png")
