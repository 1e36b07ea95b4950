"""The watch as a callback of the Trainer of Transformers, with the library itself; no downloads."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'penchant[torch]'")
pytest.importorskip("transformers", reason="needs transformers: pip install 'penchant[stacks]'")
pytest.importorskip("accelerate", reason="needs accelerate: pip install 'penchant[stacks]'")

import torch
import transformers

import penchant
from penchant.watch.transformers import STATE, TransformersWatch

VOCABULARY, PLACES, STEPS = 31, 6, 24


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.setenv(name, "1")


def model(**options):
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=2, n_embd=16, n_head=2, vocab_size=VOCABULARY, n_positions=PLACES,
        bos_token_id=0, eos_token_id=0, **options,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def tokens(samples=16):
    random = torch.Generator().manual_seed(1)
    return torch.randint(VOCABULARY, (samples, PLACES), generator=random)


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, place):
        ids = tokens()[place]
        return {"input_ids": ids, "labels": ids}


def trained(folder, resume=None, stop=None, **options):
    options = {"output": last, "budget": None, "raise_errors": True} | options
    watching = TransformersWatch({"input_ids": tokens()[:8]}, **options)

    class Stop(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **given):
            control.should_training_stop = state.global_step == stop
            return control

    args = transformers.TrainingArguments(
        output_dir=str(folder), max_steps=STEPS, per_device_train_batch_size=8,
        learning_rate=5e-3, weight_decay=0.02, logging_steps=1, save_steps=STEPS // 2,
        eval_strategy="steps", eval_steps=STEPS // 2, report_to=[], use_cpu=True,
        disable_tqdm=True, seed=3,
    )  # fmt: skip
    data = Sentences()
    given = {"train_dataset": data, "eval_dataset": data, "callbacks": [watching, Stop()]}
    trainer = transformers.Trainer(model(), args, **given)
    trainer.train(resume_from_checkpoint=resume)
    return watching.watch


def last(answer):
    return answer.logits[:, -1]


pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the library's own calls
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*pin_memory.*"),
    pytest.mark.filterwarnings("ignore:.*lr_scheduler.step.*"),
]


def test_a_resumed_run_is_the_run(tmp_path):
    whole = trained(tmp_path / "whole")
    trained(tmp_path / "half", stop=STEPS // 2)
    half = tmp_path / "half" / f"checkpoint-{STEPS // 2}"
    assert (half / STATE).exists()
    resumed = trained(tmp_path / "half", resume=str(half))
    a, b = whole.dataset, resumed.dataset
    np.testing.assert_array_equal(b.step, a.step)
    for name in ("kernel_distance", "linearized_error", "norm_l2", "output", "optimizer_rate"):
        np.testing.assert_allclose(b[name], a[name], rtol=1e-3, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(b.train_loss, a.train_loss, rtol=1e-4)
    assert resumed.first == 0
    assert resumed.regime.kind == whole.regime.kind != "kernel"
    assert a.attrs["weight_decay"] == 0.02
    assert np.isfinite(a.eval_loss.values[[STEPS // 2 - 1, STEPS - 1]]).all()
    assert a.optimizer_rate[0] == pytest.approx(5e-3)
    assert a.optimizer_rate[-1] < a.optimizer_rate[0]
    assert not whole.failures + resumed.failures
    (half / STATE).unlink()
    with pytest.warns(UserWarning, match="no state of a watch at .* step 12 counts as the start"):
        lost = trained(tmp_path / "half", resume=str(half))
    assert lost.first == STEPS // 2
    assert float(lost.dataset.kernel_distance[-1]) < 0.5 * float(a.kernel_distance[-1])


def test_model_outputs_and_masks_go_in_as_they_are():
    """GPT-2 with a mask, its logits at all places, against plain backward passes."""
    net = model(resid_pdrop=0.0).eval()
    ids = tokens()[:5]
    mask = torch.ones_like(ids)
    mask[:, -1] = 0
    batch = transformers.BatchEncoding({"input_ids": ids, "attention_mask": mask})
    watch = penchant.watch(net, batch, output="logits", budget=None, raise_errors=True)
    rows = []
    for n in range(5):
        logits = net(input_ids=ids[n : n + 1], attention_mask=mask[n : n + 1]).logits.reshape(-1)
        for value in logits:
            found = torch.autograd.grad(value, list(net.parameters()), retain_graph=True)
            rows.append(torch.cat([g.reshape(-1) for g in found]).double().numpy())
    J = np.array(rows).reshape(5, PLACES * VOCABULARY, -1)
    K = np.einsum("ncp,mcp->nm", J, J) / J.shape[1]
    np.testing.assert_allclose(watch.start.kernel, K, rtol=1e-4)
    assert watch.start.outputs.shape == (5, PLACES * VOCABULARY)
    assert not watch.backend.gradients.rest  # torch.func computes no gradient
    default = penchant.watch(net, batch, budget=None)
    np.testing.assert_allclose(default.start.kernel, watch.start.kernel, rtol=1e-6)


def test_the_layers_of_gpt2_are_factored():
    """Its Conv1D keeps the weight as the transpose of a Linear; no layer needs sample gradients."""
    net, ids = model().eval(), {"input_ids": tokens()[:5]}
    kinds = {type(part).__name__ for part in net.modules()}
    assert "Conv1D" in kinds
    watch = penchant.watch(net, ids, output=last, budget=None, raise_errors=True)
    assert not watch.backend.gradients.rest


def test_after_a_head_is_replaced_the_regime_is_not_what_it_was():
    net = transformers.GPT2ForSequenceClassification(
        transformers.GPT2Config(
            n_layer=1, n_embd=16, n_head=2, vocab_size=VOCABULARY, n_positions=PLACES,
            bos_token_id=0, eos_token_id=0, pad_token_id=0,
        )
    ).eval()  # fmt: skip
    for value in net.transformer.parameters():
        value.requires_grad_(False)
    watch = penchant.watch(net, {"input_ids": tokens()[:8]}, budget=None)
    with torch.no_grad():
        net.score.weight += torch.randn(2, 16)
    watch(1)
    assert watch.regime.kind == "kernel"  # a last layer alone is a linear model
    net.score = torch.nn.Linear(16, 2, bias=False)
    watch(2)
    assert watch.regime.kind == "unknown"
    assert "score.weight is not the tensor of the start" in watch.regime.evidence
    for value in net.transformer.h.parameters():
        value.requires_grad_(True)
    again = penchant.watch(net, {"input_ids": tokens()[:8]}, budget=None, raise_errors=True)
    assert again.start.parameters > watch.start.parameters
    assert again.regime.kind == "unknown"  # nothing has moved since


def test_many_logits_are_summed_at_random():
    net = model().eval()
    long = {"input_ids": tokens().repeat(1, 3)[:4, :PLACES]}
    net.resize_token_embeddings(100, mean_resizing=False)
    watch = penchant.watch(net, long, output="logits", budget=None, raise_errors=True)
    assert watch.start.outputs.shape == (4, 32)
    note = watch.dataset.attrs["notes"][-1]
    assert "returns 600 numbers per sample (6 x 100), which 32 random sums" in note


def test_a_linearized_model_is_trained_as_it_is():
    net = model()
    ids = tokens()[:6]
    linear = penchant.models.linearize(net)
    torch.testing.assert_close(linear(input_ids=ids), net.eval()(input_ids=ids).logits)
    optimizer = torch.optim.SGD([p for p in linear.parameters() if p.requires_grad], lr=0.1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        logits = linear(input_ids=ids)
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), ids.reshape(-1))
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses == sorted(losses, reverse=True)
    watch = penchant.watch(linear, {"input_ids": ids}, output=lambda out: out[:, -1], budget=None)
    first = watch.start.kernel
    optimizer.step()
    watch(1)
    np.testing.assert_allclose(watch.dataset.kernel_distance[-1], 0, atol=1e-9)
    plain = penchant.watch(net, {"input_ids": ids}, output=last, budget=None).start.kernel
    np.testing.assert_allclose(first, plain, rtol=1e-4)
    assert not watch.failures


def test_gradient_checkpointing_of_the_library():
    plain, saving = model().train(), model().train()
    saving.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    ids = {"input_ids": tokens()[:6]}
    a, b = (penchant.watch(net, ids, output=last, budget=None) for net in (plain, saving))
    np.testing.assert_allclose(a.start.kernel, b.start.kernel, rtol=1e-5)
    assert saving.is_gradient_checkpointing
    assert not a.failures + b.failures
