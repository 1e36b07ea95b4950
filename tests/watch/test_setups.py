"""Small copies, in our own words, of training set-ups in use, with what once went wrong in each.

Every set-up runs with the default budget. The record must cover the run, the sentences must be of
its last step, and verdict and forecast must agree.
"""

import math
import re

import numpy as np
import pytest

import penchant
from one_state import contradictions

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def trained(watch, step, last, every=1):
    """Call `step` and the watch, which gets what it returns."""
    for now in range(1, last + 1):
        metrics = step()
        if now % every == 0:
            watch(now, **metrics)
    return watch


def told(watch, last, looks=12):
    """What is true of every run: the report of it."""
    regime = watch.regime
    report = watch.report()
    steps = report.dataset.step.values[1:]
    assert watch.failures == ()
    assert len(steps) >= looks
    assert steps[-1] == last == report.regime.step
    assert np.diff(np.log10(steps)).max() < 0.6  # from the first decade on
    assert regime.kind in ("kernel", "leaving", "rich")
    assert contradictions(report.dataset) == []
    return report


def pairs(p, fraction):
    """Addition mod p as tokens (pairs, 2), labels, and a mask of the training pairs."""
    a, b = (part.ravel() for part in torch.meshgrid(*[torch.arange(p)] * 2, indexing="ij"))
    return torch.stack([a, b], 1), (a + b) % p, torch.rand(p * p) < fraction


def scores(logits, labels, train, loss=F.cross_entropy):
    right = (logits.argmax(1) == labels).double()
    numbers = {}
    for side, mask in (("train", train), ("test", ~train)):
        numbers[f"{side}_accuracy"] = right[mask].mean()
        numbers[f"{side}_loss"] = loss(logits[mask], labels[mask])
    return numbers


class Block(nn.Module):
    """One block of attention and a net, with or without normalization."""

    def __init__(self, tokens, width=16, places=2, norm=False):
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.place = nn.Parameter(torch.randn(places, width))
        self.mix = nn.MultiheadAttention(width, 2, batch_first=True)
        self.net = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, width))
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()
        self.head = nn.Linear(width, tokens, bias=False)

    def forward(self, ids):
        x = self.embed(ids) + self.place[: ids.shape[1]]
        x = x + self.mix(x, x, x, need_weights=False)[0]
        return self.head(self.norm(x + self.net(x)))


def test_a_language_model_with_tied_weights_that_returns_logits_and_loss(capsys):
    """output=0 was the index of one logit; two groups with other decays; logits at all places."""

    class Language(Block):
        def __init__(self):
            super().__init__(65, places=8, norm=True)
            self.head.weight = self.embed.weight

        def forward(self, ids, targets=None):
            logits = super().forward(ids)
            if targets is None:
                return logits, None
            return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    model, text = Language(), torch.randint(65, (12, 9))
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=3e-3)
    watch = penchant.watch(model, text[:6, :-1], output=0, optimizer=optimizer)
    assert watch.backend.projected  # 8 places x 65 letters

    def step():
        optimizer.zero_grad()
        _, loss = model(text[:, :-1], text[:, 1:])
        loss.backward()
        optimizer.step()
        return {"train_loss": loss}

    report = told(trained(watch, step, 120), 120)
    assert any("2 groups" in note for note in report.dataset.attrs["notes"])


def test_a_large_start_with_squared_loss_that_learns_everything():
    """It was told that nothing was learned, and its loss was taken for a cross-entropy."""
    x, y = torch.randn(60, 20), torch.randint(3, (60,))
    train = torch.arange(60) < 30
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(6)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    watch = penchant.watch(model, x[:20], labels=y[:20], optimizer=optimizer)

    def squares(logits, labels):
        return ((logits - F.one_hot(labels, 3)) ** 2).sum(1).mean()

    def step():
        optimizer.zero_grad()
        squares(model(x[train]), y[train]).backward()
        optimizer.step()
        with torch.no_grad():
            return scores(model(x), y, train, squares)

    report = told(trained(watch, step, 400, every=5), 400, looks=8)
    assert float(report.dataset.train_accuracy[-1]) == 1
    assert "nothing was learned" not in report.regime.evidence
    assert float(report.dataset.test_loss[-1]) > math.log(2)
    if report.forecast.ahead:
        assert "by the losses" not in report.forecast.sentence


@pytest.mark.parametrize("norm", [False, True])
def test_a_transformer_of_one_block_on_addition(norm):
    """A net with LayerNorm was not told that the law does not know it."""
    ids, labels, train = pairs(7, 0.5)
    model = Block(7, norm=norm)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.3)
    watch = penchant.watch(model, ids[:10], output=lambda out: out[:, -1], labels=labels[:10],
                           optimizer=optimizer)  # fmt: skip

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(ids[train])[:, -1], labels[train]).backward()
        optimizer.step()
        with torch.no_grad():
            return scores(model(ids)[:, -1], labels, train)

    trained(watch, step, 150)
    report = told(watch, 150)
    if report.forecast.ahead:
        assert ("LayerNorm" in report.forecast.sentence) == norm
    assert report.dataset.attrs["unfitted"] == ("normalization (LayerNorm)" if norm else "")


def test_filtered_gradients_with_adam_and_decay_in_the_gradient():
    """It was told to pass optimizer=, which it had."""
    ids, labels, train = pairs(7, 0.6)
    x = F.one_hot(ids, 7).flatten(1).float()
    model = nn.Sequential(nn.Linear(14, 48), nn.ReLU(), nn.Linear(48, 7))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.01)
    watch = penchant.watch(model, x[:12], labels=labels[:12], optimizer=optimizer)
    slow = [torch.zeros_like(p) for p in model.parameters()]

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(x[train]), labels[train]).backward()
        for mean, p in zip(slow, model.parameters(), strict=True):
            mean.mul_(0.9).add_(p.grad, alpha=0.1)
            p.grad.add_(mean, alpha=2.0)
        optimizer.step()
        with torch.no_grad():
            return scores(model(x), labels, train)

    report = told(trained(watch, step, 200), 200)
    assert "pass optimizer=" not in report.forecast.sentence
    if "rate of weight decay is not known" in report.forecast.sentence:
        assert "decay is in the gradient" in report.forecast.sentence


def test_a_loss_that_is_exactly_zero():
    """Softmax collapse: in single precision the training loss is 0, and has no logarithm."""
    x, labels = torch.randn(40, 30), torch.randint(3, (40,))
    train = torch.arange(40) < 20
    model = nn.Linear(30, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=300.0, weight_decay=1e-9)
    watch = penchant.watch(model, x[:15], labels=labels[:15], optimizer=optimizer)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(x[train]), labels[train]).backward()
        optimizer.step()
        with torch.no_grad():
            return scores(model(x), labels, train)

    trained(watch, step, 150)
    assert float(watch.dataset.train_loss[-1]) == 0
    report = told(watch, 150)
    assert report.regime.kind == "kernel"  # a linear model
    assert report.figure().axes


def test_an_image_net_with_batch_norm_and_a_cosine():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
            self.second, self.head = nn.Conv2d(4, 4, 3, padding=1), nn.Linear(4, 5)

        def forward(self, x):
            x = F.relu(self.norm(self.first(x)))
            return self.head(F.relu(x + self.second(x)).mean(dim=(2, 3)))

    model, x, y = Residual(), torch.randn(24, 3, 6, 6), torch.randint(5, (24,))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    watch = penchant.watch(model, x[:10], labels=y[:10], optimizer=optimizer, warm_batch=x)

    def step():
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        return {"train_loss": loss}

    report = told(trained(watch, step, 100), 100)
    assert "convolutions" in report.dataset.attrs["unfitted"]
    assert float(report.dataset.optimizer_rate[-1]) < 1e-6


def test_a_decoder_of_time_and_batch_with_muon_for_its_matrices():
    """Inputs (time, batch) needed a wrapper, and two optimizers raised."""
    ids, labels, train = pairs(5, 0.6)

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(5, 8)
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
            self.head = nn.Linear(8, 5)

        def forward(self, ids):
            return self.head(self.layer(self.embed(ids)))

    model, turned = Decoder(), ids.T.contiguous()
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    held = {id(p) for p in matrices}
    both = [
        torch.optim.Muon(matrices, lr=0.01, weight_decay=0.1),
        torch.optim.AdamW([p for p in model.parameters() if id(p) not in held], lr=3e-3),
    ]
    watch = penchant.watch(model, turned[:, :10], batch_axis=1, output=lambda out: out[-1],
                           labels=labels[:10], optimizer=both)  # fmt: skip

    def step():
        for optimizer in both:
            optimizer.zero_grad()
        F.cross_entropy(model(turned[:, train])[-1], labels[train]).backward()
        for optimizer in both:
            optimizer.step()
        with torch.no_grad():
            return scores(model(turned)[-1], labels, train)

    report = told(trained(watch, step, 100), 100)
    assert "Muon" in report.dataset.attrs["unfitted"]
    assert any("Muon, 0.1" in note for note in report.dataset.attrs["notes"])


def test_patches_with_dropout_and_a_short_call_pattern():
    """Called every tenth step from a loop with dropout; the flags stay as they are."""
    model = nn.Sequential(
        nn.Unflatten(1, (4, 12)), nn.Linear(12, 8), nn.LayerNorm(8),
        nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True), nn.Flatten(),
        nn.Linear(32, 3),
    )  # fmt: skip
    x, y = torch.randn(30, 48), torch.randint(3, (30,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    watch = penchant.watch(model, x[:10], labels=y[:10], optimizer=optimizer)

    def step():
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return {"train_loss": loss}

    trained(watch, step, 300, every=10)
    assert all(part.training for part in model.modules())
    report = told(watch, 300, looks=9)
    assert any("dropout" in note for note in report.dataset.attrs["notes"])


def test_a_low_rank_update_of_a_frozen_net():
    """layer_moved of B, which begins at zero, was NaN."""
    base = nn.Sequential(nn.Linear(10, 12), nn.Tanh(), nn.Linear(12, 3)).requires_grad_(False)

    class Tuned(nn.Module):
        def __init__(self):
            super().__init__()
            self.base = base
            self.a, self.b = nn.Parameter(torch.randn(2, 10)), nn.Parameter(torch.zeros(12, 2))

        def forward(self, x):
            inner = self.base[0](x) + x @ self.a.T @ self.b.T
            return self.base[2](torch.tanh(inner))

    model, x, y = Tuned(), torch.randn(30, 10), torch.randint(3, (30,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    watch = penchant.watch(model, x[:12], labels=y[:12], optimizer=optimizer)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return {"train_loss": loss}

    report = told(trained(watch, step, 150), 150)
    assert np.isfinite(report.dataset.layer_moved.values).all()
    assert any("do not require gradients" in note for note in report.dataset.attrs["notes"])


def test_a_loop_of_jax_whose_step_takes_the_buffers():
    """Donated buffers are gone at the end: the looks that were postponed have copies."""
    jax = pytest.importorskip("jax")
    x = np.random.default_rng(0).standard_normal((20, 5)).astype(np.float32)
    y = np.sign(x[:, 0] * x[:, 1])
    rng = np.random.default_rng(1)
    w = {"inner": rng.standard_normal((5, 16)).astype(np.float32), "outer": np.ones(16, np.float32)}

    def net(w, x):
        return jax.numpy.tanh(x @ w["inner"]) @ w["outer"] / 16

    @jax.jit
    def step(w):
        slope = jax.grad(lambda w: jax.numpy.mean((net(w, x) - y) ** 2))(w)
        return jax.tree.map(lambda w, g: w - 0.1 * g, w, slope)

    watch = penchant.watch(net, x[:10], parameters=w, labels=y[:10], budget=1e-9)
    w = jax.tree.map(jax.numpy.asarray, w)
    for now in range(1, 121):
        last = w
        w = step(w)
        watch(now, w, train_loss=1.0)
        for leaf in jax.tree.leaves(last):
            leaf.delete()
    told(watch, 120)


def test_a_homogeneous_net_with_a_large_start_and_little_decay():
    """The sentence said "-89% smaller" and voted with another number than it printed."""
    ids, labels, train = pairs(5, 0.6)
    x = F.one_hot(ids, 5).flatten(1).float()
    model = nn.Sequential(nn.Linear(10, 64, bias=False), nn.ReLU(), nn.Linear(64, 5, bias=False))
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, weight_decay=1e-3)
    watch = penchant.watch(model, x[:15], labels=labels[:15], optimizer=optimizer)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(x[train]), labels[train]).backward()
        optimizer.step()
        with torch.no_grad():
            return scores(model(x), labels, train)

    report = told(trained(watch, step, 300, every=3), 300, looks=9)
    evidence = report.regime.evidence
    assert " -" not in evidence
    (away,) = re.findall(r"kernel is ([\d.e-]+) away", evidence)
    (missed,) = re.findall(r"misses ([\d.]+)%", evidence)
    last = report.dataset.isel(time=-1)
    assert float(away) == pytest.approx(float(last.kernel_distance), rel=0.06)
    assert float(missed) == pytest.approx(100 * float(last.linearized_error), rel=0.06)


def test_a_warmed_up_decoder_whose_training_curve_has_spikes():
    """t1 jumped to the last dip, and a textbook grok was "none" beside a forecast "happened"."""
    ids, labels, _ = pairs(5, 0.5)
    model = Block(5, norm=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1.0, betas=(0.9, 0.98))
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 10))
    watch = penchant.watch(model, ids[:10], output=lambda out: out[:, -1], labels=labels[:10],
                           optimizer=optimizer)  # fmt: skip
    count = iter(range(1, 10**6))

    def step():
        now = next(count)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids)[:, -1], labels)
        loss.backward()
        optimizer.step()
        warm.step()
        spike = now > 30 and now % 97 == 0  # the curves of a run that grokked at step 400
        return {
            "train_loss": loss,
            "train_accuracy": 0.4 if spike else min(1.0, now / 20),
            "test_accuracy": 0.3 if spike else 0.05 + 0.95 * (now > 400),
        }

    report = told(trained(watch, step, 600), 600)
    assert report.verdict.kind == "grok"
    assert report.verdict.t1 < 30
    assert 390 < report.verdict.t2 < 420


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*")  # of torch, in Lightning's own code
@pytest.mark.filterwarnings("ignore:.*num_workers.*")
@pytest.mark.filterwarnings("ignore:.*fewer than the logging interval.*")
def test_a_lightning_module_with_the_default_budget(tmp_path):
    """The record of a short run was empty: two looks after the start."""
    lightning = pytest.importorskip("lightning")
    from torch.utils.data import DataLoader, TensorDataset

    from penchant.watch.lightning import LightningWatch

    x, y = torch.randn(64, 10), torch.randint(3, (64,))

    class Demo(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, number):
            return F.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    watching = LightningWatch(x[:12], labels=y[:12])
    trainer = lightning.Trainer(
        max_epochs=15, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, accelerator="cpu", default_root_dir=tmp_path,
        callbacks=[watching],
    )  # fmt: skip
    trainer.fit(Demo(), DataLoader(TensorDataset(x, y), batch_size=8))
    told(watching.watch, 120)


def test_a_trainer_of_hugging_face_whose_model_returns_a_dictionary(tmp_path):
    """The logits of all places were taken for outputs of one, and the look at the end was stale."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from penchant.watch.transformers import TransformersWatch

    size = {"n_layer": 1, "n_embd": 8, "n_head": 2, "vocab_size": 13, "n_positions": 5}
    gpt = transformers.GPT2LMHeadModel(transformers.GPT2Config(**size))
    ids = torch.randint(13, (16, 5))
    data = [{"input_ids": row, "labels": row} for row in ids]
    watching = TransformersWatch({"input_ids": ids[:6]}, output=lambda out: out.logits[:, -1])
    arguments = transformers.TrainingArguments(
        str(tmp_path), max_steps=60, report_to=[], use_cpu=True, save_strategy="no",
        disable_tqdm=True,
    )  # fmt: skip
    transformers.Trainer(gpt, arguments, callbacks=[watching], train_dataset=data).train()
    told(watching.watch, 60, looks=10)


def test_a_flax_module_with_batch_statistics():
    """Running statistics are no trained parameters, and the record ends with the run."""
    nnx = pytest.importorskip("flax.nnx")
    jax = pytest.importorskip("jax")
    optax = pytest.importorskip("optax")
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 6)).astype(np.float32), rng.integers(3, size=30)

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first, self.last = nnx.Linear(6, 12, rngs=rngs), nnx.Linear(12, 3, rngs=rngs)
            self.norm = nnx.BatchNorm(12, rngs=rngs)

        def __call__(self, x):
            return self.last(jax.nn.relu(self.norm(self.first(x))))

    model = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(0.01), wrt=nnx.Param)
    watch = penchant.watch(model, x[:10], labels=y[:10], weight_decay=1e-4, warm_batch=x)

    @nnx.jit
    def update(model, optimizer):
        def loss(model):
            logits = model(x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        value, slope = nnx.value_and_grad(loss)(model)
        optimizer.update(model, slope)
        return value

    report = told(trained(watch, lambda: {"train_loss": update(model, optimizer)}, 80), 80, 10)
    assert not any("mean" in str(name) for name in report.dataset.layer.values)


def test_an_equinox_module_that_is_replaced_in_every_step():
    """The module of the last call is looked at in the end, not that of the start."""
    equinox = pytest.importorskip("equinox")
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 6)).astype(np.float32), rng.standard_normal(30)
    model = equinox.nn.MLP(6, "scalar", width_size=16, depth=1, key=jax.random.key(0))
    watch = penchant.watch(model, x[:10], labels=y[:10], learning_rate=0.05)

    @equinox.filter_jit
    def update(model):
        def loss(model):
            return jax.numpy.mean((jax.vmap(model)(x) - y) ** 2)

        value, slope = equinox.filter_value_and_grad(loss)(model)
        return equinox.apply_updates(model, jax.tree.map(lambda g: -0.05 * g, slope)), value

    for now in range(1, 101):
        model, value = update(model)
        watch(now, model, train_loss=value)
    report = told(watch, 100)
    ends = np.asarray(jax.vmap(model)(x[:10]))
    np.testing.assert_allclose(report.dataset.output[-1].values.ravel(), ends, rtol=1e-4, atol=1e-5)
